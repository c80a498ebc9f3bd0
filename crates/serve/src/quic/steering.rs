//! The congestion control of one connection, as it is chosen.

use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use uncork_policy::Settings;
use uncork_quic::Handle;

use crate::choice::{Choice, InForce, RequestFacts};

/// Puts in force what is chosen. Requests that share a connection share its controller: what one of them
/// changes holds for those under way, too.
#[derive(Debug)]
pub(super) struct Steering(Mutex<State>);

#[derive(Debug)]
struct State {
    choice: Choice,
    in_force: Arc<InForce>,
}

impl Steering {
    /// Begins with what is chosen for a connection that has just been accepted.
    pub(super) fn begin(choice: Choice) -> Self {
        let in_force = in_force(&choice);
        Self(Mutex::new(State { choice, in_force }))
    }

    /// How the connection shall send.
    pub(super) fn sending(&self) -> uncork_quic::Choice {
        self.state().sending()
    }

    /// The client wants the server of this name, if it said so. The result is what is to replace what is
    /// in force.
    pub(super) fn server_name(&self, sni: Option<&str>) -> Option<uncork_quic::Choice> {
        let mut state = self.state();
        state.choice.server_name(sni);
        state.renew().then(|| state.sending())
    }

    /// What is in force for the response to this request.
    pub(super) fn request(&self, asked: &RequestFacts<'_>, cc: &Handle) -> Arc<InForce> {
        let mut state = self.state();
        state.choice.request(asked);
        if state.renew() {
            cc.choose(state.sending());
        }
        Arc::clone(&state.in_force)
    }

    /// What is in force.
    pub(super) fn in_force(&self) -> Arc<InForce> {
        Arc::clone(&self.state().in_force)
    }

    fn state(&self) -> MutexGuard<'_, State> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl State {
    fn sending(&self) -> uncork_quic::Choice {
        let &Settings { quic: spec, initial_window, pacing_cap, .. } =
            &self.choice.chosen().settings;
        uncork_quic::Choice { spec, initial_window, pacing_cap }
    }

    /// Whether there was something to change.
    fn renew(&mut self) -> bool {
        let is_other = !Arc::ptr_eq(self.choice.chosen(), self.in_force.chosen());
        if is_other {
            self.in_force = in_force(&self.choice);
        }
        is_other
    }
}

/// What is chosen is in force at once.
fn in_force(choice: &Choice) -> Arc<InForce> {
    let cc = choice.chosen().settings.quic.to_string();
    Arc::new(InForce::new(choice.chosen(), Some(&cc), cc.clone()))
}
