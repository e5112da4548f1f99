//! `tfarrow diff` by key, with tolerances, without some features, and with files of unmatched
//! records.

use std::fs;

use tempfile::TempDir;
use tfarrow_testkit::{
    frame,
    proto::{self, KindOneof},
};

use crate::support::tfarrow;

/// An Example with an id, a name and a score.
fn example(id: Option<i64>, name: &str, score: f32) -> Vec<u8> {
    let id = id.map(|id| ("id", KindOneof::ints([id])));
    let others = [
        ("name", KindOneof::bytes(name.to_owned())),
        ("debug/score", KindOneof::floats([score])),
    ];
    proto::example(id.into_iter().chain(others))
}

struct Folder(TempDir);

impl Folder {
    fn new() -> Self {
        let folder = Self(TempDir::new().unwrap());
        let left = [
            example(Some(1), "a", 1.0),
            example(Some(2), "b\u{7}", 2.0),
            example(Some(2), "c", 3.0),
            example(None, "d", 4.0),
        ];
        let right = [
            example(Some(2), "b\u{7}", 2.5),
            example(Some(3), "e", 3.0),
            example(Some(1), "a", 1.0),
        ];
        fs::write(folder.path("a.tfrecord"), frame::file(left)).unwrap();
        fs::write(folder.path("b.tfrecord"), frame::file(right)).unwrap();
        folder
    }

    fn path(&self, name: &str) -> String {
        self.0.path().join(name).to_str().unwrap().to_owned()
    }

    fn diff(&self, args: &[&str]) -> crate::support::Run {
        tfarrow(
            &[
                &["diff", &self.path("a.tfrecord"), &self.path("b.tfrecord")],
                args,
            ]
            .concat(),
        )
    }
}

#[test]
fn records_are_paired_by_key() {
    let folder = Folder::new();
    let run = folder.diff(&["--on", "id"]);
    for expected in [
        "record 1: id = 2\n  - ",
        "  feature \"debug/score\": value 0: 2.0 and 2.5\n",
        "record 3\n  - ",
        "a.tfrecord: 1 record without id\n",
        "a.tfrecord: 1 record with the id of an earlier one\n",
        "1 record equal, 1 different, 2 of the first without a partner, 1 of the second without a partner",
    ] {
        assert!(run.stdout.contains(expected), "{expected}: {}", run.stdout);
    }
    run.ends(3);
    let run = folder.diff(&["--on", "id,name", "--format", "json"]);
    let json: serde_json::Value = serde_json::from_str(&run.stdout).unwrap();
    let keys = serde_json::json!({"features": ["id", "name"], "missing": [1, 0], "repeated": [0, 0], "passes": 1});
    assert_eq!(
        (
            &json["keys"],
            &json["pairs"]["different"],
            &json["alone"][0]
        ),
        (&keys, &1.into(), &2.into())
    );
    assert_eq!(
        json["first"][0]["key"],
        serde_json::json!([[2], ["b\u{7}"]])
    );
    let run = folder.diff(&["--on", "name"]);
    assert!(
        run.stdout.contains("record 1: name = \"b\\u{7}\"\n"),
        "names of control characters are escaped: {}",
        run.stdout
    );
    let stderr = folder.diff(&["--on", "idd"]).ends(2);
    assert!(
        stderr.contains(
            "there is no feature \"idd\" (did you mean \"id\"?); there are \"debug/score\", "
        ),
        "{stderr}"
    );
    let json = folder.diff(&["--format", "json"]).stdout;
    assert!(json.contains("\"keys\": null"), "{json}");
}

#[test]
fn features_are_excluded_and_floats_differ_within_a_tolerance() {
    let folder = Folder::new();
    let different = |args: &[&str], expected: &str| {
        let run = folder.diff(&[&["--on", "id"], args].concat());
        assert!(run.stdout.contains(expected), "{args:?}: {}", run.stdout);
    };
    different(&["--exclude", "debug/*"], "2 records equal, 0 different");
    different(&["--tolerance", "0.5"], "2 records equal, 0 different");
    different(&["--tolerance", "0.4"], "1 record equal, 1 different");
    different(
        &["--relative-tolerance", "0.2"],
        "2 records equal, 0 different",
    );
    different(
        &["--relative-tolerance", "0.19"],
        "1 record equal, 1 different",
    );
    different(
        &["--tolerance", "0.1", "--relative-tolerance", "0.16"],
        "2 records equal, 0 different",
    );
    for wrong in ["-1", "x", "NaN"] {
        assert!(
            folder
                .diff(&["--tolerance", wrong])
                .ends(2)
                .contains("expected a number from 0"),
            "{wrong}"
        );
    }
    assert!(
        folder
            .diff(&["--memory-limit", "1GB"])
            .ends(2)
            .contains("--on")
    );
}

#[test]
fn records_without_a_partner_are_written_to_files() {
    let folder = Folder::new();
    let [removed, added] = ["removed.tfrecord", "added.tfrecord"].map(|name| folder.path(name));
    let args = ["--on", "id", "--only-a", &removed, "--only-b", &added];
    folder.diff(&args).ends(3);
    let names = |path: &str| {
        tfarrow(&[
            "sql",
            &format!("SELECT name FROM '{path}'"),
            "--format",
            "csv",
        ])
        .prints()
    };
    assert_eq!(
        (names(&removed), names(&added)),
        ("name\nc\nd\n".to_owned(), "name\ne\n".to_owned())
    );
    let stderr = folder.diff(&args).ends(2);
    assert!(
        stderr.contains("removed.tfrecord (and 1 more outputs): already exists")
            && stderr.contains("--overwrite"),
        "{stderr}"
    );
    folder.diff(&[&args[..], &["--overwrite"]].concat()).ends(3);
    let run = tfarrow(&[
        "diff",
        &folder.path("a.tfrecord"),
        &folder.path("a.tfrecord"),
        "--only-a",
        &folder.path("none.tfrecord"),
    ]);
    run.ends(0);
    assert!(!folder.0.path().join("none.tfrecord").exists());
}
