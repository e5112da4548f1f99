//! Scans of CSV and JSON files.

use std::sync::Arc;

use arrow_schema::Schema;
use datafusion::{
    common::{
        config::{CsvOptions, JsonOptions},
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
use serde::{Deserialize, Serialize};

use crate::{
    text::{options::TextOptions, source::TextSource},
    wire::ipc::{schema_of_bytes, schema_to_bytes},
};

/// The parts of a scan of text files that are no expressions. The files and the projection are sent
/// beside it.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct TextScanWire {
    /// The schema of the columns of the files.
    pub columns: Vec<u8>,
    /// The schema of the partition columns.
    pub partition_columns: Vec<u8>,
    /// The form of CSV; absent for JSON.
    pub csv: Option<CsvWire>,
    /// The name of the compression.
    pub compression: String,
    /// Whether a statement declares the columns.
    pub is_declared: bool,
    /// Whether each row is on a line of its own.
    pub has_row_per_line: bool,
}

/// The options of CSV that readers have.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct CsvWire {
    /// Whether the first row has the names of the columns.
    pub has_header: bool,
    /// The delimiter of fields.
    pub delimiter: u8,
    /// The quote.
    pub quote: u8,
    /// The character before a quote in quotes.
    pub escape: Option<u8>,
    /// The end of a row.
    pub terminator: Option<u8>,
    /// The first character of comments.
    pub comment: Option<u8>,
    /// The regular expression of nulls.
    pub null_regex: Option<String>,
    /// Whether fields at the end of a row may be missing.
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
                ..csv.options()
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
            delimiter: options.delimiter,
            quote: options.quote,
            escape: options.escape,
            terminator: options.terminator,
            comment: options.comment,
            null_regex: options.null_regex.clone(),
            truncated_rows: options.truncated_rows.unwrap_or(false),
        }
    }

    fn options(&self) -> CsvOptions {
        CsvOptions {
            has_header: Some(self.has_header),
            delimiter: self.delimiter,
            quote: self.quote,
            escape: self.escape,
            terminator: self.terminator,
            comment: self.comment,
            null_regex: self.null_regex.clone(),
            truncated_rows: Some(self.truncated_rows),
            ..CsvOptions::default()
        }
    }
}
