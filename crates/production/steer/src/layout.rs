//! The structures of `bpf/steer.bpf.c` and `bpf/move.bpf.c`, and what they get of a flat policy.

use uncork_kernel::{Layout, layout};
use uncork_policy::{Candidate, Flat, FlatExperiment, FlatRule, InitialRate, MSS_BYTES, Outcome};
use uncork_units::Rate;
use zerocopy::{FromBytes, FromZeros, Immutable, IntoBytes, KnownLayout};

use crate::question::Answer;
use crate::start::StartFigures;

/// Bytes of a controller's name, with its end.
pub(crate) const NAME: usize = 16;
const WORDS: usize = 16;
const ARMS: usize = 32;
const CANDIDATES: usize = 64;
/// Words of a line of the table of networks.
const LINE: usize = 16;
/// The flag of a decision for a connection that was moved when it was open.
const MOVED: u16 = 1;
/// The flag of a listening socket that got the policy's controller of listeners.
const LISTENER: u16 = 4;
/// Turns the kernel's pacing on, and limits nothing: `PACED`.
const PACED: u32 = u32::MAX - 1;

/// The structures in the types of `steer.bpf.o`. Close events and questions are not among them: no map has them.
pub(crate) const STEER: [Layout; 13] = [
    layout!(Decision = "decision": policy, unit, outcome, flags, window),
    layout!(ConnectionEntry = "kept": decision, start, cookie),
    layout!(StartFigures = "start": first, early_end, exit_end, round_end, lost, early_resent, exit_window, exit_in_flight, mss,
            rounds, rounds_to_100kb, exit, flags),
    layout!(PolicyHead = "head": policy, opened, others, tai_offset, roots, has_ports, has_windows, listener, inherited),
    layout!(TableLine = "line": words),
    layout!(NetworkRow = "row": count, candidates),
    layout!(RowCandidate = "row.candidates": rule, outcome),
    layout!(RuleEntry = "rule": since, until, from, to, ahead, days, has_window, experiment),
    layout!(HashUnit = "unit": words, count, first, shift, unused),
    layout!(ExperimentEntry = "experiment": key, units, arms, unused, arm),
    layout!(ArmSlots = "experiment.arm": first, slots),
    layout!(OutcomeEntry = "outcome": controller, pacing_cap, initial_window, initial_rate),
    layout!(OutcomeCounts = "counts": connections, refused, windows_refused, unkept),
];

/// The structures in the types of `move.bpf.o`.
pub(crate) const MOVE: [Layout; 4] = [
    STEER[0],
    STEER[1],
    STEER[2],
    layout!(MoveTarget = "target": decision, controller, cap, unused),
];

/// The decision for a connection.
#[repr(C)]
#[derive(
    Clone, Copy, Debug, Default, PartialEq, Eq, FromBytes, IntoBytes, Immutable, KnownLayout,
)]
pub(crate) struct Decision {
    /// The key of the policy that decided.
    pub(crate) policy: u64,
    /// The hash of the client's network, if an experiment decided.
    pub(crate) unit: u64,
    pub(crate) outcome: u32,
    flags: u16,
    /// The initial window in packets, as the kernel has it; 0 if it is not known.
    pub(crate) window: u16,
}
const _: () = assert!(size_of::<Decision>() == 24);

impl Decision {
    /// Whether the connection was moved here when it was open.
    pub(crate) const fn is_moved(&self) -> bool {
        self.flags & MOVED != 0
    }

    /// Whether it is a listening socket that got the policy's controller of listeners.
    pub(crate) const fn is_listener(&self) -> bool {
        self.flags & LISTENER != 0
    }
}

/// Places in the table of connections, and where a connection may be.
const PLACES: u64 = 1 << 20;
const TRIES: u64 = 8;
/// Of a cookie: the connection has ended, and no other one has taken its place.
pub(crate) const ENDED: u64 = 1 << 63;

/// The places in the table of connections where the one with this cookie may be: `place`.
pub(crate) fn places(cookie: u64) -> impl Iterator<Item = u32> {
    (0..TRIES).map(move |number| (cookie.wrapping_add(number * 0x9e377) % PLACES) as u32)
}

/// An entry of the table of connections.
#[repr(C)]
#[derive(Default, FromBytes, IntoBytes, Immutable, KnownLayout)]
pub(crate) struct ConnectionEntry {
    pub(crate) decision: Decision,
    pub(crate) start: StartFigures,
    /// The socket's, with [`ENDED`] after its end; 0 where nothing was.
    pub(crate) cookie: u64,
}
const _: () = assert!(size_of::<ConnectionEntry>() == 64);

