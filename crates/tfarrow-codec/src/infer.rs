//! What is in a data set: one summary a feature, of which the schema, every report and every error about a type come.
//!
//! Never stops at a mixed feature: kinds are counted, and the first place of each is kept. Summaries merge, so that
//! shards and chunks may be observed in any order and on any thread.

mod observe;
mod values;

use std::cmp::Ordering;

use arrow_schema::SchemaRef;

use self::observe::{Observer, Traits};
pub use self::values::{BytesValues, RecordObserver, SeenFeature, SeenRecord, ValueList};
use crate::{
    Chunker, Error, ErrorKind, Limits, Position, Records, Result, VerifyCrc, WireError,
    keys::Keys,
    names::{Named, column_names},
    schema::{self, Column, Kind, Layout, RecordType, Role, Shape, Values},
};

/// Where a record stands. Places are ordered as a reader of the whole data set meets them.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Place {
    /// The number of the shard, as given to [`Summary::new`].
    pub shard: u32,
    /// The number of the record in its shard, from 0.
    pub record: u64,
    /// The offset in bytes of the record's frame in the decompressed shard.
    pub offset: u64,
}

/// What was seen of one kind of one feature.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct KindSummary {
    /// Lists of this kind: one a record, or one a step of a feature list.
    pub lists: u64,
    /// Values in all these lists.
    pub values: u64,
    /// Values of the shortest list.
    pub min_len: u64,
    /// Values of the longest list.
    pub max_len: u64,
    /// Where this kind was met first.
    pub first: Place,
    /// Whether every value is valid UTF-8. Only for bytes.
    pub utf8: bool,
    /// Whether some value has a character that is no ASCII control character. Only for bytes.
    pub printable: bool,
    /// The bytes of all values together. Only for bytes.
    pub bytes: u64,
}

/// What was seen of one feature.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct FeatureSummary {
    /// Its name.
    pub name: String,
    /// [`Role::Feature`] or, for a feature list, [`Role::Sequence`]. See [`Summary::role`].
    pub role: Role,
    /// Records that have it, also those that have no kind for it.
    pub present: u64,
    /// Records, or steps of a feature list, that have it with no kind set.
    pub unset: u64,
    /// The fewest and the most steps of a feature list.
    pub steps: Option<(u64, u64)>,
    /// What was seen of each kind, by [`Kind`] as an index.
    pub kinds: [Option<KindSummary>; 3],
}

impl FeatureSummary {
    fn new(name: String, role: Role) -> Self {
        Self { name, role, present: 0, unset: 0, steps: None, kinds: [None, None, None] }
    }

    /// The kinds that it has, and what was seen of each.
    pub fn kinds(&self) -> impl Iterator<Item = (Kind, &KindSummary)> {
        Kind::ALL.into_iter().zip(&self.kinds).filter_map(|(kind, seen)| Some((kind, seen.as_ref()?)))
    }

    /// Its kind; `None` where it has none, or more than one.
    pub fn kind(&self) -> Option<Kind> {
        let mut kinds = self.kinds();
        let (kind, _) = kinds.next()?;
        kinds.next().is_none().then_some(kind)
    }

    /// Whether it has more than one kind.
    pub fn is_mixed(&self) -> bool {
        self.kinds().nth(1).is_some()
    }

    /// The column that holds it in this layout: `None` where it has more than one kind, and where it has none and is no
    /// feature list.
    pub fn column(&self, layout: Layout, role: Role) -> Option<Column> {
        let seen = self.kinds().next();
        if self.is_mixed() || (seen.is_none() && role != Role::Sequence) {
            None
        } else {
            Some(self.of(seen, layout, role))
        }
    }

    /// The columns that hold it in this layout, one for each of its kinds.
    fn columns(&self, layout: Layout, role: Role) -> impl Iterator<Item = Column> {
        let split = self.kinds().filter(|_| self.is_mixed()).map(move |seen| self.of(Some(seen), layout, role));
        self.column(layout, role).into_iter().chain(split)
    }

    /// The column of its lists of one kind.
    fn of(&self, seen: Option<(Kind, &KindSummary)>, layout: Layout, role: Role) -> Column {
        let feature = self.name.clone();
        let values = seen.map_or(Values::Binary, |(kind, seen)| values_of(kind, seen, layout));
        let shape = match (role, layout) {
            (Role::Sequence, _) => Shape::Steps,
            (_, Layout::Auto) if seen.is_some_and(|(_, seen)| seen.min_len == 1 && seen.max_len == 1) => Shape::Scalar,
            _ => Shape::List,
        };
        Column { feature, role, shape, values }
    }

