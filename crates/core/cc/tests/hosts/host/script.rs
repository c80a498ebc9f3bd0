//! Decodes bytes as host actions.

use uncork_cc::{AppState, CcSpec, ResumeHint, Timeout};
use uncork_units::{Time, TimeDelta};

use super::specs;

/// The rest of a script. Missing bytes read as zero, so every byte sequence is a valid script.
#[derive(Clone, Debug)]
pub(crate) struct Script<'a>(&'a [u8]);

impl<'a> Script<'a> {
    /// A script from its bytes.
    pub(crate) fn new(bytes: &'a [u8]) -> Self {
        Self(bytes)
    }

    /// The next operation, as a number below `operations`; none at the end of the script.
    pub(crate) fn operation(&mut self, operations: u8) -> Option<u8> {
        (!self.0.is_empty()).then(|| self.below(operations))
    }

    /// Any byte.
    pub(crate) fn byte(&mut self) -> u8 {
        let Some((first, rest)) = self.0.split_first() else { return 0 };
        self.0 = rest;
        *first
    }

    /// A number below `n`.
    pub(crate) fn below(&mut self, n: u8) -> u8 {
        self.byte() % n
    }

    /// True once in `n` times.
    pub(crate) fn one_in(&mut self, n: u8) -> bool {
        self.below(n) == 1
    }

    /// Mostly below 2^31, sometimes anything up to the maximum.
    pub(crate) fn amount(&mut self) -> u64 {
        let (shift, digits) = (self.byte(), u64::from(self.byte()));
        match shift {
            255 => u64::MAX - digits,
            224.. => digits << (2 * (shift - 224)),
            _ => digits << (shift % 24),
        }
    }

    /// The same for 32-bit values.
    pub(crate) fn small_amount(&mut self) -> u32 {
        u32::try_from(self.amount()).unwrap_or(u32::MAX)
    }

    /// Mostly up to 2 s, sometimes up to the maximum.
    pub(crate) fn span(&mut self) -> TimeDelta {
        TimeDelta::from_nanos(self.amount())
    }

    /// A point in time.
    pub(crate) fn time(&mut self) -> Time {
        Time::from_nanos(self.amount())
    }

    /// Which controller the script is for.
    pub(crate) fn spec(&mut self) -> CcSpec {
        let specs = specs();
        specs[usize::from(self.byte()) % specs.len()]
    }

    /// A hint from an earlier connection.
    pub(crate) fn resume_hint(&mut self) -> ResumeHint {
        ResumeHint { saved_cwnd: self.amount(), saved_rtt: self.span() }
    }

    /// Whether the application has more data.
    pub(crate) fn app(&mut self) -> AppState {
        if self.one_in(4) { AppState::Drained } else { AppState::Backlogged }
    }

    /// One of the timeouts.
    pub(crate) fn timeout(&mut self) -> Timeout {
        match self.below(3) {
            0 => Timeout::Probe,
            1 => Timeout::Retransmission,
            _ => Timeout::Persistent,
        }
    }
}
