//! Outputs appear when they are complete, or not at all.

use std::{fs, io::Write, path::Path};

use tfarrow_dataset::{Compression, ErrorKind, OutputFile, ReadOptions, ShardWriter};

use crate::{compressed, frames, read, write_file};

fn names(folder: &Path) -> Vec<String> {
    let mut names: Vec<_> = fs::read_dir(folder)
        .unwrap()
        .map(|entry| entry.unwrap().file_name().into_string().unwrap())
        .collect();
    names.sort();
    names
}

#[test]
fn a_file_appears_when_it_is_complete() {
    let folder = tempfile::tempdir().unwrap();
    let target = folder.path().join("new/folders/a.tfrecord");
    let mut file = OutputFile::create(&target, false).unwrap();
    file.write_all(b"half").unwrap();
    assert!(!target.exists());
    let [unfinished] = &names(target.parent().unwrap())[..] else {
        panic!("one file")
    };
    assert!(unfinished.starts_with('.'));
    file.persist().unwrap();
    assert_eq!(fs::read(&target).unwrap(), b"half");
    assert_eq!(names(target.parent().unwrap()), ["a.tfrecord"]);
}

#[test]
fn the_temporary_file_of_a_dropped_output_is_removed() {
    let folder = tempfile::tempdir().unwrap();
    let mut file = OutputFile::create(folder.path().join("a"), true).unwrap();
    file.write_all(b"half").unwrap();
    drop(file);
    assert!(names(folder.path()).is_empty());
}

#[test]
fn an_existing_file_is_kept_without_overwrite() {
    let folder = tempfile::tempdir().unwrap();
    let target = write_file(folder.path(), "a", b"old");
    let error = OutputFile::create(&target, false).unwrap_err();
    assert!(matches!(error.kind(), ErrorKind::Exists), "{error}");

    let mut file = OutputFile::create(&target, true).unwrap();
    file.write_all(b"new").unwrap();
    assert_eq!(fs::read(&target).unwrap(), b"old");
    file.persist().unwrap();
    assert_eq!(fs::read(&target).unwrap(), b"new");
}

#[test]
fn a_file_that_appears_during_writing_is_kept() {
    let folder = tempfile::tempdir().unwrap();
    let target = folder.path().join("a");
    let file = OutputFile::create(&target, false).unwrap();
    fs::write(&target, b"another's").unwrap();
    let error = file.persist().unwrap_err();
    assert!(matches!(error.kind(), ErrorKind::Exists), "{error}");
    assert_eq!(fs::read(&target).unwrap(), b"another's");
    assert_eq!(names(folder.path()), ["a"]);
}

#[test]
fn folders_and_devices_are_not_replaced() {
    let folder = tempfile::tempdir().unwrap();
    for target in [folder.path(), Path::new("/dev/null")] {
        let error = OutputFile::create(target, true).unwrap_err();
        assert!(matches!(error.kind(), ErrorKind::NotAFile), "{error}");
    }
}

#[test]
#[cfg(unix)]
fn permissions_are_those_of_other_new_files() {
    use std::os::unix::fs::PermissionsExt;
    let folder = tempfile::tempdir().unwrap();
    let plain = write_file(folder.path(), "plain", b"");
    let target = folder.path().join("a");
    OutputFile::create(&target, false)
        .unwrap()
        .persist()
        .unwrap();
    let mode = |path: &Path| fs::metadata(path).unwrap().permissions().mode();
    assert_eq!(mode(&target), mode(&plain));
}

#[test]
fn written_shards_are_read_again() {
    let bytes = frames(&[&b"one"[..], b"", &[7; 100_000]]);
    for compression in Compression::ALL {
        let mut writer = ShardWriter::new(Vec::new(), compression);
        for part in bytes.chunks(777) {
            writer.write_all(part).unwrap();
        }
        let stored = writer.finish().unwrap();
        let (data, found, error) = read(&stored, &ReadOptions::default());
        assert!(error.is_none());
        assert_eq!((data.len(), found), (3, Some(compression)));
        assert_eq!(
            stored,
            compressed(&bytes, compression),
            "the bytes do not depend on the sizes of writes"
        );
    }
}
