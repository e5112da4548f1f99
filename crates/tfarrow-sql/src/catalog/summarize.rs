//! `SUMMARIZE 'shards/'`, which is `SELECT * FROM summarize('shards/')`: the statistics of each
//! feature, as those of `tfarrow-stats`. The argument may also be a query.

use std::{ops::ControlFlow, sync::Arc};

use arrow_array::{ArrayRef, BooleanArray, Float64Array, Int64Array, RecordBatch, StringArray};
use datafusion::{
    catalog::MemTable,
    common::{TableReference, plan_err},
    datasource::provider_as_source,
    error::Result,
    logical_expr::{
        LogicalPlan, LogicalPlanBuilder,
        planner::{PlannedRelation, RelationPlanner, RelationPlannerContext, RelationPlanning},
    },
    sql::sqlparser::ast::{Expr as SqlExpr, FunctionArg, FunctionArgExpr, Query, TableFactor},
};
use tfarrow_codec::{Limits, RecordType};
use tfarrow_datafusion::{
    Notice, TfRecordOptions, TfRecordTable, TfRecordTableBuilder,
    internals::{TableRegistry, are_event_columns, external},
};
use tfarrow_dataset::{
    FormatFilter, ReadOptions, Shard, ShardFormat, internals::are_events, resolve_filtered,
};
use tfarrow_scan::InferOptions;
use tfarrow_stats::{
    ByteStringStatistics, DatasetStatistics, FeatureStatistics, KindStatistics, NumberStatistics,
    NumberValue, Statistics, why_no_features,
};

use crate::{
    catalog::{
        summary_table::SummaryTable, table_function::literal, text_files::TextFiles,
        url_table::contents,
    },
    statements::{clauses::check_relation, summarize::SUMMARIZE},
};

/// Plans calls of `summarize`, whose arguments are sources, or one query.
#[derive(Debug)]
pub(crate) struct SummarizeFunction(pub(crate) Arc<TableRegistry>);

impl RelationPlanner for SummarizeFunction {
    fn plan_relation(
        &self,
        relation: TableFactor,
        context: &mut dyn RelationPlannerContext,
    ) -> Result<RelationPlanning> {
        let TableFactor::Table {
            name,
            alias,
            args: Some(args),
            ..
        } = &relation
        else {
            return Ok(RelationPlanning::Original(Box::new(relation)));
        };
        if !name.to_string().eq_ignore_ascii_case(SUMMARIZE) {
            return Ok(RelationPlanning::Original(Box::new(relation)));
        }
        check_relation(&relation)?;
        if let [FunctionArg::Unnamed(FunctionArgExpr::Expr(argument))] = args.args.as_slice()
            && let Some(query) = query_of(argument)
        {
            let query = TableFactor::Derived {
                lateral: false,
                subquery: Box::new(query.clone()),
                alias: None,
                sample: None,
            };
            let plan = self.of_query(context.plan(query)?, context)?;
            return Ok(RelationPlanning::Planned(Box::new(PlannedRelation::new(
                plan,
                alias.clone(),
            ))));
        }
        let mut sources = Vec::with_capacity(args.args.len());
        for arg in &args.args {
            let FunctionArg::Unnamed(source) = arg else {
                return plan_err!(
                    "{SUMMARIZE}: found {arg}, expected sources or one query; SET tfarrow.x sets options"
                );
            };
            sources.push(literal(SUMMARIZE, source, context)?);
        }
        if sources.is_empty() {
            return plan_err!("{SUMMARIZE} needs a source: {SUMMARIZE}('shards/*.tfrecord')");
        }
        let plan = self.of_sources(&sources, context)?;
        Ok(RelationPlanning::Planned(Box::new(PlannedRelation::new(
            plan,
            alias.clone(),
        ))))
    }
}

/// The query that an argument is, with or without further parentheses.
fn query_of(argument: &SqlExpr) -> Option<&Query> {
    match argument {
        SqlExpr::Subquery(query) => Some(query),
        SqlExpr::Nested(inner) => query_of(inner),
        _ => None,
    }
}

impl SummarizeFunction {
    /// The plan of the statistics of a query.
    fn of_query(
        &self,
        plan: LogicalPlan,
        context: &dyn RelationPlannerContext,
    ) -> Result<LogicalPlan> {
        let options = context
            .context_provider()
            .options()
            .extensions
            .get::<TfRecordOptions>();
        let limits = options.map_or_else(Limits::default, |options| options.limits);
        let schema = rows(&DatasetStatistics::default())?.schema();
        let table = SummaryTable {
            plan,
            schema,
            rows,
            limits,
            registry: Arc::clone(&self.0),
        };
        LogicalPlanBuilder::scan(SUMMARIZE, provider_as_source(Arc::new(table)), None)?.build()
    }

