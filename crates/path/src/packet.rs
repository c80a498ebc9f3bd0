//! What travels.

/// A packet as the path sees it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Packet<T> {
    /// The flow it belongs to.
    pub flow: u32,
    /// The host it goes to, for queues that share a link out among hosts.
    pub host: u32,
    /// Size on the wire, in bytes.
    pub bytes: u32,
    /// What the network may say, and has said, about congestion.
    pub ecn: Ecn,
    /// What the hosts exchange; the path carries it and does not look.
    pub body: T,
}

/// The ECN field of the IP header (RFC 3168 §5, RFC 9331 §3).
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Ecn {
    /// The transport knows nothing of ECN: congestion can only be told by a loss.
    #[default]
    NotEct,
    /// Congestion may be marked, and counts as a loss does.
    Ect0,
    /// Congestion may be marked early and often: a scalable controller's packet (L4S).
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
    /// Marks it as having met congestion. False when its transport does not know marks.
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
    fn marks_are_for_those_who_know_them() {
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
