//! The arguments of `uncork emu`.

use std::ffi::OsString;
use std::path::PathBuf;
use std::str::FromStr;

use clap::parser::ValueSource;
use clap::{ArgMatches, Args, ValueEnum};
use uncork_path::{
    Buffer, JitterDistribution, JitterSpec, LinkSpec, LossPosition, LossSpec, PathSpec,
    PolicerSpec, QueueSpec,
};
use uncork_units::{Rate, TimeDelta};

use crate::args::{Color, Place, count, seed, shown};
use crate::failure::Failure;
use crate::lab::Setting;

pub(super) const EXAMPLES: &str = "\
Examples:
  uncork emu --rate 20mbit --delay 25ms --loss 1% --server 'iperf3 -s -1' -- iperf3 -R -c 198.18.0.1
  uncork emu --rate 8mbit --rtt 40ms --queue fq_codel -- bash
  uncork emu --up mine.toml";

pub(super) const AFTER: &str = "\
COMMAND runs on the near side of the path, where clients are, in a network namespace of its own: \
198.19.0.1, 2001:2:0:1::1. Its servers run on the far side, at 198.18.0.1, 2001:2::1: what --server \
starts, or, of a path that --up keeps, what is started there. --rate, --loss and so on are \
on the way from far to near. Nothing leads out of the two namespaces, and the network of the machine is \
not touched. The addresses are in the environment of both commands: UNCORK_NEAR, UNCORK_NEAR6, UNCORK_FAR, \
UNCORK_FAR6.

Exit status: that of COMMAND, 128 and the signal if one ended it, 127 if it cannot be started; else 0 done, \
2 wrong usage, 3 the environment cannot do it (such as no right to make network namespaces), 5 a bug.";

