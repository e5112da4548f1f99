//! The codec of physical plans.

use std::{fmt::Display, sync::Arc};

use datafusion::{
    common::{
        exec_datafusion_err, exec_err, plan_err,
        tree_node::{TreeNode, TreeNodeRecursion},
    },
    datasource::{
        file_format::{csv::CsvSink, json::JsonSink},
        physical_plan::{FileScanConfig, FileSinkConfig, FileSource},
        sink::{DataSink, DataSinkExec},
        source::DataSourceExec,
    },
    error::{DataFusionError, Result},
    execution::TaskContext,
    logical_expr::{AggregateUDF, HigherOrderUDF, ScalarUDF, WindowUDF},
    physical_expr::PhysicalExpr,
    physical_expr_common::physical_expr::{
        proto_decode::PhysicalExprDecodeCtx, proto_encode::PhysicalExprEncodeCtx,
    },
    physical_plan::{
        ExecutionPlan,
        empty::EmptyExec,
        execution_plan::replace_children_if_necessary,
        limit::GlobalLimitExec,
        proto::{ExecutionPlanDecodeCtx, ExecutionPlanEncodeCtx},
        recursive_query::RecursiveQueryExec,
        scalar_subquery::ScalarSubqueryExec,
    },
};
use datafusion_proto::{
    physical_plan::{
        AsExecutionPlan, DefaultPhysicalProtoConverter, PhysicalExtensionCodec,
        PhysicalProtoConverterExtension,
    },
    protobuf::{
        CoalescePartitionsExecNode, PhysicalExprNode, PhysicalNot, PhysicalPlanNode,
        PhysicalSortExprNodeCollection, physical_expr_node::ExprType,
        physical_plan_node::PhysicalPlanType,
    },
};
use prost::Message;
use tfarrow_dataset::internals::catch_panic;
use tfarrow_sql::wire::{
    CompactBatchesWire, ScanParts, ScanWire, StagingSinkWire, TextScanWire, TextSink,
    TfRecordSinkWire, check_shared, has_message, plan_function,
};

use crate::{
    contexts::{Decoding, Encoding},
    nodes::{
        Node, Proto, ScanNode, StagingSinkNode, TextScanNode, TextSinkNode, TextSinkProto,
        TfRecordSinkNode,
    },
};

/// Number of operators that an engine may add above a plan, such as those that write its results.
const OPERATORS_OF_ENGINE: usize = 2;
/// Maximum number of messages around an expression in that of a scan.
const MESSAGES_OF_SCAN: usize = 6;
/// The first byte of an operator of this codec. No message of protobuf begins with it.
const MARK: u8 = 0xff;
/// The version of this process.
pub(crate) const VERSION: &str = env!("CARGO_PKG_VERSION");

/// Encodes the operators of tfarrow in physical plans; an inner codec encodes those of the engine.
///
/// Decoding opens no file and no store, so that a scheduler can decode plans without access to the
/// data. A plan of another version of tfarrow, and corrupt bytes, are errors.
///
/// ```
/// use std::sync::Arc;
/// use datafusion::prelude::{SessionContext, col, lit};
/// use datafusion_proto::physical_plan::DefaultPhysicalExtensionCodec;
/// use tfarrow_cluster::PlanCodec;
/// use tfarrow_datafusion::{SessionContextTfRecordExt, TfRecordOptions};
/// # #[tokio::main(flavor = "current_thread")]
/// # async fn main() -> datafusion::error::Result<()> {
/// # let testdata = concat!(env!("CARGO_MANIFEST_DIR"), "/../../testdata");
/// let context = SessionContext::new();
/// let frame = context.read_tfrecord(&format!("{testdata}/scalar.tfrecord"), &TfRecordOptions::default()).await?;
/// let plan = frame.filter(col("id").gt(lit(0)))?.create_physical_plan().await?;
/// let codec = PlanCodec::new(Arc::new(DefaultPhysicalExtensionCodec {}));
/// let bytes = codec.encode(Arc::clone(&plan))?;
/// assert_eq!(codec.decode(&bytes, &context.task_ctx())?.schema(), plan.schema());
/// # Ok(()) }
/// ```
#[derive(Debug)]
pub struct PlanCodec {
    inner: Arc<dyn PhysicalExtensionCodec>,
    /// Whether decoded plans are only encoded again.
    is_relay: bool,
}

