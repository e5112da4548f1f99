//! The types of the values of JSON, within limits: an object of any size and depth would make columns that take too much
//! memory, or a file that no reader accepts.

use std::{collections::HashMap, mem, sync::Arc};

use arrow_schema::{DataType, Field, Fields};
use serde_json::{Map, Value};

use crate::scalar_type::ScalarType;

/// Maximum number of columns of a file, with the fields of objects. Each takes memory for every batch.
pub(crate) const MAX_COLUMNS: usize = 100_000;

/// Maximum number of lists and objects around a value, without the object that is the row. The readers of Parquet and Arrow
/// accept about 60.
const MAX_DEPTH: usize = 50;

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
}

impl TypeSize {
    /// Adds the content of a list or of an object.
    fn inside(&mut self, add: impl FnOnce(&mut Self) -> Result<(), Misfit>) -> Result<(), Misfit> {
        if self.depth == MAX_DEPTH {
            return Err(Misfit::new(format!("more than {MAX_DEPTH} lists and objects are nested in each other")));
        }
        self.depth += 1;
        let added = add(self);
        self.depth -= 1;
        added
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
}

/// A value that does not fit the type of others: the names of the fields and of the lists around it, from the innermost on.
pub(crate) struct Misfit {
    within: Vec<String>,
    what: String,
}

impl Misfit {
    fn new(what: String) -> Self {
        Self { within: Vec::new(), what }
    }

    /// The message, with the name of the field.
    pub(crate) fn message(mut self) -> String {
        self.within.reverse();
        let within = mem::take(&mut self.within).join(".");
        match within.char_indices().nth(NAME_CHARS) {
            _ if within.is_empty() => self.what,
            None => format!("field {within:?}: {}", self.what),
            Some((end, _)) => format!("field {:?}..: {}", within.get(..end).unwrap_or_default(), self.what),
        }
    }
}

impl JsonType {
    /// Adds a value.
    fn add(&mut self, value: &Value, size: &mut TypeSize) -> Result<(), Misfit> {
        if matches!(self, Self::Scalar(ScalarType::None)) {
            match value {
                Value::Array(_) => *self = Self::List(Box::default()),
                Value::Object(_) => *self = Self::Object(ObjectType::default()),
                _ => {}
            }
        }
        match (self, value) {
            (_, Value::Null) => Ok(()),
            (Self::List(item), Value::Array(values)) => {
                size.inside(|size| values.iter().try_for_each(|value| item.add(value, size)))
            }
            (Self::Object(object), Value::Object(fields)) => size.inside(|size| object.add(fields, size)),
            (Self::Scalar(known), Value::Bool(_) | Value::Number(_) | Value::String(_)) => {
                *known = known.merge(ScalarType::of_json(value));
                Ok(())
            }
            (known, value) => {
                let advice = "a field has values of one form, so that one value is a list too: [1]";
                let (found, known) = (name_of(value), known.name());
                Err(Misfit::new(format!("found {found}, expected {known} as in earlier rows; {advice}")))
            }
        }
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
            (Self::Object(one), Self::Object(other)) => {
                other.fields.iter().all(|(name, other)| one.get(name).is_some_and(|one| one.has_form_of(other)))
            }
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
            Self::List(item) => DataType::List(Arc::new(Field::new_list_field(item.data_type(), true))),
            Self::Object(object) => DataType::Struct(object.into_fields()),
        }
    }
}

impl ObjectType {
    /// Adds an object. The fields of a file count in `size`.
    pub(crate) fn add(&mut self, object: &Map<String, Value>, size: &mut TypeSize) -> Result<(), Misfit> {
        for (index, (name, value)) in object.iter().enumerate() {
            // Most objects have the same fields in the same order.
            let is_next = self.fields.get(index).is_some_and(|(known, _)| known == name);
            let index = if is_next { index } else { self.index_of(name, size)? };
            let Some((_, known)) = self.fields.get_mut(index) else { continue };
            known.add(value, size).map_err(|mut misfit| {
                misfit.within.push(name.clone());
                misfit
            })?;
        }
        Ok(())
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

    /// Adds the fields of `other`, and widens the types of fields that both have. A field that has lists or objects in one of
    /// them, and another form in the other, keeps its type.
    pub(crate) fn merge(&mut self, other: &Self) {
        for (name, of) in &other.fields {
            let known = self.indices.get(name).and_then(|index| self.fields.get_mut(*index));
            match known {
                Some((_, known)) => known.merge(of),
                None => drop(self.push(name, of.clone())),
            }
        }
    }

    /// The fields of these names with the types of `all`, which was merged with this type. A field whose values have another form
    /// than in `all`, or a form that its file cannot have (`has_scalars`), keeps its type.
    pub(crate) fn widened(&self, names: &Self, all: &Self, has_scalars: bool) -> Self {
        let fits =
            |own: &JsonType, of: &JsonType| of.has_form_of(own) && (!has_scalars || matches!(of, JsonType::Scalar(_)));
        let mut widened = Self::default();
        for (name, _) in &names.fields {
            let of = match (self.get(name), all.get(name)) {
                (Some(own), Some(of)) if fits(own, of) => of,
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
        self.fields.into_iter().map(|(name, of)| Field::new(name, of.data_type(), true)).collect()
    }
}

/// The form of a value in messages.
pub(crate) fn name_of(value: &Value) -> &'static str {
    match value {
        Value::Array(_) => "a list",
        Value::Object(_) => "an object",
        value => ScalarType::of_json(value).name(),
    }
}
