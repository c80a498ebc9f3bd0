//! Every call that the kernel made of a controller, made again of the native one: the same decisions and
//! the same state, to the last field.
//!
//! `UNCORK_REPLAY_FACTOR=20` downloads twenty times as much.

use std::collections::HashMap;
use std::fmt::Debug;

use uncork_cc::{Bbr1, Bbr3, Cubic, NewReno, Settings};
use uncork_kernel::{Algorithm, Loaded};

use crate::glue::{Call, Connection, Staged};
use crate::record::{ACK, INIT, Record, SENT, SPURIOUS, TIMEOUT};
use crate::traffic::Downloads;
use crate::{alone, loaded};

/// Builds a controller.
type Start<C> = fn(&Settings) -> C;

/// What was replayed.
#[derive(Debug, Default)]
struct Replayed {
    connections: usize,
    /// By kind.
    calls: [usize; 5],
    states: HashMap<&'static str, usize>,
}

/// The native controllers, each with the number of its next call.
struct Native<C>(HashMap<u64, (u32, Box<Connection<C>>)>);

impl<C: Staged + Debug> Native<C> {
    /// Makes the same call, and compares.
    fn repeat(&mut self, theirs: Record<C>, start: Start<C>, replayed: &mut Replayed) {
        let Record { kind, number, key, connection: mut theirs } = theirs;
        if kind == INIT {
            self.0.insert(key, (0, Box::new(Connection::storage())));
            replayed.connections += 1;
        }
        let (next, mine) = self.0.get_mut(&key).expect("a connection begins with its start");
        assert_eq!(number, *next, "the kernel's queue was full: a record is missing");
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
            _ => panic!("unknown call {kind}"),
        }
        let out = |call: &Call| (call.cwnd, call.pacing_rate, call.send_quantum);
        assert_eq!(out(&mine.call), out(&theirs.call), "call {number} of kind {kind}");
        let (mine, theirs) = (mine.controller(), theirs.controller());
        assert_eq!(format!("{mine:?}"), format!("{theirs:?}"), "call {number} of kind {kind}");
        replayed.calls[kind as usize] += 1;
        *replayed.states.entry(mine.snapshot().state).or_default() += 1;
    }
}

/// Downloads with the controller in the kernel, and replays.
fn replay<C: Staged + Debug>(
    algorithm: Algorithm,
    start: Start<C>,
    downloads: &[Downloads],
) -> Option<Replayed> {
    let _alone = alone();
    let mut replayed = Replayed::default();
    for download in downloads {
        let factor = std::env::var("UNCORK_REPLAY_FACTOR").ok();
        let factor = factor.map_or(1, |factor| factor.parse().expect("a number"));
        for _ in 0..factor {
            let loaded = loaded(Loaded::traced, algorithm)?;
            let registered = loaded.register().expect("it is free");
            download.run(algorithm.name())?;
            drop(registered);
            let mut native = Native::<C>(HashMap::new());
            let mut trace = loaded.trace();
            while let Some(record) = trace.pop().expect("a queue") {
                native.repeat(Record::read(record), start, &mut replayed);
            }
        }
    }
    println!("{algorithm}: {replayed:?}; calls are start, sent, ACK, timeout, spurious");
    Some(replayed)
}

/// Without loss, with few and many losses, with timeouts, and flows that compete.
const ALL: [Downloads; 5] = [
    Downloads::new(20, "0%", 1, 3_000_000),
    Downloads::new(20, "1%", 1, 12_000_000),
    Downloads::new(20, "5%", 1, 2_000_000),
    Downloads::new(20, "25%", 1, 150_000),
    Downloads::new(100, "1%", 8, 1_500_000),
];

/// The same for controllers that back off at each loss.
const LESS: [Downloads; 4] = [
    Downloads::new(20, "0%", 1, 4_000_000),
    Downloads::new(20, "0.1%", 1, 6_000_000),
    Downloads::new(20, "2%", 2, 500_000),
    Downloads::new(20, "30%", 1, 100_000),
];

fn check(replayed: &Replayed, acks: usize, states: &[&str]) {
    assert!(replayed.calls[ACK as usize] > acks, "{replayed:?}");
    assert!(replayed.calls[TIMEOUT as usize] > 0, "{replayed:?}");
    for state in states {
        assert!(replayed.states.contains_key(state), "{state}: {replayed:?}");
    }
}

const PROBE_BW: [&str; 6] =
    ["Startup", "Drain", "ProbeBW_DOWN", "ProbeBW_CRUISE", "ProbeBW_REFILL", "ProbeBW_UP"];

#[test]
fn bbr1_decides_in_the_kernel_as_natively() {
    let Some(replayed) = replay(Algorithm::Bbr1, Bbr1::new, &ALL) else { return };
    check(&replayed, 5_000, &["Startup", "Drain", "ProbeBW"]);
}

#[test]
fn bbr2_decides_in_the_kernel_as_natively() {
    let Some(replayed) = replay(Algorithm::Bbr2, Bbr3::v2, &ALL) else { return };
    check(&replayed, 5_000, &PROBE_BW);
}

#[test]
fn bbr3_decides_in_the_kernel_as_natively() {
    let start = |settings: &Settings| Bbr3::new(settings, false);
    let Some(replayed) = replay(Algorithm::Bbr3, start, &ALL) else { return };
    check(&replayed, 5_000, &PROBE_BW);
}

#[test]
fn cubic_decides_in_the_kernel_as_natively() {
    let Some(replayed) = replay(Algorithm::Cubic, Cubic::new, &LESS) else { return };
    check(&replayed, 500, &["SlowStart", "CongestionAvoidance", "Recovery"]);
}

#[test]
fn newreno_decides_in_the_kernel_as_natively() {
    let Some(replayed) = replay(Algorithm::Reno, NewReno::new, &LESS) else { return };
    check(&replayed, 500, &["SlowStart", "CongestionAvoidance", "Recovery"]);
}
