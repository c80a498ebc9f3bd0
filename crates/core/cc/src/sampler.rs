//! Delivery-rate samples: draft-ietf-ccwg-bbr-06 §4.1.

use uncork_units::wide::forget;
use uncork_units::{Rate, Time, TimeDelta};

use crate::controller::Settings;
use crate::event::{AppState, Feedback, SentPacket, Token};
use crate::ticks::Ticks;

/// Measures the delivery rate of the network, and flags samples limited by the application rather
/// than the path.
///
/// `C.` and `P.` in the comments are the draft's connection and packet state.
#[derive(Clone, Debug)]
pub(crate) struct DeliverySampler {
    /// Packets sent earlier took another path (RFC 9000 §9.4) and are not sampled.
    path_since: Time,
    /// C.delivered: bytes delivered so far.
    delivered: u64,
    /// C.lost: bytes declared lost so far.
    lost: u64,
    /// C.delivered_time: when `delivered` last grew.
    delivered_time: Time,
    /// C.first_send_time: departure of the packet most recently delivered, or of the first packet
    /// after an idle time.
    first_send_time: Time,
    /// C.app_limited: samples are application-limited until `delivered` passes this; 0 means they
    /// are not. The top bit is set if the application has no more data and no lost data waits for
    /// retransmission.
    limit_and_drained: u64,
    /// The host's clock, and C.min_rtt by it.
    ticks: Ticks,
    /// Bytes in flight as last reported.
    in_flight: u64,
    /// When the pacer releases the packet after the last one.
    pacing_release: Time,
}

const DRAINED: u64 = 1 << 63;

/// The report of one feedback about the path (the draft's `RS`).
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct RateSample {
    /// Whether a packet was delivered; otherwise the fields below are meaningless.
    pub(crate) has_data: bool,
    /// RS.delivery_rate; zero where the sample is not valid.
    pub(crate) delivery_rate: Rate,
    /// RS.delivered: bytes delivered over the sampling interval.
    pub(crate) delivered: u64,
    /// RS.prior_delivered: C.delivered when the newest packet delivered now was sent.
    pub(crate) prior_delivered: u64,
    /// RS.is_app_limited.
    pub(crate) is_app_limited: bool,
    /// RS.tx_in_flight: bytes in flight when that packet was sent. (The draft reads but never
    /// assigns it; cf. DEVIATIONS.md (a).)
    pub(crate) tx_in_flight: u64,
    /// RS.lost: bytes declared lost since that packet was sent; cf. DEVIATIONS.md (a).
    pub(crate) lost: u64,
    /// Bytes in flight before this feedback.
    pub(crate) prior_in_flight: u64,
    /// RS.newly_acked: bytes this feedback acknowledged.
    pub(crate) newly_acked: u64,
    /// RS.newly_lost: bytes this feedback declared lost.
    pub(crate) newly_lost: u64,
    /// RS.rtt.
    pub(crate) rtt: Option<TimeDelta>,
}

impl RateSample {
    /// Whether the delivery rate was measured over at least a round trip.
    pub(crate) fn is_valid(&self) -> bool {
        !self.delivery_rate.is_zero()
    }
}

impl DeliverySampler {
    pub(crate) fn new(settings: &Settings) -> Self {
        let now = settings.now;
        Self {
            path_since: now,
            delivered: 0,
            lost: 0,
            delivered_time: now,
            first_send_time: now,
            limit_and_drained: 0,
            ticks: Ticks::new(settings),
            in_flight: 0,
            pacing_release: now,
        }
    }

    /// Step of the host's clock, declared or learned; zero if it is fine enough.
    pub(crate) fn clock_granularity(&self) -> TimeDelta {
        self.ticks.tick()
    }

    /// When the connection moved to this path. Packets sent earlier are ignored.
    pub(crate) fn path_since(&self) -> Time {
        self.path_since
    }

    /// C.delivered, in bytes.
    pub(crate) fn delivered(&self) -> u64 {
        self.delivered
    }

    /// C.lost, in bytes.
    pub(crate) fn lost(&self) -> u64 {
        self.lost
    }

    /// Bytes in flight as last reported.
    pub(crate) fn in_flight(&self) -> u64 {
        self.in_flight
    }

