//! The size of the pieces in which a body is read.

use std::time::{Duration, Instant};

/// The first piece. Many HTTP/2 clients process a frame only once it is complete, and a frame of 16
/// KiB does not fit into the first round trip of a connection.
const FIRST: usize = 8 * 1024;
/// The largest piece.
const MAX_PIECE: usize = 128 * 1024;
/// A client that takes longer for a piece is slow.
const SLOW: Duration = Duration::from_secs(1);

/// The size of the next piece: small at first and for slow clients, so that a blocked response holds little memory.
#[derive(Debug)]
pub(crate) struct PieceSize {
    bytes: usize,
    given: Option<Instant>,
}

impl Default for PieceSize {
    fn default() -> Self {
        Self { bytes: FIRST, given: None }
    }
}

impl PieceSize {
    /// The size of the next piece, which is read at the time `now`.
    pub(crate) fn next(&mut self, now: Instant) -> usize {
        self.bytes = match self.given.replace(now) {
            Some(given) if now.saturating_duration_since(given) <= SLOW => {
                MAX_PIECE.min(2 * self.bytes)
            }
            _ => FIRST,
        };
        self.bytes
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::clock;

    #[test]
    fn pieces_grow_while_the_client_is_fast() {
        let (start, mut piece) = (clock::now(), PieceSize::default());
        let kib = |piece: usize| piece / 1024;
        let fast: Vec<_> = (0..6).map(|_| kib(piece.next(start))).collect();
        assert_eq!(fast, [8, 16, 32, 64, 128, 128]);
        assert_eq!(kib(piece.next(start + 2 * SLOW)), 8);
        assert_eq!(kib(piece.next(start + 3 * SLOW)), 16);
    }
}
