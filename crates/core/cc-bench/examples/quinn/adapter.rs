//! An uncork controller as quinn's `congestion::Controller`.

use std::any::Any;
use std::collections::VecDeque;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Instant;

use quinn_proto::RttEstimator;
use quinn_proto::congestion::{Controller, ControllerFactory, ControllerMetrics};
use uncork_cc::units::{Rate, Time};
use uncork_cc::{
    Acked, AnyController, AppState, CcSpec, Control, Controller as _, Feedback, Lost, PathEvent,
    RttSample, SentPacket, Settings, Snapshot, Timeout, Token,
};

/// A factory for `TransportConfig::congestion_controller_factory`.
pub(crate) struct Factory {
    pub(crate) spec: CcSpec,
    /// Use a different one per connection.
    pub(crate) seed: u64,
}

impl ControllerFactory for Factory {
    fn build(self: Arc<Self>, now: Instant, current_mtu: u16) -> Box<dyn Controller> {
        let settings = Settings::new(current_mtu.into(), self.seed, Time::ZERO).with_paced(true);
        let state = State {
            cc: self.spec.build(&settings),
            epoch: now,
            now: Time::ZERO,
            flight: VecDeque::new(),
            in_flight: 0,
            rtt: None,
            pending: None,
        };
        let initial_window = settings.initial_window;
        Box::new(Adapter { state: Mutex::new(state), initial_window })
    }
}

/// The controller of a path. It is behind a lock, since quinn queries the window through `&self`, and that
/// query shows that an acknowledgement is complete.
pub(crate) struct Adapter {
    state: Mutex<State>,
    initial_window: u64,
}

#[derive(Clone)]
struct State {
    cc: AnyController,
    epoch: Instant,
    /// The latest time reported.
    now: Time,
    /// Batches in flight, in order: quinn reports bytes and a time, not packets.
    flight: VecDeque<Batch>,
    in_flight: u64,
    rtt: Option<RttSample>,
    pending: Option<Pending>,
}

#[derive(Clone)]
struct Batch {
    sent: Instant,
    token: Token,
    /// Bytes neither acknowledged nor lost.
    bytes: u64,
}

/// The reports collected for an acknowledgement. quinn reports its packets, then its end, then its losses.
#[derive(Clone)]
struct Pending {
    now: Instant,
    acked: Vec<Acked>,
    lost: Vec<Lost>,
    ce_packets: u32,
    has_ended: bool,
    is_persistent: bool,
    app_limited: bool,
}

impl State {
    fn time(&mut self, now: Instant) -> Time {
        self.now = self.now.max(Time::from_elapsed(now.saturating_duration_since(self.epoch)));
        self.now
    }

    fn pending(&mut self, now: Instant) -> &mut Pending {
        self.pending.get_or_insert_with(|| Pending {
            now,
            acked: Vec::new(),
            lost: Vec::new(),
            ce_packets: 0,
            has_ended: false,
            is_persistent: false,
            app_limited: false,
        })
    }

    fn on_sent(&mut self, now: Instant, bytes: u64) {
        self.settle();
        self.in_flight += bytes;
        let size = u32::try_from(bytes).unwrap_or(u32::MAX);
        let packet = SentPacket { bytes: size, in_flight: self.in_flight, unacked: self.in_flight };
        let time = self.time(now);
        let token = self.cc.on_sent(time, packet, AppState::Backlogged);
        self.flight.push_back(Batch { sent: now, token, bytes });
    }

    fn on_ack(&mut self, now: Instant, sent: Instant, bytes: u64) {
        if self.pending.as_ref().is_some_and(|pending| pending.has_ended) {
            self.settle();
        }
        let place = self.flight.partition_point(|batch| batch.sent < sent);
        let of_that_time =
            self.flight.iter_mut().skip(place).take_while(|batch| batch.sent == sent);
        let acked = take(of_that_time, bytes);
        self.in_flight -= acked.iter().map(|acked| u64::from(acked.bytes)).sum::<u64>();
        self.pending(now).acked.extend(acked);
    }

    fn on_end_acks(&mut self, now: Instant, in_flight: u64, app_limited: bool) {
        // quinn reports pure ACKs as sent, but they are never acknowledged.
        self.take_oldest(self.in_flight.saturating_sub(in_flight));
        let pending = self.pending(now);
        pending.has_ended = true;
        pending.app_limited = app_limited;
    }

    /// quinn reports the number of lost bytes and when the newest of them was sent, but not which packets
    /// they
    /// are: assume the oldest in flight.
    fn on_congestion(&mut self, now: Instant, is_persistent: bool, lost_bytes: u64) {
        let lost = self.take_oldest(lost_bytes);
        let pending = self.pending(now);
        pending.has_ended = true;
        pending.is_persistent |= is_persistent;
        pending.ce_packets += u32::from(lost_bytes == 0);
        pending.lost.extend(lost);
    }

