//! Defaults of options that the user sets: in a configuration file, and in variables of the
//! environment.
//!
//! ```text
//! on-error = "skip"              TFARROW_ON_ERROR=skip           for all commands that have the option
//! [sql]
//! memory-limit = "4GB"           TFARROW_SQL_MEMORY_LIMIT=4GB    for one command
//! ```
//!
//! A variable has precedence over the file, a value for one command over one for all, and the
//! command line over both, also with an option that excludes the one of the default. An option for
//! all commands is ignored where a command has it with other values, such as `format`.

use std::{
    collections::{HashMap, HashSet},
    env,
    ffi::OsString,
    fs,
    path::PathBuf,
};

use clap::{Arg, ArgAction, ArgMatches, Command, Id, parser::ValueSource};
use tfarrow_report::text::similar;
use toml::{Table, Value};

use crate::error::Usage;

/// The variable with the path of the configuration file. An empty value is no file.
const FILE: &str = "TFARROW_CONFIG";
/// The beginning of the names of variables.
const PREFIX: &str = "TFARROW";

/// The defaults that a user has set.
#[derive(Debug, Default)]
pub(crate) struct Defaults {
    /// The configuration file, if there is one.
    file: Option<PathBuf>,
    table: Table,
    /// The variables whose names begin with [`PREFIX`].
    variables: HashMap<String, OsString>,
}

/// A default of an option.
struct Found {
    values: Vec<String>,
    /// The variable, or the place in the file.
    origin: String,
    /// Whether it is a default of one command, and not of all that have the option.
    is_of_command: bool,
}

impl Defaults {
    /// Reads the configuration file and the environment.
    ///
    /// # Errors
    /// The configuration file cannot be read, or is not valid.
    pub(crate) fn read() -> Result<Self, Usage> {
        let variables =
            env::vars_os().filter_map(|(name, value)| Some((name.into_string().ok()?, value)));
        let variables = variables
            .filter(|(name, _)| name.starts_with(PREFIX))
            .collect();
        let Some((file, is_required)) = file() else {
            return Ok(Self {
                variables,
                ..Self::default()
            });
        };
        let wrong = |why: String| Usage(format!("{}: {why}", file.display()));
        let text = match fs::read_to_string(&file) {
            Ok(text) => text,
            Err(error) if error.kind() == std::io::ErrorKind::NotFound && !is_required => {
                return Ok(Self {
                    variables,
                    ..Self::default()
                });
            }
            Err(error) => return Err(wrong(error.to_string())),
        };
        let table = text
            .parse()
            .map_err(|error: toml::de::Error| wrong(error.to_string()))?;
        Ok(Self {
            file: Some(file),
            table,
            variables,
        })
    }

    /// The configuration file that was read.
    pub(crate) fn file(&self) -> Option<&PathBuf> {
        self.file.as_ref()
    }

    /// Sets the defaults of the options of all commands, except those of `excluded`.
    ///
    /// # Errors
    /// The configuration has an unknown name, or a value is not valid.
    pub(crate) fn apply(&self, mut program: Command, excluded: &[Id]) -> Result<Command, Usage> {
        // Options of all commands are options of each command, so that each can have a default of
        // its own.
        let globals: Vec<_> = program
            .get_arguments()
            .filter(|arg| arg.is_global_set())
            .cloned()
            .collect();
        program = program.mut_subcommands(|command| command.args(&globals));
        self.check_names(&program)?;
        let mut accepted = HashSet::new();
        let mut refused = Vec::new();
        let names: Vec<_> = program
            .get_subcommands()
            .map(|command| command.get_name().to_owned())
            .collect();
        for name in names {
            let Some(command) = program.find_subcommand(&name) else {
                continue;
            };
            let mut set = Vec::new();
            for arg in options(command) {
                let Some(found) = self.find(&name, arg) else {
                    continue;
                };
                match found.check(arg) {
                    Ok(()) => {
                        accepted.insert(found.origin);
                        if !excluded.contains(arg.get_id()) {
                            set.push((arg.get_id().clone(), found.values));
                        }
                    }
                    Err(error) if found.is_of_command => return Err(error),
                    Err(error) => refused.push((found.origin, error)),
                }
            }
            program = program.mut_subcommand(name, |command| {
                set.into_iter().fold(command, |command, (id, values)| {
                    command.mut_arg(id, |arg| arg.required(false).default_values(values))
                })
            });
        }
        // A value for all commands may be one for some of them.
        match refused
            .into_iter()
            .find(|(origin, _)| !accepted.contains(origin))
        {
            Some((_, error)) => Err(error),
            None => Ok(program),
        }
    }

