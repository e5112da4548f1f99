//! The curves of TensorBoard's event files, for `report`: the scalars of each tag over the steps of each run, as SQL reads them.

use anyhow::Result;
use arrow_array::{
    Array,
    cast::AsArray,
    types::{Float64Type, Int64Type},
};
use futures::StreamExt;
use tfarrow_datafusion::{SessionOptions, TfRecordOptions, session_context};
use tfarrow_dataset::{ReadOptions, Shard, are_events};

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
        let (min, max) = (f64::INFINITY, f64::NEG_INFINITY);
        Self { run: run.to_owned(), count: 0, min, max, points: Vec::new(), stride: 1, last: (0, f64::NAN) }
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

/// The curves of all scalars, sorted by tag, and the number of tags that were left out.
#[derive(Debug, Default)]
pub(crate) struct EventCurves {
    pub(crate) tags: Vec<EventCurve>,
    pub(crate) more_tags: usize,
}

impl EventCurves {
    /// Reads the scalars of the event files of `sources`, whose shards are `shards`; none if they are other files.
    ///
    /// # Errors
    /// Files that cannot be read, and corrupt records unless they are skipped.
    pub(crate) fn read(sources: &[String], shards: &[Shard], read: &ReadOptions) -> Result<Self> {
        if !are_events(shards) || shards.iter().any(Shard::is_stream) {
            return Ok(Self::default());
        }
        let ReadOptions { on_error, partial_tail, limits, .. } = *read;
        let tables = TfRecordOptions { on_error, partial_tail, limits, ..TfRecordOptions::default() };
        let context = session_context(SessionOptions { tables, ..SessionOptions::default() })?;
        let names: Vec<_> = sources.iter().map(|source| format!("'{}'", source.replace('\'', "''"))).collect();
        let query = format!(
            "SELECT arrow_cast(tag, 'Utf8') AS tag, arrow_cast(run, 'Utf8') AS run, step, value FROM read_tfrecord({}) \
             WHERE kind = 'scalar' ORDER BY tag, run, step, wall_time",
            names.join(", ")
        );
        let runtime = tokio::runtime::Builder::new_multi_thread().enable_all().build()?;
        runtime.block_on(async {
            let mut curves = Self::default();
            let mut previous = String::new();
            let mut rows = context.sql(&query).await?.execute_stream().await?;
            while let Some(batch) = rows.next().await {
                let batch = batch?;
                let [tags, runs, steps, values] = batch.columns() else { continue };
                let (tags, runs) = (tags.as_string::<i32>(), runs.as_string::<i32>());
                let (steps, values) = (steps.as_primitive::<Int64Type>(), values.as_primitive::<Float64Type>());
                for row in (0..batch.num_rows()).filter(|row| values.is_valid(*row)) {
                    let tag = tags.value(row);
                    if previous != tag {
                        curves.more_tags += usize::from(curves.tags.len() >= MAX_TAGS);
                        tag.clone_into(&mut previous);
                    }
                    curves.add(tag, runs.value(row), steps.value(row), values.value(row));
                }
            }
            curves.finish();
            Ok(curves)
        })
    }

    /// Adds a value. Values come sorted by tag, run and step.
    fn add(&mut self, tag: &str, run: &str, step: i64, value: f64) {
        if self.tags.last().is_none_or(|last| last.tag != tag) {
            if self.tags.len() >= MAX_TAGS {
                return;
            }
            self.tags.push(EventCurve { tag: tag.to_owned(), runs: Vec::new(), more_runs: 0, left_out: String::new() });
        }
        let Some(curve) = self.tags.last_mut() else { return };
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
        self.tags.iter_mut().flat_map(|curve| &mut curve.runs).for_each(RunCurve::finish);
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
            assert!(run.points.len() <= MAX_POINTS + 1, "{count}: {}", run.points.len());
            assert_eq!((run.count, run.min, run.max), (count as u64, 0.0, (count - 1) as f64));
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
