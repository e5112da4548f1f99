//! Options of all commands, defaults of options, completion and manual pages.

use std::fs;

use crate::support::{command, path, tfarrow};

/// Runs the program with a configuration file and variables. Returns the exit status, standard
/// output and standard error.
fn run(config: Option<&str>, variables: &[(&str, &str)], args: &[&str]) -> (i32, String, String) {
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("config.toml");
    let mut command = command(args);
    if let Some(text) = config {
        fs::write(&file, text).unwrap();
        command.env("TFARROW_CONFIG", &file);
    }
    let done = command.envs(variables.iter().copied()).output().unwrap();
    let text = |bytes: &[u8]| String::from_utf8(bytes.to_vec()).unwrap();
    let place = file.display().to_string();
    (
        done.status.code().unwrap(),
        text(&done.stdout),
        text(&done.stderr).replace(&place, "FILE"),
    )
}

const QUERY: [&str; 2] = ["sql", "SELECT 1 AS a"];

#[test]
fn defaults_come_from_a_file_and_from_variables() {
    let csv = "a\n1\n";
    let format = |config, variables: &[_]| run(config, variables, &QUERY).1;
    assert_eq!(format(Some("format = 'csv'"), &[]), csv);
    assert_eq!(format(Some("[sql]\nformat = 'csv'"), &[]), csv);
    assert_eq!(format(None, &[("TFARROW_FORMAT", "csv")]), csv);
    assert_eq!(format(None, &[("TFARROW_SQL_FORMAT", "csv")]), csv);
    // A variable has precedence over the file, a command over all commands, and the command line
    // over both.
    assert_eq!(
        format(Some("format = 'json'"), &[("TFARROW_FORMAT", "csv")]),
        csv
    );
    assert_eq!(
        format(Some("format = 'json'\n[sql]\nformat = 'csv'"), &[]),
        csv
    );
    assert_eq!(
        format(Some("[sql]\nformat = 'csv'"), &[("TFARROW_FORMAT", "json")]),
        csv
    );
    let (_, shown, _) = run(
        Some("format = 'json'"),
        &[],
        &["sql", "--format", "csv", QUERY[1]],
    );
    assert_eq!(shown, csv);
}

#[test]
fn options_of_the_command_line_exclude_defaults() {
    let folder = tempfile::tempdir().unwrap();
    let out = folder.path().join("out");
    let convert = [
        "convert",
        "testdata/shards/",
        out.to_str().unwrap(),
        "--to",
        "tfrecord",
        "--shard-size",
        "1GB",
    ];
    for (config, variables) in [
        (None, [("TFARROW_SHARDS", "3")].as_slice()),
        (Some("[convert]\nshards = 3"), &[]),
    ] {
        let (status, _, error) = run(config, variables, &convert);
        assert_eq!(
            (status, fs::read_dir(&out).unwrap().count()),
            (0, 1),
            "{error}"
        );
        fs::remove_dir_all(&out).unwrap();
    }
    // The default excludes the option, and the other way round.
    let message = [("TFARROW_MESSAGE", "tensorflow.Event")];
    let head = [
        "head",
        "-n",
        "1",
        "testdata/scalar.tfrecord",
        "--record-type",
        "example",
    ];
    assert!(run(None, &message, &head).1.starts_with("{\"id\":[-5]"));
    let events = [
        "head",
        "-n",
        "1",
        "testdata/events/logs/",
        "--message",
        "tensorflow.Event",
    ];
    assert!(
        run(None, &[("TFARROW_RECORD_TYPE", "raw")], &events)
            .1
            .contains("brain.Event:2")
    );
    let table = run(None, &[], &["stats", "testdata/shards/"]).1;
    let stats = ["stats", "testdata/shards/", "--format", "table"];
    assert_eq!(run(None, &[("TFARROW_JSON", "true")], &stats).1, table);
    assert_eq!(run(Some("[stats]\njson = true"), &[], &stats).1, table);
    // A default that is not excluded stays.
    assert!(
        run(None, &[("TFARROW_JSON", "true")], &stats[..2])
            .1
            .starts_with('{')
    );
}