    fn take_oldest(&mut self, bytes: u64) -> Vec<Lost> {
        let taken = take(self.flight.iter_mut(), bytes);
        self.in_flight -= taken.iter().map(|taken| u64::from(taken.bytes)).sum::<u64>();
        let lost = |Acked { token, bytes }| Lost { token, bytes, contiguous: false };
        taken.into_iter().map(lost).collect()
    }

    /// Passes a complete acknowledgement to the controller, as one feedback.
    fn settle(&mut self) {
        let Some(mut pending) = self.pending.take() else { return };
        while self.flight.front().is_some_and(|batch| batch.bytes == 0) {
            self.flight.pop_front();
        }
        let now = self.time(pending.now);
        if pending.app_limited {
            self.cc.on_path(now, PathEvent::Drained);
        }
        if pending.is_persistent {
            self.cc.on_timeout(now, Timeout::Persistent);
        }
        // A feedback lists packets in the order of transmission.
        pending.acked.sort_by_key(|acked| acked.token.send_time());
        let oldest = self.flight.front().map_or(Time::NEVER, |batch| batch.token.send_time());
        let mut feedback = Feedback::new(&pending.acked, &pending.lost, self.in_flight, oldest)
            .with_ce_packets(pending.ce_packets);
        if let Some(newest) = pending.acked.last() {
            let latest = now.since(newest.token.send_time());
            self.rtt = Some(next_rtt(self.rtt, latest));
            feedback.rtt = self.rtt;
        }
        self.cc.on_feedback(now, &feedback);
    }
}

/// Takes up to `bytes` out of `batches`, starting with the first.
fn take<'a>(batches: impl Iterator<Item = &'a mut Batch>, mut bytes: u64) -> Vec<Acked> {
    let mut taken = Vec::new();
    for batch in batches {
        let some = batch.bytes.min(bytes);
        batch.bytes -= some;
        bytes -= some;
        if some > 0 {
            taken.push(Acked { token: batch.token, bytes: some as u32 });
        }
        if bytes == 0 {
            break;
        }
    }
    taken
}

/// The next RTT estimate (RFC 9002 §5.3).
fn next_rtt(before: Option<RttSample>, latest: uncork_cc::units::TimeDelta) -> RttSample {
    let Some(before) = before else { return RttSample { latest, smoothed: latest, min: latest } };
    let smoothed = (before.smoothed.times(7) + latest).divided_by(8);
    RttSample { latest, smoothed, min: before.min.min(latest) }
}

impl Adapter {
    fn lock(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn control(&self) -> Control {
        let mut state = self.lock();
        state.settle();
        state.cc.control()
    }

    /// The state of the wrapped controller.
    pub(crate) fn snapshot(&self) -> Snapshot {
        self.lock().cc.snapshot()
    }
}

impl Controller for Adapter {
    fn on_sent(&mut self, now: Instant, bytes: u64, _last_packet_number: u64) {
        self.lock().on_sent(now, bytes);
    }

    fn on_ack(
        &mut self,
        now: Instant,
        sent: Instant,
        bytes: u64,
        _app_limited: bool,
        _rtt: &RttEstimator,
    ) {
        self.lock().on_ack(now, sent, bytes);
    }

    fn on_end_acks(
        &mut self,
        now: Instant,
        in_flight: u64,
        app_limited: bool,
        _largest_packet_num_acked: Option<u64>,
    ) {
        self.lock().on_end_acks(now, in_flight, app_limited);
    }

    fn on_congestion_event(
        &mut self,
        now: Instant,
        _sent: Instant,
        is_persistent_congestion: bool,
        lost_bytes: u64,
    ) {
        self.lock().on_congestion(now, is_persistent_congestion, lost_bytes);
    }

    fn on_mtu_update(&mut self, new_mtu: u16) {
        let mut state = self.lock();
        let now = state.now;
        state.cc.on_path(now, PathEvent::MtuChanged { mss: new_mtu.into() });
    }

    fn window(&self) -> u64 {
        self.control().cwnd
    }

    /// For qlog only: quinn's pacer does not read the rate.
    fn metrics(&self) -> ControllerMetrics {
        let control = self.control();
        let mut metrics = ControllerMetrics::default();
        metrics.congestion_window = control.cwnd;
        metrics.pacing_rate = control.pacing_rate.map(Rate::bits_per_sec);
        metrics.ssthresh = self.snapshot().ssthresh;
        metrics
    }

    fn clone_box(&self) -> Box<dyn Controller> {
        let state = self.lock().clone();
        Box::new(Self { state: Mutex::new(state), initial_window: self.initial_window })
    }

    fn initial_window(&self) -> u64 {
        self.initial_window
    }

    fn into_any(self: Box<Self>) -> Box<dyn Any> {
        self
    }
}
