//! The conditions of rules.

use uncork_units::ByteCount;

use crate::glob::Glob;
use crate::headers::{any_cookie, any_parameter};
use crate::prefix::Prefixes;
use crate::window::TimeWindow;
use crate::{Country, Fact, Facts, Verdict};

/// A condition and its source text.
#[derive(Clone, Debug)]
pub(crate) struct Condition {
    pub(crate) test: Test,
    pub(crate) written: Box<str>,
}

/// The test of a condition. A list matches if one of its members does.
#[derive(Clone, Debug)]
pub(crate) enum Test {
    Listener(Box<[Glob]>),
    Client(Prefixes),
    /// In ascending order.
    Asn(Box<[u32]>),
    /// In ascending order.
    Country(Box<[Country]>),
    Time(TimeWindow),
    Sni(Box<[Glob]>),
    Host(Box<[Glob]>),
    Path(Box<[Glob]>),
    Query(Named),
    Header(Named),
    Cookie(Named),
    Size {
        min: u64,
        below: u64,
    },
}

/// A name with patterns for its value.
#[derive(Clone, Debug)]
pub(crate) struct Named {
    pub(crate) name: Box<str>,
    pub(crate) values: Box<[Glob]>,
}

impl Test {
    pub(crate) fn verdict(&self, facts: &Facts<'_>) -> Verdict {
        match self {
            Self::Listener(globs) => facts.listener.test(|name| any(globs, name.as_bytes())),
            Self::Client(prefixes) => facts.client.test(|address| prefixes.contains(address)),
            Self::Asn(known) => facts.asn.test(|asn| known.binary_search(&asn).is_ok()),
            Self::Country(known) => facts.country.test(|it| known.binary_search(&it).is_ok()),
            Self::Time(window) => facts.accepted.test(|time| window.contains(time)),
            Self::Sni(globs) => facts.sni.test(|name| any(globs, host_name(name).as_bytes())),
            Self::Host(globs) => facts.host.test(|host| any(globs, host_name(host).as_bytes())),
            Self::Path(globs) => facts.path.test(|path| any(globs, path.as_bytes())),
            Self::Query(Named { name, values }) => {
                facts.query.test(|query| any_parameter(query, name, |value| any(values, value)))
            }
            Self::Header(Named { name, values }) => {
                facts.headers.test(|it| it.any(name, &mut |value| any(values, value)))
            }
            Self::Cookie(Named { name, values }) => {
                facts.headers.test(|it| any_cookie(it, name, &mut |value| any(values, value)))
            }
            Self::Size { min, below } => {
                facts.size.test(|size| (*min..*below).contains(&size.as_u64()))
            }
        }
    }

    /// The fact that this test reads, in words: `the host is …`.
    pub(crate) fn found(&self, facts: &Facts<'_>) -> String {
        match self {
            Self::Listener(_) => describe("the listener", facts.listener.map(quoted)),
            Self::Client(_) => describe("the client", facts.client.map(|it| it.to_string())),
            Self::Asn(_) => {
                describe("the client's network", facts.asn.map(|asn| format!("AS{asn}")))
            }
            Self::Country(_) => describe("the country", facts.country.map(|it| it.to_string())),
            Self::Time(_) => {
                describe("the time", facts.accepted.map(|time| format!("{} s since 1970", time.0)))
            }
            Self::Sni(_) => describe("the name in the handshake", facts.sni.map(quoted)),
            Self::Host(_) => describe("the host", facts.host.map(quoted)),
            Self::Path(_) => describe("the path", facts.path.map(quoted)),
            Self::Query(_) => describe("the query", facts.query.map(quoted)),
            Self::Header(Named { name, .. }) => {
                let value = facts.headers.and_then(|headers| {
                    first(|note| {
                        headers.any(name, note);
                    })
                });
                describe(&format!("the header `{name}`"), value)
            }
            Self::Cookie(Named { name, .. }) => {
                let value = facts.headers.and_then(|headers| {
                    first(|note| {
                        any_cookie(headers, name, note);
                    })
                });
                describe(&format!("the cookie `{name}`"), value)
            }
            Self::Size { .. } => {
                describe("the size", facts.size.map(|size: ByteCount| size.to_string()))
            }
        }
    }
}

fn any(globs: &[Glob], text: &[u8]) -> bool {
    globs.iter().any(|glob| glob.matches(text))
}

/// The host name, without port and trailing dot.
fn host_name(host: &str) -> &str {
    let name = match host.rsplit_once(':') {
        // An IPv6 address in brackets contains colons.
        Some((name, port)) if !port.ends_with(']') => name,
        _ => host,
    };
    name.strip_suffix('.').unwrap_or(name)
}

fn quoted(text: &str) -> String {
    format!("`{}`", text.escape_debug())
}

fn describe(what: &str, fact: Fact<String>) -> String {
    match fact {
        Fact::Unknown => format!("{what} is not known yet"),
        Fact::Absent => format!("{what} is absent"),
        Fact::Known(value) => format!("{what} is {value}"),
    }
}

/// The first value that `visit` passes to its callback.
fn first(visit: impl FnOnce(&mut dyn FnMut(&[u8]) -> bool)) -> Fact<String> {
    let mut found = None;
    visit(&mut |value| {
        found = Some(quoted(&String::from_utf8_lossy(value)));
        true
    });
    Fact::known_or_absent(found)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_host_is_a_name_without_port() {
        for (host, name) in [
            ("a.example", "a.example"),
            ("a.example:8443", "a.example"),
            ("a.example.", "a.example"),
            ("a.example.:443", "a.example"),
            ("[2001:db8::1]:443", "[2001:db8::1]"),
            ("[2001:db8::1]", "[2001:db8::1]"),
            ("", ""),
        ] {
            assert_eq!(host_name(host), name);
        }
    }
}
