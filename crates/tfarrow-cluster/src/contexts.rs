//! The contexts in which DataFusion encodes and decodes the parts of an operator, made of a codec
//! and a converter.

use std::sync::Arc;

use arrow_schema::Schema;
use datafusion::{
    error::Result,
    execution::{FunctionRegistry, TaskContext},
    logical_expr::{
        AggregateUDF, ScalarUDF, WindowUDF, physical_planning_context::ScalarSubqueryResults,
    },
    physical_expr::PhysicalExpr,
    physical_plan::{
        ExecutionPlan,
        proto::{ExecutionPlanDecode, ExecutionPlanEncode},
    },
};
use datafusion_proto::{
    physical_plan::{
        PhysicalExtensionCodec, PhysicalPlanDecodeContext, PhysicalProtoConverterExtension,
    },
    protobuf::{PhysicalExprNode, PhysicalPlanNode},
};

/// Encodes parts of an operator.
pub(crate) struct Encoding<'c> {
    pub(crate) codec: &'c dyn PhysicalExtensionCodec,
    pub(crate) converter: &'c dyn PhysicalProtoConverterExtension,
}

/// The bytes of a function; `None` if its name is enough.
fn payload(encode: impl FnOnce(&mut Vec<u8>) -> Result<()>) -> Result<Option<Vec<u8>>> {
    let mut bytes = Vec::new();
    encode(&mut bytes)?;
    Ok((!bytes.is_empty()).then_some(bytes))
}

impl ExecutionPlanEncode for Encoding<'_> {
    fn encode_plan(&self, plan: &Arc<dyn ExecutionPlan>) -> Result<PhysicalPlanNode> {
        self.converter.execution_plan_to_proto(plan, self.codec)
    }

    fn encode_expr(&self, expr: &Arc<dyn PhysicalExpr>) -> Result<PhysicalExprNode> {
        self.converter.physical_expr_to_proto(expr, self.codec)
    }

    fn encode_udf(&self, udf: &ScalarUDF) -> Result<Option<Vec<u8>>> {
        payload(|bytes| self.codec.try_encode_udf(udf, bytes))
    }

    fn encode_udaf(&self, udaf: &AggregateUDF) -> Result<Option<Vec<u8>>> {
        payload(|bytes| self.codec.try_encode_udaf(udaf, bytes))
    }

    fn encode_udwf(&self, udwf: &WindowUDF) -> Result<Option<Vec<u8>>> {
        payload(|bytes| self.codec.try_encode_udwf(udwf, bytes))
    }
}

/// Decodes parts of an operator.
pub(crate) struct Decoding<'c> {
    context: PhysicalPlanDecodeContext<'c>,
    converter: &'c dyn PhysicalProtoConverterExtension,
}

impl<'c> Decoding<'c> {
    pub(crate) fn new(
        task: &'c TaskContext,
        codec: &'c dyn PhysicalExtensionCodec,
        converter: &'c dyn PhysicalProtoConverterExtension,
    ) -> Self {
        Self {
            context: PhysicalPlanDecodeContext::new(task, codec),
            converter,
        }
    }
}

impl ExecutionPlanDecode for Decoding<'_> {
    fn decode_plan(&self, node: &PhysicalPlanNode) -> Result<Arc<dyn ExecutionPlan>> {
        self.converter.proto_to_execution_plan(node, &self.context)
    }

    fn decode_plan_with_scalar_subquery_results(
        &self,
        node: &PhysicalPlanNode,
        results: ScalarSubqueryResults,
    ) -> Result<Arc<dyn ExecutionPlan>> {
        self.converter
            .proto_to_execution_plan(node, &self.context.with_scalar_subquery_results(results))
    }

    fn decode_expr(
        &self,
        node: &PhysicalExprNode,
        schema: &Schema,
    ) -> Result<Arc<dyn PhysicalExpr>> {
        self.converter
            .proto_to_physical_expr(node, schema, &self.context)
    }

    fn task_ctx(&self) -> &TaskContext {
        self.context.task_ctx()
    }

    // A function without a payload is that of its name in the session.
    fn decode_udf(&self, name: &str, payload: Option<&[u8]>) -> Result<Arc<ScalarUDF>> {
        let codec = self.context.codec();
        if let Some(payload) = payload {
            return codec.try_decode_udf(name, payload);
        }
        let known = self.task_ctx().udf(name);
        known.or_else(|_| codec.try_decode_udf(name, &[]))
    }

    fn decode_udaf(&self, name: &str, payload: Option<&[u8]>) -> Result<Arc<AggregateUDF>> {
        let codec = self.context.codec();
        if let Some(payload) = payload {
            return codec.try_decode_udaf(name, payload);
        }
        let known = self.task_ctx().udaf(name);
        known.or_else(|_| codec.try_decode_udaf(name, &[]))
    }

    fn decode_udwf(&self, name: &str, payload: Option<&[u8]>) -> Result<Arc<WindowUDF>> {
        let codec = self.context.codec();
        if let Some(payload) = payload {
            return codec.try_decode_udwf(name, payload);
        }
        let known = self.task_ctx().udwf(name);
        known.or_else(|_| codec.try_decode_udwf(name, &[]))
    }
}
