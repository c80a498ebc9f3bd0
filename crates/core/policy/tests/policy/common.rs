//! A policy with every feature, and a request.

use uncork_policy::{Fact, Facts, Headers, Policy, UnixTime};
use uncork_units::ByteCount;

pub(crate) const EXAMPLE: &str = r#"
decide = "each_request"
key = "000102030405060708090a0b0c0d0e0f"

[default]
quic = "cubic"
tcp = "cubic"

[experiment.holdback]
unit = "prefix"
share = "10%"

[experiment.holdback.arm.cubic]
weight = 1

[experiment.fleet]
unit = "cookie:uid"
share = "50%"
salt = "fleet-1"

[experiment.fleet.arm.control]
weight = 2

[experiment.fleet.arm.bbr]
quic = "bbr3"
tcp = "bbr"

[[rule]]
name = "inside"
listener = "internal"
client = ["10.0.0.0/8", "fd00::/8"]
use = { quic = "cubic", tcp = "cubic" }

[[rule]]
experiment = "holdback"

[[rule]]
name = "place"
asn = "AS64500"
country = ["PE", "CL"]
time = { from = "18:00", to = "01:00", days = ["thu"] }
use = { tcp = "bbr" }

[[rule]]
sni = "*.cdn.example"
use = { quic = "bbr3:loss_floor" }

[[rule]]
name = "spotify"
host = "*-bbr*"
use = { quic = "bbr3", tcp = "bbr" }

[[rule]]
path = ["/audio/*", "/video/**"]
size = { min = "1MB", below = "1GB" }
use = { quic = "bbr2", initial_window = "32p", pacing_cap = "50mbit" }

[[rule]]
name = "flags"
query = { bbr = "1" }
header = { X-Client = "ios/*" }
cookie = { beta = "*" }
use = { quic = "reno" }

[[rule]]
experiment = "fleet"
"#;

pub(crate) fn policy(text: &str) -> Policy {
    match Policy::parse("test", text) {
        Ok(policy) => policy,
        Err(error) => panic!("{}", error.render("test.toml", false)),
    }
}

/// A request with all facts known. No rule of the example matches it.
pub(crate) fn request(headers: &dyn Headers) -> Facts<'_> {
    Facts {
        listener: Fact::Known("public"),
        client: Fact::Known("203.0.113.9".parse().expect("an address")),
        asn: Fact::Known(64_999),
        country: Fact::Known("DE".parse().expect("a country")),
        accepted: Fact::Known(UnixTime(0)),
        sni: Fact::Known("media.example"),
        host: Fact::Known("media.example"),
        path: Fact::Known("/index.html"),
        query: Fact::Known(""),
        headers: Fact::Known(headers),
        size: Fact::Known(ByteCount::new(5000)),
    }
}

pub(crate) const NO_HEADERS: [(&str, &str); 0] = [];
