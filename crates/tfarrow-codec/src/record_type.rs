//! The type of the records of a data set: the protobuf message of the payloads, or raw bytes.
//!
//! A module of its own, since errors and remedies name the type, and schemas use errors.

use serde::{Deserialize, Serialize};

use crate::named_values;

/// The type of records.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub enum RecordType {
    /// `tf.train.Example`
    Example,
    /// `tf.train.SequenceExample`
    SequenceExample,
    /// `tensorflow.serving.ExampleListWithContext` (ELWC), the record of learning to rank: an
    /// Example of the context, such as a query, and a list of Examples, such as the documents to
    /// rank.
    ExampleList,
    /// A protobuf message of any type, by its descriptor: `MessageType`.
    Message,
    /// Any other payload, which is not parsed.
    Raw,
}

named_values!(RecordType {
    Example = "example": "tf.train.Example",
    SequenceExample = "sequence-example": "tf.train.SequenceExample",
    ExampleList = "example-list": "tensorflow.serving.ExampleListWithContext: context features, and a list of examples",
    Message = "message": "A protobuf message of another type, by its descriptor",
    Raw = "raw": "Any bytes: one binary column, `record`",
});

impl RecordType {
    /// The types of records that are read without a description of the records.
    pub const SELF_DESCRIBED: [Self; 4] = [
        Self::Example,
        Self::SequenceExample,
        Self::ExampleList,
        Self::Raw,
    ];
}
