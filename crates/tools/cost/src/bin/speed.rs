//! Prints the simulator's speed: `cargo run --release -p uncork-cost --bin speed -- [CASE]…`.
//!
//! A case is `FLOWSxCC`, or `FLOWSxCC:MBIT:MILLISECONDS` with the rate of the link and the simulated time.
//! Each case runs in a process of its own, for its peak of memory and the same state of the allocator.

use std::process::Command;
use std::{env, fs, io};

use uncork_cc::CcSpec;
use uncork_path::{Buffer, PathSpec};
use uncork_sim::{FlowSpec, RunResult, RunSpec, Workload, run};
use uncork_units::{Rate, Time, TimeDelta};

/// What is measured without arguments. Up to 100 flows share 1 Gbit/s; more have 10 Mbit/s each.
const CASES: [&str; 12] = [
    "1xreno",
    "1xcubic",
    "1xbbr1",
    "1xbbr3",
    "100xreno",
    "100xcubic",
    "100xbbr1",
    "100xbbr3",
    "1000xcubic",
    "1000xbbr3",
    "10000xcubic",
    "10000xbbr3",
];
/// Runs only the one case that follows, in this process.
const ALONE: &str = "--alone";

fn main() -> Result<(), String> {
    let arguments: Vec<String> = env::args().skip(1).collect();
    if let [option, case] = arguments.as_slice()
        && option == ALONE
    {
        return measure(&case.parse()?).map_err(|error| error.to_string());
    }
    let cases: Vec<&str> = match arguments.as_slice() {
        [] => CASES.to_vec(),
        cases => cases.iter().map(String::as_str).collect(),
    };
    println!("case                   packets   CPU s  M packets/s  kB/flow  result");
    let program = env::current_exe().map_err(|error| error.to_string())?;
    for case in cases {
        let status = Command::new(&program).args([ALONE, case]).status();
        if !status.map_err(|error| error.to_string())?.success() {
            return Err(format!("the case did not run: {case}"));
        }
    }
    Ok(())
}

#[derive(Debug)]
struct Case {
    name: String,
    flows: usize,
    cc: CcSpec,
    mbit: u64,
    time: TimeDelta,
}

impl std::str::FromStr for Case {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        let wrong = || format!("not FLOWSxCC or FLOWSxCC:MBIT:MILLISECONDS: {text}");
        let (flows, rest) = text.split_once('x').ok_or_else(wrong)?;
        let flows: usize = flows.parse().map_err(|_| wrong())?;
        let mut parts = rest.split(':');
        let cc = parts.next().and_then(|cc| cc.parse().ok()).ok_or_else(wrong)?;
        let numbers: Result<Vec<u64>, _> = parts.map(str::parse).collect();
        let (mbit, millis) = match numbers.map_err(|_| wrong())?[..] {
            [] => (10 * flows.max(100) as u64, 10_000_000 / flows.clamp(1_000, 5_000) as u64),
            [mbit, millis] => (mbit, millis),
            _ => return Err(wrong()),
        };
        let name = text.to_owned();
        Ok(Self { name, flows, cc, mbit, time: TimeDelta::from_millis(millis) })
    }
}

impl Case {
    /// 20 ms, a buffer of one BDP, no random loss.
    fn spec(&self) -> RunSpec {
        let end = Time::ZERO + self.time;
        let (rate, rtt) = (Rate::from_mbit(self.mbit), TimeDelta::from_millis(20));
        let path = PathSpec::new(rate, rtt, Buffer::MilliBdp(1000));
        let flow = FlowSpec::new(self.cc, Workload::Until(end));
        RunSpec::over(path, vec![flow; self.flows], 1, end)
    }
}

fn measure(case: &Case) -> io::Result<()> {
    let spec = case.spec();
    let (cpu, memory) = (cpu_seconds()?, memory_kilobytes("VmRSS:")?);
    let result = simulate(&spec);
    let cpu = cpu_seconds()? - cpu;
    let memory = memory_kilobytes("VmHWM:")? - memory;
    let (packets, name) = (result.packets, &case.name);
    let speed = packets as f64 / 1e6 / cpu;
    let memory = memory / case.flows as f64;
    println!(
        "{name:<20} {packets:>9} {cpu:>7.3} {speed:>12.2} {memory:>8.1}  {:016x}",
        print(&result)
    );
    Ok(())
}

/// What is measured. Not inlined, so that callgrind can count it alone.
#[inline(never)]
fn simulate(spec: &RunSpec) -> RunResult {
    run(spec)
}

/// A hash (FNV-1a) of everything in the result. A faster simulator has the same.
fn print(result: &RunResult) -> u64 {
    let text = format!("{result:?}");
    text.bytes().fold(0xcbf2_9ce4_8422_2325, |hash, byte| {
        (hash ^ u64::from(byte)).wrapping_mul(0x100_0000_01b3)
    })
}

/// CPU time of this thread so far.
fn cpu_seconds() -> io::Result<f64> {
    let text = fs::read_to_string("/proc/thread-self/schedstat")?;
    let nanos = text.split(' ').next().and_then(|nanos| nanos.parse::<f64>().ok());
    nanos.map(|nanos| nanos / 1e9).ok_or_else(|| io::Error::other("no CPU time in schedstat"))
}

fn memory_kilobytes(key: &str) -> io::Result<f64> {
    let text = fs::read_to_string("/proc/self/status")?;
    let line = text.lines().find_map(|line| line.strip_prefix(key));
    let kilobytes = line.and_then(|line| line.split_whitespace().next()?.parse().ok());
    kilobytes.ok_or_else(|| io::Error::other("no memory in status"))
}
