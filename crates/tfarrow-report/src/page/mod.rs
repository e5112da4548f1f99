//! The page of `tfarrow report`: one HTML file that loads nothing from elsewhere.
//!
//! ```text
//! header   overview: records, features, shards, sizes, dates
//! alerts, anomalies   links to features
//! features   a card each: figures, histogram or frequent values, details
//! curves of TensorBoard's event files
//! correlations, examples, files
//! ```
//!
//! Names and values are hostile. The templates of `maud` escape them, images are decoded and
//! encoded anew, and the page's `Content-Security-Policy` allows its own two scripts and its style
//! sheet, by their hashes. The charts are drawn in the browser by a reduced Observable Plot
//! (`vendor/`). All figures are in tables as well, so that the page is complete without scripts.

mod alerts;
mod anomalies;
mod card;
mod chart;
mod correlations;
mod curves;
mod excerpt;
mod features;
mod files;
mod gallery;
mod links;
mod numbers;
mod overview;
mod strings;

mod thumbnail;

use base64::{Engine, prelude::BASE64_STANDARD as STANDARD};
use maud::{Markup, PreEscaped, html};
use sha2::{Digest, Sha256};
use tfarrow_codec::{Place, Summary};
use tfarrow_dataset::Shard;
use tfarrow_stats::{
    Anomaly, Comparison, DatasetStatistics, Distance, Distribution, RecordProfile, Statistics,
};

use crate::{
    event_curves::EventCurves,
    text::count,
    warnings::{SkippedText, skipped},
};
use excerpt::{NAME_CHARS, excerpt, without_secrets};
use features::FeatureSection;
use files::PageFile;

const STYLE: &str = include_str!("page.css");
const SCRIPT: &str = include_str!("page.js");
/// Observable Plot; see `vendor/README.md`.
const CHARTS: &str = include_str!("vendor/charts.js");

/// Length of sentences in characters. The sections limit their sizes, so that the page stays below
/// 2 MB.
const SENTENCE_CHARS: usize = 1_000;

/// The first line of each page, by which one is recognized.
pub const REPORT_START: &str = "<!doctype html>";

/// Returns the default title of a report: the first source, and the number of others.
pub fn report_title(sources: &[String]) -> String {
    let first = without_secrets(sources.first().map_or("", String::as_str));
    match sources.len() {
        0 | 1 => first.to_owned(),
        many => format!("{first} and {} more", count(many as u64 - 1)),
    }
}

/// Returns the report on a data set as HTML. `profile` is of the records that were compared, as a
/// [`RecordProfiler`](tfarrow_stats::RecordProfiler) collects it; none of the shards may be a
/// stream.
pub fn report_page(
    title: &str,
    compared: &Comparison,
    profile: &RecordProfile,
    shards: &[Shard],
    curves: &EventCurves,
    skipped_text: SkippedText,
) -> String {
    let statistics = &compared.found.statistics;
    let figures = statistics.summarize();
    let before = compared.baseline.as_ref().map(Statistics::summarize);
    let files = PageFile::all(shards, &profile.shards);
    let page = Page {
        title,
        summary: &statistics.inferred.summary,
        has_features: !statistics.inferred.is_events,
        figures: &figures,
        before: before.as_ref(),
        distributions: &statistics.distributions(compared.baseline.as_ref()),
        anomalies: compared.anomalies(),
        distances: &compared.distances,
        profile,
        curves,
        files: &files,
        shards: &statistics.inferred.names,
        skipped: skipped(&statistics.inferred, skipped_text),
    };
    page.html()
}

/// The content of a page.
struct Page<'a> {
    title: &'a str,
    /// The summary of the features, from which columns follow.
    summary: &'a Summary,
    /// Whether the records may have features, which events do not.
    has_features: bool,
    /// The statistics of the data set.
    figures: &'a DatasetStatistics,
    /// The statistics of the baseline.
    before: Option<&'a DatasetStatistics>,
    /// The distributions of numbers in both.
    distributions: &'a [Distribution],
    /// `None` where there was no schema to validate against.
    anomalies: Option<&'a [Anomaly]>,
    distances: &'a [Distance],
    /// Examples, correlations and duplicates.
    profile: &'a RecordProfile,
    /// The scalars of TensorBoard's event files.
    curves: &'a EventCurves,
    /// The shards.
    files: &'a [PageFile],
    /// The names of the shards, by the numbers that [`Place`]s have.
    shards: &'a [String],
    /// The report of skipped records.
    skipped: Option<String>,
}

