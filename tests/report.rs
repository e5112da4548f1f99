//! `tfarrow report`: checks of its page that need no browser. `report.py` opens pages in a browser.

use std::{fs, path::Path};

use tfarrow_testkit::{
    frame,
    oracle::{ModelCell, ModelRow, ModelSide, ModelValue, example_from_row},
};

use crate::support::{tfarrow, tfarrow_reads};

#[test]
fn a_report_page_is_one_file() {
    let folder = tempfile::tempdir().unwrap();
    let page = folder.path().join("report.html");
    let printed = tfarrow(&["report", "testdata/shards/", "-o", page.to_str().unwrap()]).prints();
    assert_eq!(
        printed,
        format!("{}: 200 records, 8 features\n", page.display())
    );
    let html = fs::read_to_string(&page).unwrap();
    assert!(
        html.starts_with("<!doctype html>")
            && html.ends_with("</html>\n")
            && html.len() < 2_000_000
    );
    // The page loads no resources, and has a content security policy. The only addresses are names
    // of namespaces.
    let addresses = html.matches("http://").count() + html.matches("https://").count();
    assert_eq!(addresses, html.matches("http://www.w3.org/").count());
    assert!(
        !html.contains("@import") && html.matches("url(").count() == html.matches("url(#").count()
    );
    assert!(html.contains("default-src 'none'; img-src data:;"));
    assert!(
        html.contains(">200</span>")
            && html.contains(">city</a></h4>")
            && html.contains("50 records each")
    );
    // Figures and tables do not need scripts.
    for text in [
        "<dt>std. deviation</dt><dd>28.77</dd>",
        ">Porto</th>",
        "<caption>Quantiles</caption>",
    ] {
        assert!(html.contains(text), "{text}");
    }
    assert!(
        html.contains("train-00003-of-00004.tfrecord</th><td>50</td>")
            && html.contains("no duplicates")
    );
    // The images of the examples are encoded again.
    assert!(html.matches("<image ").count() > 10);
    assert!(!html.contains("id=\"anomalies\""));
}

/// The scalars of TensorBoard's event files are curves, with a line and a row of a table for each
/// run.
#[test]
fn event_files_have_curves() {
    let folder = tempfile::tempdir().unwrap();
    let page = folder.path().join("report.html");
    let run = tfarrow(&[
        "report",
        "testdata/events/logs",
        "-o",
        page.to_str().unwrap(),
    ]);
    assert_eq!(run.status, Some(0), "{run:?}");
    let html = fs::read_to_string(&page).unwrap();
    assert_eq!(html.matches("data-chart=\"curves\"").count(), 1);
    assert_eq!(html.matches("class=\"key run").count(), 2);
    assert!(html.contains("<h3 class=\"name\">loss</h3>"));
    // The values of testdata/events/expected.json.
    let lines = "data-now=\"[[[0,1,2],[1,0.5,0.3333333]],[[0,100],[0.5,-0.5]]]\"";
    assert!(
        html.contains("data-x=\"[&quot;.&quot;,&quot;train&quot;]\"") && html.contains(lines),
        "{html}"
    );
    // The page has no cards of features, whose tools have a checkbox of their own.
    assert!(
        html.contains("<input id=\"curves-log\" type=\"checkbox\">")
            && !html.contains("id=\"log\"")
    );
    assert!(
        html.contains(
            "</span>train</th><td>2</td><td>0.5</td><td>-0.5</td><td>-0.5</td><td>0.5</td>"
        )
    );
    // Other data sets have no curves.
    let run = tfarrow(&[
        "report",
        "testdata/raw.tfrecord",
        "-o",
        page.to_str().unwrap(),
    ]);
    assert_eq!(run.status, Some(0));
    assert!(!fs::read_to_string(&page).unwrap().contains("id=\"curves\""));
}

/// A record of a TensorBoard file: an event with a scalar.
fn event(step: u8, value: f32) -> Vec<u8> {
    let value = [&b"\x0a\x04loss\x15"[..], &value.to_le_bytes()].concat();
    [
        &b"\x09"[..],
        &1f64.to_le_bytes(),
        &[0x10, step, 0x2a, 13, 0x0a, 11],
        &value,
    ]
    .concat()
}

/// The first record of a TensorBoard file.
fn version() -> Vec<u8> {
    [&b"\x09"[..], &1f64.to_le_bytes(), b"\x1a\x0dbrain.Event:2"].concat()
}

