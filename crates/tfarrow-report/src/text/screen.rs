//! The layout of texts for people: the width of tables, and styles.

use anstyle::Style as Colour;

/// The style of errors and anomalies.
pub const BAD: Colour = anstyle::AnsiColor::Red.on_default().bold();
/// The style of success.
pub const GOOD: Colour = anstyle::AnsiColor::Green.on_default();
/// The style of nulls.
pub const FAINT: Colour = Colour::new().dimmed();
/// The style of headings.
pub const TITLE: Colour = Colour::new().bold();

/// What a text is made for.
#[derive(Clone, Copy, Debug)]
pub struct Screen {
    /// The number of characters of a line that a table may take; `None` for any number.
    pub width: Option<usize>,
    has_styles: bool,
}

impl Screen {
    /// A screen of this width that shows styles or not.
    pub const fn new(width: Option<usize>, has_styles: bool) -> Self {
        Self { width, has_styles }
    }

    /// A text without styles, whose tables have lines of up to `width` characters.
    pub const fn plain(width: Option<usize>) -> Self {
        Self::new(width, false)
    }

    /// A screen that is narrower or wider, if it has a width.
    pub fn with_width(self, width: Option<usize>) -> Self {
        Self {
            width: self.width.map(|own| width.unwrap_or(own)),
            ..self
        }
    }

    /// The screen, with room for lines of any number of characters.
    pub fn unbounded(self) -> Self {
        Self {
            width: None,
            ..self
        }
    }

    /// Text in a style, where the screen has styles.
    pub fn coloured(self, colour: Colour, text: &str) -> String {
        if self.has_styles {
            format!("{colour}{text}{colour:#}")
        } else {
            text.to_owned()
        }
    }
}
