//! The prompt of `tfarrow sql` on pseudo-terminals.
//!
//! Whole screens after a session are compared with the files of `tests/screens/`; `TFARROW_UPDATE=1
//! cargo test prompt` writes these files for review.

use std::{
    env, fs,
    io::{Read, Write},
    path::Path,
    process::{Child, Command, Stdio},
    sync::mpsc::{self, RecvTimeoutError, Sender},
    thread,
    time::Duration,
};

use crate::support::{command, path};

/// A prompt on a terminal.
struct Terminal {
    child: Child,
    master: fs::File,
    /// The output that was not searched so far.
    shown: String,
    /// Bytes of all output.
    total: usize,
    /// All output, as a terminal displays it.
    screen: vt100::Parser,
    _alive: Sender<()>,
}

/// Time limit of a test of the prompt.
const PATIENCE: Duration = Duration::from_secs(60);

impl Terminal {
    fn open(state: &Path) -> Self {
        Self::open_with(state, &[])
    }

    /// A prompt with these variables, without styles.
    fn open_with(state: &Path, variables: &[(&str, &str)]) -> Self {
        let variables: Vec<_> = variables
            .iter()
            .copied()
            .chain([("NO_COLOR", "1")])
            .collect();
        Self::sized(24, 80, state, &variables)
    }

    /// A prompt on a terminal of these rows and columns, with these variables.
    fn sized(rows: u16, columns: u16, state: &Path, variables: &[(&str, &str)]) -> Self {
        let size = nix::pty::Winsize {
            ws_row: rows,
            ws_col: columns,
            ws_xpixel: 0,
            ws_ypixel: 0,
        };
        let nix::pty::OpenptyResult { master, slave } =
            nix::pty::openpty(Some(&size), None).unwrap();
        let terminal = || Stdio::from(slave.try_clone().unwrap());
        let mut program = command(&["sql"]);
        program
            .env("XDG_STATE_HOME", state)
            .env("TERM", "xterm")
            .envs(variables.iter().copied());
        let child = program
            .stdin(terminal())
            .stdout(terminal())
            .stderr(terminal())
            .spawn()
            .unwrap();
        let (pid, (alive, watched)) = (child.id().to_string(), mpsc::channel::<()>());
        thread::spawn(move || {
            // A test whose expected output does not come fails, and does not hang.
            if watched.recv_timeout(PATIENCE) == Err(RecvTimeoutError::Timeout) {
                Command::new("kill").args(["-9", &pid]).status().unwrap();
            }
        });
        let screen = vt100::Parser::new(rows, columns, 0);
        Self {
            child,
            master: master.into(),
            shown: String::new(),
            total: 0,
            screen,
            _alive: alive,
        }
    }

    /// Reads more output. `false` after the program has closed the terminal.
    fn read(&mut self) -> bool {
        let mut some = [0; 4096];
        // Reading from a terminal is an error after the program has closed it.
        let Ok(count @ 1..) = self.master.read(&mut some) else {
            return false;
        };
        self.shown
            .push_str(&String::from_utf8_lossy(&some[..count]));
        self.total += count;
        self.screen.process(&some[..count]);
        true
    }

    /// Reads until the terminal shows `part`. The typed text must not contain `part`, because the
    /// terminal echoes it.
    fn shows(&mut self, part: &str) {
        let end = loop {
            if let Some(at) = self.shown.find(part) {
                break at + part.len();
            }
            assert!(self.read(), "{part:?} is not in {}", self.shown);
        };
        self.shown.drain(..end);
    }

    /// Reads until the screen has `part`, and the line of the cursor is `line`. After a statement
    /// that is a part of the screen, the next prompt follows its result.
    fn displays(&mut self, part: &str, line: &str) {
        loop {
            let screen = self.screen.screen();
            let (row, _) = screen.cursor_position();
            let width = screen.size().1;
            let current = screen.rows(0, width).nth(row.into()).unwrap_or_default();
            if current.trim() == line && screen.contents().contains(part) {
                return;
            }
            assert!(
                self.read(),
                "{part:?} is not on the screen:\n{}",
                self.screen.screen().contents()
            );
        }
    }

    fn types(&mut self, text: &str) {
        self.master.write_all(text.as_bytes()).unwrap();
    }

