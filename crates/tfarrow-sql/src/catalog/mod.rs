//! Tables of the sources that statements name.
//!
//! ```text
//! FROM 'shards/*.tfrecord' ─▶ url_table ──────┬▶ TfRecordTable ─▶ TableRegistry: hints, warnings
//!                             └▶ known_tables  │
//! read_tfrecord('shards/') ─▶ table_function ─┤
//! CREATE EXTERNAL TABLE ────▶ external_table ─┘                 └▶ EventTable: TensorBoard's events
//! FROM 'x.parquet' ─▶ url_table ─▶ listing_table ◀─ text_files ◀─ url_table ◀─ FROM 'x.csv'
//!                                  └▶ partitioned_table: the columns of folders
//! SUMMARIZE 'x' ───────────▶ summarize: the statistics of tfarrow-stats as rows
//! SUMMARIZE SELECT .. ──────▶ summarize ─▶ summary_table
//! SHOW CREATE TABLE 'x' ────▶ table_definition ─▶ url_table
//! ```

mod known_tables;
pub(crate) mod listing_table;
pub(crate) mod parquet_format;
mod partitioned_table;
pub(crate) mod summarize;
mod summary_table;
pub(crate) mod table_definition;
pub(crate) mod table_function;
pub(crate) mod text_files;
pub(crate) mod url_table;
