//! Exact round trips: the bytes are identical, and the stored order of features is small.

use std::fs;

use tempfile::TempDir;
use tfarrow_testkit::{
    frame, golden,
    proto::{self, KindOneof},
};

use crate::support::{path, tfarrow};

/// A pseudo-random number below `most`.
fn random(a: usize, b: usize, most: usize) -> usize {
    let mut x = (a as u64 + 1).wrapping_mul(0x9e37_79b9_7f4a_7c15)
        ^ (b as u64 + 7).wrapping_mul(0xd1b5_4a32_d192_ed03);
    x ^= x >> 29;
    x = x.wrapping_mul(0xbf58_476d_1ce4_e5b9);
    x ^= x >> 32;
    (x % most as u64) as usize
}

/// A file of `records` records with `keys` integer features. `order` gives the seed of the order of
/// the features in a record.
fn shard(records: usize, keys: usize, order: impl Fn(usize) -> usize) -> Vec<u8> {
    let record = |row: usize| {
        let mut places: Vec<_> = (0..keys).collect();
        for last in (1..keys).rev() {
            places.swap(last, random(order(row), last, last + 1));
        }
        let feature = |key: usize| {
            (
                format!("feature_{key:02}"),
                KindOneof::ints([random(row, key, 1 << 20) as i64]),
            )
        };
        proto::example(places.into_iter().map(feature))
    };
    frame::file((0..records).map(record))
}

/// The sizes of the Parquet file without and with `--exact`. Checks that the latter converts back
/// to the same bytes.
fn sizes(folder: &TempDir, stream: &[u8]) -> (u64, u64) {
    let name = |name: &str| folder.path().join(name).to_str().unwrap().to_owned();
    fs::write(name("a.tfrecord"), stream).unwrap();
    tfarrow(&[
        "convert",
        &name("a.tfrecord"),
        &name("plain.parquet"),
        "--overwrite",
    ])
    .ends(0);
    tfarrow(&[
        "convert",
        &name("a.tfrecord"),
        &name("exact.parquet"),
        "--overwrite",
        "--exact",
    ])
    .ends(0);
    tfarrow(&[
        "convert",
        &name("exact.parquet"),
        &name("back.tfrecord"),
        "--overwrite",
    ])
    .ends(0);
    assert!(
        fs::read(name("back.tfrecord")).unwrap() == stream,
        "other bytes come back"
    );
    let size = |file: &str| fs::metadata(name(file)).unwrap().len();
    (size("plain.parquet"), size("exact.parquet"))
}

/// Sixteen orders have an entropy of 4 bits. With 10 features of 20 bits or more, that is less than
/// 3 % of the file.
#[test]
fn sixteen_orders_of_features_take_few_bits_more_than_their_entropy() {
    let folder = TempDir::new().unwrap();
    const RECORDS: usize = 20_000;
    for keys in [5, 10, 40] {
        let (plain, exact) = sizes(&folder, &shard(RECORDS, keys, |row| random(row, 99, 16)));
        let share = exact as f64 / plain as f64 - 1.0;
        let bits = 8.0 * (exact - plain) as f64 / RECORDS as f64;
        println!(
            "{keys} keys in 16 orders: {bits:.2} bits, {:.2} % more",
            100.0 * share
        );
        assert!(bits <= 1.15 * 4.0, "{keys} keys: {plain} and {exact} bytes");
        assert!(
            keys < 10 || share <= 0.03,
            "{keys} keys: {plain} and {exact} bytes"
        );
    }
}

