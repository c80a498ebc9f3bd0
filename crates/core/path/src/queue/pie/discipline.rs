//! The PIE discipline: a FIFO that drops or marks on arrival (RFC 8033 §4.1, §5).

use uncork_units::{Rng, Time, TimeDelta};

use super::PieSpec;
use super::control::{Control, HIGH};
use crate::queue::pi::Likelihood;
use crate::{DropTail, Packet, Queued};

/// With derandomization, a packet is only dropped once the probabilities since the last drop add up
/// to this (§5.4).
const LOW_SUM: Likelihood = Likelihood::millionths(850_000);

/// At this sum, a packet is always dropped.
const HIGH_SUM: Likelihood = Likelihood::millionths(8_500_000);

/// Packets that are always queued, to keep the link busy: §4.1 exempts a queue of two mean-sized
/// packets.
const SPARED_PACKETS: usize = 2;

/// A FIFO that drops or marks arriving packets.
#[derive(Clone, Debug)]
pub struct Pie<T> {
    spec: PieSpec,
    fifo: DropTail<T>,
    control: Control,
    /// PIE->accu_prob_: the sum of the probabilities since the last drop.
    sum: Likelihood,
}

impl<T> Pie<T> {
    /// A queue for at most `limit_bytes` bytes.
    pub fn new(spec: PieSpec, limit_bytes: u64) -> Self {
        let fifo = DropTail::new(limit_bytes);
        Self { spec, fifo, control: Control::new(spec), sum: Likelihood::ZERO }
    }

    /// Bytes waiting.
    pub fn bytes(&self) -> u64 {
        self.fifo.bytes()
    }

    /// Packets waiting.
    pub fn packets(&self) -> usize {
        self.fifo.packets()
    }

    /// Adds a packet, possibly marked, or passes it to `dropped`.
    pub fn enqueue(
        &mut self,
        now: Time,
        mut packet: Packet<T>,
        rng: &mut Rng,
        dropped: &mut impl FnMut(Packet<T>),
    ) {
        self.update(now);
        let delay = self.fifo.head().map_or(TimeDelta::ZERO, |since| now.since(since));
        self.control.renew_burst(delay);
        let full = !self.fifo.fits(packet.bytes);
        // During a tolerated burst no packet is dropped at random and the sum does not grow. §4.4 requires
        // it; otherwise the sum would cause a drop at the end of the burst.
        if full || (!self.control.tolerates_burst() && self.strikes(rng)) {
            self.sum = Likelihood::ZERO;
            let marks = !full && self.spec.ecn && self.control.probability() < HIGH;
            if !(marks && packet.mark()) {
                dropped(packet);
                return;
            }
        }
        self.fifo.enqueue(now, packet, dropped);
    }

    /// The oldest packet.
    pub fn dequeue(&mut self, now: Time) -> Option<Queued<T>> {
        self.update(now);
        self.fifo.dequeue()
    }

    /// Performs the updates of the drop probability due by `now`.
    fn update(&mut self, now: Time) {
        self.control.update(now, self.fifo.head());
    }

