//! SIGINT, SIGHUP and SIGTERM: the first one asks the running command to stop, the second one ends
//! the program.

use std::{
    io,
    sync::atomic::{AtomicU8, Ordering},
    thread,
};

use tfarrow_dataset::internals::remove_copies;

use crate::output::is_paging;

/// The exit status of a program that Ctrl-C interrupted.
const CTRL_C: u8 = 130;

/// The exit status of an interrupted program: 128 plus the number of the signal.
static STATUS: AtomicU8 = AtomicU8::new(CTRL_C);

/// Calls `act` at the first signal, and ends the program at the second one.
///
/// The signals are caught when this returns. Where they cannot be caught, they end the program as
/// they do by default.
pub(crate) fn on_interrupt(act: impl FnOnce() + Send + 'static) {
    let Ok(signals) = platform::signals() else {
        return;
    };
    thread::spawn(move || {
        // Ctrl-C is a key of a pager.
        let mut signals = signals.filter(|status| *status != CTRL_C || !is_paging());
        let Some(status) = signals.next() else { return };
        STATUS.store(status, Ordering::Relaxed);
        act();
        signals.next();
        end();
    });
}

/// Catches Ctrl-C from now on. Each item of the iterator is one; the iterator blocks until it
/// comes. Ctrl-C in a pager is none.
///
/// # Errors
/// The signal handler cannot be installed.
pub(crate) fn ctrl_c() -> io::Result<impl Iterator<Item = ()> + Send> {
    Ok(platform::ctrl_c()?.map(drop).filter(|()| !is_paging()))
}

/// The exit status of an interrupted program.
pub(crate) fn status() -> u8 {
    STATUS.load(Ordering::Relaxed)
}

/// Ends the program. Printed output stays, and temporary copies of the input are removed.
/// Incomplete output files never get their names, but a hidden temporary file may be left.
pub(crate) fn end() {
    remove_copies();
    std::process::exit(status().into());
}

#[cfg(unix)]
mod platform {
    use std::{fs, io, iter};

    use signal_hook::{
        consts::{SIGHUP, SIGINT, SIGTERM},
        iterator::Signals,
    };

    /// The exit statuses of the signals that ask the program to end, as they arrive.
    pub(super) fn signals() -> io::Result<impl Iterator<Item = u8> + Send> {
        catch(
            [SIGINT, SIGHUP, SIGTERM]
                .into_iter()
                .filter(|signal| !is_ignored(*signal)),
        )
    }

    pub(super) fn ctrl_c() -> io::Result<impl Iterator<Item = u8> + Send> {
        catch(iter::once(SIGINT))
    }

    fn catch(signals: impl Iterator<Item = i32>) -> io::Result<impl Iterator<Item = u8> + Send> {
        let mut signals = Signals::new(signals)?;
        // Several signals may arrive at once.
        let arrivals = iter::repeat_with(move || {
            let statuses = signals.wait().map(|signal| 128 + signal as u8);
            statuses.collect::<Vec<_>>()
        });
        Ok(arrivals.flatten())
    }

    /// Whether the parent process had the signal ignored, as `nohup` does; `false` where the system
    /// has no `/proc`.
    fn is_ignored(signal: i32) -> bool {
        let status = fs::read_to_string("/proc/self/status").unwrap_or_default();
        let mask = status.lines().find_map(|line| line.strip_prefix("SigIgn:"));
        let mask = mask
            .and_then(|mask| u64::from_str_radix(mask.trim(), 16).ok())
            .unwrap_or(0);
        mask >> (signal - 1) & 1 == 1
    }
}

#[cfg(not(unix))]
mod platform {
    use std::{future, io, iter, pin::pin, task::Poll};

    use tokio::{runtime, signal};

    pub(super) fn signals() -> io::Result<impl Iterator<Item = u8> + Send> {
        ctrl_c()
    }

    /// The exit status of Ctrl-C, each time that it is pressed.
    pub(super) fn ctrl_c() -> io::Result<impl Iterator<Item = u8> + Send> {
        let runtime = runtime::Builder::new_current_thread().build()?;
        // The first poll installs the handler.
        runtime.block_on(async {
            let mut interrupt = pin!(signal::ctrl_c());
            future::poll_fn(|context| Poll::Ready(drop(interrupt.as_mut().poll(context)))).await;
        });
        Ok(iter::from_fn(move || {
            runtime.block_on(signal::ctrl_c()).ok().map(|()| 130)
        }))
    }
}
