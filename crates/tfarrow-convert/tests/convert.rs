//! Conversions through the library interface: outputs depend only on the data, and are complete or
//! absent.
#![expect(clippy::unwrap_used, reason = "a test that cannot continue fails")]

use std::{
    fs,
    path::{Path, PathBuf},
    sync::Arc,
};

use arrow_array::{
    ArrayRef, BinaryArray, Float32Array, Int64Array, ListArray, RecordBatch, StringArray,
    types::Int64Type,
};
use arrow_ipc::{reader::FileReader, writer::FileWriter};
use parquet::arrow::ArrowWriter;
use tempfile::TempDir;
use tfarrow_codec::{
    Layout, RecordType, Remedy, VerifyCrc, WriterBuilder, frame, schema::with_record_type,
};
use tfarrow_convert::{
    ConvertOptions, ConvertReport, Error, OutputCompression, Progress, Reshard, Target, convert,
};
use tfarrow_dataset::{ReadOptions, ShardReader, resolve};
use tfarrow_scan::{InferOptions, Inferred, Sample, infer};

#[path = "convert/columnar_types.rs"]
mod columnar_types;
#[path = "convert/merge.rs"]
mod merge;
#[path = "convert/parquet_indexes.rs"]
mod parquet_indexes;
#[path = "convert/parts.rs"]
mod parts;
#[path = "convert/text.rs"]
mod text;

/// Frames of records `first..first + count`: a number, and a text that is long enough for many
/// chunks.
fn frames(first: i64, count: i64) -> Vec<u8> {
    let ids: ArrayRef = Arc::new(Int64Array::from_iter_values(first..first + count));
    let text = |i: i64| format!("{i:0>width$}", width = 200 + (i % 300) as usize);
    let texts: ArrayRef = Arc::new(StringArray::from_iter_values(
        (first..first + count).map(text),
    ));
    encoded(&[("id", ids), ("text", texts)])
}

/// The frames of records with these columns.
fn encoded(columns: &[(&str, ArrayRef)]) -> Vec<u8> {
    let batch = RecordBatch::try_from_iter(columns.iter().cloned()).unwrap();
    let mut frames = Vec::new();
    WriterBuilder::new()
        .build_encoder(batch.schema())
        .unwrap()
        .encode(&batch, &mut frames)
        .unwrap();
    frames
}

struct Folder(TempDir);

impl Folder {
    fn new() -> Self {
        Self(tempfile::tempdir().unwrap())
    }

    fn path(&self, name: &str) -> PathBuf {
        self.0.path().join(name)
    }

    fn write(&self, name: &str, bytes: &[u8]) -> PathBuf {
        let path = self.path(name);
        fs::create_dir_all(path.parent().unwrap()).unwrap();
        fs::write(&path, bytes).unwrap();
        path
    }

    fn convert(
        &self,
        source: &Path,
        dest: &str,
        options: &ConvertOptions,
    ) -> Result<ConvertReport, Error> {
        convert(&[source], &self.path(dest), options, &Progress::default())
    }
}

/// Small row groups, so that a shard of a few megabytes has many units.
fn options(to: Target, jobs: usize) -> ConvertOptions {
    ConvertOptions {
        to: Some(to),
        jobs,
        row_group_bytes: 300 << 10,
        ..ConvertOptions::default()
    }
}

/// The records of a folder or file, in order.
fn records(source: &Path) -> Vec<Vec<u8>> {
    let mut all = Vec::new();
    for shard in resolve(&[source]).unwrap() {
        let mut reader = ShardReader::open(&shard, &ReadOptions::default()).unwrap();
        while let Some(records) = reader.next().unwrap() {
            records.verify(VerifyCrc::Always).unwrap();
            all.extend(records.iter().map(<[u8]>::to_vec));
        }
    }
    all
}

fn files(folder: &Path) -> Vec<String> {
    let mut names: Vec<_> = fs::read_dir(folder).map_or(Vec::new(), |entries| {
        entries
            .map(|entry| entry.unwrap().file_name().into_string().unwrap())
            .collect()
    });
    names.sort();
    names
}

