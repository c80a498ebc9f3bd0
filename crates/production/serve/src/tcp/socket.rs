//! A TCP stream that counts the bytes that its socket has accepted.

use std::io::{self, IoSlice};
use std::net::Shutdown;
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll, ready};
use std::time::Duration;

use socket2::SockRef;
use tokio::io::{AsyncRead, AsyncWrite, ReadBuf};
use tokio::net::TcpStream;
use tokio::net::tcp::{OwnedReadHalf, OwnedWriteHalf};
use uncork_diag::TcpInfo;

use super::sys;
use crate::telemetry::{ConnectionProgress, Observer, Occasion, Socket};

/// Most unsent bytes in the kernel: few enough that HTTP/2 can still decide what is sent next,
/// enough that a fast connection does not run dry between two writes.
const NOTSENT_LOWAT: u32 = 128 * 1024;

/// A TCP stream that counts written bytes.
#[derive(Debug)]
pub(super) struct CountedStream {
    /// Bytes that were read and will be read again.
    begun: Vec<u8>,
    /// tokio's own read half avoids a second system call after a partial read.
    reading: OwnedReadHalf,
    stream: Arc<OwnedWriteHalf>,
    progress: Arc<ConnectionProgress>,
    observer: Option<Arc<Observer>>,
}

/// The stream below HTTP: a TCP stream, or TLS over one.
pub(super) trait Stream: AsyncRead + AsyncWrite + Send + Unpin {}

impl<S: AsyncRead + AsyncWrite + Send + Unpin> Stream for S {}

impl CountedStream {
    /// `stall` is how long the kernel waits for an acknowledgement before it aborts the connection.
    pub(super) fn new(
        (reading, stream): (OwnedReadHalf, Arc<OwnedWriteHalf>),
        progress: Arc<ConnectionProgress>,
        observer: Option<Arc<Observer>>,
        stall: Duration,
    ) -> io::Result<Self> {
        let socket = SockRef::from(reading.as_ref());
        socket.set_tcp_nodelay(true)?;
        socket.set_tcp_notsent_lowat(NOTSENT_LOWAT)?;
        socket.set_tcp_user_timeout(Some(stall))?;
        Ok(Self { begun: Vec::new(), reading, stream, progress, observer })
    }

    /// Makes the next read return `begun` first.
    pub(super) fn rewind(&mut self, begun: Vec<u8>) {
        self.begun = begun;
    }

    fn socket(&self) -> &TcpStream {
        (*self.stream).as_ref()
    }

    /// Samples the kernel's counters before the FIN. The kernel drops the connection's state when
    /// the client acknowledges the FIN, which may be immediately.
    fn sample_before_fin(&self) {
        self.progress.stops_writing();
        if let Some(observer) = &self.observer {
            observer.look(Occasion::Event);
        }
    }

    /// Samples the kernel's counters after a read while responses await acknowledgements. The bytes
    /// read may be the client's close. Once it is answered, the kernel may drop the connection's
    /// state.
    fn sample_after_read(&self) {
        if let Some(observer) = self.observer.as_ref().filter(|_| self.progress.settles()) {
            observer.look(Occasion::Event);
        }
    }

    fn write_with(
        &self,
        cx: &mut Context<'_>,
        write: impl Fn(&TcpStream) -> io::Result<usize>,
    ) -> Poll<io::Result<usize>> {
        loop {
            ready!(self.socket().poll_write_ready(cx))?;
            match write(self.socket()) {
                Err(error) if error.kind() == io::ErrorKind::WouldBlock => {}
                wrote => {
                    let bytes = wrote?;
                    self.progress.wrote(bytes);
                    return Poll::Ready(Ok(bytes));
                }
            }
        }
    }
}

impl Drop for CountedStream {
    fn drop(&mut self) {
        self.sample_before_fin();
        // The observer may still hold the socket to sample it.
        let _gone = SockRef::from(self.socket()).shutdown(Shutdown::Write);
    }
}

impl AsyncRead for CountedStream {
    fn poll_read(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        buffer: &mut ReadBuf<'_>,
    ) -> Poll<io::Result<()>> {
        if !self.begun.is_empty() {
            let length = self.begun.len().min(buffer.remaining());
            buffer.put_slice(&self.begun[..length]);
            self.begun.drain(..length);
            return Poll::Ready(Ok(()));
        }
        ready!(Pin::new(&mut self.reading).poll_read(cx, buffer))?;
        self.sample_after_read();
        Poll::Ready(Ok(()))
    }
}

/// The write half is shared, so this writes like its other users: when the socket is ready, until
/// it would block.
impl AsyncWrite for CountedStream {
    fn poll_write(
        self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        bytes: &[u8],
    ) -> Poll<io::Result<usize>> {
        self.write_with(cx, |stream| stream.try_write(bytes))
    }

    fn poll_write_vectored(
        self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        slices: &[IoSlice<'_>],
    ) -> Poll<io::Result<usize>> {
        self.write_with(cx, |stream| stream.try_write_vectored(slices))
    }

    fn is_write_vectored(&self) -> bool {
        true
    }

    /// The kernel sends accepted bytes by itself.
    fn poll_flush(self: Pin<&mut Self>, _: &mut Context<'_>) -> Poll<io::Result<()>> {
        self.progress.flushed();
        Poll::Ready(Ok(()))
    }

    fn poll_shutdown(self: Pin<&mut Self>, _: &mut Context<'_>) -> Poll<io::Result<()>> {
        self.sample_before_fin();
        match SockRef::from(self.socket()).shutdown(Shutdown::Write) {
            // The client has already closed the connection.
            Err(error) if error.kind() == io::ErrorKind::NotConnected => Poll::Ready(Ok(())),
            shut => Poll::Ready(shut),
        }
    }
}

impl Socket for OwnedWriteHalf {
    fn tcp_info(&self) -> Option<TcpInfo> {
        sys::tcp_info(self.as_ref())
    }
}
