//! The DualPI2 discipline (RFC 9332, figures 3 and 7).

use uncork_units::{Rng, Time};

use super::DualPi2Spec;
use super::control::Control;
use super::scheduler::{Scheduler, ServedQueue};
use crate::queue::pi::Likelihood;
use crate::{DropTail, Ecn, Packet, Queued};

/// With up to this many packets in the L queue, its own delay does not cause marks (Th_len): so few
/// packets can wait for long on a slow link without being a standing queue.
const MIN_PACKETS: usize = 1;

/// Two coupled queues that mark or drop packets on departure.
#[derive(Clone, Debug)]
pub struct DualPi2<T> {
    limit_bytes: u64,
    /// [`DualPi2Spec::linux`].
    linux: bool,
    low: Lane<T>,
    classic: Lane<T>,
    control: Control,
    scheduler: Scheduler,
    /// The largest packet seen, in bytes: the RFC's MTU.
    largest: u32,
}

/// One of the queues.
#[derive(Clone, Debug)]
struct Lane<T> {
    fifo: DropTail<T>,
    /// Sum of the probabilities since the last signal; `None` draws signals at random.
    sum: Option<Likelihood>,
}

enum DequeueAction {
    Send,
    Mark,
    Drop,
}

impl<T> DualPi2<T> {
    /// Queues with a common limit of `limit_bytes`.
    pub fn new(spec: DualPi2Spec, limit_bytes: u64) -> Self {
        let sum = (!spec.linux).then_some(Likelihood::ZERO);
        let lane = || Lane { fifo: DropTail::new(limit_bytes), sum };
        Self {
            limit_bytes,
            linux: spec.linux,
            low: lane(),
            classic: lane(),
            control: Control::new(spec),
            scheduler: Scheduler::new(spec.weight),
            largest: 0,
        }
    }

    /// Bytes waiting.
    pub fn bytes(&self) -> u64 {
        self.low.fifo.bytes() + self.classic.fifo.bytes()
    }

    /// Packets waiting.
    pub fn packets(&self) -> usize {
        self.low.fifo.packets() + self.classic.fifo.packets()
    }

    /// Adds a packet to the queue selected by its ECN field. Passes it to `dropped` if a packet of
    /// the largest size would not fit, so that small packets have no advantage (figure 3).
    pub fn enqueue(&mut self, now: Time, packet: Packet<T>, dropped: &mut impl FnMut(Packet<T>)) {
        self.update(now);
        self.largest = self.largest.max(packet.bytes);
        if self.packets() == 0 {
            self.scheduler.reset(self.largest);
        }
        if self.bytes() + u64::from(self.largest) > self.limit_bytes {
            dropped(packet);
            return;
        }
        let lane = match packet.ecn {
            Ecn::Ect1 | Ecn::Ce => &mut self.low,
            Ecn::NotEct | Ecn::Ect0 => &mut self.classic,
        };
        lane.fifo.enqueue(now, packet, dropped);
    }

    /// The packet that leaves at `now`, possibly marked. Packets dropped before it are passed to
    /// `dropped`.
    pub fn dequeue(
        &mut self,
        now: Time,
        rng: &mut Rng,
        dropped: &mut impl FnMut(Packet<T>),
    ) -> Option<Queued<T>> {
        self.update(now);
        loop {
            let contested = self.low.fifo.packets() > 0 && self.classic.fifo.packets() > 0;
            let side = if contested { self.scheduler.next() } else { self.only() };
            let (mut queued, verdict) = match side {
                ServedQueue::Low => self.serve_low(now, rng)?,
                ServedQueue::Classic => self.serve_classic(rng)?,
            };
            let may_leave = match verdict {
                DequeueAction::Send => true,
                DequeueAction::Mark => queued.packet.mark(),
                DequeueAction::Drop => false,
            };
            if !may_leave {
                dropped(queued.packet);
                continue;
            }
            if contested {
                self.scheduler.sent(side, &queued.packet);
            }
            return Some(queued);
        }
    }

    /// The queue that has packets, if only one does.
    fn only(&self) -> ServedQueue {
        if self.low.fifo.packets() > 0 { ServedQueue::Low } else { ServedQueue::Classic }
    }

