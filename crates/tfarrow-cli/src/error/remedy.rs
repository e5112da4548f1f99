//! Remedies in the syntax of the program. The libraries return remedies as data; this module words
//! them as options and commands, and tfarrow-datafusion words them as SQL.

use std::error::Error;

use tfarrow_codec::{RecordType, Remedy};
use tfarrow_datafusion::{AdvisedError, sql_advice, sql_rewrite};

use super::Hinted;

/// The remedies for an error, as the end of its message; empty if there is none.
pub(crate) fn remedy(error: &anyhow::Error) -> String {
    error.chain().find_map(remedy_of).unwrap_or_default()
}

/// The option that reads the records, for the end of a message about an error that does not end the
/// command; empty if there is none.
pub(crate) fn reading_remedy(error: &tfarrow_dataset::Error) -> String {
    let mut remedies = error.remedies();
    remedies.retain(|remedy| {
        matches!(
            remedy,
            Remedy::ReadAs(_)
                | Remedy::StateRecordType
                | Remedy::WidenToList
                | Remedy::WidenToBinary
        )
    });
    sentence(&remedies)
}

/// What helps a shard that has no index, for the end of its message. Indexing has no option that
/// passes over damage.
pub(crate) fn index_remedy(error: &tfarrow_dataset::Error) -> String {
    let mut remedies = error.remedies();
    remedies.retain(|remedy| !matches!(remedy, Remedy::SkipErrors));
    sentence(&remedies)
}

fn remedy_of(cause: &(dyn Error + 'static)) -> Option<String> {
    if let Some(Hinted { hint, .. }) = cause.downcast_ref() {
        return Some(format!("; {hint}"));
    }
    if let Some(advised) = cause.downcast_ref::<AdvisedError>() {
        // Its message has the remedies in SQL.
        let mut remedies = advised.error().remedies();
        remedies.retain(|remedy| sql_advice(std::slice::from_ref(remedy)).is_none());
        return Some(sentence(&remedies));
    }
    if let Some(error) = cause.downcast_ref::<tfarrow_convert::Error>() {
        // These are chosen from those of its causes: a comparison changes no values, whatever the
        // encoder advises.
        return Some(sentence(&error.remedies()));
    }
    let remedies = if let Some(error) = cause.downcast_ref::<tfarrow_dataset::Error>() {
        error.remedies()
    } else {
        cause.downcast_ref::<tfarrow_codec::Error>()?.remedies()
    };
    Some(sentence(&remedies)).filter(|words| !words.is_empty())
}

fn sentence(remedies: &[Remedy]) -> String {
    let words: Vec<_> = remedies.iter().map(words).collect();
    if words.is_empty() {
        String::new()
    } else {
        format!("; {}", words.join(", or "))
    }
}

/// One remedy in words.
pub(crate) fn words(remedy: &Remedy) -> String {
    let words = match remedy {
        Remedy::RaiseLimit(limit) => return format!("--limit {limit}=N allows more"),
        Remedy::ReadAs(RecordType::Raw) => "--record-type raw reads the records as they are",
        Remedy::ReadAs(record_type) => {
            return format!("--record-type {record_type} reads them as such");
        }
        Remedy::StateRecordType => "--record-type states what the records are",
        Remedy::NewerDescriptor => "a newer --proto may define the field",
        Remedy::SampleAll => "--sample all infers the columns from all records",
        Remedy::StateColumns => {
            "tfarrow schema --format json, which also takes --part, infers the columns from all records, and --schema gives them \
             to each part"
        }
        Remedy::WidenToList => "a list in --schema, --layout list or a larger --sample reads it",
        Remedy::WidenToBinary => {
            "a binary column in --schema, --layout list or a larger --sample reads it"
        }
        Remedy::SplitKinds => "convert --on-conflict split gives each a column",
        Remedy::SkipErrors => "--on-error skip reads on after corrupt records",
        Remedy::Repair => {
            "tfarrow verify lists all damage, tfarrow repair recovers the valid records"
        }
        Remedy::RepairTfRecord => {
            "if it was a TFRecord file, tfarrow repair recovers the valid records after the damage"
        }
        Remedy::WriteAs(record_type) => return format!("--record-type {record_type} writes it"),
        Remedy::AllowLossy => "--lossy allows the change",
        Remedy::Rewrite { column, with } => return sql_rewrite(column, with),
        Remedy::Overwrite => "--overwrite replaces it",
        Remedy::Resume => "--resume continues it",
        Remedy::StartOver => "--overwrite begins again",
        Remedy::StateFormat => "--to parquet, --to arrow or --to tfrecord states the format",
        Remedy::WriteArrow => "--to arrow keeps their number",
        Remedy::WriteSchema => "tfarrow schema --format json writes one",
        Remedy::RaiseOpenFiles => "raise the limit of open files, e.g. with ulimit -n 1024",
    };
    words.to_owned()
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use arrow_schema::{DataType, Field, Schema, TimeUnit};
    use tfarrow_codec::WriterBuilder;

    use super::*;

    #[track_caller]
    fn check(data_type: DataType, expected: &str) {
        let schema = Schema::new(vec![Field::new("x", data_type, true)]);
        let error = WriterBuilder::new()
            .build_encoder(Arc::new(schema))
            .unwrap_err();
        let error = anyhow::Error::new(tfarrow_dataset::Error::codec("a.parquet", error));
        assert_eq!(
            error.to_string() + &remedy(&error),
            format!("a.parquet: feature \"x\": {expected}")
        );
    }

    fn list(of: DataType) -> DataType {
        DataType::List(Arc::new(Field::new_list_field(of, true)))
    }

    #[test]
    fn columns_that_no_record_can_hold() {
        check(
            list(list(DataType::Int64)),
            "a list of lists is a feature list, which a tf.Example does not have; --record-type sequence-example writes it, \
             or SELECT flatten(\"x\") AS \"x\" .. flattens it",
        );
        check(
            list(list(list(DataType::Int64))),
            "lists are three deep, a record has two at most; SELECT unnest(\"x\") AS \"x\" .. unnests it",
        );
    }

    #[test]
    fn values_that_would_change() {
        let timestamp = DataType::Timestamp(TimeUnit::Microsecond, None);
        check(
            timestamp.clone(),
            "a feature holds no Timestamp(\u{b5}s), which would be written as int64 microseconds; SELECT CAST(\"x\" AS \
             BIGINT) AS \"x\" .. converts it, or --lossy allows the change",
        );
        check(
            list(timestamp),
            "a feature holds no Timestamp(\u{b5}s), which would be written as int64 microseconds; SELECT \
             arrow_cast(\"x\", 'List(Int64)') AS \"x\" .. converts it, or --lossy allows the change",
        );
    }
}
