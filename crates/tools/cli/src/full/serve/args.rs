//! The arguments of `uncork serve`.

use std::net::SocketAddr;
use std::path::PathBuf;

use clap::Args;
use uncork_cc::CcSpec;
use uncork_policy::Prefix;
use uncork_units::{ByteCount, Rate, TimeDelta};

use crate::full::rollup_args::RollupArgs;
use crate::values::count;

const EXAMPLES: &str = "\
Examples:
  uncork serve --root public
  uncork serve --root public --self-signed --listen 0.0.0.0:8443 --cc bbr --quic-cc bbr3 --records responses.jsonl
  uncork serve --root public --policy policy.toml --listen public@127.0.0.1:8080 --listen internal@127.0.0.1:8081
  uncork serve --root public --tls-cert chain.pem --tls-key key.pem --listen '[::]:443' --listen '[::]:8443=cubic'";

const AFTER: &str = "\
Serves HTTP/1.1 and HTTP/2 over the kernel's TCP and, with TLS, HTTP/3 over QUIC on the same addresses. \
With --handover, a second server with the same arguments takes over without loss, and the first ends. \
SIGTERM and Ctrl-C stop new requests and give responses under way --grace to finish; a second one ends at \
once. SIGHUP reloads policy, databases and certificate; so does a change of their files. Files that begin \
with a dot, and links that lead out of the root, answer 404.

Exit status: 0 stopped by a signal or taken over, or --check found no problem; 2 wrong usage; 3 not possible on this machine \
(such as a congestion control that the kernel lacks, or an address in use); 5 a bug.";

