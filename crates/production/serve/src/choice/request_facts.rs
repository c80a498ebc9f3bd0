//! The facts about a request that a policy can use.

use http::{HeaderMap, Request, header};
use uncork_policy::{Fact, Facts, Headers};
use uncork_units::ByteCount;

/// The facts about one request.
#[derive(Debug)]
pub(crate) struct RequestFacts<'a> {
    host: Option<&'a str>,
    path: Option<&'a str>,
    query: Option<&'a str>,
    fields: RequestFields<'a>,
    size: Option<u64>,
}

#[derive(Debug)]
struct RequestFields<'a>(&'a HeaderMap);

impl<'a> RequestFacts<'a> {
    /// `path` is decoded, and `None` if no file can have it. `size` is the size of the whole
    /// requested file, if it exists.
    pub(crate) fn new<B>(
        request: &'a Request<B>,
        path: Option<&'a str>,
        size: Option<u64>,
    ) -> Self {
        Self {
            host: host(request),
            path,
            query: request.uri().query(),
            fields: RequestFields(request.headers()),
            size,
        }
    }

    /// Combines the facts about the `connection` with those about the request. Missing ones are
    /// absent.
    pub(super) fn with<'b>(&'b self, connection: Facts<'b>) -> Facts<'b> {
        let request = Facts {
            host: Fact::known_or_absent(self.host),
            path: Fact::known_or_absent(self.path),
            query: Fact::known_or_absent(self.query),
            headers: Fact::Known(&self.fields),
            size: Fact::known_or_absent(self.size.map(ByteCount::new)),
            ..connection
        };
        request.with_whole_request()
    }
}

/// The requested host: `:authority` or the host of an absolute target, which takes precedence over
/// `Host` (RFC 9112 §3.2.2).
pub(crate) fn host<B>(request: &Request<B>) -> Option<&str> {
    let named = request.uri().host();
    named.or_else(|| request.headers().get(header::HOST)?.to_str().ok())
}

impl Headers for RequestFields<'_> {
    fn any(&self, name: &str, test: &mut dyn FnMut(&[u8]) -> bool) -> bool {
        self.0.get_all(name).iter().any(|value| test(value.as_bytes()))
    }
}
