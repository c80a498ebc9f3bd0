//! The playhead of a media player: how far it is, and when it stood still.

use uncork_units::{Time, TimeDelta};

use crate::Action;

/// An interruption of the playback because the buffer had run dry: one stutter.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Stall {
    /// When the last of the buffer had been played.
    pub start: Time,
    /// How long it lasted, up to now if it still does.
    pub lasted: TimeDelta,
}

/// What a listener or viewer has experienced. Until the end has been played, startup,
/// played and stalled time add up to the time since the click.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct PlaybackReport {
    /// Playback latency: from the click to the first sound or picture, once there was one.
    pub startup: Option<TimeDelta>,
    /// How much was played.
    pub played: TimeDelta,
    /// The interruptions after the first sound, in order. Their number is the stutter count.
    pub stalls: Vec<Stall>,
    /// When everything had been played.
    pub ended: Option<Time>,
}

impl PlaybackReport {
    /// How long all stalls together lasted.
    pub fn stalled(&self) -> TimeDelta {
        self.stalls.iter().fold(TimeDelta::ZERO, |sum, stall| sum + stall.lasted)
    }
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Phase {
    Starting,
    Playing,
    Stalled,
    Ended,
}

/// The playhead. Media is measured in playing time; instants are computed, not sampled, so that it
/// does not matter how often it is polled.
#[derive(Clone, Debug)]
pub(crate) struct Playback {
    /// Media that must be buffered before it starts.
    start_threshold: TimeDelta,
    /// Media that must be buffered before it goes on after a stall.
    resume_threshold: TimeDelta,
    /// The media's length.
    total: TimeDelta,
    click: Time,
    phase: Phase,
    /// Up to when it has been brought up to date.
    at: Time,
    /// Media that has arrived, in order, from the beginning.
    available: TimeDelta,
    report: PlaybackReport,
}

impl Playback {
    /// Somebody clicks on media of length `total`.
    pub(crate) fn new(
        click: Time,
        total: TimeDelta,
        start_threshold: TimeDelta,
        resume_threshold: TimeDelta,
    ) -> Self {
        Self {
            start_threshold,
            resume_threshold,
            total,
            click,
            phase: Phase::Starting,
            at: click,
            available: TimeDelta::ZERO,
            report: PlaybackReport {
                startup: None,
                played: TimeDelta::ZERO,
                stalls: Vec::new(),
                ended: None,
            },
        }
    }

    /// Plays what there is to play until `now`. Data that arrives in the very instant in which the
    /// buffer runs dry comes in time: every stall is longer than nothing.
    pub(crate) fn advance(&mut self, now: Time) {
        let (since, elapsed) = (self.at, now.since(self.at));
        self.at = self.at.max(now);
        match self.phase {
            Phase::Starting | Phase::Ended => {}
            Phase::Stalled => {
                if let Some(stall) = self.report.stalls.last_mut() {
                    stall.lasted += elapsed;
                }
            }
            Phase::Playing => {
                let run = elapsed.min(self.level());
                self.report.played += run;
                if self.report.played == self.total {
                    self.phase = Phase::Ended;
                    self.report.ended = Some(since + run);
                } else if run < elapsed {
                    self.phase = Phase::Stalled;
                    self.report.stalls.push(Stall { start: since + run, lasted: elapsed - run });
                }
            }
        }
    }

    /// By `now`, `available` of the media has arrived: playback starts or resumes if that is enough.
    pub(crate) fn supply(&mut self, now: Time, available: TimeDelta) {
        self.advance(now);
        self.available = self.available.max(available).min(self.total);
        let threshold = match self.phase {
            Phase::Starting => self.start_threshold,
            Phase::Stalled => self.resume_threshold,
            Phase::Playing | Phase::Ended => return,
        };
        let level = self.level();
        if self.available == self.total || (level >= threshold && !level.is_zero()) {
            self.phase = Phase::Playing;
            self.report.startup.get_or_insert(self.at.since(self.click));
        }
    }

    /// Media that has arrived and has not been played.
    pub(crate) fn level(&self) -> TimeDelta {
        self.available - self.report.played
    }