/// Files, listeners, limits and telemetry of the server.
#[derive(Args, Clone, Debug)]
#[command(before_help = EXAMPLES, after_help = AFTER)]
#[expect(clippy::struct_excessive_bools, reason = "each is a switch of the command line")]
pub(crate) struct ServeArgs {
    /// Configuration file, TOML: keys are these flags, with _ for -; tables are virtual hosts, redirects, headers
    /// and error pages (docs/reference/serve.md). Flags win over keys
    #[arg(long, value_name = "FILE", help_heading = "Files")]
    pub(super) config: Option<PathBuf>,
    /// Directory to serve
    #[arg(long, value_name = "DIR", required_unless_present = "config", help_heading = "Files")]
    pub(super) root: Option<PathBuf>,
    /// Serve index.html for a directory
    #[arg(long, help_heading = "Files")]
    pub(super) index: bool,
    /// Serve FILE.br, FILE.zst or FILE.gz instead of FILE if the client accepts it and it is not older
    #[arg(long, help_heading = "Files")]
    pub(super) precompressed: bool,
    /// Access-Control-Allow-Origin of all responses; * if no value is given
    #[arg(long, value_name = "ORIGIN", num_args = 0..=1, default_missing_value = "*")]
    #[arg(help_heading = "Files")]
    pub(super) cors: Option<String>,
    /// Cache-Control of all responses: 'public, max-age=3600'
    #[arg(long, value_name = "VALUE", help_heading = "Files")]
    pub(super) cache_control: Option<String>,
    /// Address to listen on; repeat for several. NAME is the listener's name in policies, by default
    /// ADDR:PORT; CC is its congestion control
    #[arg(long, value_name = "[NAME@]ADDR:PORT[=CC]", default_value = "127.0.0.1:8080")]
    #[arg(help_heading = "Transport")]
    pub(super) listen: Vec<Listen>,
    /// Congestion control over TCP of listeners without =CC, by the kernel's name: bbr, cubic, reno
    /// [default: the kernel's]
    #[arg(long, value_name = "NAME", help_heading = "Transport")]
    pub(super) cc: Option<String>,
    /// Congestion control over QUIC: cubic, bbr3, bbr2, bbr1, reno [default: cubic]
    #[arg(long, value_name = "SPEC", help_heading = "Transport")]
    pub(super) quic_cc: Option<CcSpec>,
    /// Disable HTTP/3: do not listen on UDP
    #[arg(long, help_heading = "Transport")]
    pub(super) no_http3: bool,
    /// Policy that chooses the congestion control of each connection (docs/reference/policy.md)
    #[arg(long, value_name = "FILE", help_heading = "Transport")]
    pub(super) policy: Option<PathBuf>,
    /// Public key (Ed25519, PEM) of the signer of policy and table (docs/reference/learn.md#signatures)
    #[arg(long, value_name = "FILE", requires = "policy", help_heading = "Transport")]
    pub(super) policy_key: Option<PathBuf>,
    /// MaxMind database with the clients' networks or countries; repeat for several, the first match counts
    #[arg(long, value_name = "FILE.mmdb", help_heading = "Transport")]
    pub(super) geo: Vec<PathBuf>,
    /// Certificate chain, PEM
    #[arg(long, value_name = "FILE", requires = "tls_key", help_heading = "Transport")]
    pub(super) tls_cert: Option<PathBuf>,
    /// Private key of the certificate, PEM
    #[arg(long, value_name = "FILE", requires = "tls_cert", help_heading = "Transport")]
    pub(super) tls_key: Option<PathBuf>,
    /// Generate a self-signed certificate, for tests
    #[arg(long, conflicts_with = "tls_cert", help_heading = "Transport")]
    pub(super) self_signed: bool,
    /// Directory with the keys of session tickets and stateless resets, made if missing. Servers that share
    /// it resume each other's sessions
    #[arg(long, value_name = "DIR", help_heading = "Transport")]
    pub(super) keys: Option<PathBuf>,
    /// Unix socket for restarts without loss: takes over from the server that listens on it, if one does
    #[arg(long, value_name = "PATH", help_heading = "Transport")]
    pub(super) handover: Option<PathBuf>,
    /// Address to listen on without TLS, to send requests on to HTTPS; answers ACME's challenges. Repeat for
    /// several
    #[arg(long, value_name = "ADDR:PORT", help_heading = "Transport")]
    pub(super) redirect_http: Vec<SocketAddr>,
    /// Network of proxies that send a header of the PROXY protocol, version 2; repeat for
    /// several. TCP only
    #[arg(long, value_name = "NETWORK", help_heading = "Transport")]
    pub(super) proxy_from: Vec<Prefix>,
    /// Drop privileges to this user after binding; files must be readable by this user
    #[arg(long, value_name = "USER[:GROUP]", help_heading = "Transport")]
    pub(super) user: Option<String>,
    /// Allow HTTP without TLS on addresses that other machines can reach
    #[arg(long, conflicts_with_all = ["tls_cert", "self_signed"], help_heading = "Transport")]
    pub(super) plain: bool,
    /// Open connections per listener; beyond it the idlest closes
    #[arg(long, alias = "connections", value_name = "N", default_value = "10000")]
    #[arg(value_parser = count, help_heading = "Limits")]
    pub(super) max_connections: u32,
    /// Memory that clients may hold
    #[arg(long, alias = "memory", value_name = "SIZE", default_value = "1GB")]
    #[arg(help_heading = "Limits")]
    pub(super) max_memory: ByteCount,
    /// Share of connections and memory that one limited network may have, in percent
    #[arg(long, value_name = "PERCENT", default_value = "25", help_heading = "Limits")]
    #[arg(value_parser = clap::value_parser!(u8).range(1..=100))]
    pub(super) network_share: u8,
    /// Maximum connections of one limited network per listener [default: its share]
    #[arg(long, value_name = "N", help_heading = "Limits")]
    #[arg(value_parser = clap::value_parser!(u32).range(1..))]
    pub(super) network_connections: Option<u32>,
    /// Maximum requests per second of one limited network, and at once; further ones get 429 [default: no limit]
    #[arg(long, value_name = "N", help_heading = "Limits")]
    #[arg(value_parser = clap::value_parser!(u32).range(1..=1_000_000))]
    pub(super) network_requests: Option<u32>,
    /// Maximum rate of bodies to one limited network, at least 1mbit [default: no limit]
    #[arg(long, value_name = "RATE", value_parser = network_rate, help_heading = "Limits")]
    pub(super) network_rate: Option<Rate>,
    /// Prefix length of a limited network, IPv4
    #[arg(long, value_name = "BITS", default_value = "32", help_heading = "Limits")]
    #[arg(value_parser = clap::value_parser!(u8).range(0..=32))]
    pub(super) network_v4: u8,
    /// Prefix length of a limited network, IPv6
    #[arg(long, value_name = "BITS", default_value = "56", help_heading = "Limits")]
    #[arg(value_parser = clap::value_parser!(u8).range(0..=128))]
    pub(super) network_v6: u8,
    /// Concurrent requests per connection of HTTP/2 and HTTP/3
    #[arg(long, alias = "streams", value_name = "N", default_value = "100")]
    #[arg(value_parser = clap::value_parser!(u32).range(1..=10_000), help_heading = "Limits")]
    pub(super) max_streams: u32,
    /// Maximum time from accepting a connection to the end of its first request's head, TLS included
    #[arg(long, value_name = "TIME", default_value = "10s", help_heading = "Limits")]
    #[arg(value_parser = timeout)]
    pub(super) head_time: TimeDelta,
    /// Maximum time between requests
    #[arg(long, value_name = "TIME", default_value = "1min", help_heading = "Limits")]
    #[arg(value_parser = timeout)]
    pub(super) idle_time: TimeDelta,
    /// Maximum time in which a client takes nothing of a response
    #[arg(long, value_name = "TIME", default_value = "30s", help_heading = "Limits")]
    #[arg(value_parser = timeout)]
    pub(super) stall_time: TimeDelta,
    /// Time for responses under way to finish after SIGTERM
    #[arg(long, value_name = "TIME", default_value = "30s", help_heading = "Limits")]
    pub(super) grace: TimeDelta,
    /// Responses that report controller and round-trip time: on, off, arms (also of experiments), or networks
    #[arg(
        long,
        value_name = "on|off|arms|NETWORKS",
        default_value = "on",
        help_heading = "Telemetry"
    )]
    pub(super) server_timing: String,
    /// Record each response and connection: append JSON Lines to FILE, or write Parquet files to DIR/
    #[arg(long, value_name = "FILE|DIR/", help_heading = "Telemetry")]
    pub(super) records: Option<PathBuf>,
    /// Write Parquet files at least this often, if there are records
    #[arg(long, value_name = "TIME", default_value = "5min", requires = "records")]
    #[arg(help_heading = "Telemetry")]
    pub(super) records_every: TimeDelta,
    /// Maximum records per Parquet file; they are kept in memory until it is written
    #[arg(long, value_name = "N", default_value = "50000", value_parser = count)]
    #[arg(requires = "records", help_heading = "Telemetry")]
    pub(super) records_rows: u32,
    #[command(flatten)]
    pub(super) rollup: RollupArgs,
    /// Append a line for each response to FILE, with the client's address and the path (personal data)
    #[arg(long, value_name = "FILE", help_heading = "Telemetry")]
    pub(super) access_log: Option<PathBuf>,
    /// Write a qlog file to DIR for each HTTP/3 connection, for the first 1000
    #[arg(long, value_name = "DIR", help_heading = "Telemetry")]
    pub(super) qlog: Option<PathBuf>,
    /// Admin endpoint for operators of this machine: /healthz, /metrics, /status.json and a status page
    #[arg(long, value_name = "ADDR:PORT|unix:PATH", help_heading = "Telemetry")]
    pub(super) admin: Option<String>,
    /// Allow --admin on addresses that other machines can reach
    #[arg(long, requires = "admin", help_heading = "Telemetry")]
    pub(super) admin_anywhere: bool,
    /// Check arguments and files, then exit
    #[arg(long, help_heading = "Output")]
    pub(super) check: bool,
    /// Suppress notes
    #[arg(short, long, help_heading = "Output")]
    pub(super) quiet: bool,
}

