//! Building the index of one shard from its chunks, which threads add in any order.
//!
//! ```text
//! level 0    chunk 0 │ chunk 1 │ chunk 2 │ chunk 3      a block for each chunk
//! level 1    block 0           │ block 1                two chunks, once there are too many zones
//! ```
//!
//! The level depends on the shard alone, and not on the order of its chunks, so that an index has
//! the same bytes each time. In a gzip or zlib file, blocks are joined at last, so that one begins
//! soon after each access point.

use std::collections::BTreeMap;

use tfarrow_codec::{
    FeatureSummary, Kind, Layout, Limits, MOST_RECORD_BYTES, RecordType, Records, Role, Shape,
    Summary, VerifyCrc,
    frame::{FOOTER, HEADER},
};
use tfarrow_dataset::{Error, ErrorKind, Result, internals::AccessPoint};

use crate::{
    sorted::{SortedFeature, SortedRuns},
    zone::{Zone, ZoneCollector},
};

/// Number of bytes of a frame besides its payload.
pub(crate) const FRAME_BYTES: u64 = (HEADER + FOOTER) as u64;
/// Estimated bytes of a zone in an index.
const ZONE_BYTES: u64 = 20;
/// Estimated bytes that the metadata of an index has for each feature with zones.
const FEATURE_BYTES: u64 = 600;
/// The part of a shard, as it is stored, that its zones may take: a hundredth.
const PART: u64 = 100;
/// A block has at most 2 to the power of this many chunks, because a thread reads it at once.
const MOST_LEVEL: u32 = 4;
/// More bytes than a block has: those of its chunks of a megabyte, and of a last record that is as
/// long as a record can be.
pub(crate) const MOST_BLOCK_BYTES: usize = (64 << 20) + MOST_RECORD_BYTES;
/// Number of zones that may be held in any case if the blocks are joined at last.
const MOST_HELD: u64 = 1 << 19;
/// Largest number of bytes of a block that was joined.
const MOST_JOINED: u64 = 16 << 20;
/// Largest number of bytes from an access point to the block for which it is used. They are inflated
/// before the block.
pub(crate) const MOST_SKIPPED: u64 = 64 << 20;
/// Bytes that zones may take in any case.
const LEAST_BYTES: u64 = 256 << 10;

/// The index of a shard that is being built.
#[derive(Debug)]
pub struct IndexBuilder {
    /// Size of the shard as it is stored.
    size: u64,
    pub(crate) summary: Summary,
    /// The chunks, by their numbers in the shard.
    chunks: BTreeMap<u64, ChunkLengths>,
    /// The numbers of features in `zones`, by their names.
    features: BTreeMap<String, usize>,
    /// The zones of each block, by its number.
    zones: BTreeMap<u64, Vec<Zone>>,
    sorted: SortedRuns,
    /// Number of zones in all blocks that have a value. It does not depend on the numbers of
    /// features, and so not on the order of chunks.
    held: u64,
    /// A block has 2 to the power of this many chunks.
    level: u32,
    /// Whether there are few enough zones for the shard.
    has_zones: bool,
    /// Whether blocks are joined at access points.
    has_points: bool,
}

/// The records of a chunk.
#[derive(Debug)]
struct ChunkLengths {
    first: u64,
    offset: u64,
    /// Number of bytes of each payload.
    lengths: Vec<u32>,
}

/// The thread of an index that is being built: what it has observed of one shard.
#[derive(Debug)]
pub struct IndexWorker {
    summary: Summary,
    /// For each feature of the summary, by its number, its number in the builder.
    features: Vec<usize>,
}

/// What a thread has observed of one chunk.
#[derive(Debug)]
pub struct ObservedChunk {
    lengths: ChunkLengths,
    zones: ZoneCollector,
}

/// A block of records.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct BuiltBlock {
    pub(crate) first: u64,
    pub(crate) offset: u64,
    pub(crate) lengths: Vec<u32>,
    /// The zones of the features of the index.
    pub(crate) zones: Vec<Zone>,
}

impl BuiltBlock {
    /// The number of bytes of the frames.
    pub(crate) fn bytes(&self) -> u64 {
        let payloads: u64 = self.lengths.iter().map(|length| u64::from(*length)).sum();
        payloads + FRAME_BYTES * self.lengths.len() as u64
    }

    /// Adds the block that follows.
    fn join(&mut self, next: Self) {
        self.lengths.extend(next.lengths);
        for (zone, next) in self.zones.iter_mut().zip(&next.zones) {
            zone.merge(next);
        }
    }
}

