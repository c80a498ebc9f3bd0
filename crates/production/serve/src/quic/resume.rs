//! What ended connections observed of their paths, for later ones of the same client network: Careful Resume (RFC 9959).
//!
//! The RFC keeps observations for each remote endpoint. Here clients of one network share them, /24 of IPv4 and /48 of
//! IPv6, as most clients come back with another address. The check of the round-trip time, the jump to half and the
//! Safe Retreat bound what a wrong neighbour costs.

use std::collections::HashMap;
use std::mem;
use std::net::IpAddr;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

use uncork_cc::{ResumeHint, ResumeOutcome};
use uncork_flow::ClientNetwork;
use uncork_quic::Observation;

/// The maximum number of networks with observations, 5 MB. The least recently used leave first.
const MAX_NETWORKS: usize = 1 << 16;
/// The age up to which observations are used.
const LIFETIME: Duration = Duration::from_hours(1);

/// The observations of one process.
#[derive(Debug, Default)]
pub(crate) struct ResumeStore {
    /// Whether a policy has asked. Without that nothing is kept.
    is_wanted: AtomicBool,
    networks: Mutex<Generations>,
}

/// An observation that a connection begins with.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct BorrowedObservation {
    pub(crate) hint: ResumeHint,
    pub(crate) age: Duration,
}

/// Two halves: when the newer one is full, it replaces the older one.
#[derive(Debug, Default)]
struct Generations {
    newer: HashMap<ClientNetwork, SavedObservation>,
    older: HashMap<ClientNetwork, SavedObservation>,
}

#[derive(Clone, Copy, Debug)]
struct SavedObservation {
    hint: ResumeHint,
    at: Instant,
    /// One connection at a time uses it (RFC 9959 §3.2).
    is_lent: bool,
}

impl Generations {
    fn remove(&mut self, network: ClientNetwork) -> Option<SavedObservation> {
        self.newer.remove(&network).or_else(|| self.older.remove(&network))
    }

    fn insert(&mut self, network: ClientNetwork, kept: SavedObservation) {
        if self.newer.len() >= MAX_NETWORKS / 2 {
            self.older = mem::take(&mut self.newer);
        }
        self.newer.insert(network, kept);
    }
}

impl ResumeStore {
    /// What a new connection of `client` may begin with, until [`Self::end`]: not if another one has it (RFC 9959 §3.2).
    pub(crate) fn lend(&self, client: IpAddr, now: Instant) -> Option<BorrowedObservation> {
        self.is_wanted.store(true, Ordering::Relaxed);
        let network = ClientNetwork::of(client);
        let mut networks = self.networks();
        let kept = networks.remove(network)?;
        let age = now.saturating_duration_since(kept.at);
        if age > LIFETIME {
            return None;
        }
        networks.insert(network, SavedObservation { is_lent: true, ..kept });
        (!kept.is_lent).then_some(BorrowedObservation { hint: kept.hint, age })
    }

    /// A connection of `client` has ended, which had begun with `had`. Its own observation replaces an earlier one. One that
    /// met congestion is deleted (RFC 9959 §3.5).
    pub(crate) fn end(
        &self,
        client: IpAddr,
        now: Instant,
        had: Option<BorrowedObservation>,
        seen: &Observation,
    ) {
        if !self.is_wanted.load(Ordering::Relaxed) {
            return;
        }
        let outcome = seen.start.and_then(|start| start.report.resume);
        let own = observed(seen).filter(|_| outcome != Some(ResumeOutcome::Retreated));
        if own.is_none() && had.is_none() {
            return;
        }
        let network = ClientNetwork::of(client);
        let mut networks = self.networks();
        match (own, networks.remove(network)) {
            (Some(hint), before) => {
                let is_lent = before.is_some_and(|before| before.is_lent) && had.is_none();
                networks.insert(network, SavedObservation { hint, at: now, is_lent });
            }
            (None, Some(kept)) if outcome != Some(ResumeOutcome::Retreated) => {
                networks.insert(network, SavedObservation { is_lent: false, ..kept });
            }
            (None, _) => {}
        }
    }

    fn networks(&self) -> MutexGuard<'_, Generations> {
        self.networks.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// What the connection observed, if it carried enough and its client did not move.
fn observed(seen: &Observation) -> Option<ResumeHint> {
    let (rtt, rate) = (seen.rtt?, seen.delivery_rate?);
    let hint = ResumeHint::observed(rate, rtt.min, seen.acked_bytes);
    hint.filter(|_| seen.is_first_path)
}

#[cfg(test)]
mod tests {
    use uncork_units::TimeDelta;

    use super::*;

    fn hint(kb: u64) -> ResumeHint {
        ResumeHint { saved_cwnd: kb * 1000, saved_rtt: TimeDelta::from_millis(50) }
    }

    fn client(last: u8) -> IpAddr {
        [203, 0, 113, last].into()
    }

    fn keep(store: &ResumeStore, client: IpAddr, at: Instant, hint: ResumeHint) {
        store
            .networks()
            .insert(ClientNetwork::of(client), SavedObservation { hint, at, is_lent: false });
    }

    /// An arbitrary time: only differences matter.
    #[expect(clippy::disallowed_methods, reason = "all times are counted from it")]
    fn epoch() -> Instant {
        Instant::now()
    }

    #[test]
    fn one_connection_of_a_network_at_a_time() {
        let (store, now) = (ResumeStore::default(), epoch());
        keep(&store, client(1), now, hint(500));
        let later = now + Duration::from_mins(1);
        let lent = BorrowedObservation { hint: hint(500), age: Duration::from_mins(1) };
        assert_eq!(store.lend(client(200), later), Some(lent), "a neighbour");
        assert_eq!(store.lend(client(1), later), None, "it is in use");
        assert_eq!(store.lend([198, 51, 100, 1].into(), later), None, "another network");
    }

    #[test]
    fn an_old_observation_is_dropped() {
        let (store, now) = (ResumeStore::default(), epoch());
        keep(&store, client(1), now, hint(500));
        let late = now + LIFETIME + Duration::from_secs(1);
        assert_eq!(store.lend(client(1), late), None);
        assert!(store.networks().remove(ClientNetwork::of(client(1))).is_none());
    }

    #[test]
    fn memory_is_bounded_and_the_networks_used_last_stay() {
        let (store, now) = (ResumeStore::default(), epoch());
        let network = |index: u32| IpAddr::from((index << 8).to_be_bytes());
        keep(&store, client(1), now, hint(500));
        for index in 0..4 * MAX_NETWORKS as u32 {
            keep(&store, network(index), now, hint(1));
            if index % 1000 == 0 {
                let mut networks = store.networks();
                let kept = networks.remove(ClientNetwork::of(client(1))).expect("used often");
                networks.insert(ClientNetwork::of(client(1)), kept);
            }
        }
        let networks = store.networks();
        assert!(networks.newer.len() + networks.older.len() <= MAX_NETWORKS);
    }
}
