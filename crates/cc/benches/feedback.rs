//! What a controller costs per packet sent and per feedback of 1, 2 and 32 packets.
//!
//! An iteration is a flight of [`FLIGHT`] packets, so read the throughput: the aims are 10 Melem/s
//! (100 ns) for feedbacks of one packet and 33 Melem/s (30 ns) for packets sent.

use std::hint::black_box;

use criterion::{BatchSize, BenchmarkId, Criterion, Throughput, criterion_group, criterion_main};
use uncork_cc::{
    Acked, Algorithm, AnyController, AppState, CcSpec, Controller, Feedback, RttSample, SentPacket,
    Settings,
};
use uncork_units::{Time, TimeDelta};

const MSS: u32 = 1_448;
const RTT: TimeDelta = TimeDelta::from_millis(20);
/// Packets in flight: at one per 12.5 µs, what the path holds.
const FLIGHT: usize = 1_600;
/// Round trips before the measurement: enough to leave slow start and Startup.
const WARM_UP: usize = 60;
const PACKETS_PER_FEEDBACK: [usize; 3] = [1, 2, 32];

/// A connection over a path without loss, sending and hearing of a flight at a time.
#[derive(Clone)]
struct Connection {
    cc: AnyController,
    now: Time,
    gap: TimeDelta,
    flight: Vec<Acked>,
}

impl Connection {
    /// Warmed up, with nothing in flight.
    fn new(algorithm: Algorithm) -> Self {
        let now = Time::ZERO;
        let initial_window = 10 * u64::from(MSS);
        let settings = Settings { mss: MSS, initial_window, initial_rtt: Some(RTT), seed: 1, now };
        let mut this = Self {
            cc: CcSpec::new(algorithm).build(&settings),
            now,
            gap: RTT.divided_by(FLIGHT as u64),
            flight: Vec::with_capacity(FLIGHT),
        };
        for _ in 0..WARM_UP {
            this.send_flight();
            this.acknowledge_flight(1);
        }
        this
    }

    fn with_flight(mut self) -> Self {
        self.send_flight();
        self
    }

    fn send_flight(&mut self) {
        self.flight.clear();
        for sent in 1..=FLIGHT as u64 {
            let in_flight = sent * u64::from(MSS);
            let packet = SentPacket { bytes: MSS, in_flight, unacked: in_flight };
            let token = self.cc.on_sent(self.now, black_box(packet), AppState::Backlogged);
            self.flight.push(Acked { token, bytes: MSS });
            self.now += self.gap;
        }
    }

    fn acknowledge_flight(&mut self, packets: usize) {
        let mut left = FLIGHT;
        for acked in self.flight.chunks(packets) {
            left -= acked.len();
            let in_flight = left as u64 * u64::from(MSS);
            let feedback = Feedback {
                acked,
                lost: &[],
                rtt: Some(RttSample { latest: RTT, smoothed: RTT, min: RTT }),
                ce_packets: 0,
                in_flight,
                unacked: in_flight,
                una_advanced: true,
                oldest_sent: acked[0].token.send_time(),
                repaired_by_probe: false,
            };
            self.cc.on_feedback(self.now, black_box(&feedback));
            self.now += self.gap.times(acked.len() as u64);
        }
    }
}

fn sent(criterion: &mut Criterion) {
    let mut group = criterion.benchmark_group("on_sent");
    group.throughput(Throughput::Elements(FLIGHT as u64));
    for algorithm in Algorithm::ALL {
        let connection = Connection::new(algorithm);
        group.bench_function(algorithm.name(), |bencher| {
            bencher.iter_batched_ref(
                || connection.clone(),
                Connection::send_flight,
                BatchSize::SmallInput,
            );
        });
    }
    group.finish();
}

fn feedback(criterion: &mut Criterion) {
    let mut group = criterion.benchmark_group("on_feedback");
    for packets in PACKETS_PER_FEEDBACK {
        group.throughput(Throughput::Elements((FLIGHT / packets) as u64));
        for algorithm in Algorithm::ALL {
            let connection = Connection::new(algorithm).with_flight();
            let id = BenchmarkId::new(algorithm.name(), packets);
            group.bench_function(id, |bencher| {
                bencher.iter_batched_ref(
                    || connection.clone(),
                    |connection| connection.acknowledge_flight(black_box(packets)),
                    BatchSize::SmallInput,
                );
            });
        }
    }
    group.finish();
}

criterion_group!(benches, sent, feedback);
criterion_main!(benches);