impl BuiltBlocks {
    /// Joins blocks so that one begins soon after each of these access points. Without effect if a
    /// block is too far from a point, as in a file that is one deflate block.
    fn join_at_points(&mut self, points: Vec<AccessPoint>) {
        let mut points = points.into_iter().peekable();
        // The blocks with which the new ones begin.
        let mut begins: Vec<(usize, AccessPoint)> = Vec::new();
        let mut point = None;
        for (number, block) in self.blocks.iter().enumerate() {
            let mut has_point = false;
            while let Some(next) = points.next_if(|next| next.offset <= block.offset) {
                point = Some(next);
                has_point = true;
            }
            let Some(point) = &point else {
                return;
            };
            if block.offset - point.offset > MOST_SKIPPED {
                return;
            }
            let last = begins.last();
            let first = last.and_then(|(first, _)| self.blocks.get(*first));
            let is_long =
                first.is_none_or(|first| block.offset - first.offset + block.bytes() > MOST_JOINED);
            if has_point || is_long {
                begins.push((number, point.clone()));
            }
        }
        let mut begins = begins.into_iter().peekable();
        let mut joined: Vec<BuiltBlock> = Vec::new();
        for (number, block) in std::mem::take(&mut self.blocks).into_iter().enumerate() {
            if let Some((_, point)) = begins.next_if(|(first, _)| *first == number) {
                self.points.push(point);
                joined.push(block);
            } else if let Some(last) = joined.last_mut() {
                last.join(block);
            }
        }
        self.blocks = joined;
    }
}

/// The blocks of a complete shard, and the features that have zones, by name.
#[derive(Debug)]
pub(crate) struct BuiltBlocks {
    pub(crate) features: Vec<(String, Kind)>,
    pub(crate) sorted: Vec<SortedFeature>,
    pub(crate) blocks: Vec<BuiltBlock>,
    /// For each block of a gzip or zlib file, an access point before it; empty for other shards.
    pub(crate) points: Vec<AccessPoint>,
}

impl IndexWorker {
    /// Creates the state of one thread for one shard.
    pub fn new(limits: Limits) -> Self {
        Self {
            summary: Summary::with_limits(0, limits),
            features: Vec::new(),
        }
    }

    /// Observes the records of a chunk, and verifies their CRCs.
    ///
    /// # Errors
    /// A record that is corrupt or exceeds a limit.
    pub fn observe(&mut self, records: &Records) -> Result<ObservedChunk, tfarrow_codec::Error> {
        let mut zones = ZoneCollector::default();
        self.summary
            .observe_with(records, VerifyCrc::Always, &mut zones)?;
        Ok(ObservedChunk {
            lengths: ChunkLengths {
                first: records.first(),
                offset: records.offset(0).unwrap_or_default(),
                lengths: lengths_of(records).collect(),
            },
            zones,
        })
    }
}

impl IndexBuilder {
    /// Creates the builder of the index of a shard that is stored in `size` bytes.
    pub fn new(size: u64, limits: Limits) -> Self {
        Self {
            size,
            summary: Summary::with_limits(0, limits),
            chunks: BTreeMap::new(),
            features: BTreeMap::new(),
            zones: BTreeMap::new(),
            sorted: SortedRuns::default(),
            held: 0,
            level: 0,
            has_zones: true,
            has_points: false,
        }
    }

    /// Sets whether the shard is a gzip or zlib file, whose blocks are joined at access points.
    #[must_use]
    pub fn with_points(mut self, has_points: bool) -> Self {
        self.has_points = has_points;
        self
    }

    /// Adds chunk `number` of the shard, which `worker` has observed.
    pub fn add(&mut self, number: u64, chunk: ObservedChunk, worker: &mut IndexWorker) {
        let ObservedChunk { lengths, zones } = chunk;
        let records = lengths.lengths.len() as u64;
        self.chunks.insert(number, lengths);
        let known = worker.features.len();
        for name in worker.summary.feature_names().skip(known) {
            let next = self.features.len();
            let id = match self.features.get(name) {
                Some(id) => *id,
                None => *self.features.entry(name.to_owned()).or_insert(next),
            };
            worker.features.push(id);
        }
        if !self.has_zones {
            return;
        }
        let block = self.zones.entry(number >> self.level).or_default();
        for (zone, id) in zones.zones.iter().zip(&worker.features) {
            if self.sorted.has(*id) {
                self.sorted.add(*id, number, zone.sorted_ends(records));
            }
            if block.len() <= *id {
                block.resize(*id + 1, Zone::Empty);
            }
            if let Some(held) = block.get_mut(*id) {
                self.held += u64::from(*held == Zone::Empty && *zone != Zone::Empty);
                held.merge(zone);
            }
        }
        let most = match self.has_points {
            true => self.most_zones().max(MOST_HELD),
            false => self.most_zones(),
        };
        while self.held > most && self.level < MOST_LEVEL {
            self.join_blocks();
        }
        if self.held > most {
            // Each further chunk would have more.
            self.has_zones = false;
            self.zones.clear();
        }
    }