    /// drop_early() of appendix B: whether the arriving packet is dropped or marked.
    fn strikes(&mut self, rng: &mut Rng) -> bool {
        if self.control.is_relaxed() || self.fifo.packets() <= SPARED_PACKETS {
            return false;
        }
        let probability = self.control.probability();
        if !self.spec.derandomize {
            return probability.happens(rng);
        }
        if probability == Likelihood::ZERO {
            self.sum = Likelihood::ZERO;
        }
        self.sum = self.sum.plus(probability);
        self.sum >= HIGH_SUM || (self.sum >= LOW_SUM && probability.happens(rng))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::Ecn;
    use proptest::prelude::{prop_assert, prop_assert_eq, proptest};

    const TARGET: TimeDelta = TimeDelta::from_millis(15);

    fn packet(body: u64, ecn: Ecn) -> Packet<u64> {
        Packet { flow: 0, host: 0, bytes: 1500, ecn, body }
    }

    fn at_micros(micros: u64) -> Time {
        Time::ZERO + TimeDelta::from_micros(micros)
    }

    fn spec(params: &str) -> PieSpec {
        PieSpec::parse((!params.is_empty()).then_some(params)).expect("parameters")
    }

    /// Outcome of `n` packets at one instant, with the queue held at a probability and at its
    /// target.
    struct Outcome {
        dropped: Vec<u64>,
        marked: u64,
    }

    fn held(params: &str, millionths: u64, ecn: Ecn, n: u64) -> Outcome {
        let mut pie = Pie::new(spec(params), u64::MAX);
        let mut rng = Rng::new(3, 0);
        for body in 0..10 {
            pie.enqueue(Time::ZERO, packet(body, ecn), &mut rng, &mut |_| panic!("a burst"));
        }
        pie.control.force(Likelihood::millionths(millionths), TARGET);
        let mut outcome = Outcome { dropped: Vec::new(), marked: 0 };
        for body in 0..n {
            let before = pie.packets();
            pie.enqueue(Time::ZERO, packet(body, ecn), &mut rng, &mut |packet| {
                outcome.dropped.push(packet.body);
            });
            if pie.packets() > before {
                let left = pie.dequeue(Time::ZERO).expect("a packet");
                outcome.marked += u64::from(ecn != Ecn::Ce && left.packet.ecn == Ecn::Ce);
            }
        }
        outcome
    }

    /// Four standard deviations of a binomial distribution.
    fn tolerance(n: u64, p: f64) -> f64 {
        4.0 * (n as f64 * p * (1.0 - p)).sqrt()
    }

    #[test]
    fn drop_rate_matches_the_probability() {
        for millionths in [1_000, 50_000, 300_000] {
            let (n, p) = (1_000_000, millionths as f64 / 1e6);
            let drops = held("noderandomize", millionths, Ecn::NotEct, n).dropped.len() as f64;
            assert!((drops - n as f64 * p).abs() < tolerance(n, p), "{p}: {drops}");
        }
    }

    /// §5.4 at p = 1/64: 55 packets add up to 0.85 and 544 to 8.5. After a drop, 54 packets pass;
    /// then drops are random, and certain at the 490th.
    #[test]
    fn derandomized_drops_are_spaced() {
        let dropped = held("", 15_625, Ecn::NotEct, 2_000_000).dropped;
        let gaps: Vec<u64> = dropped.windows(2).map(|pair| pair[1] - pair[0]).collect();
        let (least, most) = (gaps.iter().min(), gaps.iter().max());
        assert!(least == Some(&55) && most <= Some(&544), "{least:?} {most:?}");
        let p = 1.0_f64 / 64.0;
        let mean = gaps.iter().sum::<u64>() as f64 / gaps.len() as f64;
        let expected = 54.0 + (1.0 - (1.0 - p).powi(490)) / p;
        // The standard deviation of a geometric distribution is below 1 / p.
        let tolerance = 4.0 / p / (gaps.len() as f64).sqrt();
        assert!((mean - expected).abs() < tolerance, "{mean} {expected}");
    }

    /// §5.1: marks below 10 %, drops from there on; no marks without ECN.
    #[test]
    fn ecn_marks_below_ten_percent() {
        let n = 100_000;
        let outcome = |params, millionths, ecn| {
            let outcome = held(params, millionths, ecn, n);
            (outcome.marked > 0, !outcome.dropped.is_empty())
        };
        assert_eq!(outcome("ecn", 99_999, Ecn::Ect0), (true, false));
        assert_eq!(outcome("ecn", 100_000, Ecn::Ect0), (false, true));
        assert_eq!(outcome("ecn", 99_999, Ecn::NotEct), (false, true));
        assert_eq!(outcome("", 99_999, Ecn::Ect0), (false, true));
        let marked = held("ecn,noderandomize", 50_000, Ecn::Ect0, n).marked as f64;
        assert!((marked - 5_000.0).abs() < tolerance(n, 0.05), "{marked}");
    }

    /// §4.1: two packets are always queued, and with a small delay all pass while p < 20 %.
    #[test]
    fn the_link_is_kept_busy() {
        let mut rng = Rng::new(1, 0);
        let mut drops = |millionths, delay_ms, waiting: u64| {
            let mut pie = Pie::new(spec("noderandomize"), u64::MAX);
            for body in 0..waiting {
                pie.enqueue(Time::ZERO, packet(body, Ecn::NotEct), &mut rng, &mut |_| panic!());
            }
            let delay = TimeDelta::from_millis(delay_ms);
            pie.control.force(Likelihood::millionths(millionths), delay);
            (0..1000)
                .filter(|_| {
                    let mut dropped = false;
                    let packet = packet(0, Ecn::NotEct);
                    pie.enqueue(Time::ZERO, packet, &mut rng, &mut |_| dropped = true);
                    if !dropped {
                        pie.dequeue(Time::ZERO);
                    }
                    dropped
                })
                .count()
        };
        assert_eq!(drops(1_000_000, 15, 2), 0);
        assert_eq!(drops(1_000_000, 15, 3), 1000);
        assert_eq!(drops(199_999, 7, 10), 0);
        assert!(drops(199_999, 8, 10) > 0);
        assert!(drops(200_001, 7, 10) > 0);
    }

    /// §4.4: with any probability, the first drop happens when the tenth update has used up the
    /// allowance of 150 ms.
    #[test]
    fn a_burst_of_150_ms_passes() {
        let mut pie = Pie::new(PieSpec::default(), u64::MAX);
        pie.control.force(Likelihood::ONE, TARGET);
        pie.control.allow_burst();
        let mut rng = Rng::new(1, 0);
        let mut dropped = Vec::new();
        for body in 0..200 {
            let now = at_micros(1000 * body);
            pie.enqueue(now, packet(body, Ecn::NotEct), &mut rng, &mut |packet| {
                dropped.push(packet.body);
            });
        }
        assert_eq!(dropped, (150..200).collect::<Vec<u64>>());
    }

    #[test]
    fn packets_that_do_not_fit_are_dropped() {
        let mut pie = Pie::new(spec("ecn"), 3000);
        let mut rng = Rng::new(1, 0);
        let mut dropped = Vec::new();
        pie.sum = LOW_SUM;
        for body in 0..3 {
            pie.enqueue(Time::ZERO, packet(body, Ecn::Ect0), &mut rng, &mut |packet| {
                dropped.push(packet.body);
            });
        }
        assert_eq!((dropped, pie.bytes(), pie.packets()), (vec![2], 3000, 2));
        assert_eq!(pie.sum, Likelihood::ZERO);
    }

    proptest! {
        /// Delayed updates are equivalent to a timer: a twin that is updated at each due instant
        /// ends in the same state with the same packets. No packet is lost or overtaken on the way.
        #[test]
        fn late_updates_equal_punctual_ones(
            steps in proptest::collection::vec((0_u64..60_000, 0_u8..8, 40_u32..=1500), 1..300),
            seed: u64,
            pauses in proptest::collection::vec(0_usize..300, 0..3),
        ) {
            let tupdate = TimeDelta::from_millis(15);
            let mut late = Pie::new(spec("ecn"), 60_000);
            let mut timed = late.clone();
            let mut rngs = [Rng::new(seed, 0), Rng::new(seed, 0)];
            let (mut now, mut tick) = (Time::ZERO, Time::ZERO + tupdate);
            let (mut taken, mut gone, mut bytes) = (0_u64, Vec::new(), 0_u64);
            let mut left = Vec::new();
            for (body, (gap, kind, size)) in (0..).zip(steps) {
                let pause = if pauses.contains(&(body as usize)) { 40_000_000 } else { 0 };
                now += TimeDelta::from_micros(gap + pause);
                while tick <= now {
                    timed.update(tick);
                    tick += tupdate;
                }
                if kind < 4 {
                    let packet = Packet { bytes: size, ..packet(body, Ecn::Ect0) };
                    let mut lost = [None, None];
                    late.enqueue(now, packet, &mut rngs[0], &mut |packet| lost[0] = Some(packet));
                    timed.enqueue(now, packet, &mut rngs[1], &mut |packet| lost[1] = Some(packet));
                    prop_assert_eq!(lost[0], lost[1]);
                    taken += 1;
                    match lost[0] {
                        Some(packet) => gone.push(packet.body),
                        None => bytes += u64::from(size),
                    }
                } else {
                    let packets = [late.dequeue(now), timed.dequeue(now)];
                    prop_assert_eq!(packets[0], packets[1]);
                    if let Some(queued) = packets[0] {
                        bytes -= u64::from(queued.packet.bytes);
                        left.push(queued.packet.body);
                    }
                }
                prop_assert_eq!(late.control, timed.control);
                prop_assert_eq!(late.bytes(), bytes);
                prop_assert!(bytes <= 60_000);
            }
            prop_assert_eq!(taken as usize, gone.len() + left.len() + late.packets());
            prop_assert!(left.is_sorted());
        }
    }
}