    /// Whether packets that leave now are marked application-limited.
    pub(crate) fn is_app_limited(&self) -> bool {
        self.app_limited_until() != 0
    }

    fn app_limited_until(&self) -> u64 {
        self.limit_and_drained & !DRAINED
    }

    fn is_drained(&self) -> bool {
        self.limit_and_drained & DRAINED != 0
    }

    /// Counts bytes marked as Congestion Experienced as lost, for a controller that treats both
    /// alike. Call it before [`Self::on_feedback`].
    pub(crate) fn count_marked(&mut self, bytes: u64) {
        self.lost = self.lost.saturating_add(bytes);
    }

    /// MarkConnectionAppLimited(), §4.1.2.4: samples of the current flight may underestimate the
    /// path.
    //= bbr-06 4.1.1.3-3 4.1.2.4-5
    pub(crate) fn mark_app_limited(&mut self) {
        let limit = self.delivered.saturating_add(self.in_flight).clamp(1, DRAINED - 1);
        self.limit_and_drained = self.limit_and_drained & DRAINED | limit;
    }

    /// CheckIfApplicationLimited(), §4.1.2.4. `room` means the window has room for another packet.
    /// If the application ran dry before the pacer would have released the next packet, no
    /// opportunity was lost: the sender is pacing-limited, not application-limited.
    //= bbr-06 4.1.1.3-1 4.1.1.3-2 4.1.2.4-4
    //= rfc9002 7.8-2
    pub(crate) fn check_app_limited(&mut self, now: Time, room: bool) {
        if room && self.is_drained() && now > self.pacing_release {
            self.mark_app_limited();
        }
    }

    /// Lost data waits for retransmission (C.lost_out > C.retrans_out), so the sender has data.
    pub(crate) fn lost_data_waits(&mut self) {
        self.limit_and_drained &= !DRAINED;
    }

    /// The last packet sent turns out to be the last one available.
    //= bbr-06 4.1.2.4-4
    pub(crate) fn run_dry(&mut self) {
        self.limit_and_drained |= DRAINED;
    }

    /// OnPacketSent(), §4.1.2.2. Call [`Self::check_app_limited`] first. `pacing_rate` determines
    /// until when the pacer holds the next packet.
    //= bbr-06 4.1.2.2-1 4.1.2.2-2
    #[inline]
    pub(crate) fn on_sent(
        &mut self,
        now: Time,
        packet: SentPacket,
        app: AppState,
        pacing_rate: Option<Rate>,
    ) -> Token {
        if packet.unacked <= u64::from(packet.bytes) {
            self.first_send_time = now;
            self.delivered_time = now;
        }
        self.in_flight = packet.in_flight;
        let held = pacing_rate.map(|rate| rate.time_for(u64::from(packet.bytes)));
        self.pacing_release = now + held.unwrap_or_default();
        match app {
            AppState::Backlogged => self.lost_data_waits(),
            AppState::Drained => self.run_dry(),
        }
        let send_elapsed = now.since(self.first_send_time);
        Token::new(
            now,
            (self.delivered, self.delivered_time, send_elapsed, self.lost),
            packet.in_flight,
            self.is_app_limited(),
        )
    }

    /// UpdateRateSample() for every packet acknowledged, then GenerateRateSample(): §4.1.2.3.
    //= bbr-06 2.2-8 2.2-11 2.3-1 4.1-1 4.1.2.1-3 4.1.2.3-1 4.1.2.3-2 4.1.2.3-3 4.1.2.3-5 4.1.3.4-1
    pub(crate) fn on_feedback(&mut self, now: Time, feedback: &Feedback<'_>) -> RateSample {
        let mut sample = RateSample {
            prior_in_flight: self.in_flight,
            newly_acked: feedback.acked_bytes(),
            newly_lost: feedback.lost_bytes(),
            rtt: feedback
                .rtt
                .and_then(|rtt| self.ticks.rtt(now, rtt.latest, feedback.acked.last())),
            ..RateSample::default()
        };
        self.in_flight = feedback.in_flight;
        if feedback.unacked > feedback.in_flight {
            self.lost_data_waits();
        }
        self.lost = self.lost.saturating_add(sample.newly_lost);
        // Feedback lists packets in order of transmission, so the last one is the newest.
        let Some(newest) = feedback.acked.last() else {
            return sample;
        };
        self.delivered = self.delivered.saturating_add(sample.newly_acked);
        self.delivered_time = now;
        if self.delivered > self.app_limited_until() {
            self.limit_and_drained &= DRAINED;
        }
        self.first_send_time = newest.token.send_time;
        forget();
        self.measure(&newest.token, &mut sample);
        sample
    }