#[test]
fn a_random_order_of_features_takes_few_bits_more_than_its_entropy() {
    let folder = TempDir::new().unwrap();
    const RECORDS: usize = 100_000;
    for keys in [3, 4, 5, 6, 7, 8, 9, 10, 12, 16, 20, 40] {
        let records = if keys > 12 { RECORDS / 4 } else { RECORDS };
        let (plain, exact) = sizes(&folder, &shard(records, keys, |row| row));
        let bits = 8.0 * (exact - plain) as f64 / records as f64;
        let needed = (2..=keys).map(|n| (n as f64).log2()).sum::<f64>().ceil();
        println!(
            "{keys} keys, each record in an order of its own: {bits:.2} bits, {:.3} of {needed}",
            bits / needed
        );
        assert!(
            bits <= 1.15 * needed,
            "{keys} keys: {bits} bits for {needed}"
        );
    }
}

#[test]
fn files_of_tensorflow_survive_an_exact_round_trip() {
    let folder = TempDir::new().unwrap();
    let name = |name: &str| folder.path().join(name).to_str().unwrap().to_owned();
    for part in ["", "shards", "mixed_kinds", "wire", "wire_disputed"] {
        let files = golden::files(&path("testdata").join(part))
            .unwrap()
            .into_iter();
        for file in files.filter(|file| file.extension().is_some_and(|own| own == "tfrecord")) {
            let (source, stored) = (file.to_str().unwrap(), fs::read(&file).unwrap());
            if frame::read(&stored).is_err() {
                continue;
            }
            for layout in ["auto", "list"] {
                for made in ["a.parquet", "a.arrow"] {
                    let args = [
                        "convert",
                        source,
                        &name(made),
                        "--overwrite",
                        "--exact",
                        "--layout",
                        layout,
                    ];
                    let run = tfarrow(&[&args[..], &["--on-conflict", "split"]].concat());
                    // Status 3 reports a file that is read as raw records because of a few of them.
                    assert!(
                        [Some(0), Some(3)].contains(&run.status),
                        "{source}: {}",
                        run.stderr
                    );
                    tfarrow(&[
                        "convert",
                        &name(made),
                        &name("back.tfrecord"),
                        "--overwrite",
                        "--compression",
                        "none",
                    ])
                    .ends(0);
                    assert!(
                        fs::read(name("back.tfrecord")).unwrap() == stored,
                        "{source} {layout} {made}"
                    );
                }
            }
        }
    }
}

#[test]
fn on_conflict_split_is_reversed_on_the_way_back() {
    let folder = TempDir::new().unwrap();
    let name = |name: &str| folder.path().join(name).to_str().unwrap().to_owned();
    let mixed = "testdata/mixed_kinds/";
    let stderr = tfarrow(&["convert", mixed, &name("out/")]).ends(1);
    assert!(stderr.contains("--on-conflict split"), "{stderr}");
    tfarrow(&["convert", mixed, &name("out/"), "--on-conflict", "split"]).ends(0);
    let query = format!("SELECT * FROM '{}' LIMIT 0", name("out/"));
    let columns = tfarrow(&["sql", &query, "--format", "csv"]).prints();
    assert!(columns.contains("x/float_list,x/int64_list"), "{columns}");
    tfarrow(&["convert", &name("out/"), &name("back/"), "--to", "tfrecord"]).ends(0);
    assert!(
        tfarrow(&["diff", mixed, &name("back/")])
            .prints()
            .ends_with("equal\n")
    );
    assert!(
        tfarrow(&["diff", mixed, &name("out/")])
            .prints()
            .ends_with("equal\n")
    );
}

