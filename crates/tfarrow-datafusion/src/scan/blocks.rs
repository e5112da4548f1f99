//! The blocks of a file that a scan reads, by its index: those that the filter of the query may
//! keep.

use std::{
    collections::{HashMap, HashSet},
    sync::Arc,
};

use arrow_array::{Array, ArrayRef, BooleanArray, Float32Array, UInt64Array};
use arrow_schema::DataType;
use datafusion::{
    common::{
        Column, Result, ScalarValue,
        pruning::PruningStatistics,
        tree_node::{Transformed, TransformedResult, TreeNode, TreeNodeRecursion},
    },
    physical_expr::{ScalarFunctionExpr, expressions::Column as PhysicalColumn},
    physical_expr_common::physical_expr::snapshot_generation,
    physical_optimizer::pruning::PruningPredicateBuilder,
    physical_plan::PhysicalExpr,
};
use tfarrow_codec::{Role, frame::FrameRange, schema::role_of};
use tfarrow_dataset::{Error, internals::Lock};
use tfarrow_index::{FeatureZones, OpenIndex};

use crate::{
    scan::{metrics::ScanMetrics, record_range::RecordRange},
    schema::columns::{Columns, feature_of},
};

/// The name of the function of tfarrow-sql that gives floats one NaN and one zero.
pub const NORMALIZE: &str = "normalize_nan_and_zero";

/// The blocks of a file, and which of them the filter may keep.
pub(crate) struct FileBlocks {
    blocks: Arc<[FrameRange]>,
    filter: Option<BlockFilter>,
    metrics: ScanMetrics,
}

/// Decides by the zones of a file which of its blocks a predicate may keep.
struct BlockFilter {
    predicate: Arc<dyn PhysicalExpr>,
    columns: Arc<Columns>,
    zones: BlockZones,
    decided: Lock<Decided>,
}

/// The decisions by a predicate that may change while the query runs.
struct Decided {
    /// The [generation](snapshot_generation) of the predicate.
    generation: u64,
    /// For each block, whether the predicate may keep some of its records.
    keep: Vec<bool>,
}

/// The zones of the columns that a predicate uses, as statistics.
struct BlockZones {
    blocks: Arc<[FrameRange]>,
    columns: HashMap<String, ColumnZones>,
}

/// The zones of a column.
struct ColumnZones {
    min: ArrayRef,
    max: ArrayRef,
    nulls: ArrayRef,
}

impl FileBlocks {
    /// The blocks of a file that has an index, and of which the records in `range` are read.
    ///
    /// # Errors
    /// The index is damaged, or cannot be read.
    pub(crate) fn new(
        index: &OpenIndex,
        range: &RecordRange,
        predicate: Option<&Arc<dyn PhysicalExpr>>,
        columns: &Arc<Columns>,
        metrics: &ScanMetrics,
    ) -> Result<Self, Error> {
        let all = index.blocks()?;
        let mut blocks = all.clone();
        blocks.retain(|block| range.has_some_of(block));
        let blocks: Arc<[FrameRange]> = blocks.into();
        let filter = match predicate {
            None => None,
            Some(predicate) => {
                let zones = BlockZones::new(index, &all, &blocks, predicate, columns)?;
                Some(BlockFilter::new(predicate, columns, zones))
            }
        };
        Ok(Self {
            blocks,
            filter,
            metrics: metrics.clone(),
        })
    }

    /// The blocks that are read unless a later decision drops them. The others count as pruned.
    pub(crate) fn wanted(&self) -> Vec<FrameRange> {
        let Some(filter) = &self.filter else {
            return self.blocks.to_vec();
        };
        let decided = filter.decided.lock();
        let mut wanted = Vec::new();
        for (block, keep) in self.blocks.iter().zip(&decided.keep) {
            if *keep {
                wanted.push(*block);
            } else {
                self.metrics.blocks_pruned.add(1);
            }
        }
        wanted
    }

    /// Decides about a block that is about to be read.
    pub(crate) fn wants(&self, block: &FrameRange) -> bool {
        let number = self
            .blocks
            .binary_search_by_key(&block.first, |block| block.first);
        let wanted = match (&self.filter, number) {
            (Some(filter), Ok(number)) => filter.wants(number),
            _ => true,
        };
        if wanted {
            self.metrics.blocks_read.add(1);
        } else {
            self.metrics.blocks_pruned.add(1);
        }
        wanted
    }

    /// Whether all blocks of the file are read in any case.
    pub(crate) fn is_whole(&self, records: u64) -> bool {
        let held: u64 = self.blocks.iter().map(|block| block.records as u64).sum();
        let filter = self.filter.as_ref();
        let keeps_all = filter.is_none_or(|filter| {
            snapshot_generation(&filter.predicate) == 0
                && !filter.decided.lock().keep.contains(&false)
        });
        held == records && keeps_all
    }
}

