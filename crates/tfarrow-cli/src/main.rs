//! The `tfarrow` program, which the library `tfarrow_cli` contains.

use std::process::ExitCode;

/// Batches are freed by other threads than those that allocate them, which slows the system's
/// allocator down.
#[global_allocator]
static ALLOCATOR: mimalloc::MiMalloc = mimalloc::MiMalloc;

fn main() -> ExitCode {
    ExitCode::from(tfarrow_cli::run_program(std::env::args_os()))
}
