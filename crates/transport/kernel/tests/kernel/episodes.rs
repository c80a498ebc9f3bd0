//! One flight's losses are one congestion event, whenever the kernel finds them.

use std::collections::HashMap;

use uncork_cc::{Controller, NewReno};
use uncork_kernel::{Algorithm, Loaded};

use crate::glue::{Call, REPAIRING};
use crate::record::{ACK, Record, TIMEOUT};
use crate::traffic::Downloads;
use crate::{alone, loaded};

/// What a connection's window was after a call.
struct Step {
    kind: u32,
    /// Whether the kernel repairs losses.
    is_repairing: bool,
    lost: u64,
    now: u64,
    /// Departure of the newest packet delivered.
    newest_sent: u64,
    ssthresh: u64,
}

/// The steps of each connection.
fn steps(downloads: Downloads) -> Option<Vec<Vec<Step>>> {
    let _alone = alone(Algorithm::Reno);
    let loaded = loaded(Loaded::traced, Algorithm::Reno)?;
    let registered = loaded.register().expect("it is free");
    downloads.run(&loaded)?;
    drop(registered);
    let (mut trace, mut steps) = (loaded.trace(), HashMap::<u64, Vec<Step>>::new());
    while let Some(record) = trace.pop().expect("a queue") {
        let Record { kind, key, mut connection, .. } = Record::<NewReno>::read(record);
        let is_repairing = connection.call.flags & REPAIRING != 0;
        let Call { now, send_time: newest_sent, lost, mss, .. } = connection.call;
        let lost = if kind == ACK { lost / mss } else { 0 };
        let ssthresh = connection.controller().snapshot().ssthresh.unwrap_or(u64::MAX);
        steps.entry(key).or_default().push(Step {
            kind,
            is_repairing,
            lost,
            now,
            newest_sent,
            ssthresh,
        });
    }
    Some(steps.into_values().collect())
}

/// ACKs of the first recovery that find losses of its flight late: by what left after the first loss was found, when nothing that left so late
/// was delivered before. None of them may reduce the threshold again.
fn late_finds(steps: &[Step]) -> usize {
    let acks = steps.iter().filter(|step| step.kind == ACK);
    let acks: Vec<&Step> = acks.skip_while(|step| step.lost == 0).collect();
    let Some(began) = acks.first().map(|first| first.now) else { return 0 };
    let end = acks.iter().position(|step| !step.is_repairing).unwrap_or(acks.len());
    let late = acks[..end].windows(2).filter(|pair| {
        pair[1].lost > 0 && pair[0].newest_sent < began && pair[1].newest_sent >= began
    });
    let late = late.inspect(|pair| assert_eq!(pair[0].ssthresh, pair[1].ssthresh));
    late.count()
}

/// Slow start fills a queue too short for HyStart, and loses a part of the flight.
#[test]
fn losses_of_a_flight_that_are_found_late_are_no_second_event() {
    let mut late = 0;
    for _ in 0..20 {
        let path = Downloads { buffer: "20p", ..Downloads::new(50, "0%", 1, 2_000_000) };
        let Some(connections) = steps(path) else { return };
        late += late_finds(&connections[0]);
        if late > 1 {
            break;
        }
    }
    println!("{late} ACKs found losses late");
    assert!(late > 0, "no loss was found late");
}

#[test]
fn losses_of_a_timeout_are_no_second_event() {
    let mut timeouts = 0;
    for _ in 0..10 {
        let Some(connections) = steps(Downloads::new(20, "40%", 4, 20_000)) else { return };
        for steps in connections {
            for pair in steps.windows(2).filter(|pair| pair[0].kind == TIMEOUT) {
                timeouts += 1;
                assert!(pair[1].ssthresh >= pair[0].ssthresh, "{} lost", pair[1].lost);
            }
        }
        if timeouts > 10 {
            break;
        }
    }
    assert!(timeouts > 0);
}
