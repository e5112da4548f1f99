//! One file for many sources.

use std::fs;

use parquet::file::reader::{FileReader, SerializedFileReader};
use tfarrow_codec::OnError;

use super::*;

/// Writes 30 shards of 100 records, and one file of all of them. Returns their folder and the file.
fn shards(folder: &Folder) -> (PathBuf, PathBuf) {
    for shard in 0..30 {
        folder.write(
            &format!("in/{shard:02}.tfrecord"),
            &frames(shard * 100, 100),
        );
    }
    (
        folder.path("in"),
        folder.write("one.tfrecord", &frames(0, 3_000)),
    )
}

/// The number of rows of each row group.
fn row_groups(path: &Path) -> Vec<i64> {
    let reader = SerializedFileReader::new(fs::File::open(path).unwrap()).unwrap();
    reader
        .metadata()
        .row_groups()
        .iter()
        .map(|group| group.num_rows())
        .collect()
}

#[test]
fn all_records_of_all_shards_are_in_one_file_in_order() {
    let folder = Folder::new();
    let (shards, one) = shards(&folder);
    for to in [Target::Parquet, Target::Arrow, Target::TfRecord] {
        let merged = |jobs: usize| folder.path(&format!("{jobs}.{}", to.name()));
        for jobs in [1, 2, 7] {
            let report = folder
                .convert(
                    &shards,
                    &format!("{jobs}.{}", to.name()),
                    &options(to, jobs),
                )
                .unwrap();
            assert_eq!(
                (report.shards, report.files, report.records),
                (30, 1, 3_000)
            );
        }
        let bytes = fs::read(merged(1)).unwrap();
        assert!(
            bytes == fs::read(merged(2)).unwrap() && bytes == fs::read(merged(7)).unwrap(),
            "{to:?}"
        );
        folder
            .convert(
                &merged(1),
                &format!("back-{to:?}.tfrecord"),
                &options(Target::TfRecord, 2),
            )
            .unwrap();
        assert!(
            records(&folder.path(&format!("back-{to:?}.tfrecord"))) == records(&one),
            "{to:?}"
        );
    }
    assert_eq!(
        fs::read(folder.path("1.tfrecord")).unwrap(),
        fs::read(&one).unwrap(),
        "frames are copied"
    );
}

/// A shard has a tenth of a row group.
#[test]
fn row_groups_continue_in_the_next_shard() {
    let folder = Folder::new();
    let (shards, one) = shards(&folder);
    for (name, source) in [("merged.parquet", &shards), ("one.parquet", &one)] {
        folder
            .convert(source, name, &options(Target::Parquet, 3))
            .unwrap();
    }
    // A row group ends after a batch, and a batch ends with its shard.
    let (merged, one) = (
        row_groups(&folder.path("merged.parquet")),
        row_groups(&folder.path("one.parquet")),
    );
    let (_, complete) = merged.split_last().unwrap();
    assert!(
        complete.len() > 1 && merged.len() <= one.len() + 1,
        "{merged:?} {one:?}"
    );
    assert!(
        complete.iter().all(|rows| *rows > 500),
        "{merged:?} {one:?}"
    );
    let limited = ConvertOptions {
        row_group_rows: 250,
        ..options(Target::Parquet, 3)
    };
    folder
        .convert(&shards, "limited.parquet", &limited)
        .unwrap();
    assert_eq!(row_groups(&folder.path("limited.parquet")), [250; 12]);
    // So do those of new shards.
    let cut = ConvertOptions {
        reshard: Some(Reshard::Shards(2)),
        ..limited
    };
    folder.convert(&shards, "cut/", &cut).unwrap();
    let cut = folder.path("cut");
    let groups: Vec<_> = files(&cut)
        .iter()
        .map(|name| row_groups(&cut.join(name)))
        .collect();
    assert_eq!(groups, [[250; 6], [250; 6]]);
}

#[test]
fn small_row_groups_and_batches_of_sources_are_joined() {
    let folder = Folder::new();
    let (shards, one) = shards(&folder);
    for format in [Target::Parquet, Target::Arrow] {
        let small = ConvertOptions {
            row_group_rows: 10,
            ..options(format, 2)
        };
        folder
            .convert(&shards, &format!("{format:?}/"), &small)
            .unwrap();
        let name = format!("of-{format:?}.parquet");
        for jobs in [1, 4] {
            let options = ConvertOptions {
                overwrite: true,
                jobs,
                ..ConvertOptions::default()
            };
            folder
                .convert(&folder.path(&format!("{format:?}")), &name, &options)
                .unwrap();
            assert_eq!(row_groups(&folder.path(&name)), [3_000], "{format:?}");
        }
        // 700 rows are 70 row groups of 10 rows.
        let limited = ConvertOptions {
            overwrite: true,
            row_group_rows: 700,
            ..ConvertOptions::default()
        };
        folder
            .convert(&folder.path(&format!("{format:?}")), &name, &limited)
            .unwrap();
        assert_eq!(
            row_groups(&folder.path(&name)),
            [700, 700, 700, 700, 200],
            "{format:?}"
        );
        folder
            .convert(
                &folder.path(&name),
                &format!("{format:?}.tfrecord"),
                &ConvertOptions::default(),
            )
            .unwrap();
        assert!(
            records(&folder.path(&format!("{format:?}.tfrecord"))) == records(&one),
            "{format:?}"
        );
    }
}

