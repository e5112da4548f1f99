//! The page of `tfarrow report`: one HTML file that loads nothing from elsewhere.
//!
//! Names and values are hostile. The templates of `maud` escape them, images are decoded and encoded anew, and the page's
//! `Content-Security-Policy` allows one script and one style sheet, by their hashes. Charts are plain SVG: a chart library
//! would be a larger script than the page, and would need scripts to be enabled.

mod chart;
mod feature;
mod gallery;
mod text;

use std::collections::{BTreeMap, BTreeSet};

use base64::{Engine, prelude::BASE64_STANDARD as STANDARD};
use maud::{Markup, PreEscaped, html};
use sha2::{Digest, Sha256};
use tfarrow_codec::Place;
use tfarrow_stats::{Anomaly, DatasetStatistics, Distance, ExampleRecord, feature_path};

use crate::output::{count, size};
use feature::{FeatureKind, Row};
use text::{NAME_CHARS, excerpt, without_secrets};

const STYLE: &str = include_str!("page.css");
const SCRIPT: &str = include_str!("page.js");

/// Size limits of the sections of anomalies and of features in bytes. The section of examples has a limit of its own; the
/// page stays below 2 MB. Omitted items are counted.
const MAX_ANOMALY_BYTES: usize = 200_000;
const MAX_FEATURE_BYTES: usize = 800_000;
/// Size of the section of features from which on rows have no charts and details.
const PLAIN_FROM_BYTES: usize = 400_000;
/// Length of sentences in characters.
const SENTENCE_CHARS: usize = 1_000;

/// The column of Jensen-Shannon divergences from the baseline.
const DRIFT: &str = "drift (Jensen-Shannon)";

/// The first line of each page.
pub(crate) const START: &str = "<!doctype html>";

/// The default title of the page of these sources.
pub(crate) fn title(sources: &[String]) -> String {
    let first = without_secrets(sources.first().map_or("", String::as_str));
    match sources.len() {
        0 | 1 => first.to_owned(),
        many => format!("{first} and {} more", count(many as u64 - 1)),
    }
}

/// The content of a page.
pub(crate) struct Page<'a> {
    pub(crate) title: &'a str,
    /// The statistics of the data set.
    pub(crate) figures: &'a DatasetStatistics,
    /// The statistics of the baseline.
    pub(crate) before: Option<&'a DatasetStatistics>,
    /// `None` where there was no schema to validate against.
    pub(crate) anomalies: Option<&'a [Anomaly]>,
    pub(crate) distances: &'a [Distance],
    pub(crate) examples: &'a [ExampleRecord],
    /// The names of the shards, by the numbers that [`Place`]s have.
    pub(crate) shards: &'a [String],
    /// The report of skipped records.
    pub(crate) skipped: Option<String>,
}