    fn ends(mut self) {
        assert_eq!(self.child.wait().unwrap().code(), Some(0));
    }
}

/// The screen after a session: statements of several lines, tables, an error, and commands of the
/// prompt.
#[test]
fn sessions_have_golden_screens() {
    for (rows, columns) in [(24, 80), (50, 200)] {
        let state = tempfile::tempdir().unwrap();
        let mut terminal = Terminal::sized(rows, columns, state.path(), &[]);
        terminal.displays("", "tfarrow>");
        for (typed, part, line) in [
            ("\\timing\r", "timing is off", "tfarrow>"),
            ("SELECT label, count(*) AS records\r", "AS records", "->"),
            (
                "FROM 'testdata/shards/' GROUP BY label ORDER BY label;\r",
                "BY label;",
                "tfarrow>",
            ),
            (
                "SELECT * FROM 'testdata/shards/' ORDER BY price DESC LIMIT 3;\r",
                "LIMIT 3;",
                "tfarrow>",
            ),
            (
                "SELECT labl FROM 'testdata/shards/';\r",
                "did you mean",
                "tfarrow>",
            ),
            ("\\x\r", "the format is line", "tfarrow>"),
            (
                "SELECT city, tags FROM 'testdata/sha\t' LIMIT 1;\r",
                "tags = ",
                "tfarrow>",
            ),
        ] {
            terminal.types(typed);
            terminal.displays(part, line);
        }
        let shown = terminal.screen.screen().contents();
        terminal.types("\\q\r");
        terminal.ends();
        let file = path(&format!("tests/screens/prompt-{columns}x{rows}.txt"));
        if env::var_os("TFARROW_UPDATE").is_some() {
            fs::write(&file, format!("{shown}\n")).unwrap();
        }
        assert_eq!(
            format!("{shown}\n"),
            fs::read_to_string(&file).unwrap(),
            "{}",
            file.display()
        );
    }
}

/// A terminal without bracketed paste sends the lines of a paste as typed text.
#[test]
fn lines_that_arrive_together_all_run() {
    let state = tempfile::tempdir().unwrap();
    let mut terminal = Terminal::open(state.path());
    terminal.shows("tfarrow> ");
    terminal.types("SELECT 6 * 7 AS a;\rSELECT 5 *\r 7 AS b;\rSELECT 4 * 7 AS c;\r");
    for shown in ["|    42 |", "|    35 |", "|    28 |"] {
        terminal.shows(shown);
    }
    terminal.types("\\q\r");
    terminal.ends();
}

#[test]
fn a_long_line_is_not_drawn_again_for_each_character() {
    let state = tempfile::tempdir().unwrap();
    let mut terminal = Terminal::open(state.path());
    terminal.shows("tfarrow> ");
    let list = "1, ".repeat(1_000);
    terminal.types(&format!("SELECT 42 IN ({list}42) AS found;\r"));
    terminal.shows("| true    |");
    // Drawing the line for each of 3,000 characters takes 20 MB, and for each row of the terminal
    // much less.
    let shown = terminal.total;
    assert!(shown < 2_000_000, "{shown} bytes");
    terminal.types("\\q\r");
    terminal.ends();
}

#[test]
fn a_byte_that_is_not_utf_8_does_not_end_the_session() {
    let state = tempfile::tempdir().unwrap();
    let mut terminal = Terminal::open(state.path());
    terminal.shows("tfarrow> ");
    terminal.types("CREATE TABLE t AS SELECT 42 AS answer;\r");
    terminal.shows("done, ");
    terminal.shows("tfarrow> ");
    terminal.master.write_all(b"SELECT '\xff';\r").unwrap();
    terminal.shows("a byte that is not UTF-8");
    terminal.shows("tfarrow> ");
    terminal.types("SELECT answer FROM t;\r");
    terminal.shows("|     42 |");
    terminal.types("\\q\r");
    terminal.ends();
}

