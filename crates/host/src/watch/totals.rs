//! What connections did in a session, for a few labels.

use std::collections::BTreeMap;

use uncork_diag::CcName;
use uncork_flow::TransportFigures;

use super::sample::SocketSample;
use super::service_port::service_port;
use super::why::Limits;

/// Service ports that have a label of their own; all others are "other". Counters cannot move from label to label, so
/// the first ports that send something have them.
const PORTS: usize = 20;
/// Controllers that have a label.
const CONTROLLERS: usize = 16;

/// Counters since the start of a session.
#[derive(Clone, Debug, Default)]
pub struct Totals {
    series: BTreeMap<Label, Sums>,
}

/// What is told apart: at most 17 controllers and 21 ports.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Label {
    /// The controller; `None` for "other" and where it is not known.
    pub cc: Option<CcName>,
    /// The service's port; `None` for "other".
    pub port: Option<u16>,
}

/// The sums of a label.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct Sums {
    /// What was sent.
    pub figures: TransportFigures,
    /// What limited it.
    pub limits: Limits,
    /// Connections that have ended.
    pub ended: u64,
}

impl Totals {
    /// The sums of each label.
    pub fn series(&self) -> impl Iterator<Item = (&Label, &Sums)> {
        self.series.iter()
    }

    /// The label that a socket has.
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

    /// Different values of a part of the labels.
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