impl PlanCodec {
    /// Creates a codec; `inner` is the codec of the engine.
    pub fn new(inner: Arc<dyn PhysicalExtensionCodec>) -> Self {
        Self {
            inner,
            is_relay: false,
        }
    }

    /// Creates a codec for a process that sends parts of plans on, such as a scheduler. The plans
    /// that it decodes have no files: they can be encoded, and not executed. Its work for a part of
    /// a plan does not depend on the number of all files.
    pub fn relay(inner: Arc<dyn PhysicalExtensionCodec>) -> Self {
        Self {
            inner,
            is_relay: true,
        }
    }

    /// Encodes a plan.
    ///
    /// # Errors
    /// An operator cannot run in another process, or has no message; or the plan has too many
    /// nested operators or expressions.
    pub fn encode(&self, plan: Arc<dyn ExecutionPlan>) -> Result<Vec<u8>> {
        plan.apply(|node| {
            check(node.as_ref())?;
            self.check_expressions(node.as_ref())?;
            Ok(TreeNodeRecursion::Continue)
        })?;
        let node = PhysicalPlanNode::try_from_physical_plan(plan, self)?;
        let bytes = node.encode_to_vec();
        let with_operators = (0..OPERATORS_OF_ENGINE).fold(node, |node, _| merged(node));
        check_depth::<PhysicalPlanNode>(&with_operators.encode_to_vec())?;
        Ok(bytes)
    }

    /// Decodes a plan. `task` has the functions that the plan names.
    ///
    /// # Errors
    /// The bytes are corrupt, another version has encoded them, or `task` lacks a function.
    pub fn decode(&self, bytes: &[u8], task: &TaskContext) -> Result<Arc<dyn ExecutionPlan>> {
        let node = PhysicalPlanNode::decode(bytes).map_err(corrupt)?;
        catch_panic_in_plan(|| node.try_into_physical_plan(task, self))
    }

    /// Refuses a scan with an expression that cannot be decoded. A plan has the message of a scan
    /// as bytes, so that decoding the plan does not check it.
    fn check_expressions(&self, node: &dyn ExecutionPlan) -> Result<()> {
        if !node.is::<DataSourceExec>() {
            return Ok(());
        }
        node.apply_expressions(&mut |expr| {
            let message = DefaultPhysicalProtoConverter {}.physical_expr_to_proto(expr, self)?;
            let in_scan = (0..MESSAGES_OF_SCAN / 2).fold(message, |message, _| negated(message));
            check_depth::<PhysicalExprNode>(&in_scan.encode_to_vec())?;
            Ok(TreeNodeRecursion::Continue)
        })?;
        Ok(())
    }

    /// The message of an operator of tfarrow; `None` for other operators.
    fn encoded(
        &self,
        node: &dyn ExecutionPlan,
        converter: &dyn PhysicalProtoConverterExtension,
    ) -> Result<Option<Node>> {
        let encoding = Encoding {
            codec: self,
            converter,
        };
        let context = ExecutionPlanEncodeCtx::new(&encoding);
        if let Some(scan) = ScanWire::of(node)? {
            return Ok(Some(Node::Scan(Box::new(scan_node(scan, &context)?))));
        }
        if let Some((scan, config)) = TextScanWire::of(node)? {
            let config = Proto(config.try_to_proto(&context)?);
            return Ok(Some(Node::TextScan(Box::new(TextScanNode {
                scan,
                config,
            }))));
        }
        if let Some(batches) = CompactBatchesWire::of(node) {
            return Ok(Some(Node::CompactBatches(batches)));
        }
        let Some(exec) = node.downcast_ref::<DataSinkExec>() else {
            return Ok(None);
        };
        let order = exec.encode_sort_order(&context)?.map(Proto);
        if let Some((sink, config)) = TfRecordSinkWire::of(exec.sink()) {
            let config = Proto(config.try_into()?);
            let node = TfRecordSinkNode {
                sink,
                config,
                order,
            };
            return Ok(Some(Node::TfRecordSink(Box::new(node))));
        }
        if let Some((sink, inner)) = StagingSinkWire::of(exec.sink()) {
            let inner = Proto(inner_sink(inner, &context)?);
            let node = StagingSinkNode { sink, inner, order };
            return Ok(Some(Node::StagingSink(Box::new(node))));
        }
        if let Some(sink) = exec.sink().downcast_ref::<TextSink>() {
            let sink = match sink {
                TextSink::Csv(csv) => TextSinkProto::Csv(Proto(csv.try_into()?)),
                TextSink::Json(json) => TextSinkProto::Json(Proto(json.try_into()?)),
            };
            let node = TextSinkNode { sink, order };
            return Ok(Some(Node::TextSink(Box::new(node))));
        }
        Ok(None)
    }

