//! The command line.

use std::ffi::OsString;
use std::num::NonZeroUsize;
use std::path::PathBuf;
use std::str::FromStr;

use clap::builder::{PossibleValue, PossibleValuesParser};
use clap::parser::ValueSource;
use clap::{Arg, ArgMatches, Args, CommandFactory, Parser, Subcommand, ValueEnum};
use clap_complete::Shell;
use uncork_lab::{Column, CompareSpec, Preset, Start, Workload};
use uncork_path::{Buffer, HostJitter, LossPosition, LossSpec};
use uncork_units::{ByteCount, Rate, TimeDelta};

use crate::emu::EmuArgs;
use crate::host::HostArgs;
#[cfg(target_os = "linux")]
use crate::kernel::KernelArgs;
use crate::lab::{LabArgs, quoted};
#[cfg(target_os = "linux")]
use crate::play::PlayArgs;
use crate::policy::PolicyArgs;
use crate::serve::ServeArgs;
#[cfg(target_os = "linux")]
use crate::status::StatusArgs;
#[cfg(target_os = "linux")]
use crate::steer::SteerArgs;

const EXAMPLES: &str = "\
Examples:
  uncork compare --rate 100mbit --loss 0.1% -o report
  uncork lab list
  uncork lab run litespeed-loss -o report";

const COMPARE_EXAMPLES: &str = "\
Examples:
  uncork compare
  uncork compare --rate 100mbit --rtt 30ms --loss 0.1% --size 50MB -o report
  uncork compare --cc bbr3+cubic,cubic --flows 2 --duration 30s --loss 0%,0.1%,1%";

const EXIT_STATUS: &str = "\
Exit status: 0 done, 1 a threshold is missed, 2 wrong usage, 3 not possible on this machine (such as an output \
directory that cannot be written), 5 a bug, 130 interrupted.";

/// Find out whether BBR would help your users, prove it, and ship it
#[derive(Debug, Parser)]
#[command(version = uncork_lab::VERSION, max_term_width = 100)]
#[command(before_help = EXAMPLES, after_help = EXIT_STATUS)]
pub(crate) struct Cli {
    #[command(subcommand)]
    pub(crate) command: Option<Command>,
}

#[derive(Debug, Subcommand)]
pub(crate) enum Command {
    /// Compare controllers on a path: completion time, goodput, delay, retransmissions
    #[command(before_help = COMPARE_EXAMPLES, after_help = EXIT_STATUS)]
    Compare(Box<CompareArgs>),
    /// Run scenarios: files that describe paths, traffic, variations and thresholds
    Lab(LabArgs),
    /// Run a command behind an emulated path, in real time
    #[command(before_help = crate::emu::EXAMPLES, after_help = crate::emu::AFTER)]
    Emu(Box<EmuArgs>),
    Policy(PolicyArgs),
    /// Serve files over HTTP with the congestion control that you choose
    #[command(before_help = crate::serve::EXAMPLES, after_help = crate::serve::AFTER)]
    Serve(Box<ServeArgs>),
    #[cfg(target_os = "linux")]
    Play(PlayArgs),
    Host(HostArgs),
    #[cfg(target_os = "linux")]
    Kernel(KernelArgs),
    #[cfg(target_os = "linux")]
    Steer(SteerArgs),
    #[cfg(target_os = "linux")]
    Status(StatusArgs),
    /// Design and analyse experiments: did it help, for whom? (Python package uncork-experiment)
    #[command(disable_help_flag = true)]
    Experiment {
        /// Arguments of uncork-experiment
        #[arg(trailing_var_arg = true, allow_hyphen_values = true, value_name = "ARGUMENT")]
        arguments: Vec<OsString>,
    },
    /// Learn which controller for which network, from experiments (Python program uncork-learn)
    #[command(disable_help_flag = true)]
    Learn {
        /// Arguments of uncork-learn
        #[arg(trailing_var_arg = true, allow_hyphen_values = true, value_name = "ARGUMENT")]
        arguments: Vec<OsString>,
    },
    /// Print shell completions
    Completions {
        /// Shell
        shell: Shell,
    },
    /// Print a manual page: uncork man | man -l -
    Man {
        /// Command to describe: compare, lab run
        command: Vec<String>,
    },
}