#[test]
fn help_and_scripts_of_shells_need_no_valid_configuration() {
    for args in [
        ["count", "--help"].as_slice(),
        &["--version"],
        &["help", "sql"],
        &["man"],
        &["completions", "bash"],
    ] {
        let expected = run(None, &[], args);
        assert_eq!(expected.0, 0, "{args:?}");
        assert_eq!(
            run(
                Some("[squl]\nformat = 'csv'"),
                &[("TFARROW_JOBS", "many")],
                args
            ),
            expected,
            "{args:?}"
        );
    }
    assert_eq!(
        run(
            Some("[squl]\nformat = 'csv'"),
            &[],
            &["count", "testdata/shards/"]
        )
        .0,
        2
    );
    // Help shows the defaults of the user.
    assert!(
        run(Some("on-error = 'skip'"), &[], &["count", "--help"])
            .1
            .contains("[default: skip]")
    );
}

#[test]
fn a_default_for_all_commands_applies_where_it_is_valid() {
    let count = ["count", "testdata/shards/"];
    for config in [
        "format = 'csv'",
        "on-error = 'skip'",
        "jobs = 1",
        "lossy = true",
        "limit = ['columns=100']",
    ] {
        assert_eq!(
            run(Some(config), &[], &count),
            (0, "200\n".to_owned(), String::new()),
            "{config}"
        );
        let (status, shown, _) = run(Some(config), &[], &["stats", "testdata/scalar.tfrecord"]);
        assert!(
            status == 0 && shown.contains("records"),
            "{config}: {shown}"
        );
    }
    let (status, _, error) = run(
        None,
        &[("TFARROW_LIMIT", "record-bytes=1,columns=7")],
        &["head", "testdata/scalar.tfrecord"],
    );
    assert!(status == 1 && error.contains("record-bytes"), "{error}");
    let (_, shown, _) = run(Some("[count]\nper-file = true"), &[], &count);
    assert_eq!(shown.lines().count(), 4, "{shown}");
}

/// Options of all commands have defaults as those of one command have.
#[test]
fn options_of_all_commands_have_defaults() {
    let folder = tempfile::tempdir().unwrap();
    let out = folder.path().join("a.parquet").display().to_string();
    let convert = ["convert", "testdata/scalar.tfrecord", &out, "--overwrite"];
    for (config, variables) in [
        (Some("quiet = true"), [].as_slice()),
        (Some("[convert]\nquiet = true"), &[]),
        (None, &[("TFARROW_QUIET", "true")]),
        (None, &[("TFARROW_CONVERT_QUIET", "1")]),
        (Some("quiet = false"), &[("TFARROW_QUIET", "1")]),
        (Some("quiet = true"), &[("TFARROW_QUIET", "")]),
    ] {
        assert_eq!(
            run(config, variables, &convert),
            (0, String::new(), String::new()),
            "{config:?} {variables:?}"
        );
    }
    for (config, variables) in [
        (Some("[sql]\nquiet = true"), [].as_slice()),
        (Some("[convert]\nquiet = false"), &[("TFARROW_QUIET", "1")]),
        (None, &[("TFARROW_QUIET", "0")]),
    ] {
        let (status, _, error) = run(config, variables, &convert);
        assert!(
            status == 0 && error.contains("record"),
            "{config:?} {variables:?}: {error}"
        );
    }
    let count = ["count", "testdata/shards/"];
    let (_, _, error) = run(None, &[("TFARROW_VERBOSE", "1")], &count);
    assert!(error.ends_with(" s\n"), "{error}");
    // The command line has precedence over a default of the other option.
    let (_, _, error) = run(
        None,
        &[("TFARROW_QUIET", "1")],
        &["count", "testdata/shards/", "-v"],
    );
    assert!(error.ends_with(" s\n"), "{error}");
    let (_, _, error) = run(
        None,
        &[("TFARROW_VERBOSE", "1")],
        &["-q", "count", "testdata/shards/"],
    );
    assert_eq!(error, "");
    assert_eq!(run(Some("no-pager = true"), &[], &count).0, 0);
}

