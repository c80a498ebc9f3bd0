//! What a listener's connections are given.

use std::net::IpAddr;
use std::sync::Arc;

use uncork_cc::CcSpec;
use uncork_policy::{Origins, Policy, Settings, UnixTime};

use super::chosen::Chosen;
use super::connection::Choice;
use arc_swap::ArcSwap;

/// Chooses for the connections of one listener.
#[derive(Clone, Debug)]
pub(crate) struct Chooser {
    by: By,
    origins: Arc<ArcSwap<Origins>>,
}

#[derive(Clone, Debug)]
enum By {
    /// The same for each.
    Listener(Arc<Chosen>),
    /// As the policy in force says of a listener of this name.
    Policy(Arc<str>, Arc<ArcSwap<Policy>>),
}

impl Chooser {
    /// Gives each connection `settings`, which records call `group`.
    pub(crate) fn fixed(group: &str, settings: Settings, origins: Arc<ArcSwap<Origins>>) -> Self {
        Self { by: By::Listener(Arc::new(Chosen::fixed(group, settings))), origins }
    }

    /// Gives connections what `policy` says of those that the listener `name` has accepted.
    pub(crate) fn by_policy(
        name: &str,
        policy: Arc<ArcSwap<Policy>>,
        origins: Arc<ArcSwap<Origins>>,
    ) -> Self {
        Self { by: By::Policy(name.into(), policy), origins }
    }

    /// Whether connections of this listener may differ.
    pub(crate) fn is_by_policy(&self) -> bool {
        matches!(self.by, By::Policy(..))
    }

    /// The controller of all connections over QUIC, unless they may differ.
    pub(crate) fn fixed_quic(&self) -> Option<CcSpec> {
        match &self.by {
            By::Listener(chosen) => Some(chosen.settings.quic),
            By::Policy(..) => None,
        }
    }

    /// Chooses for a connection of `client` that is accepted now.
    pub(crate) fn accept(&self, client: IpAddr, now: UnixTime) -> Choice {
        let client = client.to_canonical();
        let origin = self.origins.load().of(client);
        match &self.by {
            By::Listener(chosen) => Choice::made(Arc::clone(chosen), origin),
            By::Policy(listener, policy) => {
                Choice::begin(Arc::clone(policy), Arc::clone(listener), client, now, origin)
            }
        }
    }
}
