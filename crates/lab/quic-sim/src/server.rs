//! The server's application.

use bytes::Bytes;
use noq_proto::{Connection, Dir, StreamId, VarInt};
use uncork_apps::Cbr;
use uncork_sim::{FlowSpec, Workload};
use uncork_units::Time;

/// The content of answers.
static ZEROS: [u8; 1 << 16] = [0; 1 << 16];

/// The server's application of a flow.
pub(crate) struct ServerApp {
    source: ContentSource,
    /// When it resets its streams.
    end: Time,
    answers: Vec<PendingResponse>,
}

enum ContentSource {
    /// All data is available from the start.
    Store,
    /// Data becomes available at a constant rate.
    Live(Cbr),
}

struct PendingResponse {
    stream: StreamId,
    /// The part of the request that has arrived.
    request: Vec<u8>,
    /// Bytes requested, once known.
    wanted: Option<u64>,
    written: u64,
}

impl ServerApp {
    pub(crate) fn new(spec: &FlowSpec) -> Self {
        let source = match spec.workload {
            Workload::Media(media) => {
                Cbr::new(media, spec.start).map_or(ContentSource::Store, ContentSource::Live)
            }
            _ => ContentSource::Store,
        };
        let end = match spec.workload {
            Workload::Until(end) => end,
            _ => Time::NEVER,
        };
        Self { source, end, answers: Vec::new() }
    }

    /// Reads requests and writes answers. Returns when there will be more to write.
    pub(crate) fn act(&mut self, connection: &mut Connection, now: Time) -> Time {
        while let Some(stream) = connection.streams().accept(Dir::Bi) {
            self.answers.push(PendingResponse {
                stream,
                request: Vec::new(),
                wanted: None,
                written: 0,
            });
        }
        if now >= self.end {
            self.give_up(connection);
        }
        let (there, next) = match &self.source {
            ContentSource::Store => (u64::MAX, None),
            ContentSource::Live(source) => {
                let written = source.poll(now);
                (written.bytes, written.next)
            }
        };
        let is_last = next.is_none();
        self.answers.retain_mut(|answer| {
            answer.read(connection);
            !answer.write(connection, there, is_last)
        });
        if self.answers.is_empty() {
            return Time::NEVER;
        }
        next.unwrap_or(Time::NEVER).min(self.end)
    }

    /// Resets all streams and their buffers.
    fn give_up(&mut self, connection: &mut Connection) {
        for answer in self.answers.drain(..) {
            let _reset = connection.send_stream(answer.stream).reset(VarInt::from_u32(0));
        }
    }
}

impl PendingResponse {
    fn read(&mut self, connection: &mut Connection) {
        if self.wanted.is_some() {
            return;
        }
        let mut receive = connection.recv_stream(self.stream);
        let Ok(mut chunks) = receive.read(true) else { return };
        while let Ok(Some(chunk)) = chunks.next(usize::MAX) {
            self.request.extend_from_slice(&chunk.bytes);
        }
        let _more_room = chunks.finalize();
        self.wanted = self.request.first_chunk().map(|bytes| u64::from_be_bytes(*bytes));
    }

    /// Writes up to `there` bytes; `is_last` means there will be no more. Returns whether the
    /// answer is complete.
    fn write(&mut self, connection: &mut Connection, there: u64, is_last: bool) -> bool {
        let Some(wanted) = self.wanted else { return false };
        let end = wanted.min(there);
        let mut send = connection.send_stream(self.stream);
        while self.written < end {
            let some = (end - self.written).min(ZEROS.len() as u64) as usize;
            match send.write_chunks(&mut &mut [Bytes::from_static(&ZEROS[..some])][..]) {
                Ok(written) => self.written += written as u64,
                Err(_) => return false,
            }
        }
        let is_done = self.written == wanted || is_last;
        if is_done {
            let _finished = send.finish();
        }
        is_done
    }
}
