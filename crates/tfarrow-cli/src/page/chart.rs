//! Charts as SVG: bars alone. Two data sets that are held against each other have one scale, or bars would look alike that
//! are not.

use std::collections::HashMap;

use tfarrow_stats::{HistogramBucket, TopValue};

use super::html::{beginning, text};
use crate::output::{count, frequent, short};

const WIDTH: f64 = 140.0;
const HEIGHT: f64 = 32.0;
/// Parts of the width that a bar takes at least.
const NARROWEST: f64 = 40.0;
/// Bars of the most frequent values.
const BARS: usize = 20;
/// Characters of a value that its bar tells.
const CHARACTERS: usize = 60;

/// A bar: where it begins and how wide it is as parts of the width, how much, and what it is.
struct Bar {
    left: f64,
    width: f64,
    height: f64,
    name: String,
}

/// The histograms of numbers: bars are as high as values are dense.
pub(super) fn histograms(now: &[HistogramBucket], before: Option<&[HistogramBucket]>) -> String {
    let finite = |bucket: &&HistogramBucket| bucket.low.is_finite() && bucket.high.is_finite();
    let both = || now.iter().chain(before.unwrap_or_default()).filter(finite);
    let low = both().map(|bucket| bucket.low).fold(f64::INFINITY, f64::min);
    let high = both().map(|bucket| bucket.high).fold(f64::NEG_INFINITY, f64::max);
    // The range of the widest floats is more than a float holds.
    let range = (high / 2.0 - low / 2.0) * 2.0;
    let range = if range > 0.0 && range.is_finite() { range } else { 1.0 };
    let bars = |buckets: &[HistogramBucket]| {
        let all: f64 = buckets.iter().map(|bucket| bucket.count).sum();
        let bar = |bucket: &HistogramBucket| {
            let width = ((bucket.high - bucket.low) / range).max(1.0 / NARROWEST);
            let left = ((bucket.low - low) / range).min(1.0 - width);
            Bar { left, width, height: bucket.count / all / width, name: name_of(bucket) }
        };
        buckets.iter().filter(finite).map(bar).collect::<Vec<_>>()
    };
    let label = format!("histogram from {} to {}", short(low), short(high));
    draw(&label, bars(now), before.map(bars))
}

/// A bucket in words.
pub(super) fn name_of(bucket: &HistogramBucket) -> String {
    let range = match bucket.low == bucket.high {
        true => short(bucket.low),
        false => format!("{} to {}", short(bucket.low), short(bucket.high)),
    };
    format!("{range}: {}", count(bucket.count.round() as u64))
}

/// The most frequent values, of either data set, in one order.
pub(super) fn ranks(now: &[TopValue], before: Option<&[TopValue]>) -> String {
    let told = |top: &[TopValue]| top.iter().filter(|top| top.count > 1.0).take(BARS).cloned().collect::<Vec<_>>();
    let (now, before) = (told(now), before.map(told));
    let mut order: Vec<&[u8]> = now.iter().map(|top| &*top.value).collect();
    for top in before.iter().flatten() {
        if !order.contains(&&*top.value) {
            order.push(&top.value);
        }
    }
    let all = now.iter().chain(before.iter().flatten());
    let words: HashMap<&[u8], String> = all.map(|top| (&*top.value, frequent(top))).collect();
    let width = 1.0 / order.len().max(5) as f64;
    let bars = |top: &[TopValue]| {
        let all: f64 = top.iter().map(|top| top.count).sum();
        let counts: HashMap<&[u8], f64> = top.iter().map(|top| (&*top.value, top.count)).collect();
        let bar = |(index, value): (usize, &&[u8])| {
            let found = counts.get(value).copied().unwrap_or_default();
            let name = format!("{}: {}", words.get(value).map_or("", String::as_str), count(found.round() as u64));
            Bar { left: index as f64 * width, width, height: found / all.max(1.0), name }
        };
        order.iter().enumerate().map(bar).collect::<Vec<_>>()
    };
    draw("the most frequent values", bars(&now), before.as_deref().map(bars))
}

fn draw(label: &str, now: Vec<Bar>, before: Option<Vec<Bar>>) -> String {
    let highest = now.iter().chain(before.iter().flatten()).map(|bar| bar.height).fold(0.0, f64::max);
    if highest <= 0.0 {
        return String::new();
    }
    let mut out = String::new();
    for (class, bars) in [("now", Some(now)), ("before", before)] {
        let Some(bars) = bars else { continue };
        out.push_str(&format!(
            "<svg class=\"{class}\" viewBox=\"0 0 {WIDTH} {HEIGHT}\" role=\"img\" aria-label=\"{class}: {}\">",
            text(label)
        ));
        for Bar { left, width, height, name } in bars {
            // What is there can be seen.
            let height = if height > 0.0 { (height / highest * HEIGHT).max(1.0) } else { 0.0 };
            out.push_str(&format!(
                "<rect x=\"{:.1}\" y=\"{:.1}\" width=\"{:.1}\" height=\"{height:.1}\"><title>{}</title></rect>",
                left * WIDTH,
                HEIGHT - height,
                (width * WIDTH - 1.0).max(0.5),
                beginning(&name, CHARACTERS),
            ));
        }
        out.push_str("</svg>");
    }
    out
}
