//! The arguments of `uncork emu`.

use std::ffi::OsString;
use std::path::PathBuf;
use std::str::FromStr;

use clap::{ArgMatches, Args, ValueEnum};
use uncork_path::{
    Buffer, JitterDistribution, JitterSpec, LinkSpec, LossSpec, PathSpec, PolicerSpec, QueueSpec,
};
use uncork_units::{Rate, TimeDelta};

use crate::failure::Failure;
use crate::values::{Color, Place, Setting, count, is_given, local_path, seed, shown};

const EXAMPLES: &str = "\
Examples:
  uncork emu --rate 20mbit --delay 25ms --loss 1% --server 'iperf3 -s -1' -- iperf3 -R -c 198.18.0.1
  uncork emu --rate 8mbit --rtt 40ms --queue fq_codel -- bash
  uncork emu --up mine.toml";

const AFTER: &str = "\
COMMAND runs on the client side of the path, in its own network namespace: 198.19.0.1, 2001:2:0:1::1. \
Servers run on the far side: 198.18.0.1, 2001:2::1. Start them with --server, or in the namespace that \
--up prints. --rate, --loss and so on apply from server to client. The namespaces have no other network, \
and the network of the machine is not changed. Both commands find the addresses in UNCORK_NEAR, \
UNCORK_NEAR6, UNCORK_FAR and UNCORK_FAR6.

Exit status: that of COMMAND, 128 + N if signal N ended it, 127 if it cannot be started; otherwise 0 done, \
2 wrong usage, 3 not possible on this machine (such as no right to create network namespaces), 5 a bug.";

/// What is emulated and what runs there.
#[derive(Args, Debug)]
#[command(before_help = EXAMPLES, after_help = AFTER)]
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
    /// Random loss towards COMMAND: 1%, every:100, or in bursts gilbert:mean=1%,burst=5
    #[arg(long, default_value = "0%", value_name = "PERCENT", allow_hyphen_values = true)]
    #[arg(help_heading = "Path")]
    loss: LossSpec,
    /// Drop packets before the bottleneck's queue or after its link
    #[arg(long, default_value = "after", value_name = "PLACE", help_heading = "Path")]
    loss_position: Place,
    /// Queue discipline: droptail, codel, fq_codel, cake, pie, dualpi2 or step. Parameters follow a colon:
    /// codel:target=10ms,ecn. droptail:1bdp also sets the size
    #[arg(long, default_value = "droptail", allow_hyphen_values = true, help_heading = "Path")]
    queue: QueueArg,
    /// Queue size: 1bdp, 100kB or 83p (packets) [default: 1bdp]
    #[arg(long, value_name = "SIZE", allow_hyphen_values = true, help_heading = "Path")]
    buffer: Option<Buffer>,
    /// Token-bucket policer, rate and burst: 5mbit:50kB
    #[arg(long, value_name = "RATE:BURST", allow_hyphen_values = true, help_heading = "Path")]
    policer: Option<PolicerSpec>,
    /// Extra delay per packet, uniform between 0 and TIME
    #[arg(long, value_name = "TIME", allow_hyphen_values = true, help_heading = "Path")]
    jitter: Option<TimeDelta>,
    /// Allow jitter to reorder packets
    #[arg(long, help_heading = "Path")]
    reorder: bool,
    /// Release COMMAND's packets only at multiples of TIME (ACK aggregation)
    #[arg(long, value_name = "TIME", allow_hyphen_values = true, help_heading = "Path")]
    aggregation: Option<TimeDelta>,
    /// Rate of a bottleneck from COMMAND to the server [default: unlimited]
    #[arg(long, value_name = "RATE", allow_hyphen_values = true, help_heading = "Path")]
    uplink: Option<Rate>,
    /// Queue discipline of the uplink
    #[arg(long, default_value = "droptail:100p", value_name = "QUEUE", requires = "uplink")]
    #[arg(allow_hyphen_values = true, help_heading = "Path")]
    uplink_queue: QueueArg,
    /// Queue size of the uplink: 100p, 1bdp or 100kB [default: 100p]
    #[arg(long, value_name = "SIZE", requires = "uplink", allow_hyphen_values = true)]
    #[arg(help_heading = "Path")]
    uplink_buffer: Option<Buffer>,
    /// Random loss from COMMAND to the server
    #[arg(long, default_value = "0%", value_name = "PERCENT", allow_hyphen_values = true)]
    #[arg(help_heading = "Path")]
    pub(super) uplink_loss: LossSpec,
    /// Extra delay per packet from COMMAND to the server, uniform between 0 and TIME
    #[arg(long, value_name = "TIME", allow_hyphen_values = true, help_heading = "Path")]
    pub(super) uplink_jitter: Option<TimeDelta>,
    /// Use the paths of a scenario's cell; each path gets its own client host
    #[arg(long, value_name = "NAME|FILE", help_heading = "Path")]
    scenario: Option<String>,
    /// Override a value of the scenario: path.loss=2%
    #[arg(long, value_name = "KEY=VALUE", help_heading = "Path")]
    pub(super) set: Vec<Setting>,
    /// Cell of the scenario's matrix, counted from 1
    #[arg(long, default_value = "1", value_name = "N", value_parser = count)]
    #[arg(allow_hyphen_values = true, help_heading = "Path")]
    pub(super) cell: u32,
    /// Seed of all random decisions
    #[arg(long, default_value = "1", value_name = "N", value_parser = seed)]
    #[arg(allow_hyphen_values = true, help_heading = "Path")]
    pub(super) seed: u64,
    /// Number of client hosts; COMMAND runs on the first [default: 1]
    #[arg(long, value_name = "N", value_parser = count, allow_hyphen_values = true)]
    #[arg(help_heading = "Hosts")]
    pub(super) hosts: Option<u32>,
    /// Largest IP packet, in bytes
    #[arg(long, default_value = "1500", value_name = "BYTES", value_parser = count)]
    #[arg(allow_hyphen_values = true, help_heading = "Hosts")]
    pub(super) mtu: u32,
    /// Shell command to run on the server side; COMMAND starts once it listens
    #[arg(long, value_name = "COMMAND", help_heading = "Hosts")]
    pub(super) server: Option<String>,
    /// Keep the path up until Ctrl-C and print namespaces and addresses, instead of running COMMAND
    #[arg(long, value_name = "SCENARIO", num_args = 0..=1, default_missing_value = "")]
    #[arg(conflicts_with_all = ["command", "scenario"], help_heading = "Hosts")]
    up: Option<String>,
    /// Remove what killed emulations left behind
    #[arg(long, exclusive = true, help_heading = "Hosts")]
    pub(super) cleanup: bool,
    /// Busy-wait before each deadline: lower jitter, one core at 100 %
    #[arg(long, value_name = "TIME", num_args = 0..=1, default_missing_value = "200us")]
    #[arg(require_equals = true, help_heading = "Hosts")]
    pub(super) busy_wait: Option<TimeDelta>,
    /// Report at the end: a summary on stderr, or JSON on stdout
    #[arg(long, default_value = "human", help_heading = "Output")]
    pub(super) format: EmuFormat,
    /// Write summary.json to DIR
    #[arg(short, long, value_name = "DIR", value_parser = local_path(), help_heading = "Output")]
    pub(super) output: Option<PathBuf>,
    /// Suppress notes and the summary
    #[arg(short, long, help_heading = "Output")]
    pub(super) quiet: bool,
    /// When to use colour; auto honours NO_COLOR
    #[arg(long, default_value = "auto", value_name = "WHEN", help_heading = "Output")]
    pub(super) color: Color,
    /// Command to run on the client side
    #[arg(last = true, value_name = "COMMAND", required_unless_present_any = ["up", "cleanup"])]
    pub(super) command: Vec<OsString>,
}

