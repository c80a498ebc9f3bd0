//! The part of an ACK about ECN.

/// What an ACK says of CE marks. In bytes, because the ACK is copied at each step on its way.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum EcnEcho {
    /// Without AccECN: the count of segments with CE so far. RFC 3168 has one bit for it, which says less; but
    /// controllers for ECT(0) answer once in a round trip.
    Marks([u8; 4]),
    /// With AccECN.
    AccEcn(AccEcnFeedback),
}

/// The ACE field (RFC 9768 §3.2.2), and the AccECN option (§3.2.3.1, order 1).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct AccEcnFeedback {
    /// Segments with CE, modulo 8.
    pub(super) ace: u8,
    /// How many of the option's fields are there: ECT(1), CE, ECT(0), in this order; none without the option.
    pub(super) fields: u8,
    /// Payload bytes of each kind, modulo 2²⁴.
    pub(super) bytes: [[u8; 3]; 3],
}

impl EcnEcho {
    /// A count of marks.
    pub(crate) const fn marks(count: u32) -> Self {
        Self::Marks(count.to_le_bytes())
    }
}

/// The places of the option's fields.
pub(super) const ECT1: usize = 0;
pub(super) const CE: usize = 1;
pub(super) const ECT0: usize = 2;

impl AccEcnFeedback {
    /// A field of the option, if it is there.
    pub(super) fn field(&self, place: usize) -> Option<u32> {
        let [low, middle, high] = self.bytes[place];
        (place < usize::from(self.fields)).then(|| u32::from_le_bytes([low, middle, high, 0]))
    }
}

/// A counter as the option carries it.
pub(super) const fn wrapped(bytes: u32) -> [u8; 3] {
    let [low, middle, high, _] = bytes.to_le_bytes();
    [low, middle, high]
}

/// What was added to a counter of 24 bits.
pub(super) const fn added(now: u32, before: u32) -> u32 {
    now.wrapping_sub(before) & 0x00ff_ffff
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn option_counters_wrap_at_24_bits() {
        let bytes = [0x0102_0304, 0x00ff_fffe, 7].map(wrapped);
        let feedback = AccEcnFeedback { ace: 5, fields: 2, bytes };
        assert_eq!(feedback.field(ECT1), Some(0x0002_0304));
        assert_eq!(feedback.field(CE), Some(0x00ff_fffe));
        assert_eq!(feedback.field(ECT0), None, "no room for it");
        assert_eq!(added(3, 0x00ff_fffe), 5);
    }
}