    /// The default of an option of a command, if there is one.
    fn find(&self, command: &str, arg: &Arg) -> Option<Found> {
        let option = arg.get_long()?;
        let of_command = self.table.get(command).and_then(Value::as_table);
        self.variable(arg, variable_name(&[command, option]), true)
            .or_else(|| self.entry(arg, of_command?, format!("[{command}] {option}"), true))
            .or_else(|| self.variable(arg, variable_name(&[option]), false))
            .or_else(|| self.entry(arg, &self.table, option.to_owned(), false))
    }

    /// The default of an option in a variable.
    fn variable(&self, arg: &Arg, name: String, is_of_command: bool) -> Option<Found> {
        // An empty value is that of an unset variable.
        let value = self
            .variables
            .get(&name)?
            .to_str()
            .filter(|value| !value.is_empty())?;
        let values = match is_list(arg) {
            true => value
                .split(',')
                .map(|value| value.trim().to_owned())
                .collect(),
            false => vec![value.to_owned()],
        };
        Some(Found {
            values: known_to(arg, values),
            origin: name,
            is_of_command,
        })
    }

    /// The default of an option in a table of the file, in which it has this place.
    fn entry(&self, arg: &Arg, table: &Table, place: String, is_of_command: bool) -> Option<Found> {
        let values = values(table.get(arg.get_long()?)?)?;
        let file = self
            .file
            .as_ref()
            .map_or_else(String::new, |file| format!("{}: ", file.display()));
        Some(Found {
            values: known_to(arg, values),
            origin: format!("{file}{place}"),
            is_of_command,
        })
    }

    /// Checks that all names of the configuration file are those of commands and options.
    fn check_names(&self, program: &Command) -> Result<(), Usage> {
        let file = self
            .file
            .as_ref()
            .map_or_else(String::new, |file| file.display().to_string());
        let all: Vec<_> = program.get_subcommands().flat_map(long_names).collect();
        for (name, value) in &self.table {
            let (known, names) = match value.as_table() {
                None => (&all, vec![(name, value)]),
                Some(entries) => {
                    let commands = program
                        .get_subcommands()
                        .map(|command| command.get_name().to_owned());
                    let Some(command) = program.find_subcommand(name) else {
                        let hint = similar(name, commands.collect::<Vec<_>>());
                        return Err(Usage(format!("{file}: [{name}] is not a command{hint}")));
                    };
                    (&long_names(command), entries.iter().collect())
                }
            };
            for (option, value) in names {
                if !known.contains(option) {
                    let hint = similar(option, known.clone());
                    return Err(Usage(format!("{file}: {option} is not an option{hint}")));
                }
                if values(value).is_none() {
                    return Err(Usage(format!(
                        "{file}: {option}: found {value}, expected a text, a number or a list of these"
                    )));
                }
            }
        }
        Ok(())
    }
}

impl Found {
    /// Checks that the option accepts the values.
    fn check(&self, arg: &Arg) -> Result<(), Usage> {
        if accepts(arg, &self.values) {
            return Ok(());
        }
        let option = arg.get_long().unwrap_or_default();
        let possible: Vec<_> = arg
            .get_possible_values()
            .iter()
            .map(|value| value.get_name().to_owned())
            .collect();
        let expected = match possible.is_empty() {
            true => String::new(),
            false => format!(", expected {}", possible.join(", ")),
        };
        Err(Usage(format!(
            "{}: {} is not valid for --{option}{expected}",
            self.origin,
            self.values.join(", ")
        )))
    }
}

