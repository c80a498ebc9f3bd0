//! A piecewise constant rate, integrated exactly.

use std::sync::Arc;

use uncork_units::{Rate, Time};

use super::UNITS_PER_BYTE;

/// From `start` until the next piece, the link sends `rate` bytes per second.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct RateSegment {
    /// Nanoseconds from the start of the curve.
    start: u64,
    /// Bytes per second, equal to units per nanosecond.
    rate: u64,
    /// Units sent by all earlier pieces.
    before: u128,
}

/// A rate over time. Repeats after its length, if it has one; otherwise the last piece lasts
/// forever.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Curve {
    /// Never empty. The first piece starts at 0; start times increase.
    pieces: Box<[RateSegment]>,
    /// In nanoseconds, more than the start of the last piece; `u64::MAX` for a curve that never
    /// repeats.
    length: u64,
    /// Units over the whole length.
    total: u128,
}

impl Curve {
    /// A curve with each rate starting at its time (nanoseconds, sorted). Of several rates at one
    /// time the last counts. Before the first time it has the first rate.
    pub(super) fn new(rates: impl IntoIterator<Item = (u64, Rate)>, length: u64) -> Self {
        let mut pieces: Vec<RateSegment> = Vec::new();
        for (start, rate) in rates {
            let start = if pieces.is_empty() { 0 } else { start };
            pieces.pop_if(|last| last.start == start);
            let before = pieces.last().map_or(0, |last| last.units_until(start));
            pieces.push(RateSegment { start, rate: rate.bytes_per_sec(), before });
        }
        if pieces.is_empty() {
            pieces.push(RateSegment { start: 0, rate: 0, before: 0 });
        }
        let total = pieces.last().map_or(0, |last| last.units_until(length));
        Self { pieces: pieces.into(), length, total }
    }

    pub(super) fn length(&self) -> u64 {
        self.length
    }

    /// Start time and rate of each piece.
    pub(super) fn rates(&self) -> impl Iterator<Item = (u64, Rate)> {
        self.pieces.iter().map(|piece| (piece.start, Rate::from_bytes_per_sec(piece.rate)))
    }

    /// Mean over the whole length; the final rate for a curve that never repeats.
    pub(super) fn mean(&self) -> Rate {
        let mean = match self.length {
            u64::MAX => self.pieces.last().map_or(0, |last| u128::from(last.rate)),
            length => self.total / u128::from(length.max(1)),
        };
        Rate::from_bytes_per_sec(u64::try_from(mean).unwrap_or(u64::MAX))
    }

    /// Units sent in the first `nanos`.
    fn units_until(&self, nanos: u64) -> u128 {
        let (laps, inside) = (nanos / self.length, nanos % self.length);
        u128::from(laps) * self.total + self.pieces[self.index_at(inside)].units_until(inside)
    }

    fn index_at(&self, inside: u64) -> usize {
        self.pieces.partition_point(|piece| piece.start <= inside).saturating_sub(1)
    }

    /// End of the piece `index`.
    fn end_of(&self, index: usize) -> u64 {
        self.pieces.get(index + 1).map_or(self.length, |next| next.start)
    }
}

impl RateSegment {
    fn units_until(self, nanos: u64) -> u128 {
        self.before + u128::from(self.rate) * u128::from(nanos - self.start)
    }
}

/// A link that sends at a curve's rate, one packet at a time.
#[derive(Clone, Debug)]
pub(super) struct CurveClock {
    curve: Arc<Curve>,
    /// Offset of time zero in the curve, in nanoseconds. All times below count from the curve's
    /// start.
    offset: u64,
    /// When sending ends; `u64::MAX` for never.
    stop: u64,
    /// The piece at `free` and its lap.
    index: usize,
    lap_start: u64,
    piece_end: u64,
    /// When the last packet has left.
    free: u64,
    /// Unused capacity of the last nanosecond before `free`, for a packet that follows immediately.
    /// Without it every packet would take up to a nanosecond too long.
    spare: u64,
}

impl CurveClock {
    pub(super) fn new(curve: Arc<Curve>, offset: u64, repeat: bool) -> Self {
        let stop = if repeat { u64::MAX } else { curve.length };
        let piece_end = curve.end_of(0);
        Self { curve, offset, stop, index: 0, lap_start: 0, piece_end, free: offset, spare: 0 }
    }

