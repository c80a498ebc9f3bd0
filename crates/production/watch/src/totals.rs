//! Counters of all connections in a session, by a bounded set of labels.

use std::collections::BTreeMap;

use uncork_diag::CcName;
use uncork_flow::{Buckets, RATE_EDGES, RATIO_EDGES, TIME_EDGES, TransportFigures};

use crate::policy_choice::{PolicyChoice, ShortName};
use crate::sample::SocketSample;
use crate::service_port::service_port;
use crate::why::Limits;

/// Most service ports with their own label; all others are "other". A counter cannot move to
/// another label, so the first ports that send data get labels.
const PORTS: usize = 20;
/// Most controllers with their own label.
const CONTROLLERS: usize = 16;
/// Most pairs of a rule and an arm with their own labels; all others have the rule "other".
const MAX_GIVEN: usize = 64;

/// Counters since the start of a session.
#[derive(Clone, Debug, Default)]
pub struct Totals {
    series: BTreeMap<Label, Sums>,
    steered: BTreeMap<PolicyChoice, Sums>,
}

/// The labels of the counters: at most 17 controllers and 21 ports.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Label {
    /// The controller; `None` for "other" and for unknown controllers.
    pub cc: Option<CcName>,
    /// The service's port; `None` for "other".
    pub port: Option<u16>,
}

/// The sums of a label.
#[derive(Clone, Debug, PartialEq)]
pub struct Sums {
    /// Transport counters.
    pub figures: TransportFigures,
    /// Time by limit.
    pub limits: Limits,
    /// Number of connections that have ended.
    pub ended: u64,
    /// Smoothed round-trip times, in seconds: a value for each connection that sent something, at each pass and at
    /// its end. So are all that follow.
    pub rtt: Buckets,
    /// Queueing delay: the smoothed round-trip time above the minimum, in seconds.
    pub queue_delay: Buckets,
    /// The smoothed round-trip time over the minimum.
    pub rtt_ratio: Buckets,
    /// Pacing rates, in bytes per second. Connections without pacing have none.
    pub pacing_rate: Buckets,
}

impl Default for Sums {
    fn default() -> Self {
        Self {
            figures: TransportFigures::default(),
            limits: Limits::default(),
            ended: 0,
            rtt: Buckets::new(TIME_EDGES),
            queue_delay: Buckets::new(TIME_EDGES),
            rtt_ratio: Buckets::new(RATIO_EDGES),
            pacing_rate: Buckets::new(RATE_EDGES),
        }
    }
}

impl Sums {
    fn count(&mut self, socket: &SocketSample, change: &TransportFigures, limits: &Limits) {
        self.figures.add(change);
        self.limits.add(limits);
        self.observe(socket);
    }

    fn observe(&mut self, socket: &SocketSample) {
        if let (Some(rtt), Some(min)) = (socket.figures.rtt, socket.min_rtt()) {
            let (rtt, min) = (rtt.as_secs_f64(), min.as_secs_f64());
            self.rtt.observe(rtt);
            self.queue_delay.observe((rtt - min).max(0.0));
            self.rtt_ratio.observe(rtt / min);
        }
        if let Some(rate) = socket.pacing_rate {
            self.pacing_rate.observe(rate.bits_per_sec() as f64 / 8.0);
        }
    }
}

impl Totals {
    /// The sums by label.
    pub fn series(&self) -> impl Iterator<Item = (&Label, &Sums)> {
        self.series.iter()
    }

    /// The sums by what a policy of `uncork steer` gave.
    pub fn steered(&self) -> impl Iterator<Item = (&PolicyChoice, &Sums)> {
        self.steered.iter()
    }

    /// The label of what a policy gave.
    pub fn given(&self, given: PolicyChoice) -> PolicyChoice {
        if self.steered.contains_key(&given) || self.steered.len() < MAX_GIVEN {
            return given;
        }
        PolicyChoice { rule: ShortName::new("other"), arm: None }
    }

    /// The label of a socket.
    pub fn label(&self, socket: &SocketSample, cc: Option<CcName>) -> Label {
        let port = service_port(socket);
        let label = Label { cc, port: Some(port) };
        if self.series.contains_key(&label) {
            return label;
        }
        let is_known = |has: &dyn Fn(&Label) -> bool| self.series.keys().any(has);
        Label {
            cc: cc.filter(|_| {
                is_known(&|label| label.cc == cc) || self.count(|label| label.cc) < CONTROLLERS
            }),
            port: Some(port).filter(|_| {
                is_known(&|label| label.port == Some(port))
                    || self.count(|label| label.port) < PORTS
            }),
        }
    }

    /// Number of different values of a part of the labels.
    fn count<T: Ord>(&self, part: fn(&Label) -> Option<T>) -> usize {
        let values: std::collections::BTreeSet<T> = self.series.keys().filter_map(part).collect();
        values.len()
    }

    pub(crate) fn add(
        &mut self,
        socket: &SocketSample,
        cc: Option<CcName>,
        change: &TransportFigures,
        limits: &Limits,
    ) {
        if change.bytes_sent == 0 && change.busy.is_zero() {
            return;
        }
        let sums = self.series.entry(self.label(socket, cc)).or_default();
        sums.count(socket, change, limits);
        if let Some(given) = socket.given.map(|given| self.given(given)) {
            self.steered.entry(given).or_default().count(socket, change, limits);
        }
    }

    pub(crate) fn end(&mut self, socket: &SocketSample, cc: Option<CcName>) {
        self.series.entry(self.label(socket, cc)).or_default().ended += 1;
        if let Some(given) = socket.given.map(|given| self.given(given)) {
            self.steered.entry(given).or_default().ended += 1;
        }
    }
}
