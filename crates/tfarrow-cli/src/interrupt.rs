//! Ctrl-C and the other ways to ask a program to end, for the commands that run no asynchronous code of their own.

use std::{
    future::poll_fn,
    io,
    sync::atomic::{AtomicU8, Ordering},
    task::{Context, Poll},
};

use tfarrow_dataset::remove_copies;
use tokio::signal;

/// The exit status of a program that was asked to end: 128 and the number of the signal.
static STATUS: AtomicU8 = AtomicU8::new(130);

/// Calls `act` when the program is asked to end, and ends it at once when it is asked again.
pub(crate) fn on_interrupt(act: impl FnOnce() + Send + 'static) {
    let (ready, is_ready) = std::sync::mpsc::channel();
    let watch = move || {
        // Without a runtime signals end the program as they always do.
        let Ok(runtime) = tokio::runtime::Builder::new_current_thread().enable_io().build() else { return };
        let _entered = runtime.enter();
        let Ok(mut signals) = Signals::new() else { return };
        let _ = ready.send(());
        if let Some(status) = runtime.block_on(signals.next()) {
            STATUS.store(status, Ordering::Relaxed);
            act();
            let _ = runtime.block_on(signals.next());
            end();
        }
    };
    std::thread::spawn(watch);
    // From here on nothing is begun that a signal could leave behind.
    let _ = is_ready.recv();
}

/// The ways to ask a program to end.
#[cfg(unix)]
struct Signals(Vec<(signal::unix::Signal, u8)>);

#[cfg(unix)]
impl Signals {
    fn new() -> io::Result<Self> {
        use signal::unix::{SignalKind, signal};
        let all = [SignalKind::interrupt(), SignalKind::hangup(), SignalKind::terminate()];
        let all = all.into_iter().filter(|kind| !is_ignored(*kind));
        let status = |kind: SignalKind| 128 + kind.as_raw_value() as u8;
        all.map(|kind| Ok((signal(kind)?, status(kind)))).collect::<io::Result<_>>().map(Self)
    }

    /// The exit status that the next one asks for.
    async fn next(&mut self) -> Option<u8> {
        let asked = |context: &mut Context<'_>| {
            let asked = self.0.iter_mut().find_map(|(signal, status)| match signal.poll_recv(context) {
                Poll::Ready(asked) => Some(asked.map(|()| *status)),
                Poll::Pending => None,
            });
            asked.map_or(Poll::Pending, Poll::Ready)
        };
        poll_fn(asked).await
    }
}

/// Whether whoever began the program wants it to ignore a signal, as `nohup` does. Where the system does not tell, it is not
/// so.
#[cfg(unix)]
fn is_ignored(kind: signal::unix::SignalKind) -> bool {
    let status = std::fs::read_to_string("/proc/self/status").unwrap_or_default();
    let mask = status.lines().find_map(|line| line.strip_prefix("SigIgn:"));
    let mask = mask.and_then(|mask| u64::from_str_radix(mask.trim(), 16).ok()).unwrap_or(0);
    mask >> (kind.as_raw_value() - 1) & 1 == 1
}

#[cfg(not(unix))]
struct Signals;

#[cfg(not(unix))]
impl Signals {
    fn new() -> io::Result<Self> {
        Ok(Self)
    }

    async fn next(&mut self) -> Option<u8> {
        signal::ctrl_c().await.ok().map(|()| 130)
    }
}

/// The exit status of a program that was asked to end.
pub(crate) fn status() -> u8 {
    STATUS.load(Ordering::Relaxed)
}

/// Ends the program. What was printed stays, and no copies of what it reads are left behind; nothing that was begun gets its
/// name, though a hidden file of it may be left.
pub(crate) fn end() {
    remove_copies();
    std::process::exit(status().into());
}
