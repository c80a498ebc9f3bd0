//! The start of a connection: on its first path, with its first controller.

use uncork_cc::{AnyController, Feedback, StartCounts, StartObserver, StartReport};
use uncork_units::Time;

use crate::counts::PathCounts;

/// How the start of a connection went so far. Rounds and bytes count from the first full packet after the handshake.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct ConnectionStart {
    /// The initial window in bytes.
    pub initial_window: u64,
    /// What was observed.
    pub report: StartReport,
}

/// The observation of the start on one path.
#[derive(Clone, Debug, Default)]
pub(crate) enum PathStart {
    /// Only the handshake and little else was sent.
    #[default]
    Handshake,
    Observed {
        observer: StartObserver,
        initial_window: u64,
        before: PathCounts,
    },
    /// The connection has left the path, or its controller was replaced.
    Ended(ConnectionStart),
}

impl PathStart {
    /// The first full packet after the handshake is sent. `is_resumed`: the controller has a hint.
    pub(crate) fn begin(
        &mut self,
        now: Time,
        initial_window: u64,
        before: PathCounts,
        is_resumed: bool,
    ) {
        let mut observer = StartObserver::new(now);
        if is_resumed {
            observer.on_resume();
        }
        *self = Self::Observed { observer, initial_window, before };
    }

    pub(crate) fn has_begun(&self) -> bool {
        !matches!(self, Self::Handshake)
    }

    pub(crate) fn is_followed(&self) -> bool {
        matches!(self, Self::Observed { observer, .. } if !observer.is_over())
    }

    /// The controller has processed a feedback, before which it had this `window`.
    pub(crate) fn on_feedback(
        &mut self,
        now: Time,
        feedback: &Feedback<'_>,
        (counts, window, has_timed_out): (&PathCounts, u64, bool),
        controller: &AnyController,
    ) {
        let Self::Observed { observer, before, .. } = self else { return };
        let own = counts.less(before);
        let (sent, acked) = (own.sent_bytes, own.acked_bytes);
        let counts = StartCounts { sent, acked, window, has_timed_out };
        observer.on_feedback(now, feedback, &counts, controller);
    }

    /// Ends the observation.
    pub(crate) fn end(&mut self, counts: &PathCounts) {
        if let Some(start) = self.so_far(counts) {
            *self = Self::Ended(start);
        }
    }

    /// `None` before it has begun.
    pub(crate) fn so_far(&self, counts: &PathCounts) -> Option<ConnectionStart> {
        match self {
            Self::Handshake => None,
            Self::Observed { observer, initial_window, before } => {
                let own = counts.less(before);
                let report = observer.report(own.sent_bytes, own.acked_bytes);
                Some(ConnectionStart { initial_window: *initial_window, report })
            }
            Self::Ended(start) => Some(*start),
        }
    }
}
