//! The stream of HTTP/2, in which the frames of responses alternate.

use std::io::{self, IoSlice};
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll, ready};

use tokio::io::{AsyncRead, AsyncWrite, ReadBuf};

use super::coalescing::CoalescingWriter;
use super::frames::FrameScanner;
use crate::telemetry::ConnectionProgress;

/// The preface of a client (RFC 9113 §3.4).
const PREFACE: usize = 24;

/// The stream of an HTTP/2 connection. It reports what the frames have of each response: the HTTP library holds back what the
/// client's windows do not allow, and drops it if the client resets the stream.
pub(super) struct Http2Stream {
    stream: CoalescingWriter,
    /// `None` if no responses are observed.
    progress: Option<Arc<ConnectionProgress>>,
    received: FrameScanner,
    sent: FrameScanner,
}

impl Http2Stream {
    pub(super) fn new(
        stream: CoalescingWriter,
        is_tls: bool,
        progress: Option<Arc<ConnectionProgress>>,
    ) -> Self {
        if let Some(progress) = &progress {
            progress.becomes_http2(is_tls);
        }
        let (received, sent) = (FrameScanner::after(PREFACE), FrameScanner::after(0));
        Self { stream, progress, received, sent }
    }
}

impl AsyncRead for Http2Stream {
    fn poll_read(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        buffer: &mut ReadBuf<'_>,
    ) -> Poll<io::Result<()>> {
        let before = buffer.filled().len();
        ready!(Pin::new(&mut self.stream).poll_read(cx, buffer))?;
        if let Self { progress: Some(progress), received, .. } = &mut *self {
            progress.received_frames(received, &buffer.filled()[before..]);
        }
        Poll::Ready(Ok(()))
    }
}

impl AsyncWrite for Http2Stream {
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
        if let Self { progress: Some(progress), sent, .. } = &mut *self {
            progress.passed_frames(sent, slices, taken);
        }
        Poll::Ready(Ok(taken))
    }

    fn is_write_vectored(&self) -> bool {
        self.stream.is_write_vectored()
    }

    fn poll_flush(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.stream).poll_flush(cx)
    }

    fn poll_shutdown(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.stream).poll_shutdown(cx)
    }
}
