//! What the connections of each window did.

use std::collections::BTreeMap;

use serde::Serialize;
use uncork_flow::{Arm as ArmRecord, Choice, FlowRecord};
use uncork_units::ByteCount;
use uncork_watch::UNKNOWN_CC;

use super::schedule::{Arm, Window};
use crate::change::Prefix;

/// What the records of a test name as its policy.
const POLICY: &str = "uncork host prove";
/// A service follows the test unless more than one in this number of its connections run another controller.
const TOLERATED: u64 = 20;
/// The least time that completion is taken for: busy times are in ticks of the kernel, 1 to 10 ms.
const TICK_NS: u64 = 1_000_000;

/// Takes in the records of ended connections, and assigns them to windows.
#[derive(Debug)]
pub struct Windows {
    experiment: String,
    schedule: Vec<Window>,
    /// Names of the arms, and their controllers.
    arms: [(String, String); 2],
    routes: Vec<Prefix>,
    large: ByteCount,
    /// For each window that has begun, when connections begin to count, and the last moment when they do.
    counted: Vec<(u64, Option<u64>)>,
    /// The index of each service.
    services: BTreeMap<String, usize>,
    seen: Vec<WindowConnection>,
    left_out: LeftOut,
}

/// Connections that do not count, by reason.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
pub struct LeftOut {
    /// They began before the test, in a burn-in, or after the last window.
    pub outside_windows: u64,
    /// They began in a window that was not completed.
    pub incomplete_window: u64,
    /// They sent nothing that was acknowledged.
    pub no_data: u64,
    /// They go to clients beyond `routes`.
    pub other_route: u64,
    /// They ran another controller than their window's.
    pub other_controller: u64,
    /// More than one in 20 connections of their service port ran another controller than their window's.
    pub other_service: u64,
    /// They were open at the end of the test, and had sent too little to be large.
    pub unfinished: u64,
}

/// What the counted connections of a window did.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct WindowFigures {
    /// The traffic of each client network; `None`: of clients with an unknown network.
    pub networks: BTreeMap<Option<Prefix>, Traffic>,
    /// Counted connections with an unknown controller: they lived between two passes.
    pub unseen: u64,
}

/// What the counted connections of a client network did in a window.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Traffic {
    /// Acknowledged payload by busy time, of each large transfer, in bits per second.
    pub throughputs_bps: Vec<f64>,
    /// Busy time of each small transfer, in seconds.
    pub completions_s: Vec<f64>,
    /// Payload sent, retransmissions included.
    pub bytes_sent: u64,
    /// Payload retransmitted.
    pub bytes_retransmitted: u64,
}

/// What is kept of a connection that began in a window.
#[derive(Clone, Copy, Debug)]
struct WindowConnection {
    window: u32,
    service: u32,
    client: Option<Prefix>,
    cc: WindowController,
    is_open: bool,
    bytes_acked: u64,
    busy_ns: u64,
    bytes_sent: u64,
    bytes_retransmitted: u64,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum WindowController {
    /// That of the window.
    Same,
    Other,
    /// It lived between two passes, so it opened in the window and has the window's, if its service follows the test.
    Unknown,
}

impl Windows {
    /// No connection yet. `experiment` names the test in records; `arms` have a name and a controller each.
    pub fn new(
        experiment: &str,
        schedule: Vec<Window>,
        arms: [(String, String); 2],
        routes: Vec<Prefix>,
        large: ByteCount,
    ) -> Self {
        Self {
            experiment: experiment.to_owned(),
            schedule,
            arms,
            routes,
            large,
            counted: Vec::new(),
            services: BTreeMap::new(),
            seen: Vec::new(),
            left_out: LeftOut::default(),
        }
    }

    /// From now on connections count for the next window. Times are of the session, in nanoseconds.
    pub fn open(&mut self, session_ns: u64) {
        self.counted.push((session_ns, None));
    }

    /// Connections that began until now count for the present window.
    pub fn close(&mut self, session_ns: u64) {
        if let Some((_, end)) = self.counted.last_mut() {
            end.get_or_insert(session_ns);
        }
    }

    /// When connections of a window began and ceased to count.
    pub fn counted(&self, window: usize) -> Option<(u64, Option<u64>)> {
        self.counted.get(window).copied()
    }

