//! The congestion control of one connection, as it is chosen.

use std::io;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Instant;

use http::HeaderValue;
use tokio::net::TcpStream;
use tokio::net::tcp::OwnedWriteHalf;
use uncork_policy::Settings;
use uncork_units::Rate;

use super::congestion::{in_force, settle};
use super::sys::{limit_pacing, tcp_info};
use crate::choice::{Choice, InForce, RequestFacts};
use crate::timing::{Timing, Transport};

/// Puts in force what is chosen. Requests that share a connection share its controller: what one of them
/// changes holds for those under way, too.
#[derive(Debug)]
pub(super) struct Steering {
    socket: Arc<OwnedWriteHalf>,
    state: Mutex<State>,
}

#[derive(Debug)]
struct State {
    choice: Choice,
    in_force: Arc<InForce>,
    /// What the connection came with: the system's choice, or that of a route.
    original: String,
    cap: Option<Rate>,
    timing: Timing,
}

impl Steering {
    /// Begins with what is chosen for a connection that has just been accepted. A route with `congctl`
    /// takes precedence over the choice of a listener, but not over one that is made now.
    pub(super) fn begin(half: &Arc<OwnedWriteHalf>, choice: Choice) -> io::Result<Self> {
        let socket: &TcpStream = (**half).as_ref();
        let original = in_force(socket)?;
        let settings = &choice.chosen().settings;
        let cc = settle(socket, settings.tcp.as_deref().unwrap_or(&original), &original);
        let in_force = Arc::new(InForce::new(choice.chosen(), settings.tcp.as_deref(), cc));
        let timing = Timing::default();
        let mut state = State { in_force, original, cap: None, choice, timing };
        state.cap = cap(socket, &state.choice.chosen().settings, None);
        Ok(Self { socket: Arc::clone(half), state: Mutex::new(state) })
    }

    /// The client wants the server of this name, if it said so.
    pub(super) fn server_name(&self, sni: Option<&str>) {
        let mut state = self.state();
        state.choice.server_name(sni);
        state.put_in_force((*self.socket).as_ref());
    }

    /// What is in force for the response to this request.
    pub(super) fn request(&self, asked: &RequestFacts<'_>) -> Arc<InForce> {
        let mut state = self.state();
        state.choice.request(asked);
        state.put_in_force((*self.socket).as_ref());
        Arc::clone(&state.in_force)
    }

    /// What is in force.
    pub(super) fn in_force(&self) -> Arc<InForce> {
        Arc::clone(&self.state().in_force)
    }

    /// What is said of the connection at the time `now` in a response that goes out with this in force.
    pub(super) fn timing(&self, now: Instant, in_force: &InForce) -> Option<HeaderValue> {
        self.state().timing.at(now, in_force.told(), || {
            let info = tcp_info((*self.socket).as_ref())?;
            // The kernel computes a rate for all, and holds to it for those that ask for it.
            let pacing_rate = info.pacing_rate.filter(|_| in_force.cc().starts_with("bbr"));
            Some(Transport { rtt: info.rtt, min_rtt: info.min_rtt?, pacing_rate })
        })
    }

    fn state(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl State {
    fn put_in_force(&mut self, socket: &TcpStream) {
        let chosen = self.choice.chosen();
        if Arc::ptr_eq(chosen, self.in_force.chosen()) {
            return;
        }
        let wanted = chosen.settings.tcp.as_deref();
        let cc = settle(socket, wanted.unwrap_or(&self.original), self.in_force.cc());
        self.cap = cap(socket, &chosen.settings, self.cap);
        self.in_force = Arc::new(InForce::new(chosen, wanted, cc));
    }
}

/// Limits how fast the connection may send, where `before` did not already. Gives what holds now.
fn cap(socket: &TcpStream, settings: &Settings, before: Option<Rate>) -> Option<Rate> {
    let cap = settings.pacing_cap;
    if cap != before && limit_pacing(socket, cap.map(Rate::bytes_per_sec)).is_err() {
        return before;
    }
    cap
}
