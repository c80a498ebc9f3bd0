//! The runs of a cell, before a seed draws values.

use uncork_apps::{CbrSpec, ClientSpec, ObjectSizes};
use uncork_cc::{Algorithm, CcSpec, InitialWindow, ResumeHint};
use uncork_path::{Buffer, Ecn, LinkSpec, LossSpec, PathSpec, RateSpec, Step};
use uncork_sim::{AccEcn, AckPolicy, CommandSpec, FlowSpec, Migration};
use uncork_units::{Rate, TimeDelta};

use super::draw::{Between, Draw};

/// The traffic of a cell and its paths.
#[derive(Clone, Debug, Default)]
pub(crate) struct CellPlan {
    pub(crate) links: Vec<LinkSpec>,
    pub(crate) paths: Vec<PathPlan>,
    /// In the order of the cell's classes.
    pub(crate) flows: Vec<FlowPlan>,
}

/// A path, or the template of a population's paths.
#[derive(Clone, Debug)]
pub(crate) struct PathPlan {
    pub(crate) name: String,
    /// Drawn values have their first value here.
    pub(crate) spec: PathSpec,
    /// Whether each client has separate links.
    pub(crate) own_per_flow: bool,
    pub(crate) draws: Draws,
    /// Values from a preset, with sources.
    pub(crate) sources: Vec<String>,
}

/// Values drawn for each client.
#[derive(Clone, Debug, Default)]
pub(crate) struct Draws {
    pub(crate) rate: Option<Draw<Rate>>,
    pub(crate) rtt: Option<Draw<TimeDelta>>,
    pub(crate) loss: Option<Draw<LossSpec>>,
    pub(crate) buffer: Option<Draw<Buffer>>,
}

/// The flows of a class.
#[derive(Clone, Debug)]
pub(crate) struct FlowPlan {
    /// Name of the class, which also seeds its random numbers.
    pub(crate) name: String,
    /// Index of its path.
    pub(crate) path: usize,
    pub(crate) ccs: Vec<CcSpec>,
    /// Number of clients.
    pub(crate) count: u64,
    pub(crate) paired: bool,
    pub(crate) start: TimeDelta,
    /// How connections are opened, unless each opens by itself.
    pub(crate) connect: Option<Connect>,
    /// `None` until it is known whether links are shared.
    pub(crate) spread: Option<TimeDelta>,
    pub(crate) rtt: Option<TimeDelta>,
    /// `None`: by the controller, see [`Self::ecn_of`].
    pub(crate) ecn: Option<Ecn>,
    pub(crate) accecn: Option<AccEcn>,
    pub(crate) initial_window: Option<InitialWindow>,
    pub(crate) resume: Option<ResumeHint>,
    pub(crate) receive_window: u64,
    pub(crate) receive_window_steps: Vec<Step<u64>>,
    pub(crate) migrations: Vec<Step<Migration>>,
    pub(crate) acks: AckPolicy,
    pub(crate) host: Option<u32>,
    pub(crate) work: ClientActivity,
}

/// How connections are opened by a program for each controller, which sends on all at once
/// ([`uncork_sim::Program`]).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Connect {
    /// All programs are launched together, as in test beds.
    Iperf3,
    /// By the seed in turn: all together, or one of them ahead of the others.
    InTurn,
}

/// The activity of a client.
#[derive(Clone, Debug)]
pub(crate) enum ClientActivity {
    /// A single connection.
    One(SingleActivity),
    /// One connection per arriving object.
    Arrivals(ArrivalPlan),
}

/// The activity of a client on its connection.
#[derive(Clone, Debug)]
pub(crate) enum SingleActivity {
    /// One transfer of this many bytes.
    Transfer(u64),
    /// Unlimited data for this time; `None` until the end of the run.
    Bulk(Option<TimeDelta>),
    /// A downloader or a player. The duration of a downloader counts from its start.
    Client(ClientSpec, Option<TimeDelta>),
    /// A server with its own pace.
    Media(CbrSpec),
    /// Programs, which only run on real hosts.
    Command(CommandSpec),
}