#[test]
fn the_output_does_not_depend_on_the_number_of_workers() {
    let folder = Folder::new();
    let source = folder.write("a.tfrecord", &frames(0, 20_000));
    for to in [Target::Parquet, Target::Arrow, Target::TfRecord] {
        for jobs in [1, 2, 7] {
            let report = folder
                .convert(&source, &format!("{to:?}-{jobs}/"), &options(to, jobs))
                .unwrap();
            assert_eq!((report.files, report.records), (1, 20_000));
        }
        let read =
            |jobs: usize| fs::read(folder.path(&format!("{to:?}-{jobs}/a.{}", to.name()))).unwrap();
        let one = read(1);
        assert!(one == read(2) && one == read(7), "{to:?}");
    }
}

#[test]
fn conversions_to_parquet_and_arrow_round_trip() {
    let folder = Folder::new();
    folder.write("in/a.tfrecord", &frames(0, 5_000));
    folder.write("in/b/c.tfrecord", &frames(5_000, 3_000));
    let expect = records(&folder.path("in"));
    for to in [Target::Parquet, Target::Arrow] {
        folder
            .convert(&folder.path("in"), "out", &options(to, 3))
            .unwrap();
        folder
            .convert(&folder.path("out"), "back", &options(Target::TfRecord, 3))
            .unwrap();
        assert_eq!(files(&folder.path("back")), ["a.tfrecord", "b"]);
        assert!(records(&folder.path("back")) == expect, "{to:?}");
        fs::remove_dir_all(folder.path("out")).unwrap();
        fs::remove_dir_all(folder.path("back")).unwrap();
    }
}

#[test]
fn new_shards_have_the_records_in_order() {
    let folder = Folder::new();
    folder.write("in/a-00000-of-00002.tfrecord", &frames(0, 1_000));
    folder.write("in/a-00001-of-00002.tfrecord", &frames(1_000, 703));
    let source = folder.path("in");
    let expect = records(&source);
    for (dest, reshard, count) in [
        ("n", Reshard::Shards(5), 5),
        ("many", Reshard::Shards(2_000), 2_000),
    ] {
        let options = ConvertOptions {
            reshard: Some(reshard),
            ..options(Target::TfRecord, 2)
        };
        folder.convert(&source, dest, &options).unwrap();
        let names = files(&folder.path(dest));
        assert_eq!(names.len(), count);
        assert_eq!(names[1], format!("a-00001-of-{count:05}.tfrecord"));
        if count < 1_000 {
            assert!(records(&folder.path(dest)) == expect, "{dest}");
        }
    }
    let sizes: Vec<_> = files(&folder.path("n"))
        .iter()
        .map(|n| records(&folder.path("n").join(n)).len())
        .collect();
    assert!(
        sizes.iter().all(|size| *size == 340 || *size == 341),
        "{sizes:?}"
    );

    let options = ConvertOptions {
        reshard: Some(Reshard::Bytes(100 << 10)),
        ..options(Target::TfRecord, 2)
    };
    folder.convert(&source, "sized", &options).unwrap();
    let sized = folder.path("sized");
    let sizes: Vec<_> = files(&sized)
        .iter()
        .map(|n| fs::metadata(sized.join(n)).unwrap().len())
        .collect();
    // The size is that of the records, which exceed it by at most one record. Frames are added to
    // it.
    assert!(sizes.iter().all(|size| *size <= 105 << 10), "{sizes:?}");
    assert!(records(&sized) == expect);
}

#[test]
fn parquet_is_resharded() {
    let folder = Folder::new();
    let source = folder.write("a.tfrecord", &frames(0, 1_000));
    folder
        .convert(&source, "one", &options(Target::Parquet, 2))
        .unwrap();
    let reshard = ConvertOptions {
        reshard: Some(Reshard::Shards(3)),
        ..options(Target::Parquet, 2)
    };
    folder
        .convert(&folder.path("one"), "three", &reshard)
        .unwrap();
    assert_eq!(files(&folder.path("three")).len(), 3);
    folder
        .convert(&folder.path("three"), "back", &options(Target::TfRecord, 2))
        .unwrap();
    assert!(records(&folder.path("back")) == records(&source));
    // To Arrow as well: the metadata of new files is their own.
    let reshard = ConvertOptions {
        reshard: Some(Reshard::Shards(2)),
        ..options(Target::Arrow, 2)
    };
    folder
        .convert(&folder.path("three"), "two", &reshard)
        .unwrap();
    folder
        .convert(&folder.path("two"), "again", &options(Target::TfRecord, 2))
        .unwrap();
    assert!(records(&folder.path("again")) == records(&source));
}

