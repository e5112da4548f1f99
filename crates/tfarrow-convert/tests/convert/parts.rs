//! Parts of a conversion through the library interface.

use tfarrow_codec::Remedy;
use tfarrow_dataset::Part;

use super::*;

fn part(index: usize, count: usize, options: ConvertOptions) -> ConvertOptions {
    ConvertOptions {
        part: Part::new(index, count),
        ..options
    }
}

#[test]
fn a_report_is_that_of_the_part() {
    let folder = Folder::new();
    let sizes = [5_000, 300, 20, 0];
    for (shard, records) in sizes.into_iter().enumerate() {
        folder.write(&format!("in/{shard}.tfrecord"), &frames(0, records));
    }
    let source = folder.path("in");
    let all = folder
        .convert(&source, "all", &options(Target::Parquet, 2))
        .unwrap();
    let parts = [0, 1, 2].map(|index| {
        let options = part(index, 3, options(Target::Parquet, 2));
        folder.convert(&source, "parts", &options).unwrap()
    });
    let sum = |figure: &dyn Fn(&ConvertReport) -> u64| parts.iter().map(figure).sum::<u64>();
    let figures: [&dyn Fn(&ConvertReport) -> u64; 5] = [
        &|part| part.shards,
        &|part| part.files,
        &|part| part.records,
        &|part| part.bytes_in,
        &|part| part.bytes_out,
    ];
    for figure in figures {
        assert_eq!(sum(figure), figure(&all));
    }
    assert!(
        parts
            .iter()
            .all(|part| part.shards >= 1 && part.sources == all.sources)
    );
    let empty = folder
        .convert(&source, "parts", &part(4, 5, options(Target::Parquet, 2)))
        .unwrap();
    assert_eq!(
        (empty.shards, empty.records, empty.files, empty.bytes_in),
        (0, 0, 0, 0)
    );
    assert_eq!(files(&folder.path("parts")), files(&folder.path("all")));
}

#[test]
fn columns_of_a_sample_that_do_not_fit_have_a_remedy() {
    let folder = Folder::new();
    let mut bytes = frames(0, 1_200);
    let other: ArrayRef = Arc::new(Int64Array::from_iter_values([1]));
    bytes.extend(encoded(&[("other", other)]));
    folder.write("in/a.tfrecord", &bytes);
    folder.write("in/b.tfrecord", &frames(0, 10));
    let source = folder.path("in");
    let error = folder
        .convert(&source, "out", &part(0, 2, options(Target::Parquet, 1)))
        .unwrap_err();
    assert!(
        matches!(&error, Error::PartColumns { .. }) && !error.is_usage(),
        "{error}"
    );
    assert_eq!(error.remedies(), [Remedy::StateColumns]);
    // Corrupt records are skipped, and so would be a record that does not fit.
    let skip = ReadOptions {
        on_error: tfarrow_codec::OnError::Skip,
        ..ReadOptions::default()
    };
    let skipping = ConvertOptions {
        read: skip,
        ..options(Target::Parquet, 1)
    };
    let error = folder
        .convert(&source, "out", &part(0, 2, skipping))
        .unwrap_err();
    assert!(
        matches!(&error, Error::UnsettledColumns { .. }) && error.is_usage(),
        "{error}"
    );
    assert_eq!(files(&folder.path("out")), [""; 0]);
    // The columns are given.
    let schema = inferred(&source);
    let schema = Some(schema.schema(Layout::Auto, None).unwrap());
    for index in 0..2 {
        let given = ConvertOptions {
            schema: schema.clone(),
            ..options(Target::Parquet, 1)
        };
        folder
            .convert(&source, "out", &part(index, 2, given))
            .unwrap();
    }
    folder
        .convert(&source, "all", &options(Target::Parquet, 1))
        .unwrap();
    for name in ["a.parquet", "b.parquet"] {
        let read = |folder_name: &str| fs::read(folder.path(folder_name).join(name)).unwrap();
        assert!(read("out") == read("all"), "{name}");
    }
}

/// A part compares the names of the outputs of all parts before anything is written.
#[test]
fn two_sources_of_one_output_are_an_error_of_every_part() {
    let folder = Folder::new();
    folder.write("in/a.tfrecord", &frames(0, 10));
    folder.write("in/a.tfrecords", &frames(0, 10));
    for index in 0..2 {
        let error = folder
            .convert(
                &folder.path("in"),
                "out",
                &part(index, 2, options(Target::Arrow, 1)),
            )
            .unwrap_err();
        assert!(
            error.to_string().contains("would both be written to"),
            "{error}"
        );
    }
    assert_eq!(files(&folder.path("out")), [""; 0]);
}
