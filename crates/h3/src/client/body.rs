//! What follows a response's head.

use std::future::poll_fn;
use std::task::{Context, Poll, ready};
use std::time::Instant;

use bytes::Bytes;
use tokio::sync::mpsc;

use super::Client;
use super::error::ClientError;

/// Chunks that wait to be taken, of up to 64 KiB each. Beyond that the server has to wait.
pub(super) const ROOM: usize = 8;

/// A part of a body.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Chunk {
    /// When its worker had it: when it arrived, unless those before it were not taken.
    pub at: Instant,
    /// The part.
    pub data: Bytes,
}

/// What a body's worker tells.
#[derive(Debug)]
pub(super) enum Part {
    Chunk(Chunk),
    Error(ClientError),
    End,
}

/// A body as it arrives. Dropped before its end, it tells the server to stop.
#[derive(Debug)]
pub struct Body {
    parts: mpsc::Receiver<Part>,
    head_at: Instant,
    is_over: bool,
    /// The worker stays as long as the body.
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

    /// The next part; `None` at the end.
    ///
    /// # Errors
    ///
    /// If the body ends too early. Nothing follows.
    pub async fn next_chunk(&mut self) -> Option<Result<Chunk, ClientError>> {
        poll_fn(|context| self.poll_chunk(context)).await
    }

    /// The next part, for those who poll.
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