    fn decoded(
        &self,
        bytes: &[u8],
        inputs: &[Arc<dyn ExecutionPlan>],
        task: &TaskContext,
        converter: &dyn PhysicalProtoConverterExtension,
    ) -> Result<Arc<dyn ExecutionPlan>> {
        // All versions can read the version.
        let (version, node) = postcard::take_from_bytes(bytes).map_err(corrupt)?;
        check_version("plan", version)?;
        let decoding = Decoding::new(task, self, converter);
        let context = ExecutionPlanDecodeCtx::new(&decoding);
        match (postcard::from_bytes(node).map_err(corrupt)?, inputs) {
            (Node::Scan(node), []) => self.scan_exec(*node, &context),
            (Node::TextScan(node), []) => {
                let source = node.scan.source()?;
                let config = FileScanConfig::try_from_proto(&node.config.0, &context, source)?;
                Ok(DataSourceExec::from_data_source(config))
            }
            (Node::CompactBatches(batches), [input]) => Ok(batches.exec(Arc::clone(input))),
            (Node::TfRecordSink(node), [input]) => {
                let config = FileSinkConfig::try_from(&node.config.0)?;
                sink_exec(input, node.sink.sink(config)?, node.order, &context)
            }
            (Node::TextSink(node), [input]) => {
                let sink = match node.sink {
                    TextSinkProto::Csv(csv) => TextSink::Csv(CsvSink::try_from(&csv.0)?),
                    TextSinkProto::Json(json) => TextSink::Json(JsonSink::try_from(&json.0)?),
                };
                sink_exec(input, Arc::new(sink), node.order, &context)
            }
            (Node::StagingSink(node), [input]) => {
                let inner = context.decode_child(&node.inner.0)?;
                let Some(inner) = inner.downcast_ref::<DataSinkExec>() else {
                    return exec_err!("the plan has an output that writes nothing");
                };
                let sink = node.sink.sink(inner.clone())?;
                sink_exec(input, sink, node.order, &context)
            }
            (_, inputs) => exec_err!(
                "the plan has an unknown operator with {} inputs",
                inputs.len()
            ),
        }
    }

    /// The operator of a scan.
    fn scan_exec(
        &self,
        node: ScanNode,
        context: &ExecutionPlanDecodeCtx<'_>,
    ) -> Result<Arc<dyn ExecutionPlan>> {
        let ScanNode {
            scan,
            config: Proto(config),
            predicate,
        } = node;
        let mut source = scan.source()?;
        if let Some(Proto(predicate)) = &predicate {
            let predicate = context.decode_expr(predicate, source.table_schema().file_schema())?;
            source = source.with_predicate(predicate)?;
        }
        let bare = FileScanConfig::try_from_proto(&config, context, Arc::new(source))?;
        if self.is_relay {
            Ok(scan.exec_to_send(bare))
        } else {
            scan.exec(bare)
        }
    }
}

/// Refuses what another version of tfarrow has made.
pub(crate) fn check_version(what: &str, version: &str) -> Result<()> {
    if version == VERSION {
        return Ok(());
    }
    exec_err!(
        "the {what} is of tfarrow {version:?}, and this process is tfarrow {VERSION:?}: all processes of a cluster must have one version"
    )
}

