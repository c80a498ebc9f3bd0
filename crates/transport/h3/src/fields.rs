//! Header fields that are forbidden in HTTP/3.

use http::{HeaderMap, HeaderName, header};

/// Connection-specific fields of HTTP/1.1 (RFC 9110 §7.6.1).
const OF_CONNECTIONS: [HeaderName; 5] = [
    header::CONNECTION,
    HeaderName::from_static("keep-alive"),
    HeaderName::from_static("proxy-connection"),
    header::TRANSFER_ENCODING,
    header::UPGRADE,
];

/// Whether a head has fields that make it malformed (RFC 9114 §4.2). `h3` does not check this.
pub fn are_malformed(headers: &HeaderMap) -> bool {
    let other_than_trailers =
        |te: &http::HeaderValue| !te.as_bytes().trim_ascii().eq_ignore_ascii_case(b"trailers");
    OF_CONNECTIONS.iter().any(|name| headers.contains_key(name))
        || headers.get_all(header::TE).iter().any(other_than_trailers)
}
