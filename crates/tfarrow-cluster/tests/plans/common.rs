//! Sessions, plans and their bytes.

use std::{path::PathBuf, sync::Arc};

use arrow_array::RecordBatch;
use datafusion::{
    arrow::util::pretty::pretty_format_batches,
    error::Result,
    execution::{SendableRecordBatchStream, SessionStateBuilder, TaskContext},
    physical_plan::{ExecutionPlan, collect, displayable},
    prelude::{SessionConfig, SessionContext},
};
use datafusion_proto::physical_plan::DefaultPhysicalExtensionCodec;
use tfarrow_cluster::PlanCodec;
use tfarrow_sql::{
    Engine, QueryLimits, RemoteExec, SessionOptions, TaskProgress, plan_statement, session_context,
    statements,
};

/// The root of the repository.
pub(crate) fn root() -> PathBuf {
    PathBuf::from(env!("CARGO_MANIFEST_DIR"))
        .join("../..")
        .canonicalize()
        .unwrap()
}

/// A path below the test data.
pub(crate) fn testdata(path: &str) -> String {
    root().join("testdata").join(path).display().to_string()
}

/// An engine for the plans that it would run.
#[derive(Debug)]
struct PlansOnly;

impl Engine for PlansOnly {
    fn name(&self) -> String {
        "none".to_owned()
    }

    fn prepare(&self, session: SessionStateBuilder) -> SessionStateBuilder {
        session
    }

    fn run(
        &self,
        _: Arc<dyn ExecutionPlan>,
        _: Arc<TaskContext>,
        _: TaskProgress,
    ) -> Result<SendableRecordBatchStream> {
        unreachable!("the tests run the input of the operator")
    }
}

/// A session that plans for other machines: operators share no filters and no results of
/// subqueries.
pub(crate) fn session() -> SessionContext {
    let config = SessionConfig::new().with_target_partitions(3);
    let config = config
        .set_bool("datafusion.optimizer.enable_dynamic_filter_pushdown", false)
        .set_bool(
            "datafusion.optimizer.enable_physical_uncorrelated_scalar_subquery",
            false,
        );
    session_context(SessionOptions {
        config,
        engine: Some(Arc::new(PlansOnly)),
        ..SessionOptions::default()
    })
    .unwrap()
}

pub(crate) fn codec() -> PlanCodec {
    PlanCodec::new(Arc::new(DefaultPhysicalExtensionCodec {}))
}

/// The plan of the last statement of a text; the statements before it are executed.
pub(crate) async fn planned(
    context: &SessionContext,
    text: &str,
) -> Result<Arc<dyn ExecutionPlan>> {
    let mut frame = None;
    for statement in statements(text, context, QueryLimits::default())? {
        let plan = plan_statement(statement?, &context.state()).await?;
        frame = Some(context.execute_logical_plan(plan).await?);
    }
    let plan = frame.unwrap().create_physical_plan().await?;
    // That of the engine.
    Ok(if plan.is::<RemoteExec>() {
        Arc::clone(plan.children()[0])
    } else {
        plan
    })
}

pub(crate) fn encoded(plan: &Arc<dyn ExecutionPlan>) -> Result<Vec<u8>> {
    codec().encode(Arc::clone(plan))
}

/// Decodes a plan in a session that has none of the tables of other sessions.
pub(crate) fn decoded(bytes: &[u8]) -> Result<Arc<dyn ExecutionPlan>> {
    codec().decode(bytes, &session().task_ctx())
}

/// The text of a plan, without the metadata of fields, whose order is that of a hash map.
pub(crate) fn text(plan: &Arc<dyn ExecutionPlan>) -> String {
    let text = displayable(plan.as_ref()).indent(true).to_string();
    let mut parts = text.split("metadata: {");
    let first = parts.next().unwrap_or_default().to_owned();
    parts.fold(first, |text, part| {
        text + part.split_once('}').map_or(part, |(_, rest)| rest)
    })
}

pub(crate) async fn run(plan: Arc<dyn ExecutionPlan>) -> Result<Vec<RecordBatch>> {
    collect(plan, session().task_ctx()).await
}

/// The rows of batches as text, sorted.
pub(crate) fn rows(batches: &[RecordBatch]) -> Vec<String> {
    let table = pretty_format_batches(batches).unwrap().to_string();
    let mut rows: Vec<_> = table.lines().map(str::to_owned).collect();
    rows.sort();
    rows
}

/// Checks that a plan has the same text and the same rows after it was encoded and decoded.
#[track_caller]
pub(crate) fn check(query: &str) {
    let (sent, plan) = sent(query);
    assert_eq!(text(&sent), text(&plan), "{query}");
    check_rows(query, sent, plan);
}

/// Plans a query, and encodes and decodes the plan. Returns the result, and the plan itself.
#[track_caller]
pub(crate) fn sent(query: &str) -> (Arc<dyn ExecutionPlan>, Arc<dyn ExecutionPlan>) {
    let runtime = tokio::runtime::Runtime::new().unwrap();
    let plan = runtime
        .block_on(planned(&session(), query))
        .unwrap_or_else(|error| panic!("{query}: {error}"));
    // A scheduler decodes a plan, and encodes it again for its tasks.
    let relay = PlanCodec::relay(Arc::new(DefaultPhysicalExtensionCodec {}));
    let relayed = encoded(&plan).and_then(|bytes| relay.decode(&bytes, &session().task_ctx()));
    let sent = relayed
        .and_then(|plan| relay.encode(plan))
        .and_then(|bytes| decoded(&bytes));
    (
        sent.unwrap_or_else(|error| panic!("{query}: {error}")),
        plan,
    )
}

/// Checks that two plans have the same rows, or the same error.
#[track_caller]
pub(crate) fn check_rows(query: &str, sent: Arc<dyn ExecutionPlan>, plan: Arc<dyn ExecutionPlan>) {
    let runtime = tokio::runtime::Builder::new_multi_thread()
        .worker_threads(2)
        .enable_all()
        .build()
        .unwrap();
    let result = |plan| match runtime.block_on(run(plan)) {
        Ok(batches) => rows(&batches),
        Err(error) => vec![error.to_string()],
    };
    assert_eq!(result(sent), result(plan), "{query}");
}
