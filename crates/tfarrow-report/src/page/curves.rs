//! The section of curves: the scalars of TensorBoard's event files over the steps, a chart for each
//! tag with a line for each run.

use maud::{Markup, html};

use super::{
    SENTENCE_CHARS, chart,
    excerpt::{NAME_CHARS, excerpt},
};
use crate::{
    event_curves::{EventCurve, EventCurves, RunCurve},
    text::{count, short},
};

/// Number of runs of a chart, which have colours of their own.
const MAX_LINES: usize = 8;
/// Number of points of all charts, so that the page stays below 2 MB.
const MAX_POINTS: usize = 40_000;

/// The section; empty without scalars.
pub(super) fn section(curves: &EventCurves) -> Markup {
    let mut left = MAX_POINTS;
    html! {
        @let note = curves.note();
        @if !curves.tags.is_empty() || note.is_some() {
            section id="curves" {
                h2 { "Curves " span class="count" { (count(curves.tags.len() as u64)) } }
                p class="note" {
                    "Scalars of TensorBoard's event files over the steps, with a line for each run, up to " (MAX_LINES)
                    ". Long runs are drawn with up to 400 points."
                    @if curves.more_tags > 0 { " " (count(curves.more_tags as u64)) " more tags are left out." }
                }
                @if let Some(note) = note { p class="notice" role="note" { (excerpt(&note, SENTENCE_CHARS)) } }
                @if !curves.tags.is_empty() {
                    form class="tools" aria-label="Curves" {
                        label class="check" { input id="curves-log" type="checkbox"; "Log scale" }
                    }
                }
                @for curve in &curves.tags {
                    h3 class="name" { (excerpt(&curve.tag, NAME_CHARS)) }
                    div class="pair" {
                        @if takes_room(curve, &mut left) { (chart::curves(&excerpt(&curve.tag, NAME_CHARS), &lines(curve))) }
                        (table(curve))
                    }
                }
            }
        }
    }
}

/// Returns whether the page has room for the points of a curve, and takes them from those that are
/// `left` if it has.
fn takes_room(curve: &EventCurve, left: &mut usize) -> bool {
    let lines = curve.runs.iter().take(MAX_LINES);
    let points = lines.map(|run| run.points.len()).sum();
    let Some(rest) = left.checked_sub(points) else {
        return false;
    };
    *left = rest;
    true
}

/// The names and the points of the runs of a chart.
fn lines(curve: &EventCurve) -> Vec<(String, &[(i64, f64)])> {
    let lines = curve.runs.iter().take(MAX_LINES);
    lines
        .map(|run| (excerpt(&run.run, NAME_CHARS), run.points.as_slice()))
        .collect()
}

/// The value of a point, if there is one.
fn value(point: Option<&(i64, f64)>) -> String {
    point.map_or_else(String::new, |(_, value)| short(*value))
}

/// The smallest or the largest value of a run, which is infinite where all values are NaN.
fn extreme(value: f64) -> String {
    if value.is_finite() {
        short(value)
    } else {
        String::new()
    }
}

/// The figures of each run.
fn table(curve: &EventCurve) -> Markup {
    html! {
        table class="data" {
            caption { "Runs" }
            thead {
                tr {
                    th scope="col" { "run" }
                    @for name in ["values", "first", "last", "minimum", "maximum"] { th scope="col" { (name) } }
                }
            }
            tbody {
                @for (index, run) in curve.runs.iter().enumerate() {
                    @let RunCurve { count: values, min, max, points, .. } = run;
                    tr {
                        th scope="row" {
                            @if index < MAX_LINES { span class={ "key run" (index) } aria-hidden="true" {} }
                            (excerpt(&run.run, NAME_CHARS))
                        }
                        td { (count(*values)) }
                        td { (value(points.first())) }
                        td { (value(points.last())) }
                        td { (extreme(*min)) }
                        td { (extreme(*max)) }
                    }
                }
            }
        }
        @if curve.more_runs > 0 { p class="note" { (count(curve.more_runs as u64)) " more runs are left out." } }
    }
}
