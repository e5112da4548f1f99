//! The module `_tfarrow` of the Python package: arguments of Python, calls of the libraries,
//! results and exceptions.
//!
//! ```text
//! Python ─▶ options ─▶ Source, sql, write ─▶ QueryRows ─▶ RawStream ─┬▶ RawBatch ─▶ Memory ─▶ numpy
//!                    └▶ jobs ─▶ RawReport, RawSchema             └▶ Arrow's C interface ─▶ pyarrow, Polars, DuckDB ..
//! ```
//!
//! | module | contains |
//! |---|---|
//! | `capsule` | all unsafe code: Arrow's C interface, memory that numpy borrows |
//! | `interrupt` | Ctrl-C while Rust code works |
//! | `errors`, `remedy` | exceptions with their places; remedies as arguments of the package |
//! | `options` | keyword arguments as options of the libraries |
//! | `rows`, `foreign_rows` | the runtime and the threads of one query; its rows for other packages |
//! | `notices` | warnings |
//! | `layout`, `mismatch`, `table_error`, `tables` | objects of Python as tables, whose batches are checked |
//! | `found` | the shards of sources |
//! | `source`, `query`, `write` | scans, SQL, and writing |
//! | `stream`, `batch`, `ndarray` | rows in batches, and columns as arrays of numpy |
//! | `dataset`, `row` | random access to records, and loaders for training |
//! | `jobs` | operations on whole data sets |
//!
//! The module has no logic that a Rust program could need: that belongs to the libraries. It does
//! not print. Public classes and their documentation are in `python/tfarrow`.

mod batch;
mod capsule;
mod dataset;
mod errors;
mod foreign_rows;
mod found;
mod interrupt;
mod jobs;
mod layout;
mod mismatch;
mod ndarray;
mod notices;
mod options;
mod query;
mod remedy;
mod row;
mod rows;
mod source;
mod stream;
mod table_error;
mod tables;
mod write;

use std::ffi::OsString;

use pyo3::prelude::*;

/// Batches are freed by other threads than those that allocate them, which slows the system's
/// allocator down and makes it keep memory.
#[global_allocator]
static ALLOCATOR: mimalloc::MiMalloc = mimalloc::MiMalloc;

/// Runs a command line of the program, and returns its exit status. `args` begins with the name of
/// the program.
#[pyfunction]
fn run_program(py: Python<'_>, args: Vec<OsString>) -> u8 {
    py.detach(|| tfarrow_cli::run_program(args))
}

/// The first index, and the index after the last, of each range of items of these sizes. See
/// [`tfarrow_dataset::internals::divide`].
#[pyfunction]
fn divide(sizes: Vec<u64>, count: usize) -> Vec<(usize, usize)> {
    tfarrow_dataset::internals::divide(&sizes, count)
        .into_iter()
        .map(|range| (range.start, range.end))
        .collect()
}

/// The binary module of the package `tfarrow`. Its names may change; those of the package are in
/// `tfarrow`.
#[pymodule]
mod _tfarrow {
    #[pymodule_export]
    use crate::{
        batch::RawBatch,
        capsule::Memory,
        dataset::{RawDataset, RawLoader, RawShare},
        divide,
        jobs::{
            RawReport,
            convert::{convert, plan_conversion, repair},
            count::count,
            diff::diff,
            part::{merge, read_part},
            schema::{RawSchema, schema},
            stats::{schema_pbtxt, stats},
            validate::{report, validate},
            verify::verify,
        },
        query::{runs_at_once, sql},
        run_program,
        source::Source,
        stream::{RawStream, RawTable},
        write::write,
    };

    /// The version of the package.
    #[pymodule_export]
    #[expect(non_upper_case_globals, reason = "the name in Python")]
    const __version__: &str = env!("CARGO_PKG_VERSION");
}
