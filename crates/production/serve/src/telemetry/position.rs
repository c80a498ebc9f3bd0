//! Positions in the stream of a connection.

/// The largest overhead of a TLS record: header, explicit nonce and tag of TLS 1.2 with AES-GCM (RFC 5288 §3).
const RECORD_OVERHEAD: u64 = 29;
/// The records that are sent first are the smallest (`tcp::coalescing`).
const RECORD: u64 = 4 * 1024;

/// How far the HTTP library has written, in bytes of the socket.
///
/// Without TLS this is exact. With TLS it is an upper bound of what is not yet written: by less than one percent.
#[derive(Clone, Copy, Debug)]
pub(super) struct StreamPosition {
    /// Where the socket had accepted everything.
    anchor: u64,
    /// Bytes passed on since then.
    passed: u64,
    is_tls: bool,
    is_in_order: bool,
}

impl StreamPosition {
    /// The socket has accepted `written` bytes, and nothing waits for it.
    pub(super) fn new(written: u64, is_tls: bool) -> Self {
        Self { anchor: written, passed: 0, is_tls, is_in_order: false }
    }

    /// Responses follow each other (HTTP/1.1).
    pub(super) fn in_order(self) -> Self {
        Self { is_in_order: true, ..self }
    }

    pub(super) fn is_in_order(self) -> bool {
        self.is_in_order
    }

    pub(super) fn pass(&mut self, bytes: u64) {
        self.passed += bytes;
    }

    /// The socket has accepted everything, `written` bytes in total.
    pub(super) fn settle(&mut self, written: u64) {
        (self.anchor, self.passed) = (written, 0);
    }

    pub(super) fn get(self) -> u64 {
        let records = if self.is_tls && self.passed > 0 { self.passed / RECORD + 2 } else { 0 };
        self.anchor + self.passed + records * RECORD_OVERHEAD
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn position_without_tls_is_the_sum_of_what_was_passed() {
        let mut position = StreamPosition::new(100, false);
        position.pass(50_000);
        position.pass(7);
        assert_eq!(position.get(), 50_107);
    }

    #[test]
    fn position_with_tls_is_behind_the_records_and_settles_with_the_socket() {
        let mut position = StreamPosition::new(1000, true);
        assert_eq!(position.get(), 1000, "nothing was passed");
        position.pass(100_000);
        let least = 1000 + 100_000 + 100_000 / 4096 * RECORD_OVERHEAD;
        assert!((least..least + 100).contains(&position.get()), "{}", position.get());
        position.settle(101_200);
        assert_eq!(position.get(), 101_200);
    }
}