/// A row group is not cut, and the next one may be too large for the rest of a unit.
#[test]
fn row_groups_that_do_not_fit_together_stay_apart() {
    let folder = Folder::new();
    let (shards, _) = shards(&folder);
    folder
        .convert(&shards, "groups/", &ConvertOptions::default())
        .unwrap();
    let options = ConvertOptions {
        row_group_rows: 250,
        ..ConvertOptions::default()
    };
    folder
        .convert(&folder.path("groups"), "merged.parquet", &options)
        .unwrap();
    assert_eq!(row_groups(&folder.path("merged.parquet")), [200; 15]);
}

#[test]
fn columns_of_sources_must_agree_in_one_file() {
    let folder = Folder::new();
    let number: ArrayRef = Arc::new(Int64Array::from_iter_values([1]));
    folder.write("a/a.tfrecord", &encoded(&[("x", Arc::clone(&number))]));
    folder.write("b/b.tfrecord", &encoded(&[("y", number)]));
    for set in ["a", "b"] {
        folder
            .convert(&folder.path(set), "parquet/", &options(Target::Parquet, 1))
            .unwrap();
    }
    let error = folder
        .convert(
            &folder.path("parquet"),
            "all.parquet",
            &ConvertOptions::default(),
        )
        .unwrap_err();
    let (error, second) = (error.to_string(), folder.path("parquet/b.parquet"));
    assert!(
        error.starts_with(&format!("{}: the columns differ", second.display())),
        "{error}"
    );
    assert_eq!(files(folder.0.path()), ["a", "b", "parquet"]);
    // The columns of TFRecord sources are inferred from all of them.
    let sources = [folder.path("a"), folder.path("b")];
    convert(
        &sources,
        &folder.path("all.parquet"),
        &ConvertOptions::default(),
        &Progress::default(),
    )
    .unwrap();
    folder
        .convert(
            &folder.path("all.parquet"),
            "all.tfrecord",
            &ConvertOptions::default(),
        )
        .unwrap();
    assert_eq!(records(&folder.path("all.tfrecord")).len(), 2);
}

#[test]
fn exact_records_of_many_shards_are_restored() {
    let folder = Folder::new();
    // The features in another order than the encoder writes them.
    let record = b"\x0a\x1c\x0a\x0c\x0a\x01b\x12\x07\x1a\x05\x0a\x03\x01\x02\x03\x0a\x0c\x0a\x01a\x12\x07\x1a\x05\x0a\x03\x04\x05\x06";
    for shard in 0..3 {
        let mut bytes = Vec::new();
        (0..=shard).for_each(|_| frame::write(record, &mut bytes));
        folder.write(&format!("in/{shard}.tfrecord"), &bytes);
    }
    let exact = ConvertOptions {
        exact: true,
        ..ConvertOptions::default()
    };
    folder
        .convert(&folder.path("in"), "all.parquet", &exact)
        .unwrap();
    folder
        .convert(
            &folder.path("all.parquet"),
            "back.tfrecord",
            &ConvertOptions::default(),
        )
        .unwrap();
    assert_eq!(
        records(&folder.path("back.tfrecord")),
        vec![record.to_vec(); 6]
    );
}

#[test]
fn damage_of_any_shard_is_skipped_reported_and_quarantined() {
    let folder = Folder::new();
    let (shards, _) = shards(&folder);
    let mut bytes = fs::read(folder.path("in/17.tfrecord")).unwrap();
    bytes[20] ^= 1;
    fs::write(folder.path("in/17.tfrecord"), bytes).unwrap();
    let skip = ConvertOptions {
        read: ReadOptions {
            on_error: OnError::Skip,
            ..ReadOptions::default()
        },
        quarantine: Some(folder.path("lost.tfrecord")),
        ..options(Target::Parquet, 3)
    };
    for options in [
        &skip,
        &ConvertOptions {
            resume: true,
            ..skip.clone()
        },
    ] {
        let report = folder.convert(&shards, "all.parquet", options).unwrap();
        assert_eq!((report.records, report.damage.records), (2_999, 1));
        assert!(report.sources[report.damage.faults()[0].shard].ends_with("17.tfrecord"));
        assert_eq!(records(&folder.path("lost.tfrecord")).len(), 1);
    }
}