impl Page<'_> {
    /// The page as HTML.
    pub(crate) fn html(&self) -> String {
        let hash = |part: &str| STANDARD.encode(Sha256::digest(part.as_bytes()));
        let policy = format!(
            "default-src 'none'; img-src data:; style-src 'sha256-{}'; script-src 'sha256-{}'; base-uri 'none'; \
             form-action 'none'",
            hash(STYLE),
            hash(SCRIPT),
        );
        let title = excerpt(self.title, SENTENCE_CHARS);
        let page = html! {
            (PreEscaped(START)) "\n"
            html lang="en" {
                head {
                    meta charset="utf-8";
                    meta http-equiv="Content-Security-Policy" content=(policy);
                    meta name="viewport" content="width=device-width, initial-scale=1";
                    title { (title) }
                    style { (PreEscaped(STYLE)) }
                }
                body {
                    (self.header(&title))
                    main { (self.anomalies()) (self.features()) (gallery::section(self)) }
                    script { (PreEscaped(SCRIPT)) }
                }
            }
            "\n"
        };
        page.into_string()
    }

    fn header(&self, title: &str) -> Markup {
        let facts = |figures: &DatasetStatistics| {
            [
                (count(figures.records), "records"),
                (size(figures.bytes), "of payload"),
                (count(figures.features.len() as u64), "features"),
            ]
        };
        let mut before = self.before.map(facts).into_iter().flatten();
        html! {
            header {
                h1 { (title) }
                ul class="facts" {
                    @for (fact, name) in facts(self.figures) {
                        li {
                            b { (fact) } " " (name)
                            @if let Some((before, _)) = before.next() { " " small { "before: " (before) } }
                        }
                    }
                }
                @if let Some((shards, of)) = self.figures.sampled {
                    p class="note" { "A sample of " (shards) " of " (of) " shards." }
                }
                @if let Some(skipped) = &self.skipped { p class="note" { (excerpt(skipped, SENTENCE_CHARS)) } }
                (self.links())
            }
        }
    }

    fn links(&self) -> Markup {
        let sections = [
            ("#anomalies", "Anomalies", self.anomalies.is_some()),
            ("#features", "Features", true),
            ("#examples", "Examples", !self.examples.is_empty()),
        ];
        let links = sections.into_iter().filter(|(.., is_there)| *is_there);
        html! {
            nav {
                @for (index, (link, name, _)) in links.enumerate() {
                    @if index > 0 { " · " }
                    a href=(link) { (name) }
                }
            }
        }
    }

    fn anomalies(&self) -> Markup {
        let Some(anomalies) = self.anomalies else { return Markup::default() };
        let (mut items, mut shown) = (String::new(), 0);
        for anomaly in anomalies {
            if items.len() > MAX_ANOMALY_BYTES {
                break;
            }
            items.push_str(&self.anomaly(anomaly).into_string());
            shown += 1;
        }
        let rest = anomalies.len() - shown;
        html! {
            section id="anomalies" {
                h2 { "Anomalies" }
                @if anomalies.is_empty() {
                    p class="good" { "None." }
                } @else {
                    ul {
                        (PreEscaped(items))
                        @if rest > 0 {
                            li { "and " (count(rest as u64)) " more: tfarrow validate --format json has them all" }
                        }
                    }
                }
            }
        }
    }

    fn anomaly(&self, anomaly: &Anomaly) -> Markup {
        let name = anomaly.feature.as_deref().map_or("the data set".to_owned(), |name| excerpt(name, NAME_CHARS));
        html! {
            li {
                b { (name) } " " code { (anomaly.kind.as_str_name()) }
                @if let Some(records) = anomaly.records {
                    " "
                    small {
                        "in " (count(records)) " records"
                        @if let Some(first) = anomaly.first { ", first " (self.place(first)) }
                    }
                }
                br;
                (excerpt(&anomaly.description, SENTENCE_CHARS))
            }
        }
    }

    /// The file name and the number of a record.
    fn place(&self, place: Place) -> String {
        let name = without_secrets(self.shards.get(place.shard as usize).map_or("", String::as_str));
        let name = name.rsplit('/').next().unwrap_or(name);
        format!("{}: record {}", excerpt(name, NAME_CHARS), count(place.record))
    }

    fn features(&self) -> Markup {
        let all = self.rows();
        let (mut rows, mut shown) = (String::new(), 0);
        for row in &all {
            if rows.len() > MAX_FEATURE_BYTES {
                break;
            }
            let row = Row { is_plain: rows.len() > PLAIN_FROM_BYTES, ..*row };
            rows.push_str(&row.html().into_string());
            shown += 1;
        }
        let (rest, total) = (count((all.len() - shown) as u64), count(all.len() as u64));
        html! {
            section id="features" {
                h2 { "Features" }
                @if self.before.is_some() {
                    p class="note" {
                        b class="now" { "■" } " now " b class="before" { "■" }
                        " before, on one scale; small figures are those before"
                    }
                }
                @if shown < all.len() {
                    p class="note" {
                        "The first " (shown) " of " (total) " rows; " (rest) " more are in tfarrow stats --format json."
                    }
                }
                p {
                    label { "Search " input id="search" type="search" autocomplete="off"; }
                    " " output id="shown" aria-live="polite" {}
                }
                div class="scroll" tabindex="0" role="region" aria-label="Features" {
                    table id="table" {
                        thead { tr { (self.heads()) } }
                        tbody { (PreEscaped(rows)) }
                    }
                }
                p class="note" {
                    "Counts, ranges, means and deviations are of all values; quantiles and histograms may be of samples, \
                     which the details say."
                }
            }
        }
    }

    fn heads(&self) -> Markup {
        let drift = (!self.distances.is_empty()).then_some((DRIFT, true));
        html! {
            @for (name, is_number) in feature::HEADS.into_iter().chain(drift) {
                th scope="col" class=[is_number.then_some("number")] { button type="button" { (name) } }
            }
        }
    }

    /// One row for each feature and kind of the data set or the baseline, sorted by name.
    fn rows(&self) -> Vec<Row<'_>> {
        let (now, before) = (by_name_and_kind(Some(self.figures)), by_name_and_kind(self.before));
        let groups = self.distances.chunk_by(|one, next| one.feature == next.feature);
        let distances: BTreeMap<&str, &[Distance]> = groups.map(|group| (group[0].feature.as_str(), group)).collect();
        let of = |path: String| distances.get(path.as_str()).copied().unwrap_or_default();
        let keys: BTreeSet<_> = now.keys().chain(before.keys()).copied().collect();
        let row = |(name, is_list, kind): (&str, bool, Option<&str>)| Row {
            now: now.get(&(name, is_list, kind)).copied(),
            before: before.get(&(name, is_list, kind)).copied(),
            has_baseline: self.before.is_some(),
            distances: (!self.distances.is_empty()).then(|| of(feature_path(is_list, name))),
            is_plain: false,
        };
        keys.into_iter().map(row).collect()
    }
}

/// The features by name, whether they are feature lists, and kind.
fn by_name_and_kind(figures: Option<&DatasetStatistics>) -> BTreeMap<(&str, bool, Option<&str>), FeatureKind<'_>> {
    let mut all = BTreeMap::new();
    for feature in figures.into_iter().flat_map(|figures| &figures.features) {
        let name = feature.name.as_str();
        if feature.kinds.is_empty() {
            all.insert((name, feature.is_list, None), FeatureKind { feature, kind: None });
        }
        for kind in &feature.kinds {
            all.insert((name, feature.is_list, Some(kind.kind)), FeatureKind { feature, kind: Some(kind) });
        }
    }
    all
}
