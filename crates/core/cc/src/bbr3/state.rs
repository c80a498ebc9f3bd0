//! The states of BBRv3 and their gains: draft-ietf-ccwg-bbr-06 §5.1.1, §5.6.1.

use uncork_units::Ratio;

use super::params::{DEFAULT_CWND_GAIN, PROBE_RTT_CWND_GAIN, UP_PACING_GAIN};
use super::profile::Profile;

/// BBR.state.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum State {
    /// Doubles the rate every round to find the bandwidth.
    Startup,
    /// Drains the queue that Startup made.
    Drain,
    /// Decelerates after a bandwidth probe.
    ProbeBwDown,
    /// Sends at the estimated bandwidth.
    ProbeBwCruise,
    /// Fills the pipe before a bandwidth probe.
    ProbeBwRefill,
    /// Probes for more bandwidth.
    ProbeBwUp,
    /// Drains the pipe to measure the round-trip propagation delay.
    ProbeRtt,
}

impl State {
    /// The draft's name.
    pub(super) const fn name(self) -> &'static str {
        match self {
            Self::Startup => "Startup",
            Self::Drain => "Drain",
            Self::ProbeBwDown => "ProbeBW_DOWN",
            Self::ProbeBwCruise => "ProbeBW_CRUISE",
            Self::ProbeBwRefill => "ProbeBW_REFILL",
            Self::ProbeBwUp => "ProbeBW_UP",
            Self::ProbeRtt => "ProbeRTT",
        }
    }

    /// BBR.pacing_gain. The draft's pseudocode assigns gains in some states only. The table in
    /// §5.6.1 lists all of them, so the gain is a function of state and version.
    //= bbr-06 5.3.1.1-1 5.3.3.2-1 5.3.3.3-2 5.6.1-1
    pub(super) const fn pacing_gain(self, profile: Profile) -> Ratio {
        match self {
            Self::Startup => profile.startup_pacing_gain(),
            Self::Drain => profile.drain_pacing_gain(),
            Self::ProbeBwDown => profile.down_pacing_gain(),
            Self::ProbeBwUp => UP_PACING_GAIN,
            Self::ProbeBwCruise | Self::ProbeBwRefill | Self::ProbeRtt => Ratio::ONE,
        }
    }

    /// BBR.cwnd_gain.
    //= bbr-06 5.3.1.1-1 5.6.1-1
    pub(super) const fn cwnd_gain(self, profile: Profile) -> Ratio {
        match self {
            Self::Startup | Self::Drain => profile.startup_cwnd_gain(),
            Self::ProbeBwUp => profile.up_cwnd_gain(),
            Self::ProbeRtt => PROBE_RTT_CWND_GAIN,
            Self::ProbeBwDown | Self::ProbeBwCruise | Self::ProbeBwRefill => DEFAULT_CWND_GAIN,
        }
    }

    /// IsInAProbeBWState().
    pub(super) const fn is_probe_bw(self) -> bool {
        matches!(
            self,
            Self::ProbeBwDown | Self::ProbeBwCruise | Self::ProbeBwRefill | Self::ProbeBwUp
        )
    }

    /// IsProbingBW(): whether the state accelerates, so that loss is an expected response.
    //= bbr-06 5.3.3.9-11
    pub(super) const fn is_probing_bw(self) -> bool {
        matches!(self, Self::Startup | Self::ProbeBwRefill | Self::ProbeBwUp)
    }

    /// Whether the diagram of §5.1.1 or an undo (§5.5.11.2) allows the transition to `next`.
    //= bbr-06 5.1.1-1
    pub(super) const fn may_become(self, next: Self) -> bool {
        match next {
            Self::ProbeRtt => !matches!(self, Self::ProbeRtt),
            Self::Startup => !matches!(self, Self::Startup),
            Self::Drain => matches!(self, Self::Startup),
            Self::ProbeBwDown => matches!(self, Self::Drain | Self::ProbeBwUp | Self::ProbeRtt),
            Self::ProbeBwCruise => matches!(self, Self::ProbeBwDown),
            Self::ProbeBwRefill => {
                matches!(self, Self::ProbeBwDown | Self::ProbeBwCruise | Self::ProbeBwRefill)
            }
            Self::ProbeBwUp => matches!(self, Self::ProbeBwRefill),
        }
    }
}

/// BBR.ack_phase: what arriving ACKs show about a bandwidth probe.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum AckPhase {
    /// Nothing.
    Init,
    /// The pipe is being filled for a probe.
    Refilling,
    /// Inflight is rising, but its effect has not been acknowledged yet.
    ProbeStarting,
    /// ACKs reflect the probe.
    ProbeFeedback,
    /// The probe is over, but ACKs of its packets are still arriving.
    ProbeStopping,
}

#[cfg(test)]
mod tests {
    use super::*;

    const ALL: [State; 7] = [
        State::Startup,
        State::Drain,
        State::ProbeBwDown,
        State::ProbeBwCruise,
        State::ProbeBwRefill,
        State::ProbeBwUp,
        State::ProbeRtt,
    ];

    #[test]
    //= bbr-06 2.5-1 2.5-2 2.6-1 2.16-2 5.3.1.1-1 5.3.3.1-1 5.3.3.3-2 5.3.3.5-1 5.3.4.3-5 test
    //= bbr-06 5.6.1-1 test
    fn gains_match_the_summary_table() {
        let percent = |gain: Ratio| gain.of(100);
        let gains = |profile| {
            ALL.map(|state| {
                (percent(state.pacing_gain(profile)), percent(state.cwnd_gain(profile)))
            })
        };
        let v3 = [(277, 200), (50, 200), (90, 200), (100, 200), (100, 200), (125, 225), (100, 50)];
        assert_eq!(gains(Profile::V3), v3);
        let v2 = [(288, 288), (34, 288), (75, 200), (100, 200), (100, 200), (125, 200), (100, 50)];
        assert_eq!(gains(Profile::V2), v2);
    }

    #[test]
    //= bbr-06 5.1.1-1 test
    fn cycle_runs_in_one_direction() {
        use State::{ProbeBwCruise, ProbeBwDown, ProbeBwRefill, ProbeBwUp, ProbeRtt, Startup};
        for pair in ALL.windows(2).take(5) {
            assert!(pair[0].may_become(pair[1]), "{pair:?}");
        }
        assert!(ProbeBwUp.may_become(ProbeBwDown));
        assert!(ALL.iter().all(|state| *state == ProbeRtt || state.may_become(ProbeRtt)));
        assert!(!ProbeBwCruise.may_become(ProbeBwUp) && !ProbeBwCruise.may_become(ProbeBwDown));
        assert!(!ProbeBwRefill.may_become(ProbeBwDown) && !Startup.may_become(ProbeBwDown));
    }
}