/// Without arguments: 10 MB over 20 Mbit/s, 50 ms and 1 % random loss, by CUBIC, BBRv1 and BBRv3.
/// Several values of --rate, --rtt, --loss or --buffer, with commas between them, are combined. Each
/// controller is compared with the first.
#[derive(Args, Debug)]
pub(crate) struct CompareArgs {
    /// Start from the path of an access network; the options below override it
    #[arg(long, value_name = "NAME", value_parser = presets(), help_heading = "Path")]
    preset: Option<String>,
    /// Rate of the bottleneck, headers included
    #[arg(long, default_value = "20mbit", value_delimiter = ',')]
    #[arg(allow_hyphen_values = true, help_heading = "Path")]
    rate: Vec<Rate>,
    /// Round-trip time of the empty path
    #[arg(long, default_value = "50ms", value_name = "TIME", value_delimiter = ',')]
    #[arg(allow_hyphen_values = true, help_heading = "Path")]
    rtt: Vec<TimeDelta>,
    /// Random loss of data packets: 1%, every:100, in bursts gilbert:mean=1%,burst=5, or as in
    /// tc-netem gemodel:p=1%,r=20%,bad=100%,good=0%
    #[arg(long, default_value = "1%", value_name = "PERCENT", allow_hyphen_values = true)]
    #[arg(help_heading = "Path")]
    loss: Losses,
    /// Where that loss strikes, seen from the bottleneck
    #[arg(long, default_value = "after", value_name = "PLACE", help_heading = "Path")]
    loss_position: Place,
    /// Drop-tail queue of the bottleneck: 1bdp, 100kB, 83p (packets)
    #[arg(long, default_value = "1bdp", value_name = "SIZE", value_delimiter = ',')]
    #[arg(allow_hyphen_values = true, help_heading = "Path")]
    buffer: Vec<Buffer>,
    /// Time that hosts take before they answer a packet: usual, virtual, none, or a maximum, such as 250us
    #[arg(long, default_value = "usual", value_name = "TIME", allow_hyphen_values = true)]
    #[arg(help_heading = "Path")]
    host_jitter: HostJitter,
    /// Bytes per flow
    #[arg(long, default_value = "10MB", allow_hyphen_values = true, conflicts_with = "duration")]
    #[arg(help_heading = "Traffic")]
    size: ByteCount,
    /// Send for this long, without a size limit
    #[arg(long, value_name = "TIME", allow_hyphen_values = true, help_heading = "Traffic")]
    duration: Option<TimeDelta>,
    /// Flows of each controller that share the path
    #[arg(long, default_value = "1", value_name = "N", value_parser = count)]
    #[arg(allow_hyphen_values = true, help_heading = "Traffic")]
    flows: u32,
    /// When flows that share the path start [default: in-turn for mixes with --duration, else random]
    #[arg(long, value_name = "WAY", help_heading = "Traffic")]
    start: Option<StartArg>,
    /// reno, cubic, bbr1, bbr2, bbr3, one by one; or a mix that shares the path: bbr3+cubic.
    /// Options follow a colon: cubic:linux, bbr3:loss_floor, bbr3:rtt_fair, bbr3:strict_draft
    #[arg(long, default_value = "cubic,bbr1,bbr3", value_delimiter = ',')]
    #[arg(allow_hyphen_values = true, help_heading = "Traffic")]
    cc: Vec<Column>,
    /// Runs of each controller, each with its own random losses
    #[arg(long, default_value = "10", value_name = "N", value_parser = count)]
    #[arg(allow_hyphen_values = true, help_heading = "Runs")]
    seeds: u32,
    /// Seed of the first run; equal seeds give equal results
    #[arg(long, default_value = "1", value_name = "N", value_parser = seed)]
    #[arg(allow_hyphen_values = true, help_heading = "Runs")]
    seed: u64,
    /// Threads; as many as there are processors by default
    #[arg(long, value_name = "N", value_parser = threads, allow_hyphen_values = true)]
    #[arg(help_heading = "Runs")]
    pub(crate) jobs: Option<NonZeroUsize>,
    /// What is printed
    #[arg(long, default_value = "human", help_heading = "Output")]
    pub(crate) format: Format,
    /// Directory for the report and its data, as of `uncork lab run`
    #[arg(short, long, value_name = "DIR", help_heading = "Output")]
    pub(crate) output: Option<PathBuf>,
    /// Print the comparison as a scenario for `uncork lab run`, and run nothing
    #[arg(long, help_heading = "Output")]
    pub(crate) scenario: bool,
    /// Print no progress and no notes
    #[arg(short, long, help_heading = "Output")]
    pub(crate) quiet: bool,
    /// When to use colours; auto also honours NO_COLOR
    #[arg(long, default_value = "auto", value_name = "WHEN", help_heading = "Output")]
    pub(crate) color: Color,
}

