//! Listening sockets in a namespace.

use std::collections::BTreeSet;
use std::fs;
use std::io;

use crate::Namespace;

impl Namespace {
    /// The inode numbers of its listening TCP sockets, and of its bound UDP sockets without a peer.
    ///
    /// # Errors
    ///
    /// If the namespace cannot be entered.
    pub(crate) fn listening(&self) -> io::Result<BTreeSet<u64>> {
        self.run(|| {
            // `TCP_LISTEN`, and `TCP_CLOSE`, the state of a UDP socket without a peer.
            let tables = [("tcp", "0A"), ("tcp6", "0A"), ("udp", "07"), ("udp6", "07")];
            let of = |(table, state): (&str, &str)| {
                // A kernel without IPv6 has no such tables.
                let table = fs::read_to_string(format!("/proc/thread-self/net/{table}"));
                sockets(&table.unwrap_or_default(), state)
            };
            tables.into_iter().flat_map(of).collect()
        })
    }
}

/// The inode numbers of the sockets in a proc_net(5) table with `state` in the fourth column.
fn sockets(table: &str, state: &str) -> Vec<u64> {
    let columns = table.lines().skip(1).map(|line| line.split_whitespace().skip(3));
    let number = |mut rest: std::iter::Skip<std::str::SplitWhitespace<'_>>| {
        let found = rest.next() == Some(state);
        rest.nth(5).filter(|_| found)?.parse().ok()
    };
    columns.filter_map(number).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn state_and_number_are_parsed() {
        let table = "  sl  local_address rem_address   st tx_queue rx_queue tr tm->when retrnsmt   \
                     uid  timeout inode\n   \
                     0: 00000000:1F90 00000000:0000 0A 00000000:00000000 00:00000000 00000000     0\
                     \x20       0 28871 1 0000000000000000 100 0 0 10 0\n";
        assert_eq!(sockets(table, "0A"), [28_871]);
        assert_eq!(sockets(table, "07"), [0; 0]);
        assert_eq!(sockets("  sl  local_address rem_address   st\n", "0A"), [0; 0]);
    }
}
