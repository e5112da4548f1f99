//! Inference: a summary of each feature of a data set, from which schemas, reports and errors about
//! types are made.
//!
//! Summaries merge, so that shards and chunks are observed in any order and on any thread. A
//! feature of several kinds is not an error here: each kind is counted, and its first place is
//! kept.
//!
//! ```text
//! record 0   a = [1]      b = ["x"]          a   int64_list: 2 lists, 3 values, lengths 1 to 2
//! record 1   a = [2, 3]                  ─▶  b   bytes_list: 1 list, UTF-8; present in 1 of 2 records
//!
//! schema (Layout::Auto)                      a: List<Int64>, b: Utf8 (nullable)
//! ```
//!
//! ```
//! use tfarrow_codec::{Layout, Limits, Summary, VerifyCrc, frame};
//! # use arrow_array::{ArrayRef, Int64Array, RecordBatch};
//! # fn main() -> tfarrow_codec::Result<()> {
//! # let column: ArrayRef = std::sync::Arc::new(Int64Array::from(vec![1, 2, 3]));
//! # let batch = RecordBatch::try_from_iter([("x", column)])?;
//! # let mut stream = Vec::new();
//! # tfarrow_codec::WriterBuilder::new().build_encoder(batch.schema())?.encode(&batch, &mut stream)?;
//! // A stream of three records with one feature.
//! let mut summary = Summary::new(0);
//! for records in frame::records(&stream, Limits::default()) {
//!     summary.observe(&records?, VerifyCrc::Always)?;
//! }
//! let x = summary.features().next().unwrap();
//! assert_eq!((x.name.as_str(), x.present, summary.records()), ("x", 3, 3));
//! let schema = summary.schema(Layout::Auto, None)?;
//! assert_eq!(schema.field(0).data_type(), &arrow_schema::DataType::Int64);
//! # Ok(()) }
//! ```
//!
//! [`infer_schema`] does all of this for anything that implements [`Read`](std::io::Read).

mod column_names;
mod counts;
mod feature_summary;
mod observer;
mod reader;
mod record;
mod seen;
mod side_summary;
mod state;
mod text;
mod wire_message;

use std::{cmp::Ordering, fmt};

use arrow_schema::{Field, SchemaRef};
use serde::{Deserialize, Serialize};

use self::{
    column_names::{Named, column_names},
    counts::RecordCounts,
    record::Observer,
    side_summary::SideSummary,
};
pub use self::{
    feature_summary::{FeatureSummary, KindSummary},
    observer::{BytesValues, RecordObserver, SeenFeature, SeenRecord, SingleValue, ValueList},
    reader::infer_schema,
    state::SummaryState,
    text::has_control_character,
    wire_message::{WireField, WireFields, WireMessage, WireValue},
};
use crate::{
    Error, ErrorKind, Limit, Limits, RecordType, Records, Result, VerifyCrc, WireError,
    example::{
        Validator,
        list::{ExampleList, is_example_list},
    },
    named_values,
    schema::{self, Layout, Role, Values},
};

/// The place of a record in a data set. Places are ordered by shard, then by record.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
pub struct Place {
    /// The number of the shard, as given to [`Summary::new`].
    pub shard: u32,
    /// The number of the record in its shard, from 0.
    pub record: u64,
    /// The offset in bytes of the record's frame in the decompressed shard; `None` for a record
    /// that was encoded from a row of a file of another format, such as Parquet.
    pub offset: Option<u64>,
}

impl Place {
    /// Returns the error that the record at this place does not parse as one of this type.
    pub fn parse_error(self, error: WireError, record_type: RecordType) -> Error {
        self.error(ErrorKind::of_wire(error, record_type))
    }

    /// Returns the error of a kind in the record at this place.
    fn error(self, kind: ErrorKind) -> Error {
        let error = Error::at(kind, self.record, self.offset.unwrap_or_default());
        if self.offset.is_some() {
            error
        } else {
            error.of_row()
        }
    }
}

/// The record and its offset, or the row.
impl fmt::Display for Place {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.offset {
            Some(offset) => write!(f, "record {} (byte {offset})", self.record),
            None => write!(f, "row {}", self.record),
        }
    }
}

/// The treatment of a feature that has several kinds in a data set.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub enum OnConflict {
    /// An error.
    #[default]
    Fail,
    /// A column for each kind.
    Split,
}