/// Refuses an operator that has no message, or whose own message would change the rows of the
/// query.
fn check(node: &dyn ExecutionPlan) -> Result<()> {
    // Messages of DataFusion have 32 bits for these numbers, and cut longer ones.
    let skipped = node
        .downcast_ref::<GlobalLimitExec>()
        .map(GlobalLimitExec::skip);
    if let Some(rows) = node
        .fetch()
        .into_iter()
        .chain(skipped)
        .find(|rows| u32::try_from(*rows).is_err())
    {
        return plan_err!(
            "a LIMIT or OFFSET of {rows} rows cannot be sent to other machines; {} is the maximum",
            u32::MAX
        );
    }
    if node
        .downcast_ref::<DataSinkExec>()
        .is_some_and(|exec| !has_message(exec.sink()))
    {
        return plan_err!("other machines write Parquet, CSV, JSON and TFRecord files only");
    }
    check_shared(node)?;
    if node.is::<RecursiveQueryExec>() {
        return plan_err!("a recursive query cannot be sent to other machines");
    }
    if node.is::<ScalarSubqueryExec>() {
        return plan_err!(
            "a scalar subquery that runs beside its query cannot be sent to other machines; without \
             datafusion.optimizer.enable_physical_uncorrelated_scalar_subquery it is planned as a join"
        );
    }
    Ok(())
}

/// A node above another one.
fn merged(node: PhysicalPlanNode) -> PhysicalPlanNode {
    let merge = CoalescePartitionsExecNode {
        input: Some(Box::new(node)),
        fetch: None,
    };
    PhysicalPlanNode {
        physical_plan_type: Some(PhysicalPlanType::Merge(Box::new(merge))),
    }
}

/// A message around that of an expression.
fn negated(expr: PhysicalExprNode) -> PhysicalExprNode {
    let expr_type = ExprType::NotExpr(Box::new(PhysicalNot {
        expr: Some(Box::new(expr)),
    }));
    PhysicalExprNode {
        expr_type: Some(expr_type),
        ..PhysicalExprNode::default()
    }
}

/// Refuses a message that cannot be decoded: prost has a limit for nested messages.
fn check_depth<M: Message + Default>(bytes: &[u8]) -> Result<()> {
    match M::decode(bytes) {
        Ok(_) => Ok(()),
        Err(_) => plan_err!(
            "the query has too many nested expressions, joins or subqueries for other machines; some 40 are possible"
        ),
    }
}

/// Calls a decoder of DataFusion, which may panic on corrupt bytes.
fn catch_panic_in_plan<T>(decode: impl FnOnce() -> Result<T>) -> Result<T> {
    catch_panic(decode).map_err(|error| exec_datafusion_err!("the plan is {error}"))?
}

/// The message of a scan.
fn scan_node(scan: ScanParts, context: &ExecutionPlanEncodeCtx<'_>) -> Result<ScanNode> {
    let ScanParts {
        wire,
        bare,
        predicate,
    } = scan;
    let predicate = match predicate {
        Some(predicate) => Some(Proto(context.encode_expr(&predicate)?)),
        None => None,
    };
    Ok(ScanNode {
        scan: wire,
        config: Proto(bare.try_to_proto(context)?),
        predicate,
    })
}

/// The message of the sink that a staging sink runs. Its input is sent as that of the staging sink.
fn inner_sink(
    exec: &DataSinkExec,
    context: &ExecutionPlanEncodeCtx<'_>,
) -> Result<PhysicalPlanNode> {
    let input: Arc<dyn ExecutionPlan> = Arc::new(EmptyExec::new(exec.input().schema()));
    let exec: Arc<dyn ExecutionPlan> = Arc::new(exec.clone());
    context.encode_child(&replace_children_if_necessary(exec, vec![input])?)
}

