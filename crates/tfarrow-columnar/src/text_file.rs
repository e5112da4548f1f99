//! CSV and JSON files: all rows determine the types of the columns, and are then parsed to them.
//!
//! ```text
//! Text ─▶ TextReader ─▶ text_types: the types of the columns, the number of rows ─▶ text_columns: those of all files
//!      ─▶ TextReader ─▶ text_rows: batches
//! ```

use std::{collections::HashMap, ops::Range, sync::Arc};

use arrow_array::{RecordBatch, RecordBatchOptions, new_null_array};
use arrow_schema::{ArrowError, Fields, Schema, SchemaRef};
use tfarrow_dataset::{Result, Shard};

use crate::{
    catch_panic::until_error,
    csv_header::header,
    folder_columns::FolderColumns,
    text::{CsvForm, Text, TextForm},
    text_columns::schema_of,
    text_rows::{RowSelection, TextBatches},
    text_types::infer_types,
    unreadable::{unreadable, unreadable_arrow},
};

/// A CSV or JSON text, whose columns are known.
#[derive(Clone, Debug)]
pub struct TextFile {
    text: Text,
    schema: SchemaRef,
    /// The columns of the folders of a shard, after those of the text.
    folders: Option<FolderColumns>,
    /// The indices of the columns that are read; `None`: all.
    columns: Option<Arc<[usize]>>,
    selection: RowSelection,
    /// Whether the columns of CSV may have other names than in the header.
    may_rename: bool,
}

impl TextFile {
    /// A text with the columns `schema`. A column that the text does not have is null. The columns
    /// of CSV may have another order in the text; without a header, they are those of the schema in
    /// their order.
    pub fn new(text: Text, schema: SchemaRef) -> Self {
        let selection = RowSelection::default();
        Self {
            text,
            schema,
            folders: None,
            columns: None,
            selection,
            may_rename: false,
        }
    }

    /// Infers the columns of a file from all rows. Returns the file and the number of its rows. The
    /// shard and its clones keep both, so that only the first call reads the file.
    ///
    /// # Errors
    /// A file that cannot be read, and rows that cannot be parsed, with their line.
    pub fn open(shard: &Shard) -> Result<(Self, u64)> {
        let text = Text::of_shard(shard);
        let (schema, rows) = shard.text_columns(|| {
            let found = infer_types(&text, u64::MAX)?;
            Ok((schema_of(found.types), found.rows))
        })?;
        let folders = Some(FolderColumns::of(shard, &schema));
        Ok((
            Self {
                folders,
                ..Self::new(text, schema)
            },
            rows,
        ))
    }

    /// Infers the columns from the first rows, at most `rows`, and reads only these.
    ///
    /// # Errors
    /// As [`open`](Self::open).
    pub(crate) fn open_first(shard: &Shard, rows: u64) -> Result<Self> {
        let text = Text::of_shard(shard);
        let schema = schema_of(infer_types(&text, rows)?.types);
        let folders = Some(FolderColumns::of(shard, &schema));
        Ok(Self {
            folders,
            ..Self::new(text, schema).with_max_rows(rows)
        })
    }

    pub(crate) fn schema(&self) -> &SchemaRef {
        &self.schema
    }

    /// Reads the columns of these indices.
    pub fn with_columns(self, columns: Arc<[usize]>) -> Self {
        Self {
            columns: Some(columns),
            ..self
        }
    }

    /// Reads at most this number of rows. No more of the text is parsed.
    pub fn with_max_rows(mut self, max_rows: u64) -> Self {
        self.selection.max_rows = max_rows;
        self
    }

    /// Reads batches of at most this number of rows. They may be smaller, so that they have bounded
    /// memory.
    pub fn with_batch_rows(mut self, batch_rows: usize) -> Self {
        self.selection.batch_rows = batch_rows;
        self
    }

    /// Reads the rows that begin in a range of the bytes. Each row has to be on a line of its own.
    pub fn with_lines(mut self, lines: Range<u64>) -> Self {
        self.selection.lines = Some(lines);
        self
    }

    /// Takes the columns of CSV in their order in the text if the header has a name that is none of
    /// theirs.
    pub fn with_own_names(self) -> Self {
        Self {
            may_rename: true,
            ..self
        }
    }

