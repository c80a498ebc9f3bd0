#![no_main]

use libfuzzer_sys::fuzz_target;
use uncork_diag::Replies;

// Any bytes instead of a datagram: no panic, and no socket that there is no room for.
fuzz_target!(|datagram: &[u8]| {
    let mut replies = Replies::to(1);
    let _expected = replies.read(datagram, |connection| {
        if let Some(cc) = connection.cc {
            assert!(cc.as_str().len() <= 16);
        }
    });
    // A header and the structure behind it.
    assert!(replies.summary().connections <= datagram.len() as u64 / 88);
});
