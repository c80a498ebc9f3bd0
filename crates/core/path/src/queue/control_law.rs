//! CoDel's control law (RFC 8289): when the packet at the head of a queue is dropped or marked.
//!
//! This follows the pseudocode of RFC 8289 §5 line by line, including its rule for `count` when
//! re-entering the drop state (§5.5): start with the number of drops of the previous drop state, if
//! it ended less than 16 intervals ago. Linux does the same. The 2012 paper's variant, `count - 2`,
//! is not used. Beyond the pseudocode:
//!
//! - With ECN on, an ECN-capable packet is marked instead of dropped, at most one per departure, as
//!   in Linux's `codel_impl.h`; the RFC leaves marking to the implementation.
//! - Linux approximates the square root with Newton steps in 16 bits. Here `interval / sqrt(count)`
//!   is exact, rounded down to a nanosecond.
//! - The interface's MTU is unknown to the queue, so it uses the largest packet seen.

use uncork_units::{Time, TimeDelta};

use super::Queued;
use super::codel::CodelSpec;
use crate::Packet;

/// State of one CoDel: RFC 8289 §5.2, with its names.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct ControlLaw {
    /// The first drop happens if the sojourn time stays above target until then; `None` while it is
    /// below.
    first_above: Option<Time>,
    /// When the next packet will be dropped, in the drop state.
    drop_next: Time,
    /// Packets dropped since entering the drop state; determines the drop rate.
    count: u32,
    /// `count` at the start of the drop state.
    last_count: u32,
    dropping: bool,
}

/// The packet that was at the head of the queue, and whether it may be dropped.
struct QueueHead<T> {
    queued: Option<Queued<T>>,
    ok_to_drop: bool,
}

/// Time, callbacks and parameters of a departure.
struct DepartureContext<'a, P, D> {
    spec: &'a CodelSpec,
    now: Time,
    pop: P,
    dropped: &'a mut D,
}

impl ControlLaw {
    /// The packet that leaves at `now`, possibly marked. `pop` removes the oldest packet and
    /// returns whether at most one MTU is left behind it. Packets dropped before it are passed to
    /// `dropped`.
    pub(super) fn dequeue<T>(
        &mut self,
        spec: &CodelSpec,
        now: Time,
        pop: impl FnMut() -> Option<(Queued<T>, bool)>,
        dropped: &mut impl FnMut(Packet<T>),
    ) -> Option<Queued<T>> {
        let mut departure = DepartureContext { spec, now, pop, dropped };
        let mut head = self.head(&mut departure);
        if self.dropping {
            self.dropping = head.ok_to_drop;
            while self.dropping && now >= self.drop_next {
                self.count = self.count.saturating_add(1);
                let marked;
                (head, marked) = self.signal(head, &mut departure);
                self.dropping = head.ok_to_drop;
                if self.dropping {
                    self.drop_next += spacing(spec.interval, self.count);
                }
                if marked {
                    break;
                }
            }
        } else if head.ok_to_drop {
            (head, _) = self.signal(head, &mut departure);
            self.enter(spec.interval, now);
        }
        head.queued
    }

    /// Marks the packet, or drops it if it cannot be marked and continues with the next one.
    /// Returns true if marked.
    fn signal<T, P, D>(
        &mut self,
        mut head: QueueHead<T>,
        departure: &mut DepartureContext<'_, P, D>,
    ) -> (QueueHead<T>, bool)
    where
        P: FnMut() -> Option<(Queued<T>, bool)>,
        D: FnMut(Packet<T>),
    {
        if let Some(queued) = &mut head.queued
            && departure.spec.ecn
            && queued.packet.mark()
        {
            return (head, true);
        }
        if let Some(queued) = head.queued {
            (departure.dropped)(queued.packet);
        }
        (self.head(departure), false)
    }

