//! The implementation of `h3`'s transport traits.

use std::rc::Rc;
use std::task::{Context, Poll};

use bytes::{Buf, Bytes, BytesMut};
use h3::error::Code;
use h3::quic::{
    self, ConnectionErrorIncoming, OpenStreams, RecvStream as _, StreamErrorIncoming, WriteBuf,
};
use noq_proto::{Dir, StreamId, VarInt};

use crate::core::{REQUEST_CANCELLED, Shared, wait};
use crate::error;
use crate::payload::{Payload, PayloadSlot};
use crate::stream::{Receiving, StreamSending};

/// Frames up to this size get one buffer of the right size.
const SMALL: usize = 4096;

/// A connection: opens and accepts streams. Clones refer to the same connection.
#[derive(Clone)]
pub struct Transport {
    pub(crate) core: Shared,
    pub(crate) slot: PayloadSlot,
}

/// The sending half of a stream.
pub struct SendStream {
    core: Shared,
    slot: PayloadSlot,
    id: StreamId,
}

/// The receiving half of a stream.
pub struct RecvStream {
    core: Shared,
    id: StreamId,
}

/// A bidirectional stream.
pub struct BidiStream {
    send: SendStream,
    recv: RecvStream,
}

impl Transport {
    fn send(&self, id: StreamId) -> SendStream {
        SendStream { core: Rc::clone(&self.core), slot: Rc::clone(&self.slot), id }
    }

    fn recv(&self, id: StreamId) -> RecvStream {
        RecvStream { core: Rc::clone(&self.core), id }
    }

    fn poll_open(
        &self,
        context: &Context<'_>,
        dir: Dir,
    ) -> Poll<Result<StreamId, StreamErrorIncoming>> {
        let mut core = self.core.borrow_mut();
        if let Some(over) = &core.over {
            return Poll::Ready(Err(error::stream(over)));
        }
        if let Some(id) = core.opened.of(dir).pop_front() {
            return Poll::Ready(Ok(id));
        }
        core.opening.of(dir).push(context.waker().clone());
        Poll::Pending
    }

    fn poll_accept(
        &self,
        context: &Context<'_>,
        dir: Dir,
    ) -> Poll<Result<StreamId, ConnectionErrorIncoming>> {
        let mut core = self.core.borrow_mut();
        if let Some(id) = core.accepted.of(dir).pop_front() {
            return Poll::Ready(Ok(id));
        }
        if let Some(over) = &core.over {
            return Poll::Ready(Err(over.clone()));
        }
        wait(core.accepting.of(dir), context);
        Poll::Pending
    }
}

impl OpenStreams<Payload> for Transport {
    type BidiStream = BidiStream;
    type SendStream = SendStream;

    fn poll_open_bidi(
        &mut self,
        context: &mut Context<'_>,
    ) -> Poll<Result<BidiStream, StreamErrorIncoming>> {
        let bidi = |id| BidiStream { send: self.send(id), recv: self.recv(id) };
        self.poll_open(context, Dir::Bi).map_ok(bidi)
    }

    fn poll_open_send(
        &mut self,
        context: &mut Context<'_>,
    ) -> Poll<Result<SendStream, StreamErrorIncoming>> {
        self.poll_open(context, Dir::Uni).map_ok(|id| self.send(id))
    }

    fn close(&mut self, code: Code, reason: &[u8]) {
        let mut core = self.core.borrow_mut();
        if core.closing.is_none() {
            core.closing = Some((varint(code.value()), Bytes::copy_from_slice(reason)));
        }
    }
}

impl quic::Connection<Payload> for Transport {
    type RecvStream = RecvStream;
    type OpenStreams = Self;

    fn poll_accept_recv(
        &mut self,
        context: &mut Context<'_>,
    ) -> Poll<Result<RecvStream, ConnectionErrorIncoming>> {
        self.poll_accept(context, Dir::Uni).map_ok(|id| self.recv(id))
    }

