//! What a watch learns, in the order of time.

use serde::{Deserialize, Serialize};

use super::sample::SocketSample;

/// Something that a watch learned from the kernel. Sessions are recorded as a line for each.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
#[expect(clippy::large_enum_variant, reason = "there is one at a time")]
pub enum Event {
    /// All sockets at one moment.
    Pass(Pass),
    /// The kernel destroyed a socket.
    Destroyed(Destroyed),
    /// Notices of destroyed sockets were lost: more came than could wait.
    NoticesLost,
}

/// All sockets at one moment.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Pass {
    /// When.
    pub at: Moment,
    /// The sockets, each once, in the kernel's order.
    pub sockets: Vec<SocketSample>,
}

/// A socket that the kernel destroyed, with its final figures.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Destroyed {
    /// When the notice was read.
    pub at: Moment,
    /// The socket. Without its controller's name.
    pub socket: SocketSample,
}

/// A moment of a session.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Moment {
    /// Since the start of the session, in nanoseconds.
    pub session_ns: u64,
    /// Since 1970 (UTC), in nanoseconds.
    pub unix_ns: u64,
}
