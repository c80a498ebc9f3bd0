//! A comparison: the same workload over one or several paths with several controllers. It is a scenario, and writes the text
//! of it.

mod built;
mod options;

use std::fmt::Display;

use uncork_cc::InitialWindow;
use uncork_path::{
    Buffer, HostJitter, LossPosition, LossSpec, PathSpec, PathSpecError, QueueSpec, RateSpec,
};
use uncork_sim::{HEADER_BYTES, MSS_BYTES, PACKET_BYTES};
use uncork_units::{ByteCount, Rate, TimeDelta};

use crate::preset::uniform;
use crate::scenario::{MAX_CELLS, Scenario, latest_opening, usual_spread};
use crate::{Column, FinishedRun, Preset};

pub use options::{Losses, OptionError};

/// A run of transfers ends at this time at the earliest, even if unfinished...
const MIN_BOUND: TimeDelta = TimeDelta::from_secs(120);
/// ...and after this multiple of a round trip plus the link's time for all bytes.
const BOUND_FACTOR: u64 = 100;
/// Samples in the longest run...
const SAMPLES: u64 = 1_000;
/// ...while the flows of all cells together have no more points than this.
const MAX_POINTS: u64 = 300_000;

/// The same workload over the same paths, once per column and seed. Every combination of rate, RTT,
/// loss and buffer is a path.
#[derive(Clone, Debug)]
pub struct CompareSpec {
    /// A preset access network, overridden by the following fields.
    pub preset: Option<Preset>,
    /// Rates of the bottleneck.
    pub rates: Vec<Rate>,
    /// RTTs without queueing.
    pub rtts: Vec<TimeDelta>,
    /// Random losses.
    pub losses: Vec<LossSpec>,
    /// Position of the losses.
    pub loss_position: Option<LossPosition>,
    /// Queues of the bottleneck.
    pub buffers: Vec<Buffer>,
    /// Discipline of that queue; `None` for the preset's, or drop-tail.
    pub queue: Option<QueueSpec>,
    /// Maximum random delay of packets to the client; `None` for the preset's, or none.
    pub jitter: Option<TimeDelta>,
    /// The time that hosts take.
    pub host_jitter: HostJitter,
    /// Traffic of each flow.
    pub workload: Workload,
    /// When flows start; `None` for the usual way, see [`Start`].
    pub start: Option<Start>,
    /// Initial window of each connection; `None` for ten packets.
    pub initial_window: Option<InitialWindow>,
    /// The columns to compare; the first is the baseline.
    pub columns: Vec<Column>,
    /// Flows per member of a column.
    pub flows: u32,
    /// Runs per column.
    pub seeds: u32,
    /// Seed of the first run; the others follow it.
    pub first_seed: u64,
}

/// Traffic of each flow.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Workload {
    /// A transfer of this size.
    Transfer(ByteCount),
    /// Unlimited data for this time.
    Duration(TimeDelta),
}

/// When flows that share the link start. Usual for mixes of flows with a duration is
/// [`Start::InTurn`], else [`Start::Random`].
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Start {
    /// A program for each controller opens its connections one after the other and then sends on all,
    /// as iperf3 does. By the seed in turn all programs are launched together, or one ahead.
    InTurn,
    /// The same, always launched together.
    Iperf3,
    /// Each flow at a random time: within 100 ms, flows with a duration within a tenth of it, at most
    /// 2 s.
    Random,
    /// All at once.
    Together,
}

