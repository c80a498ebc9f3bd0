//! The server: sends segments and processes ACKs.

use std::num::NonZeroU64;

use uncork_cc::pacer::Pacer;
use uncork_cc::{
    Acked, AppState, Control, Controller, ControllerSpec, Feedback, InitialWindow, Lost, PathEvent,
    ResumeHint, RttSample, SentPacket, Settings, StartCounts, StartObserver, Timeout,
};
use uncork_flow::StartRecord;
use uncork_units::{Rate, Time, TimeDelta};

use super::accecn::{AccEcnFeedback, EcnDecoder, EcnEcho};
use super::ack::Ack;
use super::rack::{Rack, RackContext};
use super::rtt::RttEstimator;
use super::scoreboard::{Delivered, Scoreboard};
use super::stream::Stream;
use super::{MSS_BYTES, Segment};
use crate::offload::Offload;
use crate::spec::AccEcn;

mod offload;

/// RFC 6928.
const INITIAL_WINDOW: InitialWindow = InitialWindow::Packets(10);
/// RFC 8985 §7.2: allowance for the delayed ACK of a single segment in the probe timeout. Linux's
/// 200 ms.
const MAX_ACK_DELAY: TimeDelta = TimeDelta::from_millis(200);

/// The sending side of a connection.
#[derive(Debug)]
#[expect(
    clippy::struct_excessive_bools,
    reason = "each is asked for alone, and they take a byte each"
)]
pub(crate) struct Sender<C> {
    controller: C,
    control: Control,
    pacer: Pacer,
    board: Scoreboard,
    /// Data written by the application.
    stream: Stream,
    /// The end of the receive window, in bytes of the stream.
    window_end: u64,
    rtt: RttEstimator,
    rack: Rack,
    /// In recovery until SND.UNA reaches this.
    recovery_point: Option<NonZeroU64>,
    probe: TailProbe,
    rto_at: Time,
    backoffs: u32,
    /// Marked segments that the client has reported, if it has no AccECN.
    marked: u32,
    /// The client's counters, if it has.
    ecn: Option<Box<EcnDecoder>>,
    pace_at: Time,
    /// When the host's card will have sent all that it has.
    card_idle_from: Time,
    /// Whether bursts leave as one packet.
    offload: bool,
    /// Whether the initial window is paced, until something is acknowledged.
    paces_start: bool,
    /// When a segment last left.
    last_sent: Time,
    /// Start of the current busy period, not yet included in `counters`.
    busy_since: Time,
    counters: Counters,
    /// Whether the initial window was paced.
    paced_start: bool,
    /// Whether the start is still observed.
    is_starting: bool,
    start: StartObserver,
}

/// Buffers for the feedback of an ACK or a timer. All senders of a run share one, to avoid
/// allocations.
#[derive(Debug, Default)]
pub(crate) struct AckScratch {
    delivered: Vec<Delivered>,
    acked: Vec<Acked>,
    lost: Vec<Lost>,
    spurious: Vec<Lost>,
}

/// The tail-loss probe: RFC 8985 §7.
#[derive(Clone, Copy, Debug)]
struct TailProbe {
    at: Time,
    /// A probe must be sent with the next segment.
    due: bool,
    /// The probe in flight: its transmission number, whether it is a retransmission, and SND.NXT.
    outstanding: Option<(u64, bool, u64)>,
}

impl TailProbe {
    const NONE: Self = Self { at: Time::NEVER, due: false, outstanding: None };
}

/// What an ACK reports in addition to deliveries and losses.
#[derive(Clone, Copy, Debug, Default)]
struct News {
    rtt: Option<RttSample>,
    una_advanced: bool,
    repaired_by_probe: bool,
    ce_packets: u32,
    has_timed_out: bool,
}

/// A sender's counters.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Counters {
    pub(crate) packets_sent: u64,
    pub(crate) bytes_sent: u64,
    pub(crate) bytes_retransmitted: u64,
    pub(crate) packets_lost: u64,
    pub(crate) bytes_lost: u64,
    pub(crate) bytes_acked: u64,
    pub(crate) timeouts: u64,
    /// Total time with unacknowledged data, up to the last ACK.
    pub(crate) busy: TimeDelta,
}