named_values!(OnConflict {
    Fail = "error": "Stop with an error",
    Split = "split": "Make a column for each kind, as x/int64_list, which converting back joins",
});

/// The summary of a data set, or of a part of it.
#[derive(Debug)]
pub struct Summary {
    shard: u32,
    /// The counts of its records.
    counts: RecordCounts,
    /// Reads one record at a time.
    observer: Observer,
    /// The features and the feature lists, indexed by [`Side`](crate::example::walk::Side).
    sides: [SideSummary; 2],
    /// The features of the examples in records that are an `ExampleListWithContext`, which have no
    /// feature lists.
    example_sides: [SideSummary; 2],
    limits: Limits,
    /// The type of the records, if the caller knows it.
    stated: Option<RecordType>,
    /// Whether names above the limits are ignored instead of being an error.
    ignores_excess_names: bool,
}

impl Summary {
    /// Creates an empty summary. The places of its records have this number of a shard.
    pub fn new(shard: u32) -> Self {
        Self::with_limits(shard, Limits::default())
    }

    /// Creates an empty summary with limits on the names that it keeps.
    pub fn with_limits(shard: u32, limits: Limits) -> Self {
        Self {
            shard,
            counts: RecordCounts::default(),
            observer: Observer::default(),
            sides: [
                SideSummary::new(Role::Feature, limits),
                SideSummary::new(Role::Sequence, limits),
            ],
            example_sides: [
                SideSummary::new(Role::Examples, limits),
                SideSummary::new(Role::Sequence, limits),
            ],
            limits,
            stated: None,
            ignores_excess_names: false,
        }
    }

    /// States the type of the records, which decides where their features are: in an Example, or in
    /// the Examples of an ExampleListWithContext, also if records have fields that the type does
    /// not define. By default, and for other types, each record decides.
    pub fn with_record_type(self, record_type: Option<RecordType>) -> Self {
        Self {
            stated: record_type,
            ..self
        }
    }

    /// Ignores names of features beyond [`Limits::features`] and [`Limits::name_bytes`] instead of
    /// failing. Which names are ignored depends on the order of observation, so do not derive a
    /// schema from the summary.
    pub fn ignoring_excess_names(self) -> Self {
        Self {
            ignores_excess_names: true,
            ..self
        }
    }

    /// Sets the number of the shard for further records.
    pub fn set_shard(&mut self, shard: u32) {
        self.shard = shard;
    }

    /// Adds records. A payload that is not an Example is only counted, and makes the record type
    /// raw.
    ///
    /// # Errors
    /// A CRC that does not match, a record that exceeds a limit, or more names than the limits
    /// allow. All records before that one are added.
    pub fn observe(&mut self, records: &Records, verify: VerifyCrc) -> Result<()> {
        self.observe_with(records, verify, &mut ())
    }

    /// Adds records, and passes each record that parses to `observer`, which may compute more than
    /// a summary.
    ///
    /// ```
    /// use tfarrow_codec::{Records, Summary, VerifyCrc, infer::{RecordObserver, SeenRecord, ValueList}};
    ///
    /// /// The sum of all integers.
    /// struct Sum(i64);
    ///
    /// impl RecordObserver for Sum {
    ///     fn record(&mut self, record: &mut SeenRecord<'_>) {
    ///         record.each_list(|_, list| {
    ///             if let ValueList::Int64(values) = list {
    ///                 self.0 += values.iter().sum::<i64>();
    ///             }
    ///         });
    ///     }
    /// }
    /// # fn main() -> tfarrow_codec::Result<()> {
    /// // Two `tf.Example` messages, {"x": 1} and {"x": 2}.
    /// let example = |x: u8| [10, 12, 10, 10, 10, 1, b'x', 18, 5, 26, 3, 10, 1, x];
    /// let messages = [example(1), example(2)];
    /// let records = Records::from_payloads(messages.iter().map(|message| &message[..]))?;
    /// let mut sum = Sum(0);
    /// Summary::new(0).observe_with(&records, VerifyCrc::Never, &mut sum)?;
    /// assert_eq!(sum.0, 3);
    /// # Ok(()) }
    /// ```
    ///
    /// # Errors
    /// The errors of [`observe`](Self::observe).
    pub fn observe_with<O: RecordObserver>(
        &mut self,
        records: &Records,
        verify: VerifyCrc,
        observer: &mut O,
    ) -> Result<()> {
        let shared = records.shared_features().example();
        for (index, data) in records.iter().enumerate() {
            if verify == VerifyCrc::Always {
                records.check_crc(index)?;
            }
            let record = records.first() + index as u64;
            let offset = records.offset(index);
            let place = Place {
                shard: self.shard,
                record,
                offset,
            };
            if let Err(error) = self.add(shared, data, place, observer) {
                if verify == VerifyCrc::OnParseFailure {
                    records.check_crc(index)?;
                }
                // A record above a limit may be an Example, so that it does not count as one that
                // does not parse.
                if error.is_limit() {
                    let record_type = if self.may_be_list(data) {
                        RecordType::ExampleList
                    } else {
                        RecordType::SequenceExample
                    };
                    return Err(records.parse_error(error, index, record_type, &self.limits));
                }
                self.counts.add_unparsable(data, place, error);
                observer.unparsable(place, error, data.len() as u64);
            }
            if self.refuses_names() {
                return Err(place.error(self.many_names()));
            }
        }
        Ok(())
    }

