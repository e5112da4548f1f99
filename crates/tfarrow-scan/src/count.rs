//! The number of records of a data set of files of any format.

use tfarrow_codec::OnError;
use tfarrow_columnar::count as count_rows;
use tfarrow_dataset::{
    DamageReport, Error, ErrorKind, OnProgress, ReadOptions, Result, Segment, Shard, ShardFormat,
    ShardReader,
    internals::{TfdsSplit, check_length, tfds_splits, try_map},
};
use tfarrow_index::{IndexPlace, UnusableIndex};

/// The number of records of each shard.
#[derive(Debug)]
pub struct Counted {
    /// The number of records of each shard, in their order.
    pub records: Vec<u64>,
    /// The corrupt bytes that were skipped.
    pub damage: DamageReport,
    /// The shards, without skipped bytes, that have another number of records than TFDS has written
    /// beside them.
    pub wrong_lengths: Vec<Error>,
    /// The splits of TFDS that the shards belong to.
    pub splits: Vec<TfdsSplit>,
    /// The indexes that were not used.
    pub unusable: Vec<UnusableIndex>,
}

/// Counts the records of shards, each on one of up to `threads` threads. The index of a TFRecord
/// file in `indexes` has the number of its records. Records of other TFRecord files are counted by
/// their frames: the CRCs of their lengths are verified, those of their data are not. With
/// [`OnError::Skip`], counting continues after a corrupt length. `progress` is called after each
/// shard.
///
/// # Errors
/// A shard that cannot be read, a corrupt length unless it is skipped, and [`ErrorKind::Stopped`]
/// if `progress` stops.
pub fn count(
    shards: &[Shard],
    read: &ReadOptions,
    threads: usize,
    indexes: Option<&IndexPlace>,
    progress: &OnProgress<'_>,
) -> Result<Counted> {
    let counts = try_map(shards, threads, |number, shard| {
        let (known, unusable) = known_count(shard, indexes);
        let (records, damage) = match known {
            Some(records) => (records, DamageReport::default()),
            None => count_shard(shard, read)?,
        };
        match progress(shard.size, records).is_break() {
            true => Err(Error::general(ErrorKind::Stopped)),
            false => Ok((records, damage.of_shard(number), unusable)),
        }
    });
    let splits = tfds_splits(shards);
    let damage = DamageReport::default();
    let mut counted = Counted {
        records: Vec::new(),
        damage,
        wrong_lengths: Vec::new(),
        splits,
        unusable: Vec::new(),
    };
    for (shard, (records, damage, unusable)) in shards.iter().zip(counts?) {
        counted.unusable.extend(unusable);
        if damage.is_empty() {
            counted
                .wrong_lengths
                .extend(check_length(&counted.splits, shard, records).err());
        }
        counted.records.push(records);
        counted.damage.merge(damage);
    }
    Ok(counted)
}

/// The number of records by the index of a shard, or the index that cannot be used.
fn known_count(
    shard: &Shard,
    indexes: Option<&IndexPlace>,
) -> (Option<u64>, Option<UnusableIndex>) {
    let Some(place) = indexes.filter(|_| shard.format == ShardFormat::TfRecord) else {
        return (None, None);
    };
    match place.find(shard) {
        Ok(index) => (index.map(|index| index.records()), None),
        Err(unusable) => (None, Some(unusable)),
    }
}

fn count_shard(shard: &Shard, read: &ReadOptions) -> Result<(u64, DamageReport)> {
    match (shard.format, read.on_error) {
        (ShardFormat::TfRecord, OnError::Skip) => count_valid(shard, read),
        (ShardFormat::TfRecord, OnError::Fail) => Ok((
            tfarrow_dataset::count(shard, read)?,
            DamageReport::default(),
        )),
        (ShardFormat::Parquet | ShardFormat::Arrow | ShardFormat::Csv | ShardFormat::Json, _) => {
            Ok((count_rows(shard)?, DamageReport::default()))
        }
    }
}

/// Counts the records of valid frames.
fn count_valid(shard: &Shard, read: &ReadOptions) -> Result<(u64, DamageReport)> {
    let mut reader = ShardReader::open(shard, read)?;
    let mut records = 0;
    let mut damage = DamageReport::default();
    while let Some(segment) = reader.segment()? {
        match segment {
            Segment::Records(some) => records += some.len() as u64,
            Segment::Lost(lost) => damage.add_lost(0, lost),
        }
    }
    Ok((records, damage))
}
