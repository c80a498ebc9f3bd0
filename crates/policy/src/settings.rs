//! What a connection is given.

use std::fmt;

use uncork_cc::{Algorithm, CcSpec, InitialWindow};
use uncork_units::Rate;

/// What a connection is given.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Settings {
    /// The controller, if the connection is QUIC.
    pub quic: CcSpec,
    /// The kernel's name of the controller, if the connection is TCP; without one the socket is left
    /// as the system makes it.
    pub tcp: Option<Box<str>>,
    /// The congestion window to begin with, of QUIC alone: Linux has no option of a socket for it.
    pub initial_window: Option<InitialWindow>,
    /// No more than this is sent: a bound of the pacing rate (`SO_MAX_PACING_RATE` with TCP).
    pub pacing_cap: Option<Rate>,
}

/// What connections are given if nothing says what.
impl Default for Settings {
    fn default() -> Self {
        let quic = CcSpec::new(Algorithm::Cubic);
        Self { quic, tcp: None, initial_window: None, pacing_cap: None }
    }
}

impl fmt::Display for Settings {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let tcp = self.tcp.as_deref().unwrap_or("as the system has it");
        write!(f, "quic {}, tcp {tcp}", self.quic)?;
        if let Some(window) = self.initial_window {
            write!(f, ", initial window {window}")?;
        }
        match self.pacing_cap {
            Some(cap) => write!(f, ", pacing cap {cap}"),
            None => Ok(()),
        }
    }
}
