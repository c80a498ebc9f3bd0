//! The keys of a desired state, as its parser and its reference page have them.

use uncork_config::Key;

/// Keys of the file itself.
pub(super) const FILE: &[Key] = &[
    Key::new("algorithm", "algorithm of new connections"),
    Key::new(
        "allowed",
        "algorithms that containers and unprivileged programs may choose; replaces the kernel's list",
    ),
    Key::new("buffers", "[maximum buffers](#buffers-of-the-file)"),
    Key::new("modules", "kernel modules to load, in addition to those of the algorithms"),
    Key::new(
        "namespaces",
        r#"`NAME = "ALGORITHM"`: algorithm of a network namespace of `ip netns`"#,
    ),
    Key::with_default("persist", "`false`", "whether the desired state survives a reboot"),
    Key::new(
        "qdisc",
        r#"`INTERFACE = "NAME"`: root queue discipline of an interface; `default` is that of new interfaces"#,
    ),
    Key::new("route", "[routes with an algorithm](#routes-of-the-file)"),
    Key::new("routes", "[routes by a policy](#routes-by-a-policy)"),
];

/// Keys of `[buffers]`.
pub(super) const BUFFERS: &[Key] = &[
    Key::new("send", "maximum send buffer that TCP's autotuning may choose, from 4096 B"),
    Key::new("receive", "maximum receive buffer, likewise"),
];

/// Keys of `[[route]]`.
pub(super) const ROUTE: &[Key] = &[
    Key::required("to", r#"destination, such as `"10.0.0.0/8"`"#),
    Key::required("algorithm", "algorithm of connections to it"),
    Key::with_default("lock", "`false`", "`true`: programs cannot choose another algorithm"),
    Key::with_default(
        "initial_window",
        "that of the route which leads there",
        r#"initial window of its connections: `"1p"` to `"64p"` packets, or bytes (`initcwnd`)"#,
    ),
];

/// Keys of `[routes]`.
pub(super) const ROUTES: &[Key] = &[
    Key::required("policy", "the policy's file, an absolute path: it is read again at boot"),
    Key::with_default(
        "policy_key",
        "no signature is needed",
        "public key of the [signer](learn.md#signatures); an older version is [refused](learn.md#an-older-signed-version-is-refused)",
    ),
    Key::new(
        "geo",
        "databases of origins, for `asn`, `country`, and entries of the table by AS or country",
    ),
    Key::with_default(
        "networks",
        "those of its table (with `geo`, also of its ASes and countries), and of its rules' `client`",
        "networks in which the policy counts",
    ),
];

#[cfg(test)]
mod tests {
    use uncork_testkit::assert_keys;

    use super::*;

    #[test]
    fn tables_of_keys_are_current() {
        let page = concat!(env!("CARGO_MANIFEST_DIR"), "/../../../docs/reference/host.md");
        for (section, keys) in
            [("file", FILE), ("buffers", BUFFERS), ("route", ROUTE), ("routes", ROUTES)]
        {
            let rows = keys.iter().map(|key| (key.name, key.meaning, key.default));
            assert_keys(
                page.as_ref(),
                section,
                "UPDATE_DOCS=1 cargo test -p uncork-host keys",
                rows,
            );
        }
    }
}
