//! CSV and JSON texts: where their bytes come from, and the form of their rows.

use std::{
    fmt,
    fs::File,
    io::{self, Read, Seek, SeekFrom},
    path::{Path, PathBuf},
    sync::Arc,
};

use arrow_csv::reader::Format;
use tfarrow_dataset::{Shard, ShardFormat};

/// The decompressed bytes of a text, or the bytes of a gzip file, from one byte on.
type OpenText = dyn Fn(u64) -> io::Result<Box<dyn Read + Send>> + Send + Sync;

/// A CSV or JSON text, which is read several times: for its columns, for its rows, and for the line
/// of a wrong row.
#[derive(Clone)]
pub struct Text {
    /// The name of the file in errors.
    pub(crate) path: PathBuf,
    pub(crate) form: TextForm,
    open: Arc<OpenText>,
}

/// The form of the rows of a text.
#[derive(Clone, Debug)]
pub enum TextForm {
    /// CSV.
    Csv(CsvForm),
    /// JSON: one object a line, or one array of objects.
    Json,
}

/// The form of CSV.
#[derive(Clone, Debug)]
pub struct CsvForm {
    /// The delimiter, the quote, and so on.
    pub(crate) format: Format,
    /// Whether the first row has the names of the columns. Without it, the names are `column_1`,
    /// `column_2` ..
    pub(crate) has_header: bool,
}

impl CsvForm {
    /// The form of CSV files of this format. `has_header` says whether the first row has the names
    /// of the columns.
    pub fn new(format: Format, has_header: bool) -> Self {
        Self {
            format: format.with_header(has_header),
            has_header,
        }
    }

    /// CSV with a header, whose fields are separated by commas, or by tabs in a file named `.tsv`.
    fn of_name(path: &Path) -> Self {
        let name = path.to_string_lossy().to_ascii_lowercase();
        let is_tsv = name.strip_suffix(".gz").unwrap_or(&name).ends_with(".tsv");
        Self::new(
            Format::default().with_delimiter(if is_tsv { b'\t' } else { b',' }),
            true,
        )
    }
}

impl Text {
    /// A text that `open` opens, from a byte of the text on. The text may be compressed with gzip;
    /// it is then opened at its first byte only. Errors have the path `path`.
    pub fn new(
        path: PathBuf,
        form: TextForm,
        open: impl Fn(u64) -> io::Result<Box<dyn Read + Send>> + Send + Sync + 'static,
    ) -> Self {
        Self {
            path,
            form,
            open: Arc::new(open),
        }
    }

    /// The text of a CSV or JSON file.
    pub(crate) fn of_shard(shard: &Shard) -> Self {
        let form = match shard.format {
            ShardFormat::Json => TextForm::Json,
            _ => TextForm::Csv(CsvForm::of_name(&shard.path)),
        };
        let of = shard.clone();
        Self::new(shard.path.clone(), form, move |from| {
            if from == 0 {
                return of.open();
            }
            let mut file = File::open(of.local_path())?;
            file.seek(SeekFrom::Start(from))?;
            Ok(Box::new(file))
        })
    }

    /// Opens the text at the byte `from`.
    pub(crate) fn open_at(&self, from: u64) -> io::Result<Box<dyn Read + Send>> {
        (self.open)(from)
    }

    pub(crate) fn is_json(&self) -> bool {
        matches!(self.form, TextForm::Json)
    }
}

impl fmt::Debug for Text {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Text")
            .field("path", &self.path)
            .field("form", &self.form)
            .finish_non_exhaustive()
    }
}
