//! The playhead of a media player: its position, and when it stalled.

use uncork_units::{Time, TimeDelta};

use crate::Action;

/// An interruption of playback because the buffer ran dry: one stutter.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Stall {
    /// When the buffer had been played completely.
    pub start: Time,
    /// Its duration, up to now if it continues.
    pub lasted: TimeDelta,
}

/// A listener's or viewer's experience. Until the end of playback, startup, played and stalled time
/// add up to the time since the click.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct PlaybackReport {
    /// Playback latency: from the click to the first sound or picture, if any.
    pub startup: Option<TimeDelta>,
    /// Playing time so far.
    pub played: TimeDelta,
    /// The interruptions after the first sound, in order. Their number is the stutter count.
    pub stalls: Vec<Stall>,
    /// When playback ended.
    pub ended: Option<Time>,
}

impl PlaybackReport {
    /// Total duration of all stalls.
    pub fn stalled(&self) -> TimeDelta {
        self.stalls.iter().fold(TimeDelta::ZERO, |sum, stall| sum + stall.lasted)
    }
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum PlaybackPhase {
    Starting,
    Playing,
    Stalled,
    Ended,
}

/// The playhead. Media is measured in playing time. Instants are computed, not sampled, so the
/// polling frequency does not matter.
#[derive(Clone, Debug)]
pub(crate) struct Playback {
    /// Media to buffer before playback starts.
    start_threshold: TimeDelta,
    /// Media to buffer before playback resumes after a stall.
    resume_threshold: TimeDelta,
    /// The media's length.
    total: TimeDelta,
    click: Time,
    phase: PlaybackPhase,
    /// Time of the last update.
    at: Time,
    /// Media received in order from the beginning.
    available: TimeDelta,
    report: PlaybackReport,
}

impl Playback {
    /// A user clicks on media of length `total`.
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
            phase: PlaybackPhase::Starting,
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

    /// Plays buffered media until `now`. Data arriving at the very instant the buffer runs dry is
    /// in time, so no stall has zero length.
    pub(crate) fn advance(&mut self, now: Time) {
        let (since, elapsed) = (self.at, now.since(self.at));
        self.at = self.at.max(now);
        match self.phase {
            PlaybackPhase::Starting | PlaybackPhase::Ended => {}
            PlaybackPhase::Stalled => {
                if let Some(stall) = self.report.stalls.last_mut() {
                    stall.lasted += elapsed;
                }
            }
            PlaybackPhase::Playing => {
                let run = elapsed.min(self.level());
                self.report.played += run;
                if self.report.played == self.total {
                    self.phase = PlaybackPhase::Ended;
                    self.report.ended = Some(since + run);
                } else if run < elapsed {
                    self.phase = PlaybackPhase::Stalled;
                    self.report.stalls.push(Stall { start: since + run, lasted: elapsed - run });
                }
            }
        }
    }

    /// `available` media has arrived by `now`: starts or resumes playback if that is enough.
    pub(crate) fn supply(&mut self, now: Time, available: TimeDelta) {
        self.advance(now);
        self.available = self.available.max(available).min(self.total);
        let threshold = match self.phase {
            PlaybackPhase::Starting => self.start_threshold,
            PlaybackPhase::Stalled => self.resume_threshold,
            PlaybackPhase::Playing | PlaybackPhase::Ended => return,
        };
        let level = self.level();
        if self.available == self.total || (level >= threshold && !level.is_zero()) {
            self.phase = PlaybackPhase::Playing;
            self.report.startup.get_or_insert(self.at.since(self.click));
        }
    }

    /// Buffered media.
    pub(crate) fn level(&self) -> TimeDelta {
        self.available - self.report.played
    }

    /// The next action of a player that is up to date; `None` if it should make its next request.
    /// `outstanding` means it has a request in progress, `unrequested` that there is more to
    /// request, `low` is the buffer level below which it requests. A stopped player always
    /// requests.
    pub(crate) fn next(
        &self,
        outstanding: bool,
        unrequested: bool,
        low: TimeDelta,
    ) -> Option<Action> {
        let level = self.level();
        match self.phase {
            PlaybackPhase::Ended => Some(Action::Done),
            PlaybackPhase::Playing if outstanding || !unrequested => Some(self.until_dry()),
            PlaybackPhase::Playing if level > low => {
                Some(Action::WaitUntil(self.at + (level - low)))
            }
            _ if outstanding || !unrequested => Some(Action::WaitForData),
            _ => None,
        }
    }

    /// Waits until the buffer runs dry; if it already has, only data can change the state.
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
        // Dry again at 4100. 1900 ms before the end, only the complete rest is enough.
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
