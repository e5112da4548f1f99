//! How far a long job is: a bar on standard error, where that is a terminal.

use std::time::Duration;

use indicatif::{ProgressBar, ProgressDrawTarget, ProgressStyle};

use crate::output::count;

/// A bar of bytes and records. Nothing at all where standard error is no terminal.
#[derive(Debug)]
pub(crate) struct Progress(ProgressBar);

const KNOWN: &str =
    "{bar:30} {decimal_bytes}/{decimal_total_bytes}  {msg} records  {decimal_bytes_per_sec}  {eta} left";
const UNKNOWN: &str = "{spinner} {decimal_bytes}  {msg} records  {decimal_bytes_per_sec}";

impl Progress {
    /// A bar up to `total` bytes; 0 where nobody knows.
    pub(crate) fn new(total: u64) -> Self {
        let bar = match total {
            0 => ProgressBar::no_length(),
            total => ProgressBar::new(total),
        };
        bar.set_draw_target(ProgressDrawTarget::stderr_with_hz(10));
        if bar.is_hidden() {
            return Self(bar);
        }
        let style = ProgressStyle::with_template(if total == 0 { UNKNOWN } else { KNOWN });
        bar.set_style(style.unwrap_or_else(|_| ProgressStyle::default_bar()));
        bar.enable_steady_tick(Duration::from_millis(250));
        Self(bar)
    }

    /// So many bytes and records are done in all.
    pub(crate) fn set(&self, bytes: u64, records: u64) {
        if !self.0.is_hidden() {
            self.0.set_message(count(records));
            self.0.set_position(bytes);
        }
    }
}

impl Drop for Progress {
    fn drop(&mut self) {
        self.0.finish_and_clear();
    }
}
