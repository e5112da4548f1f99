//! Parquet files of COPY and INSERT: no statistics of float columns.
//!
//! Parquet's writer leaves NaN out of the minimum and the maximum, so that readers that sort NaN
//! above all numbers, such as DuckDB and Spark, would skip rows. DataFusion's sink cannot correct a
//! chunk that is complete, as `convert` does.
//!
//! Workaround for parquet 59: see apache/datafusion#15812 for its readers. Delete when its writer
//! counts NaN.

use std::sync::Arc;

use datafusion::{
    common::config::TableParquetOptions,
    datasource::{file_format::parquet::ParquetSink, physical_plan::FileSink, sink::DataSinkExec},
    error::Result,
    parquet::{
        arrow::ArrowSchemaConverter,
        basic::{LogicalType, Type},
        schema::types::ColumnDescriptor,
    },
};

/// `statistics_enabled` of DataFusion.
const NO_STATISTICS: &str = "none";

/// Returns the operator of a Parquet sink without statistics of float columns; `None` for other
/// sinks, and without such columns. The footer of an ordered INSERT then does not have the order of
/// the rows.
///
/// # Errors
/// A column has a type that Parquet does not have.
pub(super) fn without_float_bounds(exec: &DataSinkExec) -> Result<Option<DataSinkExec>> {
    let Some(sink) = exec.sink().downcast_ref::<ParquetSink>() else {
        return Ok(None);
    };
    let columns = ArrowSchemaConverter::new().convert(sink.config().output_schema())?;
    let floats: Vec<_> = columns
        .columns()
        .iter()
        .filter(|column| is_float(column))
        .collect();
    if floats.is_empty() {
        return Ok(None);
    }
    let mut options = sink.parquet_options().clone();
    for column in floats {
        disable_statistics(&mut options, column.path().parts());
    }
    let sink = Arc::new(ParquetSink::new(sink.config().clone(), options));
    Ok(Some(DataSinkExec::new(
        Arc::clone(exec.input()),
        sink,
        exec.sort_order().clone(),
    )))
}

fn is_float(column: &ColumnDescriptor) -> bool {
    matches!(column.physical_type(), Type::FLOAT | Type::DOUBLE)
        || matches!(column.logical_type_ref(), Some(LogicalType::Float16))
}

/// Disables the statistics of a column. DataFusion takes each dot of a path for the start of a
/// nested column: statistics of a column with a dot in its name can only be disabled with those of
/// all columns.
fn disable_statistics(options: &mut TableParquetOptions, path: &[String]) {
    let statistics = if path.iter().any(|name| name.contains('.')) {
        &mut options.global.statistics_enabled
    } else {
        &mut options
            .column_specific_options
            .entry(path.join("."))
            .or_default()
            .statistics_enabled
    };
    *statistics = Some(NO_STATISTICS.to_owned());
}