/// Why a comparison cannot be run.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum CompareError {
    /// The path cannot be built.
    #[error(transparent)]
    Path(PathSpecError),
    /// The transfer has zero bytes.
    #[error("nothing to transfer; use at least 1B")]
    EmptyTransfer,
    /// A duration outside [`CompareSpec::DURATIONS`].
    #[error("expected {} to {}", CompareSpec::DURATIONS.0, CompareSpec::DURATIONS.1)]
    Duration(TimeDelta),
    /// Programs open connections for flows with a duration only.
    #[error("needs flows with a duration; add --duration 30s, or use random or together")]
    Start,
    /// There are no columns.
    #[error("nothing to compare; use a controller, such as bbr3")]
    NoColumns,
    /// Two columns are equal.
    #[error("{0} is listed twice; name it once")]
    Twice(Column),
    /// Two values of this option are equal.
    #[error("{value} is listed twice; name it once")]
    ValueTwice {
        /// The option.
        option: &'static str,
        /// The value.
        value: String,
    },
    /// More than [`CompareSpec::MAX_CELLS`] combinations.
    #[error(
        "{0} combinations of values and controllers; the limit is {max}: use fewer values",
        max = CompareSpec::MAX_CELLS
    )]
    TooManyCells(u64),
    /// No flows, or too many, in this column.
    #[error("expected 1 to {most} for {0}", most = CompareSpec::MAX_FLOWS / .0.members().len().max(1) as u64)]
    Flows(Column),
    /// Too few or too many seeds.
    #[error("expected 1 to {}", CompareSpec::MAX_SEEDS)]
    Seeds(u32),
    /// The last seed is out of range.
    #[error("expected 0 to {}", u64::MAX - u64::from(CompareSpec::MAX_SEEDS))]
    FirstSeed(u64),
    /// The link needs more time for the transfers than a run may last.
    #[error(
        "the link alone takes {0} for all flows, and a run ends after {max}; use less data, fewer flows or a \
         faster link",
        max = CompareSpec::DURATIONS.1
    )]
    TooSlow(TimeDelta),
    /// More than [`CompareSpec::MAX_RECORDS`] flows in all runs.
    #[error(
        "{0} flows in all; the limit is {max}: use fewer seeds, flows or \
         controllers",
        max = CompareSpec::MAX_RECORDS
    )]
    TooManyFlows(u64),
    /// More than [`CompareSpec::MAX_PACKETS`] packets in all runs.
    #[error(
        "{0} packets in all would take hours; the limit is {max}: use less \
         data, or fewer seeds, flows or controllers",
        max = CompareSpec::MAX_PACKETS
    )]
    TooManyPackets(u64),
}

impl CompareSpec {
    /// Maximum flows per column.
    pub const MAX_FLOWS: u64 = 1_000;
    /// Maximum number of seeds.
    pub const MAX_SEEDS: u32 = 10_000;
    /// Range of flow durations.
    pub const DURATIONS: (TimeDelta, TimeDelta) =
        (TimeDelta::from_millis(1), TimeDelta::from_secs(86_400));
    /// Maximum flows over all columns and seeds, because each leaves a record.
    pub const MAX_RECORDS: u64 = 1_000_000;
    /// Maximum combinations of the path's values and columns.
    pub const MAX_CELLS: u64 = MAX_CELLS;
    /// Maximum packets over all columns and seeds: about an hour on one core.
    pub const MAX_PACKETS: u64 = 10_000_000_000;

    /// Checks that the comparison can be run in reasonable time.
    pub fn check(&self) -> Result<(), CompareError> {
        self.check_values()?;
        for path in self.paths() {
            path.check(PACKET_BYTES, HEADER_BYTES).map_err(CompareError::Path)?;
        }
        self.check_workload()?;
        self.check_columns()?;
        if self.seeds == 0 || self.seeds > Self::MAX_SEEDS {
            return Err(CompareError::Seeds(self.seeds));
        }
        if self.first_seed > u64::MAX - u64::from(Self::MAX_SEEDS) {
            return Err(CompareError::FirstSeed(self.first_seed));
        }
        match (self.flow_count(), self.packet_count(), self.ideal()) {
            (records, ..) if records > Self::MAX_RECORDS => {
                Err(CompareError::TooManyFlows(records))
            }
            (_, packets, _) if packets > Self::MAX_PACKETS => {
                Err(CompareError::TooManyPackets(packets))
            }
            (.., ideal) if ideal > Self::DURATIONS.1 => Err(CompareError::TooSlow(ideal)),
            _ => Ok(()),
        }
    }

