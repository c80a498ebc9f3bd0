//! From the futures to the stack and back.

use std::cmp::Reverse;

use bytes::{Bytes, BytesMut};
use noq_proto::{
    Connection, Dir, PathId, ReadError, RecvStream, SendStream, StreamId, VarInt, WriteError,
};

use crate::core::Core;
use crate::priority::Priority;
use crate::stream::{Input, Output, Receiving, Sending, Stream};

/// How much is read from a stream at a time.
const CHUNK: usize = 64 * 1024;
/// What the stack holds to be sent beside what the congestion window has room for: some batches. Whenever a
/// part of a window is acknowledged there is more; what lies longer has left the processor's cache, and the
/// stack passes by all of it in search of each packet's bytes.
const AHEAD: u64 = 256 * 1024;
/// Requests that are to come whose priorities are kept in mind: as many as a client may have open.
const UPDATES: usize = 100;
/// `H3_EXCESSIVE_LOAD` (RFC 9114 §8.1).
const EXCESSIVE_LOAD: VarInt = VarInt::from_u32(0x107);

impl Core {
    /// Does what was asked for since the last time, and takes what is waited for.
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
            if stream.output.state == Sending::Ending && stream.output.queue.is_empty() {
                stream.output.state = Sending::Over;
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

    /// Opens the streams that are waited for.
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

    /// Takes the streams that the peer has opened, with what is on them already.
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

    /// Has those requests go out in another order of which a stream of the peer's says so. Of one that
    /// is over nothing is said; one that has not come yet is kept in mind.
    fn update(&mut self, connection: &mut Connection, id: StreamId) {
        let Some(input) = self.streams.get_mut(&id).map(|stream| &mut stream.input) else { return };
        let Some(updates) = &mut input.updates else { return };
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
            Sending::Open | Sending::Ending => self.output.write(connection, id),
            Sending::Resetting(code) => {
                self.output.state = Sending::Over;
                let _gone = connection.send_stream(id).reset(code);
            }
            Sending::Stopped(_) | Sending::Over => {}
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
        // Until it takes no more: only then it tells when it does again.
        while !self.queue.is_empty() {
            match stream.write_chunks(&mut self.queue.make_contiguous()) {
                Ok(written) => {
                    self.queued -= written;
                    while self.queue.front().is_some_and(Bytes::is_empty) {
                        self.queue.pop_front();
                    }
                }
                Err(WriteError::Blocked) => break,
                Err(WriteError::Stopped(code)) => return self.end(Sending::Resetting(code)),
                Err(WriteError::ClosedStream) => return self.end(Sending::Over),
            }
        }
        if self.is_ready() {
            self.wake();
        }
    }
}

impl Output {
    /// Tells the stack of the stream's place if that is new.
    fn prioritize(&mut self, stream: &mut SendStream<'_>) {
        if self.told != self.priority && stream.set_priority(self.priority).is_ok() {
            self.told = self.priority;
        }
    }
}

impl Input {
    /// Takes a chunk. Small ones are put together: each holds the memory of a whole datagram, and costs
    /// all who pass it on the same.
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
        // The stack looks itself whether the peer is to be told of new credit.
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

/// How much the stack may hold of what was sent and not acknowledged, and of what is to be sent: no more
/// than is of use, because whatever is in there goes out before anything more urgent does, and stays in
/// memory as long as the client pleases.
fn send_window(connection: &Connection) -> u64 {
    let state = connection.congestion_state(PathId::ZERO);
    let window = state.map_or(0, |state| state.metrics().congestion_window);
    window + AHEAD
}