/// One or several random losses: `0%,1%`, `gilbert:mean=1%,burst=5`.
#[derive(Clone, Debug)]
struct Losses(Vec<LossSpec>);

impl FromStr for Losses {
    type Err = <LossSpec as FromStr>::Err;

    /// The parameters of a loss also have commas between them: `burst=5` is not a separate loss.
    fn from_str(text: &str) -> Result<Self, Self::Err> {
        let mut texts: Vec<String> = Vec::new();
        for part in text.split(',') {
            match texts.last_mut() {
                Some(last) if part.contains('=') && !part.contains(':') => {
                    last.push(',');
                    last.push_str(part);
                }
                _ => texts.push(part.to_owned()),
            }
        }
        texts.iter().map(|text| text.parse()).collect::<Result<_, _>>().map(Self)
    }
}

/// Output formats: text or JSON.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub(crate) enum TextFormat {
    /// Text
    Human,
    /// JSON
    Json,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub(crate) enum Format {
    /// A table
    Human,
    /// The result document
    Json,
    /// The table for a spreadsheet
    Csv,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub(crate) enum Color {
    Auto,
    Always,
    Never,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub(crate) enum Place {
    /// After the link, like a lossy last mile
    After,
    /// Before the queue
    Before,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub(crate) enum StartArg {
    /// iperf3, and by the seed in turn one controller a second ahead
    InTurn,
    /// A program for each controller opens its connections one by one, then sends on all
    Iperf3,
    /// Each flow at a random time, within 100ms or up to 2s of a --duration
    Random,
    /// All at once
    Together,
}

impl From<StartArg> for Start {
    fn from(arg: StartArg) -> Self {
        match arg {
            StartArg::InTurn => Self::InTurn,
            StartArg::Iperf3 => Self::Iperf3,
            StartArg::Random => Self::Random,
            StartArg::Together => Self::Together,
        }
    }
}

impl CompareArgs {
    /// The preset, if given.
    pub(crate) fn preset(&self) -> Option<Preset> {
        self.preset.as_deref().and_then(Preset::find)
    }

    /// The requested comparison. `given` distinguishes options on the command line from defaults,
    /// because defaults do not override a preset.
    pub(crate) fn spec(&self, given: impl Fn(&str) -> bool) -> CompareSpec {
        fn listed<T: Clone>(counts: bool, values: &[T]) -> Vec<T> {
            if counts { values.to_vec() } else { Vec::new() }
        }
        let counts = |id: &str| self.preset.is_none() || given(id);
        CompareSpec {
            preset: self.preset(),
            rates: listed(counts("rate"), &self.rate),
            rtts: listed(counts("rtt"), &self.rtt),
            losses: listed(counts("loss"), &self.loss.0),
            buffers: listed(counts("buffer"), &self.buffer),
            loss_position: counts("loss_position").then_some(match self.loss_position {
                Place::After => LossPosition::After,
                Place::Before => LossPosition::Before,
            }),
            host_jitter: self.host_jitter,
            workload: match self.duration {
                Some(duration) => Workload::Duration(duration),
                None => Workload::Transfer(self.size),
            },
            start: self.start.map(Start::from),
            columns: self.cc.clone(),
            flows: self.flows,
            seeds: self.seeds,
            first_seed: self.seed,
        }
    }

    /// The command that reproduces it, with every value that affects the results.
    pub(crate) fn command(&self, given: impl Fn(&str) -> bool) -> String {
        let Self { flows, seeds, seed, host_jitter, .. } = self;
        let [rate, rtt] = [listed(&self.rate), listed(&self.rtt)];
        let [loss, buffer] = [listed(&self.loss.0), listed(&self.buffer)];
        let place = match self.loss_position {
            Place::After => "after",
            Place::Before => "before",
        };
        let workload = match self.duration {
            Some(duration) => format!("--duration {duration}"),
            None => format!("--size {}", self.size),
        };
        let start = self.start.and_then(|start| start.to_possible_value());
        let start =
            start.map_or_else(String::new, |start| format!(" --start {}", start.get_name()));
        let columns = listed(&self.cc);
        let options = [
            ("rate", format!("--rate {rate}")),
            ("rtt", format!("--rtt {rtt}")),
            ("loss", format!("--loss {loss}")),
            ("loss_position", format!("--loss-position {place}")),
            ("buffer", format!("--buffer {buffer}")),
        ];
        let shown = |(id, _): &(&str, String)| self.preset.is_none() || given(id);
        let preset = self.preset.iter().map(|name| format!("--preset {name}"));
        let path = options.into_iter().filter(shown).map(|(_, option)| option);
        let path: Vec<String> = preset.chain(path).collect();
        let path = path.join(" ");
        format!(
            "uncork compare {path} --host-jitter {host_jitter} {workload}{start} --flows {flows} --cc {columns} --seeds {seeds} \
             --seed {seed}"
        )
    }
}

/// The names of the presets, each with its title in the help.
pub(crate) fn presets() -> PossibleValuesParser {
    let value = |preset: Preset| PossibleValue::new(preset.name).help(preset.title);
    PossibleValuesParser::new(Preset::all().into_iter().map(value))
}

/// Whether the option `id` was on the command line.
pub(crate) fn is_given(matches: &ArgMatches, id: &str) -> bool {
    matches.value_source(id) == Some(ValueSource::CommandLine)
}

/// `0%,1%`
fn listed<T: ToString>(values: &[T]) -> String {
    values.iter().map(T::to_string).collect::<Vec<_>>().join(",")
}

/// The argument `id` of `command` as shown in the help, such as `--rate <RATE>`.
pub(crate) fn shown(command: &str, id: &str) -> String {
    let mut root = Cli::command();
    root.build();
    let mut words = command.split(' ');
    let command = words.try_fold(&root, |command, word| command.find_subcommand(word));
    let mut arguments = command.into_iter().flat_map(clap::Command::get_arguments);
    arguments.find(|argument| argument.get_id() == id).map_or_else(String::new, Arg::to_string)
}

/// The given command line, quoted for a shell.
pub(crate) fn command_line() -> String {
    let words = std::env::args_os().skip(1);
    let words = words.map(|word| quoted(&word.to_string_lossy()));
    ["uncork".to_owned()].into_iter().chain(words).collect::<Vec<_>>().join(" ")
}

/// The requested number of threads, or one per processor.
pub(crate) fn jobs(asked: Option<NonZeroUsize>) -> usize {
    let processors = || std::thread::available_parallelism().ok();
    asked.or_else(processors).map_or(1, NonZeroUsize::get)
}

/// A number that does not fit exceeds every limit, which the limit check reports.
pub(crate) fn count(text: &str) -> Result<u32, &'static str> {
    seed(text).map(|n| u32::try_from(n).unwrap_or(u32::MAX))
}

pub(crate) fn seed(text: &str) -> Result<u64, &'static str> {
    text.parse().map_err(|_| "expected a whole number, such as 10")
}

pub(crate) fn threads(text: &str) -> Result<NonZeroUsize, &'static str> {
    text.parse().map_err(|_| "expected a whole number of at least 1")
}