#[test]
fn a_complete_file_is_compared_when_its_conversion_is_resumed() {
    let folder = Folder::new();
    let (shards, _) = shards(&folder);
    let resume = ConvertOptions {
        resume: true,
        ..options(Target::Parquet, 3)
    };
    folder
        .convert(&shards, "all.parquet", &options(Target::Parquet, 2))
        .unwrap();
    assert!(matches!(
        folder.convert(&shards, "all.parquet", &options(Target::Parquet, 2)),
        Err(Error::Exists { others: 0, .. })
    ));
    folder.convert(&shards, "all.parquet", &resume).unwrap();
    folder.write("in/29.tfrecord", &frames(5_000, 100));
    let error = folder.convert(&shards, "all.parquet", &resume).unwrap_err();
    assert!(matches!(error, Error::Differs { .. }), "{error}");
    assert_eq!(
        files(folder.0.path()),
        ["all.parquet", "in", "one.tfrecord"],
        "the journal is removed"
    );
}

#[test]
fn a_common_compression_is_restored() {
    let folder = Folder::new();
    let compress = |options: ConvertOptions| ConvertOptions {
        compression: Some(OutputCompression::Gzip),
        ..options
    };
    let (shards, _) = shards(&folder);
    folder
        .convert(&shards, "gzip/", &compress(options(Target::TfRecord, 2)))
        .unwrap();
    let original = ConvertOptions {
        compression: Some(OutputCompression::Original),
        ..options(Target::TfRecord, 2)
    };
    folder
        .convert(
            &folder.path("gzip"),
            "gzip.parquet",
            &options(Target::Parquet, 2),
        )
        .unwrap();
    folder
        .convert(&folder.path("gzip.parquet"), "gzip-back/", &original)
        .unwrap();
    assert_eq!(files(&folder.path("gzip-back")), ["gzip.tfrecord.gz"]);
    let sources = [folder.path("gzip"), folder.path("in")];
    convert(
        &sources,
        &folder.path("mixed.parquet"),
        &options(Target::Parquet, 2),
        &Progress::default(),
    )
    .unwrap();
    folder
        .convert(&folder.path("mixed.parquet"), "mixed-back/", &original)
        .unwrap();
    assert_eq!(files(&folder.path("mixed-back")), ["mixed.tfrecord"]);
}

#[test]
fn one_file_is_not_cut_into_new_shards() {
    let folder = Folder::new();
    let (shards, _) = shards(&folder);
    let cut = ConvertOptions {
        reshard: Some(Reshard::Shards(2)),
        ..ConvertOptions::default()
    };
    let error = folder.convert(&shards, "all.parquet", &cut).unwrap_err();
    assert!(
        error.is_usage()
            && error
                .to_string()
                .ends_with("one file cannot hold new shards; name a folder"),
        "{error}"
    );
}

/// A value that fills a row group has one of its own, in one page, and without statistics, for
/// which the value would be copied.
#[test]
fn a_long_value_has_a_row_group_of_its_own() {
    let folder = Folder::new();
    let values = [10, 20, 65 << 20, 30].map(|length| vec![b'x'; length]);
    let texts =
        StringArray::from_iter_values(values.iter().map(|value| str::from_utf8(value).unwrap()));
    let lists =
        ListArray::from_iter_primitive::<Int64Type, _, _>((0..4).map(|i| Some([Some(i), Some(7)])));
    let source = folder.write(
        "a.tfrecord",
        &encoded(&[("list", Arc::new(lists)), ("text", Arc::new(texts))]),
    );
    folder
        .convert(&source, "a.parquet", &options(Target::Parquet, 2))
        .unwrap();
    let path = folder.path("a.parquet");
    assert_eq!(row_groups(&path), [2, 1, 1]);
    let reader = SerializedFileReader::new(fs::File::open(&path).unwrap()).unwrap();
    for (group, is_long) in [(0, false), (1, true), (2, false)] {
        let columns = reader.metadata().row_group(group).columns();
        assert!(columns[0].statistics().is_some());
        assert_eq!(columns[1].statistics().is_none(), is_long);
        assert_eq!(columns[1].dictionary_page_offset().is_none(), is_long);
    }
    folder
        .convert(&path, "b.parquet", &options(Target::Parquet, 2))
        .unwrap();
    assert_eq!(row_groups(&folder.path("b.parquet")), [2, 1, 1]);
    for name in ["a.parquet", "b.parquet"] {
        let back = format!("{name}.tfrecord");
        folder
            .convert(&folder.path(name), &back, &options(Target::TfRecord, 1))
            .unwrap();
        assert!(records(&folder.path(&back)) == records(&source), "{name}");
    }
}