/// A section: its anchor, its title, its number of items, and its HTML.
struct Section {
    id: &'static str,
    title: &'static str,
    items: Option<usize>,
    html: Markup,
}

impl Section {
    fn new(id: &'static str, title: &'static str, items: Option<usize>, html: Markup) -> Self {
        Self {
            id,
            title,
            items,
            html,
        }
    }
}

impl Page<'_> {
    /// The page as HTML.
    fn html(&self) -> String {
        let policy = format!(
            "default-src 'none'; img-src data:; style-src 'sha256-{}'; script-src 'sha256-{}' 'sha256-{}'; base-uri 'none'; \
             form-action 'none'",
            hash(STYLE),
            hash(CHARTS),
            hash(SCRIPT),
        );
        let title = excerpt(self.title, SENTENCE_CHARS);
        let sections = self.sections();
        let page = html! {
            (PreEscaped(REPORT_START)) "\n"
            html lang="en" {
                head {
                    meta charset="utf-8";
                    meta http-equiv="Content-Security-Policy" content=(policy);
                    meta name="viewport" content="width=device-width, initial-scale=1";
                    meta name="color-scheme" content="light dark";
                    title { (title) }
                    style { (PreEscaped(STYLE)) }
                }
                body {
                    @if self.has_features { a class="skip" href="#features" { "Skip to the features" } }
                    (contents(&sections))
                    main {
                        (overview::header(self, &title))
                        @for section in &sections { (section.html) }
                        (files::footer())
                    }
                    script { (PreEscaped(CHARTS)) }
                    script { (PreEscaped(SCRIPT)) }
                }
            }
            "\n"
        };
        page.into_string()
    }

    /// The sections that are not empty, in their order.
    fn sections(&self) -> Vec<Section> {
        let alerts = tfarrow_stats::alerts(self.figures, self.profile);
        let features = FeatureSection::of(self, &alerts);
        let links = &features.links;
        let anomalies = self.anomalies.map(<[_]>::len);
        let sections = [
            Section::new(
                "alerts",
                "Alerts",
                Some(alerts.len()),
                alerts::section(&alerts, links),
            ),
            Section::new(
                "anomalies",
                "Anomalies",
                anomalies,
                anomalies::section(self, links),
            ),
            Section::new(
                "curves",
                "Curves",
                Some(self.curves.tags.len()),
                curves::section(self.curves),
            ),
            Section::new(
                "features",
                "Features",
                Some(features.len()),
                self.features(&features),
            ),
            Section::new(
                "correlations",
                "Correlations",
                None,
                correlations::section(&self.profile.correlations, links),
            ),
            Section::new(
                "examples",
                "Examples",
                Some(self.profile.examples.len()),
                gallery::section(self),
            ),
            Section::new(
                "files",
                "Files",
                Some(self.files.len()),
                files::section(self),
            ),
        ];
        sections
            .into_iter()
            .filter(|section| !section.html.0.is_empty())
            .collect()
    }

    /// The section of the features; empty for records that have none.
    fn features(&self, features: &FeatureSection) -> Markup {
        if self.has_features {
            features.html()
        } else {
            Markup::default()
        }
    }

    /// The file name and the number of a record.
    fn place(&self, place: Place) -> String {
        let name = without_secrets(
            self.shards
                .get(place.shard as usize)
                .map_or("", String::as_str),
        );
        let name = name.rsplit('/').next().unwrap_or(name);
        format!(
            "{}: record {}",
            excerpt(name, NAME_CHARS),
            count(place.record)
        )
    }
}

/// The hash of a script or of the style sheet, as the policy names it.
fn hash(part: &str) -> String {
    STANDARD.encode(Sha256::digest(part.as_bytes()))
}

/// Links to the sections.
fn contents(sections: &[Section]) -> Markup {
    html! {
        nav class="contents" aria-label="Contents" {
            ul {
                li { a href="#overview" { "Overview" } }
                @for Section { id, title, items, .. } in sections {
                    li { a href={ "#" (id) } { (title) @if let Some(items) = items { " " span class="count" { (count(*items as u64)) } } } }
                }
            }
        }
    }
}
