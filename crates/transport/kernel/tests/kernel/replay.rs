//! Every call that the kernel made of a controller, made again of the native one: the same decisions and
//! the same state, to the last field.

use std::collections::HashMap;
use std::fmt::Debug;
use std::sync::mpsc::sync_channel;
use std::thread::{self, ScopedJoinHandle};
use std::time::Duration;

use uncork_cc::{Bbr1, Bbr3, Cubic, NewReno, Prague, Settings};
use uncork_kernel::{Algorithm, Loaded};
use uncork_testkit::pause;

use crate::glue::{Call, Connection, DEFERRED, Staged};
use crate::record::{ACK, CLASSIC_ECN, ENDED, INIT, RESIZED, Record, SENT, SPURIOUS, TIMEOUT};
use crate::traffic::{Downloads, EcnMode};
use crate::{alone, loaded};

/// Calls that wait to be replayed, of about a kilobyte each.
const MAX_QUEUED: usize = 1 << 18;

/// Builds a controller.
pub(crate) type Start<C> = fn(&Settings) -> C;

/// What was replayed.
#[derive(Debug, Default)]
pub(crate) struct Replayed {
    connections: usize,
    /// By kind.
    pub(crate) calls: [usize; 8],
    states: HashMap<&'static str, usize>,
    /// ACKs while the kernel waited for room for a larger packet.
    deferred: usize,
    /// Calls that found no room in the kernel's queue.
    pub(crate) missed: u32,
    /// Of a batch.
    fastest_gbit_per_s: f64,
}

/// The native controllers of a batch.
pub(crate) struct Native<C> {
    /// Each with the number of its next call.
    connections: HashMap<u64, (u32, Box<Connection<C>>)>,
    /// Bytes acknowledged in all reported calls, and the times of the first and the last call.
    acked: u64,
    span: [u64; 2],
}

impl<C: Staged + Debug> Native<C> {
    pub(crate) fn new() -> Self {
        Self { connections: HashMap::new(), acked: 0, span: [u64::MAX, 0] }
    }

    /// The rate of all connections together in Gbit/s.
    fn gbit_per_s(&self) -> f64 {
        let [first, last] = self.span;
        self.acked as f64 * 8.0 / last.saturating_sub(first).max(1) as f64
    }

    /// Makes the same call, and compares. After a gap the native controller goes on from the kernel's state.
    pub(crate) fn repeat(&mut self, theirs: Record<C>, start: Start<C>, replayed: &mut Replayed) {
        let Record { kind, number, key, connection: mut theirs } = theirs;
        let Call { now, acked, flags, .. } = theirs.call;
        self.span = [self.span[0].min(now), self.span[1].max(now)];
        self.acked += if kind == ACK { acked } else { 0 };
        if kind == INIT {
            self.connections.insert(key, (0, Box::new(Connection::storage())));
            replayed.connections += 1;
        }
        let next = self.connections.get(&key).map_or(0, |(next, _)| *next);
        if number != next {
            replayed.missed += number - next;
            self.connections.insert(key, (number + 1, Box::new(theirs)));
            return;
        }
        let (next, mine) =
            self.connections.get_mut(&key).expect("a connection begins with its start");
        *next += 1;
        mine.call = theirs.call;
        match kind {
            INIT => mine.init(start),
            SENT => mine.sent(),
            ACK => {
                mine.ack_losses();
                mine.ack_model();
            }
            TIMEOUT => mine.timeout(),
            SPURIOUS => mine.spurious(),
            RESIZED => mine.resized(),
            CLASSIC_ECN => mine.classic_ecn(),
            ENDED => mine.ended(),
            _ => panic!("unknown call {kind}"),
        }
        // The kernel renews it where it applies what was decided.
        if ![SENT, RESIZED, CLASSIC_ECN, ENDED].contains(&kind) {
            mine.renew_report();
            assert_eq!(mine.report, theirs.report, "call {number} of kind {kind}");
        }
        let out = |call: &Call| {
            let saved = (call.saved_cwnd, call.saved_rtt, call.flags);
            (call.cwnd, call.pacing_rate, call.send_quantum, call.is_classic, saved)
        };
        assert_eq!(out(&mine.call), out(&theirs.call), "call {number} of kind {kind}");
        let (mine, theirs) = (mine.controller(), theirs.controller());
        assert_eq!(format!("{mine:?}"), format!("{theirs:?}"), "call {number} of kind {kind}");
        replayed.calls[kind as usize] += 1;
        replayed.deferred += usize::from(kind == ACK && flags & DEFERRED != 0);
        *replayed.states.entry(mine.snapshot().state).or_default() += 1;
    }
}