    /// Whether its column is the last word on all that was seen, and on all that may still come and fits it. Of a list
    /// without values nobody can tell whether values would have been text, nor their kind where steps have none; that a
    /// feature without a kind has no column is noticed when it gets one.
    fn is_settled(&self, layout: Layout) -> bool {
        let mut kinds = self.kinds();
        match (kinds.next(), kinds.next()) {
            (None, _) => self.role == Role::Feature,
            (Some((Kind::Bytes, seen)), None) => layout == Layout::List || !seen.utf8 || seen.printable,
            (Some(_), second) => second.is_none(),
        }
    }

    fn merge(&mut self, other: &Self) {
        self.present += other.present;
        self.unset += other.unset;
        self.steps = match (self.steps, other.steps) {
            (Some((a, b)), Some((c, d))) => Some((a.min(c), b.max(d))),
            (one, other) => one.or(other),
        };
        for (kind, other) in self.kinds.iter_mut().zip(&other.kinds) {
            match (kind, other) {
                (Some(kind), Some(other)) => kind.merge(other),
                (kind @ None, other) => kind.clone_from(other),
                (Some(_), None) => {}
            }
        }
    }
}

fn values_of(kind: Kind, seen: &KindSummary, layout: Layout) -> Values {
    match kind {
        Kind::Float => Values::Float32,
        Kind::Int64 => Values::Int64,
        Kind::Bytes if layout == Layout::Auto && seen.is_text() => Values::Utf8,
        Kind::Bytes => Values::Binary,
    }
}

impl KindSummary {
    /// Whether these bytes are text: every value is valid UTF-8, and some value has more than control characters. What
    /// comes later and is valid UTF-8 does not change that, so that a sample can tell it.
    pub fn is_text(&self) -> bool {
        self.utf8 && self.printable
    }

    fn merge(&mut self, other: &Self) {
        self.lists += other.lists;
        self.values += other.values;
        self.min_len = self.min_len.min(other.min_len);
        self.max_len = self.max_len.max(other.max_len);
        self.first = self.first.min(other.first);
        self.utf8 &= other.utf8;
        self.printable |= other.printable;
        self.bytes += other.bytes;
    }
}

/// What becomes of a feature that has more than one kind in a data set.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub enum OnConflict {
    /// It is an error.
    #[default]
    Fail,
    /// It gets a column for each of its kinds.
    Split,
}

/// What is in a data set, or in a part of it.
#[derive(Debug)]
pub struct Summary {
    shard: u32,
    records: u64,
    /// Of their payloads.
    bytes: u64,
    /// The first record that is no Example and no SequenceExample, and why.
    unreadable: Option<(Place, WireError)>,
    /// How many such records there are, and the bytes of their payloads.
    strays: u64,
    stray_bytes: u64,
    /// How many records have a feature with a value, and nothing that is none of an Example's.
    examples: u64,
    /// The first record that has a field which neither of them has, and its number.
    foreign: Option<(Place, u32)>,
    /// The traits of all records that parse.
    traits: Traits,
    observer: Observer,
    sides: [SideSummary; 2],
    limits: Limits,
    /// Whether names past the limits are no error.
    forgets: bool,
}

#[derive(Debug)]
struct SideSummary {
    keys: Keys,
    /// By the number of the key.
    features: Vec<FeatureSummary>,
    /// The last record that has each feature, by the record's turn, and which of that record's features it is.
    turns: Vec<(u64, usize)>,
    /// The turn of the record in hand.
    turn: u64,
}

impl SideSummary {
    /// How many names are known.
    fn names(&self) -> usize {
        self.keys.names().len()
    }

    /// Ends a record that does not parse, before which `known` names were known.
    #[cold]
    fn abandon(&mut self, known: usize) {
        self.keys.abandon(known);
        self.features.truncate(known);
        self.turns.truncate(known);
    }

    /// The summary of the key of this number, which is a new one where it comes after all others.
    #[inline]
    fn feature(&mut self, id: u32, role: Role) -> Option<&mut FeatureSummary> {
        let id = id as usize;
        if self.features.len() <= id {
            self.grow(id, role)?;
        }
        self.features.get_mut(id)
    }

    #[cold]
    fn grow(&mut self, id: usize, role: Role) -> Option<()> {
        while self.features.len() <= id {
            let name = self.keys.names().get(self.features.len())?;
            self.features.push(FeatureSummary::new(name.to_string(), role));
            self.turns.push((0, 0));
        }
        Some(())
    }