    /// Takes in a connection that has ended, or that `is_open` at the end of the test. Its record gets the arm that it was
    /// assigned to.
    pub fn take(&mut self, record: &mut FlowRecord, is_open: bool) {
        let Some(index) = self.window_at(record.start_ns) else {
            self.left_out.outside_windows += 1;
            return;
        };
        let client = client_network(record);
        if !self.is_on_routes(client) {
            self.left_out.other_route += 1;
            return;
        }
        let Window { arm, pair } = self.schedule[index];
        let controller = &self.arms[arm.index()].1;
        let cc = match &*record.cc {
            UNKNOWN_CC => WindowController::Unknown,
            cc if cc == controller => WindowController::Same,
            _ => WindowController::Other,
        };
        record.choice = Some(Box::new(self.choice(arm, index, pair)));
        let services = self.services.len();
        let service = *self.services.entry(record.group.to_string()).or_insert(services);
        self.seen.push(WindowConnection {
            window: index as u32,
            service: service as u32,
            client,
            cc,
            is_open,
            bytes_acked: record.bytes_acked,
            busy_ns: record.busy_ns,
            bytes_sent: record.bytes_sent,
            bytes_retransmitted: record.bytes_retransmitted,
        });
    }

    /// The window with this moment in its counted time. Each begins behind the pass at its start, and includes the pass at its end.
    fn window_at(&self, start_ns: u64) -> Option<usize> {
        let index = self.counted.partition_point(|(start, _)| *start < start_ns).checked_sub(1)?;
        self.counted[index].1.is_none_or(|end| start_ns <= end).then_some(index)
    }

    fn is_on_routes(&self, client: Option<Prefix>) -> bool {
        self.routes.is_empty()
            || client.is_some_and(|client| self.routes.iter().any(|route| route.covers(client)))
    }

    /// The unit that is assigned is the window. A jackknife that leaves out a bucket leaves out a pair.
    fn choice(&self, arm: Arm, window: usize, pair: u32) -> Choice {
        let (name, controller) = &self.arms[arm.index()];
        Choice {
            policy: POLICY.into(),
            rule: "switchback".into(),
            cc: Some(controller.into()),
            arm: Some(ArmRecord {
                experiment: self.experiment.as_str().into(),
                arm: name.into(),
                unit: window as u64,
                bucket: (pair % 100) as u8,
                propensity: 0.5,
            }),
        }
    }

    /// What each complete window measured, and what was left out.
    pub fn figures(&self) -> (Vec<Option<WindowFigures>>, LeftOut) {
        let mut left_out = self.left_out;
        let is_complete = |index: usize| self.counted(index).is_some_and(|(_, end)| end.is_some());
        let mut figures: Vec<Option<WindowFigures>> = (0..self.schedule.len())
            .map(|index| is_complete(index).then(WindowFigures::default))
            .collect();
        let follows = self.services_that_follow();
        for seen in &self.seen {
            let large = seen.bytes_acked >= self.large.as_u64();
            let reason = match (&mut figures[seen.window as usize], seen.cc) {
                (None, _) => &mut left_out.incomplete_window,
                _ if !follows[seen.service as usize] => &mut left_out.other_service,
                (_, WindowController::Other) => &mut left_out.other_controller,
                _ if seen.bytes_acked == 0 => &mut left_out.no_data,
                _ if seen.is_open && !large => &mut left_out.unfinished,
                (Some(figures), _) => {
                    figures.add(seen, large);
                    continue;
                }
            };
            *reason += 1;
        }
        (figures, left_out)
    }

    /// Whether the connections of each service run the controller of their window. A program that chooses its own would agree
    /// with one arm only, so its service is left out of both.
    fn services_that_follow(&self) -> Vec<bool> {
        let mut counts = vec![(0, 0); self.services.len()];
        for seen in self.seen.iter().filter(|seen| seen.cc != WindowController::Unknown) {
            let (known, other): &mut (u64, u64) = &mut counts[seen.service as usize];
            *known += 1;
            *other += u64::from(seen.cc == WindowController::Other);
        }
        counts.into_iter().map(|(known, other)| other * TOLERATED <= known).collect()
    }
}

/// The network of a record's client, as records name it: /24 of IPv4, /48 of IPv6.
fn client_network(record: &FlowRecord) -> Option<Prefix> {
    record.service.as_ref()?.client.as_deref()?.parse().ok()
}

impl WindowFigures {
    fn add(&mut self, seen: &WindowConnection, large: bool) {
        let busy_s = seen.busy_ns.max(TICK_NS) as f64 / 1e9;
        let traffic = self.networks.entry(seen.client).or_default();
        if large {
            traffic.throughputs_bps.push(seen.bytes_acked as f64 * 8.0 / busy_s);
        } else {
            traffic.completions_s.push(busy_s);
        }
        traffic.bytes_sent += seen.bytes_sent;
        traffic.bytes_retransmitted += seen.bytes_retransmitted;
        self.unseen += u64::from(seen.cc == WindowController::Unknown);
    }

    /// Large transfers.
    pub fn large(&self) -> usize {
        self.networks.values().map(|traffic| traffic.throughputs_bps.len()).sum()
    }

    /// Small transfers.
    pub fn small(&self) -> usize {
        self.networks.values().map(|traffic| traffic.completions_s.len()).sum()
    }
}

#[cfg(test)]
mod tests {
    use uncork_flow::{Scope, Service};

