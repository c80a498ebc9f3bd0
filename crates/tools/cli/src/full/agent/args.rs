//! The arguments of `uncork agent`.

use std::net::SocketAddr;
use std::path::PathBuf;

use clap::Args;
use uncork_fleet::HostName;
use uncork_units::TimeDelta;

use crate::full::nap::pause;

const EXAMPLES: &str = "\
Examples:
  uncork agent /srv/fleet --public-key fleet.key.pub
  uncork agent s3://policies/fleet --public-key fleet.key.pub
  uncork agent /srv/fleet --public-key fleet.key.pub --place fra1 --every 1min
  uncork agent /srv/fleet --public-key fleet.key.pub --metrics 127.0.0.1:9466
  uncork agent /srv/fleet --public-key fleet.key.pub --apply 'uncork policy check $POLICY' --once";

const AFTER: &str = "\
It asks the store with a conditional request, verifies signature, version and expiry, and has the link DIR/current lead to the whole \
version. `uncork serve`, the units of `uncork steer` and those of routes follow the link. It opens no port but that of --metrics. If the store, a key or \
the clock fails, the last good version stays until it expires; then the host has its default.

Exit status: 0 ended by a signal, or with --once the version is active; 1 with --once, if it is not; 2 wrong usage; 3 another agent \
runs, or the directory cannot be written; 5 a bug.";

/// Keep a fleet's policy active on this host, from a store (docs/reference/fleet.md)
#[derive(Args, Debug)]
#[command(before_help = EXAMPLES, after_help = AFTER)]
pub(crate) struct AgentArgs {
    /// Store: a directory, s3://, gs:// or az://BUCKET/PREFIX, or https://HOST/PREFIX
    #[arg(value_name = "STORE")]
    pub(super) store: String,
    /// Public key of the publisher; repeat for several
    #[arg(long, value_name = "FILE", required = true)]
    pub(super) public_key: Vec<PathBuf>,
    /// Directory of the versions and of the link `current`
    #[arg(short, long, value_name = "DIR", default_value = "/var/lib/uncork-agent")]
    pub(super) output: PathBuf,
    /// Name of this host in stages and reports [default: the kernel's]
    #[arg(long, value_name = "NAME")]
    pub(super) host: Option<HostName>,
    /// Place of this host, for stages such as place:fra1
    #[arg(long, value_name = "NAME")]
    pub(super) place: Option<HostName>,
    /// Time between two polls; it varies by a tenth
    #[arg(long, value_name = "TIME", value_parser = pause, default_value = "1min")]
    pub(super) every: TimeDelta,
    /// Time between two reports that say nothing new
    #[arg(long, value_name = "TIME", default_value = "10min")]
    pub(super) report_every: TimeDelta,
    /// Policy while no version is valid [default: one without rules]
    #[arg(long, value_name = "FILE")]
    pub(super) default: Option<PathBuf>,
    /// Shell command that applies the policy in $POLICY; if it fails, the version before returns
    #[arg(long, value_name = "COMMAND")]
    pub(super) apply: Option<String>,
    /// File with the path of the policy that is applied, such as /run/uncork-steer-nginx/policy; repeat for several
    #[arg(long, value_name = "FILE")]
    pub(super) applied: Vec<PathBuf>,
    /// Longest time until the files of --applied name the version
    #[arg(long, value_name = "TIME", default_value = "2min")]
    pub(super) patience: TimeDelta,
    /// Loopback address at which Prometheus may ask for /metrics
    #[arg(long, value_name = "ADDR:PORT", value_parser = loopback, conflicts_with = "once")]
    pub(super) metrics: Option<SocketAddr>,
    /// Poll once
    #[arg(long)]
    pub(super) once: bool,
}

/// An address that no other machine reaches.
fn loopback(text: &str) -> Result<SocketAddr, String> {
    match text.parse::<SocketAddr>() {
        Ok(address) if address.ip().is_loopback() => Ok(address),
        Ok(_) => Err("other machines could reach it; use 127.0.0.1 or [::1]".to_owned()),
        Err(_) => Err("expected ADDRESS:PORT, such as 127.0.0.1:9466".to_owned()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn metrics_on_an_address_that_other_machines_reach_are_refused() {
        for text in ["127.0.0.1:9466", "[::1]:0", "127.8.0.1:1"] {
            assert_eq!(loopback(text).unwrap().to_string(), text);
        }
        for text in ["0.0.0.0:9466", "[::]:9466", "192.0.2.1:9466", "[::ffff:127.0.0.1]:1"] {
            assert!(loopback(text).unwrap_err().contains("use 127.0.0.1 or [::1]"), "{text}");
        }
        for text in ["9466", "localhost:9466", "127.0.0.1", ""] {
            assert!(loopback(text).unwrap_err().contains("such as 127.0.0.1:9466"), "{text}");
        }
    }
}
