//! The structures of `bpf/steer.bpf.c`, as bytes.

use uncork_policy::{Candidate, Flat, FlatExperiment, FlatRule, Outcome};
use uncork_units::Rate;

/// Bytes of a controller's name, with its end.
pub(crate) const NAME: usize = 16;
const WORDS: usize = 16;
const ARMS: usize = 32;
const CANDIDATES: usize = 64;
/// Bytes of a line of the table of networks.
pub(crate) const LINE: usize = 64;

/// Bytes that grow. Numbers are in the machine's order, as in C.
#[derive(Default)]
pub(crate) struct Bytes(pub(crate) Vec<u8>);

impl Bytes {
    pub(crate) fn u8(&mut self, value: u8) -> &mut Self {
        self.0.push(value);
        self
    }

    pub(crate) fn u16(&mut self, value: u16) -> &mut Self {
        self.bytes(&value.to_ne_bytes())
    }

    pub(crate) fn u32(&mut self, value: u32) -> &mut Self {
        self.bytes(&value.to_ne_bytes())
    }

    pub(crate) fn u64(&mut self, value: u64) -> &mut Self {
        self.bytes(&value.to_ne_bytes())
    }

    pub(crate) fn i64(&mut self, value: i64) -> &mut Self {
        self.bytes(&value.to_ne_bytes())
    }

    pub(crate) fn bytes(&mut self, bytes: &[u8]) -> &mut Self {
        self.0.extend_from_slice(bytes);
        self
    }

    /// Zeros up to this size.
    fn pad(&mut self, size: usize) -> &mut Self {
        self.0.resize(size, 0);
        self
    }
}

/// Numbers out of a structure, one after the other.
pub(crate) struct LayoutFields<'a>(pub(crate) &'a [u8]);

impl LayoutFields<'_> {
    fn take<const N: usize>(&mut self) -> [u8; N] {
        let mut bytes = [0; N];
        if let Some((found, rest)) = self.0.split_at_checked(N) {
            bytes.copy_from_slice(found);
            self.0 = rest;
        }
        bytes
    }

    pub(crate) fn u32(&mut self) -> u32 {
        u32::from_ne_bytes(self.take())
    }

    pub(crate) fn u64(&mut self) -> u64 {
        u64::from_ne_bytes(self.take())
    }
}

/// What was decided for a connection: `struct decision`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Decision {
    /// The key of the policy that decided.
    pub(crate) policy: u64,
    /// The hash of the client's network, if an experiment decided.
    pub(crate) unit: u64,
    pub(crate) outcome: u32,
    /// It was moved here when it was open.
    pub(crate) is_moved: bool,
}

impl Decision {
    pub(crate) fn read(fields: &mut LayoutFields<'_>) -> Self {
        let (policy, unit, outcome) = (fields.u64(), fields.u64(), fields.u32());
        Self { policy, unit, outcome, is_moved: fields.u32() != 0 }
    }
}

/// Places in the table of connections, and where a connection may be.
const PLACES: u64 = 1 << 20;
const TRIES: u64 = 8;

/// The places in the table of connections where the one with this cookie may be: `place`.
pub(crate) fn places(cookie: u64) -> impl Iterator<Item = u32> {
    (0..TRIES).map(move |number| (cookie.wrapping_add(number * 0x9e377) % PLACES) as u32)
}

/// An entry of the table of connections: `struct kept`.
pub(crate) struct ConnectionEntry {
    pub(crate) decision: Decision,
    /// The socket's.
    pub(crate) cookie: u64,
}

impl ConnectionEntry {
    pub(crate) fn read(bytes: &[u8]) -> Self {
        let mut fields = LayoutFields(bytes);
        Self { decision: Decision::read(&mut fields), cookie: fields.u64() }
    }
}

/// The end of a connection: `struct end`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct CloseEvent {
    /// The socket's.
    pub(crate) cookie: u64,
    pub(crate) decision: Decision,
    /// The controller at the end; empty if it is not known.
    pub(crate) controller: String,
}

impl CloseEvent {
    pub(crate) fn read(bytes: &[u8]) -> Self {
        let mut fields = LayoutFields(bytes);
        let (cookie, decision) = (fields.u64(), Decision::read(&mut fields));
        Self { cookie, decision, controller: name(&fields.take::<NAME>()) }
    }
}

