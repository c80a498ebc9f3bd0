//! Roll-ups of a made-up fleet: `cargo run --release -p uncork-rollup --example fleet DIR [HOSTS] [PERIODS] [CONNECTIONS] [NETWORKS] [FIRST_DAY]`.
//!
//! Each host writes one roll-up a period of five minutes, of the same number of connections. 10 % of the clients are random (`explore`), 1 % are
//! held back, a table has decided for the others. Hosts are in 30 places, and each place has a part of the networks. Prints records,
//! rows and bytes; docs/evidence/rollups.md has a plan from them.

use std::error::Error;
use std::fs;
use std::path::Path;

use uncork_flow::{Arm, Choice, FlowRecord, Quantiles, Scope, Service};
use uncork_rollup::{RollupSpec, Rollups};
use uncork_units::Rng;

/// 1 December 2026.
const BEGIN_NS: u64 = 1_796_083_200_000_000_000;
const PERIOD_NS: u64 = 300_000_000_000;
const PLACES: u64 = 30;

fn main() -> Result<(), Box<dyn Error>> {
    let mut arguments = std::env::args().skip(1);
    let root = arguments.next().ok_or("expected a directory")?;
    let mut number = |default: u64| arguments.next().map_or(Ok(default), |it| it.parse());
    let (hosts, periods, connections) = (number(100)?, number(288)?, number(1_000)?);
    let (networks, first_day) = (number(100_000)?, number(0)?);
    let (mut rows, mut files, mut bytes) = (0, 0, 0);
    for host in 0..hosts {
        let folder = Path::new(&root).join(format!("edge{host}"));
        fs::create_dir_all(&folder)?;
        for period in 0..periods {
            let start = BEGIN_NS + first_day * 288 * PERIOD_NS + period * PERIOD_NS;
            let mut rng = Rng::new(host, first_day * 288 + period);
            let mut rollups = Rollups::new(RollupSpec::new(format!("edge{host}")));
            for _ in 0..connections {
                rollups.add(&record(&mut rng, host % PLACES, networks, start))?;
            }
            for rollup in rollups.take() {
                let file = rollup.to_parquet()?;
                rows += rollup.rows();
                files += 1;
                bytes += file.len();
                fs::write(folder.join(name(host, start, &file)), file)?;
            }
        }
    }
    let records = hosts * periods * connections;
    println!("{records} connections, {files} files, {rows} rows, {bytes} bytes");
    Ok(())
}

/// The file's name, as programs write it.
fn name(host: u64, start_ns: u64, file: &[u8]) -> String {
    let seconds = start_ns / 1_000_000_000;
    let (day, of_day) = ((seconds - BEGIN_NS / 1_000_000_000) / 86_400, seconds % 86_400);
    let time = format!("{:02}{:02}{:02}", of_day / 3600, of_day / 60 % 60, of_day % 60);
    let hash = uncork_rollup::content_hash(file);
    format!("rollup-edge{host}-202612{:02}T{time}.000Z-5min-{hash:016x}.parquet", day + 1)
}

/// A connection of one of the place's networks; the first of them have more.
fn record(rng: &mut Rng, place: u64, networks: u64, start: u64) -> FlowRecord {
    let each = (networks / PLACES).max(1);
    let network = place * each + rng.below(each) * rng.below(each) / each;
    let client = network * 64 + rng.below(64);
    let [a, b, c, ..] = (network as u32).to_le_bytes();
    let listener = format!("place{place}");
    let mut service =
        Service::blank(Scope::Connection, start + rng.below(PERIOD_NS), "tls", &listener);
    service.client = Some(format!("{}.{b}.{a}.0/24", 20 + c).into());
    service.asn = Some(64_500 + (network / 50) as u32);
    service.country = Some(["DE", "US", "BR", "JP", "IN"][place as usize % 5].into());
    service.responses = 1;
    service.broken_off = u64::from(rng.below(250) == 0);
    let unit = (client + 1).wrapping_mul(0x9e37_79b9_7f4a_7c15);
    let (slot, bucket) = (unit % 100, (unit >> 32) as u8 % 100);
    let is_treated = if slot < 10 { unit >> 20 & 1 == 1 } else { network.is_multiple_of(3) };
    let arm = |experiment: &str, arm: &str, propensity| Arm {
        experiment: experiment.into(),
        arm: arm.into(),
        unit,
        bucket,
        propensity,
    };
    let cc = if is_treated && slot != 10 { "bbr" } else { "cubic" };
    let (rule, arm) = match slot {
        0..10 => ("explore", Some(arm("explore", if is_treated { "bbr" } else { "control" }, 0.5))),
        10 => ("holdback", Some(arm("uncork-learn-holdback", "control", 1.0))),
        _ => ("learned, all", None),
    };
    let size = if rng.below(10) < 7 { 5_000_000 } else { 200_000 };
    let gain = if cc == "bbr" { 120 } else { 100 };
    let busy_ns = (size * 8_000 / gain) * (50 + rng.below(100)) / 100 + 1;
    let again = size / 100 * rng.below(3) / 2;
    let min = 5.0 + (network % 90) as f64;
    FlowRecord {
        completion_ns: Some(busy_ns),
        first_byte_ns: Some(rng.below(500_000_000).min(busy_ns)),
        busy_ns,
        size_bytes: Some(size),
        bytes_delivered: size,
        bytes_acked: size,
        bytes_sent: size + again,
        bytes_retransmitted: again,
        rtt_ms: Some(Quantiles {
            min,
            p50: min * (1.0 + rng.below(500) as f64 / 1e3),
            p95: min * 2.0,
        }),
        service: Some(service),
        choice: Some(Box::new(Choice {
            policy: "5f0c2a9be1d44f77".into(),
            rule: rule.into(),
            cc: None,
            arm,
        })),
        ..FlowRecord::blank("watch", "443", cc, (0, 0))
    }
}