/// Downloads with the controller in the kernel, and replays meanwhile, until `acks` are compared or no batch is
/// left. The downloads of a batch run at the same time, each over a path of its own.
fn replay<C: Staged + Debug>(
    algorithm: Algorithm,
    start: Start<C>,
    acks: usize,
    batches: impl IntoIterator<Item = impl IntoIterator<Item = Downloads>>,
) -> Option<Replayed> {
    let _alone = alone(algorithm);
    let loaded = loaded(Loaded::traced, algorithm)?;
    let _registered = loaded.register().expect("it is free");
    let (mut trace, mut replayed) = (loaded.trace(), Replayed::default());
    for batch in batches {
        if replayed.calls[ACK as usize] > acks {
            break;
        }
        let (trace, replayed) = (&mut trace, &mut replayed);
        let done = thread::scope(|scope| {
            let loaded = &loaded;
            let run = |downloads: Downloads| scope.spawn(move || downloads.run(loaded));
            let running: Vec<_> = batch.into_iter().map(run).collect();
            // Replaying takes longer than the kernel's calls, at their fastest: another thread keeps its queue empty.
            let (keep, kept) = sync_channel(MAX_QUEUED);
            let running = scope.spawn(move || {
                loop {
                    let is_over = running.iter().all(ScopedJoinHandle::is_finished);
                    while let Some(record) = trace.pop().expect("a queue") {
                        keep.send(record.to_vec()).expect("they are replayed");
                    }
                    if is_over {
                        return running;
                    }
                    pause(Duration::from_millis(1), "the next calls");
                }
            });
            let mut native = Native::<C>::new();
            for record in kept {
                native.repeat(Record::read(&record), start, replayed);
            }
            replayed.fastest_gbit_per_s = replayed.fastest_gbit_per_s.max(native.gbit_per_s());
            let running = running.join().expect("it ends").into_iter();
            running.map(|run| run.join().expect("it ends")).collect::<Option<Vec<_>>>()
        });
        done?;
    }
    println!(
        "{algorithm}: {replayed:?}; calls are start, sent, ACK, timeout, spurious, resized, without ECT(1), end"
    );
    Some(replayed)
}

/// Flows of controllers that keep their rate when they lose packets: without loss, with few and many,
/// competing, reordered, marked, limited by the application.
const ALL: [Downloads; 9] = [
    Downloads::new(20, "0%", 1, 3_000_000),
    Downloads::new(20, "1%", 1, 12_000_000),
    Downloads::new(20, "5%", 1, 2_000_000),
    Downloads::new(20, "40%", 4, 20_000),
    Downloads::new(100, "1%", 8, 1_500_000),
    Downloads { jitter_ms: 20, ..Downloads::new(20, "0%", 1, 6_000_000) },
    Downloads { queue: "codel:ecn", ..Downloads::new(20, "0%", 1, 3_000_000) },
    Downloads { bursts: 10, ..Downloads::new(20, "5%", 1, 600_000) },
    Downloads { later_mtu: Some(1_000), ..Downloads::new(20, "0%", 1, 3_000_000) },
];

