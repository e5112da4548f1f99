//! The commands of the prompt, which begin with a backslash.

/// The list of all commands.
pub(super) const HELP: &str = "\
A statement ends with ; and may span several lines. Files are tables: SELECT * FROM 'shards/*.tfrecord' LIMIT 3;
  \\d             list the tables made with CREATE
  \\d NAME        list the columns of a table, or of files: \\d 'shards/'
  \\i FILE        run the statements of a file
  \\x             toggle one line a value, for rows of many columns
  \\format NAME   table, line, markdown, html, csv, tsv, json or ndjson
  \\rows N        show N rows of a table, half of them the last ones; 0 for all
  \\timing        toggle query timing
  \\?             show this help
  \\q             quit, as does Ctrl-D
Ctrl-C cancels a query. Tab completes words, and paths in quotes.";

/// An input of the prompt.
#[derive(Debug, PartialEq, Eq)]
pub(super) enum Command<'a> {
    /// `\q`.
    Quit,
    /// `\?`.
    Help,
    /// `\timing`.
    Timing,
    /// `\x`.
    Lines,
    /// `\format`, with a name or without.
    Format(&'a str),
    /// `\rows`, with a number or without.
    Rows(&'a str),
    /// `\d`.
    Tables,
    /// `\d` of a table.
    Columns(&'a str),
    /// `\i` of a file.
    File(&'a str),
    /// A command that there is not.
    Unknown(&'a str),
    /// Statements.
    Statements(&'a str),
}

impl<'a> Command<'a> {
    /// The command of an input without spaces around it.
    pub(super) fn of(input: &'a str) -> Self {
        let word = input.trim_end_matches(';').trim_end();
        if matches!(word, "quit" | "exit") {
            return Self::Quit;
        }
        if word == "help" {
            return Self::Help;
        }
        if !word.starts_with('\\') {
            return Self::Statements(input);
        }
        let (name, argument) = word.split_once(char::is_whitespace).unwrap_or((word, ""));
        let argument = argument.trim();
        match (name, argument) {
            ("\\q", "") => Self::Quit,
            ("\\?" | "\\h", "") => Self::Help,
            ("\\timing", "") => Self::Timing,
            ("\\x", "") => Self::Lines,
            ("\\format", name) => Self::Format(name),
            ("\\rows", number) => Self::Rows(number),
            ("\\d", "") => Self::Tables,
            ("\\d", name) => Self::Columns(name),
            ("\\i", file) if !file.is_empty() => Self::File(file.trim_matches('\'')),
            _ => Self::Unknown(word),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn commands_begin_with_a_backslash() {
        for (input, command) in [
            ("\\q", Command::Quit),
            ("exit;", Command::Quit),
            ("\\x ;", Command::Lines),
            ("\\d", Command::Tables),
            ("\\d  'a b/';", Command::Columns("'a b/'")),
            ("\\i 'a b.sql'", Command::File("a b.sql")),
            ("\\i", Command::Unknown("\\i")),
            ("\\q now", Command::Unknown("\\q now")),
            ("\\format csv", Command::Format("csv")),
            ("\\rows", Command::Rows("")),
            ("SELECT 1;", Command::Statements("SELECT 1;")),
        ] {
            assert_eq!(Command::of(input), command, "{input}");
        }
    }

    #[test]
    fn the_help_has_every_command() {
        for line in HELP.lines().filter_map(|line| line.strip_prefix("  \\")) {
            let name = line.split_whitespace().next().unwrap_or_default();
            let command = format!("\\{name} x");
            let bare = format!("\\{name}");
            let is_known = |input: &str| !matches!(Command::of(input), Command::Unknown(_));
            assert!(is_known(&command) || is_known(&bare), "{name}");
        }
    }
}
