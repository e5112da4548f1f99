//! Output formats, and awkward values in each.

use std::{io::Read, process::Stdio};

use crate::support::{command, tfarrow};

#[track_caller]
fn check(format: &str, query: &str, expected: &str) {
    assert_eq!(
        tfarrow(&["sql", "--format", format, query]).prints(),
        expected
    );
}

#[test]
fn tables_are_aligned() {
    check(
        "table",
        "SELECT * FROM (VALUES (1, 'a', 1.5), (20, NULL, 10.0)) AS t(n, word, x)",
        "\
+----+------+------+
|  n | word |    x |
+----+------+------+
|  1 | a    |  1.5 |
| 20 | NULL | 10.0 |
+----+------+------+
",
    );
    check(
        "table",
        "SELECT 1 AS a WHERE false",
        "+---+\n| a |\n+---+\n+---+\n",
    );
}

#[test]
fn tables_abbreviate_long_values() {
    let printed = tfarrow(&["sql", "SELECT image, label FROM 'testdata/tfds/' LIMIT 1"]).prints();
    assert!(printed.contains("| <PNG "), "{printed}");
    let printed = tfarrow(&["sql", "SELECT range(1000) AS r"]).prints();
    assert!(
        printed.contains("| [0, 1, 2, 3, 4, 5, … 994 more] |"),
        "{printed}"
    );
    let printed = tfarrow(&["sql", "SELECT repeat('x', 100000) AS r"]).prints();
    assert!(printed.contains("xxx… <100 kB> |"), "{printed}");
}

#[test]
fn tables_escape_control_characters() {
    let printed = tfarrow(&[
        "sql",
        "SELECT chr(27) || '[2J' || chr(10) AS a, decode('ff00', 'hex') AS b",
    ])
    .prints();
    assert!(printed.contains(r"| \u{1b}[2J\n | x'ff00' |"), "{printed}");
}

#[test]
fn lines_have_one_value_each() {
    let query = "SELECT * FROM (VALUES (1, 'a'), (20, NULL)) AS t(number, s)";
    check(
        "line",
        query,
        "number = 1\n     s = a\n\nnumber = 20\n     s = NULL\n\n",
    );
    check("line", "SELECT 1 AS a WHERE false", "");
}

#[test]
fn markdown_and_html_are_escaped_and_complete() {
    let query = "SELECT * FROM (VALUES (1, 'a|b' || chr(10) || '<i>&' || chr(27), repeat('x', 300)), (2, NULL, '')) AS t(n, s, l)";
    let long = "x".repeat(300);
    let markdown = format!(
        "| n | s | l |\n| --: | --- | --- |\n| 1 | a\\|b<br>\\<i\\>\\&\\\\u{{1b}} | {long} |\n| 2 | *NULL* |  |\n"
    );
    check("markdown", query, &markdown);
    let html = format!(
        "<table>\n<thead><tr><th>n</th><th>s</th><th>l</th></tr></thead>\n<tbody>\n\
         <tr><td style=\"text-align:right\">1</td><td>a|b\n&lt;i&gt;&amp;\\u{{1b}}</td><td>{long}</td></tr>\n\
         <tr><td style=\"text-align:right\">2</td><td><i>NULL</i></td><td></td></tr>\n</tbody>\n</table>\n"
    );
    check("html", query, &html);
}

#[test]
fn csv_distinguishes_null_from_empty_text() {
    check(
        "csv",
        "SELECT NULL AS a, '' AS b, 'x,\"y\"' AS c",
        "a,b,c\n,\"\",\"x,\"\"y\"\"\"\n",
    );
    check("csv", "SELECT CAST(NULL AS INT) AS a", "a\n\"\"\n");
    check(
        "csv",
        "SELECT make_array(1, 2) AS a, decode('ff', 'hex') AS b",
        "a,b\n\"[1,2]\",\"{\"\"b64\"\":\"\"/w==\"\"}\"\n",
    );
}

#[test]
fn json_is_one_array_and_ndjson_has_one_object_per_line() {
    let query = "SELECT * FROM (VALUES (1, 'a'), (2, NULL)) AS t(n, s)";
    check(
        "json",
        query,
        "[{\"n\":1,\"s\":\"a\"},\n {\"n\":2,\"s\":null}]\n",
    );
    check(
        "ndjson",
        query,
        "{\"n\":1,\"s\":\"a\"}\n{\"n\":2,\"s\":null}\n",
    );
    check("json", "SELECT 1 AS a WHERE false", "[]\n");
}

