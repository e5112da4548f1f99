//! Errors for files that are not TFRecord.

use tfarrow_dataset::{Compression, ErrorKind, ReadOptions, ShardFormat, ShardReader};

use crate::{compressed, frames, read, shard_of, testdata, write_file};

#[track_caller]
fn check(bytes: &[u8], expect: &str) {
    let folder = tempfile::tempdir().unwrap();
    let path = write_file(folder.path(), "f", bytes);
    let error = match ShardReader::open(&shard_of(&path), &ReadOptions::default()) {
        Ok(_) => panic!("{expect}: no error"),
        Err(error) => error,
    };
    assert!(matches!(error.kind(), ErrorKind::NotTfRecord { .. }));
    assert_eq!(
        error.to_string(),
        format!("{}: not TFRecord: {expect}", path.display())
    );
}

#[test]
fn other_formats_are_named() {
    check(
        b"\x83\xaf\x70\xd1\x0d\x88\x4a\x3f\0\0\0\0\0\0\0\0",
        "starts like ArrayRecord (a Riegeli file); read it with the array_record package, and write its records as TFRecord",
    );
    check(
        b"PAR1\x15\x04\x15\x0a\x15\x0e\x4c\x15",
        "starts like Parquet",
    );
    check(
        b"ARROW1\0\0\xff\xff\xff\xff\x10\0",
        "starts like an Arrow IPC file",
    );
    check(b"{\"features\": []}", "starts like JSON");
    check(b"a,b,c\n1,2,3\n", "starts like text");
    check(
        b"PK\x03\x04\x14\0\0\0\x08\0\0\0",
        "starts like zip; unpack it first",
    );
    check(b"\x89HDF\r\n\x1a\n\0\0\0\0", "starts like HDF5");
    check(
        b"version https://git-lfs.github.com/spec/v1\noid sha256:0\n",
        "starts like a Git LFS pointer instead of the file; fetch the file with `git lfs pull`",
    );
    check(
        b"\xdd\x04\0\0\x4d\xe1\xe9\x67\xd3\x3b\x33\xb4\x0a",
        "the file is 13 bytes and begins with dd 04 00 00 4d e1 e9 67 d3 3b 33 b4, where a first record's length and its CRC should be",
    );
}

#[test]
fn compressed_files_of_other_formats_are_named() {
    let text = b"a,b,c\n1,2,3\n4,5,6\n";
    check(
        &compressed(text, Compression::Gzip),
        "gzip, and what is compressed starts like text",
    );
    check(
        &compressed(text, Compression::Zlib),
        "zlib, and what is compressed starts like text",
    );
    let twice = compressed(
        &compressed(&frames(&[b"x"]), Compression::Gzip),
        Compression::Gzip,
    );
    check(
        &twice,
        "gzip, and what is compressed starts like gzip; decompress it once",
    );
    check(
        &compressed(&[7; 20], Compression::Gzip),
        "gzip, and what is compressed begins with 07 07 07 07 07 07 07 07 07 07 07 07, where a first record's length and its CRC should be",
    );
}

#[test]
fn files_that_begin_like_zlib_by_chance_are_not_damaged_zlib() {
    check(b"x^2 + y^2 = z^2\n", "starts like text");
    check(
        b"hC\xff\xff\xff\xff\xff\xff\xff\xff\xff\xff",
        "the file is 12 bytes and begins with 68 43 ff ff ff ff ff ff ff ff ff ff, where a first record's length and its CRC should be",
    );
}

#[test]
fn a_corrupt_first_length_is_reported_with_its_bytes() {
    let mut bytes = frames(&[b"data"]);
    bytes[2] ^= 0x10;
    let (_, _, error) = read(&bytes, &ReadOptions::default());
    let error = error.unwrap().to_string();
    assert!(
        error.starts_with("x: not TFRecord: begins with 04 00 10 00 00 00 00 00"),
        "{error}"
    );
}

