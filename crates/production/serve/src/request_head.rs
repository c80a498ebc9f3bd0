//! What a request's head must say, over every version of HTTP.

use http::header::{CONTENT_LENGTH, HOST, TRANSFER_ENCODING};
use http::uri::{Authority, Scheme};
use http::{HeaderMap, Request, Version};

/// Why a request is not answered.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum HeadFault {
    /// It gets the status 400.
    BadRequest,
    /// It is malformed: HTTP/2 resets its stream (RFC 9113 §8.1.1), HTTP/3 too (RFC 9114 §4.1.2). HTTP/1.1 has the status 400.
    Malformed,
}

/// Checks that the request is for one host, and that its lengths agree.
pub(crate) fn check_head<B>(request: &Request<B>) -> Result<(), HeadFault> {
    check_host(request)?;
    if request.version() < Version::HTTP_2 {
        return check_codings(request.headers());
    }
    content_length(request.headers()).map(|_| ())
}

/// The length of the body that the head announces. All of its fields must have the same one (RFC 9110 §8.6).
pub(crate) fn content_length(headers: &HeaderMap) -> Result<Option<u64>, HeadFault> {
    let mut length = None;
    for value in headers.get_all(CONTENT_LENGTH) {
        let digits = value.to_str().ok().filter(|it| it.bytes().all(|byte| byte.is_ascii_digit()));
        let this = digits.and_then(|it| it.parse().ok()).ok_or(HeadFault::Malformed)?;
        if length.replace(this).is_some_and(|before| before != this) {
            return Err(HeadFault::Malformed);
        }
    }
    Ok(length)
}

/// RFC 9110 §7.2, RFC 9112 §3.2, RFC 9113 §8.3.1, RFC 9114 §4.3.1. A server in front that reads the other one of two names would
/// take a response for that of another host.
fn check_host<B>(request: &Request<B>) -> Result<(), HeadFault> {
    let authority = request.uri().authority();
    if authority.is_some_and(|authority| authority.as_str().contains('@')) {
        return Err(HeadFault::Malformed);
    }
    let mut hosts = request.headers().get_all(HOST).iter();
    let (host, other) = (hosts.next(), hosts.next());
    let is_http1 = request.version() < Version::HTTP_2;
    let is_named = match request.version() {
        Version::HTTP_11 => host.is_some(),
        Version::HTTP_2 | Version::HTTP_3 => authority.is_some() || host.is_some(),
        _ => true,
    };
    let is_valid = host.is_none_or(|host| is_host(host.as_bytes()) || host.is_empty() && is_http1);
    if !is_named || other.is_some() || !is_valid {
        return Err(HeadFault::BadRequest);
    }
    match (authority, host) {
        // RFC 9112 §3.2.2: HTTP/1.1 ignores `Host` if the target has one.
        (Some(authority), Some(host)) if !is_http1 => {
            let scheme = request.uri().scheme();
            let host = Authority::try_from(host.as_bytes()).map_err(|_| HeadFault::BadRequest)?;
            let is_same = is_same(authority, &host, scheme);
            is_same.then_some(()).ok_or(HeadFault::Malformed)
        }
        _ => Ok(()),
    }
}

/// Whether both are the same, with letters of any case and with or without the scheme's port (RFC 3986 §6.2).
fn is_same(one: &Authority, other: &Authority, scheme: Option<&Scheme>) -> bool {
    let usual = if scheme == Some(&Scheme::HTTP) { 80 } else { 443 };
    let port = |it: &Authority| it.port_u16().unwrap_or(usual);
    one.host().eq_ignore_ascii_case(other.host()) && port(one) == port(other)
}

/// Whether the text is a host, with or without a port.
fn is_host(text: &[u8]) -> bool {
    let Ok(authority) = Authority::try_from(text) else { return false };
    let port =
        authority.as_str().strip_prefix(authority.host()).filter(|_| !authority.host().is_empty());
    port.is_some_and(|port| {
        port.is_empty()
            || port.strip_prefix(':').is_some_and(|it| it.bytes().all(|b| b.is_ascii_digit()))
    })
}

