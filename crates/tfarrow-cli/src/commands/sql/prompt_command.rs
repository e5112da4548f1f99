//! The commands of the prompt, which begin with a backslash.

/// The list of all commands.
pub(super) const HELP: &str = "\
A statement ends with ; and may span several lines. Files are tables: SELECT * FROM 'shards/*.tfrecord' LIMIT 3;
  \\d             list the tables made with CREATE
  \\d NAME        list the columns of a table, or of files: \\d 'shards/'
  \\i FILE        run the statements of a file
  \\o FILE        write the next results to a file; \\o completes it
  \\e             edit the statement in $EDITOR, or the last one
  \\x             toggle one line a value, for rows of many columns
  \\format NAME   select the output format; \\format lists them
  \\rows N        show N rows of a table, half of them the last ones; 0 for all
  \\width N       fit tables to N characters; 0 for the width of the terminal
  \\pager         toggle the pager for results that are longer than the screen
  \\timing        toggle query timing
  \\?             show this help
  \\q             quit, as does Ctrl-D
Ctrl-C cancels a query. Tab completes words, paths in quotes, and columns after FROM.";

/// An input of the prompt.
#[derive(Debug, PartialEq, Eq)]
pub(super) enum PromptCommand<'a> {
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
    /// `\width`, with a number or without.
    Width(&'a str),
    /// `\pager`.
    Pager,
    /// `\e`.
    Edit,
    /// `\d`.
    Tables,
    /// `\d` of a table.
    Columns(&'a str),
    /// `\i` of a file.
    File(&'a str),
    /// `\o`, with a file or without.
    Output(&'a str),
    /// A command of the shells of DuckDB and SQLite, which begins with a dot.
    Dotted(&'a str),
    /// A command that there is not.
    Unknown(&'a str),
    /// Statements.
    Statements(&'a str),
}

impl<'a> PromptCommand<'a> {
    /// The command of an input without spaces around it.
    pub(super) fn of(input: &'a str) -> Self {
        let word = input.trim_end_matches(';').trim_end();
        if ["quit", "exit"]
            .iter()
            .any(|quit| word.eq_ignore_ascii_case(quit))
        {
            return Self::Quit;
        }
        if word.eq_ignore_ascii_case("help") {
            return Self::Help;
        }
        if word.starts_with('.') {
            return Self::Dotted(word);
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
            ("\\width", number) => Self::Width(number),
            ("\\pager", "") => Self::Pager,
            ("\\e", "") => Self::Edit,
            ("\\d", "") => Self::Tables,
            ("\\d", name) => Self::Columns(name),
            ("\\i", file) if !file.is_empty() => Self::File(file.trim_matches('\'')),
            ("\\o", file) => Self::Output(file.trim_matches('\'')),
            _ => Self::Unknown(word),
        }
    }
}

/// The commands of the shells of DuckDB and SQLite, those of the prompt with their effect, and
/// whether these take the same argument.
const DOTTED: [(&str, &str, bool); 14] = [
    (".columns", "\\d", true),
    (".edit", "\\e", false),
    (".exit", "\\q", false),
    (".help", "\\?", false),
    (".maxrows", "\\rows", true),
    (".mode", "\\format", true),
    (".once", "\\o", true),
    (".output", "\\o", true),
    (".quit", "\\q", false),
    (".read", "\\i", true),
    (".schema", "\\d", true),
    (".tables", "\\d", false),
    (".timer", "\\timing", false),
    (".width", "\\width", true),
];

/// The answer to a command with a dot: the command of the prompt.
pub(super) fn counterpart(dotted: &str) -> String {
    let (name, argument) = dotted
        .split_once(char::is_whitespace)
        .unwrap_or((dotted, ""));
    match DOTTED.iter().find(|(dotted, ..)| *dotted == name) {
        Some((_, command, true)) if !argument.is_empty() => {
            format!("write {command} {}; \\? for help", argument.trim())
        }
        Some((_, command, _)) => format!("write {command}; \\? for help"),
        None => format!(
            "{dotted} is not a known command; commands begin with a backslash, \\? for help"
        ),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn commands_with_a_dot_have_counterparts() {
        for (dotted, command, _) in DOTTED {
            assert_eq!(PromptCommand::of(dotted), PromptCommand::Dotted(dotted));
            assert!(HELP.contains(&format!("\n  {command} ")), "{command}");
        }
        assert_eq!(counterpart(".schema  t"), "write \\d t; \\? for help");
        assert_eq!(counterpart(".timer on"), "write \\timing; \\? for help");
        assert!(counterpart(".open x").starts_with(".open x is not a known command"));
    }

    #[test]
    fn commands_begin_with_a_backslash() {
        for (input, command) in [
            ("\\q", PromptCommand::Quit),
            ("exit;", PromptCommand::Quit),
            ("QUIT", PromptCommand::Quit),
            ("\\x ;", PromptCommand::Lines),
            ("\\e", PromptCommand::Edit),
            ("\\width 80", PromptCommand::Width("80")),
            ("\\d", PromptCommand::Tables),
            ("\\d  'a b/';", PromptCommand::Columns("'a b/'")),
            ("\\i 'a b.sql'", PromptCommand::File("a b.sql")),
            ("\\i", PromptCommand::Unknown("\\i")),
            ("\\o", PromptCommand::Output("")),
            ("\\o 'a b.csv'", PromptCommand::Output("a b.csv")),
            ("\\q now", PromptCommand::Unknown("\\q now")),
            ("\\format csv", PromptCommand::Format("csv")),
            ("\\rows", PromptCommand::Rows("")),
            ("SELECT 1;", PromptCommand::Statements("SELECT 1;")),
        ] {
            assert_eq!(PromptCommand::of(input), command, "{input}");
        }
    }

    #[test]
    fn the_help_has_every_command() {
        for line in HELP.lines().filter_map(|line| line.strip_prefix("  \\")) {
            let name = line.split_whitespace().next().unwrap_or_default();
            let command = format!("\\{name} x");
            let bare = format!("\\{name}");
            let is_known =
                |input: &str| !matches!(PromptCommand::of(input), PromptCommand::Unknown(_));
            assert!(is_known(&command) || is_known(&bare), "{name}");
        }
    }
}