#[test]
fn a_corrupt_shard_leaves_no_output() {
    let folder = Folder::new();
    let mut bytes = frames(0, 20_000);
    let middle = bytes.len() / 2;
    bytes[middle] ^= 1;
    let source = folder.write("a.tfrecord", &bytes);
    for to in [Target::Parquet, Target::Arrow, Target::TfRecord] {
        let error = folder
            .convert(&source, "out", &options(to, 4))
            .unwrap_err()
            .to_string();
        assert!(
            error.contains("a.tfrecord: record ") && error.contains("CRC"),
            "{error}"
        );
        assert_eq!(files(&folder.path("out")), [""; 0], "{to:?}");
    }
}

/// A small file with lists, strings, numbers, and more than one row group or batch; with checksums,
/// or without.
fn columnar_file(folder: &Folder, to: Target, checksums: bool) -> PathBuf {
    let ragged = [
        Some(vec![Some(1), Some(2)]),
        None,
        Some(vec![]),
        Some(vec![Some(3); 40]),
    ];
    let ragged: ArrayRef = Arc::new(ListArray::from_iter_primitive::<Int64Type, _, _>(ragged));
    let texts: ArrayRef = Arc::new(StringArray::from_iter_values(["a", "b", "", "dd"]));
    let columns = [("ragged", ragged), ("text", texts)];
    if checksums {
        let source = folder.write("a.tfrecord", &encoded(&columns));
        let compression = Some(OutputCompression::None);
        let options = ConvertOptions {
            compression,
            row_group_rows: 3,
            ..options(to, 1)
        };
        folder.convert(&source, "out", &options).unwrap();
        return folder.path("out").join(&files(&folder.path("out"))[0]);
    }
    let path = folder.path(&format!("plain.{}", to.name()));
    let (file, batch) = (
        fs::File::create(&path).unwrap(),
        RecordBatch::try_from_iter(columns).unwrap(),
    );
    if to == Target::Parquet {
        let mut writer = ArrowWriter::try_new(file, batch.schema(), None).unwrap();
        writer.write(&batch).unwrap();
        writer.close().unwrap();
    } else {
        let mut writer = FileWriter::try_new(file, &batch.schema()).unwrap();
        writer.write(&batch).unwrap();
        writer.finish().unwrap();
    }
    path
}

/// Writes a file with one bit changed.
fn write_flipped(folder: &Folder, bytes: &[u8], to: Target, bit: usize) -> PathBuf {
    let mut bytes = bytes.to_vec();
    bytes[bit / 8] ^= 1 << (bit % 8);
    folder.write(&format!("corrupt.{}", to.name()), &bytes)
}

/// The libraries that read Parquet and Arrow panic on some corrupt files. The panic must become an
/// error.
#[test]
fn a_corrupt_file_without_checksums_has_other_rows_or_is_an_error_with_its_name() {
    for to in [Target::Parquet, Target::Arrow] {
        let folder = Folder::new();
        let bytes = fs::read(columnar_file(&folder, to, false)).unwrap();
        let (mut errors, mut panics) = (0, 0);
        for byte in 0..bytes.len() {
            let corrupt = write_flipped(&folder, &bytes, to, byte * 8 + byte % 8);
            if let Err(error) = folder.convert(&corrupt, "back", &options(Target::TfRecord, 1)) {
                let error = error.to_string();
                assert!(error.contains("corrupt."), "byte {byte}: {error}");
                errors += 1;
                panics += usize::from(error.contains("its reader failed"));
                assert_eq!(files(&folder.path("back")), [""; 0], "byte {byte}");
            }
            let _ = fs::remove_dir_all(folder.path("back"));
        }
        let len = bytes.len();
        assert!(
            errors > len / 5 && panics > 0,
            "{to:?}: {errors} errors, {panics} panics, {len} bytes"
        );
    }
}