    use super::*;
    use crate::prove::schedule;

    const LARGE: u64 = 500_000;

    /// Windows of a second each, without the first 0.2 s; the last is not completed.
    fn windows(routes: Vec<Prefix>) -> Windows {
        let arms =
            [("cubic", "cubic"), ("bbr", "bbr")].map(|(name, cc)| (name.to_owned(), cc.to_owned()));
        let mut windows = Windows::new("test", schedule(2, 1), arms, routes, ByteCount::new(LARGE));
        for second in 0..3 {
            windows.open(second * 1000 + 200);
            windows.close(second * 1000 + 1000);
        }
        windows.open(3200);
        windows
    }

    fn record(start: u64, cc: &str, bytes: u64, busy_ms: u64) -> FlowRecord {
        FlowRecord {
            start_ns: start,
            bytes_acked: bytes,
            bytes_sent: bytes,
            busy_ns: busy_ms * 1_000_000,
            service: Some(Service {
                client: Some("203.0.113.0/24".into()),
                ..Service::blank(Scope::Connection, 0, "tcp", "web")
            }),
            ..FlowRecord::blank("watch", "443", cc, (0, 0))
        }
    }

    #[test]
    fn connections_count_for_the_window_in_which_they_began() {
        let mut windows = windows(Vec::new());
        let cc = |windows: &Windows, index: usize| {
            windows.arms[windows.schedule[index].arm.index()].1.clone()
        };
        let ccs: Vec<String> = (0..4).map(|index| cc(&windows, index)).collect();
        let mut large = record(500, &ccs[0], LARGE, 1000);
        windows.take(&mut large, false);
        let arm = large.choice.and_then(|choice| choice.arm).expect("an arm");
        assert_eq!((arm.unit, arm.bucket, arm.arm.as_str()), (0, 0, ccs[0].as_str()));
        for (start, cc, bytes, is_open) in [
            (200, &ccs[0], 1000, false),  // seen by the pass that ends the burn-in
            (1000, &ccs[0], 1000, false), // seen by the pass that ends the window
            (1100, &ccs[1], 1000, false), // burn-in
            (1500, &ccs[1], 1000, false),
            (1500, &"unknown".to_owned(), 2000, false),
            (1500, &ccs[1], 0, false),
            (2500, &ccs[2], 1000, true),
            (2500, &ccs[2], LARGE, true),
            (3500, &ccs[3], LARGE, false),
        ] {
            windows.take(&mut record(start, cc, bytes, 100), is_open);
        }
        let (figures, left_out) = windows.figures();
        let counts = |index: usize| {
            let window: &WindowFigures = figures[index].as_ref().expect("complete");
            (window.large(), window.small(), window.unseen)
        };
        assert_eq!([0, 1, 2].map(counts), [(1, 1, 0), (0, 2, 1), (1, 0, 0)]);
        assert_eq!(figures[3], None);
        let network = "203.0.113.0/24".parse().ok();
        assert_eq!(
            figures[0].as_ref().map(|window| window.networks[&network].throughputs_bps[0]),
            Some(4e6)
        );
        let expected = LeftOut {
            outside_windows: 2,
            incomplete_window: 1,
            no_data: 1,
            unfinished: 1,
            ..LeftOut::default()
        };
        assert_eq!(left_out, expected);
    }

    #[test]
    fn a_service_with_a_controller_of_its_own_counts_in_neither_arm() {
        let mut windows = windows(Vec::new());
        for (index, start) in [500, 1500].into_iter().enumerate() {
            let cc = windows.arms[windows.schedule[index].arm.index()].1.clone();
            for _ in 0..19 {
                windows.take(&mut record(start, &cc, 1000, 10), false);
            }
            let mut own = FlowRecord { group: "25".into(), ..record(start, "cubic", 1000, 10) };
            windows.take(&mut own, false);
        }
        // One of 39: another route, perhaps.
        windows.take(&mut record(500, "reno", 1000, 10), false);
        let (figures, left_out) = windows.figures();
        let small: Vec<usize> = figures.iter().flatten().map(WindowFigures::small).collect();
        assert_eq!(small[..2], [19, 19]);
        assert_eq!((left_out.other_service, left_out.other_controller), (2, 1));
    }

    #[test]
    fn of_routes_only_their_clients_count() {
        let route = |text: &str| text.parse::<Prefix>().expect(text);
        for (text, counted) in [("203.0.0.0/16", 1), ("198.51.100.0/24", 0), ("::/0", 0)] {
            let mut windows = windows(vec![route(text)]);
            windows.take(&mut record(500, "unknown", 1000, 10), false);
            let (figures, left_out) = windows.figures();
            assert_eq!(figures[0].as_ref().map(WindowFigures::small), Some(counted));
            assert_eq!(left_out.other_route, 1 - counted as u64);
        }
    }
}