    /// Returns whether a name was above the limits, and such names are not ignored.
    fn refuses_names(&self) -> bool {
        self.counts.traits.overflow && !self.ignores_excess_names
    }

    /// Checks the names of another summary, which were added.
    fn check_names(&self) -> Result<()> {
        if self.refuses_names() {
            Err(Error::usage(self.many_names()))
        } else {
            Ok(())
        }
    }

    /// Makes the error that the names of features exceed the limits.
    fn many_names(&self) -> ErrorKind {
        let Limits {
            features: columns,
            name_bytes,
            ..
        } = self.limits;
        let passed = if self.all_sides().any(|side| side.names() >= columns) {
            Limit::Columns
        } else {
            Limit::NameBytes
        };
        ErrorKind::ManyNames {
            columns,
            name_bytes,
            passed,
        }
    }

    /// Adds a record that another summary has parsed, and passes it to `observer`. For summaries of
    /// slices of a data set.
    ///
    /// # Errors
    /// More names than the limits allow.
    pub fn observe_parsed<O: RecordObserver>(
        &mut self,
        record: &SeenRecord<'_>,
        observer: &mut O,
    ) -> Result<()> {
        // The record was parsed by the other summary.
        let parsed = self.add(record.shared, record.data(), record.place(), observer);
        debug_assert_eq!(parsed, Ok(()));
        if self.refuses_names() {
            return Err(record.place().error(self.many_names()));
        }
        Ok(())
    }

    /// Adds a record that parses, with the features that it shares with others, which lists of
    /// Examples do not have.
    ///
    /// # Errors
    /// [`WireError`] for a record that does not parse; it changes nothing.
    fn add<O: RecordObserver>(
        &mut self,
        shared: &[u8],
        data: &[u8],
        place: Place,
        observer: &mut O,
    ) -> std::result::Result<(), WireError> {
        if self.may_be_list(data) && self.add_list(data, place)? {
            return Ok(());
        }
        self.observer
            .record((shared, data), true, &mut self.sides, place, observer)?;
        let Observer {
            traits, foreign, ..
        } = self.observer;
        self.counts.add(data);
        self.counts.traits.merge(traits);
        self.counts.examples += u64::from(traits.has_value && foreign.is_none());
        self.counts.note_foreign(place, foreign);
        Ok(())
    }

    /// Returns whether a record has the type `ExampleListWithContext`: by the stated type, or else
    /// by its own form.
    #[inline]
    fn may_be_list(&self, data: &[u8]) -> bool {
        match self.stated {
            Some(RecordType::ExampleList) => true,
            Some(RecordType::Example | RecordType::SequenceExample) => false,
            Some(RecordType::Message | RecordType::Raw) | None => is_example_list(data),
        }
    }

