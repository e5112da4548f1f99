//! Schemas of tables: columns that are decoded from records, those of several files, partition columns, and the provenance of the schema.

pub(crate) mod columns;
pub(crate) mod merged_schema;
pub(crate) mod partition_columns;
pub(crate) mod provenance;
