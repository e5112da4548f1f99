//! Bloom filters and page indexes of Parquet outputs.

use std::fs::File;

use parquet::{
    bloom_filter::Sbbf,
    data_type::AsBytes,
    file::{
        page_index::column_index::ColumnIndexMetaData,
        properties::ReaderProperties,
        reader::{FileReader, SerializedFileReader},
        serialized_reader::ReadOptionsBuilder,
    },
};
use tfarrow_dataset::{FormatFilter, resolve_filtered};
use tfarrow_scan::{VerifyOptions, verify};

use super::*;

/// A Parquet file whose Bloom filters are read as well.
fn open(path: &Path) -> SerializedFileReader<File> {
    let properties = ReaderProperties::builder()
        .set_read_bloom_filter(true)
        .build();
    let options = ReadOptionsBuilder::new()
        .with_reader_properties(properties)
        .build();
    SerializedFileReader::new_with_options(File::open(path).unwrap(), options).unwrap()
}

/// A Parquet file whose page index is read as well.
fn open_indexed(path: &Path) -> SerializedFileReader<File> {
    let options = ReadOptionsBuilder::new().with_page_index().build();
    SerializedFileReader::new_with_options(File::open(path).unwrap(), options).unwrap()
}

/// The Bloom filter of a column in each row group.
fn filters(file: &SerializedFileReader<File>, column: &str) -> Vec<Option<Sbbf>> {
    let columns = file.metadata().file_metadata().schema_descr().columns();
    let index = columns
        .iter()
        .position(|leaf| leaf.path().parts()[0] == column)
        .unwrap();
    let groups = 0..file.num_row_groups();
    groups
        .map(|group| {
            file.get_row_group(group)
                .unwrap()
                .get_column_bloom_filter(index)
                .cloned()
        })
        .collect()
}

/// Records with the numbers of `ids`, three of them in a list, and a text.
fn records_of(ids: std::ops::Range<i64>) -> Vec<u8> {
    let lists = ListArray::from_iter_primitive::<Int64Type, _, _>(
        ids.clone()
            .map(|i| Some([3 * i, 3 * i + 1, 3 * i + 2].map(Some))),
    );
    let texts = StringArray::from_iter_values(ids.clone().map(|i| format!("text {i}")));
    encoded(&[
        ("id", Arc::new(Int64Array::from_iter_values(ids))),
        ("list", Arc::new(lists)),
        ("text", Arc::new(texts)),
    ])
}

fn with_filters(names: &[&str]) -> ConvertOptions {
    let bloom_filters = names.iter().map(ToString::to_string).collect();
    ConvertOptions {
        bloom_filters,
        row_group_rows: 1000,
        ..options(Target::Parquet, 3)
    }
}

#[test]
fn bloom_filters_contain_the_values_of_their_row_group_and_few_others() {
    let folder = Folder::new();
    let source = folder.write("a.tfrecord", &records_of(0..5000));
    folder
        .convert(&source, "a.parquet", &with_filters(&["id", "li*", "text"]))
        .unwrap();
    let file = open(&folder.path("a.parquet"));
    let check = |column: &str, per_row: i64, contains: &dyn Fn(&Sbbf, i64) -> bool| {
        let filters = filters(&file, column);
        assert_eq!(filters.len(), 5);
        for (group, filter) in (0..).zip(filters) {
            let (filter, rows) = (filter.unwrap(), 1000 * per_row);
            assert!(
                (group * rows..(group + 1) * rows).all(|value| contains(&filter, value)),
                "{column} {group}"
            );
            let others = (1_000_000..1_010_000)
                .filter(|value| contains(&filter, *value))
                .count();
            assert!(
                others < 200,
                "{column} {group}: {others} of 10,000 other values, with 1 % expected"
            );
        }
    };
    check("id", 1, &|filter, value| filter.check(&value));
    check("list", 3, &|filter, value| filter.check(&value));
    check("text", 1, &|filter, value| {
        filter.check(format!("text {value}").as_str())
    });
    // The filters are as small as their values allow: 1,000 values take about 10 bits each.
    let columns = file.metadata().row_group(0).columns().iter();
    let lengths: Vec<_> = columns
        .map(|column| column.bloom_filter_length().unwrap())
        .collect();
    assert!(lengths.iter().all(|length| *length < 10_000), "{lengths:?}");
}