    /// Adds a record that is an `ExampleListWithContext`. Returns `false`, and changes nothing, if
    /// it has an unknown field and its type is not stated.
    ///
    /// # Errors
    /// [`WireError`] for a record of which a part is no Example, or that exceeds a limit; it
    /// changes nothing.
    #[cold]
    fn add_list(&mut self, data: &[u8], place: Place) -> std::result::Result<bool, WireError> {
        // A record counts completely or not at all, so that all of it is checked first.
        let mut validator = Validator::new(RecordType::ExampleList, self.limits);
        validator.check(data)?;
        if validator.has_foreign() && self.stated.is_none() {
            return Ok(false);
        }
        let list = ExampleList::parse(data, self.limits.nesting)?;
        let mut foreign = list.foreign.map(|(field, _)| field);
        let context = list.context.iter().map(|context| (&**context, false));
        let examples = list.examples.iter().map(|example| (*example, true));
        for (part, is_example) in context.chain(examples) {
            let sides = if is_example {
                &mut self.example_sides
            } else {
                &mut self.sides
            };
            self.observer
                .record((&[], part), false, sides, place, &mut ())?;
            self.counts.traits.overflow |= self.observer.traits.overflow;
            foreign = foreign.or(self.observer.foreign);
        }
        self.counts.add(data);
        self.counts.note_foreign(place, foreign);
        self.counts.note_list(place, list.examples.len());
        Ok(true)
    }

    /// Adds the records of another summary, for instance of another shard.
    ///
    /// Of two places, the smaller one is kept. The result of several merges thus does not depend on
    /// their order.
    ///
    /// # Errors
    /// [`ErrorKind::ManyNames`] if the names of both exceed the limits.
    pub fn merge(&mut self, other: &Self) -> Result<()> {
        self.counts.merge(other.counts);
        for feature in other.all_sides().flat_map(|side| &side.features) {
            self.add_feature(feature);
        }
        self.check_names()
    }

    /// Returns the number of records.
    pub fn records(&self) -> u64 {
        self.counts.records
    }

    /// Returns the size of all payloads in bytes.
    pub fn bytes(&self) -> u64 {
        self.counts.bytes
    }

    /// Returns the number of records that look like Examples: they parse, have a feature with a
    /// value, and no unknown field.
    pub fn examples(&self) -> u64 {
        self.counts.examples
    }

    /// Returns whether names above the limits were ignored.
    pub fn has_excess_names(&self) -> bool {
        self.counts.traits.overflow
    }

    /// Returns the first record that is neither an Example nor a SequenceExample, with the parse
    /// error.
    pub fn first_unparsable(&self) -> Option<(Place, WireError)> {
        self.counts.first_unparsable
    }

    /// Returns the number of records that are neither an Example nor a SequenceExample.
    pub fn unparsable(&self) -> u64 {
        self.counts.unparsable
    }

    /// Returns the first record with a field that neither an Example nor a SequenceExample has, and
    /// the number of that field.
    pub fn foreign(&self) -> Option<(Place, u32)> {
        self.counts.foreign
    }

    /// Removes the records that do not parse from the counts, for a reader that skips them. The
    /// summary is then that of the other records. Returns the number of removed records, and the
    /// shard and the error of the first one.
    pub fn drop_unparsable(&mut self) -> Option<(u64, u32, Error)> {
        let unparsable = std::mem::take(&mut self.counts.unparsable);
        self.counts.records -= unparsable;
        self.counts.bytes -= std::mem::take(&mut self.counts.unparsable_bytes);
        self.counts.foreign = None;
        let (place, error) = self.counts.first_unparsable.take()?;
        let record_type = self.stated.unwrap_or_else(|| self.parsed_type());
        Some((
            unparsable,
            place.shard,
            place.parse_error(error, record_type),
        ))
    }

    /// Returns the first record that is an `ExampleListWithContext`.
    pub fn first_list(&self) -> Option<Place> {
        self.counts.first_list
    }

    /// Returns the number of messages that may have a feature of this [role](Self::role): records,
    /// or the examples in them.
    pub fn instances(&self, role: Role) -> u64 {
        if role == Role::Examples {
            self.counts.listed_examples
        } else {
            self.counts.records
        }
    }

    /// Returns the type of the records: Example or SequenceExample if every record parses, some
    /// feature has a value, and no record has an unknown field; ExampleListWithContext if every
    /// record with a value is one; otherwise raw. Protobuf skips unknown fields, so that other
    /// messages often parse: without the rules about values and unknown fields they would be
    /// Examples without features.
    pub fn record_type(&self) -> RecordType {
        if self.counts.first_unparsable.is_some() {
            RecordType::Raw
        } else {
            self.parsed_type()
        }
    }

