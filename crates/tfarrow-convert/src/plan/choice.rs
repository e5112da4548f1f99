//! The records that a conversion chooses by their numbers: in random order, or a part of them.
//!
//! ```text
//! all records ─▶ in random order, by the seed    7 2 9 0 4 1 8 3 6 5
//! fraction       the first ones                  7 2 9 0 4 1 8 3
//! splits         one after the other             7 2 9 0 4 1│8 3
//! each part      in the order of the files       0 1 2 4 7 9│3 8
//!                or in another random order      4 0 9 2 1 7│8 3
//! ```
//!
//! A part has the number of records that its fraction says, give or take one, and is a function of the
//! number of records and the seed alone.

use std::{
    ops::{ControlFlow, Range},
    path::{Path, PathBuf},
    sync::Arc,
};

use arrow_schema::Schema;
use tfarrow_codec::{OnError, ReaderBuilder};
use tfarrow_dataset::{ErrorKind, ReadOptions, Shard};
use tfarrow_index::{Dataset, DatasetOptions};
use tfarrow_loader::{Order, Selection, Shuffle};

use crate::{ConvertOptions, Error, Progress, Result, input::ChosenRecords};

/// Chosen records that are written together.
#[derive(Clone)]
pub(crate) struct ChoicePart {
    /// The folder of their outputs, below the destination; empty for the destination itself.
    pub(crate) folder: PathBuf,
    pub(crate) records: Arc<ChosenRecords>,
    /// Their part of the records of all parts.
    pub(crate) weight: f64,
    /// The path of the data set, for errors that are not about one file.
    pub(crate) path: Arc<PathBuf>,
}

/// The parts that the options choose: one, or that of each split. Finds the places of all records.
///
/// # Errors
/// Shards that cannot be read, or only from their start to their end, and [`Error::Cancelled`].
pub(super) fn parts(
    shards: &[Shard],
    options: &ConvertOptions,
    progress: &Progress,
) -> Result<Vec<ChoicePart>> {
    if !options.chooses() || shards.is_empty() {
        return Ok(Vec::new());
    }
    let dataset = Arc::new(open(shards, options, progress)?);
    let ranges = ranges(dataset.len(), options);
    let all: u64 = ranges
        .iter()
        .map(|(_, range)| range.end - range.start)
        .sum();
    let path = Arc::new(common_path(shards));
    let mut parts = Vec::with_capacity(ranges.len());
    for (folder, range) in ranges {
        let weight = (range.end - range.start) as f64 / all.max(1) as f64;
        let records = Arc::new(chosen(&dataset, range, options));
        let path = Arc::clone(&path);
        parts.push(ChoicePart {
            folder,
            records,
            weight,
            path,
        });
    }
    Ok(parts)
}

/// The records of a range of the permuted ones, in the order of the options.
fn chosen(dataset: &Arc<Dataset>, range: Range<u64>, options: &ConvertOptions) -> ChosenRecords {
    let selection = selection(dataset, range, options.seed.unwrap_or(0));
    let extent = selection.extent(dataset);
    let shuffle = match (options.shuffle, extent.is_slow) {
        (None, _) => Shuffle::None,
        (Some(_), false) => Shuffle::Global,
        (Some(_), true) => Shuffle::Blocks,
    };
    let order = Order::new(extent, shuffle, options.shuffle.unwrap_or(0), 0);
    let dataset = Arc::clone(dataset);
    ChosenRecords {
        dataset,
        selection,
        order,
    }
}

/// Opens the shards for random access.
fn open(shards: &[Shard], options: &ConvertOptions, progress: &Progress) -> Result<Dataset> {
    let dataset_options = DatasetOptions {
        // A corrupt frame has no place, and workers skip records that are corrupt otherwise.
        read: ReadOptions {
            on_error: OnError::Fail,
            ..options.read
        },
        threads: options.jobs.max(1),
        ..DatasetOptions::default()
    };
    let builder = ReaderBuilder::new(Arc::new(Schema::empty()));
    let opened = Dataset::open(
        shards.to_vec(),
        builder,
        &dataset_options,
        &|_, _| match progress.is_cancelled() {
            true => ControlFlow::Break(()),
            false => ControlFlow::Continue(()),
        },
    );
    opened.map_err(|error| match error.kind() {
        ErrorKind::Stopped => Error::Cancelled,
        _ => error.into(),
    })
}

/// The folder of each part, and its range of the permuted records.
fn ranges(records: u64, options: &ConvertOptions) -> Vec<(PathBuf, Range<u64>)> {
    let chosen = part_of(records, options.fraction.unwrap_or(1.0));
    if options.splits.is_empty() {
        return vec![(PathBuf::new(), 0..chosen)];
    }
    let mut ranges = Vec::with_capacity(options.splits.len());
    let mut sum = 0.0;
    let mut start = 0;
    for split in &options.splits {
        sum += split.fraction();
        let end = part_of(chosen, sum).max(start);
        ranges.push((PathBuf::from(split.name()), start..end));
        start = end;
    }
    ranges
}

/// The number of records of a part, to the nearest one.
fn part_of(records: u64, fraction: f64) -> u64 {
    ((records as f64 * fraction).round() as u64).min(records)
}

/// The records of a range of the permuted ones.
fn selection(dataset: &Dataset, range: Range<u64>, seed: u64) -> Selection {
    let records = dataset.len();
    if range == (0..records) {
        return Selection::All;
    }
    let permuted = Order::new(Selection::All.extent(dataset), Shuffle::Global, seed, 0);
    let mut numbers: Vec<_> = range.map(|place| permuted.record(place)).collect();
    numbers.sort_unstable();
    Selection::Some(numbers.into())
}

/// The path of the only shard, or the folder that all of them are in.
fn common_path(shards: &[Shard]) -> PathBuf {
    let mut common = shards
        .first()
        .map_or(PathBuf::new(), |shard| shard.path.clone());
    for shard in shards {
        while !shard.path.starts_with(&common) {
            common = common.parent().unwrap_or(Path::new("")).to_owned();
        }
    }
    common
}