    /// The comparison as a scenario. Its text works with `uncork lab run`. `sample` is the interval
    /// of the time series of the first runs, if wanted.
    ///
    /// # Errors
    ///
    /// Those of [`CompareSpec::check`].
    pub fn scenario(&self, sample: Option<TimeDelta>) -> Result<Scenario, CompareError> {
        self.check()?;
        Ok(self.build(self.text(sample), sample))
    }

    /// Sampling interval for the runs with the first seed. Depends on their duration, which is only
    /// known once `runs` have finished.
    pub fn sample_every(&self, runs: &[FinishedRun]) -> TimeDelta {
        let first = runs.iter().filter(|run| run.outcome.seed == self.first_seed);
        let flows = || first.clone().flat_map(|run| &run.outcome.flows);
        let end = self.end().as_nanos();
        let ends = flows().map(|flow| flow.completion_ns.map_or(end, |span| flow.start_ns + span));
        let samples = SAMPLES.min(MAX_POINTS / flows().count().max(1) as u64).max(1);
        let every = ends.max().unwrap_or(0).div_ceil(samples);
        TimeDelta::from_nanos(every).max(Self::DURATIONS.0)
    }

    fn text(&self, sample: Option<TimeDelta>) -> String {
        let Self { seeds, first_seed, host_jitter, .. } = self;
        let work = match self.workload {
            Workload::Transfer(size) => format!("transfer = \"{size}\""),
            Workload::Duration(span) => format!("bulk = \"{span}\""),
        };
        let start = match self.start() {
            Start::InTurn => "\nconnect = \"in-turn\"",
            Start::Iperf3 => "\nconnect = \"iperf3\"",
            Start::Together => "\nspread = \"0s\"",
            Start::Random => "",
        };
        let window = key("initial_window", self.initial_window);
        let sample = sample.map_or_else(String::new, |every| format!("sample = \"{every}\"\n"));
        let counts = self.columns.iter().map(|column| self.flows_of(column));
        let count = counts.max().unwrap_or(1);
        let path: String = [
            key("preset", self.preset.as_ref().map(|preset| &preset.name)),
            key("rate", self.rates.first()),
            key("rtt", self.rtts.first()),
            key("loss", self.losses.first()),
            key("loss_position", self.position()),
            key("buffer", self.buffers.first()),
            key("queue", self.queue),
            key("jitter", self.jitter),
        ]
        .concat();
        let axes: String = [
            axis("path.rate", &self.rates),
            axis("path.rtt", &self.rtts),
            axis("path.loss", &self.losses),
            axis("path.buffer", &self.buffers),
        ]
        .concat();
        format!(
            "title = \"{}\"\n\n[run]\nseeds = {seeds}\nfirst_seed = {first_seed}\nend = \"{}\"\n\
             host_jitter = \"{host_jitter}\"\n{sample}\n[path]\n{path}\n[flow.main]\ncc = \"cubic\"\ncount = {count}\n{work}{start}\n{window}\n\
             [matrix]\n{axes}{}",
            self.title(),
            self.end(),
            self.controllers()
        )
    }

