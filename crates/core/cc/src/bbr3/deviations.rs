//! Deviations of this implementation from draft-ietf-ccwg-bbr-06.

/// A defect of the draft that is fixed here. The letters refer to `DEVIATIONS.md`.
#[derive(Clone, Copy, Debug)]
#[repr(u8)]
pub(super) enum Deviation {
    /// (a) The rate sample of an ACK includes inflight and losses.
    AckFlight,
    /// (b) A lost packet is judged by its own sample.
    LossSample,
    /// (h) State for an undo is saved once per recovery episode, not once per round or timeout.
    UndoPerEpisode,
    /// (i) The first RTT sample replaces the pacing rate based on the nominal RTT.
    PacingFromFirstRtt,
    /// (j) An unreliable delivery rate updates neither the full-pipe estimator nor the latest
    /// signals.
    SkipInvalid,
    /// (k) A loss that a tail-loss probe repaired is a congestion signal.
    ProbeRepair,
    /// (k) BBR.extra_acked is bounded by 100 ms of BBR.bw.
    BoundExtraAcked,
    /// (m) Drain ends after three rounds, as the prose says, not after four.
    DrainThreeRounds,
    /// (n) The max_bw filter advances exactly once per bandwidth probe.
    AdvanceEveryCycle,
    /// (o) A cautious probe ends when inflight before an ACK, not after it, reaches the long-term
    /// bound.
    InflightBeforeAck,
}

/// The set of active deviations.
#[derive(Clone, Copy, Debug)]
pub(super) struct Deviations(u16);

impl Deviations {
    /// All deviations: the default. Each `uncork_mutant` reintroduces a historic bug to verify that
    /// the tests catch it (`mutants.sh`).
    pub(super) const ALL: Self = Self(u16::MAX)
        .except(cfg!(uncork_mutant = "unassigned-tx-in-flight"), Deviation::AckFlight)
        .except(cfg!(uncork_mutant = "starved-max-bw"), Deviation::AdvanceEveryCycle)
        .except(cfg!(uncork_mutant = "undo-per-round"), Deviation::UndoPerEpisode);
    /// None: follows the draft exactly.
    pub(super) const NONE: Self = Self(0);

    pub(super) const fn has(self, deviation: Deviation) -> bool {
        self.0 & (1 << deviation as u8) != 0
    }

    /// All of these except one.
    pub(super) const fn without(self, deviation: Deviation) -> Self {
        self.except(true, deviation)
    }

    const fn except(self, applies: bool, deviation: Deviation) -> Self {
        Self(self.0 & !((applies as u16) << deviation as u8))
    }
}
