//! The part of the configuration that a reload can change.

use std::net::IpAddr;
use std::time::{Instant, SystemTime};

use http::{Request, Response};
use uncork_policy::Prefixes;

use crate::choice::host;
use crate::error::ServeError;
use crate::request_limiter::RequestLimiter;
use crate::server_timing::ServerTiming;
use crate::site::{Answer, SiteBody, Sites, too_many};
use crate::spec::ServerSpec;

/// What requests find in force when they come.
#[derive(Debug)]
pub(crate) struct Live {
    pub(crate) sites: Sites,
    pub(crate) server_timing: ServerTiming,
    /// Networks of proxies that tell for whom they connect.
    pub(crate) proxies: Prefixes,
    requests: Option<RequestLimiter>,
}

impl Live {
    /// What `spec` says. `before` is what was in force.
    pub(crate) fn new(
        spec: &ServerSpec,
        before: Option<&Self>,
        epoch: Instant,
    ) -> Result<Self, ServeError> {
        let limiter = |per_second| RequestLimiter::new(per_second, epoch);
        Ok(Self {
            sites: Sites::open(spec, before.map(|it| &it.sites))?,
            server_timing: spec.server_timing.clone(),
            proxies: spec.proxies.clone(),
            requests: spec.limits.network_requests.map(limiter),
        })
    }

    /// Counts a request of a client network. The result refuses it if that has sent too many.
    pub(crate) fn limit(&self, network: IpAddr, now: Instant) -> Option<Response<SiteBody>> {
        let limiter = self.requests.as_ref()?;
        limiter.admit(network, now).err().map(too_many)
    }

    /// Answers a request.
    pub(crate) fn respond(&self, request: &Request<()>, today: SystemTime) -> Answer {
        self.sites.of(host(request)).respond(request, today)
    }
}
