//! Interrupted conversions: kills, signals, locks, `--resume`, and leftover files.

use std::{
    collections::BTreeMap,
    fs,
    path::{Path, PathBuf},
    process::{Child, ExitStatus},
    time::{Duration, Instant},
};

use tempfile::TempDir;
use tfarrow_testkit::{
    frame,
    proto::{self, KindOneof},
};

use crate::support::{command, tfarrow, tfarrow_in};

const SHARDS: usize = 20;

/// Number of kills for each of the three ways to convert.
#[cfg(unix)]
const KILLS: u32 = 17;

/// Writes shards of 200,000 records in all, so that a conversion to Parquet takes long enough to be
/// interrupted.
fn shards(folder: &Path) -> PathBuf {
    let source = folder.join("source");
    fs::create_dir(&source).unwrap();
    for shard in 0..SHARDS {
        let record = |row: usize| {
            let hash = (row as u64 + 1).wrapping_mul(0x9e37_79b9_7f4a_7c15 ^ shard as u64);
            let floats = [hash as u32, (hash >> 32) as u32].map(f32::from_bits);
            let ints = hash.to_le_bytes().map(|byte| i64::from(byte & 0x7f));
            let bytes = hash.to_le_bytes();
            proto::example([
                ("a", KindOneof::floats(floats)),
                ("b", KindOneof::bytes(bytes)),
                ("c", KindOneof::ints(ints)),
            ])
        };
        let name = format!("train-{shard:05}-of-{SHARDS:05}.tfrecord");
        fs::write(source.join(name), frame::file((0..10_000).map(record))).unwrap();
    }
    source
}

fn text(path: &Path) -> &str {
    path.to_str().unwrap()
}

/// The names and contents of the files in a folder, without hidden files and subfolders.
fn files(folder: &Path) -> BTreeMap<String, Vec<u8>> {
    let entries =
        fs::read_dir(folder).map_or(Vec::new(), |entries| entries.map(Result::unwrap).collect());
    let names = entries
        .into_iter()
        .map(|entry| (entry.file_name().into_string().unwrap(), entry.path()));
    let shown = names.filter(|(name, path)| !name.starts_with('.') && path.is_file());
    shown
        .map(|(name, path)| (name, fs::read(path).unwrap()))
        .collect()
}

fn hidden(folder: &Path) -> Vec<String> {
    let entries = fs::read_dir(folder)
        .unwrap()
        .map(|entry| entry.unwrap().file_name().into_string().unwrap());
    entries.filter(|name| name.starts_with('.')).collect()
}

/// Waits for the program, at most for a minute.
fn wait(mut child: Child) -> ExitStatus {
    let start = Instant::now();
    loop {
        match child.try_wait().unwrap() {
            Some(status) => return status,
            None if start.elapsed() > Duration::from_secs(60) => panic!("the program does not end"),
            None => std::thread::yield_now(),
        }
    }
}

/// The inode of each file that the journal records as complete, under its final name or its
/// temporary name.
#[cfg(unix)]
fn made(folder: &Path) -> BTreeMap<String, u64> {
    use std::os::unix::fs::MetadataExt;
    let journal = fs::read_to_string(folder.join(".tfarrow-convert.journal")).unwrap_or_default();
    let lines = journal
        .lines()
        .filter_map(|line| serde_json::from_str::<serde_json::Value>(line).ok());
    let mut made = BTreeMap::new();
    for line in lines.filter_map(|line| line.get("made").cloned()) {
        let name = |key: &str| line[key].as_str().unwrap().to_owned();
        let place = [name("output"), name("part")]
            .into_iter()
            .find_map(|name| fs::metadata(folder.join(name)).ok());
        made.extend(place.map(|metadata| (name("output"), metadata.ino())));
    }
    made
}