impl BlockFilter {
    fn new(predicate: &Arc<dyn PhysicalExpr>, columns: &Arc<Columns>, zones: BlockZones) -> Self {
        let filter = Self {
            predicate: Arc::clone(predicate),
            columns: Arc::clone(columns),
            decided: Lock::new(Decided {
                generation: snapshot_generation(predicate),
                keep: Vec::new(),
            }),
            zones,
        };
        let keep = filter.decide();
        filter.decided.lock().keep = keep;
        filter
    }

    /// Whether the predicate, as it is now, may keep records of the block.
    fn wants(&self, number: usize) -> bool {
        let mut decided = self.decided.lock();
        let generation = snapshot_generation(&self.predicate);
        if decided.generation != generation {
            *decided = Decided {
                generation,
                keep: self.decide(),
            };
        }
        decided.keep.get(number).copied().unwrap_or(true)
    }

    /// Evaluates the predicate over the zones. A predicate that zones do not decide keeps all.
    fn decide(&self) -> Vec<bool> {
        let schema = Arc::clone(self.columns.schema());
        let decided = without_normalize(Arc::clone(&self.predicate))
            .and_then(|predicate| {
                PruningPredicateBuilder::new()
                    .with_file_schema(schema)
                    .try_build(predicate)
            })
            .and_then(|predicate| predicate.prune(&self.zones));
        decided.unwrap_or_else(|_| vec![true; self.zones.blocks.len()])
    }
}

/// The argument of a call of [`NORMALIZE`]; `None` for other expressions.
fn normalized(expr: &Arc<dyn PhysicalExpr>) -> Option<&Arc<dyn PhysicalExpr>> {
    let call = expr.downcast_ref::<ScalarFunctionExpr>()?;
    match (call.name(), call.args()) {
        (NORMALIZE, [value]) => Some(value),
        _ => None,
    }
}

/// The columns that a predicate uses, of which the values are not those that [`NORMALIZE`] returns.
fn raw_columns(predicate: &Arc<dyn PhysicalExpr>) -> Result<HashSet<usize>> {
    let mut raw = HashSet::new();
    predicate.apply(|expr| {
        if let Some(value) = normalized(expr)
            && value.is::<PhysicalColumn>()
        {
            return Ok(TreeNodeRecursion::Jump);
        }
        if let Some(column) = expr.downcast_ref::<PhysicalColumn>() {
            raw.insert(column.index());
        }
        Ok(TreeNodeRecursion::Continue)
    })?;
    Ok(raw)
}

/// Replaces the calls of [`NORMALIZE`] by their arguments: the bounds of floats are those of
/// normalized and of other floats.
fn without_normalize(predicate: Arc<dyn PhysicalExpr>) -> Result<Arc<dyn PhysicalExpr>> {
    predicate
        .transform_up(|expr| match normalized(&expr).map(Arc::clone) {
            Some(value) => Ok(Transformed::yes(value)),
            None => Ok(Transformed::no(expr)),
        })
        .data()
}

impl BlockZones {
    /// The zones of `blocks`, which are consecutive ones among `all` of the index.
    fn new(
        index: &OpenIndex,
        all: &[FrameRange],
        blocks: &Arc<[FrameRange]>,
        predicate: &Arc<dyn PhysicalExpr>,
        columns: &Arc<Columns>,
    ) -> Result<Self, Error> {
        let mut of_columns = HashMap::new();
        // Without them, no float is known to be normalized.
        let raw = raw_columns(predicate).ok();
        for column in datafusion::physical_expr::utils::collect_columns(predicate) {
            let Some(field) = columns.schema().fields().get(column.index()) else {
                continue;
            };
            let name = feature_of(field);
            let zones = match role_of(field) {
                Some(Role::Index) => Some(places(all, |block| {
                    (block.first, block.first + block.records as u64 - 1)
                })),
                Some(Role::Offset) => Some(places(all, |block| {
                    (block.offset, block.offset + block.bytes as u64 - 1)
                })),
                // A cast may change values, and gives records without the feature a default.
                _ if columns.is_cast(column.index()) => None,
                None | Some(Role::Feature | Role::Context) => match index.zones(name)? {
                    Some(zones) => {
                        let is_normalized = raw
                            .as_ref()
                            .is_some_and(|raw| !raw.contains(&column.index()));
                        ColumnZones::of_feature(&zones, field.data_type(), is_normalized)
                    }
                    None => None,
                },
                Some(_) => None,
            };
            if let Some(zones) = zones {
                of_columns.insert(field.name().clone(), zones.of_blocks(all, blocks));
            }
        }
        Ok(Self {
            blocks: Arc::clone(blocks),
            columns: of_columns,
        })
    }
}

