//! Propagation delay.

use std::collections::VecDeque;

use uncork_units::{Time, TimeDelta};

use crate::aggregation::Aggregation;
use crate::host_jitter::{HostTimes, HostsSpec};
use crate::jitter::Jitter;
use crate::{AggregationSpec, JitterSpec, Step};

/// A delay line: a delay that may change in steps, optionally with jitter and with slots.
#[derive(Clone, Debug)]
pub(crate) struct DelayLine<T> {
    delay: TimeDelta,
    /// Later delays, and the next of them.
    steps: Option<Box<(Vec<Step<TimeDelta>>, usize)>>,
    // Boxed because it is rarely used and there may be one line per flow.
    jitter: Option<Box<Jitter>>,
    aggregation: Option<Box<Aggregation>>,
    hosts: Option<Box<HostTimes>>,
    /// Ordered by time of arrival.
    travelling: VecDeque<(Time, T)>,
}

impl<T> DelayLine<T> {
    /// A line that delays everything by `delay`.
    pub(crate) fn new(delay: TimeDelta) -> Self {
        Self {
            delay,
            steps: None,
            jitter: None,
            aggregation: None,
            hosts: None,
            travelling: VecDeque::new(),
        }
    }

    /// Items that enter at a step or later have its delay, unless there are none. An item of a shorter delay
    /// arrives with the last of a longer one, unless jitter reorders.
    pub(crate) fn step(&mut self, steps: Vec<Step<TimeDelta>>) {
        self.steps = (!steps.is_empty()).then(|| Box::new((steps, 0)));
    }

    /// Adds jitter for items entering from now on, drawn independently from the stream `stream` of
    /// `seed`.
    pub(crate) fn jitter(&mut self, spec: JitterSpec, seed: u64, stream: u64) {
        self.jitter = Some(Box::new(Jitter::new(spec, seed, stream)));
    }

    /// The hosts at the ends of the line take a random time for items from now on, drawn from the
    /// stream `stream` of `seed`. What arrives in that time is ready with the item before it.
    pub(crate) fn hosts(&mut self, spec: HostsSpec, seed: u64, stream: u64) {
        self.hosts = Some(Box::new(HostTimes::new(spec, seed, stream)));
    }

    /// Frees the memory of an empty line.
    pub(crate) fn shrink_if_empty(&mut self) {
        if self.is_empty() {
            self.travelling.shrink_to(1);
        }
    }

    /// Items entering from now on arrive at the end of a slot, together with the slot's other
    /// items; a slot of zero disables this. The order is kept despite jitter, because the receiver
    /// of such a link reorders frames before delivery, as 802.11's Block Ack does.
    pub(crate) fn aggregate(&mut self, spec: impl Into<AggregationSpec>) {
        self.aggregation = Aggregation::new(spec.into()).map(Box::new);
    }

    #[cold]
    fn take_steps(&mut self, now: Time) {
        let Some((steps, next)) = self.steps.as_deref_mut() else { return };
        if let Some(delay) = Step::take_due(steps, next, now) {
            self.delay = delay;
        }
    }

    /// An item of `bytes` enters; the size matters if a slot has a byte limit. Returns the next
    /// arrival time if it is now earlier, because the line was empty or this item overtakes all
    /// others.
    #[inline]
    pub(crate) fn enter(&mut self, now: Time, item: T, bytes: u32) -> Option<Time> {
        let before = self.next_arrival();
        if self.steps.is_some() {
            self.take_steps(now);
        }
        let mut arrival = now + self.delay;
        if let Some(jitter) = &mut self.jitter {
            arrival += jitter.draw();
        }
        if let Some(aggregation) = &mut self.aggregation {
            arrival = aggregation.release_time(arrival, bytes);
        }
        let ahead = self.travelling.back().map_or(Time::ZERO, |(arrival, _)| *arrival);
        if let Some(hosts) = &mut self.hosts
            && arrival > ahead
        {
            arrival += hosts.draw();
        }
        let overtakes = self.aggregation.is_none()
            && self.jitter.as_ref().is_some_and(|jitter| jitter.reorders());
        if overtakes && arrival < ahead {
            let behind = self.travelling.partition_point(|(other, _)| *other <= arrival);
            self.travelling.insert(behind, (arrival, item));
        } else {
            // Items that entered under longer slots are also ahead.
            self.travelling.push_back((arrival.max(ahead), item));
        }
        Some(self.next_arrival()).filter(|next| *next < before)
    }

