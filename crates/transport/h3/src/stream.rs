//! The state of one stream, between the stack and the tasks.

use std::collections::VecDeque;
use std::task::Waker;

use bytes::Bytes;
use noq_proto::VarInt;

use crate::update::Updates;

/// Low-water mark of the send queue in bytes: more data is accepted at or below it, so that small
/// frames are sent together.
const LOW: usize = 16 * 1024;

/// A stream.
#[derive(Debug)]
pub(crate) struct Stream {
    pub(crate) output: Output,
    pub(crate) input: Input,
    /// Whether it is in the list of streams with work to do.
    pub(crate) is_changed: bool,
}

/// The sending half.
#[derive(Debug)]
pub(crate) struct Output {
    pub(crate) state: StreamSending,
    pub(crate) queue: VecDeque<Bytes>,
    pub(crate) queued: usize,
    pub(crate) waker: Option<Waker>,
    /// Higher goes first.
    pub(crate) priority: i32,
    /// The priority last passed to the stack.
    pub(crate) sent_priority: i32,
    pub(crate) is_held: bool,
}

/// The state of the sending half.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum StreamSending {
    /// Open.
    Open,
    /// The queue is final; FIN follows.
    Ending,
    /// RESET_STREAM must be sent, with this code.
    Resetting(VarInt),
    /// The peer sent STOP_SENDING, with this code.
    Stopped(VarInt),
    /// Nothing is left to do.
    Over,
}

/// The receiving half.
#[derive(Debug)]
pub(crate) struct Input {
    pub(crate) state: Receiving,
    pub(crate) chunk: Option<Bytes>,
    /// A task waits for a chunk.
    pub(crate) is_wanted: bool,
    /// The stack may have data.
    pub(crate) is_readable: bool,
    pub(crate) waker: Option<Waker>,
    /// Bytes that the peer may still send.
    pub(crate) allowance: u64,
    /// Parser of PRIORITY_UPDATE frames, on a client's unidirectional streams.
    pub(crate) updates: Option<Box<Updates>>,
    pub(crate) is_held: bool,
}

/// The state of the receiving half.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Receiving {
    /// Open.
    Open,
    /// FIN received.
    Ended,
    /// Reset, with this code.
    Reset(VarInt),
    /// STOP_SENDING must be sent, with this code.
    Stopping(VarInt),
    /// Nothing is left to do.
    Over,
}

impl Stream {
    pub(crate) fn new(sends: bool, receives: bool, allowance: u64) -> Self {
        Self {
            output: Output {
                state: if sends { StreamSending::Open } else { StreamSending::Over },
                queue: VecDeque::new(),
                queued: 0,
                waker: None,
                priority: 0,
                sent_priority: 0,
                is_held: sends,
            },
            input: Input {
                state: if receives { Receiving::Open } else { Receiving::Over },
                chunk: None,
                is_wanted: false,
                is_readable: true,
                waker: None,
                allowance,
                updates: None,
                is_held: receives,
            },
            is_changed: false,
        }
    }

    /// Whether the stream can be removed.
    pub(crate) fn is_over(&self) -> bool {
        let is_sent = matches!(self.output.state, StreamSending::Over | StreamSending::Stopped(_));
        let is_received = !matches!(self.input.state, Receiving::Stopping(_));
        !self.output.is_held && !self.input.is_held && is_sent && is_received
    }
}

impl Output {
    pub(crate) fn push(&mut self, bytes: Bytes) {
        if !bytes.is_empty() {
            self.queued += bytes.len();
            self.queue.push_back(bytes);
        }
    }

    /// Whether the queue accepts more data.
    pub(crate) fn is_ready(&self) -> bool {
        self.queued <= LOW
    }

    /// Ends sending and drops the queue.
    pub(crate) fn end(&mut self, state: StreamSending) {
        self.state = state;
        self.queue = VecDeque::new();
        self.queued = 0;
        self.wake();
    }

    pub(crate) fn wake(&mut self) {
        if let Some(waker) = self.waker.take() {
            waker.wake();
        }
    }
}

impl Input {
    pub(crate) fn wake(&mut self) {
        self.is_wanted = false;
        if let Some(waker) = self.waker.take() {
            waker.wake();
        }
    }
}