/// Ctrl-C cancels a query that computes without an output, and frees its threads for the next
/// query.
#[test]
fn ctrl_c_at_the_prompt_frees_the_threads_for_the_next_query() {
    let state = tempfile::tempdir().unwrap();
    let mut terminal = Terminal::open(state.path());
    terminal.shows("tfarrow> ");
    let pairs = "range(1000000) a, range(1000000) b";
    for query in [
        format!("SELECT count(*) FROM {pairs} WHERE a.value * b.value < 0"),
        format!("SELECT count(*) FROM {pairs}"),
        format!("SELECT count(*) FROM {pairs} WHERE a.value % 2 = b.value % 2"),
    ] {
        terminal.types(&format!("SELECT 6 * 7 AS answer; {query};\r"));
        terminal.shows("|     42 |");
        let pid = terminal.child.id().to_string();
        assert!(
            std::process::Command::new("kill")
                .args(["-2", &pid])
                .status()
                .unwrap()
                .success()
        );
        terminal.shows("stopped");
        terminal.shows("tfarrow> ");
    }
    terminal.types("SELECT 5 * 7 AS answer;\r");
    terminal.shows("|     35 |");
    terminal.shows("tfarrow> ");
    terminal.types("\\q\r");
    terminal.ends();
}

#[test]
fn a_terminal_gets_a_prompt() {
    let state = tempfile::tempdir().unwrap();
    let mut terminal = Terminal::open(state.path());
    terminal.shows("tfarrow> ");
    for (typed, shown) in [
        ("SELECT label, count(*)\r", "-> "),
        (
            " AS records FROM 'testdata/shards/' GROUP BY 1;\r",
            "4 rows, 0.",
        ),
        ("SELECT nosuch;\r", "no column nosuch"),
        ("\\d\r", "there are no tables"),
        (
            "CREATE EXTERNAL TABLE t STORED AS TFRECORD LOCATION 'testdata/scalar.tfrecord';\r",
            "done, 0.",
        ),
        ("\\d\r", "BASE TABLE"),
        ("\\d t\r", "| payload "),
        ("\\d 'testdata/shards/'\r", "| image/encoded "),
        ("\\nope\r", "is not a known command"),
        (".tables\r", "write \\d; \\? for help"),
        (".schema 'a b'\r", "write \\d 'a b'; \\? for help"),
        (".nope\r", ".nope is not a known command"),
        ("\\x\r", "the format is line"),
        ("SELECT 6 * 7 AS answer;\r", "answer = 42"),
        ("\\format csv\r", "the format is csv"),
        ("\\format parquet\r", "\\format NAME: table, line"),
        ("\\format table\r", "the format is table"),
        ("\\o OUT/x.csv\r", "the format is csv"),
        ("SELECT 6 * 7 AS answer;\r", "1 row, 0."),
        ("\\o\r", ""),
        ("\\o OUT/x.csv\r", "another name writes a new file"),
        ("\\format table\r", "the format is table"),
        ("\\rows\r", "tables show up to 40 rows"),
        ("\\rows 3\r", "tables show up to 3 rows"),
        (
            "SELECT value FROM range(9);\r",
            "9 rows (3 shown), 1 column",
        ),
        ("\\i sql/01-class-balance.sql\r", "| label | records |"),
        ("\\i nosuch.sql\r", "nosuch.sql: No such file"),
        ("\\timing\r", "timing is off"),
        ("sel\t 6 * 7 AS answer;\r", "|     42 |"),
    ] {
        terminal.types(&typed.replace("OUT", state.path().to_str().unwrap()));
        terminal.shows(shown);
        // Text that is typed before the next prompt may be lost, as in any line editor.
        if shown != "-> " {
            terminal.shows("tfarrow> ");
        }
    }
    terminal.types("\\q\r");
    terminal.ends();
    let history = std::fs::read_to_string(state.path().join("tfarrow/history")).unwrap();
    assert!(history.contains("select 6 * 7 AS answer;"), "{history}");
    assert_eq!(
        std::fs::read_to_string(state.path().join("x.csv")).unwrap(),
        "answer\n42\n"
    );
    // Ctrl-D and words end the prompt too.
    for end in ["\u{4}", "exit\r", "quit\r", "EXIT;\r", " quit \r"] {
        let mut terminal = Terminal::open(state.path());
        terminal.shows("tfarrow> ");
        terminal.types(end);
        terminal.ends();
    }
}

