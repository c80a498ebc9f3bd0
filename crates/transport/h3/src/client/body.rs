//! Response bodies.

use std::future::poll_fn;
use std::task::{Context, Poll, ready};
use std::time::Instant;

use bytes::Bytes;
use tokio::sync::mpsc;

use super::Client;
use super::error::ClientError;

/// Chunks buffered per body, up to 64 KiB each. Beyond that, flow control holds the server back.
pub(super) const ROOM: usize = 8;

/// A chunk of a body.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Chunk {
    /// When the worker read it: its arrival, unless the buffer was full.
    pub at: Instant,
    /// The bytes.
    pub data: Bytes,
}

/// A message from the worker to a [`Body`].
#[derive(Debug)]
pub(super) enum Part {
    Chunk(Chunk),
    Error(ClientError),
    End,
}

/// A response body, readable as it arrives. Dropping it early cancels the response.
#[derive(Debug)]
pub struct Body {
    parts: mpsc::Receiver<Part>,
    head_at: Instant,
    is_over: bool,
    /// Keeps the workers alive.
    pub(super) client: Option<Client>,
}

impl Body {
    pub(super) fn new(parts: mpsc::Receiver<Part>, head_at: Instant) -> Self {
        Self { parts, head_at, is_over: false, client: None }
    }

    /// When the response's head arrived.
    pub fn head_at(&self) -> Instant {
        self.head_at
    }

    /// The next chunk, or `None` at the end.
    ///
    /// # Errors
    ///
    /// If the body ends early. After an error the body is over.
    pub async fn next_chunk(&mut self) -> Option<Result<Chunk, ClientError>> {
        poll_fn(|context| self.poll_chunk(context)).await
    }

    /// Polls for the next chunk.
    pub fn poll_chunk(
        &mut self,
        context: &mut Context<'_>,
    ) -> Poll<Option<Result<Chunk, ClientError>>> {
        if self.is_over {
            return Poll::Ready(None);
        }
        let part = ready!(self.parts.poll_recv(context));
        self.is_over = !matches!(part, Some(Part::Chunk(_)));
        Poll::Ready(match part {
            Some(Part::Chunk(chunk)) => Some(Ok(chunk)),
            Some(Part::Error(error)) => Some(Err(error)),
            Some(Part::End) => None,
            None => Some(Err(ClientError::Ended)),
        })
    }
}
