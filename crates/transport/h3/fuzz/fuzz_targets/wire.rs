#![no_main]

#[path = "../../tests/common/mod.rs"]
mod common;
#[path = "../../tests/h3/wire.rs"]
mod wire;

use std::sync::OnceLock;

use common::Test;
use libfuzzer_sys::fuzz_target;

// For any streams of a client, the server answers or closes with a known error code.
fuzz_target!(|script: &[u8]| {
    static TEST: OnceLock<Test> = OnceLock::new();
    let _code = wire::play(TEST.get_or_init(Test::new), script);
});