#[cfg(test)]
mod tests {
    use clap::FromArgMatches;
    use clap::error::ErrorKind;

    use super::*;

    fn compare(line: &str) -> (CompareArgs, ArgMatches) {
        let matches = Cli::command().try_get_matches_from(line.split_whitespace()).unwrap();
        let (_, matches) = matches.subcommand().expect("a command");
        (CompareArgs::from_arg_matches(matches).unwrap(), matches.clone())
    }

    fn command(line: &str) -> String {
        let (args, matches) = compare(line);
        args.command(|id| is_given(&matches, id))
    }

    fn spec(line: &str) -> CompareSpec {
        let (args, matches) = compare(line);
        args.spec(|id| is_given(&matches, id))
    }

    #[test]
    fn definition_is_consistent() {
        Cli::command().debug_assert();
    }

    /// Defaults are texts that are only parsed when the command runs.
    #[test]
    fn every_default_is_a_valid_value() {
        let mut commands = vec![Cli::command()];
        let mut defaults = 0;
        while let Some(command) = commands.pop() {
            commands.extend(command.get_subcommands().cloned());
            defaults += command.get_arguments().flat_map(Arg::get_default_values).count();
            let name = command.get_name().to_owned();
            // Missing arguments are reported only after all defaults have been parsed.
            if let Err(error) = command.try_get_matches_from([&name]) {
                let is_parsed = matches!(
                    error.kind(),
                    ErrorKind::MissingRequiredArgument
                        | ErrorKind::MissingSubcommand
                        | ErrorKind::DisplayHelpOnMissingArgumentOrSubcommand
                );
                assert!(is_parsed, "{name}: {error}");
            }
        }
        assert!(defaults > 40, "{defaults}");
    }

