//! The columns of the CSV and JSON files of a data set: a column has one type in all files, so that they are parts of one table.

use std::sync::Arc;

use arrow_schema::{Schema, SchemaRef};
use tfarrow_dataset::{Error, ErrorKind, OnProgress, Result, Shard, ShardFormat, try_map};

use crate::{
    json_type::{MAX_COLUMNS, ObjectType},
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

/// Infers the columns of the CSV and JSON files among `shards` on up to `threads` threads. The shards and their clones keep them,
/// so that later readers do not infer them again. A column has the type of its values in all files. Columns that are lists or
/// objects in some files, and have another form in others, have the types of each file.
///
/// # Errors
/// The first file that cannot be read, or has rows that cannot be parsed, with their line. [`ErrorKind::Stopped`] if `progress`,
/// which is called without progress before each file, stops the pass.
pub fn unify_text(shards: &[Shard], columns: TextColumns, threads: usize, progress: &OnProgress<'_>) -> Result<()> {
    let texts: Vec<_> = shards.iter().filter(|shard| shard.format.is_text() && !shard.has_text_columns()).collect();
    let found = try_map(&texts, threads, |_, shard| match progress(0, 0).is_break() {
        true => Err(Error::new(&shard.path, ErrorKind::Stopped)),
        false => infer_types(shard, u64::MAX),
    })?;
    let mut all = ObjectType::default();
    found.iter().for_each(|(own, _)| all.merge(own));
    let mut last: Option<SchemaRef> = None;
    for (shard, (own, rows)) in texts.iter().zip(&found) {
        let names = if columns == TextColumns::OfAll { &all } else { own };
        let widened = own.widened(names, &all, shard.format == ShardFormat::Csv);
        if widened.field_count() > MAX_COLUMNS {
            let what = format!("the columns of this file and of those before it have more than {MAX_COLUMNS} fields");
            return Err(unreadable(&shard.path, what));
        }
        // Most files have the same columns.
        let schema = schema_of(widened);
        let schema = last.take().filter(|last| *last == schema).unwrap_or(schema);
        last = Some(Arc::clone(&schema));
        shard.text_columns(|| Ok((schema, *rows)))?;
    }
    Ok(())
}

/// The columns of these types.
pub(crate) fn schema_of(types: ObjectType) -> SchemaRef {
    Arc::new(Schema::new(types.into_fields()))
}
