//! Hosts share the link equally, and the flows of a host its share: the isolation of CAKE
//! (Høiland-Jørgensen, Täht, Morton: "Piece of CAKE", LANMAN 2018).
//!
//! From the paper and Linux' `sch_cake.c`: an 8-way set-associative hash over 1024 queues, so that
//! flows collide only when nine meet in a set; round robin in which a flow's quantum is divided by
//! the number of flows of its host that compete, rounded at random so that nothing is lost; overload
//! drops single packets from the head of the queue with most bytes; a target of a twentieth of the
//! RTT. This is the mode `dual-dsthost`: packets here tell the host they go to, not the one they come
//! from. Hosts are told apart exactly.
//!
//! Not modelled: the shaper and its overhead compensation (the link is the shaper), and what Linux makes of
//! its rate (`cake_set_rate`): a target of at least 1.5 packets' time, which tells below 3.6 Mbit/s, and a
//! quantum of 1/4096 s, 300 bytes at least, which tells below 50 Mbit/s. Nor are tins (DiffServ),
//! the ACK filter, splitting of GSO packets, COBALT (each flow has the CoDel of RFC 8289, without
//! BLUE), the list of decaying flows (flows change lists as in RFC 8290 §4.2), and ingress mode.

mod discipline;
mod hosts;
mod spec;

pub use discipline::Cake;
pub use spec::CakeSpec;
