//! Moves data between the tasks' streams and the stack.

use std::cmp::Reverse;

use bytes::{Bytes, BytesMut};
use noq_proto::{
    Connection, Dir, PathId, ReadError, RecvStream, SendStream, StreamId, VarInt, WriteError,
};

use crate::core::Core;
use crate::priority::Priority;
use crate::stream::{Input, Output, Receiving, Stream, StreamSending};

/// Bytes read from a stream at a time.
const CHUNK: usize = 64 * 1024;
/// Bytes that the stack may buffer beyond the congestion window: a few batches. More is of no use: each
/// acknowledgement triggers a refill, data that lies longer falls out of the processor's cache, and the
/// stack scans all of it for each packet.
const AHEAD: u64 = 256 * 1024;
/// Most stored priorities of future requests: the number of requests that a client may have open.
const UPDATES: usize = 100;
/// `H3_EXCESSIVE_LOAD` (RFC 9114 §8.1).
const EXCESSIVE_LOAD: VarInt = VarInt::from_u32(0x107);

impl Core {
    /// Passes the tasks' pending operations to the stack, and reads the data they wait for.
    pub(crate) fn flush(&mut self, connection: &mut Connection) {
        self.open(connection);
        if self.changed.is_empty() {
            return;
        }
        connection.set_send_window(send_window(connection));
        let mut changed = std::mem::take(&mut self.changed);
        let Self { streams, unacknowledged, updated, .. } = self;
        let mut updating = Vec::new();
        if changed.len() > 1 {
            let priority = |id: &StreamId| streams.get(id).map(|stream| stream.output.priority);
            changed.sort_by_key(|id| Reverse(priority(id)));
        }
        for id in changed.drain(..) {
            let Some(stream) = streams.get_mut(&id) else { continue };
            stream.is_changed = false;
            stream.flush(connection, id);
            if stream.output.state == StreamSending::Ending && stream.output.queue.is_empty() {
                stream.output.state = StreamSending::Over;
                if connection.send_stream(id).finish().is_ok() {
                    unacknowledged.insert(id);
                }
            }
            if stream.input.updates.is_some() {
                updating.push(id);
            }
            if stream.is_over() {
                streams.remove(&id);
                updated.remove(&id);
            }
        }
        self.changed = changed;
        for id in updating {
            self.update(connection, id);
        }
    }

    /// Opens the streams that tasks wait for.
    fn open(&mut self, connection: &mut Connection) {
        for dir in [Dir::Bi, Dir::Uni] {
            while !self.opening.of(dir).is_empty() {
                let Some(id) = connection.streams().open(dir) else { break };
                self.insert(id);
                self.opened.of(dir).push_back(id);
                self.opening.of(dir).swap_remove(0).wake();
            }
        }
    }

    /// Accepts the streams that the peer opened, and reads their first data.
    pub(crate) fn accept(&mut self, connection: &mut Connection, dir: Dir) {
        while let Some(id) = connection.streams().accept(dir) {
            self.insert(id);
            if let Some(stream) = self.streams.get_mut(&id) {
                stream.input.read(connection.recv_stream(id));
            }
            self.update(connection, id);
            self.accepted.of(dir).push_back(id);
            if let Some(waker) = self.accepting.of(dir).take() {
                waker.wake();
            }
        }
    }

    /// Applies the peer's PRIORITY_UPDATE frames. Updates for finished requests are ignored.
    /// Updates for future requests are stored.
    fn update(&mut self, connection: &mut Connection, id: StreamId) {
        let Some(input) = self.streams.get_mut(&id).map(|stream| &mut stream.input) else { return };
        let Some(updates) = &mut input.updates else { return };
        if let Some(largest) = updates.take_largest_head() {
            self.largest_head = largest;
        }
        let (found, broken) = updates.take();
        if let Some(code) = broken
            && self.closing.is_none()
        {
            self.closing = Some((code, Bytes::from_static(b"PRIORITY_UPDATE")));
        }
        for (id, priority) in found {
            let is_to_come = id.index() >= self.requests;
            match self.streams.get_mut(&id) {
                Some(stream) => {
                    stream.output.priority = Priority::order(Some(priority), id.index());
                    stream.output.prioritize(&mut connection.send_stream(id));
                }
                None if is_to_come && self.updated.len() < UPDATES => {}
                None => continue,
            }
            self.updated.insert(id, priority);
        }
    }
}

