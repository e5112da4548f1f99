//! The page of `report`: one file of HTML that holds all it needs, and asks nobody for anything.
//!
//! Names and values are hostile: all text goes through [`html::text`], pictures are encoded anew, and a policy in the page
//! (`Content-Security-Policy`) lets run no script but ours, by its hash. Charts are plain SVG made here: a chart library
//! would be more script than all of the page, and its charts would be gone where scripts are off.

mod chart;
mod feature;
mod gallery;
mod html;

use std::collections::{BTreeMap, BTreeSet};

use base64::{Engine, prelude::BASE64_STANDARD as STANDARD};
use sha2::{Digest, Sha256};
use tfarrow_codec::Place;
use tfarrow_stats::{Anomaly, DatasetStatistics, Distance, ExampleRecord, feature_path};

use crate::output::{count, size};
use feature::{Row, Seen};
use html::{beginning, source};

const STYLE: &str = include_str!("page.css");
const SCRIPT: &str = include_str!("page.js");

/// Bytes of the sections of anomalies and of features; that of examples has a bound of its own, so that a page is below
/// 2 MB. What finds no room is counted.
const ANOMALIES: usize = 200_000;
const FEATURES: usize = 800_000;
/// Bytes from which on features are told without charts and details.
const PLAIN_FROM: usize = 400_000;
/// Characters of names, and of sentences.
const NAME: usize = 120;
const SENTENCE: usize = 1_000;

/// The column of Jensen-Shannon divergences from the baseline.
const DRIFT: &str = "drift (Jensen-Shannon)";

/// What a page begins with.
pub(crate) const START: &str = "<!doctype html>";

/// What a page of these sources is called.
pub(crate) fn title(sources: &[String]) -> String {
    let first = source(sources.first().map_or("", String::as_str));
    match sources.len() {
        0 | 1 => first.to_owned(),
        many => format!("{first} and {} more", count(many as u64 - 1)),
    }
}

/// What a page tells.
pub(crate) struct Page<'a> {
    /// What was looked at.
    pub(crate) title: &'a str,
    pub(crate) figures: &'a DatasetStatistics,
    /// The data set that it is held against.
    pub(crate) before: Option<&'a DatasetStatistics>,
    /// What is wrong; `None` where it was held against nothing.
    pub(crate) anomalies: Option<&'a [Anomaly]>,
    pub(crate) distances: &'a [Distance],
    pub(crate) examples: &'a [ExampleRecord],
    /// What shards are called, by their numbers in places.
    pub(crate) shards: &'a [String],
    /// What was passed over, in words.
    pub(crate) skipped: Option<String>,
}

