//! The operators of this program in a plan: their parts, beside messages of `datafusion-proto`.

use datafusion_proto::protobuf::{
    CsvSink, FileScanExecConf, FileSinkConfig, JsonSink, PhysicalExprNode, PhysicalPlanNode,
    PhysicalSortExprNodeCollection,
};
use prost::Message;
use serde::{Deserialize, Deserializer, Serialize, Serializer, de::Error as _};
use tfarrow_sql::wire::{
    CompactBatchesWire, ScanWire, StagingSinkWire, TextScanWire, TfRecordSinkWire,
};

/// An operator. Its inputs are sent beside it.
#[derive(Serialize, Deserialize)]
pub(crate) enum Node {
    Scan(Box<ScanNode>),
    CompactBatches(CompactBatchesWire),
    TfRecordSink(Box<TfRecordSinkNode>),
    StagingSink(Box<StagingSinkNode>),
    TextScan(Box<TextScanNode>),
    TextSink(Box<TextSinkNode>),
}

/// A message of DataFusion, as its bytes.
pub(crate) struct Proto<M>(pub(crate) M);

impl<M: Message> Serialize for Proto<M> {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.serialize_bytes(&self.0.encode_to_vec())
    }
}

impl<'de, M: Message + Default> Deserialize<'de> for Proto<M> {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let bytes = <&[u8]>::deserialize(deserializer)?;
        M::decode(bytes).map(Self).map_err(D::Error::custom)
    }
}

/// A scan of TFRecord files.
#[derive(Serialize, Deserialize)]
pub(crate) struct ScanNode {
    pub(crate) scan: ScanWire,
    /// The projection and the settings that each scan of DataFusion has, without files.
    pub(crate) config: Proto<FileScanExecConf>,
    /// The filter that the scan evaluates.
    pub(crate) predicate: Option<Proto<PhysicalExprNode>>,
}

/// A scan of CSV or JSON files.
#[derive(Serialize, Deserialize)]
pub(crate) struct TextScanNode {
    pub(crate) scan: TextScanWire,
    /// The files, the projection and the settings that each scan of DataFusion has.
    pub(crate) config: Proto<FileScanExecConf>,
}

/// A sink of TFRecord files.
#[derive(Serialize, Deserialize)]
pub(crate) struct TfRecordSinkNode {
    pub(crate) sink: TfRecordSinkWire,
    pub(crate) config: Proto<FileSinkConfig>,
    /// The order of the rows that the sink requires.
    pub(crate) order: Option<Proto<PhysicalSortExprNodeCollection>>,
}

/// A sink of CSV or JSON files.
#[derive(Serialize, Deserialize)]
pub(crate) struct TextSinkNode {
    pub(crate) sink: TextSinkProto,
    /// The order of the rows that the sink requires.
    pub(crate) order: Option<Proto<PhysicalSortExprNodeCollection>>,
}

#[derive(Serialize, Deserialize)]
pub(crate) enum TextSinkProto {
    Csv(Proto<CsvSink>),
    Json(Proto<JsonSink>),
}

/// A sink of another format, whose files appear when all of them are complete.
#[derive(Serialize, Deserialize)]
pub(crate) struct StagingSinkNode {
    pub(crate) sink: StagingSinkWire,
    /// The operator of the other sink, above an empty input.
    pub(crate) inner: Proto<PhysicalPlanNode>,
    /// The order of the rows that the sink requires.
    pub(crate) order: Option<Proto<PhysicalSortExprNodeCollection>>,
}
