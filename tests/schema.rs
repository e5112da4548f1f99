//! `tfarrow schema`.

use crate::{
    sequence_schema,
    support::{path, tfarrow, tfarrow_reads},
};

#[track_caller]
fn check(args: &[&str], expected: &str) {
    assert_eq!(tfarrow(&[&["schema"], args].concat()).prints(), expected);
}

#[test]
fn schema_prints_a_table_of_features() {
    check(
        &["testdata/states.tfrecord"],
        "\
13 tf.Example records in 1 shard
+---------+------------+---------+---------+-------+---------+---------------+
| feature | kind       | present | missing | unset | lengths | arrow         |
+---------+------------+---------+---------+-------+---------+---------------+
| b       | bytes_list |  61.5 % |       5 |     2 | 0..3    | list<utf8>    |
| b_empty | bytes_list |  76.9 % |       3 |     0 | 0       | list<binary>  |
| f       | float_list |  61.5 % |       5 |     2 | 0..3    | list<float32> |
| f_empty | float_list |  76.9 % |       3 |     0 | 0       | list<float32> |
| i       | int64_list |  61.5 % |       5 |     2 | 0..3    | list<int64>   |
| i_empty | int64_list |  76.9 % |       3 |     0 | 0       | list<int64>   |
| never   | none       |  76.9 % |       3 |    10 |         | no column     |
+---------+------------+---------+---------+-------+---------+---------------+
",
    );
}

#[test]
fn arrow_format_prints_the_columns() {
    let columns = "city: utf8\nembedding: list<float32>\nimage/encoded: binary\nimage/height: int64\nimage/width: int64\n\
                   label: int64\nprice: float32\ntags: list<utf8>\n";
    check(&["testdata/shards", "--format", "arrow"], columns);
    let raw = tfarrow(&["schema", "testdata/raw.tfrecord", "--format", "arrow"]);
    assert_eq!(
        (raw.status, &*raw.stdout),
        (Some(0), "record: binary not null\n")
    );
    assert!(
        raw.stderr
            .contains("testdata/raw.tfrecord: record 0 (byte 0) is no tf.Example"),
        "{}",
        raw.stderr
    );
    let lists = tfarrow(&[
        "schema",
        "testdata/scalar.tfrecord",
        "--format",
        "arrow",
        "--layout",
        "list",
    ])
    .prints();
    assert_eq!(
        lists,
        "id: list<int64>\npayload: list<binary>\nscore: list<float32>\ntitle: list<binary>\n"
    );
}

#[test]
fn python_format_prints_a_feature_spec() {
    check(
        &["testdata/shards", "--format", "python"],
        r#"# 200 tf.Example records in 4 shards
import tensorflow as tf

features = {
    "city": tf.io.FixedLenFeature([], tf.string),
    "embedding": tf.io.FixedLenFeature([8], tf.float32),
    "image/encoded": tf.io.FixedLenFeature([], tf.string),
    "image/height": tf.io.FixedLenFeature([], tf.int64),
    "image/width": tf.io.FixedLenFeature([], tf.int64),
    "label": tf.io.FixedLenFeature([], tf.int64),
    "price": tf.io.FixedLenFeature([], tf.float32),
    "tags": tf.io.RaggedFeature(tf.string),  # 0..5 values
}

# tf.io.parse_single_example(record, features)
"#,
    );
    let spec = tfarrow(&["schema", "testdata/sequence.tfrecord", "--format", "python"]).prints();
    for line in [
        "    \"id\": tf.io.RaggedFeature(tf.int64),  # 1 value, missing in 4",
        "    \"frame\": tf.io.RaggedFeature(tf.float32),  # 0..3 values",
        "    # \"unset\": has no kind anywhere",
    ] {
        assert!(spec.lines().any(|l| l == line), "{line}\nin\n{spec}");
    }
}

