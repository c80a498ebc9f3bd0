//! What a rule asks of a connection.

use uncork_units::ByteCount;

use crate::glob::Glob;
use crate::headers::{any_cookie, any_flag};
use crate::prefix::Prefixes;
use crate::window::Window;
use crate::{Country, Fact, Facts, Verdict};

/// A condition, and how it was written.
#[derive(Clone, Debug)]
pub(crate) struct Condition {
    pub(crate) test: Test,
    pub(crate) written: Box<str>,
}

/// What is tested. A list holds if one of its members does.
#[derive(Clone, Debug)]
pub(crate) enum Test {
    Listener(Box<[Glob]>),
    Client(Prefixes),
    /// In ascending order.
    Asn(Box<[u32]>),
    /// In ascending order.
    Country(Box<[Country]>),
    Time(Window),
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

/// Something with a name, and the values that it may have.
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
                facts.query.test(|query| any_flag(query, name, |value| any(values, value)))
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

    /// What the facts have to say to this test, in words: `the host is …`.
    pub(crate) fn found(&self, facts: &Facts<'_>) -> String {
        match self {
            Self::Listener(_) => said("the listener", facts.listener.map(quoted)),
            Self::Client(_) => said("the client", facts.client.map(|it| it.to_string())),
            Self::Asn(_) => said("the client's network", facts.asn.map(|asn| format!("AS{asn}"))),
            Self::Country(_) => said("the country", facts.country.map(|it| it.to_string())),
            Self::Time(_) => {
                said("the time", facts.accepted.map(|time| format!("{} s since 1970", time.0)))
            }
            Self::Sni(_) => said("the name in the handshake", facts.sni.map(quoted)),
            Self::Host(_) => said("the host", facts.host.map(quoted)),
            Self::Path(_) => said("the path", facts.path.map(quoted)),
            Self::Query(_) => said("the query", facts.query.map(quoted)),
            Self::Header(Named { name, .. }) => {
                let value = facts.headers.and_then(|headers| {
                    first(|note| {
                        headers.any(name, note);
                    })
                });
                said(&format!("the header `{name}`"), value)
            }
            Self::Cookie(Named { name, .. }) => {
                let value = facts.headers.and_then(|headers| {
                    first(|note| {
                        any_cookie(headers, name, note);
                    })
                });
                said(&format!("the cookie `{name}`"), value)
            }
            Self::Size { .. } => {
                said("the size", facts.size.map(|size: ByteCount| size.to_string()))
            }
        }
    }
}

fn any(globs: &[Glob], text: &[u8]) -> bool {
    globs.iter().any(|glob| glob.matches(text))
}

/// A host without its port and without the dot that may end a complete name.
fn host_name(host: &str) -> &str {
    let name = match host.rsplit_once(':') {
        // What stands in brackets is an address of IPv6, which has colons of its own.
        Some((name, port)) if !port.ends_with(']') => name,
        _ => host,
    };
    name.strip_suffix('.').unwrap_or(name)
}

fn quoted(text: &str) -> String {
    format!("`{}`", text.escape_debug())
}

fn said(what: &str, fact: Fact<String>) -> String {
    match fact {
        Fact::Unknown => format!("{what} is not known yet"),
        Fact::Absent => format!("{what} is absent"),
        Fact::Known(value) => format!("{what} is {value}"),
    }
}

/// The first value that `visit` comes to.
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
