//! Ctrl-C, for the commands that run no asynchronous code of their own.

/// The exit status of a program that Ctrl-C ended.
pub(crate) const INTERRUPTED: u8 = 130;

/// Calls `act` when Ctrl-C is pressed, and ends the program at once when it is pressed again.
pub(crate) fn on_interrupt(act: impl FnOnce() + Send + 'static) {
    let watch = move || {
        // Without a runtime Ctrl-C ends the program as it always does.
        let Ok(runtime) = tokio::runtime::Builder::new_current_thread().enable_io().build() else { return };
        if runtime.block_on(tokio::signal::ctrl_c()).is_ok() {
            act();
            let _ = runtime.block_on(tokio::signal::ctrl_c());
            end();
        }
    };
    std::thread::spawn(watch);
}

/// Ends the program. What was printed stays; nothing that was begun is kept.
pub(crate) fn end() {
    std::process::exit(INTERRUPTED.into());
}
