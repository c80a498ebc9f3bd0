//! How a directory is served.

use http::{HeaderName, HeaderValue, StatusCode, header};
use thiserror::Error;

use super::redirect::Redirect;

/// What an owner chooses about a directory. By default: files only, no headers but the needed ones.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct SiteOptions {
    /// A directory answers with its `index.html`.
    pub index: bool,
    /// `file.br`, `file.zst` and `file.gz` are sent in place of `file` to who takes them.
    pub precompressed: bool,
    /// Pages of this origin, or `*`, may read what is served.
    pub cors: Option<HeaderValue>,
    /// `Cache-Control` of all files.
    pub cache_control: Option<HeaderValue>,
    /// Headers of all responses.
    pub headers: Vec<OwnHeader>,
    /// Paths that have moved. The first that matches counts.
    pub redirects: Vec<Redirect>,
    /// Files below the root that are the bodies of responses with these statuses.
    pub error_pages: Vec<(StatusCode, String)>,
}

/// The statuses that can have a page of the owner's.
pub const PAGED_STATUSES: [u16; 7] = [400, 403, 404, 405, 412, 416, 500];

/// A header that an owner adds to responses.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct OwnHeader {
    pub(super) name: HeaderName,
    pub(super) value: HeaderValue,
}

/// Why there cannot be such a header.
#[derive(Clone, Debug, PartialEq, Eq, Error)]
pub enum OwnHeaderError {
    /// It is not a name.
    #[error(
        "not the name of a header; write letters, digits and hyphens, as in `Strict-Transport-Security`"
    )]
    Name,
    /// The value has characters that no header can have.
    #[error("not the value of a header; write printable ASCII")]
    Value,
    /// The server sets it.
    #[error("the server sets this header itself; leave it out{0}")]
    Reserved(&'static str),
}

/// What the server says of a message, of the file and of the connection: another value would be wrong.
const RESERVED: [(HeaderName, &str); 17] = [
    (header::ACCEPT_RANGES, ""),
    (header::ACCESS_CONTROL_ALLOW_ORIGIN, ", and use `cors`"),
    (header::ALT_SVC, ""),
    (header::CACHE_CONTROL, ", and use `cache_control`"),
    (header::CONNECTION, ""),
    (header::CONTENT_ENCODING, ""),
    (header::CONTENT_LENGTH, ""),
    (header::CONTENT_RANGE, ""),
    (header::CONTENT_TYPE, ""),
    (header::DATE, ""),
    (header::ETAG, ""),
    (header::LAST_MODIFIED, ""),
    (header::LOCATION, ", and use `redirect`"),
    (crate::timing::SERVER_TIMING, ", and use `server_timing`"),
    (header::TRANSFER_ENCODING, ""),
    (header::UPGRADE, ""),
    (header::VARY, ""),
];

impl OwnHeader {
    /// The header `name` with this value.
    ///
    /// # Errors
    ///
    /// See [`OwnHeaderError`].
    pub fn new(name: &str, value: &str) -> Result<Self, OwnHeaderError> {
        let name = HeaderName::try_from(name).map_err(|_| OwnHeaderError::Name)?;
        if let Some((_, remedy)) = RESERVED.iter().find(|(reserved, _)| *reserved == name) {
            return Err(OwnHeaderError::Reserved(remedy));
        }
        let value = HeaderValue::try_from(value).map_err(|_| OwnHeaderError::Value)?;
        Ok(Self { name, value })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn headers_that_the_server_sets_are_refused() {
        assert!(OwnHeader::new("Strict-Transport-Security", "max-age=1").is_ok());
        let refused = |name, value| OwnHeader::new(name, value).unwrap_err();
        assert_eq!(refused("content-LENGTH", "1"), OwnHeaderError::Reserved(""));
        assert!(refused("Cache-Control", "no-store").to_string().ends_with("use `cache_control`"));
        assert_eq!(refused("a b", "1"), OwnHeaderError::Name);
        assert_eq!(refused("a", "1\n2"), OwnHeaderError::Value);
    }
}