/// Kills conversions 51 times, at moments spread over their duration. After each kill, outputs with
/// their final names are complete, and the same command with --resume completes the conversion or
/// finds that it is complete.
#[test]
#[cfg(unix)]
fn a_killed_conversion_can_be_resumed() {
    use std::os::unix::fs::MetadataExt;
    let folder = TempDir::new().unwrap();
    let source = shards(folder.path());
    // With a given schema, each output is renamed as soon as it is complete. Otherwise all outputs
    // are renamed when the schema is final.
    let schema = folder.path().join("schema.json");
    fs::write(
        &schema,
        tfarrow(&["schema", text(&source), "--format", "json"]).prints(),
    )
    .unwrap();
    let ways: [&[&str]; 3] = [
        &[],
        &["--schema", text(&schema)],
        &["--exact", "--jobs", "1"],
    ];
    let (mut kept, mut complete) = (0, 0);
    for (turn, way) in ways.iter().enumerate() {
        let whole = folder.path().join(format!("whole-{turn}"));
        let start = Instant::now();
        tfarrow(&[&["convert", text(&source), text(&whole)][..], way].concat()).ends(0);
        let (expect, took) = (files(&whole), start.elapsed());
        assert_eq!((expect.len(), hidden(&whole).len()), (SHARDS, 0));
        for kill in 0..KILLS {
            // The destination is a relative path, as most users write it.
            let name = format!("dest-{turn}-{kill}");
            let dest = folder.path().join(&name);
            let args = [&["convert", text(&source), &name][..], way].concat();
            let mut child = command(&args).current_dir(folder.path()).spawn().unwrap();
            let moment = took.mul_f64((f64::from(kill) + 0.5) / f64::from(KILLS));
            let start = Instant::now();
            while start.elapsed() < moment && child.try_wait().unwrap().is_none() {
                std::thread::yield_now();
            }
            child.kill().unwrap();
            wait(child);
            let journal = dest.join(".tfarrow-convert.journal");
            let named = files(&dest);
            for (name, bytes) in &named {
                assert!(
                    expect[name] == *bytes,
                    "{name} has its final name and is incomplete"
                );
            }
            let before = made(&dest);
            kept += before.len();
            // A journal without a line is that of a conversion that has done nothing, and is no
            // reason to refuse another one.
            if fs::metadata(&journal).is_ok_and(|journal| journal.len() > 0) {
                let stderr = tfarrow_in(folder.path(), &args).ends(2);
                assert!(stderr.contains("--resume"), "{stderr}");
            } else {
                complete += usize::from(!named.is_empty());
            }
            let inodes = inodes(&dest);
            tfarrow_in(folder.path(), &[&args[..], &["--resume"]].concat()).ends(0);
            assert!(files(&dest) == expect, "turn {turn}, kill {kill}");
            assert_eq!(hidden(&dest), [""; 0], "hidden files are left");
            for (name, inode) in inodes.into_iter().chain(before) {
                assert_eq!(
                    fs::metadata(dest.join(&name)).unwrap().ino(),
                    inode,
                    "{name} was written again"
                );
            }
        }
    }
    println!(
        "{complete} runs were complete when they were killed; {kept} complete outputs were not written again"
    );
    assert!(kept > 0, "no kill left a complete output");
}

/// The inode of each file with its final name.
#[cfg(unix)]
fn inodes(folder: &Path) -> BTreeMap<String, u64> {
    use std::os::unix::fs::MetadataExt;
    let inode = |name: &String| fs::metadata(folder.join(name)).unwrap().ino();
    files(folder)
        .into_keys()
        .map(|name| (name.clone(), inode(&name)))
        .collect()
}

/// The path, content, inode and modification time of each file below a folder, hidden files
/// included.
#[cfg(unix)]
fn state(folder: &Path) -> BTreeMap<String, (Vec<u8>, u64, i64, i64)> {
    use std::os::unix::fs::MetadataExt;
    let mut state = BTreeMap::new();
    for entry in fs::read_dir(folder).unwrap() {
        let path = entry.unwrap().path();
        let held = fs::metadata(&path).unwrap();
        if held.is_dir() {
            state.extend(self::state(&path));
        } else {
            let seen = (
                fs::read(&path).unwrap(),
                held.ino(),
                held.mtime(),
                held.mtime_nsec(),
            );
            state.insert(text(&path).to_owned(), seen);
        }
    }
    state
}

