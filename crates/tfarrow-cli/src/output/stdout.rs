//! Standard output: text and bytes.

use std::io::{self, IsTerminal, Write};

use anstream::AutoStream;
use clap::builder::StyledStr;

use super::sink::{Out, Sink};
use crate::error::Usage;

/// Standard output with a buffer, which the owner has to flush.
pub(crate) fn stdout() -> Out {
    Sink::Stdout.writer()
}

/// Prints a text and a line feed; on a terminal with a pager, if the text is longer than the
/// screen.
pub(crate) fn line(text: &str) -> io::Result<()> {
    let sink = Sink::Stdout.paged();
    let mut out = sink.writer();
    writeln!(out, "{text}")?;
    out.flush()?;
    sink.show()
}

/// Returns an error if standard output is a terminal, which a binary format must not be written to.
///
/// # Errors
/// Standard output is a terminal.
pub(crate) fn refuse_terminal() -> Result<(), Usage> {
    let why = "a terminal cannot show a binary format: redirect the output to a file, or use another --format";
    if io::stdout().is_terminal() {
        Err(Usage(why.to_owned()))
    } else {
        Ok(())
    }
}

/// Prints text without its styles where standard output shows none.
pub(crate) fn styled(text: &StyledStr) -> io::Result<()> {
    let mut out = AutoStream::auto(io::stdout());
    write!(out, "{}", text.ansi())?;
    out.flush()
}

/// Writes zero bytes, so that an empty result fails where standard output cannot be written, as any
/// other does.
pub(crate) fn nothing() -> io::Result<()> {
    #[cfg(unix)]
    {
        use std::os::fd::AsFd;
        // A buffer would not write at all.
        let mut out = std::fs::File::from(io::stdout().as_fd().try_clone_to_owned()?);
        let _ = out.write(&[])?;
    }
    Ok(())
}

/// Writes bytes.
pub(crate) fn bytes(bytes: &[u8]) -> io::Result<()> {
    let mut out = stdout();
    out.write_all(bytes)?;
    out.flush()
}
