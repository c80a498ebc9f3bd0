//! The arguments of `uncork lab`.

use std::num::NonZeroUsize;
use std::path::PathBuf;

use clap::{Args, Subcommand, ValueEnum};
use uncork_cc::CcSpec;
use uncork_internet::Group;
use uncork_lab::{CompareSpec, Engine, LogFormat, Shard};
use uncork_units::Probability;

use crate::values::{Color, Format, Setting, count, presets, quoted, seed, threads};

const EXAMPLES: &str = "\
Examples:
  uncork lab list
  uncork lab run litespeed-loss -o report
  uncork lab show litespeed-loss > mine.toml";

const RUN_EXAMPLES: &str = "\
Examples:
  uncork lab run litespeed-loss
  uncork lab run litespeed-loss --set path.rtt=25ms --seeds 5 -o report
  uncork lab run mine.toml --on netns --seeds 1";

const AGREE_EXAMPLES: &str = "\
Examples:
  uncork lab agree mine.toml
  uncork lab agree mine.toml --seeds 10 --tolerance 5% -o agreement
  uncork lab agree litespeed-loss --seeds 6 --set 'matrix.\"flow.download.cc\"=[\"cubic\", \"bbr1\"]'";

const MERGE_EXAMPLES: &str = "\
Examples:
  uncork lab merge runs/1 runs/2
  uncork lab merge runs/* -o report
  uncork lab merge runs/* --format csv";

const INTERNET_EXAMPLES: &str = "\
Examples:
  uncork lab internet records --networks 200 --systems 10 --connections 20000 -o records
  uncork lab internet records --policy learned/current/policy.toml --from 2026-11-03 -o records
  uncork lab internet oracle --networks 200 --systems 10 -o oracle.csv
  uncork lab internet oracle --networks 200 --systems 10 --only AS64512:0 --draw 1 -o again.csv
  uncork lab internet lines --networks 200 --systems 10 -o lines.csv";

const FROM_RECORDS_EXAMPLES: &str = "\
Examples:
  uncork lab from-records records/ -o mine.toml
  uncork lab from-records records.jsonl --cc cubic --cc bbr3 --cc bbr3:loss_floor -o mine.toml
  uncork lab from-records records/ --cc cubic:linux --cc bbr1 --only 203.0.113.0/24 -o network.toml
  uncork lab run mine.toml -o report";

const FROM_LOG_EXAMPLES: &str = "\
Examples:
  ss -tinHO state established '( sport = :443 )' | uncork lab from-log ss -
  uncork lab from-log iperf3 iperf.json
  uncork lab from-log nginx access.log";

const EXIT_STATUS: &str = "\
Exit status: 0 done, 1 a threshold of a scenario is missed, 2 wrong usage or a wrong scenario, 3 the \
environment cannot do it (such as an output directory that cannot be written), 5 a bug, 130 \
interrupted; what was finished by then is kept, if there is an output directory.";

#[derive(Args, Debug)]
#[command(before_help = EXAMPLES, after_help = EXIT_STATUS)]
pub(crate) struct LabArgs {
    #[command(subcommand)]
    pub(crate) command: LabCommand,
}

#[derive(Debug, Subcommand)]
pub(crate) enum LabCommand {
    /// List the built-in scenarios
    List,
    /// Print the file of a built-in scenario: copy it and edit it
    Show {
        /// Its name, as `uncork lab list` has it
        name: String,
    },
    /// List the presets, paths of access networks; or the values of one, with their sources
    Presets {
        /// Its name, as `uncork lab presets` lists it
        #[arg(value_parser = presets(), hide_possible_values = true)]
        name: Option<String>,
    },
    /// Run scenarios: every cell of their matrix with every seed
    #[command(before_help = RUN_EXAMPLES, after_help = EXIT_STATUS)]
    Run(Box<RunArgs>),
    /// Compare the simulator with this kernel (Linux, root), or with QUIC endpoints, cell by cell
    #[command(before_help = AGREE_EXAMPLES, after_help = EXIT_STATUS)]
    Agree(Box<AgreeArgs>),
    /// Make a scenario of the records of a server: the paths of its clients, by autonomous system
    #[command(before_help = FROM_RECORDS_EXAMPLES, after_help = EXIT_STATUS)]
    FromRecords(FromRecordsArgs),
    /// Print the figures of paths in a log: round-trip time, rate, retransmissions, buffer
    #[command(before_help = FROM_LOG_EXAMPLES, after_help = EXIT_STATUS)]
    FromLog(FromLogArgs),
    /// A simulated Internet: networks, users and days; the records of a server in it under a policy, and
    /// what each controller is truly worth there
    #[command(before_help = INTERNET_EXAMPLES, after_help = EXIT_STATUS)]
    Internet(InternetArgs),
    /// Put the runs of shards together
    #[command(before_help = MERGE_EXAMPLES, after_help = EXIT_STATUS)]
    Merge(MergeArgs),
}

#[derive(Args, Debug)]
pub(crate) struct RunArgs {
    /// Built-in scenarios, and files, which end in .toml
    #[arg(value_name = "NAME|FILE", required = true)]
    pub(crate) scenarios: Vec<String>,
    /// What plays the runs: sim simulates them; quic-sim has real QUIC endpoints play them in virtual
    /// time; netns lets this kernel's TCP play them in real time, between network namespaces (Linux,
    /// root); bpf does, too, with the controllers that `uncork kernel load` has loaded
    #[arg(long, value_name = "ENGINE", default_value = "sim", help_heading = "Runs")]
    pub(crate) on: Engine,
    #[command(flatten)]
    pub(crate) runs: RunsArgs,
    /// Run only the I-th of N parts, to be merged later
    #[arg(long, value_name = "I/N", requires = "output", help_heading = "Runs")]
    #[arg(allow_hyphen_values = true)]
    pub(crate) shard: Option<Shard>,
    /// Print how many cells, runs, flows and packets there are and how long they take, and run nothing
    #[arg(long, help_heading = "Runs")]
    pub(crate) dry_run: bool,
    #[command(flatten)]
    pub(crate) output: OutputArgs,
}

/// The default of `--tolerance`.
const USUAL_TOLERANCE: Probability = Probability::of(10, 100);

/// The runs of any scenario.
#[derive(Args, Clone, Debug)]
pub(crate) struct RunsArgs {
    /// Override a value of the scenarios, such as path.loss=2%
    #[arg(long, value_name = "KEY=VALUE", help_heading = "Runs")]
    pub(crate) set: Vec<Setting>,
    /// Runs of each cell, instead of what the scenarios say
    #[arg(long, value_name = "N", value_parser = seeds, allow_hyphen_values = true)]
    #[arg(help_heading = "Runs")]
    pub(crate) seeds: Option<u32>,
    /// Seed of the first run of each cell; the others follow it
    #[arg(long, value_name = "N", value_parser = first_seed, allow_hyphen_values = true)]
    #[arg(help_heading = "Runs")]
    pub(crate) seed: Option<u64>,
    /// Sample the time series of this seed instead of the first; may be given several times
    #[arg(long, value_name = "N", help_heading = "Runs")]
    pub(crate) series_seed: Vec<u64>,
    /// Runs at a time; by default as many as there are processors, with netns and bpf one
    #[arg(long, value_name = "N", value_parser = threads, allow_hyphen_values = true)]
    #[arg(help_heading = "Runs")]
    pub(crate) jobs: Option<NonZeroUsize>,
    /// Run only what the output directory lacks
    #[arg(long, requires = "output", help_heading = "Runs")]
    pub(crate) resume: bool,
}

/// What can be held against the simulator.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub(crate) enum Other {
    Netns,
    QuicSim,
    Bpf,
}

impl Other {
    pub(crate) fn engine(self) -> Engine {
        match self {
            Self::Netns => Engine::Netns,
            Self::QuicSim => Engine::QuicSim,
            Self::Bpf => Engine::Bpf,
        }
    }
}

#[derive(Args, Debug)]
pub(crate) struct AgreeArgs {
    /// A built-in scenario, or a file, which ends in .toml
    #[arg(value_name = "NAME|FILE")]
    pub(crate) scenario: String,
    /// What is held against the simulator: this kernel's TCP, with its own controllers or the
    /// loaded ones (bpf), or real QUIC endpoints in virtual time
    #[arg(long, value_name = "ENGINE", default_value = "netns", help_heading = "Runs")]
    pub(crate) on: Other,
    /// How far its results may be from the simulator's
    #[arg(long, value_name = "SHARE", default_value = "10%", help_heading = "Runs")]
    pub(crate) tolerance: Probability,
    #[command(flatten)]
    pub(crate) runs: RunsArgs,
    #[command(flatten)]
    pub(crate) output: OutputArgs,
}

#[derive(Args, Debug)]
pub(crate) struct FromRecordsArgs {
    /// Files of records, Parquet or JSON Lines, or directories of them
    #[arg(value_name = "RECORDS", required = true)]
    pub(crate) records: Vec<PathBuf>,
    /// A controller to try; may be given several times [default: cubic and bbr3]
    #[arg(long, value_name = "CC", default_values = ["cubic", "bbr3"], hide_default_value = true)]
    pub(crate) cc: Vec<CcSpec>,
    /// Clients of each system with each controller
    #[arg(long, value_name = "N", value_parser = clients, default_value = "20")]
    #[arg(allow_hyphen_values = true)]
    pub(crate) clients: u32,
    /// Give networks with at least N responses of 3 MB or more populations of their own, in addition to their
    /// systems' [default: systems alone]
    #[arg(long, value_name = "N", value_parser = count, allow_hyphen_values = true)]
    pub(crate) by_network: Option<u32>,
    /// The clients of this system or network alone, such as AS64500 or 203.0.113.0/24 [default: all]
    #[arg(long, value_name = "AS|NETWORK", conflicts_with = "by_network")]
    pub(crate) only: Option<String>,
    /// File for the scenario; by default it is printed
    #[arg(short, long, value_name = "FILE", help_heading = "Output")]
    pub(crate) output: Option<PathBuf>,
}

/// The program that wrote a log.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub(crate) enum LogKind {
    Ss,
    Iperf3,
    Nginx,
    Cmcd,
}

impl LogKind {
    pub(crate) fn format(self) -> LogFormat {
        match self {
            Self::Ss => LogFormat::Ss,
            Self::Iperf3 => LogFormat::Iperf3,
            Self::Nginx => LogFormat::Nginx,
            Self::Cmcd => LogFormat::Cmcd,
        }
    }
}

#[derive(Args, Debug)]
pub(crate) struct FromLogArgs {
    /// What wrote it: ss -tin, iperf3 -J, nginx, or players (CMCD)
    #[arg(value_name = "FORMAT")]
    pub(crate) kind: LogKind,
    /// The log; - is standard input
    #[arg(value_name = "FILE")]
    pub(crate) file: PathBuf,
}

#[derive(Args, Debug)]
pub(crate) struct InternetArgs {
    #[command(subcommand)]
    pub(crate) command: InternetCommand,
}

#[derive(Debug, Subcommand)]
pub(crate) enum InternetCommand {
    /// Simulate connections under a policy, and write their records as `uncork serve` does
    #[command(before_help = INTERNET_EXAMPLES, after_help = EXIT_STATUS)]
    Records(RecordsArgs),
    /// Simulate both controllers in all groups of networks, and write what they are worth as CSV
    #[command(before_help = INTERNET_EXAMPLES, after_help = EXIT_STATUS)]
    Oracle(OracleArgs),
    /// Write the lines of users as CSV: rate, round-trip time, loss, buffer and policer, which records only
    /// show in part
    #[command(before_help = INTERNET_EXAMPLES, after_help = EXIT_STATUS)]
    Lines(LinesArgs),
}

/// Which world.
#[derive(Args, Clone, Copy, Debug)]
pub(crate) struct WorldArgs {
    /// Seed of the world
    #[arg(long, value_name = "N", value_parser = seed, default_value = "1", help_heading = "World")]
    #[arg(allow_hyphen_values = true)]
    pub(crate) seed: u64,
    /// Client networks
    #[arg(long, value_name = "N", value_parser = count, default_value = "20000")]
    #[arg(allow_hyphen_values = true, help_heading = "World")]
    pub(crate) networks: u32,
    /// Autonomous systems
    #[arg(long, value_name = "N", value_parser = count, default_value = "300")]
    #[arg(allow_hyphen_values = true, help_heading = "World")]
    pub(crate) systems: u32,
}

#[derive(Args, Debug)]
pub(crate) struct RecordsArgs {
    #[command(flatten)]
    pub(crate) world: WorldArgs,
    /// The active policy, with its table; by default a tenth of the users take part in an experiment with
    /// cubic and bbr3
    #[arg(long, value_name = "FILE", help_heading = "Traffic")]
    pub(crate) policy: Option<PathBuf>,
    /// The first day
    #[arg(long, value_name = "DAY", default_value = "2026-11-02", help_heading = "Traffic")]
    pub(crate) from: String,
    /// Days
    #[arg(long, value_name = "N", value_parser = days, default_value = "1")]
    #[arg(allow_hyphen_values = true, help_heading = "Traffic")]
    pub(crate) days: u32,
    /// Connections of a day, about
    #[arg(long, value_name = "N", value_parser = connections, default_value = "200000")]
    #[arg(allow_hyphen_values = true, help_heading = "Traffic")]
    pub(crate) connections: u64,
    /// The part that is simulated of the connections that no experiment decides on
    #[arg(long, value_name = "SHARE", default_value = "5%", help_heading = "Traffic")]
    pub(crate) others: Probability,
    /// Connections simulated at a time; by default as many as there are processors
    #[arg(long, value_name = "N", value_parser = threads, allow_hyphen_values = true)]
    pub(crate) jobs: Option<NonZeroUsize>,
    /// Directory for the records, a Parquet file for each hour
    #[arg(short, long, value_name = "DIR", help_heading = "Output")]
    pub(crate) output: PathBuf,
    /// Do not say what it cost
    #[arg(short, long, help_heading = "Output")]
    pub(crate) quiet: bool,
}

#[derive(Args, Debug)]
pub(crate) struct OracleArgs {
    #[command(flatten)]
    pub(crate) world: WorldArgs,
    /// The controller that clients have
    #[arg(long, value_name = "CC", default_value = "cubic", help_heading = "Comparison")]
    pub(crate) control: CcSpec,
    /// The controller that they might have
    #[arg(long, value_name = "CC", default_value = "bbr3", help_heading = "Comparison")]
    pub(crate) treated: CcSpec,
    /// Most connections with each controller for a group of networks, and as many with small objects; on
    /// average: more where there is more traffic, fewer where the lift is known well enough
    #[arg(long, value_name = "N", value_parser = sample, default_value = "1000")]
    #[arg(allow_hyphen_values = true, help_heading = "Comparison")]
    pub(crate) connections: u32,
    /// Only these groups, each with at most N connections: an AS and a profile, as in the file
    #[arg(long, value_name = "AS:PROFILE", value_delimiter = ',', help_heading = "Comparison")]
    pub(crate) only: Vec<Group>,
    /// Which users are drawn; another number draws others
    #[arg(long, value_name = "N", default_value = "0", allow_hyphen_values = true)]
    #[arg(help_heading = "Comparison")]
    pub(crate) draw: u16,
    /// Connections simulated at a time; by default as many as there are processors
    #[arg(long, value_name = "N", value_parser = threads, allow_hyphen_values = true)]
    pub(crate) jobs: Option<NonZeroUsize>,
    /// The file
    #[arg(short, long, value_name = "FILE", help_heading = "Output")]
    pub(crate) output: PathBuf,
}

#[derive(Args, Debug)]
pub(crate) struct LinesArgs {
    #[command(flatten)]
    pub(crate) world: WorldArgs,
    /// Lines, drawn by their traffic
    #[arg(long, value_name = "N", value_parser = sample, default_value = "20000")]
    #[arg(allow_hyphen_values = true, help_heading = "Lines")]
    pub(crate) count: u32,
    /// The file
    #[arg(short, long, value_name = "FILE", help_heading = "Output")]
    pub(crate) output: PathBuf,
}

#[derive(Args, Debug)]
pub(crate) struct MergeArgs {
    /// Output directories of all shards
    #[arg(value_name = "DIR", required = true)]
    pub(crate) directories: Vec<PathBuf>,
    #[command(flatten)]
    pub(crate) output: OutputArgs,
}

#[derive(Args, Clone, Debug)]
pub(crate) struct OutputArgs {
    /// What is printed
    #[arg(long, default_value = "human", help_heading = "Output")]
    pub(crate) format: Format,
    /// Directory for report.html, summary.json, cells.csv, flows.parquet, objects.parquet,
    /// series.parquet and scenario.toml, and for each run as it ends; of several scenarios each has
    /// its own within it
    #[arg(short, long, value_name = "DIR", help_heading = "Output")]
    pub(crate) output: Option<PathBuf>,
    /// Print no progress and no notes
    #[arg(short, long, help_heading = "Output")]
    pub(crate) quiet: bool,
    /// When to use colours; auto also honours NO_COLOR
    #[arg(long, default_value = "auto", value_name = "WHEN", help_heading = "Output")]
    pub(crate) color: Color,
}

impl RunArgs {
    /// The values that replace those of the scenarios.
    pub(crate) fn settings(&self) -> Vec<(String, String)> {
        let RunsArgs { set, seeds, seed, series_seed, .. } = &self.runs;
        let given = set.iter().map(Setting::pair);
        let seeds = seeds.map(|seeds| ("run.seeds".to_owned(), seeds.to_string()));
        let first = seed.map(|seed| ("run.first_seed".to_owned(), seed.to_string()));
        let series = (!series_seed.is_empty())
            .then(|| ("run.series".to_owned(), format!("{{ seeds = {series_seed:?} }}")));
        given.chain(seeds).chain(first).chain(series).collect()
    }

    /// The command that runs `scenario` again, with everything that affects the results.
    pub(crate) fn command(&self, scenario: &str) -> String {
        self.words(&[scenario.to_owned()]).join(" ")
    }

    /// The command that continues with the runs missing in the output directory.
    pub(crate) fn again(&self) -> String {
        let mut words = self.words(&self.scenarios);
        words.extend(self.shard.map(|shard| format!("--shard {shard}")));
        let output = self.output.output.iter();
        words.extend(output.map(|path| format!("--resume -o {}", quoted(&path.to_string_lossy()))));
        words.join(" ")
    }

    fn words(&self, scenarios: &[String]) -> Vec<String> {
        let scenarios: Vec<&str> = scenarios.iter().map(String::as_str).collect();
        let mut words = vec![run_command(&scenarios)];
        words.extend((self.on != Engine::Sim).then(|| format!("--on {}", self.on)));
        words.extend(self.runs.words());
        words
    }
}

impl RunsArgs {
    /// The arguments that affect results, as words of a command.
    fn words(&self) -> impl Iterator<Item = String> {
        let set = |set: &Setting| format!("--set {}", quoted(&set.to_string()));
        let seeds = self.seeds.map(|seeds| format!("--seeds {seeds}"));
        let seed = self.seed.map(|seed| format!("--seed {seed}"));
        let series = self.series_seed.iter().map(|seed| format!("--series-seed {seed}"));
        self.set.iter().map(set).chain(seeds).chain(seed).chain(series)
    }
}

impl AgreeArgs {
    /// The arguments of one side. Its runs are stored in a directory with its name.
    pub(crate) fn side(&self, on: Engine) -> RunArgs {
        let output = self.output.output.as_ref().map(|place| place.join(on.name()));
        RunArgs {
            scenarios: vec![self.scenario.clone()],
            on,
            runs: self.runs.clone(),
            shard: None,
            dry_run: false,
            output: OutputArgs { output, ..self.output.clone() },
        }
    }

    /// The command that repeats the comparison.
    pub(crate) fn command(&self) -> String {
        let mut words = vec![format!("uncork lab agree {}", quoted(&self.scenario))];
        let other = (self.on != Other::Netns).then(|| format!("--on {}", self.on.engine()));
        words.extend(other);
        let usual = self.tolerance == USUAL_TOLERANCE;
        words.extend(
            (!usual).then(|| format!("--tolerance {}", quoted(&self.tolerance.to_string()))),
        );
        words.extend(self.runs.words());
        words.join(" ")
    }

    /// The command that continues with the runs missing in the output directory.
    pub(crate) fn again(&self) -> String {
        let output = self.output.output.iter();
        let resume = output.map(|path| format!("--resume -o {}", quoted(&path.to_string_lossy())));
        std::iter::once(self.command()).chain(resume).collect::<Vec<_>>().join(" ")
    }
}

/// The command that runs `scenarios` unmodified.
pub(crate) fn run_command(scenarios: &[&str]) -> String {
    let names = scenarios.iter().map(|scenario| quoted(scenario));
    std::iter::once("uncork lab run".to_owned()).chain(names).collect::<Vec<_>>().join(" ")
}

/// A first seed that leaves room for the following ones and fits in TOML.
fn first_seed(text: &str) -> Result<u64, String> {
    let most = i64::MAX as u64 - u64::from(CompareSpec::MAX_SEEDS);
    match seed(text) {
        Ok(seed) if seed <= most => Ok(seed),
        _ => Err(format!("expected a whole number from 0 to {most}")),
    }
}

/// Days of a simulated Internet.
fn days(text: &str) -> Result<u32, &'static str> {
    within(count(text)?, 1, 3_650).ok_or("expected 1 to 3650")
}

/// Connections of a day.
fn connections(text: &str) -> Result<u64, &'static str> {
    within(seed(text)?, 1, 1_000_000_000).ok_or("expected 1 to 1000000000")
}

/// Connections that make an estimate: twenty parts of two at least.
fn sample(text: &str) -> Result<u32, &'static str> {
    within(count(text)?, 40, 1_000_000).ok_or("expected 40 to 1000000")
}

/// Clients of a system.
fn clients(text: &str) -> Result<u32, &'static str> {
    within(count(text)?, 1, 5_000).ok_or("expected 1 to 5000")
}

fn within<T: Copy + PartialOrd>(value: T, least: T, most: T) -> Option<T> {
    (least <= value && value <= most).then_some(value)
}

fn seeds(text: &str) -> Result<u32, String> {
    let seeds = count(text)?;
    let most = CompareSpec::MAX_SEEDS;
    if (1..=most).contains(&seeds) { Ok(seeds) } else { Err(format!("expected 1 to {most}")) }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::values::parsed;

    #[test]
    fn command_repeats_everything_that_affects_results() {
        let words = [
            "it's mine.toml",
            "--set",
            "path.loss = 2%",
            "--set",
            "matrix.\"path.rtt\"=[\"1ms\"]",
            "--seeds",
            "3",
            "--seed",
            "9",
            "--jobs",
            "2",
            "--shard",
            "1/2",
            "-o",
            "out",
        ];
        let (args, _) = parsed::<RunArgs>(words).unwrap();
        let command = args.command(&args.scenarios[0]);
        assert_eq!(
            command,
            "uncork lab run 'it'\\''s mine.toml' --set path.loss=2% \
             --set 'matrix.\"path.rtt\"=[\"1ms\"]' --seeds 3 --seed 9"
        );
        assert_eq!(args.again(), format!("{command} --shard 1/2 --resume -o out"));
        let settings = args.settings();
        assert_eq!(settings[0], ("path.loss".to_owned(), "2%".to_owned()));
        assert_eq!(settings[2], ("run.seeds".to_owned(), "3".to_owned()));
        assert_eq!(settings[3], ("run.first_seed".to_owned(), "9".to_owned()));
    }
}
