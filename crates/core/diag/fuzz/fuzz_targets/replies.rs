#![no_main]

use libfuzzer_sys::fuzz_target;
use uncork_diag::Replies;

// Arbitrary bytes cause no panic, and yield no more sockets than the datagram has room for.
fuzz_target!(|datagram: &[u8]| {
    let mut replies = Replies::to(1);
    let _expected = replies.read(datagram, |connection| {
        if let Some(cc) = connection.cc {
            assert!(cc.as_str().len() <= 16);
        }
    });
    // A netlink header and `inet_diag_msg`: 88 bytes.
    assert!(replies.summary().connections <= datagram.len() as u64 / 88);
});
