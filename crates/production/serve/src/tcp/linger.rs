//! The end of a TCP connection.

use std::net::Shutdown;
use std::time::Duration;

use socket2::SockRef;
use tokio::net::TcpStream;
use tokio::time::{Instant, sleep, sleep_until};
use uncork_diag::TcpState;

use super::sys;
use crate::shared::Stop;

/// How often the kernel is asked: at first, and later.
const LOOKS: (Duration, Duration) = (Duration::from_millis(5), Duration::from_millis(500));

/// Who ends a connection.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum End {
    /// The server, when the client has acknowledged everything.
    Acknowledged,
    /// The client. Over HTTP/2 it sends window updates and answers PINGs while it reads what it has acknowledged long before.
    Client,
}

/// Discards what the client still sends, until the connection ends. If a socket is closed earlier, the kernel resets the
/// connection as soon as the client sends something, and the end of the response is lost (RFC 9112 §9.6).
///
/// Gives up after `stall` in which the client acknowledges and sends nothing, and at the deadline of a shutdown.
pub(super) async fn linger(
    socket: &TcpStream,
    end: End,
    stall: impl Fn() -> Duration,
    mut stop: Stop,
) {
    if is_over(remaining(socket), end) || SockRef::from(socket).shutdown(Shutdown::Write).is_err() {
        return;
    }
    let stopped = async {
        let at = stop.wait_for(Option::is_some).await.ok().and_then(|stopping| *stopping);
        if let Some(stopping) = at {
            sleep_until(stopping.at.into()).await;
        }
    };
    tokio::select! {
        () = ended(socket, end, stall) => {}
        () = discard(socket) => {}
        () = stopped => {}
    }
}

async fn ended(socket: &TcpStream, end: End, stall: impl Fn() -> Duration) {
    let (mut look, mut before, mut since) = (LOOKS.0, None, Instant::now());
    loop {
        let now = remaining(socket);
        if is_over(now, end) {
            return;
        }
        if now != before {
            (before, since) = (now, Instant::now());
        } else if since.elapsed() >= stall() {
            return;
        }
        sleep(look).await;
        look = LOOKS.1.min(look * 2);
    }
}

fn is_over(remaining: Option<Remaining>, end: End) -> bool {
    remaining.is_none_or(|it| end == End::Acknowledged && it.unacknowledged == 0)
}

/// Reads until the connection fails. A client that has only shut down its side may still read.
async fn discard(socket: &TcpStream) {
    let mut buffer = [0; 4096];
    loop {
        let read = match socket.readable().await {
            Ok(()) => socket.try_read(&mut buffer),
            Err(error) => Err(error),
        };
        match read {
            Ok(0) => return std::future::pending().await,
            Err(error) if error.kind() != std::io::ErrorKind::WouldBlock => return,
            _ => {}
        }
    }
}

/// The remaining work: a change is progress.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Remaining {
    /// Unacknowledged packets and unsent bytes.
    unacknowledged: u64,
    /// Bytes of the client so far.
    received: Option<u64>,
}

/// `None` if the connection has ended.
fn remaining(socket: &TcpStream) -> Option<Remaining> {
    let info = sys::tcp_info(socket)?;
    let unacknowledged = u64::from(info.unacked) + u64::from(info.notsent_bytes.unwrap_or(0));
    let remaining = Remaining { unacknowledged, received: info.bytes_received };
    (info.state != TcpState::Close).then_some(remaining)
}