    //= bbr-06 2.3-2 2.3-3 4.1.1.2-1 4.1.1.2-2 4.1.2.3-6 4.1.3.5-1
    fn measure(&mut self, newest: &Token, sample: &mut RateSample) {
        let (covered, is_reliable) = self.ticks.covered(newest, self.delivered_time);
        sample.has_data = true;
        sample.prior_delivered = covered.prior_delivered;
        sample.delivered = self.delivered.saturating_sub(covered.prior_delivered);
        sample.is_app_limited = covered.is_app_limited;
        sample.tx_in_flight = newest.tx_in_flight();
        sample.lost = self.lost.saturating_sub(newest.lost);
        if is_reliable && newest.send_time >= self.path_since {
            sample.delivery_rate = Rate::of(sample.delivered, covered.interval);
        }
    }
}

#[cfg(test)]
mod tests {
    extern crate std;

    use std::vec::Vec;

    use super::*;
    use crate::event::{Acked, Lost, RttSample};

    const BYTES: u32 = 1_000;

    fn at(ms: u64) -> Time {
        Time::ZERO + ms_delta(ms)
    }

    fn ms_delta(ms: u64) -> TimeDelta {
        TimeDelta::from_millis(ms)
    }

    /// Of a connection that is on its path since then.
    fn settings(ms: u64) -> Settings {
        Settings::new(BYTES, 1, at(ms))
    }

    /// A sender of packets of 1000 bytes with an unlimited window.
    struct Flow {
        sampler: DeliverySampler,
        in_flight: u64,
        pacing_rate: Option<Rate>,
    }

    impl Flow {
        fn new() -> Self {
            let sampler = DeliverySampler::new(&settings(0).with_initial_rtt(ms_delta(100)));
            Self { sampler, in_flight: 0, pacing_rate: None }
        }

        fn send(&mut self, ms: u64, app: AppState) -> Token {
            self.sampler.check_app_limited(at(ms), true);
            self.in_flight += u64::from(BYTES);
            let in_flight = self.in_flight;
            let packet = SentPacket { bytes: BYTES, in_flight, unacked: in_flight };
            self.sampler.on_sent(at(ms), packet, app, self.pacing_rate)
        }

        /// Sends `n` packets, one per millisecond.
        fn send_train(&mut self, from_ms: u64, n: u64) -> Vec<Token> {
            (from_ms..from_ms + n).map(|ms| self.send(ms, AppState::Backlogged)).collect()
        }

        fn feedback(&mut self, ms: u64, acked: &[Token], lost: &[Token]) -> RateSample {
            self.in_flight -= (acked.len() + lost.len()) as u64 * u64::from(BYTES);
            let acked: Vec<Acked> =
                acked.iter().map(|&token| Acked { token, bytes: BYTES }).collect();
            let lost: Vec<Lost> =
                lost.iter().map(|&token| Lost { token, bytes: BYTES, contiguous: false }).collect();
            let rtt = acked.last().map(|newest| at(ms).since(newest.token.send_time));
            let feedback = Feedback {
                acked: &acked,
                lost: &lost,
                rtt: rtt.map(|rtt| RttSample { latest: rtt, smoothed: rtt, min: rtt }),
                ce_packets: 0,
                in_flight: self.in_flight,
                unacked: self.in_flight,
                una_advanced: true,
                oldest_sent: Time::NEVER,
                repaired_by_probe: false,
            };
            self.sampler.check_app_limited(at(ms), true);
            self.sampler.on_feedback(at(ms), &feedback)
        }

        fn ack(&mut self, ms: u64, token: Token) -> RateSample {
            self.feedback(ms, &[token], &[])
        }
    }

