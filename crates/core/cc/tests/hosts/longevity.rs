//! Old connections behave like new ones: 2^33 bytes and 30 days without drift or overflow.

use uncork_cc::{Algorithm, CcSpec, Controller, Settings, Snapshot};
use uncork_units::{Rate, Time, TimeDelta};

use crate::host::truthful::Truthful;
use crate::host::{Watched, specs};

/// The maximum size of an IP datagram, so that byte counts grow fast.
const MSS: u32 = 65_000;
const RTT: TimeDelta = TimeDelta::from_millis(100);
/// A packet every 4 ms: 25 of them per round trip.
const SPACING: TimeDelta = TimeDelta::from_millis(4);
const DAYS: u64 = 30;
const DAY: TimeDelta = TimeDelta::from_secs(24 * 3_600);
const BYTES: u64 = 1 << 33;

/// State of a connection at the end of each day's transfer, before it is idle until the next day.
fn days(spec: CcSpec) -> Vec<(u64, Snapshot)> {
    let settings = Settings::new(MSS, 1, Time::ZERO);
    let mut host = Truthful::new(Watched::new(spec, &settings), &settings);
    let mut evenings = Vec::new();
    for day in 1..=DAYS {
        host.round(RTT, SPACING);
        host.lose(1, 1, 3);
        while host.delivered() < BYTES / DAYS * day {
            host.round(RTT, SPACING);
        }
        evenings.push((host.cc.control().cwnd, host.cc.snapshot()));
        let morning = Time::ZERO + DAY.times(day);
        assert!(host.now < morning, "a day's transfer takes less than a day");
        host.finish(morning.since(host.now));
    }
    assert!(host.delivered() >= BYTES - DAYS && host.now == Time::ZERO + DAY.times(DAYS));
    evenings
}

#[test]
fn no_drift_after_thirty_days_and_8_gib() {
    let rate = Rate::of(u64::from(MSS), SPACING);
    let bdp = rate.bytes_in(RTT);
    for spec in specs() {
        let days = days(spec);
        // The first day begins with a loss in the initial slow start.
        for (day, (cwnd, snapshot)) in days.iter().enumerate().skip(1) {
            assert!((bdp..=3 * bdp).contains(cwnd), "{spec}: {cwnd}, and a BDP of {bdp}");
            // cubic:linux takes three days to settle: its first reductions start from a larger window.
            // Prague's window counts as used with a sixteenth of it free, so that it varies by less than a packet.
            let tolerance = if spec.algorithm() == Algorithm::Prague { u64::from(MSS) } else { 0 };
            let [now, then] = [snapshot.ssthresh, days[3].1.ssthresh].map(|it| it.unwrap_or(0));
            assert!(day < 3 || now.abs_diff(then) <= tolerance, "{spec}: day {day}: {now}, {then}");
            let model = snapshot.max_bw.zip(snapshot.min_rtt);
            assert!(model.is_none_or(|model| model == (rate, RTT)), "{spec}: {model:?}");
        }
    }
}
