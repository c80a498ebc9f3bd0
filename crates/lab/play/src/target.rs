//! URLs to fetch.

use std::fmt;
use std::str::FromStr;

use http::Uri;
use http::uri::Scheme;

use crate::ClientError;

/// An HTTP or HTTPS URL: `https://example.org/file`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Target {
    pub(crate) uri: Uri,
    pub(crate) host: String,
    pub(crate) port: u16,
    pub(crate) is_tls: bool,
}

impl Target {
    /// The path, without the query.
    pub fn path(&self) -> &str {
        self.uri.path()
    }

    /// Path and query, as in a request line.
    pub(crate) fn path_and_query(&self) -> &str {
        self.uri.path_and_query().map_or("/", |all| all.as_str())
    }

    /// Host, and port if given.
    pub(crate) fn authority(&self) -> &str {
        self.uri.authority().map_or("", |authority| authority.as_str())
    }

    /// Whether both have the same origin, so one connection can serve both.
    pub fn has_origin_of(&self, other: &Self) -> bool {
        (&self.host, self.port, self.is_tls) == (&other.host, other.port, other.is_tls)
    }

    /// The URL with `name=value` added to its query; both must be percent-encoded.
    pub(crate) fn with_query(&self, name: &str, value: &str) -> Result<Self, ClientError> {
        let sign = if self.uri.query().is_some() { '&' } else { '?' };
        format!("{self}{sign}{name}={value}").parse()
    }
}

impl fmt::Display for Target {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.uri.fmt(f)
    }
}

impl FromStr for Target {
    type Err = ClientError;

    fn from_str(text: &str) -> Result<Self, ClientError> {
        let wrong = |problem: &str| ClientError::Url {
            url: text.to_owned(),
            problem: format!("{problem}; write https://example.org/file"),
        };
        let uri: Uri = text.parse().map_err(|error| wrong(&format!("{error}")))?;
        let is_tls = match uri.scheme() {
            Some(scheme) if *scheme == Scheme::HTTPS => true,
            Some(scheme) if *scheme == Scheme::HTTP => false,
            Some(_) => return Err(wrong("only http and https are known")),
            None => return Err(wrong("it has no scheme")),
        };
        let authority = uri.authority().ok_or_else(|| wrong("it has no host"))?;
        if authority.as_str().contains('@') {
            return Err(wrong("names and passwords are not sent"));
        }
        let host = authority.host();
        if authority.as_str().len() > host.len() && uri.port().is_none() {
            return Err(wrong("its port is none"));
        }
        // An IPv6 address is in brackets.
        let host = host.strip_prefix('[').and_then(|host| host.strip_suffix(']')).unwrap_or(host);
        if host.is_empty() {
            return Err(wrong("it has no host"));
        }
        let host = host.to_owned();
        let port = match uri.port() {
            Some(port) => port.as_u16(),
            None if is_tls => 443,
            None => 80,
        };
        Ok(Self { uri, host, port, is_tls })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn urls_are_parsed() {
        let target: Target = "https://[::1]:8443/a/b?c=d".parse().expect("an address");
        assert_eq!((target.host.as_str(), target.port, target.is_tls), ("::1", 8443, true));
        assert_eq!((target.path(), target.path_and_query()), ("/a/b", "/a/b?c=d"));
        assert_eq!(target.authority(), "[::1]:8443");
        let target: Target = "http://example.org".parse().expect("an address");
        assert_eq!((target.host.as_str(), target.port, target.is_tls), ("example.org", 80, false));
        assert_eq!(target.path_and_query(), "/");
    }

    #[test]
    fn a_query_is_extended() {
        let with = |text: &str| {
            let target: Target = text.parse().expect("an address");
            target.with_query("CMCD", "su").expect("an address").to_string()
        };
        assert_eq!(with("http://a/b"), "http://a/b?CMCD=su");
        assert_eq!(with("http://a/b?c"), "http://a/b?c&CMCD=su");
        assert_eq!(with("http://a"), "http://a/?CMCD=su");
    }

    #[test]
    fn invalid_urls_are_rejected_with_the_reason() {
        for (text, problem) in [
            ("file", "it has no scheme"),
            ("ftp://a/b", "only http and https"),
            ("http://me:secret@a/b", "names and passwords"),
            ("http://a b", "invalid"),
            ("", "empty"),
            ("http://a:99999/", "its port is none"),
        ] {
            let error = text.parse::<Target>().expect_err(text).to_string();
            assert!(error.contains(problem) && error.contains("write https://"), "{error}");
        }
    }
}