    fn bytes_per_sec(sample: RateSample) -> u64 {
        sample.delivery_rate.bytes_per_sec()
    }

    /// 60 packets in flight over a path that delivers one every 2 ms; 20 of them are queued.
    #[test]
    //= bbr-06 2-2 4.1.1.2-1 4.1.2.2-2 4.1.2.3-6 4.1.2.3-8 test
    fn rate_is_that_of_the_bottleneck() {
        let mut flow = Flow::new();
        let mut flight = flow.send_train(0, 60);
        let mut rates = Vec::new();
        for round in 0..3 {
            let arrivals = (100 + 120 * round..).step_by(2);
            flight = arrivals
                .zip(flight)
                .map(|(ms, packet)| {
                    rates.push(bytes_per_sec(flow.ack(ms, packet)));
                    flow.send(ms, AppState::Backlogged)
                })
                .collect();
        }
        assert_eq!(rates[0], 10_000, "1000 bytes in 100 ms");
        assert_eq!(rates[59], 60_000 * 1_000 / 218);
        assert!(rates[120..].iter().all(|rate| *rate == 500_000), "{:?}", &rates[120..]);
    }

    /// Data that took 150 ms to send arrives all at once, 100 ms after the last delivery.
    #[test]
    //= bbr-06 4.1.1.2-2 4.1.1.2-3 4.1.2.3-2 4.1.2.3-3 4.1.2.3-6 test
    fn compressed_acks_do_not_exceed_the_sending_rate() {
        let mut flow = Flow::new();
        let train = flow.send_train(0, 100);
        flow.ack(150, train[0]);
        let last = flow.send(150, AppState::Backlogged);
        let sample = flow.feedback(250, &[&train[1..], &[last]].concat(), &[]);
        assert_eq!(sample.delivered, 100_000);
        assert_eq!(bytes_per_sec(sample), 100_000 * 1_000 / 150);
    }

    #[test]
    fn a_late_arrival_was_not_in_flight_before_its_ack() {
        let mut flow = Flow::new();
        let train = flow.send_train(0, 3);
        flow.feedback(100, &[train[1]], &[train[0]]);
        flow.in_flight += u64::from(BYTES); // that of the packet which left the flight as lost
        let sample = flow.feedback(110, &[train[0]], &[]);
        assert_eq!((sample.newly_acked, sample.prior_in_flight), (1_000, 1_000));
    }

    #[test]
    //= bbr-06 4.1.2.1-2 4.1.2.4-4 test
    fn sender_with_retransmissions_waiting_is_not_application_limited() {
        for waiting in [0, 1_000] {
            let mut sampler = DeliverySampler::new(&settings(0));
            let packet = SentPacket { bytes: BYTES, in_flight: 1_000, unacked: 1_000 };
            let token = sampler.on_sent(at(0), packet, AppState::Drained, None);
            let feedback = Feedback {
                acked: &[],
                lost: &[Lost { token, bytes: BYTES, contiguous: false }],
                rtt: None,
                ce_packets: 0,
                in_flight: 0,
                unacked: waiting,
                una_advanced: false,
                oldest_sent: Time::NEVER,
                repaired_by_probe: false,
            };
            sampler.on_feedback(at(100), &feedback);
            sampler.check_app_limited(at(100), true);
            assert_eq!(sampler.is_app_limited(), waiting == 0, "{waiting} bytes waiting");
        }
    }

    #[test]
    //= bbr-06 4.1.2.1-3 4.1.2.3-7 4.1.3.5-1 test
    fn interval_below_min_rtt_yields_no_rate() {
        let mut flow = Flow::new();
        let first = flow.send(0, AppState::Backlogged);
        flow.ack(100, first);
        let again = flow.send(150, AppState::Backlogged);
        // 99 ms: the ACK belongs to an earlier transmission of those bytes.
        let early = flow.sampler.measured(at(249), again);
        assert!(early.has_data && !early.is_valid());
        assert_eq!(bytes_per_sec(flow.sampler.measured(at(250), again)), 10_000);
    }