/// A sender's knowledge of its host after the handshake.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Host {
    pub(crate) handshake_rtt: TimeDelta,
    /// The initial congestion window; `None` is ten segments.
    pub(crate) initial_window: Option<InitialWindow>,
    /// Who cuts bursts into segments.
    pub(crate) offload: Offload,
    /// Whether the flow sends ECT(1): its marks mean a shallow threshold (RFC 9331).
    pub(crate) scalable_marks: bool,
    /// What it has negotiated with its client.
    pub(crate) accecn: AccEcn,
    /// Seed of the controller's random choices.
    pub(crate) seed: u64,
}

impl<C: Controller> Sender<C> {
    /// A connection right after its handshake, which took a round trip of `handshake_rtt`. `stream`
    /// is the data to send.
    pub(crate) fn new(
        now: Time,
        cc: impl ControllerSpec<Controller = C>,
        stream: Stream,
        receive_window: u64,
        Host { handshake_rtt, initial_window, offload, scalable_marks, accecn, seed }: Host,
    ) -> Self {
        let window = initial_window.unwrap_or(INITIAL_WINDOW).bytes(MSS_BYTES);
        let settings = Settings::new(MSS_BYTES, seed, now)
            .with_initial_window(window)
            .with_initial_rtt(handshake_rtt)
            .with_segmentation_offload(offload != Offload::None)
            .with_scalable_marks(scalable_marks);
        let controller = cc.build(&settings);
        let mut sender = Self {
            control: controller.control(),
            controller,
            pacer: if settings.segmentation_offload {
                Pacer::catching_up()
            } else {
                Pacer::default()
            },
            board: Scoreboard::default(),
            stream,
            window_end: receive_window,
            rtt: RttEstimator::new(handshake_rtt),
            rack: Rack::new(),
            recovery_point: None,
            probe: TailProbe::NONE,
            rto_at: Time::NEVER,
            backoffs: 0,
            marked: 0,
            ecn: (accecn != AccEcn::None).then(Box::default),
            pace_at: Time::NEVER,
            card_idle_from: Time::ZERO,
            offload: settings.segmentation_offload,
            paces_start: initial_window.is_some(),
            last_sent: now,
            busy_since: now,
            counters: Counters::default(),
            paced_start: false,
            is_starting: true,
            start: StartObserver::new(now),
        };
        sender.refresh_control();
        sender.paced_start = sender.control.pacing_rate.is_some();
        sender
    }

    /// A window that the scenario sets leaves within half of the handshake's round trip, as `uncork steer` has the
    /// kernel send it, unless the controller paces.
    #[inline]
    fn refresh_control(&mut self) {
        self.control = self.controller.control();
        if self.paces_start && self.control.pacing_rate.is_none() {
            let rate = Rate::of(self.control.cwnd, self.rtt.smoothed().divided_by(2));
            self.control = self.control.with_pacing(rate, 2 * u64::from(MSS_BYTES));
        }
    }

    /// Passes an earlier connection's observations of the path to the controller.
    pub(crate) fn resume(&mut self, now: Time, hint: ResumeHint) {
        self.controller.on_path(now, PathEvent::Resume(hint));
        self.start.on_resume();
    }

    /// How the start went, of a sender with this initial window. `arrived`: bytes that the client has.
    pub(crate) fn start_record(
        &self,
        initial_window: Option<InitialWindow>,
        arrived: u64,
    ) -> StartRecord {
        StartRecord {
            window_bytes: Some(initial_window.unwrap_or(INITIAL_WINDOW).bytes(MSS_BYTES)),
            paced: Some(self.paced_start),
            ..StartRecord::of(&self.start.report(self.counters.bytes_sent, arrived))
        }
    }

    pub(crate) fn control(&self) -> Control {
        self.control
    }

    pub(crate) fn controller(&self) -> &C {
        &self.controller
    }

