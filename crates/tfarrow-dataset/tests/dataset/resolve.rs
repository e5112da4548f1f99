//! Sources: the files that they name, the order, and the names.

use std::{fs, path::Path};

use tfarrow_dataset::{
    Error, ErrorKind, FormatFilter, ReadOptions, Shard, ShardFormat, ShardReader, resolve,
    resolve_filtered,
};

use crate::{compressed, frames, write_file};

/// Creates a folder with these files. The word after a name is the content of the file.
fn folder(files: &[&str]) -> tempfile::TempDir {
    let folder = tempfile::tempdir().unwrap();
    for file in files {
        let (name, contents) = file.split_once(' ').unwrap_or((file, "tfrecord"));
        let bytes = match contents {
            "tfrecord" => frames(&[b"data"]),
            "gzip" => compressed(&frames(&[b"data"]), tfarrow_dataset::Compression::Gzip),
            "parquet" => b"PAR1 and more".to_vec(),
            "arrow" => b"ARROW1\0\0 and more".to_vec(),
            "empty" => Vec::new(),
            _ => b"something else".to_vec(),
        };
        write_file(folder.path(), name, &bytes);
    }
    folder
}

fn names(shards: &[Shard]) -> Vec<&str> {
    shards
        .iter()
        .map(|shard| shard.name.to_str().unwrap())
        .collect()
}

#[track_caller]
fn check(folder: &tempfile::TempDir, source: &str, expect: &[&str]) {
    let shards = resolve(&[folder.path().join(source)]).unwrap();
    assert_eq!(names(&shards), expect, "{source}");
}

#[track_caller]
fn refused(folder: &tempfile::TempDir, source: &str, expect: &str) -> Error {
    let source = folder.path().join(source);
    let error = resolve(&[&source]).unwrap_err();
    let place = folder.path().display().to_string();
    assert_eq!(error.to_string().replace(&place, "F"), expect);
    assert!(error.to_string().starts_with(&source.display().to_string()));
    error
}

#[test]
fn folders_are_searched_by_content_in_natural_order() {
    let folder = folder(&[
        "part-10",
        "part-9 gzip",
        "b/x.parquet tfrecord",
        "a/z",
        "a/y.bin",
        "c.json text",
        "c.TXT text",
        "c.index text",
        "_SUCCESS",
        ".hidden",
        "_temporary/x",
        ".git/x",
        "a/_x",
        "empty.tfrecord empty",
        "empty empty",
        "notes.md text",
        "p.parquet parquet",
        "p.arrow arrow",
    ]);
    check(
        &folder,
        "",
        &[
            "a/y.bin",
            "a/z",
            "b/x.parquet",
            "empty.tfrecord",
            "part-9",
            "part-10",
        ],
    );
    check(&folder, "a", &["y.bin", "z"]);
}

/// The valid record after the corrupt one identifies the format, for any file name.
#[test]
fn a_shard_whose_first_record_is_damaged_is_not_skipped() {
    let whole = frames(&[b"one", b"two"]);
    for bit in 0..96 {
        let folder = folder(&["a.records"]);
        let mut damaged = whole.clone();
        damaged[bit / 8] ^= 1 << (bit % 8);
        write_file(folder.path(), "b.records", &damaged);
        write_file(
            folder.path(),
            "c.bin",
            &[&b"no record"[..], &[7; 5000]].concat(),
        );
        check(&folder, "", &["a.records", "b.records"]);
    }
}

#[test]
fn damaged_files_with_names_of_shards_are_not_skipped() {
    let folder = folder(&[
        "train-00000-of-00003",
        "train-00001-of-00003 text",
        "train-00002-of-00003.gz text",
        "a.tfrecord text",
        "variables.data-00000-of-00001 text",
        "train text",
    ]);
    check(
        &folder,
        "",
        &[
            "a.tfrecord",
            "train-00000-of-00003",
            "train-00001-of-00003",
            "train-00002-of-00003.gz",
        ],
    );
}