    fn poll_accept_bidi(
        &mut self,
        context: &mut Context<'_>,
    ) -> Poll<Result<BidiStream, ConnectionErrorIncoming>> {
        let bidi = |id| BidiStream { send: self.send(id), recv: self.recv(id) };
        self.poll_accept(context, Dir::Bi).map_ok(bidi)
    }

    fn opener(&self) -> Self {
        self.clone()
    }
}

impl SendStream {
    pub(crate) fn new(core: Shared, slot: PayloadSlot, id: StreamId) -> Self {
        Self { core, slot, id }
    }

    /// Queues bytes as they are.
    pub(crate) fn push(&mut self, bytes: Bytes) -> Result<(), StreamErrorIncoming> {
        self.check_open()?;
        let mut core = self.core.borrow_mut();
        if let Some(stream) = core.streams.get_mut(&self.id) {
            stream.output.push(bytes);
        }
        core.change(self.id);
        Ok(())
    }

    /// Queues the FIN.
    pub(crate) fn finish(&mut self) -> Result<(), StreamErrorIncoming> {
        let mut core = self.core.borrow_mut();
        if let Some(over) = &core.over {
            return Err(error::stream(over));
        }
        let Some(stream) = core.streams.get_mut(&self.id) else { return Ok(()) };
        match stream.output.state {
            StreamSending::Open => stream.output.state = StreamSending::Ending,
            StreamSending::Stopped(code) => return Err(terminated(code)),
            _ => {}
        }
        core.change(self.id);
        Ok(())
    }

    /// Whether more may be sent.
    fn check_open(&self) -> Result<(), StreamErrorIncoming> {
        let core = self.core.borrow();
        if let Some(over) = &core.over {
            return Err(error::stream(over));
        }
        match core.streams.get(&self.id).map(|stream| stream.output.state) {
            Some(StreamSending::Open) => Ok(()),
            Some(StreamSending::Stopped(code) | StreamSending::Resetting(code)) => {
                Err(terminated(code))
            }
            _ => Err(StreamErrorIncoming::Unknown("nothing follows the end".into())),
        }
    }

    /// Queues a frame: payloads without a copy, everything else copied into as few buffers as possible.
    fn queue(&self, mut frame: WriteBuf<Payload>) {
        let mut core = self.core.borrow_mut();
        let Some(stream) = core.streams.get_mut(&self.id) else { return };
        let remaining = frame.remaining();
        let mut copied = BytesMut::with_capacity(if remaining <= SMALL { remaining } else { 16 });
        while frame.has_remaining() {
            let chunk = frame.chunk();
            let length = chunk.len();
            match self.slot.take() {
                Some(payload) => {
                    stream.output.push(copied.split().freeze());
                    stream.output.push(payload);
                }
                None => copied.extend_from_slice(chunk),
            }
            frame.advance(length);
        }
        stream.output.push(copied.freeze());
    }
}

impl quic::SendStream<Payload> for SendStream {
    fn poll_ready(&mut self, context: &mut Context<'_>) -> Poll<Result<(), StreamErrorIncoming>> {
        let mut core = self.core.borrow_mut();
        let core = &mut *core;
        if let Some(over) = &core.over {
            return Poll::Ready(Err(error::stream(over)));
        }
        let Some(stream) = core.streams.get_mut(&self.id) else { return Poll::Ready(Ok(())) };
        match stream.output.state {
            StreamSending::Stopped(code) => Poll::Ready(Err(terminated(code))),
            _ if stream.output.is_ready() => Poll::Ready(Ok(())),
            _ => {
                wait(&mut stream.output.waker, context);
                Poll::Pending
            }
        }
    }

    fn send_data<T: Into<WriteBuf<Payload>>>(
        &mut self,
        data: T,
    ) -> Result<(), StreamErrorIncoming> {
        self.check_open()?;
        self.queue(data.into());
        self.core.borrow_mut().change(self.id);
        Ok(())
    }

