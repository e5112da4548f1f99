//! The section of features: cards of numeric features and of others, within a size limit, and links
//! to them.

use std::collections::{BTreeMap, BTreeSet, HashMap};

use maud::{Markup, PreEscaped, html};
use tfarrow_codec::Layout;
use tfarrow_convert::schema_json::type_name;
use tfarrow_stats::{
    Alert, DatasetStatistics, Distance, Distribution, ExampleValues, feature_path,
};

use super::{
    Page,
    card::{Card, FeatureKind, share_of_records},
    excerpt::bytes_excerpt,
    links::Links,
    numbers, strings,
};
use crate::text::{count, number};

/// Size limits of all cards, and of the table of the features without cards, in bytes.
const MAX_CARD_BYTES: usize = 640_000;
const MAX_TABLE_BYTES: usize = 120_000;
/// Number of texts that a card shows where most values differ, and characters of each.
const SAMPLES: usize = 3;
const SAMPLE_CHARS: usize = 300;

/// The section of features as HTML.
#[derive(Default)]
pub(super) struct FeatureSection {
    pub(super) links: Links,
    numeric: String,
    others: String,
    /// Numbers of cards.
    numeric_cards: usize,
    other_cards: usize,
    /// Rows of the table of features without cards.
    rows: String,
    listed: usize,
    omitted: usize,
    has_drift: bool,
}

impl FeatureSection {
    /// Makes the cards. Those of features with alerts or anomalies are the last to be left out.
    pub(super) fn of(page: &Page<'_>, alerts: &[Alert]) -> Self {
        let cards = cards(page, alerts);
        let mut order: Vec<usize> = (0..cards.len()).collect();
        order.sort_by_key(|index| {
            let card = cards.get(*index);
            card.is_some_and(|card| card.alerts.is_empty() && card.anomalies == 0)
        });
        let mut kept = BTreeMap::new();
        let mut bytes = 0;
        for index in order {
            let Some(html) = cards
                .get(index)
                .map(|card| card.html(&body(card)).into_string())
            else {
                continue;
            };
            if bytes + html.len() > MAX_CARD_BYTES {
                break;
            }
            bytes += html.len();
            kept.insert(index, html);
        }
        let mut section = Self {
            has_drift: page.before.is_some(),
            ..Self::default()
        };
        for (index, card) in cards.iter().enumerate() {
            section.add(card, kept.get(&index));
        }
        section
    }

    fn add(&mut self, card: &Card<'_>, html: Option<&String>) {
        match html {
            Some(html) if card.is_numeric() => {
                self.numeric.push_str(html);
                self.numeric_cards += 1;
            }
            Some(html) => {
                self.others.push_str(html);
                self.other_cards += 1;
            }
            None => {
                let row = row(card).into_string();
                if self.rows.len() + row.len() > MAX_TABLE_BYTES {
                    self.omitted += 1;
                    return;
                }
                self.rows.push_str(&row);
                self.listed += 1;
            }
        }
        if let Some(FeatureKind { feature, .. }) = card.side() {
            self.links.add(&feature.name, feature.is_list, card.id);
        }
    }

    /// The number of features and kinds.
    pub(super) fn len(&self) -> usize {
        self.numeric_cards + self.other_cards + self.listed + self.omitted
    }

    /// The section.
    pub(super) fn html(&self) -> Markup {
        let groups = [
            ("numeric", "Numeric", self.numeric_cards, &self.numeric),
            ("bytes", "Bytes", self.other_cards, &self.others),
        ];
        html! {
            section id="features" {
                h2 { "Features " span class="count" { (count(self.len() as u64)) } }
                @if self.len() == 0 {
                    p { "The records have no features." }
                } @else {
                    (self.tools())
                }
                @for (id, title, cards, html) in groups.into_iter().filter(|(.., cards, _)| *cards > 0) {
                    section class="cards" id=(id) {
                        h3 { (title) " " span class="count" { (count(cards as u64)) } }
                        (PreEscaped(html))
                    }
                }
                (self.table())
            }
        }
    }