    /// Lines 4a to 8j of figure 7. The packet itself counts towards the minimum number of packets,
    /// so that only the last packet of a burst is exempt, as in the note on Linux in A.2.
    fn serve_low(&mut self, now: Time, rng: &mut Rng) -> Option<(Queued<T>, DequeueAction)> {
        let queue_stands = self.linux || self.low.fifo.packets() > MIN_PACKETS;
        let queued = self.low.fifo.dequeue()?;
        let delay = now.since(queued.since);
        let native = if queue_stands { self.control.native(delay) } else { Likelihood::ZERO };
        let coupled = self.control.coupled();
        let verdict = if self.is_exempt() {
            self.low.mark_at(native, rng)
        } else if self.control.is_overloaded() {
            let struck = self.low.signals(self.control.classic(), rng);
            if struck { DequeueAction::Drop } else { self.low.mark_at(coupled, rng) }
        } else {
            self.low.mark_at(native.max(coupled), rng)
        };
        Some((queued, verdict))
    }

    /// Lines 10 to 17 of figure 7. A packet without ECN is dropped instead of marked.
    fn serve_classic(&mut self, rng: &mut Rng) -> Option<(Queued<T>, DequeueAction)> {
        let queued = self.classic.fifo.dequeue()?;
        let verdict = if self.is_exempt() {
            DequeueAction::Send
        } else {
            self.classic.mark_at(self.control.classic(), rng)
        };
        let overload = matches!(verdict, DequeueAction::Mark) && self.control.is_overloaded();
        Some((queued, if overload { DequeueAction::Drop } else { verdict }))
    }

    /// Whether the packet that was taken out is exempt from signals by probability.
    fn is_exempt(&self) -> bool {
        self.linux && self.bytes() < 2 * u64::from(self.largest)
    }

    /// Performs the updates of the base probability due by `now`.
    fn update(&mut self, now: Time) {
        let heads = [self.low.fifo.head(), self.classic.fifo.head()];
        self.control.update(now, heads.into_iter().flatten().min());
    }
}

impl<T> Lane<T> {
    /// recur() of figure 4: true once per 1 / likelihood calls. Unlike there, a sum of exactly 1
    /// counts, so that a likelihood of 1 signals on every call from the first.
    fn signals(&mut self, likelihood: Likelihood, rng: &mut Rng) -> bool {
        let Some(sum) = &mut self.sum else { return likelihood.happens(rng) };
        *sum = sum.plus(likelihood);
        let signals = *sum >= Likelihood::ONE;
        if signals {
            *sum = sum.minus(Likelihood::ONE);
        }
        signals
    }

