//! Queue disciplines with responsive senders: PIE keeps Reno-like flows at its target, and CoDel
//! near it. FQ-CoDel and CAKE give all flows the same rate, however they respond. With DualPI2's
//! coupling, Reno-like and scalable flows on one link get the rates derived in RFC 9332, appendix
//! C.2, and the scalable ones avoid the delay of the others.

use std::cmp::Reverse;
use std::collections::BinaryHeap;

use uncork_path::{Bottleneck, Ecn, LinkRate, Packet, QueueSpec};
use uncork_units::{Rate, Rng, Time, TimeDelta};

const RATE: Rate = Rate::from_mbit(40);
const WARM_UP: Time = Time::from_nanos(20_000_000_000);
const END: Time = Time::from_nanos(120_000_000_000);

/// A sender that is always in congestion avoidance, with a window in packets.
struct Sender {
    scalable: bool,
    cwnd: f64,
    in_flight: u32,
    sent: u64,
    /// Signals of earlier packets have already been handled.
    answered: u64,
    /// Packets lost or marked.
    signals: u64,
    /// Packets that left the link since the warm-up.
    delivered: u64,
    /// The sum of their queuing delays in seconds.
    delay: f64,
}

impl Sender {
    fn new(scalable: bool) -> Self {
        let (cwnd, delay) = (10.0, 0.0);
        let [sent, answered, signals, delivered] = [0; 4];
        Self { scalable, cwnd, in_flight: 0, sent, answered, signals, delivered, delay }
    }

    /// Reno: one packet more per round trip, half the window once per round trip with a signal.
    /// Scalable: the same increase, half a packet less per mark. In equilibrium that is a window of
    /// 2 / p, equation (6).
    fn on_feedback(&mut self, number: u64, signal: bool) {
        self.in_flight -= 1;
        self.signals += u64::from(signal);
        if self.scalable {
            let step = 1.0 / self.cwnd - if signal { 0.5 } else { 0.0 };
            self.cwnd = (self.cwnd + step).max(2.0);
        } else if signal && number >= self.answered {
            self.cwnd = (self.cwnd / 2.0).max(2.0);
            self.answered = self.sent;
        } else {
            self.cwnd += 1.0 / self.cwnd;
        }
    }

    fn may_send(&self) -> bool {
        f64::from(self.in_flight + 1) <= self.cwnd
    }
}

struct Network {
    link: Bottleneck<u64>,
    senders: Vec<Sender>,
    classic: Ecn,
    base_rtt: TimeDelta,
    /// Pending feedback: time, flow, packet, and whether it was a signal.
    feedback: BinaryHeap<Reverse<(Time, u32, u64, bool)>>,
}

impl Network {
    fn new(queue: &str, base_rtt: TimeDelta, classic: Ecn, flows: (usize, usize)) -> Self {
        let spec: QueueSpec = queue.parse().expect("a discipline");
        let queue = spec.build(RATE.bytes_in(TimeDelta::from_millis(250)));
        let link = Bottleneck::new(LinkRate::constant(RATE), queue, Rng::new(1, 0));
        let kinds = [(false, flows.0), (true, flows.1)];
        let senders =
            kinds.iter().flat_map(|(scalable, n)| (0..*n).map(|_| Sender::new(*scalable)));
        let senders = senders.collect();
        Self { link, senders, classic, base_rtt, feedback: BinaryHeap::new() }
    }

    fn run(&mut self) {
        for flow in 0..self.senders.len() {
            self.send(Time::ZERO, flow);
        }
        loop {
            let fed_back = self.feedback.peek().map_or(Time::NEVER, |Reverse((at, ..))| *at);
            let now = fed_back.min(self.link.next_departure());
            if now >= END {
                return;
            }
            if fed_back == now {
                let (_, flow, number, signal) = self.feedback.pop().expect("peeked").0;
                self.senders[flow as usize].on_feedback(number, signal);
                self.send(now, flow as usize);
            } else {
                self.depart(now);
            }
        }
    }

    fn send(&mut self, now: Time, flow: usize) {
        let ecn = if self.senders[flow].scalable { Ecn::Ect1 } else { self.classic };
        while self.senders[flow].may_send() {
            let sender = &mut self.senders[flow];
            let body = sender.sent;
            (sender.in_flight, sender.sent) = (sender.in_flight + 1, body + 1);
            let packet = Packet { flow: flow as u32, host: 0, bytes: 1500, ecn, body };
            let (feedback, at) = (&mut self.feedback, now + self.base_rtt);
            self.link.offer(now, packet, &mut |lost| {
                feedback.push(Reverse((at, lost.flow, lost.body, true)));
            });
        }
    }

