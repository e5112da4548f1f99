//! `SHOW CREATE TABLE 'shards/'`: the statement that makes a table of files. DataFusion keeps the
//! statements of tables that were created, and has none for files that a query names.

use arrow_schema::DataType;
use datafusion::{
    catalog::TableProvider,
    common::{TableReference, plan_datafusion_err, plan_err},
    datasource::listing::ListingTable,
    error::Result,
    execution::SessionState,
    logical_expr::{LogicalPlan, LogicalPlanBuilder, lit},
    sql::{
        parser::Statement,
        sqlparser::ast::{ObjectName, ObjectNamePart, ShowCreateObject, Statement as SqlStatement},
    },
};
use tfarrow_codec::{
    RecordType, Role,
    schema::{FEATURE, record_type_of, role_of},
};
use tfarrow_datafusion::{EventTable, TfRecordTable};
use tfarrow_dataset::internals::EVENT_MESSAGE;

use crate::catalog::{partitioned_table::PartitionedTable, text_files::TextFiles};

/// The name of the source in `SHOW CREATE TABLE '..'`; `None` for other statements.
pub(crate) fn shown_source(statement: &Statement) -> Option<&str> {
    let Statement::Statement(statement) = statement else {
        return None;
    };
    let SqlStatement::ShowCreate {
        obj_type: ShowCreateObject::Table,
        obj_name: ObjectName(parts),
    } = statement.as_ref()
    else {
        return None;
    };
    match parts.as_slice() {
        [ObjectNamePart::Identifier(name)] if name.quote_style == Some('\'') => Some(&name.value),
        _ => None,
    }
}

/// Plans `SHOW CREATE TABLE` of files: one row, with the columns that DataFusion has for other
/// tables.
///
/// # Errors
/// The files cannot be read.
pub(crate) async fn show_create(source: &str, state: &SessionState) -> Result<LogicalPlan> {
    let table = TableReference::bare(source);
    let table = state.schema_for_ref(table)?.table(source).await?;
    let table = table.ok_or_else(|| plan_datafusion_err!("table '{source}' not found"))?;
    let catalog = &state.config().options().catalog;
    let columns = [
        ("table_catalog", catalog.default_catalog.clone()),
        ("table_schema", catalog.default_schema.clone()),
        ("table_name", source.to_owned()),
        ("definition", definition(source, table.as_ref())?),
    ];
    let row = columns
        .into_iter()
        .map(|(name, value)| lit(value).alias(name));
    LogicalPlanBuilder::empty(true).project(row)?.build()
}

/// The statement that makes the table of `source`.
fn definition(source: &str, table: &dyn TableProvider) -> Result<String> {
    let name = identifier(&table_name(source));
    let location = literal(source);
    if let Some(table) = table.downcast_ref::<TfRecordTable>() {
        return Ok(format!(
            "CREATE EXTERNAL TABLE {name}{}",
            records(table, &location)
        ));
    }
    match table.downcast_ref::<EventTable>() {
        // The table of the files has a row for each event.
        Some(events) if events.is_converted() => {
            Ok(format!("CREATE VIEW {name} AS SELECT * FROM {location}"))
        }
        // A table of events needs no options, and its columns are fixed.
        Some(_) => Ok(format!(
            "CREATE EXTERNAL TABLE {name} STORED AS TFRECORD LOCATION {location}"
        )),
        None => {
            let (format, options) = files(source, table)?;
            Ok(format!(
                "CREATE EXTERNAL TABLE {name} STORED AS {format} LOCATION {location}{options}"
            ))
        }
    }
}

