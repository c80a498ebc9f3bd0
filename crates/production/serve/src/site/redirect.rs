//! Paths that have moved.

use http::{StatusCode, Uri};
use thiserror::Error;

use super::host_pattern::without_port;

/// Sends requests for a path elsewhere.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Redirect {
    /// A path, or all paths that begin with it.
    from: Pattern,
    /// A path or a URL; what stood for the `*` of `from` comes behind it if `takes_rest`.
    to: String,
    takes_rest: bool,
    /// The status of the response.
    status: StatusCode,
}

#[derive(Clone, Debug, PartialEq, Eq)]
enum Pattern {
    Path(String),
    /// The path ends with `/`.
    Below(String),
}

/// Why there cannot be such a redirect.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Error)]
pub enum RedirectError {
    /// `from` is not a path.
    #[error(
        "not a path; write a path such as `/old`, or `/old/*` for all paths that begin with `/old/`"
    )]
    From,
    /// `to` is not a path or a URL.
    #[error("not a path or a URL; write `/new`, `/new/*` or `https://example.org/new/*`")]
    To,
    /// `to` has a `*`, but `from` has none.
    #[error("`*` in `to` needs one in `from`; write `/old/*` there, or leave it out here")]
    NoRest,
    /// The status does not redirect.
    #[error("not a status of redirects; write 301, 302, 303, 307 or 308")]
    Status,
}

impl Redirect {
    /// From `from`, a path or `/path/*`, to `to`, a path or URL that may end with `/*`.
    ///
    /// # Errors
    ///
    /// See [`RedirectError`].
    pub fn new(from: &str, to: &str, status: u16) -> Result<Self, RedirectError> {
        let is_path = |text: &str| {
            text.starts_with('/') && !text.starts_with("//") && text.parse::<Uri>().is_ok()
        };
        let (path, is_below) = split(from);
        if !is_path(path) || path.contains(['*', '?', '\\']) {
            return Err(RedirectError::From);
        }
        let (place, takes_rest) = split(to);
        let is_url = |text: &str| {
            let uri = text.parse::<Uri>().ok();
            uri.is_some_and(|uri| matches!(uri.scheme_str(), Some("http" | "https")))
        };
        if !(is_path(place) || is_url(place)) || place.contains(['*', '\\']) {
            return Err(RedirectError::To);
        }
        if takes_rest && !is_below {
            return Err(RedirectError::NoRest);
        }
        if ![301, 302, 303, 307, 308].contains(&status) {
            return Err(RedirectError::Status);
        }
        let status = StatusCode::from_u16(status).map_err(|_| RedirectError::Status)?;
        let path = path.to_owned();
        let from = if is_below { Pattern::Below(path) } else { Pattern::Path(path) };
        Ok(Self { from, to: place.to_owned(), takes_rest, status })
    }

    /// Where a request goes, with which status, if it is for such a path. The path must consist of plain names: one
    /// that begins with `//` would lead to another host.
    pub(super) fn apply(&self, uri: &Uri) -> Option<(StatusCode, String)> {
        let rest = match &self.from {
            Pattern::Path(path) => (uri.path() == path).then_some("")?,
            Pattern::Below(start) => uri.path().strip_prefix(start.as_str())?,
        };
        let mut location = self.to.clone();
        if self.takes_rest {
            location.push_str(rest);
        }
        if let Some(query) = uri.query().filter(|_| !location.contains('?')) {
            location.extend(["?", query]);
        }
        Some((self.status, location))
    }
}

/// The text without its `*`, and whether it ends with `/*`.
fn split(text: &str) -> (&str, bool) {
    match text.strip_suffix('*') {
        Some(start) if start.ends_with('/') => (start, true),
        _ => (text, false),
    }
}

/// The same of `host` by HTTPS at `port`. `host` may have a port of its own.
pub(crate) fn https_url(host: &str, port: u16, uri: &Uri) -> String {
    let host = without_port(host);
    let port = if port == 443 { String::new() } else { format!(":{port}") };
    let path = uri.path_and_query().map_or("/", |it| it.as_str());
    format!("https://{host}{port}{path}")
}

#[cfg(test)]
mod tests {
    use super::*;

    fn location(from: &str, to: &str, uri: &str) -> Option<String> {
        let redirect = Redirect::new(from, to, 308).unwrap();
        redirect.apply(&uri.parse().unwrap()).map(|(_, location)| location)
    }

    #[test]
    fn a_path_leads_elsewhere_with_what_is_below_it_and_its_query() {
        for (from, to, uri, expected) in [
            ("/old", "/new", "/old", Some("/new")),
            ("/old", "/new", "/old?a=b", Some("/new?a=b")),
            ("/old", "/new?c", "/old?a=b", Some("/new?c")),
            ("/old", "/new", "/older", None),
            ("/old/*", "/new/*", "/old/a%20b/c", Some("/new/a%20b/c")),
            ("/old/*", "/new/*", "/old", None),
            ("/old/*", "https://a.example/", "/old/x", Some("https://a.example/")),
            ("/*", "https://a.example/*", "/x?y", Some("https://a.example/x?y")),
        ] {
            assert_eq!(location(from, to, uri).as_deref(), expected, "{from} {to} {uri}");
        }
    }

    #[test]
    fn what_could_lead_to_another_host_is_refused() {
        for (from, to, error) in [
            ("old", "/new", RedirectError::From),
            ("/old*", "/*", RedirectError::From),
            ("//old", "/new", RedirectError::From),
            ("/old?a", "/new", RedirectError::From),
            ("/old", "//a.example", RedirectError::To),
            ("/old", "/\\a.example", RedirectError::To),
            ("/old/*", "/new*", RedirectError::To),
            ("/old", "javascript:x", RedirectError::To),
            ("/old", "/new/*", RedirectError::NoRest),
        ] {
            assert_eq!(Redirect::new(from, to, 308), Err(error), "{from} {to}");
        }
        assert_eq!(Redirect::new("/old", "/new", 200), Err(RedirectError::Status));
    }

    #[test]
    fn https_has_its_own_port() {
        let uri = "/a?b".parse().unwrap();
        assert_eq!(https_url("a.example:80", 443, &uri), "https://a.example/a?b");
        assert_eq!(https_url("[::1]:8080", 8443, &uri), "https://[::1]:8443/a?b");
    }
}
