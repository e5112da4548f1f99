//! End-to-end tests of the built program on the files of `testdata/`, with one module per topic.
#![expect(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::panic,
    reason = "a test fails by panicking"
)]

mod support;

mod columnar;
mod conversions;
mod convert;
mod convert_choice;
mod convert_parts;
mod count;
mod crashes;
mod damage;
mod diff;
#[cfg(unix)]
mod documents;
mod errors;
mod escapes;
mod events;
mod exact;
mod example_lists;
mod floats;
mod folders;
mod head;
mod index;
mod library_texts;
mod list_items;
mod messages;
mod output;
mod parts;
mod program;
#[cfg(unix)]
mod prompt;
mod recipes;
mod report;
mod schema;
#[rustfmt::skip]
#[expect(unreachable_pub, reason = "the module is output of the program, for any crate")]
mod sequence_schema;
mod side_by_side;
mod sources;
mod sql;
mod stats;
#[cfg(unix)]
mod terminal;
mod text;
mod validate;
