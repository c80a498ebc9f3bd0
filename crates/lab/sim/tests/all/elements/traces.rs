//! Links with recorded or synthetic rates: no flow exceeds their capacity, and a flow with endless
//! data uses most of it.

use std::io::Write;

use uncork_path::{LteSpec, RateSpec, Trace, TraceSpec, TraceStart};
use uncork_sim::{FlowSpec, RunResult, RunSpec, Workload, run};
use uncork_units::{Rate, Ratio, Time, TimeDelta};

use crate::common::{Case, case, spec};
use crate::elements::scene::{CONTROLLERS, at, on_the_wire};

const MAX_TIME: TimeDelta = TimeDelta::from_secs(300);

/// The built-in ones, and all `*.txt` in the directory named by `UNCORK_TRACES`. Skipped tests are
/// reported past the test harness, which would capture the message.
fn traces() -> Vec<(String, Trace)> {
    let builtin = |name: &&str| (name.to_string(), Trace::builtin(name).expect("it comes along"));
    let mut traces: Vec<(String, Trace)> = Trace::BUILTIN.iter().map(builtin).collect();
    let Some(directory) = std::env::var_os("UNCORK_TRACES") else {
        let note = "NOT TESTED: controllers over traces outside of the project; UNCORK_TRACES names no \
                    directory, so only the four that come along were run.";
        writeln!(std::io::stderr(), "\n{note}").expect("the standard error");
        return traces;
    };
    let entries = std::fs::read_dir(directory).expect("a directory of traces");
    let mut paths: Vec<_> = entries.map(|entry| entry.expect("a file").path()).collect();
    paths.retain(|path| {
        path.extension().is_some_and(|extension| extension == "txt")
            && path.file_stem().is_some_and(|stem| stem != "README")
    });
    paths.sort();
    for path in paths {
        let name = path.file_stem().expect("a name").to_string_lossy().into_owned();
        let text = std::fs::read_to_string(&path).expect("a text");
        if !Trace::BUILTIN.contains(&name.as_str()) {
            traces.push((name, text.parse().expect("a trace")));
        }
    }
    traces
}

/// 40 ms and 100 packets of buffer over a link of this rate.
fn over(rate: RateSpec) -> Case {
    let mut case = case(10, 40, 1000).packets(100);
    case.path.link.rate = rate;
    case
}

fn traced(trace: Trace) -> RateSpec {
    RateSpec::Trace(TraceSpec { trace, start: TraceStart::At(TimeDelta::ZERO), repeat: true })
}

fn flow(case: &Case, cc: &str, end: Time, seed: u64) -> RunResult {
    let flow = FlowSpec::new(spec(cc), Workload::Until(end));
    run(&RunSpec::over(case.path.clone(), vec![flow], seed, end))
}

/// Share of the link's capacity that a flow delivered, headers included.
fn share(case: &Case, cc: &str, end: Time, seed: u64) -> f64 {
    let delivered = flow(case, cc, end, seed).flows[0].bytes_delivered;
    // The link's random stream: see `LinkSpec::build`, and the first link in `network.rs`.
    let capacity = case.path.link.rate.link(seed, (4 << 32) + 1).capacity(end);
    on_the_wire(delivered) / capacity as f64
}

fn check(name: &str, case: &Case, end: Time, least: f64) {
    let shares = CONTROLLERS.map(|cc| share(case, cc, end, 1));
    println!("{name:<18} {:>9} {shares:.3?}", case.path.link.rate.mean().to_string());
    for (cc, share) in CONTROLLERS.iter().zip(shares) {
        assert!(share <= 1.0, "{name}, {cc}: {share:.4} of the capacity");
        assert!(share >= least, "{name}, {cc}: {share:.3}");
    }
}

/// Loss-based controllers keep a standing queue, which fills a rising rate at once. BBR probes
/// every few seconds, so it lags behind.
#[test]
fn recorded_links_are_used_and_not_exceeded() {
    println!("share of the capacity: {CONTROLLERS:?}");
    for (name, trace) in traces() {
        let end = Time::ZERO + trace.length().min(MAX_TIME);
        check(&name, &over(traced(trace)), end, 0.95);
    }
}

fn mobile() -> RateSpec {
    RateSpec::Lte(LteSpec {
        mean: Rate::from_mbit(10),
        variation: Ratio::new(1, 2),
        correlation: TimeDelta::from_secs(2),
        outage_every: TimeDelta::from_secs(20),
        outage: TimeDelta::from_millis(500),
        length: TimeDelta::from_secs(60),
    })
}

#[test]
fn synthetic_mobile_links_are_used_and_not_exceeded() {
    println!("share of the capacity: {CONTROLLERS:?}");
    check("mobile", &over(mobile()), at(60_000), 0.90);
}

/// The seed determines the link, and so the bytes delivered.
#[test]
fn mobile_link_differs_for_each_seed() {
    let case = over(mobile());
    let of = |seed| flow(&case, "cubic", at(20_000), seed);
    assert_eq!(of(1), of(1));
    assert_ne!(of(1).flows[0].bytes_delivered, of(2).flows[0].bytes_delivered);
}

/// One opportunity per millisecond is 12 Mbit/s in steps of a packet. A window of 1.5 BDP keeps the
/// link busy without loss once slow start has opened it.
#[test]
fn constant_opportunities_equal_a_constant_rate() {
    let delivered = |rate, secs: u64| {
        let mut bulk = FlowSpec::new(spec("cubic"), Workload::Until(at(1000 * secs)));
        bulk.receive_window = 60 * 1448;
        let path = over(rate).path;
        let result = run(&RunSpec::over(path, vec![bulk], 1, at(1000 * secs)));
        assert_eq!(result.flows[0].packets_lost, 0);
        result.flows[0].bytes_delivered
    };
    let train: Trace = "1".parse().expect("a trace");
    let [of_train, of_rate] = [traced(train), RateSpec::Constant(Rate::from_mbit(12))]
        .map(|rate| delivered(rate.clone(), 20) - delivered(rate, 2));
    println!("18 s at 12 Mbit/s: {of_train} B in opportunities, {of_rate} B at the rate");
    assert!(of_train.abs_diff(of_rate) <= 1448, "{of_train} {of_rate}");
    assert!(of_rate.abs_diff(18_000 * 1448) <= 1448, "{of_rate}");
}
