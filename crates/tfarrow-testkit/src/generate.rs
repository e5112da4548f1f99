//! Random data sets with few names, so that names collide, and with every kind, state and extreme
//! value.
//!
//! A feature of a data set has one kind in all records, as tfarrow requires, except in [`mixed`]
//! data sets. Values are drawn independently of their use, so that a failing case shrinks to a
//! small one.

use std::{collections::BTreeMap, fmt};

use proptest::{collection::vec, prelude::*, sample::select};

use crate::{
    frame,
    odd_wire::{self, Choices},
    oracle::{self, ModelCell, ModelKind, ModelRow, ModelSide, ModelValue},
};

/// Special names: an empty one, capitals and quotes, paths, the names of tfarrow's own columns, the
/// name of a column whose feature's name is taken, and a name whose length takes two bytes.
pub const NAMES: [&str; 12] = [
    "a",
    "b",
    "",
    "record",
    "_tfarrow_unset",
    "feature_lists/a",
    "features/_tfarrow_unset",
    "A.b/\"c d\"",
    "été",
    "_file",
    "c",
    "a-name-that-is-longer-than-one-hundred-and-twenty-seven-bytes-and-so-has-a-length-of-two-bytes-in-any-form-of-the-protobuf-wire-at-all",
];

/// A data set: records of one type, with one kind a feature unless it is [`mixed`].
#[derive(Clone, Default, PartialEq, Eq)]
pub struct DataSet {
    /// Whether the records are SequenceExamples.
    pub sequence: bool,
    /// The records.
    pub rows: Vec<ModelRow>,
}

impl fmt::Debug for DataSet {
    /// Prints one record per line, also with `{:#?}`.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        writeln!(
            f,
            "{}",
            if self.sequence {
                "SequenceExamples"
            } else {
                "Examples"
            }
        )?;
        self.rows
            .iter()
            .try_for_each(|row| writeln!(f, "  {}", format_args!("{row:?}")))
    }
}

impl DataSet {
    /// Returns the payload of each record, in TensorFlow's form.
    pub fn payloads(&self) -> Vec<Vec<u8>> {
        let write = if self.sequence {
            oracle::sequence_example_from_row
        } else {
            oracle::example_from_row
        };
        self.rows.iter().map(write).collect()
    }

    /// Returns the payload of each record in the form that `choices` selects; in TensorFlow's form
    /// after the last choice.
    pub fn odd_payloads(&self, choices: &mut Choices<'_>) -> Vec<Vec<u8>> {
        self.rows
            .iter()
            .map(|row| odd_wire::record(row, self.sequence, choices))
            .collect()
    }

    /// Returns a TFRecord file of [`payloads`](Self::payloads).
    pub fn file(&self) -> Vec<u8> {
        frame::file(self.payloads())
    }

    /// Returns a TFRecord file of [`odd_payloads`](Self::odd_payloads).
    pub fn odd_file(&self, choices: &mut Choices<'_>) -> Vec<u8> {
        frame::file(self.odd_payloads(choices))
    }
}

/// Generates a data set of Examples.
pub fn examples() -> impl Strategy<Value = DataSet> {
    data_set(false, true)
}

/// Generates a data set of SequenceExamples.
pub fn sequence_examples() -> impl Strategy<Value = DataSet> {
    data_set(true, true)
}

/// Generates a data set of either type.
pub fn data_sets() -> impl Strategy<Value = DataSet> {
    prop_oneof![examples(), sequence_examples()]
}

/// Generates a data set of either type in which features may have several kinds.
pub fn mixed() -> impl Strategy<Value = DataSet> {
    prop_oneof![data_set(false, false), data_set(true, false)]
}

/// Maximum number of features of a data set.
const FEATURES: usize = 6;