/// The error of reading a Parquet or Arrow file; `None` if it can be read.
fn read_error(path: &Path) -> Option<String> {
    let source = resolve(&[path])
        .map_err(|e| e.to_string())
        .map(|mut found| found.remove(0));
    let rows = source.and_then(|source| tfarrow_columnar::rows(&source).map_err(|e| e.to_string()));
    match rows {
        Ok(mut rows) => rows.find_map(|batch| batch.err().map(|e| e.to_string())),
        Err(error) => Some(error),
    }
}

#[test]
fn checksums_detect_every_flipped_bit() {
    for to in [Target::Parquet, Target::Arrow] {
        let folder = Folder::new();
        let file = columnar_file(&folder, to, true);
        assert_eq!(read_error(&file), None);
        let bytes = fs::read(&file).unwrap();
        let (mut by_checksum, bits) = (0, bytes.len() * 8);
        for bit in 0..bits {
            let error = read_error(&write_flipped(&folder, &bytes, to, bit));
            assert!(
                error.is_some(),
                "{to:?}, bit {} of byte {} of {}",
                bit % 8,
                bit / 8,
                bytes.len()
            );
            by_checksum +=
                usize::from(error.is_some_and(|error| {
                    error.contains("is corrupt: its checksum does not match")
                }));
        }
        println!(
            "{to:?}: all {bits} flipped bits are detected, {by_checksum} of them by checksums"
        );
        assert!(by_checksum > bits / 4, "{to:?}: {by_checksum} of {bits}");
    }
}

/// The placeholder of the first checksum in the footer must not be confused with a column name.
#[test]
fn column_names_that_resemble_checksums_are_not_changed() {
    for to in [Target::Parquet, Target::Arrow] {
        for rows in [0, 3] {
            let folder = Folder::new();
            let names = [
                "0000000000000000",
                "a0000000000000000b",
                "tfarrow.xxh3",
                "ffffffffffffffff",
            ];
            let column: ArrayRef = Arc::new(Int64Array::from_iter_values(0..rows));
            let columns = names.map(|name| (name, Arc::clone(&column)));
            let batch = RecordBatch::try_from_iter(columns).unwrap();
            let source = folder.path("source.parquet");
            let mut writer =
                ArrowWriter::try_new(fs::File::create(&source).unwrap(), batch.schema(), None)
                    .unwrap();
            writer.write(&batch).unwrap();
            writer.close().unwrap();
            folder.convert(&source, "out", &options(to, 1)).unwrap();
            let file = folder.path("out").join(&files(&folder.path("out"))[0]);
            assert_eq!(read_error(&file), None, "{to:?}, {rows} rows");
            let schema = tfarrow_convert::read_schema(&file).unwrap();
            assert_eq!(
                schema
                    .fields()
                    .iter()
                    .map(|field| field.name().as_str())
                    .collect::<Vec<_>>(),
                names
            );
        }
    }
}

#[test]
fn an_arrow_file_with_copied_metadata_has_no_checksums() {
    let folder = Folder::new();
    let file = fs::File::open(columnar_file(&folder, Target::Arrow, true)).unwrap();
    let reader = FileReader::try_new(file, None).unwrap();
    let copy = folder.path("copy.arrow");
    let mut writer =
        FileWriter::try_new(fs::File::create(&copy).unwrap(), &reader.schema()).unwrap();
    assert!(reader.custom_metadata().contains_key("tfarrow.xxh3"));
    reader
        .custom_metadata()
        .iter()
        .for_each(|(key, value)| writer.write_metadata(key, value));
    reader.for_each(|batch| writer.write(&batch.unwrap()).unwrap());
    writer.finish().unwrap();
    assert_eq!(read_error(&copy), None);
}