#[test]
fn corrupt_files_of_tensorflow_are_errors() {
    for (name, records, expect) in [
        ("length", 1, "record 1 (byte 72): the length's CRC"),
        ("length_high", 1, "record 1 (byte 72): the length's CRC"),
        ("length_crc", 1, "record 1 (byte 72): the length's CRC"),
        (
            "truncated",
            2,
            "record 2 (byte 144): the file ends inside this record",
        ),
        (
            "truncated_header",
            2,
            "record 2 (byte 144): the file ends inside a record's header",
        ),
        (
            "truncated_crc",
            2,
            "record 2 (byte 144): the file ends inside this record",
        ),
        (
            "trailing",
            3,
            "record 3 (byte 216): the file ends inside a record's header",
        ),
        ("garbage", 0, "not TFRecord: the file is"),
        (
            "truncated.tfrecord.gz",
            0,
            "record 0: the gzip data is truncated",
        ),
        (
            "truncated_trailer.tfrecord.gz",
            3,
            "record 3: the gzip data is truncated",
        ),
        (
            "bad_deflate.tfrecord.gz",
            2,
            "record 2: the gzip data is corrupt (it does not inflate)",
        ),
        (
            "bad_gzip_crc.tfrecord.gz",
            3,
            "record 3: the gzip data is corrupt (incorrect data check)",
        ),
        (
            "trailing.tfrecord.gz",
            3,
            "record 3: the gzip data is followed by other data",
        ),
    ] {
        let file = if name.contains('.') {
            name.to_owned()
        } else {
            format!("{name}.tfrecord")
        };
        let shard = shard_of(&testdata("corrupt").join(file));
        let mut found = 0;
        let error = match ShardReader::open(&shard, &ReadOptions::default()) {
            Err(error) => error,
            Ok(mut reader) => loop {
                match reader.next() {
                    Ok(some) => found += some.expect(name).len(),
                    Err(error) => break error,
                }
            },
        };
        let message = error.to_string();
        assert!(message.contains(expect), "{name}: {message}");
        assert!(
            message.starts_with(&shard.path.display().to_string()),
            "{name}: {message}"
        );
        assert_eq!(message.lines().count(), 1, "{name}");
        if name != "truncated.tfrecord.gz" {
            assert_eq!(found, records, "{name}");
        }
    }
}

#[test]
fn errors_keep_their_cause() {
    let (_, _, error) = read(&frames(&[b"data"])[..18], &ReadOptions::default());
    let error = error.unwrap();
    let cause = std::error::Error::source(&error).unwrap();
    assert!(cause.is::<tfarrow_codec::Error>());
    assert_eq!(error.to_string(), format!("x: {cause}"));
}

#[test]
fn formats_are_recognized_by_content() {
    let folder = tempfile::tempdir().unwrap();
    let bytes = frames(&[b"a record"]);
    let tfrecord = Some(ShardFormat::TfRecord);
    for (stored, expect) in [
        (bytes.clone(), tfrecord),
        (compressed(&bytes, Compression::Gzip), tfrecord),
        (compressed(&bytes, Compression::Zlib), tfrecord),
        (compressed(b"", Compression::Gzip), tfrecord),
        (
            compressed(&bytes, Compression::Gzip)[..15].to_vec(),
            tfrecord,
        ),
        (compressed(b"some text here", Compression::Gzip), None),
        (b"PAR1....PAR1".to_vec(), Some(ShardFormat::Parquet)),
        (b"ARROW1\0\0".to_vec(), Some(ShardFormat::Arrow)),
        (b"x^2 + y^2 = z^2".to_vec(), None),
        (b"text".to_vec(), None),
        (vec![], None),
    ] {
        let path = write_file(folder.path(), "misleading.json", &stored);
        assert_eq!(ShardFormat::sniff(&path).unwrap(), expect, "{stored:02x?}");
    }
}
