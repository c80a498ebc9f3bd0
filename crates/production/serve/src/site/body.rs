//! What follows a response's head: parts of a file, and text between them.

use std::collections::VecDeque;
use std::future::Future;
use std::io;
use std::ops::Range;
use std::pin::{Pin, pin};
use std::sync::Arc;
use std::task::{Context, Poll, ready};

use bytes::Bytes;
use http_body::{Body, Frame, SizeHint};
use tokio::task::{JoinHandle, spawn_blocking};

use super::file::ServedFile;
use super::pooled_buffer::CHUNK;
use super::throttle::Throttle;

/// A body of known length. An error in it must end the response in a way that the client sees.
#[derive(Debug, Default)]
pub struct SiteBody {
    parts: Parts,
    remaining: u64,
    /// A read that waits for a disk, on a thread that may.
    reading: Option<JoinHandle<io::Result<Bytes>>>,
    throttle: Option<Box<Throttle>>,
}

#[derive(Debug)]
enum BodyPart {
    Text(Bytes),
    File(Arc<ServedFile>, Range<u64>),
}

/// Parts in their order. Most bodies have one, which takes no memory of its own.
#[derive(Debug, Default)]
struct Parts {
    first: Option<BodyPart>,
    rest: VecDeque<BodyPart>,
}

impl Parts {
    fn push_back(&mut self, part: BodyPart) {
        if self.first.is_none() && self.rest.is_empty() {
            self.first = Some(part);
        } else {
            self.rest.push_back(part);
        }
    }

    fn pop_front(&mut self) -> Option<BodyPart> {
        self.first.take().or_else(|| self.rest.pop_front())
    }

    /// Puts back what was taken.
    fn push_front(&mut self, part: BodyPart) {
        if let Some(second) = self.first.replace(part) {
            self.rest.push_front(second);
        }
    }

    fn front(&self) -> Option<&BodyPart> {
        self.first.as_ref().or_else(|| self.rest.front())
    }

    fn front_mut(&mut self) -> Option<&mut BodyPart> {
        self.first.as_mut().or_else(|| self.rest.front_mut())
    }
}

impl SiteBody {
    pub(crate) fn text(text: impl Into<Bytes>) -> Self {
        let mut body = Self::default();
        body.add_text(text);
        body
    }

    pub(super) fn add_text(&mut self, text: impl Into<Bytes>) {
        let text = text.into();
        self.remaining += text.len() as u64;
        self.parts.push_back(BodyPart::Text(text));
    }

    pub(super) fn add_file(&mut self, file: &Arc<ServedFile>, range: Range<u64>) {
        if let Some(content) = file.content() {
            self.add_text(content.slice(range.start as usize..range.end as usize));
        } else if !range.is_empty() {
            self.remaining += range.end - range.start;
            self.parts.push_back(BodyPart::File(Arc::clone(file), range));
        }
    }

    /// How many bytes are still to come.
    pub fn len(&self) -> u64 {
        self.remaining
    }

    /// Whether nothing is still to come.
    pub fn is_empty(&self) -> bool {
        self.remaining == 0
    }

    /// Holds it back by `throttle`.
    pub(crate) fn throttled(&mut self, throttle: Option<Throttle>) {
        self.throttle = throttle.map(Box::new);
    }

    /// Whether the next bytes take memory of their own, and are not shared with other responses.
    pub(crate) fn is_read(&self) -> bool {
        matches!(self.parts.front(), Some(BodyPart::File(..)))
    }

    /// The next bytes, `most` of them at most.
    pub(crate) fn poll_chunk(
        &mut self,
        cx: &mut Context<'_>,
        most: usize,
    ) -> Poll<Option<io::Result<Bytes>>> {
        let Some(throttle) = &mut self.throttle else { return self.poll_next(cx, most) };
        let wanted = most.min(usize::try_from(self.remaining).unwrap_or(usize::MAX));
        let granted = ready!(throttle.poll_grant(cx, wanted));
        let next = ready!(self.poll_next(cx, granted));
        if let (Some(throttle), Some(Ok(bytes))) = (&mut self.throttle, &next) {
            throttle.sent(bytes.len());
        }
        Poll::Ready(next)
    }

    fn poll_next(&mut self, cx: &mut Context<'_>, most: usize) -> Poll<Option<io::Result<Bytes>>> {
        if let Some(reading) = &mut self.reading {
            let read = ready!(pin!(reading).poll(cx));
            self.reading = None;
            return Poll::Ready(Some(self.take_read(read.map_err(io::Error::other).flatten())));
        }
        match self.parts.pop_front() {
            None => Poll::Ready(None),
            Some(BodyPart::Text(mut text)) => {
                let chunk = text.split_to(text.len().min(most));
                if !text.is_empty() {
                    self.parts.push_front(BodyPart::Text(text));
                }
                self.remaining -= chunk.len() as u64;
                Poll::Ready(Some(Ok(chunk)))
            }
            Some(BodyPart::File(file, range)) => self.poll_file(file, range, cx, most),
        }
    }

    fn poll_file(
        &mut self,
        file: Arc<ServedFile>,
        range: Range<u64>,
        cx: &mut Context<'_>,
        most: usize,
    ) -> Poll<Option<io::Result<Bytes>>> {
        let most = most.min(CHUNK) as u64;
        let (at, length) = (range.start, (range.end - range.start).min(most) as usize);
        let read = file.read_now(at, length);
        self.parts.push_front(BodyPart::File(Arc::clone(&file), range));
        if let Some(read) = read {
            return Poll::Ready(Some(self.take_read(read)));
        }
        self.reading = Some(spawn_blocking(move || file.read(at, length)));
        self.poll_next(cx, length)
    }

    /// Takes what was read from the first part. After an error nothing comes any more.
    fn take_read(&mut self, read: io::Result<Bytes>) -> io::Result<Bytes> {
        match (&read, self.parts.front_mut()) {
            (Ok(bytes), Some(BodyPart::File(_, range))) => {
                range.start += bytes.len() as u64;
                self.remaining -= bytes.len() as u64;
                if range.is_empty() {
                    self.parts.pop_front();
                }
            }
            _ => self.parts = Parts::default(),
        }
        read
    }
}

impl Body for SiteBody {
    type Data = Bytes;
    type Error = io::Error;

    fn poll_frame(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Bytes>, io::Error>>> {
        self.poll_chunk(cx, CHUNK).map(|chunk| chunk.map(|read| read.map(Frame::data)))
    }

    fn is_end_stream(&self) -> bool {
        self.remaining == 0
    }

    fn size_hint(&self) -> SizeHint {
        SizeHint::with_exact(self.remaining)
    }
}
