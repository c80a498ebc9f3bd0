//! Identification of flows.

use std::collections::HashMap;

use serde::Serialize;

/// A flow: the client-side host, the IP version, the protocol, and the ports of both sides. Both
/// directions of a connection have the same key.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize)]
pub struct FlowKey {
    /// Index of the host on the client side.
    pub host: u32,
    /// Whether it uses IPv6.
    pub v6: bool,
    /// The protocol above IP.
    pub protocol: u8,
    /// Port of the client side.
    pub client_port: u16,
    /// Port of the server side.
    pub server_port: u16,
}

/// Maximum flows with separate state. Later ones share state with others of their host.
const MAX_FLOWS: usize = 1 << 16;
/// Number of shared flow states per host.
const SHARED: u16 = 64;

/// The flows seen so far, numbered in order of appearance.
#[derive(Debug, Default)]
pub(crate) struct KnownFlows {
    numbers: HashMap<FlowKey, u32>,
}

impl KnownFlows {
    /// The number of the flow. If it is new, `add` provides the number.
    pub(crate) fn number(&mut self, key: FlowKey, add: impl FnOnce() -> u32) -> u32 {
        if let Some(number) = self.numbers.get(&key) {
            return *number;
        }
        let key = if self.numbers.len() < MAX_FLOWS { key } else { key.shared() };
        *self.numbers.entry(key).or_insert_with(add)
    }

    /// The flows with separate state, by number.
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
    /// The shared key of its host that represents it if there are too many flows.
    fn shared(self) -> Self {
        let client_port = (self.client_port ^ self.server_port) % SHARED;
        // Protocol 255 is reserved and does not occur in packets.
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
    fn flows_are_numbered_in_order_and_share_state_beyond_the_limit() {
        let (mut flows, mut next) = (KnownFlows::default(), 0..);
        let mut number = |key| flows.number(key, || next.next().expect("a number"));
        assert_eq!([number(key(5, 0)), number(key(6, 0)), number(key(5, 0))], [0, 1, 0]);
        for port in 0..=u16::MAX {
            number(key(port, 1));
        }
        // 65,534 ports of this host had separate flows; those of the other host share 64.
        let late: BTreeSet<u32> = (0..=u16::MAX).map(|port| number(key(port, 2))).collect();
        assert_eq!(late.len(), usize::from(SHARED));
        assert_eq!(number(key(7, 2)), number(key(7 + SHARED, 2)));
        assert_ne!(number(key(7, 2)), number(key(8, 2)));
        assert!(late.iter().all(|number| *number as usize >= MAX_FLOWS));
    }
}
