//! State that a controller hands over to its successor on an open connection.

use uncork_units::{Rate, TimeDelta};

/// Measurements of a controller in a form that any other can use: [`Settings::inherited`].
///
/// [`Token`]s are not handed over: packets sent before the change are reported to neither
/// controller ([`Feedback::since`]).
///
/// [`Settings::inherited`]: crate::Settings::inherited
/// [`Token`]: crate::Token
/// [`Feedback::since`]: crate::Feedback::since
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Inheritance {
    /// Bytes that may be in flight; once the pipe is full, the bytes that fill it.
    pub window: u64,
    /// The shortest round-trip time.
    pub min_rtt: TimeDelta,
    /// The delivery rate of the path.
    pub bw: Rate,
    /// Whether slow start, or Startup, is over.
    pub has_filled_pipe: bool,
}

impl Inheritance {
    /// From a model-based controller. Its window includes room for delayed and aggregated ACKs,
    /// which a loss-based successor would fill, so the window handed over is the BDP.
    pub(crate) fn of_model(bw: Rate, min_rtt: TimeDelta, is_full: bool, cwnd: u64) -> Self {
        let has_filled_pipe = is_full && !bw.is_zero() && min_rtt != TimeDelta::MAX;
        let window = if has_filled_pipe { bw.bytes_in(min_rtt).min(cwnd) } else { cwnd };
        Self { window, min_rtt, bw, has_filled_pipe }
    }
}
