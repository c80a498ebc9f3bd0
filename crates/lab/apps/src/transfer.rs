//! Requests and their responses.

use uncork_units::{Rate, Time};

/// One request and its outcome.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Transfer {
    /// Size of the response's body.
    pub bytes: u64,
    /// When the client wanted it. Waiting for the connection counts as part of the transfer.
    pub start: Time,
    /// When the first bytes of the body arrived.
    pub first_byte: Option<Time>,
    /// When the last byte of the body arrived.
    pub end: Option<Time>,
    /// Bytes of the body that have arrived.
    pub received: u64,
}

impl Transfer {
    /// The body's size over the time from the wish to its last byte, waiting included, once it has
    /// ended; [`Rate::MAX`] if that took no time.
    pub fn throughput(&self) -> Option<Rate> {
        let took = self.end?.since(self.start);
        Some(if took.is_zero() { Rate::MAX } else { Rate::of(self.bytes, took) })
    }
}

/// The transfers of a connection; only the last can be outstanding.
#[derive(Clone, Debug, Default)]
pub(crate) struct Transfers(Vec<Transfer>);

impl Transfers {
    /// Starts a request for `bytes` that was wanted at `start`.
    pub(crate) fn begin(&mut self, start: Time, bytes: u64) {
        self.0.push(Transfer { bytes, start, first_byte: None, end: None, received: 0 });
    }

    /// Whether a response is incomplete.
    pub(crate) fn outstanding(&self) -> bool {
        self.0.last().is_some_and(|transfer| transfer.end.is_none())
    }

    /// Bytes of the outstanding response arrive. Returns how many of them belong to it, zero if
    /// nothing is outstanding.
    pub(crate) fn receive(&mut self, now: Time, bytes: u64) -> u64 {
        let Some(transfer) = self.0.last_mut().filter(|transfer| transfer.end.is_none()) else {
            return 0;
        };
        let accepted = bytes.min(transfer.bytes - transfer.received);
        if accepted == 0 {
            return 0;
        }
        transfer.received += accepted;
        transfer.first_byte.get_or_insert(now);
        if transfer.received == transfer.bytes {
            transfer.end = Some(now);
        }
        accepted
    }

    /// All transfers in the order of their requests.
    pub(crate) fn all(&self) -> &[Transfer] {
        &self.0
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn transfer_lasts_from_the_request_to_the_last_byte() {
        let at = Time::from_nanos;
        let mut transfers = Transfers::default();
        assert_eq!(transfers.receive(at(0), 10), 0);
        transfers.begin(at(5), 1000);
        assert!(transfers.outstanding());
        assert_eq!(transfers.receive(at(10), 0), 0);
        assert_eq!(transfers.receive(at(15), 400), 400);
        assert_eq!(transfers.all()[0].throughput(), None);
        assert_eq!(transfers.receive(at(1005), 700), 600);
        assert!(!transfers.outstanding());
        assert_eq!(transfers.receive(at(1006), 1), 0);
        let transfer = transfers.all()[0];
        assert_eq!((transfer.first_byte, transfer.end), (Some(at(15)), Some(at(1005))));
        assert_eq!(transfer.throughput(), Some(Rate::from_bytes_per_sec(1_000_000_000)));
    }

    #[test]
    fn transfer_without_duration_is_infinitely_fast() {
        let mut transfers = Transfers::default();
        transfers.begin(Time::ZERO, 1);
        transfers.receive(Time::ZERO, 1);
        assert_eq!(transfers.all()[0].throughput(), Some(Rate::MAX));
    }
}