/// Writes three shards of 100 records. With `damaged`, one shard is corrupt in two places.
fn small_shards(folder: &Path, damaged: bool) -> PathBuf {
    let source = folder.join("source");
    fs::create_dir(&source).unwrap();
    for shard in 0..3 {
        let record = |row: i64| {
            proto::example([
                ("a", KindOneof::ints([row, shard])),
                ("b", KindOneof::bytes(vec![7; 30])),
            ])
        };
        let mut bytes = frame::file((0..100).map(record));
        if damaged && shard == 1 {
            bytes[20] ^= 1;
            let middle = bytes.len() / 2;
            bytes[middle] ^= 1;
        }
        fs::write(
            source.join(format!("train-{shard:05}-of-00003.tfrecord")),
            bytes,
        )
        .unwrap();
    }
    source
}

#[test]
#[cfg(unix)]
fn resuming_a_complete_run_succeeds_and_writes_nothing() {
    let folder = TempDir::new().unwrap();
    let source = small_shards(folder.path(), false);
    let one = source.join("train-00000-of-00003.tfrecord");
    let gzip = folder.path().join("gzip");
    tfarrow(&[
        "convert",
        text(&source),
        text(&gzip),
        "--to",
        "tfrecord",
        "--compression",
        "gzip",
    ])
    .ends(0);
    let ways: [(&str, &Path, &str, &[&str]); 13] = [
        ("convert", &source, "parquet", &[]),
        ("convert", &source, "sample", &["--sample", "10"]),
        ("convert", &source, "exact", &["--exact", "--jobs", "1"]),
        (
            "convert",
            &source,
            "arrow",
            &["--to", "arrow", "--compression", "lz4"],
        ),
        (
            "convert",
            &source,
            "tfrecord",
            &["--to", "tfrecord", "--compression", "gzip"],
        ),
        ("convert", &source, "three", &["--shards", "2"]),
        (
            "convert",
            &source,
            "size",
            &["--to", "tfrecord", "--shard-size", "5kB"],
        ),
        ("convert", &source, "skip", &["--on-error", "skip"]),
        ("convert", &one, "one.parquet", &[]),
        ("convert", &one, "one.arrow", &[]),
        ("convert", &one, "one.tfrecord.gz", &[]),
        ("repair", &source, "repaired", &[]),
        ("repair", &gzip, "repaired-gzip", &[]),
    ];
    for (command, source, dest, more) in ways {
        let parent = folder.path().join(format!("out-{dest}"));
        fs::create_dir(&parent).unwrap();
        let dest = parent.join(dest);
        let args = [&[command, text(source), text(&dest)][..], more].concat();
        tfarrow(&args).ends(0);
        let before = state(&parent);
        assert!(
            !before.is_empty() && before.keys().all(|path| !path.contains("/.tfarrow")),
            "{args:?}: {:?}",
            before.keys()
        );
        for _ in 0..2 {
            tfarrow(&[&args[..], &["--resume"]].concat()).ends(0);
            assert!(state(&parent) == before, "{args:?}");
        }
        // Without --resume, existing outputs are an error.
        let stderr = tfarrow(&args).ends(2);
        assert!(
            stderr.contains("already exists") || stderr.contains("is a shard of an existing set"),
            "{args:?}: {stderr}"
        );
    }
}

/// The schema of the sample may be wrong, and the conversion then reads its sources twice. --resume
/// accepts outputs whose schema differs from that of the sample.
#[test]
#[cfg(unix)]
fn resuming_a_complete_run_of_two_passes_writes_nothing() {
    let folder = TempDir::new().unwrap();
    let source = folder.path().join("a.tfrecord");
    let record = |row: i64| {
        proto::example([(
            "a",
            KindOneof::ints(if row < 5000 { vec![row] } else { vec![row, 1] }),
        )])
    };
    fs::write(&source, frame::file((0..6000).map(record))).unwrap();
    let out = folder.path().join("out");
    for dest in [out.join("a.parquet"), out.join("a.arrow")] {
        fs::create_dir_all(&out).unwrap();
        tfarrow(&["convert", text(&source), text(&dest)]).ends(0);
        let before = state(&out);
        tfarrow(&["convert", text(&source), text(&dest), "--resume"]).ends(0);
        assert!(state(&out) == before);
        fs::remove_dir_all(&out).unwrap();
    }
}