/// Sources of one name are runs of the folders that distinguish them, and not one line that jumps
/// between both.
#[test]
fn several_sources_of_events_have_a_line_each() {
    let folder = tempfile::tempdir().unwrap();
    let (page, mut sources) = (folder.path().join("report.html"), Vec::new());
    for (run, value) in [("one/a", 0.5), ("one/b", 0.25)] {
        let logs = folder.path().join(run);
        fs::create_dir_all(&logs).unwrap();
        fs::write(
            logs.join("events.out.tfevents.1.x"),
            frame::file([version(), event(1, value), event(2, value)]),
        )
        .unwrap();
        sources.push(logs.display().to_string());
    }
    tfarrow(&[
        "report",
        &sources[0],
        &sources[1],
        "-o",
        page.to_str().unwrap(),
    ])
    .ends(0);
    let html = fs::read_to_string(&page).unwrap();
    assert!(
        html.contains("data-x=\"[&quot;a&quot;,&quot;b&quot;]\""),
        "{html}"
    );
    assert!(
        html.contains("data-now=\"[[[1,2],[0.5,0.5]],[[1,2],[0.25,0.25]]]\""),
        "{html}"
    );
}

#[test]
fn event_files_from_a_pipe_have_curves() {
    let folder = tempfile::tempdir().unwrap();
    let page = folder.path().join("report.html");
    let events = fs::read(crate::support::path(
        "testdata/events/logs/train/events.out.tfevents.1700000010.host",
    ))
    .unwrap();
    let sources: &[&str] = if cfg!(unix) {
        &["-", "/dev/stdin"]
    } else {
        &["-"]
    };
    for source in sources {
        let run = tfarrow_reads(&["report", source, "-o", page.to_str().unwrap()], &events);
        assert_eq!(run.status, Some(0), "{run:?}");
        let html = fs::read_to_string(&page).unwrap();
        assert!(
            html.contains("data-now=\"[[[0,100],[0.5,-0.5]]]\""),
            "{source}"
        );
    }
}

#[test]
fn events_that_cannot_be_decoded_are_left_out_of_curves_and_counted() {
    let folder = tempfile::tempdir().unwrap();
    let (file, page) = (
        folder.path().join("events.out.tfevents.1.x"),
        folder.path().join("report.html"),
    );
    let (file, output) = (file.to_str().unwrap(), page.to_str().unwrap());
    // The third event ends in its summary.
    let events = [
        version(),
        event(1, 0.5),
        b"\x2a\x02\x0a".to_vec(),
        event(2, 0.25),
    ];
    fs::write(file, frame::file(&events)).unwrap();
    for policy in ["fail", "skip"] {
        let run = tfarrow(&["report", file, "-o", output, "--on-error", policy, "--json"]);
        let found: serde_json::Value = serde_json::from_str(&run.stdout).unwrap();
        assert_eq!(found["skipped"]["records"], 1, "{policy}");
        let stderr = run.ends(3);
        let note = format!(
            "1 event cannot be decoded and is not in the curves; the first: {file}: record 2 (byte "
        );
        assert!(
            stderr.contains(&note) && !stderr.contains("SET "),
            "{stderr}"
        );
        let html = fs::read_to_string(&page).unwrap();
        assert!(
            html.contains(&note) && html.contains("data-now=\"[[[1,2],[0.5,0.25]]]\""),
            "{policy}"
        );
    }
    // Damage is reported once.
    let mut damaged = frame::file(events.iter().chain([&event(7, 7.0)]));
    *damaged.last_mut().unwrap() ^= 1;
    fs::write(file, damaged).unwrap();
    let stderr = tfarrow(&["report", file, "-o", output, "--on-error", "skip"]).ends(3);
    assert!(
        stderr.contains("skipped 1 record") && stderr.contains("1 event cannot"),
        "{stderr}"
    );
    tfarrow(&["report", file, "-o", output]).fails();
}

#[test]
fn curves_of_a_sample_have_its_events() {
    let folder = tempfile::tempdir().unwrap();
    let (logs, page) = (
        folder.path().join("logs"),
        folder.path().join("report.html"),
    );
    for (run, value) in [("a", 0.5), ("b", 0.25)] {
        fs::create_dir_all(logs.join(run)).unwrap();
        let events = [version()]
            .into_iter()
            .chain((0..9).map(|step| event(step, value)));
        fs::write(
            logs.join(run).join("events.out.tfevents.1.x"),
            frame::file(events),
        )
        .unwrap();
    }
    let sampled = tfarrow(&[
        "report",
        logs.to_str().unwrap(),
        "-o",
        page.to_str().unwrap(),
        "--sample",
        "3",
    ]);
    assert_eq!(sampled.stdout, format!("{}: 6 records\n", page.display()));
    let html = fs::read_to_string(&page).unwrap();
    assert!(
        html.contains("data-now=\"[[[0,1],[0.5,0.5]],[[0,1],[0.25,0.25]]]\""),
        "{html}"
    );
}

