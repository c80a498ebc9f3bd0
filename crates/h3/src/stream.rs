//! One stream, between the stack and those who read and write it.

use std::collections::VecDeque;
use std::task::Waker;

use bytes::Bytes;
use noq_proto::VarInt;

use crate::update::Updates;

/// So much may be left of what was given to be sent when more is asked for: small frames go out together.
const LOW: usize = 16 * 1024;

/// A stream.
#[derive(Debug)]
pub(crate) struct Stream {
    pub(crate) output: Output,
    pub(crate) input: Input,
    /// Whether it is in the list of those that something is to be done for.
    pub(crate) is_changed: bool,
}

/// What is sent on a stream.
#[derive(Debug)]
pub(crate) struct Output {
    pub(crate) state: Sending,
    pub(crate) queue: VecDeque<Bytes>,
    pub(crate) queued: usize,
    pub(crate) waker: Option<Waker>,
    /// Of two, the one with the higher number goes first.
    pub(crate) priority: i32,
    /// The priority that the stack knows.
    pub(crate) told: i32,
    pub(crate) is_held: bool,
}

/// How far sending has come.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Sending {
    /// There may be more.
    Open,
    /// What is queued is the last.
    Ending,
    /// The rest is not sent, for this reason; the peer is to be told.
    Resetting(VarInt),
    /// The peer wants no more, for this reason.
    Stopped(VarInt),
    /// Nothing is to be done.
    Over,
}

/// What is received on a stream.
#[derive(Debug)]
pub(crate) struct Input {
    pub(crate) state: Receiving,
    pub(crate) chunk: Option<Bytes>,
    /// Somebody waits for a chunk.
    pub(crate) is_wanted: bool,
    /// The stack may have one.
    pub(crate) is_readable: bool,
    pub(crate) waker: Option<Waker>,
    /// Bytes that may still come.
    pub(crate) allowance: u64,
    /// What looks for updates of priorities in it.
    pub(crate) updates: Option<Box<Updates>>,
    pub(crate) is_held: bool,
}

/// How far receiving has come.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Receiving {
    /// There may be more.
    Open,
    /// That was all.
    Ended,
    /// The peer has broken it off, for this reason.
    Reset(VarInt),
    /// Nobody wants more, for this reason; the peer is to be told.
    Stopping(VarInt),
    /// Nothing is to be done.
    Over,
}

impl Stream {
    pub(crate) fn new(sends: bool, receives: bool, allowance: u64) -> Self {
        Self {
            output: Output {
                state: if sends { Sending::Open } else { Sending::Over },
                queue: VecDeque::new(),
                queued: 0,
                waker: None,
                priority: 0,
                told: 0,
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

    /// Whether nobody will ask for it any more.
    pub(crate) fn is_over(&self) -> bool {
        let is_sent = matches!(self.output.state, Sending::Over | Sending::Stopped(_));
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

    /// Whether more may be given.
    pub(crate) fn is_ready(&self) -> bool {
        self.queued <= LOW
    }

    /// Nothing more is sent.
    pub(crate) fn end(&mut self, state: Sending) {
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
