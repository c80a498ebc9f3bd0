//! The server's end of a connection: writes the data for the client.

use std::io::{self, Read, Write};
use std::net::{SocketAddr, TcpListener, TcpStream};
use std::time::Duration;

use rustix::net::sockopt::{set_socket_linger, set_tcp_congestion};
use uncork_apps::{Cbr, CbrSpec};
use uncork_sim::Workload;
use uncork_units::{Time, TimeDelta};

use crate::client::ClientContext;

/// Timeout of a read or write before checking whether the run is over.
pub(crate) const PATIENCE: Duration = Duration::from_millis(50);
/// Content of writes.
static ZEROS: [u8; 1 << 16] = [0; 1 << 16];

/// Listens for the single connection of a flow. The connection inherits the controller `cc` from
/// its listener, so it applies from the first packet.
pub(crate) fn listen(address: SocketAddr, cc: &str) -> io::Result<TcpListener> {
    let listener = TcpListener::bind(address)?;
    set_tcp_congestion(&listener, cc)?;
    listener.set_nonblocking(true)?;
    Ok(listener)
}

/// Serves one connection according to `workload` until it is complete or the run is over. Returns
/// the connection, which stays open for queries to the kernel.
pub(crate) fn serve(
    listener: &TcpListener,
    workload: Workload,
    start: Time,
    at: ClientContext<'_>,
) -> io::Result<Option<TcpStream>> {
    if !at.wait_until(start) {
        return Ok(None);
    }
    let Some(mut connection) = accept(listener, at)? else { return Ok(None) };
    connection.set_nodelay(true)?;
    connection.set_read_timeout(Some(PATIENCE))?;
    connection.set_write_timeout(Some(PATIENCE))?;
    let mut out = ServerOutput { connection: &mut connection, at };
    let done = match workload {
        Workload::Transfer(bytes) => out.write(bytes),
        Workload::Until(end) => out.write_until(end),
        Workload::Media(media) => out.write_media(media, start),
        Workload::Client(_) => out.answer(),
        // Programs open their own sockets.
        Workload::Command(_) => Ok(()),
    };
    match done {
        Ok(()) => Ok(Some(connection)),
        // The client has closed the connection, as it does at the end of the run.
        Err(error) if is_gone(&error) => Ok(Some(connection)),
        Err(error) => Err(error),
    }
}

/// Ends a connection of a finished run. Otherwise the kernel would keep the unsent data of an endless flow for minutes: it
/// is never acknowledged when the path is gone. That is 46 MB each, until no socket of the machine gets a large window.
pub(crate) fn abort(connection: &TcpStream) -> io::Result<()> {
    Ok(set_socket_linger(connection, Some(Duration::ZERO))?)
}

fn accept(listener: &TcpListener, at: ClientContext<'_>) -> io::Result<Option<TcpStream>> {
    // A blocking accept has no timeout. Polling delays a connection by 0.1 ms on average.
    while !at.is_over() {
        match listener.accept() {
            Ok((connection, _)) => {
                connection.set_nonblocking(false)?;
                return Ok(Some(connection));
            }
            Err(error) if error.kind() == io::ErrorKind::WouldBlock => {
                std::thread::sleep(Duration::from_micros(200));
            }
            Err(error) => return Err(error),
        }
    }
    Ok(None)
}

pub(crate) fn is_gone(error: &io::Error) -> bool {
    use io::ErrorKind::{BrokenPipe, ConnectionReset, UnexpectedEof};
    matches!(error.kind(), BrokenPipe | ConnectionReset | UnexpectedEof)
}

pub(crate) fn is_impatient(error: &io::Error) -> bool {
    use io::ErrorKind::{Interrupted, TimedOut, WouldBlock};
    matches!(error.kind(), Interrupted | TimedOut | WouldBlock)
}

struct ServerOutput<'a> {
    connection: &'a mut TcpStream,
    at: ClientContext<'a>,
}

impl ServerOutput<'_> {
    /// Writes `bytes` unless the run ends first.
    fn write(&mut self, bytes: u64) -> io::Result<()> {
        let mut left = bytes;
        while left > 0 && !self.at.is_over() {
            left -= self.write_some(left)?;
        }
        Ok(())
    }

    fn write_some(&mut self, most: u64) -> io::Result<u64> {
        let most = most.min(ZEROS.len() as u64) as usize;
        match self.connection.write(&ZEROS[..most]) {
            Ok(written) => Ok(written as u64),
            Err(error) if is_impatient(&error) => Ok(0),
            Err(error) => Err(error),
        }
    }

    fn write_until(&mut self, end: Time) -> io::Result<()> {
        while self.at.clock.now() < end && !self.at.is_over() {
            self.write_some(u64::MAX)?;
        }
        Ok(())
    }

    fn write_media(&mut self, media: CbrSpec, start: Time) -> io::Result<()> {
        let Ok(source) = Cbr::new(media, start) else { return Ok(()) };
        let mut written = 0;
        while !self.at.is_over() {
            let due = source.poll(self.at.clock.now());
            self.write(due.bytes - written)?;
            written = due.bytes;
            let Some(next) = due.next else { return Ok(()) };
            self.at.wait_until(next);
        }
        Ok(())
    }

    /// Answers requests. Each request is eight bytes: the size of the answer.
    fn answer(&mut self) -> io::Result<()> {
        let (mut request, mut have) = ([0; 8], 0);
        while !self.at.is_over() {
            match self.connection.read(&mut request[have..]) {
                Ok(0) => return Ok(()),
                Ok(more) => have += more,
                Err(error) if is_impatient(&error) => {}
                Err(error) => return Err(error),
            }
            if have == request.len() {
                self.write(u64::from_be_bytes(request))?;
                have = 0;
            }
        }
        Ok(())
    }
}

pub(crate) fn patience() -> TimeDelta {
    TimeDelta::from_nanos(PATIENCE.as_nanos() as u64)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_aborted_connection_leaves_no_unsent_data() {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let mut client = TcpStream::connect(listener.local_addr().unwrap()).unwrap();
        let (mut server, _) = listener.accept().unwrap();
        server.set_nonblocking(true).unwrap();
        while server.write(&ZEROS).is_ok() {}
        abort(&server).unwrap();
        drop(server);
        let ended = client.read_to_end(&mut Vec::new()).unwrap_err();
        assert_eq!(ended.kind(), io::ErrorKind::ConnectionReset);
    }
}
