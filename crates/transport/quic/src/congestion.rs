//! The congestion control of one path: a controller and the bookkeeping around it.

use uncork_cc::{
    Acked, AnyController, AppState, Control, Controller, EcnMode, Feedback, Lost, PathEvent,
    ResumeHint, RttSample, SentPacket, Settings, Timeout,
};
use uncork_ecn::{AckReport, FlowEvidence, FlowObserver};
use uncork_units::{Rate, Time, TimeDelta};

use crate::choice::Choice;
use crate::counts::PathCounts;
use crate::delivery::DeliveryRate;
use crate::handle::Observation;
use crate::ledger::{Ledger, Sent};
use crate::observed::{Observed, Space};
use crate::pending::PendingAcks;
use crate::rtt::QuicRttEstimator;
use crate::start::PathStart;
use crate::watch::{Event, Watcher};

/// The default exponent of a peer's acknowledgement delays (RFC 9000 §18.2).
const ACK_DELAY_EXPONENT: u32 = 3;
/// The minimum congestion window, in packets (RFC 9002 §7.2).
const MIN_WINDOW: u64 = 2;
/// Upper bound on consecutive packets that the stack counts in flight but does not report.
const UNREPORTED: u64 = 1024;
/// A packet that lacks more bytes to a full one has no data of a longer response: the end of the handshake, settings.
const SMALL_FRAMES: u32 = 100;
/// Probe timeouts after which the stack no longer expects a lost packet to arrive.
const LATE: u64 = 2;

/// The congestion control of one path.
#[derive(Clone, Debug)]
pub(crate) struct PathCongestion {
    choice: Choice,
    controller: AnyController,
    seed: u64,
    mss: u32,
    ledger: Ledger,
    rtt: QuicRttEstimator,
    /// The latest time reported.
    now: Time,
    /// Packets sent earlier belong to a previous controller.
    since: Time,
    /// CE marks so far, by space.
    marked: [u64; 3],
    /// Findings about marks.
    ecn: EcnFindings,
    /// What packets with ECT(1) met.
    observer: FlowObserver,
    counts: PathCounts,
    /// The part of `counts` from other paths.
    before: PathCounts,
    delivery: DeliveryRate,
    is_drained: bool,
    watcher: Watcher,
    pending: PendingAcks,
    start: PathStart,
    /// Whether it is the connection's first path.
    is_first: bool,
}

impl PathCongestion {
    pub(crate) fn new(choice: Choice, seed: u64, mss: u16, now: Time) -> Self {
        let mss = u32::from(mss);
        let mut path = Self {
            choice,
            controller: choice.spec.build(&settings(
                &choice,
                EcnFindings::default(),
                mss,
                seed,
                now,
            )),
            seed,
            mss,
            ledger: Ledger::default(),
            rtt: QuicRttEstimator::default(),
            now,
            since: now,
            marked: [0; 3],
            ecn: EcnFindings::default(),
            observer: FlowObserver::new(now, None),
            counts: PathCounts::default(),
            before: PathCounts::default(),
            delivery: DeliveryRate::new(now),
            is_drained: false,
            watcher: Watcher::default(),
            pending: PendingAcks::default(),
            start: PathStart::default(),
            is_first: true,
        };
        path.offer_hint();
        path
    }

    /// Gives a new controller what an earlier connection observed on this path.
    fn offer_hint(&mut self) {
        if let Some(hint) = self.hint() {
            self.controller.on_path(self.now, PathEvent::Resume(hint));
        }
    }

    fn hint(&self) -> Option<ResumeHint> {
        self.choice.resume.filter(|_| self.is_first)
    }

    /// Reports all events from now on.
    pub(crate) fn watch(&mut self, watcher: Watcher) {
        self.watcher = watcher;
    }

    /// Continues the counts of another path, which no longer reports anything.
    pub(crate) fn count_from(&mut self, former: &Self) {
        let own = self.counts.less(&self.before);
        (self.counts, self.before) = (former.counts, former.counts.less(&own));
        self.ledger.forget_all_of(&former.ledger);
        self.delivery.begin(self.now, self.counts.acked_bytes);
        // The peer counts for the whole connection, on all its paths (RFC 9000 §13.4.1).
        self.marked = former.marked;
        self.is_first = false;
        if let Some(start) = former.start.so_far(&former.counts) {
            self.start = PathStart::Ended(start);
        }
    }

