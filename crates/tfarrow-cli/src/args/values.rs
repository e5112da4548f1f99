//! Values of options: names, sizes, limits.

use std::{iter, mem, str::FromStr};

use clap::builder::{PossibleValue, PossibleValuesParser, TypedValueParser};
use tfarrow_codec::{Limit, Limits, NamedValue, RecordType, UnknownName};
use tfarrow_convert::OutputCompression;

/// An option that may be left to the program.
pub(crate) type Auto<T> = Option<T>;

/// Parses an option whose values have names, and lists them in its help.
pub(super) fn named<T: NamedValue + FromStr<Err = UnknownName>>() -> impl TypedValueParser<Value = T>
{
    PossibleValuesParser::new(T::ALL.iter().copied().map(possible)).try_map(|name| name.parse())
}

/// Parses a type of records, or `auto`. Messages are left out, because `--message` names their
/// type.
pub(super) fn record_type() -> impl TypedValueParser<Value = Auto<RecordType>> {
    let auto = PossibleValue::new("auto").help("Detect the type from the records");
    PossibleValuesParser::new(iter::once(auto).chain(RecordType::SELF_DESCRIBED.map(possible)))
        .try_map(|name| {
            if name == "auto" {
                Ok(None)
            } else {
                name.parse().map(Some)
            }
        })
}

fn possible<T: NamedValue>(value: T) -> PossibleValue {
    // Scripts may write a name as SQL does.
    let alias = value
        .name()
        .contains('-')
        .then(|| value.name().replace('-', "_"));
    PossibleValue::new(value.name())
        .aliases(alias)
        .help(value.help())
}

/// The help of `--limit`, with the default of each limit.
pub(super) fn limits() -> String {
    let limits = Limits::default();
    let known = Limit::ALL.map(|limit| format!("{limit}={}", limits.get(limit)));
    format!(
        "Override a resource limit (repeatable), such as record-bytes=64MB. Defaults: {}",
        known.join(", ")
    )
}

/// The help of `--compression`, with the formats and the levels of each compression.
pub(super) fn compressions() -> String {
    let mut text =
        "Compression of the output, and its level, such as zstd:9 [default: zstd for Parquet, else none]\n\n\
                    Possible values:"
            .to_owned();
    for compression in OutputCompression::ALL {
        let levels = compression.levels();
        let levels = levels.map_or(String::new(), |levels| {
            format!(", levels {} to {}", levels.start(), levels.end())
        });
        text.push_str(&format!(
            "\n- {}: {}{levels}",
            compression.name(),
            compression.help()
        ));
    }
    text
}

/// A limit and its value: a number, or a size.
pub(super) fn limit(text: &str) -> Result<(Limit, usize), String> {
    let (name, value) = text.split_once('=').ok_or_else(wrong_limit)?;
    let limit = name.trim().parse().map_err(|_| wrong_limit())?;
    Ok((
        limit,
        usize::try_from(size(value.trim())?).unwrap_or(usize::MAX),
    ))
}

/// The error of a text that is no limit.
fn wrong_limit() -> String {
    format!(
        "expected NAME=N, such as record-bytes=64MB; there are {}",
        Limit::names()
    )
}

/// Names of columns or features, and globs of them.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct NameList(Vec<String>);

impl NameList {
    /// The names of all lists.
    pub(crate) fn join(lists: &[Self]) -> Vec<String> {
        lists.iter().flat_map(|list| &list.0).cloned().collect()
    }
}

/// Names that are separated by commas. A comma in the braces of a glob separates none.
pub(super) fn names(text: &str) -> Result<NameList, String> {
    let mut names = Vec::new();
    let mut name = String::new();
    let mut depth = 0usize;
    for c in text.chars() {
        match c {
            ',' if depth == 0 => {
                names.push(mem::take(&mut name));
                continue;
            }
            '{' => depth += 1,
            '}' => depth = depth.saturating_sub(1),
            _ => {}
        }
        name.push(c);
    }
    names.push(name);
    if names.iter().any(String::is_empty) {
        return Err("expected names that are separated by commas".to_owned());
    }
    Ok(NameList(names))
}

