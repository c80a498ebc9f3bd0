//! States of a connection and of its loss recovery.

use std::fmt;

/// The state of a connection (RFC 9293 §3.3.2), numbered as in `include/net/tcp_states.h`.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum TcpState {
    /// Open for data.
    Established,
    /// A SYN was sent.
    SynSent,
    /// A SYN was received and answered.
    SynRecv,
    /// Closed locally; the FIN is not yet acknowledged.
    FinWait1,
    /// Closed locally; the peer may still send.
    FinWait2,
    /// Closed by both sides, kept for stray segments. The kernel reports no details.
    TimeWait,
    /// Not open.
    #[default]
    Close,
    /// Closed by the peer.
    CloseWait,
    /// Closed by the peer, then locally; the FIN is not yet acknowledged.
    LastAck,
    /// Listening for connections.
    Listen,
    /// Closed by both sides simultaneously.
    Closing,
    /// An unknown state with this number.
    Other(u8),
}

/// The states in the kernel's order; `TCP_ESTABLISHED` is 1.
const IN_ORDER: [TcpState; 11] = [
    TcpState::Established,
    TcpState::SynSent,
    TcpState::SynRecv,
    TcpState::FinWait1,
    TcpState::FinWait2,
    TcpState::TimeWait,
    TcpState::Close,
    TcpState::CloseWait,
    TcpState::LastAck,
    TcpState::Listen,
    TcpState::Closing,
];

impl TcpState {
    /// The state with the kernel's `number`.
    pub(crate) fn from_number(number: u8) -> Self {
        let index = usize::from(number).wrapping_sub(1);
        IN_ORDER.get(index).copied().unwrap_or(Self::Other(number))
    }

    const fn number(self) -> u8 {
        match self {
            Self::Established => 1,
            Self::SynSent => 2,
            Self::SynRecv => 3,
            Self::FinWait1 => 4,
            Self::FinWait2 => 5,
            Self::TimeWait => 6,
            Self::Close => 7,
            Self::CloseWait => 8,
            Self::LastAck => 9,
            Self::Listen => 10,
            Self::Closing => 11,
            Self::Other(number) => number,
        }
    }
}

/// A set of states.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct StateSet(u32);

impl StateSet {
    /// No state.
    pub const NONE: Self = Self(0);
    /// Every state, including those of later kernels.
    pub const ALL: Self = Self(u32::MAX);
    /// The states in which the local side may have data in flight.
    pub const SENDING: Self = Self::NONE
        .with(TcpState::Established)
        .with(TcpState::FinWait1)
        .with(TcpState::CloseWait)
        .with(TcpState::LastAck)
        .with(TcpState::Closing);

    /// These states and `state`.
    #[must_use]
    pub const fn with(self, state: TcpState) -> Self {
        // The kernel's mask has 32 bits; higher numbers do not exist.
        Self(self.0 | if state.number() < 32 { 1 << state.number() } else { 0 })
    }

    /// The kernel's mask: bit n for state n.
    pub(crate) const fn mask(self) -> u32 {
        self.0
    }
}

/// The state of the sender's loss recovery (`enum tcp_ca_state`, `include/uapi/linux/tcp.h`).
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum CaState {
    /// Nothing unusual.
    #[default]
    Open,
    /// Selective or duplicate ACKs arrive: loss or reordering, not yet known which.
    Disorder,
    /// The window shrinks because of ECN marks or local packet drops.
    Cwr,
    /// Fast recovery: lost packets are retransmitted.
    Recovery,
    /// Recovery after a retransmission timeout.
    Loss,
    /// An unknown state with this number.
    Other(u8),
}

impl CaState {
    /// The state with the kernel's `number`.
    pub(crate) fn from_number(number: u8) -> Self {
        match number {
            0 => Self::Open,
            1 => Self::Disorder,
            2 => Self::Cwr,
            3 => Self::Recovery,
            4 => Self::Loss,
            other => Self::Other(other),
        }
    }
}

impl fmt::Display for TcpState {
    /// The name that `ss` prints; `state N` for unknown states.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Established => "ESTAB",
            Self::SynSent => "SYN-SENT",
            Self::SynRecv => "SYN-RECV",
            Self::FinWait1 => "FIN-WAIT-1",
            Self::FinWait2 => "FIN-WAIT-2",
            Self::TimeWait => "TIME-WAIT",
            Self::Close => "UNCONN",
            Self::CloseWait => "CLOSE-WAIT",
            Self::LastAck => "LAST-ACK",
            Self::Listen => "LISTEN",
            Self::Closing => "CLOSING",
            Self::Other(number) => return write!(f, "state {number}"),
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_and_states_agree() {
        for number in 0..=u8::MAX {
            let state = TcpState::from_number(number);
            assert_eq!(state.number(), number);
            assert_eq!(matches!(state, TcpState::Other(_)), !(1..=11).contains(&number));
        }
    }

    /// `TCPF_ESTABLISHED | TCPF_FIN_WAIT1 | TCPF_CLOSE_WAIT | TCPF_LAST_ACK | TCPF_CLOSING`.
    #[test]
    fn masks_are_the_kernels() {
        let mask = 1 << 1 | 1 << 4 | 1 << 8 | 1 << 9 | 1 << 11;
        assert_eq!(StateSet::SENDING.mask(), mask);
        assert_eq!(StateSet::NONE.with(TcpState::Listen).mask(), 0x400);
        assert_eq!(StateSet::NONE.with(TcpState::Other(32)).mask(), 0);
    }
}