    /// Which of the features of the record in hand this one is, if the record has had it before; else it is the one `at`.
    fn met_before(&mut self, id: u32, at: usize) -> Option<usize> {
        let last = self.turns.get_mut(id as usize)?;
        if last.0 == self.turn {
            return Some(last.1);
        }
        *last = (self.turn, at);
        None
    }
}

impl Summary {
    /// A summary of nothing yet; places in it are in the shard of this number.
    pub fn new(shard: u32) -> Self {
        Self::with_limits(shard, Limits::default())
    }

    /// A summary that remembers no more than `limits` say.
    pub fn with_limits(shard: u32, limits: Limits) -> Self {
        let side = || SideSummary { keys: Keys::new([], limits), features: Vec::new(), turns: Vec::new(), turn: 0 };
        Self {
            shard,
            records: 0,
            bytes: 0,
            unreadable: None,
            strays: 0,
            stray_bytes: 0,
            examples: 0,
            foreign: None,
            traits: Traits::default(),
            observer: Observer::default(),
            sides: [side(), side()],
            limits,
            forgets: false,
        }
    }

    /// A summary to which names of features past the limits are no error, wherever records are added or summaries merge: it
    /// does not remember them. Which it does, depends on the order. For who asks for no schema.
    pub fn that_forgets(self) -> Self {
        Self { forgets: true, ..self }
    }

    /// Goes on in another shard.
    pub fn set_shard(&mut self, shard: u32) {
        self.shard = shard;
    }

    /// Adds these records. A payload that is no Example is counted, and makes the data set raw; nothing else of it is
    /// kept.
    ///
    /// # Errors
    /// A record whose CRC does not hold, one that passes a limit, and more names of features than the limits allow. All
    /// records before the one to blame are added.
    pub fn observe(&mut self, records: &Records, verify: VerifyCrc) -> Result<()> {
        self.observe_with(records, verify, &mut ())
    }

    /// Adds these records, and tells `others` of those that parse.
    ///
    /// # Errors
    /// As [`observe`](Self::observe).
    pub fn observe_with<O: RecordObserver>(
        &mut self,
        records: &Records,
        verify: VerifyCrc,
        others: &mut O,
    ) -> Result<()> {
        for (index, data) in records.iter().enumerate() {
            if verify == VerifyCrc::Always {
                records.check_crc(index)?;
            }
            let position = records.position(index);
            let place = Place { shard: self.shard, record: position.record, offset: position.offset };
            if let Err(error) = self.add(data, place, others) {
                if verify == VerifyCrc::OnParseFailure {
                    records.check_crc(index)?;
                }
                // It may well be an Example.
                if error.is_limit() {
                    return Err(records.unreadable(error, index, true, &self.limits));
                }
                self.add_stray(data, place, error);
                others.unreadable(place, error, data.len() as u64);
            }
            self.check_names()?;
        }
        Ok(())
    }

    fn check_names(&self) -> Result<()> {
        if self.traits.overflow && !self.forgets { Err(self.too_many_names()) } else { Ok(()) }
    }

    fn too_many_names(&self) -> Error {
        let Limits { features: columns, name_bytes, .. } = self.limits;
        let is_full = |side: &SideSummary| side.names() >= columns;
        let passed = if self.sides.iter().any(is_full) { "columns" } else { "name-bytes" };
        Error::usage(ErrorKind::ManyNames { columns, name_bytes, passed })
    }

    /// Adds a record that another summary has seen, and tells `others` of it: for one of a part of the records.
    ///
    /// # Errors
    /// More names of features than the limits allow.
    pub fn observe_seen<O: RecordObserver>(&mut self, record: &SeenRecord<'_>, others: &mut O) -> Result<()> {
        // It has parsed before.
        let parsed = self.add(record.data(), record.place(), others);
        debug_assert_eq!(parsed, Ok(()));
        self.check_names()
    }

    fn add<O: RecordObserver>(
        &mut self,
        data: &[u8],
        place: Place,
        others: &mut O,
    ) -> std::result::Result<(), WireError> {
        self.observer.record(data, &mut self.sides, place, others)?;
        self.count(data);
        let Observer { traits, foreign, .. } = self.observer;
        self.traits.merge(traits);
        self.examples += u64::from(traits.has_value && foreign.is_none());
        if let Some(field) = foreign {
            self.foreign = first(self.foreign, Some((place, field)));
        }
        Ok(())
    }

