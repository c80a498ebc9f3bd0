//! Handles admin requests.

use std::net::IpAddr;
use std::sync::Arc;

use bytes::Bytes;
use http::{HeaderName, HeaderValue, Method, Request, Response, StatusCode, header};

use super::page;
use crate::quic::QuicHealth;
use crate::shared::Stop;
use crate::site::SiteBody;
use crate::telemetry::{METRICS_TYPE, Metrics};

/// Handles admin requests.
pub(crate) struct AdminService {
    pub(crate) metrics: Arc<Metrics>,
    pub(crate) stop: Stop,
    /// The health of HTTP/3 workers, by listener.
    pub(crate) quic: Vec<QuicHealth>,
    /// Whether only programs on this machine can connect, including browsers.
    pub(crate) is_loopback: bool,
}

/// The status, content type and body of a response.
struct AdminAnswer {
    status: StatusCode,
    kind: &'static str,
    text: Bytes,
}

impl AdminService {
    pub(super) fn answer<B>(&self, request: &Request<B>) -> Response<SiteBody> {
        let is_head = *request.method() == Method::HEAD;
        let found = if self.is_misled(request) {
            plain(StatusCode::MISDIRECTED_REQUEST, "ask by address, or for localhost\n")
        } else if !is_head && *request.method() != Method::GET {
            plain(StatusCode::METHOD_NOT_ALLOWED, "GET and HEAD alone are answered\n")
        } else {
            self.find(request.uri().path())
        };
        let length = found.text.len();
        let mut response =
            Response::new(SiteBody::text(if is_head { Bytes::new() } else { found.text }));
        *response.status_mut() = found.status;
        let headers = response.headers_mut();
        headers.insert(header::CONTENT_LENGTH, length.into());
        let fixed = [
            (header::CONTENT_TYPE, found.kind),
            (header::CONTENT_SECURITY_POLICY, page::SECURITY_POLICY),
            (header::X_CONTENT_TYPE_OPTIONS, "nosniff"),
            (header::REFERRER_POLICY, "no-referrer"),
            (header::CACHE_CONTROL, "no-store"),
            (HeaderName::from_static("cross-origin-resource-policy"), "same-origin"),
        ];
        headers.extend(fixed.map(|(name, value)| (name, HeaderValue::from_static(value))));
        if found.status == StatusCode::METHOD_NOT_ALLOWED {
            headers.insert(header::ALLOW, HeaderValue::from_static("GET, HEAD"));
        }
        response
    }

    /// Whether the request names a foreign host. A web page with a host name that resolves to this
    /// machine could otherwise read the responses (DNS rebinding). Addresses and `localhost` are
    /// safe: no web page can use them as its host.
    fn is_misled<B>(&self, request: &Request<B>) -> bool {
        let named = request.headers().get(header::HOST).and_then(|host| host.to_str().ok());
        let host = request.uri().host().or(named).unwrap_or_default();
        let name = match host.strip_prefix('[').and_then(|host| host.split_once(']')) {
            Some((inside, _)) => inside,
            None => host.split_once(':').map_or(host, |(name, _)| name),
        };
        self.is_loopback
            && name.parse::<IpAddr>().is_err()
            && !name.eq_ignore_ascii_case("localhost")
    }

    fn find(&self, path: &str) -> AdminAnswer {
        let is_draining = self.stop.borrow().is_some();
        match path {
            "/" => AdminAnswer {
                status: StatusCode::OK,
                kind: "text/html; charset=utf-8",
                text: Bytes::from_static(page::HTML.as_bytes()),
            },
            "/healthz" if is_draining => plain(StatusCode::SERVICE_UNAVAILABLE, "draining\n"),
            "/healthz" => self.health(),
            "/metrics" => document(METRICS_TYPE, self.metrics.exposition()),
            "/status.json" => {
                let status = serde_json::to_string(&self.metrics.status(is_draining));
                document("application/json", status)
            }
            _ => {
                plain(StatusCode::NOT_FOUND, "not found; try /, /healthz, /metrics, /status.json\n")
            }
        }
    }

    fn health(&self) -> AdminAnswer {
        let failures: Vec<String> = self.quic.iter().flat_map(QuicHealth::failures).collect();
        if failures.is_empty() {
            return plain(StatusCode::OK, "serving\n");
        }
        let text = Bytes::from(format!("failed: {}\n", failures.join("; ")));
        AdminAnswer { text, ..plain(StatusCode::SERVICE_UNAVAILABLE, "") }
    }
}

fn plain(status: StatusCode, text: &'static str) -> AdminAnswer {
    AdminAnswer {
        status,
        kind: "text/plain; charset=utf-8",
        text: Bytes::from_static(text.as_bytes()),
    }
}

fn document<E>(kind: &'static str, text: Result<String, E>) -> AdminAnswer {
    match text {
        Ok(text) => AdminAnswer { status: StatusCode::OK, kind, text: text.into() },
        Err(_) => plain(StatusCode::INTERNAL_SERVER_ERROR, "this cannot be written\n"),
    }
}
