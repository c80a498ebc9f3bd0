//! SEARCH, "Slow start Exit At Right CHokepoint": draft-chung-ccwg-search-09 §3.

use uncork_units::{Time, TimeDelta, wide};

use super::{SlowStart, StartAck};

/// Bins of a window (W).
const WINDOW_BINS: usize = 10;
/// A window is 3.5 times the first RTT, so 20 bins are seven RTTs.
const BINS_PER_RTTS: (u64, u64) = (20, 7);
/// Bins beyond a window: how far an RTT may look back.
const EXTRA_BINS: usize = 15;
const DELIVERED_BINS: usize = WINDOW_BINS + 1;
const SENT_BINS: usize = WINDOW_BINS + EXTRA_BINS + 1;
/// Slow start ends when this part of what was sent a round trip ago was not delivered.
const THRESHOLD_PERCENT: u64 = 26;
/// Bins count in units of this many bytes, so that 32 bits hold the bytes of a window on any path.
const UNIT_BYTES: u64 = 64;
/// Denominator of parts of a bin.
const SCALE: u64 = 1 << 10;

/// Ends slow start when deliveries no longer follow what was sent a round trip before: then the bottleneck is
/// full, and its queue grows.
///
/// Both are counted over a window of 3.5 RTTs, so that jitter of the RTT or of the acknowledgements does not end
/// slow start, as it may with [`super::HyStart`]. The window stays as it is at the exit. The draft's option to
/// drain it afterwards is not implemented.
///
/// It needs five round trips before its first decision. Where the path is full earlier, a loss ends slow start.
///
/// §3.2 of the draft interpolates the sent bytes of a time between two bins towards the later bin. That time lies
/// before the bin, so the earlier one is right: with the later one the sent bytes are too many, and slow start
/// ends early.
#[derive(Clone, Copy, Debug)]
pub struct Search {
    /// Units sent by the end of each bin, in a ring.
    sent: [u32; SENT_BINS],
    /// Likewise units delivered.
    delivered: [u32; DELIVERED_BINS],
    /// Number of the current bin.
    bin: u32,
    /// Zero before the first RTT.
    bin_length: TimeDelta,
    bin_end: Time,
    sent_bytes: u64,
}

impl SlowStart for Search {
    const INITIAL: Self = Self {
        sent: [0; SENT_BINS],
        delivered: [0; DELIVERED_BINS],
        bin: 0,
        bin_length: TimeDelta::ZERO,
        bin_end: Time::ZERO,
        sent_bytes: 0,
    };

    fn on_sent(&mut self, bytes: u32) {
        self.sent_bytes = self.sent_bytes.saturating_add(u64::from(bytes));
    }

    fn on_ack(&mut self, ack: &StartAck) -> bool {
        let Some(rtt) = ack.rtt else { return false };
        if self.bin_length.is_zero() {
            self.begin(ack, rtt.latest);
            return false;
        }
        if ack.now <= self.bin_end {
            return false;
        }
        let passed = ack.now.since(self.bin_end).as_nanos() / self.bin_length.as_nanos() + 1;
        // "Handling missed bins": the sender was idle, or nothing arrived for a window.
        if passed > WINDOW_BINS as u64 {
            self.begin(ack, rtt.latest);
            return false;
        }
        self.end_bins(passed, ack.delivered);
        self.is_full(rtt.latest)
    }
}

impl Search {
    /// Starts with the first bin, of a length by this RTT. A clock that measures zero is too coarse.
    fn begin(&mut self, ack: &StartAck, rtt: TimeDelta) {
        let (bins, rtts) = BINS_PER_RTTS;
        self.bin_length = rtt.times(rtts).divided_by(bins);
        self.bin = 0;
        self.bin_end = ack.now + self.bin_length;
        self.record(ack.delivered);
    }

    /// Ends the current bin and the `passed - 1` after it. Those without an acknowledgement are like the one before.
    fn end_bins(&mut self, passed: u64, delivered: u64) {
        let [sent, acked] = [self.sent_by(self.bin), self.delivered_by(self.bin)];
        for _ in 1..passed {
            self.bin = self.bin.wrapping_add(1);
            self.sent[self.bin as usize % SENT_BINS] = sent;
            self.delivered[self.bin as usize % DELIVERED_BINS] = acked;
        }
        self.bin = self.bin.wrapping_add(1);
        self.bin_end += self.bin_length.times(passed);
        self.record(delivered);
    }

    fn record(&mut self, delivered: u64) {
        self.sent[self.bin as usize % SENT_BINS] = units(self.sent_bytes);
        self.delivered[self.bin as usize % DELIVERED_BINS] = units(delivered);
    }

