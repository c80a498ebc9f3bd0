//! The start of connections, in records of QUIC and of segments.

use std::sync::atomic::AtomicBool;

use uncork_cc::{InitialWindow, ResumeHint};
use uncork_flow::{ResumeUse, StartExit, StartRecord};
use uncork_path::{Buffer, PathSpec};
use uncork_sim::{FlowSpec, RunSpec, Workload};
use uncork_units::{Rate, Time, TimeDelta};

const BDP: Buffer = Buffer::MilliBdp(1000);

/// The records of `cc` over QUIC and over segments: 100 ms,
fn starts(
    cc: &str,
    (mbit, buffer): (u64, Buffer),
    bytes: u64,
    change: impl Fn(&mut FlowSpec),
) -> [(StartRecord, f64); 2] {
    let rtt = TimeDelta::from_millis(100);
    let path = PathSpec::new(Rate::from_mbit(mbit), rtt, buffer);
    let mut flow = FlowSpec::new(cc.parse().expect("a controller"), Workload::Transfer(bytes));
    change(&mut flow);
    let spec = RunSpec::over(path, vec![flow], 1, Time::ZERO + TimeDelta::from_secs(60));
    let quic = uncork_quic_sim::run(&spec, &AtomicBool::new(false)).expect("a run");
    [quic.result, uncork_sim::run(&spec)].map(|run| {
        let flow = &run.flows[0];
        let seconds = flow.completion_ns.expect("a download that ends") as f64 / 1e9;
        (**flow.start.as_ref().expect("a start"), seconds)
    })
}

fn window(packets: u32) -> impl Fn(&mut FlowSpec) {
    move |flow| flow.initial_window = Some(InitialWindow::Packets(packets))
}

#[test]
fn a_wide_path_larger_windows_fewer_round_trips_and_nothing_resent() {
    // Ten packets of QUIC are 12 kB: three round trips carry 84 kB.
    for (packets, rounds) in [(10, [4, 3]), (40, [2, 2])] {
        let starts = starts("cubic", (100, Buffer::Packets(1000)), 100_000, window(packets));
        for ((start, _), rounds) in starts.into_iter().zip(rounds) {
            let known = (start.rounds_to_100kb, start.early_resent_bytes, start.exit);
            assert_eq!(known, (Some(rounds), Some(0), None), "{packets}: {start:?}");
            let first = u64::from(packets) * 1200..=u64::from(packets) * 1500;
            assert!(first.contains(&start.window_bytes.expect("known")), "{start:?}");
        }
    }
}

#[test]
fn a_slow_path_with_a_short_queue_a_large_window_is_resent_in_the_first_round_trips() {
    for (start, _) in starts("cubic", (2, Buffer::Packets(20)), 300_000, window(64)) {
        let (sent, resent) = (start.early_sent_bytes, start.early_resent_bytes);
        assert!(resent > Some(10_000) && resent < sent, "{start:?}");
        assert_eq!((start.exit, start.paced), (Some(StartExit::Loss), Some(true)), "{start:?}");
        assert!(start.lost_bytes >= resent && start.lost_bytes <= start.sent_bytes, "{start:?}");
        assert!(start.exit_window_bytes >= start.window_bytes, "{start:?}");
    }
    for (start, _) in starts("cubic", (2, Buffer::Packets(20)), 300_000, window(10)) {
        assert!(start.early_resent_bytes < Some(10_000), "{start:?}");
    }
}

#[test]
fn bbr_a_long_download_leaves_the_start_at_the_plateau_of_the_rate() {
    for (start, _) in starts("bbr3", (20, Buffer::Packets(2000)), 10_000_000, |_| ()) {
        assert_eq!(start.exit, Some(StartExit::Plateau), "{start:?}");
        // The path holds 250 kB.
        assert!(start.exit_in_flight_bytes > Some(200_000), "{start:?}");
    }
}

/// As in the simulator's `careful_resume`: 10 MB over 100 Mbit/s and 100 ms.
#[test]
fn a_right_hint_is_used_and_saves_a_round_trip() {
    let hint = |flow: &mut FlowSpec| {
        let saved_rtt = TimeDelta::from_millis(100);
        flow.resume = Some(ResumeHint { saved_cwnd: 1_250_000, saved_rtt });
    };
    for cc in ["reno", "cubic", "bbr1", "bbr3"] {
        let without = starts(cc, (100, BDP), 10_000_000, |_| ());
        let with = starts(cc, (100, BDP), 10_000_000, hint);
        for ((before, slow), (start, fast)) in without.into_iter().zip(with) {
            println!("{cc} {slow:.3} s, with a hint {fast:.3} s");
            assert_eq!((before.resume, start.resume), (None, Some(ResumeUse::Used)), "{cc}");
            assert!(fast <= slow - 0.1, "{cc}: {fast} s, {slow} s without");
        }
    }
}

#[test]
fn a_hint_of_another_path_is_not_used() {
    let hint = |flow: &mut FlowSpec| {
        let saved_rtt = TimeDelta::from_millis(210);
        flow.resume = Some(ResumeHint { saved_cwnd: 1_250_000, saved_rtt });
    };
    for (start, _) in starts("cubic", (100, BDP), 2_000_000, hint) {
        assert_eq!(start.resume, Some(ResumeUse::Unused));
    }
}

#[test]
fn a_hint_that_is_ten_times_too_large_is_retreated_from() {
    let hint = |flow: &mut FlowSpec| {
        let saved_rtt = TimeDelta::from_millis(100);
        flow.resume = Some(ResumeHint { saved_cwnd: 12_500_000, saved_rtt });
    };
    for (start, _) in starts("cubic", (100, BDP), 10_000_000, hint) {
        assert_eq!(start.resume, Some(ResumeUse::Retreated));
    }
}