#[test]
#[cfg(unix)]
fn resuming_a_complete_run_fails_if_an_output_differs() {
    let folder = TempDir::new().unwrap();
    let source = small_shards(folder.path(), false);
    for format in ["parquet", "tfrecord"] {
        let dest = folder.path().join(format);
        let args = ["convert", text(&source), text(&dest), "--to", format];
        let resume = [&args[..], &["--resume"]].concat();
        tfarrow(&args).ends(0);
        let whole = files(&dest);
        let first = dest.join(whole.keys().next().unwrap());
        let refused = |args: &[&str]| {
            let before = state(&dest);
            let stderr = tfarrow(args).ends(1);
            let expected = "already exists, and differs from the output of this conversion; --overwrite replaces it";
            assert!(
                stderr.contains(expected) && stderr.contains(text(&dest)),
                "{stderr}"
            );
            assert!(state(&dest) == before);
        };
        // An output that was changed, truncated, extended or emptied.
        let bytes = fs::read(&first).unwrap();
        let mut flipped = bytes.clone();
        flipped[bytes.len() / 2] ^= 1;
        for changed in [
            flipped,
            bytes[..bytes.len() - 1].to_vec(),
            [&bytes[..], b"x"].concat(),
            Vec::new(),
        ] {
            fs::write(&first, changed).unwrap();
            refused(&resume);
        }
        // Other options for the same sources.
        fs::write(&first, &bytes).unwrap();
        tfarrow(&resume).ends(0);
        if format == "parquet" {
            refused(&[&resume[..], &["--exact"]].concat());
            refused(&[&resume[..], &["--compression", "none"]].concat());
        }
        // A source that changed after the conversion.
        let changed = source.join("train-00002-of-00003.tfrecord");
        let before = fs::read(&changed).unwrap();
        let fewer = frame::read(&before).unwrap();
        fs::write(&changed, frame::file(&fewer[1..])).unwrap();
        refused(&resume);
        fs::write(&changed, &before).unwrap();
        tfarrow(&resume).ends(0);
        // A missing output is written again; the others are kept.
        fs::remove_file(&first).unwrap();
        let others = inodes(&dest);
        tfarrow(&resume).ends(0);
        assert!(
            files(&dest) == whole
                && others
                    .iter()
                    .all(|(name, inode)| inodes(&dest)[name] == *inode)
        );
        // With --overwrite, a changed output is replaced.
        fs::write(&first, "changed").unwrap();
        tfarrow(&[&resume[..], &["--overwrite"]].concat()).ends(0);
        assert!(files(&dest) == whole);
    }
}

#[test]
#[cfg(unix)]
fn resuming_a_complete_run_reports_its_skipped_records_again() {
    let folder = TempDir::new().unwrap();
    let source = small_shards(folder.path(), true);
    for (command, more) in [("convert", &["--on-error", "skip"][..]), ("repair", &[])] {
        let out = folder.path().join(command);
        fs::create_dir(&out).unwrap();
        let (dest, lost) = (out.join("dest"), out.join("lost.tfrecord"));
        let args = [
            &[
                command,
                text(&source),
                text(&dest),
                "--quarantine",
                text(&lost),
            ][..],
            more,
        ]
        .concat();
        let first = tfarrow(&args);
        let first = (first.stdout.clone(), first.ends(3));
        let before = state(&out);
        assert!(before.contains_key(text(&lost)));
        let again = tfarrow(&[&args[..], &["--resume"]].concat());
        assert_eq!(again.stdout, first.0);
        // The first line contains the elapsed time.
        let lines = |stderr: &str| {
            stderr
                .lines()
                .skip(1)
                .map(str::to_owned)
                .collect::<Vec<_>>()
        };
        assert_eq!(lines(&again.ends(3)), lines(&first.1));
        assert!(state(&out) == before, "{command}");
        // A quarantine with other records is an error, and is kept.
        fs::write(&lost, frame::file([b"other"])).unwrap();
        let stderr = tfarrow(&[&args[..], &["--resume"]].concat()).ends(1);
        assert!(
            stderr.contains("lost.tfrecord: already exists, and differs"),
            "{stderr}"
        );
        assert_eq!(fs::read(&lost).unwrap(), frame::file([b"other"]));
        // A missing quarantine is written again.
        fs::remove_file(&lost).unwrap();
        tfarrow(&[&args[..], &["--resume"]].concat()).ends(3);
        assert!(files(&out) == files_of(&before, &out));
    }
}