    /// Changes the controller from outside.
    pub(crate) fn change_controller(&mut self, change: impl FnOnce(&mut C)) {
        change(&mut self.controller);
        self.refresh_control();
    }

    pub(crate) fn counters(&self) -> &Counters {
        &self.counters
    }

    pub(crate) fn in_flight(&self) -> u64 {
        self.board.in_flight()
    }

    /// Whether everything sent is acknowledged.
    pub(crate) fn is_done(&self) -> bool {
        self.board.unacked() == 0
    }

    pub(crate) fn smoothed_rtt(&self) -> TimeDelta {
        self.rtt.smoothed()
    }

    pub(crate) fn latest_rtt(&self) -> TimeDelta {
        self.rtt.latest()
    }

    /// The application stops after one more segment, with which the sender reports to the
    /// controller that it has no more data.
    pub(crate) fn pause(&mut self) {
        self.stream.cut(self.board.next() + 1);
    }

    /// The application writes `segments` more full segments.
    pub(crate) fn write(&mut self, segments: u64) {
        self.stream.append_segments(segments);
    }

    /// The application writes a message of `bytes`.
    pub(crate) fn write_message(&mut self, bytes: u64) {
        self.stream.append(bytes);
    }

    /// The next deadline for [`Self::on_timer`].
    pub(crate) fn next_timer(&self) -> Time {
        self.rto_at.min(self.probe.at).min(self.pace_at).min(self.rack.deadline())
    }

    /// Nothing leaves before `idle_from`.
    pub(crate) fn wait_for_card(&mut self, idle_from: Time) {
        self.card_idle_from = idle_from;
    }

    /// The next segment that may leave now. Call until it returns `None`.
    //= bbr-06 2.4-1
    //= rfc9002 7-3 7.5-1
    pub(crate) fn poll_segment(&mut self, now: Time) -> Option<Segment> {
        if self.card_idle_from > now {
            self.pace_at = self.card_idle_from;
            return None;
        }
        self.pace_at = Time::NEVER;
        let is_probe = std::mem::take(&mut self.probe.due);
        let candidate = if is_probe { self.probe_segment() } else { self.next_segment() };
        let Some((seq, bytes)) = candidate else {
            self.pacer.end_burst();
            return None;
        };
        if !is_probe {
            if !self.has_room(bytes) {
                self.pacer.end_burst();
                return None;
            }
            let release = self.pacer.release(now, &self.control);
            if release > now {
                self.pace_at = release;
                return None;
            }
            if self.offload && self.defers(now, seq) {
                self.controller.on_deferred();
                self.pacer.end_burst();
                return None;
            }
        }
        let mut segment = self.send(now, seq, bytes, is_probe);
        if self.offload && !is_probe {
            self.fill(now, &mut segment);
        }
        Some(segment)
    }

    /// Whether the window has room for `bytes` more.
    fn has_room(&self, bytes: u32) -> bool {
        self.board.in_flight() + u64::from(bytes) <= self.control.cwnd
    }

    /// The next segment: losses first, then new data within the receive window.
    fn next_segment(&mut self) -> Option<(u64, u32)> {
        self.board.next_lost().or_else(|| self.new_segment())
    }

    fn new_segment(&self) -> Option<(u64, u32)> {
        let seq = self.board.next();
        let end = (seq + 1).saturating_mul(u64::from(MSS_BYTES));
        let may_leave = seq < self.stream.segments() && end <= self.window_end;
        may_leave.then(|| (seq, self.stream.bytes_of(seq)))
    }

    /// RFC 8985 §7.3: new data if there is any, otherwise the last segment.
    fn probe_segment(&self) -> Option<(u64, u32)> {
        self.new_segment().or_else(|| self.board.last())
    }

