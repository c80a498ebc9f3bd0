//! The keys of a scenario file, and suggestions for unknown ones.

use uncork_config::{Node, Value};

/// Top-level keys.
pub(super) const FILE: &[&str] = &[
    "title",
    "about",
    "assumptions",
    "run",
    "link",
    "path",
    "flow",
    "matrix",
    "threshold",
    "figure",
    "published",
];
/// Keys of `[run]`.
pub(super) const RUN: &[&str] =
    &["end", "warmup", "seeds", "first_seed", "sample", "series", "host_jitter", "offload", "card"];
/// Keys of `series` in `[run]`.
pub(super) const SERIES: &[&str] = &["seeds"];
/// Keys of `[matrix]` that are not axes.
pub(super) const MATRIX: &[&str] = &["sample", "sample_seed", "cross"];
/// Keys of a range axis.
pub(super) const RANGE: &[&str] = &["from", "to", "scale"];
/// Keys of `[link.NAME]`, and of a path's uplink.
pub(super) const LINK: &[&str] = &[
    "rate",
    "rate_steps",
    "trace",
    "trace_scale",
    "trace_start",
    "lte",
    "queue",
    "buffer",
    "policer",
];
/// Keys of `[path]` and `[path.NAME]`: those of a link and more.
pub(super) const PATH: &[&str] = &[
    "preset",
    "rate",
    "rate_steps",
    "trace",
    "trace_scale",
    "trace_start",
    "lte",
    "queue",
    "buffer",
    "policer",
    "rtt",
    "rtt_steps",
    "loss",
    "loss_steps",
    "loss_position",
    "uplink_loss",
    "uplink_loss_steps",
    "clears_marks",
    "duplicates",
    "max_packet",
    "jitter",
    "jitter_distribution",
    "reorder",
    "aggregation",
    "uplink",
    "via",
    "own_per_flow",
];
/// Keys of `lte`.
pub(super) const LTE: &[&str] =
    &["mean", "variation", "correlation", "outage_every", "outage", "length"];
/// Keys of a value drawn for each flow.
pub(super) const DRAW: &[&str] = &["quantiles", "choice"];
/// Keys of `[flow.NAME]`.
pub(super) const FLOW: &[&str] = &[
    "path",
    "cc",
    "count",
    "paired",
    "start",
    "connect",
    "spread",
    "rtt",
    "ecn",
    "receive_window",
    "receive_window_steps",
    "migrations",
    "ack_every",
    "ack_delay",
    "host",
    "background",
    "transfer",
    "bulk",
    "requests",
    "arrivals",
    "media",
    "audio",
    "video",
    "command",
];
/// Workload keys of `[flow.NAME]`.
pub(super) const WORKLOADS: &[&str] =
    &["transfer", "bulk", "requests", "arrivals", "media", "audio", "video", "command"];
/// Keys of `command`.
pub(super) const COMMAND: &[&str] = &["server", "client", "for", "records", "own_cc"];
/// Keys of `requests`.
pub(super) const REQUESTS: &[&str] =
    &["size", "sizes", "count", "for", "think", "think_exponential"];
/// Keys of `arrivals`.
pub(super) const ARRIVALS: &[&str] = &["rate", "size", "sizes", "for", "trace"];
/// Keys of `media`.
pub(super) const MEDIA: &[&str] = &["rate", "frame", "for"];
/// Keys of `audio`.
pub(super) const AUDIO: &[&str] =
    &["bitrate", "duration", "tracks", "chunk", "start_threshold", "resume_threshold", "low_water"];
/// Keys of `video`.
pub(super) const VIDEO: &[&str] = &[
    "duration",
    "segment",
    "ladder",
    "abr",
    "window",
    "safety",
    "reservoir",
    "cushion",
    "start_threshold",
    "resume_threshold",
    "max_buffer",
];
/// Keys of a named value in the matrix.
pub(super) const ALTERNATIVE: &[&str] = &["name", "values"];
/// Keys of `[[threshold]]`.
pub(super) const THRESHOLD: &[&str] =
    &["metric", "flow", "cc", "where", "over", "at_least", "less_than", "min", "max"];
/// Keys of `[[published]]`.
pub(super) const PUBLISHED: &[&str] = &[
    "what",
    "value",
    "source",
    "metric",
    "flow",
    "cc",
    "where",
    "over",
    "at_least",
    "less_than",
    "change",
    "min",
    "max",
    "range_from",
    "note",
];
/// Keys of `[[figure]]`, for all kinds.
pub(super) const FIGURE: &[&str] = &[
    "kind",
    "title",
    "caption",
    "flow",
    "cc",
    "where",
    "over",
    "at_least",
    "less_than",
    "metric",
    "x",
    "y",
    "by",
    "statistics",
    "edges",
    "log",
    "log_x",
    "log_y",
    "published",
];

