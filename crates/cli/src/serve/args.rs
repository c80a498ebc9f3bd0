//! The arguments of `uncork serve`.

use std::net::SocketAddr;
use std::path::PathBuf;

use clap::Args;
use uncork_cc::CcSpec;
use uncork_units::TimeDelta;

use crate::args::count;

pub(super) const EXAMPLES: &str = "\
Examples:
  uncork serve --root public
  uncork serve --root public --self-signed --listen 0.0.0.0:8443 --cc bbr --quic-cc bbr3 --records responses.jsonl
  uncork serve --root public --policy policy.toml --listen public@127.0.0.1:8080 --listen internal@127.0.0.1:8081
  uncork serve --root public --tls-cert chain.pem --tls-key key.pem --listen '[::]:443' --listen '[::]:8443=cubic'";

pub(super) const AFTER: &str = "\
HTTP/1.1 and HTTP/2 over the kernel's TCP and, with TLS, HTTP/3 over QUIC at the same addresses. SIGTERM and Ctrl-C let responses come to their end for --grace; \
a second one ends at once. SIGHUP reads policy, databases and certificate again; so does a change of them. Files that begin with a dot, and links that lead out of the root, are not there.

Exit status: 0 stopped by a signal, or all is well (--check); 2 wrong usage; 3 the environment cannot do it \
(such as a congestion control that the kernel lacks, or an address that is taken); 5 a bug.";

/// What is served, where and to whom.
#[derive(Args, Debug)]
#[expect(clippy::struct_excessive_bools, reason = "each is a switch of the command line")]
pub(crate) struct ServeArgs {
    /// The directory to serve
    #[arg(long, value_name = "DIR", help_heading = "Files")]
    pub(super) root: PathBuf,
    /// Answer for a directory with its index.html
    #[arg(long, help_heading = "Files")]
    pub(super) index: bool,
    /// Send FILE.br, FILE.zst or FILE.gz in place of FILE to who takes it, unless it is older
    #[arg(long, help_heading = "Files")]
    pub(super) precompressed: bool,
    /// Let pages of this origin read what is served; * without a value
    #[arg(long, value_name = "ORIGIN", num_args = 0..=1, default_missing_value = "*")]
    #[arg(help_heading = "Files")]
    pub(super) cors: Option<String>,
    /// Cache-Control of all files, such as 'public, max-age=3600'
    #[arg(long, value_name = "VALUE", help_heading = "Files")]
    pub(super) cache_control: Option<String>,
    /// Where to listen; policies know the listener by NAME, or by ADDR:PORT as it is written here; a congestion
    /// control of its own goes behind =; may be repeated
    #[arg(long, value_name = "[NAME@]ADDR:PORT[=CC]", default_value = "127.0.0.1:8080")]
    #[arg(help_heading = "Transport")]
    pub(super) listen: Vec<Listen>,
    /// Congestion control of the other listeners, by the kernel's name: bbr, cubic; else the kernel chooses
    #[arg(long, value_name = "NAME", help_heading = "Transport")]
    pub(super) cc: Option<String>,
    /// Congestion control of connections over QUIC: cubic (as without it), bbr3, bbr1, reno
    #[arg(long, value_name = "SPEC", help_heading = "Transport")]
    pub(super) quic_cc: Option<CcSpec>,
    /// No HTTP/3: do not listen over UDP
    #[arg(long, help_heading = "Transport")]
    pub(super) no_http3: bool,
    /// The policy that chooses the congestion control of each connection (docs/policy.md)
    #[arg(long, value_name = "FILE", help_heading = "Transport")]
    pub(super) policy: Option<PathBuf>,
    /// Database in MaxMind's format that tells where clients are; several are asked in turn
    #[arg(long, value_name = "FILE.mmdb", help_heading = "Transport")]
    pub(super) geo: Vec<PathBuf>,
    /// The certificate and those between it and an authority, in PEM
    #[arg(long, value_name = "FILE", requires = "tls_key", help_heading = "Transport")]
    pub(super) tls_cert: Option<PathBuf>,
    /// Its private key, in PEM
    #[arg(long, value_name = "FILE", requires = "tls_cert", help_heading = "Transport")]
    pub(super) tls_key: Option<PathBuf>,
    /// Make a certificate at the start, which nobody trusts
    #[arg(long, conflicts_with = "tls_cert", help_heading = "Transport")]
    pub(super) self_signed: bool,
    /// HTTP without TLS beyond this machine, too
    #[arg(long, conflicts_with_all = ["tls_cert", "self_signed"], help_heading = "Transport")]
    pub(super) plain: bool,
    /// Connections of each listener at a time; others wait
    #[arg(long, value_name = "N", default_value = "10000", value_parser = count)]
    #[arg(help_heading = "Limits")]
    pub(super) connections: u32,
    /// How long responses may take to come to their end after SIGTERM
    #[arg(long, value_name = "TIME", default_value = "30s", help_heading = "Limits")]
    pub(super) grace: TimeDelta,
    /// Append a line of JSON for each response and each connection to FILE; or write files of Parquet to DIR/
    #[arg(long, value_name = "FILE|DIR/", help_heading = "Evidence")]
    pub(super) records: Option<PathBuf>,
    /// How often DIR/ gets files, if there is something to be written
    #[arg(long, value_name = "TIME", default_value = "5min", requires = "records")]
    #[arg(help_heading = "Evidence")]
    pub(super) records_every: TimeDelta,
    /// Records after which DIR/ gets a file, however soon: they wait in memory
    #[arg(long, value_name = "N", default_value = "50000", value_parser = count)]
    #[arg(requires = "records", help_heading = "Evidence")]
    pub(super) records_rows: u32,
    /// Write a file of qlog into DIR for each connection over HTTP/3, a thousand at most
    #[arg(long, value_name = "DIR", help_heading = "Evidence")]
    pub(super) qlog: Option<PathBuf>,
    /// Where /healthz, /metrics, /status.json and a page of them are, for operators of this machine
    #[arg(long, value_name = "ADDR:PORT|unix:PATH", help_heading = "Evidence")]
    pub(super) admin: Option<String>,
    /// Let --admin be reachable by others, too
    #[arg(long, requires = "admin", help_heading = "Evidence")]
    pub(super) admin_anywhere: bool,
    /// Find out whether it can be served, and end
    #[arg(long, help_heading = "Output")]
    pub(super) check: bool,
    /// Print no notes
    #[arg(short, long, help_heading = "Output")]
    pub(super) quiet: bool,
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
            return Err("a congestion control is expected behind '=': write 127.0.0.1:8080=bbr");
        }
        let (name, address) = place.split_once('@').unwrap_or((place, place));
        let usual = |c: char| c.is_ascii_graphic();
        if name.is_empty() || !name.chars().all(usual) {
            return Err(
                "a name without spaces is expected before '@': write internal@127.0.0.1:8080",
            );
        }
        let address = address.parse();
        let address = address
            .map_err(|_| "an address and a port are expected: write 127.0.0.1:8080 or [::]:8080")?;
        Ok(Self { name: name.to_owned(), address, cc: cc.map(str::to_owned) })
    }
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
