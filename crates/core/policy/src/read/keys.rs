//! The keys of a policy.

/// Keys of the file itself.
pub(crate) const FILE: &[&str] = &["decide", "key", "default", "experiment", "table", "rule"];

/// Keys of a rule.
pub(crate) const RULE: &[&str] = &[
    "name",
    "listener",
    "client",
    "asn",
    "country",
    "time",
    "sni",
    "host",
    "path",
    "query",
    "header",
    "cookie",
    "size",
    "use",
    "experiment",
    "table",
];

/// Keys of settings.
pub(crate) const SETTINGS: &[&str] = &["quic", "tcp", "initial_window", "pacing_cap"];

/// Keys of an arm: settings and a weight.
pub(crate) const ARM: &[&str] = &["weight", "quic", "tcp", "initial_window", "pacing_cap"];

/// Keys of an experiment.
pub(crate) const EXPERIMENT: &[&str] = &["unit", "share", "salt", "arm"];

/// Keys of the table of networks.
pub(crate) const TABLE: &[&str] = &["file", "arm"];

/// Keys of a size.
pub(crate) const SIZE: &[&str] = &["min", "below"];

/// Keys of a time.
pub(crate) const TIME: &[&str] = &["since", "until", "from", "to", "days", "utc_offset"];

#[cfg(test)]
mod tests {
    use super::*;

    /// Every key must be documented.
    #[test]
    fn reference_documents_every_key() {
        let reference = include_str!("../../../../../docs/reference/policy.md");
        for key in [FILE, RULE, SETTINGS, ARM, EXPERIMENT, TABLE, SIZE, TIME].into_iter().flatten()
        {
            assert!(reference.contains(&format!("`{key}`")), "{key}");
        }
        assert!(SETTINGS.iter().all(|key| ARM.contains(key)));
    }

    #[test]
    fn the_blocks_of_the_reference_show_every_condition() {
        let reference = include_str!("../../../../../docs/reference/policy.md");
        let blocks = reference.split("```toml\n").skip(1);
        let all: String = blocks.filter_map(|rest| rest.split("```").next()).collect();
        for key in RULE.iter().filter(|key| !["name", "use"].contains(key)) {
            assert!(all.contains(&format!("\n{key} = ")), "{key}");
        }
    }
}
