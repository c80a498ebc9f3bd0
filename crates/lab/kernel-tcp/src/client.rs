//! The client's end of a connection: sends requests, reads, and records arrival times.

use std::io::{self, Read, Write};
use std::net::{SocketAddr, TcpStream};
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use rustix::net::sockopt::set_socket_recv_buffer_size;
use rustix::net::{AddressFamily, SocketType, connect, socket};
use uncork_apps::{Action, Client};
use uncork_emu::Clock;
use uncork_sim::{FlowSpec, Workload};
use uncork_units::Time;

use crate::command::CommandExit;
use crate::server::{PATIENCE, is_gone, is_impatient, patience};

/// The data that a client has received.
#[derive(Debug, Default)]
pub(crate) struct ReceivedData {
    pub(crate) first_byte: Option<Time>,
    /// When everything requested had arrived.
    pub(crate) complete: Option<Time>,
    pub(crate) bytes: u64,
    /// Bytes before the end of the warm-up.
    pub(crate) early: u64,
    /// The requesting client with its report.
    pub(crate) client: Option<Client>,
    /// The command that ran instead.
    pub(crate) command: Option<CommandExit>,
}

/// Data shared by all clients and servers of a run.
#[derive(Clone, Copy, Debug)]
pub(crate) struct ClientContext<'a> {
    pub(crate) clock: Clock,
    pub(crate) warmup: Time,
    pub(crate) stop: &'a AtomicBool,
}

impl ClientContext<'_> {
    pub(crate) fn is_over(&self) -> bool {
        self.stop.load(Ordering::Relaxed)
    }

    /// Waits until `time`; returns false if the run ends first.
    pub(crate) fn wait_until(&self, time: Time) -> bool {
        while self.clock.now() + patience() < time && !self.is_over() {
            self.clock.wait_until(self.clock.now() + patience());
        }
        if !self.is_over() {
            self.clock.wait_until(time); // Before it begins the clock shows zero.
        }
        !self.is_over()
    }
}

/// Connects at the flow's start and receives data until it is complete or the run is over.
pub(crate) fn fetch(
    server: SocketAddr,
    flow: &FlowSpec,
    client: Option<Client>,
    context: ClientContext<'_>,
) -> io::Result<ReceivedData> {
    let mut received = ReceivedData { client, ..ReceivedData::default() };
    if !context.wait_until(flow.start) {
        return Ok(received);
    }
    let Some(connection) = open(server, flow.receive_window, context)? else {
        return Ok(received);
    };
    let mut reader = Reader { connection, received: &mut received, context };
    let done = match flow.workload {
        Workload::Transfer(bytes) => reader.read_bytes(bytes, Time::NEVER),
        // Later data is ignored, as in the simulator.
        Workload::Until(end) => reader.read_bytes(u64::MAX, end),
        Workload::Media(_) => reader.read_bytes(u64::MAX, Time::NEVER),
        Workload::Client(_) => reader.request(),
        // Programs open their own sockets.
        Workload::Command(_) => Ok(()),
    };
    match done {
        Err(error) if !is_gone(&error) => Err(error),
        _ => Ok(received),
    }
}

/// Connects to `server`; `None` if the run ends first.
fn open(
    server: SocketAddr,
    window: u64,
    context: ClientContext<'_>,
) -> io::Result<Option<TcpStream>> {
    let family = if server.is_ipv4() { AddressFamily::INET } else { AddressFamily::INET6 };
    let socket = socket(family, SocketType::STREAM, None)?;
    if window < FlowSpec::WIDE_OPEN {
        // The kernel doubles the given value and uses half of it for its own bookkeeping.
        set_socket_recv_buffer_size(&socket, window as usize)?;
    }
    rustix::net::sockopt::set_socket_timeout(
        &socket,
        rustix::net::sockopt::Timeout::Send,
        Some(PATIENCE),
    )?;
    while !context.is_over() {
        match connect(&socket, &server) {
            Ok(()) | Err(rustix::io::Errno::ISCONN) => {
                let connection = TcpStream::from(socket);
                connection.set_nodelay(true)?;
                connection.set_read_timeout(Some(PATIENCE))?;
                return Ok(Some(connection));
            }
            // Still connecting: the send timeout ends the wait in connect, not the connection
            // attempt.
            Err(error)
                if error == rustix::io::Errno::INPROGRESS
                    || error == rustix::io::Errno::ALREADY => {}
            Err(rustix::io::Errno::INTR) => {}
            Err(error) => return Err(error.into()),
        }
    }
    Ok(None)
}

struct Reader<'a> {
    connection: TcpStream,
    received: &'a mut ReceivedData,
    context: ClientContext<'a>,
}

impl Reader<'_> {
    /// Reads until `wanted` bytes have arrived or until `end`.
    fn read_bytes(&mut self, wanted: u64, end: Time) -> io::Result<()> {
        let mut buffer = vec![0; 1 << 18];
        let ClientContext { clock, .. } = self.context;
        while self.received.bytes < wanted && clock.now() < end && !self.context.is_over() {
            if self.read(&mut buffer)?.is_none() {
                return Ok(());
            }
        }
        if self.received.bytes >= wanted {
            self.received.complete = Some(clock.now());
        }
        Ok(())
    }

    /// Reads available data within the connection's timeout. Returns the number of bytes; `None` at
    /// the end of the stream.
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<Option<u64>> {
        let read = match self.connection.read(buffer) {
            Ok(0) => return Ok(None),
            Ok(read) => read as u64,
            Err(error) if is_impatient(&error) => return Ok(Some(0)),
            Err(error) => return Err(error),
        };
        let now = self.context.clock.now();
        self.received.first_byte.get_or_insert(now);
        self.received.bytes += read;
        if now < self.context.warmup {
            self.received.early = self.received.bytes;
        }
        Ok(Some(read))
    }

    /// Performs the client's requests until it is done.
    fn request(&mut self) -> io::Result<()> {
        let mut buffer = vec![0; 1 << 18];
        while !self.context.is_over() {
            let now = self.context.clock.now();
            let action =
                self.received.client.as_mut().map_or(Action::Done, |client| client.poll(now));
            let wait = match action {
                Action::Done => {
                    self.received.complete = Some(now);
                    return Ok(());
                }
                Action::Request { bytes } => {
                    self.connection.write_all(&bytes.to_be_bytes())?;
                    continue;
                }
                Action::WaitUntil(time) => {
                    Duration::from_nanos(time.since(now).as_nanos()).min(PATIENCE)
                }
                Action::WaitForData => PATIENCE,
            };
            self.connection.set_read_timeout(Some(wait.max(Duration::from_micros(1))))?;
            let Some(read) = self.read(&mut buffer)? else { return Ok(()) };
            if let Some(client) = self.received.client.as_mut().filter(|_| read > 0) {
                client.on_body(self.context.clock.now(), read);
            }
        }
        Ok(())
    }
}
