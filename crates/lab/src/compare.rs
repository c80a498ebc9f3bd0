//! What to compare.

use std::fmt;

use uncork_path::{PathSpec, PathSpecError};
use uncork_sim::{self as sim, FlowSpec, HEADER_BYTES, MSS_BYTES, PACKET_BYTES, RunSpec};
use uncork_units::{ByteCount, Rng, Time, TimeDelta};

use crate::Column;

/// Flows that share a path start at random within this span, so that equal controllers do not act
/// in lockstep.
const START_SPREAD: TimeDelta = TimeDelta::from_millis(100);
/// Stream of the seed that the starts are drawn from; the simulator uses others.
const START_STREAM: u64 = 3 << 32;
/// A run of transfers ends, finished or not, at this time at the earliest...
const SHORTEST_BOUND: TimeDelta = TimeDelta::from_secs(120);
/// ...and after this many times as long as a round trip and the link's work on all bytes take.
const BOUND_FACTOR: u64 = 100;

/// The same workload over the same path, once for each column and seed.
#[derive(Clone, Debug)]
pub struct CompareSpec {
    /// The path that all flows of a run share.
    pub path: PathSpec,
    /// What each flow carries.
    pub workload: Workload,
    /// What is compared.
    pub columns: Vec<Column>,
    /// Flows of each member of a column.
    pub flows: u32,
    /// Runs of each column.
    pub seeds: u32,
    /// Seed of the first run; the others follow it.
    pub first_seed: u64,
    /// Whether to write down the inside of the first run of each column.
    pub sampled: bool,
}

/// What each flow carries.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Workload {
    /// One transfer of this size.
    Transfer(ByteCount),
    /// As much as goes in this time.
    Duration(TimeDelta),
}

/// Why a comparison cannot be run.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum CompareError {
    /// The path cannot be built.
    Path(PathSpecError),
    /// Transfers of no bytes.
    EmptyTransfer,
    /// A duration outside [`CompareSpec::DURATIONS`].
    Duration(TimeDelta),
    /// There is nothing to compare.
    NoColumns,
    /// Two columns are the same.
    Twice(Column),
    /// Too few or too many flows in a column.
    Flows {
        /// Flows of each member.
        flows: u32,
        /// The largest column.
        column: Column,
    },
    /// Too few or too many seeds.
    Seeds(u32),
    /// The last seed would not fit into 64 bits.
    FirstSeed(u64),
    /// More flows over all runs than are kept.
    TooManyFlows(u64),
    /// More packets over all runs than are worth waiting for.
    TooManyPackets(u64),
}

impl CompareSpec {
    /// The most flows that one column may have.
    pub const MAX_FLOWS: u64 = 1_000;
    /// The most seeds.
    pub const MAX_SEEDS: u32 = 10_000;
    /// The shortest and the longest duration of flows.
    pub const DURATIONS: (TimeDelta, TimeDelta) =
        (TimeDelta::from_millis(1), TimeDelta::from_secs(86_400));
    /// The most flows over all columns and seeds: each leaves a record.
    pub const MAX_RECORDS: u64 = 1_000_000;
    /// The most packets over all columns and seeds: an hour or so on one core.
    pub const MAX_PACKETS: u64 = 10_000_000_000;

    /// Checks that the comparison can be run, in a time that somebody would wait for.
    pub fn check(&self) -> Result<(), CompareError> {
        self.path.check(PACKET_BYTES, HEADER_BYTES).map_err(CompareError::Path)?;
        self.check_workload()?;
        self.check_columns()?;
        if self.seeds == 0 || self.seeds > Self::MAX_SEEDS {
            return Err(CompareError::Seeds(self.seeds));
        }
        if self.first_seed.checked_add(u64::from(self.seeds) - 1).is_none() {
            return Err(CompareError::FirstSeed(self.first_seed));
        }
        let records: u64 = self.columns.iter().map(|column| self.flows_of(column)).sum();
        match (records.saturating_mul(u64::from(self.seeds)), self.packets()) {
            (records, _) if records > Self::MAX_RECORDS => Err(CompareError::TooManyFlows(records)),
            (_, packets) if packets > Self::MAX_PACKETS => {
                Err(CompareError::TooManyPackets(packets))
            }
            _ => Ok(()),
        }
    }