    /// Adds a record that does not parse.
    #[cold]
    fn add_stray(&mut self, data: &[u8], place: Place, error: WireError) {
        self.count(data);
        self.strays += 1;
        self.stray_bytes += data.len() as u64;
        self.unreadable = first(self.unreadable, Some((place, error)));
    }

    fn count(&mut self, data: &[u8]) {
        self.records += 1;
        self.bytes += data.len() as u64;
    }

    /// Adds what another summary has seen.
    ///
    /// # Errors
    /// More names of features than the limits allow.
    pub fn merge(&mut self, other: &Self) -> Result<()> {
        self.records += other.records;
        self.bytes += other.bytes;
        self.strays += other.strays;
        self.stray_bytes += other.stray_bytes;
        self.examples += other.examples;
        self.unreadable = first(self.unreadable, other.unreadable);
        self.foreign = first(self.foreign, other.foreign);
        self.traits.merge(other.traits);
        for (side, other) in self.sides.iter_mut().zip(&other.sides) {
            for feature in &other.features {
                let id = side.keys.find(feature.name.as_bytes()).ok().flatten();
                match id.and_then(|id| side.feature(id, feature.role)) {
                    Some(held) => held.merge(feature),
                    None => self.traits.overflow = true,
                }
            }
        }
        self.check_names()
    }

    /// Records seen.
    pub fn records(&self) -> u64 {
        self.records
    }

    /// Bytes of the payloads of all records seen.
    pub fn bytes(&self) -> u64 {
        self.bytes
    }

    /// How many records look like Examples: they parse, have a feature with a value, and no field that is foreign.
    pub fn examples(&self) -> u64 {
        self.examples
    }

    /// Whether there were names of features that are not remembered.
    pub fn has_forgotten(&self) -> bool {
        self.traits.overflow
    }

    /// The first record that is neither an Example nor a SequenceExample, and in which way.
    pub fn unreadable(&self) -> Option<(Place, WireError)> {
        self.unreadable
    }

    /// How many such records there are.
    pub fn strays(&self) -> u64 {
        self.strays
    }

    /// The first record with a field that neither an Example nor a SequenceExample has, and the field's number.
    pub fn foreign(&self) -> Option<(Place, u32)> {
        self.foreign
    }

    /// Forgets that there were records that are no Examples: a reader that passes over them takes the others for what
    /// they are. Tells how many there were, the shard of the first, and what is wrong with it.
    pub fn forget_strays(&mut self) -> Option<(u64, u32, Error)> {
        let strays = std::mem::take(&mut self.strays);
        self.records -= strays;
        self.bytes -= std::mem::take(&mut self.stray_bytes);
        self.foreign = None;
        let (Place { shard, record, offset }, error) = self.unreadable.take()?;
        let position = Position { record, offset, feature: None };
        Some((strays, shard, Error::wire(error, position)))
    }

    /// What the records are: Examples or SequenceExamples if every one of them parses, some feature has a value, and no
    /// record has a field besides features and feature lists; raw else. Protobuf skips what it does not know, so that
    /// foreign messages often parse: without the last two rules they would be taken for Examples of nothing.
    pub fn record_type(&self) -> RecordType {
        let traits = self.traits;
        if self.unreadable.is_some() || !traits.has_value || self.foreign.is_some() {
            RecordType::Raw
        } else if traits.has_lists {
            RecordType::SequenceExample
        } else {
            RecordType::Example
        }
    }

    /// All features, by name; a context feature before the feature list of its name.
    pub fn features(&self) -> impl Iterator<Item = &FeatureSummary> {
        let mut features: Vec<_> =
            self.sides.iter().flat_map(|side| &side.features).filter(|f| f.present > 0).collect();
        features.sort_by(|a, b| order(a, b));
        features.into_iter()
    }

    /// The role that a feature has in records of this type.
    pub fn role(&self, feature: &FeatureSummary, record_type: RecordType) -> Role {
        match (feature.role, record_type) {
            (Role::Feature, RecordType::SequenceExample) => Role::Context,
            (role, _) => role,
        }
    }

    /// Whether a record has a feature with no kind set.
    pub fn has_unset(&self) -> bool {
        self.sides.iter().flat_map(|side| &side.features).any(|f| f.role == Role::Feature && f.unset > 0)
    }

    /// The first feature, by name, that has more than one kind.
    pub fn conflict(&self) -> Option<&FeatureSummary> {
        self.features().find(|feature| feature.is_mixed())
    }

