//! The response to a request.

use std::future::poll_fn;
use std::rc::Rc;

use bytes::{BufMut, Bytes, BytesMut};
use h3::error::Code;
use h3::quic::{SendStream as _, StreamErrorIncoming, StreamId as Name};
use http::{HeaderMap, StatusCode};

use crate::qpack;
use crate::session::{SessionScope, id};
use crate::transport::SendStream;

/// Frame types (RFC 9114 §7.2).
const DATA: u8 = 0;
const HEADERS: u8 = 1;
/// The longest header of a frame.
const FRAME: usize = 9;
/// Pieces of bodies up to this size are copied behind what comes before them: a copy of its own costs a piece more.
pub const COPIED: usize = 256;

/// The response to a request. It is reset if it is dropped before its end.
pub struct Reply {
    stream: SendStream,
    /// Data that is not queued yet.
    head: BytesMut,
}

/// The response cannot be sent: the client does not want it, or the connection is closed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Unsendable;

impl From<StreamErrorIncoming> for Unsendable {
    fn from(_: StreamErrorIncoming) -> Self {
        Self
    }
}

impl SessionScope {
    /// Begins a response. Its head is sent together with the first bytes of its body.
    ///
    /// # Errors
    ///
    /// If the client accepts no head of this size.
    pub fn reply(
        &self,
        request: Name,
        status: StatusCode,
        headers: &HeaderMap,
    ) -> Result<Reply, Unsendable> {
        let size = qpack::size(headers);
        if size as u64 > self.core.borrow().largest_head {
            return Err(Unsendable);
        }
        let stream = self.sender(request);
        let mut head = BytesMut::with_capacity(size + 2 * FRAME);
        // The length follows when it is known.
        let length = if size < 1 << 14 { 2 } else { 4 };
        head.put_u8(HEADERS);
        head.put_bytes(0, length);
        let begin = head.len();
        qpack::encode(status, headers, &mut head);
        let encoded = head.len() - begin;
        put_length(&mut &mut head[1..begin], encoded, length);
        Ok(Reply { stream, head })
    }

    fn sender(&self, name: Name) -> SendStream {
        SendStream::new(Rc::clone(&self.core), Rc::clone(&self.slot), id(name))
    }
}

impl Reply {
    /// Queues a part of the body.
    ///
    /// # Errors
    ///
    /// If the client does not want it, or the connection is closed.
    pub fn push(&mut self, data: Bytes) -> Result<(), Unsendable> {
        self.head.reserve(FRAME);
        self.head.put_u8(DATA);
        let size = if data.len() < 1 << 14 { 2 } else { 4 };
        put_length(&mut self.head, data.len(), size);
        if data.len() > COPIED {
            self.flush()?;
            return Ok(self.stream.push(data)?);
        }
        self.head.extend_from_slice(&data);
        self.flush()
    }

    fn flush(&mut self) -> Result<(), Unsendable> {
        Ok(self.stream.push(std::mem::take(&mut self.head).freeze())?)
    }

    /// Waits until the stream takes more.
    ///
    /// # Errors
    ///
    /// If the client does not want it, or the connection is closed.
    pub async fn ready(&mut self) -> Result<(), Unsendable> {
        Ok(poll_fn(|context| self.stream.poll_ready(context)).await?)
    }

    /// Ends the response.
    ///
    /// # Errors
    ///
    /// If the client does not want it, or the connection is closed.
    pub fn finish(mut self) -> Result<(), Unsendable> {
        if !self.head.is_empty() {
            self.flush()?;
        }
        Ok(self.stream.finish()?)
    }

    /// Breaks the response off.
    pub fn reset(mut self, code: Code) {
        self.stream.reset(code.value());
    }
}

/// A variable-length integer (RFC 9000 §16) of 2 or 4 bytes.
fn put_length(out: &mut impl BufMut, length: usize, size: usize) {
    match size {
        2 => out.put_u16(length as u16 | 0x4000),
        _ => out.put_u32(length as u32 | 0x8000_0000),
    }
}
