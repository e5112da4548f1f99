//! The test kit: a reference implementation that the tests compare the codec with. It shares no
//! code with the codec, so that they cannot have the same error.
//!
//! - [`oracle`]: the model, a map for each record, and its reader and writer with `prost`.
//! - [`arrow`] reads decoded batches into the model, and [`golden`] the values that TensorFlow
//!   reads.
//! - [`generate`]: random data sets. [`odd_wire`]: their records in every form that protobuf
//!   allows.
//! - [`frame`]: TFRecord frames, with a CRC that is computed bit by bit. [`corrupt`]: flipped bits
//!   and truncated input.
//! - `signals`, on Unix: the signals of child processes.
//!
//! The code is slow and simple, so that it can be verified by reading it.

pub mod arrow;
pub mod corrupt;
mod error;
pub mod frame;
pub mod generate;
pub mod golden;
pub mod odd_wire;
pub mod oracle;
pub mod proto;
#[cfg(unix)]
pub mod signals;

pub use error::{Error, Result};
use proptest::test_runner::{Config, RngSeed};

/// Settings of a property test: the number of cases, which are the same in every run. Nothing is
/// written to disk.
///
/// `PROPTEST_RNG_SEED` selects other cases, `PROPTEST_CASES` another number of cases.
pub fn config(cases: u32) -> Config {
    let asked = Config::default();
    let rng_seed = match asked.rng_seed {
        RngSeed::Random => RngSeed::Fixed(0x7f_a770),
        fixed @ RngSeed::Fixed(_) => fixed,
    };
    let cases = if std::env::var_os("PROPTEST_CASES").is_some() {
        asked.cases
    } else {
        cases
    };
    Config {
        cases,
        rng_seed,
        failure_persistence: None,
        max_shrink_iters: asked.max_shrink_iters.min(20_000),
        ..asked
    }
}
