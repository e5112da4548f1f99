//! Random access to the records of a table.

use std::sync::Arc;

use arrow_schema::{FieldRef, Schema};
use datafusion::{
    common::{ScalarValue, plan_err},
    error::Result,
};
use tfarrow_codec::{ReaderBuilder, Role, schema::role_of};
use tfarrow_dataset::OnProgress;
use tfarrow_index::{Dataset, DatasetOptions, ShardColumn};

use crate::{
    error::external,
    options::MetadataColumns,
    schema::columns::Columns,
    table::{TfRecordTable, table_schema},
};

impl TfRecordTable {
    /// Opens the records of the table for random access, with the columns of these names, in this
    /// order. `progress` is called with what is read to find the records of files without an index.
    ///
    /// # Errors
    /// There is no column of a name, or only a scan has it: the number or the offset of a record, and
    /// columns that are cast. The table lists its files for each query. A file cannot be read, or can
    /// be read only from its start to its end.
    pub fn dataset(
        &self,
        columns: &[String],
        threads: usize,
        progress: &OnProgress<'_>,
    ) -> Result<Dataset> {
        let Some(shards) = self.shards() else {
            return plan_err!("the files of the table are listed by each query");
        };
        let decoded = self.columns.decoded_schema();
        let partitions = self.partitions.fields();
        let mut projection = Vec::new();
        let mut of_shards = Vec::new();
        for (place, name) in columns.iter().enumerate() {
            if let Ok(column) = decoded.index_of(name) {
                self.check_random(decoded, column)?;
                projection.push(column);
            } else if let Some(column) = partitions.iter().position(|field| field.name() == name) {
                of_shards.push((place, column));
            } else {
                return plan_err!("there is no column {name:?}");
            }
        }
        let mut shard_columns = Vec::with_capacity(of_shards.len());
        for (place, column) in of_shards {
            if let Some(field) = partitions.get(column) {
                shard_columns.push(self.shard_column(place, field, column)?);
            }
        }
        let source = self.source();
        let read = source.read_options();
        let builder = ReaderBuilder::new(Arc::clone(decoded))
            .with_verify_crc(source.verify_crc())
            .with_limits(read.limits)
            .with_strict(source.is_strict())
            .with_on_error(read.on_error)
            .with_projection(projection);
        let options = DatasetOptions {
            indexes: self.options().index.place().cloned(),
            read: *read,
            threads,
        };
        let opened = Dataset::open(shards.to_vec(), builder, &options, progress);
        Ok(opened.map_err(external)?.with_shard_columns(shard_columns))
    }

    /// The same table with the columns [`_file` and `_offset`](MetadataColumns), by which the rows of a
    /// query are [found](Dataset::number_at) in a data set.
    ///
    /// # Errors
    /// The data has a feature of such a name.
    pub fn with_places(&self) -> Result<Self> {
        let missing = MetadataColumns {
            offset: !self.options().metadata_columns.offset,
            ..MetadataColumns::NONE
        };
        let columns = Columns::clone(&self.columns);
        let columns =
            Arc::new(columns.with_metadata(missing, self.options().bytes_type.is_view())?);
        let partitions = self.partitions.clone().with_file(true, columns.schema())?;
        let schema = table_schema(&columns, &partitions);
        Ok(Self {
            columns,
            partitions,
            schema,
            ..self.clone()
        })
    }

    /// Checks that a column does not depend on the records before its own.
    fn check_random(&self, decoded: &Schema, column: usize) -> Result<()> {
        let field = decoded.field(column);
        let is_place = matches!(role_of(field), Some(Role::Index | Role::Offset));
        match is_place || self.columns.is_cast(column) {
            true => plan_err!(
                "only a scan from start to end has the column {:?}",
                field.name()
            ),
            false => Ok(()),
        }
    }

    /// The values of a partition column.
    fn shard_column(&self, place: usize, field: &FieldRef, column: usize) -> Result<ShardColumn> {
        let mut values = Vec::new();
        for shard in self.shards().unwrap_or_default() {
            values.extend(self.partitions.values(shard)?.into_iter().nth(column));
        }
        Ok(ShardColumn {
            place,
            field: Arc::clone(field),
            values: ScalarValue::iter_to_array(values)?,
        })
    }
}
