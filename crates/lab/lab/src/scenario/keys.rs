//! The keys of a scenario file, as its parser and its reference page have them, and suggestions for unknown ones.

use uncork_config::{Key, Node, Value};

/// Top-level keys.
pub(super) const FILE: &[Key] = &[
    Key::with_default("title", "the name of the file", "one line"),
    Key::new("about", "paragraphs"),
    Key::new("assumptions", "a list of texts, for values without a source"),
    Key::new("run", "[seeds, times and hosts](#run) of all runs"),
    Key::new("link", "[links that several paths share](#path-pathname-and-linkname), by name"),
    Key::required("path", "[the path, or several](#path-pathname-and-linkname) by name"),
    Key::required("flow", "[classes of traffic](#flowname), by name"),
    Key::new("matrix", "[axes](#matrix): all combinations of their values run"),
    Key::new("threshold", "[bounds](#threshold) that results must keep"),
    Key::new("figure", "[figures](#figure) of the report"),
    Key::new("published", "[published figures](#published) to compare with"),
];

/// Keys of `[run]`.
pub(super) const RUN: &[Key] = &[
    Key::with_default("end", r#"`"600s"`"#, "end of a run, finished or not; 1 ms to 24 h"),
    Key::with_default("warmup", r#"`"0s"`"#, "time at the start that rates and shares leave out"),
    Key::with_default("seeds", "`10`", "runs of each cell, 1 to 10000"),
    Key::with_default("first_seed", "`1`", "seed of the first run; the others count up"),
    Key::with_default(
        "sample",
        "no series",
        "interval of the time series of each flow, in the runs of `series`",
    ),
    Key::with_default(
        "series",
        "the first seed",
        "runs of each cell with time series: `{ seeds = [1, 7] }`, or `--series-seed`",
    ),
    Key::with_default(
        "host_jitter",
        r#"`"usual"`"#,
        r#"time that a [host](#hosts) takes for each packet: `"usual"`, `"virtual"`, `"none"`, or the maximum as a time up to 1 s"#,
    ),
    Key::with_default(
        "offload",
        r#"`"none"`"#,
        r#"where bursts are cut into [segments](#offload): `"none"` (the sender), `"host"` or `"card"`"#,
    ),
    Key::with_default(
        "card",
        "takes no time",
        "rate of the network [card](#card) of each server; 8 kbit to 400 gbit. `sim` and `quic-sim` only",
    ),
];

/// Keys of `series` in `[run]`.
pub(super) const SERIES: &[Key] = &[Key::required("seeds", "seeds of the runs with time series")];

/// Keys of `[matrix]` that are not axes.
pub(super) const MATRIX: &[Key] = &[
    Key::new(
        "sample",
        "number of points to draw instead of all combinations: a Latin hypercube, in which each axis is cut into as many parts, with one point in each",
    ),
    Key::with_default("sample_seed", "`1`", "selects other points"),
    Key::new(
        "cross",
        "axes that are not sampled: each point runs with all of their values, so that `over` can compare them",
    ),
];

/// Keys of a range axis.
pub(super) const RANGE: &[Key] = &[
    Key::required("from", "low end of the range, with its unit"),
    Key::required("to", "high end of the range, in the same unit"),
    Key::with_default("scale", r#"`"linear"`"#, r#"`"linear"` or `"log"`"#),
];

/// Keys of `[link.NAME]`, and of a path's uplink.
pub(super) const LINK: &[Key] = &[
    Key::new(
        "rate",
        "bits on the wire per second, 8 kbit to 400 gbit; exactly one of `rate`, `trace` and `lte`",
    ),
    Key::with_default(
        "rate_steps",
        "none",
        r#"with `rate`: `[["10s", "5mbit"], ["20s", "0mbit"]]`, later [values](#values-that-change); a rate of 0 is an outage"#,
    ),
    Key::new(
        "trace",
        "an included trace (`fcc-2016-1` to `fcc-2016-4`), or a file next to the scenario: lines of seconds and Mbit/s, or of milliseconds at which a packet of 1500 bytes may leave",
    ),
    Key::with_default("trace_scale", r#"`"100%"`"#, r#"with `trace`: `"200%"` for twice as fast"#),
    Key::with_default(
        "trace_start",
        r#"`"0s"`"#,
        r#"with `trace`: where a run begins: a time, or `"random"` by seed; a trace repeats"#,
    ),
    Key::new("lte", "a mobile link, random for each seed: a [table](#lte)"),
    Key::with_default(
        "queue",
        r#"`"droptail"`"#,
        r#"`droptail`, `codel`, `fq_codel`, `cake`, `pie`, `dualpi2` or `step`, with parameters as in `"codel:target=10ms,ecn"`"#,
    ),
    Key::with_default(
        "buffer",
        r#"`"1bdp"`"#,
        r#"`"1bdp"` (of the first rate with steps, the mean rate if it varies, and the round-trip time), `"100kB"`, `"83p"`"#,
    ),
    Key::with_default(
        "policer",
        "none",
        r#"a token bucket before the queue, `"RATE:BURST"`; packets above it are dropped"#,
    ),
];

/// Keys of `[path]` and `[path.NAME]` that a link does not have.
pub(super) const PATH_ONLY: &[Key] = &[
    Key::with_default("preset", "none", "the path of an access network, [below](#presets)"),
    Key::required(
        "rtt",
        "round-trip propagation time, 10 us to 60 s; half of it in each direction",
    ),
    Key::with_default(
        "rtt_steps",
        "none",
        r#"`[["10s", "80ms"], ["12s", "30ms"]]`: later round-trip [times](#values-that-change)"#,
    ),
    Key::with_default(
        "loss",
        "none",
        r#"`"1%"`; `"every:100"`; in bursts `"gilbert:mean=1%,burst=5"` or `"gemodel:p=1%,r=20%,bad=100%,good=0%"`"#,
    ),
    Key::with_default(
        "loss_steps",
        "none",
        r#"`[["10s", "100%"], ["12s", "0%"]]`: later [losses](#values-that-change); `"100%"` is an outage that drops"#,
    ),
    Key::with_default(
        "loss_position",
        r#"`"after"`"#,
        r#"`"after"` the link or `"before"` its queue"#,
    ),
    Key::with_default(
        "uplink_loss",
        "none",
        "as `loss`, on the way back: acknowledgements and requests, behind the `uplink`",
    ),
    Key::with_default("uplink_loss_steps", "none", "as `loss_steps`, for `uplink_loss`"),
    Key::with_default(
        "ecn",
        "none",
        r#"what a middlebox does to the [ECN field](#ecn-middleboxes) on the way to the client: `"bleach"`, `"ect1-to-ect0"`, `"ce:1%"`"#,
    ),
    Key::with_default(
        "ecn_position",
        r#"`"before"`"#,
        r#"where it does so: `"before"` the queue, or `"after"` the link, where it also changes the queue's marks"#,
    ),
    Key::with_default(
        "duplicates",
        "none",
        "packets that the last link to the client delivers twice, written as a `loss`. `sim` and `quic-sim` only",
    ),
    Key::with_default(
        "max_packet",
        "any",
        "largest packet to the client, with its headers, from 1228 B; larger ones are lost without notice. `quic-sim` only, and `uncork emu`",
    ),
    Key::with_default(
        "jitter",
        "none",
        "maximum random delay of a packet to the client, in addition to the [hosts'](#hosts)",
    ),
    Key::with_default(
        "jitter_distribution",
        r#"`"uniform"`"#,
        r#"`"uniform"` or `"bell"`, which is nearly normal"#,
    ),
    Key::with_default("reorder", "`false`", "whether jitter lets packets overtake each other"),
    Key::with_default(
        "aggregation",
        "none",
        "acknowledgements reach the server in groups, one per interval of this length, as over Wi-Fi",
    ),
    Key::with_default(
        "uplink",
        "never slow",
        "a table with the keys of a link: the way back, shared by the acknowledgements of all flows (a buffer of `100p` holds 100 of them)",
    ),
    Key::with_default(
        "via",
        "none",
        "names of the shared links, in the order of crossing; each at most once",
    ),
    Key::with_default(
        "own_per_flow",
        "`false`",
        "each client has its own links: a [population](#populations)",
    ),
];

/// Keys of `[path]` and `[path.NAME]`.
pub(super) const PATH: &[Key] = &Key::join::<28>(LINK, PATH_ONLY);

/// Keys of `lte`.
pub(super) const LTE: &[Key] = &[
    Key::required("mean", "mean rate without outages"),
    Key::with_default("variation", "0.5", "standard deviation over mean"),
    Key::with_default(
        "correlation",
        "2 s",
        "time after which the correlation of the rate's logarithm is 1/e",
    ),
    Key::with_default("outage_every", r#"`"0s"`"#, r#"mean time between outages; `"0s"` for none"#),
    Key::with_default("outage", "500 ms", "mean length of an outage"),
    Key::with_default("length", "600 s", "time after which it repeats"),
];

/// Keys of a value drawn for each flow.
pub(super) const DRAW: &[Key] = &[
    Key::new(
        "quantiles",
        "pairs of a share, from 0 % to 100 %, and a value. Between them values lie on a logarithmic scale, losses on a linear one",
    ),
    Key::new("choice", "pairs of a value and its weight"),
];

/// Keys of `[flow.NAME]` that are not workloads.
pub(super) const CLASS: &[Key] = &[
    Key::with_default("path", "the only one", "name of its path"),
    Key::required(
        "cc",
        r#"controller, `"bbr3"` or `"bbr3:loss_floor"`; or a list that flows take in turn"#,
    ),
    Key::with_default("count", "`1`", "clients of the class, 1 to 10000"),
    Key::with_default(
        "paired",
        "`false`",
        "with several controllers: the k-th client of each has the same drawn path, start and arrivals; `count` is a multiple of their number",
    ),
    Key::with_default("start", r#"`"0s"`"#, "when the clients start"),
    Key::with_default(
        "connect",
        "each flow by itself",
        r#"how `bulk` flows connect: `"iperf3"` or `"in-turn"`, see [starts](#starts-of-flows-that-share-a-link)"#,
    ),
    Key::with_default(
        "spread",
        r#"`"0s"`; of flows that share a link `"100ms"`, if all are `bulk` a tenth of their duration, at most `"2s"`; with `connect` each program within `"100ms"`; arrivals always `"0s"`"#,
        "each starts at a random time within this span after `start`",
    ),
    Key::new("rtt", "round-trip time instead of the path's"),
    Key::with_default(
        "ecn",
        r#"`"ect1"` with `prague`, else `"none"`"#,
        r#"`"none"`, `"ect0"`, `"ect1"`; see [marks](#marks)"#,
    ),
    Key::with_default(
        "accecn",
        r#"`"option"` with ECT(1), else `"none"`"#,
        r#"how TCP's acknowledgements report marks: `"option"`, `"counter"` or `"none"`; see [AccECN](#accecn). `sim` and `quic-sim` only"#,
    ),
    Key::with_default(
        "initial_window",
        "ten packets",
        r#"the server's initial congestion window: packets (`"32p"`) or bytes. Over TCP it leaves within half of the handshake's round trip, as with `uncork steer`. `sim` and `quic-sim` only"#,
    ),
    Key::with_default(
        "resume",
        "none",
        r#"`{ window = "2MB", rtt = "600ms" }`: what an earlier connection [measured of the path](#resume), for Careful Resume (RFC 9959). `sim` and `quic-sim` only"#,
    ),
    Key::with_default("receive_window", "unlimited", "of the client, at least one packet"),
    Key::with_default(
        "receive_window_steps",
        "none",
        r#"`[["10s", "2MB"]]`: later receive windows, by the time since the start of the run; the end of a window never moves back. `sim` and `quic-sim` only"#,
    ),
    Key::with_default(
        "migrations",
        "none",
        r#"`[["10s", "address"], ["20s", "port"]]`: [changes of the client's address](#migrations), by the time since the start of the run. `quic-sim` only"#,
    ),
    Key::with_default(
        "ack_every",
        "`2`",
        "the client acknowledges with this packet at the latest, 1 to 1000. `sim` and `quic-sim` only",
    ),
    Key::with_default(
        "ack_delay",
        "40 ms over TCP, 25 ms over QUIC",
        "and this long after the first unacknowledged packet at the latest, 1 ms to 1 s; over QUIC at most the round-trip time or 25 ms. `sim` and `quic-sim` only",
    ),
    Key::with_default(
        "host",
        "one per client",
        "number of the client's host, for queues that share among hosts",
    ),
    Key::with_default(
        "background",
        "`false`",
        "left out of tables and figures unless a `flow` names it",
    ),
];

/// Workloads of `[flow.NAME]`.
pub(super) const WORKLOADS: &[Key] = &[
    Key::new("transfer", "one transfer of this size"),
    Key::new(
        "bulk",
        r#"unlimited data for this time from its start, or `"end"`: until the run ends"#,
    ),
    Key::new("requests", "objects in sequence on one connection"),
    Key::new("arrivals", "independent objects, each on its own connection"),
    Key::new("media", "a server that writes at a constant rate"),
    Key::new("audio", "a music player"),
    Key::new("video", "a video player"),
    Key::new(
        "command",
        "your own programs, over the kernel's TCP only: see [below](#programs-of-your-own-command)",
    ),
];

/// Keys of `[flow.NAME]`.
pub(super) const FLOW: &[Key] = &Key::join::<27>(CLASS, WORKLOADS);

/// Keys of `resume`.
pub(super) const RESUME: &[Key] = &[
    Key::required("window", "bytes that the connection had in flight in steady state"),
    Key::required("rtt", "its smallest round-trip time"),
];

/// Keys of `requests`.
pub(super) const REQUESTS: &[Key] = &[
    Key::new("size", "size of each object; exactly one of `size` and `sizes`"),
    Key::new("sizes", "[distribution of the sizes](#workloads)"),
    Key::with_default("count", "until the time is over", "number of objects"),
    Key::with_default("for", "until the run ends", "time in which requests are made"),
    Key::with_default("think", r#"`"0s"`"#, "time between an object and the next request"),
    Key::with_default(
        "think_exponential",
        "`false`",
        "whether this time is exponentially distributed, with `think` as its mean",
    ),
];

/// Keys of `arrivals`.
pub(super) const ARRIVALS: &[Key] = &[
    Key::new("rate", r#"a Poisson process: `"10/s"`; exactly one of `rate` and `trace`"#),
    Key::new("size", "with `rate`: size of each object; exactly one of `size` and `sizes`"),
    Key::new("sizes", "with `rate`: [distribution of the sizes](#workloads)"),
    Key::required("for", "with `rate`: time in which objects arrive"),
    Key::new("trace", "a file of lines `seconds bytes`"),
];

/// Keys of `media`.
pub(super) const MEDIA: &[Key] = &[
    Key::required("rate", "constant rate"),
    Key::with_default("frame", r#"`"20ms"`"#, "length of a frame"),
    Key::with_default("for", "until the run ends", "duration"),
];

/// Keys of `audio`.
pub(super) const AUDIO: &[Key] = &[
    Key::with_default("bitrate", r#"`"160kbit"`"#, "bitrate of the music"),
    Key::with_default("duration", r#"`"210s"`"#, "playing time of a track"),
    Key::with_default("tracks", "`1`", "number of tracks, up to 10000"),
    Key::with_default("chunk", r#"`"512kB"`"#, "size of a request"),
    Key::with_default("start_threshold", r#"`"1s"`"#, "buffered playing time to start"),
    Key::with_default(
        "resume_threshold",
        r#"`"2s"`"#,
        "buffered playing time to resume after a stall",
    ),
    Key::with_default(
        "low_water",
        r#"`"30s"`"#,
        "buffered playing time below which the next request is made",
    ),
];

/// Keys of `video`.
pub(super) const VIDEO: &[Key] = &[
    Key::required("duration", "playing time of the film"),
    Key::with_default("segment", r#"`"4s"`"#, "playing time of a request"),
    Key::with_default("ladder", "235 kbit to 5.8 mbit in ten steps", "bitrates"),
    Key::with_default(
        "abr",
        r#"`"bba"`"#,
        r#"choice of the bitrate: `"bba"` by the buffer, `"throughput"` by the rate of the last segments"#,
    ),
    Key::with_default("window", "`4`", "with `throughput`: number of segments"),
    Key::with_default("safety", "`0.9`", "with `throughput`: factor of their rate"),
    Key::with_default(
        "reservoir",
        r#"`"90s"`"#,
        "with `bba`: buffered playing time with the minimum bitrate",
    ),
    Key::with_default(
        "cushion",
        r#"`"126s"`"#,
        "with `bba`: further buffered playing time up to the maximum bitrate",
    ),
    Key::with_default("start_threshold", "one segment", "buffered playing time to start"),
    Key::with_default(
        "resume_threshold",
        "one segment",
        "buffered playing time to resume after a stall",
    ),
    Key::with_default(
        "max_buffer",
        "240 s with `bba`, 30 s with `throughput`",
        "maximum buffered playing time",
    ),
];

/// Keys of `command`.
pub(super) const COMMAND: &[Key] = &[
    Key::required(
        "client",
        "command that a shell (`sh -c`) runs on the client's host from the flow's start on",
    ),
    Key::new("server", "command that it runs on the server's host before the run begins"),
    Key::with_default(
        "for",
        "at the end of the run",
        "the client is stopped after this time (SIGTERM, SIGKILL two seconds later)",
    ),
    Key::new(
        "records",
        r#"`"objects"` or `"audio"`: the client writes flow records to the file `$UNCORK_RECORDS`"#,
    ),
    Key::with_default(
        "own_cc",
        "`false`",
        "whether the programs set their congestion control themselves, as QUIC programs do",
    ),
];

/// Keys of a named value in the matrix.
pub(super) const ALTERNATIVE: &[Key] = &[
    Key::required("name", "name in tables, figures, `where` and `over`"),
    Key::required("values", "a value for each place of the axis"),
];

/// Keys that select results.
pub(super) const SELECTION: &[Key] = &[
    Key::new("metric", "a metric, above, with a statistic: `mean`, `p50`"),
    Key::with_default("flow", "all classes that are not in the background", "a class"),
    Key::new("cc", "a controller"),
    Key::new("where", "values of axes"),
    Key::new(
        "over",
        r#"divides by the same quantity elsewhere: at another value of an axis (`over = { "flow.main.cc" = "cubic" }`), of another class (`over = { flow = "other" }`) or controller (`over = { cc = "cubic" }`). Bounds of a quotient are plain numbers"#,
    ),
    Key::new("at_least", "minimum size of objects"),
    Key::new("less_than", "the size of objects is less than this"),
];

/// Bounds of a threshold.
pub(super) const BOUNDS: &[Key] =
    &[Key::new("min", "minimum; at least one of `min` and `max`"), Key::new("max", "maximum")];

/// Keys of `[[threshold]]`.
pub(super) const THRESHOLD: &[Key] = &Key::join::<9>(SELECTION, BOUNDS);

/// Keys of `[[published]]` that do not select.
pub(super) const PUBLISHED_ONLY: &[Key] = &[
    Key::required("what", "name of the figure, as published"),
    Key::required("value", "its value, as published"),
    Key::required("source", "where it was published"),
    Key::with_default("change", "`false`", "whether a quotient is shown as a change in percent"),
    Key::new("min", "minimum that counts as agreement"),
    Key::new("max", "maximum that counts as agreement"),
    Key::new("range_from", "source of this range; required with `min` or `max`"),
    Key::new("note", "a remark"),
];

/// Keys of `[[published]]`.
pub(super) const PUBLISHED: &[Key] = &Key::join::<15>(SELECTION, PUBLISHED_ONLY);

/// Keys of `[[figure]]` that do not select, for all kinds.
pub(super) const FIGURE_ONLY: &[Key] = &[
    Key::required("kind", "the kind, below"),
    Key::required("title", "title"),
    Key::new("caption", "text below the figure"),
    Key::new("x", "axis of the columns, or of the horizontal scale"),
    Key::new("y", "axis of the rows"),
    Key::new("by", "axis with a curve or group for each value"),
    Key::with_default("statistics", r#"`["p50", "p95"]`"#, "statistics of `metric`"),
    Key::new("edges", "sizes that separate the classes, ascending"),
    Key::with_default("log", "`false`", "whether the scale of `metric` is logarithmic"),
    Key::with_default(
        "log_x",
        "`false`",
        "whether the horizontal scale is logarithmic; ignored if the values of `x` are categories",
    ),
    Key::with_default("log_y", "`false`", "whether the vertical scale is logarithmic"),
    Key::new("published", r#"points of others: `[["LABEL", "VALUE OF x", "VALUE"]]`"#),
];

/// Keys of `[[figure]]`, for all kinds.
pub(super) const FIGURE: &[Key] = &Key::join::<19>(SELECTION, FIGURE_ONLY);

/// An unknown part of a dotted key, and the known alternatives.
pub(super) struct Unknown {
    /// Its index among the parts.
    pub(super) part: usize,
    /// The known parts.
    pub(super) known: Vec<String>,
}

/// Whether `[path]` is a single path instead of a table of several.
pub(super) fn is_single_path(path: &Node) -> bool {
    let own = |name: &str| Key::has(PATH, name);
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
fn named(tree: &Node, keys: &[String], known: &'static [Key]) -> Result<(), Unknown> {
    let section = tree.get(&keys[0]).map(Node::entries).unwrap_or_default();
    let names = || section.iter().map(|entry| entry.name.clone()).collect();
    match keys.get(1) {
        Some(name) if section.iter().any(|entry| entry.name == *name) => below(keys, 2, known),
        _ => Err(Unknown { part: 1, known: names() }),
    }
}

/// Checks `keys` from `part` on: one of `known`, and a key within it.
fn below(keys: &[String], part: usize, known: &'static [Key]) -> Result<(), Unknown> {
    let Some(key) = keys.get(part).filter(|key| Key::has(known, key)) else {
        return Err(unknown(part, known));
    };
    if keys.len() == part + 1 {
        return Ok(());
    }
    below(keys, part + 1, inside(key))
}

/// The keys of the table allowed at `key`.
fn inside(key: &str) -> &'static [Key] {
    match key {
        "series" => SERIES,
        "uplink" => LINK,
        "lte" => LTE,
        "rate" | "rtt" | "loss" | "buffer" => DRAW,
        "requests" => REQUESTS,
        "arrivals" => ARRIVALS,
        "resume" => RESUME,
        "media" => MEDIA,
        "audio" => AUDIO,
        "video" => VIDEO,
        "command" => COMMAND,
        _ => &[],
    }
}

fn unknown(part: usize, known: &'static [Key]) -> Unknown {
    Unknown { part, known: Key::names(known).map(str::to_owned).collect() }
}

#[cfg(test)]
mod tests {
    use uncork_testkit::assert_keys;

    use super::*;

    #[test]
    fn tables_of_keys_are_current() {
        let page = concat!(env!("CARGO_MANIFEST_DIR"), "/../../../docs/reference/scenario.md");
        for (section, keys) in [
            ("scenario", FILE),
            ("run", RUN),
            ("series", SERIES),
            ("link", LINK),
            ("path", PATH_ONLY),
            ("lte", LTE),
            ("populations", DRAW),
            ("flowname", CLASS),
            ("workload", WORKLOADS),
            ("requests", REQUESTS),
            ("arrivals", ARRIVALS),
            ("resume", RESUME),
            ("media", MEDIA),
            ("audio", AUDIO),
            ("video", VIDEO),
            ("matrix", MATRIX),
            ("range", RANGE),
            ("alternative", ALTERNATIVE),
            ("which", SELECTION),
            ("threshold", BOUNDS),
            ("figure", FIGURE_ONLY),
            ("published", PUBLISHED_ONLY),
            ("programs", COMMAND),
        ] {
            let rows = keys.iter().map(|key| (key.name, key.meaning, key.default));
            assert_keys(
                page.as_ref(),
                section,
                "UPDATE_DOCS=1 cargo test -p uncork-lab --lib keys",
                rows,
            );
        }
    }

    /// A table in the matrix is a named value if it has one of these keys, otherwise a table of others.
    #[test]
    fn a_named_value_is_recognized_by_its_keys() {
        let values =
            [RANGE, LINK, LTE, DRAW, RESUME, REQUESTS, ARRIVALS, MEDIA, AUDIO, VIDEO, COMMAND];
        let has = |name| values.iter().any(|keys| Key::has(keys, name));
        assert!(!Key::names(ALTERNATIVE).any(has));
    }
}