    fn position(&self) -> Option<&'static str> {
        self.loss_position.map(|position| match position {
            LossPosition::Before => "before",
            LossPosition::After => "after",
        })
    }

    /// `10 MB over 20 Mbit/s, 50 ms RTT, 1 % random loss after the bottleneck, buffer 1 BDP`
    fn title(&self) -> String {
        let work = match (self.workload, self.flows) {
            (Workload::Transfer(size), 1) => spelled(size),
            (Workload::Transfer(size), flows) => format!("{flows} flows of {} each", spelled(size)),
            (Workload::Duration(span), 1) => format!("A flow of {}", spelled(span)),
            (Workload::Duration(span), flows) => format!("{flows} flows of {}", spelled(span)),
        };
        let place =
            self.position().map_or_else(String::new, |place| format!(" {place} the bottleneck"));
        let loss = match self.losses.as_slice() {
            [loss] if loss.mean() <= 0.0 => "no random loss".to_owned(),
            losses => format!("{} random loss{place}", either(losses)),
        };
        let said = |is_given: bool, words: String| is_given.then_some(words);
        let parts = [
            self.preset.as_ref().map(|preset| preset.name.to_owned()),
            said(!self.rates.is_empty(), either(&self.rates)),
            said(!self.rtts.is_empty(), format!("{} RTT", either(&self.rtts))),
            said(!self.losses.is_empty(), loss),
            said(!self.buffers.is_empty(), format!("buffer {}", either(&self.buffers))),
            self.queue.map(|queue| format!("queue {queue}")),
            self.jitter.map(|jitter| format!("up to {} jitter", spelled(jitter))),
            self.initial_window.map(|window| format!("initial window {window}")),
        ];
        let parts: Vec<String> = parts.into_iter().flatten().collect();
        format!("{work} over {}", parts.join(", "))
    }

    /// The axis of the columns. Flows of a mix alternate among its members.
    fn controllers(&self) -> String {
        let is_even = self.is_even();
        let value = |column: &Column| {
            let members: Vec<String> =
                column.members().iter().map(|cc| format!("\"{cc}\"")).collect();
            let (members, count) = (members.join(", "), self.flows_of(column));
            match (column.members().len(), is_even) {
                (1, true) => members,
                (_, true) => format!("{{ name = \"{column}\", values = [[{members}]] }}"),
                _ => format!("{{ name = \"{column}\", values = [[{members}], {count}] }}"),
            }
        };
        let key = if is_even { "flow.main.cc" } else { "flow.main.cc,flow.main.count" };
        let values: Vec<String> = self.columns.iter().map(value).collect();
        format!("\"{key}\" = [{}]\n", values.join(", "))
    }

    /// Whether all columns have equally many flows.
    fn is_even(&self) -> bool {
        self.columns.windows(2).all(|pair| self.flows_of(&pair[0]) == self.flows_of(&pair[1]))
    }

    /// Number of flows in each run of `column`.
    fn flows_of(&self, column: &Column) -> u64 {
        column.members().len() as u64 * u64::from(self.flows)
    }

    /// Every combination of the varied values.
    pub fn paths(&self) -> Vec<PathSpec> {
        let base = self.preset.as_ref().and_then(Preset::path);
        let options = || {
            Some(PathSpec::new(*self.rates.first()?, *self.rtts.first()?, *self.buffers.first()?))
        };
        let mut paths: Vec<PathSpec> = base.or_else(options).into_iter().collect();
        vary(&mut paths, &self.rates, |path, rate| path.link.rate = RateSpec::Constant(rate));
        vary(&mut paths, &self.rtts, |path, rtt| path.rtt = rtt);
        vary(&mut paths, &self.losses, |path, loss| path.loss = loss);
        vary(&mut paths, &self.buffers, |path, buffer| path.link.buffer = buffer);
        for path in &mut paths {
            path.loss_position = self.loss_position.unwrap_or(path.loss_position);
            path.link.queue = self.queue.unwrap_or(path.link.queue);
            path.jitter = self.jitter.map(uniform).or(path.jitter);
        }
        paths
    }

    /// When flows start.
    fn start(&self) -> Start {
        let is_mix = self.columns.iter().any(|column| column.distinct().len() > 1);
        self.start.unwrap_or(match self.workload {
            Workload::Duration(_) if is_mix => Start::InTurn,
            _ => Start::Random,
        })
    }

    /// How late the last flow starts.
    fn latest_start(&self) -> TimeDelta {
        let bulk = match self.workload {
            Workload::Transfer(_) => None,
            Workload::Duration(duration) => Some(duration),
        };
        match (self.start(), bulk) {
            (Start::InTurn | Start::Iperf3, Some(bulk)) => {
                let flows = self.columns.iter().map(|column| self.flows_of(column)).max();
                let rtt = self.paths().iter().map(|path| path.rtt).max();
                latest_opening(bulk, flows.unwrap_or(1), rtt.unwrap_or(TimeDelta::ZERO))
            }
            (Start::Together, _) => TimeDelta::ZERO,
            _ => usual_spread(bulk),
        }
    }

    /// When a run ends, even if unfinished. Transfers: the later of 120 s of virtual time and a
    /// hundred times a round trip plus the link's time for all bytes, but within a day.
    /// Flows with a duration: at the end of that duration.
    fn end(&self) -> TimeDelta {
        let bound = match self.workload {
            Workload::Transfer(_) => self.ideal().times(BOUND_FACTOR).max(MIN_BOUND),
            Workload::Duration(duration) => duration,
        };
        let shares = self.columns.iter().any(|column| self.flows_of(column) > 1);
        let latest = if shares { self.latest_start() } else { TimeDelta::ZERO };
        (bound + latest).min(Self::DURATIONS.1)
    }

    /// A round trip plus the link's time for all bytes of the largest column, on the slowest path.
    fn ideal(&self) -> TimeDelta {
        let Workload::Transfer(size) = self.workload else { return TimeDelta::ZERO };
        let flows = self.columns.iter().map(|column| self.flows_of(column)).max().unwrap_or(1);
        let bytes = wire_bytes(size.as_u64()).saturating_mul(flows);
        let each = |path: &PathSpec| path.link.nominal_rate().time_for(bytes) + path.rtt;
        self.paths().iter().map(each).max().unwrap_or(TimeDelta::ZERO)
    }

    fn check_values(&self) -> Result<(), CompareError> {
        let lists = [self.rates.len(), self.rtts.len(), self.losses.len(), self.buffers.len()];
        let counts = lists.into_iter().map(|count| count.max(1) as u64);
        let cells = counts.fold(self.columns.len() as u64, u64::saturating_mul);
        if cells > Self::MAX_CELLS {
            return Err(CompareError::TooManyCells(cells));
        }
        twice("rate", &self.rates)?;
        twice("rtt", &self.rtts)?;
        twice("loss", &self.losses)?;
        twice("buffer", &self.buffers)
    }

    fn check_workload(&self) -> Result<(), CompareError> {
        let (shortest, longest) = Self::DURATIONS;
        match self.workload {
            Workload::Transfer(size) if size.as_u64() == 0 => Err(CompareError::EmptyTransfer),
            Workload::Duration(duration) if duration < shortest || duration > longest => {
                Err(CompareError::Duration(duration))
            }
            Workload::Transfer(_) if matches!(self.start, Some(Start::InTurn | Start::Iperf3)) => {
                Err(CompareError::Start)
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
            return Err(CompareError::Flows(largest.clone()));
        }
        Ok(())
    }

    /// Number of flows of all runs.
    pub fn flow_count(&self) -> u64 {
        let flows: u64 = self.columns.iter().map(|column| self.flows_of(column)).sum();
        flows.saturating_mul(u64::from(self.seeds)).saturating_mul(self.paths().len() as u64)
    }

    /// Approximate number of packets of all runs: what the transfers need or the links can carry.
    pub fn packet_count(&self) -> u64 {
        let on_path = |path: &PathSpec| match self.workload {
            Workload::Transfer(size) => {
                let flows: u64 = self.columns.iter().map(|column| self.flows_of(column)).sum();
                size.as_u64().div_ceil(u64::from(MSS_BYTES)).saturating_mul(flows)
            }
            Workload::Duration(duration) => {
                let carried = path.link.nominal_rate().bytes_in(duration) / u64::from(PACKET_BYTES);
                carried.saturating_mul(self.columns.len() as u64)
            }
        };
        let of_seed = self.paths().iter().map(on_path).fold(0, u64::saturating_add);
        of_seed.saturating_mul(u64::from(self.seeds))
    }
}

