//! The part of the configuration that a reload can change.

use std::net::IpAddr;
use std::sync::Arc;
use std::time::{Instant, SystemTime};

use http::{Request, Response};
use uncork_policy::Prefixes;

use crate::choice::host;
use crate::error::ServeError;
use crate::limits::Limits;
use crate::network_limiter::NetworkLimiter;
use crate::server_timing::ServerTiming;
use crate::site::{Answer, SiteBody, Sites, Throttle, too_many};
use crate::spec::ServerSpec;

/// The part of the configuration that requests use and a reload replaces.
#[derive(Debug)]
pub(crate) struct Live {
    pub(crate) sites: Sites,
    pub(crate) server_timing: ServerTiming,
    /// Networks of proxies that name their clients.
    pub(crate) proxies: Prefixes,
    requests: Option<NetworkLimiter>,
    bytes: Option<Arc<NetworkLimiter>>,
}

impl Live {
    /// Opens the configuration in `spec`. `before` is the previous one.
    pub(crate) fn new(
        spec: &ServerSpec,
        before: Option<&Self>,
        epoch: Instant,
    ) -> Result<Self, ServeError> {
        let Limits { network_requests, network_rate, .. } = spec.limits;
        let limiter = |per_second| NetworkLimiter::new(per_second, epoch);
        Ok(Self {
            sites: Sites::open(spec, before.map(|it| &it.sites))?,
            server_timing: spec.server_timing.clone(),
            proxies: spec.proxies.clone(),
            requests: network_requests.map(u64::from).map(limiter),
            bytes: network_rate.map(|rate| Arc::new(limiter(rate))),
        })
    }

    /// Counts a request of a client network. The result refuses it if that has sent too many.
    pub(crate) fn limit(&self, network: IpAddr, now: Instant) -> Option<Response<SiteBody>> {
        let limiter = self.requests.as_ref()?;
        limiter.admit(network, 1, now).err().map(too_many)
    }

    /// What holds back the bodies of responses to a client network.
    pub(crate) fn throttle(&self, network: IpAddr) -> Option<Throttle> {
        let limiter = self.bytes.as_ref()?;
        Some(Throttle::new(Arc::clone(limiter), network))
    }

    /// Answers a request.
    pub(crate) fn respond(&self, request: &Request<()>, today: SystemTime) -> Answer {
        self.sites.of(host(request)).respond(request, today)
    }

    /// Answers a request from the root, wherever the path has moved.
    pub(crate) fn respond_unmoved(&self, request: &Request<()>, today: SystemTime) -> Answer {
        self.sites.of(host(request)).respond_unmoved(request, today)
    }
}