    impl DeliverySampler {
        /// The sample of a packet that arrives at `now` without an RTT sample.
        fn measured(&self, now: Time, token: Token) -> RateSample {
            let feedback = Feedback {
                acked: &[Acked { token, bytes: BYTES }],
                lost: &[],
                rtt: None,
                ce_packets: 0,
                in_flight: 0,
                unacked: 0,
                una_advanced: true,
                oldest_sent: Time::NEVER,
                repaired_by_probe: false,
            };
            self.clone().on_feedback(now, &feedback)
        }
    }

    #[test]
    //= bbr-06 4.1.2.2-1 test
    fn the_first_packet_after_an_idle_time_starts_a_new_interval() {
        let mut flow = Flow::new();
        let first = flow.send(0, AppState::Backlogged);
        flow.ack(100, first);
        let after = flow.send(5_000, AppState::Backlogged);
        let sample = flow.ack(5_100, after);
        assert_eq!(bytes_per_sec(sample), 10_000, "1000 bytes in 100 ms, not in 5 s");
    }

    /// Packets presumed lost by a timeout may still arrive: the interval continues until all are
    /// acknowledged.
    #[test]
    //= bbr-06 4.1.2.2-1 test
    fn the_first_packet_after_a_timeout_does_not_start_a_new_interval() {
        for (unacked, rate) in [(2_000, 1_000_000 / 1_100), (1_000, 10_000)] {
            let mut flow = Flow::new();
            let train = flow.send_train(0, 2);
            flow.feedback(1_000, &[], &train);
            assert_eq!(flow.sampler.in_flight(), 0);
            let packet = SentPacket { bytes: BYTES, in_flight: 1_000, unacked };
            let again = flow.sampler.on_sent(at(1_000), packet, AppState::Backlogged, None);
            assert_eq!(bytes_per_sec(flow.sampler.measured(at(1_100), again)), rate);
        }
    }

    #[test]
    //= bbr-06 2.3-1 2.3-2 2.3-3 4.1.2.2-2 4.1.2.3-2 test
    fn sample_reports_inflight_at_departure_and_losses_since() {
        let mut flow = Flow::new();
        let flight = flow.send_train(0, 5);
        flow.feedback(100, &flight[..1], &flight[1..3]);
        let sample = flow.ack(103, flight[3]);
        assert_eq!(sample.tx_in_flight, 4_000);
        assert_eq!(sample.lost, 2_000);
        assert_eq!((sample.newly_acked, sample.newly_lost), (1_000, 0));
        assert_eq!((flow.sampler.delivered(), flow.sampler.lost()), (2_000, 2_000));
        let next = flow.send(104, AppState::Backlogged);
        assert_eq!(flow.ack(204, next).lost, 0, "lost before it left");
    }

    /// In QUIC, copies have their own packet numbers, so both may arrive.
    #[test]
    //= bbr-06 2.2-8 test
    fn unnecessary_retransmissions_count_twice() {
        let mut flow = Flow::new();
        let flight = flow.send_train(0, 4);
        flow.feedback(100, &flight[1..], &flight[..1]);
        let again = flow.send(101, AppState::Backlogged);
        flow.in_flight += u64::from(BYTES); // what was lost turns up, and leaves nothing in flight
        flow.ack(102, flight[0]);
        flow.ack(201, again);
        assert_eq!((flow.sampler.delivered(), flow.sampler.lost()), (5_000, 1_000));
    }

    #[test]
    //= bbr-06 4.1.3.4-1 test
    fn reordering_does_not_change_the_bytes_delivered() {
        let mut flow = Flow::new();
        let flight = flow.send_train(0, 4);
        let samples = [0, 2, 1, 3].map(|i| flow.ack(100 + i as u64, flight[i]));
        // Each sample covers everything that arrived since its packet left.
        assert_eq!(samples.map(|sample| sample.prior_delivered), [0; 4]);
        let times = [100, 102, 101, 103];
        assert_eq!(flow.sampler.delivered(), 4_000, "{times:?}");
        assert_eq!(samples.map(|sample| sample.delivered), [1_000, 2_000, 3_000, 4_000]);
    }