    pub(crate) fn initial_window(&self) -> u64 {
        self.settings().initial_window
    }

    fn settings(&self) -> Settings {
        settings(&self.choice, self.ecn, self.mss, self.seed, self.now)
    }

    /// The observable state.
    pub(crate) fn observation(&self) -> Observation {
        let Self { counts, ledger, .. } = self;
        Observation {
            spec: self.choice.spec,
            control: self.control(),
            snapshot: self.controller.snapshot(),
            rtt: self.rtt.last(),
            probe_timeout: self.rtt.probe_timeout(),
            delivery_rate: self.delivery.newest(),
            is_drained: self.is_drained,
            in_flight: ledger.in_flight(),
            unheard_bytes: ledger.forgotten(),
            sent_bytes: counts.sent_bytes,
            acked_bytes: counts.acked_bytes,
            lost_bytes: counts.lost_bytes,
            lost_packets: counts.lost_packets,
            spurious_packets: counts.spurious_packets,
            ce_packets: counts.ce_packets,
            ecn: self.ecn(),
            has_ecn_failed: self.ecn.has_failed,
            ecn_evidence: self.ecn_evidence(),
            start: self.start.so_far(counts),
            is_first_path: self.is_first,
        }
    }

    /// The latest, smoothed and smallest round-trip time.
    pub(crate) fn rtt(&self) -> Option<RttSample> {
        self.rtt.last()
    }

    /// Whether nothing was left to send at the last acknowledgement, and nothing has been sent since.
    pub(crate) fn is_drained(&self) -> bool {
        self.is_drained
    }

    /// Window, pacing rate and send quantum.
    pub(crate) fn control(&self) -> Control {
        let mut control = self.controller.control();
        control.cwnd = control.cwnd.max(MIN_WINDOW * u64::from(self.mss));
        if let Some(cap) = self.choice.pacing_cap {
            // The rate at which the stack paces when it is given no rate (RFC 9002 §7.7).
            let by_stack = |rtt: RttSample| Rate::of(control.cwnd / 4 * 5, rtt.smoothed);
            let rate = control.pacing_rate.or_else(|| self.rtt.last().map(by_stack));
            control.pacing_rate = Some(rate.map_or(cap, |rate| rate.min(cap)));
        }
        control
    }

    /// The bytes that the stack may have in flight.
    ///
    /// The stack pads ACK-only packets to the size of others in their batch. It then counts them in
    /// flight, but does not report them to the controller, and the peer does not acknowledge them.
    /// If they fill the window, the stack sends nothing, ACKs included, until the connection times
    /// out. So when no ack-eliciting packet is in flight, this leaves room for one on top of them.
    pub(crate) fn window(&self) -> u64 {
        let unreported = if self.ledger.in_flight() == 0 { UNREPORTED } else { 0 };
        self.control().cwnd + unreported * u64::from(self.mss)
    }

    /// Applies a choice. A new algorithm inherits the measurements. On a path that has just
    /// started, it starts from scratch.
    pub(crate) fn choose(&mut self, choice: Choice) {
        let window = self.initial_window();
        self.ecn.is_classic |= self.choice.ecn == EcnMode::L4s && !self.is_l4s();
        let before = std::mem::replace(&mut self.choice, choice);
        let begins = self.is_beginning(window.max(self.initial_window()));
        let is_same = choice.initial_window == before.initial_window
            && (choice.resume == before.resume || !self.is_first);
        if choice.spec == before.spec && choice.ecn == before.ecn && (!begins || is_same) {
            return;
        }
        // Packets sent until now have tokens of the previous controller.
        self.now += TimeDelta::from_nanos(1);
        let mut settings = self.settings();
        let rtt = self.rtt.last();
        settings.initial_rtt = rtt.map(|rtt| rtt.min);
        settings.inherited = rtt.filter(|_| !begins).map(|rtt| self.controller.bequeath(rtt));
        self.since = self.now;
        self.controller = choice.spec.build(&settings);
        if begins {
            self.start = PathStart::default();
            self.offer_hint();
        } else {
            self.start.end(&self.counts);
        }
    }

