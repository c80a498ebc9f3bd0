//! Outgoing batches.

use std::collections::VecDeque;

use noq_proto::Transmit;

/// Sends batches of datagrams.
pub trait Sink {
    /// Sends `contents` to `transmit.destination`: datagrams of `transmit.segment_size` bytes each, the
    /// last possibly shorter.
    fn send(&mut self, transmit: &Transmit, contents: &[u8]) -> Sent;
}

/// The result of sending a batch.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Sent {
    /// All of it was sent, or failed for good: do not retry.
    All,
    /// The bytes before this offset, a datagram boundary, were sent; retry the rest.
    Until(usize),
}

/// The result of a turn.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Progress {
    /// A connection did some work.
    Worked,
    /// No connection has work to do.
    Idle,
    /// The sink is full.
    Blocked,
}

/// A batch that is only partly sent: `contents` from offset `from` remains.
pub(crate) struct PendingOutput {
    transmit: Transmit,
    contents: Vec<u8>,
    from: usize,
}

/// Sends and clears `contents`. Returns what the sink did not take.
pub(crate) fn send(
    sink: &mut impl Sink,
    transmit: Transmit,
    contents: &mut Vec<u8>,
) -> Option<PendingOutput> {
    match sink.send(&transmit, contents) {
        Sent::All => {
            contents.clear();
            None
        }
        Sent::Until(from) => {
            Some(PendingOutput { transmit, contents: std::mem::take(contents), from })
        }
    }
}

impl PendingOutput {
    /// Retries. Returns the empty buffer, or the rest that is still not sent.
    pub(crate) fn send(mut self, sink: &mut impl Sink) -> Result<Vec<u8>, Self> {
        match sink.send(&self.transmit, &self.contents[self.from..]) {
            Sent::All => {
                self.contents.clear();
                Ok(self.contents)
            }
            Sent::Until(more) => {
                self.from += more;
                Err(self)
            }
        }
    }
}

/// Replies of the endpoint to clients without a connection. The queue is bounded, so a flood cannot
/// exhaust memory.
#[derive(Default)]
pub(crate) struct QueuedReplies {
    queue: VecDeque<(Transmit, Vec<u8>)>,
    dropped: u64,
}

impl QueuedReplies {
    const MAX_REPLIES: usize = 1024;

    pub(crate) fn push(&mut self, transmit: Transmit, contents: Vec<u8>) {
        if self.queue.len() < Self::MAX_REPLIES {
            self.queue.push_back((transmit, contents));
        } else {
            self.dropped += 1;
        }
    }

    pub(crate) fn pop(&mut self) -> Option<(Transmit, Vec<u8>)> {
        self.queue.pop_front()
    }

    pub(crate) fn is_empty(&self) -> bool {
        self.queue.is_empty()
    }

    pub(crate) fn dropped(&self) -> u64 {
        self.dropped
    }
}
