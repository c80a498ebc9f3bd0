//! The server's counters, for Prometheus and for the admin page.
//!
//! Everything known only at the end of a response or connection is counted from its record
//! ([`Metrics::count`]). The traffic of an open connection is counted while it is open ([`Live`]),
//! so that a download of an hour shows up in every minute.

mod buckets;
mod exposition;
mod key;
mod live;
mod series;
mod status;
#[cfg(test)]
mod tests;

use std::collections::{BTreeMap, VecDeque};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::SystemTime;

use smol_str::SmolStr;
use uncork_flow::{FlowRecord, Scope, Service};
use uncork_records::Tally;

pub(crate) use self::exposition::CONTENT_TYPE;
pub(crate) use self::key::MetricKey;
pub(crate) use self::live::Live;
use self::series::Series;
use crate::clock;

/// Most series: more than an operator can look at, and few enough for memory.
const ROOM: usize = 1000;
/// Most recent responses that the page shows.
const RECENT: usize = 50;

/// The server's counters.
#[derive(Debug)]
pub(crate) struct Metrics {
    started: SystemTime,
    series: Mutex<BTreeMap<MetricKey, Arc<Series>>>,
    /// Connections that were assigned to an experiment's arm.
    assignments: Mutex<BTreeMap<(SmolStr, SmolStr), u64>>,
    recent: Mutex<VecDeque<Arc<FlowRecord>>>,
    /// The series that was counted in last.
    last: Mutex<Option<(MetricKey, Arc<Series>)>>,
    /// Reloads of each kind of file, by success.
    reloads: Mutex<BTreeMap<(&'static str, bool), u64>>,
    /// Heads of HTTP/1.1 that the HTTP library refused, of each listener.
    refused_heads: Mutex<BTreeMap<SmolStr, u64>>,
    policy: Mutex<Option<ActivePolicy>>,
    records: Option<Arc<Tally>>,
}

/// A policy, and since when it is active.
#[derive(Clone, Debug)]
struct ActivePolicy {
    fingerprint: String,
    since: SystemTime,
}

impl Metrics {
    pub(crate) fn new(records: Option<Arc<Tally>>) -> Self {
        Self {
            started: clock::today(),
            series: Mutex::default(),
            assignments: Mutex::default(),
            recent: Mutex::default(),
            last: Mutex::default(),
            reloads: Mutex::default(),
            refused_heads: Mutex::default(),
            policy: Mutex::default(),
            records,
        }
    }

    /// Counts the record of a response or connection that has ended.
    pub(crate) fn count(&self, record: &Arc<FlowRecord>) {
        let Some(service) = &record.service else { return };
        let series = self.series_of_record(record, service);
        match service.scope {
            Scope::Connection => series.count_connection(service),
            Scope::Response => {
                series.count_response(record, service);
                let mut recent = locked(&self.recent);
                if recent.len() == RECENT {
                    recent.pop_front();
                }
                recent.push_back(Arc::clone(record));
            }
        }
    }

    /// Sets the active policy.
    pub(crate) fn policy(&self, fingerprint: &str) {
        let fingerprint = fingerprint.to_owned();
        let active = ActivePolicy { fingerprint, since: clock::today() };
        *locked(&self.policy) = Some(active);
    }

    /// Counts a reload of `what`; `is_ok`: whether it succeeded.
    pub(crate) fn reloaded(&self, what: &'static str, is_ok: bool) {
        *locked(&self.reloads).entry((what, is_ok)).or_default() += 1;
    }

    /// Counts a head of HTTP/1.1 that could not be read. It leaves no record.
    pub(crate) fn refused_head(&self, listener: &str) {
        *locked(&self.refused_heads).entry(listener.into()).or_default() += 1;
    }

    fn assigned(&self, key: &MetricKey) {
        if !key.arm.is_empty() {
            let arm = (key.experiment.clone(), key.arm.clone());
            let mut assignments = locked(&self.assignments);
            if assignments.len() < ROOM || assignments.contains_key(&arm) {
                *assignments.entry(arm).or_default() += 1;
            }
        }
    }

    /// Most often that is the same as the last time, and nothing is allocated.
    fn series_of_record(&self, record: &FlowRecord, service: &Service) -> Arc<Series> {
        let mut last = locked(&self.last);
        if let Some((key, series)) = &*last
            && is_of(key, record, service)
        {
            return Arc::clone(series);
        }
        let key = key(record, service);
        let series = self.series_of(&key);
        *last = Some((key, Arc::clone(&series)));
        series
    }

    fn series_of(&self, key: &MetricKey) -> Arc<Series> {
        let mut all = locked(&self.series);
        if let Some(series) = all.get(key) {
            return Arc::clone(series);
        }
        let key = if all.len() < ROOM { key.clone() } else { MetricKey::other() };
        Arc::clone(all.entry(key).or_default())
    }

    /// All current series.
    fn all(&self) -> Vec<(MetricKey, Arc<Series>)> {
        let all = locked(&self.series);
        all.iter().map(|(key, series)| (key.clone(), Arc::clone(series))).collect()
    }
}

/// Whether `key` is that of the record.
fn is_of(key: &MetricKey, record: &FlowRecord, service: &Service) -> bool {
    let arm = record.choice.as_ref().and_then(|choice| choice.arm.as_ref());
    let (experiment, arm) = arm.map_or(("", ""), |arm| (&arm.experiment, &arm.arm));
    *key.listener == *service.listener
        && key.protocol == service.protocol
        && key.cc == record.cc
        && (&*key.experiment, &*key.arm) == (experiment, arm)
}

fn key(record: &FlowRecord, service: &Service) -> MetricKey {
    let protocols = ["h1", "h2", "h3", "tls", "tcp", "quic"];
    let protocol = protocols.into_iter().find(|name| *name == service.protocol);
    let arm = record.choice.as_ref().and_then(|choice| choice.arm.as_ref());
    MetricKey {
        listener: service.listener.as_str().into(),
        protocol: protocol.unwrap_or("other"),
        cc: record.cc.clone(),
        experiment: arm.map_or_else(SmolStr::default, |arm| arm.experiment.clone()),
        arm: arm.map_or_else(SmolStr::default, |arm| arm.arm.clone()),
    }
}

fn locked<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}
