//! How far a long job is: a bar on standard error, where that is a terminal.

use std::{
    sync::atomic::{AtomicU64, Ordering},
    time::Duration,
};

use indicatif::{ProgressBar, ProgressDrawTarget, ProgressStyle};

use crate::output::count;

/// A bar of bytes and records. Nothing at all where standard error is no terminal.
#[derive(Debug)]
pub(crate) struct Bar {
    bar: ProgressBar,
    records: AtomicU64,
}

const KNOWN: &str = "{wide_bar} {decimal_bytes}/{decimal_total_bytes} {msg}{decimal_bytes_per_sec} {eta} left";
const UNKNOWN: &str = "{spinner} {decimal_bytes} {msg}{decimal_bytes_per_sec}";

impl Bar {
    /// A bar up to `total` bytes; 0 where nobody knows.
    pub(crate) fn new(total: u64) -> Self {
        let bar = ProgressBar::no_length();
        bar.set_draw_target(ProgressDrawTarget::stderr_with_hz(10));
        let this = Self { bar, records: AtomicU64::new(0) };
        if this.is_shown() {
            this.bar.set_style(style(UNKNOWN));
            this.set(0, total, 0);
            this.bar.enable_steady_tick(Duration::from_millis(250));
        }
        this
    }

    /// Whether there is anyone to see it.
    pub(crate) fn is_shown(&self) -> bool {
        !self.bar.is_hidden()
    }

    /// So many bytes and records more are done. May be called from any thread.
    pub(crate) fn add(&self, bytes: u64, records: u64) {
        let all = self.records.fetch_add(records, Ordering::Relaxed) + records;
        if self.is_shown() {
            self.bar.set_message(records_done(all));
            self.bar.inc(bytes);
        }
    }

    /// So many bytes of `total` and so many records are done in all.
    pub(crate) fn set(&self, bytes: u64, total: u64, records: u64) {
        if self.bar.length() != Some(total) && total > 0 {
            self.bar.set_style(style(KNOWN));
            self.bar.set_length(total);
        }
        self.bar.set_message(records_done(records));
        self.bar.set_position(bytes);
    }
}

/// How many records are done, as part of the line; nothing before there are any, as in a pass that only looks at them.
fn records_done(records: u64) -> String {
    if records == 0 { String::new() } else { format!("{} records ", count(records)) }
}

fn style(template: &str) -> ProgressStyle {
    ProgressStyle::with_template(template).unwrap_or_else(|_| ProgressStyle::default_bar())
}

impl Drop for Bar {
    fn drop(&mut self) {
        self.bar.finish_and_clear();
    }
}
