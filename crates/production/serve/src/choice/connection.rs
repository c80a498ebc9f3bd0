//! The choice for one connection.

use std::net::IpAddr;
use std::sync::Arc;

use uncork_policy::{Fact, Facts, Origin, Policy, UnixTime, When};

use super::chosen::Chosen;
use super::request_facts::RequestFacts;
use arc_swap::ArcSwap;

/// The current choice for one connection.
#[derive(Debug)]
pub(crate) struct Choice {
    chosen: Arc<Chosen>,
    origin: Origin,
    /// `None` once the choice is final.
    pending: Option<Box<PendingDecision>>,
}

/// The policy to evaluate, and the known facts.
#[derive(Debug)]
struct PendingDecision {
    active_policy: Arc<ArcSwap<Policy>>,
    /// The policy that decides for this connection.
    policy: Arc<Policy>,
    listener: Arc<str>,
    client: IpAddr,
    accepted: UnixTime,
    sni: Fact<Box<str>>,
    /// The facts about the connection alone decide; requests cannot change the decision.
    is_settled: bool,
}

impl Choice {
    /// A final choice.
    pub(super) fn made(chosen: Arc<Chosen>, origin: Origin) -> Self {
        Self { chosen, origin, pending: None }
    }

    /// The decision of the `active_policy` for a connection that was just accepted.
    pub(super) fn begin(
        active_policy: Arc<ArcSwap<Policy>>,
        listener: Arc<str>,
        client: IpAddr,
        accepted: UnixTime,
        origin: Origin,
    ) -> Self {
        let policy = active_policy.load_full();
        let facts = Facts::at_accept(&listener, client, accepted, origin);
        let decision = policy.decide(&facts);
        let (chosen, is_settled) = (Arc::new(Chosen::by(&policy, &decision)), decision.is_final);
        let sni = Fact::Unknown;
        let pending =
            PendingDecision { active_policy, policy, listener, client, accepted, sni, is_settled };
        let mut choice = Self { chosen, origin, pending: Some(Box::new(pending)) };
        choice.end_if(is_settled);
        choice
    }

    /// The client's location, as far as databases contain it.
    pub(crate) fn origin(&self) -> Origin {
        self.origin
    }

    /// The settings to apply now. The same `Arc` is returned until they change.
    pub(crate) fn chosen(&self) -> &Arc<Chosen> {
        &self.chosen
    }

    /// The handshake is complete. `sni` is the server name (SNI), or `None` without a name or
    /// without TLS.
    pub(crate) fn server_name(&mut self, sni: Option<&str>) {
        if let Some(pending) = &mut self.pending {
            pending.sni = Fact::known_or_absent(sni.map(Into::into));
            self.ask(None);
        }
    }

    /// A request has arrived.
    pub(crate) fn request(&mut self, asked: &RequestFacts<'_>) {
        if let Some(pending) = &mut self.pending {
            pending.renew();
            self.ask(Some(asked));
        }
    }

    fn ask(&mut self, asked: Option<&RequestFacts<'_>>) {
        let Some(pending) = self.pending.as_mut().filter(|pending| !pending.is_settled) else {
            return;
        };
        let connection = pending.facts(self.origin);
        let facts = asked.map_or(connection, |asked| asked.with(connection));
        let decision = pending.policy.decide(&facts);
        if !self.chosen.is(&pending.policy, &decision) {
            self.chosen = Arc::new(Chosen::by(&pending.policy, &decision));
        }
        let is_final = decision.is_final;
        pending.is_settled = is_final && asked.is_none();
        self.end_if(is_final);
    }

    /// Drops the policy once the choice is final, if it decides once.
    fn end_if(&mut self, is_final: bool) {
        self.pending.take_if(|pending| is_final && pending.policy.when() == When::Once);
    }
}

impl PendingDecision {
    /// If the policy decides for each request, switches to the policy that is active now.
    fn renew(&mut self) {
        if self.policy.when() == When::EachRequest {
            let policy = self.active_policy.load_full();
            if !Arc::ptr_eq(&policy, &self.policy) {
                self.policy = policy;
                self.is_settled = false;
            }
        }
    }

    fn facts(&self, origin: Origin) -> Facts<'_> {
        let facts = Facts::at_accept(&self.listener, self.client, self.accepted, origin);
        let sni = match &self.sni {
            Fact::Unknown => Fact::Unknown,
            Fact::Absent => Fact::Absent,
            Fact::Known(name) => Fact::Known(&**name),
        };
        Facts { sni, ..facts }
    }
}
