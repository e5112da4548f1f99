//! The options of CSV and JSON tables, which are those of DataFusion.

use datafusion::{
    arrow::csv::reader::Format,
    common::{
        config::{ConfigOptions, CsvOptions, JsonOptions},
        plan_datafusion_err,
    },
    datasource::file_format::file_compression_type::FileCompressionType,
    error::Result,
};
use regex::Regex;
use tfarrow_columnar::{CsvForm, TextForm};

/// The options of a table of text files.
#[derive(Clone, Debug)]
pub(crate) enum TextOptions {
    Csv(CsvOptions),
    Json(JsonOptions),
}

impl TextOptions {
    /// The options with the settings of the session for those that a statement does not set.
    pub(crate) fn of_session(self, session: &ConfigOptions) -> Self {
        match self {
            Self::Csv(mut options) => {
                options.has_header.get_or_insert(session.catalog.has_header);
                Self::Csv(options)
            }
            json => json,
        }
    }

    /// The name of the format.
    pub(crate) fn name(&self) -> &'static str {
        match self {
            Self::Csv(_) => "csv",
            Self::Json(_) => "json",
        }
    }

    pub(crate) fn has_header(&self) -> bool {
        matches!(self, Self::Csv(options) if options.has_header.unwrap_or(true))
    }

    pub(crate) fn compression(&self) -> FileCompressionType {
        FileCompressionType::from(match self {
            Self::Csv(options) => options.compression,
            Self::Json(options) => options.compression,
        })
    }

    /// Maximum number of rows of a file that determine the columns.
    pub(crate) fn inferred_rows(&self) -> u64 {
        let rows = match self {
            Self::Csv(options) => options.schema_infer_max_rec,
            Self::Json(options) => options.schema_infer_max_rec,
        };
        rows.map_or(u64::MAX, |rows| rows as u64)
    }

    /// The form of the files.
    ///
    /// # Errors
    /// The option `null_regex` is no regular expression.
    pub(crate) fn form(&self) -> Result<TextForm> {
        let Self::Csv(options) = self else {
            return Ok(TextForm::Json);
        };
        let mut format = Format::default()
            .with_delimiter(options.delimiter)
            .with_quote(options.quote)
            .with_truncated_rows(options.truncated_rows.unwrap_or(false));
        if let Some(escape) = options.escape {
            format = format.with_escape(escape);
        }
        if let Some(terminator) = options.terminator {
            format = format.with_terminator(terminator);
        }
        if let Some(comment) = options.comment {
            format = format.with_comment(comment);
        }
        if let Some(nulls) = &options.null_regex {
            let nulls = Regex::new(nulls)
                .map_err(|e| plan_datafusion_err!("the option null_regex: {e}"))?;
            format = format.with_null_regex(nulls);
        }
        Ok(TextForm::Csv(CsvForm::new(format, self.has_header())))
    }
}