    /// Returns the type of the records that parse, by the rules of
    /// [`record_type`](Self::record_type).
    pub fn parsed_type(&self) -> RecordType {
        let traits = self.counts.traits;
        let is_list = self.counts.first_list.is_some();
        if self.counts.foreign.is_some() || is_list == traits.has_value {
            RecordType::Raw
        } else if is_list {
            if traits.has_lists {
                RecordType::Raw
            } else {
                RecordType::ExampleList
            }
        } else if traits.has_lists {
            RecordType::SequenceExample
        } else {
            RecordType::Example
        }
    }

    /// Returns all features, ordered by name; of one name, a context feature before a feature list
    /// and before a feature of examples in lists.
    pub fn features(&self) -> impl Iterator<Item = &FeatureSummary> {
        let mut features: Vec<_> = self
            .all_sides()
            .flat_map(|side| &side.features)
            .filter(|f| f.present > 0)
            .collect();
        features.sort_by(|a, b| order(a, b));
        features.into_iter()
    }

    /// Returns the names of the features that are no feature lists, by their
    /// [numbers](SeenFeature::number).
    pub fn feature_names(&self) -> impl Iterator<Item = &str> {
        let [features, _] = &self.sides;
        features.features.iter().map(|feature| &*feature.name)
    }

    /// Returns the role of a feature in records of this type.
    pub fn role(&self, feature: &FeatureSummary, record_type: RecordType) -> Role {
        match (feature.role, record_type) {
            (Role::Feature, RecordType::SequenceExample | RecordType::ExampleList) => Role::Context,
            (role, _) => role,
        }
    }

    /// Returns the maps of records, and of examples in lists.
    fn all_sides(&self) -> impl Iterator<Item = &SideSummary> {
        self.sides.iter().chain(&self.example_sides)
    }

    /// Returns whether a record has a feature of this role, which is [`Role::Feature`] or
    /// [`Role::Examples`], without a kind.
    pub fn has_unset(&self, role: Role) -> bool {
        self.all_sides()
            .flat_map(|side| &side.features)
            .any(|f| f.role == role && f.unset > 0)
    }

    /// Returns the first feature, by name, with several kinds.
    pub fn conflict(&self) -> Option<&FeatureSummary> {
        self.features().find(|feature| feature.is_mixed())
    }

    /// Returns whether the [schema](Self::schema) of the records so far is suitable for any larger
    /// data set all records of which fit it. A record fits if a
    /// [strict](crate::ReaderBuilder::with_strict) decoder of the schema reads it without an
    /// error, without [unknown](crate::BatchDecoder::unknown_features) or
    /// [excess](crate::BatchDecoder::excess_features) features, and without [features without a
    /// kind that no column names](crate::BatchDecoder::lost_unset).
    ///
    /// A sample with a settled schema can replace a pass over all records: if all of them fit while
    /// decoding, that pass would have inferred the same schema, except that it may tell text from
    /// bytes in another way. The values of the sample decide about that, since all values fit a
    /// column of bytes, and all that are UTF-8 a column of text.
    pub fn is_settled(&self, layout: Layout, record_type: Option<RecordType>) -> bool {
        match record_type.unwrap_or_else(|| self.record_type()) {
            // Whether all records are raw, and which one is the first that does not parse, depends
            // on all of them.
            RecordType::Raw => record_type.is_some(),
            // A decoder of lists does not report which records fit.
            RecordType::ExampleList => false,
            record_type => {
                self.features_of(record_type).next().is_some()
                    && self.first_unsettled(layout, record_type).is_none()
            }
        }
    }

    /// Returns the first feature of records of this type whose column a further record may change,
    /// although the record fits it.
    pub fn first_unsettled(
        &self,
        layout: Layout,
        record_type: RecordType,
    ) -> Option<&FeatureSummary> {
        self.features_of(record_type)
            .find(|feature| !feature.is_settled(layout))
    }

    /// Returns the features that records of this type have. Raw records and messages have none.
    pub fn features_of(&self, record_type: RecordType) -> impl Iterator<Item = &FeatureSummary> {
        self.features().filter(move |feature| match record_type {
            RecordType::Example => feature.role == Role::Feature,
            RecordType::SequenceExample => feature.role != Role::Examples,
            RecordType::ExampleList => feature.role != Role::Sequence,
            RecordType::Message | RecordType::Raw => false,
        })
    }

    /// Returns the schema of all records: columns ordered by name, then virtual columns.
    /// `record_type` overrides the [inferred type](Self::record_type).
    ///
    /// # Errors
    /// [`ErrorKind::MixedKinds`] for a feature of several kinds.
    pub fn schema(&self, layout: Layout, record_type: Option<RecordType>) -> Result<SchemaRef> {
        self.schema_with(layout, record_type, OnConflict::Fail)
    }

