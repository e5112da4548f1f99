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
    proto::{self, KindOneof},
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

/// All files of a folder, those hidden and those in folders left out, with what is in them.
fn files(folder: &Path) -> BTreeMap<String, Vec<u8>> {
    let entries = fs::read_dir(folder).map_or(Vec::new(), |entries| entries.map(Result::unwrap).collect());
    let names = entries.into_iter().map(|entry| (entry.file_name().into_string().unwrap(), entry.path()));
    let shown = names.filter(|(name, path)| !name.starts_with('.') && path.is_file());
    shown.map(|(name, path)| (name, fs::read(path).unwrap())).collect()
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

/// Fifty kills and one, at moments all over the time that it takes, and shortly after. Before and after each, outputs that
/// have their names are whole, and the same command with --resume completes the conversion, or finds that it is complete.
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
    let (mut kept, mut complete) = (0, 0);
    for (turn, way) in ways.iter().enumerate() {
        let whole = folder.path().join(format!("whole-{turn}"));
        let start = Instant::now();
        tfarrow(&[&["convert", text(&source), text(&whole)][..], way].concat()).ends(0);
        let (expect, took) = (files(&whole), start.elapsed());
        assert_eq!((expect.len(), hidden(&whole).len()), (SHARDS, 0));
        for kill in 0..KILLS {
            // As most name a folder: from where they are.
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
                assert!(expect[name] == *bytes, "{name} has its name, and is not whole");
            }
            let before = made(&dest);
            kept += before.len();
            if journal.exists() {
                let said = tfarrow_in(folder.path(), &args).ends(2);
                assert!(said.contains("--resume"), "{said}");
            } else {
                complete += usize::from(!named.is_empty());
            }
            let inodes = inodes(&dest);
            tfarrow_in(folder.path(), &[&args[..], &["--resume"]].concat()).ends(0);
            assert!(files(&dest) == expect, "turn {turn}, kill {kill}");
            assert_eq!(hidden(&dest), [""; 0], "nothing is left behind");
            for (name, inode) in inodes.into_iter().chain(before) {
                assert_eq!(fs::metadata(dest.join(&name)).unwrap().ino(), inode, "{name} was written again");
            }
        }
    }
    println!(
        "{complete} runs were complete when they were killed; {kept} outputs that were whole were not written again"
    );
    assert!(kept > 0, "nothing was whole at any moment");
}

/// The inode of each file that has its name.
#[cfg(unix)]
fn inodes(folder: &Path) -> BTreeMap<String, u64> {
    use std::os::unix::fs::MetadataExt;
    let inode = |name: &String| fs::metadata(folder.join(name)).unwrap().ino();
    files(folder).into_keys().map(|name| (name.clone(), inode(&name))).collect()
}

/// What a test can see of the files in a folder, hidden ones as well: their names, bytes, inodes and times.
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
            let seen = (fs::read(&path).unwrap(), held.ino(), held.mtime(), held.mtime_nsec());
            state.insert(text(&path).to_owned(), seen);
        }
    }
    state
}

/// Three shards of a hundred records, of which one may be damaged in two places.
fn small_shards(folder: &Path, damaged: bool) -> PathBuf {
    let source = folder.join("source");
    fs::create_dir(&source).unwrap();
    for shard in 0..3 {
        let record =
            |row: i64| proto::example([("a", KindOneof::ints([row, shard])), ("b", KindOneof::bytes(vec![7; 30]))]);
        let mut bytes = frame::file((0..100).map(record));
        if damaged && shard == 1 {
            bytes[20] ^= 1;
            let middle = bytes.len() / 2;
            bytes[middle] ^= 1;
        }
        fs::write(source.join(format!("train-{shard:05}-of-00003.tfrecord")), bytes).unwrap();
    }
    source
}

#[test]
#[cfg(unix)]
fn resuming_a_complete_run_writes_nothing_and_ends_well() {
    let folder = TempDir::new().unwrap();
    let source = small_shards(folder.path(), false);
    let one = source.join("train-00000-of-00003.tfrecord");
    let gzip = folder.path().join("gzip");
    tfarrow(&["convert", text(&source), text(&gzip), "--to", "tfrecord", "--compression", "gzip"]).ends(0);
    let ways: [(&str, &Path, &str, &[&str]); 13] = [
        ("convert", &source, "parquet", &[]),
        ("convert", &source, "sample", &["--sample", "10"]),
        ("convert", &source, "exact", &["--exact", "--jobs", "1"]),
        ("convert", &source, "arrow", &["--to", "arrow", "--compression", "lz4"]),
        ("convert", &source, "tfrecord", &["--to", "tfrecord", "--compression", "gzip"]),
        ("convert", &source, "three", &["--shards", "2"]),
        ("convert", &source, "size", &["--to", "tfrecord", "--shard-size", "5kB"]),
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
        // Without --resume outputs are refused, as ever.
        let said = tfarrow(&args).ends(2);
        assert!(
            said.contains("is there already") || said.contains("is a shard of an existing set"),
            "{args:?}: {said}"
        );
    }
}

