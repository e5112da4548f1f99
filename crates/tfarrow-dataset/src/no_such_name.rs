//! The message about a name that does not exist.

/// Names that the message lists.
const LISTED_NAMES: usize = 20;

/// Returns the message that no name of `known` is `missing`, with the most similar one, and with
/// the first of them.
pub fn no_such_name(what: &str, missing: &str, known: &[&str]) -> String {
    let lower = missing.to_lowercase();
    let most = 1 + missing.chars().count() / 4;
    let mut near: Option<(usize, &str)> = None;
    for name in known {
        let distance = strsim::osa_distance(&lower, &name.to_lowercase());
        if distance <= most && near.is_none_or(|(least, _)| distance < least) {
            near = Some((distance, *name));
        }
    }
    let hint = match near {
        Some((_, name)) => format!(" (did you mean {name:?}?)"),
        None => String::new(),
    };
    let listed: Vec<_> = known
        .iter()
        .take(LISTED_NAMES)
        .map(|name| format!("{name:?}"))
        .collect();
    let more = match known.len().saturating_sub(LISTED_NAMES) {
        0 => String::new(),
        more => format!(" and {more} more"),
    };
    let listed = if listed.is_empty() {
        "none".to_owned()
    } else {
        listed.join(", ")
    };
    format!("there is no {what} {missing:?}{hint}; there are {listed}{more}")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_missing_name_is_reported_with_the_most_similar_one() {
        let message = no_such_name("column", "lable", &["id", "label", "LABEL2"]);
        assert_eq!(
            message,
            r#"there is no column "lable" (did you mean "label"?); there are "id", "label", "LABEL2""#
        );
        assert_eq!(
            no_such_name("column", "zzz", &["id"]),
            r#"there is no column "zzz"; there are "id""#
        );
        let many: Vec<_> = (0..30).map(|i| format!("c{i}")).collect();
        let many: Vec<_> = many.iter().map(String::as_str).collect();
        assert!(no_such_name("column", "other", &many).ends_with("\"c19\" and 10 more"));
    }
}
