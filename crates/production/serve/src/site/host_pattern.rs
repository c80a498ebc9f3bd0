//! Names of virtual hosts.

use std::fmt;
use std::str::FromStr;

use thiserror::Error;

/// A host's name, such as `example.org`, or all names one label below it: `*.example.org`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct HostPattern {
    name: String,
    is_wildcard: bool,
}

/// The error for a text that is not a host name.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Error)]
#[error(
    "not a host name; write letters, digits, hyphens and dots, as in `example.org`, or `*.example.org` for all names \
     one label below it"
)]
pub struct HostPatternError;

impl HostPattern {
    /// Whether `host` is such a name; a port and a dot behind it do not matter.
    pub fn matches(&self, host: &str) -> bool {
        let host = without_port(host);
        let host = host.strip_suffix('.').unwrap_or(host);
        if !self.is_wildcard {
            return host.eq_ignore_ascii_case(&self.name);
        }
        let below = host.split_once('.').filter(|(label, _)| !label.is_empty());
        below.is_some_and(|(_, parent)| parent.eq_ignore_ascii_case(&self.name))
    }
}

/// A host as a request has it, without its port.
pub(crate) fn without_port(host: &str) -> &str {
    match host.rsplit_once(':') {
        // Colons are also in an address of IPv6, in brackets (RFC 3986 §3.2.2).
        Some((name, port)) if port.bytes().all(|it| it.is_ascii_digit()) => name,
        _ => host,
    }
}

impl FromStr for HostPattern {
    type Err = HostPatternError;

    fn from_str(text: &str) -> Result<Self, HostPatternError> {
        let (name, is_wildcard) = match text.strip_prefix("*.") {
            Some(name) => (name, true),
            None => (text, false),
        };
        let is_label = |label: &str| {
            let usual = |it: u8| it.is_ascii_alphanumeric() || matches!(it, b'-' | b'_');
            !label.is_empty() && label.len() <= 63 && label.bytes().all(usual)
        };
        if !name.split('.').all(is_label) {
            return Err(HostPatternError);
        }
        Ok(Self { name: name.to_owned(), is_wildcard })
    }
}

impl fmt::Display for HostPattern {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}{}", if self.is_wildcard { "*." } else { "" }, self.name)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_wildcard_is_one_label() {
        for (pattern, host, matches) in [
            ("example.org", "example.org", true),
            ("example.org", "EXAMPLE.org.:8443", true),
            ("example.org", "www.example.org", false),
            ("*.example.org", "www.example.org:443", true),
            ("*.example.org", "example.org", false),
            ("*.example.org", ".example.org", false),
            ("*.example.org", "a.b.example.org", false),
            ("127.0.0.1", "127.0.0.1:80", true),
            ("example.org", "", false),
            ("example.org", "[::1]:80", false),
        ] {
            let parsed: HostPattern = pattern.parse().unwrap();
            assert_eq!(parsed.matches(host), matches, "{pattern} {host}");
            assert_eq!(parsed.to_string(), pattern);
        }
    }

    #[test]
    fn texts_that_are_not_names_are_refused() {
        for text in ["", "*", "*.", "a..b", "a b", "*.*.a", "a*", "a:80", "[::1]", "é.example"] {
            assert_eq!(text.parse::<HostPattern>(), Err(HostPatternError), "{text}");
        }
    }
}