/// The sample of a trial run may be wrong. Outputs that differ from its columns are then no reason to give up.
#[test]
#[cfg(unix)]
fn resuming_a_complete_run_of_two_passes_writes_nothing() {
    let folder = TempDir::new().unwrap();
    let source = folder.path().join("a.tfrecord");
    let record = |row: i64| proto::example([("a", KindOneof::ints(if row < 5000 { vec![row] } else { vec![row, 1] }))]);
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
fn resuming_a_complete_run_fails_where_an_output_is_not_what_the_conversion_makes() {
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
            let said = tfarrow(args).ends(1);
            let says = "is there already, and is not what this conversion makes; --overwrite replaces it";
            assert!(said.contains(says) && said.contains(text(&dest)), "{said}");
            assert!(state(&dest) == before);
        };
        // An output that was changed, cut short, or continued.
        let bytes = fs::read(&first).unwrap();
        let mut flipped = bytes.clone();
        flipped[bytes.len() / 2] ^= 1;
        for changed in [flipped, bytes[..bytes.len() - 1].to_vec(), [&bytes[..], b"x"].concat(), Vec::new()] {
            fs::write(&first, changed).unwrap();
            refused(&resume);
        }
        // Another conversion of the same sources.
        fs::write(&first, &bytes).unwrap();
        tfarrow(&resume).ends(0);
        if format == "parquet" {
            refused(&[&resume[..], &["--exact"]].concat());
            refused(&[&resume[..], &["--compression", "none"]].concat());
        }
        // A source that has changed since.
        let changed = source.join("train-00002-of-00003.tfrecord");
        let before = fs::read(&changed).unwrap();
        let fewer = frame::read(&before).unwrap();
        fs::write(&changed, frame::file(&fewer[1..])).unwrap();
        refused(&resume);
        fs::write(&changed, &before).unwrap();
        tfarrow(&resume).ends(0);
        // An output that is missing is made again; the others are kept.
        fs::remove_file(&first).unwrap();
        let others = inodes(&dest);
        tfarrow(&resume).ends(0);
        assert!(files(&dest) == whole && others.iter().all(|(name, inode)| inodes(&dest)[name] == *inode));
        // .. and --overwrite replaces what was changed.
        fs::write(&first, "changed").unwrap();
        tfarrow(&[&resume[..], &["--overwrite"]].concat()).ends(0);
        assert!(files(&dest) == whole);
    }
}

#[test]
#[cfg(unix)]
fn resuming_a_complete_run_that_lost_records_reports_them_again() {
    let folder = TempDir::new().unwrap();
    let source = small_shards(folder.path(), true);
    for (command, more) in [("convert", &["--on-error", "skip"][..]), ("repair", &[])] {
        let out = folder.path().join(command);
        fs::create_dir(&out).unwrap();
        let (dest, lost) = (out.join("dest"), out.join("lost.tfrecord"));
        let args = [&[command, text(&source), text(&dest), "--quarantine", text(&lost)][..], more].concat();
        let first = tfarrow(&args);
        let first = (first.stdout.clone(), first.ends(3));
        let before = state(&out);
        assert!(before.contains_key(text(&lost)));
        let again = tfarrow(&[&args[..], &["--resume"]].concat());
        assert_eq!(again.stdout, first.0);
        // The first line says how long it took.
        let lines = |said: &str| said.lines().skip(1).map(str::to_owned).collect::<Vec<_>>();
        assert_eq!(lines(&again.ends(3)), lines(&first.1));
        assert!(state(&out) == before, "{command}");
        // A quarantine that holds something else is not what was lost, and is kept.
        fs::write(&lost, frame::file([b"other"])).unwrap();
        let said = tfarrow(&[&args[..], &["--resume"]].concat()).ends(1);
        assert!(said.contains("lost.tfrecord: is there already, and is not what"), "{said}");
        assert_eq!(fs::read(&lost).unwrap(), frame::file([b"other"]));
        // One that is missing is made again.
        fs::remove_file(&lost).unwrap();
        tfarrow(&[&args[..], &["--resume"]].concat()).ends(3);
        assert!(files(&out) == files_of(&before, &out));
    }
}

/// The files directly in a folder, of a state.
#[cfg(unix)]
fn files_of(state: &BTreeMap<String, (Vec<u8>, u64, i64, i64)>, folder: &Path) -> BTreeMap<String, Vec<u8>> {
    let name = |path: &str| Path::new(path).strip_prefix(folder).unwrap().to_str().unwrap().to_owned();
    let here = state.iter().map(|(path, seen)| (name(path), seen.0.clone()));
    here.filter(|(name, _)| !name.contains('/')).collect()
}