#[test]
fn columns_are_completed_after_from() {
    let state = tempfile::tempdir().unwrap();
    let mut terminal = Terminal::open(state.path());
    terminal.shows("tfarrow> ");
    for (typed, shown) in [
        (
            "SELECT count(*) AS n FROM 'testdata/shards/' WHERE pric\t > 40;\r",
            "|    83 |",
        ),
        // Files that were named before have columns before FROM.
        (
            "SELECT max(\"image/h\t) AS h FROM 'testdata/shards/';\r",
            "|     8 |",
        ),
    ] {
        terminal.types(typed);
        terminal.shows(shown);
        terminal.shows("tfarrow> ");
    }
    terminal.types("\\q\r");
    terminal.ends();
}

/// A program of the test in the variable `name`.
fn script(folder: &std::path::Path, text: &str) -> String {
    use std::os::unix::fs::PermissionsExt;
    let path = folder.join("program");
    std::fs::write(&path, format!("#!/bin/sh\n{text}\n")).unwrap();
    std::fs::set_permissions(&path, std::fs::Permissions::from_mode(0o755)).unwrap();
    path.display().to_string()
}

#[test]
fn the_editor_of_the_user_changes_a_statement() {
    let state = tempfile::tempdir().unwrap();
    let editor = script(state.path(), "sed -i 's/6/5/' \"$2\"; test \"$1\" = --wait");
    let mut terminal =
        Terminal::open_with(state.path(), &[("EDITOR", &format!("{editor} --wait"))]);
    terminal.shows("tfarrow> ");
    terminal.types("SELECT 6 *\r");
    terminal.shows("-> ");
    terminal.types("\\e\r");
    terminal.shows("5");
    terminal.types(" 7 AS answer;\r");
    terminal.shows("|     35 |");
    terminal.shows("tfarrow> ");
    // Without a statement that has begun, the last one is edited.
    terminal.types("SELECT 6 + 1 AS sum;\r");
    terminal.shows("|     7 |");
    terminal.types("\\e\r");
    terminal.shows("5");
    terminal.types("\r");
    terminal.shows("|     6 |");
    terminal.types("\\q\r");
    terminal.ends();
    // An empty variable is unset.
    let mut terminal = Terminal::open_with(
        state.path(),
        &[("VISUAL", ""), ("EDITOR", "/nosuch/editor")],
    );
    terminal.shows("tfarrow> ");
    terminal.types("\\e\r");
    terminal.shows("set EDITOR to the command of an editor");
    terminal.types("\\q\r");
    terminal.ends();
}

/// The pager is used for long output only.
#[test]
fn a_pager_shows_long_output() {
    let state = tempfile::tempdir().unwrap();
    let pager = script(state.path(), "sed 's/^/paged /'; echo $LESS");
    let mut terminal = Terminal::open_with(state.path(), &[("TFARROW_PAGER", &pager)]);
    terminal.shows("tfarrow> ");
    terminal.types("SELECT 6 * 7 AS answer;\r");
    terminal.shows("\n|     42 |");
    terminal.shows("tfarrow> ");
    terminal.types("SELECT value FROM range(30);\r");
    terminal.shows("paged |    29 |");
    terminal.shows("FRX");
    terminal.shows("30 rows, ");
    terminal.types("\\pager\r");
    terminal.shows("the pager is off");
    terminal.types("SELECT value FROM range(30);\r");
    terminal.shows("\n|    29 |");
    terminal.types("\\q\r");
    terminal.ends();
}

/// Opening a pipe blocks until another process opens its other end.
#[test]
fn a_pipe_in_place_of_the_history_does_not_block_the_prompt() {
    let state = tempfile::tempdir().unwrap();
    let history = state.path().join("tfarrow/history");
    std::fs::create_dir(state.path().join("tfarrow")).unwrap();
    assert!(
        std::process::Command::new("mkfifo")
            .arg(&history)
            .status()
            .unwrap()
            .success()
    );
    let mut terminal = Terminal::open(state.path());
    terminal.shows("tfarrow> ");
    terminal.types("SELECT 6 * 7 AS answer;\r");
    terminal.shows("|     42 |");
    terminal.shows("tfarrow> ");
    terminal.types("\\q\r");
    terminal.ends();
}
