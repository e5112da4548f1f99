//! Standard output: text, bytes, styles, and its width where it is a terminal.

use std::io::{self, BufWriter, IsTerminal, Write};

use anstream::{AutoStream, ColorChoice};
use anstyle::Style as Colour;
use clap::builder::StyledStr;

use crate::error::Usage;

/// Standard output with a buffer, which the owner has to flush.
pub(crate) type Out = BufWriter<io::Stdout>;

/// Standard output.
pub(crate) fn stdout() -> Out {
    BufWriter::with_capacity(64 << 10, io::stdout())
}

/// Prints a text and a line feed.
pub(crate) fn line(text: &str) -> io::Result<()> {
    let mut out = stdout();
    writeln!(out, "{text}")?;
    out.flush()
}

/// The style of errors and anomalies.
pub(crate) const BAD: Colour = anstyle::AnsiColor::Red.on_default().bold();
/// The style of success.
pub(crate) const GOOD: Colour = anstyle::AnsiColor::Green.on_default();
/// The style of headings.
pub(crate) const TITLE: Colour = Colour::new().bold();

/// Text in a style, where standard output shows styles: a terminal does, unless `NO_COLOR` or `TERM=dumb` is set.
pub(crate) fn coloured(colour: Colour, text: &str) -> String {
    match AutoStream::choice(&io::stdout()) {
        ColorChoice::Never => text.to_owned(),
        ColorChoice::Auto | ColorChoice::Always | ColorChoice::AlwaysAnsi => format!("{colour}{text}{colour:#}"),
    }
}

/// Returns an error if standard output is a terminal, which a binary format must not be written to.
///
/// # Errors
/// Standard output is a terminal.
pub(crate) fn refuse_terminal() -> Result<(), Usage> {
    let why = "a terminal cannot show a binary format: redirect the output to a file, or use another --format";
    if io::stdout().is_terminal() { Err(Usage(why.to_owned())) } else { Ok(()) }
}

/// Prints text without its styles where standard output shows none.
pub(crate) fn styled(text: &StyledStr) -> io::Result<()> {
    let mut out = AutoStream::auto(io::stdout());
    write!(out, "{}", text.ansi())?;
    out.flush()
}

/// Writes zero bytes, so that an empty result fails where standard output cannot be written, as any other does.
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

/// The number of columns of the terminal; `None` where standard output is not one.
pub(super) fn terminal_width() -> Option<usize> {
    let width = terminal_size::terminal_size_of(io::stdout()).map(|(width, _)| usize::from(width.0))?;
    io::stdout().is_terminal().then_some(width)
}
