//! Network paths as pure state machines: a packet enters at one time and leaves at another, or is
//! dropped. The simulator drives them in virtual time; a wall clock works too.
//!
//! Every random element has its own stream of the seed, so adding one does not affect the others.
#![forbid(unsafe_code)]

mod aggregation;
mod bottleneck;
mod buffer;
mod card;
mod decimal;
mod delay;
mod ecn_change;
mod gilbert;
mod host_jitter;
mod jitter;
mod link;
mod links;
mod loss;
mod loss_text;
mod network;
mod packet;
mod policer;
mod queue;
mod rate;
mod spec;
mod steps;

pub use aggregation::AggregationSpec;
pub use bottleneck::{Bottleneck, Departure};
pub use buffer::{Buffer, BufferError};
pub use ecn_change::{EcnChange, EcnChangeError};
pub use gilbert::GilbertElliott;
pub use host_jitter::{HostJitter, HostJitterError};
pub use jitter::{JitterDistribution, JitterSpec};
pub use link::LinkSpec;
pub use links::{link_rate, shared_rtt};
pub use loss::{Loss, LossSpec};
pub use loss_text::LossError;
pub use network::{
    BackSpec, Body, Cause, Direction, DropSink, Event, Fate, FlowPath, Line, Network, NetworkSpec,
    Offer, PendingEvents,
};
pub use packet::{Ecn, Packet};
pub use policer::{Policer, PolicerError, PolicerSpec};
pub use queue::{
    Cake, CakeSpec, Codel, CodelSpec, DropTail, DualPi2, DualPi2Spec, FqCodel, FqCodelSpec, Gain,
    GainError, Pie, PieSpec, Queue, QueueError, QueueSpec, Queued, StepMarking, StepSpec,
};
pub use rate::{
    LinkRate, LteError, LteSpec, RateSpec, Trace, TraceError, TraceProblem, TraceSpec, TraceStart,
};
pub use spec::{LossPosition, PathSpec, PathSpecError};
pub use steps::Step;