fn data_set(sequence: bool, one_kind: bool) -> impl Strategy<Value = DataSet> {
    let rows = prop_oneof![4 => vec(vec(draft(), FEATURES), 0..8), 1 => vec(vec(draft(), FEATURES), 8..40)];
    (vec(habit(), 0..=FEATURES), rows).prop_map(move |(habits, rows)| {
        let rows = rows
            .iter()
            .map(|drafts| row(&habits, drafts, sequence, one_kind))
            .collect();
        DataSet { sequence, rows }
    })
}

/// The properties of a feature that are the same in all records.
#[derive(Clone, Debug)]
struct Habit {
    name: &'static str,
    side: ModelSide,
    kind: ModelKind,
    /// Whether all values are UTF-8.
    text: bool,
    /// Whether every list has exactly one value.
    single: bool,
    /// Whether the feature is in every record, with a kind.
    faithful: bool,
}

fn habit() -> impl Strategy<Value = Habit> {
    let side = select(&[ModelSide::Features, ModelSide::Lists][..]);
    let kind = select(&[ModelKind::Int64, ModelKind::Float, ModelKind::Bytes][..]);
    (
        select(&NAMES[..]),
        side,
        kind,
        any::<bool>(),
        any::<bool>(),
        any::<bool>(),
    )
        .prop_map(|(name, side, kind, text, single, faithful)| Habit {
            name,
            side,
            kind,
            text,
            single,
            faithful,
        })
}

/// A feature of one record, before its name is known.
#[derive(Clone, Debug)]
struct Draft {
    state: State,
    kind: ModelKind,
    atoms: Vec<Atom>,
    steps: Vec<(State, Vec<Atom>)>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum State {
    Set,
    Unset,
    Absent,
}

fn draft() -> impl Strategy<Value = Draft> {
    let kind = select(&[ModelKind::Int64, ModelKind::Float, ModelKind::Bytes][..]);
    let steps = prop_oneof![3 => Just(Vec::new()), 4 => vec((state(), atoms()), 1..4)];
    (state(), kind, atoms(), steps).prop_map(|(state, kind, atoms, steps)| Draft {
        state,
        kind,
        atoms,
        steps,
    })
}

fn state() -> impl Strategy<Value = State> {
    prop_oneof![6 => Just(State::Set), 1 => Just(State::Unset), 1 => Just(State::Absent)]
}

/// A value of any kind. `class` and `bits` determine the value.
#[derive(Clone, Copy, Debug)]
struct Atom {
    class: u8,
    bits: u64,
}

fn atoms() -> impl Strategy<Value = Vec<Atom>> {
    let atom = || (any::<u8>(), any::<u64>()).prop_map(|(class, bits)| Atom { class, bits });
    // Lists of a hundred values have lengths of two bytes, and fill words of the packed form.
    prop_oneof![2 => Just(Vec::new()), 8 => vec(atom(), 1..4), 4 => vec(atom(), 1..20), 1 => vec(atom(), 90..140)]
}

impl Atom {
    fn int64(self) -> i64 {
        const EXTREMES: [i64; 10] = [
            0,
            1,
            -1,
            i64::MIN,
            i64::MAX,
            127,
            128,
            16_383,
            16_384,
            1 << 62,
        ];
        match self.class % 4 {
            0 => (self.bits % 200) as i64,
            1 => pick(&EXTREMES, self.bits),
            // All lengths of varints are equally frequent.
            2 => (self.bits >> (self.bits % 64)) as i64,
            _ => self.bits as i64,
        }
    }

    fn float(self) -> u32 {
        // Signed zeros, infinities, quiet and signalling NaNs with payloads, and the largest and
        // smallest values.
        const EXTREMES: [u32; 10] = [
            0,
            0x8000_0000,
            0x7f80_0000,
            0xff80_0000,
            0x7fc0_0000,
            0xffc1_2345,
            0x7fa0_0001,
            0xff80_0001,
            0x7f7f_ffff,
            1,
        ];
        match self.class % 3 {
            0 => ((self.bits % 200) as f32 / 8.0).to_bits(),
            1 => pick(&EXTREMES, self.bits),
            _ => self.bits as u32,
        }
    }

