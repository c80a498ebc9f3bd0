//! Telling flows apart, and what each has of the path for itself.

use std::collections::HashMap;

use serde::Serialize;
use uncork_path::{DelayLine, Loss, Packet, PathSpec};
use uncork_units::TimeDelta;

use crate::BackSpec;

/// Who talks to whom: the host on the near side, the version of IP, the protocol, and the ports on
/// both sides. Both directions of a connection have the same key.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize)]
pub struct FlowKey {
    /// Index of the host on the near side.
    pub host: u32,
    /// Whether it speaks IPv6.
    pub v6: bool,
    /// The protocol above IP.
    pub protocol: u8,
    /// Port of the near side.
    pub near_port: u16,
    /// Port of the far side.
    pub far_port: u16,
}

/// Flows that have a state of their own. Later ones share that of earlier ones.
const MAX_FLOWS: usize = 1 << 16;

/// The flows seen so far, numbered as they came.
#[derive(Debug)]
pub(crate) struct Flows<B> {
    numbers: HashMap<FlowKey, u32>,
    all: Vec<Flow<B>>,
}

#[derive(Debug)]
pub(crate) struct Flow<B> {
    pub(crate) loss: Loss,
    pub(crate) down: DelayLine<Packet<B>>,
    pub(crate) loss_back: Loss,
    pub(crate) up: DelayLine<Packet<B>>,
}

/// Streams of the seed that nothing else draws from, apart from each other for each flow.
const LOSS_BACK_STREAM: u64 = 9 << 32;
const JITTER_BACK_STREAM: u64 = 10 << 32;

impl<B> Flow<B> {
    /// The flow of number `flow` over `path`, which takes it `one_way`.
    pub(crate) fn new(
        path: &PathSpec,
        one_way: TimeDelta,
        back: BackSpec,
        (flow, seed): (u32, u64),
    ) -> Self {
        let mut up = path.upstream(one_way);
        if let Some(jitter) = back.jitter {
            up.jitter(jitter, seed, JITTER_BACK_STREAM + u64::from(flow));
        }
        Self {
            loss: path.loss_of(flow, seed),
            down: path.downstream_of(flow, one_way, seed),
            loss_back: Loss::new(back.loss, seed, LOSS_BACK_STREAM + u64::from(flow)),
            up,
        }
    }
}

impl<B> Flows<B> {
    pub(crate) fn new() -> Self {
        Self { numbers: HashMap::new(), all: Vec::new() }
    }

    /// The number of the flow; if it is seen for the first time, `begin` makes it.
    pub(crate) fn number(&mut self, key: FlowKey, begin: impl FnOnce(u32) -> Flow<B>) -> u32 {
        if let Some(number) = self.numbers.get(&key) {
            return *number;
        }
        if self.all.len() >= MAX_FLOWS {
            return key.scattered() % MAX_FLOWS as u32;
        }
        let number = self.all.len() as u32;
        self.all.push(begin(number));
        self.numbers.insert(key, number);
        number
    }

    /// # Panics
    ///
    /// If `number` was not given by [`Self::number`].
    pub(crate) fn get_mut(&mut self, number: u32) -> &mut Flow<B> {
        &mut self.all[number as usize]
    }

    /// Those that have a state of their own, by their numbers.
    pub(crate) fn keys(&self) -> Vec<FlowKey> {
        let mut keys: Vec<_> = self.numbers.iter().map(|(key, number)| (*number, *key)).collect();
        keys.sort_unstable_by_key(|(number, _)| *number);
        keys.into_iter().map(|(_, key)| key).collect()
    }

    pub(crate) fn len(&self) -> usize {
        self.all.len()
    }
}

impl FlowKey {
    /// Some number, the same for equal keys.
    fn scattered(self) -> u32 {
        let ports = u64::from(self.near_port) << 16 | u64::from(self.far_port);
        let rest = u64::from(self.host) << 16 | u64::from(self.protocol) << 8 | u64::from(self.v6);
        // Fibonacci hashing (Knuth, volume 3, §6.4).
        ((rest << 32 ^ ports).wrapping_mul(0x9e37_79b9_7f4a_7c15) >> 32) as u32
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use uncork_path::Buffer;
    use uncork_units::Rate;

    fn key(near_port: u16, host: u32) -> FlowKey {
        FlowKey { host, v6: false, protocol: 6, near_port, far_port: 80 }
    }

    #[test]
    fn flows_are_numbered_as_they_come_and_share_when_there_are_too_many() {
        let rtt = TimeDelta::from_millis(10);
        let path = PathSpec::new(Rate::from_mbit(10), rtt, Buffer::Packets(10));
        let mut flows: Flows<()> = Flows::new();
        let mut number =
            |key| flows.number(key, |n| Flow::new(&path, rtt, BackSpec::default(), (n, 1)));
        assert_eq!([number(key(5, 0)), number(key(6, 0)), number(key(5, 0))], [0, 1, 0]);
        for port in 0..=u16::MAX {
            number(key(port, 1));
        }
        let late = number(key(7, 2));
        assert_eq!(number(key(7, 2)), late);
        assert_eq!(flows.len(), MAX_FLOWS);
        assert!((late as usize) < MAX_FLOWS);
    }
}