    /// The number of zones that the index may have.
    fn most_zones(&self) -> u64 {
        (self.size / PART).max(LEAST_BYTES) / ZONE_BYTES
    }

    /// Joins each two blocks.
    fn join_blocks(&mut self) {
        self.level += 1;
        self.held = 0;
        let mut joined: BTreeMap<u64, Vec<Zone>> = BTreeMap::new();
        for (number, zones) in std::mem::take(&mut self.zones) {
            let block = joined.entry(number >> 1).or_default();
            if block.len() < zones.len() {
                block.resize(zones.len(), Zone::Empty);
            }
            for (held, zone) in block.iter_mut().zip(&zones) {
                held.merge(zone);
            }
        }
        for zone in joined.values().flatten() {
            self.held += u64::from(*zone != Zone::Empty);
        }
        self.zones = joined;
    }

    /// Adds the summary of a thread that has observed all of its chunks.
    ///
    /// # Errors
    /// More names than the limits allow.
    pub fn merge(&mut self, worker: &IndexWorker) -> Result<()> {
        let merged = self.summary.merge(&worker.summary);
        merged.map_err(|error| Error::general(ErrorKind::Codec(error)))
    }

    /// The number of records.
    pub fn records(&self) -> u64 {
        self.summary.records()
    }

    /// Returns the blocks, once all chunks were added. `points` are the access points of a gzip or
    /// zlib file.
    pub(crate) fn into_blocks(mut self, points: Vec<AccessPoint>) -> (Summary, BuiltBlocks) {
        let most_zones = self.most_zones();
        let mut features = self.zoned_features();
        let budget = (self.size / PART).max(LEAST_BYTES);
        if !self.has_zones || features.len() as u64 * FEATURE_BYTES > budget {
            features.clear();
        }
        let mut sorted = Vec::new();
        for (name, _, id) in &features {
            if let Some((first, last)) = self.sorted.ends(*id, self.chunks.len() as u64) {
                let name = name.clone();
                sorted.push(SortedFeature { name, first, last });
            }
        }
        let mut blocks: Vec<BuiltBlock> = Vec::new();
        let mut last = None;
        for (number, chunk) in std::mem::take(&mut self.chunks) {
            let number = number >> self.level;
            if last == Some(number)
                && let Some(block) = blocks.last_mut()
            {
                block.lengths.extend(chunk.lengths);
                continue;
            }
            last = Some(number);
            let zones = self.zones.remove(&number).unwrap_or_default();
            let mut of_features = Vec::with_capacity(features.len());
            for (_, _, id) in &features {
                of_features.push(zones.get(*id).cloned().unwrap_or_default());
            }
            blocks.push(BuiltBlock {
                first: chunk.first,
                offset: chunk.offset,
                lengths: chunk.lengths,
                zones: of_features,
            });
        }
        let mut named = Vec::with_capacity(features.len());
        for (name, kind, _) in features {
            named.push((name, kind));
        }
        let mut built = BuiltBlocks {
            features: named,
            sorted,
            blocks,
            points: Vec::new(),
        };
        built.join_at_points(points);
        let zones = built.blocks.len() as u64 * built.features.len() as u64;
        if self.has_points && zones > most_zones {
            built.features.clear();
        }
        (self.summary, built)
    }

    /// The features that are scalars in all records, by name, with their kinds and numbers.
    fn zoned_features(&self) -> Vec<(String, Kind, usize)> {
        let record_type = self.summary.record_type();
        let mut zoned = Vec::new();
        if !matches!(
            record_type,
            RecordType::Example | RecordType::SequenceExample
        ) {
            return zoned;
        }
        for feature in self.summary.features_of(record_type) {
            let role = self.summary.role(feature, record_type);
            if let Some(kind) = scalar_kind(feature, role)
                && let Some(id) = self.features.get(&feature.name)
            {
                zoned.push((feature.name.clone(), kind, *id));
            }
        }
        zoned.sort_by(|a, b| a.0.cmp(&b.0));
        zoned
    }
}

/// The number of bytes of each payload. No record has as many as 2 GiB.
pub(crate) fn lengths_of(records: &Records) -> impl Iterator<Item = u32> {
    records.iter().map(|payload| payload.len() as u32)
}

/// The kind of a feature whose lists have one value each; `None` for other features.
fn scalar_kind(feature: &FeatureSummary, role: Role) -> Option<Kind> {
    let column = feature.column(Layout::Auto, role)?;
    (column.shape == Shape::Scalar)
        .then(|| feature.kind())
        .flatten()
}
