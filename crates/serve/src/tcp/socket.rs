//! A connection's socket, which tells what it has taken.

use std::io::{self, IoSlice};
use std::net::Shutdown;
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll, ready};
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
    stream: Arc<TcpStream>,
    wire: Arc<Wire>,
    observer: Option<Arc<Observer>>,
}

/// What HTTP is spoken over: a socket, or TLS over one.
pub(super) trait Stream: AsyncRead + AsyncWrite + Send + Unpin {}

impl<S: AsyncRead + AsyncWrite + Send + Unpin> Stream for S {}

impl Counted {
    /// `stall` is how long the kernel waits for an acknowledgement before it gives the connection up.
    pub(super) fn new(
        stream: Arc<TcpStream>,
        wire: Arc<Wire>,
        observer: Option<Arc<Observer>>,
        stall: Duration,
    ) -> io::Result<Self> {
        stream.set_nodelay(true)?;
        let socket = SockRef::from(&*stream);
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

    /// What the client says behind a response may be its farewell, which an answer to it makes the last
    /// that the kernel knows of the connection.
    fn look_before_a_farewell(&self) {
        if let Some(observer) = self.observer.as_ref().filter(|_| self.wire.settles()) {
            observer.look(false);
        }
    }

    fn write_with(
        &self,
        cx: &mut Context<'_>,
        write: impl Fn(&TcpStream) -> io::Result<usize>,
    ) -> Poll<io::Result<usize>> {
        loop {
            ready!(self.stream.poll_write_ready(cx))?;
            match write(&self.stream) {
                Err(error) if error.kind() == io::ErrorKind::WouldBlock => {}
                wrote => {
                    let bytes = wrote?;
                    self.wire.wrote(bytes);
                    return Poll::Ready(Ok(bytes));
                }
            }
        }
    }
}

impl Drop for Counted {
    fn drop(&mut self) {
        self.look_before_the_end();
    }
}

/// Others hold the socket, too, so it is read and written as they could: when it is said to be ready,
/// until it is not.
impl AsyncRead for Counted {
    fn poll_read(
        self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        buffer: &mut ReadBuf<'_>,
    ) -> Poll<io::Result<()>> {
        loop {
            ready!(self.stream.poll_read_ready(cx))?;
            match self.stream.try_read(buffer.initialize_unfilled()) {
                Err(error) if error.kind() == io::ErrorKind::WouldBlock => {}
                read => {
                    buffer.advance(read?);
                    self.look_before_a_farewell();
                    return Poll::Ready(Ok(()));
                }
            }
        }
    }
}

impl AsyncWrite for Counted {
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

    /// The kernel has what it has.
    fn poll_flush(self: Pin<&mut Self>, _: &mut Context<'_>) -> Poll<io::Result<()>> {
        self.wire.flushed();
        Poll::Ready(Ok(()))
    }

    fn poll_shutdown(self: Pin<&mut Self>, _: &mut Context<'_>) -> Poll<io::Result<()>> {
        self.look_before_the_end();
        match SockRef::from(&*self.stream).shutdown(Shutdown::Write) {
            // The client was faster.
            Err(error) if error.kind() == io::ErrorKind::NotConnected => Poll::Ready(Ok(())),
            shut => Poll::Ready(shut),
        }
    }
}