/// The end of a connection: `struct end`.
#[repr(C)]
#[derive(
    Clone, Copy, Debug, Default, PartialEq, Eq, FromBytes, IntoBytes, Immutable, KnownLayout,
)]
pub(crate) struct CloseEvent {
    /// The socket's.
    pub(crate) cookie: u64,
    pub(crate) decision: Decision,
    pub(crate) start: StartFigures,
    controller: [u8; NAME],
}
const _: () = assert!(size_of::<CloseEvent>() == 80);

impl CloseEvent {
    /// The end of the connection with this cookie, when the program did not see it.
    pub(crate) fn new(cookie: u64, decision: Decision, controller: &str) -> Self {
        let start = StartFigures::default();
        Self { cookie, decision, start, controller: name(Some(controller)) }
    }

    /// The controller at the end; empty if it is not known.
    pub(crate) fn controller(&self) -> &str {
        let end = self.controller.iter().position(|byte| *byte == 0).unwrap_or(NAME);
        std::str::from_utf8(&self.controller[..end]).unwrap_or_default()
    }
}

/// A question to the program, and its answer: `struct question`, padded to the kernel's shortest packet.
#[repr(C)]
#[derive(Clone, Copy, Debug, Default, FromBytes, IntoBytes, Immutable, KnownLayout)]
pub(crate) struct QuestionPacket {
    /// In network byte order; IPv4 mapped.
    pub(crate) client: [u8; 16],
    pub(crate) port: u32,
    pub(crate) is_opened: u32,
    pub(crate) unix_s: i64,
    pub(crate) answer: Decision,
    pub(crate) unused: u64,
}
const _: () = assert!(size_of::<QuestionPacket>() == 64);

/// New settings of an open connection.
#[repr(C)]
#[derive(Clone, Copy, Debug, FromBytes, IntoBytes, Immutable, KnownLayout)]
pub(crate) struct MoveTarget {
    decision: Decision,
    /// Empty: unchanged.
    controller: [u8; NAME],
    /// In bytes per second; 0: unchanged.
    cap: u32,
    unused: u32,
}
const _: () = assert!(size_of::<MoveTarget>() == 48);

impl MoveTarget {
    pub(crate) fn new(answer: &Answer, controller: Option<&str>, cap: u32) -> Self {
        let Answer { policy, unit, outcome } = *answer;
        let decision = Decision { policy, unit, outcome: outcome as u32, flags: MOVED, window: 0 };
        Self { decision, controller: name(controller), cap, unused: 0 }
    }

    /// A listening socket that gets another controller.
    pub(crate) fn listener(controller: &str) -> Self {
        let decision = Decision { flags: LISTENER, ..Decision::default() };
        Self { decision, controller: name(Some(controller)), cap: 0, unused: 0 }
    }
}

/// A controller's name as the kernel takes it; empty without one.
fn name(controller: Option<&str>) -> [u8; NAME] {
    let mut name = [0; NAME];
    for (to, from) in name.iter_mut().zip(controller.unwrap_or_default().bytes()) {
        *to = from;
    }
    name
}

/// What a policy has once.
#[repr(C)]
#[derive(FromBytes, IntoBytes, Immutable, KnownLayout)]
pub(crate) struct PolicyHead {
    policy: u64,
    opened: u64,
    others: u64,
    tai_offset: i64,
    roots: [u32; 2],
    has_ports: u32,
    has_windows: u32,
    /// The controller of listening sockets that have `inherited`; empty: they keep it.
    listener: [u8; NAME],
    /// The host's default. Connections that have `listener` only from their listening socket, without a rule's controller, get it, too.
    inherited: [u8; NAME],
}
const _: () = assert!(size_of::<PolicyHead>() == 80);

impl PolicyHead {
    pub(crate) fn new(flat: &Flat, policy: u64, tai_offset: i64, inherited: &str) -> Self {
        Self {
            policy,
            opened: flat.listeners.opened,
            others: flat.listeners.others,
            tai_offset,
            roots: flat.table.roots(),
            has_ports: (!flat.listeners.ports.is_empty()).into(),
            has_windows: flat.rules.iter().any(|rule| rule.window.is_some()).into(),
            listener: name(flat.listener_controller()),
            inherited: name(Some(inherited)),
        }
    }
}

/// A line of the table of networks: `union line`.
#[repr(C)]
#[derive(FromBytes, IntoBytes, Immutable, KnownLayout)]
pub(crate) struct TableLine {
    words: [u32; LINE],
}
const _: () = assert!(size_of::<TableLine>() == 64);

impl TableLine {
    /// The lines of the table's words.
    pub(crate) fn all(words: &[u32]) -> Vec<Self> {
        let line = |words: &[u32]| {
            let mut line = [0; LINE];
            line[..words.len()].copy_from_slice(words);
            Self { words: line }
        };
        words.chunks(LINE).map(line).collect()
    }
}