    /// Whether at most one initial `window` was sent on this path, without congestion.
    fn is_beginning(&self, window: u64) -> bool {
        let own = self.counts.less(&self.before);
        own.lost_packets == 0 && own.ce_packets == 0 && own.sent_bytes <= window
    }

    /// A copy for the path that the connection moved to, without the packets in flight on the old one.
    pub(crate) fn moved(&self) -> Self {
        let mut moved = self.clone();
        moved.ledger.clear();
        moved.pending.clear();
        moved
    }

    /// How the next packets use ECN.
    pub(crate) fn ecn(&self) -> EcnMode {
        match self.choice.ecn {
            _ if self.ecn.has_failed => EcnMode::None,
            EcnMode::L4s if !self.is_l4s() => EcnMode::Classic,
            chosen => chosen,
        }
    }

    /// What the queues on the path have shown while packets had ECT(1).
    fn ecn_evidence(&self) -> Option<FlowEvidence> {
        let evidence = self.observer.evidence();
        let is_l4s = self.choice.ecn == EcnMode::L4s;
        let fell_back = is_l4s && !self.ecn.has_failed && !self.is_l4s();
        let evidence = FlowEvidence { fell_back, ecn_fails: self.ecn.has_failed, ..evidence };
        (is_l4s || evidence.rounds > 0).then_some(evidence)
    }

    /// Whether marks may be those of an L4S queue.
    fn is_l4s(&self) -> bool {
        let has_found_classic = self.ecn.is_classic || self.controller.found_classic_queue();
        self.choice.ecn == EcnMode::L4s && !has_found_classic
    }

    /// Marks are missing or wrong (RFC 9000 §13.4.2.1): the stack sends Not-ECT from now on.
    pub(crate) fn on_ecn_validation_failed(&mut self) {
        self.ecn.has_failed = true;
        self.controller.on_path(self.now, PathEvent::ClassicEcn);
    }

    /// A packet is sent.
    pub(crate) fn on_sent(&mut self, observed: &Observed, now: Time, packet: u64, bytes: u16) {
        self.settle(observed);
        self.discard_spaces(observed);
        self.now = self.now.max(now);
        let bytes = u32::from(bytes);
        self.is_drained = false;
        if self.ledger.in_flight() == 0 {
            self.delivery.begin(self.now, self.counts.acked_bytes);
        }
        let in_flight = self.ledger.in_flight() + u64::from(bytes);
        let sent = SentPacket { bytes, in_flight, unacked: in_flight };
        let token = self.controller.on_sent(self.now, sent, AppState::Backlogged);
        let space = observed.sent_space();
        let is_full = bytes + SMALL_FRAMES >= self.mss;
        let has_handshake = space == Space::Data && observed.is_discarded(Space::Handshake);
        if !self.start.has_begun() && has_handshake && is_full {
            let resumes = self.hint().is_some();
            self.start.begin(self.now, self.initial_window(), self.counts, resumes);
        }
        self.ledger.on_sent(space, packet, Sent { token, bytes });
        self.counts.sent_bytes += u64::from(bytes);
        self.watcher.notify(self.now, &Event::Sent { space, packet, bytes });
    }

    /// A packet is acknowledged.
    pub(crate) fn on_acked(&mut self, observed: &Observed, now: Time, packet: u64) {
        if self.pending.is_acked {
            self.settle(observed);
        }
        if self.opens(now) {
            self.pending.space = observed.received().space;
        }
        let Some(Sent { token, bytes }) = self.ledger.on_acked(self.pending.space, packet) else {
            return;
        };
        self.counts.acked_bytes += u64::from(bytes);
        self.pending.acked.push(Acked { token, bytes });
        self.pending.newest = Some(packet);
    }

    /// All packets of an acknowledgement have been reported. `largest` is the largest packet number
    /// ever acknowledged; `is_drained`: nothing was left to send.
    pub(crate) fn on_acks_end(
        &mut self,
        observed: &Observed,
        now: Time,
        largest: Option<u64>,
        is_drained: bool,
    ) {
        self.opens(now);
        self.pending.is_acked = true;
        self.pending.largest = largest;
        self.pending.is_drained = is_drained;
        self.keep_ack_frame(observed);
    }

