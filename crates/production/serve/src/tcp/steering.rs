//! Applies the chosen congestion control to one TCP connection.

use std::io;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Instant;

use http::HeaderValue;
use tokio::net::TcpStream;
use tokio::net::tcp::OwnedWriteHalf;
use uncork_policy::Settings;
use uncork_units::Rate;

use super::congestion::{active_controller, settle};
use super::sys::{limit_pacing, tcp_info};
use crate::choice::{ActiveSettings, Choice, RequestFacts};
use crate::telemetry::Observer;
use crate::timing::{Timing, Transport};

/// Applies the current choice. Requests on the same connection share its controller: a change by
/// one request also affects the others in progress.
#[derive(Debug)]
pub(super) struct TcpSteering {
    socket: Arc<OwnedWriteHalf>,
    state: Mutex<TcpSteeringState>,
}

#[derive(Debug)]
struct TcpSteeringState {
    choice: Choice,
    active: Arc<ActiveSettings>,
    /// The initial controller of the connection: the system's or a route's choice.
    original: String,
    cap: Option<Rate>,
    timing: Timing,
}

impl TcpSteering {
    /// Starts with the choice for a connection that was just accepted. A route with `congctl` takes
    /// precedence over a listener's controller, but not over a choice made now.
    pub(super) fn begin(half: &Arc<OwnedWriteHalf>, choice: Choice) -> io::Result<Self> {
        let socket: &TcpStream = (**half).as_ref();
        let original = active_controller(socket)?;
        let settings = &choice.chosen().settings;
        let cc = settle(socket, settings.kernel_name().unwrap_or(&original), &original);
        let active = Arc::new(ActiveSettings::new(choice.chosen(), settings.kernel_name(), cc));
        let timing = Timing::default();
        let mut state = TcpSteeringState { active, original, cap: None, choice, timing };
        state.cap = cap(socket, &state.choice.chosen().settings, None);
        Ok(Self { socket: Arc::clone(half), state: Mutex::new(state) })
    }

    /// The server name (SNI) is known, or the client sent none.
    pub(super) fn server_name(&self, sni: Option<&str>) {
        let mut state = self.state();
        state.choice.server_name(sni);
        state.apply((*self.socket).as_ref());
    }

    /// Updates the choice with this request. Returns the settings in effect for its response.
    pub(super) fn request(&self, asked: &RequestFacts<'_>) -> Arc<ActiveSettings> {
        let mut state = self.state();
        state.choice.request(asked);
        state.apply((*self.socket).as_ref());
        Arc::clone(&state.active)
    }

    /// The settings in effect.
    pub(super) fn active_settings(&self) -> Arc<ActiveSettings> {
        Arc::clone(&self.state().active)
    }

    /// The `Server-Timing` header at the time `now`, for a response with the settings `active`.
    /// The `observer` may have its figures.
    pub(super) fn timing(
        &self,
        now: Instant,
        active: &ActiveSettings,
        has_arms: bool,
        observer: Option<&Observer>,
    ) -> Option<HeaderValue> {
        self.state().timing.at(now, active.server_timing(has_arms), || {
            let seen = observer.and_then(|it| it.transport(now)).or_else(|| self.transport())?;
            // The kernel computes a pacing rate for every connection, but only some controllers use
            // it.
            let pacing_rate = seen.pacing_rate.filter(|_| active.cc().starts_with("bbr"));
            Some(Transport { pacing_rate, ..seen })
        })
    }

    fn transport(&self) -> Option<Transport> {
        let info = tcp_info((*self.socket).as_ref())?;
        Some(Transport { rtt: info.rtt, min_rtt: info.min_rtt?, pacing_rate: info.pacing_rate })
    }

    fn state(&self) -> MutexGuard<'_, TcpSteeringState> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl TcpSteeringState {
    fn apply(&mut self, socket: &TcpStream) {
        let chosen = self.choice.chosen();
        if Arc::ptr_eq(chosen, self.active.chosen()) {
            return;
        }
        let wanted = chosen.settings.kernel_name();
        let cc = settle(socket, wanted.unwrap_or(&self.original), self.active.cc());
        self.cap = cap(socket, &chosen.settings, self.cap);
        self.active = Arc::new(ActiveSettings::new(chosen, wanted, cc));
    }
}

/// Sets the pacing cap, unless it is `before` already. Returns the cap in effect.
fn cap(socket: &TcpStream, settings: &Settings, before: Option<Rate>) -> Option<Rate> {
    let cap = settings.pacing_cap;
    if cap != before && limit_pacing(socket, cap.map(Rate::bytes_per_sec)).is_err() {
        return before;
    }
    cap
}