#[test]
fn sql_format_declares_a_table_with_the_same_rows() {
    check(
        &["testdata/shards", "--format", "sql"],
        r#"CREATE EXTERNAL TABLE "train" -- 200 tf.Example records in 4 shards
(
  "city" VARCHAR NOT NULL,
  "embedding" FLOAT[8] NOT NULL,
  "image/encoded" BYTEA NOT NULL,
  "image/height" BIGINT NOT NULL,
  "image/width" BIGINT NOT NULL,
  "label" BIGINT NOT NULL,
  "price" FLOAT NOT NULL,
  "tags" VARCHAR[] NOT NULL
) STORED AS TFRECORD LOCATION 'testdata/shards' OPTIONS (record_type 'example');
"#,
    );
    for (source, table) in [
        ("testdata/shards", "train"),
        ("testdata/scalar.tfrecord", "scalar"),
        ("testdata/ragged.tfrecord", "ragged"),
        ("testdata/states.tfrecord", "states"),
        ("testdata/text.tfrecord", "text"),
        ("testdata/numbers.tfrecord", "numbers"),
        ("testdata/raw.tfrecord", "raw"),
    ] {
        let statement = tfarrow(&["schema", source, "--format", "sql"]).stdout;
        let rows = |sql: &str| {
            let printed = tfarrow_reads(&["sql", "--format", "ndjson"], sql.as_bytes()).prints();
            let mut rows: Vec<_> = printed.lines().map(str::to_owned).collect();
            rows.sort();
            rows
        };
        let declared = rows(&format!("{statement} SELECT * FROM \"{table}\";"));
        assert_eq!(
            declared,
            rows(&format!("SELECT * FROM '{source}'")),
            "{statement}"
        );
        assert!(!declared.is_empty());
    }
}

#[test]
fn sql_format_declares_columns_of_feature_lists() {
    let statement = tfarrow(&["schema", "testdata/sequence.tfrecord", "--format", "sql"]).prints();
    let sql = format!("{statement} SELECT id, frame, token FROM sequence;");
    let declared = tfarrow_reads(&["sql", "--format", "ndjson"], sql.as_bytes());
    assert!(
        declared.stderr.contains("\"empty\", \"shared\", \"unset\""),
        "{}",
        declared.stderr
    );
    let declared = declared.stdout;
    let sql = "SELECT id, frame, token FROM read_tfrecord('testdata/sequence.tfrecord')";
    assert_eq!(
        declared,
        tfarrow(&["sql", "--format", "ndjson", sql]).prints()
    );
    for line in [
        "  \"frame\" FLOAT[][],",
        "  -- \"shared\": cannot be declared; its column is called \"feature_lists/shared\"",
    ] {
        assert!(
            statement.lines().any(|l| l == line),
            "{line}\nin\n{statement}"
        );
    }
    let two = tfarrow(&[
        "schema",
        "testdata/scalar.tfrecord",
        "testdata/it's",
        "--format",
        "sql",
    ]);
    assert_eq!(two.status, Some(1));
    let two = [
        "testdata/shards/train-00000-of-00004.tfrecord",
        "testdata/shards/train-00001-of-00004.tfrecord",
    ];
    let statement = tfarrow(&["schema", two[0], two[1], "--format", "sql"]).prints();
    let sql = format!("{statement} SELECT count(*) AS n FROM train;");
    assert_eq!(
        tfarrow_reads(&["sql", "--format", "csv"], sql.as_bytes()).prints(),
        "n\n100\n"
    );
}

