//! Memory use of a socket.

use crate::fields::Fields;

/// Memory of a socket in bytes (`INET_DIAG_SKMEMINFO`; `SK_MEMINFO_*` in
/// `include/uapi/linux/sock_diag.h`). The kernel counts whole packet buffers, not payload.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct MemInfo {
    /// Received and not yet read.
    pub rmem_alloc: u32,
    /// Limit of the receive buffer.
    pub rcvbuf: u32,
    /// Passed to lower layers and not yet freed.
    pub wmem_alloc: u32,
    /// Limit of the send buffer.
    pub sndbuf: u32,
    /// Reserved for later use.
    pub fwd_alloc: u32,
    /// In the send queue.
    pub wmem_queued: u32,
    /// Socket options.
    pub optmem: u32,
    /// Received while the socket was locked.
    pub backlog: u32,
    /// Packets (not bytes) that the socket dropped.
    pub drops: Option<u32>,
}

impl MemInfo {
    pub(crate) fn parse(bytes: &[u8]) -> Option<Self> {
        let raw = Fields(bytes);
        Some(Self {
            rmem_alloc: raw.u32(0)?,
            rcvbuf: raw.u32(4)?,
            wmem_alloc: raw.u32(8)?,
            sndbuf: raw.u32(12)?,
            fwd_alloc: raw.u32(16)?,
            wmem_queued: raw.u32(20)?,
            optmem: raw.u32(24)?,
            backlog: raw.u32(28)?,
            drops: raw.u32(32),
        })
    }
}
