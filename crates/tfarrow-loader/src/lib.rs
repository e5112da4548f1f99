//! Parts of training loops: batches of the wanted sizes, and the division of records among the
//! processes of a training run.
//!
//! - [`Rebatch`] cuts batches of any size into batches of the wanted sizes.
//! - [`Division`] gives each process of a run, and each of its workers, records of its own.
//!
//! The crate has no files, threads or Python.

mod division;
mod rebatch;

pub use division::{Division, Share};
pub use rebatch::Rebatch;