    fn depart(&mut self, now: Time) {
        let (feedback, at) = (&mut self.feedback, now + self.base_rtt);
        let left = self.link.depart(now, &mut |lost| {
            feedback.push(Reverse((at, lost.flow, lost.body, true)));
        });
        let left = left.expect("due");
        let Packet { flow, ecn, body, .. } = left.packet;
        feedback.push(Reverse((at, flow, body, ecn == Ecn::Ce)));
        if now >= WARM_UP {
            let sender = &mut self.senders[flow as usize];
            sender.delivered += 1;
            sender.delay += left.queued_for.as_secs_f64();
        }
    }

    /// The outcome of the scalable flows, or of the others.
    fn outcome(&self, scalable: bool) -> Outcome {
        let flows = || self.senders.iter().filter(|sender| sender.scalable == scalable);
        let sum = |of: fn(&Sender) -> u64| flows().map(of).sum::<u64>() as f64;
        let delivered = sum(|sender| sender.delivered);
        Outcome {
            rate: delivered / flows().count() as f64 / END.since(WARM_UP).as_secs_f64(),
            delay: flows().map(|sender| sender.delay).sum::<f64>() / delivered,
            signalled: sum(|sender| sender.signals) / sum(|sender| sender.sent),
        }
    }
}

#[derive(Debug, PartialEq)]
struct Outcome {
    /// Packets per second of a flow.
    rate: f64,
    /// Mean queuing delay in seconds.
    delay: f64,
    /// Share of the packets lost or marked.
    signalled: f64,
}

/// Both outcomes with their RTTs, including base RTT, queue and transmission.
struct Rivals {
    classic: Outcome,
    scalable: Outcome,
    rtt_c: f64,
    rtt_l: f64,
    case: String,
}

fn compete(base_ms: u64, ecn: Ecn, flows: (usize, usize)) -> Rivals {
    let base_rtt = TimeDelta::from_millis(base_ms);
    let mut network = Network::new("dualpi2", base_rtt, ecn, flows);
    network.run();
    let (classic, scalable) = (network.outcome(false), network.outcome(true));
    let wire = (base_rtt + RATE.time_for(1500)).as_secs_f64();
    let (rtt_c, rtt_l) = (wire + classic.delay, wire + scalable.delay);
    let case = format!("{base_ms} ms, {ecn:?}, {flows:?}: {classic:?} {scalable:?}");
    Rivals { classic, scalable, rtt_c, rtt_l, case }
}

/// With several flows the conditions are stationary, as §2.1 assumes.
const STATIONARY: [(u64, Ecn, (usize, usize)); 6] = [
    (10, Ecn::NotEct, (2, 2)),
    (25, Ecn::NotEct, (2, 2)),
    (25, Ecn::NotEct, (5, 5)),
    (25, Ecn::Ect0, (5, 5)),
    (25, Ecn::NotEct, (1, 5)),
    (25, Ecn::NotEct, (5, 1)),
];

/// One or two Reno flows over a long path: their sawtooth fills and empties the queue, so p'
/// oscillates.
const SWINGING: [(u64, Ecn, (usize, usize)); 3] =
    [(25, Ecn::NotEct, (1, 1)), (25, Ecn::Ect0, (1, 1)), (50, Ecn::NotEct, (2, 2))];

/// Equation (10): r_L / r_C = R_C / (1.22 R_L), within 10 %: the senders follow their laws within 5
/// % (see below), and p' is never quite constant.
#[test]
fn rates_follow_the_rfc_equation() {
    for (base_ms, ecn, flows) in STATIONARY {
        let Rivals { classic, scalable, rtt_c, rtt_l, case } = compete(base_ms, ecn, flows);
        let error = scalable.rate / classic.rate / (rtt_c / (1.22 * rtt_l));
        assert!((error - 1.0).abs() < 0.1, "{error} {case}");
    }
}