    /// When a packet of `bytes` has been sent, if its transmission begins at `start`.
    #[inline]
    pub(super) fn finish(&mut self, start: Time, bytes: u32) -> Time {
        let start = self.inside(start);
        if start > self.free {
            (self.free, self.spare) = (start, 0);
        }
        let need = u64::from(bytes) * UNITS_PER_BYTE;
        if need <= self.spare {
            self.spare -= need;
        } else {
            self.transmit(need - self.spare);
        }
        if self.free == u64::MAX {
            return Time::NEVER;
        }
        Time::from_nanos(self.free - self.offset)
    }

    /// Sends `need` units starting at `free`.
    fn transmit(&mut self, mut need: u64) {
        while self.free < self.stop {
            self.seek();
            let rate = self.curve.pieces[self.index].rate;
            let end = self.piece_end.min(self.stop);
            let can = u128::from(rate) * u128::from(end - self.free);
            if can >= u128::from(need) {
                let span = need.div_ceil(rate);
                self.free += span;
                // Less than `rate`, so it is right even if the product wraps.
                self.spare = span.wrapping_mul(rate).wrapping_sub(need);
                return;
            }
            need -= can as u64;
            self.free = end;
            need = self.skip_laps(need);
        }
        (self.free, self.spare) = (u64::MAX, 0);
    }

    /// Skips whole laps at once, so that a very slow link costs no computing time. Something always
    /// remains to be sent.
    fn skip_laps(&mut self, need: u64) -> u64 {
        if self.free != self.lap_start.saturating_add(self.curve.length) {
            return need;
        }
        let Some(laps) = u128::from(need - 1).checked_div(self.curve.total) else {
            self.free = u64::MAX;
            return need;
        };
        self.free = self.free.saturating_add((laps as u64).saturating_mul(self.curve.length));
        need - (laps * self.curve.total) as u64
    }

    /// Moves to the piece that holds `free`.
    fn seek(&mut self) {
        if self.free < self.piece_end {
            return;
        }
        let laps = (self.free - self.lap_start) / self.curve.length;
        self.lap_start += laps * self.curve.length;
        let inside = self.free - self.lap_start;
        let next = if laps == 0 { self.index + 1 } else { 0 };
        let follows = next < self.curve.pieces.len() && inside < self.curve.end_of(next);
        self.index = if follows { next } else { self.curve.index_at(inside) };
        self.piece_end = self.lap_start.saturating_add(self.curve.end_of(self.index));
    }

    pub(super) fn rate_at(&self, time: Time) -> Rate {
        let time = self.inside(time);
        if time >= self.stop {
            return Rate::ZERO;
        }
        let index = self.curve.index_at(time % self.curve.length);
        Rate::from_bytes_per_sec(self.curve.pieces[index].rate)
    }

    /// Bytes that can be sent until `time`, rounded down.
    pub(super) fn capacity(&self, time: Time) -> u64 {
        let [begin, end] = [Time::ZERO, time].map(|time| self.inside(time).min(self.stop));
        let units = self.curve.units_until(end) - self.curve.units_until(begin);
        u64::try_from(units / u128::from(UNITS_PER_BYTE)).unwrap_or(u64::MAX)
    }

