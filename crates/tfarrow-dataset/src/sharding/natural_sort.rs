//! Natural sort order of paths: `part-10` after `part-9`.

use std::{cmp::Ordering, path::Path};

/// Compares paths by component, and sequences of digits in a component by their value.
pub(crate) fn compare(a: &Path, b: &Path) -> Ordering {
    let mut left = a.components();
    let mut right = b.components();
    loop {
        let order = match (left.next(), right.next()) {
            (None, None) => return a.cmp(b),
            (None, Some(_)) => Ordering::Less,
            (Some(_), None) => Ordering::Greater,
            (Some(a), Some(b)) => names(
                a.as_os_str().as_encoded_bytes(),
                b.as_os_str().as_encoded_bytes(),
            ),
        };
        if order != Ordering::Equal {
            return order;
        }
    }
}

/// Compares two names. Names that differ only in leading zeros of numbers are compared by their
/// bytes.
fn names(a: &[u8], b: &[u8]) -> Ordering {
    let mut left = a;
    let mut right = b;
    loop {
        let order = match (left.split_first(), right.split_first()) {
            (None, None) => return a.cmp(b),
            (Some((x, _)), Some((y, _))) if x.is_ascii_digit() && y.is_ascii_digit() => {
                let (number, rest) = digits(left);
                let (other, other_rest) = digits(right);
                (left, right) = (rest, other_rest);
                number
                    .len()
                    .cmp(&other.len())
                    .then_with(|| number.cmp(other))
            }
            (Some((x, rest)), Some((y, other_rest))) if x == y => {
                (left, right) = (rest, other_rest);
                Ordering::Equal
            }
            _ => left.cmp(right),
        };
        if order != Ordering::Equal {
            return order;
        }
    }
}

/// Splits the digits at the start of `bytes`, without leading zeros, from the rest.
fn digits(bytes: &[u8]) -> (&[u8], &[u8]) {
    let end = bytes
        .iter()
        .position(|byte| !byte.is_ascii_digit())
        .unwrap_or(bytes.len());
    let (digits, rest) = bytes.split_at(end);
    let zeros = digits
        .iter()
        .position(|digit| *digit != b'0')
        .unwrap_or(digits.len());
    (digits.get(zeros..).unwrap_or_default(), rest)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_are_compared_by_value() {
        let sorted = [
            "a",
            "a/x",
            "a/y",
            "a-0",
            "a1",
            "a01",
            "a2",
            "a10",
            "a10b2",
            "a10b10",
            "b",
            "part-9",
            "part-10",
            "part-10.gz",
            "part-99999999999999999999999",
            "part-100000000000000000000000",
        ];
        for (i, a) in sorted.iter().enumerate() {
            for (j, b) in sorted.iter().enumerate() {
                if !(*a == "a1" && *b == "a01" || *a == "a01" && *b == "a1") {
                    assert_eq!(
                        compare(Path::new(a), Path::new(b)),
                        i.cmp(&j),
                        "{a} and {b}"
                    );
                }
            }
        }
        assert_ne!(compare(Path::new("a1"), Path::new("a01")), Ordering::Equal);
    }
}