    /// Flows of each run of `column`.
    pub fn flows_of(&self, column: &Column) -> u64 {
        column.members().len() as u64 * u64::from(self.flows)
    }

    /// The seeds, in order.
    pub fn seeds(&self) -> impl ExactSizeIterator<Item = u64> {
        (0..self.seeds).map(|nth| self.first_seed.saturating_add(u64::from(nth)))
    }

    /// When a run of transfers ends, finished or not: after 120 s of virtual time, or a hundred
    /// times as long as a round trip and the link's work on all bytes of `flows` flows take,
    /// whichever is later. A flow of a duration ends when that is over.
    pub fn bound(&self, flows: u64) -> TimeDelta {
        match self.workload {
            Workload::Transfer(size) => {
                let bytes = wire_bytes(size.as_u64()).saturating_mul(flows);
                let ideal = self.path.link.nominal_rate().time_for(bytes) + self.path.rtt;
                ideal.times(BOUND_FACTOR).max(SHORTEST_BOUND)
            }
            Workload::Duration(duration) => duration,
        }
    }

    /// When a run of `flows` flows ends, finished or not.
    pub(crate) fn end(&self, flows: u64) -> Time {
        Time::ZERO + start_spread(flows) + self.bound(flows)
    }

    /// The run of `column` with `seed`: its members' flows one after the other, as often as asked
    /// for. When flows share the path, each starts at its own random time within 100 ms.
    pub(crate) fn run_spec(&self, column: &Column, seed: u64) -> RunSpec {
        let count = self.flows_of(column);
        let spread = start_spread(count);
        let mut rng = Rng::new(seed, START_STREAM);
        let mut flow = |cc| {
            let start = Time::from_nanos(rng.below(spread.as_nanos()));
            let workload = match self.workload {
                Workload::Transfer(size) => sim::Workload::Transfer(size.as_u64()),
                Workload::Duration(duration) => sim::Workload::Until(start + duration),
            };
            FlowSpec { start, ..FlowSpec::new(cc, workload) }
        };
        let members = column.members().iter();
        let flows = members.flat_map(|cc| (0..self.flows).map(|_| *cc)).map(&mut flow).collect();
        RunSpec::over(self.path.clone(), flows, seed, self.end(count))
    }

    fn check_workload(&self) -> Result<(), CompareError> {
        let (shortest, longest) = Self::DURATIONS;
        match self.workload {
            Workload::Transfer(size) if size.as_u64() == 0 => Err(CompareError::EmptyTransfer),
            Workload::Duration(duration) if duration < shortest || duration > longest => {
                Err(CompareError::Duration(duration))
            }
            _ => Ok(()),
        }
    }

    fn check_columns(&self) -> Result<(), CompareError> {
        let mut seen: Vec<&Column> = Vec::new();
        for column in &self.columns {
            if seen.contains(&column) {
                return Err(CompareError::Twice(column.clone()));
            }
            seen.push(column);
        }
        let largest = self.columns.iter().max_by_key(|column| column.members().len());
        let largest = largest.ok_or(CompareError::NoColumns)?;
        if self.flows == 0 || self.flows_of(largest) > Self::MAX_FLOWS {
            return Err(CompareError::Flows { flows: self.flows, column: largest.clone() });
        }
        Ok(())
    }

    /// About how many packets all runs send: what the transfers need, or the link can carry.
    fn packets(&self) -> u64 {
        let of_column = |column| match self.workload {
            Workload::Transfer(size) => {
                size.as_u64().div_ceil(u64::from(MSS_BYTES)).saturating_mul(self.flows_of(column))
            }
            Workload::Duration(duration) => {
                self.path.link.nominal_rate().bytes_in(duration) / u64::from(PACKET_BYTES)
            }
        };
        let of_seed = self.columns.iter().map(of_column).fold(0, u64::saturating_add);
        of_seed.saturating_mul(u64::from(self.seeds))
    }
}