#[test]
fn the_summary_as_json_has_the_figures_of_the_page() {
    let folder = tempfile::tempdir().unwrap();
    let page = folder.path().join("report.html");
    let args = [
        "report",
        "testdata/shards/",
        "-o",
        page.to_str().unwrap(),
        "--json",
    ];
    let found: serde_json::Value = serde_json::from_str(&tfarrow(&args).prints()).unwrap();
    let expected = serde_json::json!({
        "output": page.to_str().unwrap(),
        "bytes": fs::metadata(&page).unwrap().len(),
        "files": 4,
        "records": 200,
        "features": 8,
        "anomalies": null,
        "skipped": {"records": 0, "ranges": 0, "bytes": 0},
    });
    assert_eq!(found, expected);
    let against = tfarrow(&[&args[..], &["--baseline", "testdata/shards/"]].concat()).prints();
    assert_eq!(
        serde_json::from_str::<serde_json::Value>(&against).unwrap()["anomalies"],
        0
    );
    let stderr = tfarrow(&["report", "testdata/shards/", "-o", "-", "--json"]).ends(2);
    assert!(stderr.contains("--json needs standard output"), "{stderr}");
}

#[test]
fn a_file_that_is_not_a_report_page_is_not_replaced() {
    let folder = tempfile::tempdir().unwrap();
    let data = folder.path().join("data.tfrecord");
    fs::copy(crate::support::path("testdata/scalar.tfrecord"), &data).unwrap();
    let name = data.to_str().unwrap();
    let stderr = tfarrow(&["report", name, "-o", name]).ends(2);
    assert!(
        stderr.contains("exists and is not a report page"),
        "{stderr}"
    );
    assert!(
        fs::read(&data).unwrap()
            == fs::read(crate::support::path("testdata/scalar.tfrecord")).unwrap()
    );
    let html = tfarrow(&["report", name, "-o", "-"]).prints();
    let page = folder.path().join("new/page.html");
    for _ in 0..2 {
        tfarrow(&["report", name, "-o", page.to_str().unwrap()]).prints();
        assert_eq!(fs::read_to_string(&page).unwrap(), html);
    }
    tfarrow(&[
        "report",
        "not there",
        "-o",
        folder.path().join("p/q.html").to_str().unwrap(),
    ])
    .fails();
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
    let args = [
        "report",
        "testdata/shards/",
        "-o",
        page.to_str().unwrap(),
        "--baseline",
        one,
        "--max-drift",
        "0.001",
    ];
    tfarrow(&args).ends(3);
    let html = fs::read_to_string(&page).unwrap();
    assert!(html.contains("COMPARATOR_L_INFTY_HIGH") && html.contains("svg class=\"before\""));
    assert!(html.contains("data-before=") && html.contains("<small>was "));
    // Each anomaly of a feature is a link to its card.
    let anomalies = html
        .split("id=\"anomalies\"")
        .nth(1)
        .unwrap()
        .split("</section>")
        .next()
        .unwrap();
    let links: Vec<&str> = anomalies
        .split("<h3><a href=\"#")
        .skip(1)
        .map(|link| link.split('"').next().unwrap())
        .collect();
    assert!(
        links.len() > 3
            && links
                .iter()
                .all(|id| html.contains(&format!("id=\"{id}\""))),
        "{links:?}"
    );
}

#[test]
fn no_report_page_is_written_for_a_corrupt_file() {
    let folder = tempfile::tempdir().unwrap();
    let page = folder.path().join("report.html");
    let damaged = "testdata/corrupt/data_crc.tfrecord";
    tfarrow(&["report", damaged, "-o", page.to_str().unwrap()]).fails();
    assert_eq!(fs::read_dir(folder.path()).unwrap().count(), 0);
    tfarrow(&[
        "report",
        damaged,
        "-o",
        page.to_str().unwrap(),
        "--on-error",
        "skip",
    ])
    .ends(3);
    assert!(
        fs::read_to_string(&page)
            .unwrap()
            .contains("skipped 1 record")
    );
}