/// The operator of a sink above `input`.
fn sink_exec(
    input: &Arc<dyn ExecutionPlan>,
    sink: Arc<dyn DataSink>,
    order: Option<Proto<PhysicalSortExprNodeCollection>>,
    context: &ExecutionPlanDecodeCtx<'_>,
) -> Result<Arc<dyn ExecutionPlan>> {
    let order = order.as_ref().map(|Proto(order)| order);
    let order = DataSinkExec::decode_sort_order(order, context, sink.schema())?;
    Ok(Arc::new(DataSinkExec::new(Arc::clone(input), sink, order)))
}

fn not_serialized(error: postcard::Error) -> DataFusionError {
    exec_datafusion_err!("the plan cannot be serialized: {error}")
}

fn corrupt(error: impl Display) -> DataFusionError {
    exec_datafusion_err!("the plan is corrupt: {error}")
}

impl PhysicalExtensionCodec for PlanCodec {
    fn try_decode(
        &self,
        bytes: &[u8],
        inputs: &[Arc<dyn ExecutionPlan>],
        task: &TaskContext,
        converter: &dyn PhysicalProtoConverterExtension,
    ) -> Result<Arc<dyn ExecutionPlan>> {
        match bytes.split_first() {
            Some((&MARK, bytes)) => {
                catch_panic_in_plan(|| self.decoded(bytes, inputs, task, converter))
            }
            _ => self.inner.try_decode(bytes, inputs, task, converter),
        }
    }

    fn try_encode(
        &self,
        node: Arc<dyn ExecutionPlan>,
        bytes: &mut Vec<u8>,
        converter: &dyn PhysicalProtoConverterExtension,
    ) -> Result<()> {
        let Some(node) = self.encoded(node.as_ref(), converter)? else {
            return self.inner.try_encode(node, bytes, converter);
        };
        bytes.push(MARK);
        postcard::to_io(VERSION, &mut *bytes).map_err(not_serialized)?;
        postcard::to_io(&node, bytes).map_err(not_serialized)?;
        Ok(())
    }

    fn try_decode_udf(&self, name: &str, bytes: &[u8]) -> Result<Arc<ScalarUDF>> {
        // The functions that queries cannot call are in no session.
        plan_function(name).map_or_else(|| self.inner.try_decode_udf(name, bytes), Ok)
    }

    fn try_encode_udf(&self, function: &ScalarUDF, bytes: &mut Vec<u8>) -> Result<()> {
        self.inner.try_encode_udf(function, bytes)
    }

    fn try_decode_higher_order_function(
        &self,
        name: &str,
        bytes: &[u8],
    ) -> Result<Arc<HigherOrderUDF>> {
        self.inner.try_decode_higher_order_function(name, bytes)
    }

    fn try_encode_higher_order_function(
        &self,
        function: &HigherOrderUDF,
        bytes: &mut Vec<u8>,
    ) -> Result<()> {
        self.inner.try_encode_higher_order_function(function, bytes)
    }

    fn try_decode_expr(
        &self,
        bytes: &[u8],
        inputs: &[Arc<dyn PhysicalExpr>],
        context: &PhysicalExprDecodeCtx<'_>,
    ) -> Result<Arc<dyn PhysicalExpr>> {
        self.inner.try_decode_expr(bytes, inputs, context)
    }

    fn try_encode_expr(
        &self,
        expr: &Arc<dyn PhysicalExpr>,
        bytes: &mut Vec<u8>,
        context: &PhysicalExprEncodeCtx<'_>,
    ) -> Result<()> {
        self.inner.try_encode_expr(expr, bytes, context)
    }

    fn try_decode_udaf(&self, name: &str, bytes: &[u8]) -> Result<Arc<AggregateUDF>> {
        self.inner.try_decode_udaf(name, bytes)
    }

    fn try_encode_udaf(&self, function: &AggregateUDF, bytes: &mut Vec<u8>) -> Result<()> {
        self.inner.try_encode_udaf(function, bytes)
    }

    fn try_decode_udwf(&self, name: &str, bytes: &[u8]) -> Result<Arc<WindowUDF>> {
        self.inner.try_decode_udwf(name, bytes)
    }

    fn try_encode_udwf(&self, function: &WindowUDF, bytes: &mut Vec<u8>) -> Result<()> {
        self.inner.try_encode_udwf(function, bytes)
    }
}