#[test]
fn only_the_named_columns_have_bloom_filters() {
    let folder = Folder::new();
    let source = folder.write("a.tfrecord", &records_of(0..3000));
    folder
        .convert(&source, "none.parquet", &with_filters(&[]))
        .unwrap();
    folder
        .convert(&source, "one.parquet", &with_filters(&["text"]))
        .unwrap();
    folder
        .convert(
            &folder.path("none.parquet"),
            "of-parquet.parquet",
            &with_filters(&["text"]),
        )
        .unwrap();
    let exact = ConvertOptions {
        exact: true,
        ..with_filters(&["*"])
    };
    folder.convert(&source, "all.parquet", &exact).unwrap();
    let has = |file: &str, column: &str| {
        let filters = filters(&open(&folder.path(file)), column);
        assert!(
            filters
                .iter()
                .all(|filter| filter.is_some() == filters[0].is_some())
        );
        filters[0].is_some()
    };
    assert!(!has("none.parquet", "id") && !has("none.parquet", "text"));
    assert!(!has("one.parquet", "id") && has("one.parquet", "text"));
    assert!(!has("of-parquet.parquet", "id") && has("of-parquet.parquet", "text"));
    assert!(
        has("all.parquet", "id")
            && has("all.parquet", "list")
            && !has("all.parquet", "_tfarrow_exact")
    );
    folder
        .convert(
            &folder.path("all.parquet"),
            "back.tfrecord",
            &options(Target::TfRecord, 2),
        )
        .unwrap();
    assert!(records(&folder.path("back.tfrecord")) == records(&source));
}

#[test]
fn bloom_filters_of_unknown_columns_and_other_formats_are_refused() {
    let folder = Folder::new();
    let source = folder.write("a.tfrecord", &records_of(0..10));
    folder
        .convert(&source, "a.parquet", &with_filters(&[]))
        .unwrap();
    for source in [&source, &folder.path("a.parquet")] {
        let error = folder
            .convert(source, "b.parquet", &with_filters(&["id", "txet"]))
            .unwrap_err();
        assert!(
            error.is_usage()
                && error
                    .to_string()
                    .contains("no column \"txet\" (did you mean \"text\"?)"),
            "{error}"
        );
        assert_eq!(
            error.to_string().contains("a.parquet"),
            source.ends_with("a.parquet"),
            "{error}"
        );
    }
    for to in [Target::Arrow, Target::TfRecord] {
        let wrong = [
            with_filters(&["id"]),
            ConvertOptions {
                page_index: false,
                ..with_filters(&[])
            },
        ];
        for (wrong, what) in wrong.into_iter().zip(["Bloom filters", "a page index"]) {
            let error = folder
                .convert(
                    &source,
                    "b/",
                    &ConvertOptions {
                        to: Some(to),
                        ..wrong
                    },
                )
                .unwrap_err();
            let expected = format!(
                "only Parquet files have {what}, and the output format is {}",
                to.name()
            );
            assert!(
                error.is_usage() && error.to_string().contains(&expected),
                "{error}"
            );
        }
    }
    let columns: Vec<_> = (0..65)
        .map(|i| {
            (
                format!("c{i}"),
                Arc::new(Int64Array::from(vec![1])) as ArrayRef,
            )
        })
        .collect();
    let columns: Vec<_> = columns
        .iter()
        .map(|(name, array)| (name.as_str(), Arc::clone(array)))
        .collect();
    let wide = folder.write("wide.tfrecord", &encoded(&columns));
    let error = folder
        .convert(&wide, "b.parquet", &with_filters(&["*"]))
        .unwrap_err();
    assert!(
        error.is_usage()
            && error
                .to_string()
                .contains("65 columns would have a Bloom filter"),
        "{error}"
    );
    assert!(!folder.path("b.parquet").exists() && !folder.path("b").exists());
}

