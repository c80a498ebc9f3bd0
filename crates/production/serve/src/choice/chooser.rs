//! Chooses the settings of a listener's connections.

use std::net::IpAddr;
use std::sync::Arc;

use uncork_cc::CcSpec;
use uncork_policy::{Origins, Policy, Settings, UnixTime};

use super::chosen::Chosen;
use super::connection::Choice;
use arc_swap::ArcSwap;

/// Chooses the settings of one listener's connections.
#[derive(Clone, Debug)]
pub(crate) struct Chooser {
    by: ChosenBy,
    origins: Arc<ArcSwap<Origins>>,
}

#[derive(Clone, Debug)]
enum ChosenBy {
    /// The same settings for all connections.
    Listener(Arc<Chosen>),
    /// The active policy decides, given the listener's name.
    Policy(Arc<str>, Arc<ArcSwap<Policy>>),
}

impl Chooser {
    /// Gives every connection the same `settings`. `group` is their name in records.
    pub(crate) fn fixed(group: &str, settings: Settings, origins: Arc<ArcSwap<Origins>>) -> Self {
        Self { by: ChosenBy::Listener(Arc::new(Chosen::fixed(group, settings))), origins }
    }

    /// Lets `policy` decide for connections of the listener `name`.
    pub(crate) fn by_policy(
        name: &str,
        policy: Arc<ArcSwap<Policy>>,
        origins: Arc<ArcSwap<Origins>>,
    ) -> Self {
        Self { by: ChosenBy::Policy(name.into(), policy), origins }
    }

    /// Whether a policy decides, so that connections may differ.
    pub(crate) fn is_by_policy(&self) -> bool {
        matches!(self.by, ChosenBy::Policy(..))
    }

    /// The QUIC controller of all connections, or `None` if a policy decides.
    pub(crate) fn fixed_quic(&self) -> Option<CcSpec> {
        match &self.by {
            ChosenBy::Listener(chosen) => Some(chosen.settings.quic),
            ChosenBy::Policy(..) => None,
        }
    }

    /// Makes the choice for a connection of `client` that is accepted now.
    pub(crate) fn accept(&self, client: IpAddr, now: UnixTime) -> Choice {
        let client = client.to_canonical();
        let origin = self.origins.load().of(client);
        match &self.by {
            ChosenBy::Listener(chosen) => Choice::made(Arc::clone(chosen), origin),
            ChosenBy::Policy(listener, policy) => {
                Choice::begin(Arc::clone(policy), Arc::clone(listener), client, now, origin)
            }
        }
    }
}
