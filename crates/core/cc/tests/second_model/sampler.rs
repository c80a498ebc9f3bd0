//! The delivery-rate sampler, draft-ietf-ccwg-bbr-06 §4.1.2. Times are nanoseconds, volumes bytes.

use super::Switches;

/// P: per-packet state.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Packet {
    pub(crate) packet_id: u64,
    pub(crate) size: f64,
    pub(crate) delivered: f64,
    pub(crate) delivered_time: f64,
    pub(crate) first_send_time: f64,
    pub(crate) send_time: f64,
    pub(crate) is_app_limited: bool,
    pub(crate) tx_in_flight: f64,
    pub(crate) lost: f64,
}

/// RS: the rate sample of an ACK.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct RateSample {
    pub(crate) has_data: bool,
    pub(crate) rtt: Option<f64>,
    pub(crate) prior_delivered: f64,
    prior_time: f64,
    pub(crate) is_app_limited: bool,
    pub(crate) delivered: f64,
    /// Bytes per second.
    pub(crate) delivery_rate: f64,
    /// Whether the interval was long enough for a rate.
    pub(crate) is_reliable: bool,
    pub(crate) newly_acked: f64,
    pub(crate) tx_in_flight: f64,
    pub(crate) lost: f64,
    send_elapsed: f64,
    ack_elapsed: f64,
    last_acked_packet_id: u64,
    /// P.lost of the newest packet acknowledged.
    prior_lost: f64,
}

/// C: per-connection state.
#[derive(Clone, Debug)]
pub(crate) struct Connection {
    pub(crate) smss: f64,
    pub(crate) initial_cwnd: f64,
    pub(crate) cwnd: f64,
    pub(crate) inflight: f64,
    pub(crate) delivered: f64,
    delivered_time: f64,
    first_send_time: f64,
    pub(crate) lost: f64,
    pub(crate) app_limited: f64,
    /// Infinite before the first sample.
    pub(crate) min_rtt: f64,
    pub(crate) srtt: Option<f64>,
    next_packet_id: u64,
    /// Whether no data was waiting after the last packet.
    pub(crate) no_unsent_data: bool,
    /// C.lost_out > C.retrans_out: lost data waits for retransmission.
    pub(crate) lost_data_waits: bool,
    /// When the pacer releases the next packet.
    pub(crate) next_send_time: f64,
}

impl Connection {
    pub(crate) fn new(now: f64, smss: f64, initial_cwnd: f64, srtt: Option<f64>) -> Self {
        Self {
            smss,
            initial_cwnd,
            cwnd: initial_cwnd,
            inflight: 0.0,
            delivered: 0.0,
            delivered_time: now,
            first_send_time: now,
            lost: 0.0,
            app_limited: 0.0,
            min_rtt: srtt.unwrap_or(f64::INFINITY),
            srtt,
            next_packet_id: 1,
            no_unsent_data: false,
            lost_data_waits: false,
            next_send_time: now,
        }
    }

    /// OnPacketSent(). `unacked` excludes this packet.
    pub(crate) fn on_packet_sent(&mut self, now: f64, size: f64, unacked: f64) -> Packet {
        if unacked == 0.0 {
            self.first_send_time = now;
            self.delivered_time = now;
        }
        self.inflight += size;
        let packet_id = self.next_packet_id;
        self.next_packet_id += 1;
        Packet {
            packet_id,
            size,
            delivered: self.delivered,
            delivered_time: self.delivered_time,
            first_send_time: self.first_send_time,
            send_time: now,
            is_app_limited: self.app_limited != 0.0,
            tx_in_flight: self.inflight,
            lost: self.lost,
        }
    }

    /// UpdateRateSample().
    pub(crate) fn update_rate_sample(&mut self, now: f64, rs: &mut RateSample, p: &Packet) {
        self.delivered += p.size;
        self.delivered_time = now;
        rs.newly_acked += p.size;
        let is_newest = p.send_time > self.first_send_time
            || (p.send_time == self.first_send_time && p.packet_id > rs.last_acked_packet_id);
        if !rs.has_data || is_newest {
            rs.has_data = true;
            rs.prior_delivered = p.delivered;
            rs.prior_time = p.delivered_time;
            rs.is_app_limited = p.is_app_limited;
            rs.send_elapsed = p.send_time - p.first_send_time;
            rs.ack_elapsed = self.delivered_time - p.delivered_time;
            rs.last_acked_packet_id = p.packet_id;
            rs.tx_in_flight = p.tx_in_flight;
            rs.prior_lost = p.lost;
            self.first_send_time = p.send_time;
        }
    }

    /// GenerateRateSample().
    pub(crate) fn generate_rate_sample(&mut self, rs: &mut RateSample) {
        if self.app_limited != 0.0 && self.delivered > self.app_limited {
            self.app_limited = 0.0;
        }
        if !rs.has_data {
            return;
        }
        let interval = rs.send_elapsed.max(rs.ack_elapsed);
        rs.delivered = self.delivered - rs.prior_delivered;
        if self.min_rtt.is_finite() && interval < self.min_rtt {
            return;
        }
        if interval != 0.0 {
            rs.is_reliable = true;
            rs.delivery_rate = (rs.delivered * 1e9 / interval).floor();
        }
    }

    /// The volumes for the loss rate, missing in §4.1.2.3, (a). They include the losses reported by
    /// the ACK itself.
    pub(crate) fn fill_in_volumes(&self, rs: &mut RateSample, switches: &Switches) {
        rs.lost = self.lost - rs.prior_lost;
        if switches.a_volumes_are_never_assigned {
            rs.tx_in_flight = 0.0;
            rs.lost = 0.0;
        }
    }

    /// MarkConnectionAppLimited().
    pub(crate) fn mark_connection_app_limited(&mut self) {
        self.app_limited = (self.delivered + self.inflight).max(1.0);
    }
}
