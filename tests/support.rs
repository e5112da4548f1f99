//! Runs the program, and says what it did.

use std::{
    io::Write,
    path::{Path, PathBuf},
    process::{Command, Output, Stdio},
};

/// The root of the repository, which the program runs in: what names `testdata/..` is found from there.
pub(crate) fn root() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../..").canonicalize().unwrap()
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
        .stdin(Stdio::null())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped());
    #[cfg(unix)]
    heed_signals(&mut command);
    command
}

/// Lets signals end the program, as they do for whoever has it in front of them: tests that a script began in the background
/// ignore Ctrl-C, and so would the program, which inherits that.
#[cfg(unix)]
#[expect(unsafe_code, reason = "the standard library has no safe way to set what a program inherits")]
fn heed_signals(command: &mut Command) {
    use nix::sys::signal::{SigHandler, Signal, signal};
    use std::os::unix::process::CommandExt;
    let heed = || {
        for number in [Signal::SIGHUP, Signal::SIGINT, Signal::SIGTERM] {
            // SAFETY: no handler is set, and no one asks for the earlier one.
            unsafe { signal(number, SigHandler::SigDfl)? };
        }
        Ok(())
    };
    // SAFETY: between fork and exec only what is safe in a signal handler may be called. POSIX has signal(2) among it, and
    // nothing here allocates, locks or panics.
    unsafe { command.pre_exec(heed) };
}

/// What a run of the program did.
#[derive(Debug)]
pub(crate) struct Run {
    args: String,
    pub(crate) status: Option<i32>,
    pub(crate) stdout: String,
    pub(crate) stderr: String,
}

/// Runs the program with nothing to read.
pub(crate) fn tfarrow(args: &[&str]) -> Run {
    done(args, command(args).output().unwrap())
}

/// Runs the program with nothing to read, as a process that may have so many files open.
#[cfg(unix)]
pub(crate) fn tfarrow_with_files(files: u32, args: &[&str]) -> Run {
    let limited = format!("ulimit -n {files}; exec \"$0\" \"$@\"");
    let program = [&["-c", limited.as_str(), env!("CARGO_BIN_EXE_tfarrow")], args].concat();
    done(args, Command::new("sh").args(program).current_dir(root()).stdin(Stdio::null()).output().unwrap())
}

/// Runs the program in another folder, with nothing to read.
pub(crate) fn tfarrow_in(folder: &Path, args: &[&str]) -> Run {
    done(args, command(args).current_dir(folder).output().unwrap())
}

/// Runs the program with `input` to read.
pub(crate) fn tfarrow_reads(args: &[&str], input: &[u8]) -> Run {
    let mut child = command(args).stdin(Stdio::piped()).spawn().unwrap();
    let mut stdin = child.stdin.take().unwrap();
    let output = std::thread::scope(|scope| {
        // The program may have read enough before all is written.
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
    /// What was printed, where all went well and nothing was said besides.
    #[track_caller]
    pub(crate) fn prints(self) -> String {
        assert_eq!((self.status, self.stderr.as_str()), (Some(0), ""), "tfarrow {}", self.args);
        self.stdout
    }

    /// What was said, where the run ended with this status.
    #[track_caller]
    pub(crate) fn ends(self, status: i32) -> String {
        assert_eq!(self.status, Some(status), "tfarrow {}: {}", self.args, self.stderr);
        self.stderr
    }

    /// The one line that was said, where the run failed and printed nothing.
    #[track_caller]
    pub(crate) fn fails(self) -> String {
        assert_eq!(self.stdout, "", "tfarrow {}", self.args);
        let said = self.ends(1);
        let line = said.strip_suffix('\n').and_then(|said| said.strip_prefix("tfarrow: "));
        let line = line.unwrap_or_else(|| panic!("not one line of ours: {said:?}"));
        assert!(!line.contains('\n'), "more than one line: {said:?}");
        line.to_owned()
    }
}
