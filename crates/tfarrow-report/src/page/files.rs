//! The section of files: the shards with their sizes and dates, and how the page was made.

use std::time::SystemTime;

use chrono::{DateTime, Utc};
use maud::{Markup, PreEscaped, html};
use tfarrow_dataset::{Compression, Shard};
use tfarrow_stats::ShardRecords;

use super::{
    Page,
    excerpt::{NAME_CHARS, excerpt, without_secrets},
};
use crate::text::{count, size};

/// Size limit of the table in bytes.
const MAX_BYTES: usize = 50_000;

/// A file or an object of the data set.
#[derive(Clone, Debug)]
pub(crate) struct PageFile {
    /// The name in the data set.
    pub(super) name: String,
    /// Numbers of its records and of their bytes.
    pub(super) records: u64,
    pub(super) bytes: u64,
    /// Size as stored in bytes; 0 if it is not known.
    pub(super) size: u64,
    pub(super) compression: &'static str,
    /// The time of the last change; `None` for streams and objects.
    pub(super) modified: Option<SystemTime>,
}

impl PageFile {
    /// Describes the shards of a data set. `counts` are by the numbers that places have.
    pub(crate) fn all(shards: &[Shard], counts: &[ShardRecords]) -> Vec<Self> {
        let mut files = Vec::with_capacity(shards.len());
        for (number, shard) in shards.iter().enumerate() {
            let ShardRecords { records, bytes } = counts.get(number).copied().unwrap_or_default();
            // The time of a local copy is not the time of its source.
            let is_file =
                shard.local_path() == shard.path && !shard.is_remote() && !shard.is_stream();
            files.push(Self {
                name: shard.name.to_string_lossy().into_owned(),
                records,
                bytes,
                size: shard.size,
                compression: match shard.compression() {
                    Some(Compression::Gzip) => "gzip",
                    Some(Compression::Zlib) => "zlib",
                    Some(Compression::Snappy) => "snappy",
                    _ => "not compressed",
                },
                modified: if is_file {
                    shard.path.metadata().and_then(|of| of.modified()).ok()
                } else {
                    None
                },
            });
        }
        files
    }
}

/// The dates of the first and the last change of the files.
pub(super) fn dates(files: &[PageFile]) -> Option<(String, String)> {
    let first = files.iter().filter_map(|file| file.modified).min()?;
    let last = files.iter().filter_map(|file| file.modified).max()?;
    Some((day(first), day(last)))
}

fn day(time: SystemTime) -> String {
    DateTime::<Utc>::from(time).format("%Y-%m-%d").to_string()
}

/// The section of files.
pub(super) fn section(page: &Page<'_>) -> Markup {
    let mut rows = String::new();
    let mut shown = 0;
    for file in page.files {
        if rows.len() > MAX_BYTES {
            break;
        }
        rows.push_str(&row(file).into_string());
        shown += 1;
    }
    let rest = page.files.len() - shown;
    html! {
        section id="files" {
            h2 { "Files " span class="count" { (count(page.files.len() as u64)) } }
            div class="scroll" tabindex="0" role="region" aria-label="Files" {
                table class="data wide" {
                    thead { tr { @for head in ["file", "records", "payload", "stored", "compression", "modified (UTC)"] {
                        th scope="col" { (head) }
                    } } }
                    tbody { (PreEscaped(rows)) }
                }
            }
            @if rest > 0 { p class="note" { "and " (count(rest as u64)) " more, omitted to limit the size of the page" } }
        }
    }
}

fn row(file: &PageFile) -> Markup {
    let modified = file.modified.map(|time| {
        DateTime::<Utc>::from(time)
            .format("%Y-%m-%d %H:%M")
            .to_string()
    });
    html! {
        tr {
            th scope="row" { (excerpt(without_secrets(&file.name), NAME_CHARS)) }
            td { (count(file.records)) }
            td { (size(file.bytes)) }
            td { @if file.size > 0 { (size(file.size)) } }
            td { (file.compression) }
            td { (modified.unwrap_or_default()) }
        }
    }
}

/// The footer: how the figures were computed.
pub(super) fn footer() -> Markup {
    html! {
        footer {
            p {
                "Made by tfarrow " (env!("CARGO_PKG_VERSION")) ". Counts, ranges, means and deviations are of all values. Medians, \
                 quantiles, skewness and histograms are of samples where there are many values, which is noted there."
            }
        }
    }
}
