//! Scans of CSV and JSON files.

use std::sync::Arc;

use arrow_schema::Schema;
use datafusion::{
    common::{
        config::{CsvOptions, JsonOptions},
        exec_err,
        parsers::CompressionTypeVariant,
    },
    datasource::{
        physical_plan::{FileScanConfig, FileSource},
        source::DataSourceExec,
        table_schema::TableSchema,
    },
    error::Result,
    physical_plan::ExecutionPlan,
};

use crate::{
    text::{options::TextOptions, source::TextSource},
    wire::ipc::{schema_of_bytes, schema_to_bytes},
};

/// The parts of a scan of text files that are no expressions. The files and the projection are sent
/// beside it.
#[derive(Clone, PartialEq, prost::Message)]
pub struct TextScanWire {
    /// The schema of the columns of the files.
    #[prost(bytes = "vec", tag = "1")]
    pub columns: Vec<u8>,
    /// The schema of the partition columns.
    #[prost(bytes = "vec", tag = "2")]
    pub partition_columns: Vec<u8>,
    /// The form of CSV; absent for JSON.
    #[prost(message, optional, tag = "3")]
    pub csv: Option<CsvWire>,
    /// The name of the compression.
    #[prost(string, tag = "4")]
    pub compression: String,
    /// Whether a statement declares the columns.
    #[prost(bool, tag = "5")]
    pub is_declared: bool,
    /// Whether each row is on a line of its own.
    #[prost(bool, tag = "6")]
    pub has_row_per_line: bool,
}

/// The options of CSV that readers have. Characters are bytes.
#[derive(Clone, PartialEq, Eq, prost::Message)]
pub struct CsvWire {
    /// Whether the first row has the names of the columns.
    #[prost(bool, tag = "1")]
    pub has_header: bool,
    /// The delimiter of fields.
    #[prost(uint32, tag = "2")]
    pub delimiter: u32,
    /// The quote.
    #[prost(uint32, tag = "3")]
    pub quote: u32,
    /// The character before a quote in quotes.
    #[prost(uint32, optional, tag = "4")]
    pub escape: Option<u32>,
    /// The end of a row.
    #[prost(uint32, optional, tag = "5")]
    pub terminator: Option<u32>,
    /// The first character of comments.
    #[prost(uint32, optional, tag = "6")]
    pub comment: Option<u32>,
    /// The regular expression of nulls.
    #[prost(string, optional, tag = "7")]
    pub null_regex: Option<String>,
    /// Whether fields at the end of a row may be missing.
    #[prost(bool, tag = "8")]
    pub truncated_rows: bool,
}

impl TextScanWire {
    /// The message of a scan of text files, and its configuration; `None` for other operators.
    ///
    /// # Errors
    /// The schema cannot be encoded.
    pub fn of(node: &dyn ExecutionPlan) -> Result<Option<(Self, &FileScanConfig)>> {
        let Some(exec) = node.downcast_ref::<DataSourceExec>() else {
            return Ok(None);
        };
        let Some((config, source)) = exec.downcast_to_file_source::<TextSource>() else {
            return Ok(None);
        };
        let csv = match source.options() {
            TextOptions::Csv(options) => Some(CsvWire::of(options)),
            TextOptions::Json(_) => None,
        };
        let wire = Self {
            columns: schema_to_bytes(source.table_schema().file_schema())?,
            partition_columns: schema_to_bytes(&Schema::new(
                config.table_partition_cols().to_vec(),
            ))?,
            csv,
            compression: source.options().compression().get_variant().to_string(),
            is_declared: source.is_declared(),
            has_row_per_line: source.has_row_per_line(),
        };
        Ok(Some((wire, config)))
    }

    /// The source of the scan, with all columns.
    ///
    /// # Errors
    /// The message is corrupt.
    pub fn source(&self) -> Result<Arc<dyn FileSource>> {
        let compression = self.compression.parse::<CompressionTypeVariant>()?;
        let options = match &self.csv {
            Some(csv) => TextOptions::Csv(CsvOptions {
                compression,
                ..csv.options()?
            }),
            None => TextOptions::Json(JsonOptions {
                compression,
                ..JsonOptions::default()
            }),
        };
        let partitions = schema_of_bytes(&self.partition_columns)?.fields().to_vec();
        let schema = TableSchema::builder(schema_of_bytes(&self.columns)?)
            .with_table_partition_cols(partitions);
        let source = TextSource::new(options, schema.build()).with_declared(self.is_declared);
        Ok(Arc::new(source.with_row_per_line(self.has_row_per_line)))
    }
}

impl CsvWire {
    fn of(options: &CsvOptions) -> Self {
        Self {
            has_header: options.has_header.unwrap_or(true),
            delimiter: options.delimiter.into(),
            quote: options.quote.into(),
            escape: options.escape.map(u32::from),
            terminator: options.terminator.map(u32::from),
            comment: options.comment.map(u32::from),
            null_regex: options.null_regex.clone(),
            truncated_rows: options.truncated_rows.unwrap_or(false),
        }
    }

    fn options(&self) -> Result<CsvOptions> {
        Ok(CsvOptions {
            has_header: Some(self.has_header),
            delimiter: byte(self.delimiter)?,
            quote: byte(self.quote)?,
            escape: self.escape.map(byte).transpose()?,
            terminator: self.terminator.map(byte).transpose()?,
            comment: self.comment.map(byte).transpose()?,
            null_regex: self.null_regex.clone(),
            truncated_rows: Some(self.truncated_rows),
            ..CsvOptions::default()
        })
    }
}

/// A character that is one byte.
fn byte(character: u32) -> Result<u8> {
    match u8::try_from(character) {
        Ok(byte) => Ok(byte),
        Err(_) => exec_err!(
            "the plan has an option of CSV with the character {character}; it has to be one byte"
        ),
    }
}
