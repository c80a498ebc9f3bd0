//! Test cases, their grid points and exceptions.

use std::fmt;

use uncork_sim::{MSS_BYTES, PACKET_BYTES};
use uncork_units::{Rate, TimeDelta};

use crate::appendix::scene::Scene;
use crate::common::is_complete;

/// RTTs without queueing: 0.2 ms to 1 s.
const RTTS_US: [u64; 8] = [200, 1_000, 10_000, 40_000, 100_000, 300_000, 600_000, 1_000_000];
/// Bottleneck rates: 64 kbit/s to 10 Gbit/s.
const RATES_KBIT: [u64; 6] = [64, 1_000, 10_000, 100_000, 1_000_000, 10_000_000];
/// The points of a plain `cargo test`. The fourth corner, 10 Gbit/s and 1 s, has 860 000 packets in
/// flight and is only part of the full grid.
const SAMPLE: [Point; 7] = [
    point(200, 64),
    point(1_000_000, 64),
    point(10_000, 1_000),
    point(300_000, 10_000),
    point(40_000, 100_000),
    point(1_000, 1_000_000),
    point(200, 10_000_000),
];

/// A path: its RTT without queueing and its bottleneck rate.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Point {
    pub(crate) rtt: TimeDelta,
    pub(crate) rate: Rate,
}

const fn point(rtt_us: u64, kbit: u64) -> Point {
    Point { rtt: TimeDelta::from_micros(rtt_us), rate: Rate::from_bits_per_sec(kbit * 1_000) }
}

impl Point {
    /// The bandwidth-delay product in full packets.
    pub(crate) fn bdp_packets(&self) -> f64 {
        self.rate.bits_per_sec() as f64 * self.rtt.as_secs_f64() / 8.0 / f64::from(PACKET_BYTES)
    }

    /// Transmission time of a packet at the bottleneck.
    pub(crate) fn packet_time(&self) -> TimeDelta {
        self.rate.time_for(u64::from(PACKET_BYTES))
    }

    /// Whether it is one of these points, given as RTT in milliseconds and rate in kbit/s.
    pub(crate) fn is_any(&self, points: &[(f64, u64)]) -> bool {
        let (rtt, kbit) = (self.rtt.as_millis_f64(), self.rate.bits_per_sec() / 1_000);
        points.contains(&(rtt, kbit))
    }

    /// The minimum RTT of a full packet.
    pub(crate) fn round(&self) -> TimeDelta {
        self.rtt + self.packet_time()
    }

    /// Payload rate of the bottleneck.
    pub(crate) fn payload_rate(&self) -> Rate {
        payload(self.rate)
    }
}

/// The payload part of a rate on the wire.
pub(crate) fn payload(wire: Rate) -> Rate {
    let bytes = u128::from(wire.bytes_per_sec()) * u128::from(MSS_BYTES) / u128::from(PACKET_BYTES);
    Rate::from_bytes_per_sec(bytes as u64)
}

impl fmt::Display for Point {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} ms, {} bit/s", self.rtt.as_millis_f64(), self.rate.bits_per_sec())
    }
}

/// One of the draft's test cases.
pub(crate) struct Case {
    /// Its number and title in the draft.
    pub(crate) name: &'static str,
    /// The paths it applies to.
    pub(crate) subject: fn(&Point) -> bool,
    /// Bottleneck buffer in thousandths of the BDP, at least [`MIN_BUFFER`].
    pub(crate) buffer: u64,
    /// The check. An error describes the failure, with figures.
    pub(crate) run: fn(&mut Scene<'_>) -> Result<(), String>,
    /// Where the case does not hold.
    pub(crate) exceptions: &'static [Exception],
}

/// Every probe is cut short: there is a ProbeRTT every 5 s, and a probe starts two to three seconds
/// plus some rounds after it.
pub(crate) const CUT_SHORT: &str = "ProbeRTT, every 5 s, cuts every probe short";

/// For a case about all paths.
pub(crate) const EVERYWHERE: fn(&Point) -> bool = |_| true;

/// Minimum buffer in packets: twice the initial window.
pub(crate) const MIN_BUFFER: u64 = 20;

/// Points at which a case does not hold, with the reason. Its failure is expected there; if it
/// passes, the exception must be removed.
pub(crate) struct Exception {
    pub(crate) at: fn(&Point) -> bool,
    pub(crate) why: &'static str,
}

/// Runs a case over the sample or over the full grid.
pub(crate) fn check(case: &Case) {
    let mut failures = Vec::new();
    if is_complete() {
        let rows = RATES_KBIT.map(|kbit| row(case, kbit, &mut failures));
        println!("{}{}{}", header(case), rows.concat(), footer(case));
    } else {
        for point in SAMPLE {
            verdict(case, &point, &mut failures);
        }
    }
    assert!(failures.is_empty(), "{}:\n{}", case.name, failures.join("\n"));
}

fn row(case: &Case, kbit: u64, failures: &mut Vec<String>) -> String {
    let verdicts = RTTS_US.map(|rtt_us| verdict(case, &point(rtt_us, kbit), failures));
    let rate = Rate::from_bits_per_sec(kbit * 1_000).to_string();
    format!("{rate:>10}{}\n", verdicts.map(|verdict| format!("{verdict:>6}")).concat())
}

/// `ok`, `-` if the case does not apply to the path, the letter of an exception, or `FAIL` with a
/// message in `failures`.
fn verdict(case: &Case, point: &Point, failures: &mut Vec<String>) -> String {
    if !(case.subject)(point) {
        return "-".into();
    }
    let spec = Scene::spec(point, case.buffer);
    let outcome = Scene::begin(&spec, *point).and_then(|mut scene| (case.run)(&mut scene));
    let exception = case.exceptions.iter().position(|exception| (exception.at)(point));
    match (outcome, exception) {
        (Ok(()), None) => return "ok".into(),
        (Err(_), Some(index)) => return letter(index).to_string(),
        (Err(why), None) => failures.push(format!("{point}: {why}")),
        (Ok(()), Some(index)) => {
            let why = case.exceptions[index].why;
            failures.push(format!("{point}: holds, so this exception must go: {why}"));
        }
    }
    "FAIL".into()
}

fn letter(index: usize) -> char {
    char::from(b'a' + index as u8)
}

fn header(case: &Case) -> String {
    let rtts = RTTS_US.map(|us| format!("{:>6}", us as f64 / 1e3));
    format!("\n{}\n{:>10}{} ms\n", case.name, "", rtts.concat())
}

fn footer(case: &Case) -> String {
    let exceptions = case.exceptions.iter().enumerate();
    let lines =
        exceptions.map(|(index, exception)| format!("  {}: {}", letter(index), exception.why));
    lines.collect::<Vec<_>>().join("\n")
}
