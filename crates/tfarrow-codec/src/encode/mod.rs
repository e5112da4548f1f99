//! Encoding batches as framed records.
//!
//! ```text
//! schema ─▶ plan                                   once: the conversion of each column, or an error
//! batch  ─▶ lists, normalize ─▶ feature ─▶ record  for each batch: convert, measure, write
//!           └ losses                 └ entry, block_writer
//! ```
//!
//! - [`Encoder`] encodes batches to bytes, and [`Writer`] writes them to anything that implements
//!   [`Write`](std::io::Write). [`ExactColumn`] adds the column that restores the bytes of decoded
//!   records.
//! - `rows_schema` keeps the record type of the rows of a query only if such records can have their
//!   columns.
//! - `plan` decides how each column of the schema is converted, and rejects columns that no record
//!   can hold.
//! - `lists` and `normalize` convert Arrow types to the types of features; `losses` counts values
//!   that change.
//! - `message` writes messages of other types than Example and SequenceExample, by their
//!   descriptors.
//! - `feature` measures a column for all rows of the batch, and writes it row by row. `entry`
//!   writes the start of a map entry, `block_writer` buffers the output.
//!
//! Everything is measured before anything is written, so that memory is allocated once, and nothing
//! is written for a batch that is rejected.

mod block_writer;
mod columns;
mod encoder;
mod entry;
mod exact_column;
mod feature;
mod lists;
mod losses;
mod message;
mod normalize;
mod plan;
mod record;
mod rows_schema;
#[cfg(test)]
mod tests;
mod writer;

pub use self::{
    encoder::{Encoder, WriterBuilder},
    exact_column::ExactColumn,
    rows_schema::schema_of_rows,
    writer::Writer,
};