    //= bbr-06 4.1.2.1-2
    //= rfc9002 7.5-2
    #[expect(clippy::inline_always, reason = "see Receiver::on_one")]
    #[inline(always)]
    fn send(&mut self, now: Time, seq: u64, bytes: u32, is_probe: bool) -> Segment {
        let tx = self.board.next_tx();
        let retransmission = seq < self.board.next();
        if self.board.unacked() == 0 {
            self.busy_since = now;
        }
        let (in_flight, unacked) = self.board.after_sending(seq, bytes);
        // Unacknowledged data that is not in flight was lost and waits for retransmission.
        let app = if unacked > in_flight || self.has_new_data_after(seq) {
            AppState::Backlogged
        } else {
            AppState::Drained
        };
        let token = self.controller.on_sent(now, SentPacket { bytes, in_flight, unacked }, app);
        self.board.on_sent(seq, bytes, token);
        self.stream.pass(self.board.next());
        self.refresh_control();
        self.pacer.on_sent(now, u64::from(bytes), &self.control);
        self.counters.packets_sent += 1;
        self.counters.bytes_sent += u64::from(bytes);
        if retransmission {
            self.counters.bytes_retransmitted += u64::from(bytes);
        }
        if is_probe {
            self.probe.outstanding = Some((tx, retransmission, self.board.next()));
        }
        // RFC 6298 §5.1. A retransmission restarts the timer, as in Linux
        // (`tcp_xmit_retransmit_queue`).
        if self.rto_at == Time::NEVER || (retransmission && seq == self.board.una()) {
            self.rto_at = now + self.rtt.rto(self.backoffs);
        }
        self.arm_probe(now);
        self.last_sent = now;
        Segment { repeats: retransmission, ..Segment::alone(seq, tx, now, bytes) }
    }

    //= bbr-06 4.1.1.3-4
    fn has_new_data_after(&self, seq: u64) -> bool {
        self.board.next().max(seq + 1) < self.stream.segments()
    }

    /// Processes an ACK. Returns the RTT it measured, if any.
    pub(crate) fn on_ack(
        &mut self,
        now: Time,
        ack: &Ack,
        scratch: &mut AckScratch,
    ) -> Option<TimeDelta> {
        scratch.delivered.clear();
        let una_advanced = self.board.on_ack(ack, &mut scratch.delivered);
        let acked = ack.cumulative.saturating_mul(u64::from(MSS_BYTES));
        self.window_end = self.window_end.max(acked.saturating_add(ack.window));
        // A probe is sent speculatively, so a spurious one is not evidence of reordering.
        if ack.duplicate && self.probe.outstanding.is_none() {
            self.rack.on_needless_repair(self.board.una(), self.board.next());
        }
        let repaired_by_probe = self.probe_outcome(ack);
        if scratch.delivered.is_empty() {
            if let (true, Some(decoder)) = (ack.duplicate, &mut self.ecn) {
                decoder.acknowledge(1, u64::from(ack.trigger.bytes));
            }
            return None;
        }
        for segment in &scratch.delivered {
            self.rack.on_delivered(now, segment);
        }
        let rtt = self.sample_rtt(now, ack);
        self.note_delivered(now, scratch);
        if self.recovery_point.is_some_and(|point| self.board.una() >= point.get()) {
            self.recovery_point = None;
            self.rack.on_recovered();
        }
        self.restart_rto(now, una_advanced, scratch);
        self.report_spurious(now, scratch);
        self.detect_losses(now, scratch);
        let ce_packets = match &ack.ecn {
            EcnEcho::Marks(count) => {
                let count = u32::from_le_bytes(*count);
                count.saturating_sub(std::mem::replace(&mut self.marked, count))
            }
            EcnEcho::AccEcn(feedback) => self.decode(ack, feedback, scratch),
        };
        let news = News { rtt, una_advanced, repaired_by_probe, ce_packets, has_timed_out: false };
        self.give_feedback(now, news, scratch);
        self.arm_probe(now);
        rtt.map(|sample| sample.latest)
    }

    /// How many of the packets that this ACK reports are marked, by AccECN.
    #[inline(never)]
    fn decode(&mut self, ack: &Ack, feedback: &AccEcnFeedback, scratch: &AckScratch) -> u32 {
        let Some(decoder) = &mut self.ecn else { return 0 };
        if ack.duplicate {
            decoder.acknowledge(1, u64::from(ack.trigger.bytes));
        }
        let bytes = scratch.delivered.iter().map(|segment| u64::from(segment.acked.bytes)).sum();
        decoder.acknowledge(scratch.delivered.len() as u32, bytes);
        decoder.marked(feedback)
    }