    fn sent_by(&self, bin: u32) -> u32 {
        self.sent[bin as usize % SENT_BINS]
    }

    fn delivered_by(&self, bin: u32) -> u32 {
        self.delivered[bin as usize % DELIVERED_BINS]
    }

    /// Whether deliveries of the last window fall short of what was sent in that window a round trip before.
    fn is_full(&self, rtt: TimeDelta) -> bool {
        let (rtt, bin) = (rtt.as_nanos(), self.bin_length.as_nanos());
        let (back, part) = (rtt / bin, rtt % bin);
        // A queue that made the RTT several times longer: the sent bytes of that time are gone.
        if back >= EXTRA_BINS as u64 {
            return false;
        }
        let back = u32::try_from(back).unwrap_or(u32::MAX);
        let window = WINDOW_BINS as u32;
        let Some(before) = self.bin.checked_sub(back).filter(|before| *before > window) else {
            return false;
        };
        let part = wide::saturating_mul(part, SCALE) / bin;
        let sent_until =
            |bin: u32| u64::from(self.sent_by(bin).wrapping_sub(self.sent_by(bin - window)));
        // The time a round trip ago is before the end of bin `before`, by `part` of a bin.
        let sent = sent_until(before) * (SCALE - part) + sent_until(before - 1) * part;
        let delivered =
            self.delivered_by(self.bin).wrapping_sub(self.delivered_by(self.bin - window));
        let missing = sent.saturating_sub(u64::from(delivered) * SCALE);
        sent > 0 && missing * 100 >= sent * THRESHOLD_PERCENT
    }
}

/// Bytes in units. Only differences are used, so it wraps.
fn units(bytes: u64) -> u32 {
    u32::try_from((bytes / UNIT_BYTES) & u64::from(u32::MAX)).unwrap_or(0)
}

#[cfg(test)]
mod tests {
    use uncork_units::Rate;

    use super::*;
    use crate::NewReno;
    use crate::event::RttSample;
    use crate::link::{self, Loop, Path};
    use crate::start::ClassicStart;
    use crate::{Controller, Settings};

    const RTT: TimeDelta = TimeDelta::from_millis(100);
    const TICK: TimeDelta = TimeDelta::from_millis(5);

    /// Packets and acknowledgements come each 5 ms.
    struct Sender {
        search: Search,
        now: Time,
        delivered: u64,
    }

    impl Sender {
        /// After its first acknowledgement.
        fn new() -> Self {
            Self::after(0)
        }

        /// Likewise, with this many bytes sent and delivered before.
        fn after(bytes: u64) -> Self {
            let search = Search { sent_bytes: bytes, ..Search::INITIAL };
            let mut sender = Self { search, now: Time::ZERO, delivered: bytes };
            sender.step(14_600, 14_600, RTT);
            sender
        }

        fn step(&mut self, sent: u32, delivered: u64, rtt: TimeDelta) -> bool {
            self.now += TICK;
            self.search.on_sent(sent);
            self.delivered += delivered;
            let sample = RttSample { latest: rtt, smoothed: rtt, min: RTT };
            self.search.on_ack(&StartAck {
                now: self.now,
                round: 0,
                rtt: Some(sample),
                delivered: self.delivered,
                cwnd: 100_000,
                mss: 1_000,
                is_paced: false,
            })
        }

        /// Seconds after which slow start ends if both stay at these rates, in bytes in 5 ms.
        fn exit(&mut self, sent: u32, delivered: u64, rtt: TimeDelta) -> Option<TimeDelta> {
            let begin = self.now;
            (0..1_000).find(|_| self.step(sent, delivered, rtt)).map(|_| self.now.since(begin))
        }
    }

    #[test]
    fn a_missing_quarter_is_not_enough() {
        assert_eq!(Sender::new().exit(10_000, 7_600, RTT), None);
        let exit = Sender::new().exit(10_000, 7_390, RTT).expect("26 % are missing");
        // The window of 350 ms, and the round trip that it looks back.
        assert!(exit > TimeDelta::from_millis(450) && exit < TimeDelta::from_millis(550), "{exit}");
    }

    /// §3.2 of draft -09 with the next bin in place of the one before: in a doubling flow, where the bytes sent a
    /// round trip ago are those delivered now, it finds 26 % missing where nothing is.
    #[test]
    fn sent_bytes_are_those_of_a_round_trip_ago() {
        let mut sender = Sender::new();
        // Sent 2^(t / 100 ms), delivered what was sent 100 ms before: no bottleneck.
        for tick in 0..200_i32 {
            let sent = 1_000.0 * (f64::from(tick) * 0.05).exp2();
            let is_end = sender.step(sent as u32, (sent / 2.0) as u64, RTT);
            assert!(!is_end, "after {tick} ticks");
        }
    }

