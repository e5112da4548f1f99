//! Random access to the records of a scan, and loaders of them for training.

use std::{
    panic::{AssertUnwindSafe, catch_unwind},
    process,
    sync::Arc,
    task::Poll,
    time::Instant,
};

use arrow_array::RecordBatch;
use pyo3::{exceptions::PyIndexError, prelude::*, types::PyDict};
use tfarrow_dataset::{DamageReport, Error, Fault, internals::Lock};
use tfarrow_index::Dataset;
use tfarrow_loader::{
    Division, Fingerprint, Loaded, Loader, LoaderPlan, Mixture, Order, Selection, Share, Shuffle,
};

use crate::{
    batch::RawBatch,
    errors::{failed, usage},
    interrupt::{TICK, bug, check_signals},
    notices::warn,
    options::named,
    row::RowColumns,
};

/// The records of a scan by their numbers. Other processes open it anew, or fork with it.
#[pyclass(frozen, module = "tfarrow._tfarrow")]
pub(crate) struct RawDataset {
    dataset: Arc<Dataset>,
    columns: Arc<RowColumns>,
    selection: Selection,
    /// The sources of the records, if loaders mix them.
    mixture: Option<Mixture>,
    threads: usize,
}

impl RawDataset {
    pub(crate) fn new(
        py: Python<'_>,
        dataset: Dataset,
        selection: Selection,
        threads: usize,
    ) -> Self {
        Self {
            columns: Arc::new(RowColumns::new(py, dataset.schema())),
            dataset: Arc::new(dataset),
            selection,
            mixture: None,
            threads,
        }
    }

    fn count(&self) -> u64 {
        self.selection.count(&self.dataset)
    }

    fn order(&self, py: Python<'_>, shuffle: &str, seed: u64, epoch: u64) -> PyResult<Order> {
        let shuffle: Shuffle = named(py, "shuffle", shuffle)?;
        let extent = self.selection.extent(&self.dataset);
        Ok(match &self.mixture {
            Some(mixture) => Order::mixed(mixture, extent, shuffle, seed, epoch),
            None => Order::new(extent, shuffle, seed, epoch),
        })
    }

    fn taken(&self, py: Python<'_>, numbers: &[u64]) -> PyResult<RecordBatch> {
        let taken = py.detach(|| self.dataset.take(numbers));
        taken.map_err(|error| failed(py, error))
    }
}

#[pymethods]
impl RawDataset {
    fn __len__(&self) -> usize {
        self.count() as usize
    }

    /// The same records, which loaders mix. Each source has a number of files and a weight.
    fn mixed(&self, py: Python<'_>, sources: Vec<(usize, f64)>) -> PyResult<Self> {
        let mut ranges = Vec::with_capacity(sources.len());
        let mut shards = 0;
        for (files, weight) in sources {
            let start = self.dataset.records_before(shards);
            shards += files;
            let end = self.dataset.records_before(shards);
            ranges.push((self.selection.places(start..end), weight));
        }
        let mixture = Mixture::new(&ranges).map_err(|error| usage(py, &error.to_string()))?;
        Ok(Self {
            dataset: Arc::clone(&self.dataset),
            columns: Arc::clone(&self.columns),
            selection: self.selection.clone(),
            mixture: Some(mixture),
            threads: self.threads,
        })
    }

    /// How many of 1,000 records are of each source; empty if loaders mix none.
    fn turns(&self) -> Vec<u64> {
        let mixture = self.mixture.as_ref();
        mixture.map_or_else(Vec::new, Mixture::turns)
    }

    /// The number of records of an epoch of a loader.
    fn epoch_records(&self) -> u64 {
        match &self.mixture {
            Some(mixture) => mixture.count(),
            None => self.count(),
        }
    }

    /// The records with these numbers, in this order, as a batch.
    fn take(&self, py: Python<'_>, numbers: Vec<u64>) -> PyResult<RawBatch> {
        let mut records = Vec::with_capacity(numbers.len());
        for number in numbers {
            records.push(self.selection.record(number));
        }
        Ok(RawBatch::new(self.taken(py, &records)?, true))
    }

