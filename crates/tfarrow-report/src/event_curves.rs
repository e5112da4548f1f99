//! The curves of TensorBoard's event files, for `report`: the scalars of each tag over the steps of
//! each run, as SQL reads them.

use std::sync::Arc;

use anyhow::Result;
use arrow_array::{
    Array, RecordBatch,
    cast::AsArray,
    types::{Float64Type, Int64Type},
};
use datafusion::catalog::TableProvider;
use futures::StreamExt;
use tfarrow_codec::OnError;
use tfarrow_datafusion::{Notice, TfRecordOptions, TfRecordTableBuilder, queried};
use tfarrow_dataset::{
    DamageReport, FaultKind, ReadOptions, Shard,
    internals::{Lock, are_events},
};
use tfarrow_sql::{SessionOptions, session_context};
use tfarrow_stats::{Comparison, RecordProfile, ShardRecords};

use crate::text::{escape, plural};

/// The scalars in the order of the curves. Text is copied, because a view would keep the other
/// columns of its batch in memory. Values of one time are sorted as well, so that pages are
/// reproducible.
const SCALARS: &str = "\
    SELECT arrow_cast(tag, 'Utf8') AS tag, arrow_cast(run, 'Utf8') AS run, step, value FROM events WHERE kind = 'scalar' \
    ORDER BY tag, run, step, wall_time, value";
/// Memory for sorting in bytes. A sort that needs more uses temporary files.
const SORT_BYTES: usize = 128 << 20;
/// Maximum number of points that are kept of a run, at equal distances.
const MAX_POINTS: usize = 400;
/// Maximum number of tags, and of the runs of a tag.
const MAX_TAGS: usize = 200;
const MAX_RUNS: usize = 100;

/// The scalars of one tag.
#[derive(Debug)]
pub(crate) struct EventCurve {
    pub(crate) tag: String,
    /// The runs with the tag, sorted by name.
    pub(crate) runs: Vec<RunCurve>,
    /// Number of further runs, which were left out, and the last one of them.
    pub(crate) more_runs: usize,
    left_out: String,
}

/// The scalars of one tag in one run, sorted by step.
#[derive(Debug)]
pub(crate) struct RunCurve {
    /// The folder of the run; `.` for the folder that was named.
    pub(crate) run: String,
    /// Number of values, and the smallest and the largest that is not NaN.
    pub(crate) count: u64,
    pub(crate) min: f64,
    pub(crate) max: f64,
    /// Steps and values: every `stride`th, and the last one.
    pub(crate) points: Vec<(i64, f64)>,
    stride: u64,
    last: (i64, f64),
}

impl RunCurve {
    fn new(run: &str) -> Self {
        let min = f64::INFINITY;
        let max = f64::NEG_INFINITY;
        Self {
            run: run.to_owned(),
            count: 0,
            min,
            max,
            points: Vec::new(),
            stride: 1,
            last: (0, f64::NAN),
        }
    }

    fn add(&mut self, step: i64, value: f64) {
        if self.count.is_multiple_of(self.stride) {
            if self.points.len() == MAX_POINTS {
                let mut is_even = false;
                self.points.retain(|_| {
                    is_even = !is_even;
                    is_even
                });
                self.stride *= 2;
            }
            if self.count.is_multiple_of(self.stride) {
                self.points.push((step, value));
            }
        }
        self.count += 1;
        self.min = self.min.min(value);
        self.max = self.max.max(value);
        self.last = (step, value);
    }

    /// Adds the last value, if it is not among the points.
    fn finish(&mut self) {
        if self.count > 0 && !(self.count - 1).is_multiple_of(self.stride) {
            self.points.push(self.last);
        }
    }
}

/// The curves of all scalars.
#[derive(Debug, Default)]
pub struct EventCurves {
    /// The tags, sorted by name.
    pub(crate) tags: Vec<EventCurve>,
    /// Number of further tags, which were left out, and the last one of them.
    pub(crate) more_tags: usize,
    left_out: String,
    /// Number of events that cannot be decoded, which are left out, and the error of the first.
    pub undecodable: u64,
    first_error: Option<String>,
}

impl EventCurves {
    /// Reads the scalars of a data set that was compared: of the same records, if they were a sample.
    /// None of the shards may be a stream.
    ///
    /// # Errors
    /// Files that cannot be read.
    pub fn of_compared(
        compared: &Comparison,
        profile: &RecordProfile,
        shards: &[Shard],
        read: &ReadOptions,
    ) -> Result<Self> {
        let is_sample = compared.found.statistics.inferred.sampled.is_some();
        Self::read(shards, is_sample.then_some(&profile.shards), read)
    }