/// The checksum of a row group covers its Bloom filters.
#[test]
fn a_corrupt_bloom_filter_is_found() {
    let folder = Folder::new();
    let source = folder.write("a.tfrecord", &records_of(0..3000));
    folder
        .convert(&source, "a.parquet", &with_filters(&["id", "text"]))
        .unwrap();
    let path = folder.path("a.parquet");
    let valid = fs::read(&path).unwrap();
    let faults = || {
        let shards = resolve_filtered(&[&path], FormatFilter::ToVerify)
            .unwrap()
            .shards;
        let read = ReadOptions::default();
        let options = VerifyOptions {
            threads: 2,
            read,
            max_faults: 10,
            ..VerifyOptions::default()
        };
        let verified = verify(
            shards,
            &options,
            &|_, _| std::ops::ControlFlow::Continue(()),
        )
        .unwrap();
        assert!(verified.without_checksums.is_empty());
        verified
            .damage
            .faults()
            .iter()
            .map(|fault| fault.error.to_string())
            .collect::<Vec<_>>()
    };
    assert_eq!(faults(), [""; 0]);
    let groups = open(&path).metadata().row_groups().to_vec();
    for (number, group) in groups.iter().enumerate() {
        for column in [0, 2] {
            let column = group.column(column);
            let start = column.bloom_filter_offset().unwrap() as usize;
            let last = start + column.bloom_filter_length().unwrap() as usize - 1;
            for at in [start, last] {
                let mut corrupt = valid.clone();
                corrupt[at] ^= 1;
                fs::write(&path, corrupt).unwrap();
                let faults = faults();
                assert!(
                    faults.len() == 1 && faults[0].contains(&format!("row group {number} ")),
                    "{faults:?}"
                );
            }
        }
    }
}

#[test]
fn pages_have_an_index_unless_it_is_turned_off() {
    let folder = Folder::new();
    let source = folder.write("a.tfrecord", &records_of(0..60_000));
    let indexed = ConvertOptions {
        row_group_rows: 50_000,
        ..options(Target::Parquet, 2)
    };
    let plain = ConvertOptions {
        page_index: false,
        ..indexed.clone()
    };
    folder
        .convert(
            &source,
            "indexed.parquet",
            &ConvertOptions {
                row_group_bytes: 64 << 20,
                ..indexed
            },
        )
        .unwrap();
    folder
        .convert(
            &source,
            "plain.parquet",
            &ConvertOptions {
                row_group_bytes: 64 << 20,
                ..plain
            },
        )
        .unwrap();
    let (indexed, plain) = (
        open_indexed(&folder.path("indexed.parquet")),
        open(&folder.path("plain.parquet")),
    );
    let (ranges, places) = (
        indexed.metadata().column_index().unwrap(),
        indexed.metadata().offset_index().unwrap(),
    );
    assert_eq!((ranges.len(), places.len()), (2, 2));
    for (group, (ranges, places)) in ranges.iter().zip(places).enumerate() {
        let rows = indexed.metadata().row_group(group).num_rows();
        assert_eq!((ranges.len(), places.len()), (3, 3), "columns");
        assert!(
            group > 0 || places[0].page_locations().len() > 1,
            "several pages"
        );
        // The column `id` increases by one from row to row.
        let ColumnIndexMetaData::INT64(ids) = &ranges[0] else {
            unreachable!("{:?}", ranges[0])
        };
        let firsts: Vec<_> = places[0]
            .page_locations()
            .iter()
            .map(|page| page.first_row_index)
            .collect();
        let base = 50_000 * group as i64;
        let expected: Vec<_> = firsts.iter().map(|first| base + first).collect();
        assert_eq!(ids.min_values(), expected);
        assert_eq!(*ids.max_values().last().unwrap(), base + rows - 1);
    }
    let has_index = |file: &SerializedFileReader<File>| {
        let groups = file.metadata().row_groups().iter();
        groups.flat_map(|group| group.columns()).any(|column| {
            column.column_index_offset().is_some() || column.offset_index_offset().is_some()
        })
    };
    assert!(has_index(&indexed) && !has_index(&plain));
    // The ranges of row groups are there in both files.
    let ranges = |file: &SerializedFileReader<File>| {
        file.metadata().row_group(0).column(0).statistics().cloned()
    };
    assert!(ranges(&plain).is_some_and(|ranges| ranges.min_bytes_opt() == Some(0_i64.as_bytes())));
    assert_eq!(ranges(&plain), ranges(&indexed));
}