/// Zeros may overwrite the checksums or the mark, together with other bytes.
#[test]
fn checksums_detect_zeroed_bytes() {
    for to in [Target::Parquet, Target::Arrow] {
        let folder = Folder::new();
        let bytes = fs::read(columnar_file(&folder, to, true)).unwrap();
        for len in [2, 8, 40] {
            for start in 0..bytes.len() - len {
                let mut zeroed = bytes.clone();
                zeroed[start..start + len].fill(0);
                if zeroed != bytes {
                    let corrupt = folder.write(&format!("corrupt.{}", to.name()), &zeroed);
                    assert!(
                        read_error(&corrupt).is_some(),
                        "{to:?}, {len} bytes at {start} of {}",
                        bytes.len()
                    );
                }
            }
        }
    }
}

#[test]
fn a_feature_that_is_not_in_the_sample_is_an_error() {
    let folder = Folder::new();
    let extra: ArrayRef = Arc::new(Int64Array::from(vec![7]));
    let late = encoded(&[("id", Arc::clone(&extra)), ("late", extra)]);
    let source = folder.write("a.tfrecord", &[frames(0, 50), late].concat());
    let sampled = ConvertOptions {
        sample: Sample::Records(10),
        ..options(Target::Parquet, 2)
    };
    let error = folder.convert(&source, "out", &sampled).unwrap_err();
    assert!(
        error.to_string().contains("\"late\"") && error.remedies() == [Remedy::SampleAll],
        "{error}"
    );
    assert_eq!(files(&folder.path("out")), [""; 0]);
    folder
        .convert(&source, "out", &options(Target::Parquet, 2))
        .unwrap();
}

/// Converts with one worker, so that the first shard is complete before the second is read. Returns
/// the number of passes.
fn convert_counting_passes(
    source: &Path,
    dest: &Path,
    options: &ConvertOptions,
) -> Result<(ConvertReport, u64), Error> {
    let progress = Progress::default();
    let report = convert(&[source], dest, options, &progress)?;
    assert_eq!(progress.bytes(), progress.total());
    let passes = progress.total() / report.bytes_in;
    Ok((report, passes))
}

/// The file is one unit. Reading it takes little time, converting it takes longer.
#[test]
fn progress_is_reported_while_a_unit_is_converted() {
    let folder = Folder::new();
    let source = folder.write("a.tfrecord", &frames(0, 100_000));
    let sees_intermediate_progress = || {
        let progress = Progress::default();
        let overwrite = ConvertOptions {
            jobs: 1,
            overwrite: true,
            ..ConvertOptions::default()
        };
        let options = ConvertOptions {
            schema: with_schema(&source, Target::Parquet).schema,
            ..overwrite
        };
        let total = fs::metadata(&source).unwrap().len();
        std::thread::scope(|scope| {
            let conversion = scope.spawn(|| {
                convert(&[&source], &folder.path("a.parquet"), &options, &progress).map(drop)
            });
            let mut between = false;
            while !conversion.is_finished() {
                between |= (1..total).contains(&progress.bytes());
                std::thread::yield_now();
            }
            conversion.join().unwrap().unwrap();
            assert_eq!((progress.bytes(), progress.total()), (total, total));
            between
        })
    };
    // The polling thread may be delayed by the scheduler for a complete conversion, but not in
    // every run.
    assert!((0..20).any(|_| sees_intermediate_progress()));
}

/// Options with the schema of all records, with which a conversion takes one pass.
fn with_schema(folder: &Path, to: Target) -> ConvertOptions {
    ConvertOptions {
        schema: Some(inferred(folder).schema(Layout::Auto, None).unwrap()),
        ..options(to, 1)
    }
}

/// The inference of all records in a folder.
fn inferred(folder: &Path) -> Inferred {
    let shards = resolve(&[folder]).unwrap();
    infer(&shards, &InferOptions::default(), &|_, _| {
        std::ops::ControlFlow::Continue(())
    })
    .unwrap()
}

