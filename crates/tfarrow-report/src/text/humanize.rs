//! Numbers, sizes and byte strings as short text for people.

use std::fmt::Write;

use indicatif::HumanCount;
use tfarrow_stats::{ImageStatistics, NumberValue, TopValue, ValueFormat};

/// The format and the size of a byte string, given its beginning and its length: `<JPEG 112 kB>`.
pub fn blob(bytes: &[u8], length: usize) -> String {
    format!(
        "<{} {}>",
        binary_format(ValueFormat::of(bytes, false)),
        size(length as u64)
    )
}

fn binary_format(format: ValueFormat) -> &'static str {
    match format {
        ValueFormat::Other | ValueFormat::Empty => "bytes",
        format => format.name(),
    }
}

/// A frequent value: text, or the digits of a short binary value, or the format and the size of a
/// long one. Control characters are not escaped.
pub fn frequent(top: &TopValue) -> String {
    const DIGITS: u64 = 8;
    if let Some(text) = top.text() {
        return text.to_owned();
    }
    let format = binary_format(top.format());
    match top.length {
        1..=DIGITS => top.value.iter().fold("0x".to_owned(), |digits, byte| {
            format!("{digits}{byte:02x}")
        }),
        length => format!("<{format} {}>", size(length)),
    }
}

/// A number of bytes in two or three digits: `98 B`, `3.4 kB`, `112 kB`. (`indicatif::DecimalBytes`
/// always has two decimals.)
pub fn size(bytes: u64) -> String {
    const UNITS: [&str; 6] = ["kB", "MB", "GB", "TB", "PB", "EB"];
    if bytes < 1000 {
        return format!("{bytes} B");
    }
    let mut value = bytes as f64 / 1000.0;
    let mut units = UNITS.iter();
    let mut unit = units.next().copied().unwrap_or_default();
    // A value that would be rounded to 1000 has the next unit.
    while value >= 999.5
        && let Some(next) = units.next()
    {
        value /= 1000.0;
        unit = next;
    }
    let digits = usize::from(value < 9.95);
    format!("{value:.digits$} {unit}")
}

/// A number with separators of thousands: `1,948`.
pub fn count(number: u64) -> String {
    HumanCount(number).to_string()
}

/// `part` of `whole` in percent; `100 %` only where they are equal.
pub fn percent(part: u64, whole: u64) -> String {
    let percent = if whole == 0 {
        100.0
    } else {
        part as f64 * 100.0 / whole as f64
    };
    match percent {
        _ if part == whole => "100 %".to_owned(),
        percent if percent > 99.9 => "99.9 %".to_owned(),
        percent => format!("{percent:.1} %"),
    }
}

/// A number and a noun: `1 file`, `1,000 files`.
pub fn plural(number: u64, word: &str) -> String {
    format!(
        "{} {word}{}",
        count(number),
        if number == 1 { "" } else { "s" }
    )
}

/// The range of image sizes in pixels: `28×28`, or `32..640×24..480`.
pub fn image_sizes(images: ImageStatistics) -> Option<String> {
    let (narrowest, widest) = images.width?;
    let (lowest, highest) = images.height?;
    let width = range(narrowest.into(), widest.into());
    let height = range(lowest.into(), highest.into());
    Some(format!("{width}×{height}"))
}

/// A range of counts: `3`, or `1..1,000`.
pub fn range(fewest: u64, most: u64) -> String {
    if fewest == most {
        count(most)
    } else {
        format!("{}..{}", count(fewest), count(most))
    }
}

/// A number in few characters: an integer in full, another number in four digits.
pub fn short(number: f64) -> String {
    let size = number.abs();
    match number {
        _ if !number.is_finite() => number.to_string(),
        _ if number.fract() == 0.0 && size < 1e15 => signed(number as i64),
        _ if (999.95..1e6).contains(&size) => signed(number.round() as i64),
        _ if (1e-3..1e6).contains(&size) => {
            let digits = (3 - size.log10().floor() as i32).clamp(1, 6) as usize;
            format!("{number:.digits$}")
                .trim_end_matches('0')
                .trim_end_matches('.')
                .to_owned()
        }
        _ => format!("{number:.3e}"),
    }
}