    /// `dodequeue` of RFC 8289 §5.6: below target, or with at most one MTU left, drops are disabled
    /// for an interval.
    fn head<T, P, D>(&mut self, departure: &mut DepartureContext<'_, P, D>) -> QueueHead<T>
    where
        P: FnMut() -> Option<(Queued<T>, bool)>,
    {
        let Some((queued, short)) = (departure.pop)() else {
            self.first_above = None;
            return QueueHead { queued: None, ok_to_drop: false };
        };
        let &mut DepartureContext { spec, now, .. } = departure;
        let above = !short && now.since(queued.since) >= spec.target;
        let ok_to_drop = above && self.first_above.is_some_and(|time| now >= time);
        let first_above = self.first_above.unwrap_or(now + spec.interval);
        self.first_above = above.then_some(first_above);
        QueueHead { queued: Some(queued), ok_to_drop }
    }

    /// The first packet has been dropped or marked at `now`.
    fn enter(&mut self, interval: TimeDelta, now: Time) {
        self.dropping = true;
        let drops = self.count - self.last_count;
        let recent = now.since(self.drop_next) < interval.times(16);
        self.count = if recent { drops.max(1) } else { 1 };
        self.drop_next = now + spacing(interval, self.count);
        self.last_count = self.count;
    }
}

/// `interval / sqrt(count)` (`control_law` of RFC 8289 §5.6), rounded down to a nanosecond: the
/// largest `n` with `n² <= interval² / count`. The quotient may also be rounded down.
fn spacing(interval: TimeDelta, count: u32) -> TimeDelta {
    let square = u128::from(interval.as_nanos()).pow(2) / u128::from(count.max(1));
    TimeDelta::from_nanos(square.isqrt() as u64)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::Ecn;
    use proptest::prelude::*;

    const INTERVAL: TimeDelta = TimeDelta::from_millis(100);
    const MILLISECOND: TimeDelta = TimeDelta::from_millis(1);

    /// A CoDel above a queue. All its packets have waited for the time that the test specifies.
    #[derive(Default)]
    struct Rig {
        law: ControlLaw,
        now: Time,
    }

    impl Rig {
        /// One departure per millisecond for `span`, of packets that waited `sojourn`. Returns the
        /// drop times.
        fn run(&mut self, span: TimeDelta, sojourn: TimeDelta, short: bool) -> Vec<u64> {
            let end = self.now + span;
            let mut drops = Vec::new();
            while self.now < end {
                let now = self.now;
                let packet = Packet { flow: 0, host: 0, bytes: 1500, ecn: Ecn::NotEct, body: () };
                let since = Time::from_nanos(now.as_nanos() - sojourn.as_nanos());
                let pop = || Some((Queued { since, packet }, short));
                let drop = &mut |_| drops.push(now.as_nanos() / 1_000_000);
                self.law.dequeue(&CodelSpec::default(), now, pop, drop);
                self.now += MILLISECOND;
            }
            drops
        }

        fn new() -> Self {
            Self { now: Time::ZERO + TimeDelta::from_secs(1), ..Self::default() }
        }

        fn overload(&mut self, millis: u64) -> Vec<u64> {
            self.run(TimeDelta::from_millis(millis), TimeDelta::from_millis(5), false)
        }

        fn below(&mut self, millis: u64) -> Vec<u64> {
            self.run(TimeDelta::from_millis(millis), TimeDelta::from_nanos(4_999_999), false)
        }
    }

    /// Above target from 1000 ms on: the first drop follows an interval later, the next ones after
    /// 100 ms / sqrt(1, 2, 3, …), each at the first departure that is not earlier.
    #[test]
    fn drops_follow_the_control_law() {
        let drops = Rig::new().overload(2000);
        let mut due = 1100.0;
        assert!(drops.len() > 100, "{drops:?}");
        for (index, drop) in drops.iter().enumerate() {
            let early = due - *drop as f64;
            // Each square root is rounded down by less than a nanosecond.
            assert!(early < 1e-3 && early > -1.0, "{index}: {drop} ms, {due} due");
            due += 100.0 / ((index + 1) as f64).sqrt();
        }
        assert_eq!(drops[..5], [1100, 1200, 1271, 1329, 1379]);
    }

    #[test]
    fn no_drops_below_target() {
        assert_eq!(Rig::new().below(10_000), [0_u64; 0]);
    }

    #[test]
    fn one_packet_below_target_restarts_the_interval() {
        let mut rig = Rig::new();
        for _ in 0..20 {
            assert_eq!(rig.overload(99), [0_u64; 0]);
            assert_eq!(rig.below(1), [0_u64; 0]);
        }
        // 3000 ms now.
        assert_eq!(rig.overload(101), [3100]);
    }

    #[test]
    fn no_drops_with_one_mtu_left() {
        let sojourn = TimeDelta::from_secs(1);
        assert_eq!(Rig::new().run(TimeDelta::from_secs(10), sojourn, true), [0_u64; 0]);
        let mut rig = Rig::new();
        let before = rig.overload(500);
        assert!(!before.is_empty());
        assert_eq!(rig.run(MILLISECOND, sojourn, true), [0_u64; 0]);
        assert!(!rig.law.dropping);
    }

    #[test]
    fn an_empty_queue_ends_the_drop_state() {
        let mut rig = Rig::new();
        rig.overload(500);
        assert!(rig.law.dropping);
        let nothing = || None::<(Queued<()>, bool)>;
        let drop = &mut |_| panic!("there is nothing to drop");
        assert_eq!(rig.law.dequeue(&CodelSpec::default(), rig.now, nothing, drop), None);
        assert!(!rig.law.dropping && rig.law.first_above.is_none());
    }

    /// RFC 8289 §5.5: soon above target again, it continues at the previous drop rate; after 16
    /// intervals it restarts.
    #[test]
    fn recent_drop_rate_is_resumed() {
        let again = |pause: u64| {
            let mut rig = Rig::new();
            let first = rig.overload(500);
            assert_eq!(first, [1100, 1200, 1271, 1329, 1379, 1424, 1464]);
            rig.below(pause);
            let start = rig.now.as_nanos() / 1_000_000 + 100;
            let drops = rig.overload(300);
            drops.iter().map(|drop| drop - start).collect::<Vec<_>>()
        };
        // Entered with count 1, left with 7: resumes with 6, 100 ms / sqrt(6) = 40.8 ms, then
        // sqrt(7).
        assert_eq!(again(100)[..4], [0, 41, 79, 114]);
        // The next drop was due at 1464.0 + 37.8 ms; 16 intervals after that, at 3101.8 ms, is too
        // late.
        assert_eq!(again(1501)[..4], [0, 41, 79, 114]);
        assert_eq!(again(1502)[..2], [0, 100]);
    }

    /// Due 100 ms, 171 ms, … after the first drop: 32 times in a second, because the sum of
    /// 1/sqrt(k) is 9.94 up to 32 and 10.12 up to 33. The first departure after a second drops that
    /// many at once. Marks are limited to one per departure and catch up.
    #[test]
    fn overdue_packets_are_dropped_at_once_but_marked_one_by_one() {
        for ecn in [false, true] {
            let spec = CodelSpec { ecn, ..CodelSpec::default() };
            let mut law = ControlLaw::default();
            let start = Time::ZERO + TimeDelta::from_secs(1);
            let mut dropped = 0;
            let mut marked_at = |after: TimeDelta| {
                let packet = Packet { flow: 0, host: 0, bytes: 1500, ecn: Ecn::Ect0, body: () };
                let pop = || Some((Queued { since: Time::ZERO, packet }, false));
                let left = law.dequeue(&spec, start + after, pop, &mut |_| dropped += 1);
                left.expect("a packet").packet.ecn == Ecn::Ce
            };
            let ms = TimeDelta::from_millis;
            assert!(!marked_at(ms(0)));
            assert_eq!(marked_at(ms(100)), ecn);
            let later = (0..40).map(|micros| ms(1100) + TimeDelta::from_micros(micros));
            let marks = later.map(&mut marked_at).filter(|marked| *marked).count();
            assert_eq!((marks, dropped), if ecn { (32, 0) } else { (0, 1 + 32) });
        }
    }

    #[test]
    fn spacings_at_whole_roots_are_exact() {
        for (count, nanos) in
            [(0, 100_000_000), (1, 100_000_000), (4, 50_000_000), (10_000, 1_000_000)]
        {
            assert_eq!(spacing(INTERVAL, count), TimeDelta::from_nanos(nanos));
        }
        assert_eq!(spacing(INTERVAL, 2), TimeDelta::from_nanos(70_710_678));
        assert_eq!(spacing(TimeDelta::MAX, 1), TimeDelta::MAX);
    }

    proptest! {
        /// `n = floor(interval / sqrt(count))` means `n² count <= interval² < (n + 1)² count`.
        #[test]
        fn spacings_are_exact_to_a_nanosecond(interval in 0_u64..10_000_000_000, count in 1_u32..) {
            let n = u128::from(spacing(TimeDelta::from_nanos(interval), count).as_nanos());
            let (square, count) = (u128::from(interval).pow(2), u128::from(count));
            prop_assert!(n * n * count <= square && square < (n + 1) * (n + 1) * count);
        }
    }
}
