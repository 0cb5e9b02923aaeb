#![no_main]

libfuzzer_sys::fuzz_target!(|data: &[u8]| df11_fuzz::journal::run(data));
