//! Telling flows apart.

use std::collections::HashMap;

use serde::Serialize;

/// Who talks to whom: the host on the client side, the version of IP, the protocol, and the ports on
/// both sides. Both directions of a connection have the same key.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize)]
pub struct FlowKey {
    /// Index of the host on the client side.
    pub host: u32,
    /// Whether it speaks IPv6.
    pub v6: bool,
    /// The protocol above IP.
    pub protocol: u8,
    /// Port of the client side.
    pub client_port: u16,
    /// Port of the server side.
    pub server_port: u16,
}

/// Flows that have a state of their own. Later ones share that of others of their host.
const MAX_FLOWS: usize = 1 << 16;
/// So many flows stand for all later ones of a host.
const SHARED: u16 = 64;

/// The flows seen so far, numbered as they came.
#[derive(Debug, Default)]
pub(crate) struct Flows {
    numbers: HashMap<FlowKey, u32>,
}

impl Flows {
    /// The number of the flow; if it is seen for the first time, `add` gives it.
    pub(crate) fn number(&mut self, key: FlowKey, add: impl FnOnce() -> u32) -> u32 {
        if let Some(number) = self.numbers.get(&key) {
            return *number;
        }
        let key = if self.numbers.len() < MAX_FLOWS { key } else { key.shared() };
        *self.numbers.entry(key).or_insert_with(add)
    }

    /// Those that have a state of their own, by their numbers.
    pub(crate) fn keys(&self) -> Vec<FlowKey> {
        let mut keys: Vec<_> = self.numbers.iter().map(|(key, number)| (*number, *key)).collect();
        keys.sort_unstable_by_key(|(number, _)| *number);
        keys.into_iter().map(|(_, key)| key).collect()
    }

    pub(crate) fn len(&self) -> usize {
        self.numbers.len()
    }
}

impl FlowKey {
    /// The one that stands for it, among others of its host, where there are too many.
    fn shared(self) -> Self {
        let client_port = (self.client_port ^ self.server_port) % SHARED;
        // 255 is reserved: no packet has this protocol.
        Self { host: self.host, v6: false, protocol: 255, client_port, server_port: 0 }
    }
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use super::*;

    fn key(client_port: u16, host: u32) -> FlowKey {
        FlowKey { host, v6: false, protocol: 6, client_port, server_port: 80 }
    }

    #[test]
    fn flows_are_numbered_as_they_come_and_share_when_there_are_too_many() {
        let (mut flows, mut next) = (Flows::default(), 0..);
        let mut number = |key| flows.number(key, || next.next().expect("a number"));
        assert_eq!([number(key(5, 0)), number(key(6, 0)), number(key(5, 0))], [0, 1, 0]);
        for port in 0..=u16::MAX {
            number(key(port, 1));
        }
        // 65,534 ports of this host had flows of their own; those of the other share 64.
        let late: BTreeSet<u32> = (0..=u16::MAX).map(|port| number(key(port, 2))).collect();
        assert_eq!(late.len(), usize::from(SHARED));
        assert_eq!(number(key(7, 2)), number(key(7 + SHARED, 2)));
        assert_ne!(number(key(7, 2)), number(key(8, 2)));
        assert!(late.iter().all(|number| *number as usize >= MAX_FLOWS));
    }
}
