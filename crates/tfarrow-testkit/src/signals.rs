//! The signals of child processes.

use std::{os::unix::process::CommandExt, process::Command};

use nix::sys::signal::{SigHandler, Signal, signal};

/// Restores the default action of signals in the program that `command` starts. Tests that a script
/// starts in the background ignore Ctrl-C, and the program would inherit that.
#[expect(
    unsafe_code,
    reason = "the standard library has no safe way to set the signal actions of a child"
)]
pub fn restore_signals(command: &mut Command) {
    let restore = || {
        for number in [Signal::SIGHUP, Signal::SIGINT, Signal::SIGTERM] {
            // SAFETY: the default action is set, and the earlier action is not used.
            unsafe { signal(number, SigHandler::SigDfl)? };
        }
        Ok(())
    };
    // SAFETY: between fork and exec only async-signal-safe functions may be called. POSIX lists
    // signal(2) among them, and nothing here allocates, locks or panics.
    unsafe { command.pre_exec(restore) };
}
