//! Metrics available for each kind of traffic.

use uncork_apps::ClientSpec;
use uncork_sim::CommandRecords;

use super::model::Class;
use super::plan::{ClientActivity, SingleActivity};
use super::question::{Metric, Selection};

/// The traffic of a class, which decides its metrics.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Carries {
    /// Traffic that completes: transfers, requests, arrivals.
    Objects,
    /// Traffic measured by its rate: bulk, media.
    Streams,
    /// Audio playback.
    Audio,
    /// Video playback.
    Video,
    /// Traffic of programs; only their end time is known.
    Commands,
    /// Traffic of programs that record each request.
    RecordedObjects,
    /// Traffic of programs that also record audio playback.
    RecordedAudio,
}

impl Carries {
    pub(crate) fn of(work: &ClientActivity) -> Self {
        match work {
            ClientActivity::Arrivals(_) | ClientActivity::One(SingleActivity::Transfer(_)) => {
                Self::Objects
            }
            ClientActivity::One(SingleActivity::Bulk(_) | SingleActivity::Media(_)) => {
                Self::Streams
            }
            ClientActivity::One(SingleActivity::Command(command)) => match command.records {
                None => Self::Commands,
                Some(CommandRecords::Objects) => Self::RecordedObjects,
                Some(CommandRecords::Audio) => Self::RecordedAudio,
            },
            ClientActivity::One(SingleActivity::Client(client, _)) => match client {
                ClientSpec::Audio(_) => Self::Audio,
                ClientSpec::Video(_) => Self::Video,
                _ => Self::Objects,
            },
        }
    }
}

impl Carries {
    /// Whether it is the traffic of programs.
    pub(crate) fn is_command(self) -> bool {
        matches!(self, Self::Commands | Self::RecordedObjects | Self::RecordedAudio)
    }
}

impl Class {
    /// Whether flows of this class can have `metric`.
    pub(crate) fn has(&self, metric: Metric) -> bool {
        match metric {
            // Players request objects, too.
            Metric::Completion => self.carries != Carries::Streams,
            Metric::FirstByte | Metric::Bandwidth => {
                !matches!(self.carries, Carries::Streams | Carries::Commands)
            }
            Metric::PlaybackLatency | Metric::Stutters | Metric::Stalled => {
                matches!(self.carries, Carries::Audio | Carries::Video | Carries::RecordedAudio)
            }
            Metric::PlayedRate | Metric::Switches => self.carries == Carries::Video,
            // Programs send in both directions, over different links.
            Metric::Utilisation => !self.own_links && !self.carries.is_command(),
            Metric::Jain => self.flows > 1,
            Metric::Goodput
            | Metric::Share
            | Metric::Rtt
            | Metric::RttTime
            | Metric::QueueDelay
            | Metric::Retransmitted
            | Metric::Dropped
            | Metric::Timeouts => true,
        }
    }
}

impl Selection {
    /// Whether it includes flows of `class`.
    pub(crate) fn takes(&self, class: &Class) -> bool {
        let named = match &self.class {
            Some(name) => class.name == *name,
            None => !class.background,
        };
        named && self.cc.as_ref().is_none_or(|cc| class.ccs.contains(cc))
    }
}
