//! Hints for functions that DataFusion does not have: SQL in place of functions of DuckDB, and
//! functions of a similar name.

use datafusion::{error::DataFusionError, prelude::SessionContext};
use tfarrow_report::{missing_function, text::nearest};

/// Functions of DuckDB, with the SQL that has their effect.
const DUCKDB: [(&str, &str); 31] = [
    ("arg_max", "first_value(x ORDER BY y DESC)"),
    ("arg_min", "first_value(x ORDER BY y)"),
    ("approx_count_distinct", "approx_distinct(x)"),
    ("datediff", "date_part('day', b - a)"),
    ("date_diff", "date_part('day', b - a)"),
    ("epoch", "date_part('epoch', t)"),
    (
        "epoch_ms",
        "to_timestamp_millis(x), or date_part('epoch', t) * 1000",
    ),
    (
        "glob",
        "FROM 'shards/*.tfrecord', with input_file_name() for the names",
    ),
    ("hash", "md5(x)"),
    (
        "len",
        "array_length(x) for lists, character_length(x) for text",
    ),
    ("list", "array_agg(x)"),
    (
        "list_aggregate",
        "unnest(x) in a subquery, with an aggregate",
    ),
    ("list_value", "make_array(x, y)"),
    ("max_by", "first_value(x ORDER BY y DESC)"),
    ("min_by", "first_value(x ORDER BY y)"),
    (
        "mode",
        "SELECT x, count(*) .. GROUP BY x ORDER BY 2 DESC LIMIT 1",
    ),
    ("parquet_scan", FILE),
    ("quantile", "quantile_cont(x, 0.5)"),
    ("read_csv", FILE),
    ("read_csv_auto", FILE),
    ("read_json", FILE),
    ("read_json_auto", FILE),
    ("read_ndjson", FILE),
    ("read_parquet", FILE),
    ("read_text", FILE),
    ("regexp_extract", "regexp_match(x, pattern)[1]"),
    ("regexp_matches", "regexp_like(x, pattern)"),
    ("strftime", "to_char(t, format)"),
    ("string_split", "string_to_array(x, separator)"),
    ("strptime", "to_timestamp(x, format)"),
    ("typeof", "arrow_typeof(x)"),
];

/// The SQL that reads files.
const FILE: &str = "FROM 'file', which needs no function";

/// A hint at the SQL in place of an unknown function, or at the function of the session with the
/// most similar name.
pub(super) fn hint(error: &DataFusionError, context: &SessionContext) -> Option<String> {
    let name = missing_function(error)?;
    let lower = name.to_lowercase();
    if let Some((_, instead)) = DUCKDB.iter().find(|(name, _)| *name == lower) {
        return Some(format!("write {instead}"));
    }
    nearest(name, functions(context)).map(|known| format!("did you mean {known}?"))
}

/// The names of the functions of a session.
fn functions(context: &SessionContext) -> Vec<String> {
    let state = context.state();
    let functions = state
        .scalar_functions()
        .keys()
        .chain(state.aggregate_functions().keys());
    let functions = functions
        .chain(state.window_functions().keys())
        .chain(state.higher_order_functions().keys());
    let mut names: Vec<_> = functions
        .chain(state.table_functions().keys())
        .cloned()
        .collect();
    names.sort();
    names
}

#[cfg(test)]
mod tests {
    use tfarrow_sql::{SessionOptions, session_context};

    use super::*;

    /// The functions that are called in a text: the words before parentheses.
    fn called(sql: &str) -> impl Iterator<Item = &str> {
        let last = |before: &'_ str| {
            before
                .rfind(|c: char| !c.is_alphanumeric() && c != '_')
                .map_or(0, |at| at + 1)
        };
        sql.match_indices('(')
            .map(move |(at, _)| &sql[last(&sql[..at])..at])
            .filter(|name| !name.is_empty())
    }

    #[test]
    fn functions_of_duckdb_are_missing_and_those_in_their_place_exist() {
        let known = functions(&session_context(SessionOptions::default()).unwrap());
        let is_known = |name: &str| name == "unnest" || known.iter().any(|known| known == name);
        for (name, instead) in DUCKDB {
            assert!(!is_known(name), "{name} exists");
            called(instead).for_each(|function| {
                assert!(is_known(function), "{name}: {function} does not exist")
            });
        }
    }
}