    /// The plan of the statistics of files: those of the features of their records, or of the
    /// columns of their table if the records have no statistics. The planner is synchronous, so
    /// that this blocks its thread while the data is read.
    fn of_sources(
        &self,
        sources: &[String],
        context: &dyn RelationPlannerContext,
    ) -> Result<LogicalPlan> {
        // Only DataFusion reads text files of some compressions.
        if let [source] = sources
            && TextFiles::of_name(source).is_some_and(|files| files.is_only_for_tables())
        {
            let table = context
                .context_provider()
                .get_table_source(TableReference::bare(source.clone()))?;
            return self.of_query(
                LogicalPlanBuilder::scan(source.clone(), table, None)?.build()?,
                context,
            );
        }
        let options = context
            .context_provider()
            .options()
            .extensions
            .get::<TfRecordOptions>();
        let options = options.cloned().unwrap_or_default();
        let mut shards = resolve_filtered(sources, FormatFilter::Convertible)
            .map_err(external)?
            .shards;
        shards
            .iter_mut()
            .try_for_each(Shard::spool_for_scan)
            .map_err(external)?;
        let format = contents(&sources.join(", "), &shards)?;
        let name = sources.first().map(String::as_str).unwrap_or_default();
        if !options.states_type() && are_converted_events(&shards)? {
            let events = TfRecordTableBuilder::of_shards(shards).with_events()?;
            let table = events.with_options(options).build_blocking()?;
            return self.of_table(table, name, context);
        }
        let is_stated =
            options.message.is_some() || options.record_type.is_some_and(has_no_statistics);
        let is_known = is_stated || options.record_type.is_none() && are_events(&shards);
        if !is_known || format != ShardFormat::TfRecord {
            let found = self.statistics(&shards, &options)?;
            if format != ShardFormat::TfRecord
                || !has_no_statistics(found.inferred.summary.record_type())
            {
                let rows = rows(&found.summarize())?;
                let table = MemTable::try_new(rows.schema(), vec![vec![rows]])?;
                return LogicalPlanBuilder::scan(
                    SUMMARIZE,
                    provider_as_source(Arc::new(table)),
                    None,
                )?
                .build();
            }
        }
        let table = TfRecordTableBuilder::of_shards(shards).with_options(options);
        self.of_table(table.build_blocking()?, name, context)
    }

    /// The plan of the statistics of the columns of a table.
    fn of_table(
        &self,
        table: TfRecordTable,
        name: &str,
        context: &dyn RelationPlannerContext,
    ) -> Result<LogicalPlan> {
        let table = self.0.register(table, name)?;
        self.of_query(
            LogicalPlanBuilder::scan(name, provider_as_source(table), None)?.build()?,
            context,
        )
    }

    /// Reads all records of the files.
    fn statistics(&self, shards: &[Shard], options: &TfRecordOptions) -> Result<Statistics> {
        let TfRecordOptions {
            verify_crc: verify,
            on_error,
            partial_tail,
            limits,
            record_type,
            ..
        } = *options;
        let read = ReadOptions {
            on_error,
            partial_tail,
            limits,
            ..ReadOptions::default()
        };
        let threads = std::thread::available_parallelism().map_or(1, usize::from);
        let options = InferOptions {
            threads,
            verify,
            record_type,
            read,
            ..InferOptions::default()
        };
        let found = Statistics::collect(shards, &options, &|_, _| ControlFlow::Continue(()));
        let found = found.map_err(external)?;
        if !found.inferred.skipped.is_empty() {
            self.0
                .notices
                .notify(&Notice::Skipped(found.inferred.skipped.clone()));
        }
        if let Some(why) = why_no_features(&found.inferred) {
            self.0.notices.notify(&Notice::NoFeatures(why));
        }
        self.0.notices.notify_losses(&found.inferred.losses);
        Ok(found)
    }
}

/// Returns whether the rows of all files are TensorBoard's events, which were converted from event
/// files.
fn are_converted_events(shards: &[Shard]) -> Result<bool> {
    for shard in shards {
        let columns = tfarrow_columnar::schema(Some(shard.format), &shard.path, shard.local_path())
            .map_err(external)?;
        if !columns.is_some_and(|columns| are_event_columns(&columns)) {
            return Ok(false);
        }
    }
    Ok(true)
}

/// Returns whether the features of such records have no statistics, but the columns of their table
/// have.
fn has_no_statistics(record_type: RecordType) -> bool {
    matches!(
        record_type,
        RecordType::Raw | RecordType::Message | RecordType::ExampleList
    )
}

/// A row for each feature and kind.
fn rows(found: &DatasetStatistics) -> Result<RecordBatch> {
    let features = found.features.iter().flat_map(|feature| {
        let kinds = feature.kinds.iter().map(Some);
        // A feature without a kind has a row as well.
        let none = feature.kinds.is_empty().then_some(None);
        kinds.chain(none).map(move |kind| (feature, kind))
    });
    let rows = Rows(features.collect());
    let mut columns = Vec::new();
    for (name, column) in rows.columns_of_features() {
        columns.push((name, column, true));
    }
    for (name, column) in rows.columns_of_numbers() {
        columns.push((name, column, true));
    }
    for (name, column) in rows.columns_of_strings() {
        columns.push((name, column, true));
    }
    Ok(RecordBatch::try_from_iter_with_nullable(columns)?)
}

