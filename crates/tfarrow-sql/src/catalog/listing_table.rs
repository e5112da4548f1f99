//! Listing tables of DataFusion, over Parquet, Arrow, CSV and JSON files.

use std::{collections::HashMap, path::PathBuf, sync::Arc};

use arrow_schema::{ArrowError, SchemaRef};
use datafusion::{
    arrow::ipc::reader::StreamReader,
    catalog::TableProvider,
    common::plan_datafusion_err,
    datasource::listing::{ListingOptions, ListingTable, ListingTableConfig},
    error::{DataFusionError, Result},
    execution::SessionState,
    parquet::arrow::parquet_to_arrow_schema,
};
use futures::{StreamExt, TryStreamExt, stream};
use object_store::{ObjectMeta, ObjectStore, ObjectStoreExt};
use tfarrow_codec::schema::check_columns;
use tfarrow_columnar::check_message_types;
use tfarrow_datafusion::{
    TfRecordOptions,
    internals::{are_event_columns, external, urls},
};
use tfarrow_dataset::{Error, ErrorKind, Shard, ShardFormat, internals::catch_panic};

use crate::{
    catalog::{
        parquet_format::{check_footer, footer, table_columns},
        partitioned_table::PartitionedTable,
    },
    merged_schema::{check_different_names, check_same_columns, merged},
    text::format::TextFormat,
};

/// Bytes of an Arrow file in a store that are read first, to find its schema.
const HEAD_BYTES: u64 = 64 << 10;

/// Number of files whose schemas are read at the same time.
const FILES_AT_A_TIME: usize = 16;
/// Names of formats.
pub(crate) const ARROW: &str = "arrow";
pub(crate) const PARQUET: &str = "parquet";

/// A file format of DataFusion, with the options of a listing table.
#[derive(Debug)]
pub(crate) struct ListingFormat {
    /// The name that the format is registered under.
    pub(crate) name: &'static str,
    /// Options of the format, named as in a statement.
    pub(crate) options: HashMap<String, String>,
}

impl ListingFormat {
    /// A format without options.
    pub(crate) fn of(name: &'static str) -> Self {
        Self {
            name,
            options: HashMap::new(),
        }
    }
}

/// Creates the table of the files `shards`, which `source` names, whatever their extensions.
///
/// Folders such as `split=train` below the source become columns.
///
/// # Errors
/// A file cannot be read, or a table has more columns than the limits allow.
pub(crate) async fn listing_table(
    source: &str,
    shards: &[Shard],
    format: &ListingFormat,
    state: &SessionState,
) -> Result<Arc<dyn TableProvider>> {
    let ListingFormat { name, options } = format;
    let factory = state.get_file_format_factory(name);
    let factory =
        factory.ok_or_else(|| plan_datafusion_err!("{source}: {name} files cannot be read"))?;
    let options = ListingOptions::new(factory.create(state, options)?).with_file_extension("");
    let schema = schema(shards, name, &options, state).await?;
    let urls = shards.iter().map(urls::shard).collect::<Result<Vec<_>>>()?;
    let config = ListingTableConfig::new_with_multi_paths(urls).with_listing_options(options);
    let listing = ListingTable::try_new(config.with_schema(schema))?;
    let table = PartitionedTable::of(listing, shards)?;
    // Each column takes time in every plan, and memory in every batch.
    let limits = TfRecordOptions::of(state.config()).limits;
    let checked = check_columns(&table.schema(), &limits);
    checked.map_err(|error| external(Error::codec(source, error)))?;
    Ok(table)
}

/// Returns whether all rows of Parquet or Arrow files are TensorBoard's events, which were
/// converted from event files.
pub(crate) async fn are_converted_events(
    shards: &[Shard],
    format: &str,
    state: &SessionState,
) -> bool {
    let mut schemas = stream::iter(shards.to_vec())
        .map(|shard| async move { stored_schema(&shard, format, state).await.ok().flatten() })
        .buffered(FILES_AT_A_TIME);
    let mut known = None;
    while let Some(schema) = schemas.next().await {
        let Some(schema) = schema else { return false };
        if known.as_ref() != Some(&schema) && !are_event_columns(&schema) {
            return false;
        }
        known = Some(schema);
    }
    true
}

/// Reads the schemas of all files, and merges them.
async fn schema(
    shards: &[Shard],
    format: &str,
    options: &ListingOptions,
    state: &SessionState,
) -> Result<SchemaRef> {
    if let Some(format) = options.format.downcast_ref::<TextFormat>() {
        return text_schema(shards, format, state).await;
    }
    let files: Vec<_> = stream::iter(shards.to_vec())
        .map(|shard| shard_schema(shard, format, options, state))
        .buffered(FILES_AT_A_TIME)
        .try_collect()
        .await?;
    // DataFusion finds the columns of these files by their positions, and does not cast them.
    if format == ARROW {
        check_same_columns(&files)?;
    }
    merged(&files)
}

