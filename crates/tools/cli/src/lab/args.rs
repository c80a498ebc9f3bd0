//! The arguments of `uncork lab`.

use std::num::NonZeroUsize;
use std::path::PathBuf;

use clap::{Args, Subcommand, ValueEnum};
use uncork_lab::{AutoShardError, CompareSpec, Engine, LogFormat, Shard, ShardChoice};
use uncork_units::Probability;

use crate::exit;
use crate::values::{Color, Format, Setting, count, presets, quoted, seed, threads};

const EXAMPLES: &str = "\
Examples:
  uncork lab list
  uncork lab run litespeed-loss -o report
  uncork lab show litespeed-loss > mine.toml";

const LIST_EXAMPLES: &str = "\
Example:
  uncork lab list";

const SHOW_EXAMPLES: &str = "\
Example:
  uncork lab show litespeed-loss > mine.toml";

const PRESETS_EXAMPLES: &str = "\
Examples:
  uncork lab presets
  uncork lab presets lte";

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
  uncork lab merge runs/* -o report
  uncork lab merge s3://results/sweep/runs -o report
  uncork lab merge runs/* --format csv";

const FROM_LOG_EXAMPLES: &str = "\
Examples:
  ss -tinHO state established '( sport = :443 )' | uncork lab from-log ss -
  uncork lab from-log iperf3 iperf.json
  uncork lab from-log nginx access.log";

#[derive(Args, Debug)]
#[command(before_help = EXAMPLES, after_help = exit::LAB_STATUS)]
pub(crate) struct LabArgs {
    #[command(subcommand)]
    pub(crate) command: LabCommand,
}

#[derive(Debug, Subcommand)]
pub(crate) enum LabCommand {
    /// List the built-in scenarios
    #[command(before_help = LIST_EXAMPLES)]
    List,
    /// Print the file of a built-in scenario: copy it and edit it
    #[command(before_help = SHOW_EXAMPLES)]
    Show {
        /// Its name, as `uncork lab list` has it
        name: String,
    },
    /// List the presets, paths of access networks; or the values of one, with their sources
    #[command(before_help = PRESETS_EXAMPLES)]
    Presets {
        /// Its name, as `uncork lab presets` lists it
        #[arg(value_parser = presets(), hide_possible_values = true)]
        name: Option<String>,
    },
    /// Run scenarios: every cell of their matrix with every seed
    #[command(before_help = RUN_EXAMPLES, after_help = exit::LAB_STATUS)]
    Run(Box<RunArgs>),
    /// Compare the simulator with this kernel (Linux, root), or with QUIC endpoints, cell by cell
    #[command(before_help = AGREE_EXAMPLES, after_help = exit::LAB_STATUS)]
    Agree(Box<AgreeArgs>),
    #[cfg(feature = "full")]
    #[command(flatten)]
    Full(crate::full::lab::LabCommand),
    /// Print the figures of paths in a log: round-trip time, rate, retransmissions, buffer
    #[command(before_help = FROM_LOG_EXAMPLES, after_help = exit::LAB_STATUS)]
    FromLog(FromLogArgs),
    /// Put the runs of shards together
    #[command(before_help = MERGE_EXAMPLES, after_help = exit::LAB_STATUS)]
    Merge(MergeArgs),
}

#[derive(Args, Clone, Debug)]
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
    /// Run only the I-th of N parts, to be merged later. auto: the part of this task of an array (Slurm, AWS
    /// Batch, Google Batch); auto/N: likewise of N tasks (Kubernetes). The directory is then DIR/I
    #[arg(long, value_name = "I/N", requires = "output", help_heading = "Runs")]
    #[arg(allow_hyphen_values = true)]
    pub(crate) shard: Option<ShardChoice>,
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
pub(crate) struct MergeArgs {
    /// Output directories of all shards, or a directory or store prefix that contains them
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
    /// its own within it. Or a prefix of an object store: s3://, gs:// or az://BUCKET/PREFIX
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

    /// With the shard of this task, by the variables of the environment. It has a directory of its own.
    pub(crate) fn resolved(
        &self,
        get: impl Fn(&str) -> Option<String>,
    ) -> Result<Self, AutoShardError> {
        let Some(choice @ ShardChoice::Auto(_)) = self.shard else { return Ok(self.clone()) };
        let shard = choice.resolve(get)?;
        let output =
            self.output.output.as_ref().map(|place| place.join(shard.number().to_string()));
        Ok(Self {
            shard: Some(ShardChoice::Of(shard)),
            output: OutputArgs { output, ..self.output.clone() },
            ..self.clone()
        })
    }

    /// The part to run.
    pub(crate) fn shard(&self) -> Shard {
        match self.shard {
            Some(ShardChoice::Of(shard)) => shard,
            _ => Shard::WHOLE,
        }
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
        let (auto, _) = parsed::<RunArgs>(["a.toml", "--shard", "auto/4", "-o", "out"]).unwrap();
        let task = |name: &str| (name == "JOB_COMPLETION_INDEX").then(|| "2".to_owned());
        let again = auto.resolved(task).unwrap().again();
        assert_eq!(again, "uncork lab run a.toml --shard 3/4 --resume -o out/3");
        let settings = args.settings();
        assert_eq!(settings[0], ("path.loss".to_owned(), "2%".to_owned()));
        assert_eq!(settings[2], ("run.seeds".to_owned(), "3".to_owned()));
        assert_eq!(settings[3], ("run.first_seed".to_owned(), "9".to_owned()));
    }
}
