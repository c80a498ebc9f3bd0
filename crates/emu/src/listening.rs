//! Whether somebody listens in a namespace.

use std::fs;
use std::io;

use crate::Namespace;

impl Namespace {
    /// Whether a TCP socket listens there, or a UDP socket has a port.
    ///
    /// # Errors
    ///
    /// If the namespace cannot be entered.
    pub fn listens(&self) -> io::Result<bool> {
        self.run(|| {
            // `TCP_LISTEN` and `TCP_CLOSE`, which a UDP socket without a peer is in.
            [("tcp", "0A"), ("tcp6", "0A"), ("udp", "07"), ("udp6", "07")].iter().any(
                |(table, state)| {
                    let table = fs::read_to_string(format!("/proc/thread-self/net/{table}"));
                    table.is_ok_and(|table| has(&table, state))
                },
            )
        })
    }
}

/// Whether a socket of a table of proc_net(5) is in `state`, its fourth column.
fn has(table: &str, state: &str) -> bool {
    table.lines().skip(1).any(|line| line.split_whitespace().nth(3) == Some(state))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn reads_the_state() {
        let table = "  sl  local_address rem_address   st tx_queue rx_queue\n   \
                     0: 00000000:1F90 00000000:0000 0A 00000000:00000000 00:00000000\n";
        assert!(has(table, "0A"));
        assert!(!has(table, "07"));
        assert!(!has("  sl  local_address rem_address   st\n", "0A"));
    }
}
