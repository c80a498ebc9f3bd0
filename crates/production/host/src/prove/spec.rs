//! What a test does.

use std::fmt;
use std::time::Duration;

use thiserror::Error;
use uncork_units::{ByteCount, Probability, TimeDelta};

use super::effect::MIN_PAIRS;
use super::guard::Limits;
use super::schedule::{Arm, Window, schedule};
use crate::change::{DesiredRoute, DesiredState, Prefix, span};

/// Maximum number of pairs of windows.
const MAX_PAIRS: u32 = 1000;
const MAX_WINDOW: TimeDelta = TimeDelta::from_secs(7 * 86_400);
/// Records name clients by such networks (`ClientNetwork`), so they cannot distinguish routes to smaller ones.
const MAX_PREFIX: [u8; 2] = [24, 48];

/// A test.
#[derive(Clone, Debug)]
pub struct ProveSpec {
    /// The controllers of both arms. Equal ones make an A/A test.
    pub controllers: [String; 2],
    /// Routes that choose the controller; none: the host's default does.
    pub routes: Vec<Prefix>,
    /// Pairs of windows.
    pub pairs: u32,
    /// Length of a window.
    pub window: TimeDelta,
    /// Time at the start of each window. Connections that begin in it do not count.
    pub burn_in: TimeDelta,
    /// Payload from which a transfer is large.
    pub large: ByteCount,
    /// What ends the test.
    pub limits: Limits,
    /// Guardrail: how much more of the payload the second controller may retransmit.
    pub max_retransmitted_increase: Probability,
    /// Time between two passes over all sockets.
    pub period: TimeDelta,
    /// Seed of the order of windows.
    pub seed: u64,
}

/// A value that makes no test. Each names the option, and a remedy.
#[derive(Clone, Debug, PartialEq, Eq, Error)]
pub enum SpecError {
    /// Number of pairs.
    #[error("invalid value '{0}' for '--pairs <N>': expected 1 to {MAX_PAIRS}")]
    Pairs(u32),
    /// Period.
    #[error("invalid value '{0}' for '--every <TIME>': expected 10ms or more")]
    Period(TimeDelta),
    /// Burn-in.
    #[error("invalid value '{burn_in}' for '--burn-in <TIME>': expected at least two periods of --every, {}", .period.times(2))]
    BurnIn {
        /// The burn-in.
        burn_in: TimeDelta,
        /// The period.
        period: TimeDelta,
    },
    /// Window.
    #[error("invalid value '{window}' for '--window <TIME>': expected twice the --burn-in, {}, to {MAX_WINDOW}", .burn_in.times(2))]
    Window {
        /// The window.
        window: TimeDelta,
        /// The burn-in.
        burn_in: TimeDelta,
    },
    /// Controller.
    #[error("invalid value '{0}' for a controller: expected a name such as bbr or cubic")]
    Controller(String),
    /// Route.
    #[error(
        "invalid value '{0}' for '--to <NETWORK>': connections are distinguished by /24 of IPv4 and /48 of IPv6; choose a network that contains one"
    )]
    Route(Prefix),
    /// Route.
    #[error("invalid value '{1}' for '--to <NETWORK>': it overlaps with {0}; remove one of them")]
    Overlap(Prefix, Prefix),
}

impl ProveSpec {
    /// Finds what makes no test.
    ///
    /// # Errors
    ///
    /// The first such value.
    pub fn check(&self) -> Result<(), SpecError> {
        let Self { pairs, window, burn_in, period, .. } = *self;
        if !(1..=MAX_PAIRS).contains(&pairs) {
            return Err(SpecError::Pairs(pairs));
        }
        if period < TimeDelta::from_millis(10) {
            return Err(SpecError::Period(period));
        }
        if burn_in < period.times(2) {
            return Err(SpecError::BurnIn { burn_in, period });
        }
        if window < burn_in.times(2) || window > MAX_WINDOW {
            return Err(SpecError::Window { window, burn_in });
        }
        for name in &self.controllers {
            let text = format!("algorithm = {name:?}");
            if DesiredState::parse(&text).is_err() {
                return Err(SpecError::Controller(name.clone()));
            }
        }
        for (index, route) in self.routes.iter().enumerate() {
            if route.bits > MAX_PREFIX[usize::from(route.address.is_ipv6())] {
                return Err(SpecError::Route(*route));
            }
            let overlaps = |other: &&Prefix| other.covers(*route) || route.covers(**other);
            if let Some(other) = self.routes[..index].iter().find(overlaps) {
                return Err(SpecError::Overlap(*other, *route));
            }
        }
        Ok(())
    }

    /// The windows, in their order.
    pub fn schedule(&self) -> Vec<Window> {
        schedule(self.pairs, self.seed)
    }

    /// How long it takes: all windows, and a burn-in in which the last connections end.
    pub fn duration(&self) -> Duration {
        Duration::from(self.window) * (2 * self.pairs) + Duration::from(self.burn_in)
    }

    /// What the test cannot answer, known before it begins.
    pub fn warning(&self) -> Option<String> {
        let pairs = self.pairs;
        ((pairs as usize) < MIN_PAIRS).then(|| {
            format!("--pairs {pairs} gives no interval and no verdict: they need {MIN_PAIRS} pairs or more")
        })
    }

    /// The controller of an arm.
    pub fn controller(&self, arm: Arm) -> &str {
        &self.controllers[arm.index()]
    }

    /// The name of an arm: its controller; in an A/A test with a letter.
    pub fn name(&self, arm: Arm) -> String {
        let controller = self.controller(arm);
        if self.controllers[0] == self.controllers[1] {
            format!("{controller}-{}", if arm == Arm::A { 'a' } else { 'b' })
        } else {
            controller.to_owned()
        }
    }

    /// The state of the host in an arm.
    pub(super) fn desired(&self, arm: Arm) -> DesiredState {
        let algorithm = self.controller(arm).to_owned();
        if self.routes.is_empty() {
            return DesiredState { algorithm: Some(algorithm), ..DesiredState::default() };
        }
        let route = |to: &Prefix| DesiredRoute {
            to: *to,
            algorithm: algorithm.clone(),
            lock: false,
            initial_window: None,
        };
        DesiredState { routes: self.routes.iter().map(route).collect(), ..DesiredState::default() }
    }
}

impl fmt::Display for ProveSpec {
    /// The order of windows, and how long they take.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { pairs, window, burn_in, seed, .. } = self;
        let plural = if *pairs == 1 { "" } else { "s" };
        writeln!(
            f,
            "{pairs} pair{plural} of windows of {window}, the first {burn_in} of each not counted; seed {seed}"
        )?;
        let duration = span(self.duration().as_secs());
        writeln!(f, "The test takes {duration}.\n\npair  first window, second window")?;
        for two in self.schedule().chunks(2) {
            let names: Vec<String> = two.iter().map(|window| self.name(window.arm)).collect();
            writeln!(f, "{:<4}  {}", two[0].pair + 1, names.join(", "))?;
        }
        match self.warning() {
            Some(warning) => writeln!(f, "\nwarning: {warning}"),
            None => Ok(()),
        }
    }
}
