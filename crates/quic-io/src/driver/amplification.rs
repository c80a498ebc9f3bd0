//! Limits the bytes that a server sends to addresses that may be spoofed (RFC 9000 §8, §21.5.4).
//!
//! For each address, the stack exceeds three times the bytes it has received by up to a datagram.
//! An attacker who spoofs many addresses, with the connection IDs of its own connection, makes the
//! server send 1,200 bytes to each address for a packet of 33.

use std::net::SocketAddr;
use std::time::{Duration, Instant};

use noq_proto::Transmit;

/// Bytes that may be sent to an unvalidated address, per byte received (RFC 9000 §8.1).
const FACTOR: u64 = 3;
/// Size of the datagram with which the stack validates a new address (RFC 9000 §8.2.1).
const CHALLENGE: u64 = 1200;
/// How often a client may move to a new address before it has sent enough for a challenge. Home
/// routers drop the address mappings of connections that are idle for half a minute.
const FREE_MOVE: Duration = Duration::from_secs(10);
/// How many such moves it has in reserve. A client that only downloads sends a few acknowledgements
/// after a move, and nothing more until it is answered.
const RESERVE: u32 = 8;

/// The amplification limit of one connection of a server: what it may send to the client's address,
/// and from which addresses it receives.
#[derive(Debug)]
pub(crate) struct AmplificationLimit {
    address: SocketAddr,
    /// Bytes received and sent during the handshake; `None` once the address is validated.
    handshake: Option<(u64, u64)>,
    /// An address that the client may have moved to, and the bytes received from there.
    candidate: Option<(SocketAddr, u64)>,
    /// When the moves that it has made without paying would be due, one in [`FREE_MOVE`].
    free_moves: Option<Instant>,
    /// A batch that waits until the client has sent more.
    held: Option<(Transmit, Vec<u8>)>,
}

impl AmplificationLimit {
    /// Creates the limit for a client whose first packet had `bytes` bytes.
    pub(crate) fn new(address: SocketAddr, is_validated: bool, bytes: usize) -> Self {
        let handshake = (!is_validated).then_some((bytes as u64, 0));
        Self { address, handshake, candidate: None, free_moves: None, held: None }
    }

    /// The client has completed the handshake, so its address is validated.
    pub(crate) fn validated(&mut self) {
        self.handshake = None;
    }

    /// Whether the connection may process a datagram of `bytes` bytes from this address. It
    /// processes none from a new address until enough has arrived from there for the challenge that
    /// answers it.
    pub(crate) fn admits(&mut self, now: Instant, from: SocketAddr, bytes: usize) -> bool {
        if let Some((received, _)) = &mut self.handshake {
            *received += bytes as u64;
        }
        if from == self.address {
            return true;
        }
        let before = self.candidate.filter(|(address, _)| *address == from);
        let received = before.map_or(0, |(_, bytes)| bytes) + bytes as u64;
        if received * FACTOR < CHALLENGE && !self.takes_free_move(now) {
            self.candidate = Some((from, received));
            return false;
        }
        (self.address, self.candidate) = (from, None);
        true
    }

    /// Takes a free move, if there is one. This is the generic cell rate algorithm (ITU-T I.371).
    fn takes_free_move(&mut self, now: Instant) -> bool {
        let due = self.free_moves.map_or(now, |due| due.max(now));
        let is_free = due <= now + FREE_MOVE * (RESERVE - 1);
        if is_free {
            self.free_moves = Some(due + FREE_MOVE);
        }
        is_free
    }

    /// The number of bytes that may be sent now.
    pub(crate) fn credit(&self) -> u64 {
        self.handshake.map_or(u64::MAX, |(received, sent)| (received * FACTOR).saturating_sub(sent))
    }

    /// Records that `bytes` bytes are sent.
    pub(crate) fn sent(&mut self, bytes: usize) {
        if let Some((_, sent)) = &mut self.handshake {
            *sent += bytes as u64;
        }
    }

    /// Keeps a batch until there is credit for it.
    pub(crate) fn hold(&mut self, transmit: Transmit, contents: Vec<u8>) {
        self.held = Some((transmit, contents));
    }

    /// Whether a batch waits for credit.
    pub(crate) fn holds(&self) -> bool {
        self.held.is_some()
    }

    /// Returns the waiting batch once there is credit for it.
    pub(crate) fn release(&mut self) -> Option<(Transmit, Vec<u8>)> {
        let credit = self.credit();
        self.held.take_if(|(_, contents)| contents.len() as u64 <= credit)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn address(last: u8) -> SocketAddr {
        SocketAddr::from(([192, 0, 2, last], 443))
    }

    #[test]
    fn a_handshake_may_send_three_times_the_bytes_received() {
        let mut guard = AmplificationLimit::new(address(1), false, 1200);
        assert_eq!(guard.credit(), 3600);
        guard.sent(3600);
        assert_eq!(guard.credit(), 0);
        let transmit = Transmit {
            destination: address(1),
            ecn: None,
            size: 90,
            segment_size: None,
            src_ip: None,
        };
        guard.hold(transmit, vec![0; 90]);
        assert!(guard.holds() && guard.release().is_none());
        assert!(guard.admits(crate::worker::now(), address(1), 30));
        assert!(guard.release().is_some() && !guard.holds());
        guard.validated();
        assert_eq!(guard.credit(), u64::MAX);
        assert_eq!(
            AmplificationLimit::new(address(1), true, 1200).credit(),
            u64::MAX,
            "after a Retry"
        );
    }

    #[test]
    fn a_client_that_moves_often_must_send_a_third_of_each_challenge() {
        let now = crate::worker::now();
        let mut guard = AmplificationLimit::new(address(1), true, 1200);
        assert!((2..10).all(|last| guard.admits(now, address(last), 33)), "its reserve");
        let later = now + FREE_MOVE / 2;
        let seen = (0..13).filter(|_| guard.admits(later, address(10), 33)).count();
        assert_eq!(seen, 1, "the 13th: 429 bytes");
        assert!(guard.admits(later, address(10), 33));
        assert!(guard.admits(later, address(11), 400), "enough for a challenge");
        assert!((20..100).all(|last| !guard.admits(later, address(last), 33)), "spoofed");
        assert!(guard.admits(now + FREE_MOVE, address(12), 33));
        assert!(!guard.admits(now + FREE_MOVE, address(13), 33));
    }
}
