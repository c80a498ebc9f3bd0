//! The transport that `h3` knows.

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
use crate::payload::{Payload, Slot};
use crate::stream::{Receiving, Sending};

/// A frame up to this size is copied into one piece at once.
const SMALL: usize = 4096;

/// A connection, which opens and accepts streams. Clones are of the same.
#[derive(Clone)]
pub struct Transport {
    pub(crate) core: Shared,
    pub(crate) slot: Slot,
}

/// What is sent on a stream.
pub struct SendStream {
    core: Shared,
    slot: Slot,
    id: StreamId,
}

/// What is received on a stream.
pub struct RecvStream {
    core: Shared,
    id: StreamId,
}

/// A stream of both directions.
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
    /// Takes a frame apart: what is not a payload is copied, into as few pieces as there can be.
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
            Sending::Stopped(code) => Poll::Ready(Err(terminated(code))),
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
        {
            let core = self.core.borrow();
            if let Some(over) = &core.over {
                return Err(error::stream(over));
            }
            match core.streams.get(&self.id).map(|stream| stream.output.state) {
                Some(Sending::Open) => {}
                Some(Sending::Stopped(code) | Sending::Resetting(code)) => {
                    return Err(terminated(code));
                }
                _ => return Err(StreamErrorIncoming::Unknown("nothing follows the end".into())),
            }
        }
        self.queue(data.into());
        self.core.borrow_mut().change(self.id);
        Ok(())
    }

    /// The end is queued; that it has been acknowledged is known to the connection's application.
    fn poll_finish(&mut self, _: &mut Context<'_>) -> Poll<Result<(), StreamErrorIncoming>> {
        let mut core = self.core.borrow_mut();
        if let Some(over) = &core.over {
            return Poll::Ready(Err(error::stream(over)));
        }
        let Some(stream) = core.streams.get_mut(&self.id) else { return Poll::Ready(Ok(())) };
        match stream.output.state {
            Sending::Open => stream.output.state = Sending::Ending,
            Sending::Stopped(code) => return Poll::Ready(Err(terminated(code))),
            _ => {}
        }
        core.change(self.id);
        Poll::Ready(Ok(()))
    }

    fn reset(&mut self, reset_code: u64) {
        let mut core = self.core.borrow_mut();
        let Some(stream) = core.streams.get_mut(&self.id) else { return };
        if matches!(stream.output.state, Sending::Open | Sending::Ending) {
            stream.output.end(Sending::Resetting(varint(reset_code)));
            core.change(self.id);
        }
    }

    fn send_id(&self) -> quic::StreamId {
        name(self.id)
    }
}

/// What was not sent to its end must not look as if it were.
impl Drop for SendStream {
    fn drop(&mut self) {
        let mut core = self.core.borrow_mut();
        let is_resolving = core.is_resolving;
        let Some(stream) = core.streams.get_mut(&self.id) else { return };
        stream.output.is_held = false;
        if stream.output.state == Sending::Open {
            if is_resolving && !stream.output.queue.is_empty() {
                stream.output.state = Sending::Ending;
            } else {
                stream.output.end(Sending::Resetting(REQUEST_CANCELLED));
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
        let code = self.core.borrow().unread();
        self.stop_sending(code.into_inner());
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

/// What is no code of QUIC's cannot be sent.
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
    use crate::session::Bounds;

    /// Polls a future once, which needs no more than streams that are open.
    fn ready<T>(future: impl Future<Output = T>) -> T {
        match pin!(future).poll(&mut Context::from_waker(Waker::noop())) {
            Poll::Ready(value) => value,
            Poll::Pending => panic!("it waits for something"),
        }
    }

    /// A client's transport whose streams are open already.
    fn transport() -> Transport {
        #[expect(clippy::disallowed_methods, reason = "an instant can only be had from the clock")]
        let now = std::time::Instant::now();
        let mut core = Core::new(Side::Client, Bounds { request: 0, control: 0 }, now);
        for (dir, count) in [(Dir::Uni, 3), (Dir::Bi, 1)] {
            for index in 0..count {
                let id = StreamId::new(Side::Client, dir, index);
                core.insert(id);
                core.opened.of(dir).push_back(id);
            }
        }
        Transport { core: Rc::new(RefCell::new(core)), slot: Slot::default() }
    }

    /// `h3` promises nothing about when it looks at a payload. If an update copies one, or looks at it at
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