    /// Reads the rows in batches. The columns of folders follow those of the file.
    ///
    /// # Errors
    /// A text that cannot be opened. A row that cannot be parsed is an error of the iterator.
    pub fn rows(&self) -> Result<impl Iterator<Item = Result<RecordBatch>> + Send + use<>> {
        let mut folders = self.folders.clone();
        let mut schema = Arc::clone(&self.schema);
        if let Some(wanted) = &self.columns {
            let of_text = match &mut folders {
                Some(folders) => folders.keep(wanted, schema.fields().len()),
                None => wanted.to_vec(),
            };
            let projected = schema
                .project(&of_text)
                .map_err(|e| unreadable_arrow(&self.text.path, e))?;
            schema = Arc::new(projected);
        }
        let mut selection = self.selection.clone();
        let in_text = match &self.text.form {
            TextForm::Json => Arc::clone(&schema),
            TextForm::Csv(form) => {
                let in_text = self.columns_in_text(form)?;
                selection.columns = Some(places(&schema, &in_text));
                in_text
            }
        };
        let mut rows = TextBatches::open(&self.text, &in_text, &selection)?;
        let path = self.text.path.clone();
        let mut arranged = None;
        Ok(until_error(move || {
            let Some(batch) = rows.next().transpose()? else {
                return Ok(None);
            };
            let arranged =
                arranged.get_or_insert_with(|| Arranged::new(&schema, batch.schema_ref()));
            let batch = arranged
                .batch(batch)
                .map_err(|e| unreadable_arrow(&path, e))?;
            match &folders {
                Some(folders) => folders.add(batch).map(Some),
                None => Ok(Some(batch)),
            }
        }))
    }

    /// The columns of a CSV text in their order in the text.
    fn columns_in_text(&self, form: &CsvForm) -> Result<SchemaRef> {
        if !form.has_header {
            return Ok(Arc::clone(&self.schema));
        }
        let names = header(&self.text, form)?;
        let known: HashMap<_, _> = self
            .schema
            .fields()
            .iter()
            .map(|field| (field.name(), field))
            .collect();
        let mut columns = Vec::with_capacity(names.len());
        for name in &names {
            match known.get(name) {
                Some(field) => columns.push(Arc::clone(field)),
                None if self.may_rename && names.len() == known.len() => {
                    return Ok(Arc::clone(&self.schema));
                }
                None => return Err(self.unknown(name)),
            }
        }
        let columns = Fields::from(columns);
        Ok(if columns == *self.schema.fields() {
            Arc::clone(&self.schema)
        } else {
            Arc::new(Schema::new(columns))
        })
    }

    /// The error that a name of the header is that of no column.
    fn unknown(&self, name: &str) -> tfarrow_dataset::Error {
        let what = match self.may_rename {
            true => {
                format!("the header has the column {name:?}, and the table has none of this name")
            }
            false => format!("has a new column {name:?}: it was changed meanwhile"),
        };
        unreadable(&self.text.path, what)
    }
}

/// The places of the columns `wanted` among those in a text, in ascending order.
fn places(wanted: &SchemaRef, in_text: &SchemaRef) -> Vec<usize> {
    let wanted: HashMap<_, _> = wanted
        .fields()
        .iter()
        .map(|field| (field.name(), ()))
        .collect();
    let names = in_text.fields().iter().enumerate();
    names
        .filter(|(_, field)| wanted.contains_key(field.name()))
        .map(|(place, _)| place)
        .collect()
}

/// The places of columns in the batches of a text.
struct Arranged {
    schema: SchemaRef,
    /// The place of each column; `None` for one that the text does not have.
    places: Vec<Option<usize>>,
}

impl Arranged {
    fn new(schema: &SchemaRef, in_text: &SchemaRef) -> Self {
        let known = in_text
            .fields()
            .iter()
            .enumerate()
            .map(|(place, field)| (field.name(), place));
        let known: HashMap<_, _> = known.collect();
        let places = schema
            .fields()
            .iter()
            .map(|field| known.get(field.name()).copied())
            .collect();
        Self {
            schema: Arc::clone(schema),
            places,
        }
    }

    /// The columns of a batch in the order of the schema, with nulls for those that the text does
    /// not have.
    fn batch(&self, batch: RecordBatch) -> Result<RecordBatch, ArrowError> {
        let rows = batch.num_rows();
        let mut columns = Vec::with_capacity(self.places.len());
        for (field, place) in self.schema.fields().iter().zip(&self.places) {
            columns.push(match place {
                Some(place) => Arc::clone(batch.column(*place)),
                None => new_null_array(field.data_type(), rows),
            });
        }
        let options = RecordBatchOptions::new().with_row_count(Some(rows));
        RecordBatch::try_new_with_options(Arc::clone(&self.schema), columns, &options)
    }
}
