//! What travels.

/// A packet as the path sees it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Packet<T> {
    /// The flow it belongs to.
    pub flow: u32,
    /// Size on the wire, in bytes.
    pub bytes: u32,
    /// What the hosts exchange; the path carries it and does not look.
    pub body: T,
}
