//! The keys of a policy, as its parser and its reference page have them.

use uncork_config::Key;

/// Keys of the file itself.
pub(crate) const FILE: &[Key] = &[
    Key::with_default(
        "decide",
        r#"`"once"`"#,
        r#"`"once"`: the decision for the first request stays. `"each_request"`: each request is decided again, and the open connection changes its controller if necessary"#,
    ),
    Key::with_default(
        "key",
        "all zeros",
        "32 hexadecimal digits: the secret of [experiments](#experimentname)",
    ),
    Key::with_default(
        "max_initial_window",
        r#"`"64p"`"#,
        "the maximum of all [`initial_window`](#settings-initial_window): a larger one is an error",
    ),
    Key::new(
        "default",
        "[settings](#settings-of-a-connection) of connections for which no rule decides",
    ),
    Key::new("rule", "[rules](#rule), in the order in which they are tried"),
    Key::new("experiment", "[experiments](#experimentname) by name"),
    Key::new("table", "the [table](#table) of networks"),
];

/// Conditions of a rule, in the order in which their facts become known.
pub(crate) const CONDITIONS: &[Key] = &[
    Key::new("listener", "the listener with this name"),
    Key::new(
        "client",
        r#"networks of the client's address: `"203.0.113.0/24"`, `"2001:db8::/32"` or an address. `"0.0.0.0/0"` has all clients of IPv4, `"::/0"` all of IPv6 and none of IPv4"#,
    ),
    Key::new("asn", r#"the client's autonomous system: `"AS64500"`"#),
    Key::new("country", r#"the client's country: `"PE"`"#),
    Key::new("time", "the [time](#time) at which the connection was accepted"),
    Key::new("sni", "the server name of the TLS handshake"),
    Key::new("host", "`Host` or `:authority` of the request, without port"),
    Key::new("path", "the path of the request, decoded, without query"),
    Key::new("query", r#"`{ NAME = "VALUE" }`: a query parameter, as written in the URL"#),
    Key::new("header", r#"`{ NAME = "VALUE" }`: a header field"#),
    Key::new("cookie", r#"`{ NAME = "VALUE" }`: a cookie"#),
    Key::new("size", "the [size](#size) of the whole file, even if a range is requested"),
];

/// Keys of a rule that are not conditions.
pub(crate) const OUTCOME: &[Key] = &[
    Key::new("name", "appears in explanations and records"),
    Key::new(
        "use",
        "[settings](#settings-of-a-connection) of the connection; needs at least one condition",
    ),
    Key::new("experiment", "instead of `use`: the name of an [experiment](#experimentname)"),
    Key::new("table", "instead of `use`: a section of the [table of networks](#table)"),
];

/// Keys of a rule.
pub(crate) const RULE: &[Key] = &Key::join::<16>(OUTCOME, CONDITIONS);

/// Keys of settings.
pub(crate) const SETTINGS: &[Key] = &[
    Key::with_default(
        "quic",
        r#"`"cubic"`"#,
        r#"the controller of a QUIC connection: `reno`, `cubic`, `bbr1`, `bbr2`, `bbr3`, `prague`, with options as in `"bbr3:loss_floor"`"#,
    ),
    Key::with_default(
        "tcp",
        "the system's controller",
        "the controller of a TCP connection by its name in the kernel (`sysctl net.ipv4.tcp_available_congestion_control`); the `bbr` of mainline kernels is version 1",
    ),
    Key::with_default(
        "initial_window",
        "ten packets (RFC 9002 §7.2)",
        r#"initial window: `"1p"` to `"1000p"` packets, or `"1200B"` to `"1500kB"`. Over TCP [`uncork steer`](steer.md) sets it, and [routes](host.md#routes-by-a-policy): Linux has no socket option for the server itself"#,
    ),
    Key::with_default(
        "initial_rate",
        "paced by the kernel: within half of the handshake's round-trip time (`tcp_pacing_ss_ratio`)",
        r#"the highest rate at which the initial window leaves over TCP, until the first acknowledgement: `"20mbit"`. It limits what the kernel or the controller paces, and does not raise it; the first ten packets leave at once. With `"burst"` the kernel does not pace; BBR paces itself all the same"#,
    ),
    Key::with_default("pacing_cap", "none", "maximum pacing rate of the connection"),
    Key::with_default(
        "ecn",
        r#"`"l4s"` with `prague`, `"classic"` with other controllers"#,
        r#"Explicit Congestion Notification of a QUIC connection: `"none"`, `"classic"` (ECT(0), a mark counts as a loss), or `"l4s"` (ECT(1), RFC 9331), which needs `prague`. Over TCP the controller decides: `uncork_prague` sends ECT(1), and `"l4s"` needs it"#,
    ),
    Key::with_default(
        "resume",
        "`false`",
        "whether a connection may begin from what an earlier one of the same client network observed (Careful Resume, RFC 9959): over QUIC by [`uncork serve`](serve.md#careful-resume), over TCP with a controller of [`uncork kernel load --resume`](kernel.md#careful-resume) in `tcp`",
    ),
];

/// Keys of an arm that are not settings.
pub(crate) const WEIGHT: &[Key] = &[Key::with_default(
    "weight",
    "`1`",
    "a whole number: the share of the units is in proportion to it",
)];

/// Keys of an arm.
pub(crate) const ARM: &[Key] = &Key::join::<8>(WEIGHT, SETTINGS);

/// Keys of an experiment.
pub(crate) const EXPERIMENT: &[Key] = &[
    Key::required(
        "unit",
        r#"unit of assignment: `"prefix"` (the client's /24 of IPv4, /48 of IPv6), `"cookie:NAME"` or `"header:NAME"`"#,
    ),
    Key::required(
        "share",
        r#"share of the units that take part, `"0%"` to `"100%"` in steps of 0.01 %"#,
    ),
    Key::with_default(
        "salt",
        "the experiment's name",
        "makes assignments independent of other experiments",
    ),
    Key::required("arm", "arms: `[experiment.NAME.arm.ARM]`"),
];

/// Keys of the table of networks.
pub(crate) const TABLE: &[Key] = &[
    Key::required("file", "the table's file, relative to the policy's"),
    Key::required("arm", "the settings of each arm: `[table.arm.NAME]`"),
];

/// Keys of a size.
pub(crate) const SIZE: &[Key] = &[
    Key::with_default("min", "no limit", "minimum size"),
    Key::with_default("below", "no limit", "the size is less than this"),
];

/// Keys of a time.
pub(crate) const TIME: &[Key] = &[
    Key::with_default("since", "no limit", "not before this time: `2026-12-01T18:00:00Z`"),
    Key::with_default("until", "no limit", "before this time"),
    Key::with_default(
        "from",
        "the whole day",
        r#"not before this time of day, `"00:00"` to `"24:00"`; needs `to`"#,
    ),
    Key::new("to", "before this time of day; if not after `from`, on the next day"),
    Key::with_default(
        "days",
        "all",
        "days on which the period begins: `mon`, `tue`, `wed`, `thu`, `fri`, `sat`, `sun`",
    ),
    Key::with_default(
        "utc_offset",
        r#"`"+00:00"`"#,
        r#"offset of local time from UTC: `"+02:00"`; daylight saving time is not applied"#,
    ),
];

#[cfg(test)]
mod tests {
    use uncork_testkit::assert_keys;

    use super::*;

    #[test]
    fn tables_of_keys_are_current() {
        let page = concat!(env!("CARGO_MANIFEST_DIR"), "/../../../docs/reference/policy.md");
        for (section, keys) in [
            ("policy", FILE),
            ("settings", SETTINGS),
            ("rule", OUTCOME),
            ("condition", CONDITIONS),
            ("size", SIZE),
            ("time", TIME),
            ("experimentname", EXPERIMENT),
            ("arm", WEIGHT),
            ("table", TABLE),
        ] {
            let rows = keys.iter().map(|key| (key.name, key.meaning, key.default));
            assert_keys(
                page.as_ref(),
                section,
                "UPDATE_DOCS=1 cargo test -p uncork-policy keys",
                rows,
            );
        }
    }

    #[test]
    fn the_blocks_of_the_reference_show_every_condition() {
        let reference = include_str!("../../../../../docs/reference/policy.md");
        let blocks = reference.split("```toml\n").skip(1);
        let all: String = blocks.filter_map(|rest| rest.split("```").next()).collect();
        for key in Key::names(CONDITIONS).chain(["experiment", "table"]) {
            assert!(all.contains(&format!("\n{key} = ")), "{key}");
        }
    }
}