    fn tools(&self) -> Markup {
        html! {
            @if self.has_drift {
                p class="legend" {
                    span class="key now" {} "this data set" span class="key before" {} "baseline. "
                    "Features are sorted by the Jensen-Shannon divergence of the two distributions, the largest first."
                }
            }
            form class="tools" role="search" aria-label="Features" {
                label { span { "Search" } input id="search" type="search" autocomplete="off" placeholder="name or alert"; }
                label {
                    span { "Sort by" }
                    select id="sort" {
                        @if self.has_drift { option value="drift" { "drift" } }
                        option value="name" { "name" }
                        option value="alerts" { "alerts" }
                        option value="missing" { "missing values" }
                    }
                }
                label class="check" { input id="flagged" type="checkbox"; "With alerts" }
                label class="check" { input id="log" type="checkbox"; "Log scale" }
                output id="shown" aria-live="polite" {}
            }
        }
    }

    /// The features without cards.
    fn table(&self) -> Markup {
        html! {
            @if !self.rows.is_empty() {
                section class="more" {
                    h3 { "Further features " span class="count" { (count((self.listed + self.omitted) as u64)) } }
                    p class="note" {
                        "Without charts, to limit the size of the page. tfarrow stats --format json has all figures."
                        @if self.omitted > 0 { " " (count(self.omitted as u64)) " features are left out." }
                    }
                    div class="scroll" tabindex="0" role="region" aria-label="Further features" {
                        table class="data wide" {
                            thead { tr { @for head in ["feature", "kind", "missing", "minimum", "median", "maximum", "distinct"] {
                                th scope="col" { (head) }
                            } } }
                            tbody { (PreEscaped(&self.rows)) }
                        }
                    }
                }
            }
        }
    }
}

/// The figures and charts of a card.
fn body(card: &Card<'_>) -> Markup {
    match card.kind() {
        Some(kind) if kind.numbers.is_some() => numbers::body(card),
        Some(_) => strings::body(card),
        None => Markup::default(),
    }
}

/// A row of a feature without a card.
fn row(card: &Card<'_>) -> Markup {
    let Some(FeatureKind { feature, kind }) = card.side() else {
        return Markup::default();
    };
    let numbers = kind
        .and_then(|kind| kind.numbers.as_ref())
        .filter(|numbers| numbers.count > 0);
    let cells = numbers.map_or_else(Default::default, |numbers| {
        [
            number(numbers.min),
            numbers::of_sample(numbers, numbers.median).unwrap_or_default(),
            number(numbers.max),
        ]
    });
    html! {
        tr id={ "f" (card.id) } {
            th scope="row" { (card.name()) }
            td { (kind.map_or("none", |kind| kind.kind)) }
            td { (share_of_records(feature, feature.missing)) }
            @for cell in cells { td { (cell) } }
            td { @if let Some(strings) = kind.and_then(|kind| kind.strings.as_ref()) { (count(strings.distinct)) } }
        }
    }
}

/// The name of a feature, whether it is a feature list, and its kind.
type Key<'a> = (&'a str, bool, Option<&'a str>);

/// One card for each feature and kind of the data set or the baseline: sorted by drift if there is
/// a baseline, and by name.
fn cards<'a>(page: &Page<'a>, alerts: &'a [Alert]) -> Vec<Card<'a>> {
    let now = by_key(Some(page.figures));
    let before = by_key(page.before);
    let distances = distances_of_features(page);
    let mut distributions: HashMap<Key<'a>, &Distribution> = HashMap::new();
    for of in page.distributions {
        distributions.insert((of.name.as_str(), of.is_list, Some(of.kind)), of);
    }
    let alerts = alerts_of_features(alerts);
    let anomalies = anomalies_of_features(page);
    let types = types(page);
    let samples = samples(page);
    let keys: BTreeSet<_> = now.keys().chain(before.keys()).copied().collect();
    let mut cards = Vec::with_capacity(keys.len());
    for (id, key) in keys.into_iter().enumerate() {
        let (name, is_list, _) = key;
        let path = feature_path(is_list, name);
        cards.push(Card {
            id,
            now: now.get(&key).copied(),
            before: before.get(&key).copied(),
            has_baseline: page.before.is_some(),
            distances: distances.get(path.as_str()).copied().unwrap_or_default(),
            distribution: distributions.get(&key).copied(),
            alerts: alerts.get(&(name, is_list)).cloned().unwrap_or_default(),
            anomalies: anomalies.get(path.as_str()).copied().unwrap_or_default(),
            arrow: types.get(&(name, is_list)).cloned(),
            samples: samples.get(name).cloned().unwrap_or_default(),
        });
    }
    if page.before.is_some() {
        // The sort is stable. Features without a divergence are last.
        cards.sort_by(|a, b| {
            let (a, b) = (a.drift().unwrap_or(-1.0), b.drift().unwrap_or(-1.0));
            b.total_cmp(&a)
        });
    }
    cards
}