    /// Only queues the FIN; the application learns of its acknowledgement by `App::finished`.
    fn poll_finish(&mut self, _: &mut Context<'_>) -> Poll<Result<(), StreamErrorIncoming>> {
        Poll::Ready(self.finish())
    }

    fn reset(&mut self, reset_code: u64) {
        let mut core = self.core.borrow_mut();
        let Some(stream) = core.streams.get_mut(&self.id) else { return };
        if matches!(stream.output.state, StreamSending::Open | StreamSending::Ending) {
            stream.output.end(StreamSending::Resetting(varint(reset_code)));
            core.change(self.id);
        }
    }

    fn send_id(&self) -> quic::StreamId {
        name(self.id)
    }
}

/// Resets an unfinished response or request, so that it does not look complete. A control stream
/// must stay open (RFC 9114 §6.2.1).
impl Drop for SendStream {
    fn drop(&mut self) {
        let mut core = self.core.borrow_mut();
        let is_resolving = core.is_resolving;
        let Some(stream) = core.streams.get_mut(&self.id) else { return };
        stream.output.is_held = false;
        if stream.output.state == StreamSending::Open && self.id.dir() == Dir::Bi {
            if is_resolving && !stream.output.queue.is_empty() {
                stream.output.state = StreamSending::Ending;
            } else {
                stream.output.end(StreamSending::Resetting(REQUEST_CANCELLED));
            }
        }
        core.change(self.id);
    }
}

impl quic::RecvStream for RecvStream {
    type Buf = Bytes;

    fn poll_data(
        &mut self,
        context: &mut Context<'_>,
    ) -> Poll<Result<Option<Bytes>, StreamErrorIncoming>> {
        let mut core = self.core.borrow_mut();
        let core = &mut *core;
        let Some(stream) = core.streams.get_mut(&self.id) else { return Poll::Ready(Ok(None)) };
        let input = &mut stream.input;
        if let Some(chunk) = input.chunk.take() {
            return Poll::Ready(Ok(Some(chunk)));
        }
        match (input.state, &core.over) {
            (Receiving::Ended, _) => return Poll::Ready(Ok(None)),
            (Receiving::Reset(code) | Receiving::Stopping(code), _) => {
                return Poll::Ready(Err(terminated(code)));
            }
            (_, Some(over)) => return Poll::Ready(Err(error::stream(over))),
            (Receiving::Over, _) => return Poll::Ready(Ok(None)),
            (Receiving::Open, None) => {}
        }
        wait(&mut input.waker, context);
        input.is_wanted = true;
        if input.is_readable {
            core.change(self.id);
        }
        Poll::Pending
    }

    fn stop_sending(&mut self, error_code: u64) {
        let mut core = self.core.borrow_mut();
        let Some(stream) = core.streams.get_mut(&self.id) else { return };
        if stream.input.state == Receiving::Open {
            stream.input.state = Receiving::Stopping(varint(error_code));
            core.change(self.id);
        }
    }

    fn recv_id(&self) -> quic::StreamId {
        name(self.id)
    }
}

impl Drop for RecvStream {
    fn drop(&mut self) {
        // A peer must not be asked to end its control stream (RFC 9114 §6.2.1). `h3` itself stops
        // streams of unknown types.
        if self.id.dir() == Dir::Bi {
            let code = self.core.borrow().unread();
            self.stop_sending(code.into_inner());
        }
        let mut core = self.core.borrow_mut();
        let Some(stream) = core.streams.get_mut(&self.id) else { return };
        stream.input.is_held = false;
        core.change(self.id);
    }
}

impl quic::SendStream<Payload> for BidiStream {
    fn poll_ready(&mut self, context: &mut Context<'_>) -> Poll<Result<(), StreamErrorIncoming>> {
        self.send.poll_ready(context)
    }

    fn send_data<T: Into<WriteBuf<Payload>>>(
        &mut self,
        data: T,
    ) -> Result<(), StreamErrorIncoming> {
        self.send.send_data(data)
    }

