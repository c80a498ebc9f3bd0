//! Holds back a body, so that a client network gets no more than it may.

use std::fmt;
use std::net::IpAddr;
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll, ready};

use tokio::time::{Sleep, sleep};

use crate::clock;
use crate::network_limiter::NetworkLimiter;

/// What a body asks for at a time. Responses of a network take turns: at the least rate of 1 Mbit/s each gets
/// a piece within the 30 s of a stalled response if they are not more than 200.
const PIECE: usize = 16 * 1024;

/// The part of a client network's rate that one body gets.
pub(crate) struct Throttle {
    limiter: Arc<NetworkLimiter>,
    network: IpAddr,
    /// Bytes that may be sent now.
    granted: usize,
    waiting: Option<Pin<Box<Sleep>>>,
}

impl Throttle {
    pub(crate) fn new(limiter: Arc<NetworkLimiter>, network: IpAddr) -> Self {
        Self { limiter, network, granted: 0, waiting: None }
    }

    /// How many of the `wanted` bytes may be sent now, at least one.
    pub(super) fn poll_grant(&mut self, cx: &mut Context<'_>, wanted: usize) -> Poll<usize> {
        while self.granted == 0 {
            if let Some(waiting) = &mut self.waiting {
                ready!(waiting.as_mut().poll(cx));
                self.waiting = None;
            }
            let piece = wanted.clamp(1, PIECE);
            match self.limiter.admit(self.network, piece as u64, clock::now()) {
                Ok(()) => self.granted = piece,
                Err(wait) => self.waiting = Some(Box::pin(sleep(wait))),
            }
        }
        Poll::Ready(self.granted.min(wanted))
    }

    /// Takes `bytes` from the granted ones: they were sent.
    pub(super) fn sent(&mut self, bytes: usize) {
        self.granted = self.granted.saturating_sub(bytes);
    }
}

impl fmt::Debug for Throttle {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Throttle").field("granted", &self.granted).finish_non_exhaustive()
    }
}
