//! DualPI2: two queues, one for classic traffic and one for low latency (L4S), coupled so that a flow
//! gets about the same rate in either (RFC 9332, appendix A).
//!
//! One controller keeps the delay of the classic queue at a target by a base probability p'. Classic
//! packets are dropped, or marked, with its square; those of the L queue are marked with k times it,
//! or by their own queue's delay if that says more. The squaring offsets the square root in the rate
//! of a Reno-friendly flow (§2.1).
//!
//! Of what appendix A leaves open, this is: a weighted round robin scheduler, which A.2 recommends
//! over a time-shifted FIFO; one buffer for both queues (A.1, note b); delays by timestamps (note a).

mod control;
mod discipline;
mod scheduler;
mod spec;

pub use discipline::DualPi2;
pub use spec::DualPi2Spec;