/// The names and contents of the files of `state` that are directly in `folder`.
#[cfg(unix)]
fn files_of(
    state: &BTreeMap<String, (Vec<u8>, u64, i64, i64)>,
    folder: &Path,
) -> BTreeMap<String, Vec<u8>> {
    let name = |path: &str| {
        Path::new(path)
            .strip_prefix(folder)
            .unwrap()
            .to_str()
            .unwrap()
            .to_owned()
    };
    let here = state
        .iter()
        .map(|(path, seen)| (name(path), seen.0.clone()));
    here.filter(|(name, _)| !name.contains('/')).collect()
}

/// A user with write access to the output folder can create a pipe with the name of an output or of
/// a hidden file. Opening the pipe must not block.
#[test]
#[cfg(unix)]
fn a_pipe_in_place_of_an_output_or_a_hidden_file_is_refused_at_once() {
    let folder = TempDir::new().unwrap();
    let source = small_shards(folder.path(), true);
    let one = source.join("train-00001-of-00003.tfrecord");
    let place = |name: &str| text(&folder.path().join(name)).to_owned();
    let pipe = |name: &str| {
        fs::create_dir_all(Path::new(&place(name)).parent().unwrap()).unwrap();
        assert!(
            std::process::Command::new("mkfifo")
                .arg(place(name))
                .status()
                .unwrap()
                .success()
        );
    };
    let (lost, page) = (place("lost.tfrecord"), place("page.html"));
    let quarantine = ["--on-error", "skip", "--quarantine", &lost];
    let (folder_args, file_args) = (
        ["convert", text(&source), &place("out")],
        ["convert", text(&one), &place("a.parquet")],
    );
    let cases: [(&str, Vec<&str>); 7] = [
        ("out/.tfarrow-convert.journal", folder_args.to_vec()),
        (
            "out/.tfarrow-convert.journal",
            [&folder_args[..], &["--resume"]].concat(),
        ),
        (
            "out/.tfarrow-convert.journal",
            [&folder_args[..], &["--overwrite"]].concat(),
        ),
        (".tfarrow-a.parquet.journal", file_args.to_vec()),
        (".tfarrow-lost.tfrecord.lock", file_args.to_vec()),
        (
            "a.parquet",
            [&file_args[..], &["--resume", "--on-error", "skip"]].concat(),
        ),
        ("page.html", vec!["report", text(&one), "-o", &page]),
    ];
    for (name, args) in cases {
        pipe(name);
        let args = if name.ends_with(".lock") {
            [&args[..], &quarantine].concat()
        } else {
            args
        };
        let mut child = command(&args).spawn().unwrap();
        drop(child.stdout.take());
        let status = wait(child);
        assert!(matches!(status.code(), Some(1 | 2)), "{args:?}: {status}");
        use std::os::unix::fs::FileTypeExt;
        assert!(
            fs::symlink_metadata(place(name))
                .unwrap()
                .file_type()
                .is_fifo(),
            "{name} was replaced"
        );
        fs::remove_file(place(name)).unwrap();
    }
}

