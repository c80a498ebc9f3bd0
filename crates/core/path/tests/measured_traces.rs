//! Parses and runs every trace: the built-in ones and, if `UNCORK_TRACES` names a directory, all
//! `*.txt` in it.

use std::io::Write;
use std::path::PathBuf;

use uncork_path::{LinkRate, LteSpec, RateSpec, Trace, TraceSpec, TraceStart};
use uncork_units::{Rate, Ratio, Time, TimeDelta};

/// Simulated time of each synthetic link.
const MADE: TimeDelta = TimeDelta::from_secs(6 * 3600);

/// Names and texts. Skipped tests are reported directly on standard error, because the test harness
/// would capture the message.
fn traces() -> Vec<(String, String)> {
    let mut directories = vec![PathBuf::from(concat!(env!("CARGO_MANIFEST_DIR"), "/traces"))];
    let others = std::env::var_os("UNCORK_TRACES");
    if others.is_none() {
        let note = "NOT TESTED: traces outside of the project; UNCORK_TRACES names no directory, so \
                    only the four that come along were read.";
        writeln!(std::io::stderr(), "\n{note}").expect("the standard error");
    }
    directories.extend(others.map(PathBuf::from));
    let mut traces = Vec::new();
    for directory in directories {
        let entries = std::fs::read_dir(&directory).expect("a directory of traces");
        let mut paths: Vec<PathBuf> = entries.map(|entry| entry.expect("a file").path()).collect();
        paths.retain(|path| path.extension().is_some_and(|extension| extension == "txt"));
        paths.sort();
        for path in paths {
            let text = std::fs::read_to_string(&path).expect("a text");
            traces.push((path.file_stem().expect("a name").to_string_lossy().into(), text));
        }
    }
    traces
}

fn link(trace: &Trace, start: TraceStart) -> LinkRate {
    RateSpec::Trace(TraceSpec { trace: trace.clone(), start, repeat: true }).link(1, 0)
}

fn after(span: TimeDelta) -> Time {
    Time::ZERO + span
}

/// The mean in Mbit/s computed from the text: each rate times the span until the next line.
fn mean_mbit(text: &str) -> f64 {
    let line = |line: &str| -> Vec<f64> {
        line.split_whitespace().map(|column| column.parse().expect("a number")).collect()
    };
    let lines: Vec<Vec<f64>> = text.lines().map(line).collect();
    let mut spans: Vec<f64> = lines.windows(2).map(|pair| pair[1][0] - pair[0][0]).collect();
    let mut sorted = spans.clone();
    sorted.sort_by(f64::total_cmp);
    spans.push(sorted[sorted.len() / 2]);
    let sent: f64 = lines.iter().zip(&spans).map(|(line, span)| line[1] * span).sum();
    sent / spans.iter().sum::<f64>()
}

#[test]
fn trace_capacity_matches_its_lines() {
    let traces = traces();
    assert!(traces.len() >= Trace::BUILTIN.len());
    for (name, text) in traces {
        let trace: Trace = text.parse().unwrap_or_else(|error| panic!("{name}: {error}"));
        let mean = trace.mean().bits_per_sec() as f64 / 1e6;
        assert!((mean / mean_mbit(&text) - 1.0).abs() < 2e-5, "{name}: {mean}");
        let lap = after(trace.length());
        let capacity = link(&trace, TraceStart::At(TimeDelta::ZERO)).capacity(lap);
        for start in [TraceStart::At(trace.length().divided_by(3)), TraceStart::Seeded] {
            let mut link = link(&trace, start);
            assert!(link.capacity(lap).abs_diff(capacity) <= 1, "{name}: laps differ");
            let mut sent = 0;
            while link.finish(Time::ZERO, 1500) <= lap {
                sent += 1500;
            }
            assert!(capacity - sent < 1501, "{name}: {sent} of {capacity}");
        }
    }
}

/// Mean, coefficient of variation and correlation time (in seconds, of the logarithm) of a link
/// sampled each second, and the correlation after twice that time: 1/e² = 0.14 for a first-order
/// autoregression of the logarithm.
fn figures(link: &LinkRate, seconds: u64) -> [f64; 4] {
    let at = |second| link.rate_at(after(TimeDelta::from_secs(second))).bits_per_sec() as f64 / 1e6;
    let rates: Vec<f64> = (0..seconds).map(at).collect();
    let mean_of = |values: &[f64]| values.iter().sum::<f64>() / values.len() as f64;
    let mean = mean_of(&rates);
    let deviation = mean_of(&rates.iter().map(|rate| (rate - mean).powi(2)).collect::<Vec<_>>());
    let logs: Vec<f64> = rates.iter().filter(|rate| **rate > 0.0).map(|rate| rate.ln()).collect();
    let centre = mean_of(&logs);
    let covariance = |lag: usize| {
        let pairs = logs.iter().zip(logs.iter().skip(lag));
        pairs.map(|(one, other)| (one - centre) * (other - centre)).sum::<f64>()
    };
    let correlation = |lag| covariance(lag) / covariance(0);
    let time = (1..logs.len()).find(|lag| correlation(*lag) < (-1.0_f64).exp()).unwrap_or(0);
    [mean, deviation.sqrt() / mean, time as f64, correlation(2 * time)]
}

/// A synthetic link built with the mean and variation of a measured one has those values, within
/// the error of such a short trace. Other differences are only printed (`--nocapture`), because the
/// model has a single correlation time.
#[test]
fn synthetic_links_match_measured_ones() {
    println!("{:<18} {:>26}   {:>26}", "", "measured", "made up");
    println!(
        "{:<18} {0:>8} {1:>5} {2:>5} {3:>5}   {0:>8} {1:>5} {2:>5} {3:>5}",
        "Mbit/s", "CoV", "1/e s", "at 2x"
    );
    for (name, text) in traces() {
        let trace: Trace = text.parse().expect("read before");
        let seconds = trace.length().as_nanos() / 1_000_000_000;
        let measured = figures(&link(&trace, TraceStart::At(TimeDelta::ZERO)), seconds);
        let spec = LteSpec {
            mean: Rate::from_bits_per_sec((measured[0] * 1e6) as u64),
            variation: Ratio::new((measured[1] * 1e6) as u32, 1_000_000),
            correlation: TimeDelta::from_secs((measured[2] as u64).max(1)),
            outage_every: TimeDelta::ZERO,
            outage: TimeDelta::ZERO,
            length: MADE,
        };
        spec.check().unwrap_or_else(|error| panic!("{name}: {error}"));
        let made = figures(&RateSpec::Lte(spec).link(1, 0), MADE.as_nanos() / 1_000_000_000);
        let row = |[mean, variation, time, twice]: [f64; 4]| {
            format!("{mean:>8.3} {variation:>5.2} {time:>5} {twice:>5.2}")
        };
        println!("{name:<18} {}   {}", row(measured), row(made));
        // The number of independent samples is the length over twice the correlation time.
        let error = (2.0 * spec.correlation.as_secs_f64() / MADE.as_secs_f64()).sqrt();
        let off = (made[0] / measured[0] - 1.0).abs();
        assert!(off < 4.0 * measured[1] * error + 1e-5, "{name}: mean off by {off}");
    }
}
