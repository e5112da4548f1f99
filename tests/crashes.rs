//! What is interrupted can be done again: kills, signals, locks, and what is left behind.

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
    proto::{self, Kind},
};

use crate::support::{command, tfarrow, tfarrow_in};

const SHARDS: usize = 20;

/// So many in each of three ways to convert.
#[cfg(unix)]
const KILLS: u32 = 17;

/// Shards that take the program a while: some hundred thousand records in all, which convert to Parquet.
fn shards(folder: &Path) -> PathBuf {
    let source = folder.join("source");
    fs::create_dir(&source).unwrap();
    for shard in 0..SHARDS {
        let record = |row: usize| {
            let hash = (row as u64 + 1).wrapping_mul(0x9e37_79b9_7f4a_7c15 ^ shard as u64);
            let floats = [hash as u32, (hash >> 32) as u32].map(f32::from_bits);
            let ints = hash.to_le_bytes().map(|byte| i64::from(byte & 0x7f));
            let bytes = hash.to_le_bytes();
            proto::example([("a", Kind::floats(floats)), ("b", Kind::bytes(bytes)), ("c", Kind::ints(ints))])
        };
        let name = format!("train-{shard:05}-of-{SHARDS:05}.tfrecord");
        fs::write(source.join(name), frame::file((0..10_000).map(record))).unwrap();
    }
    source
}

fn text(path: &Path) -> &str {
    path.to_str().unwrap()
}

/// All files of a folder, those hidden left out, with what is in them.
fn files(folder: &Path) -> BTreeMap<String, Vec<u8>> {
    let entries = fs::read_dir(folder).map_or(Vec::new(), |entries| entries.map(Result::unwrap).collect());
    let names = entries.into_iter().map(|entry| (entry.file_name().into_string().unwrap(), entry.path()));
    names.filter(|(name, _)| !name.starts_with('.')).map(|(name, path)| (name, fs::read(path).unwrap())).collect()
}

fn hidden(folder: &Path) -> Vec<String> {
    let entries = fs::read_dir(folder).unwrap().map(|entry| entry.unwrap().file_name().into_string().unwrap());
    entries.filter(|name| name.starts_with('.')).collect()
}

/// Waits for the program, at most for a minute.
fn wait(mut child: Child) -> ExitStatus {
    let start = Instant::now();
    loop {
        match child.try_wait().unwrap() {
            Some(status) => return status,
            None if start.elapsed() > Duration::from_secs(60) => panic!("it does not end"),
            None => std::thread::yield_now(),
        }
    }
}

/// The inode of each file that the journal says is whole, under its name or not.
#[cfg(unix)]
fn made(folder: &Path) -> BTreeMap<String, u64> {
    use std::os::unix::fs::MetadataExt;
    let journal = fs::read_to_string(folder.join(".tfarrow-convert.journal")).unwrap_or_default();
    let lines = journal.lines().filter_map(|line| serde_json::from_str::<serde_json::Value>(line).ok());
    let mut made = BTreeMap::new();
    for line in lines.filter_map(|line| line.get("made").cloned()) {
        let name = |key: &str| line[key].as_str().unwrap().to_owned();
        let place = [name("output"), name("part")].into_iter().find_map(|name| fs::metadata(folder.join(name)).ok());
        made.extend(place.map(|metadata| (name("output"), metadata.ino())));
    }
    made
}