/// The columns, location and options of a table of TFRecord files.
fn records(table: &TfRecordTable, location: &str) -> String {
    let schema = table.schema();
    let folders = table.folder_columns();
    let record_type = record_type_of(&schema);
    let options = match (
        record_type,
        &table.options().proto,
        &table.options().message,
    ) {
        (RecordType::Message, Some(proto), Some(message)) => {
            format!(
                "proto {}, message {}",
                literal(&proto.to_string_lossy()),
                literal(message)
            )
        }
        (RecordType::Message, _, message) => {
            format!(
                "message {}",
                literal(message.as_deref().unwrap_or(EVENT_MESSAGE))
            )
        }
        (record_type, ..) => format!("record_type '{}'", record_type.name()),
    };
    let mut columns = Vec::new();
    let mut others = Vec::new();
    for field in schema.fields() {
        // The columns of messages follow from their definition; a statement that declares columns
        // declares all of them.
        let is_folder = folders.contains(field) && record_type != RecordType::Message;
        let is_feature = role_of(field).is_some_and(Role::is_of_features);
        match sql_type(field.data_type()) {
            // A declared column reads the feature of its own name.
            Some(sql_type)
                if is_folder || is_feature && !field.metadata().contains_key(FEATURE) =>
            {
                columns.push(format!("  {} {sql_type}", identifier(field.name())));
            }
            _ if is_feature => others.push(format!(
                "  -- {}: cannot be declared\n",
                identifier(field.name())
            )),
            // The columns of complete records and of places are options of a table.
            _ => {}
        }
    }
    let columns = match columns.is_empty() {
        true => String::new(),
        false => format!(" (\n{}\n{})", columns.join(",\n"), others.concat()),
    };
    let names: Vec<_> = folders
        .iter()
        .map(|field| identifier(field.name()))
        .collect();
    let folders = match names.is_empty() {
        true => String::new(),
        false => format!(" PARTITIONED BY ({})", names.join(", ")),
    };
    format!("{columns} STORED AS TFRECORD{folders} LOCATION {location} OPTIONS ({options})")
}

/// The format of the files of a table that is not TFRecord, and the options of the format.
fn files(source: &str, table: &dyn TableProvider) -> Result<(String, String)> {
    let partitioned = table
        .downcast_ref::<PartitionedTable>()
        .map(PartitionedTable::listing);
    let Some(listing) = partitioned.or_else(|| table.downcast_ref::<ListingTable>()) else {
        return plan_err!("SHOW CREATE TABLE of {source} is not supported; write DESCRIBE");
    };
    let format = listing.options().format.get_ext().to_uppercase();
    let options = TextFiles::of_name(source)
        .map(|files| files.options())
        .unwrap_or_default();
    let mut options: Vec<_> = options
        .iter()
        .map(|(name, value)| format!("{} {}", literal(name), literal(value)))
        .collect();
    options.sort();
    match options.is_empty() {
        true => Ok((format, String::new())),
        false => Ok((format, format!(" OPTIONS ({})", options.join(", ")))),
    }
}

/// The type of a declared column; `None` for a type that features are not decoded to.
fn sql_type(data_type: &DataType) -> Option<String> {
    Some(match data_type {
        DataType::Int64 => "BIGINT".to_owned(),
        DataType::Float32 => "FLOAT".to_owned(),
        DataType::Utf8 | DataType::Utf8View => "VARCHAR".to_owned(),
        DataType::Binary | DataType::BinaryView => "BYTEA".to_owned(),
        DataType::List(item) => format!("{}[]", sql_type(item.data_type())?),
        _ => return None,
    })
}

/// A name for the table: that of the file or folder, up to the first dot or glob.
fn table_name(source: &str) -> String {
    let last = source
        .split('/')
        .rfind(|part| !part.is_empty())
        .unwrap_or_default();
    let end = last
        .find(|c: char| !c.is_alphanumeric() && !matches!(c, '_' | '-' | ' '))
        .unwrap_or(last.len());
    match last.get(..end) {
        Some(name) if !name.is_empty() => name.to_owned(),
        _ => "records".to_owned(),
    }
}

/// A quoted identifier.
fn identifier(name: &str) -> String {
    format!("\"{}\"", name.replace('"', "\"\""))
}

/// A quoted string.
fn literal(text: &str) -> String {
    format!("'{}'", text.replace('\'', "\'\'"))
}
