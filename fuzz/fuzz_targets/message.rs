#![no_main]

libfuzzer_sys::fuzz_target!(|bytes: &[u8]| tfarrow_attack::message(bytes));