/// The same for controllers that do not.
const LESS: [Downloads; 8] = [
    Downloads::new(20, "0%", 1, 4_000_000),
    Downloads::new(20, "0.1%", 1, 6_000_000),
    Downloads::new(20, "2%", 2, 500_000),
    Downloads::new(20, "40%", 4, 20_000),
    Downloads { jitter_ms: 20, ..Downloads::new(20, "0%", 1, 5_000_000) },
    Downloads { queue: "codel:ecn", ..Downloads::new(20, "0%", 1, 3_000_000) },
    Downloads { bursts: 10, ..Downloads::new(20, "5%", 1, 600_000) },
    Downloads { later_mtu: Some(1_000), ..Downloads::new(20, "0%", 1, 3_000_000) },
];

fn check(replayed: &Replayed, acks: usize, states: &[&str]) {
    let calls = replayed.calls.iter().sum::<usize>();
    assert!(replayed.missed as usize * 100 < calls, "{replayed:?}");
    assert!(replayed.calls[ACK as usize] > acks, "{replayed:?}");
    assert!(replayed.calls[TIMEOUT as usize] > 0, "{replayed:?}");
    assert!(replayed.calls[SPURIOUS as usize] > 0, "{replayed:?}");
    assert!(replayed.calls[RESIZED as usize] > 0, "{replayed:?}");
    for state in states {
        assert!(replayed.states.contains_key(state), "{state}: {replayed:?}");
    }
}

const PROBE_BW: [&str; 6] =
    ["Startup", "Drain", "ProbeBW_DOWN", "ProbeBW_CRUISE", "ProbeBW_REFILL", "ProbeBW_UP"];

#[test]
fn bbr1_decides_in_the_kernel_as_natively() {
    let Some(replayed) = replay(Algorithm::Bbr1, Bbr1::new, usize::MAX, [ALL]) else { return };
    check(&replayed, 5_000, &["Startup", "Drain", "ProbeBW"]);
}

#[test]
fn bbr2_decides_in_the_kernel_as_natively() {
    let Some(replayed) = replay(Algorithm::Bbr2, Bbr3::v2, usize::MAX, [ALL]) else { return };
    check(&replayed, 5_000, &PROBE_BW);
}

#[test]
fn bbr3_decides_in_the_kernel_as_natively() {
    let start = |settings: &Settings| Bbr3::new(settings, false);
    let Some(replayed) = replay(Algorithm::Bbr3, start, usize::MAX, [ALL]) else { return };
    check(&replayed, 5_000, &PROBE_BW);
}

#[test]
fn cubic_decides_in_the_kernel_as_natively() {
    let Some(replayed) = replay(Algorithm::Cubic, Cubic::new, usize::MAX, [LESS]) else { return };
    check(&replayed, 500, &["SlowStart", "CongestionAvoidance", "Recovery"]);
}

/// Queues for L4S, a classic one, loss, and clients that do not have AccECN.
#[test]
fn prague_decides_in_the_kernel_as_natively() {
    let l4s = |one: Downloads| Downloads { ecn: EcnMode::Accurate, ..one };
    let marked = |rtt_ms, flows, bytes| {
        l4s(Downloads { rtt_ms, queue: "dualpi2", ..Downloads::new(20, "0%", flows, bytes) })
    };
    let own = [
        marked(10, 1, 6_000_000),
        marked(50, 4, 1_000_000),
        l4s(Downloads {
            queue: "codel:ecn",
            buffer: "4bdp",
            ..Downloads::new(20, "0%", 1, 6_000_000)
        }),
    ];
    let all = own.into_iter().chain(LESS.map(l4s)).chain(LESS);
    let Some(replayed) = replay(Algorithm::Prague, Prague::new, usize::MAX, [all]) else { return };
    check(&replayed, 1_000, &["SlowStart", "CongestionAvoidance", "Recovery"]);
    assert!(replayed.deferred > 0, "or its window is not used, and does not grow: {replayed:?}");
}

#[test]
fn newreno_decides_in_the_kernel_as_natively() {
    let Some(replayed) = replay(Algorithm::Reno, NewReno::new, usize::MAX, [LESS]) else { return };
    check(&replayed, 500, &["SlowStart", "CongestionAvoidance", "Recovery"]);
}