#[test]
#[cfg(unix)]
fn a_second_run_with_the_same_quarantine_is_refused_at_its_start() {
    let folder = TempDir::new().unwrap();
    let source = shards(folder.path());
    let first = source.join(format!("train-00000-of-{SHARDS:05}.tfrecord"));
    let mut damaged = fs::read(&first).unwrap();
    damaged[20] ^= 1;
    fs::write(&first, damaged).unwrap();
    let place = |name: &str| text(&folder.path().join(name)).to_owned();
    let lost = place("lost.tfrecord");
    let more = ["--on-error", "skip", "--quarantine", &lost];
    let one = place("one");
    let args = [&["convert", text(&source), &one, "--jobs", "1"][..], &more].concat();
    let mut child = command(&args).spawn().unwrap();
    // The temporary file exists only after the lock is taken.
    while !folder.path().join(".tfarrow-lost.tfrecord.part").exists()
        && child.try_wait().unwrap().is_none()
    {
        std::thread::yield_now();
    }
    // A stopped process cannot end before the second run is refused.
    let pid = child.id().to_string();
    let send = |signal: &str| {
        std::process::Command::new("kill")
            .args([signal, &pid])
            .status()
            .unwrap()
    };
    send("-STOP");
    for way in [&[][..], &["--overwrite"], &["--resume"]] {
        let stderr =
            tfarrow(&[&["convert", text(&source), &place("two")][..], &more, way].concat()).ends(2);
        assert!(
            stderr.contains("lost.tfrecord: another run writes its quarantine here"),
            "{stderr}"
        );
        assert!(!folder.path().join("two").exists());
    }
    send("-CONT");
    assert_eq!(wait(child).code(), Some(3));
    assert_eq!(frame::read(&fs::read(&lost).unwrap()).unwrap().len(), 1);
    let stderr = tfarrow(&[&["convert", text(&source), &place("two")][..], &more].concat()).ends(2);
    assert!(
        stderr.contains("lost.tfrecord: already exists; --overwrite replaces it"),
        "{stderr}"
    );
    assert_eq!(hidden(folder.path()), [""; 0]);
}

#[test]
#[cfg(unix)]
fn a_conversion_ended_by_a_signal_can_be_resumed() {
    let folder = TempDir::new().unwrap();
    let source = shards(folder.path());
    let (whole, dest) = (folder.path().join("whole"), folder.path().join("dest"));
    tfarrow(&["convert", text(&source), text(&whole)]).ends(0);
    for (signal, status) in [("-INT", 130), ("-TERM", 143)] {
        let args = ["convert", text(&source), text(&dest), "--jobs", "1"];
        let child = command(&args).spawn().unwrap();
        // The conversion has started when its journal exists.
        let start = Instant::now();
        while !dest.join(".tfarrow-convert.journal").exists()
            && start.elapsed() < Duration::from_secs(30)
        {
            std::thread::yield_now();
        }
        let pid = child.id().to_string();
        assert!(
            std::process::Command::new("kill")
                .args([signal, &pid])
                .status()
                .unwrap()
                .success()
        );
        let output = child.wait_with_output().unwrap();
        assert_eq!(output.status.code(), Some(status));
        assert_eq!(files(&dest), BTreeMap::new(), "the schema is not final yet");
        let made = made(&dest).len();
        let stderr = String::from_utf8(output.stderr).unwrap();
        assert_eq!(stderr.contains("--resume"), made > 0, "{stderr}");
        if made > 0 {
            tfarrow(&[&args[..], &["--resume"]].concat()).ends(0);
        } else {
            tfarrow(&args).ends(0);
        }
        assert!(files(&dest) == files(&whole));
        assert_eq!(hidden(&dest), [""; 0]);
        fs::remove_dir_all(&dest).unwrap();
    }
}

/// A parent such as `nohup` ignores SIGHUP so that the program outlives the terminal.
#[test]
#[cfg(target_os = "linux")]
fn an_ignored_signal_does_not_end_the_conversion() {
    let folder = TempDir::new().unwrap();
    let source = shards(folder.path());
    let dest = folder.path().join("dest");
    let ignoring = "trap '' HUP; exec \"$0\" \"$@\"";
    let program = env!("CARGO_BIN_EXE_tfarrow");
    let args = [
        "-c",
        ignoring,
        program,
        "convert",
        text(&source),
        text(&dest),
        "--jobs",
        "1",
    ];
    let mut child = std::process::Command::new("sh").args(args).spawn().unwrap();
    while !dest.join(".tfarrow-convert.journal").exists() && child.try_wait().unwrap().is_none() {
        std::thread::yield_now();
    }
    let pid = child.id().to_string();
    let _ = std::process::Command::new("kill")
        .args(["-HUP", &pid])
        .status()
        .unwrap();
    assert!(wait(child).success());
    assert_eq!((files(&dest).len(), hidden(&dest).len()), (SHARDS, 0));
}

