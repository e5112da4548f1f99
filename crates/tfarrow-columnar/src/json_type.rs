//! The types of the values of JSON, within limits: an object of any size and depth would make
//! columns that take too much memory, or a file that no reader accepts.

use std::{collections::HashMap, fmt, mem, sync::Arc};

use arrow_schema::{DataType, Field, Fields};
use serde::{
    Deserializer,
    de::{DeserializeSeed, Error, MapAccess, SeqAccess, Visitor},
};

use crate::scalar_type::ScalarType;

/// Maximum number of columns of a file, with the fields of objects. Each takes memory for every
/// batch.
pub(crate) const MAX_COLUMNS: usize = 100_000;

/// Maximum number of lists and objects around a value, without the object that is the row. The
/// readers of Parquet and Arrow accept about 60.
const MAX_DEPTH: usize = 50;

/// Maximum number of values of a row, with those in lists and objects. The parser of rows holds
/// some 30 bytes of each.
const MAX_ROW_VALUES: usize = 32 << 20;

/// Maximum number of characters of the names in the message of an error.
const NAME_CHARS: usize = 300;

/// The type of the values of a field of JSON.
#[derive(Clone, Debug)]
pub(crate) enum JsonType {
    Scalar(ScalarType),
    List(Box<JsonType>),
    Object(ObjectType),
}

impl Default for JsonType {
    fn default() -> Self {
        Self::Scalar(ScalarType::None)
    }
}

/// The fields of objects, in the order of their first values.
#[derive(Clone, Debug, Default)]
pub(crate) struct ObjectType {
    fields: Vec<(String, JsonType)>,
    /// The index of each field by its name.
    indices: HashMap<String, usize>,
}

/// The size of a type, which is limited.
#[derive(Debug, Default)]
pub(crate) struct TypeSize {
    /// The number of fields so far, with those of objects in objects and lists.
    fields: usize,
    /// The number of lists and objects around the value that is being added.
    depth: usize,
    /// The number of values of the row so far.
    values: usize,
    /// The value that ended the parser.
    misfit: Option<Misfit>,
}

impl TypeSize {
    fn add_value(&mut self) -> Result<(), Misfit> {
        self.values += 1;
        match self.values > MAX_ROW_VALUES {
            true => Err(Misfit::new(format!(
                "a row has more than {MAX_ROW_VALUES} values"
            ))),
            false => Ok(()),
        }
    }

    /// Begins the content of a list or of an object.
    fn begin(&mut self) -> Result<(), Misfit> {
        if self.depth == MAX_DEPTH {
            return Err(Misfit::new(format!(
                "more than {MAX_DEPTH} lists and objects are nested in each other"
            )));
        }
        self.depth += 1;
        Ok(())
    }

    fn add_field(&mut self) -> Result<(), Misfit> {
        if self.fields == MAX_COLUMNS {
            let advice = "name fields by what they mean, and not by their values";
            return Err(Misfit::new(format!(
                "found more than {MAX_COLUMNS} fields in the file, with those of objects; {advice}"
            )));
        }
        self.fields += 1;
        Ok(())
    }

    /// The result of `fits`; a misfit is kept, and ends the parser.
    fn checked<T, E: Error>(&mut self, fits: Result<T, Misfit>) -> Result<T, E> {
        fits.map_err(|misfit| {
            self.misfit = Some(misfit);
            E::custom("a value does not fit")
        })
    }
}

/// Why a line cannot be added to a type.
pub(crate) enum LineFault {
    Value(Misfit),
    Json(serde_json::Error),
}

/// A value that does not fit the type of others: the names of the fields and of the lists around
/// it, from the innermost on.
#[derive(Debug)]
pub(crate) struct Misfit {
    within: Vec<String>,
    what: String,
}

impl Misfit {
    fn new(what: String) -> Self {
        Self {
            within: Vec::new(),
            what,
        }
    }

    /// The message, with the name of the field.
    pub(crate) fn message(mut self) -> String {
        self.within.reverse();
        let within = mem::take(&mut self.within).join(".");
        match within.char_indices().nth(NAME_CHARS) {
            _ if within.is_empty() => self.what,
            None => format!("field {within:?}: {}", self.what),
            Some((end, _)) => format!(
                "field {:?}..: {}",
                within.get(..end).unwrap_or_default(),
                self.what
            ),
        }
    }
}

impl JsonType {
    /// The type of the items of a list.
    fn as_list(&mut self) -> Result<&mut Self, Misfit> {
        if matches!(self, Self::Scalar(ScalarType::None)) {
            *self = Self::List(Box::default());
        }
        match self {
            Self::List(item) => Ok(item),
            other => Err(other.misfit("a list")),
        }
    }

    /// The fields of an object.
    fn as_object(&mut self) -> Result<&mut ObjectType, Misfit> {
        if matches!(self, Self::Scalar(ScalarType::None)) {
            *self = Self::Object(ObjectType::default());
        }
        match self {
            Self::Object(object) => Ok(object),
            other => Err(other.misfit("an object")),
        }
    }

