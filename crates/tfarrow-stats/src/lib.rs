//! What is in a TFRecord data set, in figures: counts, ranges, distributions, most frequent values; and the schema that
//! TensorFlow Data Validation would infer of it.
//!
//! - [`Statistics::collect`] reads a data set once, on all threads, and needs no schema.
//! - [`Statistics::figures`] are what reports print, [`DatasetFigures::to_proto`] what TFDV and Facets read.
//! - [`Validation`] holds a data set against a schema, and against another data set.
//! - [`Statistics::schema`] is a `tensorflow.metadata.v0.Schema`, and [`schema_to_text`] its `schema.pbtxt`.
//!
//! Memory is bounded by the number of features, whatever the number of records. What is said of a data set is the same
//! however many threads have read it: values are sampled by where they stand (`sample.rs`), and sums keep most of what
//! rounding loses (`sum.rs`). An estimate of distinct values is the exception.
//!
//! Nothing here prints, and nothing is known here of terminals or pages.

mod bytes;
mod drift;
mod examples;
mod feature;
mod figures;
mod formats;
mod images;
mod infer_schema;
mod judge;
mod mend;
mod numbers;
mod pb;
pub mod proto;
mod quantiles;
mod rules;
mod sample;
mod slices;
mod statistics;
mod sum;
mod text;
mod validate;

pub use drift::{Distance, Measure};
pub use examples::{Example, ExampleFeature, ExampleValues, Examples};
pub use figures::{
    DatasetFigures, FeatureFigures, ImageFigures, KindFigures, Lengths, NumberFigures, StringFigures, Top,
};
pub use formats::Format;
pub use quantiles::Bucket;
pub use slices::{MOST_SLICES, Slice, SliceError, SliceValue, Sliced};
pub use statistics::Statistics;
pub use text::{TextError, anomalies_to_text, schema_of_text, schema_to_text, statistics_of_text};
pub use validate::{Anomaly, AnomalyKind, NonFinite, Validation, path_of};