    /// Returns the schema as [`schema`](Self::schema) does, with a choice for features of several
    /// kinds.
    ///
    /// ```text
    /// a: int64_list and bytes_list     Fail: an error     Split: columns "a/int64_list" and "a/bytes_list"
    /// ```
    ///
    /// # Errors
    /// [`ErrorKind::MixedKinds`] for a feature of several kinds, if `on_conflict` is
    /// [`OnConflict::Fail`].
    pub fn schema_with(
        &self,
        layout: Layout,
        record_type: Option<RecordType>,
        on_conflict: OnConflict,
    ) -> Result<SchemaRef> {
        let record_type = record_type.unwrap_or_else(|| self.record_type());
        match record_type {
            RecordType::Raw => return Ok(schema::raw_schema(Values::Binary)),
            RecordType::Message => {
                let reason =
                    "the columns of messages follow from their descriptor, which is not given"
                        .to_owned();
                return Err(Error::usage(ErrorKind::Descriptors(reason)));
            }
            RecordType::Example | RecordType::SequenceExample | RecordType::ExampleList => {}
        }
        if on_conflict == OnConflict::Fail
            && let Some(feature) = self
                .features_of(record_type)
                .find(|feature| feature.is_mixed())
        {
            return Err(mixed(feature));
        }
        Ok(self.schema_of_features(layout, record_type, |_| true))
    }

    /// Returns the schema of the features for which `is_wanted` is true, of records that have
    /// features. A feature of several kinds has a column for each of them.
    pub fn schema_of_features(
        &self,
        layout: Layout,
        record_type: RecordType,
        is_wanted: impl Fn(&FeatureSummary) -> bool,
    ) -> SchemaRef {
        let wanted = self
            .features_of(record_type)
            .filter(|feature| is_wanted(feature));
        let (examples, others): (Vec<_>, Vec<_>) =
            wanted.partition(|feature| feature.role == Role::Examples);
        let mut fields = self.fields(others, layout, record_type);
        if record_type == RecordType::ExampleList {
            // Each example is decoded as a record of its own.
            let mut of_example = self.fields(examples, layout, RecordType::Example);
            // A struct has at least one field, since Parquet has no others.
            let has_unset = of_example.is_empty() || self.has_unset(Role::Examples);
            of_example.extend(has_unset.then(schema::unset_field));
            fields.push(schema::examples_field(of_example.into(), &fields));
        }
        fields.extend(self.has_unset(Role::Feature).then(schema::unset_field));
        schema::with_record_type(fields, record_type)
    }

    /// Returns the fields of the columns of features, ordered by name.
    fn fields(
        &self,
        features: Vec<&FeatureSummary>,
        layout: Layout,
        record_type: RecordType,
    ) -> Vec<Field> {
        let mut columns = Vec::new();
        for feature in features {
            let role = match record_type {
                RecordType::Example => Role::Feature,
                _ => self.role(feature, record_type),
            };
            columns.extend(
                feature
                    .columns(layout, role)
                    .map(|column| (column, feature.is_mixed())),
            );
        }
        let named = columns.iter().map(|(column, is_mixed)| Named {
            role: column.role,
            feature: &column.feature,
            kind: is_mixed.then(|| column.values.kind()),
        });
        let names = column_names(named);
        let mut fields: Vec<_> = columns
            .iter()
            .zip(names)
            .map(|((column, _), name)| column.field(&name))
            .collect();
        fields.sort_by(|a, b| a.name().cmp(b.name()));
        fields
    }
}

/// Orders features by name, then by role.
fn order(a: &FeatureSummary, b: &FeatureSummary) -> Ordering {
    (&a.name, a.role).cmp(&(&b.name, b.role))
}

/// Makes the error of a feature of several kinds, with the first place of each.
fn mixed(feature: &FeatureSummary) -> Error {
    let mut places = Vec::new();
    for (kind, seen) in feature.kinds() {
        let place = seen.first;
        places.push(format!("{} in shard {}, {place}", kind.name(), place.shard));
    }
    let message = format!("has more than one kind: {}", places.join(", "));
    Error::usage(ErrorKind::MixedKinds(message)).with_feature(&feature.name)
}