    #[test]
    //= bbr-06 2.2-11 4.1-1 4.1.2.3-1 test
    fn losses_alone_are_not_a_sample() {
        let mut flow = Flow::new();
        let flight = flow.send_train(0, 3);
        let sample = flow.feedback(300, &[], &flight);
        assert!(!sample.has_data && !sample.is_valid());
        assert_eq!((sample.newly_lost, flow.sampler.lost()), (3_000, 3_000));
        assert_eq!(flow.sampler.in_flight(), 0);
    }

    #[test]
    //= bbr-06 4.1.1.3-1 4.1.1.3-3 4.1.2.3-5 4.1.2.4-1 4.1.2.4-4 4.1.2.4-5 test
    fn idle_application_limits_samples_until_the_flight_has_arrived() {
        let mut flow = Flow::new();
        let last = flow.send(0, AppState::Drained);
        assert!(!last.is_app_limited(), "it left while there was data");
        let first = flow.send(10, AppState::Backlogged);
        assert!(first.is_app_limited());
        assert!(!flow.ack(100, last).is_app_limited);
        assert!(flow.sampler.is_app_limited());
        assert!(flow.ack(110, first).is_app_limited);
        assert!(!flow.sampler.is_app_limited());
        assert!(!flow.send(111, AppState::Backlogged).is_app_limited());
    }

    #[test]
    //= bbr-06 4.1.1.3-1 4.1.2.4-4 test
    fn host_may_report_drained_later() {
        let mut flow = Flow::new();
        flow.pacing_rate = Some(Rate::from_bytes_per_sec(100_000));
        let first = flow.send(0, AppState::Backlogged);
        flow.sampler.run_dry();
        flow.sampler.check_app_limited(at(10), true);
        assert!(!flow.sampler.is_app_limited(), "the pacer would not have sent earlier");
        let late = flow.send(11, AppState::Backlogged);
        assert!(late.is_app_limited());
        flow.ack(100, first);
        flow.ack(111, late);
        assert!(!flow.send(500, AppState::Backlogged).is_app_limited(), "there was more data");
    }

    /// Data to send includes losses that wait for retransmission.
    #[test]
    //= bbr-06 4.1.2.4-4 test
    fn a_sender_with_more_to_send_is_not_application_limited() {
        let mut flow = Flow::new();
        flow.send(0, AppState::Backlogged);
        assert!(!flow.send(500, AppState::Backlogged).is_app_limited());
        flow.sampler.check_app_limited(at(1_000), true);
        assert!(!flow.sampler.is_app_limited());
    }

    #[test]
    //= rfc9002 7.8-2 test
    //= bbr-06 4.1.1.3-2 test
    fn a_paced_sender_is_not_application_limited() {
        let mut flow = Flow::new();
        flow.pacing_rate = Some(Rate::from_bytes_per_sec(100_000));
        flow.send(0, AppState::Drained);
        // The pacer holds the next packet for 10 ms, and the application writes before that.
        assert!(!flow.send(10, AppState::Drained).is_app_limited());
        assert!(flow.send(21, AppState::Drained).is_app_limited());
    }

    #[test]
    //= bbr-06 4.1.1.3-2 4.1.2.4-4 test
    fn a_sender_with_a_full_window_is_not_application_limited() {
        let mut flow = Flow::new();
        flow.send(0, AppState::Drained);
        flow.sampler.check_app_limited(at(50), false);
        assert!(!flow.sampler.is_app_limited());
        flow.sampler.check_app_limited(at(50), true);
        assert!(flow.sampler.is_app_limited());
    }

    #[test]
    fn packets_of_another_path_are_delivered_but_not_sampled() {
        let mut flow = Flow::new();
        let old = flow.send_train(0, 3);
        flow.sampler = DeliverySampler::new(&settings(50));
        let new = flow.send(60, AppState::Backlogged);
        let sample = flow.feedback(110, &old, &[]);
        assert!(sample.has_data && !sample.is_valid());
        assert_eq!(sample.newly_acked, 3_000);
        assert!(flow.ack(160, new).is_valid());
    }

    #[test]
    fn marked_bytes_count_as_lost() {
        let mut flow = Flow::new();
        let flight = flow.send_train(0, 2);
        flow.sampler.count_marked(1_000);
        assert_eq!(flow.ack(100, flight[0]).lost, 1_000);
    }
}