    /// When the next item arrives; [`Time::NEVER`] if the line is empty.
    pub(crate) fn next_arrival(&self) -> Time {
        self.travelling.front().map_or(Time::NEVER, |(arrival, _)| *arrival)
    }

    /// The oldest item that has arrived by `now`.
    pub(crate) fn arrive(&mut self, now: Time) -> Option<T> {
        self.travelling.pop_front_if(|(arrival, _)| *arrival <= now).map(|(_, item)| item)
    }

    /// Whether the line is empty.
    pub(crate) fn is_empty(&self) -> bool {
        self.travelling.is_empty()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::JitterDistribution;
    use proptest::prelude::*;

    #[test]
    fn everything_arrives_in_order_and_late() {
        let mut line = DelayLine::new(TimeDelta::from_millis(25));
        let at = |millis| Time::ZERO + TimeDelta::from_millis(millis);
        line.enter(at(0), 'a', 0);
        line.enter(at(10), 'b', 0);
        assert_eq!(line.next_arrival(), at(25));
        assert_eq!(line.arrive(at(24)), None);
        assert_eq!(line.arrive(at(30)), Some('a'));
        assert_eq!(line.arrive(at(30)), None);
        assert_eq!(line.arrive(at(35)), Some('b'));
        assert!(line.is_empty());
        assert_eq!(line.next_arrival(), Time::NEVER);
    }

    #[test]
    fn slots_collect_items_and_keep_their_order() {
        let mut line = DelayLine::new(TimeDelta::from_millis(25));
        let at = |millis| Time::ZERO + TimeDelta::from_millis(millis);
        line.aggregate(TimeDelta::from_millis(20));
        line.enter(at(0), 'a', 0);
        line.enter(at(15), 'b', 0);
        line.enter(at(16), 'c', 0);
        assert_eq!(line.next_arrival(), at(40));
        assert_eq!((line.arrive(at(40)), line.arrive(at(40))), (Some('a'), Some('b')));
        line.aggregate(TimeDelta::ZERO);
        line.enter(at(17), 'd', 0);
        assert_eq!(line.next_arrival(), at(60));
        assert_eq!((line.arrive(at(60)), line.arrive(at(60))), (Some('c'), Some('d')));
    }

    /// Packets on the way keep their delay. When the delay falls, later items arrive with the last of the
    /// earlier ones, or overtake them if jitter reorders.
    #[test]
    fn steps_of_the_delay_keep_the_order_unless_jitter_reorders() {
        let at = |millis| Time::ZERO + TimeDelta::from_millis(millis);
        let steps = [(10, 80), (20, 30)];
        let steps =
            steps.map(|(time, delay)| Step { at: at(time), value: TimeDelta::from_millis(delay) });
        for (reorder, expected) in [
            (false, [(40, 0), (49, 1), (90, 2), (99, 3), (99, 4), (130, 5)]),
            (true, [(40, 0), (49, 1), (50, 4), (90, 2), (99, 3), (130, 5)]),
        ] {
            let mut line = DelayLine::new(TimeDelta::from_millis(40));
            let (distribution, max) = (JitterDistribution::Uniform, TimeDelta::ZERO);
            line.jitter(JitterSpec { distribution, max, reorder }, 1, 1);
            line.step(steps.to_vec());
            for (item, millis) in [0, 9, 10, 19, 20, 100].into_iter().enumerate() {
                line.enter(at(millis), item, 0);
            }
            let mut arrived = Vec::new();
            while !line.is_empty() {
                let next = line.next_arrival();
                arrived.push((next, line.arrive(next).expect("due")));
            }
            assert_eq!(arrived, expected.map(|(millis, item)| (at(millis), item)), "{reorder}");
        }
    }

    const BASE: TimeDelta = TimeDelta::from_millis(25);
    const MAX: TimeDelta = TimeDelta::from_millis(12);

    fn jittery(distribution: JitterDistribution, reorder: bool, seed: u64) -> DelayLine<usize> {
        let mut line = DelayLine::new(BASE);
        line.jitter(JitterSpec { distribution, max: MAX, reorder }, seed, 6);
        line
    }

    /// Packets `spacing` apart, starting at 0: arrival time and index of each, in order of arrival.
    fn arrivals(line: &mut DelayLine<usize>, spacing: TimeDelta, n: usize) -> Vec<(Time, usize)> {
        let mut arrived = Vec::new();
        let mut drain = |line: &mut DelayLine<usize>, until| {
            while line.next_arrival() <= until && !line.is_empty() {
                let at = line.next_arrival();
                arrived.extend(line.arrive(at).map(|item| (at, item)));
            }
        };
        for packet in 0..n {
            let now = Time::ZERO + spacing.times(packet as u64);
            drain(line, now);
            line.enter(now, packet, 0);
        }
        drain(line, Time::NEVER);
        arrived
    }

    /// With packets 6 ms apart and uniform jitter up to 12 ms, a packet is only overtaken by the
    /// next one, if its own jitter is larger by 6 ms. With d = 6 / 12 the probability is (1 − d)² /
    /// 2. Packets that arrive after a later one are the reordered ones of RFC 4737 §3.
    #[test]
    fn reordered_share_matches_the_closed_form() {
        for (spacing_ms, expected) in [(6, 0.125), (9, 0.03125), (12, 0.0)] {
            let n = 400_000;
            let mut line = jittery(JitterDistribution::Uniform, true, 1);
            let arrived = arrivals(&mut line, TimeDelta::from_millis(spacing_ms), n);
            let mut newest = 0;
            let mut overtaken = 0;
            for (_, packet) in &arrived {
                overtaken += usize::from(*packet < newest);
                newest = newest.max(*packet);
            }
            let share = overtaken as f64 / n as f64;
            // Neighbours are not independent: twice the binomial error.
            let error = 2.0 * (expected * (1.0 - expected) / n as f64).sqrt();
            assert!((share - expected).abs() <= 4.0 * error, "{spacing_ms} ms: {share}");
        }
    }

    /// Packets 4 ms apart that keep their order: the delay is at most x if the jitter of every
    /// earlier packet, minus 4 ms per step back, is at most x. P = x (x + 1/3) (x + 2/3), with x as
    /// a fraction of the maximum and factors above 1 omitted.
    #[test]
    fn delays_without_reordering_match_the_closed_form() {
        let n = 400_000;
        let spacing = TimeDelta::from_millis(4);
        let arrived = arrivals(&mut jittery(JitterDistribution::Uniform, false, 2), spacing, n);
        let jitter = |(at, packet): &(Time, usize)| {
            let sent = Time::ZERO + spacing.times(*packet as u64) + BASE;
            at.since(sent).as_millis_f64() / MAX.as_millis_f64()
        };
        for x in [0.2, 0.4, 0.6, 0.8] {
            let factors = [x, x + 1.0 / 3.0, x + 2.0 / 3.0];
            let expected: f64 = factors.iter().map(|factor: &f64| factor.min(1.0)).product();
            let share = arrived.iter().filter(|arrival| jitter(arrival) <= x).count() as f64;
            let error = 2.0 * (expected * (1.0 - expected) / n as f64).sqrt();
            assert!((share / n as f64 - expected).abs() < 4.0 * error, "{x}: {share}");
        }
    }

    /// Ten packets at once: the k-th has the maximum of k draws, k / (k + 1) on average.
    #[test]
    fn last_packet_of_a_burst_has_the_maximum_jitter() {
        let mut sums = [0.0; 10];
        for seed in 0..20_000 {
            let mut line = jittery(JitterDistribution::Uniform, false, seed);
            for (at, packet) in arrivals(&mut line, TimeDelta::ZERO, 10) {
                sums[packet] += at.since(Time::ZERO + BASE).as_millis_f64() / 12.0;
            }
        }
        for (sum, k) in sums.iter().zip(1..) {
            let mean = sum / 20_000.0;
            assert!((mean - f64::from(k) / f64::from(k + 1)).abs() < 0.01, "{k}: {mean}");
        }
    }

    #[test]
    fn seeds_and_streams_differ_and_repeat() {
        let spec = JitterSpec { distribution: JitterDistribution::Bell, max: MAX, reorder: true };
        let pattern = |seed, stream| {
            let mut line = DelayLine::new(BASE);
            line.jitter(spec, seed, stream);
            arrivals(&mut line, TimeDelta::from_millis(1), 100)
        };
        assert_eq!(pattern(1, 0), pattern(1, 0));
        assert_ne!(pattern(1, 0), pattern(2, 0));
        assert_ne!(pattern(1, 0), pattern(1, 1));
    }

    /// The hosts' time comes on top of everything, keeps the order, and changes no other draw: what
    /// arrives at the end of a slot is worked off after it.
    #[test]
    fn hosts_work_items_off_in_order() {
        let max = TimeDelta::from_micros(200);
        let lines = |hosts, change: &dyn Fn(&mut DelayLine<usize>)| {
            let arrived = |takes_time: bool| {
                let mut line = jittery(JitterDistribution::Uniform, false, 4);
                change(&mut line);
                if takes_time {
                    line.hosts(HostsSpec { hosts, max }, 4, 7);
                }
                arrivals(&mut line, TimeDelta::from_micros(900), 20_000)
            };
            arrived(false).into_iter().zip(arrived(true)).collect::<Vec<_>>()
        };
        let slots = |line: &mut DelayLine<usize>| line.aggregate(TimeDelta::from_millis(5));
        for hosts in [1, 2] {
            for both in [lines(hosts, &|_| {}), lines(hosts, &slots)] {
                assert!(both.iter().all(|((_, one), (_, other))| one == other));
                let delays = both.iter().map(|((at, _), (worked_off, _))| {
                    assert!(worked_off >= at);
                    worked_off.since(*at)
                });
                let delays: Vec<TimeDelta> = delays.collect();
                assert!(delays.iter().all(|delay| *delay <= max.times(hosts)));
                let mean = delays.iter().map(|delay| delay.as_millis_f64()).sum::<f64>() / 20_000.0;
                let one_host = mean / hosts as f64;
                assert!((0.075..0.18).contains(&one_host), "{hosts}: {one_host} ms");
            }
        }
    }

    /// Jitter moves packets between slots but never reorders them.
    #[test]
    fn slots_keep_the_order_despite_jitter() {
        let mut line = jittery(JitterDistribution::Uniform, true, 3);
        line.aggregate(AggregationSpec {
            slot: TimeDelta::from_millis(5),
            max_packets: 4,
            max_bytes: u64::MAX,
        });
        let arrived = arrivals(&mut line, TimeDelta::from_millis(2), 10_000);
        assert!(arrived.iter().map(|(_, packet)| *packet).eq(0..10_000));
        let batches = arrived.chunk_by(|one, other| one.0 == other.0);
        assert!(batches.into_iter().all(|batch| batch.len() <= 4));
        assert!(arrived.iter().all(|(at, _)| at.as_nanos() % 5_000_000 == 0));
    }

    proptest! {
        /// Everything arrives exactly once, between the base delay and the maximum with jitter, in
        /// order of arrival time, and in order of entry if reordering is off.
        #[test]
        fn nothing_is_lost_early_or_late(
            gaps in proptest::collection::vec(0_u64..6000, 1..200),
            bell: bool,
            reorder: bool,
            seed: u64,
        ) {
            let distribution =
                if bell { JitterDistribution::Bell } else { JitterDistribution::Uniform };
            let mut line = jittery(distribution, reorder, seed);
            let mut now = Time::ZERO;
            let entered: Vec<Time> = gaps
                .iter()
                .enumerate()
                .map(|(packet, gap)| {
                    now += TimeDelta::from_micros(*gap);
                    line.enter(now, packet, 0);
                    now
                })
                .collect();
            let mut arrived = Vec::new();
            while !line.is_empty() {
                let at = line.next_arrival();
                prop_assert!(arrived.last().is_none_or(|(before, _)| *before <= at));
                arrived.push((at, line.arrive(at).expect("due")));
            }
            for (at, packet) in &arrived {
                let delay = at.since(entered[*packet]);
                prop_assert!(delay >= BASE && delay <= BASE + MAX);
            }
            let mut packets: Vec<usize> = arrived.iter().map(|(_, packet)| *packet).collect();
            prop_assert!(reorder || packets.is_sorted());
            packets.sort_unstable();
            prop_assert!(packets.into_iter().eq(0..gaps.len()));
        }
    }
}