    #[test]
    fn arguments_are_shown_as_in_the_help() {
        assert_eq!(shown("compare", "rtt"), "--rtt <TIME>");
        for id in ["rate", "buffer", "loss", "duration", "size", "cc", "flows", "seeds", "seed"] {
            assert!(shown("compare", id).starts_with(&format!("--{id} <")), "{id}");
        }
    }

    #[test]
    fn help_names_every_controller_and_option() {
        let mut root = Cli::command();
        let compare = root.find_subcommand_mut("compare").expect("a command");
        let help = compare.render_help().to_string();
        for algorithm in uncork_cc::Algorithm::ALL {
            let name = algorithm.name();
            assert!(help.contains(name), "{name}");
            for option in algorithm.options() {
                assert!(help.contains(&format!("{name}:{option}")), "{name}:{option}");
            }
        }
    }

    #[test]
    fn default_is_the_published_case() {
        assert_eq!(
            command("uncork compare"),
            "uncork compare --rate 20mbit --rtt 50ms --loss 1% --loss-position after --buffer 1bdp \
             --host-jitter usual --size 10MB --flows 1 --cc cubic,bbr1,bbr3 --seeds 10 --seed 1"
        );
    }

    #[test]
    fn command_reproduces_itself() {
        let line = "uncork compare --rate 1.5gbit --rtt 7ms --loss 0.25% --loss-position before \
                    --buffer 83p --host-jitter 100us --duration 3s --flows 2 --cc bbr3:strict_draft+reno,bbr1 \
                    --seeds 4 --seed 9";
        let repeated = command(line);
        assert_eq!(repeated, line.split_whitespace().collect::<Vec<_>>().join(" "));
        assert_eq!(command(&repeated), repeated);
        for loss in [
            "0%,1%",
            "gilbert:mean=1%,burst=5,every:100",
            "every:100",
            "gilbert:mean=1%,burst=5",
            "gemodel:p=1%,r=9%,bad=50%,good=0%",
        ] {
            let repeated = command(&format!("uncork compare --loss {loss}"));
            assert!(repeated.contains(&format!("--loss {loss} ")), "{repeated}");
        }
    }

    #[test]
    fn options_override_a_preset_but_defaults_do_not() {
        let lte = Preset::find("lte").and_then(|preset| preset.path()).expect("a path");
        assert_eq!(spec("uncork compare --preset lte").paths(), std::slice::from_ref(&lte));
        // Each of these is the default of its option.
        let line = "uncork compare --preset lte --rate 20mbit --loss 1%";
        let [path] = spec(line).paths().try_into().unwrap();
        let uncork_path::PathSpec { link, rtt, loss, .. } = path;
        assert_eq!((link.nominal_rate(), rtt), (Rate::from_mbit(20), lte.rtt));
        assert_eq!((loss.mean(), link.buffer), (0.01, lte.link.buffer));
        let path = "uncork compare --preset lte --rate 20mbit --loss 1% --host-jitter";
        assert!(command(line).starts_with(path));
        assert_eq!(command(&command(line)), command(line));
    }

    #[test]
    fn unknown_preset_suggests_the_nearest() {
        let error = Cli::command().try_get_matches_from(["uncork", "compare", "--preset", "fiber"]);
        assert!(error.unwrap_err().to_string().contains("'fibre'"));
    }
}
