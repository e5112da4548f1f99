//! Comparison of a data set with what is expected of it: a schema, a baseline data set, or both.

use tfarrow_codec::infer::RecordObserver;
use tfarrow_dataset::{OnProgress, Result, Shard};
use tfarrow_scan::InferOptions;

use crate::{
    collect::Statistics,
    drift::Distance,
    proto::Schema,
    validation::{Anomaly, Validation},
};

/// The expectations for a data set: a schema, a baseline, or both.
#[derive(Debug, Default)]
pub struct Expected<'a> {
    /// The schema. By default it is inferred from the baseline.
    pub schema: Option<Schema>,
    /// The statistics of the baseline data set.
    pub baseline: Option<Statistics>,
    /// The environment of the schema that the data set belongs to. See [`Validation::validate`].
    pub environment: Option<&'a str>,
    /// The largest distance from the baseline, for features without a threshold. See
    /// [`Validation::compare`].
    pub max_drift: Option<f64>,
}

/// The result of comparing a data set with what is expected of it.
#[derive(Debug)]
pub struct Comparison {
    /// The statistics of the data set, its anomalies, and a schema without anomalies.
    pub found: Validation,
    /// The schema that was expected, or the one inferred from the baseline; `None` if neither was
    /// given.
    pub schema: Option<Schema>,
    /// The statistics of the baseline data set.
    pub baseline: Option<Statistics>,
    /// The distances from the baseline.
    pub distances: Vec<Distance>,
}

impl Comparison {
    /// Validates the records of `shards` against the expected schema, and measures their distances
    /// from the baseline.
    ///
    /// # Errors
    /// The errors of [`infer_observed`](tfarrow_scan::infer_observed): unreadable, corrupt or
    /// truncated shards.
    pub fn run(
        shards: &[Shard],
        expected: Expected<'_>,
        options: &InferOptions,
        progress: &OnProgress<'_>,
    ) -> Result<Self> {
        Ok(Self::run_with(shards, expected, options, progress, || ())?.0)
    }

    /// Compares as [`run`](Self::run), and passes each record to further observers. `observer` is
    /// called once for each thread; the observers are returned in no particular order.
    ///
    /// # Errors
    /// The errors of [`infer_observed`](tfarrow_scan::infer_observed): unreadable, corrupt or
    /// truncated shards.
    pub fn run_with<O: RecordObserver + Send>(
        shards: &[Shard],
        expected: Expected<'_>,
        options: &InferOptions,
        progress: &OnProgress<'_>,
        observer: impl Fn() -> O + Sync,
    ) -> Result<(Self, Vec<O>)> {
        let mut observers = Vec::new();
        let compared = Self::of(expected, |rules, environment| {
            let (found, others) =
                Validation::validate_with(shards, rules, environment, options, progress, observer)?;
            observers = others;
            Ok(found)
        })?;
        Ok((compared, observers))
    }

    /// Compares the data set that `validate` validates against a schema in an environment.
    pub(crate) fn of(
        expected: Expected<'_>,
        validate: impl FnOnce(&Schema, Option<&str>) -> Result<Validation>,
    ) -> Result<Self> {
        let Expected {
            schema,
            baseline,
            environment,
            max_drift,
        } = expected;
        let schema = schema.or_else(|| baseline.as_ref().map(Statistics::infer_schema));
        let none = Schema::default();
        let mut found = validate(schema.as_ref().unwrap_or(&none), environment)?;
        let distances = baseline
            .as_ref()
            .map_or_else(Vec::new, |baseline| found.compare(baseline, max_drift));
        Ok(Self {
            found,
            schema,
            baseline,
            distances,
        })
    }

    /// Returns the anomalies; `None` if there is no schema, without which all features count as
    /// unexpected.
    pub fn anomalies(&self) -> Option<&[Anomaly]> {
        self.schema
            .as_ref()
            .map(|_| self.found.anomalies.as_slice())
    }

    /// Returns whether there is a schema, and the data set has anomalies.
    pub fn has_anomalies(&self) -> bool {
        self.anomalies()
            .is_some_and(|anomalies| !anomalies.is_empty())
    }
}
