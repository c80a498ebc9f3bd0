//! A connection's socket, which tells what it has taken.

use std::io::{self, IoSlice};
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll};
use std::time::Duration;

use socket2::SockRef;
use tokio::io::{AsyncRead, AsyncWrite, ReadBuf};
use tokio::net::TcpStream;

use crate::evidence::{Observer, Wire};

/// How much may wait in the kernel unsent: little enough that HTTP/2 can still choose what comes next,
/// enough that a fast connection does not run dry between two writes.
const NOTSENT_LOWAT: u32 = 128 * 1024;

/// A socket that counts.
#[derive(Debug)]
pub(super) struct Counted {
    stream: TcpStream,
    wire: Arc<Wire>,
    observer: Option<Arc<Observer>>,
}

/// What HTTP is spoken over: a socket, or TLS over one.
pub(super) trait Stream: AsyncRead + AsyncWrite + Send + Unpin {}

impl<S: AsyncRead + AsyncWrite + Send + Unpin> Stream for S {}

impl Counted {
    /// `stall` is how long the kernel waits for an acknowledgement before it gives the connection up.
    pub(super) fn new(
        stream: TcpStream,
        wire: Arc<Wire>,
        observer: Option<Arc<Observer>>,
        stall: Duration,
    ) -> io::Result<Self> {
        stream.set_nodelay(true)?;
        let socket = SockRef::from(&stream);
        socket.set_tcp_notsent_lowat(NOTSENT_LOWAT)?;
        socket.set_tcp_user_timeout(Some(stall))?;
        Ok(Self { stream, wire, observer })
    }

    /// The kernel forgets a connection when the client has acknowledged its end, which may be at once.
    fn look_before_the_end(&self) {
        self.wire.flushed();
        if let Some(observer) = &self.observer {
            observer.look(false);
        }
    }

    fn count(&self, wrote: Poll<io::Result<usize>>) -> Poll<io::Result<usize>> {
        if let Poll::Ready(Ok(bytes)) = wrote {
            self.wire.wrote(bytes);
        }
        wrote
    }
}

impl Drop for Counted {
    fn drop(&mut self) {
        self.look_before_the_end();
    }
}

impl AsyncRead for Counted {
    fn poll_read(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        buffer: &mut ReadBuf<'_>,
    ) -> Poll<io::Result<()>> {
        Pin::new(&mut self.stream).poll_read(cx, buffer)
    }
}

impl AsyncWrite for Counted {
    fn poll_write(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        bytes: &[u8],
    ) -> Poll<io::Result<usize>> {
        let wrote = Pin::new(&mut self.stream).poll_write(cx, bytes);
        self.count(wrote)
    }

    fn poll_write_vectored(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        slices: &[IoSlice<'_>],
    ) -> Poll<io::Result<usize>> {
        let wrote = Pin::new(&mut self.stream).poll_write_vectored(cx, slices);
        self.count(wrote)
    }

    fn is_write_vectored(&self) -> bool {
        self.stream.is_write_vectored()
    }

    fn poll_flush(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        self.wire.flushed();
        Pin::new(&mut self.stream).poll_flush(cx)
    }

    fn poll_shutdown(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        self.look_before_the_end();
        Pin::new(&mut self.stream).poll_shutdown(cx)
    }
}
