//! Outputs on a terminal of 80 and of 200 columns, compared with the files of `tests/screens/`.
//! `TFARROW_UPDATE=1 cargo test terminal` writes these files for review.

use std::{
    env,
    fs::{self, File},
    io::Read,
    process::Stdio,
};

use unicode_width::UnicodeWidthStr;

use crate::support::{command, path, tfarrow};

/// What the program prints to a terminal of this width.
fn screen(args: &[&str], width: u16) -> String {
    let size = nix::pty::Winsize {
        ws_row: 24,
        ws_col: width,
        ws_xpixel: 0,
        ws_ypixel: 0,
    };
    let nix::pty::OpenptyResult { master, slave } = nix::pty::openpty(Some(&size), None).unwrap();
    let mut program = command(args);
    let mut child = program
        .env("TERM", "xterm")
        .env_remove("NO_COLOR")
        .stdout(Stdio::from(slave))
        .spawn()
        .unwrap();
    // The terminal is closed when no process has it.
    drop(program);
    let (mut shown, mut some, mut master) = (Vec::new(), [0; 4096], File::from(master));
    // Reading from a terminal is an error after the program has closed it.
    while let Ok(count @ 1..) = master.read(&mut some) {
        shown.extend_from_slice(&some[..count]);
    }
    assert_eq!(child.wait().unwrap().code(), Some(0), "{args:?}");
    String::from_utf8(shown).unwrap().replace("\r\n", "\n")
}

fn is_golden(name: &str, args: &[&str]) {
    for width in [80, 200] {
        let shown = screen(args, width);
        let plain = anstream::adapter::strip_str(&shown).to_string();
        for line in plain.lines() {
            assert!(
                line.width() <= usize::from(width),
                "{name}, {width}: {line}"
            );
        }
        let file = path(&format!("tests/screens/{name}-{width}.txt"));
        if env::var_os("TFARROW_UPDATE").is_some() {
            fs::create_dir_all(file.parent().unwrap()).unwrap();
            fs::write(&file, &plain).unwrap();
        }
        assert_eq!(
            plain,
            fs::read_to_string(&file).unwrap(),
            "{}",
            file.display()
        );
    }
}

#[test]
fn rows_and_columns_in_the_middle_are_left_out() {
    is_golden("rows", &["sql", "SELECT * FROM 'testdata/shards/'"]);
    let columns: Vec<_> = (0..40)
        .map(|n| format!("{n} * 123456789 AS number_{n}"))
        .collect();
    is_golden(
        "numbers",
        &["sql", &format!("SELECT {}", columns.join(", "))],
    );
}

#[test]
fn schemas_and_statistics_name_the_columns_that_are_left_out() {
    is_golden("schema", &["schema", "testdata/states.tfrecord"]);
    is_golden("stats", &["stats", "testdata/shards/"]);
}

#[test]
fn lines_are_for_rows_of_many_columns() {
    is_golden(
        "lines",
        &[
            "sql",
            "--format",
            "line",
            "SELECT city, tags, label FROM 'testdata/shards/' LIMIT 2",
        ],
    );
}

#[test]
fn nulls_are_faint() {
    let query = "SELECT NULL AS a, 'NULL' AS b";
    let shown = screen(&["sql", query], 80);
    assert!(
        shown.contains("| \u{1b}[2mNULL\u{1b}[0m | \"NULL\" |\n"),
        "{shown:?}"
    );
    assert!(
        screen(&["sql", "--format", "line", query], 80)
            .starts_with("a = \u{1b}[2mNULL\u{1b}[0m\nb = \"NULL\"\n")
    );
}

#[test]
fn the_maximum_of_rows_is_an_option_of_terminals() {
    let query = "SELECT value FROM range(100)";
    let rows = |shown: &str| shown.lines().filter(|line| line.starts_with("| ")).count() - 1;
    let types = 1;
    for (given, shown) in [("3", 3 + 1), ("99", 99 + 1), ("100", 100), ("0", 100)] {
        assert_eq!(
            rows(&screen(&["sql", "--max-rows", given, query], 80)),
            shown + types,
            "{given}"
        );
    }
    assert!(
        screen(&["sql", "--max-rows", "3", query], 80).ends_with("100 rows (3 shown), 1 column\n")
    );
    assert_eq!(
        rows(&tfarrow(&["sql", "--max-rows", "3", query]).prints()),
        100
    );
    let plan = screen(&["sql", "--max-rows", "1", "EXPLAIN SELECT 1"], 80);
    assert!(
        plan.contains("ProjectionExec") && !plan.contains("shown"),
        "{plan}"
    );
}