#[test]
fn rust_format_prints_a_module_that_compiles() {
    // The compiled module is the output of the program.
    let printed = tfarrow(&["schema", "testdata/sequence.tfrecord", "--format", "rust"]).prints();
    assert_eq!(printed, include_str!("sequence_schema.rs"));
    let bytes = std::fs::read(path("testdata/sequence.tfrecord")).unwrap();
    let inferred =
        tfarrow_codec::infer::infer_schema(bytes.as_slice(), tfarrow_codec::Layout::Auto, None)
            .unwrap();
    let schema = sequence_schema::schema();
    assert_eq!(schema.metadata(), inferred.metadata());
    let plain = |schema: &arrow_schema::Schema| {
        let fields = schema.fields().iter();
        fields
            .map(|f| (f.name().clone(), f.data_type().clone(), f.is_nullable()))
            .collect::<Vec<_>>()
    };
    assert_eq!(plain(&schema), plain(&inferred));
    // Both schemas decode to the same columns.
    let decode = |schema: &arrow_schema::Schema| {
        let records =
            tfarrow_codec::Records::from_frames(bytes.clone(), tfarrow_codec::Limits::default())
                .unwrap();
        let mut decoder = tfarrow_codec::ReaderBuilder::new(schema.clone().into())
            .build_batch_decoder()
            .unwrap();
        decoder.decode(&records).unwrap().columns().to_vec()
    };
    assert_eq!(decode(&schema), decode(&inferred));
}

#[test]
fn features_json_format_prints_features_of_tensorflow_datasets() {
    let json = tfarrow(&["schema", "testdata/shards", "--format", "features-json"]).prints();
    let json: serde_json::Value = serde_json::from_str(&json).unwrap();
    let class = |name: &str| format!("tensorflow_datasets.core.features.{name}");
    assert_eq!(json["pythonClassName"], class("features_dict.FeaturesDict"));
    let features = &json["featuresDict"]["features"];
    assert_eq!(
        features["city"],
        serde_json::json!({"pythonClassName": class("text_feature.Text"), "text": {}})
    );
    let embedding =
        serde_json::json!({"shape": {"dimensions": ["8"]}, "dtype": "float32", "encoding": "none"});
    assert_eq!(features["embedding"]["tensor"], embedding);
    assert_eq!(features["tags"]["sequence"]["feature"], features["city"]);
    let sequences = tfarrow(&[
        "schema",
        "testdata/sequence.tfrecord",
        "--format",
        "features-json",
    ]);
    assert!(sequences.ends(2).contains("these are sequence-example"));
}

#[test]
fn json_format_prints_all_figures() {
    let json = tfarrow(&["schema", "testdata/scalar.tfrecord", "--format", "json"]).prints();
    let json: serde_json::Value = serde_json::from_str(&json).unwrap();
    assert_eq!(
        (&json["record_type"], &json["records"]),
        (&"example".into(), &20.into())
    );
    let expected = serde_json::json!({
        "name": "id", "role": "feature", "kind": "int64_list", "arrow": "int64", "present": 20, "missing": 0, "unset": 0,
        "lists": 20, "lengths": [1, 1], "values": 20,
    });
    assert_eq!(json["features"][0], expected);
    assert_eq!(json["features"][3]["utf8"], true);
}

#[test]
fn schema_reports_mixed_kinds_and_continues() {
    for format in [
        "table",
        "json",
        "arrow",
        "python",
        "rust",
        "sql",
        "features-json",
    ] {
        let run = tfarrow(&["schema", "testdata/mixed_kinds", "--format", format]);
        assert!(run.stdout.contains('y'), "{format}: {}", run.stdout);
        let stderr = run.ends(3);
        let places = [
            "feature \"x\" has more than one kind",
            "int64_list first in testdata/mixed_kinds/part-00000-of-00002.tfrecord, record 0",
            "float_list first in testdata/mixed_kinds/part-00001-of-00002.tfrecord, record 0",
        ];
        for place in places {
            assert!(stderr.contains(place), "{format}: {stderr}");
        }
    }
}

#[test]
fn schema_reports_the_size_of_its_sample() {
    let table = tfarrow(&["schema", "--sample", "5", "testdata/shards"]).prints();
    assert!(
        table.starts_with("20 tf.Example records, a sample of 4 of 4 shards\n"),
        "{table}"
    );
}

#[test]
fn schema_of_a_corrupt_file_is_an_error() {
    let error = tfarrow(&["schema", "testdata/corrupt/data.tfrecord"]).fails();
    assert!(
        error.starts_with("testdata/corrupt/data.tfrecord: record 1 (byte "),
        "{error}"
    );
}
