//! The allowed state transitions, written by hand from the specifications.

use uncork_cc::{Algorithm, PathEvent};

/// The host's latest call.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Call {
    Sent,
    Feedback,
    /// A feedback during the Safe Retreat of a Careful Resume.
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

/// Transitions of one ACK for BBRv3 and BBRv2, which have the same states: the parts of
/// UpdateModelAndState() (draft-ietf-ccwg-bbr-06 §5.2.3) in order, with at most one transition
/// each.
const BBR3_FEEDBACK: &[&[Edge]] = &[
    // HandleInflightTooHigh(), §5.5.10.2.
    &[(UP, DOWN)],
    // CheckStartupDone() and CheckDrainDone(), §5.3.1.1 and §5.3.2.
    &[(STARTUP, DRAIN)],
    &[(DRAIN, DOWN)],
    // UpdateProbeBWCyclePhase(), §5.3.3.9.
    &[(DOWN, CRUISE), (DOWN, REFILL), (CRUISE, REFILL), (REFILL, UP), (UP, DOWN)],
    // CheckProbeRTT(), §5.3.4.3: exit when done, entry from any state.
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

/// HandleSpuriousLossDetection(), §5.5.11.2: back to the state before the loss. REFILL precedes UP.
/// BBRv2 has no such transition.
const BBR3_SPURIOUS: &[&[Edge]] = &[&[
    (DRAIN, STARTUP),
    (DOWN, STARTUP),
    (CRUISE, STARTUP),
    (REFILL, STARTUP),
    (UP, STARTUP),
    (DOWN, REFILL),
    (CRUISE, REFILL),
]];

/// HandleRestartFromIdle(), §5.4.1, may end ProbeRTT.
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

/// Of NewReno, CUBIC and Prague. RFC 5681 §3.1 and §3.2; RFC 9406 §4.2 for CSS, which returns to slow start if the RTT falls
/// again.
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
/// A Careful Resume that overshot continues in slow start, up to half of the measured capacity (RFC
/// 9959, Safe Retreat).
const LOSS_RETREAT: &[&[Edge]] = &[LOSS_FEEDBACK[0], &[(RECOVERY, SLOW_START)]];
/// A timeout restarts slow start, unless ssthresh is at most the two segments of persistent
/// congestion.
const LOSS_TIMEOUT: &[&[Edge]] = &[&[
    (AVOIDANCE, SLOW_START),
    (CSS, SLOW_START),
    (RECOVERY, SLOW_START),
    (SLOW_START, AVOIDANCE),
    (RECOVERY, AVOIDANCE),
]];
/// A larger packet raises ssthresh, which is at least two packets, above the window.
const LOSS_PATH: &[&[Edge]] = &[&[(AVOIDANCE, SLOW_START)]];
/// An undo returns to the state before the loss or timeout.
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
        (Algorithm::Reno | Algorithm::Cubic | Algorithm::Prague, call) => match call {
            Call::Feedback => LOSS_FEEDBACK,
            Call::Retreating => LOSS_RETREAT,
            Call::Timeout => LOSS_TIMEOUT,
            Call::Spurious => LOSS_SPURIOUS,
            Call::Path(_) => LOSS_PATH,
            Call::Sent => &[],
        },
        _ => &[],
    }
}

/// The state of a new connection.
fn initial(algorithm: Algorithm) -> &'static str {
    match algorithm {
        Algorithm::Reno | Algorithm::Cubic | Algorithm::Prague => SLOW_START,
        _ => STARTUP,
    }
}

/// Whether `call` may cause this transition.
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