#[test]
fn resume_requires_the_options_of_the_interrupted_run() {
    let folder = TempDir::new().unwrap();
    let source = shards(folder.path());
    let (dest, whole) = (folder.path().join("dest"), folder.path().join("whole"));
    // The last shard is truncated, so that the outputs of the shards before it are written and
    // kept.
    let bad = source.join(format!("train-{:05}-of-{SHARDS:05}.tfrecord", SHARDS - 1));
    let sound = fs::read(&bad).unwrap();
    fs::write(&bad, &sound[..sound.len() - 1]).unwrap();
    let schema = folder.path().join("schema.json");
    let first = source.join(format!("train-00000-of-{SHARDS:05}.tfrecord"));
    fs::write(
        &schema,
        tfarrow(&["schema", text(&first), "--format", "json"]).prints(),
    )
    .unwrap();
    let args = [
        "convert",
        text(&source),
        text(&dest),
        "--schema",
        text(&schema),
        "--jobs",
        "1",
    ];
    let stderr = tfarrow(&args).ends(1);
    assert!(
        stderr.contains("--resume") && stderr.contains("the file ends inside this record"),
        "{stderr}"
    );
    assert_eq!(files(&dest).len(), SHARDS - 1);
    let stderr = tfarrow(&[&args[..], &["--resume", "--exact"]].concat()).ends(2);
    assert!(stderr.contains("had other options"), "{stderr}");
    // A source that has changed is converted again, and so is the source that failed.
    let changed = frame::file([frame::read(&fs::read(&first).unwrap()).unwrap()[0]]);
    fs::write(&first, changed).unwrap();
    fs::write(&bad, &sound).unwrap();
    // An output that has changed is written again. The output of a removed source is kept, since it
    // may be the only copy of the records.
    fs::remove_file(source.join(format!("train-00007-of-{SHARDS:05}.tfrecord"))).unwrap();
    let touched = dest.join(format!("train-00003-of-{SHARDS:05}.parquet"));
    fs::write(&touched, "touched").unwrap();
    // The resumed run may have another --on-error than the interrupted one. No record is corrupt
    // here.
    let stderr = tfarrow(&[&args[..], &["--resume", "--on-error", "skip"]].concat()).ends(0);
    assert!(
        stderr.contains("1 output of the interrupted run has a source that is not among these"),
        "{stderr}"
    );
    fs::remove_file(dest.join(format!("train-00007-of-{SHARDS:05}.parquet"))).unwrap();
    tfarrow(&[
        "convert",
        text(&source),
        text(&whole),
        "--schema",
        text(&schema),
    ])
    .ends(0);
    assert!(files(&dest) == files(&whole));
    // A complete run can be resumed too.
    tfarrow(&[&args[..], &["--resume"]].concat()).ends(0);
    assert!(files(&dest) == files(&whole));
}