#[test]
fn the_output_of_one_pass_is_that_of_two_passes() {
    let texts = |values: Vec<&'static [u8]>| Arc::new(BinaryArray::from(values)) as ArrayRef;
    let numbers = |values: Vec<i64>| Arc::new(Int64Array::from(values)) as ArrayRef;
    let two = ListArray::from_iter_primitive::<Int64Type, _, _>([Some([Some(7), Some(8)])]);
    let cases = [
        ("same columns", vec![("id", numbers(vec![7]))], 1),
        ("another feature", vec![("late", numbers(vec![7]))], 2),
        (
            "list, not scalar",
            vec![("id", Arc::new(two) as ArrayRef)],
            2,
        ),
        ("bytes, not text", vec![("text", texts(vec![b"\xff"]))], 2),
    ];
    for (case, columns, passes) in cases {
        let folder = Folder::new();
        folder.write("in/a.tfrecord", &frames(0, 5_000));
        folder.write(
            "in/b.tfrecord",
            &[frames(5_000, 5_000), encoded(&columns)].concat(),
        );
        let source = folder.path("in");
        for to in [Target::Parquet, Target::Arrow] {
            let (out, expect) = (
                folder.path(&format!("{to:?}")),
                folder.path(&format!("{to:?}-expect")),
            );
            let (report, took) = convert_counting_passes(&source, &out, &options(to, 1)).unwrap();
            assert_eq!(
                (report.files, report.records, took),
                (2, 10_001, passes),
                "{case}"
            );
            convert_counting_passes(&source, &expect, &with_schema(&source, to)).unwrap();
            assert_eq!(files(&out), files(&expect), "{case}");
            for file in files(&out) {
                assert!(
                    fs::read(out.join(&file)).unwrap() == fs::read(expect.join(&file)).unwrap(),
                    "{case}: {file}"
                );
            }
        }
    }
}

/// Writes two shards. The last record of the second has an `id` of another kind.
fn write_mixed_kinds(folder: &Folder) {
    folder.write("in/a.tfrecord", &frames(0, 5_000));
    let floats: ArrayRef = Arc::new(Float32Array::from(vec![0.5]));
    folder.write(
        "in/b.tfrecord",
        &[frames(5_000, 5_000), encoded(&[("id", floats)])].concat(),
    );
}

#[test]
fn a_failed_conversion_leaves_no_speculative_outputs() {
    let folder = Folder::new();
    write_mixed_kinds(&folder);
    let error = folder
        .convert(&folder.path("in"), "out", &options(Target::Parquet, 1))
        .unwrap_err()
        .to_string();
    assert!(
        error.contains("a.tfrecord: record 0") && error.contains("b.tfrecord: record 5000"),
        "{error}"
    );
    assert_eq!(files(&folder.path("out")), [""; 0]);
}

#[test]
fn an_existing_output_is_replaced_only_by_a_complete_one() {
    let folder = Folder::new();
    write_mixed_kinds(&folder);
    folder.write("out/a.parquet", b"mine");
    let overwrite = ConvertOptions {
        overwrite: true,
        ..options(Target::Parquet, 1)
    };
    folder
        .convert(&folder.path("in"), "out", &overwrite)
        .unwrap_err();
    assert_eq!(fs::read(folder.path("out/a.parquet")).unwrap(), b"mine");
    fs::remove_file(folder.path("in/b.tfrecord")).unwrap();
    // A conversion with one output commits at the end in any case, and takes one pass.
    let (_, passes) =
        convert_counting_passes(&folder.path("in"), &folder.path("out"), &overwrite).unwrap();
    assert_eq!(passes, 1);
}

#[test]
fn two_outputs_of_one_name_are_rejected_before_anything_is_written() {
    let folder = Folder::new();
    folder.write("in/a.tfrecord", &frames(0, 3));
    folder.write("in/a.tfrec", &frames(3, 3));
    let error = folder
        .convert(&folder.path("in"), "out", &options(Target::Parquet, 1))
        .unwrap_err();
    assert!(matches!(error, Error::Usage(_)), "{error}");
    assert!(!folder.path("out").exists());
}