/// The span in which `flows` flows start: a flow alone has nobody to keep out of step with.
fn start_spread(flows: u64) -> TimeDelta {
    if flows > 1 { START_SPREAD } else { TimeDelta::ZERO }
}

/// What `payload` bytes are on the wire.
pub(crate) fn wire_bytes(payload: u64) -> u64 {
    let bytes = u128::from(payload) * u128::from(PACKET_BYTES) / u128::from(MSS_BYTES);
    u64::try_from(bytes).unwrap_or(u64::MAX)
}

impl fmt::Display for CompareError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Path(error) => error.fmt(f),
            Self::EmptyTransfer => f.write_str("nothing to transfer; give at least 1B"),
            Self::Duration(_) => {
                let (shortest, longest) = CompareSpec::DURATIONS;
                write!(f, "give {shortest} to {longest}")
            }
            Self::NoColumns => f.write_str("nothing to compare; give a controller, such as bbr3"),
            Self::Twice(column) => write!(f, "{column} is there twice; give it once"),
            Self::Flows { flows: 0, .. } => {
                write!(f, "no flows, nothing to measure; give 1 to {}", CompareSpec::MAX_FLOWS)
            }
            Self::Flows { column, .. } => {
                let most = CompareSpec::MAX_FLOWS / column.members().len().max(1) as u64;
                write!(f, "too many flows on one path; give 1 to {most} for {column}")
            }
            Self::Seeds(_) => write!(f, "give 1 to {}", CompareSpec::MAX_SEEDS),
            Self::FirstSeed(_) => write!(f, "the seeds after it exceed {}", u64::MAX),
            Self::TooManyFlows(flows) => write!(
                f,
                "{flows} flows over all controllers and seeds are too many; at most {} are \
                 simulated: give fewer seeds, flows or controllers",
                CompareSpec::MAX_RECORDS
            ),
            Self::TooManyPackets(packets) => write!(
                f,
                "this means {packets} packets over all controllers and seeds, hours of computing; \
                 at most {} are simulated: give less data, or fewer seeds, flows or controllers",
                CompareSpec::MAX_PACKETS
            ),
        }
    }
}

impl std::error::Error for CompareError {}

/// A path and a comparison that tests vary.
#[cfg(test)]
pub(crate) fn example(columns: &[&str]) -> CompareSpec {
    CompareSpec {
        path: PathSpec {
            loss: uncork_path::LossSpec::Bernoulli("1%".parse().unwrap()),
            ..PathSpec::new(
                uncork_units::Rate::from_mbit(20),
                TimeDelta::from_millis(50),
                uncork_path::Buffer::MilliBdp(1000),
            )
        },
        workload: Workload::Transfer("100kB".parse().unwrap()),
        columns: columns.iter().map(|text| text.parse().unwrap()).collect(),
        flows: 1,
        seeds: 3,
        first_seed: 1,
        sampled: false,
    }
}

#[cfg(test)]
mod tests {
    use uncork_path::LossSpec;

    use super::*;

    fn error(change: impl FnOnce(&mut CompareSpec)) -> CompareError {
        let mut spec = example(&["cubic", "bbr3+bbr1"]);
        assert_eq!(spec.check(), Ok(()));
        change(&mut spec);
        spec.check().unwrap_err()
    }

