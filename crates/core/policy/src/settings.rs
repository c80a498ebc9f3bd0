//! The settings of a connection.

use std::fmt;

use uncork_cc::{Algorithm, CcSpec, EcnMode, InLinux, InitialWindow};
use uncork_units::Rate;

/// Initial windows in bytes become packets of this size over TCP: Ethernet's, without IP and TCP headers (RFC 9293 §3.7.1).
pub const MSS_BYTES: u32 = 1460;

/// The maximum of initial windows, unless a policy has `max_initial_window`. In 2017 content delivery networks began with up to 46.
pub const MAX_WINDOW: InitialWindow = InitialWindow::Packets(64);

/// The settings of a connection.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Settings {
    /// The controller for QUIC.
    pub quic: CcSpec,
    /// The kernel's name of the controller for TCP; `None` keeps the system's default.
    pub tcp: Option<Box<str>>,
    /// The initial congestion window. Over TCP only `uncork steer` and routes set it.
    pub initial_window: Option<InitialWindow>,
    /// The rate at which the initial window leaves over TCP; `None` leaves the pacing to the kernel.
    pub initial_rate: Option<InitialRate>,
    /// Maximum pacing rate (`SO_MAX_PACING_RATE` for TCP).
    pub pacing_cap: Option<Rate>,
    /// How the connection uses ECN; `None`: as its controller does ([`EcnMode::of`]).
    pub ecn: Option<EcnMode>,
    /// Whether a connection may begin from what an earlier one of its client's network observed (RFC 9959). Over TCP the controllers of
    /// `uncork kernel load --resume` do that.
    pub resume: bool,
}

impl Settings {
    /// The kernel's name of the controller for TCP that sends ECT(1).
    pub const L4S_TCP: &str = "uncork_prague";

    /// The controller that listening sockets need, if their connections may get the controllers `tcp`. L4S needs AccECN
    /// (RFC 9768), and the listener's controller negotiates it. `None`: they may have any.
    pub fn listener_controller<'a>(
        mut tcp: impl Iterator<Item = Option<&'a str>>,
    ) -> Option<&'static str> {
        tcp.any(|name| name == Some(Self::L4S_TCP)).then_some(Self::L4S_TCP)
    }

    /// The name that a TCP socket chooses: with `resume` that of the controller with Careful Resume, if it has one.
    pub fn kernel_name(&self) -> Option<&str> {
        kernel_name(self.tcp.as_deref(), self.resume)
    }

    /// How QUIC connections use ECN. L4S is for controllers that answer its marks; others keep their own mode.
    pub fn quic_ecn(&self) -> EcnMode {
        let algorithm = self.quic.algorithm();
        self.ecn.filter(|mode| mode.suits(algorithm)).unwrap_or(EcnMode::of(algorithm))
    }
}

/// See [`Settings::kernel_name`].
pub(crate) fn kernel_name(tcp: Option<&str>, resume: bool) -> Option<&str> {
    let resuming = tcp.filter(|_| resume).and_then(InLinux::with_resume);
    resuming.or(tcp)
}

/// CUBIC for QUIC; the system's defaults for everything else.
impl Default for Settings {
    fn default() -> Self {
        let quic = CcSpec::new(Algorithm::Cubic);
        let (initial_window, initial_rate, pacing_cap, ecn) = (None, None, None, None);
        Self { quic, tcp: None, initial_window, initial_rate, pacing_cap, ecn, resume: false }
    }
}

impl fmt::Display for Settings {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let tcp = self.tcp.as_deref().unwrap_or("as the system has it");
        write!(f, "quic {}, tcp {tcp}", self.quic)?;
        if let Some(window) = self.initial_window {
            write!(f, ", initial window {window}")?;
        }
        match self.initial_rate {
            Some(InitialRate::Burst) => f.write_str(" in a burst")?,
            Some(InitialRate::Paced(rate)) => write!(f, " at up to {rate}")?,
            None => {}
        }
        if let Some(cap) = self.pacing_cap {
            write!(f, ", pacing cap {cap}")?;
        }
        if let Some(mode) = self.ecn {
            write!(f, ", ECN {mode}")?;
        }
        f.write_str(if self.resume { ", resume" } else { "" })
    }
}

/// The highest rate at which an initial window leaves, until the first acknowledgement.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum InitialRate {
    /// As fast as the host sends.
    Burst,
    /// Paced at this rate.
    Paced(Rate),
}

impl fmt::Display for InitialRate {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Burst => f.write_str("burst"),
            Self::Paced(rate) => rate.fmt(f),
        }
    }
}