/// Names of features, which are no globs.
pub(super) fn features(text: &str) -> Result<NameList, String> {
    let names: Vec<_> = text.split(',').map(str::to_owned).collect();
    if names.iter().any(String::is_empty) {
        return Err("expected names of features that are separated by commas".to_owned());
    }
    Ok(NameList(names))
}

/// An allowed difference of floats.
pub(super) fn tolerance(text: &str) -> Result<f64, String> {
    let number = text.parse().ok().filter(|number: &f64| *number >= 0.0);
    number.ok_or_else(|| "expected a number from 0, such as 1e-6".to_owned())
}

pub(super) fn option(text: &str) -> Result<(String, String), String> {
    let (name, value) = text
        .split_once('=')
        .ok_or("expected NAME=VALUE, such as layout=list")?;
    Ok((name.trim().to_owned(), value.trim().to_owned()))
}

pub(super) fn share(text: &str) -> Result<f64, String> {
    let share = text
        .parse()
        .ok()
        .filter(|share| (0.0..=1.0).contains(share));
    share.ok_or_else(|| "expected a number from 0 to 1".to_owned())
}

/// Parses a size in bytes: a number, and a unit of 1000s (kB, MB, GB, TB) or of 1024s (KiB, MiB,
/// GiB, TiB).
///
/// # Errors
/// The text is no size.
pub fn size(text: &str) -> Result<u64, String> {
    let wrong = || format!("expected a size such as 512MB or 1GiB, found {text:?}");
    let digits = text
        .find(|c: char| !c.is_ascii_digit() && c != '.')
        .unwrap_or(text.len());
    let (number, unit) = text.split_at(digits);
    let number: f64 = number.parse().map_err(|_| wrong())?;
    let unit: f64 = match unit.trim().to_ascii_lowercase().as_str() {
        "" | "b" => 1.0,
        "k" | "kb" => 1e3,
        "m" | "mb" => 1e6,
        "g" | "gb" => 1e9,
        "t" | "tb" => 1e12,
        "kib" => 1024.0,
        "mib" => 1024.0 * 1024.0,
        "gib" => 1024.0 * 1024.0 * 1024.0,
        "tib" => 1024.0 * 1024.0 * 1024.0 * 1024.0,
        _ => return Err(wrong()),
    };
    let bytes = number * unit;
    if bytes >= 1.0 {
        Ok(bytes as u64)
    } else {
        Err(wrong())
    }
}

/// Parses `HOST:PORT`.
///
/// # Errors
/// The text has no host, or no port.
pub fn host_and_port(text: &str) -> Result<(String, u16), String> {
    if let Some((host, port)) = text.rsplit_once(':')
        && let Ok(port) = port.parse::<u16>()
        && port != 0
        && !host.is_empty()
    {
        return Ok((host.to_owned(), port));
    }
    Err("expected HOST:PORT".to_owned())
}

/// Checks the address of a scheduler.
pub(super) fn scheduler(text: &str) -> Result<String, String> {
    host_and_port(text).map(|_| text.to_owned())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_are_separated_by_commas_outside_of_braces() {
        let check = |text, expect: &[&str]| {
            assert_eq!(
                names(text),
                Ok(NameList(expect.iter().map(ToString::to_string).collect()))
            );
        };
        check("a", &["a"]);
        check("a b,image/{x,y},c", &["a b", "image/{x,y}", "c"]);
        check("}a,b", &["}a", "b"]);
        assert!(names("").is_err() && names("a,").is_err() && names(",a").is_err());
    }

    #[test]
    fn addresses_have_a_port() {
        assert_eq!(host_and_port("a.b:50"), Ok(("a.b".to_owned(), 50)));
        assert_eq!(host_and_port("[::1]:50"), Ok(("[::1]".to_owned(), 50)));
        for wrong in ["", "a", ":50", "a:", "a:0", "a:70000", "a:b"] {
            assert!(host_and_port(wrong).is_err(), "{wrong:?}");
        }
    }

    #[test]
    fn sizes_have_units() {
        assert_eq!(size("512MB"), Ok(512_000_000));
        assert_eq!(size("1.5 GiB"), Ok(3 << 29));
        assert_eq!(size("100"), Ok(100));
        for wrong in ["", "MB", "12 apples", "0", "-1", "1.2.3"] {
            assert!(size(wrong).is_err(), "{wrong:?}");
        }
    }
}