    /// Whether the [schema](Self::schema) of what was seen is also that of any larger data set whose every record fits
    /// it. A record fits that a [strict](crate::DecoderBuilder::with_strict) decoder of that schema reads without an
    /// error, without [unknown](crate::BatchDecoder::unknown_features) or
    /// [forgotten](crate::BatchDecoder::forgotten_features) features, and without one that [has lost its
    /// mark](crate::BatchDecoder::lost_unset).
    ///
    /// With it a sample can stand for a pass over everything: decode all with its schema, and where all fits, that pass
    /// would have found nothing else.
    pub fn is_settled(&self, layout: Layout, record_type: Option<RecordType>) -> bool {
        match record_type.unwrap_or_else(|| self.record_type()) {
            // Also which record is to blame is for all of them to say.
            RecordType::Raw => record_type.is_some(),
            record_type => {
                let mut features = self.features_of(record_type).peekable();
                features.peek().is_some() && features.all(|feature| feature.is_settled(layout))
            }
        }
    }

    /// The features that have a place in records of this type.
    fn features_of(&self, record_type: RecordType) -> impl Iterator<Item = &FeatureSummary> {
        self.features().filter(move |f| record_type != RecordType::Example || f.role == Role::Feature)
    }

    /// The schema that holds all that was seen: columns by name, our own last. The records are what
    /// [`record_type`](Self::record_type) says, unless `record_type` says otherwise.
    ///
    /// # Errors
    /// [`ErrorKind::MixedKinds`] where a feature has more than one kind.
    pub fn schema(&self, layout: Layout, record_type: Option<RecordType>) -> Result<SchemaRef> {
        self.schema_with(layout, record_type, OnConflict::Fail)
    }

    /// As [`schema`](Self::schema), where a feature of more than one kind may have a column for each of them.
    ///
    /// # Errors
    /// As there, unless such features are split.
    pub fn schema_with(
        &self,
        layout: Layout,
        record_type: Option<RecordType>,
        on_conflict: OnConflict,
    ) -> Result<SchemaRef> {
        let record_type = record_type.unwrap_or_else(|| self.record_type());
        if record_type == RecordType::Raw {
            return Ok(schema::raw_schema(Values::Binary));
        }
        let mut columns = Vec::new();
        for feature in self.features_of(record_type) {
            if feature.is_mixed() && on_conflict == OnConflict::Fail {
                return Err(mixed(feature));
            }
            let is_mixed = feature.is_mixed();
            columns.extend(feature.columns(layout, self.role(feature, record_type)).map(|column| (column, is_mixed)));
        }
        let named = columns.iter().map(|(column, is_mixed)| Named {
            role: column.role,
            feature: &column.feature,
            kind: is_mixed.then(|| column.values.kind()),
        });
        let names = column_names(named);
        let mut fields: Vec<_> = columns.iter().zip(names).map(|((column, _), name)| column.field(&name)).collect();
        fields.sort_by(|a, b| a.name().cmp(b.name()));
        fields.extend(self.has_unset().then(schema::unset_field));
        Ok(schema::with_record_type(fields, record_type))
    }
}

/// The one whose place comes first.
fn first<T>(one: Option<(Place, T)>, other: Option<(Place, T)>) -> Option<(Place, T)> {
    match (one, other) {
        (Some(one), Some(other)) => Some(if one.0 <= other.0 { one } else { other }),
        (one, other) => one.or(other),
    }
}

fn order(a: &FeatureSummary, b: &FeatureSummary) -> Ordering {
    (&a.name, a.role).cmp(&(&b.name, b.role))
}

fn mixed(feature: &FeatureSummary) -> Error {
    let place = |(kind, seen): (Kind, &KindSummary)| {
        let Place { shard, record, offset } = seen.first;
        format!("{} in shard {shard}, record {record} (byte {offset})", kind.name())
    };
    let places: Vec<_> = feature.kinds().map(place).collect();
    let message = format!("has more than one kind: {}", places.join(", "));
    Error::usage(ErrorKind::MixedKinds(message)).with_feature(&feature.name)
}

/// Infers the schema of a whole stream in memory.
///
/// # Errors
/// A damaged stream, or a feature of more than one kind.
pub fn infer_schema(bytes: &[u8], layout: Layout) -> Result<SchemaRef> {
    let mut summary = Summary::new(0);
    let mut chunker = Chunker::new(bytes.len(), Limits::default());
    let mut rest = bytes;
    while !rest.is_empty() {
        let taken = chunker.fill(rest);
        rest = rest.get(taken..).unwrap_or_default();
        if let Some(records) = chunker.cut()? {
            summary.observe(&records, VerifyCrc::Always)?;
        }
    }
    chunker.finish()?;
    summary.schema(layout, None)
}
