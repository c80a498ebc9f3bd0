//! Packets and their ECN field.

/// A packet as the path sees it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Packet<T> {
    /// The flow it belongs to.
    pub flow: u32,
    /// Its destination host, for queues that share a link among hosts.
    pub host: u32,
    /// Size on the wire, in bytes.
    pub bytes: u32,
    /// The ECN field of its IP header.
    pub ecn: Ecn,
    /// The caller's data, opaque to the path.
    pub body: T,
}

/// The ECN field of the IP header (RFC 3168 §5, RFC 9331 §3).
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Ecn {
    /// No ECN: only losses signal congestion.
    #[default]
    NotEct,
    /// A mark counts as a loss.
    Ect0,
    /// Frequent marks: a scalable controller (L4S).
    Ect1,
    /// Congestion experienced.
    Ce,
}

impl Ecn {
    /// Whether a queue may mark the packet instead of dropping it.
    pub const fn is_capable(self) -> bool {
        !matches!(self, Self::NotEct)
    }
}

impl<T> Packet<T> {
    /// The same packet with another body.
    pub(crate) fn with_body(&self, body: T) -> Self {
        let Self { flow, host, bytes, ecn, .. } = *self;
        Self { flow, host, bytes, ecn, body }
    }

    /// Sets CE. Returns false if the packet is not ECN-capable.
    pub fn mark(&mut self) -> bool {
        let capable = self.ecn.is_capable();
        if capable {
            self.ecn = Ecn::Ce;
        }
        capable
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_ecn_capable_packets_are_marked() {
        for (ecn, marked, after) in [
            (Ecn::NotEct, false, Ecn::NotEct),
            (Ecn::Ect0, true, Ecn::Ce),
            (Ecn::Ect1, true, Ecn::Ce),
            (Ecn::Ce, true, Ecn::Ce),
        ] {
            let mut packet = Packet { flow: 0, host: 0, bytes: 1500, ecn, body: () };
            assert_eq!((packet.mark(), packet.ecn), (marked, after));
        }
    }
}
