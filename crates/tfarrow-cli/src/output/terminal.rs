//! The terminal of standard output.

use std::io::{self, IsTerminal};

use anstream::{AutoStream, ColorChoice};
use tfarrow_report::text::Screen;

/// Standard output as a screen. It has a width where it is a terminal, and styles where it shows
/// them: a terminal does, unless `NO_COLOR` or `TERM=dumb` is set.
pub(crate) fn screen() -> Screen {
    let choice = AutoStream::choice(&io::stdout());
    Screen::new(terminal_width(), choice != ColorChoice::Never)
}

/// The number of columns of the terminal; `None` where standard output is not one.
fn terminal_width() -> Option<usize> {
    let (width, _) = terminal_size::terminal_size_of(io::stdout())?;
    io::stdout().is_terminal().then_some(width.0.into())
}
