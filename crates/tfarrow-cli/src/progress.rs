//! A progress bar on standard error, where that is a terminal.

use std::{
    io::{self, IsTerminal},
    sync::atomic::{AtomicU64, Ordering},
    time::Duration,
};

use indicatif::{ProgressBar, ProgressDrawTarget, ProgressStyle};
use tfarrow_report::text::count;

use crate::stderr;

/// A bar of bytes and records, which is hidden where standard error is not a terminal.
#[derive(Debug)]
pub(crate) struct Bar {
    bar: ProgressBar,
    records: AtomicU64,
}

const KNOWN: &str =
    "{wide_bar} {decimal_bytes}/{decimal_total_bytes} {msg}{decimal_bytes_per_sec} {eta} left";
const UNKNOWN: &str = "{spinner} {decimal_bytes} {msg}{decimal_bytes_per_sec} {elapsed}";

/// Whether bars are drawn: standard error is a terminal.
pub(crate) fn is_shown() -> bool {
    io::stderr().is_terminal() && !stderr::is_quiet()
}

impl Bar {
    /// A bar of `total` bytes; 0 where the total is unknown.
    pub(crate) fn new(total: u64) -> Self {
        let bar = ProgressBar::no_length();
        let target = if is_shown() {
            ProgressDrawTarget::stderr_with_hz(10)
        } else {
            ProgressDrawTarget::hidden()
        };
        bar.set_draw_target(target);
        let this = Self {
            bar,
            records: AtomicU64::new(0),
        };
        if this.is_shown() {
            this.bar.set_style(style(UNKNOWN));
            this.set(0, total, 0);
            this.bar.enable_steady_tick(Duration::from_millis(250));
        }
        this
    }

    /// Whether the bar is drawn.
    pub(crate) fn is_shown(&self) -> bool {
        !self.bar.is_hidden()
    }

    /// Adds bytes and records. May be called from any thread.
    pub(crate) fn add(&self, bytes: u64, records: u64) {
        let all = self.records.fetch_add(records, Ordering::Relaxed) + records;
        if self.is_shown() {
            self.bar.set_message(records_done(all));
            self.bar.inc(bytes);
        }
    }

    /// Sets the bytes of `total`, and the records, that are done so far.
    pub(crate) fn set(&self, bytes: u64, total: u64, records: u64) {
        if self.bar.length() != Some(total) && total > 0 {
            self.bar.set_style(style(KNOWN));
            self.bar.set_length(total);
        }
        self.bar.set_message(records_done(records));
        self.bar.set_position(bytes);
    }
}

/// The number of records as part of the line; empty for 0, as in a pass that counts none.
fn records_done(records: u64) -> String {
    if records == 0 {
        String::new()
    } else {
        format!("{} records ", count(records))
    }
}

fn style(template: &str) -> ProgressStyle {
    ProgressStyle::with_template(template).unwrap_or_else(|_| ProgressStyle::default_bar())
}

impl Drop for Bar {
    fn drop(&mut self) {
        self.bar.finish_and_clear();
    }
}
