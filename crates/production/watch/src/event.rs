//! The events of a watch, in time order.

use serde::{Deserialize, Serialize};

use crate::sample::SocketSample;

/// An event that a watch received from the kernel. A recorded session has one line per event.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
#[serde(rename_all = "snake_case")]
#[expect(clippy::large_enum_variant, reason = "there is one at a time")]
pub enum Event {
    /// All sockets at one time.
    Pass(Pass),
    /// The kernel destroyed a socket.
    Destroyed(Destroyed),
    /// Close events of destroyed sockets were lost: the receive buffer overflowed.
    CloseEventsLost,
}

/// All sockets at one time.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
#[serde(deny_unknown_fields)]
pub struct Pass {
    /// When the sockets were read.
    pub at: Moment,
    /// The sockets, each once, in the kernel's order.
    pub sockets: Vec<SocketSample>,
}

/// A socket that the kernel destroyed, with its final counters.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
#[serde(deny_unknown_fields)]
pub struct Destroyed {
    /// When the close event was read.
    pub at: Moment,
    /// The socket, without its controller's name.
    pub socket: SocketSample,
}

/// A timestamp in a session.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
#[serde(deny_unknown_fields)]
pub struct Moment {
    /// Nanoseconds since the start of the session.
    pub session_ns: u64,
    /// Unix time in nanoseconds.
    pub unix_ns: u64,
}