#[test]
fn columnar_files_are_found_without_tfrecord_files_or_if_they_are_requested() {
    let folder = folder(&[
        "t/a",
        "t/b.parquet parquet",
        "c/b.parquet parquet",
        "c/a.arrow arrow",
        "c/x text",
    ]);
    check(&folder, "c", &["a.arrow", "b.parquet"]);
    check(&folder, "t", &["a"]);
    check(&folder, "", &["t/a"]);
    let all = [folder.path()];
    let formats = |wanted| -> Vec<_> {
        resolve_filtered(&all, wanted)
            .unwrap()
            .shards
            .iter()
            .map(|s| s.format)
            .collect()
    };
    assert_eq!(formats(FormatFilter::TfRecord), [ShardFormat::TfRecord]);
    assert_eq!(
        formats(FormatFilter::All),
        [
            ShardFormat::Arrow,
            ShardFormat::Parquet,
            ShardFormat::TfRecord,
            ShardFormat::Parquet
        ]
    );
    assert_eq!(
        formats(FormatFilter::Columnar),
        [
            ShardFormat::Arrow,
            ShardFormat::Parquet,
            ShardFormat::Parquet
        ]
    );
    // A glob also names files of other formats.
    check(&folder, "t/*", &["a", "b.parquet"]);
    check(&folder, "*", &["t/a"]);
    let error = resolve_filtered(&[folder.path().join("c")], FormatFilter::TfRecord).unwrap_err();
    let expect = "nothing to read: no TFRecord file in this folder or below it; skipped: 1 of no known format, 2 of a \
                  format that was not asked for (such as ";
    assert!(error.to_string().contains(expect), "{error}");
}

#[test]
fn text_is_found_by_its_name_without_files_of_other_formats() {
    let names = [
        "c/a.csv text",
        "c/b.TSV text",
        "c/d.jsonl text",
        "c/e.ndjson text",
        "c/info.json text",
        "c/f.txt text",
    ];
    let mixed = [
        "t/a",
        "t/b.csv text",
        "t/info.json text",
        "p/a.parquet parquet",
        "p/b.csv text",
        "e/a.csv empty",
    ];
    let folder = folder(&[&names[..], &mixed].concat());
    let formats = |name: &str, wanted| -> Vec<_> {
        let found = resolve_filtered(&[folder.path().join(name)], wanted).unwrap();
        found.shards.iter().map(|shard| shard.format).collect()
    };
    use ShardFormat::{Csv, Json, Parquet, TfRecord};
    for wanted in [
        FormatFilter::Any,
        FormatFilter::Convertible,
        FormatFilter::ToVerify,
    ] {
        assert_eq!(formats("c", wanted), [Csv, Csv, Json, Json]);
        assert_eq!(formats("c/*.json", wanted), [Json]);
        assert_eq!(formats("c/info.json", wanted), [Json]);
        assert_eq!(formats("t", wanted), [TfRecord]);
        assert_eq!(formats("t/*", wanted), [TfRecord]);
        assert_eq!(formats("p", wanted), [Parquet]);
        assert!(resolve_filtered(&[folder.path().join("e")], wanted).is_err());
    }
    for wanted in [
        FormatFilter::All,
        FormatFilter::TfRecord,
        FormatFilter::Columnar,
    ] {
        assert!(
            resolve_filtered(&[folder.path().join("c")], wanted).is_err(),
            "{wanted:?}"
        );
    }
    let found = resolve_filtered(&[folder.path().join("t")], FormatFilter::Any).unwrap();
    let skipped = found.skipped_files.to_string();
    assert!(
        skipped.starts_with("skipped: 1 for the name, 1 of a format that was not asked for"),
        "{skipped}"
    );
}

/// A compressed file without data is TFRecord without records, unless its name is that of text.
#[test]
fn empty_compressed_text_does_not_hide_text() {
    let folder = folder(&[]);
    let gzip = |text: &str| {
        let mut encoder = flate2::write::GzEncoder::new(Vec::new(), flate2::Compression::fast());
        std::io::Write::write_all(&mut encoder, text.as_bytes()).unwrap();
        encoder.finish().unwrap()
    };
    for (name, text) in [
        ("a.jsonl.gz", "{\"a\": 1}\n"),
        ("b.jsonl.gz", ""),
        ("c.csv.gz", ""),
    ] {
        fs::write(folder.path().join(name), gzip(text)).unwrap();
    }
    for source in ["", "*.gz"] {
        let found = resolve_filtered(&[folder.path().join(source)], FormatFilter::Any).unwrap();
        assert_eq!(names(&found.shards), ["a.jsonl.gz"]);
        assert_eq!(found.skipped_files.to_string(), "skipped: 2 empty");
    }
    let format = |name: &str| resolve(&[folder.path().join(name)]).unwrap()[0].format;
    assert_eq!(
        [format("b.jsonl.gz"), format("c.csv.gz")],
        [ShardFormat::Json, ShardFormat::Csv]
    );
    fs::write(folder.path().join("d.gz"), gzip("")).unwrap();
    assert_eq!(format("d.gz"), ShardFormat::TfRecord);
}