/// A time that clients can keep, and a server can wait.
fn timeout(text: &str) -> Result<TimeDelta, String> {
    let time: TimeDelta = text.parse().map_err(|error| format!("{error}"))?;
    let is_possible = time >= TimeDelta::from_millis(100) && time <= TimeDelta::from_secs(86_400);
    is_possible.then_some(time).ok_or_else(|| format!("{time} is not possible: give 100ms to 24h"))
}

/// `127.0.0.1:8080`, `127.0.0.1:8080=bbr` or `internal@127.0.0.1:8080`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Listen {
    pub(super) name: String,
    pub(super) address: SocketAddr,
    pub(super) cc: Option<String>,
}

impl std::str::FromStr for Listen {
    type Err = &'static str;

    fn from_str(text: &str) -> Result<Self, Self::Err> {
        let (place, cc) = match text.split_once('=') {
            Some((place, cc)) => (place, Some(cc)),
            None => (text, None),
        };
        if cc.is_some_and(str::is_empty) {
            return Err("congestion control missing after '=': write 127.0.0.1:8080=bbr");
        }
        let (name, address) = place.split_once('@').unwrap_or((place, place));
        let usual = |c: char| c.is_ascii_graphic();
        if name.is_empty() || !name.chars().all(usual) {
            return Err("name without spaces expected before '@': write internal@127.0.0.1:8080");
        }
        let address = address.parse();
        let address = address
            .map_err(|_| "IP address and port expected: write 127.0.0.1:8080 or [::]:8080")?;
        Ok(Self { name: name.to_owned(), address, cc: cc.map(str::to_owned) })
    }
}

/// Below it, many responses at once would each wait for longer than a stalled client may.
const MIN_RATE: Rate = Rate::from_mbit(1);

fn network_rate(text: &str) -> Result<Rate, String> {
    let rate: Rate = text.parse().map_err(|error| format!("{error}"))?;
    if rate < MIN_RATE {
        return Err("expected at least 1mbit".to_owned());
    }
    Ok(rate)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_listener_may_have_a_name_and_a_controller_of_its_own() {
        for (text, name, address, cc) in [
            ("1.2.3.4:0", "1.2.3.4:0", "1.2.3.4:0", None),
            ("[::1]:443=cubic", "[::1]:443", "[::1]:443", Some("cubic")),
            ("internal@[::1]:443", "internal", "[::1]:443", None),
            ("in-1@1.2.3.4:80=bbr", "in-1", "1.2.3.4:80", Some("bbr")),
        ] {
            let listen: Listen = text.parse().expect("a listener");
            assert_eq!(listen.address, address.parse().expect("an address"));
            assert_eq!((listen.name.as_str(), listen.cc.as_deref()), (name, cc));
        }
        for wrong in [
            "443",
            "localhost:80",
            "1.2.3.4",
            "1.2.3.4:80=",
            "[::]:80:bbr",
            "@1.2.3.4:80",
            "a@",
            "a b@1.2.3.4:80",
            "a@b@1.2.3.4:80",
        ] {
            assert!(wrong.parse::<Listen>().is_err(), "{wrong}");
        }
    }
}