#[test]
fn an_existing_output_is_kept_without_overwrite() {
    let folder = Folder::new();
    let source = folder.write("a.tfrecord", &frames(0, 3));
    folder.write("out/a.parquet", b"mine");
    let error = folder
        .convert(&source, "out", &options(Target::Parquet, 1))
        .unwrap_err();
    assert!(matches!(error, Error::Exists { others: 0, .. }), "{error}");
    assert_eq!(fs::read(folder.path("out/a.parquet")).unwrap(), b"mine");
    let overwrite = ConvertOptions {
        overwrite: true,
        ..options(Target::Parquet, 1)
    };
    folder.convert(&source, "out", &overwrite).unwrap();
    assert_ne!(fs::read(folder.path("out/a.parquet")).unwrap(), b"mine");
}

#[test]
fn the_original_compression_is_restored() {
    let folder = Folder::new();
    let source = folder.write("a.tfrecord", &frames(0, 100));
    let gzip = ConvertOptions {
        compression: Some(OutputCompression::Gzip),
        ..options(Target::TfRecord, 1)
    };
    folder.convert(&source, "gz", &gzip).unwrap();
    assert_eq!(files(&folder.path("gz")), ["a.tfrecord.gz"]);
    folder
        .convert(&folder.path("gz"), "parquet", &options(Target::Parquet, 1))
        .unwrap();
    let original = ConvertOptions {
        compression: Some(OutputCompression::Original),
        ..options(Target::TfRecord, 1)
    };
    folder
        .convert(&folder.path("parquet"), "back", &original)
        .unwrap();
    assert_eq!(files(&folder.path("back")), ["a.tfrecord.gz"]);
    assert!(records(&folder.path("back")) == records(&source));
}

#[test]
fn a_conversion_can_be_cancelled() {
    let folder = Folder::new();
    let source = folder.write("a.tfrecord", &frames(0, 1_000));
    let progress = Progress::default();
    progress.cancel();
    let error = convert(
        &[&source],
        &folder.path("out"),
        &options(Target::Parquet, 2),
        &progress,
    )
    .unwrap_err();
    assert!(matches!(error, Error::Cancelled));
    assert_eq!(files(&folder.path("out")), [""; 0]);
}

#[test]
fn outputs_get_their_names_when_their_columns_are_certain() {
    let folder = Folder::new();
    folder.write("in/a.tfrecord", &frames(0, 5_000));
    let mut truncated = frames(5_000, 5_000);
    truncated.pop();
    folder.write("in/b.tfrecord", &truncated);
    let source = folder.path("in");
    // With the columns of a sample, no output has its name. With given columns, each complete
    // output has.
    let (sampled, progress) = (options(Target::Parquet, 1), Progress::default());
    convert(&[&source], &folder.path("sampled"), &sampled, &progress).unwrap_err();
    assert!(
        files(&folder.path("sampled"))
            .iter()
            .all(|name| name.starts_with(".tfarrow-"))
    );
    assert!(progress.files() == 0 && progress.is_resumable());
    let given = with_schema(&folder.path("in/a.tfrecord"), Target::Parquet);
    convert(&[&source], &folder.path("out"), &given, &progress).unwrap_err();
    // The journal remains, with which the conversion can be resumed.
    let left = [".tfarrow-convert.journal", "a.parquet"]
        .map(str::to_owned)
        .to_vec();
    assert_eq!((files(&folder.path("out")), progress.files()), (left, 1));
    assert!(progress.is_resumable());
}

#[test]
fn one_unparsable_record_among_examples_is_reported() {
    let folder = Folder::new();
    let mut bytes = frames(0, 5_000);
    frame::write(b"\xff", &mut bytes);
    let source = folder.write("a.tfrecord", &bytes);
    let report = folder
        .convert(&source, "out", &options(Target::Parquet, 2))
        .unwrap();
    let why = report.why_raw.unwrap();
    assert!(
        why.contains("a.tfrecord: record 5000 (byte ") && report.has_strays,
        "{why}"
    );
    let raw = ConvertOptions {
        record_type: Some(RecordType::Raw),
        ..options(Target::Parquet, 2)
    };
    assert_eq!(folder.convert(&source, "raw", &raw).unwrap().why_raw, None);
}