    /// What a player does next, which has been brought up to date; nothing if it is to make its next
    /// request. `outstanding` tells whether it has made one, `unrequested` whether anything is left
    /// to ask for, `low` at which buffer level it does. A player that does not play always asks.
    pub(crate) fn next(
        &self,
        outstanding: bool,
        unrequested: bool,
        low: TimeDelta,
    ) -> Option<Action> {
        let level = self.level();
        match self.phase {
            Phase::Ended => Some(Action::Done),
            Phase::Playing if outstanding || !unrequested => Some(self.until_dry()),
            Phase::Playing if level > low => Some(Action::WaitUntil(self.at + (level - low))),
            _ if outstanding || !unrequested => Some(Action::WaitForData),
            _ => None,
        }
    }

    /// Waits until the buffer runs dry; if it has, only data can change anything.
    fn until_dry(&self) -> Action {
        match self.level() {
            TimeDelta::ZERO => Action::WaitForData,
            level => Action::WaitUntil(self.at + level),
        }
    }

    /// The user's experience until `now`.
    pub(crate) fn report(&self, now: Time) -> PlaybackReport {
        let mut playback = self.clone();
        playback.advance(now);
        playback.report
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn at(millis: u64) -> Time {
        Time::ZERO + span(millis)
    }

    fn span(millis: u64) -> TimeDelta {
        TimeDelta::from_millis(millis)
    }

    /// Ten seconds; starts with one, resumes with two.
    fn playback() -> Playback {
        Playback::new(at(100), span(10_000), span(1000), span(2000))
    }

    #[test]
    fn playback_starts_at_the_threshold() {
        let mut playback = playback();
        playback.supply(at(200), span(999));
        assert_eq!(playback.report(at(5000)).startup, None);
        playback.supply(at(300), span(1000));
        assert_eq!(playback.report(at(300)).startup, Some(span(200)));
        assert_eq!(playback.report(at(800)).played, span(500));
    }

    #[test]
    fn playback_underrun_time_is_exact() {
        let mut playback = playback();
        playback.supply(at(100), span(1500));
        assert_eq!(playback.next(true, true, TimeDelta::ZERO), Some(Action::WaitUntil(at(1600))));
        let report = playback.report(at(4000));
        assert_eq!(report.stalls, [Stall { start: at(1600), lasted: span(2400) }]);
        assert_eq!(report.played, span(1500));
    }

    #[test]
    fn playback_accepts_data_at_the_instant_of_an_underrun() {
        let mut playback = playback();
        playback.supply(at(100), span(1500));
        playback.advance(at(1600));
        assert_eq!(playback.next(true, true, TimeDelta::ZERO), Some(Action::WaitForData));
        playback.supply(at(1600), span(1501));
        assert!(playback.report(at(1601)).stalls.is_empty());
        assert_eq!(playback.report(at(1602)).stalls.len(), 1);
    }

    #[test]
    fn playback_resumes_at_its_threshold_or_with_the_last_media() {
        let mut playback = playback();
        playback.supply(at(100), span(1000));
        playback.supply(at(1500), span(2999));
        assert_eq!(playback.report(at(2000)).stalled(), span(900));
        playback.supply(at(2100), span(3000));
        assert_eq!(playback.report(at(9000)).stalls[0].lasted, span(1000));
        // Dry again at 4100; 1900 ms before the end, only all of it will do.
        playback.supply(at(5000), span(4999));
        playback.supply(at(6000), span(10_000));
        let report = playback.report(at(60_000));
        assert_eq!(report.stalls[1], Stall { start: at(4100), lasted: span(900) + span(1000) });
        assert_eq!(report.ended, Some(at(13_000)));
        assert_eq!(report.played, span(10_000));
    }

    #[test]
    fn playback_requests_data_when_the_buffer_is_low_or_stopped() {
        let mut playback = playback();
        let low = span(600);
        assert_eq!(playback.next(false, true, low), None);
        assert_eq!(playback.next(true, true, low), Some(Action::WaitForData));
        playback.supply(at(100), span(1500));
        assert_eq!(playback.next(false, true, low), Some(Action::WaitUntil(at(1000))));
        playback.advance(at(1000));
        assert_eq!(playback.next(false, true, low), None);
        playback.supply(at(1000), span(10_000));
        assert_eq!(playback.next(false, false, low), Some(Action::WaitUntil(at(10_100))));
        playback.advance(at(10_100));
        assert_eq!(playback.next(false, false, low), Some(Action::Done));
    }
}