/// When objects are requested.
#[derive(Clone, Debug)]
pub(crate) enum ArrivalPlan {
    /// A Poisson process from the class's start.
    Poisson { mean_gap: TimeDelta, sizes: ObjectSizes, length: TimeDelta },
    /// A recording.
    Trace(uncork_apps::ArrivalTrace),
}

impl ClientActivity {
    /// Whether it sends at its own pace, however much the path carries.
    pub(crate) fn is_media(&self) -> bool {
        matches!(self, Self::One(SingleActivity::Media(_)))
    }

    /// Duration of a flow, if independent of what arrives.
    pub(crate) fn lasts(&self) -> Option<TimeDelta> {
        match self {
            Self::One(SingleActivity::Bulk(span) | SingleActivity::Client(_, span)) => *span,
            Self::One(SingleActivity::Media(media)) => {
                Some(media.duration).filter(|span| *span < TimeDelta::MAX)
            }
            Self::One(SingleActivity::Command(command)) => command.limit,
            Self::One(SingleActivity::Transfer(_)) | Self::Arrivals(_) => None,
        }
    }
}

impl FlowPlan {
    /// Flows of simulated hosts on the first path, as of a file that says no more of them.
    pub(crate) fn new(name: &str, ccs: Vec<CcSpec>, count: u64, work: ClientActivity) -> Self {
        Self {
            name: name.to_owned(),
            path: 0,
            ccs,
            count,
            paired: false,
            start: TimeDelta::ZERO,
            connect: None,
            spread: None,
            rtt: None,
            ecn: None,
            accecn: None,
            initial_window: None,
            resume: None,
            receive_window: FlowSpec::WIDE_OPEN,
            receive_window_steps: Vec::new(),
            migrations: Vec::new(),
            acks: AckPolicy::USUAL,
            host: None,
            work,
        }
    }

    /// What a flow with this controller sends. Prague is for ECT(1) (RFC 9331 §4.1); without it, it is another controller.
    pub(crate) fn ecn_of(&self, cc: CcSpec) -> Ecn {
        let is_prague = cc.algorithm() == Algorithm::Prague;
        self.ecn.unwrap_or(if is_prague { Ecn::Ect1 } else { Ecn::NotEct })
    }

    /// The index by which client `index` draws. With `paired`, one client per controller has the
    /// same.
    pub(crate) fn draw_index(&self, index: u64) -> u64 {
        if self.paired { index / self.ccs.len().max(1) as u64 } else { index }
    }
}

impl PathPlan {
    /// The paths at the extremes of all drawn values. They include the largest and the smallest
    /// buffer.
    pub(crate) fn corners(&self) -> Vec<PathSpec> {
        let Draws { rate, rtt, loss, buffer } = &self.draws;
        let mut corners = vec![self.spec.clone()];
        vary(&mut corners, rate.as_ref(), |path, rate| {
            path.link.rate = RateSpec::Constant(rate);
        });
        vary(&mut corners, rtt.as_ref(), |path, rtt| path.rtt = rtt);
        vary(&mut corners, loss.as_ref(), |path, loss| path.loss = loss);
        vary(&mut corners, buffer.as_ref(), |path, buffer| path.link.buffer = buffer);
        corners
    }
}

/// Replaces each of `corners` by two, with the minimum and the maximum of the drawn value.
fn vary<T: Between>(
    corners: &mut Vec<PathSpec>,
    draw: Option<&Draw<T>>,
    set: impl Fn(&mut PathSpec, T),
) {
    let Some(values) = draw.and_then(Draw::extremes) else { return };
    let with = |path: &PathSpec, value: T| {
        let mut path = path.clone();
        set(&mut path, value);
        path
    };
    *corners =
        corners.iter().flat_map(|path| values.iter().map(|value| with(path, *value))).collect();
}