/// What is emulated and what runs there.
#[derive(Args, Debug)]
pub(crate) struct EmuArgs {
    /// Rate of the bottleneck towards COMMAND, IP headers included
    #[arg(long, default_value = "20mbit", allow_hyphen_values = true, help_heading = "Path")]
    rate: Rate,
    /// Round-trip time of the empty path
    #[arg(long, default_value = "50ms", value_name = "TIME", allow_hyphen_values = true)]
    #[arg(help_heading = "Path")]
    rtt: TimeDelta,
    /// Half of the round-trip time: the delay in each direction
    #[arg(long, value_name = "TIME", allow_hyphen_values = true, conflicts_with = "rtt")]
    #[arg(help_heading = "Path")]
    pub(super) delay: Option<TimeDelta>,
    /// Random loss: 1%, every:100, in bursts gilbert:mean=1%,burst=5
    #[arg(long, default_value = "0%", value_name = "PERCENT", allow_hyphen_values = true)]
    #[arg(help_heading = "Path")]
    loss: LossSpec,
    /// Where that loss strikes, seen from the bottleneck
    #[arg(long, default_value = "after", value_name = "PLACE", help_heading = "Path")]
    loss_position: Place,
    /// Queue of the bottleneck: droptail, codel, fq_codel, cake, pie, dualpi2, with parameters behind a
    /// colon: codel:target=10ms,ecn; droptail:1bdp also says how much it holds
    #[arg(long, default_value = "droptail", allow_hyphen_values = true, help_heading = "Path")]
    queue: QueueArg,
    /// What the queue holds: 1bdp (default), 100kB, 83p (packets)
    #[arg(long, value_name = "SIZE", allow_hyphen_values = true, help_heading = "Path")]
    buffer: Option<Buffer>,
    /// Drop what exceeds a rate and a burst: 5mbit:50kB
    #[arg(long, value_name = "RATE:BURST", allow_hyphen_values = true, help_heading = "Path")]
    policer: Option<PolicerSpec>,
    /// Delay each packet by up to so much more
    #[arg(long, value_name = "TIME", allow_hyphen_values = true, help_heading = "Path")]
    jitter: Option<TimeDelta>,
    /// Let packets overtake each other by jitter
    #[arg(long, help_heading = "Path")]
    reorder: bool,
    /// Hold what COMMAND sends for the next of turns of this length
    #[arg(long, value_name = "TIME", allow_hyphen_values = true, help_heading = "Path")]
    aggregation: Option<TimeDelta>,
    /// Rate of a bottleneck for what COMMAND sends; none by default
    #[arg(long, value_name = "RATE", allow_hyphen_values = true, help_heading = "Path")]
    uplink: Option<Rate>,
    /// Its queue
    #[arg(long, default_value = "droptail:100p", value_name = "QUEUE", requires = "uplink")]
    #[arg(allow_hyphen_values = true, help_heading = "Path")]
    uplink_queue: QueueArg,
    /// What that queue holds: 100p (default), 1bdp, 100kB
    #[arg(long, value_name = "SIZE", requires = "uplink", allow_hyphen_values = true)]
    #[arg(help_heading = "Path")]
    uplink_buffer: Option<Buffer>,
    /// Random loss of what COMMAND sends
    #[arg(long, default_value = "0%", value_name = "PERCENT", allow_hyphen_values = true)]
    #[arg(help_heading = "Path")]
    pub(super) uplink_loss: LossSpec,
    /// Delay each packet that COMMAND sends by up to so much more
    #[arg(long, value_name = "TIME", allow_hyphen_values = true, help_heading = "Path")]
    pub(super) uplink_jitter: Option<TimeDelta>,
    /// The paths of a scenario instead, of its first cell: a host on the near side for each
    #[arg(long, value_name = "NAME|FILE", help_heading = "Path")]
    scenario: Option<String>,
    /// Put a value in a place of the scenario, such as path.loss=2%
    #[arg(long, value_name = "KEY=VALUE", help_heading = "Path")]
    pub(super) set: Vec<Setting>,
    /// Cell of the scenario's matrix, from 1 on
    #[arg(long, default_value = "1", value_name = "N", value_parser = count)]
    #[arg(allow_hyphen_values = true, help_heading = "Path")]
    pub(super) cell: u32,
    /// Seed of everything random
    #[arg(long, default_value = "1", value_name = "N", value_parser = seed)]
    #[arg(allow_hyphen_values = true, help_heading = "Path")]
    pub(super) seed: u64,
    /// Hosts on the near side; COMMAND runs on the first
    #[arg(long, value_name = "N", value_parser = count, allow_hyphen_values = true)]
    #[arg(help_heading = "Hosts")]
    pub(super) hosts: Option<u32>,
    /// The largest packet in bytes
    #[arg(long, default_value = "1500", value_name = "BYTES", value_parser = count)]
    #[arg(allow_hyphen_values = true, help_heading = "Hosts")]
    pub(super) mtu: u32,
    /// Command for the far side, run by sh; COMMAND starts when it listens
    #[arg(long, value_name = "COMMAND", help_heading = "Hosts")]
    pub(super) server: Option<String>,
    /// Keep the path until Ctrl-C and print names and addresses, instead of running COMMAND
    #[arg(long, value_name = "SCENARIO", num_args = 0..=1, default_missing_value = "")]
    #[arg(conflicts_with_all = ["command", "scenario"], help_heading = "Hosts")]
    up: Option<String>,
    /// Remove what emulations left that were killed
    #[arg(long, exclusive = true, help_heading = "Hosts")]
    pub(super) cleanup: bool,
    /// Wait for the last moments without letting go of the processor: less late, at the cost of a core
    #[arg(long, value_name = "TIME", num_args = 0..=1, default_missing_value = "200us")]
    #[arg(require_equals = true, help_heading = "Hosts")]
    pub(super) busy_wait: Option<TimeDelta>,
    /// What is printed when it is over: a summary on stderr, or the figures as JSON on stdout
    #[arg(long, default_value = "human", help_heading = "Output")]
    pub(super) format: EmuFormat,
    /// Directory for summary.json
    #[arg(short, long, value_name = "DIR", help_heading = "Output")]
    pub(super) output: Option<PathBuf>,
    /// Print no notes and no summary
    #[arg(short, long, help_heading = "Output")]
    pub(super) quiet: bool,
    /// When to use colours; auto also honours NO_COLOR
    #[arg(long, default_value = "auto", value_name = "WHEN", help_heading = "Output")]
    pub(super) color: Color,
    /// What runs on the near side
    #[arg(last = true, value_name = "COMMAND", required_unless_present_any = ["up", "cleanup"])]
    pub(super) command: Vec<OsString>,
}

/// What a scenario says itself.
const PATH_ARGUMENTS: [&str; 12] = [
    "rate",
    "rtt",
    "delay",
    "loss",
    "loss_position",
    "queue",
    "buffer",
    "policer",
    "jitter",
    "aggregation",
    "uplink",
    "uplink_buffer",
];

#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub(crate) enum EmuFormat {
    /// A table on stderr
    Human,
    /// The figures on stdout
    Json,
}

/// A discipline, or `droptail:` and what it holds.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct QueueArg {
    queue: QueueSpec,
    buffer: Option<Buffer>,
}

impl FromStr for QueueArg {
    type Err = uncork_path::QueueError;

    fn from_str(text: &str) -> Result<Self, Self::Err> {
        let size = text.strip_prefix("droptail:").and_then(|size| size.parse().ok());
        match size {
            Some(buffer) => Ok(Self { queue: QueueSpec::DropTail, buffer: Some(buffer) }),
            None => text.parse().map(|queue| Self { queue, buffer: None }),
        }
    }
}