/// Whoever can write to the folder of the outputs may put a pipe there, under the names of hidden files.
#[test]
#[cfg(unix)]
fn a_pipe_in_place_of_a_file_of_ours_is_refused_at_once() {
    let folder = TempDir::new().unwrap();
    let source = small_shards(folder.path(), true);
    let one = source.join("train-00001-of-00003.tfrecord");
    let place = |name: &str| text(&folder.path().join(name)).to_owned();
    let pipe = |name: &str| {
        fs::create_dir_all(Path::new(&place(name)).parent().unwrap()).unwrap();
        assert!(std::process::Command::new("mkfifo").arg(place(name)).status().unwrap().success());
    };
    let (lost, page) = (place("lost.tfrecord"), place("page.html"));
    let quarantine = ["--on-error", "skip", "--quarantine", &lost];
    let (folder_args, file_args) =
        (["convert", text(&source), &place("out")], ["convert", text(&one), &place("a.parquet")]);
    let cases: [(&str, Vec<&str>); 7] = [
        ("out/.tfarrow-convert.journal", folder_args.to_vec()),
        ("out/.tfarrow-convert.journal", [&folder_args[..], &["--resume"]].concat()),
        ("out/.tfarrow-convert.journal", [&folder_args[..], &["--overwrite"]].concat()),
        (".tfarrow-a.parquet.journal", file_args.to_vec()),
        (".tfarrow-lost.tfrecord.lock", file_args.to_vec()),
        ("a.parquet", [&file_args[..], &["--resume", "--on-error", "skip"]].concat()),
        ("page.html", vec!["report", text(&one), "-o", &page]),
    ];
    for (name, args) in cases {
        pipe(name);
        let args = if name.ends_with(".lock") { [&args[..], &quarantine].concat() } else { args };
        let mut child = command(&args).spawn().unwrap();
        drop(child.stdout.take());
        let status = wait(child);
        assert!(matches!(status.code(), Some(1 | 2)), "{args:?}: {status}");
        use std::os::unix::fs::FileTypeExt;
        assert!(fs::symlink_metadata(place(name)).unwrap().file_type().is_fifo(), "{name} was replaced");
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
    // The file is begun once the lock is held.
    while !folder.path().join(".tfarrow-lost.tfrecord.part").exists() && child.try_wait().unwrap().is_none() {
        std::thread::yield_now();
    }
    // Held by a signal, it cannot end before the second is refused.
    let pid = child.id().to_string();
    let send = |signal: &str| std::process::Command::new("kill").args([signal, &pid]).status().unwrap();
    send("-STOP");
    for way in [&[][..], &["--overwrite"], &["--resume"]] {
        let said = tfarrow(&[&["convert", text(&source), &place("two")][..], &more, way].concat()).ends(2);
        assert!(said.contains("lost.tfrecord: another run writes its quarantine here"), "{said}");
        assert!(!folder.path().join("two").exists());
    }
    send("-CONT");
    assert_eq!(wait(child).code(), Some(3));
    assert_eq!(frame::read(&fs::read(&lost).unwrap()).unwrap().len(), 1);
    let said = tfarrow(&[&["convert", text(&source), &place("two")][..], &more].concat()).ends(2);
    assert!(said.contains("lost.tfrecord: is there already; --overwrite replaces it"), "{said}");
    assert_eq!(hidden(folder.path()), [""; 0]);
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
    assert!(said.contains("had other options"), "{said}");
    // A source that has changed since is converted again; one that was not made is made.
    let changed = frame::file([frame::read(&fs::read(&first).unwrap()).unwrap()[0]]);
    fs::write(&first, changed).unwrap();
    fs::write(&bad, &sound).unwrap();
    // .. and so is an output that somebody has touched. What was made of a source that is gone stays: it may be all that is
    // left of it.
    fs::remove_file(source.join(format!("train-00007-of-{SHARDS:05}.tfrecord"))).unwrap();
    let touched = dest.join(format!("train-00003-of-{SHARDS:05}.parquet"));
    fs::write(&touched, "touched").unwrap();
    // Damage may be skipped by now; there is none.
    let said = tfarrow(&[&args[..], &["--resume", "--on-error", "skip"]].concat()).ends(0);
    assert!(said.contains("1 output of the interrupted run has a source that is not among these"), "{said}");
    fs::remove_file(dest.join(format!("train-00007-of-{SHARDS:05}.parquet"))).unwrap();
    tfarrow(&["convert", text(&source), text(&whole), "--schema", text(&schema)]).ends(0);
    assert!(files(&dest) == files(&whole));
    // The run is complete now, and can be resumed as well.
    tfarrow(&[&args[..], &["--resume"]].concat()).ends(0);
    assert!(files(&dest) == files(&whole));
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
    assert!(said.contains("skipped 1 record"), "{said}");
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
        assert!(said.contains("another conversion writes to this folder"), "{said}");
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
