//! The output of HTTP/1.1, in which responses follow each other.

use std::io::{self, IoSlice};
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll, ready};

use tokio::io::{AsyncRead, AsyncWrite, ReadBuf};

use super::coalescing::CoalescingWriter;
use crate::telemetry::ConnectionProgress;

/// The stream of an HTTP/1.1 connection. It reports where each response ends: the HTTP library flushes what it has of a response
/// before it takes the next request.
pub(super) struct Http1Stream {
    stream: CoalescingWriter,
    /// `None` if no responses are observed.
    progress: Option<Arc<ConnectionProgress>>,
}

impl Http1Stream {
    pub(super) fn new(
        stream: CoalescingWriter,
        is_tls: bool,
        progress: Option<Arc<ConnectionProgress>>,
    ) -> Self {
        if let Some(progress) = &progress {
            progress.becomes_http1(is_tls);
        }
        Self { stream, progress }
    }
}

impl AsyncRead for Http1Stream {
    fn poll_read(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        buffer: &mut ReadBuf<'_>,
    ) -> Poll<io::Result<()>> {
        Pin::new(&mut self.stream).poll_read(cx, buffer)
    }
}

impl AsyncWrite for Http1Stream {
    fn poll_write(
        self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        bytes: &[u8],
    ) -> Poll<io::Result<usize>> {
        self.poll_write_vectored(cx, &[IoSlice::new(bytes)])
    }

    fn poll_write_vectored(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        slices: &[IoSlice<'_>],
    ) -> Poll<io::Result<usize>> {
        let taken = ready!(Pin::new(&mut self.stream).poll_write_vectored(cx, slices))?;
        if let Some(progress) = &self.progress {
            progress.passed(taken);
        }
        Poll::Ready(Ok(taken))
    }

    fn is_write_vectored(&self) -> bool {
        self.stream.is_write_vectored()
    }

    fn poll_flush(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        ready!(Pin::new(&mut self.stream).poll_flush(cx))?;
        if let Some(progress) = &self.progress {
            progress.passed_all();
        }
        Poll::Ready(Ok(()))
    }

    fn poll_shutdown(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.stream).poll_shutdown(cx)
    }
}
