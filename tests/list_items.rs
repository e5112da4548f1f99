//! Lists in Parquet files: conversions declare items as required, and read the files of earlier
//! versions, which did not.

use std::{
    fs::{self, File},
    path::Path,
    sync::Arc,
};

use arrow_array::RecordBatch;
use arrow_cast::cast;
use arrow_schema::{DataType, Field};
use parquet::arrow::{ArrowWriter, arrow_reader::ParquetRecordBatchReaderBuilder};
use tfarrow_codec::file_schema::with_nullable_items;

use crate::support::{path, tfarrow};

const SHAPE: [&str; 4] = [
    "--proto",
    "testdata/message/shapes.desc",
    "--message",
    "Shape",
];

/// The data sets with lists: features, features without a kind, feature lists, lists of examples,
/// and messages.
fn sources() -> Vec<(&'static str, &'static [&'static str])> {
    vec![
        ("testdata/ragged.tfrecord", &[]),
        ("testdata/states.tfrecord", &["--exact"]),
        ("testdata/sequence.tfrecord", &["--layout", "list"]),
        ("testdata/example_list/queries.tfrecord", &[]),
        ("testdata/message/shapes.tfrecord", &SHAPE),
    ]
}

/// Asserts that no items of lists are nullable, except the steps of feature lists.
fn assert_required(field: &Field) {
    match field.data_type() {
        DataType::List(item) => {
            let is_step = matches!(item.data_type(), DataType::List(_));
            assert_eq!(item.is_nullable(), is_step, "{field}");
            assert_required(item);
        }
        DataType::Struct(fields) => fields.iter().for_each(|field| assert_required(field)),
        DataType::Map(entries, _) => assert_required(entries),
        _ => {}
    }
}

/// Writes the rows of a Parquet file with nullable items, as earlier versions did.
fn write_earlier(now: &Path, earlier: &Path) {
    let reader = ParquetRecordBatchReaderBuilder::try_new(File::open(now).unwrap()).unwrap();
    let schema = with_nullable_items(reader.schema(), true);
    let mut writer =
        ArrowWriter::try_new(File::create(earlier).unwrap(), Arc::clone(&schema), None).unwrap();
    for batch in reader.build().unwrap() {
        let batch = batch.unwrap();
        let columns = batch.columns().iter().zip(schema.fields());
        let columns = columns
            .map(|(column, field)| cast(column, field.data_type()).unwrap())
            .collect();
        writer
            .write(&RecordBatch::try_new(Arc::clone(&schema), columns).unwrap())
            .unwrap();
    }
    writer.close().unwrap();
}

#[test]
fn items_of_lists_are_required_in_converted_parquet_files() {
    let folder = tempfile::tempdir().unwrap();
    for (number, (source, options)) in sources().into_iter().enumerate() {
        let file = folder.path().join(format!("{number}.parquet"));
        tfarrow(&[&["convert", source, file.to_str().unwrap()], options].concat()).ends(0);
        let reader = ParquetRecordBatchReaderBuilder::try_new(File::open(&file).unwrap()).unwrap();
        reader
            .schema()
            .fields()
            .iter()
            .for_each(|field| assert_required(field));
        // A list is null, or empty, or has an item, at these levels.
        let columns = reader.parquet_schema().columns();
        let lists = columns
            .iter()
            .filter(|column| column.max_rep_level() == 1 && column.path().parts().len() == 3);
        assert!(
            lists.clone().count() > 0 && lists.clone().all(|column| column.max_def_level() <= 2),
            "{source}"
        );
    }
}

#[test]
fn files_of_earlier_versions_are_read_with_new_ones() {
    for (source, options) in sources() {
        let folder = tempfile::tempdir().unwrap();
        let at = |name: &str| folder.path().join(name).display().to_string();
        fs::create_dir(at("both")).unwrap();
        let (now, earlier) = (at("both/now.parquet"), at("both/earlier.parquet"));
        tfarrow(&[&["convert", source, &now], options].concat()).ends(0);
        write_earlier(Path::new(&now), Path::new(&earlier));
        let both = at("both");
        for (number, from) in [&now, &earlier].into_iter().enumerate() {
            let back = at(&format!("{number}.tfrecord"));
            tfarrow(&["convert", from, &back]).ends(0);
            assert!(
                tfarrow(&[&["diff", &now, from][..]].concat())
                    .prints()
                    .ends_with("equal\n")
            );
        }
        let bytes = fs::read(at("0.tfrecord")).unwrap();
        assert_eq!(fs::read(at("1.tfrecord")).unwrap(), bytes, "{source}");
        if options.contains(&"--exact") {
            assert_eq!(bytes, fs::read(path(source)).unwrap());
        }
        let twice = [bytes.clone(), bytes].concat();
        for to in ["parquet", "arrow"] {
            let (merged, back) = (at(&format!("merged.{to}")), at(&format!("{to}.tfrecord")));
            tfarrow(&["convert", &both, &merged]).ends(0);
            tfarrow(&["convert", &merged, &back]).ends(0);
            assert_eq!(fs::read(back).unwrap(), twice, "{source} {to}");
        }
        tfarrow(&["convert", &both, &at("merged.tfrecord")]).ends(0);
        assert_eq!(fs::read(at("merged.tfrecord")).unwrap(), twice, "{source}");
        tfarrow(&[
            "convert",
            &both,
            &at("shards/"),
            "--to",
            "parquet",
            "--shards",
            "3",
        ])
        .ends(0);
        for command in ["head", "count", "schema"] {
            tfarrow(&[command, &both]).prints();
        }
        let rows = |name: &str| {
            tfarrow(&[
                "sql",
                &format!("SELECT * FROM '{name}'"),
                "--format",
                "ndjson",
            ])
            .prints()
        };
        assert_eq!(
            rows(&both),
            [rows(&earlier), rows(&now)].concat(),
            "{source}"
        );
    }
}

/// These functions of DataFusion put nulls in a list of the type of their argument.
#[test]
fn functions_of_sql_put_nulls_in_the_lists_of_converted_files() {
    let folder = tempfile::tempdir().unwrap();
    for format in ["parquet", "arrow"] {
        let file = folder
            .path()
            .join(format!("ragged.{format}"))
            .display()
            .to_string();
        tfarrow(&["convert", "testdata/ragged.tfrecord", &file]).ends(0);
        for list in [
            "array_resize(ints, 9)",
            "array_union(ints, [NULL])",
            "lead(ints, 1, [NULL]) OVER ()",
            "array_repeat(ints, 2)",
        ] {
            let of = |source: &str| {
                let query = format!("SELECT {list} AS list FROM '{source}'");
                tfarrow(&["sql", &query, "--format", "ndjson"]).prints()
            };
            assert_eq!(of(&file), of("testdata/ragged.tfrecord"), "{list}");
        }
        let table = format!("CREATE EXTERNAL TABLE t STORED AS {format} LOCATION '{file}'");
        let query = "SELECT array_resize(ints, 9) AS list FROM t WHERE cardinality(ints) = 2";
        tfarrow(&["sql", &format!("{table}; {query}"), "--format", "ndjson"]).ends(0);
    }
}