/// The rules that hold for the addresses of a row, in their order.
#[repr(C)]
#[derive(FromBytes, IntoBytes, Immutable, KnownLayout)]
pub(crate) struct NetworkRow {
    count: u32,
    candidates: [RowCandidate; CANDIDATES],
}
const _: () = assert!(size_of::<NetworkRow>() == 260);

#[repr(C)]
#[derive(FromBytes, IntoBytes, Immutable, KnownLayout)]
pub(crate) struct RowCandidate {
    rule: u16,
    outcome: u16,
}

impl From<&Vec<Candidate>> for NetworkRow {
    fn from(candidates: &Vec<Candidate>) -> Self {
        let mut row = Self { count: candidates.len() as u32, ..Self::new_zeroed() };
        for (to, Candidate { rule, outcome }) in row.candidates.iter_mut().zip(candidates) {
            *to = RowCandidate { rule: *rule, outcome: *outcome };
        }
        row
    }
}

/// When a rule holds, and its experiment.
#[repr(C)]
#[derive(FromBytes, IntoBytes, Immutable, KnownLayout)]
pub(crate) struct RuleEntry {
    since: i64,
    until: i64,
    from: u32,
    to: u32,
    ahead: i32,
    days: u8,
    has_window: u8,
    /// Its index and 1; 0 is none.
    experiment: u16,
}
const _: () = assert!(size_of::<RuleEntry>() == 32);

impl From<&FlatRule> for RuleEntry {
    fn from(rule: &FlatRule) -> Self {
        let experiment = rule.experiment.map_or(0, |index| index + 1);
        let Some(window) = rule.window else { return Self { experiment, ..Self::new_zeroed() } };
        Self {
            since: window.since,
            until: window.until,
            from: window.from,
            to: window.to,
            ahead: window.ahead,
            days: window.days,
            has_window: 1,
            experiment,
        }
    }
}

/// An experiment's hash and arms.
#[repr(C)]
#[derive(FromBytes, IntoBytes, Immutable, KnownLayout)]
pub(crate) struct ExperimentEntry {
    key: [u64; 2],
    /// IPv4, IPv6.
    units: [HashUnit; 2],
    arms: u32,
    unused: u32,
    arm: [ArmSlots; ARMS],
}
const _: () = assert!(size_of::<ExperimentEntry>() == 440);

#[repr(C)]
#[derive(FromBytes, IntoBytes, Immutable, KnownLayout)]
pub(crate) struct ArmSlots {
    first: u16,
    slots: u16,
}

impl From<&FlatExperiment> for ExperimentEntry {
    fn from(experiment: &FlatExperiment) -> Self {
        let (key, _) = experiment.key.as_chunks::<8>();
        let prefix = &experiment.prefix;
        let mut entry = Self {
            key: [0, 1].map(|half: usize| u64::from_le_bytes(key[half])),
            units: [HashUnit::new(prefix, b'4', 3), HashUnit::new(prefix, b'6', 6)],
            arms: experiment.arms.len() as u32,
            ..Self::new_zeroed()
        };
        for (to, (first, slots)) in entry.arm.iter_mut().zip(&experiment.arms) {
            *to = ArmSlots { first: *first, slots: *slots };
        }
        entry
    }
}

/// The message of the hash in words, with zeros in the place of the network. The last byte of the last word is the
/// length (SipHash, padding).
#[repr(C)]
#[derive(FromBytes, IntoBytes, Immutable, KnownLayout)]
pub(crate) struct HashUnit {
    words: [u64; WORDS],
    count: u32,
    /// The word in which the network begins, and its first bit.
    first: u32,
    shift: u32,
    unused: u32,
}
const _: () = assert!(size_of::<HashUnit>() == 144);

impl HashUnit {
    fn new(prefix: &[u8], kind: u8, network: usize) -> Self {
        let mut message = [prefix, &[kind]].concat();
        let place = message.len();
        let length = place + network;
        let count = length / 8 + 1;
        message.resize(WORDS * 8, 0);
        message[count * 8 - 1] = length as u8;
        let (bytes, _) = message.as_chunks::<8>();
        let mut words = [0; WORDS];
        for (word, bytes) in words.iter_mut().zip(bytes) {
            *word = u64::from_le_bytes(*bytes);
        }
        let (first, shift) = ((place / 8) as u32, (place % 8 * 8) as u32);
        Self { words, count: count as u32, first, shift, unused: 0 }
    }
}

/// The settings of an outcome.
#[repr(C)]
#[derive(FromBytes, IntoBytes, Immutable, KnownLayout)]
pub(crate) struct OutcomeEntry {
    /// Empty: the connection keeps that of the service or the route.
    controller: [u8; NAME],
    /// In bytes per second; 0 is none.
    pacing_cap: u32,
    /// In packets; 0 is the kernel's.
    initial_window: u32,
    /// In bytes per second, until the first acknowledgement; [`PACED`]; 0 is that of the cap.
    initial_rate: u32,
}
const _: () = assert!(size_of::<OutcomeEntry>() == 28);

