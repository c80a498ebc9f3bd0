//! The calls that a steady connection makes: `.ci/instructions.py` counts the instructions of [`send`] and [`acknowledge`].

use std::collections::VecDeque;
use std::env;

use uncork_cc::{
    Acked, Algorithm, AppState, CcSpec, Controller, Feedback, RttSample, SentPacket, Settings,
    units::{Time, TimeDelta},
};

const PACKET: u32 = 1_448;
const RTT: TimeDelta = TimeDelta::from_millis(20);
/// Packets that the path holds.
const FLIGHT: usize = 128;
/// Packets sent and acknowledged at a time.
const BATCH: usize = 16;
const BATCHES: u64 = 2_000;
/// Packets of Prague for each marked one. At this share its window is shorter than the path, so that it grows with each ACK.
const PER_MARK: usize = 50;

fn main() {
    for name in env::args().skip(1) {
        let cc: CcSpec = name.parse().expect("a controller");
        let is_marked = cc.algorithm() == Algorithm::Prague;
        let settings = Settings::new(PACKET, 1, Time::ZERO)
            .with_initial_rtt(RTT)
            .with_scalable_marks(is_marked);
        let (mut controller, mut flight) = (cc.build(&settings), VecDeque::new());
        let (mut now, mut sent, mut acknowledged) = (Time::ZERO, 0, 0);
        for _ in 0..BATCHES {
            sent += send(&mut controller, now, &mut flight);
            now += RTT.divided_by((FLIGHT / BATCH) as u64);
            let first_mark = if is_marked { PER_MARK - acknowledged % PER_MARK } else { BATCH + 1 };
            acknowledged += acknowledge(&mut controller, now, &mut flight, first_mark);
        }
        println!("{name} {sent} {acknowledged}");
    }
}

/// Sends while the window and the path have room.
#[inline(never)]
fn send(controller: &mut impl Controller, now: Time, flight: &mut VecDeque<Acked>) -> usize {
    let before = flight.len();
    while flight.len() < FLIGHT {
        let in_flight = (flight.len() as u64 + 1) * u64::from(PACKET);
        if in_flight > controller.control().cwnd {
            break;
        }
        let packet = SentPacket { bytes: PACKET, in_flight, unacked: in_flight };
        let token = controller.on_sent(now, packet, AppState::Backlogged);
        flight.push_back(Acked { token, bytes: PACKET });
    }
    flight.len() - before
}

/// Acknowledges a batch, each packet by itself, unless the oldest has only just left. Its packet `mark`, from 1 on, is
/// marked.
#[inline(never)]
fn acknowledge(
    controller: &mut impl Controller,
    now: Time,
    flight: &mut VecDeque<Acked>,
    mark: usize,
) -> usize {
    let mut count = 0;
    while count < BATCH && flight.front().is_some_and(|it| it.token.send_time() + RTT <= now) {
        let Some(packet) = flight.pop_front() else { break };
        let acked = [packet];
        let in_flight = flight.len() as u64 * u64::from(PACKET);
        let oldest = flight.front().map_or(Time::NEVER, |packet| packet.token.send_time());
        let feedback = Feedback::new(&acked, &[], in_flight, oldest).with_rtt(RttSample {
            latest: RTT,
            smoothed: RTT,
            min: RTT,
        });
        let feedback = feedback.with_ce_packets(u32::from(count + 1 == mark));
        controller.on_feedback(now, &feedback);
        count += 1;
    }
    count
}