    fn inside(&self, time: Time) -> u64 {
        time.as_nanos().saturating_add(self.offset)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    /// The first nanosecond by which `units` have been sent since `start`, counted piece by piece
    /// from the beginning: slow, but stateless.
    fn naive(rates: &[(u64, u64)], length: u64, repeat: bool, start: u64, units: u128) -> u64 {
        let (mut lap, mut sent) = (0, 0);
        loop {
            for (index, (from, rate)) in rates.iter().enumerate() {
                let until = rates.get(index + 1).map_or(length, |next| next.0);
                let (from, until) = ((lap + from).max(start), (lap + until).max(start));
                let more = u128::from(*rate) * u128::from(until - from);
                if sent + more >= units && *rate > 0 {
                    return from + (units - sent).div_ceil(u128::from(*rate)) as u64;
                }
                sent += more;
            }
            lap += length;
            if !repeat || rates.iter().all(|(_, rate)| *rate == 0) {
                return u64::MAX;
            }
        }
    }

    fn curve(rates: &[(u64, u64)], length: u64) -> Arc<Curve> {
        let rates = rates.iter().map(|(at, rate)| (*at, Rate::from_bytes_per_sec(*rate)));
        Arc::new(Curve::new(rates, length))
    }

    /// 3 bytes per nanosecond: a packet of 1000 bytes takes 333 1/3 ns, and three of them 1000 ns.
    #[test]
    fn fractions_of_a_nanosecond_do_not_add_up() {
        let mut clock = CurveClock::new(curve(&[(0, 3_000_000_000)], u64::MAX), 0, true);
        let mut ends = vec![0; 3_000_000];
        let mut now = Time::ZERO;
        for end in &mut ends {
            now = clock.finish(now, 1000);
            *end = now.as_nanos();
        }
        assert_eq!(ends[..3], [334, 667, 1000]);
        assert_eq!(ends[2_999_999], 1_000_000_000);
        // After a pause unused capacity is lost.
        assert_eq!(clock.finish(Time::from_nanos(2_000_000_000), 1000).as_nanos(), 2_000_000_334);
    }

    #[test]
    fn curve_of_rate_zero_never_sends() {
        let mut clock = CurveClock::new(curve(&[(0, 0), (10, 0)], 20), 5, true);
        assert_eq!(clock.finish(Time::ZERO, 1), Time::NEVER);
        assert_eq!(clock.finish(Time::from_nanos(100), 0), Time::NEVER);
    }

    /// A byte takes a thousand laps.
    #[test]
    fn many_laps_are_skipped_at_once() {
        let rates = [(0, 0), (999_999, 1_000_000)];
        let mut clock = CurveClock::new(curve(&rates, 1_000_000), 0, true);
        assert_eq!(clock.finish(Time::ZERO, 1).as_nanos(), 1_000 * 1_000_000);
        let gigabyte = clock.finish(Time::ZERO, 1_000_000_000).as_nanos();
        assert_eq!(gigabyte, 1_000_000_001 * 1_000_000_000);
    }

    #[test]
    fn extremes_do_not_overflow() {
        let mut clock = CurveClock::new(curve(&[(0, u64::MAX)], u64::MAX), 0, true);
        assert_eq!(clock.finish(Time::from_nanos(7), u32::MAX).as_nanos(), 8);
        assert_eq!(clock.finish(Time::NEVER, 1), Time::NEVER);
        assert_eq!(clock.capacity(Time::NEVER), u64::MAX);
        let mut slow = CurveClock::new(curve(&[(0, 1)], u64::MAX), 0, true);
        assert_eq!(slow.finish(Time::ZERO, u32::MAX).as_nanos(), 4_294_967_295 * 1_000_000_000);
        for _ in 0..4 {
            slow.finish(Time::ZERO, u32::MAX);
        }
        assert_eq!(slow.finish(Time::ZERO, u32::MAX), Time::NEVER);
    }

    proptest! {
        /// For any pieces, offset and pauses: back-to-back packets leave when the integral of the
        /// rate since the first one reaches their sum.
        #[test]
        fn the_integral_is_exact(
            lengths in proptest::collection::vec(50_000_u64..3_000_000, 1..8),
            speeds in proptest::collection::vec(0_u64..4, 8),
            fine in 1_000_003_u64..1_000_000_007,
            offset in 0_u64..20_000_000,
            repeat: bool,
            packets in proptest::collection::vec((0_u64..4_000_000, 1_u32..3000, 0_u32..3), 1..60),
        ) {
            let mut length = 0;
            let mut rates = Vec::new();
            for (span, speed) in lengths.iter().zip(speeds) {
                rates.push((length, speed * fine));
                length += span;
            }
            let mut clock = CurveClock::new(curve(&rates, length), offset, repeat);
            let (mut begin, mut units, mut left) = (offset, 0, offset);
            for (pause, bytes, pauses) in packets {
                if pauses == 0 && left != u64::MAX && pause > 0 {
                    (begin, units) = (left + pause, 0);
                }
                units += u128::from(bytes) * 1_000_000_000;
                let expected = naive(&rates, length, repeat, begin, units);
                let start = if units == u128::from(bytes) * 1_000_000_000 { begin } else { left };
                let end = clock.finish(Time::from_nanos(start.saturating_sub(offset)), bytes);
                left = expected;
                let expected = if expected == u64::MAX { expected } else { expected - offset };
                prop_assert_eq!(end.as_nanos(), expected);
                if left == u64::MAX {
                    break;
                }
            }
        }

        /// A busy link sends exactly its capacity, to the packet.
        #[test]
        fn a_busy_link_sends_its_capacity(
            rates in proptest::collection::vec(0_u64..2_000_000, 2..6),
            offset in 0_u64..10_000_000,
        ) {
            let rates: Vec<(u64, u64)> = (0..).step_by(1_000_000).zip(rates).collect();
            let length = rates.len() as u64 * 1_000_000;
            let mut clock = CurveClock::new(curve(&rates, length), offset, true);
            let end = Time::from_nanos(500_000_000);
            let capacity = clock.capacity(end);
            let mut sent = 0;
            while clock.finish(Time::ZERO, 7) <= end {
                sent += 7;
            }
            prop_assert!((sent..sent + 7).contains(&capacity), "{sent} of {capacity}");
        }
    }
}