    /// Reads the scalars of the event files among `shards`, none of which may be a stream; none if
    /// they are other files. If `counts` are given, only as many records of each shard as they
    /// have.
    ///
    /// The files were read before, as records of bytes, and their damage is reported. Corrupt
    /// records are therefore skipped, and only events that cannot be decoded are counted.
    ///
    /// # Errors
    /// Files that cannot be read.
    fn read(shards: &[Shard], counts: Option<&[ShardRecords]>, read: &ReadOptions) -> Result<Self> {
        if !are_events(shards) {
            return Ok(Self::default());
        }
        let runtime = tokio::runtime::Builder::new_multi_thread()
            .enable_all()
            .build()?;
        runtime.block_on(async {
            let skipped = Arc::new(Lock::new(DamageReport::default()));
            let table = Self::table(shards, counts, read, Arc::clone(&skipped)).await?;
            let context = session_context(SessionOptions {
                memory_limit: Some(SORT_BYTES),
                ..SessionOptions::default()
            })?;
            context.register_table("events", table)?;
            let mut curves = Self::default();
            let mut rows = context.sql(SCALARS).await?.execute_stream().await?;
            while let Some(batch) = rows.next().await {
                curves.add_batch(&batch?);
            }
            curves.finish();
            let skipped = skipped.lock();
            curves.undecodable = skipped.records - skipped.corrupt;
            let undecodable = skipped
                .faults()
                .iter()
                .find(|fault| fault.kind() == FaultKind::Message);
            curves.first_error = undecodable.map(|fault| fault.error.to_string());
            Ok(curves)
        })
    }

    /// The table of the events, whose scans add what they skip to `skipped`.
    async fn table(
        shards: &[Shard],
        counts: Option<&[ShardRecords]>,
        read: &ReadOptions,
        skipped: Arc<Lock<DamageReport>>,
    ) -> Result<Arc<dyn TableProvider>> {
        let ReadOptions {
            partial_tail,
            limits,
            ..
        } = *read;
        let options = TfRecordOptions {
            on_error: OnError::Skip,
            partial_tail,
            purge_orphaned_data: true,
            limits,
            ..TfRecordOptions::default()
        };
        let table = TfRecordTableBuilder::of_shards(shards.to_vec()).with_options(options);
        let mut table = table.build().await?;
        if let Some(counts) = counts {
            let counts: Vec<_> = (0..shards.len())
                .map(|number| counts.get(number).map_or(0, |shard| shard.records))
                .collect();
            table = table.with_records(0..counts.iter().sum(), &counts)?;
        }
        let table = table.with_notices(Some(Arc::new(move |notice: &Notice| {
            if let Notice::Skipped(more) = notice {
                skipped.lock().merge(more.clone());
            }
        })));
        Ok(queried(table)?)
    }

    /// The note of the events that cannot be decoded; `None` if there are none.
    pub fn note(&self) -> Option<String> {
        let events = plural(self.undecodable, "event");
        let are = if self.undecodable == 1 { "is" } else { "are" };
        let first = self
            .first_error
            .as_ref()
            .map_or_else(String::new, |error| format!("; the first: {error}"));
        let note = format!("{events} cannot be decoded and {are} not in the curves{first}");
        (self.undecodable > 0).then(|| escape(&note))
    }

    /// Adds the rows of [`SCALARS`].
    fn add_batch(&mut self, batch: &RecordBatch) {
        let [tags, runs, steps, values] = batch.columns() else {
            return;
        };
        let tags = tags.as_string::<i32>();
        let runs = runs.as_string::<i32>();
        let steps = steps.as_primitive::<Int64Type>();
        let values = values.as_primitive::<Float64Type>();
        for row in (0..batch.num_rows()).filter(|row| values.is_valid(*row)) {
            self.add(
                tags.value(row),
                runs.value(row),
                steps.value(row),
                values.value(row),
            );
        }
    }

    /// Adds a value. Values come sorted by tag, run and step.
    fn add(&mut self, tag: &str, run: &str, step: i64, value: f64) {
        if self.tags.last().is_none_or(|last| last.tag != tag) {
            if self.tags.len() >= MAX_TAGS {
                if self.left_out != tag {
                    self.more_tags += 1;
                    tag.clone_into(&mut self.left_out);
                }
                return;
            }
            self.tags.push(EventCurve {
                tag: tag.to_owned(),
                runs: Vec::new(),
                more_runs: 0,
                left_out: String::new(),
            });
        }
        let Some(curve) = self.tags.last_mut() else {
            return;
        };
        if curve.runs.last().is_none_or(|last| last.run != run) {
            if curve.runs.len() >= MAX_RUNS {
                if curve.left_out != run {
                    curve.more_runs += 1;
                    run.clone_into(&mut curve.left_out);
                }
                return;
            }
            curve.runs.push(RunCurve::new(run));
        }
        if let Some(run) = curve.runs.last_mut() {
            run.add(step, value);
        }
    }

    fn finish(&mut self) {
        self.tags
            .iter_mut()
            .flat_map(|curve| &mut curve.runs)
            .for_each(RunCurve::finish);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn long_curves_keep_points_at_equal_distances_and_the_last_one() {
        for count in [1_i64, 2, 399, 400, 401, 1_000, 12_345] {
            let mut run = RunCurve::new("train");
            (0..count).for_each(|step| run.add(step, step as f64));
            run.finish();
            assert!(
                run.points.len() <= MAX_POINTS + 1,
                "{count}: {}",
                run.points.len()
            );
            assert_eq!(
                (run.count, run.min, run.max),
                (count as u64, 0.0, (count - 1) as f64)
            );
            assert_eq!(
                (run.points.first(), run.points.last()),
                (Some(&(0, 0.0)), Some(&(count - 1, (count - 1) as f64)))
            );
            let stride = run.stride as i64;
            let inner = run.points.iter().rev().skip(1);
            assert!(inner.clone().all(|(step, _)| step % stride == 0), "{count}");
        }
    }
}
