#![no_main]

libfuzzer_sys::fuzz_target!(|bytes: &[u8]| tfarrow_attack::example_list(bytes));