/// Fifty kills and one, at moments all over the time that it takes. Before and after each, what has a name is whole.
#[test]
#[cfg(unix)]
fn what_is_killed_is_resumed() {
    use std::os::unix::fs::MetadataExt;
    let folder = TempDir::new().unwrap();
    let source = shards(folder.path());
    // With columns that are given, outputs have their names at once; else once all of them are sure.
    let schema = folder.path().join("schema.json");
    fs::write(&schema, tfarrow(&["schema", text(&source), "--format", "json"]).prints()).unwrap();
    let ways: [&[&str]; 3] = [&[], &["--schema", text(&schema)], &["--exact", "--jobs", "1"]];
    let (mut kept, mut ended) = (0, 0);
    for (turn, way) in ways.iter().enumerate() {
        let whole = folder.path().join(format!("whole-{turn}"));
        let start = Instant::now();
        tfarrow(&[&["convert", text(&source), text(&whole)][..], way].concat()).ends(0);
        let (expect, mut took) = (files(&whole), start.elapsed());
        assert_eq!((expect.len(), hidden(&whole).len()), (SHARDS, 0));
        let mut kill = 0;
        while kill < KILLS {
            // As most name a folder: from where they are.
            let name = format!("dest-{turn}-{kill}-{ended}");
            let dest = folder.path().join(&name);
            let args = [&["convert", text(&source), &name][..], way].concat();
            let mut child = command(&args).current_dir(folder.path()).spawn().unwrap();
            let moment = took.mul_f64((f64::from(kill) + 0.5) / f64::from(KILLS));
            let start = Instant::now();
            while start.elapsed() < moment && child.try_wait().unwrap().is_none() {
                std::thread::yield_now();
            }
            let waited = start.elapsed();
            child.kill().unwrap();
            let journal = dest.join(".tfarrow-convert.journal");
            // Its last deed is to remove the journal; what of it is killed then has nothing left to do.
            if wait(child).success() || !journal.exists() && !files(&dest).is_empty() {
                // It is as quick as that: the next moment comes sooner.
                took = waited.min(took);
                ended += 1;
                assert!(ended < 100, "it ends before it can be killed");
                assert_eq!(files(&dest), expect);
                continue;
            }
            kill += 1;
            for (name, bytes) in files(&dest) {
                assert!(expect[&name] == bytes, "{name} has its name, and is not whole");
            }
            let before = made(&dest);
            kept += before.len();
            if journal.exists() {
                let said = tfarrow_in(folder.path(), &args).ends(2);
                assert!(said.contains("--resume"), "{said}");
            }
            tfarrow_in(folder.path(), &[&args[..], &["--resume"]].concat()).ends(0);
            assert!(files(&dest) == expect, "turn {turn}, kill {kill}");
            assert_eq!(hidden(&dest), [""; 0], "nothing is left behind");
            for (name, inode) in before {
                assert_eq!(fs::metadata(dest.join(&name)).unwrap().ino(), inode, "{name} was done again");
            }
        }
    }
    println!("{ended} more kills came too late; {kept} outputs that were whole were not done again");
    assert!(kept > 0, "nothing was whole at any moment");
}