    #[test]
    fn a_round_trip_longer_than_the_bins_makes_no_decision() {
        // 15 bins of 35 ms.
        assert_eq!(Sender::new().exit(10_000, 1_000, TimeDelta::from_millis(525)), None);
        assert!(Sender::new().exit(10_000, 1_000, TimeDelta::from_millis(524)).is_some());
    }

    #[test]
    fn idle_time_restarts_the_bins() {
        let mut sender = Sender::new();
        assert!((0..80).all(|_| !sender.step(10_000, 10_000, RTT)));
        sender.now += TimeDelta::from_millis(400);
        // What was sent before counts no more: 450 ms until the next decision.
        let exit = sender.exit(10_000, 1_000, RTT).expect("deliveries fall short");
        assert!(exit > TimeDelta::from_millis(450), "{exit}");
    }

    #[test]
    fn a_pause_within_the_window_keeps_the_bins() {
        let mut sender = Sender::new();
        assert!((0..80).all(|_| !sender.step(10_000, 10_000, RTT)));
        sender.now += TimeDelta::from_millis(200);
        let exit = sender.exit(10_000, 1_000, RTT).expect("deliveries fall short");
        assert!(exit < TimeDelta::from_millis(200), "{exit}");
    }

    #[test]
    fn an_rtt_of_zero_does_not_begin() {
        let mut search = Search::INITIAL;
        for tick in 0..100_u64 {
            search.on_sent(10_000);
            let now = Time::ZERO + TICK.times(tick);
            assert!(!search.on_ack(&StartAck::at(now, 0, Some(TimeDelta::ZERO))));
        }
        assert_eq!(search.bin_length, TimeDelta::ZERO);
    }

    #[test]
    fn counters_wrap() {
        // Within these 400 steps, both pass the largest number that a bin holds.
        let mut sender = Sender::after((u64::from(u32::MAX) + 1) * UNIT_BYTES - 100_000_000);
        assert!((0..400).all(|_| !sender.step(1_000_000, 1_000_000, RTT)));
    }

    /// Window at the end of slow start in thousandths of the BDP, and packets lost until 5 s.
    fn started<C: Controller>(controller: C, buffer_millibdp: u64) -> (u64, u64) {
        let path = Path::new(Rate::from_mbit(100), RTT, buffer_millibdp);
        let bdp = path.bdp();
        let mut sim = Loop::new(controller, path, 1);
        let end = Time::ZERO + TimeDelta::from_secs(5);
        assert!(sim.run_until(end, |sim| sim.snapshot().ssthresh.is_some()));
        let window = sim.cc.control().cwnd * 1_000 / bdp;
        sim.run(end, |_| {});
        (window, sim.stats.lost)
    }

    #[test]
    fn slow_start_ends_before_a_deep_buffer_is_full() {
        let settings = Settings::new(link::MSS, 1, Time::ZERO);
        let (window, lost) = started(NewReno::<Search>::with_start(&settings), 8_000);
        assert!(window > 4_000 && window < 6_500, "{window}");
        assert_eq!(lost, 0);
        let (_, lost_by_classic) = started(NewReno::<ClassicStart>::with_start(&settings), 8_000);
        assert!(lost_by_classic > 1_000, "{lost_by_classic}");
    }

    /// A full path acknowledges at its rate, so the sender sends at twice that rate, and the send times of what is
    /// acknowledged advance at half of the clock's speed: the decision comes 4.5 round trips after the path is
    /// full, with five BDPs in flight.
    #[test]
    fn in_a_buffer_of_two_bdp_a_loss_comes_first() {
        let settings = Settings::new(link::MSS, 1, Time::ZERO);
        let (_, lost) = started(NewReno::<Search>::with_start(&settings), 2_000);
        assert!(lost > 100, "{lost}");
    }

    #[test]
    fn on_a_short_path_a_loss_ends_slow_start_before_the_first_decision() {
        let path = Path::new(Rate::from_mbit(2), RTT, 1_000);
        let settings = Settings::new(link::MSS, 1, Time::ZERO);
        let mut sim = Loop::new(NewReno::<Search>::with_start(&settings), path, 1);
        let end = Time::ZERO + TimeDelta::from_secs(3);
        assert!(sim.run_until(end, |sim| sim.snapshot().ssthresh.is_some()));
        assert!(sim.stats.lost > 0);
    }
}
