//! Delivery-rate samples: draft-ietf-ccwg-bbr-06 §4.1.

use uncork_units::{Rate, Time, TimeDelta};

use crate::event::{AppState, Feedback, SentPacket, Token};

/// Measures how fast the network delivers, and knows when a measurement says more about the
/// application than about the path.
///
/// `C.` and `P.` in the comments are the draft's connection and packet state.
#[derive(Clone, Debug)]
pub(crate) struct DeliverySampler {
    /// What left earlier took another path (RFC 9000 §9.4): no sample comes of it.
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
    /// C.app_limited: samples are application-limited until `delivered` passes this; 0 means no.
    app_limited_until: u64,
    /// C.min_rtt, over the life of the connection.
    min_rtt: TimeDelta,
    /// Bytes in flight as last reported.
    in_flight: u64,
    /// When the pacer would have let the packet after the last one go, had there been one; never
    /// while the application has more.
    pacing_release: Time,
}

/// What one feedback says about the path (the draft's `RS`).
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct RateSample {
    /// Whether a packet was delivered, so that the fields below mean something.
    pub(crate) has_data: bool,
    /// RS.delivery_rate; zero where the sample is not valid.
    pub(crate) delivery_rate: Rate,
    /// RS.delivered: bytes delivered over the sampling interval.
    pub(crate) delivered: u64,
    /// RS.prior_delivered: C.delivered when the newest packet delivered now had left.
    pub(crate) prior_delivered: u64,
    /// RS.is_app_limited.
    pub(crate) is_app_limited: bool,
    /// RS.tx_in_flight: bytes in flight when that packet had left. (The draft reads but never
    /// assigns it; cf. DEVIATIONS.md (a).)
    pub(crate) tx_in_flight: u64,
    /// RS.lost: bytes declared lost since that packet had left; cf. DEVIATIONS.md (a).
    pub(crate) lost: u64,
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
    pub(crate) fn new(now: Time, initial_rtt: Option<TimeDelta>) -> Self {
        Self {
            path_since: now,
            delivered: 0,
            lost: 0,
            delivered_time: now,
            first_send_time: now,
            app_limited_until: 0,
            min_rtt: initial_rtt.unwrap_or(TimeDelta::MAX),
            in_flight: 0,
            pacing_release: Time::NEVER,
        }
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
        self.app_limited_until != 0
    }

    /// Counts bytes that arrived marked as Congestion Experienced as if they were lost, for a
    /// controller that treats both alike. Call it before [`Self::on_feedback`].
    pub(crate) fn count_marked(&mut self, bytes: u64) {
        self.lost = self.lost.saturating_add(bytes);
    }

    /// MarkConnectionAppLimited(), §4.1.2.4: samples of what is in flight now say less than the path
    /// could do.
    pub(crate) fn mark_app_limited(&mut self) {
        self.app_limited_until = self.delivered.saturating_add(self.in_flight).max(1);
    }

    /// CheckIfApplicationLimited(), §4.1.2.4. `room` says that the window would have let another
    /// packet go. A sender that ran dry but whose pacer had not yet let the next packet go has lost
    /// nothing: it is paced, not application-limited.
    pub(crate) fn check_app_limited(&mut self, now: Time, room: bool) {
        if room && now > self.pacing_release {
            self.mark_app_limited();
        }
    }

    /// OnPacketSent(), §4.1.2.2. Call [`Self::check_app_limited`] first. `pacing_rate` tells until
    /// when the pacer holds the packet after this one.
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
        self.pacing_release = match (app, pacing_rate) {
            (AppState::Backlogged, _) => Time::NEVER,
            (AppState::Drained, None) => now,
            (AppState::Drained, Some(rate)) => now + rate.time_for(u64::from(packet.bytes)),
        };
        let send_elapsed = now.since(self.first_send_time);
        Token::new(
            now,
            (self.delivered, self.delivered_time, send_elapsed, self.lost),
            packet.in_flight,
            self.is_app_limited(),
        )
    }

    /// UpdateRateSample() for every packet acknowledged, then GenerateRateSample(): §4.1.2.3.
    pub(crate) fn on_feedback(&mut self, now: Time, feedback: &Feedback<'_>) -> RateSample {
        let mut sample = RateSample {
            newly_acked: feedback.acked_bytes(),
            newly_lost: feedback.lost_bytes(),
            rtt: feedback.rtt.map(|rtt| rtt.latest),
            ..RateSample::default()
        };
        self.in_flight = feedback.in_flight;
        self.lost = self.lost.saturating_add(sample.newly_lost);
        if let Some(rtt) = feedback.rtt {
            self.min_rtt = self.min_rtt.min(rtt.latest);
        }
        // Feedback lists packets in the order of transmission, so the last one is the newest.
        let Some(newest) = feedback.acked.last() else {
            return sample;
        };
        self.delivered = self.delivered.saturating_add(sample.newly_acked);
        self.delivered_time = now;
        if self.app_limited_until != 0 && self.delivered > self.app_limited_until {
            self.app_limited_until = 0;
        }
        self.first_send_time = newest.token.send_time;
        self.measure(&newest.token, &mut sample);
        sample
    }

    fn measure(&self, newest: &Token, sample: &mut RateSample) {
        sample.has_data = true;
        sample.prior_delivered = newest.delivered;
        sample.delivered = self.delivered.saturating_sub(newest.delivered);
        sample.is_app_limited = newest.is_app_limited();
        sample.tx_in_flight = newest.tx_in_flight();
        sample.lost = self.lost.saturating_sub(newest.lost);
        let ack_elapsed = self.delivered_time.since(newest.delivered_time);
        let interval = newest.send_elapsed.max(ack_elapsed);
        // An interval below the shortest round trip comes from a packet acknowledged by way of its
        // earlier transmission: no reliable rate (§4.1.2.3).
        let is_reliable = interval >= self.min_rtt || self.min_rtt == TimeDelta::MAX;
        if is_reliable && newest.send_time >= self.path_since {
            sample.delivery_rate = Rate::of(sample.delivered, interval);
        }
    }
}
