#![no_main]

use libfuzzer_sys::fuzz_target;
use uncork_fleet::read_body;

// Any bytes behind a good signature are read or refused, and no file has more bytes than the body.
fuzz_target!(|body: &[u8]| {
    if let Some(bytes) = read_body(body) {
        assert!(bytes < body.len());
    }
});
