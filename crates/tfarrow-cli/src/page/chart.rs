//! Charts as SVG: bars alone, whose numbers stand in their titles.

use tfarrow_stats::Bucket;

use super::html::text;
use crate::output::{count, short};

const WIDTH: f64 = 140.0;
const HEIGHT: f64 = 32.0;

/// A bar: how much of the highest, and what it is.
type Bar = (f64, String);

/// The histogram of numbers.
pub(super) fn histogram(buckets: &[Bucket], class: &str) -> String {
    let name = |bucket: &Bucket| {
        let range = if bucket.low == bucket.high {
            short(bucket.low)
        } else {
            format!("{} to {}", short(bucket.low), short(bucket.high))
        };
        format!("{range}: {}", count(bucket.count.round() as u64))
    };
    bars(&buckets.iter().map(|bucket| (bucket.count, name(bucket))).collect::<Vec<_>>(), class)
}

/// Bars side by side; the highest is as high as the chart.
pub(super) fn bars(bars: &[Bar], class: &str) -> String {
    let highest = bars.iter().map(|(count, _)| *count).fold(0.0, f64::max);
    if highest <= 0.0 {
        return String::new();
    }
    let width = WIDTH / bars.len() as f64;
    let mut out =
        format!("<svg class=\"{class}\" viewBox=\"0 0 {WIDTH} {HEIGHT}\" role=\"img\" aria-label=\"histogram\">");
    for (index, (count, name)) in bars.iter().enumerate() {
        // What is there can be seen.
        let height = if *count > 0.0 { (count / highest * HEIGHT).max(1.0) } else { 0.0 };
        let (x, y) = (index as f64 * width, HEIGHT - height);
        out.push_str(&format!(
            "<rect x=\"{x:.1}\" y=\"{y:.1}\" width=\"{:.1}\" height=\"{height:.1}\"><title>{}</title></rect>",
            (width - 1.0).max(0.5),
            text(name),
        ));
    }
    out.push_str("</svg>");
    out
}