    fn add_scalar(&mut self, of: ScalarType) -> Result<(), Misfit> {
        match self {
            _ if of == ScalarType::None => Ok(()),
            Self::Scalar(known) => {
                *known = known.merge(of);
                Ok(())
            }
            other => Err(other.misfit(of.name())),
        }
    }

    /// The error that a value has another form than this type.
    fn misfit(&self, found: &str) -> Misfit {
        let advice = "a field has values of one form, so that one value is a list too: [1]";
        Misfit::new(format!(
            "found {found}, expected {} as in earlier rows; {advice}",
            self.name()
        ))
    }

    /// Widens the type to that of values of both types, as far as these have the same form.
    fn merge(&mut self, other: &Self) {
        match (&mut *self, other) {
            (Self::Scalar(ScalarType::None), other) => *self = other.clone(),
            (Self::Scalar(one), Self::Scalar(other)) => *one = one.merge(*other),
            (Self::List(one), Self::List(other)) => one.merge(other),
            (Self::Object(one), Self::Object(other)) => one.merge(other),
            (Self::Scalar(_) | Self::List(_) | Self::Object(_), _) => {}
        }
    }

    /// Whether values of the type `other` have the form of this type, which was merged with it.
    fn has_form_of(&self, other: &Self) -> bool {
        match (self, other) {
            (_, Self::Scalar(ScalarType::None)) | (Self::Scalar(_), Self::Scalar(_)) => true,
            (Self::List(one), Self::List(other)) => one.has_form_of(other),
            (Self::Object(one), Self::Object(other)) => other
                .fields
                .iter()
                .all(|(name, other)| one.get(name).is_some_and(|one| one.has_form_of(other))),
            _ => false,
        }
    }

    /// The number of fields of objects in the type.
    fn field_count(&self) -> usize {
        match self {
            Self::Scalar(_) => 0,
            Self::List(item) => item.field_count(),
            Self::Object(object) => object.field_count(),
        }
    }

    fn name(&self) -> &'static str {
        match self {
            Self::Scalar(of) => of.name(),
            Self::List(_) => "a list",
            Self::Object(_) => "an object",
        }
    }

    fn data_type(self) -> DataType {
        match self {
            Self::Scalar(of) => of.data_type(),
            Self::List(item) => {
                DataType::List(Arc::new(Field::new_list_field(item.data_type(), true)))
            }
            Self::Object(object) => DataType::Struct(object.into_fields()),
        }
    }
}

impl ObjectType {
    /// Adds the object in a line. No more than the line is held in memory. The fields of a file
    /// count in `size`.
    pub(crate) fn add(&mut self, line: &[u8], size: &mut TypeSize) -> Result<(), LineFault> {
        (size.depth, size.values) = (0, 0);
        let mut parser = serde_json::Deserializer::from_slice(line);
        let parsed = parser
            .deserialize_map(AddObject { object: self, size })
            .and_then(|()| parser.end());
        parsed.map_err(|error| {
            size.misfit
                .take()
                .map_or(LineFault::Json(error), LineFault::Value)
        })
    }

    /// The index of a field, which is added if it is new.
    fn index_of(&mut self, name: &str, size: &mut TypeSize) -> Result<usize, Misfit> {
        if let Some(index) = self.indices.get(name) {
            return Ok(*index);
        }
        size.add_field()?;
        Ok(self.push(name, JsonType::default()))
    }

    /// Adds a new field. Returns its index.
    fn push(&mut self, name: &str, of: JsonType) -> usize {
        self.indices.insert(name.to_owned(), self.fields.len());
        self.fields.push((name.to_owned(), of));
        self.fields.len() - 1
    }

    /// The columns of CSV.
    pub(crate) fn of_columns(columns: impl IntoIterator<Item = (String, ScalarType)>) -> Self {
        let mut columns_of = Self::default();
        for (name, of) in columns {
            columns_of.push(&name, JsonType::Scalar(of));
        }
        columns_of
    }

    fn get(&self, name: &str) -> Option<&JsonType> {
        self.fields.get(*self.indices.get(name)?).map(|(_, of)| of)
    }

    /// Adds the fields of `other`, and widens the types of fields that both have. A field that has
    /// lists or objects in one of them, and another form in the other, keeps its type.
    pub(crate) fn merge(&mut self, other: &Self) {
        for (name, of) in &other.fields {
            let known = self
                .indices
                .get(name)
                .and_then(|index| self.fields.get_mut(*index));
            match known {
                Some((_, known)) => known.merge(of),
                None => drop(self.push(name, of.clone())),
            }
        }
    }

    /// The fields of these names with the types of `all`, which was merged with this type. A field
    /// whose values have another form than in `all`, or a form that its file cannot have
    /// (`has_scalars`), keeps its type.
    pub(crate) fn widened(&self, names: &Self, all: &Self, has_scalars: bool) -> Self {
        let mut widened = Self::default();
        for (name, _) in &names.fields {
            let of = match (self.get(name), all.get(name)) {
                (Some(own), Some(of))
                    if of.has_form_of(own)
                        && (!has_scalars || matches!(of, JsonType::Scalar(_))) =>
                {
                    of
                }
                (Some(own), _) => own,
                (None, Some(of)) => of,
                (None, None) => continue,
            };
            widened.push(name, of.clone());
        }
        widened
    }

