//! Applies the chosen congestion control to one QUIC connection.

use std::net::IpAddr;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Instant;

use uncork_policy::Settings;
use uncork_quic::{Handle, Observation};

use super::resume::{BorrowedObservation, ResumeStore};
use crate::choice::{ActiveSettings, Choice, RequestFacts};

/// Applies the current choice. Requests on the same connection share its controller: a change by
/// one request also affects the others in progress.
#[derive(Debug)]
pub(super) struct QuicSteering(Mutex<QuicSteeringState>);

#[derive(Debug)]
struct QuicSteeringState {
    choice: Choice,
    active: Arc<ActiveSettings>,
    resume: Resume,
}

/// The observations that the connection may begin with.
#[derive(Debug)]
struct Resume {
    store: Arc<ResumeStore>,
    client: IpAddr,
    /// When the handshake ended. Until then the address may be spoofed (RFC 9000 §8.1), and one packet would keep the
    /// observation from its network.
    connected: Option<Instant>,
    has_asked: bool,
    lent: Option<BorrowedObservation>,
}

impl Resume {
    /// Borrows an observation when the settings of a connection ask for it first.
    fn lent(&mut self) -> Option<BorrowedObservation> {
        let connected = self.connected?;
        if !std::mem::replace(&mut self.has_asked, true) {
            self.lent = self.store.lend(self.client, connected);
        }
        self.lent
    }
}

impl QuicSteering {
    /// Starts with the choice for a connection of `client` that was just accepted.
    pub(super) fn begin(choice: Choice, store: &Arc<ResumeStore>, client: IpAddr) -> Self {
        let (active, store) = (active_settings(&choice), Arc::clone(store));
        let resume = Resume { store, client, connected: None, has_asked: false, lent: None };
        Self(Mutex::new(QuicSteeringState { choice, active, resume }))
    }

    /// The handshake has ended. Returns new settings if they have an observation of an earlier connection.
    pub(super) fn connected(&self, now: Instant) -> Option<uncork_quic::Choice> {
        let mut state = self.state();
        state.resume.connected = Some(now);
        Some(state.sending()).filter(|choice| choice.resume.is_some())
    }

    /// What the connection began with.
    pub(super) fn lent(&self) -> Option<BorrowedObservation> {
        self.state().resume.lent
    }

    /// The connection has ended: its observations are for later ones.
    pub(super) fn end(&self, now: Instant, seen: &Observation) {
        let Resume { store, client, lent, .. } = &self.state().resume;
        store.end(*client, now, *lent, seen);
    }

    /// The congestion control settings of the connection.
    pub(super) fn sending(&self) -> uncork_quic::Choice {
        self.state().sending()
    }

    /// The server name (SNI) is known, or the client sent none. Returns the new settings if they
    /// changed.
    pub(super) fn server_name(&self, sni: Option<&str>) -> Option<uncork_quic::Choice> {
        let mut state = self.state();
        state.choice.server_name(sni);
        state.renew().then(|| state.sending())
    }

    /// Updates the choice with this request. Returns the settings in effect for its response.
    pub(super) fn request(&self, asked: &RequestFacts<'_>, cc: &Handle) -> Arc<ActiveSettings> {
        let mut state = self.state();
        state.choice.request(asked);
        if state.renew() {
            cc.choose(state.sending());
        }
        Arc::clone(&state.active)
    }

    /// The settings in effect.
    pub(super) fn active_settings(&self) -> Arc<ActiveSettings> {
        Arc::clone(&self.state().active)
    }

    fn state(&self) -> MutexGuard<'_, QuicSteeringState> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl QuicSteeringState {
    fn sending(&mut self) -> uncork_quic::Choice {
        let settings = &self.choice.chosen().settings;
        let &Settings { quic: spec, initial_window, pacing_cap, resume, .. } = settings;
        let resume = resume.then(|| self.resume.lent()).flatten().map(|lent| lent.hint);
        let ecn = settings.quic_ecn();
        uncork_quic::Choice { spec, initial_window, pacing_cap, ecn, resume }
    }

    /// Updates the settings in effect. Returns whether they changed.
    fn renew(&mut self) -> bool {
        let is_other = !Arc::ptr_eq(self.choice.chosen(), self.active.chosen());
        if is_other {
            self.active = active_settings(&self.choice);
        }
        is_other
    }
}

/// With uncork's QUIC, a chosen controller takes effect immediately.
fn active_settings(choice: &Choice) -> Arc<ActiveSettings> {
    let cc = choice.chosen().settings.quic.to_string();
    Arc::new(ActiveSettings::new(choice.chosen(), Some(&cc), cc.clone()))
}
