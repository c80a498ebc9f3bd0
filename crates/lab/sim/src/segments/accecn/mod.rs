//! AccECN (RFC 9768): how a client reports the ECN field of the segments that arrive, and what its server learns of it.
//!
//! Modelled: the ACE field, the AccECN option with the room that SACK blocks leave, and what a sender deems of them when
//! counters may have wrapped. Not modelled: the handshake (§3.1, §3.2.2.1 to §3.2.2.4), as middleboxes that change the
//! TCP header are not, and marks on what the client sends, which is never ECN-capable.

mod counters;
mod decoder;
mod feedback;

pub(crate) use counters::EcnCounters;
pub(crate) use decoder::EcnDecoder;
pub(crate) use feedback::{AccEcnFeedback, EcnEcho};
