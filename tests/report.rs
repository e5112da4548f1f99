//! `tfarrow report`: checks of its page that need no browser. `report.py` opens pages in a browser.

use std::fs;

use tfarrow_testkit::{
    frame,
    oracle::{ModelCell, ModelRow, ModelSide, ModelValue, example_from_row},
};

use crate::support::tfarrow;

#[test]
fn a_report_page_is_one_file() {
    let folder = tempfile::tempdir().unwrap();
    let page = folder.path().join("report.html");
    let printed = tfarrow(&["report", "testdata/shards/", "-o", page.to_str().unwrap()]).prints();
    assert_eq!(printed, format!("{}: 200 records, 8 features\n", page.display()));
    let html = fs::read_to_string(&page).unwrap();
    assert!(html.starts_with("<!doctype html>") && html.ends_with("</html>\n") && html.len() < 2_000_000);
    // The page loads no resources, and has a content security policy.
    for word in ["http://", "https://", "@import", "url("] {
        assert!(!html.contains(word), "{word}");
    }
    assert!(html.contains("default-src 'none'; img-src data:;"));
    assert!(html.contains("<b>200</b> records") && html.contains("data-sort=\"city\""));
    // The images of the examples are encoded again.
    assert!(html.matches("<image ").count() > 10);
    assert!(!html.contains("id=\"anomalies\""));
}

#[test]
fn a_file_that_is_not_a_report_page_is_not_replaced() {
    let folder = tempfile::tempdir().unwrap();
    let data = folder.path().join("data.tfrecord");
    fs::copy(crate::support::path("testdata/scalar.tfrecord"), &data).unwrap();
    let name = data.to_str().unwrap();
    let stderr = tfarrow(&["report", name, "-o", name]).ends(2);
    assert!(stderr.contains("exists and is not a report page"), "{stderr}");
    assert!(fs::read(&data).unwrap() == fs::read(crate::support::path("testdata/scalar.tfrecord")).unwrap());
    let html = tfarrow(&["report", name, "-o", "-"]).prints();
    let page = folder.path().join("new/page.html");
    for _ in 0..2 {
        tfarrow(&["report", name, "-o", page.to_str().unwrap()]).prints();
        assert_eq!(fs::read_to_string(&page).unwrap(), html);
    }
    tfarrow(&["report", "not there", "-o", folder.path().join("p/q.html").to_str().unwrap()]).fails();
    assert!(!folder.path().join("p").exists());
}

#[test]
fn report_pages_are_reproducible() {
    let folder = tempfile::tempdir().unwrap();
    let pages = ["a.html", "b.html"].map(|name| folder.path().join(name));
    for page in &pages {
        tfarrow(&["report", "testdata/shards/", "-o", page.to_str().unwrap()]).prints();
    }
    assert!(fs::read(&pages[0]).unwrap() == fs::read(&pages[1]).unwrap());
}

#[test]
fn a_report_page_lists_anomalies() {
    let folder = tempfile::tempdir().unwrap();
    let page = folder.path().join("report.html");
    let one = "testdata/shards/train-00000-of-00004.tfrecord";
    let args = ["report", "testdata/shards/", "-o", page.to_str().unwrap(), "--baseline", one, "--max-drift", "0.001"];
    tfarrow(&args).ends(3);
    let html = fs::read_to_string(&page).unwrap();
    assert!(html.contains("COMPARATOR_L_INFTY_HIGH") && html.contains("svg class=\"before\""));
}

#[test]
fn no_report_page_is_written_for_a_corrupt_file() {
    let folder = tempfile::tempdir().unwrap();
    let page = folder.path().join("report.html");
    let damaged = "testdata/corrupt/data_crc.tfrecord";
    tfarrow(&["report", damaged, "-o", page.to_str().unwrap()]).fails();
    assert_eq!(fs::read_dir(folder.path()).unwrap().count(), 0);
    tfarrow(&["report", damaged, "-o", page.to_str().unwrap(), "--on-error", "skip"]).ends(3);
    assert!(fs::read_to_string(&page).unwrap().contains("skipped 1 record"));
}

#[test]
fn drift_ranks_by_distributions_and_not_by_sizes() {
    let folder = tempfile::tempdir().unwrap();
    // Ten times as many records, with the same distribution of words and another distribution of numbers.
    let write = |name: &str, records: usize, shift: usize| {
        let payloads = (0..records).map(|record| {
            let word = ModelValue::Bytes(vec![if record % 10 == 0 { b"rare".to_vec() } else { b"often".to_vec() }]);
            let number = ModelValue::Int64(vec![(record % 100 + shift) as i64]);
            let row = [("number", number), ("word", word)];
            example_from_row(&ModelRow::from(
                row.map(|(name, value)| ((ModelSide::Features, name.to_owned()), ModelCell::One(value))),
            ))
        });
        let path = folder.path().join(name);
        fs::write(&path, frame::file(payloads)).unwrap();
        path.to_str().unwrap().to_owned()
    };
    let (now, before) = (write("now.tfrecord", 1_000, 30), write("before.tfrecord", 100, 0));
    let page = tfarrow(&["report", &now, "-o", "-", "--baseline", &before]);
    let drift = |name: &str| -> f64 {
        let row = page.stdout.split(&format!("data-sort=\"{name}\"")).nth(1).unwrap().split("</tr>").next().unwrap();
        row.rsplit("data-sort=\"").next().unwrap().split('"').next().unwrap().parse().unwrap()
    };
    assert!(page.stdout.contains(">drift (Jensen-Shannon)</button>"));
    assert!(drift("word") < 1e-9 && drift("number") > 0.1, "{} {}", drift("word"), drift("number"));
    // The difference of counts, 810 of 1,100, has a label of its own.
    assert!(page.stdout.contains("<dt>difference of counts, which sizes differ in as well</dt><dd>0.7364</dd>"));
}