#[test]
fn json_has_no_raw_bytes_and_no_bare_nan() {
    let query = "SELECT decode('ff', 'hex') AS b, decode('61', 'hex') AS t, CAST('NaN' AS DOUBLE) AS n, \
                 CAST('-inf' AS DOUBLE) AS i, chr(155) AS c";
    check(
        "ndjson",
        query,
        "{\"b\":{\"b64\":\"/w==\"},\"t\":\"a\",\"n\":\"NaN\",\"i\":\"-Infinity\",\"c\":\"\\u009b\"}\n",
    );
}

#[test]
fn floats_are_printed_with_the_fewest_digits() {
    let query = "SELECT CAST(0.1 AS FLOAT) AS f, 0.1 AS d, 1e300 AS e";
    check("ndjson", query, "{\"f\":0.1,\"d\":0.1,\"e\":1e+300}\n");
    check("csv", query, "f,d,e\n0.1,0.1,1e+300\n");
}

/// Messages that cannot be written do not change the exit status.
#[test]
#[cfg(target_os = "linux")]
fn a_full_standard_error_does_not_change_the_exit_status() {
    for (args, status) in [
        (&["verify", "testdata/scalar.tfrecord"][..], 0),
        (&["verify", "testdata/corrupt/data.tfrecord"], 3),
        (&["count", "nosuch"], 1),
    ] {
        let full = std::fs::File::options()
            .write(true)
            .open("/dev/full")
            .unwrap();
        assert_eq!(
            command(args).stderr(full).status().unwrap().code(),
            Some(status),
            "{args:?}"
        );
    }
}

/// Output that cannot be written is an error of every command, also for a result without rows.
#[test]
#[cfg(target_os = "linux")]
fn a_full_standard_output_is_an_error() {
    let folder = tempfile::tempdir().unwrap();
    let page = folder.path().join("page.html");
    let repaired = folder.path().join("repaired.tfrecord");
    let (page, repaired) = (page.to_str().unwrap(), repaired.to_str().unwrap());
    let (sound, corrupt) = ("testdata/scalar.tfrecord", "testdata/corrupt/data.tfrecord");
    let cases = [
        &["--help"][..],
        &["--version"],
        &["help"],
        &["help", "sql"],
        &["convert", "--help"],
        &["convert", "-h"],
        &["sql", "SELECT 1"],
        &["sql", "--format", "ndjson", "SELECT 1 AS a WHERE false"],
        &["sql", "--format", "csv", "SELECT 1 AS a WHERE false"],
        &["sql", "--format", "json", "SELECT 1 AS a WHERE false"],
        &["convert", sound, "-"],
        &["schema", sound],
        &["stats", sound],
        &["validate", sound, "--baseline", sound],
        &["report", sound, "-o", page],
        &["report", sound, "-o", "-"],
        &["head", sound],
        &["head", "testdata/empty.tfrecord"],
        &["count", sound],
        &["verify", sound],
        &["verify", sound, "--format", "json"],
        &["verify", corrupt],
        &["repair", sound, "-"],
        &["repair", corrupt, repaired],
        &["diff", sound, sound],
    ];
    for args in cases {
        let full = std::fs::File::options()
            .write(true)
            .open("/dev/full")
            .unwrap();
        let output = command(args).stdout(full).output().unwrap();
        let stderr = String::from_utf8(output.stderr).unwrap();
        assert_eq!(output.status.code(), Some(1), "{args:?}: {stderr}");
        assert!(
            stderr.contains("No space left on device"),
            "{args:?}: {stderr}"
        );
    }
}

#[test]
fn help_and_version_succeed_if_standard_output_is_closed() {
    for args in [
        &["--help"][..],
        &["sql", "--help"],
        &["--version"],
        &["verify", "testdata/scalar.tfrecord"],
    ] {
        let mut child = command(args).stdout(Stdio::piped()).spawn().unwrap();
        drop(child.stdout.take());
        assert_eq!(child.wait().unwrap().code(), Some(0), "{args:?}");
    }
    assert!(tfarrow(&["--help"]).prints().contains("Usage: tfarrow"));
    assert!(tfarrow(&["--version"]).prints().starts_with("tfarrow "));
    assert!(tfarrow(&["nosuch"]).ends(2).contains("nosuch"));
}

#[test]
fn a_closed_pipe_is_not_an_error() {
    let query = "SELECT a.value FROM range(10000000) AS a";
    for args in [
        &["sql", "--format", "csv", query][..],
        &["head", "-n", "200", "--full", "testdata/shards"],
    ] {
        let mut child = command(args).stdout(Stdio::piped()).spawn().unwrap();
        let mut byte = [0];
        child.stdout.take().unwrap().read_exact(&mut byte).unwrap();
        let output = child.wait_with_output().unwrap();
        assert_eq!(
            (
                output.status.code(),
                String::from_utf8_lossy(&output.stderr).as_ref()
            ),
            (Some(0), ""),
            "{args:?}"
        );
    }
}