#[test]
fn drift_ranks_by_distributions_and_not_by_sizes() {
    let folder = tempfile::tempdir().unwrap();
    // Ten times as many records, with the same distribution of words and another distribution of
    // numbers.
    let write = |name: &str, records: usize, shift: usize| {
        let payloads = (0..records).map(|record| {
            let word = ModelValue::Bytes(vec![if record % 10 == 0 {
                b"rare".to_vec()
            } else {
                b"often".to_vec()
            }]);
            let number = ModelValue::Int64(vec![(record % 100 + shift) as i64]);
            let row = [("number", number), ("word", word)];
            example_from_row(&ModelRow::from(row.map(|(name, value)| {
                (
                    (ModelSide::Features, name.to_owned()),
                    ModelCell::One(value),
                )
            })))
        });
        let path = folder.path().join(name);
        fs::write(&path, frame::file(payloads)).unwrap();
        path.to_str().unwrap().to_owned()
    };
    let (now, before) = (
        write("now.tfrecord", 1_000, 30),
        write("before.tfrecord", 100, 0),
    );
    let page = tfarrow(&["report", &now, "-o", "-", "--baseline", &before]);
    let drift = |name: &str| -> f64 {
        let before = page
            .stdout
            .split(&format!(">{name}</a></h4>"))
            .next()
            .unwrap();
        before
            .rsplit("data-drift=\"")
            .next()
            .unwrap()
            .split('"')
            .next()
            .unwrap()
            .parse()
            .unwrap()
    };
    assert!(
        page.stdout
            .contains("Features are sorted by the Jensen-Shannon divergence")
    );
    assert!(
        drift("word") < 1e-9 && drift("number") > 0.1,
        "{} {}",
        drift("word"),
        drift("number")
    );
    // The difference of counts, 810 of 1,100, has a label of its own.
    assert!(page.stdout.contains(
        "difference of counts, which grows with the difference of sizes</th><td>0.7364</td>"
    ));
}

/// Writes records of one kind of value each, by name.
fn write(folder: &Path, records: impl Iterator<Item = Vec<(&'static str, ModelValue)>>) -> String {
    let payloads = records.map(|record| {
        let cells = record.into_iter().map(|(name, value)| {
            let key = (ModelSide::Features, name.to_owned());
            (key, ModelCell::One(value))
        });
        example_from_row(&ModelRow::from_iter(cells))
    });
    let path = folder.join("data.tfrecord");
    fs::write(&path, frame::file(payloads)).unwrap();
    path.to_str().unwrap().to_owned()
}

#[test]
fn alerts_link_to_features() {
    let folder = tempfile::tempdir().unwrap();
    let record = |index: i64| {
        vec![
            ("constant", ModelValue::Int64(vec![7])),
            ("linear", ModelValue::Int64(vec![1_000 - 3 * index])),
            ("number", ModelValue::Int64(vec![index])),
            (
                "word",
                ModelValue::Bytes(vec![format!("word {index}").into_bytes()]),
            ),
        ]
    };
    // The last ten records are those at the beginning.
    let source = write(folder.path(), (0..100).chain(0..10).map(record));
    let html = tfarrow(&["report", &source, "-o", "-"]).prints();
    let alerts = html
        .split("id=\"alerts\"")
        .nth(1)
        .unwrap()
        .split("</section>")
        .next()
        .unwrap();
    let id = |name: &str| {
        let before = html.split(&format!("\">{name}</a></h4>")).next().unwrap();
        before.rsplit("href=\"").next().unwrap().to_owned()
    };
    let of = |name: &str| format!("<a href=\"{}\">{name}</a>", id(name));
    for text in [
        format!("{} <span class=\"value\">7</span>", of("constant")),
        format!(
            "{} and {} <span class=\"value\">-1.000</span>",
            of("linear"),
            of("number")
        ),
        "<a href=\"#overview\">the data set</a> <span class=\"value\">9.1 %</span>".to_owned(),
    ] {
        assert!(alerts.contains(&text), "{text}: {alerts}");
    }
    assert!(!alerts.contains(">word<") && html.contains(">9.1 % duplicates</span>"));
}

#[test]
fn names_and_values_stay_text() {
    let folder = tempfile::tempdir().unwrap();
    let evil = "</script><script>alert(1)</script><!--\"'";
    let record = |index: i64| {
        vec![
            (
                "</script><img src=x onerror=alert(1)>",
                ModelValue::Int64(vec![index]),
            ),
            ("twin</script>", ModelValue::Int64(vec![2 * index])),
            ("third\"onclick=\"", ModelValue::Int64(vec![index * index])),
            ("text", ModelValue::Bytes(vec![evil.as_bytes().to_vec()])),
        ]
    };
    let source = write(folder.path(), (0..50).map(record));
    let html = tfarrow(&["report", &source, "-o", "-", "--title", evil]).prints();
    assert_eq!(html.matches("<script").count(), 2);
    assert_eq!(html.matches("</script").count(), 2);
    assert!(
        !html.contains("<img")
            && !html.contains("onclick=\"\"")
            && html.contains("data-chart=\"matrix\"")
    );
}
