//! For any path and any competing flows: no panic, no double counting, and every transfer ends if
//! its path delivers at all.

use crate::common::spec;
use proptest::prelude::*;
use uncork_cc::ResumeHint;
use uncork_flow::FlowRecord;
use uncork_path::{Buffer, LossPosition, LossSpec, PathSpec, PolicerSpec};
use uncork_sim::{FlowSpec, RunResult, RunSpec, Workload, run};
use uncork_units::{ByteCount, Rate, Time, TimeDelta};

const CONTROLLERS: [&str; 8] =
    ["reno", "cubic", "bbr1", "bbr2", "bbr3", "prague", "bbr3:strict_draft", "bbr3:rtt_fair"];

fn any_path() -> impl Strategy<Value = PathSpec> {
    let rate = (3_u32..36, 1_000_u64..2_000).prop_map(|(octave, more)| (more << octave) / 1_000);
    let rtt_us = (3_u32..24, 1_000_u64..2_000).prop_map(|(octave, more)| (more << octave) / 1_000);
    let buffer = prop_oneof![(1_u64..6).prop_map(|n| n * 1_500), 1_500_u64..3_000_000];
    (rate, rtt_us, any_policer(), buffer, 0_u64..=60, any::<bool>()).prop_map(
        |(rate, rtt, policer, buffer, loss, after)| {
            let rate = Rate::from_bits_per_sec((rate * 8).max(8_000));
            let buffer = Buffer::Bytes(ByteCount::new(buffer));
            let mut path = PathSpec::new(rate, TimeDelta::from_micros(rtt.max(10)), buffer);
            path.link.policer = policer;
            path.loss = LossSpec::Bernoulli(format!("{loss}%").parse().expect("a percentage"));
            path.loss_position = if after { LossPosition::After } else { LossPosition::Before };
            path
        },
    )
}

fn any_policer() -> impl Strategy<Value = Option<PolicerSpec>> {
    let policer = (1_000_u64..1_000_000, 1_500_u64..200_000).prop_map(|(rate, burst)| {
        PolicerSpec { rate: Rate::from_bytes_per_sec(rate), burst: ByteCount::new(burst) }
    });
    prop_oneof![3 => Just(None), 1 => policer.prop_map(Some)]
}

/// Flows of a few to a few hundred segments, some with a small receive window.
fn any_flow() -> impl Strategy<Value = FlowSpec> {
    let size = prop_oneof![1_u64..20_000, 1_u64..500_000];
    let window = prop_oneof![Just(FlowSpec::WIDE_OPEN), 1_448_u64..50_000];
    (0..CONTROLLERS.len(), size, 0_u64..2_000_000_000, window, any_hint()).prop_map(
        |(cc, size, start, receive_window, resume)| FlowSpec {
            start: Time::from_nanos(start),
            receive_window,
            resume,
            ..FlowSpec::new(spec(CONTROLLERS[cc]), Workload::Transfer(size))
        },
    )
}

/// None, or a hint that may be right, wrong or absurd.
fn any_hint() -> impl Strategy<Value = Option<ResumeHint>> {
    let hint = (0_u32..64, 0_u32..64).prop_map(|(cwnd, rtt)| ResumeHint {
        saved_cwnd: 1 << cwnd,
        saved_rtt: TimeDelta::from_nanos(1 << rtt),
    });
    proptest::option::of(hint)
}

fn any_run() -> impl Strategy<Value = RunSpec> {
    let flows = proptest::collection::vec(any_flow(), 1..12);
    (any_path(), flows, any::<u64>()).prop_map(|(path, flows, seed)| {
        let end = Time::ZERO + TimeDelta::from_secs(10_000_000);
        let sample_every = Some(TimeDelta::from_secs(10));
        RunSpec { sample_every, ..RunSpec::over(path, flows, seed, end) }
    })
}

fn is_consistent(flow: &FlowRecord) -> Result<(), TestCaseError> {
    let size = flow.size_bytes.expect("a transfer");
    prop_assert!(flow.completion_ns.is_some(), "did not finish");
    prop_assert!(flow.first_byte_ns <= flow.completion_ns);
    prop_assert_eq!(flow.bytes_delivered, size);
    prop_assert_eq!(flow.bytes_sent - flow.bytes_retransmitted, size);
    prop_assert!(flow.bytes_acked <= size);
    prop_assert!(flow.packets_lost <= flow.packets_sent);
    let lab = flow.lab();
    prop_assert!(lab.dropped_by_links() + lab.packets_dropped_random <= flow.packets_sent);
    Ok(())
}

/// Bytes in flight or lost have been sent; delivered bytes count once.
fn series_is_consistent(result: &RunResult) -> Result<(), TestCaseError> {
    for point in &result.series {
        let flow = &result.flows[point.flow as usize];
        prop_assert!(point.inflight_bytes <= flow.size_bytes.expect("a transfer"));
        prop_assert!(point.delivered_bytes <= flow.bytes_delivered);
        prop_assert!(point.cwnd_bytes > 0);
    }
    Ok(())
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 1_000, failure_persistence: None, ..ProptestConfig::default() })]
    #[test]
    fn transfers_end_and_add_up(spec in any_run()) {
        let result = run(&spec);
        let sent: u64 = result.flows.iter().map(|flow| flow.packets_sent).sum();
        prop_assert_eq!(sent, result.packets);
        for flow in &result.flows {
            is_consistent(flow)?;
        }
        series_is_consistent(&result)?;
    }
}