impl OutcomeEntry {
    /// The rates fit: that was checked.
    pub(crate) fn new(outcome: &Outcome) -> Self {
        let bytes_per_sec = |rate: Rate| u32::try_from(rate.bytes_per_sec()).unwrap_or(0);
        let cap = outcome.pacing_cap.map_or(0, bytes_per_sec);
        let initial_rate = match (outcome.initial_window, outcome.initial_rate) {
            (None, _) | (_, Some(InitialRate::Burst)) => 0,
            (Some(_), Some(InitialRate::Paced(rate))) => bytes_per_sec(rate),
            (Some(_), None) => PACED,
        };
        Self {
            controller: name(outcome.kernel_name()),
            pacing_cap: cap,
            initial_window: outcome.initial_window.map_or(0, |window| window.packets(MSS_BYTES)),
            // A cap paces, too.
            initial_rate: if cap > 0 && initial_rate >= cap { 0 } else { initial_rate },
        }
    }
}

/// The connections of an outcome on one processor.
#[repr(C)]
#[derive(FromBytes, IntoBytes, Immutable, KnownLayout)]
pub(crate) struct OutcomeCounts {
    pub(crate) connections: u64,
    pub(crate) refused: u64,
    pub(crate) windows_refused: u64,
    pub(crate) unkept: u64,
}
const _: () = assert!(size_of::<OutcomeCounts>() == 32);

#[cfg(test)]
mod tests {
    use uncork_kernel::check_object;

    use super::*;

    #[test]
    fn the_structures_are_those_of_the_objects() {
        for (object, layouts) in [
            (&include_bytes!("../bpf/steer.bpf.o")[..], &STEER[..]),
            (include_bytes!("../bpf/move.bpf.o"), &MOVE),
        ] {
            check_object("steer", object, layouts).expect("the same");
        }
    }

    #[test]
    fn the_first_flight_has_its_rate_unless_the_cap_is_lower() {
        let outcome = |window: Option<&str>, rate: Option<InitialRate>, cap: Option<u64>| Outcome {
            rule: None,
            name: None,
            arm: None,
            tcp: None,
            initial_window: window.map(|window| window.parse().expect("a window")),
            initial_rate: rate,
            pacing_cap: cap.map(Rate::from_mbit),
            resume: false,
        };
        let paced = |mbit| Some(InitialRate::Paced(Rate::from_mbit(mbit)));
        for (window, rate, cap, expected) in [
            (None, None, None, (0, 0)),
            (None, paced(8), None, (0, 0)),
            (Some("32p"), None, None, (32, PACED)),
            (Some("32p"), Some(InitialRate::Burst), None, (32, 0)),
            (Some("32p"), paced(8), None, (32, 1_000_000)),
            (Some("32p"), paced(8), Some(4), (32, 0)),
            (Some("32p"), paced(8), Some(16), (32, 1_000_000)),
            (Some("32p"), None, Some(16), (32, 0)),
            (Some("1200B"), Some(InitialRate::Burst), None, (1, 0)),
            (Some("14600B"), Some(InitialRate::Burst), None, (10, 0)),
        ] {
            let entry = OutcomeEntry::new(&outcome(window, rate, cap));
            let asked = format!("{window:?} {rate:?} {cap:?}");
            assert_eq!((entry.initial_window, entry.initial_rate), expected, "{asked}");
        }
    }

    #[test]
    fn outcome_with_resume_has_the_controllers_second_name() {
        for (tcp, resume, expected) in [
            (Some("uncork_cubic"), true, "uncork_cubic_r"),
            (Some("uncork_cubic"), false, "uncork_cubic"),
            (Some("uncork_prague"), true, "uncork_prague_r"),
            (None, true, ""),
        ] {
            let outcome = Outcome {
                rule: None,
                name: None,
                arm: None,
                tcp: tcp.map(str::to_owned),
                initial_window: None,
                initial_rate: None,
                pacing_cap: None,
                resume,
            };
            let entry = OutcomeEntry::new(&outcome);
            assert_eq!(entry.controller, name(Some(expected)), "{tcp:?}");
        }
    }

    /// Old connections that lie together must not take all places of a new one.
    #[test]
    fn places_of_a_connection_are_far_apart() {
        for cookie in [1, 4096, (1 << 20) - 1, u64::MAX] {
            let mut all: Vec<u64> = places(cookie).map(u64::from).collect();
            assert_eq!(all[0], cookie % PLACES, "neighbours in time are neighbours");
            all.sort_unstable();
            let gaps = all.windows(2).map(|two| two[1] - two[0]);
            let around = all[0] + PLACES - all[all.len() - 1];
            let widest = gaps.chain([around]).max().expect("some");
            assert!(widest < 200_000, "{cookie}: {all:?}");
        }
    }
}
