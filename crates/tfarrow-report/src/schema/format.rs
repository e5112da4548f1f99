//! The formats of a schema.

use clap::ValueEnum;

/// Output format of `schema`.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub enum SchemaFormat {
    /// For people
    Table,
    /// Everything, for programs and for `convert --schema`
    Json,
    /// The columns and their Arrow types
    Arrow,
    /// A feature spec for tf.io.parse_example
    Python,
    /// A function that makes the Arrow schema
    Rust,
    /// CREATE EXTERNAL TABLE, with every column declared
    Sql,
    /// The features.json file of TensorFlow Datasets
    FeaturesJson,
    /// A schema.pbtxt, as TensorFlow Data Validation infers it
    Pbtxt,
}

impl SchemaFormat {
    /// Returns the format of a name, such as `features-json`; `None` if no format has it.
    pub fn from_name(name: &str) -> Option<Self> {
        <Self as ValueEnum>::from_str(name, false).ok()
    }
}