/// Replaces each of `paths` by one path per value of `values`, if there are any.
fn vary<T: Copy>(paths: &mut Vec<PathSpec>, values: &[T], set: impl Fn(&mut PathSpec, T)) {
    if values.is_empty() {
        return;
    }
    let with = |path: &PathSpec, value: T| {
        let mut path = path.clone();
        set(&mut path, value);
        path
    };
    *paths = paths.iter().flat_map(|path| values.iter().map(|value| with(path, *value))).collect();
}

/// Checks that no two values are written alike.
fn twice<T: Display>(option: &'static str, values: &[T]) -> Result<(), CompareError> {
    let texts: Vec<String> = values.iter().map(T::to_string).collect();
    let again = texts.iter().enumerate().find(|(nth, text)| texts[..*nth].contains(text));
    match again {
        Some((_, value)) => Err(CompareError::ValueTwice { option, value: value.clone() }),
        None => Ok(()),
    }
}

/// A `key = value` line; empty without a value.
fn key(name: &str, value: Option<impl Display>) -> String {
    value.map_or_else(String::new, |value| format!("{name} = \"{value}\"\n"))
}

/// An axis over the values; empty if there is only one.
fn axis<T: Display>(key: &str, values: &[T]) -> String {
    if values.len() < 2 {
        return String::new();
    }
    let values: Vec<String> = values.iter().map(|value| format!("\"{value}\"")).collect();
    format!("\"{key}\" = [{}]\n", values.join(", "))
}