    /// The number of fields, with those of objects in objects and lists.
    pub(crate) fn field_count(&self) -> usize {
        self.fields.iter().map(|(_, of)| 1 + of.field_count()).sum()
    }

    /// The fields as columns.
    pub(crate) fn into_fields(self) -> Fields {
        self.fields
            .into_iter()
            .map(|(name, of)| Field::new(name, of.data_type(), true))
            .collect()
    }
}

/// Adds a value of JSON to a type while it is parsed.
struct AddValue<'t> {
    of: &'t mut JsonType,
    size: &'t mut TypeSize,
}

impl<'de> DeserializeSeed<'de> for AddValue<'_> {
    type Value = ();

    fn deserialize<D: Deserializer<'de>>(self, parser: D) -> Result<(), D::Error> {
        parser.deserialize_any(self)
    }
}

impl AddValue<'_> {
    fn scalar<E: Error>(self, of: ScalarType) -> Result<(), E> {
        let added = self.size.add_value().and_then(|()| self.of.add_scalar(of));
        self.size.checked(added)
    }
}

impl<'de> Visitor<'de> for AddValue<'_> {
    type Value = ();

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("a value")
    }

    fn visit_unit<E: Error>(self) -> Result<(), E> {
        self.scalar(ScalarType::None)
    }

    fn visit_bool<E: Error>(self, _: bool) -> Result<(), E> {
        self.scalar(ScalarType::Boolean)
    }

    fn visit_i64<E: Error>(self, value: i64) -> Result<(), E> {
        self.scalar(ScalarType::of_int64(value))
    }

    fn visit_u64<E: Error>(self, value: u64) -> Result<(), E> {
        self.scalar(ScalarType::of_uint64(value))
    }

    fn visit_f64<E: Error>(self, _: f64) -> Result<(), E> {
        self.scalar(ScalarType::Number)
    }

    fn visit_str<E: Error>(self, text: &str) -> Result<(), E> {
        self.scalar(ScalarType::of_json_text(text))
    }

    fn visit_seq<A: SeqAccess<'de>>(self, mut items: A) -> Result<(), A::Error> {
        let Self { of, size } = self;
        let item = of.as_list().and_then(|item| size.begin().map(|()| item));
        let item = size.checked(item)?;
        while items
            .next_element_seed(AddValue { of: item, size })?
            .is_some()
        {}
        size.depth -= 1;
        Ok(())
    }

    fn visit_map<A: MapAccess<'de>>(self, fields: A) -> Result<(), A::Error> {
        let Self { of, size } = self;
        let object = of
            .as_object()
            .and_then(|object| size.begin().map(|()| object));
        let object = size.checked(object)?;
        AddObject { object, size }.visit_map(fields)?;
        size.depth -= 1;
        Ok(())
    }
}

/// Adds the fields of an object of JSON to a type while they are parsed.
struct AddObject<'t> {
    object: &'t mut ObjectType,
    size: &'t mut TypeSize,
}

impl<'de> Visitor<'de> for AddObject<'_> {
    type Value = ();

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("an object")
    }

    fn visit_map<A: MapAccess<'de>>(self, mut fields: A) -> Result<(), A::Error> {
        let Self { object, size } = self;
        let mut expected = 0;
        while let Some(index) = fields.next_key_seed(FindField {
            object,
            size,
            expected,
        })? {
            expected = index + 1;
            let Some((name, of)) = object.fields.get_mut(index) else {
                continue;
            };
            fields
                .next_value_seed(AddValue { of, size })
                .inspect_err(|_| {
                    if let Some(misfit) = &mut size.misfit {
                        misfit.within.push(name.clone());
                    }
                })?;
        }
        Ok(())
    }
}

/// Finds the index of a field by its name. A new field is added.
struct FindField<'t> {
    object: &'t mut ObjectType,
    size: &'t mut TypeSize,
    /// The index of the field after the last one: most objects have the same fields in the same
    /// order.
    expected: usize,
}

impl<'de> DeserializeSeed<'de> for FindField<'_> {
    type Value = usize;

    fn deserialize<D: Deserializer<'de>>(self, parser: D) -> Result<usize, D::Error> {
        parser.deserialize_str(self)
    }
}

impl Visitor<'_> for FindField<'_> {
    type Value = usize;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("the name of a field")
    }

    fn visit_str<E: Error>(self, name: &str) -> Result<usize, E> {
        let Self {
            object,
            size,
            expected,
        } = self;
        if object
            .fields
            .get(expected)
            .is_some_and(|(known, _)| known == name)
        {
            return Ok(expected);
        }
        let index = object.index_of(name, size);
        size.checked(index)
    }
}
