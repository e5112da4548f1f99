//! The layout of texts for people: the width of tables, and styles.

use std::io::{self, IsTerminal};

use anstream::{AutoStream, ColorChoice};
use anstyle::Style as Colour;

/// The style of errors and anomalies.
pub(crate) const BAD: Colour = anstyle::AnsiColor::Red.on_default().bold();
/// The style of success.
pub(crate) const GOOD: Colour = anstyle::AnsiColor::Green.on_default();
/// The style of nulls.
pub(crate) const FAINT: Colour = Colour::new().dimmed();
/// The style of headings.
pub(crate) const TITLE: Colour = Colour::new().bold();

/// What a text is made for.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Screen {
    /// The number of characters of a line that a table may take; `None` for any number.
    pub(crate) width: Option<usize>,
    has_styles: bool,
}

impl Screen {
    /// Standard output. It has a width where it is a terminal, and styles where it shows them: a
    /// terminal does, unless `NO_COLOR` or `TERM=dumb` is set.
    pub(crate) fn stdout() -> Self {
        let has_styles = match AutoStream::choice(&io::stdout()) {
            ColorChoice::Never => false,
            ColorChoice::Auto | ColorChoice::Always | ColorChoice::AlwaysAnsi => true,
        };
        Self {
            width: terminal_width(),
            has_styles,
        }
    }

    /// A text without styles, whose tables have lines of up to `width` characters.
    pub(crate) fn plain(width: Option<usize>) -> Self {
        Self {
            width,
            has_styles: false,
        }
    }

    /// A screen that is narrower or wider, if it has a width.
    pub(super) fn with_width(self, width: Option<usize>) -> Self {
        Self {
            width: self.width.map(|own| width.unwrap_or(own)),
            ..self
        }
    }

    /// Text in a style, where the screen has styles.
    pub(crate) fn coloured(self, colour: Colour, text: &str) -> String {
        if self.has_styles {
            format!("{colour}{text}{colour:#}")
        } else {
            text.to_owned()
        }
    }
}

/// The number of columns of the terminal; `None` where standard output is not one.
fn terminal_width() -> Option<usize> {
    let width =
        terminal_size::terminal_size_of(io::stdout()).map(|(width, _)| usize::from(width.0))?;
    io::stdout().is_terminal().then_some(width)
}
