//! Controllers with an observer of their marks.

use std::cell::RefCell;

use uncork_cc::{
    AckFrequency, AnyController, AppState, CcSpec, Control, Controller, ControllerSpec, Feedback,
    Lost, PathEvent, SentPacket, Settings, Snapshot, Timeout, Token,
};
use uncork_ecn::{AckReport, ConcurrentFlows, EcnTotals, FlowEvidence, FlowObserver, PolledFlow};
use uncork_units::{Time, TimeDelta};

/// The time between two polls of totals.
const POLL: TimeDelta = TimeDelta::from_millis(500);

/// What the flows of a server have seen so far.
#[derive(Debug)]
pub(super) struct Seen {
    pub(super) flows: Vec<FlowEvidence>,
    /// As seen by a host that polls.
    pub(super) polled: Vec<FlowEvidence>,
    pub(super) clients: Vec<ConcurrentFlows>,
}

/// A controller, and where its observer reports.
#[derive(Clone, Copy, Debug)]
pub(super) struct WatchedSpec<'a> {
    pub(super) cc: CcSpec,
    /// The flow, its client, and what is seen; `None` for flows of others.
    pub(super) watch: Option<(u32, usize, &'a RefCell<Seen>)>,
}

impl<'a> ControllerSpec for WatchedSpec<'a> {
    type Controller = WatchedController<'a>;

    fn name(&self) -> impl std::fmt::Display {
        self.cc
    }

    fn build(&self, settings: &Settings) -> WatchedController<'a> {
        WatchedController {
            controller: self.cc.build(settings),
            observer: FlowObserver::new(settings.now, settings.initial_rtt),
            totals: EcnTotals {
                packets: 0,
                marked: 0,
                rtt: TimeDelta::MAX,
                min_rtt: TimeDelta::MAX,
            },
            polled: None,
            poll_at: settings.now + POLL,
            watch: self.watch,
        }
    }
}

#[derive(Debug)]
pub(super) struct WatchedController<'a> {
    controller: AnyController,
    observer: FlowObserver,
    totals: EcnTotals,
    polled: Option<PolledFlow>,
    poll_at: Time,
    /// `None` once the flow has stopped sending ECT(1).
    watch: Option<(u32, usize, &'a RefCell<Seen>)>,
}

impl WatchedController<'_> {
    /// Polls the totals when it is time. Returns whether it did.
    fn poll(&mut self, now: Time, feedback: &Feedback<'_>) -> bool {
        self.totals.packets += feedback.acked.len() as u64;
        self.totals.marked += u64::from(feedback.ce_packets);
        if let Some(rtt) = feedback.rtt {
            (self.totals.rtt, self.totals.min_rtt) = (rtt.smoothed, rtt.min);
        }
        let polled = self.polled.get_or_insert_with(|| PolledFlow::new(now, self.totals));
        let is_due = now >= self.poll_at;
        if is_due {
            polled.on_poll(now, self.totals);
            self.poll_at = now + POLL;
        }
        is_due
    }

    fn observe(&mut self, now: Time, feedback: &Feedback<'_>) {
        let Some((flow, client, seen)) = self.watch else { return };
        let packets = u32::try_from(feedback.acked.len()).unwrap_or(u32::MAX);
        let rtt = feedback.rtt.map(|rtt| rtt.latest);
        let report = AckReport { packets, marked: feedback.ce_packets, rtt };
        let round = self.observer.on_ack(now, report);
        let has_polled = self.poll(now, feedback);
        let falls_back = self.controller.found_classic_queue();
        if falls_back {
            self.observer.on_fall_back();
            self.watch = None;
        }
        if round.is_some() || has_polled || falls_back {
            let mut seen = seen.borrow_mut();
            let polled = self.polled.map(|it| it.evidence()).unwrap_or_default();
            seen.polled[flow as usize] = polled;
            seen.flows[flow as usize] = self.observer.evidence();
            if let Some(round) = &round {
                seen.clients[client].on_round(flow, round);
            }
        }
    }
}

impl Controller for WatchedController<'_> {
    fn on_sent(&mut self, now: Time, packet: SentPacket, app: AppState) -> Token {
        self.controller.on_sent(now, packet, app)
    }

    fn on_feedback(&mut self, now: Time, feedback: &Feedback<'_>) {
        self.controller.on_feedback(now, feedback);
        self.observe(now, feedback);
    }

    fn on_spurious(&mut self, now: Time, packets: &[Lost]) {
        self.controller.on_spurious(now, packets);
    }

    fn on_timeout(&mut self, now: Time, timeout: Timeout) {
        self.controller.on_timeout(now, timeout);
    }

    fn on_path(&mut self, now: Time, event: PathEvent) {
        self.controller.on_path(now, event);
    }

    fn control(&self) -> Control {
        self.controller.control()
    }

    fn ack_frequency(&self) -> Option<AckFrequency> {
        self.controller.ack_frequency()
    }

    fn found_classic_queue(&self) -> bool {
        self.controller.found_classic_queue()
    }

    fn has_left_start(&self) -> bool {
        self.controller.has_left_start()
    }

    fn snapshot(&self) -> Snapshot {
        self.controller.snapshot()
    }

    fn on_deferred(&mut self) {
        self.controller.on_deferred();
    }
}
