//! What goes out.

use std::collections::VecDeque;

use noq_proto::Transmit;

/// Where batches go.
pub trait Sink {
    /// Sends `contents`, datagrams of `transmit.segment_size` bytes each but the last, to
    /// `transmit.destination`.
    fn send(&mut self, transmit: &Transmit, contents: &[u8]) -> Sent;
}

/// What became of a batch.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Sent {
    /// It is gone, or will never be.
    All,
    /// It was taken up to this byte, where a datagram begins; the rest has to wait.
    Until(usize),
}

/// How far a turn got.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Progress {
    /// Somebody had something to do.
    Worked,
    /// Nobody has anything to do.
    Idle,
    /// The sink takes no more.
    Blocked,
}

/// A batch that the sink has not taken all of.
pub(crate) struct Pending {
    transmit: Transmit,
    contents: Vec<u8>,
    from: usize,
}

/// Sends what is in `contents`, which is empty then; what was not taken is left as the result.
pub(crate) fn send(
    sink: &mut impl Sink,
    transmit: Transmit,
    contents: &mut Vec<u8>,
) -> Option<Pending> {
    match sink.send(&transmit, contents) {
        Sent::All => {
            contents.clear();
            None
        }
        Sent::Until(from) => Some(Pending { transmit, contents: std::mem::take(contents), from }),
    }
}

impl Pending {
    /// Tries again; gives back what is still not taken, or the buffer.
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

/// What the endpoint itself answers, to clients without connection. Limited: whoever floods us gets no
/// memory for it.
#[derive(Default)]
pub(crate) struct Replies {
    queue: VecDeque<(Transmit, Vec<u8>)>,
    dropped: u64,
}

impl Replies {
    const MOST: usize = 1024;

    pub(crate) fn push(&mut self, transmit: Transmit, contents: Vec<u8>) {
        if self.queue.len() < Self::MOST {
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