impl Page<'_> {
    /// The page.
    pub(crate) fn html(&self) -> String {
        let hash = |part: &str| STANDARD.encode(Sha256::digest(part.as_bytes()));
        let title = beginning(self.title, SENTENCE);
        let mut out = format!(
            "{START}\n<html lang=\"en\">\n<head>\n<meta charset=\"utf-8\">\n\
             <meta http-equiv=\"Content-Security-Policy\" content=\"default-src 'none'; img-src data:; \
             style-src 'sha256-{}'; script-src 'sha256-{}'; base-uri 'none'; form-action 'none'\">\n\
             <meta name=\"viewport\" content=\"width=device-width, initial-scale=1\">\n\
             <title>{title}</title>\n<style>{STYLE}</style>\n</head>\n<body>\n",
            hash(STYLE),
            hash(SCRIPT),
        );
        self.overview(&title, &mut out);
        self.anomalies(&mut out);
        self.features(&mut out);
        gallery::write(self, &mut out);
        out.push_str("</main>\n");
        out.push_str(&format!("<script>{SCRIPT}</script>\n</body>\n</html>\n"));
        out
    }

    fn overview(&self, title: &str, out: &mut String) {
        let figures = self.figures;
        out.push_str(&format!("<header>\n<h1>{title}</h1>\n<ul class=\"facts\">\n"));
        let mut fact = |name: &str, of: &dyn Fn(&DatasetStatistics) -> String| {
            let before = self.before.map(|before| format!(" <small>before: {}</small>", of(before)));
            out.push_str(&format!("<li><b>{}</b> {name}{}</li>\n", of(figures), before.unwrap_or_default()));
        };
        fact("records", &|figures| count(figures.records));
        fact("of payload", &|figures| size(figures.bytes));
        fact("features", &|figures| count(figures.features.len() as u64));
        out.push_str("</ul>\n");
        if let Some((shards, of)) = figures.sampled {
            out.push_str(&format!("<p class=\"note\">A sample of {shards} of {of} shards.</p>\n"));
        }
        if let Some(skipped) = &self.skipped {
            out.push_str(&format!("<p class=\"note\">{}</p>\n", beginning(skipped, SENTENCE)));
        }
        let sections = [
            ("anomalies", "Anomalies", self.anomalies.is_some()),
            ("features", "Features", true),
            ("examples", "Examples", !self.examples.is_empty()),
        ];
        let links = sections.iter().filter(|(_, _, is_there)| *is_there);
        let links: Vec<_> = links.map(|(id, name, _)| format!("<a href=\"#{id}\">{name}</a>")).collect();
        out.push_str(&format!("<nav>{}</nav>\n</header>\n<main>\n", links.join(" · ")));
    }

    fn anomalies(&self, out: &mut String) {
        let Some(anomalies) = self.anomalies else { return };
        out.push_str("<section id=\"anomalies\">\n<h2>Anomalies</h2>\n");
        if anomalies.is_empty() {
            out.push_str("<p class=\"good\">None.</p>\n</section>\n");
            return;
        }
        out.push_str("<ul>\n");
        let end = out.len() + ANOMALIES;
        for (index, anomaly) in anomalies.iter().enumerate() {
            if out.len() > end {
                let rest = count((anomalies.len() - index) as u64);
                out.push_str(&format!("<li>and {rest} more: tfarrow validate --format json has them all</li>\n"));
                break;
            }
            let name = anomaly.feature.as_deref().map_or("the data set".to_owned(), |name| beginning(name, NAME));
            let of_records = anomaly.records.map(|records| {
                let first = anomaly.first.map(|place| format!(", first {}", self.place(place)));
                format!(" <small>in {} records{}</small>", count(records), first.unwrap_or_default())
            });
            out.push_str(&format!(
                "<li><b>{name}</b> <code>{}</code>{}<br>{}</li>\n",
                anomaly.kind.as_str_name(),
                of_records.unwrap_or_default(),
                beginning(&anomaly.description, SENTENCE),
            ));
        }
        out.push_str("</ul>\n</section>\n");
    }

    /// Where a record stands, as HTML: in a file of this name.
    fn place(&self, place: Place) -> String {
        let name = source(self.shards.get(place.shard as usize).map_or("", String::as_str));
        let name = name.rsplit('/').next().unwrap_or(name);
        format!("{}: record {}", beginning(name, NAME), count(place.record))
    }

    fn features(&self, out: &mut String) {
        let mut rows = String::new();
        let all = self.rows();
        let mut shown = 0;
        for row in &all {
            if rows.len() > FEATURES {
                break;
            }
            Row { is_plain: rows.len() > PLAIN_FROM, ..*row }.write(&mut rows);
            shown += 1;
        }
        out.push_str("<section id=\"features\">\n<h2>Features</h2>\n");
        if self.before.is_some() {
            out.push_str("<p class=\"note\"><b class=\"now\">■</b> now <b class=\"before\">■</b> before, on one scale; small figures are those before</p>\n");
        }
        if shown < all.len() {
            let (rest, of) = (count((all.len() - shown) as u64), count(all.len() as u64));
            out.push_str(&format!("<p class=\"note\">The first {shown} of {of} rows; {rest} more are in tfarrow stats --format json.</p>\n"));
        }
        out.push_str(
            "<p><label>Search <input id=\"search\" type=\"search\" autocomplete=\"off\"></label> \
             <output id=\"shown\" aria-live=\"polite\"></output></p>\n\
             <div class=\"scroll\" tabindex=\"0\" role=\"region\" aria-label=\"Features\">\n<table id=\"table\">\n<thead>\n<tr>",
        );
        let drift = (!self.distances.is_empty()).then_some((DRIFT, true));
        for (name, is_number) in feature::HEADS.into_iter().chain(drift) {
            let class = if is_number { " class=\"number\"" } else { "" };
            out.push_str(&format!("<th scope=\"col\"{class}><button type=\"button\">{name}</button></th>"));
        }
        out.push_str("</tr>\n</thead>\n<tbody>\n");
        out.push_str(&rows);
        out.push_str(
            "</tbody>\n</table>\n</div>\n\
             <p class=\"note\">Counts, ranges, means and deviations are of all values; quantiles and histograms may be of \
             samples, which the details say.</p>\n</section>\n",
        );
    }

    /// A row a feature and kind, of either data set, by name.
    fn rows(&self) -> Vec<Row<'_>> {
        let (now, before) = (seen(Some(self.figures)), seen(self.before));
        let groups = self.distances.chunk_by(|one, next| one.feature == next.feature);
        let distances: BTreeMap<&str, &[Distance]> = groups.map(|group| (group[0].feature.as_str(), group)).collect();
        let of = |path: String| distances.get(path.as_str()).copied().unwrap_or_default();
        let keys: BTreeSet<_> = now.keys().chain(before.keys()).copied().collect();
        let row = |(name, is_list, kind): (&str, bool, Option<&str>)| Row {
            now: now.get(&(name, is_list, kind)).copied(),
            before: before.get(&(name, is_list, kind)).copied(),
            has_before: self.before.is_some(),
            distances: (!self.distances.is_empty()).then(|| of(feature_path(is_list, name))),
            is_plain: false,
        };
        keys.into_iter().map(row).collect()
    }
}

/// Features by name, and by kind.
fn seen(figures: Option<&DatasetStatistics>) -> BTreeMap<(&str, bool, Option<&str>), Seen<'_>> {
    let mut all = BTreeMap::new();
    for feature in figures.into_iter().flat_map(|figures| &figures.features) {
        if feature.kinds.is_empty() {
            all.insert((feature.name.as_str(), feature.is_list, None), Seen { feature, kind: None });
        }
        for kind in &feature.kinds {
            all.insert((feature.name.as_str(), feature.is_list, Some(kind.kind)), Seen { feature, kind: Some(kind) });
        }
    }
    all
}
