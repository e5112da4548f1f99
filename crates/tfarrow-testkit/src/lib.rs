//! What the tests of this workspace hold the codec against. It shares no code with it, and so no mistake.
//!
//! - [`oracle`]: the model, a plain map a record, and `prost` reading and writing it.
//! - [`arrow`]: a decoded batch read back into the model. [`golden`]: TensorFlow's own answers likewise.
//! - [`generate`]: random data sets. [`odd_wire`]: their records in every form that protobuf allows.
//! - [`frame`]: TFRecord's envelope, with a CRC a bit at a time. [`corrupt`]: bit flips, and cuts.
//!
//! Slow and plain on purpose: where the codec and this crate differ, this crate should be easy to believe.

pub mod arrow;
pub mod corrupt;
mod error;
pub mod frame;
pub mod generate;
pub mod golden;
pub mod odd_wire;
pub mod oracle;
pub mod proto;

pub use error::{Error, Result};
use proptest::test_runner::{Config, RngSeed};

/// A property test's settings: so many cases, the same ones in every run, and nothing written to disk.
///
/// `PROPTEST_RNG_SEED` asks for other cases, `PROPTEST_CASES` for another number of them.
pub fn config(cases: u32) -> Config {
    let asked = Config::default();
    let rng_seed = match asked.rng_seed {
        RngSeed::Random => RngSeed::Fixed(0x7f_a770),
        fixed @ RngSeed::Fixed(_) => fixed,
    };
    let cases = if std::env::var_os("PROPTEST_CASES").is_some() { asked.cases } else { cases };
    Config { cases, rng_seed, failure_persistence: None, max_shrink_iters: asked.max_shrink_iters.min(20_000), ..asked }
}