    /// The record with this number, as a dict of its columns: see [`RowColumns::row`].
    fn row<'py>(&self, py: Python<'py>, number: u64) -> PyResult<Bound<'py, PyDict>> {
        if number >= self.count() {
            let text = format!("record {number} of {}", self.count());
            return Err(PyIndexError::new_err(text));
        }
        let record = self.taken(py, &[self.selection.record(number)])?;
        self.columns.row(py, &record)
    }

    /// The number of records of all files, and a hash of each file, by which a state of a loader
    /// recognizes them.
    fn fingerprint(&self) -> (u64, Vec<u32>) {
        let Fingerprint { records, files } = Fingerprint::of(&self.dataset);
        (records, files)
    }

    /// Checks that the files are those of a fingerprint.
    fn check(&self, py: Python<'_>, records: u64, files: Vec<u32>) -> PyResult<()> {
        let checked = Fingerprint { records, files }.check(&self.dataset);
        checked.map_err(|other| usage(py, &format!("{other}: a state is that of its own files")))
    }

    /// The features of the records that were decoded so far that have no column.
    fn unknown_features(&self) -> Vec<String> {
        self.dataset.unknown_features().into_iter().collect()
    }

    /// The batch of a share with this number, which is read by itself.
    fn batch(
        &self,
        py: Python<'_>,
        shuffle: &str,
        seed: u64,
        epoch: u64,
        share: &RawShare,
        number: u64,
    ) -> PyResult<RawBatch> {
        let order = self.order(py, shuffle, seed, epoch)?;
        let mut numbers = Vec::new();
        for position in share.0.batch(number) {
            numbers.push(self.selection.record(order.record(position)));
        }
        Ok(RawBatch::new(self.taken(py, &numbers)?, true))
    }

    /// Starts to load the batches of a share from number `first` on.
    fn load(
        &self,
        py: Python<'_>,
        shuffle: &str,
        seed: u64,
        epoch: u64,
        share: &RawShare,
        first: u64,
    ) -> PyResult<RawLoader> {
        // The workers of a process share its cores.
        let threads = self.threads / share.1.workers.max(1) as usize;
        let plan = LoaderPlan {
            dataset: Arc::clone(&self.dataset),
            selection: self.selection.clone(),
            order: self.order(py, shuffle, seed, epoch)?,
            share: share.0,
            first,
            threads: threads.max(1),
        };
        Ok(RawLoader {
            loader: Lock::new(Some(plan.start())),
            damage: Lock::default(),
            process: process::id(),
        })
    }
}

/// The batches of a worker of a rank: see [`Division`].
#[pyclass(frozen, module = "tfarrow._tfarrow")]
pub(crate) struct RawShare(Share, Division);

#[pymethods]
impl RawShare {
    #[new]
    #[expect(clippy::too_many_arguments, reason = "the fields of a division")]
    fn new(
        py: Python<'_>,
        records: u64,
        start: u64,
        batch_size: u64,
        ranks: u64,
        workers: u64,
        drop_last: bool,
        rank: u64,
        worker: u64,
    ) -> PyResult<Self> {
        let division = Division {
            records,
            start,
            batch_size,
            ranks,
            workers,
            drop_last,
        };
        match division.share(rank, worker) {
            Some(share) => Ok(Self(share, division)),
            None => {
                let text = format!(
                    "expected a rank from 0 to {} and a worker from 0 to {}, found {rank} and {worker}",
                    ranks.saturating_sub(1),
                    workers.saturating_sub(1)
                );
                Err(usage(py, &text))
            }
        }
    }

    /// The number of batches of the worker.
    #[getter]
    fn batches(&self) -> u64 {
        self.0.count()
    }

    /// The number of batches of each rank.
    #[getter]
    fn batches_of_rank(&self) -> u64 {
        self.1.batches()
    }

    /// The first position that is not read after this many batches of each rank.
    fn position_after(&self, batches: u64) -> u64 {
        self.1.position_after(batches)
    }
}

/// Batches that threads load.
#[pyclass(frozen, module = "tfarrow._tfarrow")]
pub(crate) struct RawLoader {
    /// `None` after an interrupt.
    loader: Lock<Option<Loader>>,
    /// The records that were skipped.
    damage: Lock<DamageReport>,
    process: u32,
}

#[pymethods]
impl RawLoader {
    /// The next batch; None at the end, after which a warning tells of skipped records.
    fn next_batch(&self, py: Python<'_>) -> PyResult<Option<RawBatch>> {
        if self.process != process::id() {
            let text = "the loader was started before the process forked: start another one";
            return Err(usage(py, text));
        }
        let next = py.detach(|| catch_unwind(AssertUnwindSafe(|| self.wait())));
        match next.unwrap_or_else(|_| Err(bug()))? {
            Some(Ok(loaded)) => {
                let mut damage = self.damage.lock();
                for error in loaded.skipped {
                    damage.add_record(Fault::of(0, error));
                }
                Ok(Some(RawBatch::new(loaded.batch, true)))
            }
            Some(Err(error)) => Err(failed(py, error)),
            None => {
                let damage = std::mem::take(&mut *self.damage.lock());
                warn(py, &damage, &[])?;
                Ok(None)
            }
        }
    }
}

impl RawLoader {
    /// Waits for the next batch, and for signals.
    fn wait(&self) -> PyResult<Option<Result<Loaded, Error>>> {
        let mut lock = self.loader.lock();
        let mut checked = Instant::now();
        loop {
            let Some(loader) = &mut *lock else {
                return Ok(None);
            };
            match loader.poll(TICK) {
                Poll::Ready(next) => return Ok(next),
                Poll::Pending => {}
            }
            if checked.elapsed() >= TICK {
                checked = Instant::now();
                if let Err(interrupt) = Python::attach(check_signals) {
                    *lock = None;
                    return Err(interrupt);
                }
            }
        }
    }
}

impl Drop for RawLoader {
    fn drop(&mut self) {
        if self.process != process::id() {
            // The threads are those of the parent.
            std::mem::forget(self.loader.lock().take());
        }
    }
}
