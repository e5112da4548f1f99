//! The columns of the CSV and JSON files of a data set: a column has one type in all files, so that
//! they are parts of one table.

use std::sync::Arc;

use arrow_schema::{Schema, SchemaRef};
use tfarrow_dataset::{Error, ErrorKind, OnProgress, Result, Shard, internals::try_map};

use crate::{
    json_type::{MAX_COLUMNS, ObjectType},
    text::Text,
    text_types::infer_types,
    unreadable::unreadable,
};

/// The columns of each CSV and JSON file of a data set.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum TextColumns {
    /// Those of the file.
    OfFile,
    /// Those of all files, in the order of the first file that has each.
    OfAll,
}

/// What the rows of a text determine.
#[derive(Clone, Debug)]
pub struct TextSchema {
    /// The columns.
    pub schema: SchemaRef,
    /// The number of rows that the columns were inferred from.
    pub rows: u64,
    /// Whether each row is on a line of its own, so that a row begins after each line feed. Known
    /// of a complete text only.
    pub has_row_per_line: bool,
}

/// Infers the columns of the CSV and JSON files among `shards` on up to `threads` threads. The
/// shards and their clones keep them, so that later readers do not infer them again. See [`unify`].
///
/// # Errors
/// As [`unify`].
pub fn unify_text(
    shards: &[Shard],
    columns: TextColumns,
    threads: usize,
    progress: &OnProgress<'_>,
) -> Result<()> {
    let shards: Vec<_> = shards
        .iter()
        .filter(|shard| shard.format.is_text() && !shard.has_text_columns())
        .collect();
    let texts: Vec<_> = shards.iter().map(|shard| Text::of_shard(shard)).collect();
    for (shard, found) in shards
        .iter()
        .zip(unify(&texts, columns, u64::MAX, threads, progress)?)
    {
        shard.text_columns(|| Ok((found.schema, found.rows)))?;
    }
    Ok(())
}

/// Infers the columns of texts from the first rows of each, at most `max_rows`, on up to `threads`
/// threads. A column has the type of its values in all texts. Columns that are lists or objects in
/// some texts, and have another form in others, have the types of each text.
///
/// # Errors
/// The first text that cannot be read, or has rows that cannot be parsed, with their line.
/// [`ErrorKind::Stopped`] if `progress`, which is called without progress before each text, stops
/// the pass.
pub fn unify(
    texts: &[Text],
    columns: TextColumns,
    max_rows: u64,
    threads: usize,
    progress: &OnProgress<'_>,
) -> Result<Vec<TextSchema>> {
    let found = try_map(texts, threads, |_, text| match progress(0, 0).is_break() {
        true => Err(Error::new(&text.path, ErrorKind::Stopped)),
        false => infer_types(text, max_rows),
    })?;
    let mut all = ObjectType::default();
    found.iter().for_each(|own| all.merge(&own.types));
    let mut last: Option<SchemaRef> = None;
    let mut unified = Vec::with_capacity(texts.len());
    for (text, own) in texts.iter().zip(&found) {
        let names = if columns == TextColumns::OfAll {
            &all
        } else {
            &own.types
        };
        let widened = own.types.widened(names, &all, !text.is_json());
        if widened.field_count() > MAX_COLUMNS {
            let what = format!(
                "the columns of this file and of those before it have more than {MAX_COLUMNS} fields"
            );
            return Err(unreadable(&text.path, what));
        }
        // Most files have the same columns.
        let schema = schema_of(widened);
        let schema = last.take().filter(|last| *last == schema).unwrap_or(schema);
        last = Some(Arc::clone(&schema));
        unified.push(TextSchema {
            schema,
            rows: own.rows,
            has_row_per_line: own.has_row_per_line,
        });
    }
    Ok(unified)
}

/// The columns of these types.
pub(crate) fn schema_of(types: ObjectType) -> SchemaRef {
    Arc::new(Schema::new(types.into_fields()))
}
