//! Where this implementation departs from the letter of draft-ietf-ccwg-bbr-06.

/// A defect of the draft that is repaired here; the letters are those of `DEVIATIONS.md`.
#[derive(Clone, Copy, Debug)]
#[repr(u8)]
pub(super) enum Deviation {
    /// (a) The sample of an ACK carries what was in flight and what was lost.
    AckFlight,
    /// (b) A lost packet is judged by a sample of its own.
    LossSample,
    /// (h) State for an undo is saved once per recovery episode, not once per round or timeout.
    UndoPerEpisode,
    /// (i) The first RTT sample replaces the pacing rate that was guessed without one.
    PacingFromFirstRtt,
    /// (j) An unreliable delivery rate feeds neither the full-pipe estimator nor the latest signals.
    SkipInvalid,
    /// (k) A loss that a tail-loss probe repaired is a congestion signal.
    ProbeRepair,
    /// (k) BBR.extra_acked is bounded by 100 ms of BBR.bw.
    BoundExtraAcked,
    /// (m) Drain ends after three rounds, as the prose says, not after four.
    DrainThreeRounds,
    /// (n) The max_bw filter advances once for every bandwidth probe, come what may.
    AdvanceEveryCycle,
    /// (o) A cautious probe ends when inflight reaches the long-term bound before an ACK, not after.
    InflightBeforeAck,
}

/// The set of deviations in force.
#[derive(Clone, Copy, Debug)]
pub(super) struct Deviations(u16);

impl Deviations {
    /// All of them: the default. Each `uncork_mutant` brings a historic bug back, to test the tests
    /// (`mutants.sh`).
    pub(super) const ALL: Self = Self(u16::MAX)
        .except(cfg!(uncork_mutant = "unassigned-tx-in-flight"), Deviation::AckFlight)
        .except(cfg!(uncork_mutant = "starved-max-bw"), Deviation::AdvanceEveryCycle)
        .except(cfg!(uncork_mutant = "undo-per-round"), Deviation::UndoPerEpisode);
    /// None: the draft to the letter.
    pub(super) const NONE: Self = Self(0);

    pub(super) const fn has(self, deviation: Deviation) -> bool {
        self.0 & (1 << deviation as u8) != 0
    }

    /// All of these but one.
    pub(super) const fn without(self, deviation: Deviation) -> Self {
        self.except(true, deviation)
    }

    const fn except(self, applies: bool, deviation: Deviation) -> Self {
        Self(self.0 & !((applies as u16) << deviation as u8))
    }
}