    /// Whether packets must not leave with ECT(1) any more: the controller has found a classic queue, or the client has
    /// counted bytes with ECT(0), so something on the path changes ECT(1). `uncork_prague` does the same in the kernel.
    #[inline(never)]
    pub(crate) fn leaves_ect1(&mut self, now: Time) -> bool {
        if self.controller.found_classic_queue() {
            return true;
        }
        let is_changed = self.ecn.as_ref().is_some_and(|decoder| decoder.counts_ect0());
        if is_changed {
            self.controller.on_path(now, PathEvent::ClassicEcn);
            self.refresh_control();
        }
        is_changed
    }

    fn note_delivered(&mut self, now: Time, scratch: &mut AckScratch) {
        scratch.acked.clear();
        scratch.spurious.clear();
        for segment in &scratch.delivered {
            scratch.acked.push(segment.acked);
            self.counters.bytes_acked += u64::from(segment.acked.bytes);
            if let Some(token) = segment.spurious {
                let bytes = segment.acked.bytes;
                scratch.spurious.push(Lost { token, bytes, contiguous: false });
            }
        }
        self.counters.busy += now.since(std::mem::replace(&mut self.busy_since, now));
    }

    /// RFC 7323 §4.1: the echo identifies the transmission that arrived, so retransmitted segments
    /// can be measured too, which Karn's rule excludes. Otherwise a sender with a timeout below the
    /// RTT retransmits everything, and would never correct it.
    //= bbr-06 4.2-2 4.2-3 5.5.7.1-1
    //= rfc9406 4.3-3 4.3-4
    fn sample_rtt(&mut self, now: Time, ack: &Ack) -> Option<RttSample> {
        (!ack.duplicate).then(|| self.rtt.update(now.since(ack.trigger.sent)))
    }

    /// RFC 6298 §5.2 and §5.3: the timer runs while data is unacknowledged and restarts when
    /// SND.UNA advances. Linux also restarts it when a segment is SACKed that was sent only once,
    /// before SND.UNA was last sent (`tcp_clean_rtx_queue`).
    fn restart_rto(&mut self, now: Time, una_advanced: bool, scratch: &AckScratch) {
        if una_advanced {
            self.backoffs = 0;
        }
        let Some(una_tx) = self.board.una_tx() else {
            self.rto_at = Time::NEVER;
            return;
        };
        let mut delivered = scratch.delivered.iter();
        let is_older = |segment: &Delivered| !segment.retransmitted && segment.tx < una_tx;
        if una_advanced || delivered.any(is_older) {
            self.rto_at = now + self.rtt.rto(self.backoffs);
        }
    }

    fn report_spurious(&mut self, now: Time, scratch: &AckScratch) {
        if !scratch.spurious.is_empty() {
            self.controller.on_spurious(now, &scratch.spurious);
        }
    }

    fn detect_losses(&mut self, now: Time, scratch: &mut AckScratch) {
        scratch.lost.clear();
        let context = RackContext::new(self.recovery_point.is_some(), &self.rtt);
        self.rack.detect(now, &mut self.board, context, &mut scratch.lost);
        self.note_lost(&scratch.lost);
    }

    fn note_lost(&mut self, lost: &[Lost]) {
        if lost.is_empty() {
            return;
        }
        self.counters.packets_lost += lost.len() as u64;
        self.counters.bytes_lost += lost.iter().map(|lost| u64::from(lost.bytes)).sum::<u64>();
        self.recovery_point = self.recovery_point.or(NonZeroU64::new(self.board.next()));
    }

    fn give_feedback(&mut self, now: Time, news: News, scratch: &AckScratch) {
        let (in_flight, oldest_sent) = (self.board.in_flight(), self.board.oldest_sent());
        let mut feedback = Feedback::new(&scratch.acked, &scratch.lost, in_flight, oldest_sent);
        feedback.rtt = news.rtt;
        feedback.unacked = self.board.unacked();
        feedback.una_advanced = news.una_advanced;
        feedback.repaired_by_probe = news.repaired_by_probe;
        feedback.ce_packets = news.ce_packets;
        self.controller.on_feedback(now, &feedback);
        if self.is_starting {
            self.observe_start(now, &feedback, news.has_timed_out);
        }
        self.paces_start = false;
        self.refresh_control();
    }