    /// A packet is declared lost.
    pub(crate) fn on_lost(&mut self, now: Time, packet: u64, bytes: u16) {
        if self.opens(now) {
            self.pending.space = self.ledger.space_of(packet, u32::from(bytes));
        }
        self.pending.is_acked = true;
        let Some(lost) = self.ledger.on_lost(self.pending.space, packet) else { return };
        self.counts.lost_bytes += u64::from(lost.bytes);
        self.counts.lost_packets += 1;
        let (space, bytes) = (self.pending.space, lost.bytes);
        self.watcher.notify(self.now, &Event::Lost { space, packet, bytes });
        self.pending.lost.push(lost);
    }

    /// The stack reports congestion, by loss or by mark.
    pub(crate) fn on_congestion(&mut self, now: Time, is_persistent: bool, is_marked: bool) {
        self.opens(now);
        self.pending.is_persistent |= is_persistent;
        self.pending.is_marked |= is_marked;
    }

    /// The packet size changes.
    pub(crate) fn on_mtu(&mut self, mtu: u16) {
        if self.pending.is_open {
            // Defer it until the current acknowledgement is processed.
            self.pending.mtu = Some(mtu);
        } else {
            self.change_mtu(mtu);
        }
    }

    fn change_mtu(&mut self, mtu: u16) {
        self.mss = u32::from(mtu);
        self.controller.on_path(self.now, PathEvent::MtuChanged { mss: self.mss });
    }

    /// An event at `now`. True if it is the first of an acknowledgement or a timer.
    fn opens(&mut self, now: Time) -> bool {
        self.now = self.now.max(now);
        !std::mem::replace(&mut self.pending.is_open, true)
    }

    fn discard_spaces(&mut self, observed: &Observed) {
        for space in [Space::Initial, Space::Handshake] {
            if observed.is_discarded(space) {
                self.ledger.discard(space);
            }
        }
    }

    /// Passes the collected acknowledgement on to the controller.
    pub(crate) fn settle(&mut self, observed: &Observed) {
        if !self.pending.is_open {
            return;
        }
        let AckDetails { delay, marked } = self.process_ack_frame(observed);
        if self.pending.largest.is_some() {
            self.is_drained = self.pending.is_drained;
        }
        if self.pending.is_drained {
            self.controller.on_path(self.now, PathEvent::Drained);
        }
        if self.pending.is_persistent {
            self.controller.on_timeout(self.now, Timeout::Persistent);
        }
        let rtt = self.measure(delay);
        if let Some(newest) = self.pending.acked.last() {
            let (sent, drained) = (newest.token.send_time(), self.pending.is_drained);
            self.delivery.on_acked(self.now, sent, self.counts.acked_bytes, drained);
        }
        if self.ecn() == EcnMode::L4s {
            let packets = u32::try_from(self.pending.acked.len()).unwrap_or(u32::MAX);
            let report = AckReport { packets, marked, rtt: rtt.map(|rtt| rtt.latest) };
            self.observer.on_ack(self.now, report);
        }
        self.forget(observed);
        let Self { pending, ledger, .. } = self;
        let (in_flight, oldest) = (ledger.in_flight(), ledger.oldest_sent());
        let mut feedback = Feedback::new(&pending.acked, &pending.lost, in_flight, oldest);
        (feedback.rtt, feedback.ce_packets) = (rtt, marked);
        let feedback = feedback.since(self.since);
        let window = self.start.is_followed().then(|| self.controller.control().cwnd);
        self.controller.on_feedback(self.now, &feedback);
        if let Some(window) = window {
            let counts = (&self.counts, window, pending.is_persistent);
            self.start.on_feedback(self.now, &feedback, counts, &self.controller);
        }
        if let Some(mtu) = self.pending.mtu {
            self.change_mtu(mtu);
        }
        self.pending.clear();
        if self.watcher.is_set() {
            self.watcher.notify(self.now, &Event::Settled(&self.observation()));
        }
    }

