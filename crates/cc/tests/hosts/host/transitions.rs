//! Which states may follow which, by hand from the specifications.

use uncork_cc::{Algorithm, PathEvent};

/// What a host has just called.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Call {
    Sent,
    Feedback,
    /// A feedback in the Safe Retreat of a careful resume.
    Retreating,
    Spurious,
    Timeout,
    Path(PathEvent),
}

type Edge = (&'static str, &'static str);

const STARTUP: &str = "Startup";
const DRAIN: &str = "Drain";
const DOWN: &str = "ProbeBW_DOWN";
const CRUISE: &str = "ProbeBW_CRUISE";
const REFILL: &str = "ProbeBW_REFILL";
const UP: &str = "ProbeBW_UP";
const PROBE_RTT: &str = "ProbeRTT";
const PROBE_BW: &str = "ProbeBW";
const SLOW_START: &str = "SlowStart";
const CSS: &str = "CSS";
const AVOIDANCE: &str = "CongestionAvoidance";
const RECOVERY: &str = "Recovery";

/// What one ACK may do to BBRv3, and to BBRv2, whose states are the same: the parts of
/// UpdateModelAndState() (draft-ietf-ccwg-bbr-06 §5.2.3) in their order, at most one transition in
/// each.
const BBR3_FEEDBACK: &[&[Edge]] = &[
    // HandleInflightTooHigh(), §5.5.10.2.
    &[(UP, DOWN)],
    // CheckStartupDone() and CheckDrainDone(), §5.3.1.1 and §5.3.2.
    &[(STARTUP, DRAIN)],
    &[(DRAIN, DOWN)],
    // UpdateProbeBWCyclePhase(), §5.3.3.9.
    &[(DOWN, CRUISE), (DOWN, REFILL), (CRUISE, REFILL), (REFILL, UP), (UP, DOWN)],
    // CheckProbeRTT(), §5.3.4.3: out of it when it is done, into it from everywhere.
    &[
        (PROBE_RTT, CRUISE),
        (PROBE_RTT, STARTUP),
        (STARTUP, PROBE_RTT),
        (DRAIN, PROBE_RTT),
        (DOWN, PROBE_RTT),
        (CRUISE, PROBE_RTT),
        (REFILL, PROBE_RTT),
        (UP, PROBE_RTT),
    ],
];

/// HandleSpuriousLossDetection(), §5.5.11.2: back to what loss had ended. REFILL comes before UP.
/// BBRv2 has no such thing.
const BBR3_SPURIOUS: &[&[Edge]] = &[&[
    (DRAIN, STARTUP),
    (DOWN, STARTUP),
    (CRUISE, STARTUP),
    (REFILL, STARTUP),
    (UP, STARTUP),
    (DOWN, REFILL),
    (CRUISE, REFILL),
]];

/// HandleRestartFromIdle(), §5.4.1, may find ProbeRTT done.
const BBR3_SENT: &[&[Edge]] = &[&[(PROBE_RTT, CRUISE), (PROBE_RTT, STARTUP)]];

/// draft-cardwell-iccrg-bbr-congestion-control-00 §3.4 and §4.3; ProbeRTT comes last.
const BBR1_FEEDBACK: &[&[Edge]] = &[
    &[(STARTUP, DRAIN)],
    &[(DRAIN, PROBE_BW)],
    &[
        (STARTUP, PROBE_RTT),
        (DRAIN, PROBE_RTT),
        (PROBE_BW, PROBE_RTT),
        (PROBE_RTT, PROBE_BW),
        (PROBE_RTT, STARTUP),
    ],
];
const BBR1_SENT: &[&[Edge]] = &[&[(PROBE_RTT, PROBE_BW), (PROBE_RTT, STARTUP)]];

/// RFC 5681 §3.1 and §3.2; RFC 9406 §4.2 for CSS, which leads back when the RTT has fallen again.
const LOSS_FEEDBACK: &[&[Edge]] = &[&[
    (SLOW_START, RECOVERY),
    (CSS, RECOVERY),
    (AVOIDANCE, RECOVERY),
    (RECOVERY, AVOIDANCE),
    (SLOW_START, AVOIDANCE),
    (SLOW_START, CSS),
    (CSS, SLOW_START),
    (CSS, AVOIDANCE),
]];
/// A careful resume that went too far ends in slow start up to half of what the path held
/// (RFC 9959, Safe Retreat).
const LOSS_RETREAT: &[&[Edge]] = &[LOSS_FEEDBACK[0], &[(RECOVERY, SLOW_START)]];
/// A timeout starts slowly again, unless the two segments that persistent congestion leaves are all
/// that ssthresh allows.
const LOSS_TIMEOUT: &[&[Edge]] = &[&[
    (AVOIDANCE, SLOW_START),
    (CSS, SLOW_START),
    (RECOVERY, SLOW_START),
    (SLOW_START, AVOIDANCE),
    (RECOVERY, AVOIDANCE),
]];
/// A larger packet lifts ssthresh, which is two of them at least, above the window.
const LOSS_PATH: &[&[Edge]] = &[&[(AVOIDANCE, SLOW_START)]];
/// An undo leads back to where loss or a timeout was met.
const LOSS_SPURIOUS: &[&[Edge]] = &[&[
    (RECOVERY, AVOIDANCE),
    (RECOVERY, SLOW_START),
    (AVOIDANCE, SLOW_START),
    (SLOW_START, AVOIDANCE),
]];

fn steps(algorithm: Algorithm, call: Call) -> &'static [&'static [Edge]] {
    match (algorithm, call) {
        (Algorithm::Bbr2 | Algorithm::Bbr3, Call::Feedback | Call::Retreating) => BBR3_FEEDBACK,
        (Algorithm::Bbr3, Call::Spurious) => BBR3_SPURIOUS,
        (Algorithm::Bbr2 | Algorithm::Bbr3, Call::Sent) => BBR3_SENT,
        (Algorithm::Bbr1, Call::Feedback | Call::Retreating) => BBR1_FEEDBACK,
        (Algorithm::Bbr1, Call::Sent) => BBR1_SENT,
        (Algorithm::Reno | Algorithm::Cubic, Call::Feedback) => LOSS_FEEDBACK,
        (Algorithm::Reno | Algorithm::Cubic, Call::Retreating) => LOSS_RETREAT,
        (Algorithm::Reno | Algorithm::Cubic, Call::Timeout) => LOSS_TIMEOUT,
        (Algorithm::Reno | Algorithm::Cubic, Call::Spurious) => LOSS_SPURIOUS,
        (Algorithm::Reno | Algorithm::Cubic, Call::Path(_)) => LOSS_PATH,
        _ => &[],
    }
}

/// The state of a new connection.
fn initial(algorithm: Algorithm) -> &'static str {
    match algorithm {
        Algorithm::Reno | Algorithm::Cubic => SLOW_START,
        _ => STARTUP,
    }
}

/// Whether `call` may lead from one state to the other.
pub(crate) fn may_lead(
    algorithm: Algorithm,
    call: Call,
    from: &'static str,
    to: &'static str,
) -> bool {
    if let Call::Path(PathEvent::Migrated) = call {
        return to == initial(algorithm);
    }
    let mut reached = vec![from];
    for step in steps(algorithm, call) {
        let next = step.iter().filter(|(start, _)| reached.contains(start));
        let next: Vec<&str> = next.map(|(_, end)| *end).collect();
        reached.extend(next);
    }
    reached.contains(&to)
}
