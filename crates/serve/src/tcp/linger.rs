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

/// Waits until the client has acknowledged everything, and discards what it still sends. If a socket
/// is closed earlier, the kernel resets the connection as soon as the client sends something, and the
/// end of the response is lost (RFC 9112 §9.6).
///
/// Gives up after `stall` without an acknowledgement, and at the deadline of a shutdown.
pub(super) async fn linger(socket: &TcpStream, stall: Duration, mut stop: Stop) {
    if unacknowledged(socket).is_none() || SockRef::from(socket).shutdown(Shutdown::Write).is_err()
    {
        return;
    }
    let stopped = async {
        let at = stop.wait_for(Option::is_some).await.ok().and_then(|stopping| *stopping);
        if let Some(stopping) = at {
            sleep_until(stopping.at.into()).await;
        }
    };
    tokio::select! {
        () = acknowledged(socket, stall) => {}
        () = discard(socket) => {}
        () = stopped => {}
    }
}

/// Returns when nothing is left to acknowledge, or the client acknowledges nothing for `stall`.
async fn acknowledged(socket: &TcpStream, stall: Duration) {
    let (mut look, mut before, mut since) = (LOOKS.0, u64::MAX, Instant::now());
    while let Some(left) = unacknowledged(socket) {
        if left < before {
            (before, since) = (left, Instant::now());
        } else if since.elapsed() >= stall {
            return;
        }
        sleep(look).await;
        look = LOOKS.1.min(look * 2);
    }
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

/// Unacknowledged packets and unsent bytes: a measure of progress. `None` if nothing is left or the connection has failed.
fn unacknowledged(socket: &TcpStream) -> Option<u64> {
    let info = sys::tcp_info(socket)?;
    let unsent = u64::from(info.notsent_bytes.unwrap_or(0));
    let left = u64::from(info.unacked) + unsent;
    (left > 0 && info.state != TcpState::Close).then_some(left)
}