/// The options of the command of a command line that an option of the command line excludes, so
/// that they can have no default.
pub(crate) fn excluded(program: &Command, matches: &ArgMatches) -> Vec<Id> {
    let Some((name, matches)) = matches.subcommand() else {
        return Vec::new();
    };
    let Some(command) = program.find_subcommand(name) else {
        return Vec::new();
    };
    let mut given = Vec::new();
    for arg in options(command) {
        let source = matches.value_source(arg.get_id().as_str());
        if source == Some(ValueSource::CommandLine) {
            given.push(arg);
        }
    }
    let mut excluded = Vec::new();
    for arg in options(command) {
        // One of two options declares that they exclude each other.
        let is_excluded = given
            .iter()
            .any(|given| excludes(command, given, arg) || excludes(command, arg, given));
        if is_excluded {
            excluded.push(arg.get_id().clone());
        }
    }
    excluded
}

/// Whether an option of a command declares that it excludes another one.
fn excludes(command: &Command, by: &Arg, other: &Arg) -> bool {
    command.get_arg_conflicts_with(by).contains(&other)
}

/// The configuration file, and whether it has to exist.
fn file() -> Option<(PathBuf, bool)> {
    match env::var_os(FILE) {
        Some(path) => (!path.is_empty()).then(|| (path.into(), true)),
        None => Some((dirs::config_dir()?.join("tfarrow/config.toml"), false)),
    }
}

/// The options that may have a default.
fn options(command: &Command) -> impl Iterator<Item = &Arg> {
    command
        .get_arguments()
        .filter(|arg| arg.get_long().is_some())
}

/// The names of the options that may have a default.
fn long_names(command: &Command) -> Vec<String> {
    options(command)
        .filter_map(|arg| arg.get_long().map(str::to_owned))
        .collect()
}

/// The name of a variable, such as `TFARROW_SQL_MEMORY_LIMIT`.
fn variable_name(parts: &[&str]) -> String {
    let name: Vec<_> = [PREFIX]
        .iter()
        .chain(parts)
        .map(|part| part.replace('-', "_").to_ascii_uppercase())
        .collect();
    name.join("_")
}

fn takes_value(arg: &Arg) -> bool {
    matches!(arg.get_action(), ArgAction::Set | ArgAction::Append)
}

/// The values as the option knows them: a flag is `true` or `false`, for which 1 and 0 may stand.
fn known_to(arg: &Arg, mut values: Vec<String>) -> Vec<String> {
    if takes_value(arg) {
        return values;
    }
    for value in &mut values {
        match value.as_str() {
            "1" => *value = "true".to_owned(),
            "0" => *value = "false".to_owned(),
            _ => {}
        }
    }
    values
}

fn is_list(arg: &Arg) -> bool {
    matches!(arg.get_action(), ArgAction::Append)
}

/// The texts of a value of the configuration file; `None` for a value that no option has.
fn values(value: &Value) -> Option<Vec<String>> {
    match value {
        Value::Array(values) => values.iter().map(text).collect(),
        value => Some(vec![text(value)?]),
    }
}

fn text(value: &Value) -> Option<String> {
    match value {
        Value::String(text) => Some(text.clone()),
        Value::Integer(_) | Value::Float(_) | Value::Boolean(_) => Some(value.to_string()),
        Value::Datetime(_) | Value::Array(_) | Value::Table(_) => None,
    }
}

/// Whether an option accepts these values on the command line.
fn accepts(arg: &Arg, values: &[String]) -> bool {
    if !takes_value(arg) {
        return values
            .iter()
            .all(|value| matches!(value.as_str(), "true" | "false"));
    }
    let Some(option) = arg.get_long() else {
        return false;
    };
    // The relations of the option to other options are left out, because the command has this
    // option only.
    let alone = Arg::new("value")
        .long(option.to_owned())
        .action(arg.get_action().clone());
    let alone = alone
        .value_parser(arg.get_value_parser().clone())
        .allow_hyphen_values(true);
    let line = values.iter().map(|value| format!("--{option}={value}"));
    Command::new("defaults")
        .no_binary_name(true)
        .arg(alone)
        .try_get_matches_from(line)
        .is_ok()
}
