//! Messages of the operators of this program: messages of `tfarrow-datafusion` beside those of
//! `datafusion-proto`.

use datafusion_proto::protobuf::{
    CsvSink, FileScanExecConf, FileSinkConfig, JsonSink, PhysicalExprNode, PhysicalPlanNode,
    PhysicalSortExprNodeCollection,
};
use tfarrow_sql::wire::{
    CompactBatchesWire, ScanWire, StagingSinkWire, TextScanWire, TfRecordSinkWire,
};

/// The message of an operator, with the version of the program that encoded it. All versions can
/// read the version.
#[derive(Clone, PartialEq, prost::Message)]
pub(crate) struct VersionedNode {
    /// The version of tfarrow.
    #[prost(string, tag = "1")]
    pub(crate) version: String,
    /// A [`Node`].
    #[prost(bytes = "vec", tag = "2")]
    pub(crate) node: Vec<u8>,
}

/// An operator. Its inputs are sent beside it.
#[derive(Clone, PartialEq, prost::Message)]
pub(crate) struct Node {
    #[prost(oneof = "NodeKind", tags = "1, 2, 3, 4, 5, 6")]
    pub(crate) kind: Option<NodeKind>,
}

/// The kinds of operators.
#[derive(Clone, PartialEq, prost::Oneof)]
pub(crate) enum NodeKind {
    #[prost(message, tag = "1")]
    Scan(Box<ScanNode>),
    #[prost(message, tag = "2")]
    CompactBatches(CompactBatchesWire),
    #[prost(message, tag = "3")]
    TfRecordSink(Box<TfRecordSinkNode>),
    #[prost(message, tag = "4")]
    StagingSink(Box<StagingSinkNode>),
    #[prost(message, tag = "5")]
    TextScan(Box<TextScanNode>),
    #[prost(message, tag = "6")]
    TextSink(Box<TextSinkNode>),
}

/// A scan of TFRecord files.
#[derive(Clone, PartialEq, prost::Message)]
pub(crate) struct ScanNode {
    #[prost(message, optional, tag = "1")]
    pub(crate) scan: Option<ScanWire>,
    /// The projection and the settings that each scan of DataFusion has, without files.
    #[prost(message, optional, tag = "2")]
    pub(crate) config: Option<FileScanExecConf>,
    /// The filter that the scan evaluates.
    #[prost(message, optional, tag = "3")]
    pub(crate) predicate: Option<PhysicalExprNode>,
}

/// A scan of CSV or JSON files.
#[derive(Clone, PartialEq, prost::Message)]
pub(crate) struct TextScanNode {
    #[prost(message, optional, tag = "1")]
    pub(crate) scan: Option<TextScanWire>,
    /// The files, the projection and the settings that each scan of DataFusion has.
    #[prost(message, optional, tag = "2")]
    pub(crate) config: Option<FileScanExecConf>,
}

/// A sink of TFRecord files.
#[derive(Clone, PartialEq, prost::Message)]
pub(crate) struct TfRecordSinkNode {
    #[prost(message, optional, tag = "1")]
    pub(crate) sink: Option<TfRecordSinkWire>,
    #[prost(message, optional, tag = "2")]
    pub(crate) config: Option<FileSinkConfig>,
    /// The order of the rows that the sink requires.
    #[prost(message, optional, tag = "3")]
    pub(crate) order: Option<PhysicalSortExprNodeCollection>,
}

/// A sink of CSV or JSON files: one of the two.
#[derive(Clone, PartialEq, prost::Message)]
pub(crate) struct TextSinkNode {
    #[prost(message, optional, tag = "1")]
    pub(crate) csv: Option<CsvSink>,
    #[prost(message, optional, tag = "2")]
    pub(crate) json: Option<JsonSink>,
    /// The order of the rows that the sink requires.
    #[prost(message, optional, tag = "3")]
    pub(crate) order: Option<PhysicalSortExprNodeCollection>,
}

/// A sink of another format, whose files appear when all of them are complete.
#[derive(Clone, PartialEq, prost::Message)]
pub(crate) struct StagingSinkNode {
    #[prost(message, optional, tag = "1")]
    pub(crate) sink: Option<StagingSinkWire>,
    /// The operator of the other sink, above an empty input.
    #[prost(message, optional, boxed, tag = "2")]
    pub(crate) inner: Option<Box<PhysicalPlanNode>>,
    /// The order of the rows that the sink requires.
    #[prost(message, optional, tag = "3")]
    pub(crate) order: Option<PhysicalSortExprNodeCollection>,
}
