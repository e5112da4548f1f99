//! Summary statistics of TFRecord data sets, and schemas, validation and drift as in TensorFlow
//! Data Validation (TFDV).
//!
//! - [`Statistics::collect`] reads a data set once, on all threads, without a schema.
//! - [`RowStatistics`] accumulates those of rows in memory.
//! - [`Statistics::summarize`] computes the [`DatasetStatistics`] that reports print;
//!   [`DatasetStatistics::to_proto`] converts them to the message that TFDV and Facets read.
//! - [`Statistics::infer_schema`] infers a `tensorflow.metadata.v0.Schema`; [`schema_to_text`]
//!   writes a `schema.pbtxt`.
//! - [`Validation::validate`] reports the anomalies of a data set under a schema, and an updated
//!   schema.
//! - [`Validation::compare`] measures the distance from a baseline data set.
//! - [`Comparison::run`] does both: it compares a data set with a schema, a baseline, or both.
//! - [`RecordProfiler`] collects what a report shows besides: examples, correlations, duplicates;
//!   [`alerts`](alerts()) lists likely mistakes.
//!
//! The modules are the stages of a pass:
//!
//! ```text
//! records ─▶ collect ─▶ summary_statistics ─▶ schema ─▶ validation ─▶ drift ─▶ comparison ─▶ proto
//!       └──▶ profile ─────────┴─▶ alerts
//! ```
//!
//! Memory is bounded by the number of features, not of records. Results depend neither on the
//! number of threads nor on the division of a data set into parts: samples are chosen by the places
//! of values (`collect/sample.rs`), and sums are exact (`collect/sum.rs`).
//!
//! The crate does not print, and has no code for terminals or HTML.

mod alerts;
mod collect;
mod comparison;
mod drift;
mod excerpt;
mod partial_result;
mod profile;
pub mod proto;
mod schema;
mod schema_file;
mod summary_statistics;
mod text_format;
mod validation;

pub use alerts::{Alert, AlertKind, alerts};
pub use collect::{
    Statistics, StatisticsState,
    formats::ValueFormat,
    numbers::NumberValue,
    rows::RowStatistics,
    slices::{MAX_SLICES, Slice, SliceError, SliceValue, SlicedState, SlicedStatistics},
    why_no_features,
};
pub use comparison::{Comparison, Expected};
pub use drift::{Distance, Measure};
pub use partial_result::{
    COMMAND, MergedContent, MergedResult, PartError, PartExpected, PartMerger, PartWork,
    PartialResult,
};
pub use profile::{
    Correlation, Correlations, Duplicates, ExampleFeature, ExampleRecord, ExampleValues,
    RecordProfile, RecordProfiler, ShardRecords,
};
pub use schema::feature_path;
pub use schema_file::{SchemaFileError, parse_schema, read_schema};
pub use summary_statistics::{
    ByteStringStatistics, DatasetStatistics, Distribution, DistributionSide, FeatureStatistics,
    HistogramBucket, ImageStatistics, KindStatistics, ListLengths, NumberStatistics, PERCENTAGES,
    TopValue,
};
pub use text_format::{
    TextError, anomalies_to_text, schema_from_text, schema_to_text, statistics_from_text,
};
pub use validation::{Anomaly, AnomalyKind, NonFinite, Validation, ValidationState};
