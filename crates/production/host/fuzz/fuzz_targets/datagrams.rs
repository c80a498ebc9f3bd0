#![no_main]

use libfuzzer_sys::fuzz_target;

// Arbitrary bytes cause no panic, and yield no more messages than the datagram has room for.
fuzz_target!(|datagram: &[u8]| {
    if let Ok(count) = uncork_host::read_datagram(datagram) {
        // `struct nlmsghdr`: 16 bytes.
        assert!(count <= datagram.len() / 16);
    }
});