#[test]
fn an_empty_file_is_a_shard_without_records() {
    let folder = folder(&[
        "t/a.tfrecord",
        "t/b-00000-of-00001 empty",
        "t/c empty",
        "p/a.tfrecord empty",
        "p/b parquet",
    ]);
    check(&folder, "t", &["a.tfrecord", "b-00000-of-00001"]);
    // Empty TFRecord files do not hide Parquet files.
    check(&folder, "p", &["b"]);
    let found = resolve_filtered(
        &[folder.path().join("p"), folder.path().join("t")],
        FormatFilter::Any,
    )
    .unwrap();
    assert!(found.skipped_files.may_matter());
    assert_eq!(found.skipped_files.to_string(), "skipped: 2 empty");
    // The same holds for globs.
    check(&folder, "p/*", &["b"]);
    assert!(
        !resolve_filtered(&[folder.path().join("t/a*")], FormatFilter::Any)
            .unwrap()
            .skipped_files
            .may_matter()
    );
}

#[test]
fn sidecars_with_the_content_of_shards_are_shards() {
    let folder = folder(&[
        "a.json",
        "b.txt",
        "c.index gzip",
        "d.json text",
        "e.txt empty",
        "_f",
    ]);
    check(&folder, "", &["a.json", "b.txt", "c.index"]);
    let found = resolve_filtered(&[folder.path()], FormatFilter::Any).unwrap();
    assert_eq!(found.skipped_files.to_string(), "skipped: 3 for the name");
}

/// Indexes of other readers are passed over, in a folder and in a glob.
#[test]
fn indexes_of_readers_are_no_shards() {
    let folder = folder(&[
        "a.tfrecord",
        "a.idx text",
        "a.tfindex text",
        "tfrds-reader-index.parquet parquet",
    ]);
    for source in ["", "*"] {
        let found = resolve_filtered(&[folder.path().join(source)], FormatFilter::All).unwrap();
        assert_eq!(names(&found.shards), ["a.tfrecord"], "{source}");
        assert_eq!(
            (
                found.skipped_files.by_name,
                found.skipped_files.may_matter()
            ),
            (3, false),
            "{source}"
        );
    }
}

/// A name that begins with `_` hides a file, unless it says that the file is a shard of TFRecord.
#[test]
fn numbered_shards_are_found_under_any_name() {
    let files = [
        "__c4-train.tfrecord-00000-of-00002",
        "__c4-train.tfrecord-00001-of-00002",
    ];
    let hidden = [
        "_notes.tfrecord",
        "_temporary/a.tfrecord-00000-of-00001",
        "_c-00000-of-00001",
    ];
    let folder = folder(&[&files[..], &hidden].concat());
    check(&folder, "", &files);
    check(&folder, "*", &files);
}

#[test]
#[cfg(unix)]
fn files_that_cannot_be_opened_are_returned_for_verify() {
    let folder = folder(&["a.tfrecord", "c.tfrecord"]);
    std::os::unix::fs::symlink("nowhere", folder.path().join("b.tfrecord")).unwrap();
    for sources in [
        vec![folder.path().to_owned()],
        ["a", "b", "c"]
            .map(|name| folder.path().join(name).with_extension("tfrecord"))
            .to_vec(),
    ] {
        assert!(resolve(&sources).is_err());
        let found = resolve_filtered(&sources, FormatFilter::ToVerify).unwrap();
        assert_eq!(
            names(&found.shards),
            ["a.tfrecord", "b.tfrecord", "c.tfrecord"]
        );
        assert!(ShardReader::open(&found.shards[1], &ReadOptions::default()).is_err());
    }
    // A source that does not exist is an error.
    assert!(resolve_filtered(&[folder.path().join("d.tfrecord")], FormatFilter::ToVerify).is_err());
}