/// An unknown part of a dotted key, and the known alternatives.
pub(super) struct Unknown {
    /// Its index among the parts.
    pub(super) part: usize,
    /// The known parts.
    pub(super) known: Vec<String>,
}

/// Whether `[path]` is a single path instead of a table of several.
pub(super) fn is_single_path(path: &Node) -> bool {
    let own = |name: &str| PATH.contains(&name);
    let is_table = |node: &Node| matches!(node.value, Value::Table(_));
    path.entries().is_empty()
        || path.entries().iter().any(|entry| own(&entry.name) || !is_table(&entry.node))
}

/// Checks that a scenario like `tree` has the key `keys`.
pub(super) fn check(tree: &Node, keys: &[String]) -> Result<(), Unknown> {
    let Some(section) = keys.first() else { return Err(unknown(0, FILE)) };
    match section.as_str() {
        "run" => below(keys, 1, RUN),
        "link" => named(tree, keys, LINK),
        "flow" => named(tree, keys, FLOW),
        "path" if tree.get("path").is_none_or(is_single_path) => below(keys, 1, PATH),
        "path" => named(tree, keys, PATH),
        "title" | "about" | "assumptions" if keys.len() == 1 => Ok(()),
        _ => Err(unknown(0, FILE)),
    }
}

/// Checks `keys` from its second part on: a name that exists, and a key within it.
fn named(tree: &Node, keys: &[String], known: &'static [&'static str]) -> Result<(), Unknown> {
    let section = tree.get(&keys[0]).map(Node::entries).unwrap_or_default();
    let names = || section.iter().map(|entry| entry.name.clone()).collect();
    match keys.get(1) {
        Some(name) if section.iter().any(|entry| entry.name == *name) => below(keys, 2, known),
        _ => Err(Unknown { part: 1, known: names() }),
    }
}

/// Checks `keys` from `part` on: one of `known`, and a key within it.
fn below(keys: &[String], part: usize, known: &'static [&'static str]) -> Result<(), Unknown> {
    let Some(key) = keys.get(part).filter(|key| known.contains(&key.as_str())) else {
        return Err(unknown(part, known));
    };
    if keys.len() == part + 1 {
        return Ok(());
    }
    below(keys, part + 1, inside(key))
}

/// The keys of the table allowed at `key`.
fn inside(key: &str) -> &'static [&'static str] {
    match key {
        "series" => SERIES,
        "uplink" => LINK,
        "lte" => LTE,
        "rate" | "rtt" | "loss" | "buffer" => DRAW,
        "requests" => REQUESTS,
        "arrivals" => ARRIVALS,
        "media" => MEDIA,
        "audio" => AUDIO,
        "video" => VIDEO,
        "command" => COMMAND,
        _ => &[],
    }
}

fn unknown(part: usize, known: &[&str]) -> Unknown {
    Unknown { part, known: known.iter().map(|&name| name.to_owned()).collect() }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Every key is documented in the reference.
    #[test]
    fn reference_documents_every_key() {
        let reference = include_str!("../../../../../docs/reference/scenario.md");
        let tables = [
            FILE,
            RUN,
            SERIES,
            MATRIX,
            RANGE,
            LINK,
            PATH,
            LTE,
            DRAW,
            FLOW,
            REQUESTS,
            ARRIVALS,
            MEDIA,
            AUDIO,
            VIDEO,
            COMMAND,
            ALTERNATIVE,
            THRESHOLD,
            PUBLISHED,
            FIGURE,
        ];
        for key in tables.iter().copied().flatten() {
            assert!(reference.contains(&format!("`{key}`")), "{key}");
        }
        assert!(LINK.iter().all(|key| PATH.contains(key)));
        // A table in the matrix is a named value if it has one of these keys, otherwise a table of
        // these.
        let values = [RANGE, LINK, LTE, DRAW, REQUESTS, ARRIVALS, MEDIA, AUDIO, VIDEO, COMMAND];
        assert!(ALTERNATIVE.iter().all(|key| values.iter().all(|keys| !keys.contains(key))));
        assert!(WORKLOADS.iter().all(|key| FLOW.contains(key)));
    }
}