/// --resume converts a shard with skipped records again, because the killed run did not report
/// them.
#[test]
#[cfg(unix)]
fn the_resumed_run_reports_the_records_that_the_killed_run_skipped() {
    let folder = TempDir::new().unwrap();
    let source = shards(folder.path());
    let first = source.join(format!("train-00000-of-{SHARDS:05}.tfrecord"));
    let schema = folder.path().join("schema.json");
    fs::write(
        &schema,
        tfarrow(&["schema", text(&first), "--format", "json"]).prints(),
    )
    .unwrap();
    let mut damaged = fs::read(&first).unwrap();
    damaged[20] ^= 1;
    fs::write(&first, damaged).unwrap();
    let (dest, lost) = (
        folder.path().join("dest"),
        folder.path().join("lost.tfrecord"),
    );
    let args = [
        "convert",
        text(&source),
        text(&dest),
        "--schema",
        text(&schema),
        "--jobs",
        "1",
    ];
    let args = [
        &args[..],
        &["--on-error", "skip", "--quarantine", text(&lost)],
    ]
    .concat();
    let interrupted = || {
        let mut child = command(&args).spawn().unwrap();
        while files(&dest).is_empty() && child.try_wait().unwrap().is_none() {
            std::thread::yield_now();
        }
        child.kill().unwrap();
        let ended = wait(child).code().is_some();
        if ended {
            fs::remove_dir_all(&dest).unwrap();
            fs::remove_file(&lost).unwrap();
        }
        !ended
    };
    // The conversion may end before the kill, but not 20 times.
    assert!((0..20).any(|_| interrupted()));
    assert!(!files(&dest).is_empty() && !lost.exists());
    let stderr = tfarrow(&[&args[..], &["--resume"]].concat()).ends(3);
    assert!(stderr.contains("skipped 1 record"), "{stderr}");
    assert_eq!(frame::read(&fs::read(&lost).unwrap()).unwrap().len(), 1);
    assert_eq!((files(&dest).len(), hidden(&dest).len()), (SHARDS, 0));
}

#[test]
#[cfg(unix)]
fn two_conversions_into_one_folder_do_not_mix() {
    let folder = TempDir::new().unwrap();
    let source = shards(folder.path());
    let dest = folder.path().join("dest");
    let args = ["convert", text(&source), text(&dest), "--jobs", "1"];
    let first = command(&args).spawn().unwrap();
    let start = Instant::now();
    while !dest.join(".tfarrow-convert.journal").exists()
        && start.elapsed() < Duration::from_secs(30)
    {
        std::thread::yield_now();
    }
    // A stopped process keeps its lock until the second run is refused.
    let pid = first.id().to_string();
    let send = |signal: &str| {
        std::process::Command::new("kill")
            .args([signal, &pid])
            .status()
            .unwrap()
    };
    send("-STOP");
    for more in [&[][..], &["--resume"], &["--overwrite"]] {
        let stderr = tfarrow(&[&args[..], more].concat()).ends(2);
        assert!(
            stderr.contains("another conversion writes to this folder"),
            "{stderr}"
        );
    }
    send("-CONT");
    assert!(wait(first).success());
    assert_eq!(files(&dest).len(), SHARDS);
    assert_eq!(hidden(&dest), [""; 0]);
}

#[test]
fn a_forged_journal_removes_and_renames_no_file() {
    let folder = TempDir::new().unwrap();
    let source = folder.path().join("a.tfrecord");
    fs::write(
        &source,
        frame::file([b"\x0a\x0c\x0a\x0a\x0a\x01a\x12\x05\x1a\x03\x0a\x01\x07"]),
    )
    .unwrap();
    let dest = folder.path().join("dest");
    fs::create_dir(&dest).unwrap();
    let victim = folder.path().join(".tfarrow-victim.part");
    let lines = [
        r#"{"conversion":"something"}"#.to_owned(),
        r#"{"begun":"../.tfarrow-victim.part"}"#.to_owned(),
        format!(r#"{{"begun":{:?}}}"#, text(&victim)),
        r#"{"begun":"kept"}"#.to_owned(),
        r#"{"made":{"output":"../x","part":"../.tfarrow-victim.part","bytes":6,"hash":1,"source":1,"records":1,"losses":[],"damaged":false}}"#
            .to_owned(),
        "not JSON".to_owned(),
    ];
    fs::write(dest.join(".tfarrow-convert.journal"), lines.join("\n")).unwrap();
    fs::write(&victim, "victim").unwrap();
    fs::write(dest.join("kept"), "kept").unwrap();
    tfarrow(&["convert", text(&source), text(&dest), "--overwrite"]).ends(0);
    assert_eq!(fs::read_to_string(&victim).unwrap(), "victim");
    assert_eq!(fs::read_to_string(dest.join("kept")).unwrap(), "kept");
    assert!(dest.join("a.parquet").exists() && hidden(&dest).is_empty());
}
