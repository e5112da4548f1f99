//! Schemas of tables: columns that are decoded from records, partition columns, and the provenance
//! of the schema.

pub(crate) mod columns;
pub(crate) mod partition_columns;
pub(crate) mod provenance;
