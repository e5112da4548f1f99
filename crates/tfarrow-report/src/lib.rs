//! Results of tfarrow for people: tables, JSON, schemas in many formats, and the page of `report`.
//!
//! The functions take the results of the other crates, and return text without a line feed at its
//! end. They print nothing, so that a program and a Python package show the same. [`text`] has what
//! the texts are made of: tables that fit a [`Screen`](text::Screen), and numbers in words. Warnings
//! and error messages name no option of a program: the remedies for errors are data
//! ([`Remedy`](tfarrow_codec::Remedy)), which the front end words itself.
//!
//! | command | text | warnings |
//! |---|---|---|
//! | `schema` | [`schema_text`], of an [`InferredSchema`], or [`message_schema_text`] | [`schema_warnings`], [`schema_omissions`] |
//! | `stats` | [`statistics_text`], or [`StatisticsReport`] with slices | [`record_warnings`] |
//! | `validate` | [`validation_text`], [`validation_json`] | [`record_warnings`] |
//! | `report` | [`report_page`], with [`EventCurves`] | [`record_warnings`] |
//! | `verify` | [`verified_text`], [`verified_json`], [`FaultReport`] | |
//! | `convert` | [`conversion_json`], [`plan_text`], [`plan_json`] | [`rounded_text`] |
//! | `repair` | [`FaultReport`] | |
//! | `diff` | [`diff_text`], [`diff_json`] | |

mod conversion;
mod diff;
mod error_message;
mod event_curves;
mod faults;
mod page;
mod part_settings;
mod plan;
mod schema;
mod statistics;
pub mod text;
mod validation;
mod verified;
mod warnings;

pub use conversion::{conversion_json, rounded_text};
pub use diff::{diff_json, diff_text};
pub use error_message::{error_message, missing_function};
pub use event_curves::EventCurves;
pub use faults::{FaultReport, shard_names};
pub use page::{REPORT_START, report_page, report_title};
pub use part_settings::{FORMAT, LAYOUT, PartSettings, required};
pub use plan::{plan_json, plan_text};
pub use schema::{
    InferredSchema, SchemaFormat, UnsupportedFormat, message_schema_text, schema_omissions,
    schema_text, schema_warnings,
};
pub use statistics::{StatisticsReport, statistics_text};
pub use validation::{validation_json, validation_text};
pub use verified::{verified_fields, verified_json, verified_summary, verified_text};
pub use warnings::{
    SkippedText, Warnings, record_warnings, skipped_json, skipped_text, source_notes,
};
