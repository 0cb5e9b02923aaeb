#![no_main]

libfuzzer_sys::fuzz_target!(|data: &[u8]| df11_fuzz::codec_round_trip::run(data));
