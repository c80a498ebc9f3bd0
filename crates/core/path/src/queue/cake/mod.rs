//! Hosts share the link equally, and the flows of a host share that host's part: the isolation of
//! CAKE (Høiland-Jørgensen, Täht, Morton: "Piece of CAKE", LANMAN 2018).
//!
//! From the paper and Linux's `sch_cake.c`: an 8-way set-associative hash over 1024 queues, so that
//! flows collide only if nine share a set; round robin with each flow's quantum divided by the
//! number of its host's competing flows, with random rounding so that the mean is exact; on
//! overload, single packets are dropped from the head of the queue with the most bytes; the target
//! is 1/20 of the RTT. This is the mode `dual-dsthost`: packets carry their destination host, not
//! their source. Hosts are identified exactly, without hashing.
//!
//! Not modelled: the shaper and its overhead compensation (the link is the shaper); Linux's
//! adaptation to the rate (`cake_set_rate`): a target of at least 1.5 packet times, relevant below
//! 3.6 Mbit/s, and a quantum of 1/4096 s but at least 300 bytes, relevant below 50 Mbit/s; tins
//! (DiffServ); the ACK filter; GSO splitting; COBALT (each flow has the CoDel of RFC 8289, without
//! BLUE); the list of decaying flows (flows change lists as in RFC 8290 §4.2); and ingress mode.

mod discipline;
mod hosts;
mod spec;

pub use discipline::Cake;
pub use spec::CakeSpec;
