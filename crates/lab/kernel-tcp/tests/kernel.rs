//! Runs over this machine's kernel. Skipped with a message without root or TUN.
#![cfg(target_os = "linux")]
#![allow(clippy::unwrap_used, reason = "a test that cannot run has failed")]

use std::sync::atomic::AtomicBool;

use uncork_apps::{CbrSpec, ClientSpec, FetchSpec};
use uncork_kernel_tcp::{Controllers, KernelTcpError, KernelTcpRun, run};
use uncork_path::{Buffer, Ecn, LinkSpec, LossSpec, PathSpec, RateSpec, Step};
use uncork_sim::{FlowSpec, RunResult, RunSpec, Workload};
use uncork_testkit::{Capability, assert_message, not_run};
use uncork_units::{Rate, Time, TimeDelta};

/// The capability that this machine lacks if a run fails with `error`: a controller, or else
/// namespaces.
fn capability_of(error: &KernelTcpError) -> Capability {
    if matches!(error, KernelTcpError::Controller(_)) { Capability::Bbr } else { Capability::Netns }
}

fn play(spec: &RunSpec) -> Option<KernelTcpRun> {
    match run(spec, Controllers::Kernel, &AtomicBool::new(false)) {
        Ok(run) => Some(run),
        Err(error) if error.is_of_machine() => {
            not_run(capability_of(&error), &error.to_string());
            None
        }
        Err(error) => panic!("{error}"),
    }
}

/// A busy machine slows runs down, and another run is not late in the same way: one of five holds `claim`.
fn one_of_five_holds(spec: &RunSpec, claim: impl Fn(&KernelTcpRun) -> Result<(), String>) {
    let mut failed = Vec::new();
    for _ in 0..5 {
        let Some(real) = play(spec) else { return };
        match claim(&real) {
            Ok(()) => return,
            Err(what) => failed.push(format!("{what}, late: {:?}", real.path.flags)),
        }
    }
    panic!("none of five runs: {failed:#?}");
}

fn path(mbit: u64, rtt_ms: u64) -> PathSpec {
    let rtt = TimeDelta::from_millis(rtt_ms);
    PathSpec::new(Rate::from_mbit(mbit), rtt, Buffer::MilliBdp(1000))
}

fn flow(cc: &str, workload: Workload) -> FlowSpec {
    FlowSpec::new(cc.parse().unwrap(), workload)
}

fn at(millis: u64) -> Time {
    Time::ZERO + TimeDelta::from_millis(millis)
}

/// 1 MB at 20 Mbit/s, 30 ms: 0.417 s on the link, with slow start from ten segments.
#[test]
fn transfer_takes_about_the_time_of_the_simulator() {
    for cc in ["cubic", "bbr1", "reno"] {
        let flow = FlowSpec { start: at(50), ..flow(cc, Workload::Transfer(1_000_000)) };
        let spec = RunSpec::over(path(20, 30), vec![flow], 1, at(20_000));
        let seconds =
            |run: &RunResult| run.flows[0].completion_ns.map(|ns| ns as f64 / 1e9).unwrap();
        let simulated = seconds(&uncork_sim::run(&spec));
        one_of_five_holds(&spec, |real| {
            let record = &real.result.flows[0];
            assert_eq!((record.bytes_delivered, record.engine.as_str()), (1_000_000, "netns"));
            assert!(record.bytes_sent >= 1_000_000 && record.packets_sent >= 690, "{record:?}");
            assert!(record.rtt_ms.unwrap().min >= 29.0, "{record:?}");
            let first_byte = record.first_byte_ns.unwrap();
            assert!(first_byte >= 60_000_000, "a handshake and half a round trip");
            let real = seconds(&real.result);
            let says = format!("{cc}: {real:.3} s against {simulated:.3} s");
            if (0.7..1.6).contains(&(real / simulated)) { Ok(()) } else { Err(says) }
        });
    }
}

/// Ends with the run; data before the end of the warm-up is counted separately; the series has
/// BBR's states.
#[test]
fn endless_flow_fills_the_link_and_is_sampled() {
    let spec = RunSpec {
        warmup: at(1000),
        sample_every: Some(TimeDelta::from_millis(50)),
        ..RunSpec::over(path(20, 20), vec![flow("bbr1", Workload::Until(at(3000)))], 1, at(3000))
    };
    let Some(KernelTcpRun { result, .. }) = play(&spec) else { return };
    let record = &result.flows[0];
    let late = record.delivered_after_warmup();
    // 20 Mbit/s for 2 s are 5 MB, 4.83 MB of them payload.
    assert!((3_000_000..=4_900_000).contains(&late), "{record:?}");
    assert_eq!((record.completion_ns, record.size_bytes), (None, None));
    let states: Vec<&str> = result.series.iter().map(|point| point.state).collect();
    assert!(states.contains(&"Startup") && states.contains(&"ProbeBW"), "{states:?}");
    assert!((30..=62).contains(&result.series.len()), "{} points", result.series.len());
    assert!(result.series.iter().all(|point| point.cwnd_bytes > 0));
}

/// The link all but stops after a second of the flow. A tenth of a second earlier would be a tenth less.
#[test]
fn the_path_changes_by_the_time_of_the_flows() {
    let mut falling = path(20, 20);
    let step = Step { at: at(1000), value: Rate::from_bits_per_sec(8_000) };
    falling.link.rate =
        RateSpec::Steps { first: falling.link.rate.mean(), steps: vec![step].into() };
    let spec = RunSpec::over(falling, vec![flow("cubic", Workload::Until(at(1400)))], 1, at(1400));
    let delivered = |run: &RunResult| run.flows[0].bytes_delivered as f64;
    let simulated = delivered(&uncork_sim::run(&spec));
    one_of_five_holds(&spec, |real| {
        let ratio = delivered(&real.result) / simulated;
        let says = format!("{ratio:.3} of what is simulated");
        if (0.95..1.05).contains(&ratio) { Ok(()) } else { Err(says) }
    });
}

