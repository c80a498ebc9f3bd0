//! Capabilities of the machine that tests require, and skipped tests.

use std::io::Write;

/// Environment variable with required capabilities, such as `netns,bbr` or `all`. Tests that lack one fail.
const VARIABLE: &str = "UNCORK_REQUIRE";

/// A capability that some tests require and some machines lack.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Capability {
    /// Network namespaces and TUN devices: `CAP_SYS_ADMIN`, `CAP_NET_ADMIN`, `/dev/net/tun`.
    Netns,
    /// Mounting a tmpfs: root, or unprivileged user namespaces.
    Mount,
    /// The kernel's BBR: the module `tcp_bbr`.
    Bbr,
    /// A headless Chromium.
    Browser,
    /// IPv6 on loopback.
    Ipv6,
    /// Programs that tests call: `ip`, `tc`, `iperf3`, `curl`, `python3`, `strace`, `systemd-analyze`.
    Programs,
    /// Prometheus's `promtool`.
    Promtool,
    /// nginx.
    Nginx,
    /// Congestion controls as BPF programs: `CAP_BPF`, `CAP_PERFMON`, `CAP_NET_ADMIN`, Linux 6.1
    /// with BTF.
    Bpf,
}

impl Capability {
    const ALL: [Self; 9] = [
        Self::Netns,
        Self::Mount,
        Self::Bbr,
        Self::Browser,
        Self::Ipv6,
        Self::Programs,
        Self::Promtool,
        Self::Nginx,
        Self::Bpf,
    ];

    /// Its name in `UNCORK_REQUIRE`.
    pub const fn name(self) -> &'static str {
        match self {
            Self::Netns => "netns",
            Self::Mount => "mount",
            Self::Bbr => "bbr",
            Self::Browser => "browser",
            Self::Ipv6 => "ipv6",
            Self::Programs => "programs",
            Self::Promtool => "promtool",
            Self::Nginx => "nginx",
            Self::Bpf => "bpf",
        }
    }

    fn named(name: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|capability| capability.name() == name)
    }
}

/// Reports a skipped test; `why` names what is missing.
///
/// Writes to standard error directly, which the test harness does not capture, so the message is seen.
///
/// # Panics
/// If `UNCORK_REQUIRE` lists the capability, or an unknown one.
#[track_caller]
pub fn not_run(capability: Capability, why: &str) {
    let required = std::env::var(VARIABLE).unwrap_or_default();
    let required = required_by(&required).unwrap_or_else(|error| panic!("{error}"));
    let name = capability.name();
    assert!(
        !required.contains(&capability),
        "{VARIABLE} demands {name}, but this machine lacks it: {why}"
    );
    let _unwritable = writeln!(std::io::stderr(), "\n*** NOT RUN ({name}): {why} ***\n");
}

/// The capabilities in the value of `UNCORK_REQUIRE`.
fn required_by(value: &str) -> Result<Vec<Capability>, String> {
    let names = value.split(',').map(str::trim).filter(|name| !name.is_empty());
    names.map(capabilities_of).collect::<Result<Vec<_>, _>>().map(|parts| parts.concat())
}

fn capabilities_of(name: &str) -> Result<Vec<Capability>, String> {
    if name == "all" {
        return Ok(Capability::ALL.to_vec());
    }
    let unknown = || {
        let known = Capability::ALL.map(Capability::name).join(", ");
        format!("{VARIABLE}: no capability `{name}`; there are {known} and all")
    };
    Capability::named(name).map(|capability| vec![capability]).ok_or_else(unknown)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn require_names_capabilities_or_all() {
        assert_eq!(required_by(""), Ok(Vec::new()));
        assert_eq!(required_by("netns, bbr"), Ok(vec![Capability::Netns, Capability::Bbr]));
        assert_eq!(required_by("all"), Ok(Capability::ALL.to_vec()));
    }

    #[test]
    fn require_rejects_an_unknown_capability() {
        let error = required_by("netns,bbr2").expect_err("an error");
        assert!(error.contains("`bbr2`") && error.contains("netns, mount, bbr"), "{error}");
    }
}