/// A million ACKs: eight flows at 200 Mbit/s with two rates of loss; 64 flows; reordering, ECN, timeouts, pauses;
/// and as fast as the host can, over its loopback. Takes minutes.
fn million<C: Staged + Debug>(algorithm: Algorithm, start: Start<C>, losses: [&'static str; 2]) {
    const MILLION: usize = 1_000_000;
    let fast = |loss| Downloads { rtt_ms: 20, ..Downloads::new(200, loss, 8, 20_000_000) };
    let round = [
        fast(losses[0]),
        fast(losses[1]),
        Downloads { local_mtu: Some(1_500), ..Downloads::new(20, "0%", 4, 1_000_000_000) },
        Downloads { later_mtu: Some(1_000), bytes: 3_000_000, ..fast("0%") },
        Downloads { flows: 64, bytes: 2_500_000, ..fast(losses[1]) },
        Downloads { jitter_ms: 20, bytes: 3_000_000, ..fast("0%") },
        Downloads { queue: "codel:ecn", ..fast("0%") },
        Downloads { queue: "dualpi2", ecn: EcnMode::Accurate, ..fast("0%") },
        Downloads { bursts: 20, bytes: 1_000_000, ..fast("5%") },
        Downloads { flows: 64, bytes: 50_000, ..fast("20%") },
    ];
    // Each round has about 200,000.
    let batches = round.into_iter().cycle().take(12 * round.len()).map(|one| [one]);
    let Some(replayed) = replay(algorithm, start, MILLION, batches) else { return };
    check(&replayed, MILLION, &[]);
}

/// As fast as the host can with packets of 64 kB, as segmentation makes them: at least 10 Gbit/s.
fn ten_gigabits<C: Staged + Debug>(algorithm: Algorithm, start: Start<C>) {
    let local = Downloads::new(20, "0%", 2, 2_000_000_000);
    let batches = [[Downloads { local_mtu: Some(65_535), ..local }]; 3];
    let Some(replayed) = replay(algorithm, start, usize::MAX, batches) else { return };
    assert_eq!(replayed.missed, 0);
    assert!(replayed.fastest_gbit_per_s >= 10.0, "{replayed:?}");
}

#[test]
#[ignore = "needs a machine of its own"]
fn ten_gigabits_of_each() {
    ten_gigabits(Algorithm::Bbr1, Bbr1::new);
    ten_gigabits(Algorithm::Bbr2, Bbr3::v2);
    ten_gigabits(Algorithm::Bbr3, |settings| Bbr3::new(settings, false));
    ten_gigabits(Algorithm::Cubic, Cubic::new);
    ten_gigabits(Algorithm::Prague, Prague::new);
    ten_gigabits(Algorithm::Reno, NewReno::new);
}

#[test]
#[ignore = "minutes"]
fn a_million_acks_of_bbr1() {
    million(Algorithm::Bbr1, Bbr1::new, ["0.1%", "3%"]);
}

#[test]
#[ignore = "minutes"]
fn a_million_acks_of_bbr2() {
    million(Algorithm::Bbr2, Bbr3::v2, ["0.1%", "1%"]);
}

#[test]
#[ignore = "minutes"]
fn a_million_acks_of_bbr3() {
    million(Algorithm::Bbr3, |settings| Bbr3::new(settings, false), ["0.1%", "1%"]);
}

#[test]
#[ignore = "minutes"]
fn a_million_acks_of_cubic() {
    million(Algorithm::Cubic, Cubic::new, ["0.001%", "0.01%"]);
}

#[test]
#[ignore = "minutes"]
fn a_million_acks_of_prague() {
    million(Algorithm::Prague, Prague::new, ["0.001%", "0.01%"]);
}

#[test]
#[ignore = "minutes"]
fn a_million_acks_of_newreno() {
    million(Algorithm::Reno, NewReno::new, ["0.001%", "0.01%"]);
}
