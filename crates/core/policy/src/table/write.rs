//! Writes tables: the text that [`Table::parse`](super::Table::parse) reads.

use std::collections::BTreeMap;
use std::fmt::Write as _;

use ring::digest;

/// A table with one section of networks. `uncork learn` writes larger ones.
#[derive(Clone, Debug)]
pub struct TableText<'a> {
    /// A larger number than that of the table before.
    pub version: u64,
    /// When it was made, and from when on no entry matches: `2026-12-01T18:00:00Z`.
    pub made: &'a str,
    /// See `made`.
    pub expires: &'a str,
    /// The name of the section, for `table` in a rule.
    pub section: &'a str,
    /// The arm of each network: `203.0.113.0/24`.
    pub arms: BTreeMap<&'a str, &'a str>,
}

impl TableText<'_> {
    /// The whole file.
    pub fn text(&self) -> String {
        let Self { version, made, expires, section, arms } = self;
        let mut text = format!(
            "uncork-table 1\nversion {version}\nmade {made}\nexpires {expires}\nsection {section}\n"
        );
        // Writing into a string cannot fail.
        for (network, arm) in arms {
            let _ = writeln!(text, "{network} {arm}");
        }
        let digest = digest::digest(&digest::SHA256, text.as_bytes());
        text.push_str("sha256 ");
        for byte in digest.as_ref() {
            let _ = write!(text, "{byte:02x}");
        }
        text.push('\n');
        text
    }
}
