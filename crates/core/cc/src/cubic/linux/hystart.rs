//! HyStart as in Linux: `hystart_update()`. It ends slow start at once; HyStart++ (RFC 9406) first slows
//! it down.

use uncork_units::wide::saturating_mul;
use uncork_units::{Time, TimeDelta};

use crate::event::RttSample;
use crate::round::RoundCounter;

/// The smallest window that HyStart judges, in segments (`hystart_low_window`).
const LOW_WINDOW: u64 = 16;
/// ACKs that are further apart end a train (`hystart_ack_delta_us`).
const MAX_SPACING: TimeDelta = TimeDelta::from_millis(2);
/// RTT samples of a round before their minimum is judged (`HYSTART_MIN_SAMPLES`).
const MIN_SAMPLES: u8 = 8;
/// The rise of the RTT that ends slow start is an eighth of it, within these limits in microseconds
/// (`HYSTART_DELAY_THRESH`).
const DELAY_THRESH: (u32, u32) = (4_000, 16_000);
/// Time that offload on both hosts may add to a train: four bursts of 64 KiB at the pacing rate, in
/// microseconds at most this (`hystart_ack_delay()`).
const ACK_DELAY_MAX: u64 = 1_000;
const OFFLOAD_BYTES: u64 = 4 * 65_536;

/// One ACK in slow start.
#[derive(Clone, Copy, Debug)]
pub(super) struct AckTiming {
    pub(super) now: Time,
    pub(super) rtt: RttSample,
    /// The connection's shortest RTT in microseconds, not 0.
    pub(super) delay_min: u32,
    /// The window in bytes.
    pub(super) cwnd: u64,
    /// The window in segments.
    pub(super) segments: u64,
    /// Whether the host paces.
    pub(super) is_paced: bool,
    /// Bytes delivered when the newest packet acknowledged had left.
    pub(super) prior_delivered: u64,
    /// Bytes delivered now.
    pub(super) delivered: u64,
}

/// Detects the end of slow start by the length of a train of ACKs, and by the RTT.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct HyStart {
    found: bool,
    samples: u8,
    /// The round's shortest RTT in microseconds (`curr_rtt`).
    round_rtt: u32,
    rounds: RoundCounter,
    /// When the round began, and the last ACK of its train.
    train: (Time, Time),
}

impl HyStart {
    /// Whether slow start ends with this ACK. It does so once (`found`).
    ///
    /// Rounds are counted from the first ACK, below [`LOW_WINDOW`] too, so that they begin with the first ACK of a
    /// burst. Linux 5.16 to 6.13 counted them only above it: "tcp_cubic: fix incorrect HyStart round start
    /// detection", Linux 6.14.
    pub(super) fn on_ack(&mut self, ack: &AckTiming) -> bool {
        if self.found {
            return false;
        }
        if self.rounds.update(ack.prior_delivered, ack.delivered) {
            self.train = (ack.now, ack.now);
            self.round_rtt = u32::MAX;
            self.samples = 0;
        }
        if ack.segments < LOW_WINDOW {
            return false;
        }
        let is_long = self.is_train_long(ack);
        let is_late = self.is_late(ack);
        self.found = is_long || is_late;
        self.found
    }

    /// The window leaves as a burst and returns as a train of ACKs that lasts for the link's time
    /// to send it. At half a round trip, the next window would fill the path; data paced over the
    /// round trip takes up to a whole one.
    fn is_train_long(&mut self, ack: &AckTiming) -> bool {
        let (start, end) = &mut self.train;
        if ack.now.since(*end) > MAX_SPACING {
            return false;
        }
        *end = ack.now;
        let threshold = u64::from(ack.delay_min) + ack_delay(ack);
        let threshold = if ack.is_paced { threshold } else { threshold / 2 };
        ack.now.since(*start).as_micros() > threshold
    }

    fn is_late(&mut self, ack: &AckTiming) -> bool {
        let rtt = u32::try_from(ack.rtt.latest.as_micros()).unwrap_or(u32::MAX);
        self.round_rtt = self.round_rtt.min(rtt);
        if self.samples < MIN_SAMPLES {
            self.samples += 1;
            return false;
        }
        let (least, most) = DELAY_THRESH;
        let rise = (ack.delay_min / 8).clamp(least, most);
        self.round_rtt > ack.delay_min.saturating_add(rise)
    }
}

/// Linux keeps a pacing rate for senders that do not pace, too: in slow start twice the window per
/// smoothed RTT.
fn ack_delay(ack: &AckTiming) -> u64 {
    let time = saturating_mul(OFFLOAD_BYTES, ack.rtt.smoothed.as_micros());
    (time / saturating_mul(ack.cwnd, 2).max(1)).min(ACK_DELAY_MAX)
}
