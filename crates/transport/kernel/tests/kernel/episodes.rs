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

/// Slow start fills a queue too short for HyStart, and loses a part of the flight. The last of that are found by ACKs for what left after the
/// first was found.
#[test]
fn losses_of_a_flight_that_are_found_late_are_no_second_event() {
    let path = Downloads { buffer: "20p", ..Downloads::new(50, "0%", 1, 6_000_000) };
    let Some(connections) = steps(path) else { return };
    let acks = connections[0].iter().filter(|step| step.kind == ACK);
    let acks: Vec<&Step> = acks.skip_while(|step| step.lost == 0).collect();
    let first: Vec<&Step> = acks.into_iter().take_while(|step| step.is_repairing).collect();
    let began = first[0].now;
    let late = first.iter().filter(|step| step.lost > 0 && step.newest_sent >= began).count();
    let lost: u64 = first.iter().map(|step| step.lost).sum();
    let mut thresholds: Vec<u64> = first.iter().map(|step| step.ssthresh).collect();
    thresholds.dedup();
    println!("{lost} lost in the first recovery, found late by {late} ACKs: {thresholds:?}");
    assert!(late > 0, "no loss was found late");
    assert_eq!(thresholds.len(), 1, "{thresholds:?}");
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