    /// Keeps the ACK frame of the current packet: the next packet may come before this one is settled.
    fn keep_ack_frame(&mut self, observed: &Observed) {
        let mut received = observed.received();
        let (space, Some(ack)) = (received.space, &received.ack) else { return };
        let event = Event::Acknowledged { space, ranges: &ack.ranges, ce_total: ack.ce_total };
        self.watcher.notify(self.now, &event);
        if space == self.pending.space {
            self.pending.ack = received.ack.take();
        }
    }

    /// Processes the contents of the ACK frame that the stack does not report.
    fn process_ack_frame(&mut self, observed: &Observed) -> AckDetails {
        let Some(ack) = self.pending.ack.take() else { return AckDetails::default() };
        self.take_spurious(|packet| ack.contains(packet));
        // The stack has checked the count (RFC 9000 §13.4.2.1).
        let marked = if self.pending.is_marked { self.count_marked(ack.ce_total) } else { 0 };
        let micros = ack.delay.saturating_mul(1 << ACK_DELAY_EXPONENT);
        observed.received().put_back(ack);
        AckDetails { delay: TimeDelta::from_micros(micros), marked }
    }

    fn count_marked(&mut self, total: Option<u64>) -> u32 {
        let before = &mut self.marked[self.pending.space as usize];
        let marked = total.unwrap_or(0).saturating_sub(*before);
        *before += marked;
        self.counts.ce_packets += marked;
        u32::try_from(marked).unwrap_or(u32::MAX)
    }

    fn take_spurious(&mut self, has_arrived: impl Fn(u64) -> bool) {
        let Self { ledger, pending, .. } = self;
        let mut spurious: Vec<Lost> = Vec::new();
        ledger.take_spurious(pending.space, has_arrived, |lost| spurious.push(lost));
        if spurious.is_empty() {
            return;
        }
        self.counts.spurious_packets += spurious.len() as u64;
        let own = spurious.partition_point(|lost| lost.token.send_time() < self.since);
        self.controller.on_spurious(self.now, &spurious[own..]);
        let acked = &mut self.pending.acked;
        acked.extend(spurious.iter().map(|&Lost { token, bytes, .. }| Acked { token, bytes }));
        acked.sort_by_key(|packet| packet.token.send_time());
    }

    /// A round-trip time, if the largest packet number is newly acknowledged (RFC 9002 §5.1).
    fn measure(&mut self, delay: TimeDelta) -> Option<RttSample> {
        let PendingAcks { acked, newest, largest, .. } = &self.pending;
        let newest = acked.last().filter(|_| newest == largest)?;
        Some(self.rtt.update(self.now.since(newest.token.send_time()), delay))
    }

    /// Forgets packets that the stack will not report any more.
    fn forget(&mut self, observed: &Observed) {
        let late = self.rtt.probe_timeout().times(LATE);
        self.ledger.forget_lost(before(self.now, late));
        if let Some(largest) = self.pending.largest {
            // The stack awaits a packet for at most two round trips once a later one is acknowledged.
            let latest = self.rtt.last().map_or(TimeDelta::ZERO, |rtt| rtt.latest);
            let unreported = before(self.now, late + latest);
            self.ledger.forget_unreported(self.pending.space, largest, unreported);
        }
        self.discard_spaces(observed);
    }
}

/// The contents of an ACK frame, without its ranges.
#[derive(Clone, Copy, Debug, Default)]
struct AckDetails {
    /// ACK delay.
    delay: TimeDelta,
    /// New CE marks.
    marked: u32,
}

/// What a path's marks have shown.
#[derive(Clone, Copy, Debug, Default)]
struct EcnFindings {
    /// ECN validation failed.
    has_failed: bool,
    /// An earlier controller found a queue that is not for L4S.
    is_classic: bool,
}

/// Settings of a controller. The stack always paces.
fn settings(choice: &Choice, ecn: EcnFindings, mss: u32, seed: u64, now: Time) -> Settings {
    let mut settings = Settings::new(mss, seed, now);
    settings.paced = true;
    settings.scalable_marks = choice.ecn == EcnMode::L4s && !ecn.has_failed && !ecn.is_classic;
    if let Some(window) = choice.initial_window {
        settings.initial_window = window.bytes(mss);
    }
    settings
}

fn before(now: Time, span: TimeDelta) -> Time {
    Time::from_nanos(now.as_nanos().saturating_sub(span.as_nanos()))
}