/// Reads the schema of a file, with the name of the file.
async fn shard_schema(
    shard: Shard,
    format: &str,
    options: &ListingOptions,
    state: &SessionState,
) -> Result<(String, SchemaRef)> {
    let file = shard.path.display().to_string();
    stored_schema(&shard, format, state)
        .await
        .map_err(|error| error.context(&file))?;
    let schema = match shard.is_remote() && shard.format == ShardFormat::Arrow {
        true => arrow_schema(&shard, state).await,
        false => options.infer_schema(state, &urls::shard(&shard)?).await,
    };
    match schema {
        Ok(schema) if format == PARQUET => Ok((file, table_columns(&schema))),
        Ok(schema) => Ok((file, schema)),
        Err(error) => Err(error.context(file)),
    }
}

/// Infers the columns of text files from all rows.
async fn text_schema(
    shards: &[Shard],
    format: &TextFormat,
    state: &SessionState,
) -> Result<SchemaRef> {
    let Some(first) = shards.first() else {
        return merged(&[]);
    };
    let store = state.runtime_env().object_store(urls::shard(first)?)?;
    let files = stream::iter(shards.to_vec())
        .map(|shard| shard_object(shard, Arc::clone(&store)))
        .buffered(FILES_AT_A_TIME)
        .try_collect()
        .await?;
    format.infer(state, &store, files).await
}

/// Finds the object of a file, with the name of the file.
async fn shard_object(shard: Shard, store: Arc<dyn ObjectStore>) -> Result<(ObjectMeta, PathBuf)> {
    let object = store.head(urls::shard(&shard)?.prefix()).await?;
    Ok((object, shard.path))
}

/// Reads the schema of a Parquet or Arrow file as the file has it; `None` for other formats, and
/// for a Parquet file that cannot be read.
///
/// # Errors
/// An Arrow file that cannot be read, two columns of one name, and those of [`check_footer`].
async fn stored_schema(
    shard: &Shard,
    format: &str,
    state: &SessionState,
) -> Result<Option<SchemaRef>> {
    match format {
        PARQUET => {
            let url = urls::shard(shard)?;
            let store = state.runtime_env().object_store(&url)?;
            let Ok(object) = store.head(url.prefix()).await else {
                return Ok(None);
            };
            let Ok(footer) = footer(state, store.as_ref(), &object).await else {
                return Ok(None);
            };
            check_footer(&shard.path, &footer)?;
            let footer = footer.file_metadata();
            let schema = catch_panic(|| {
                parquet_to_arrow_schema(footer.schema_descr(), footer.key_value_metadata())
            })?;
            Ok(schema.ok().map(Arc::new))
        }
        ARROW => {
            let schema = arrow_schema(shard, state).await?;
            check_different_names(
                &shard.path,
                schema.fields().iter().map(|field| field.name().as_str()),
            )?;
            Ok(Some(schema))
        }
        _ => Ok(None),
    }
}

/// Reads the schema of an Arrow file. DataFusion expects it at byte 8 of an object; in files whose
/// buffers are aligned to more than eight bytes, such as those of Arrow's own writer, there is
/// padding at that position.
async fn arrow_schema(shard: &Shard, state: &SessionState) -> Result<SchemaRef> {
    let url = urls::shard(shard)?;
    let store = state.runtime_env().object_store(&url)?;
    let mut asked = HEAD_BYTES;
    loop {
        let head = store
            .get_range(url.prefix(), 0..asked.min(shard.size))
            .await?;
        let stream = stream_of_head(&head);
        check_message_types(stream).map_err(|why| unreadable(shard, why))?;
        match catch_panic(|| Ok::<_, ArrowError>(StreamReader::try_new(stream, None)?.schema()))? {
            Ok(schema) => return Ok(schema),
            Err(error) if asked >= shard.size => {
                return Err(DataFusionError::from(error).context(shard.path.display().to_string()));
            }
            Err(_) => asked = asked.saturating_mul(16),
        }
    }
}

/// The error that the rows of a file cannot be read.
fn unreadable(shard: &Shard, why: String) -> DataFusionError {
    external(Error::new(
        &shard.path,
        ErrorKind::Rows {
            part: String::new(),
            row: 0,
            source: why.into(),
        },
    ))
}

/// The stream at the start of an Arrow file, after a magic number and padding.
fn stream_of_head(head: &[u8]) -> &[u8] {
    let stream = head.strip_prefix(b"ARROW1").unwrap_or(head);
    let padding = stream.iter().take_while(|byte| **byte == 0).count();
    stream.get(padding..).unwrap_or_default()
}
