#![no_main]

// The libraries that read Parquet and Arrow panic on some corrupt files, and tfarrow catches these
// panics. The panic hook of libFuzzer would end the run before. A panic that is not caught ends the
// run in any case.
libfuzzer_sys::fuzz_target!(init: std::panic::set_hook(Box::new(|_| ())), |bytes: &[u8]| tfarrow_attack::index(bytes));