#[test]
fn diff_reports_differences_with_their_positions() {
    let folder = TempDir::new().unwrap();
    let name = |name: &str| folder.path().join(name).to_str().unwrap().to_owned();
    let one = shard(50, 3, |_| 0);
    let payloads = frame::read(&one).unwrap();
    let mut changed: Vec<Vec<u8>> = payloads.iter().map(|payload| payload.to_vec()).collect();
    // Another order of features is not a difference. Another value is a difference, and so is a
    // missing record.
    changed[7] = frame::read(&shard(50, 3, |_| 5)).unwrap()[7].to_vec();
    let last = changed[9].len() - 1;
    changed[9][last] ^= 1;
    changed.pop();
    fs::write(name("a.tfrecord"), &one).unwrap();
    fs::write(name("b.tfrecord"), frame::file(&changed)).unwrap();
    let run = tfarrow(&["diff", &name("a.tfrecord"), &name("b.tfrecord")]);
    assert!(run.stdout.contains("record 9\n  - "), "{}", run.stdout);
    assert!(
        run.stdout
            .contains("48 records equal, 1 different, 1 of the first without a partner"),
        "{}",
        run.stdout
    );
    assert!(run.stdout.contains("feature \"feature_0"), "{}", run.stdout);
    run.ends(3);
    let json = tfarrow(&[
        "diff",
        &name("a.tfrecord"),
        &name("b.tfrecord"),
        "--format",
        "json",
    ])
    .stdout;
    let json: serde_json::Value = serde_json::from_str(&json).unwrap();
    assert_eq!(
        (&json["pairs"]["equal"], &json["pairs"]["different"]),
        (&48.into(), &1.into())
    );
    assert_eq!(json["first"][0]["record"], 9);
    assert_eq!(json["first"][1]["places"][1], serde_json::Value::Null);
    // Missing and additional records are reported as such, and the records after them are compared
    // with their partners.
    let mut cut: Vec<_> = payloads.clone();
    cut.drain(20..23);
    cut.insert(40, payloads[0]);
    fs::write(name("c.tfrecord"), frame::file(&cut)).unwrap();
    let run = tfarrow(&["diff", &name("a.tfrecord"), &name("c.tfrecord")]);
    assert!(
        run.stdout.contains(
            "47 records equal, 0 different, 3 of the first without a partner, 1 of the second without a partner"
        ),
        "{}",
        run.stdout
    );
    assert!(
        run.stdout.contains("c.tfrecord: record 40 ("),
        "{}",
        run.stdout
    );
    run.ends(3);
    // The excerpts of long values show the difference.
    let long = |end: &str| {
        proto::example([(
            "t",
            KindOneof::bytes(format!("{}{end}", "the quick fox ".repeat(20))),
        )])
    };
    fs::write(name("f.tfrecord"), frame::file([long("one and more")])).unwrap();
    fs::write(name("g.tfrecord"), frame::file([long("two and more")])).unwrap();
    let run = tfarrow(&["diff", &name("f.tfrecord"), &name("g.tfrecord")]);
    assert!(
        run.stdout.contains("fox one and more\" and …") && run.stdout.contains("fox two and"),
        "{}",
        run.stdout
    );
    let stderr = tfarrow(&["diff", "-", "-"]).ends(2);
    assert!(
        stderr.contains("standard input can be read only once"),
        "{stderr}"
    );
    // A missing record is found between changed records too.
    let mut changed: Vec<Vec<u8>> = frame::read(&shard(400, 3, |_| 0))
        .unwrap()
        .iter()
        .map(|p| p.to_vec())
        .collect();
    fs::write(name("d.tfrecord"), frame::file(&changed)).unwrap();
    for row in 0..11 {
        let last = changed[10 * row].len() - 1;
        changed[10 * row][last] ^= 1;
    }
    changed.remove(200);
    fs::write(name("e.tfrecord"), frame::file(&changed)).unwrap();
    let run = tfarrow(&["diff", &name("d.tfrecord"), &name("e.tfrecord"), "-n", "20"]);
    assert!(
        run.stdout
            .contains("388 records equal, 11 different, 1 of the first without a partner"),
        "{}",
        run.stdout
    );
    assert!(run.stdout.contains("record 200\n  - "), "{}", run.stdout);
    run.ends(3);
    tfarrow(&["convert", &name("a.tfrecord"), &name("a.parquet")]).ends(0);
    assert!(
        tfarrow(&["diff", &name("a.parquet"), &name("a.tfrecord")])
            .prints()
            .ends_with("equal\n")
    );
    tfarrow(&["diff", &name("a.parquet"), &name("nothing")]).fails();
}