#[test]
fn fields_outside_of_the_record_type_are_counted() {
    let folder = Folder::new();
    let lists =
        b"\x0a\x0c\x0a\x0a\x0a\x01x\x12\x05\x1a\x03\x0a\x01\x07\x12\x07\x0a\x05\x0a\x01l\x12\x00";
    let mut bytes = Vec::new();
    (0..3).for_each(|_| frame::write(lists, &mut bytes));
    let source = folder.write("a.tfrecord", &bytes);
    let example = ConvertOptions {
        record_type: Some(RecordType::Example),
        ..options(Target::Parquet, 2)
    };
    let report = folder.convert(&source, "out", &example).unwrap();
    assert_eq!(
        report.lossy_changes,
        [("field 2 of the records has no column".to_owned(), 3)]
    );
}

#[test]
fn parquet_cannot_hold_rows_without_columns() {
    let folder = Folder::new();
    let source = folder.write("a.tfrecord", &frames(0, 3));
    let empty = with_record_type(Vec::new(), RecordType::Example);
    for (to, succeeds) in [(Target::Parquet, false), (Target::Arrow, true)] {
        let no_columns = ConvertOptions {
            schema: Some(Arc::clone(&empty)),
            ..options(to, 1)
        };
        let outcome = folder.convert(&source, "out", &no_columns);
        assert_eq!(
            outcome
                .map_err(|e| assert!(matches!(e, Error::NoColumns), "{e}"))
                .is_ok(),
            succeeds
        );
    }
    assert_eq!(files(&folder.path("out")), ["a.arrow"]);
}

#[test]
fn contradictory_options_are_rejected_before_anything_is_written() {
    let folder = Folder::new();
    let source = folder.write("a.tfrecord", &frames(0, 100));
    folder
        .convert(&source, "p", &options(Target::Parquet, 1))
        .unwrap();
    let parquet = folder.path("p/a.parquet");
    let schema = Some(tfarrow_convert::read_schema(&parquet).unwrap());
    let refused = |source: &Path, dest: &str, options: ConvertOptions| {
        let error = folder.convert(source, dest, &options).unwrap_err();
        assert!(error.is_usage(), "{dest}: {error}");
    };
    let plain = ConvertOptions::default;
    refused(&source, "x.csv", plain());
    refused(
        &source,
        "x.tfrecord.gz",
        ConvertOptions {
            compression: Some(OutputCompression::None),
            ..plain()
        },
    );
    refused(
        &source,
        "x.parquet",
        ConvertOptions {
            reshard: Some(Reshard::Shards(1)),
            ..plain()
        },
    );
    refused(
        &source,
        "x/",
        ConvertOptions {
            record_type: Some(RecordType::Raw),
            schema: schema.clone(),
            ..plain()
        },
    );
    refused(&parquet, "x.tfrecord", ConvertOptions { schema, ..plain() });
    refused(
        &parquet,
        "x.tfrecord",
        ConvertOptions {
            layout: Layout::List,
            ..plain()
        },
    );
    refused(
        &parquet,
        "x.tfrecord",
        ConvertOptions {
            sample: Sample::Records(9),
            ..plain()
        },
    );
    assert!(convert(&[&source], Path::new(""), &plain(), &Progress::default()).is_err());
    assert_eq!(files(&folder.path("")), ["a.tfrecord", "p"]);
}

#[test]
fn shards_of_a_set_with_another_number_of_shards_are_rejected() {
    let folder = Folder::new();
    let source = folder.write("a.tfrecord", &frames(0, 100));
    let with_size = |reshard| ConvertOptions {
        reshard: Some(reshard),
        overwrite: true,
        ..options(Target::TfRecord, 1)
    };
    folder
        .convert(&source, "out", &with_size(Reshard::Shards(3)))
        .unwrap();
    folder
        .convert(&source, "out", &with_size(Reshard::Shards(3)))
        .unwrap();
    for other in [Reshard::Shards(2), Reshard::Bytes(1 << 20)] {
        assert!(
            matches!(
                folder
                    .convert(&source, "out", &with_size(other))
                    .unwrap_err(),
                Error::Usage(_)
            ),
            "{other:?}"
        );
    }
    assert_eq!(files(&folder.path("out")).len(), 3);
}