#[test]
fn files_with_an_extension_of_tfrecord_are_not_skipped() {
    let folder = folder(&[
        "a.tfrecord",
        "b.tfrecord text",
        "c.tfrecord-00000-of-00001.gz text",
        "d text",
    ]);
    check(
        &folder,
        "",
        &["a.tfrecord", "b.tfrecord", "c.tfrecord-00000-of-00001.gz"],
    );
    let shards = resolve(&[folder.path()]).unwrap();
    assert!(ShardReader::open(&shards[1], &ReadOptions::default()).is_err());
}

#[test]
fn a_file_that_is_named_is_read_in_any_format() {
    let folder = folder(&[
        "_x.json",
        "empty empty",
        "text text",
        "p parquet",
        "a*b",
        "[x]",
    ]);
    for name in ["_x.json", "empty", "text", "p", "a*b", "[x]"] {
        check(&folder, name, &[name]);
    }
    let shards = resolve(&[folder.path().join("empty")]).unwrap();
    let mut reader = ShardReader::open(&shards[0], &ReadOptions::default()).unwrap();
    assert!(reader.next().unwrap().is_none());
    assert_eq!(
        resolve(&[folder.path().join("p")]).unwrap()[0].format,
        ShardFormat::Parquet
    );
}

#[test]
fn globs_match_like_those_of_shells() {
    let folder = folder(&[
        "d/train/a-1.tf",
        "d/train/a-10.tf",
        "d/train/a-2.tf.gz gzip",
        "d/train/_a.tf",
        "d/train/.a.tf",
        "d/val/a-1.tf",
        "d/test/deep/a-1.tf",
        "d/test/a.json text",
        "d/top.tf",
        "d/empty.tf empty",
    ]);
    check(&folder, "d/*.tf", &["top.tf"]);
    check(&folder, "d/train/*.tf", &["a-1.tf", "a-10.tf"]);
    check(&folder, "d/train/a-?.tf{,.gz}", &["a-1.tf", "a-2.tf.gz"]);
    check(
        &folder,
        "d/{train,val}/*-1.tf",
        &["train/a-1.tf", "val/a-1.tf"],
    );
    check(
        &folder,
        "d/**/*-[1-9].tf",
        &["test/deep/a-1.tf", "train/a-1.tf", "val/a-1.tf"],
    );
    check(
        &folder,
        "d/**",
        &[
            "test/deep/a-1.tf",
            "top.tf",
            "train/a-1.tf",
            "train/a-2.tf.gz",
            "train/a-10.tf",
            "val/a-1.tf",
        ],
    );
    check(&folder, "d/train/_*", &["_a.tf"]);
    check(&folder, "d/train/.*", &[".a.tf"]);
    // A folder that matches is searched like a folder that is named.
    check(
        &folder,
        "d/t*",
        &[
            "test/deep/a-1.tf",
            "top.tf",
            "train/a-1.tf",
            "train/a-2.tf.gz",
            "train/a-10.tf",
        ],
    );
}

#[test]
fn files_of_unknown_format_that_match_a_glob_are_not_skipped() {
    let folder = folder(&["a.tf", "b.tf text"]);
    check(&folder, "*.tf", &["a.tf", "b.tf"]);
}

#[test]
fn errors_of_sources_without_shards_name_the_place_and_the_skipped_files() {
    let folder = folder(&[
        "d/_x",
        "d/y text",
        "d/z empty",
        "e/f/.keep",
        "g/a",
        "g/b",
        "g/c.txt text",
    ]);
    refused(
        &folder,
        "d",
        "F/d: nothing to read: no TFRecord, Parquet, Arrow, CSV or JSON file in this folder or below it; \
         skipped: 1 for the name, 1 empty, 1 of no known format (such as F/d/y, which starts like text)",
    );
    refused(
        &folder,
        "e",
        "F/e: nothing to read: no TFRecord, Parquet, Arrow, CSV or JSON file in this folder or below it; skipped: 1 for \
         the name",
    );
    refused(
        &folder,
        "g/*.tf",
        "F/g/*.tf: nothing to read: none of 3 files in F/g matches",
    );
    refused(
        &folder,
        "g/*.txt",
        "F/g/*.txt: nothing to read: of 1 files that match in F/g, none is TFRecord, Parquet, Arrow, CSV or JSON; \
         skipped: 1 for the name",
    );
    refused(
        &folder,
        "h/*.tf",
        "F/h/*.tf: nothing to read: F/h is not a folder",
    );
    let error = refused(&folder, "h", "F/h: No such file or directory (os error 2)");
    assert!(matches!(error.kind(), ErrorKind::Io(_)));
    let error = refused(
        &folder,
        "g/[",
        "F/g/[: error parsing glob '[': unclosed character class; missing ']'",
    );
    assert!(matches!(error.kind(), ErrorKind::Glob(_)));
    assert!(resolve::<&str>(&[]).is_err());
    assert!(resolve(&[""]).is_err());
}

