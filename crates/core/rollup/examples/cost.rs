//! What a roll-up costs: `cargo run --release -p uncork-rollup --example cost [RECORDS] [CLIENTS] [MAX_ROWS]`.
//!
//! Made-up connections of one period, from client networks with few and with many. Prints CPU time, memory and bytes as the rows of
//! docs/evidence/rollups.md.

use std::error::Error;
use std::fs;

use uncork_flow::{
    Arm, Choice, FlowRecord, Labelled, Quantiles, Scope, Service, TableHead, write_flows,
    write_json_lines,
};
use uncork_rollup::{RollupSpec, Rollups};
use uncork_units::Rng;

/// 1 December 2026.
const BEGIN_NS: u64 = 1_796_083_200_000_000_000;
/// Number of records written in other formats.
const RAW: usize = 5_000;

fn main() -> Result<(), Box<dyn Error>> {
    let mut arguments = std::env::args().skip(1);
    let mut number = |default: usize| arguments.next().map_or(Ok(default), |it| it.parse());
    let (count, clients, max_rows) = (number(3_000_000)?, number(50_000)?, number(100_000)?);
    let mut rng = Rng::new(1, 0);
    let made: Vec<FlowRecord> = (0..RAW).map(|_| record(&mut rng, clients as u64)).collect();
    let raw = raw_bytes(&made)?;
    let made_in = cpu_s()?;
    for _ in 0..count {
        std::hint::black_box(record(&mut rng, clients as u64));
    }
    drop(made);
    let making = cpu_s()? - made_in;
    let before = (memory_mb()?, cpu_s()?);
    let mut rollups = Rollups::new(RollupSpec { max_rows, ..RollupSpec::new("edge1") });
    for _ in 0..count {
        rollups.add(&record(&mut rng, clients as u64))?;
    }
    let (memory, counted) = (memory_mb()?, cpu_s()?);
    let mut bytes = 0;
    let (mut rows, mut folded) = (0, 0);
    for rollup in rollups.take() {
        bytes += rollup.to_parquet()?.len();
        rows += rollup.rows();
        folded += rollup.folded();
    }
    let written = cpu_s()?;
    let of = |raw: f64| 100.0 * bytes as f64 / (raw * count as f64);
    println!(
        "| records | clients | rows | folded | bytes | of JSON | of Parquet | count, s | write, s | memory before and at most, MB |"
    );
    println!("|--:|--:|--:|--:|--:|--:|--:|--:|--:|--:|");
    println!(
        "| {count} | {clients} | {rows} | {folded} | {bytes} | {:.2} % | {:.2} % | {:.1} | {:.1} | {}, {} |",
        of(raw.0),
        of(raw.1),
        counted - before.1 - making,
        written - counted,
        before.0,
        memory,
    );
    Ok(())
}

/// Bytes of a record as JSON and as Parquet.
fn raw_bytes(records: &[FlowRecord]) -> Result<(f64, f64), Box<dyn Error>> {
    let (mut json, mut parquet) = (Vec::new(), Vec::new());
    write_json_lines(&mut json, records)?;
    write_flows(&mut parquet, &TableHead::default(), records.iter().map(Labelled::plain))?;
    let per = |bytes: usize| bytes as f64 / records.len() as f64;
    Ok((per(json.len()), per(parquet.len())))
}

/// A connection of a client network; the first networks have more of them.
fn record(rng: &mut Rng, clients: u64) -> FlowRecord {
    let (one, two) = (rng.below(clients), rng.below(clients));
    let client = one * two / clients;
    let start = BEGIN_NS + rng.below(300_000_000_000);
    let mut service = Service::blank(Scope::Connection, start, "tls", "public");
    let [a, b, c, ..] = (client as u32).to_le_bytes();
    service.client = Some(format!("{}.{b}.{a}.0/24", 10 + c).into());
    service.asn = Some(64_500 + (client % 700) as u32);
    service.country = Some(["DE", "US", "BR", "JP"][client as usize % 4].into());
    service.responses = 1 + rng.below(3);
    service.min_rtt_ns = Some(1_000_000 + rng.below(100_000_000));
    let arm = Arm {
        experiment: "cubic or bbr".into(),
        arm: ["control", "bbr"][client as usize % 2].into(),
        unit: (client + 1).wrapping_mul(0x9e37_79b9_7f4a_7c15),
        bucket: (client * 31 % 100) as u8,
        propensity: 0.5,
    };
    let size = 1 << (8 + rng.below(16));
    let min = 5.0 + (client % 90) as f64 + rng.below(1_000) as f64 / 1e3;
    let busy_ns = 1 + rng.below(2_000_000_000);
    FlowRecord {
        first_byte_ns: Some(rng.below(500_000_000)),
        busy_ns,
        bytes_delivered: size,
        bytes_acked: size,
        bytes_sent: size + size / 64,
        bytes_retransmitted: size / 64,
        packets_sent: size / 1_448 + 1,
        rtt_ms: Some(Quantiles {
            min,
            p50: min * (1.0 + rng.below(500) as f64 / 1e3),
            p95: min * 2.0,
        }),
        service: Some(service),
        choice: Some(Box::new(Choice {
            policy: "5f0c2a9be1d44f77".into(),
            rule: "half".into(),
            cc: Some("bbr".into()),
            arm: Some(arm),
        })),
        ..FlowRecord::blank("watch", "443", "bbr", (0, 0))
    }
}

/// CPU time of this process.
fn cpu_s() -> Result<f64, Box<dyn Error>> {
    let text = fs::read_to_string("/proc/self/schedstat")?;
    let ns: f64 = text.split(' ').next().unwrap_or_default().parse()?;
    Ok(ns / 1e9)
}

/// The largest resident size so far.
fn memory_mb() -> Result<u64, Box<dyn Error>> {
    let text = fs::read_to_string("/proc/self/status")?;
    let line = text.lines().find(|line| line.starts_with("VmHWM:")).unwrap_or_default();
    let kb = line.split_whitespace().nth(1).unwrap_or_default();
    Ok(kb.parse::<u64>()? / 1024)
}