    fn bytes(self, text: bool) -> Vec<u8> {
        // Views hold 12 bytes in place, and lengths of 128 bytes take two; long values may stay in
        // the chunk.
        const LENGTHS: [usize; 8] = [0, 1, 3, 11, 12, 13, 40, 130];
        let length = match self.class {
            0..250 => pick(&LENGTHS, u64::from(self.class)),
            250.. => 1000 + usize::from(self.class) * 10,
        };
        let mut state = self.bits;
        let mut next = || {
            state = state
                .wrapping_mul(6_364_136_223_846_793_005)
                .wrapping_add(1_442_695_040_888_963_407);
            (state >> 56) as u8
        };
        if text {
            (0..length)
                .map(|_| char::from(b' ' + next() % 95))
                .chain("é".chars().take(length % 2))
                .collect::<String>()
                .into()
        } else {
            (0..length).map(|_| next()).collect()
        }
    }
}

fn pick<T: Copy + Default>(choices: &[T], bits: u64) -> T {
    choices
        .get((bits % choices.len() as u64) as usize)
        .copied()
        .unwrap_or_default()
}

fn row(habits: &[Habit], drafts: &[Draft], sequence: bool, one_kind: bool) -> ModelRow {
    let mut taken = BTreeMap::new();
    for (habit, draft) in habits.iter().zip(drafts) {
        let side = if sequence {
            habit.side
        } else {
            ModelSide::Features
        };
        // If a name has two habits, the first one applies in every record, including records
        // without the feature.
        taken
            .entry((side, habit.name.to_owned()))
            .or_insert_with(|| {
                let kind = if one_kind { habit.kind } else { draft.kind };
                cell(side, kind, habit, draft)
            });
    }
    taken
        .into_iter()
        .filter_map(|(key, cell)| Some((key, cell?)))
        .collect()
}

fn cell(side: ModelSide, kind: ModelKind, habit: &Habit, draft: &Draft) -> Option<ModelCell> {
    let state = if habit.faithful {
        State::Set
    } else {
        draft.state
    };
    match (state, side) {
        (State::Absent, _) => None,
        (state, ModelSide::Features) => {
            Some(ModelCell::One(value(state, kind, habit, &draft.atoms)))
        }
        (_, ModelSide::Lists) => {
            let steps = draft
                .steps
                .iter()
                .map(|(state, atoms)| value(*state, kind, habit, atoms))
                .collect();
            Some(ModelCell::Steps(steps))
        }
    }
}

fn value(state: State, kind: ModelKind, habit: &Habit, atoms: &[Atom]) -> ModelValue {
    if state == State::Unset {
        return ModelValue::Unset;
    }
    let one = [atoms.first().copied().unwrap_or(Atom { class: 0, bits: 0 })];
    let atoms = if habit.single { &one } else { atoms }.iter();
    match kind {
        ModelKind::Bytes => ModelValue::Bytes(atoms.map(|atom| atom.bytes(habit.text)).collect()),
        ModelKind::Float => ModelValue::Float(atoms.map(|atom| atom.float()).collect()),
        ModelKind::Int64 => ModelValue::Int64(atoms.map(|atom| atom.int64()).collect()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::config;

    proptest! {
        #![proptest_config(config(100))]

        #[test]
        fn a_feature_has_one_kind(set in data_sets()) {
            prop_assert!(oracle::kinds(&set.rows).values().all(|kinds| kinds.len() <= 1));
        }

        #[test]
        fn prost_reads_every_row(set in mixed()) {
            let read = if set.sequence { oracle::row_from_sequence_example } else { oracle::row_from_example };
            let rows: Vec<_> = set.payloads().iter().map(|payload| read(payload).unwrap()).collect();
            prop_assert_eq!(rows, set.rows);
        }
    }
}
