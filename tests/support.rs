//! Helpers that run the program and check its output.

use std::{
    io::Write,
    path::{Path, PathBuf},
    process::{Command, Output, Stdio},
};

/// The root of the repository. The program runs in it, so that tests can name `testdata/..`.
pub(crate) fn root() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR"))
        .join("../..")
        .canonicalize()
        .unwrap()
}

/// The path of a file under the root.
pub(crate) fn path(name: &str) -> PathBuf {
    root().join(name)
}

/// The program with these arguments, not yet run.
pub(crate) fn command(args: &[&str]) -> Command {
    let mut command = Command::new(env!("CARGO_BIN_EXE_tfarrow"));
    command
        .args(args)
        .current_dir(root())
        .env_remove("CLICOLOR_FORCE")
        // No configuration of the user, and no pager.
        .env("TFARROW_CONFIG", "")
        .env("TFARROW_PAGER", "")
        .stdin(Stdio::null())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped());
    #[cfg(unix)]
    tfarrow_testkit::signals::restore_signals(&mut command);
    command
}

/// The exit status and the output of a run.
#[derive(Debug)]
pub(crate) struct Run {
    args: String,
    pub(crate) status: Option<i32>,
    pub(crate) stdout: String,
    pub(crate) stderr: String,
}

/// Runs the program with an empty standard input.
pub(crate) fn tfarrow(args: &[&str]) -> Run {
    done(args, command(args).output().unwrap())
}

/// Runs the program with an empty standard input and a limit of open files.
#[cfg(unix)]
pub(crate) fn tfarrow_with_files(files: u32, args: &[&str]) -> Run {
    let limited = format!("ulimit -n {files}; exec \"$0\" \"$@\"");
    let program = [
        &["-c", limited.as_str(), env!("CARGO_BIN_EXE_tfarrow")],
        args,
    ]
    .concat();
    done(
        args,
        Command::new("sh")
            .args(program)
            .current_dir(root())
            .stdin(Stdio::null())
            .output()
            .unwrap(),
    )
}

/// Runs the program in another folder, with an empty standard input.
pub(crate) fn tfarrow_in(folder: &Path, args: &[&str]) -> Run {
    done(args, command(args).current_dir(folder).output().unwrap())
}

/// Runs the program with `input` as its standard input.
pub(crate) fn tfarrow_reads(args: &[&str], input: &[u8]) -> Run {
    let mut child = command(args).stdin(Stdio::piped()).spawn().unwrap();
    let mut stdin = child.stdin.take().unwrap();
    let output = std::thread::scope(|scope| {
        // The program may close its input before all is written.
        scope.spawn(move || stdin.write_all(input));
        child.wait_with_output().unwrap()
    });
    done(args, output)
}

fn done(args: &[&str], output: Output) -> Run {
    Run {
        args: args.join(" "),
        status: output.status.code(),
        stdout: String::from_utf8(output.stdout).expect("text on standard output"),
        stderr: String::from_utf8(output.stderr).expect("text on standard error"),
    }
}

impl Run {
    /// Returns the standard output of a run that succeeded without a message on standard error.
    #[track_caller]
    pub(crate) fn prints(self) -> String {
        assert_eq!(
            (self.status, self.stderr.as_str()),
            (Some(0), ""),
            "tfarrow {}",
            self.args
        );
        self.stdout
    }

    /// Returns the standard error of a run that ended with this status.
    #[track_caller]
    pub(crate) fn ends(self, status: i32) -> String {
        assert_eq!(
            self.status,
            Some(status),
            "tfarrow {}: {}",
            self.args,
            self.stderr
        );
        self.stderr
    }

    /// Returns the one line on standard error of a run that failed and printed nothing.
    #[track_caller]
    pub(crate) fn fails(self) -> String {
        assert_eq!(self.stdout, "", "tfarrow {}", self.args);
        let stderr = self.ends(1);
        let line = stderr
            .strip_suffix('\n')
            .and_then(|text| text.strip_prefix("tfarrow: "));
        let line = line.unwrap_or_else(|| panic!("not one error line: {stderr:?}"));
        assert!(!line.contains('\n'), "more than one line: {stderr:?}");
        line.to_owned()
    }
}
