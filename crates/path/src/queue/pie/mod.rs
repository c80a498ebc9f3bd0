//! PIE: proportional integral controller, enhanced (RFC 8033). A packet that arrives is dropped with a
//! probability that a controller adjusts so that the queuing delay stays near a target.
//!
//! Of the optional parts (RFC 8033 §5), ECN and derandomization are parameters, the cap of §5.5 is
//! always on, and delays are measured by timestamps, so that no departure rate is estimated (§5.2).
//! PIE is always active: §5.3 is for routers that save work.

mod control;
mod discipline;
mod spec;

pub use discipline::Pie;
pub use spec::PieSpec;
