//! Reads the live kernel: passes over all sockets by sock_diag, and close events of destroyed sockets.

use std::collections::HashSet;
use std::fs;
use std::time::{Instant, SystemTime, UNIX_EPOCH};

use uncork_cc::is_kernel_controller;
use uncork_diag::{CloseEvents, Connection, Diag, DiagError, Query, StateSet, TcpState};

use crate::event::{Destroyed, Event, Moment, Pass};
use crate::sample::SocketSample;

/// Reads the sockets of the calling thread's network namespace.
#[derive(Debug)]
pub(crate) struct Live {
    diag: Diag,
    close_events: Option<CloseEvents>,
    /// Ports that a socket listens on, or listened on since the start; `None` before the first pass.
    listening: Option<HashSet<u16>>,
    start: Instant,
    start_unix_ns: u64,
}

impl Live {
    /// Opens the sockets. If subscribing to close events fails, goes on without them and returns the
    /// reason.
    pub(crate) fn open() -> Result<(Self, Option<DiagError>), DiagError> {
        let (close_events, refusal) = match CloseEvents::open() {
            Ok(close_events) => (Some(close_events), None),
            Err(error) => (None, Some(error)),
        };
        let since = today().duration_since(UNIX_EPOCH).unwrap_or_default();
        let start_unix_ns = since.as_nanos() as u64;
        let (diag, listening) = (Diag::open()?, None);
        let live = Self { diag, close_events, listening, start: now(), start_unix_ns };
        Ok((live, refusal))
    }

    pub(crate) const fn has_close_events(&self) -> bool {
        self.close_events.is_some()
    }

    /// Uses the monotonic clock, so that setting the wall clock does not distort periods.
    pub(crate) fn moment(&self) -> Moment {
        let session_ns = self.start.elapsed().as_nanos() as u64;
        Moment { session_ns, unix_ns: self.start_unix_ns + session_ns }
    }

    /// Reads all sockets that may send into `pass`.
    pub(crate) fn pass(&mut self, pass: &mut Pass) -> Result<(), DiagError> {
        match self.dump(pass) {
            // The buffer has grown; try again.
            Err(DiagError::Truncated(_)) => self.dump(pass),
            done => done,
        }
    }

    fn dump(&mut self, pass: &mut Pass) -> Result<(), DiagError> {
        let listeners = StateSet::NONE.with(TcpState::Listen);
        let listening = self.listening.get_or_insert_default();
        self.diag.dump(&Query { states: listeners, ..Query::default() }, |listener| {
            listening.insert(listener.local.port());
        })?;
        let has_storage = has_kernel_controllers();
        let query = Query { states: StateSet::SENDING, has_storage, ..Query::default() };
        pass.sockets.clear();
        pass.at = self.moment();
        let (sockets, listening) = (&mut pass.sockets, self.listening.as_ref());
        self.diag.dump(&query, |connection| sockets.extend(sample(connection, listening)))?;
        Ok(())
    }

    /// Reads all waiting close events.
    pub(crate) fn close_events(&mut self, mut each: impl FnMut(&Event)) -> Result<(), DiagError> {
        let at = self.moment();
        let listening = self.listening.as_ref();
        let Some(close_events) = &mut self.close_events else { return Ok(()) };
        let is_complete = close_events.read(|connection| {
            // Sockets that were never connected are destroyed, too.
            let connected = Some(connection).filter(|connection| connection.remote.port() != 0);
            if let Some(socket) = connected.and_then(|it| sample(it, listening)) {
                each(&Event::Destroyed(Destroyed { at, socket }));
            }
        })?;
        if !is_complete {
            each(&Event::CloseEventsLost);
        }
        Ok(())
    }
}

/// The sample of a socket, with the side that listened, once listeners are known.
fn sample(connection: &Connection, listening: Option<&HashSet<u16>>) -> Option<SocketSample> {
    let is_accepted = listening.map(|ports| ports.contains(&connection.local.port()));
    Some(SocketSample { is_accepted, ..SocketSample::of(connection)? })
}

#[expect(clippy::disallowed_methods, reason = "the live kernel is an outermost layer")]
pub(crate) fn now() -> Instant {
    Instant::now()
}

#[expect(clippy::disallowed_methods, reason = "the live kernel is an outermost layer")]
fn today() -> SystemTime {
    SystemTime::now()
}

/// Whether `uncork kernel` has loaded a controller: only then is there state to copy.
fn has_kernel_controllers() -> bool {
    let names = fs::read_to_string("/proc/sys/net/ipv4/tcp_available_congestion_control");
    names.unwrap_or_default().split_ascii_whitespace().any(is_kernel_controller)
}

/// The controller that new connections of this network namespace get.
pub(crate) fn default_controller() -> Option<String> {
    let name = fs::read_to_string("/proc/sys/net/ipv4/tcp_congestion_control").ok()?;
    Some(name.trim_end().to_owned())
}