/// Two clients on one path and media on another at the same time; requests are sequential.
#[test]
fn clients_and_media_run() {
    let fetch = ClientSpec::Fetch(FetchSpec { requests: Some(3), ..FetchSpec::once(100_000) });
    let media = CbrSpec {
        rate: Rate::from_mbit(1),
        interval: TimeDelta::from_millis(20),
        duration: TimeDelta::from_secs(1),
    };
    let mut lossy = path(20, 20);
    lossy.loss = LossSpec::Bernoulli("1%".parse().unwrap());
    let flows = vec![
        flow("cubic", Workload::Client(0)),
        FlowSpec { path: 1, ..flow("bbr1", Workload::Client(0)) },
        FlowSpec { path: 1, ..flow("cubic", Workload::Media(media)) },
    ];
    let spec = RunSpec {
        paths: vec![path(20, 20), lossy],
        clients: vec![fetch],
        ..RunSpec::over(path(20, 20), flows, 1, at(2500))
    };
    let Some(KernelTcpRun { result, .. }) = play(&spec) else { return };
    assert_eq!(result.requests.len(), 6, "{:?}", result.requests);
    assert!(result.requests.iter().all(|request| request.bytes_delivered == 100_000));
    assert!(result.flows[0].completion_ns.is_some() && result.flows[1].completion_ns.is_some());
    assert!(
        (120_000..=125_000).contains(&result.flows[2].bytes_delivered),
        "{:?}",
        result.flows[2]
    );
}

/// CUBIC with a queue of 80 ms: the queueing delay of most packets depends only on queue and
/// window. Differences in Linux's HyStart and timers are allowed a tenth of the queue.
#[test]
fn queueing_delay_matches_the_simulator() {
    let deep = PathSpec {
        link: LinkSpec::new(Rate::from_mbit(10), Buffer::MilliBdp(4000)),
        ..path(10, 20)
    };
    let spec = RunSpec::over(deep, vec![flow("cubic", Workload::Until(at(8000)))], 1, at(8000));
    let queue = |run: &RunResult| run.flows[0].lab().queue_ms.unwrap();
    let simulated = queue(&uncork_sim::run(&spec));
    one_of_five_holds(&spec, |real| {
        let real = queue(&real.result);
        let near = |real: f64, simulated: f64| (real - simulated).abs() <= 8.0;
        let is_alike = near(real.p50, simulated.p50) && near(real.p95, simulated.p95);
        let is_in_queue = real.min < 5.0 && real.p95 <= 80.0 + 1.3;
        if is_alike && is_in_queue {
            Ok(())
        } else {
            Err(format!("{real:?} against {simulated:?}"))
        }
    });
}

/// CoDel marks instead of dropping, and the kernel reports the marks.
#[test]
fn ecn_is_negotiated_and_marks_are_counted() {
    let mut marking = path(10, 20);
    marking.link.queue = "codel:ecn".parse().unwrap();
    marking.link.buffer = Buffer::Packets(1000);
    let flow = FlowSpec { ecn: Ecn::Ect0, ..flow("cubic", Workload::Until(at(2500))) };
    let Some(KernelTcpRun { result, path, .. }) =
        play(&RunSpec::over(marking, vec![flow], 1, at(2500)))
    else {
        return;
    };
    let record = &result.flows[0];
    assert!(path.down.marked > 0 && record.packets_marked > 0, "{record:?}");
    assert_eq!(record.lab().packets_dropped_queue, 0, "{record:?}");
}

/// Two flows over one link. Its path has a third RTT that neither uses. Both complete the handshake
/// before either sends, so the link is empty.
#[test]
fn flows_may_have_different_rtts() {
    let flows = [(80, 0), (20, 60)].map(|(rtt, start)| FlowSpec {
        rtt: Some(TimeDelta::from_millis(rtt)),
        start: at(start),
        ..flow("cubic", Workload::Until(at(1500)))
    });
    let mut spec = RunSpec {
        sample_every: Some(TimeDelta::from_millis(100)),
        ..RunSpec::over(path(20, 40), flows.to_vec(), 1, at(1500))
    };
    let Some(real) = play(&spec) else { return };
    for (flow, rtt) in [(0, 80.0), (1, 20.0)] {
        let points = real.result.series.iter().filter(|point| point.flow == flow);
        let min_rtt = points.filter_map(|point| point.min_rtt_ns).min().unwrap() as f64 / 1e6;
        println!("{rtt} ms: min_rtt {min_rtt} ms");
        assert!((rtt..rtt + 5.0).contains(&min_rtt), "{rtt} ms: {min_rtt} ms");
    }
    spec.flows.iter_mut().for_each(|flow| flow.host = Some(3));
    let error = run(&spec, Controllers::Kernel, &AtomicBool::new(false)).unwrap_err();
    assert_message!("host 3", error);
}

#[test]
fn missing_kernel_controllers_are_rejected() {
    let spec = RunSpec::over(path(20, 20), vec![flow("bbr3", Workload::Transfer(1))], 1, at(1000));
    let error = run(&spec, Controllers::Kernel, &AtomicBool::new(false)).unwrap_err().to_string();
    assert!(error.contains("this kernel has no bbr3") || error.contains("cannot"), "{error}");
}