/// A body is chunked once at most (RFC 9112 §6.1): a server in front might take the second coding for content.
fn check_codings(headers: &HeaderMap) -> Result<(), HeadFault> {
    let codings = headers.get_all(TRANSFER_ENCODING).iter();
    let codings = codings.flat_map(|value| value.as_bytes().split(|byte| *byte == b','));
    let chunked = codings.filter(|it| it.trim_ascii().eq_ignore_ascii_case(b"chunked")).count();
    if chunked > 1 { Err(HeadFault::BadRequest) } else { Ok(()) }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn check(version: Version, uri: &str, fields: &[(&str, &str)]) -> Result<(), HeadFault> {
        let request = Request::builder().version(version).uri(uri);
        let request = fields.iter().fold(request, |it, (name, value)| it.header(*name, *value));
        check_head(&request.body(()).expect("a request"))
    }

    #[test]
    fn valid_hosts_are_names_or_addresses_with_optional_port() {
        for host in ["a", "a.example:80", "[::1]:8080", "127.0.0.1", "a:"] {
            assert!(is_host(host.as_bytes()), "{host}");
        }
        for host in ["a b", "a/c", "c@d", "a:b", "a:80x", ":80", "[::1", "\u{e9}", "a,b:1 2"] {
            assert!(!is_host(host.as_bytes()), "{host}");
        }
    }

    #[test]
    fn a_request_of_http2_and_3_is_for_one_host() {
        let (bad, malformed) = (Err(HeadFault::BadRequest), Err(HeadFault::Malformed));
        for version in [Version::HTTP_2, Version::HTTP_3] {
            for (uri, hosts, expected) in [
                ("https://a/x", &[][..], Ok(())),
                ("https://a/x", &[("host", "a")], Ok(())),
                ("https://A:443/x", &[("host", "a")], Ok(())),
                ("/x", &[("host", "a")], Ok(())),
                ("/x", &[], bad),
                ("/x", &[("host", "")], bad),
                ("https://a/x", &[("host", "a"), ("host", "a")], bad),
                ("https://a/x", &[("host", "a b")], bad),
                ("https://a/x", &[("host", "b")], malformed),
                ("https://a/x", &[("host", "a:8443")], malformed),
                ("http://a:443/x", &[("host", "a")], malformed),
                ("https://u@a/x", &[], malformed),
            ] {
                assert_eq!(check(version, uri, hosts), expected, "{uri} {hosts:?}");
            }
        }
    }

    #[test]
    fn http1_ignores_the_host_field_if_the_target_has_a_host() {
        let bad = Err(HeadFault::BadRequest);
        assert_eq!(check(Version::HTTP_11, "http://a/x", &[("host", "b")]), Ok(()));
        assert_eq!(check(Version::HTTP_11, "http://a/x", &[]), bad);
        assert_eq!(
            check(Version::HTTP_11, "http://u@a/x", &[("host", "a")]),
            Err(HeadFault::Malformed)
        );
        assert_eq!(check(Version::HTTP_10, "/x", &[]), Ok(()));
    }

    #[test]
    fn lengths_agree_and_bodies_are_chunked_once() {
        for (lengths, expected) in [
            (&["5"][..], Ok(Some(5))),
            (&["5", "5"], Ok(Some(5))),
            (&[], Ok(None)),
            (&["0", "1"], Err(HeadFault::Malformed)),
            (&["+5"], Err(HeadFault::Malformed)),
            (&[""], Err(HeadFault::Malformed)),
        ] {
            let mut headers = HeaderMap::new();
            for length in lengths {
                headers.append(CONTENT_LENGTH, length.parse().expect("a value"));
            }
            assert_eq!(content_length(&headers), expected, "{lengths:?}");
        }
        let coded = |codings: &[(&str, &str)]| check(Version::HTTP_10, "/x", codings);
        assert_eq!(coded(&[("transfer-encoding", "gzip, Chunked")]), Ok(()));
        assert_eq!(coded(&[("transfer-encoding", "chunked, chunked")]), Err(HeadFault::BadRequest));
        let twice = [("transfer-encoding", "chunked"), ("transfer-encoding", "chunked")];
        assert_eq!(coded(&twice), Err(HeadFault::BadRequest));
    }
}