#[test]
fn several_sources_are_one_data_set_in_order() {
    let folder = folder(&["b/1", "a/10", "a/9"]);
    let source = |name: &str| folder.path().join(name);
    let shards = resolve(&[source("b"), source("a/10"), source("a")]).unwrap();
    assert_eq!(names(&shards), ["1", "10", "9"]);
    // A file with two names is returned once.
    let shards = resolve(&[source("a"), source("a/../a/*"), source("a/9")]).unwrap();
    assert_eq!(names(&shards), ["9", "10"]);
    let shards = resolve(&["-", "-"]).unwrap();
    assert!(shards.len() == 1 && shards[0].is_stdin() && shards[0].is_stream());
}

#[test]
#[cfg(unix)]
fn links_are_followed_without_loops() {
    use std::os::unix::fs::symlink;
    let folder = folder(&["d/a", "d/sub/b", "other/c", "blob"]);
    let d = folder.path().join("d");
    symlink("../d", d.join("loop")).unwrap();
    symlink("..", d.join("sub/up")).unwrap();
    symlink("sub", d.join("latest")).unwrap();
    symlink("../other", d.join("elsewhere")).unwrap();
    // Links represent equal files that are stored once.
    symlink("../blob", d.join("x")).unwrap();
    symlink("../blob", d.join("y")).unwrap();
    check(&folder, "d", &["a", "elsewhere/c", "sub/b", "x", "y"]);
    check(&folder, "d/*/b", &["latest/b", "sub/b"]);
    assert!(resolve(&[folder.path().join("d/**")]).unwrap().len() >= 5);

    symlink("nowhere", d.join("_gone")).unwrap();
    symlink("nowhere", d.join("gone.json")).unwrap();
    check(&folder, "d", &["a", "elsewhere/c", "sub/b", "x", "y"]);
    symlink("nowhere", d.join("gone")).unwrap();
    refused(
        &folder,
        "d/gone",
        "F/d/gone: is a link to nowhere, which does not exist",
    );
    assert!(resolve(&[&d]).unwrap_err().to_string().contains("gone"));
    check(&folder, "d/?", &["a", "x", "y"]);
}

#[test]
#[cfg(unix)]
fn names_may_contain_any_bytes() {
    use std::os::unix::ffi::OsStrExt;
    let folder = folder(&["ü", "new\nline", "a'b\"c", "-"]);
    let odd = std::ffi::OsStr::from_bytes(b"\xff\xfe.tfrecord");
    fs::write(folder.path().join(odd), frames(&[b"data"])).unwrap();
    fs::write(folder.path().join("a b"), frames(&[b"data"])).unwrap();
    let error = resolve(&[folder.path().join("no\nfile")]).unwrap_err();
    assert_eq!(error.to_string().lines().count(), 1);
    let shards = resolve(&[folder.path()]).unwrap();
    assert_eq!(shards.len(), 6);
    assert!(shards.iter().any(|shard| shard.name == Path::new(odd)));
    for shard in &shards {
        let mut reader = ShardReader::open(shard, &ReadOptions::default()).unwrap();
        assert_eq!(reader.next().unwrap().unwrap().len(), 1);
    }
    assert_eq!(
        resolve(&[folder.path().join("*.tfrecord")]).unwrap()[0].name,
        Path::new(odd)
    );
}

