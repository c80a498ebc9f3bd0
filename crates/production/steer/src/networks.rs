//! Names of networks from a file of the operator's own: `203.0.113.0/24,Lima`. The longest prefix decides.
//!
//! `uncork experiment` reads the same files (`--networks`) and gives the same names.

use std::collections::HashMap;
use std::net::IpAddr;

use thiserror::Error;
use uncork_policy::Prefix;

const EXPECTED: &str = "write 203.0.113.0/24,Lima";

/// Names by network. The default has none.
#[derive(Clone, Debug, Default)]
pub struct Networks {
    names: HashMap<(IpAddr, u8), String>,
    /// Prefix lengths of the names, the longest first.
    lengths: Vec<u8>,
}

/// Why a file of networks cannot be read.
#[derive(Clone, Debug, PartialEq, Eq, Error)]
pub enum NetworksError {
    /// A line is not a network and a name.
    #[error("line {line}: {reason}")]
    Line {
        /// Its number, from 1.
        line: usize,
        /// What is wrong with it.
        reason: String,
    },
    /// No line has a network.
    #[error("no networks; {EXPECTED}")]
    Empty,
}

impl Networks {
    /// Reads lines of network and name. There may be a header, empty lines and comments (`#`).
    ///
    /// # Errors
    ///
    /// The first wrong line, or that there is none.
    pub fn parse(text: &str) -> Result<Self, NetworksError> {
        let mut networks = Self::default();
        let lines = text.trim_start_matches('\u{feff}').lines().enumerate();
        let lines = lines.filter(|(_, line)| !line.trim().is_empty() && !line.starts_with('#'));
        for (nth, (number, line)) in lines.enumerate() {
            let entry = entry(line).and_then(|(prefix, name)| networks.insert(prefix, name));
            match entry {
                Err(_) if nth == 0 && !line.contains('/') => {}
                Err(reason) => return Err(NetworksError::Line { line: number + 1, reason }),
                Ok(()) => {}
            }
        }
        if networks.names.is_empty() {
            return Err(NetworksError::Empty);
        }
        networks.lengths = networks.names.keys().map(|(_, bits)| *bits).collect();
        networks.lengths.sort_unstable_by_key(|bits| std::cmp::Reverse(*bits));
        networks.lengths.dedup();
        Ok(networks)
    }

    fn insert(&mut self, prefix: Prefix, name: &str) -> Result<(), String> {
        let known = self.names.entry((prefix.address(), prefix.bits())).or_insert(name.into());
        if known == name {
            return Ok(());
        }
        Err(format!("{prefix} is already {known:?}; leave one of them out"))
    }

    /// The name of the smallest network around all of `client`, an address or a network.
    pub fn name(&self, client: &str) -> Option<&str> {
        let client: Prefix = client.parse().ok()?;
        let is_around = |bits: &&u8| **bits <= client.bits();
        let around = self.lengths.iter().filter(is_around);
        let mut around = around.map(|bits| Prefix::of(client.address(), *bits));
        around.find_map(|it| self.names.get(&(it.address(), it.bits()))).map(String::as_str)
    }
}

/// A network and its name, of a line. The name may be in quotes.
fn entry(line: &str) -> Result<(Prefix, &str), String> {
    let (text, rest) = line.split_once(',').unwrap_or((line, ""));
    let text = text.trim().trim_matches('"');
    let rest = rest.trim();
    let name = match rest.strip_prefix('"').and_then(|rest| rest.split_once('"')) {
        Some((name, _)) => name,
        None => rest.split(',').next().unwrap_or_default(),
    };
    if name.trim().is_empty() {
        return Err(format!("a network without a name; {EXPECTED}"));
    }
    let prefix = text.parse().map_err(|error| format!("{text:?}: {error}"))?;
    Ok((prefix, name.trim()))
}

#[cfg(test)]
mod tests {
    use super::*;
    use uncork_testkit::assert_message;

    const FILE: &str = "\u{feff}network,name\n# ours\n198.18.0.0/15,Andes\n198.18.7.0/24,\"Lima, PE\"\n\n\
         2001:db8::/32,Lab\n203.0.113.7,one\n";

    #[test]
    fn the_longest_prefix_decides() {
        let networks = Networks::parse(FILE).expect("a file");
        for (client, name) in [
            ("198.18.7.0/24", Some("Lima, PE")),
            ("198.18.7.9", Some("Lima, PE")),
            ("198.19.0.0/24", Some("Andes")),
            ("198.16.0.0/12", None),
            ("2001:db8:7::/48", Some("Lab")),
            ("203.0.113.7", Some("one")),
            ("203.0.113.0/24", None),
            ("not a network", None),
        ] {
            assert_eq!(networks.name(client), name, "{client}");
        }
        assert_eq!(Networks::default().name("198.18.7.0/24"), None);
    }

    #[test]
    fn a_wrong_line_is_named() {
        for (text, line) in [
            ("198.18.0.0/24,a\n198.18.0.0/24,a\n198.18.0.0/24,b\n", "line 3: "),
            ("network,name\n198.18.0/24,a\n", "line 2: "),
            ("198.18.0.0/24\n", "line 1: "),
            ("network,name\n", ""),
        ] {
            let error = Networks::parse(text).expect_err(text).to_string();
            assert!(error.starts_with(line), "{error}");
            assert_message!(text, error);
        }
    }
}