/// The zones of a column of numbers that follow from the places of blocks.
fn places(blocks: &[FrameRange], bounds: impl Fn(&FrameRange) -> (u64, u64)) -> ColumnZones {
    let mut min = Vec::with_capacity(blocks.len());
    let mut max = Vec::with_capacity(blocks.len());
    for block in blocks {
        let (first, last) = bounds(block);
        min.push(first as i64);
        max.push(last as i64);
    }
    ColumnZones {
        min: Arc::new(arrow_array::Int64Array::from(min)),
        max: Arc::new(arrow_array::Int64Array::from(max)),
        nulls: Arc::new(UInt64Array::from(vec![0; blocks.len()])),
    }
}

impl ColumnZones {
    /// The zones of a feature as those of a column of this type, all of whose floats are normalized,
    /// or not; `None` if the values of the column are others.
    fn of_feature(zones: &FeatureZones, data_type: &DataType, is_normalized: bool) -> Option<Self> {
        let is_same = match (zones.min.data_type(), data_type) {
            (DataType::Int64, DataType::Int64) => true,
            (DataType::Float32, DataType::Float32) => true,
            // Bytes in a column of text are an error, which no block may hide.
            (DataType::Binary, text) if text.is_string() => zones.is_utf8,
            (DataType::Binary, other) => other.is_binary(),
            _ => false,
        };
        if !is_same {
            return None;
        }
        let nulls = zones.nulls.iter();
        let nulls = UInt64Array::from_iter(nulls.map(|count| Some(count? as u64)));
        let [min, max] = match &zones.nans {
            Some(nans) => float_bounds(zones, nans, is_normalized)?,
            None => [Arc::clone(&zones.min), Arc::clone(&zones.max)],
        };
        Some(Self {
            min,
            max,
            nulls: Arc::new(nulls),
        })
    }

    /// The zones of these blocks among `all`, of which they are consecutive ones.
    fn of_blocks(&self, all: &[FrameRange], blocks: &[FrameRange]) -> Self {
        let first = blocks.first().map_or(0, |block| block.first);
        let from = all.partition_point(|block| block.first < first);
        Self {
            min: self.min.slice(from, blocks.len()),
            max: self.max.slice(from, blocks.len()),
            nulls: self.nulls.slice(from, blocks.len()),
        }
    }
}

/// The bounds of floats in the order of their bits, in which both NaNs and both zeros differ, that
/// are also bounds where they are equal. NaN is above all other floats if it is normalized, and may
/// be below them otherwise: blocks with NaN have no bounds then.
fn float_bounds(
    zones: &FeatureZones,
    nans: &arrow_array::Int64Array,
    is_normalized: bool,
) -> Option<[ArrayRef; 2]> {
    let min = zones.min.as_any().downcast_ref::<Float32Array>()?;
    let max = zones.max.as_any().downcast_ref::<Float32Array>()?;
    let mut bounds = [Vec::with_capacity(min.len()), Vec::with_capacity(max.len())];
    for row in 0..min.len() {
        let has_numbers = min.is_valid(row) && max.is_valid(row);
        let has_nan = nans.value(row) != 0;
        if has_nan && is_normalized {
            let least = if has_numbers {
                least_of(min.value(row))
            } else {
                f32::NAN
            };
            bounds[0].push(Some(least));
            bounds[1].push(Some(f32::NAN));
            continue;
        }
        let is_known = has_numbers && !has_nan;
        let largest = if max.value(row) == 0.0 {
            0.0
        } else {
            max.value(row)
        };
        bounds[0].push(is_known.then(|| least_of(min.value(row))));
        bounds[1].push(is_known.then_some(largest));
    }
    Some(bounds.map(|bounds| Arc::new(Float32Array::from(bounds)) as ArrayRef))
}

/// The least float that is equal to this one.
fn least_of(value: f32) -> f32 {
    if value == 0.0 { -0.0 } else { value }
}

impl PruningStatistics for BlockZones {
    fn min_values(&self, column: &Column) -> Option<ArrayRef> {
        Some(Arc::clone(&self.columns.get(&column.name)?.min))
    }

    fn max_values(&self, column: &Column) -> Option<ArrayRef> {
        Some(Arc::clone(&self.columns.get(&column.name)?.max))
    }

    fn num_containers(&self) -> usize {
        self.blocks.len()
    }

    fn null_counts(&self, column: &Column) -> Option<ArrayRef> {
        Some(Arc::clone(&self.columns.get(&column.name)?.nulls))
    }

    fn row_counts(&self) -> Option<ArrayRef> {
        let records = self.blocks.iter().map(|block| block.records as u64);
        Some(Arc::new(UInt64Array::from_iter_values(records)))
    }

    fn contained(&self, _: &Column, _: &HashSet<ScalarValue>) -> Option<BooleanArray> {
        None
    }
}
