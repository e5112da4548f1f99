//! Remedies as data: the actions that may resolve an error. No error of a library names an option
//! of a program or a statement of SQL. Each front end words the remedies in its own syntax instead,
//! in one exhaustive match.

use arrow_schema::DataType;
use serde::{Deserialize, Serialize};

use crate::{Limit, RecordType};

/// A remedy for an error of any of the crates. Those of reading can be serialized, so that a
/// process can report the errors of another one.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub enum Remedy {
    /// Raise this limit.
    RaiseLimit(Limit),
    /// Read the records as this type.
    ReadAs(RecordType),
    /// State the type of the records, which was inferred.
    StateRecordType,
    /// Give a newer descriptor of the messages, which defines all of their fields.
    NewerDescriptor,
    /// Infer the columns from all records.
    SampleAll,
    /// Infer the columns from all records first, and state them.
    StateColumns,
    /// Make the column a list: by a schema, by the layout of lists, or by a larger sample.
    WidenToList,
    /// Make the column binary: by a schema, by the layout of lists, or by a larger sample.
    WidenToBinary,
    /// Give each kind of a feature a column.
    SplitKinds,
    /// Skip corrupt records, and continue after them.
    SkipErrors,
    /// List the damage, and recover the valid records.
    Repair,
    /// Recover the valid records, if the file was a TFRecord file.
    RepairTfRecord,

    /// Write the records as this type.
    WriteAs(RecordType),
    /// Allow values to change.
    AllowLossy,
    /// Write other values in place of a column. Not serialized.
    #[serde(skip)]
    Rewrite {
        /// The name of the column.
        column: String,
        /// The values to write.
        with: Rewrite,
    },

    /// Replace the outputs that exist.
    Overwrite,
    /// Continue an interrupted conversion.
    Resume,
    /// Discard the outputs of an interrupted conversion, and begin again.
    StartOver,
    /// State the output format.
    StateFormat,
    /// Write an Arrow file.
    WriteArrow,
    /// Write a schema as JSON.
    WriteSchema,
    /// Raise the limit of open files of the process.
    RaiseOpenFiles,
}

/// Values that can be written in place of a column that no record can hold, or of one whose values
/// would change.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Rewrite {
    /// The values as this type.
    Cast(DataType),
    /// The column with any type that a feature can have, in place of the type null.
    SomeType,
    /// One row for each value of a list.
    Unnest,
    /// One list of the values of a list of lists.
    Flatten,
    /// One column for each of these fields of a struct.
    Fields(Vec<String>),
    /// One column for each wanted key of a map.
    MapKeys,
    /// One column for each wanted field of a union.
    UnionFields,
    /// This column alone.
    Alone,
}