/// The distances of each feature, by its path.
fn distances_of_features<'a>(page: &Page<'a>) -> HashMap<&'a str, &'a [Distance]> {
    let mut distances = HashMap::new();
    for group in page
        .distances
        .chunk_by(|one, next| one.feature == next.feature)
    {
        distances.insert(group[0].feature.as_str(), group);
    }
    distances
}

/// The alerts of each feature, by its name and whether it is a feature list.
fn alerts_of_features(alerts: &[Alert]) -> HashMap<(&str, bool), Vec<&Alert>> {
    let mut of_features: HashMap<_, Vec<_>> = HashMap::new();
    for alert in alerts {
        if let Some((name, is_list)) = &alert.feature {
            let of_feature = of_features.entry((name.as_str(), *is_list)).or_default();
            of_feature.push(alert);
        }
    }
    of_features
}

/// The number of anomalies of each feature, by its path.
fn anomalies_of_features<'a>(page: &Page<'a>) -> HashMap<&'a str, usize> {
    let mut counts = HashMap::new();
    for anomaly in page.anomalies.into_iter().flatten() {
        if let Some(path) = &anomaly.feature {
            *counts.entry(path.as_str()).or_default() += 1;
        }
    }
    counts
}

/// The first texts that examples have of each feature.
fn samples<'a>(page: &Page<'a>) -> HashMap<&'a str, Vec<String>> {
    let mut samples: HashMap<&str, Vec<String>> = HashMap::new();
    for feature in page
        .profile
        .examples
        .iter()
        .flat_map(|example| &example.features)
    {
        let ExampleValues::Bytes(values) = &feature.values else {
            continue;
        };
        let Some((value, length)) = values
            .first()
            .filter(|(value, length)| is_text(value, *length))
        else {
            continue;
        };
        let held = samples.entry(feature.name.as_str()).or_default();
        if held.len() < SAMPLES {
            held.push(bytes_excerpt(value, *length, SAMPLE_CHARS));
        }
    }
    samples
}

/// Returns whether the beginning of a value of `length` bytes is UTF-8, up to a character that the
/// cut divides.
fn is_text(value: &[u8], length: usize) -> bool {
    match std::str::from_utf8(value) {
        Ok(text) => !text.is_empty(),
        Err(error) => error.error_len().is_none() && length > value.len(),
    }
}

/// The features by name, whether they are feature lists, and kind.
fn by_key(figures: Option<&DatasetStatistics>) -> BTreeMap<Key<'_>, FeatureKind<'_>> {
    let mut all = BTreeMap::new();
    for feature in figures.into_iter().flat_map(|figures| &figures.features) {
        let name = feature.name.as_str();
        if feature.kinds.is_empty() {
            all.insert(
                (name, feature.is_list, None),
                FeatureKind {
                    feature,
                    kind: None,
                },
            );
        }
        for kind in &feature.kinds {
            all.insert(
                (name, feature.is_list, Some(kind.kind)),
                FeatureKind {
                    feature,
                    kind: Some(kind),
                },
            );
        }
    }
    all
}

/// The Arrow types of the columns, in the layout that is the default.
fn types<'a>(page: &Page<'a>) -> HashMap<(&'a str, bool), String> {
    let summary = page.summary;
    let record_type = summary.record_type();
    let mut types = HashMap::new();
    for feature in summary.features() {
        let role = summary.role(feature, record_type);
        let Some(column) = feature.column(Layout::Auto, role) else {
            continue;
        };
        let is_list = feature.role == tfarrow_codec::Role::Sequence;
        types.insert(
            (feature.name.as_str(), is_list),
            type_name(&column.data_type()),
        );
    }
    types
}