    #[test]
    fn refuses_what_makes_no_sense() {
        let path = error(|spec| spec.path.link.buffer = uncork_path::Buffer::Packets(0));
        assert_eq!(
            path,
            CompareError::Path(PathSpecError::Buffer { bytes: 0, packet_bytes: 1500 })
        );
        let all = |spec: &mut CompareSpec| {
            spec.path.loss = LossSpec::Bernoulli("100%".parse().unwrap());
        };
        assert_eq!(error(all), CompareError::Path(PathSpecError::LosesEverything));
        let every = |spec: &mut CompareSpec| spec.path.loss = LossSpec::EveryNth(1);
        assert_eq!(error(every), CompareError::Path(PathSpecError::LosesEverything));
        let nothing = |spec: &mut CompareSpec| {
            spec.workload = Workload::Transfer("0B".parse().unwrap());
        };
        assert_eq!(error(nothing), CompareError::EmptyTransfer);
        for duration in [TimeDelta::ZERO, TimeDelta::MAX] {
            let change = |spec: &mut CompareSpec| spec.workload = Workload::Duration(duration);
            assert_eq!(error(change), CompareError::Duration(duration));
        }
        assert_eq!(error(|spec| spec.columns.clear()), CompareError::NoColumns);
        let cubic: Column = "cubic".parse().unwrap();
        let twice = error(|spec| spec.columns.push("cubic".parse().unwrap()));
        assert_eq!(twice, CompareError::Twice(cubic));
    }

    #[test]
    fn refuses_too_little_and_too_much() {
        let column: Column = "bbr3+bbr1".parse().unwrap();
        for flows in [0, 501, u32::MAX] {
            let expected = CompareError::Flows { flows, column: column.clone() };
            assert_eq!(error(|spec| spec.flows = flows), expected);
        }
        for seeds in [0, 10_001] {
            assert_eq!(error(|spec| spec.seeds = seeds), CompareError::Seeds(seeds));
        }
        let last = error(|spec| spec.first_seed = u64::MAX - 1);
        assert_eq!(last, CompareError::FirstSeed(u64::MAX - 1));
        let many = error(|spec| (spec.flows, spec.seeds) = (100, 10_000));
        assert_eq!(many, CompareError::TooManyFlows(3_000_000));
        let large = error(|spec| spec.workload = Workload::Transfer("10TB".parse().unwrap()));
        assert_eq!(large, CompareError::TooManyPackets(6_906_077_349 * 9));
    }

    #[test]
    fn a_flow_alone_starts_at_once() {
        let spec = example(&["cubic"]);
        let run = spec.run_spec(&spec.columns[0], 7);
        assert_eq!(run.flows.len(), 1);
        assert_eq!(run.flows[0].start, Time::ZERO);
        assert_eq!(run.end, Time::ZERO + TimeDelta::from_secs(120));
        assert_eq!(run.seed, 7);
    }

    #[test]
    fn flows_that_share_start_within_100_ms_as_the_seed_says() {
        let mut spec = example(&["bbr3+cubic"]);
        spec.flows = 20;
        spec.workload = Workload::Duration(TimeDelta::from_secs(30));
        let run = spec.run_spec(&spec.columns[0], 7);
        assert_eq!(run.flows.len(), 40);
        assert!(run.flows[..20].iter().all(|flow| flow.cc.to_string() == "bbr3"));
        assert!(run.flows[20..].iter().all(|flow| flow.cc.to_string() == "cubic"));
        let mut starts: Vec<Time> = run.flows.iter().map(|flow| flow.start).collect();
        starts.sort_unstable();
        starts.dedup();
        assert_eq!(starts.len(), 40);
        assert!(starts[39] < Time::from_nanos(100_000_000));
        for flow in &run.flows {
            let end = flow.start + TimeDelta::from_secs(30);
            assert_eq!(flow.workload, sim::Workload::Until(end));
            assert!(end <= run.end);
        }
        assert_eq!(spec.run_spec(&spec.columns[0], 7).flows[3].start, run.flows[3].start);
        assert_ne!(spec.run_spec(&spec.columns[0], 8).flows[3].start, run.flows[3].start);
    }

    #[test]
    fn long_transfers_get_a_hundred_times_what_is_possible() {
        let mut spec = example(&["cubic"]);
        spec.workload = Workload::Transfer("14.48MB".parse().unwrap());
        // 15 MB on the wire at 2.5 MB/s: 6 s, and an RTT of 50 ms.
        assert_eq!(spec.bound(1), TimeDelta::from_secs(605));
        assert_eq!(spec.bound(2), TimeDelta::from_secs(1205));
    }
}
