//! Bar charts as SVG. The charts of two data sets share one scale, so that bars of equal height mean equal shares.

use std::collections::HashMap;

use maud::{Markup, html};
use tfarrow_stats::{HistogramBucket, TopValue};

use super::text::excerpt;
use crate::output::{count, frequent, short};

/// The size of a chart in SVG units.
const WIDTH: f64 = 140.0;
const HEIGHT: f64 = 32.0;
/// The narrowest bar is this fraction of the chart: one fortieth.
const NARROWEST: f64 = 40.0;
/// Number of most frequent values that have a bar.
const BARS: usize = 20;
/// Length of the title of a bar in characters.
const TITLE_CHARS: usize = 60;

/// A bar: left edge and width as fractions of the chart's width, height in any unit, and title.
struct Bar {
    left: f64,
    width: f64,
    height: f64,
    title: String,
}

/// Draws histograms of numbers. The height of a bar is the density of the values in its bucket.
pub(super) fn histograms(now: &[HistogramBucket], before: Option<&[HistogramBucket]>) -> Markup {
    let finite = |bucket: &&HistogramBucket| bucket.low.is_finite() && bucket.high.is_finite();
    let both = || now.iter().chain(before.unwrap_or_default()).filter(finite);
    let low = both().map(|bucket| bucket.low).fold(f64::INFINITY, f64::min);
    let high = both().map(|bucket| bucket.high).fold(f64::NEG_INFINITY, f64::max);
    // The difference of the largest and the smallest float overflows.
    let range = (high / 2.0 - low / 2.0) * 2.0;
    let range = if range > 0.0 && range.is_finite() { range } else { 1.0 };
    let bars = |buckets: &[HistogramBucket]| {
        let total: f64 = buckets.iter().map(|bucket| bucket.count).sum();
        let bar = |bucket: &HistogramBucket| {
            let width = ((bucket.high - bucket.low) / range).max(1.0 / NARROWEST);
            let left = ((bucket.low - low) / range).min(1.0 - width);
            Bar { left, width, height: bucket.count / total / width, title: bucket_text(bucket) }
        };
        buckets.iter().filter(finite).map(bar).collect::<Vec<_>>()
    };
    let label = format!("histogram from {} to {}", short(low), short(high));
    draw(&label, &bars(now), before.map(bars).as_deref())
}

/// The range and the count of a bucket.
pub(super) fn bucket_text(bucket: &HistogramBucket) -> String {
    let range = match bucket.low == bucket.high {
        true => short(bucket.low),
        false => format!("{} to {}", short(bucket.low), short(bucket.high)),
    };
    format!("{range}: {}", count(bucket.count.round() as u64))
}

/// Draws the most frequent values of both data sets, in one order.
pub(super) fn ranks(now: &[TopValue], before: Option<&[TopValue]>) -> Markup {
    let repeated = |top: &[TopValue]| top.iter().filter(|top| top.count > 1.0).take(BARS).cloned().collect::<Vec<_>>();
    let (now, before) = (repeated(now), before.map(repeated));
    let mut order: Vec<&[u8]> = now.iter().map(|top| &*top.value).collect();
    for top in before.iter().flatten() {
        if !order.contains(&&*top.value) {
            order.push(&top.value);
        }
    }
    let both = now.iter().chain(before.iter().flatten());
    let texts: HashMap<&[u8], String> = both.map(|top| (&*top.value, frequent(top))).collect();
    let width = 1.0 / order.len().max(5) as f64;
    let bars = |top: &[TopValue]| {
        let total: f64 = top.iter().map(|top| top.count).sum();
        let counts: HashMap<&[u8], f64> = top.iter().map(|top| (&*top.value, top.count)).collect();
        let bar = |(index, value): (usize, &&[u8])| {
            let found = counts.get(value).copied().unwrap_or_default();
            let title = format!("{}: {}", texts.get(value).map_or("", String::as_str), count(found.round() as u64));
            Bar { left: index as f64 * width, width, height: found / total.max(1.0), title }
        };
        order.iter().enumerate().map(bar).collect::<Vec<_>>()
    };
    draw("the most frequent values", &bars(&now), before.as_deref().map(bars).as_deref())
}

fn draw(label: &str, now: &[Bar], before: Option<&[Bar]>) -> Markup {
    let both = now.iter().chain(before.unwrap_or_default());
    let highest = both.map(|bar| bar.height).fold(0.0, f64::max);
    let charts = [("now", Some(now)), ("before", before)];
    html! {
        @if highest > 0.0 {
            @for (class, bars) in charts.into_iter().filter_map(|(class, bars)| Some((class, bars?))) {
                svg class=(class) viewBox={ "0 0 " (WIDTH) " " (HEIGHT) } role="img" aria-label={ (class) ": " (label) } {
                    @for bar in bars { (bar.draw(highest)) }
                }
            }
        }
    }
}

impl Bar {
    fn draw(&self, highest: f64) -> Markup {
        // A value that occurs has a visible bar.
        let height = if self.height > 0.0 { (self.height / highest * HEIGHT).max(1.0) } else { 0.0 };
        let (x, y, width) = (self.left * WIDTH, HEIGHT - height, (self.width * WIDTH - 1.0).max(0.5));
        html! { (rect([x, y, width, height], &excerpt(&self.title, TITLE_CHARS))) }
    }
}

/// A rectangle, as left edge, upper edge, width and height, with a title.
pub(super) fn rect(at: [f64; 4], title: &str) -> Markup {
    let [x, y, width, height] = at.map(|length| format!("{length:.1}"));
    html! { rect x=(x) y=(y) width=(width) height=(height) { title { (title) } } }
}