    /// Not inlined, because it is rare: each ACK would be slower.
    #[inline(never)]
    fn observe_start(&mut self, now: Time, feedback: &Feedback<'_>, has_timed_out: bool) {
        let counts = StartCounts {
            sent: self.counters.bytes_sent,
            acked: self.counters.bytes_acked,
            window: self.control.cwnd,
            has_timed_out,
        };
        self.start.on_feedback(now, feedback, &counts, &self.controller);
        self.is_starting = !self.start.is_over();
    }

    /// Handles an expired timer. Afterwards the sender may have segments to send.
    pub(crate) fn on_timer(&mut self, now: Time, scratch: &mut AckScratch) {
        if self.rack.deadline() <= now {
            self.on_reordering_timer(now, scratch);
        }
        // A probe is due no later than the RTO and then replaces it (RFC 8985 §7.2).
        if self.probe.at <= now {
            self.on_probe_timeout(now);
        } else if self.rto_at <= now {
            self.on_retransmission_timeout(now, scratch);
        }
    }

    fn on_reordering_timer(&mut self, now: Time, scratch: &mut AckScratch) {
        self.detect_losses(now, scratch);
        scratch.acked.clear();
        self.give_feedback(now, News::default(), scratch);
    }

    fn on_retransmission_timeout(&mut self, now: Time, scratch: &mut AckScratch) {
        self.counters.timeouts += 1;
        self.backoffs += 1;
        self.rto_at = now + self.rtt.rto(self.backoffs);
        self.probe = TailProbe::NONE;
        self.controller.on_timeout(now, Timeout::Retransmission);
        scratch.lost.clear();
        let context = RackContext::new(self.recovery_point.is_some(), &self.rtt);
        self.rack.on_timeout(now, &mut self.board, context, &mut scratch.lost);
        self.note_lost(&scratch.lost);
        // Everything sent must be repaired before the reordering window applies again (RFC 6582
        // §3.2, step 4).
        self.recovery_point = NonZeroU64::new(self.board.next());
        scratch.acked.clear();
        self.give_feedback(now, News { has_timed_out: true, ..News::default() }, scratch);
    }

    fn on_probe_timeout(&mut self, now: Time) {
        self.probe.at = Time::NEVER;
        self.probe.due = true;
        self.rto_at = now + self.rtt.rto(self.backoffs);
        self.controller.on_timeout(now, Timeout::Probe);
        self.refresh_control();
    }

    /// RFC 8985 §7.2: a probe two round trips after the last ACK or transmission, unless in
    /// recovery, segments have been SACKed, or a probe is in flight.
    fn arm_probe(&mut self, now: Time) {
        let quiet = self.board.unacked() == 0
            || self.recovery_point.is_some()
            || self.board.sacked_segments() > 0
            || self.probe.outstanding.is_some()
            || self.backoffs > 0;
        let alone = self.board.in_flight() <= u64::from(MSS_BYTES);
        let delay = if alone { MAX_ACK_DELAY } else { TimeDelta::ZERO };
        let timeout = now + self.rtt.smoothed().times(2) + delay;
        self.probe.at = if quiet { Time::NEVER } else { timeout.min(self.rto_at) };
    }

    /// RFC 8985 §7.4: evaluates an ACK for the probe. Returns true if the probe repaired a loss
    /// that no ACK had revealed.
    fn probe_outcome(&mut self, ack: &Ack) -> bool {
        let Some((tx, repeats, end)) = self.probe.outstanding else {
            return false;
        };
        let answered = ack.trigger.tx == tx;
        if answered || ack.cumulative >= end {
            self.probe.outstanding = None;
        }
        answered && repeats && !ack.duplicate
    }
}

#[cfg(test)]
mod tests;