/// A number of the data: an integer in full, another number in four digits.
pub fn number(value: NumberValue) -> String {
    match value {
        NumberValue::Int64(value) => signed(value),
        NumberValue::Float(value) => short(value),
    }
}

/// An integer with separators of thousands: `-1,948`.
fn signed(value: i64) -> String {
    format!(
        "{}{}",
        if value < 0 { "-" } else { "" },
        count(value.unsigned_abs())
    )
}

/// The first `chars` characters of a text, and its size; `None` where the text is not much longer.
pub fn shortened(text: &str, chars: usize) -> Option<String> {
    text.char_indices().nth(chars + 16)?;
    let end = text
        .char_indices()
        .nth(chars)
        .map_or(text.len(), |(i, _)| i);
    let mut short = text.get(..end).unwrap_or(text).to_owned();
    // Writing to a `String` cannot fail.
    let _ = write!(short, "… <{}>", size(text.len() as u64));
    Some(short)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn sizes_have_three_digits_at_most() {
        let cases = [
            (0, "0 B"),
            (999, "999 B"),
            (1000, "1.0 kB"),
            (3_400, "3.4 kB"),
            (112_345, "112 kB"),
        ];
        let large = [
            (999_600, "1.0 MB"),
            (9_960_000, "10 MB"),
            (u64::MAX, "18 EB"),
        ];
        for (bytes, said) in cases.into_iter().chain(large) {
            assert_eq!(size(bytes), said);
        }
        assert_eq!(
            ["0", "999", "1,000", "12,345,678"],
            [0, 999, 1000, 12_345_678]
                .map(count)
                .each_ref()
                .map(|s| &**s)
        );
    }

    #[test]
    fn numbers_are_short() {
        let cases = [
            (0.0, "0"),
            (-1_234_567.0, "-1,234,567"),
            (0.5, "0.5"),
            (3.24159, "3.242"),
            (1234.56, "1,235"),
        ];
        let thousands = [
            (-999.96, "-1,000"),
            (999.94, "999.9"),
            (123_456.7, "123,457"),
            (999_999.7, "1,000,000"),
        ];
        let odd = [
            (1e-7, "1.000e-7"),
            (1.5e20, "1.500e20"),
            (f64::NAN, "NaN"),
            (f64::NEG_INFINITY, "-inf"),
        ];
        for (number, said) in cases.into_iter().chain(thousands).chain(odd) {
            assert_eq!(short(number), said);
        }
        assert_eq!(
            number(NumberValue::Int64(i64::MIN)),
            "-9,223,372,036,854,775,808"
        );
    }

    #[test]
    fn frequent_binary_values_are_digits_or_formats() {
        let words = |value: &[u8]| {
            frequent(&TopValue {
                value: value.into(),
                length: value.len() as u64,
                hash: 0,
                count: 1.0,
            })
        };
        assert_eq!(words(b"Porto\n"), "Porto\n");
        assert_eq!(
            [&[0][..], &[3], b"a\x1b"].map(words),
            ["0x00", "0x03", "0x611b"]
        );
        assert_eq!(
            words(&[b"\xff\xd8\xff".as_slice(), &[0; 997]].concat()),
            "<JPEG 1.0 kB>"
        );
        let cut = TopValue {
            value: [1; 256].into(),
            length: 5_000,
            hash: 0,
            count: 1.0,
        };
        assert_eq!(
            [words(&[1; 256]), frequent(&cut)],
            ["<bytes 256 B>", "<bytes 5.0 kB>"]
        );
    }

    #[test]
    fn blobs_have_a_format_and_a_size() {
        assert_eq!(
            blob(b"\xff\xd8\xff\xe0", b"\xff\xd8\xff\xe0".len()),
            "<JPEG 4 B>"
        );
        assert_eq!(
            blob(b"RIFF....WEBPVP8 ", b"RIFF....WEBPVP8 ".len()),
            "<WebP 16 B>"
        );
        assert_eq!(blob(b"", b"".len()), "<bytes 0 B>");
    }

    #[test]
    fn only_long_texts_are_shortened() {
        assert_eq!(shortened("żółw żółw", 4), None);
        assert_eq!(shortened(&"ż".repeat(30), 4).unwrap(), "żżżż… <60 B>");
    }
}