/// Arguments that a scenario replaces.
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

/// A discipline, or `droptail:` with its size.
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
    /// Checks that the path is specified either by arguments or by a scenario.
    pub(super) fn check(&self, matches: &ArgMatches) -> Result<(), Failure> {
        let (others, reason): (&[&str], _) = if self.scenario().is_some() {
            (&PATH_ARGUMENTS, "cannot be combined with a scenario: use '--set' instead")
        } else {
            (&["set", "cell"], "needs a scenario: add '--scenario' or '--up'")
        };
        match others.iter().find(|id| is_given(matches, id)) {
            Some(id) => Err(Failure::Usage(format!("'{}' {reason}", shown::<Self>(id)))),
            None => Ok(()),
        }
    }

    /// Whether to keep the path up until a signal arrives.
    pub(super) fn is_up(&self) -> bool {
        self.up.is_some()
    }

    /// The scenario with the paths, and the argument that names it.
    pub(super) fn scenario(&self) -> Option<(&'static str, &str)> {
        let up = self.up.as_deref().filter(|name| !name.is_empty());
        let up = up.map(|name| ("--up [<SCENARIO>]", name));
        up.or_else(|| Some(("--scenario <NAME|FILE>", self.scenario.as_deref()?)))
    }

    /// The path specified by the arguments.
    pub(super) fn path(&self) -> PathSpec {
        let rtt = self.delay.map_or(self.rtt, |delay| delay.times(2));
        let bdp = Buffer::MilliBdp(1000);
        let buffer = self.buffer.or(self.queue.buffer).unwrap_or(bdp);
        let mut path = PathSpec::new(self.rate, rtt, buffer);
        path.link.queue = self.queue.queue;
        path.link.policer = self.policer;
        path.loss = self.loss;
        path.loss_position = self.loss_position.into();
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
        // In a scenario, an uplink's buffer in packets counts ACKs. Here it counts packets of MTU
        // size.
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
    use super::*;
    use crate::values::parsed;

    /// The arguments of a line that begins with `uncork emu`.
    fn emu(line: &str) -> EmuArgs {
        parsed(line.split_whitespace().skip(2)).unwrap().0
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
        parsed::<EmuArgs>([]).unwrap_err();
        parsed::<EmuArgs>(["--cleanup", "--", "true"]).unwrap_err();
    }
}
