//! The page of `report`: one file of HTML that holds all it needs, and asks nobody for anything.
//!
//! Names and values are hostile: all text goes through [`html::text`], pictures are encoded anew, and a policy in the page
//! (`Content-Security-Policy`) lets run no script but ours, by its hash. Charts are plain SVG made here: a chart library
//! would be more script than all of the page, and its charts would be gone where scripts are off.

mod chart;
mod feature;
mod gallery;
mod html;

use std::collections::BTreeMap;

use base64::{Engine, prelude::BASE64_STANDARD as STANDARD};
use sha2::{Digest, Sha256};
use tfarrow_codec::Place;
use tfarrow_stats::{Anomaly, DatasetFigures, Distance, Example, path_of};

use crate::output::{count, size};
use html::text;

const STYLE: &str = include_str!("page.css");
const SCRIPT: &str = include_str!("page.js");

/// Bytes of a page at most, about. What comes later is named and left out.
const MOST_BYTES: usize = 1_900_000;
/// Bytes from which on features are told without charts and details.
const PLAIN_FROM: usize = 1_000_000;
/// Anomalies that are told.
const MOST_ANOMALIES: usize = 500;

/// What a page tells.
pub(crate) struct Page<'a> {
    /// What was looked at.
    pub(crate) title: &'a str,
    pub(crate) figures: &'a DatasetFigures,
    /// The data set that it is held against.
    pub(crate) before: Option<&'a DatasetFigures>,
    /// What is wrong; `None` where it was held against nothing.
    pub(crate) anomalies: Option<&'a [Anomaly]>,
    pub(crate) distances: &'a [Distance],
    pub(crate) examples: &'a [Example],
    /// What shards are called, by their numbers in places.
    pub(crate) shards: &'a [String],
    /// What was passed over, in words.
    pub(crate) skipped: Option<String>,
}

impl Page<'_> {
    /// The page.
    pub(crate) fn html(&self) -> String {
        let hash = |part: &str| STANDARD.encode(Sha256::digest(part.as_bytes()));
        let title = text(self.title);
        let mut out = format!(
            "<!doctype html>\n<html lang=\"en\">\n<head>\n<meta charset=\"utf-8\">\n\
             <meta http-equiv=\"Content-Security-Policy\" content=\"default-src 'none'; img-src data:; \
             style-src 'sha256-{}'; script-src 'sha256-{}'; base-uri 'none'; form-action 'none'\">\n\
             <meta name=\"viewport\" content=\"width=device-width, initial-scale=1\">\n\
             <title>{title}</title>\n<style>{STYLE}</style>\n</head>\n<body>\n",
            hash(STYLE),
            hash(SCRIPT),
        );
        self.overview(&title, &mut out);
        self.anomalies(&mut out);
        gallery::write(self, &mut out);
        self.features(&mut out);
        out.push_str(&format!("<script>{SCRIPT}</script>\n</body>\n</html>\n"));
        out
    }

    fn overview(&self, title: &str, out: &mut String) {
        let figures = self.figures;
        out.push_str(&format!("<header>\n<h1>{title}</h1>\n<ul class=\"facts\">\n"));
        let mut fact = |name: &str, of: &dyn Fn(&DatasetFigures) -> String| {
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
            out.push_str(&format!("<p class=\"note\">{}</p>\n", text(skipped)));
        }
        out.push_str("</header>\n<main>\n");
    }

    fn anomalies(&self, out: &mut String) {
        let Some(anomalies) = self.anomalies else { return };
        out.push_str("<section id=\"anomalies\">\n<h2>Anomalies</h2>\n");
        if anomalies.is_empty() {
            out.push_str("<p class=\"good\">None.</p>\n</section>\n");
            return;
        }
        out.push_str("<ul>\n");
        for anomaly in anomalies.iter().take(MOST_ANOMALIES) {
            let name = anomaly.feature.as_deref().map_or("the data set".to_owned(), text);
            let of_records = anomaly.records.map(|records| {
                let first = anomaly.first.map(|place| format!(", first {}", self.place(place)));
                format!(" <small>in {} records{}</small>", count(records), first.unwrap_or_default())
            });
            out.push_str(&format!(
                "<li><b>{name}</b> <code>{}</code>{}<br>{}</li>\n",
                anomaly.kind.as_str_name(),
                of_records.unwrap_or_default(),
                text(&anomaly.description),
            ));
        }
        out.push_str("</ul>\n");
        if let Some(more) = anomalies.len().checked_sub(MOST_ANOMALIES).filter(|more| *more > 0) {
            out.push_str(&format!("<p class=\"note\">and {} more</p>\n", count(more as u64)));
        }
        out.push_str("</section>\n");
    }

    /// Where a record stands, as text of HTML.
    fn place(&self, place: Place) -> String {
        let name = self.shards.get(place.shard as usize).map_or("", String::as_str);
        format!("{}: record {}", text(name), count(place.record))
    }

    fn features(&self, out: &mut String) {
        out.push_str(
            "<section id=\"features\">\n<h2>Features</h2>\n\
             <p><label>Search <input id=\"search\" type=\"search\" autocomplete=\"off\"></label> \
             <output id=\"shown\" aria-live=\"polite\"></output></p>\n\
             <div class=\"scroll\" tabindex=\"0\" role=\"region\" aria-label=\"Features\">\n<table id=\"table\">\n<thead>\n<tr>",
        );
        let drift = (!self.distances.is_empty()).then_some(("drift", true));
        for (name, is_number) in feature::HEADS.into_iter().chain(drift) {
            let class = if is_number { " class=\"number\"" } else { "" };
            out.push_str(&format!("<th scope=\"col\"{class}><button type=\"button\">{name}</button></th>"));
        }
        out.push_str("</tr>\n</thead>\n<tbody>\n");
        let before = self.before.map(|before| {
            before.features.iter().map(|feature| ((feature.is_list, feature.name.as_str()), feature)).collect()
        });
        let before: BTreeMap<_, _> = before.unwrap_or_default();
        let mut drift: BTreeMap<&str, f64> = BTreeMap::new();
        for distance in self.distances {
            let most = drift.entry(&distance.feature).or_default();
            *most = most.max(distance.value);
        }
        for (index, feature) in self.figures.features.iter().enumerate() {
            if out.len() > MOST_BYTES {
                let rest = self.figures.features.len() - index;
                out.push_str(&format!(
                    "<tr><td colspan=\"12\">and {} more: tfarrow stats --format json has them all</td></tr>\n",
                    count(rest as u64)
                ));
                break;
            }
            let row = feature::Row {
                feature,
                before: before.get(&(feature.is_list, feature.name.as_str())).copied(),
                has_before: self.before.is_some(),
                is_plain: out.len() > PLAIN_FROM,
            };
            let drift = drift.get(path_of(feature.is_list, &feature.name).as_str()).copied();
            row.write(drift.map(Some).or((!self.distances.is_empty()).then_some(None)), out);
        }
        out.push_str("</tbody>\n</table>\n</div>\n");
        out.push_str(
            "<p class=\"note\">Counts, ranges, means and deviations are of all values; quantiles and histograms may be of \
             samples, which the details say.</p>\n</section>\n</main>\n",
        );
    }
}
