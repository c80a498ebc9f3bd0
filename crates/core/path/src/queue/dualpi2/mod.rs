//! DualPI2: a classic queue and a low-latency (L4S) queue, coupled so that a flow gets about the
//! same rate in either (RFC 9332, appendix A).
//!
//! A controller keeps the delay of the classic queue at a target through a base probability p'.
//! Classic packets are dropped or marked with its square. L packets are marked with k times p', or
//! according to their own queue's delay if that gives more. The square compensates for the square
//! root in the rate of a Reno-friendly flow (§2.1).
//!
//! Choices where appendix A leaves options: a weighted round robin scheduler, which A.2 recommends
//! over a time-shifted FIFO; one buffer for both queues (A.1, note b); delays by timestamps (note
//! a).

mod control;
mod discipline;
mod scheduler;
mod spec;

pub use discipline::DualPi2;
pub use spec::DualPi2Spec;