/// `0%, 0.1% or 1%`
fn either<T: Display>(values: &[T]) -> String {
    let values: Vec<String> = values.iter().map(spelled).collect();
    match values.split_last() {
        Some((last, before)) if !before.is_empty() => format!("{} or {last}", before.join(", ")),
        _ => values.concat(),
    }
}

/// A quantity with a space: `20 Mbit/s` for `20mbit`. Text that does not start with a number is
/// unchanged.
fn spelled(value: impl Display) -> String {
    let text = value.to_string();
    let end = text.find(|c: char| !c.is_ascii_digit() && c != '.').unwrap_or(text.len());
    let (number, unit) = text.split_at(end);
    let unit = match unit {
        "bit" => "bit/s",
        "kbit" => "kbit/s",
        "mbit" => "Mbit/s",
        "gbit" => "Gbit/s",
        "bdp" => "BDP",
        "p" => "packets",
        "us" => "µs",
        same => same,
    };
    if number.is_empty() || unit.is_empty() { text } else { format!("{number} {unit}") }
}

/// Size of `payload` bytes on the wire.
pub(crate) fn wire_bytes(payload: u64) -> u64 {
    let bytes = u128::from(payload) * u128::from(PACKET_BYTES) / u128::from(MSS_BYTES);
    u64::try_from(bytes).unwrap_or(u64::MAX)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::NoFiles;
    use uncork_testkit::assert_message;

    fn example(columns: &[&str]) -> CompareSpec {
        CompareSpec {
            rates: vec![Rate::from_mbit(20)],
            rtts: vec![TimeDelta::from_millis(50)],
            losses: vec!["1%".parse().unwrap()],
            preset: None,
            loss_position: Some(LossPosition::After),
            buffers: vec![Buffer::MilliBdp(1000)],
            queue: None,
            jitter: None,
            host_jitter: HostJitter::Usual,
            start: None,
            initial_window: None,
            workload: Workload::Transfer("100kB".parse().unwrap()),
            columns: columns.iter().map(|text| text.parse().unwrap()).collect(),
            flows: 1,
            seeds: 3,
            first_seed: 1,
        }
    }

    #[test]
    fn an_initial_window_is_that_of_all_flows_and_in_the_title() {
        let window = InitialWindow::Packets(40);
        let scenario = scenario(|spec| spec.initial_window = Some(window));
        for cell in 0..scenario.cells.len() {
            let flows = scenario.instance(cell, 1).run.flows;
            assert!(flows.iter().all(|flow| flow.initial_window == Some(window)));
        }
        assert!(scenario.title.ends_with("initial window 40p"), "{}", scenario.title);
    }

    fn scenario(change: impl FnOnce(&mut CompareSpec)) -> Scenario {
        let mut spec = example(&["cubic", "bbr3"]);
        change(&mut spec);
        assert_eq!(spec.check(), Ok(()));
        spec.scenario(None).unwrap()
    }

    fn axes(scenario: &Scenario) -> Vec<(&str, Vec<&str>)> {
        let axes = scenario.axes.iter();
        axes.map(|axis| (axis.key.as_str(), axis.values.iter().map(String::as_str).collect()))
            .collect()
    }

    #[test]
    fn several_values_are_axes_and_multiply() {
        let scenario = scenario(|spec| {
            spec.losses =
                ["0%", "0.1%", "gilbert:mean=1%,burst=5"].map(|l| l.parse().unwrap()).to_vec();
            spec.buffers = ["1bdp", "83p"].map(|b| b.parse().unwrap()).to_vec();
        });
        let expected = [
            ("path.loss", vec!["0%", "0.1%", "gilbert:mean=1%,burst=5"]),
            ("path.buffer", vec!["1bdp", "83p"]),
            ("flow.main.cc", vec!["cubic", "bbr3"]),
        ];
        assert_eq!(axes(&scenario), expected);
        assert_eq!(scenario.cells.len(), 12);
    }

    #[test]
    fn mix_has_equally_many_flows_of_each_member() {
        let scenario = scenario(|spec| {
            spec.columns = ["bbr3+cubic", "cubic+cubic"].map(|c| c.parse().unwrap()).to_vec();
            spec.flows = 2;
        });
        assert_eq!(axes(&scenario), [("flow.main.cc", vec!["bbr3+cubic", "cubic+cubic"])]);
        let of_cell = |cell: usize| {
            let flows = scenario.instance(cell, 1).run.flows;
            flows.iter().map(|flow| flow.cc.to_string()).collect::<Vec<_>>()
        };
        assert_eq!(of_cell(0), ["bbr3", "cubic", "bbr3", "cubic"]);
        assert_eq!(of_cell(1), ["cubic"; 4]);
        assert_eq!(scenario.cells[1].classes[0].ccs, ["cubic"]);
    }

    #[test]
    fn columns_of_different_size_vary_the_number_of_flows_too() {
        let scenario = scenario(|spec| {
            spec.columns = ["cubic", "bbr3+cubic+cubic"].map(|c| c.parse().unwrap()).to_vec();
        });
        assert_eq!(scenario.axes[0].key, "flow.main.cc,flow.main.count");
        let flows = [0, 1].map(|cell| scenario.instance(cell, 1).run.flows.len());
        assert_eq!(flows, [1, 3]);
    }

    #[test]
    fn text_has_a_title_in_words() {
        let scenario = example(&["cubic", "bbr3"]).scenario(None).unwrap();
        assert_message!("title", scenario.title);
    }

    /// Options that each change another part of the scenario.
    const PARTS: [&[(&str, &str)]; 18] = [
        &[],
        &[("rate", "20mbit,1gbit"), ("rtt", "1.5ms,50ms"), ("loss", "0%,gilbert:mean=1%,burst=5")],
        &[("rtt", "10ms,20ms"), ("buffer", "83p,2.5bdp,100kB"), ("loss", "every:100")],
        &[("loss", "0.3%"), ("loss-position", "before"), ("queue", "codel:target=10ms")],
        &[("jitter", "3ms"), ("host-jitter", "none"), ("queue", "fq_codel")],
        &[("cc", "cubic")],
        &[("cc", "cubic,bbr3+cubic+reno,bbr2"), ("flows", "2")],
        &[("cc", "bbr3:loss_floor+cubic,reno+prague"), ("flows", "3"), ("duration", "2.5s")],
        &[("cc", "cubic,bbr3+cubic"), ("duration", "60s"), ("start", "iperf3")],
        &[("cc", "cubic,bbr3"), ("duration", "4s"), ("start", "together"), ("flows", "5")],
        &[("size", "1B"), ("start", "random"), ("seeds", "1"), ("seed", "0")],
        &[("size", "10GB"), ("rate", "10gbit"), ("seed", "123456789")],
        &[("preset", "lte"), ("jitter", "5ms")],
        &[("preset", "lte"), ("rate", "5mbit,30mbit"), ("buffer", "1bdp")],
        &[("preset", "wifi"), ("queue", "pie"), ("loss", "1%"), ("cc", "cubic+bbr3,bbr1")],
        &[("preset", "cable"), ("rtt", "10ms,20ms"), ("loss-position", "before")],
        &[("preset", "satellite-leo"), ("loss", "0%,1%")],
        &[("initial-window", "40p"), ("flows", "2"), ("cc", "cubic+bbr3,reno")],
    ];

    #[test]
    fn built_scenario_is_what_its_text_means() {
        let of_presets = Preset::all().iter().map(|preset| vec![("preset", preset.name)]);
        for options in PARTS.iter().map(|options| options.to_vec()).chain(of_presets) {
            let spec = CompareSpec::of_options(options.clone()).unwrap();
            for sample in [None, Some(TimeDelta::from_millis(10))] {
                let built = spec.scenario(sample).unwrap();
                let read = Scenario::parse("compare", &built.text, &[], &NoFiles).unwrap();
                assert_eq!(format!("{built:#?}"), format!("{read:#?}"), "{options:?}");
            }
        }
    }

    #[test]
    fn values_that_are_listed_twice_and_too_many_combinations_are_rejected() {
        let twice = error(|spec| {
            spec.rates = vec![Rate::from_mbit(20), Rate::from_bits_per_sec(20_000_000)];
        });
        assert_eq!(twice.to_string(), "20mbit is listed twice; name it once");
        let many = error(|spec| {
            spec.rates = (1..=101).map(Rate::from_mbit).collect();
            spec.rtts = (1..=100).map(TimeDelta::from_millis).collect();
        });
        assert_eq!(many, CompareError::TooManyCells(20_200));
    }

    fn error(change: impl FnOnce(&mut CompareSpec)) -> CompareError {
        let mut spec = example(&["cubic", "bbr3+bbr1"]);
        assert_eq!(spec.check(), Ok(()));
        change(&mut spec);
        spec.check().unwrap_err()
    }

    #[test]
    fn contradictions_are_rejected() {
        let path = error(|spec| spec.buffers.push(Buffer::Packets(0)));
        assert_eq!(
            path,
            CompareError::Path(PathSpecError::Buffer { bytes: 0, packet_bytes: 1500 })
        );
        let all = |spec: &mut CompareSpec| {
            spec.losses = vec![LossSpec::Bernoulli("100%".parse().unwrap())];
        };
        assert_eq!(error(all), CompareError::Path(PathSpecError::LosesEverything));
        let every = |spec: &mut CompareSpec| spec.losses = vec![LossSpec::EveryNth(1)];
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
    fn out_of_range_sizes_are_rejected() {
        let column: Column = "bbr3+bbr1".parse().unwrap();
        for flows in [0, 501, u32::MAX] {
            assert_eq!(error(|spec| spec.flows = flows), CompareError::Flows(column.clone()));
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
    fn long_transfers_get_a_hundred_times_the_ideal_time() {
        let mut spec = example(&["cubic"]);
        assert_eq!(spec.end(), MIN_BOUND);
        spec.workload = Workload::Transfer("14.48MB".parse().unwrap());
        // 15 MB on the wire at 2.5 MB/s: 6 s, plus an RTT of 50 ms.
        assert_eq!(spec.end(), TimeDelta::from_secs(605));
        spec.rates.push(Rate::from_mbit(10));
        assert_eq!(spec.end(), TimeDelta::from_secs(1205));
        spec.flows = 2;
        assert_eq!(spec.end(), TimeDelta::from_millis(2_405_100));
        for (seconds, end_ms) in [(30, 32_000), (5, 5_500)] {
            spec.workload = Workload::Duration(TimeDelta::from_secs(seconds));
            assert_eq!(spec.end(), TimeDelta::from_millis(end_ms));
        }
        spec.workload = Workload::Transfer("14.48MB".parse().unwrap());
        // 200 GB at 1 Mbit/s take weeks.
        spec.rates = vec![Rate::from_mbit(1)];
        spec.workload = Workload::Transfer("100GB".parse().unwrap());
        assert!(matches!(spec.check(), Err(CompareError::TooSlow(_))));
    }
}
