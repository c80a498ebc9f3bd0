//! Desired states for hosts in memory.

use uncork_host::change::{ChangeError, DesiredState, Host, Report, Source, apply};

/// Every kind of setting.
pub(crate) const ALL: &str = r#"
algorithm = "bbr"
allowed = ["bbr", "reno"]
modules = ["sch_fq"]
persist = true
[qdisc]
default = "fq"
eth0 = "fq"
[buffers]
send = "16MB"
receive = "16MB"
[[route]]
to = "10.0.0.0/8"
algorithm = "cubic"
initial_window = "20p"
[[route]]
to = "0.0.0.0/0"
algorithm = "bbr"
lock = true
[namespaces]
legacy = "reno"
"#;

/// Some of the same settings with other values, without files.
pub(crate) const OTHER: &str = r#"
algorithm = "reno"
allowed = ["cubic", "dctcp", "reno"]
[qdisc]
eth0 = "pfifo"
[buffers]
send = "8MB"
[[route]]
to = "10.0.0.0/8"
algorithm = "reno"
"#;

/// Only the default algorithm. The kernel itself adds it to the allowed algorithms.
pub(crate) const LITTLE: &str = "algorithm = \"bbr\"\n";

/// Sysctls that survive a reboot.
pub(crate) const LASTING: &str =
    "algorithm = \"bbr\"\nallowed = [\"bbr\", \"cubic\", \"reno\"]\npersist = true\n";

/// Only settings that the other desired states leave alone or share.
pub(crate) const BUFFERS: &str = "[buffers]\nsend = \"2MB\"\n";

pub(crate) fn apply_text(
    host: &mut impl Host,
    text: &str,
    ttl_s: Option<u64>,
) -> Result<Report, ChangeError> {
    let desired = DesiredState::parse(text).unwrap();
    apply(host, Source { file: "host.toml", text, desired: &desired }, ttl_s)
}
