//! The choice for one connection.

use std::net::IpAddr;
use std::sync::Arc;

use uncork_policy::{Fact, Facts, Origin, Policy, UnixTime, When};

use super::chosen::Chosen;
use super::request_facts::RequestFacts;
use arc_swap::ArcSwap;

/// What is chosen for one connection, as far as it is known.
#[derive(Debug)]
pub(crate) struct Choice {
    chosen: Arc<Chosen>,
    origin: Origin,
    /// `None` once the choice is final.
    asking: Option<Box<Asking>>,
}

/// Who is asked, and what is known.
#[derive(Debug)]
struct Asking {
    in_force: Arc<ArcSwap<Policy>>,
    /// The one that decides.
    policy: Arc<Policy>,
    listener: Arc<str>,
    client: IpAddr,
    accepted: UnixTime,
    sni: Fact<Box<str>>,
    /// What is known of the connection decides alone, whatever is requested.
    is_settled: bool,
}

impl Choice {
    /// What does not change any more.
    pub(super) fn made(chosen: Arc<Chosen>, origin: Origin) -> Self {
        Self { chosen, origin, asking: None }
    }

    /// What `in_force` says of a connection that has just been accepted.
    pub(super) fn begin(
        in_force: Arc<ArcSwap<Policy>>,
        listener: Arc<str>,
        client: IpAddr,
        accepted: UnixTime,
        origin: Origin,
    ) -> Self {
        let policy = in_force.load_full();
        let facts = Facts::at_accept(&listener, client, accepted, origin);
        let decision = policy.decide(&facts);
        let (chosen, is_settled) = (Arc::new(Chosen::by(&policy, &decision)), decision.is_final);
        let sni = Fact::Unknown;
        let asking = Asking { in_force, policy, listener, client, accepted, sni, is_settled };
        let mut choice = Self { chosen, origin, asking: Some(Box::new(asking)) };
        choice.end_if(is_settled);
        choice
    }

    /// Where the client is, as far as databases tell.
    pub(crate) fn origin(&self) -> Origin {
        self.origin
    }

    /// What shall be in force now. It is the same `Arc` as before if it has not changed.
    pub(crate) fn chosen(&self) -> &Arc<Chosen> {
        &self.chosen
    }

    /// The client wants the server `sni`; it did not say which if there is no name, or no handshake.
    pub(crate) fn server_name(&mut self, sni: Option<&str>) {
        if let Some(asking) = &mut self.asking {
            asking.sni = Fact::known_or_absent(sni.map(Into::into));
            self.ask(None);
        }
    }

    /// The client requests something.
    pub(crate) fn request(&mut self, asked: &RequestFacts<'_>) {
        if let Some(asking) = &mut self.asking {
            asking.renew();
            self.ask(Some(asked));
        }
    }

    fn ask(&mut self, asked: Option<&RequestFacts<'_>>) {
        let Some(asking) = self.asking.as_mut().filter(|asking| !asking.is_settled) else { return };
        let connection = asking.facts(self.origin);
        let facts = asked.map_or(connection, |asked| asked.with(connection));
        let decision = asking.policy.decide(&facts);
        if !self.chosen.is(&asking.policy, &decision) {
            self.chosen = Arc::new(Chosen::by(&asking.policy, &decision));
        }
        let is_final = decision.is_final;
        asking.is_settled = is_final && asked.is_none();
        self.end_if(is_final);
    }

    /// A policy that decides once is not asked again.
    fn end_if(&mut self, is_final: bool) {
        self.asking.take_if(|asking| is_final && asking.policy.when() == When::Once);
    }
}

impl Asking {
    /// A policy that decides each request is the one that is in force now.
    fn renew(&mut self) {
        if self.policy.when() == When::EachRequest {
            let policy = self.in_force.load_full();
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