/// `struct target` of `bpf/move.bpf.c`.
pub(crate) fn target(decision: Decision, controller: Option<&str>, cap: u32) -> Vec<u8> {
    let mut bytes = Bytes::default();
    bytes.u64(decision.policy).u64(decision.unit).u32(decision.outcome);
    bytes.u32(decision.is_moved.into());
    bytes.bytes(controller.unwrap_or_default().as_bytes()).pad(24 + NAME);
    bytes.u32(cap).u32(0);
    bytes.0
}

/// A controller's name as the kernel writes it.
fn name(bytes: &[u8]) -> String {
    let end = bytes.iter().position(|byte| *byte == 0).unwrap_or(bytes.len());
    String::from_utf8_lossy(&bytes[..end]).into_owned()
}

/// `struct head`.
pub(crate) fn head(flat: &Flat, policy: u64, tai_offset: i64) -> Vec<u8> {
    let mut bytes = Bytes::default();
    let [v4, v6] = flat.table.roots();
    bytes.u64(policy).u64(flat.listeners.opened).u64(flat.listeners.others).i64(tai_offset);
    let has_windows = flat.rules.iter().any(|rule| rule.window.is_some());
    bytes.u32(v4).u32(v6);
    bytes.u32((!flat.listeners.ports.is_empty()).into()).u32(has_windows.into());
    bytes.0
}

/// `union line`s, one behind the other.
pub(crate) fn lines(words: &[u32]) -> Vec<u8> {
    let mut bytes = Bytes(Vec::with_capacity(size_of_val(words).next_multiple_of(LINE)));
    for word in words {
        bytes.u32(*word);
    }
    let size = bytes.0.len().next_multiple_of(LINE);
    bytes.pad(size);
    bytes.0
}

/// `struct row`.
pub(crate) fn row(candidates: &[Candidate]) -> Vec<u8> {
    let mut bytes = Bytes::default();
    bytes.u32(candidates.len() as u32);
    for candidate in candidates {
        bytes.u16(candidate.rule).u16(candidate.outcome);
    }
    bytes.pad(4 + 4 * CANDIDATES);
    bytes.0
}

/// `struct rule`.
pub(crate) fn rule(rule: &FlatRule) -> Vec<u8> {
    let mut bytes = Bytes::default();
    let experiment = rule.experiment.map_or(0, |index| index + 1);
    match rule.window {
        None => bytes.pad(28).u8(0).u8(0),
        Some(window) => bytes
            .i64(window.since)
            .i64(window.until)
            .u32(window.from)
            .u32(window.to)
            .bytes(&window.ahead.to_ne_bytes())
            .u8(window.days)
            .u8(1),
    };
    bytes.u16(experiment);
    bytes.0
}

/// `struct experiment`.
pub(crate) fn experiment(experiment: &FlatExperiment) -> Vec<u8> {
    let mut bytes = Bytes::default();
    let (key, _) = experiment.key.as_chunks::<8>();
    for half in key {
        bytes.u64(u64::from_le_bytes(*half));
    }
    unit(&mut bytes, &experiment.prefix, b'4', 3);
    unit(&mut bytes, &experiment.prefix, b'6', 6);
    bytes.u32(experiment.arms.len() as u32).u32(0);
    for (first, slots) in &experiment.arms {
        bytes.u16(*first).u16(*slots);
    }
    let empty = 4 * (ARMS - experiment.arms.len());
    let size = bytes.0.len() + empty;
    bytes.pad(size);
    bytes.0
}

/// `struct unit`: the message of the hash in words, with zeros where the network belongs. The last byte of the
/// last word is the length (SipHash, padding).
fn unit(bytes: &mut Bytes, prefix: &[u8], kind: u8, network: usize) {
    let mut message = prefix.to_vec();
    message.push(kind);
    let place = message.len();
    let length = place + network;
    let count = length / 8 + 1;
    message.resize(count * 8, 0);
    message[count * 8 - 1] = length as u8;
    message.resize(WORDS * 8, 0);
    let (words, _) = message.as_chunks::<8>();
    for word in words {
        bytes.u64(u64::from_le_bytes(*word));
    }
    bytes.u32(count as u32).u32((place / 8) as u32).u32((place % 8 * 8) as u32).u32(0);
}

/// `struct outcome`. The cap fits: that was checked.
pub(crate) fn outcome(outcome: &Outcome) -> Vec<u8> {
    let mut bytes = Bytes::default();
    bytes.bytes(outcome.tcp.as_deref().unwrap_or_default().as_bytes()).pad(NAME);
    let cap = outcome.pacing_cap.map_or(0, Rate::bytes_per_sec);
    bytes.u32(u32::try_from(cap).unwrap_or(0));
    bytes.0
}

#[cfg(test)]
mod tests {
    use super::*;

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