/// The classic queue is at its target of 15 ms; the delay of the scalable flows stays below the
/// smallest delay that their own AQM marks, 0.8 ms.
#[test]
fn l_queue_stays_short_next_to_a_classic_queue() {
    for (base_ms, ecn, flows) in STATIONARY {
        let Rivals { classic, scalable, case, .. } = compete(base_ms, ecn, flows);
        assert!((classic.delay / 0.015 - 1.0).abs() < 0.05, "{case}");
        assert!(scalable.delay < 0.0008, "{case}");
    }
}

/// Equation (1) as measured: p_L = 2 sqrt(p_C), within 10 % where p' is steady. Where p'
/// oscillates, the mean of its square exceeds the square of its mean, so p_L is lower by that,
/// never higher.
#[test]
fn marks_are_coupled_to_losses() {
    for (cases, least) in [(&STATIONARY[..], 0.9), (&SWINGING[..], 0.7)] {
        for (base_ms, ecn, flows) in cases {
            let Rivals { classic, scalable, case, .. } = compete(*base_ms, *ecn, *flows);
            let coupling = scalable.signalled / (2.0 * classic.signalled.sqrt());
            assert!((least..1.05).contains(&coupling), "{coupling} {case}");
        }
    }
}

/// The assumptions of appendix C.2, so that this tests the discipline and not its senders: windows
/// of 1.22 / sqrt(p) and of 2 / p, equations (5) and (6).
#[test]
fn senders_follow_their_response_functions() {
    for (base_ms, ecn, flows) in STATIONARY.into_iter().chain(SWINGING) {
        let Rivals { classic, scalable, rtt_c, rtt_l, case } = compete(base_ms, ecn, flows);
        let reno = classic.rate * rtt_c * classic.signalled.sqrt();
        assert!((reno / 1.22 - 1.0).abs() < 0.05, "{reno} {case}");
        let linear = scalable.rate * rtt_l * scalable.signalled;
        assert!((linear / 2.0 - 1.0).abs() < 0.05, "{linear} {case}");
    }
}

/// RFC 8033 §4.2: the controller has no steady-state error.
#[test]
fn pie_keeps_its_target() {
    for queue in ["pie", "pie:ecn", "pie:noderandomize", "pie:target=30ms"] {
        let mut network = Network::new(queue, TimeDelta::from_millis(25), Ecn::Ect0, (5, 0));
        network.run();
        let target = if queue.contains("30ms") { 0.030 } else { 0.015 };
        let outcome = network.outcome(false);
        assert!((outcome.delay / target - 1.0).abs() < 0.05, "{queue} {outcome:?}");
        assert!(outcome.rate * 5.0 > 0.99 * 40e6 / 12_000.0, "{queue} {outcome:?}");
    }
}

/// CoDel does not regulate to its target but acts when the delay has been above it for a while.
/// With several flows the mean delay exceeds the target, by at most a factor of three.
#[test]
fn codel_keeps_delay_near_its_target() {
    for (queue, flows) in [("codel", 5), ("codel:ecn", 5), ("codel", 20), ("codel:ecn", 20)] {
        let mut network = Network::new(queue, TimeDelta::from_millis(25), Ecn::Ect0, (flows, 0));
        network.run();
        let outcome = network.outcome(false);
        assert!((0.005..0.015).contains(&outcome.delay), "{queue} {flows} {outcome:?}");
        assert!(outcome.rate * flows as f64 > 0.99 * 40e6 / 12_000.0, "{queue} {outcome:?}");
    }
}

/// In a shared queue, flows that respond least to marks win. With one queue per flow they gain
/// nothing (RFC 8290 §1).
#[test]
fn per_flow_queues_equalize_rates() {
    let advantage = |queue| {
        let mut network = Network::new(queue, TimeDelta::from_millis(25), Ecn::Ect0, (5, 5));
        network.run();
        network.outcome(true).rate / network.outcome(false).rate
    };
    assert!(advantage("codel:ecn") > 3.0);
    for queue in ["fq_codel", "cake"] {
        assert!((advantage(queue) - 1.0).abs() < 0.03, "{queue} {}", advantage(queue));
    }
}

#[test]
fn equal_seeds_give_equal_outcomes() {
    for queue in ["pie", "dualpi2", "codel", "fq_codel", "cake"] {
        let outcome = || {
            let flows = if queue == "pie" { (5, 0) } else { (5, 5) };
            let mut network = Network::new(queue, TimeDelta::from_millis(25), Ecn::NotEct, flows);
            network.run();
            network.outcome(false)
        };
        assert_eq!(outcome(), outcome());
    }
}