impl Stream {
    fn flush(&mut self, connection: &mut Connection, id: StreamId) {
        match self.output.state {
            StreamSending::Open | StreamSending::Ending => self.output.write(connection, id),
            StreamSending::Resetting(code) => {
                self.output.state = StreamSending::Over;
                let _gone = connection.send_stream(id).reset(code);
            }
            StreamSending::Stopped(_) | StreamSending::Over => {}
        }
        match self.input.state {
            Receiving::Open if self.input.is_wanted && self.input.is_readable => {
                self.input.read(connection.recv_stream(id));
            }
            Receiving::Stopping(code) => {
                self.input.state = Receiving::Over;
                let _gone = connection.recv_stream(id).stop(code);
            }
            _ => {}
        }
    }
}

impl Output {
    fn write(&mut self, connection: &mut Connection, id: StreamId) {
        if self.queue.is_empty() {
            return;
        }
        let mut stream = connection.send_stream(id);
        self.prioritize(&mut stream);
        // Write until blocked: the stack only then reports when the stream is writable again.
        while !self.queue.is_empty() {
            match stream.write_chunks(&mut self.queue.make_contiguous()) {
                Ok(written) => {
                    self.queued -= written;
                    while self.queue.front().is_some_and(Bytes::is_empty) {
                        self.queue.pop_front();
                    }
                }
                Err(WriteError::Blocked) => break,
                Err(WriteError::Stopped(code)) => return self.end(StreamSending::Resetting(code)),
                Err(WriteError::ClosedStream) => return self.end(StreamSending::Over),
            }
        }
        if self.is_ready() {
            self.wake();
        }
    }
}

impl Output {
    /// Passes the stream's priority to the stack if it changed.
    fn prioritize(&mut self, stream: &mut SendStream<'_>) {
        if self.sent_priority != self.priority && stream.set_priority(self.priority).is_ok() {
            self.sent_priority = self.priority;
        }
    }
}

impl Input {
    /// Reads a chunk. Small chunks are merged: each would hold the memory of a whole datagram and
    /// cost as much handling as a large one.
    fn read(&mut self, mut stream: RecvStream<'_>) {
        let Ok(mut chunks) = stream.read(true) else {
            self.state = Receiving::Over;
            return self.wake();
        };
        let mut first = Bytes::new();
        let mut joined = BytesMut::new();
        let mut length = 0;
        while length < CHUNK {
            match chunks.next(CHUNK - length) {
                Ok(Some(chunk)) if length == 0 => {
                    length = chunk.bytes.len();
                    first = chunk.bytes;
                }
                Ok(Some(chunk)) => {
                    if joined.is_empty() {
                        joined.reserve(CHUNK);
                        joined.extend_from_slice(&first);
                    }
                    length += chunk.bytes.len();
                    joined.extend_from_slice(&chunk.bytes);
                }
                Ok(None) => {
                    self.state = Receiving::Ended;
                    break;
                }
                Err(ReadError::Blocked) => {
                    self.is_readable = false;
                    break;
                }
                Err(ReadError::Reset(code)) => {
                    self.state = Receiving::Reset(code);
                    break;
                }
            }
        }
        // The stack decides itself whether to send MAX_DATA.
        let _credit = chunks.finalize();
        self.take(if joined.is_empty() { first } else { joined.freeze() }, stream);
    }

    fn take(&mut self, chunk: Bytes, mut stream: RecvStream<'_>) {
        self.allowance = self.allowance.saturating_sub(chunk.len() as u64);
        if self.allowance == 0 {
            self.state = Receiving::Reset(EXCESSIVE_LOAD);
            let _gone = stream.stop(EXCESSIVE_LOAD);
        } else if !chunk.is_empty() {
            if let Some(updates) = &mut self.updates {
                updates.read(&chunk);
            }
            self.chunk = Some(chunk);
        }
        if self.chunk.is_some() || self.state != Receiving::Open {
            self.wake();
        }
    }
}

/// Limit of the stack's send buffer in bytes, without acknowledged data. It is kept small because
/// buffered data is sent before more urgent data, and stays in memory until the client acknowledges
/// it.
fn send_window(connection: &Connection) -> u64 {
    let state = connection.congestion_state(PathId::ZERO);
    let window = state.map_or(0, |state| state.metrics().congestion_window);
    window + AHEAD
}