impl EmuArgs {
    /// Checks that the path is described in one way.
    pub(super) fn check(&self, matches: &ArgMatches) -> Result<(), Failure> {
        let (others, reason): (&[&str], _) = if self.scenario().is_some() {
            (&PATH_ARGUMENTS, "is not for paths of a scenario: change those with '--set'")
        } else {
            (&["set", "cell"], "is for scenarios: name one with '--scenario' or '--up'")
        };
        let is_given = |id: &&&str| matches.value_source(id) == Some(ValueSource::CommandLine);
        match others.iter().find(is_given) {
            Some(id) => Err(Failure::Usage(format!("'{}' {reason}", shown("emu", id)))),
            None => Ok(()),
        }
    }

    /// Whether to keep the path until a signal comes.
    pub(super) fn is_up(&self) -> bool {
        self.up.is_some()
    }

    /// The scenario that has the paths, and the argument that names it.
    pub(super) fn scenario(&self) -> Option<(&'static str, &str)> {
        let up = self.up.as_deref().filter(|name| !name.is_empty());
        let up = up.map(|name| ("--up [<SCENARIO>]", name));
        up.or_else(|| Some(("--scenario <NAME|FILE>", self.scenario.as_deref()?)))
    }

    /// The path that the arguments describe.
    pub(super) fn path(&self) -> PathSpec {
        let rtt = self.delay.map_or(self.rtt, |delay| delay.times(2));
        let bdp = Buffer::MilliBdp(1000);
        let buffer = self.buffer.or(self.queue.buffer).unwrap_or(bdp);
        let mut path = PathSpec::new(self.rate, rtt, buffer);
        path.link.queue = self.queue.queue;
        path.link.policer = self.policer;
        path.loss = self.loss;
        path.loss_position = match self.loss_position {
            Place::After => LossPosition::After,
            Place::Before => LossPosition::Before,
        };
        path.jitter = self.jitter.map(|max| self.uniform(max));
        path.aggregation = self.aggregation.map(Into::into);
        path.uplink = self.uplink.map(|rate| self.uplink(rate));
        path
    }

    /// Jitter of up to `max`.
    pub(super) fn uniform(&self, max: TimeDelta) -> JitterSpec {
        JitterSpec { distribution: JitterDistribution::Uniform, max, reorder: self.reorder }
    }

    fn uplink(&self, rate: Rate) -> LinkSpec {
        let buffer = self.uplink_buffer.or(self.uplink_queue.buffer);
        // A scenario means acknowledgements by packets on the way back. Here they are what
        // everybody else means by them.
        let bytes = |packets: u64| {
            Buffer::Bytes(uncork_units::ByteCount::new(packets.saturating_mul(self.mtu.into())))
        };
        let buffer = match buffer.unwrap_or(Buffer::Packets(100)) {
            Buffer::Packets(packets) => bytes(packets),
            other => other,
        };
        LinkSpec { queue: self.uplink_queue.queue, ..LinkSpec::new(rate, buffer) }
    }
}

#[cfg(test)]
mod tests {
    use clap::Parser;

    use super::*;
    use crate::args::{Cli, Command};

    fn emu(line: &str) -> EmuArgs {
        match Cli::try_parse_from(line.split_whitespace()).unwrap().command {
            Some(Command::Emu(args)) => *args,
            other => panic!("{other:?}"),
        }
    }

    #[test]
    fn a_path_may_be_written_in_several_ways() {
        let one = emu("uncork emu --rate 8mbit --delay 25ms --queue droptail:83p -- true").path();
        let other = emu("uncork emu --rate 8mbit --rtt 50ms --buffer 83p -- true").path();
        assert_eq!(one, other);
        assert_eq!(one.link.buffer, Buffer::Packets(83));
        let path = emu("uncork emu --queue codel:ecn --uplink 1mbit --jitter 5ms -- true").path();
        assert_eq!(path.link.queue, "codel:ecn".parse().unwrap());
        assert_eq!(path.link.buffer, Buffer::MilliBdp(1000));
        assert_eq!(path.uplink.unwrap().buffer_bytes(52, path.rtt), 150_000);
        assert!(!path.jitter.unwrap().reorder);
    }

    #[test]
    fn the_path_may_come_from_a_scenario() {
        assert_eq!(emu("uncork emu --up").scenario(), None);
        let args = emu("uncork emu --up mine.toml");
        assert_eq!(args.scenario(), Some(("--up [<SCENARIO>]", "mine.toml")));
        let args = emu("uncork emu --scenario cdn-edge -- true");
        assert_eq!(args.scenario(), Some(("--scenario <NAME|FILE>", "cdn-edge")));
        Cli::try_parse_from(["uncork", "emu"]).unwrap_err();
        Cli::try_parse_from(["uncork", "emu", "--cleanup", "--", "true"]).unwrap_err();
    }
}
