#![no_main]

use libfuzzer_sys::fuzz_target;

fuzz_target!(|script: &[u8]| uncork_cc_fuzz::truthful(script));
