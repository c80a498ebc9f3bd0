//! Segmentation offload of simulated hosts.

/// Who cuts bursts into segments. With [`Self::Host`] and [`Self::Card`] servers send as Linux does: what leaves
/// together is one packet, which waits up to a millisecond for room to be full, and packets are paced as by
/// Linux.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Offload {
    /// The sender: segments leave one by one.
    #[default]
    None,
    /// The host, before packets leave it, as for a device without offload, a shaper or in network namespaces.
    /// Clients acknowledge the end of a packet of several segments at once, as Linux does since 6.6.
    Host,
    /// The network card; the client's puts them together again. A burst is then one packet on the path: queued,
    /// dropped and acknowledged as a whole.
    Card,
}
