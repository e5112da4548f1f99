//! The section of anomalies: violations of the schema and of the largest distance from the
//! baseline.

use maud::{Markup, PreEscaped, html};
use tfarrow_stats::Anomaly;

use super::{
    Page, SENTENCE_CHARS,
    excerpt::{NAME_CHARS, excerpt},
    links::Links,
};
use crate::text::count;

/// Size limit of the section in bytes.
const MAX_BYTES: usize = 100_000;

/// The section; empty where there was no schema to validate against.
pub(super) fn section(page: &Page<'_>, links: &Links) -> Markup {
    let Some(anomalies) = page.anomalies else {
        return Markup::default();
    };
    let mut items = String::new();
    let mut shown = 0;
    for anomaly in anomalies {
        let item = item(page, anomaly, links).into_string();
        if items.len() + item.len() > MAX_BYTES {
            break;
        }
        items.push_str(&item);
        shown += 1;
    }
    let rest = anomalies.len() - shown;
    html! {
        section id="anomalies" {
            h2 { "Anomalies " span class="count" { (count(anomalies.len() as u64)) } }
            @if anomalies.is_empty() {
                p { "The data conforms to the schema." }
            } @else {
                ul class="groups" {
                    (PreEscaped(items))
                    @if rest > 0 { li { "and " (count(rest as u64)) " more: tfarrow validate --format json lists them all" } }
                }
            }
        }
    }
}

fn item(page: &Page<'_>, anomaly: &Anomaly, links: &Links) -> Markup {
    html! {
        li class="group severe" {
            h3 {
                @match &anomaly.feature {
                    Some(path) => (links.to_path(path, &excerpt(path, NAME_CHARS))),
                    None => a href="#overview" { "the data set" },
                }
                " " code { (anomaly.kind.as_str_name()) }
            }
            p { (excerpt(&anomaly.description, SENTENCE_CHARS)) }
            @if let Some(records) = anomaly.records {
                p class="note" {
                    "in " (count(records)) " records"
                    @if let Some(first) = anomaly.first { ", first " (page.place(first)) }
                }
            }
        }
    }
}
