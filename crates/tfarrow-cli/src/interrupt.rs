//! Ctrl-C and the other ways to ask a program to end, for the commands that run no asynchronous code of their own.

use std::{
    io,
    sync::atomic::{AtomicU8, Ordering},
};

use tokio::signal;

/// The exit status of a program that was asked to end: 128 and the number of the signal.
static STATUS: AtomicU8 = AtomicU8::new(130);

/// Calls `act` when the program is asked to end, and ends it at once when it is asked again.
pub(crate) fn on_interrupt(act: impl FnOnce() + Send + 'static) {
    let watch = move || {
        // Without a runtime signals end the program as they always do.
        let Ok(runtime) = tokio::runtime::Builder::new_current_thread().enable_io().build() else { return };
        if let Ok(status) = runtime.block_on(asked()) {
            STATUS.store(status, Ordering::Relaxed);
            act();
            let _ = runtime.block_on(asked());
            end();
        }
    };
    std::thread::spawn(watch);
}

#[cfg(unix)]
async fn asked() -> io::Result<u8> {
    use signal::unix::{SignalKind, signal};
    let (mut hangup, mut terminate) = (signal(SignalKind::hangup())?, signal(SignalKind::terminate())?);
    tokio::select! {
        pressed = signal::ctrl_c() => pressed.map(|()| 130),
        _ = hangup.recv() => Ok(129),
        _ = terminate.recv() => Ok(143),
    }
}

#[cfg(not(unix))]
async fn asked() -> io::Result<u8> {
    signal::ctrl_c().await.map(|()| 130)
}

/// The exit status of a program that was asked to end.
pub(crate) fn status() -> u8 {
    STATUS.load(Ordering::Relaxed)
}

/// Ends the program. What was printed stays; nothing that was begun gets its name, though a hidden file of it may be left.
pub(crate) fn end() {
    std::process::exit(status().into());
}