    fn mark_at(&mut self, likelihood: Likelihood, rng: &mut Rng) -> DequeueAction {
        if self.signals(likelihood, rng) { DequeueAction::Mark } else { DequeueAction::Send }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::{prop_assert, prop_assert_eq, proptest};
    use uncork_units::TimeDelta;

    fn packet(body: u64, ecn: Ecn) -> Packet<u64> {
        Packet { flow: 0, host: 0, bytes: 1500, ecn, body }
    }

    fn queue(params: &str) -> DualPi2<u64> {
        let params = (!params.is_empty()).then_some(params);
        DualPi2::new(DualPi2Spec::parse(params).expect("parameters"), 1 << 30)
    }

    /// For a queue that draws nothing.
    fn rng() -> Rng {
        Rng::new(1, 0)
    }

    fn at_micros(micros: u64) -> Time {
        Time::ZERO + TimeDelta::from_micros(micros)
    }

    fn put(queue: &mut DualPi2<u64>, now: Time, body: u64, ecn: Ecn) {
        queue.enqueue(now, packet(body, ecn), &mut |_| panic!("it fits"));
    }

    /// Numbers of marked and lost packets out of 100 000 at one instant, with p' fixed.
    fn signals(millionths: u64, ecn: Ecn) -> (u64, u64) {
        let mut queue = queue("");
        queue.control.force(Likelihood::millionths(millionths), TimeDelta::from_millis(15));
        let (mut marked, mut lost) = (0, 0);
        for body in 0..100_000 {
            put(&mut queue, Time::ZERO, body, ecn);
            let left = queue.dequeue(Time::ZERO, &mut rng(), &mut |_| lost += 1);
            marked += u64::from(left.is_some_and(|left| left.packet.ecn == Ecn::Ce));
        }
        (marked, lost)
    }

    /// p_C = p'^2 and p_CL = 2 p'. Signals are deterministic (figure 4), so their number is exact
    /// to one.
    #[test]
    fn signal_rates_match_the_coupling() {
        for millionths in [10_000, 123_456, 400_000] {
            let p = millionths as f64 / 1e6;
            let (classic, coupled) = ((1e5 * p * p) as u64, (1e5 * 2.0 * p) as u64);
            let (marked, lost) = signals(millionths, Ecn::Ect1);
            assert!(marked.abs_diff(coupled) <= 1 && lost == 0, "{p}: {marked} {lost}");
            let (marked, lost) = signals(millionths, Ecn::Ect0);
            assert!(marked.abs_diff(classic) <= 1 && lost == 0, "{p}: {marked} {lost}");
            let (marked, lost) = signals(millionths, Ecn::NotEct);
            assert!(lost.abs_diff(classic) <= 1 && marked == 0, "{p}: {marked} {lost}");
        }
    }

    /// A.2: from p' = 1/2 (p_C = 25 %, p_CL = 100 %) both queues drop with p'^2, with any ECN
    /// field; the remaining L packets are marked.
    #[test]
    fn overload_drops_in_both_queues() {
        for ecn in [Ecn::Ect1, Ecn::Ect0, Ecn::NotEct] {
            let (_, lost) = signals(600_000, ecn);
            assert!(lost.abs_diff(36_000) <= 1, "{ecn:?}: {lost}");
        }
        let (marked, lost) = signals(600_000, Ecn::Ect1);
        assert_eq!(marked + lost, 100_000);
        assert_eq!(signals(499_999, Ecn::Ect1).1, 0);
        assert_eq!(signals(499_999, Ecn::Ect0).1, 0);
    }

    /// With a step at 1 ms, packets that waited that long are marked, except for the last one in
    /// the queue.
    #[test]
    fn the_l_queue_marks_above_its_own_threshold() {
        let mut queue = queue("step=1ms");
        for body in 0..4 {
            put(&mut queue, Time::ZERO, body, Ecn::Ect1);
        }
        let marks = [500, 999, 1000, 2000].map(|micros| {
            let left = queue.dequeue(at_micros(micros), &mut rng(), &mut |_| panic!("no drops"));
            left.expect("a packet").packet.ecn == Ecn::Ce
        });
        assert_eq!(marks, [false, false, true, false]);
    }

    /// As Linux: the last packet, too, is marked above the threshold. Signals by probability are drawn, and need two
    /// packets that wait.
    #[test]
    fn linux_marks_the_last_packet_and_draws() {
        let mut queue = queue("linux");
        let mut rng = rng();
        put(&mut queue, Time::ZERO, 0, Ecn::Ect1);
        let last = queue.dequeue(at_micros(1001), &mut rng, &mut |_| panic!("no drops"));
        assert_eq!(last.expect("a packet").packet.ecn, Ecn::Ce);

        queue.control.force(Likelihood::millionths(100_000), TimeDelta::from_millis(15));
        let mut marks = |waiting: u64| {
            let mut marked = 0;
            for body in 0..waiting {
                put(&mut queue, Time::ZERO, body, Ecn::Ect1);
            }
            for body in 0..10_000 {
                put(&mut queue, Time::ZERO, body, Ecn::Ect1);
                let left = queue.dequeue(Time::ZERO, &mut rng, &mut |_| panic!("no drops"));
                marked += u64::from(left.expect("a packet").packet.ecn == Ecn::Ce);
            }
            marked
        };
        assert_eq!(marks(1), 0);
        // Of 10,000 with a probability of 20 %, with a standard deviation of 40.
        let marked = marks(1);
        assert!((1_800..2_200).contains(&marked) && marked != 2_000, "{marked}");
    }

    #[test]
    fn the_limit_is_shared_and_leaves_room_for_a_large_packet() {
        let mut queue: DualPi2<u64> = DualPi2::new(DualPi2Spec::default(), 4500);
        put(&mut queue, Time::ZERO, 0, Ecn::NotEct);
        put(&mut queue, Time::ZERO, 1, Ecn::Ect1);
        let small = |body| Packet { bytes: 100, ..packet(body, Ecn::NotEct) };
        queue.enqueue(Time::ZERO, small(2), &mut |_| panic!("it fits"));
        let mut dropped = Vec::new();
        queue.enqueue(Time::ZERO, small(3), &mut |packet| dropped.push(packet.body));
        assert_eq!((dropped, queue.bytes(), queue.packets()), (vec![3], 3100, 3));
    }

    /// Both queues always have packets and p' is 0, so only the scheduler decides.
    #[test]
    fn flood_of_l_packets_leaves_a_sixteenth_to_classic_ones() {
        let mut queue = queue("");
        let mut classic = 0;
        for body in 0..2 {
            put(&mut queue, Time::ZERO, body, Ecn::Ect1);
            put(&mut queue, Time::ZERO, body, Ecn::NotEct);
        }
        for body in 0..16_000 {
            let left = queue
                .dequeue(Time::ZERO, &mut rng(), &mut |_| panic!("no drops"))
                .expect("a packet");
            classic += u64::from(left.packet.ecn == Ecn::NotEct);
            put(&mut queue, Time::ZERO, body, left.packet.ecn);
        }
        assert_eq!(classic, 1000);
    }

    /// Unresponsive L traffic at twice the link's rate and classic traffic at a quarter of it, for
    /// 20 s. The controller drops packets of both (A.2), and the scheduler prevents starvation of
    /// classic traffic.
    #[test]
    fn unresponsive_l_traffic_is_dropped() {
        let mut queue = queue("");
        let (mut lost, mut sent, mut delay) = ([0_u32, 0], [0_u32, 0], TimeDelta::ZERO);
        let is_low = |packet: &Packet<u64>| usize::from(packet.body == 1);
        for step in 0..40_000_u64 {
            let now = at_micros(500 * step);
            put(&mut queue, now, 1, Ecn::Ect1);
            if step % 8 == 0 {
                put(&mut queue, now, 0, Ecn::NotEct);
            }
            if step % 2 == 0
                && let Some(left) =
                    queue.dequeue(now, &mut rng(), &mut |packet| lost[is_low(&packet)] += 1)
                && step > 20_000
            {
                sent[is_low(&left.packet)] += 1;
                delay = now.since(left.since);
            }
        }
        assert!(lost[0] > 0 && lost[1] > 0, "{lost:?}");
        assert!(sent[0] * 16 >= sent[0] + sent[1], "{sent:?}");
        // Offered 2.25 times the rate: the excess, 1 − 1/2.25, is dropped, and the delay stays
        // bounded.
        let share = f64::from(lost[0] + lost[1]) / 45_000.0;
        assert!((share - 0.5556).abs() < 0.02, "{share}");
        assert!(delay < TimeDelta::from_millis(60), "{delay}");
    }

    proptest! {
        /// Delayed updates are equivalent to a timer: a twin that is updated at each due instant
        /// ends in the same state with the same packets. No packet is lost or overtaken within a
        /// queue.
        #[test]
        fn late_updates_equal_punctual_ones(
            steps in proptest::collection::vec((0_u64..40_000, 0_u8..8, 40_u32..=1500), 1..300),
            pauses in proptest::collection::vec(0_usize..300, 0..3),
        ) {
            let tupdate = TimeDelta::from_millis(16);
            let mut late: DualPi2<u64> = DualPi2::new(DualPi2Spec::default(), 60_000);
            let mut timed = late.clone();
            let (mut now, mut tick) = (Time::ZERO, Time::ZERO + tupdate);
            let (mut taken, mut lost, mut lost_by_timed) = (0, Vec::new(), Vec::new());
            let (mut left, mut bytes) = ([Vec::new(), Vec::new()], 0);
            for (body, (gap, kind, size)) in (0..).zip(steps) {
                let pause = if pauses.contains(&(body as usize)) { 40_000_000 } else { 0 };
                now += TimeDelta::from_micros(gap + pause);
                while tick <= now {
                    timed.update(tick);
                    tick += tupdate;
                }
                let ecn = [Ecn::NotEct, Ecn::Ect0, Ecn::Ect1, Ecn::Ce].get(usize::from(kind));
                if let Some(ecn) = ecn {
                    let packet = Packet { bytes: size, flow: kind.into(), ..packet(body, *ecn) };
                    late.enqueue(now, packet, &mut |packet| lost.push(packet));
                    timed.enqueue(now, packet, &mut |packet| lost_by_timed.push(packet));
                    (taken, bytes) = (taken + 1, bytes + u64::from(size));
                } else {
                    let packets = [
                        late.dequeue(now, &mut rng(), &mut |packet| lost.push(packet)),
                        timed.dequeue(now, &mut rng(), &mut |packet| lost_by_timed.push(packet)),
                    ];
                    prop_assert_eq!(packets[0], packets[1]);
                    if let Some(queued) = packets[0] {
                        bytes -= u64::from(queued.packet.bytes);
                        left[usize::from(queued.packet.flow < 2)].push(queued.packet.body);
                    }
                }
                prop_assert_eq!(late.control, timed.control);
                prop_assert_eq!(&lost, &lost_by_timed);
                let gone: u64 = lost.iter().map(|packet| u64::from(packet.bytes)).sum();
                prop_assert_eq!(late.bytes(), bytes - gone);
                prop_assert!(late.bytes() <= 60_000);
            }
            prop_assert_eq!(taken, lost.len() + left[0].len() + left[1].len() + late.packets());
            prop_assert!(left.iter().all(|bodies| bodies.is_sorted()));
        }
    }
}
