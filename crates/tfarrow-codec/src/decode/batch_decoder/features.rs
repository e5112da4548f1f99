//! Decoding of the features of Examples and SequenceExamples.
//!
//! ```text
//! records ─▶ walk the wire ─▶ tape      error: fail, or skip the row
//!         ─▶ build the array of each column from the tape
//!                                       error: fail, or skip the row and build the array again
//! ```
//!
//! A *lane* is the set of slots of one feature on the tape: the columns of a feature's kinds read
//! the same lane.

use std::collections::HashMap;

use arrow_array::ArrayRef;

use super::{BatchRows, DecoderOptions};
use crate::{
    ErrorKind, RecordType, Records, Result,
    decode::column,
    example::tape::Tape,
    schema::{Column, Role, Shape},
};

/// Decodes features to columns.
#[derive(Debug)]
pub(super) struct FeatureDecoder {
    columns: Vec<FeatureColumn>,
    /// The number of lanes.
    lanes: usize,
    pub(super) tape: Tape,
    record_type: RecordType,
    /// Whether a field that the record type does not define is an error.
    strict: bool,
}

/// A column of the values of a feature, or of the names of features without a kind.
#[derive(Debug)]
struct FeatureColumn {
    column: Column,
    lane: usize,
    values: FeatureValues,
}

/// The values of a feature that a column has.
#[derive(Clone, Copy, Debug)]
enum FeatureValues {
    /// All values.
    All,
    /// At most this number of values from the beginning of each list.
    First(usize),
    /// The values of the kind of the column. Other kinds of the feature have columns of their own.
    /// The kinds that have a column, indexed by [`Kind`](crate::Kind).
    OfKind([bool; 3]),
}

impl FeatureDecoder {
    /// Creates a decoder of the columns of a schema, `all`, at the indices `wanted`.
    pub(super) fn new(
        all: &[Column],
        wanted: &[usize],
        record_type: RecordType,
        options: &DecoderOptions,
    ) -> Self {
        let firsts = firsts(all);
        let kinds = kinds(all, &firsts);
        let mut lanes = HashMap::new();
        let mut columns = Vec::with_capacity(wanted.len());
        for index in wanted {
            let (Some(column), Some(first)) = (all.get(*index), firsts.get(*index)) else {
                continue;
            };
            let next = lanes.len();
            let lane = *lanes.entry(*first).or_insert(next);
            let values = match (kinds.get(first), options.first_values.get(index)) {
                (Some(kinds), _) => FeatureValues::OfKind(*kinds),
                (None, Some(most)) if column.shape == Shape::List => FeatureValues::First(*most),
                (None, _) => FeatureValues::All,
            };
            columns.push(FeatureColumn {
                column: column.clone(),
                lane,
                values,
            });
        }
        let mut lane_of = HashMap::new();
        for (index, first) in firsts.iter().enumerate() {
            if let Some(lane) = lanes.get(first) {
                lane_of.insert(index, *lane);
            }
        }
        Self {
            columns,
            lanes: lanes.len(),
            tape: Tape::new(all, &lane_of, options.limits),
            record_type,
            strict: options.strict,
        }
    }

    /// Decodes the rows to an array for each column. Skipped rows have nulls and defaults.
    ///
    /// # Errors
    /// A record that does not parse or does not fit the columns, unless errors are skipped, and
    /// arrays that exceed Arrow's offsets.
    pub(super) fn decode(
        &mut self,
        records: &Records,
        rows: &mut BatchRows,
    ) -> Result<Vec<ArrayRef>> {
        let count = rows.count(records);
        self.tape.begin(self.lanes, count);
        for row in 0..count {
            if let Err(error) = self.walk(records, rows.record_of(row), rows) {
                rows.skip(row, error)?;
                self.tape.skip(row);
            }
        }
        let mut arrays = Vec::with_capacity(self.columns.len());
        for column in &self.columns {
            arrays.push(array(column, &mut self.tape, records, rows)?);
        }
        Ok(arrays)
    }

    /// Checks a record, and notes its values on the tape.
    fn walk(&mut self, records: &Records, record: usize, rows: &BatchRows) -> Result<()> {
        rows.check_crc(records, record)?;
        let data = records.data(record).unwrap_or_default();
        let shared = records.shared_features().example();
        let lists = self.record_type == RecordType::SequenceExample;
        if let Err(error) = self.tape.record(shared, data, records.chunk(), lists) {
            return Err(rows.parse_error(error, records, record));
        }
        if self.strict
            && let Some(field) = self.tape.foreign_of_record()
        {
            let record_type = self.record_type.name();
            return Err(records.error(ErrorKind::Foreign { field, record_type }, record));
        }
        self.tape.accept();
        Ok(())
    }
}

/// Builds the array of a column. If errors are skipped, a row whose value does not fit is skipped,
/// and the array is built again without its value.
fn array(
    column: &FeatureColumn,
    tape: &mut Tape,
    records: &Records,
    rows: &mut BatchRows,
) -> Result<ArrayRef> {
    loop {
        match try_array(column, tape, records) {
            Ok(array) => return Ok(array),
            Err(fault) => {
                let row = fault.row();
                let error = rows
                    .error(fault, records)
                    .with_feature(&column.column.feature);
                let Some(row) = row else {
                    return Err(error);
                };
                rows.skip(row, error)?;
                tape.clear(row);
            }
        }
    }
}

fn try_array(
    FeatureColumn {
        column,
        lane,
        values,
    }: &FeatureColumn,
    tape: &Tape,
    records: &Records,
) -> column::Result<ArrayRef> {
    if column.role == Role::Unset
        && let Some((unset, names)) = tape.unset()
    {
        return column::virtual_columns::unset(unset, names);
    }
    let slots = tape.column(*lane);
    let places = tape.places(records.chunk());
    match values {
        FeatureValues::All => column::build(column.shape, column.values, slots, places),
        FeatureValues::First(most) => column::beginnings(column.values, *most, slots, places),
        FeatureValues::OfKind(kinds) => {
            column::build_split(column.shape, column.values, *kinds, slots, places)
        }
    }
}

/// Returns, for each column, the index of the first column of the same feature: its own, unless the
/// feature has a column for each of its kinds.
///
/// ```text
/// columns    a    b/int64_list   b/bytes_list   c
/// firsts     0    1              1              3
/// ```
fn firsts(columns: &[Column]) -> Vec<usize> {
    let mut first_of = HashMap::new();
    let mut firsts = Vec::with_capacity(columns.len());
    for (index, column) in columns.iter().enumerate() {
        let is_list = match column.role {
            Role::Feature | Role::Context => false,
            Role::Sequence => true,
            Role::Examples
            | Role::Record
            | Role::Unset
            | Role::Exact
            | Role::Index
            | Role::Offset => {
                firsts.push(index);
                continue;
            }
        };
        let feature = (is_list, column.feature.as_str());
        firsts.push(*first_of.entry(feature).or_insert(index));
    }
    firsts
}

/// Returns the kinds that have a column, of each feature with more than one column, by the index of
/// its first column. The kinds are indexed by [`Kind`](crate::Kind).
fn kinds(columns: &[Column], firsts: &[usize]) -> HashMap<usize, [bool; 3]> {
    let mut kinds: HashMap<usize, [bool; 3]> = HashMap::new();
    for (index, (column, first)) in columns.iter().zip(firsts).enumerate() {
        let Some(first_column) = columns.get(*first).filter(|_| *first != index) else {
            continue;
        };
        let kinds = kinds.entry(*first).or_default();
        kinds[first_column.values.kind() as usize] = true;
        kinds[column.values.kind() as usize] = true;
    }
    kinds
}
