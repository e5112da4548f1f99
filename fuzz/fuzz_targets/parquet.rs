#![no_main]

// The product catches the panics of the libraries that read Parquet, and libFuzzer's own hook would end the run before it can.
// What is not caught ends it all the same.
libfuzzer_sys::fuzz_target!(init: std::panic::set_hook(Box::new(|_| ())), |bytes: &[u8]| tfarrow_attack::parquet(bytes));
