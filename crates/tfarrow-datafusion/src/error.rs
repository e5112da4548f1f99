//! A record that the table's schema does not fit: what the file says, and what the sample had said before.

use std::fmt;

use datafusion::error::DataFusionError;
use tfarrow_codec::{Error as CodecError, ErrorKind as CodecErrorKind};
use tfarrow_dataset::{Error, ErrorKind};

use crate::origin::SchemaProvenance as Origin;

/// An error in the data that has to do with how the schema came about. One line; the file's error is its source.
#[derive(Debug)]
pub struct MisfitError {
    error: Error,
    note: String,
}

impl MisfitError {
    /// What is wrong, and where.
    pub fn error(&self) -> &Error {
        &self.error
    }
}

impl fmt::Display for MisfitError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}; {}", self.error, self.note)
    }
}

impl std::error::Error for MisfitError {
    fn source(&self) -> Option<&(dyn std::error::Error + 'static)> {
        Some(&self.error)
    }
}

/// An error as DataFusion carries it: whole, never as text.
pub(crate) fn external(error: impl std::error::Error + Send + Sync + 'static) -> DataFusionError {
    DataFusionError::External(Box::new(error))
}

/// The error of a scan, with what its table knows of the feature to blame.
pub(crate) fn explained(error: Error, origin: &Origin) -> DataFusionError {
    let note = match error.kind() {
        ErrorKind::Codec(error) => note(error, origin),
        _ => None,
    };
    match note {
        Some(note) => external(MisfitError { error, note }),
        None => external(error),
    }
}

fn note(error: &CodecError, origin: &Origin) -> Option<String> {
    let way_out = |set: &str| origin.sample().map(|sample| format!("the schema is that of {sample}: {set}"));
    match error.kind() {
        CodecErrorKind::Kind { .. } => {
            let both = "SET tfarrow.sample_records = 'all' and tfarrow.on_conflict = 'split' give each kind a column";
            first_place(error, origin).map(|place| format!("{place}; {both}"))
        }
        CodecErrorKind::NotScalar { .. } | CodecErrorKind::NotUtf8 => {
            way_out("SET tfarrow.sample_records = 'all', or SET tfarrow.layout = 'list'")
        }
        CodecErrorKind::Wire(error) if error.is_limit() => None,
        CodecErrorKind::Foreign { .. } | CodecErrorKind::Wire(_) => {
            way_out("SET tfarrow.sample_records = 'all', or SET tfarrow.record_type = 'raw'")
        }
        _ => None,
    }
}

/// Where the sample first met the kind that the column has.
fn first_place(error: &CodecError, origin: &Origin) -> Option<String> {
    let name = error.position().feature.as_deref()?;
    let (kind, seen) = origin.features(name).find_map(|feature| feature.kinds().next())?;
    Some(format!("{} was met first in {}", kind.name(), origin.first(seen)?))
}
