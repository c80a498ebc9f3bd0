//! A second model of BBRv3: draft-ietf-ccwg-bbr-06 implemented again, naively and in floating
//! point, from the draft's text and DEVIATIONS.md. A host over a random path feeds it and `bbr3`
//! the same events. After every event both must have the same state and make the same decisions.
//!
//! # Rounding
//!
//! Rates are whole bytes per second in both (`uncork_units::Rate` rounds down), and so are the
//! bytes a rate moves in an interval. Otherwise filters that compare samples would depend on
//! rounding at every other ACK. Rates, times, rounds and states match exactly.
//!
//! Volumes that are multiples of the BDP keep their fractions here; `bbr3` rounds them down. They
//! match to within [`BYTES`]. If a decision compares such volumes and they are closer than that,
//! rounding may decide it, and the rest of the script is not compared. The test counts such
//! scripts.

#![allow(clippy::float_cmp, reason = "what rounds nothing is equal, or it is not")]
#![allow(clippy::struct_excessive_bools, reason = "the draft's variables, one by one")]
#![allow(clippy::struct_field_names, reason = "the draft's names")]

mod compare;
mod control;
mod filters;
mod host;
mod model;
mod network;
mod path_model;
mod recovery;
mod sampler;
mod states;

use std::collections::BTreeMap;

use compare::Verdict;
use host::Host;
use uncork_cc::CcSpec;

/// A BDP rounded down, times 2.25, rounded down: the error is less than 3.25 bytes.
const BDP_BYTES: f64 = 3.25;
/// A window may be bounded by the sum of two such volumes (BBR.extra_acked is at most the window),
/// rounded down again.
const BYTES: f64 = 8.0;
const SCRIPTS: u64 = 300;

/// The rows of DEVIATIONS.md that can be switched off, to follow the draft exactly.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Switches {
    a_volumes_are_never_assigned: bool,
    b_losses_overwrite_the_sample: bool,
    h_undo_state_is_saved_each_round: bool,
    i_pacing_rate_is_set_once: bool,
    j_unreliable_samples_count: bool,
    k_repaired_losses_are_ignored: bool,
    k_extra_acked_is_bounded_by_the_window_only: bool,
    m_drain_lasts_four_rounds: bool,
    n_filter_waits_for_unlimited_feedback: bool,
    o_inflight_is_read_after_the_ack: bool,
}

const STRICT: Switches = Switches {
    a_volumes_are_never_assigned: true,
    b_losses_overwrite_the_sample: true,
    h_undo_state_is_saved_each_round: true,
    i_pacing_rate_is_set_once: true,
    j_unreliable_samples_count: true,
    k_repaired_losses_are_ignored: true,
    k_extra_acked_is_bounded_by_the_window_only: true,
    m_drain_lasts_four_rounds: true,
    n_filter_waits_for_unlimited_feedback: true,
    o_inflight_is_read_after_the_ack: true,
};

/// Events that the scripts of either mode must reach, with minimum counts: about half of the actual
/// ones.
const REACHED: [(&str, u32); 33] = [
    ("ACK of eight packets and more", 5_000),
    ("CE mark", 5_000),
    ("CRUISE", 2_000),
    ("DOWN", 3_000),
    ("DOWN ends by time", 500),
    ("Drain", 100),
    ("Drain ends by inflight", 100),
    ("Drain ends by time", 2),
    ("MTU change", 50),
    ("ProbeRTT", 300),
    ("ProbeRTT ends in CRUISE", 300),
    ("ProbeRTT ends in Startup", 3),
    ("ProbeRTT skipped after idle", 40),
    ("REFILL", 3_000),
    ("REFILL after a precaution", 60),
    ("RTO", 100),
    ("UP", 3_000),
    ("UP ends as a precaution", 100),
    ("UP ends by loss", 2_000),
    ("UP ends by plateau", 400),
    ("application-limited sample", 10_000),
    ("idle restart", 400),
    ("longterm grows", 7_000),
    ("lower bounds fall", 4_000),
    ("migration", 8),
    ("persistent congestion", 20),
    ("probe by rounds", 3_000),
    ("probe by the clock", 200),
    ("probe timeout", 300),
    ("recovery", 6_000),
    ("undo", 900),
    ("undo to REFILL", 100),
    ("unreliable sample", 10),
];

/// Events that only occur, or occur more often, with the deviations.
const REACHED_BY_DEFAULT: [(&str, u32); 6] = [
    ("RTO repeats", 90),
    ("Startup ends by loss", 50),
    ("extra_acked beyond 100 ms", 30_000),
    ("filter advances late", 3_000),
    ("loss repaired by a probe", 10),
    ("undo to Startup", 1),
];

/// Totals of all scripts of a mode.
#[derive(Debug, Default)]
struct Tally {
    /// Events after which both models were compared.
    events: u64,
    /// Scripts that ended early, by the decision that depended on rounding.
    undecided: BTreeMap<&'static str, u32>,
    reached: BTreeMap<&'static str, u32>,
    /// The largest difference of two volumes, in bytes.
    worst: f64,
}

impl Tally {
    /// Fails if less was reached or compared than the scripts are designed for.
    fn require(&self, reached: &[(&str, u32)]) {
        let undecided: u32 = self.undecided.values().sum();
        assert!(undecided <= SCRIPTS as u32 / 2 && self.events > 1_500_000, "{self:#?}");
        for (what, least) in reached {
            let count = self.reached.get(what).copied().unwrap_or(0);
            assert!(count >= *least, "{what}: {count} times in {self:#?}");
        }
    }
}

/// Runs every script; panics at the first difference.
fn play(spec: &str, switches: Switches) -> Tally {
    let spec: CcSpec = spec.parse().expect("a known controller");
    let mut tally = Tally::default();
    for seed in 0..SCRIPTS {
        let mut host = Host::new(spec, switches, seed);
        host.run();
        let pair = host.pair;
        match &pair.verdict {
            Verdict::Agreed => {}
            Verdict::Undecided(what) => *tally.undecided.entry(what).or_default() += 1,
            Verdict::Differed(text) => panic!("script {seed}, {text}"),
        }
        tally.events += pair.compared;
        tally.worst = tally.worst.max(pair.worst);
        for (what, count) in &pair.model.reached {
            *tally.reached.entry(what).or_default() += count;
        }
    }
    tally
}

#[test]
fn bbr3_matches_its_second_model() {
    let tally = play("bbr3", Switches::default());
    println!("{tally:#?}");
    tally.require(&REACHED);
    tally.require(&REACHED_BY_DEFAULT);
}

#[test]
fn strict_draft_matches_the_second_model_of_the_draft() {
    let tally = play("bbr3:strict_draft", STRICT);
    println!("{tally:#?}");
    tally.require(&REACHED);
}
