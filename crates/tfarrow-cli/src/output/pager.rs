//! Long text on a terminal: a pager, such as `less`, shows what is longer than the screen.

use std::{
    env,
    io::{self, IsTerminal, Write},
    process::{Child, Command, Stdio},
    sync::atomic::{AtomicBool, Ordering},
};

/// The variables that name a pager, the first one first. An empty value, and `cat`, are no pager.
const VARIABLES: [&str; 2] = ["TFARROW_PAGER", "PAGER"];
/// The pager without a variable.
const DEFAULT: &str = "less";
/// The options of `less`, as in git: end at once if the text fits the screen, show styles, leave
/// the text on the screen.
const LESS: &str = "FRX";

/// Whether a pager has the terminal, and with it Ctrl-C.
static HAS_TERMINAL: AtomicBool = AtomicBool::new(false);

/// Whether the user wants no pager.
static IS_OFF: AtomicBool = AtomicBool::new(false);

/// Shows text without a pager from now on.
pub(crate) fn without_pager() {
    IS_OFF.store(true, Ordering::Relaxed);
}

/// Whether a pager has the terminal. Ctrl-C is then a key of the pager.
pub(crate) fn is_paging() -> bool {
    HAS_TERMINAL.load(Ordering::Relaxed)
}

/// Text for a terminal. It is held until it has more lines than the screen, and then written to a
/// pager; a shorter text is written to standard output.
#[derive(Debug)]
pub(crate) struct Pager {
    command: Vec<String>,
    /// The text so far, until it has more lines than the screen.
    held: Vec<u8>,
    /// The number of further lines that fit the screen.
    fits: usize,
    shown: Shown,
}

/// The place where the text is shown.
#[derive(Debug)]
enum Shown {
    /// None yet.
    Held,
    /// A pager.
    Pager(Child),
    /// Standard output, because the pager cannot be started or has ended.
    Stdout,
}

impl Pager {
    /// A pager for standard output; `None` if it is no terminal, if no keys can be read, or if the
    /// user wants no pager.
    pub(super) fn of_terminal() -> Option<Self> {
        let is_terminal = io::stdout().is_terminal() && io::stdin().is_terminal();
        let rows =
            terminal_size::terminal_size_of(io::stdout()).map(|(_, rows)| usize::from(rows.0))?;
        if !is_terminal
            || IS_OFF.load(Ordering::Relaxed)
            || env::var_os("TERM").is_none_or(|term| term == "dumb")
        {
            return None;
        }
        let command = VARIABLES
            .iter()
            .find_map(|name| env::var(name).ok())
            .unwrap_or_else(|| DEFAULT.to_owned());
        let command: Vec<_> = command.split_whitespace().map(str::to_owned).collect();
        let is_none = command.first().is_none_or(|program| program == "cat");
        // The next prompt takes a line.
        (!is_none).then(|| Self {
            command,
            held: Vec::new(),
            fits: rows.saturating_sub(2),
            shown: Shown::Held,
        })
    }

    /// Shows the held text, and waits until the user closes the pager.
    pub(super) fn finish(&mut self) -> io::Result<()> {
        let held = std::mem::take(&mut self.held);
        match std::mem::replace(&mut self.shown, Shown::Stdout) {
            Shown::Pager(mut pager) => {
                // The pager is at the end of the text when its input is closed.
                drop(pager.stdin.take());
                let ended = pager.wait();
                HAS_TERMINAL.store(false, Ordering::Relaxed);
                ended.map(drop)
            }
            Shown::Held | Shown::Stdout => {
                let mut out = io::stdout();
                out.write_all(&held)?;
                out.flush()
            }
        }
    }

    /// Starts the pager with the text so far.
    fn start(&mut self) -> io::Result<()> {
        let Some((program, args)) = self.command.split_first() else {
            return Ok(());
        };
        let mut command = Command::new(program);
        if env::var_os("LESS").is_none() {
            command.env("LESS", LESS);
        }
        let held = std::mem::take(&mut self.held);
        match command.args(args).stdin(Stdio::piped()).spawn() {
            Ok(pager) => {
                HAS_TERMINAL.store(true, Ordering::Relaxed);
                self.shown = Shown::Pager(pager);
            }
            // Without the pager, the text is printed.
            Err(_) => self.shown = Shown::Stdout,
        }
        self.show(&held)
    }

    fn show(&mut self, bytes: &[u8]) -> io::Result<()> {
        match &mut self.shown {
            Shown::Held => {
                self.held.extend_from_slice(bytes);
                Ok(())
            }
            Shown::Pager(pager) => match &mut pager.stdin {
                Some(input) => input.write_all(bytes),
                None => Ok(()),
            },
            Shown::Stdout => io::stdout().write_all(bytes),
        }
    }
}

impl Write for Pager {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        self.show(bytes)?;
        if matches!(self.shown, Shown::Held) {
            let lines = bytes.iter().filter(|byte| **byte == b'\n').count();
            match self.fits.checked_sub(lines) {
                Some(fits) => self.fits = fits,
                None => self.start()?,
            }
        }
        Ok(bytes.len())
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

/// Shows the text before an error, and waits for the pager.
impl Drop for Pager {
    fn drop(&mut self) {
        // The text cannot be shown if standard output is closed.
        let _ = self.finish();
    }
}