#[test]
#[cfg(unix)]
fn signals_end_it_in_good_order() {
    let folder = TempDir::new().unwrap();
    let source = shards(folder.path());
    let (whole, dest) = (folder.path().join("whole"), folder.path().join("dest"));
    tfarrow(&["convert", text(&source), text(&whole)]).ends(0);
    for (signal, status) in [("-INT", 130), ("-TERM", 143)] {
        let args = ["convert", text(&source), text(&dest), "--jobs", "1"];
        let child = command(&args).spawn().unwrap();
        // As soon as it has begun: its journal is there.
        let start = Instant::now();
        while !dest.join(".tfarrow-convert.journal").exists() && start.elapsed() < Duration::from_secs(30) {
            std::thread::yield_now();
        }
        let pid = child.id().to_string();
        assert!(std::process::Command::new("kill").args([signal, &pid]).status().unwrap().success());
        let output = child.wait_with_output().unwrap();
        assert_eq!(output.status.code(), Some(status));
        assert_eq!(files(&dest), BTreeMap::new(), "columns are not sure yet");
        let made = made(&dest).len();
        let said = String::from_utf8(output.stderr).unwrap();
        assert_eq!(said.contains("--resume"), made > 0, "{said}");
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

/// Whoever begins the program may want it to outlive the terminal, as `nohup` does.
#[test]
#[cfg(target_os = "linux")]
fn a_signal_that_is_ignored_ends_nothing() {
    let folder = TempDir::new().unwrap();
    let source = shards(folder.path());
    let dest = folder.path().join("dest");
    let ignoring = "trap '' HUP; exec \"$0\" \"$@\"";
    let program = env!("CARGO_BIN_EXE_tfarrow");
    let args = ["-c", ignoring, program, "convert", text(&source), text(&dest), "--jobs", "1"];
    let mut child = std::process::Command::new("sh").args(args).spawn().unwrap();
    while !dest.join(".tfarrow-convert.journal").exists() && child.try_wait().unwrap().is_none() {
        std::thread::yield_now();
    }
    let pid = child.id().to_string();
    let _ = std::process::Command::new("kill").args(["-HUP", &pid]).status().unwrap();
    assert!(wait(child).success());
    assert_eq!((files(&dest).len(), hidden(&dest).len()), (SHARDS, 0));
}

#[test]
fn what_was_interrupted_is_resumed_as_it_was_asked_for() {
    let folder = TempDir::new().unwrap();
    let source = shards(folder.path());
    let (dest, whole) = (folder.path().join("dest"), folder.path().join("whole"));
    // One shard that cannot be read, so that those before it are made and stay.
    let bad = source.join(format!("train-{:05}-of-{SHARDS:05}.tfrecord", SHARDS - 1));
    let sound = fs::read(&bad).unwrap();
    fs::write(&bad, &sound[..sound.len() - 1]).unwrap();
    let schema = folder.path().join("schema.json");
    let first = source.join(format!("train-00000-of-{SHARDS:05}.tfrecord"));
    fs::write(&schema, tfarrow(&["schema", text(&first), "--format", "json"]).prints()).unwrap();
    let args = ["convert", text(&source), text(&dest), "--schema", text(&schema), "--jobs", "1"];
    let said = tfarrow(&args).ends(1);
    assert!(said.contains("--resume") && said.contains("the file ends inside this record"), "{said}");
    assert_eq!(files(&dest).len(), SHARDS - 1);
    let said = tfarrow(&[&args[..], &["--resume", "--exact"]].concat()).ends(2);
    assert!(said.contains("asked for otherwise"), "{said}");
    // A source that has changed since is converted again; one that was not made is made.
    let changed = frame::file([frame::read(&fs::read(&first).unwrap()).unwrap()[0]]);
    fs::write(&first, changed).unwrap();
    fs::write(&bad, &sound).unwrap();
    // .. and so is an output that somebody has touched. What was made of a source that is gone stays: it may be all that is
    // left of it.
    fs::remove_file(source.join(format!("train-00007-of-{SHARDS:05}.tfrecord"))).unwrap();
    let touched = dest.join(format!("train-00003-of-{SHARDS:05}.parquet"));
    fs::write(&touched, "touched").unwrap();
    // Damage may be passed over by now; there is none.
    let said = tfarrow(&[&args[..], &["--resume", "--on-error", "skip"]].concat()).ends(0);
    assert!(said.contains("1 output of the run that was interrupted is of a source that is not among these"), "{said}");
    fs::remove_file(dest.join(format!("train-00007-of-{SHARDS:05}.parquet"))).unwrap();
    tfarrow(&["convert", text(&source), text(&whole), "--schema", text(&schema)]).ends(0);
    assert!(files(&dest) == files(&whole));
    let said = tfarrow(&[&args[..], &["--resume"]].concat()).ends(2);
    assert!(said.contains("is there already, and not of a conversion that was interrupted"), "{said}");
}

/// Of a shard that something was lost of, the first run's output is whole, and told of by nobody: it is made again.
#[test]
#[cfg(unix)]
fn what_was_lost_is_told_by_the_run_that_ends() {
    let folder = TempDir::new().unwrap();
    let source = shards(folder.path());
    let first = source.join(format!("train-00000-of-{SHARDS:05}.tfrecord"));
    let schema = folder.path().join("schema.json");
    fs::write(&schema, tfarrow(&["schema", text(&first), "--format", "json"]).prints()).unwrap();
    let mut damaged = fs::read(&first).unwrap();
    damaged[20] ^= 1;
    fs::write(&first, damaged).unwrap();
    let (dest, lost) = (folder.path().join("dest"), folder.path().join("lost.tfrecord"));
    let args = ["convert", text(&source), text(&dest), "--schema", text(&schema), "--jobs", "1"];
    let args = [&args[..], &["--on-error", "skip", "--quarantine", text(&lost)]].concat();
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
    // It may end before it is killed, but not time and again.
    assert!((0..20).any(|_| interrupted()));
    assert!(!files(&dest).is_empty() && !lost.exists());
    let said = tfarrow(&[&args[..], &["--resume"]].concat()).ends(3);
    assert!(said.contains("passed over 1 record"), "{said}");
    assert_eq!(frame::read(&fs::read(&lost).unwrap()).unwrap().len(), 1);
    assert_eq!((files(&dest).len(), hidden(&dest).len()), (SHARDS, 0));
}

#[test]
#[cfg(unix)]
fn two_into_one_folder_do_not_mix() {
    let folder = TempDir::new().unwrap();
    let source = shards(folder.path());
    let dest = folder.path().join("dest");
    let args = ["convert", text(&source), text(&dest), "--jobs", "1"];
    let first = command(&args).spawn().unwrap();
    let start = Instant::now();
    while !dest.join(".tfarrow-convert.journal").exists() && start.elapsed() < Duration::from_secs(30) {
        std::thread::yield_now();
    }
    // Held by a signal, it can be killed by none but this test before the second is refused.
    let pid = first.id().to_string();
    let send = |signal: &str| std::process::Command::new("kill").args([signal, &pid]).status().unwrap();
    send("-STOP");
    for more in [&[][..], &["--resume"], &["--overwrite"]] {
        let said = tfarrow(&[&args[..], more].concat()).ends(2);
        assert!(said.contains("another conversion is at work here"), "{said}");
    }
    send("-CONT");
    assert!(wait(first).success());
    assert_eq!(files(&dest).len(), SHARDS);
    assert_eq!(hidden(&dest), [""; 0]);
}

#[test]
fn a_journal_that_lies_removes_nothing_and_names_nothing() {
    let folder = TempDir::new().unwrap();
    let source = folder.path().join("a.tfrecord");
    fs::write(&source, frame::file([b"\x0a\x0c\x0a\x0a\x0a\x01a\x12\x05\x1a\x03\x0a\x01\x07"])).unwrap();
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
