//! Parts of training loops: shuffled orders of records, their division among the processes of a
//! run, and batches that threads read ahead.
//!
//! ```text
//! Dataset ─▶ Selection ─▶ Order ─▶ Division ─▶ Share ─▶ Loader ─▶ batches
//! records    that are      and its   among ranks   positions    threads
//!            read          seed      and workers
//! ```
//!
//! - [`Order`] is the record at each position, as a function of a seed and an epoch.
//! - [`Mixture`] is an order of several sources, in proportion to weights.
//! - [`Division`] gives each process of a run, and each of its workers, positions of its own.
//! - [`Loader`] reads and decodes the records of a [`Share`] of them.
//! - [`Fingerprint`] tells whether a data set is the one that a run was begun with.
//! - [`Rebatch`] cuts batches of any size into batches of the wanted sizes.
//!
//! A run that was stopped is continued from the number of positions that were read: no state is
//! needed of the processes that read them.
//!
//! ```
//! # fn main() -> Result<(), Box<dyn std::error::Error>> {
//! use std::{ops::ControlFlow, sync::Arc};
//!
//! use arrow_schema::{DataType, Field, Schema};
//! use tfarrow_codec::ReaderBuilder;
//! use tfarrow_dataset::resolve;
//! use tfarrow_index::{Dataset, DatasetOptions};
//! use tfarrow_loader::{Division, LoaderPlan, Order, Selection, Shuffle};
//!
//! let schema = Schema::new(vec![Field::new("label", DataType::Int64, true)]);
//! let folder = concat!(env!("CARGO_MANIFEST_DIR"), "/../../testdata/shards");
//! let dataset = Arc::new(Dataset::open(
//!     resolve(&[folder])?,
//!     ReaderBuilder::new(Arc::new(schema)),
//!     &DatasetOptions::default(),
//!     &|_, _| ControlFlow::Continue(()),
//! )?);
//! let selection = Selection::All;
//! let order = Order::new(selection.extent(&dataset), Shuffle::Global, 1, 0);
//! let division = Division {
//!     records: order.count(),
//!     start: 0,
//!     batch_size: 64,
//!     ranks: 2,
//!     workers: 1,
//!     drop_last: false,
//! };
//! let mut rows = 0;
//! for rank in 0..2 {
//!     let Some(share) = division.share(rank, 0) else { continue };
//!     let (dataset, selection, order) = (Arc::clone(&dataset), selection.clone(), order.clone());
//!     let plan = LoaderPlan { dataset, selection, order, share, first: 0, threads: 2 };
//!     for loaded in plan.start() {
//!         rows += loaded?.batch.num_rows();
//!     }
//! }
//! assert_eq!(rows, 200);
//! # Ok(()) }
//! ```
//!
//! The crate has no Python.

mod division;
mod loader;
mod mixture;
mod order;
mod permutation;
mod rebatch;
mod selection;
mod source_order;
mod state;

pub use division::{Division, Share};
pub use loader::{Loaded, Loader, LoaderPlan};
pub use mixture::{Mixture, MixtureError};
pub use order::Order;
pub use rebatch::Rebatch;
pub use selection::Selection;
pub use source_order::{DataExtent, Shuffle};
pub use state::{Fingerprint, StateMismatch};