/// The features, each with one of its kinds.
struct Rows<'s>(Vec<(&'s FeatureStatistics, Option<&'s KindStatistics>)>);

impl Rows<'_> {
    fn columns_of_features(&self) -> [(&'static str, ArrayRef); 8] {
        [
            (
                "feature",
                self.texts(|feature, _| Some(feature.name.clone())),
            ),
            ("kind", self.texts(|_, kind| Some(kind?.kind.to_owned()))),
            ("present", self.counts(|feature, _| Some(feature.present))),
            ("missing", self.counts(|feature, _| Some(feature.missing))),
            ("unset", self.counts(|feature, _| Some(feature.unset))),
            ("values", self.counts(|_, kind| Some(kind?.values))),
            ("min_length", self.counts(|_, kind| Some(kind?.lengths.min))),
            ("max_length", self.counts(|_, kind| Some(kind?.lengths.max))),
        ]
    }

    fn columns_of_numbers(&self) -> [(&'static str, ArrayRef); 10] {
        [
            ("min", self.floats(|numbers| numbers.min.to_f64())),
            ("median", self.floats(|numbers| numbers.median)),
            (
                "is_median_exact",
                self.exactness(|kind| Some(kind.numbers.as_ref()?.sampled.is_none())),
            ),
            ("max", self.floats(|numbers| numbers.max.to_f64())),
            // Floats do not have all integers beyond 2^53.
            ("min_integer", self.integers(|numbers| numbers.min)),
            ("max_integer", self.integers(|numbers| numbers.max)),
            ("mean", self.floats(|numbers| numbers.mean)),
            ("std_dev", self.floats(|numbers| numbers.std_dev)),
            (
                "zeros",
                self.counts(|_, kind| Some(kind?.numbers.as_ref()?.zeros)),
            ),
            (
                "nan",
                self.counts(|_, kind| Some(kind?.numbers.as_ref()?.nan)),
            ),
        ]
    }

    fn columns_of_strings(&self) -> [(&'static str, ArrayRef); 5] {
        [
            ("distinct", self.of_strings(|strings| strings.distinct)),
            (
                "is_distinct_exact",
                self.exactness(|kind| Some(kind.strings.as_ref()?.is_distinct_exact)),
            ),
            ("min_bytes", self.of_strings(|strings| strings.min_length)),
            ("max_bytes", self.of_strings(|strings| strings.max_length)),
            (
                "most_frequent",
                self.texts(|_, kind| Some(kind?.strings.as_ref()?.top.first()?.text()?.to_owned())),
            ),
        ]
    }

    fn texts(
        &self,
        of: impl Fn(&FeatureStatistics, Option<&KindStatistics>) -> Option<String>,
    ) -> ArrayRef {
        Arc::new(
            self.0
                .iter()
                .map(|(feature, kind)| of(feature, *kind))
                .collect::<StringArray>(),
        )
    }

    fn counts(
        &self,
        of: impl Fn(&FeatureStatistics, Option<&KindStatistics>) -> Option<u64>,
    ) -> ArrayRef {
        let counts = self.0.iter().map(|(feature, kind)| {
            let count = of(feature, *kind)?;
            Some(i64::try_from(count).unwrap_or(i64::MAX))
        });
        Arc::new(counts.collect::<Int64Array>())
    }

    /// The numbers of each feature; `None` where there are no values.
    fn numbers(&self) -> impl Iterator<Item = Option<&NumberStatistics>> {
        self.0.iter().map(|(_, kind)| {
            kind.as_ref()?
                .numbers
                .as_ref()
                .filter(|numbers| numbers.count > 0)
        })
    }

    fn floats(&self, of: impl Fn(&NumberStatistics) -> f64) -> ArrayRef {
        Arc::new(
            self.numbers()
                .map(|numbers| numbers.map(&of))
                .collect::<Float64Array>(),
        )
    }

    /// Numbers of features with integers.
    fn integers(&self, of: impl Fn(&NumberStatistics) -> NumberValue) -> ArrayRef {
        let integers = self.numbers().map(|numbers| match of(numbers?) {
            NumberValue::Int64(value) => Some(value),
            NumberValue::Float(_) => None,
        });
        Arc::new(integers.collect::<Int64Array>())
    }

    fn of_strings(&self, of: impl Fn(&ByteStringStatistics) -> u64) -> ArrayRef {
        self.counts(|_, kind| Some(of(kind?.strings.as_ref()?)))
    }

    fn exactness(&self, of: impl Fn(&KindStatistics) -> Option<bool>) -> ArrayRef {
        Arc::new(
            self.0
                .iter()
                .map(|(_, kind)| kind.and_then(&of))
                .collect::<BooleanArray>(),
        )
    }
}
