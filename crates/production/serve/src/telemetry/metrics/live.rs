//! Metrics of open connections.

use std::sync::atomic::Ordering;
use std::sync::{Arc, Mutex};

use uncork_flow::TransportFigures;
use uncork_units::TimeDelta;

use super::series::{Series, add};
use super::{MetricKey, Metrics, locked};

/// An open connection. Its observer reports the counters.
#[derive(Debug)]
pub(crate) struct Live {
    metrics: Arc<Metrics>,
    state: Mutex<LiveState>,
}

#[derive(Debug)]
struct LiveState {
    key: MetricKey,
    series: Arc<Series>,
    counted: TransportFigures,
}

impl Live {
    pub(crate) fn open(metrics: &Arc<Metrics>, key: MetricKey) -> Self {
        let series = metrics.series_of(&key);
        series.open.fetch_add(1, Ordering::Relaxed);
        metrics.assigned(&key);
        let state = Mutex::new(LiveState { key, series, counted: TransportFigures::default() });
        Self { metrics: Arc::clone(metrics), state }
    }

    /// Counts for `key` from now on: the protocol is known, or the controller has changed.
    pub(crate) fn becomes(&self, key: MetricKey) {
        let mut state = locked(&self.state);
        if state.key == key {
            return;
        }
        if (&state.key.experiment, &state.key.arm) != (&key.experiment, &key.arm) {
            self.metrics.assigned(&key);
        }
        let series = self.metrics.series_of(&key);
        series.open.fetch_add(1, Ordering::Relaxed);
        state.series.open.fetch_sub(1, Ordering::Relaxed);
        (state.key, state.series) = (key, series);
    }

    /// Adds the increase of the counters since the last call.
    pub(crate) fn moved(&self, figures: &TransportFigures) {
        let mut state = locked(&self.state);
        let (series, counted) = (&state.series, &state.counted);
        let more = |of: fn(&TransportFigures) -> u64| of(figures).saturating_sub(of(counted));
        add(&series.bytes_acked, more(|it| it.bytes_acked));
        add(&series.bytes_sent, more(|it| it.bytes_sent));
        add(&series.bytes_retransmitted, more(|it| it.bytes_retransmitted));
        add(&series.packets_sent, more(|it| it.packets_sent));
        add(&series.packets_lost, more(|it| it.packets_lost));
        add(&series.packets_marked, more(|it| it.packets_marked));
        add(&series.timeouts, more(|it| it.timeouts));
        state.counted = *figures;
    }

    /// Records the current queueing of a connection that is sending: the round-trip time `rtt`
    /// relative to the minimum `min`.
    pub(crate) fn queues(&self, rtt: TimeDelta, min: TimeDelta) {
        if min > TimeDelta::ZERO {
            let ratio = rtt.as_nanos() as f64 / min.as_nanos() as f64;
            locked(&self.state).series.rtt_ratio.observe(ratio);
        }
    }
}

impl Drop for Live {
    fn drop(&mut self) {
        locked(&self.state).series.open.fetch_sub(1, Ordering::Relaxed);
    }
}
