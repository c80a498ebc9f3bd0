//! The arguments of `uncork compare`.

use std::num::NonZeroUsize;
use std::path::PathBuf;

use clap::{Args, ValueEnum};
use uncork_cc::InitialWindow;
use uncork_lab::{Column, CompareSpec, Losses, Preset, Start, Workload};
use uncork_path::{Buffer, HostJitter, QueueSpec};
use uncork_units::{ByteCount, Rate, TimeDelta};

use crate::exit;
use crate::values::{Color, Format, Place, count, local_path, presets, seed, threads};

const EXAMPLES: &str = "\
Examples:
  uncork compare
  uncork compare --rate 100mbit --rtt 30ms --loss 0.1% --size 50MB -o report
  uncork compare --cc bbr3+cubic,cubic --flows 2 --duration 30s --loss 0%,0.1%,1%";

/// Without arguments: 10 MB over 20 Mbit/s, 50 ms and 1 % random loss, by CUBIC, BBRv1 and BBRv3.
/// Several values of --rate, --rtt, --loss or --buffer, with commas between them, are combined. Each
/// controller is compared with the first.
#[derive(Args, Debug)]
#[command(before_help = EXAMPLES, after_help = exit::STATUS)]
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
    /// Queue of the bottleneck: 1bdp, 100kB, 83p (packets)
    #[arg(long, default_value = "1bdp", value_name = "SIZE", value_delimiter = ',')]
    #[arg(allow_hyphen_values = true, help_heading = "Path")]
    buffer: Vec<Buffer>,
    /// Discipline of that queue: droptail, codel, fq_codel, cake, pie, dualpi2 or step, with parameters as in
    /// codel:target=10ms,ecn [default: droptail]
    #[arg(long, value_name = "NAME", help_heading = "Path")]
    queue: Option<QueueSpec>,
    /// Maximum random delay of packets to the client, without reordering [default: none]
    #[arg(long, value_name = "TIME", allow_hyphen_values = true, help_heading = "Path")]
    jitter: Option<TimeDelta>,
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
    /// Initial window: 40p (packets), 64kB; paced over half a round trip [default: 10p, in a burst]
    #[arg(long, value_name = "SIZE", allow_hyphen_values = true, help_heading = "Traffic")]
    initial_window: Option<InitialWindow>,
    /// reno, cubic, bbr1, bbr2, bbr3, prague, one by one; or a mix that shares the path: bbr3+cubic.
    /// Options follow a colon: cubic:linux, reno:start=search, reno:start=rapid, cubic:start=search, cubic:start=rapid, bbr3:loss_floor, bbr3:rtt_fair, bbr3:strict_draft
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
    #[arg(short, long, value_name = "DIR", value_parser = local_path(), help_heading = "Output")]
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
            queue: self.queue,
            jitter: self.jitter,
            loss_position: counts("loss_position").then_some(self.loss_position.into()),
            host_jitter: self.host_jitter,
            workload: match self.duration {
                Some(duration) => Workload::Duration(duration),
                None => Workload::Transfer(self.size),
            },
            start: self.start.map(Start::from),
            initial_window: self.initial_window,
            columns: self.cc.clone(),
            flows: self.flows,
            seeds: self.seeds,
            first_seed: self.seed,
        }
    }
}

#[cfg(test)]
mod tests {
    use clap::{ArgMatches, Command};

    use super::*;
    use crate::values::{is_given, parsed, shown};

    /// The arguments of a line that begins with `uncork compare`.
    fn compare(line: &str) -> (CompareArgs, ArgMatches) {
        parsed(line.split_whitespace().skip(2)).unwrap()
    }

    fn command(line: &str) -> String {
        let (args, matches) = compare(line);
        args.spec(|id| is_given(&matches, id)).command()
    }

    fn spec(line: &str) -> CompareSpec {
        let (args, matches) = compare(line);
        args.spec(|id| is_given(&matches, id))
    }

    #[test]
    fn arguments_are_shown_as_in_the_help() {
        assert_eq!(shown::<CompareArgs>("rtt"), "--rtt <TIME>");
        for id in [
            "rate", "buffer", "queue", "jitter", "loss", "duration", "size", "cc", "flows",
            "seeds", "seed",
        ] {
            assert!(shown::<CompareArgs>(id).starts_with(&format!("--{id} <")), "{id}");
        }
    }

    #[test]
    fn help_names_every_controller_and_option() {
        let help = CompareArgs::augment_args(Command::new("compare")).render_help().to_string();
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
    fn options_by_name_are_the_arguments() {
        for line in [
            "uncork compare",
            "uncork compare --preset lte --loss 0%,gilbert:mean=1%,burst=5 --queue cake --jitter 1ms",
            "uncork compare --rate 5mbit,1gbit --buffer 83p --duration 3s --start together --cc bbr3+reno",
        ] {
            let words: Vec<&str> = line.split_whitespace().skip(2).collect();
            let pairs =
                words.chunks_exact(2).map(|pair| (pair[0].trim_start_matches("--"), pair[1]));
            let by_name = CompareSpec::of_options(pairs).unwrap().command();
            assert_eq!(by_name, command(line));
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
        let error = parsed::<CompareArgs>(["--preset", "fiber"]);
        assert!(error.unwrap_err().to_string().contains("'fibre'"));
    }
}