#[test]
fn flags_are_numbers_too_and_empty_variables_are_unset() {
    let folder = tempfile::tempdir().unwrap();
    let out = folder.path().join("a.parquet").display().to_string();
    let convert = ["convert", "testdata/scalar.tfrecord", &out];
    let overwrite = |value| run(None, &[("TFARROW_CONVERT_OVERWRITE", value)], &convert).0;
    assert_eq!(
        ["1", "1", "true", "0", "", "false"].map(overwrite),
        [0, 0, 0, 2, 2, 2]
    );
    let variables = [("TFARROW_SQL_FORMAT", ""), ("TFARROW_FORMAT", "csv")];
    assert_eq!(
        run(None, &variables, &QUERY),
        (0, "a\n1\n".to_owned(), String::new())
    );
}

#[test]
fn wrong_defaults_are_errors_with_their_place() {
    for (config, variables, expected) in [
        (
            Some("[sql]\nformat = 'cvs'"),
            [].as_slice(),
            "FILE: [sql] format: cvs is not valid for --format, expected table",
        ),
        (
            Some("on_error = 'skip'"),
            &[],
            "FILE: on_error is not an option (did you mean on-error?)",
        ),
        (
            Some("[squl]\nformat = 'csv'"),
            &[],
            "FILE: [squl] is not a command (did you mean sql?)",
        ),
        (
            Some("[sql]\nformat = {}"),
            &[],
            "format: found {}, expected a text",
        ),
        (Some("format ="), &[], "FILE: "),
        (
            None,
            &[("TFARROW_CONVERT_JOBS", "many")],
            "TFARROW_CONVERT_JOBS: many is not valid for --jobs",
        ),
        (
            None,
            &[("TFARROW_CONVERT_LOSSY", "yes")],
            "yes is not valid for --lossy, expected true, false",
        ),
        (
            None,
            &[("TFARROW_FORMAT", "cvs")],
            "TFARROW_FORMAT: cvs is not valid for --format",
        ),
        (
            None,
            &[("TFARROW_CONFIG", "/nosuch.toml")],
            "/nosuch.toml: No such file",
        ),
    ] {
        let (status, shown, error) = run(config, variables, &QUERY);
        assert_eq!(
            (status, shown.as_str()),
            (2, ""),
            "{config:?} {variables:?}: {error}"
        );
        assert!(
            error.contains(expected),
            "{config:?} {variables:?}: {error}"
        );
    }
}

#[test]
fn quiet_prints_errors_only_and_verbose_more() {
    let folder = tempfile::tempdir().unwrap();
    let out = folder.path().join("a.parquet").display().to_string();
    let convert = ["convert", "testdata/scalar.tfrecord", &out, "--overwrite"];
    assert!(tfarrow(&convert).stderr.contains("record"));
    assert_eq!(tfarrow(&[&["-q"], &convert[..]].concat()).stderr, "");
    assert_eq!(tfarrow(&[&convert[..], &["--quiet"]].concat()).stderr, "");
    assert!(
        tfarrow(&["-q", "count", "nosuch"])
            .fails()
            .contains("nosuch")
    );
    let (_, _, error) = run(Some("jobs = 1"), &[], &["-v", "count", "testdata/shards/"]);
    assert!(
        error.contains("defaults of options are in FILE") && error.contains(" s\n"),
        "{error}"
    );
    assert!(
        tfarrow(&["-q", "-v", "count", "testdata/shards/"])
            .ends(2)
            .contains("cannot be used with")
    );
}

