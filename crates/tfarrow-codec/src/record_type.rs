//! The type of the records of a data set: which message a payload is, if it is one.
//!
//! It is apart from `schema.rs`, since errors and remedies name it, and schemas use errors.

use crate::named_values;

/// The type of records.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum RecordType {
    /// `tf.train.Example`
    Example,
    /// `tf.train.SequenceExample`
    SequenceExample,
    /// Any other payload, which is not parsed.
    Raw,
}

named_values!(RecordType {
    Example = "example": "tf.train.Example",
    SequenceExample = "sequence-example": "tf.train.SequenceExample",
    Raw = "raw": "Any bytes: one binary column, `record`",
});
