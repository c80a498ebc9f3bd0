//! PIE: proportional integral controller enhanced (RFC 8033). An arriving packet is dropped with a
//! probability that a controller adjusts to keep the queueing delay near a target.
//!
//! Of the optional parts (RFC 8033 §5), ECN and derandomization are parameters and the cap of §5.5
//! is always on. Delays are measured by timestamps, so no departure rate is estimated (§5.2). PIE
//! is always active: §5.3 only saves work in routers.

mod control;
mod discipline;
mod spec;

pub use discipline::Pie;
pub use spec::PieSpec;