#[test]
fn json_is_short_for_its_format() {
    for args in [
        vec!["sql", "SELECT 1 AS a"],
        vec!["schema", "testdata/shards/"],
        vec!["stats", "testdata/shards/"],
        vec![
            "validate",
            "testdata/shards/",
            "--baseline",
            "testdata/shards/",
        ],
        vec!["verify", "testdata/shards/"],
        vec!["diff", "testdata/shards/", "testdata/shards/"],
    ] {
        let with = |options: &[&str]| tfarrow(&[&args[..], options].concat()).stdout;
        assert_eq!(with(&["--json"]), with(&["--format", "json"]), "{args:?}");
        tfarrow(&[&args[..], &["--json", "--format", "json"]].concat()).ends(2);
    }
}

#[test]
fn shells_get_completions_and_manual_pages() {
    for shell in ["bash", "zsh", "fish", "elvish", "powershell"] {
        let script = tfarrow(&["completions", shell]).prints();
        assert!(
            script.contains("partial-tail") && script.contains("row-group-rows"),
            "{shell}"
        );
    }
    assert!(tfarrow(&["completions", "tcsh"]).ends(2).contains("bash"));
    assert!(tfarrow(&["man"]).prints().contains(".SH SUBCOMMANDS"));
    let folder = tempfile::tempdir().unwrap();
    let pages = folder.path().join("man/man1");
    assert_eq!(
        tfarrow(&["man", "-o", pages.to_str().unwrap()]).prints(),
        ""
    );
    let page = fs::read_to_string(pages.join("tfarrow-convert.1")).unwrap();
    assert!(page.contains("row\\-group\\-rows"), "{page}");
}

#[test]
fn help_shows_sources_and_a_destination() {
    let page = "<SRC>... <DEST>";
    for command in ["convert", "repair"] {
        for help in [[command, "--help"], [command, "-h"], ["help", command]] {
            let help = tfarrow(&help).prints();
            assert!(
                help.contains(&format!("Usage: tfarrow {command} [OPTIONS] {page}")),
                "{help}"
            );
            assert!(
                help.contains("\n  <SRC>...") && help.contains("\n  <DEST>"),
                "{help}"
            );
        }
        assert!(tfarrow(&[command, "--nosuch"]).ends(2).contains(page));
        assert!(tfarrow(&[command, "a"]).ends(2).contains("DEST is missing"));
        assert!(tfarrow(&[command]).ends(2).contains("<SRC>..."));
    }
    let folder = tempfile::tempdir().unwrap();
    tfarrow(&["man", "-o", folder.path().to_str().unwrap()]).prints();
    let page = fs::read_to_string(folder.path().join("tfarrow-convert.1")).unwrap();
    assert!(
        page.contains("[OPTIONS] <SRC>... <DEST>") && page.contains("<\\fIDEST\\fR>\n"),
        "{page}"
    );
    assert!(
        tfarrow(&["completions", "zsh"])
            .prints()
            .contains(":dest -- A folder")
    );
}

#[test]
fn help_is_grouped_by_subject() {
    let help = tfarrow(&["convert", "--help"]).prints();
    let headings: Vec<_> = help
        .lines()
        .filter(|line| line.ends_with(':') && !line.starts_with(' '))
        .collect();
    for heading in [
        "Columns:",
        "Output:",
        "Corrupt data:",
        "Resources:",
        "Global options:",
    ] {
        assert!(
            headings.contains(&heading),
            "{heading} is not in {headings:?}"
        );
    }
    assert!(path("docs/program.md").exists());
}

#[test]
fn misspelled_names_have_suggestions() {
    for (query, expected) in [
        (
            "SELECT pirce FROM 'testdata/shards/'",
            "no column pirce (did you mean price?)",
        ),
        (
            "SELECT cuont(*) FROM 'testdata/shards/'",
            "there is no function cuont; did you mean count?",
        ),
    ] {
        let error = tfarrow(&["sql", query]).fails();
        assert!(error.contains(expected), "{query}: {error}");
    }
    for (args, expected) in [(["sql", "--formt"], "'--format'"), (["sqll", "x"], "'sql'")] {
        let error = tfarrow(&args).ends(2);
        assert!(error.contains(expected), "{args:?}: {error}");
    }
}
