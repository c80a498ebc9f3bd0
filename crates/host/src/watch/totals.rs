//! Counters of all connections in a session, by a bounded set of labels.

use std::collections::BTreeMap;

use uncork_diag::CcName;
use uncork_flow::TransportFigures;

use super::sample::SocketSample;
use super::service_port::service_port;
use super::why::Limits;

/// Most service ports with their own label; all others are "other". A counter cannot move to
/// another label, so the first ports that send data get labels.
const PORTS: usize = 20;
/// Most controllers with their own label.
const CONTROLLERS: usize = 16;

/// Counters since the start of a session.
#[derive(Clone, Debug, Default)]
pub struct Totals {
    series: BTreeMap<Label, Sums>,
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
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct Sums {
    /// Transport counters.
    pub figures: TransportFigures,
    /// Time by limit.
    pub limits: Limits,
    /// Number of connections that have ended.
    pub ended: u64,
}

impl Totals {
    /// The sums by label.
    pub fn series(&self) -> impl Iterator<Item = (&Label, &Sums)> {
        self.series.iter()
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

    pub(super) fn add(
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
        sums.figures.add(change);
        sums.limits.add(limits);
    }

    pub(super) fn end(&mut self, socket: &SocketSample, cc: Option<CcName>) {
        self.series.entry(self.label(socket, cc)).or_default().ended += 1;
    }
}
