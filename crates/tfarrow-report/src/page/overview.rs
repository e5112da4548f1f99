//! The header of the page: its title, and the figures of the data set.

use maud::{Markup, html};
use tfarrow_codec::RecordType;
use tfarrow_stats::FeatureStatistics;

use super::{Page, SENTENCE_CHARS, excerpt::excerpt, files::dates};
use crate::text::{count, percent, plural, size};

/// A figure: its name, its value, the value of the baseline, and a note.
struct Tile {
    name: &'static str,
    value: String,
    before: Option<String>,
    note: String,
}

/// The header.
pub(super) fn header(page: &Page<'_>, title: &str) -> Markup {
    html! {
        header id="overview" {
            p class="kicker" { (records_of(page)) }
            h1 { (title) }
            @if let Some(skipped) = &page.skipped { p class="notice" role="note" { (excerpt(skipped, SENTENCE_CHARS)) } }
            @if let Some((shards, of)) = page.figures.sampled {
                p class="notice" role="note" {
                    "A sample: records of " (count(shards as u64)) " of " (plural(of as u64, "shard")) " were read."
                }
            }
            dl class="tiles" {
                @for tile in tiles(page) {
                    div {
                        dt { (tile.name) }
                        dd {
                            span class="big" { (tile.value) }
                            @if let Some(before) = tile.before.as_ref().filter(|before| **before != tile.value) { " " small class="was" { "was " (before) } }
                            @if !tile.note.is_empty() { span class="sub" { (tile.note) } }
                        }
                    }
                }
            }
        }
    }
}

/// The type of the records.
fn records_of(page: &Page<'_>) -> &'static str {
    match page.summary.record_type() {
        _ if page.figures.records == 0 => "Empty data set",
        RecordType::Example => "tf.Example records",
        RecordType::SequenceExample => "tf.SequenceExample records",
        RecordType::ExampleList => "ExampleListWithContext records",
        RecordType::Message => "Protobuf messages",
        RecordType::Raw => "Raw records, which are no tf.Example messages",
    }
}

fn tiles(page: &Page<'_>) -> Vec<Tile> {
    let figures = page.figures;
    let mut tiles = vec![Tile {
        name: "Records",
        value: count(figures.records),
        before: page.before.map(|figures| count(figures.records)),
        note: duplicates(page),
    }];
    if page.has_features {
        tiles.push(Tile {
            name: "Features",
            value: count(figures.features.len() as u64),
            before: page
                .before
                .map(|figures| count(figures.features.len() as u64)),
            note: kinds(&figures.features),
        });
    }
    tiles.extend([
        Tile {
            name: "Shards",
            value: count(page.files.len() as u64),
            before: None,
            note: shards(page),
        },
        Tile {
            name: "Payload",
            value: size(figures.bytes),
            before: page.before.map(|figures| size(figures.bytes)),
            note: match figures.records {
                0 => String::new(),
                records => format!("{} a record", size(figures.bytes / records)),
            },
        },
    ]);
    let stored: u64 = page.files.iter().map(|file| file.size).sum();
    if stored > 0 {
        let compressions: std::collections::BTreeSet<_> =
            page.files.iter().map(|file| file.compression).collect();
        let note = compressions.into_iter().collect::<Vec<_>>().join(", ");
        tiles.push(Tile {
            name: "Stored",
            value: size(stored),
            before: None,
            note,
        });
    }
    if let Some((first, last)) = dates(page.files) {
        let note = if first == last {
            String::new()
        } else {
            format!("since {first}")
        };
        tiles.push(Tile {
            name: "Modified",
            value: last,
            before: None,
            note,
        });
    }
    tiles
}

/// The share of duplicates.
fn duplicates(page: &Page<'_>) -> String {
    let duplicates = page.profile.duplicates;
    match duplicates.records {
        _ if page.figures.records == 0 => String::new(),
        0 if duplicates.is_estimated => "no duplicates in a sample".to_owned(),
        0 => "no duplicates".to_owned(),
        records => {
            let about = if duplicates.is_estimated {
                "about "
            } else {
                ""
            };
            format!(
                "{about}{} duplicates",
                percent(records.min(page.figures.records), page.figures.records)
            )
        }
    }
}

/// The numbers of features of each group.
fn kinds(features: &[FeatureStatistics]) -> String {
    let mut numeric = 0;
    let mut bytes = 0;
    let mut lists = 0;
    for feature in features {
        numeric += u64::from(feature.kinds.iter().any(|kind| kind.numbers.is_some()));
        bytes += u64::from(feature.kinds.iter().any(|kind| kind.strings.is_some()));
        lists += u64::from(feature.is_list);
    }
    let groups = [
        (numeric, "numeric"),
        (bytes, "bytes"),
        (lists, "lists of steps"),
    ];
    let mut texts = Vec::new();
    for (number, name) in groups {
        if number > 0 {
            texts.push(format!("{} {name}", count(number)));
        }
    }
    texts.join(", ")
}

/// The numbers of records of the smallest and of the largest shard.
fn shards(page: &Page<'_>) -> String {
    let least = page.files.iter().map(|file| file.records).min();
    let most = page.files.iter().map(|file| file.records).max();
    match (least, most) {
        (Some(least), Some(most)) if page.files.len() > 1 && page.figures.sampled.is_none() => {
            format!("{} records each", crate::text::range(least, most))
        }
        _ => String::new(),
    }
}
