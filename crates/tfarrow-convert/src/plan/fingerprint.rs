//! The fingerprint of a conversion: the options that determine its outputs, so that a run resumes
//! only the same conversion.

use serde_json::{Value, json};
use tfarrow_codec::{Limit, Limits};
use tfarrow_scan::Sample;
use xxhash_rust::xxh3::Xxh3;

use crate::{ConvertOptions, OutputSplit, Reshard, Target, output::made_of::hash_schema};

/// The fingerprint as JSON. It contains the version of the crate, but not the sources and their
/// columns, which are compared output by output.
pub(crate) fn fingerprint(target: Target, options: &ConvertOptions) -> String {
    // Every field is named here, so that the compiler finds a new option that is missing.
    let ConvertOptions {
        layout,
        compression,
        compression_level,
        schema,
        columns,
        exclude,
        sample,
        reshard,
        partition_by,
        shuffle,
        fraction,
        splits,
        seed,
        record_type,
        lossy,
        verify_crc,
        exact,
        on_conflict,
        timestamp_unit,
        read,
        row_group_rows,
        row_group_bytes,
        bloom_filters,
        page_index,
        to: _,
        jobs: _,
        overwrite: _,
        quarantine: _,
        resume: _,
        part: _,
        stream: _,
    } = options;
    let schema = schema.as_ref().map(|schema| {
        let mut hasher = Xxh3::new();
        hash_schema(schema, &mut hasher);
        format!("{:016x}", hasher.digest())
    });
    // `read.on_error` is not included, because outputs from corrupt sources are made again in any
    // case.
    json!({
        "version": env!("CARGO_PKG_VERSION"),
        "to": target.name(),
        "layout": layout.name(),
        "compression": compression.map(|compression| compression.name()),
        "compression_level": compression_level,
        "schema": schema,
        "columns": columns,
        "exclude": exclude,
        "sample": sample_value(*sample),
        "recut": reshard.map(reshard_value),
        "partition_by": partition_by,
        "shuffle": shuffle,
        "fraction": fraction,
        "splits": splits_value(splits),
        "seed": seed,
        "record_type": record_type.map(|record_type| record_type.name()),
        "lossy": lossy,
        "verify_crc": verify_crc.name(),
        "exact": exact,
        "on_conflict": on_conflict.name(),
        "timestamp_unit": timestamp_unit.name(),
        "partial_tail": read.partial_tail.name(),
        "limits": limits_value(read.limits),
        "row_group_rows": row_group_rows,
        "row_group_bytes": row_group_bytes,
        "bloom_filters": bloom_filters,
        "page_index": page_index,
    })
    .to_string()
}

fn sample_value(sample: Sample) -> Value {
    match sample {
        Sample::All => json!("all"),
        Sample::Records(records) => json!(records),
    }
}

fn reshard_value(reshard: Reshard) -> Value {
    match reshard {
        Reshard::Shards(shards) => json!({"shards": shards}),
        Reshard::Bytes(bytes) => json!({"bytes": bytes}),
    }
}

fn splits_value(splits: &[OutputSplit]) -> Value {
    let splits = splits.iter();
    splits
        .map(|split| json!([split.name(), split.fraction()]))
        .collect()
}

fn limits_value(limits: Limits) -> Value {
    Limit::ALL
        .into_iter()
        .map(|limit| (limit.name(), limits.get(limit)))
        .collect()
}

#[cfg(test)]
mod tests {
    use tfarrow_codec::{Layout, OnConflict, RecordType, VerifyCrc};
    use tfarrow_dataset::{PartialTail, ReadOptions};

    use super::*;
    use crate::OutputCompression;

    #[test]
    fn a_fingerprint_has_stable_names() {
        let options = ConvertOptions {
            layout: Layout::List,
            compression: Some(OutputCompression::Zstd),
            compression_level: Some(9),
            columns: vec!["b".to_owned()],
            exclude: vec!["a/*".to_owned()],
            sample: Sample::Records(7),
            reshard: Some(Reshard::Bytes(1 << 20)),
            partition_by: vec!["k".to_owned()],
            shuffle: Some(1),
            fraction: Some(0.5),
            splits: vec!["train=0.8".parse().unwrap()],
            seed: Some(2),
            record_type: Some(RecordType::SequenceExample),
            verify_crc: VerifyCrc::OnParseFailure,
            on_conflict: OnConflict::Split,
            read: ReadOptions {
                partial_tail: PartialTail::Ignore,
                ..ReadOptions::default()
            },
            bloom_filters: vec!["id".to_owned()],
            ..ConvertOptions::default()
        };
        let text = fingerprint(Target::Parquet, &options);
        let (first, limits) = text.split_once(r#","limits":{"#).unwrap();
        let version = env!("CARGO_PKG_VERSION");
        let expected = format!(
            concat!(
                r#"{{"version":"{}","to":"parquet","layout":"list","compression":"zstd","compression_level":9,"#,
                r#""schema":null,"#,
                r#""columns":["b"],"exclude":["a/*"],"sample":7,"#,
                r#""recut":{{"bytes":1048576}},"partition_by":["k"],"shuffle":1,"fraction":0.5,"splits":[["train",0.8]],"seed":2,"record_type":"sequence-example","lossy":false,"#,
                r#""verify_crc":"on-parse-failure","exact":false,"on_conflict":"split","timestamp_unit":"ns","partial_tail":"ignore""#
            ),
            version
        );
        assert_eq!(first, expected);
        assert!(limits.contains(r#""record-bytes":2147483647"#), "{limits}");
        let rest = r#"},"row_group_rows":1048576,"row_group_bytes":67108864,"bloom_filters":["id"],"page_index":true}"#;
        assert!(limits.ends_with(rest), "{limits}");
    }

    #[test]
    fn threads_and_paths_do_not_change_the_fingerprint() {
        let options = ConvertOptions::default();
        let others = ConvertOptions {
            jobs: 17,
            overwrite: true,
            resume: true,
            part: tfarrow_dataset::Part::new(3, 16),
            quarantine: Some("lost.tfrecord".into()),
            ..ConvertOptions::default()
        };
        assert_eq!(
            fingerprint(Target::Arrow, &options),
            fingerprint(Target::Arrow, &others)
        );
        assert_ne!(
            fingerprint(Target::Arrow, &options),
            fingerprint(Target::Parquet, &options)
        );
        let exact = ConvertOptions {
            exact: true,
            ..options
        };
        assert_ne!(
            fingerprint(Target::Arrow, &exact),
            fingerprint(Target::Arrow, &others)
        );
    }
}