#[test]
#[cfg(unix)]
fn pipes_are_read_once_and_only_if_they_are_named() {
    let folder = folder(&["a"]);
    let pipe = folder.path().join("pipe");
    let status = std::process::Command::new("mkfifo")
        .arg(&pipe)
        .status()
        .unwrap();
    assert!(status.success());
    check(&folder, "", &["a"]);
    fs::remove_file(folder.path().join("a")).unwrap();
    refused(
        &folder,
        "",
        "F/: nothing to read: no TFRecord, Parquet, Arrow, CSV or JSON file in this folder or below it; skipped: 1 of no \
         known format (such as F/pipe)",
    );

    let mut shard = resolve(&[&pipe]).unwrap().remove(0);
    assert!(shard.is_stream() && !shard.is_stdin());
    let writer = std::thread::spawn(move || fs::write(pipe, frames(&[b"one", b"two"])).unwrap());
    shard.spool().unwrap();
    writer.join().unwrap();
    assert!(!shard.is_stream());
    assert_eq!((shard.size, shard.format), (38, ShardFormat::TfRecord));
    for _ in 0..2 {
        let mut reader = ShardReader::open(&shard, &ReadOptions::default()).unwrap();
        assert_eq!(reader.next().unwrap().unwrap().len(), 2);
    }
    let copy = shard.local_path().to_owned();
    assert!(copy.exists());
    drop(shard);
    assert!(!copy.exists());
}

#[test]
fn a_shard_spec_names_all_shards_and_no_other_files() {
    let folder = folder(&[
        "d/train-00000-of-00003.tfrecord",
        "d/train-00001-of-00003.tfrecord.gz gzip",
        "d/train-00002-of-00003 empty",
        "d/train-00000-of-00003.index",
        "d/train-00003-of-00003",
        "d/train-00000-of-00002.parquet parquet",
        "d/train-00001-of-00002.parquet parquet",
        "d/train-00000-of-00002",
        "d/test-00001-of-00012",
        "d/odd@1",
    ]);
    let train = [
        "train-00000-of-00003.tfrecord",
        "train-00001-of-00003.tfrecord.gz",
        "train-00002-of-00003",
    ];
    check(&folder, "d/train@3", &train);
    check(
        &folder,
        "d/train@2.parquet",
        &[
            "train-00000-of-00002.parquet",
            "train-00001-of-00002.parquet",
        ],
    );
    check(&folder, "d/odd@1", &["odd@1"]);
    refused(
        &folder,
        "d/test@12",
        "F/d/test@12: nothing to read: of 12 shards 11 are missing, the first test-00000-of-00012",
    );
    let error = resolve(&[folder.path().join("d/train@2")])
        .unwrap_err()
        .to_string();
    assert!(
        error.contains("are the same shard; add their extension to the source"),
        "{error}"
    );
    let error = resolve(&[folder.path().join("gone/train@2")])
        .unwrap_err()
        .to_string();
    assert!(error.contains("gone: No such file"), "{error}");
}

#[test]
fn names_are_relative_without_parent_folders() {
    let folder = folder(&["d/sub/a", "d/b"]);
    for source in ["d/../d", "d/sub/..", "d/sub/../*", "d/./sub//*"] {
        for shard in resolve(&[folder.path().join(source)]).unwrap() {
            assert!(
                shard
                    .name
                    .components()
                    .all(|part| matches!(part, std::path::Component::Normal(_))),
                "{source}"
            );
        }
    }
    // The current folder of tests is that of the crate.
    for source in [
        "../../testdata/shards",
        "./../../testdata/shards/",
        "./../../testdata/shards/train*",
        "../../testdata/shards/*[0-4].tfrecord",
    ] {
        let shards = resolve(&[source]).unwrap();
        assert_eq!(shards.len(), 4, "{source}");
        assert_eq!(
            shards[0].name,
            Path::new("train-00000-of-00004.tfrecord"),
            "{source}"
        );
    }
    assert_eq!(
        resolve_filtered(&["./src", "../../testdata/shards/"], FormatFilter::TfRecord)
            .unwrap_err()
            .path(),
        Some(Path::new("./src"))
    );
}

/// Devices and files that the system makes may never end.
#[test]
#[cfg(target_os = "linux")]
fn sources_that_are_neither_files_nor_pipes_are_refused() {
    for path in ["/dev/zero", "/dev/null", "/proc/version", "/proc/kmsg"] {
        for filter in [FormatFilter::Any, FormatFilter::ToVerify] {
            let error = resolve_filtered(&[path], filter).unwrap_err().to_string();
            assert_eq!(
                error,
                format!("{path}: this is no regular file and no pipe")
            );
        }
    }
    assert!(resolve(&["/dev/stdin"]).is_ok());
}