    fn poll_finish(&mut self, context: &mut Context<'_>) -> Poll<Result<(), StreamErrorIncoming>> {
        self.send.poll_finish(context)
    }

    fn reset(&mut self, reset_code: u64) {
        self.send.reset(reset_code);
    }

    fn send_id(&self) -> quic::StreamId {
        self.send.send_id()
    }
}

impl quic::RecvStream for BidiStream {
    type Buf = Bytes;

    fn poll_data(
        &mut self,
        context: &mut Context<'_>,
    ) -> Poll<Result<Option<Bytes>, StreamErrorIncoming>> {
        self.recv.poll_data(context)
    }

    fn stop_sending(&mut self, error_code: u64) {
        self.recv.stop_sending(error_code);
    }

    fn recv_id(&self) -> quic::StreamId {
        self.recv.recv_id()
    }
}

impl quic::BidiStream<Payload> for BidiStream {
    type SendStream = SendStream;
    type RecvStream = RecvStream;

    fn split(self) -> (SendStream, RecvStream) {
        (self.send, self.recv)
    }
}

fn terminated(code: VarInt) -> StreamErrorIncoming {
    StreamErrorIncoming::StreamTerminated { error_code: code.into_inner() }
}

/// Codes that exceed QUIC's range become the maximum.
fn varint(code: u64) -> VarInt {
    VarInt::try_from(code).unwrap_or(VarInt::MAX)
}

fn name(id: StreamId) -> quic::StreamId {
    match quic::StreamId::try_from(u64::from(id)) {
        Ok(id) => id,
        Err(_) => unreachable!("identifiers of streams are the same in both"),
    }
}

#[cfg(test)]
mod tests {
    use std::cell::RefCell;
    use std::pin::pin;
    use std::task::Waker;

    use noq_proto::Side;

    use super::*;
    use crate::core::Core;
    use crate::session::SessionBounds;

    /// Polls a future once. It must not wait for anything but open streams.
    fn ready<T>(future: impl Future<Output = T>) -> T {
        match pin!(future).poll(&mut Context::from_waker(Waker::noop())) {
            Poll::Ready(value) => value,
            Poll::Pending => panic!("it waits for something"),
        }
    }

    /// A client's transport with streams already open.
    fn transport() -> Transport {
        #[expect(clippy::disallowed_methods, reason = "an instant can only be had from the clock")]
        let now = std::time::Instant::now();
        let mut core = Core::new(Side::Client, SessionBounds { request: 0, control: 0 }, now);
        for (dir, count) in [(Dir::Uni, 3), (Dir::Bi, 1)] {
            for index in 0..count {
                let id = StreamId::new(Side::Client, dir, index);
                core.insert(id);
                core.opened.of(dir).push_back(id);
            }
        }
        Transport { core: Rc::new(RefCell::new(core)), slot: PayloadSlot::default() }
    }

    /// `h3` does not guarantee when it reads a payload. If an update copies payloads or reads them at
    /// another time, this fails: review `payload.rs` and `patches/`.
    #[test]
    fn h3_passes_a_payload_on_without_a_copy() {
        let transport = transport();
        let mut builder = h3::client::builder();
        let client = builder.build::<_, _, Payload>(transport.clone());
        let (_connection, mut client) = ready(client).expect("a client");
        let get = http::Request::get("https://localhost/").body(()).expect("a request");
        let mut stream = ready(client.send_request(get)).expect("a stream");
        let given = Bytes::from(vec![7; 10_000]);
        let payload = Payload::new(given.clone(), &transport.slot);
        ready(stream.send_data(payload)).expect("it is taken");
        let core = transport.core.borrow();
        let queue = &core.streams[&StreamId::new(Side::Client, Dir::Bi, 0)].output.queue;
        let sent: Vec<_> = queue.iter().map(|bytes| (bytes.as_ptr(), bytes.len())).collect();
        assert_eq!(sent.last(), Some(&(given.as_ptr(), given.len())), "{sent:?}");
    }
}
