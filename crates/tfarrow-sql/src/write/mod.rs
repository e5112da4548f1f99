//! Writing of files by COPY and INSERT. All files of a statement get their names after the last one
//! is complete: TFRecord by the sink of `tfarrow-datafusion`, other formats by `staging`.
//! `float_bounds` leaves statistics out of Parquet files.

mod float_bounds;
pub(crate) mod staging;
