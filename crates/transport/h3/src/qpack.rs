//! Heads of responses in QPACK (RFC 9204), without the dynamic table and Huffman coding.
//!
//! `h3` can encode them too, but allocates several times for each field, which is a sixth of what a small response
//! costs.

use bytes::{BufMut, BytesMut};
use http::{HeaderMap, HeaderName, HeaderValue, StatusCode, header};

/// Bytes that a field adds to the size of a field section (RFC 9114 §4.2.2).
const FIELD: usize = 32;
const STATUS: &[u8] = b":status";

/// Where a field is in the static table (RFC 9204, Appendix A): the index of the first one with the name, and
/// those of some values.
struct StaticIndex(u64, &'static [(&'static [u8], u64)]);

/// The names of the static table that responses of a server have.
fn known(name: &HeaderName) -> Option<StaticIndex> {
    const TYPES: &[(&[u8], u64)] = &[
        (b"application/javascript", 45),
        (b"application/json", 46),
        (b"image/gif", 48),
        (b"image/jpeg", 49),
        (b"image/png", 50),
        (b"text/css", 51),
        (b"text/html; charset=utf-8", 52),
        (b"text/plain", 53),
    ];
    const CACHING: &[(&[u8], u64)] = &[
        (b"max-age=0", 36),
        (b"max-age=2592000", 37),
        (b"max-age=604800", 38),
        (b"no-cache", 39),
        (b"no-store", 40),
        (b"public, max-age=31536000", 41),
    ];
    Some(match *name {
        header::AGE => StaticIndex(2, &[]),
        header::CONTENT_DISPOSITION => StaticIndex(3, &[]),
        header::CONTENT_LENGTH => StaticIndex(4, &[(b"0", 4)]),
        header::DATE => StaticIndex(6, &[]),
        header::ETAG => StaticIndex(7, &[]),
        header::LAST_MODIFIED => StaticIndex(10, &[]),
        header::LINK => StaticIndex(11, &[]),
        header::LOCATION => StaticIndex(12, &[]),
        header::ACCEPT_RANGES => StaticIndex(32, &[(b"bytes", 32)]),
        header::ACCESS_CONTROL_ALLOW_HEADERS => StaticIndex(33, &[]),
        header::ACCESS_CONTROL_ALLOW_ORIGIN => StaticIndex(35, &[(b"*", 35)]),
        header::CACHE_CONTROL => StaticIndex(36, CACHING),
        header::CONTENT_ENCODING => StaticIndex(42, &[(b"br", 42), (b"gzip", 43)]),
        header::CONTENT_TYPE => StaticIndex(44, TYPES),
        header::STRICT_TRANSPORT_SECURITY => StaticIndex(56, &[]),
        header::VARY => StaticIndex(59, &[(b"accept-encoding", 59), (b"origin", 60)]),
        header::X_CONTENT_TYPE_OPTIONS => StaticIndex(61, &[(b"nosniff", 61)]),
        header::ACCESS_CONTROL_ALLOW_METHODS => StaticIndex(76, &[]),
        header::ACCESS_CONTROL_EXPOSE_HEADERS => StaticIndex(79, &[]),
        header::ALT_SVC => StaticIndex(83, &[]),
        header::CONTENT_SECURITY_POLICY => StaticIndex(85, &[]),
        header::X_FRAME_OPTIONS => StaticIndex(97, &[]),
        _ => return None,
    })
}

/// The size of a head by the measure of RFC 9114 §4.2.2.
pub(crate) fn size(headers: &HeaderMap) -> usize {
    let fields = headers.iter().map(|(name, value)| name.as_str().len() + value.len() + FIELD);
    STATUS.len() + 3 + FIELD + fields.sum::<usize>()
}

/// Appends a field section. It is shorter than [`size`] says.
pub(crate) fn encode(status: StatusCode, headers: &HeaderMap, out: &mut BytesMut) {
    // It refers to nothing in the dynamic table.
    out.put_slice(&[0, 0]);
    match status {
        StatusCode::OK => integer(out, 0xc0, 6, 25),
        StatusCode::NOT_MODIFIED => integer(out, 0xc0, 6, 26),
        StatusCode::NOT_FOUND => integer(out, 0xc0, 6, 27),
        StatusCode::PARTIAL_CONTENT => integer(out, 0xc0, 6, 65),
        _ => {
            integer(out, 0x50, 4, 24);
            text(out, 0, 7, status.as_str().as_bytes());
        }
    }
    for (name, value) in headers {
        field(out, name, value);
    }
}

fn field(out: &mut BytesMut, name: &HeaderName, value: &HeaderValue) {
    let value = value.as_bytes();
    let Some(StaticIndex(index, values)) = known(name) else {
        text(out, 0x20, 3, name.as_str().as_bytes());
        return text(out, 0, 7, value);
    };
    if let Some((_, index)) = values.iter().find(|(known, _)| *known == value) {
        return integer(out, 0xc0, 6, *index);
    }
    integer(out, 0x50, 4, index);
    text(out, 0, 7, value);
}

fn text(out: &mut BytesMut, flags: u8, bits: u8, text: &[u8]) {
    integer(out, flags, bits, text.len() as u64);
    out.put_slice(text);
}

/// A prefixed integer (RFC 7541 §5.1).
fn integer(out: &mut BytesMut, flags: u8, bits: u8, value: u64) {
    let most = (1 << bits) - 1;
    if value < most {
        return out.put_u8(flags | value as u8);
    }
    out.put_u8(flags | most as u8);
    let mut rest = value - most;
    while rest >= 0x80 {
        out.put_u8(rest as u8 | 0x80);
        rest >>= 7;
    }
    out.put_u8(rest as u8);
}
