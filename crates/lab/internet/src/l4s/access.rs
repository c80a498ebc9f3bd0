//! A client network: its bottleneck, other traffic, and the server's flows.

use uncork_path::{
    AggregationSpec, Buffer, Ecn, JitterDistribution, JitterSpec, LinkSpec, PathSpec, QueueSpec,
};
use uncork_units::{Rate, Rng, TimeDelta};

use crate::draw::{log_uniform, uniform};
use crate::profile::millis;

const NETWORK_STREAM: u64 = 5 << 56;

/// What the bottleneck is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Truth {
    /// DualPI2 (RFC 9332).
    L4s,
    /// FQ-CoDel or CAKE.
    FlowQueued,
    /// One queue with CoDel or PIE that marks.
    Classic,
}

impl Truth {
    /// All of them.
    pub const ALL: [Self; 3] = [Self::L4s, Self::FlowQueued, Self::Classic];
}

/// The ranges that networks are drawn from.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum RangeSet {
    /// Ranges at hand while the limits were chosen: defaults of the RFCs, at most one other flow, throughout.
    Design,
    /// Ranges that were not used then: other parameters of the queues, more jitter of another kind, up to three other flows that come later.
    HeldBack,
    /// As at hand, but 5 to 20 other flows keep the queue full throughout, so no flow sees the path empty.
    Crowded,
}

/// Other people's CUBIC flow.
#[derive(Clone, Copy, Debug)]
pub(super) struct OtherFlow {
    pub(super) ecn: Ecn,
    pub(super) start: TimeDelta,
}

/// A client network.
#[derive(Clone, Debug)]
pub struct AccessNetwork {
    /// What its bottleneck is.
    pub truth: Truth,
    /// The rate of the bottleneck.
    pub rate: Rate,
    /// The path, with the RTT of the nearest client.
    pub path: PathSpec,
    pub(super) others: Vec<OtherFlow>,
    pub(super) seed: u64,
}

impl AccessNetwork {
    /// The network `index` of a world, behind a bottleneck of this kind.
    pub fn draw(set: RangeSet, truth: Truth, seed: u64, index: u32) -> Self {
        let mut rng = Rng::new(seed, NETWORK_STREAM + u64::from(index));
        let rate = Rate::from_bits_per_sec(log_uniform(&mut rng, 1e6, 500e6) as u64);
        let rtt = millis(log_uniform(&mut rng, 5.0, 200.0));
        let queue = queue(set, truth, &mut rng);
        // As DualPI2's (RFC 9332, figure 2), and for slow links a hundred packets.
        let buffer = (rate.bytes_in(TimeDelta::from_millis(250)) / 1500).max(100);
        let link = LinkSpec { queue, ..LinkSpec::new(rate, Buffer::Packets(buffer)) };
        let mut path = PathSpec { link, ..PathSpec::new(rate, rtt, Buffer::Packets(buffer)) };
        add_jitter(set, &mut path, &mut rng);
        let others = others(set, &mut rng);
        Self { truth, rate, path, others, seed: rng.next_u64() }
    }

    /// Whether others use the bottleneck, too.
    pub fn has_others(&self) -> bool {
        !self.others.is_empty()
    }

    /// Whether the path adds delays of its own that vary.
    pub fn has_jitter(&self) -> bool {
        self.path.jitter.is_some() || self.path.aggregation.is_some()
    }
}

fn queue(set: RangeSet, truth: Truth, rng: &mut Rng) -> QueueSpec {
    let (first, part) = (rng.below(2) == 0, uniform(rng));
    let spread = |low: f64, high: f64| low + (high - low) * part;
    let text = match (set, truth, first) {
        (RangeSet::Design | RangeSet::Crowded, Truth::L4s, _) => "dualpi2".to_owned(),
        (RangeSet::Design | RangeSet::Crowded, Truth::FlowQueued, _) => "fq_codel".to_owned(),
        (RangeSet::Design | RangeSet::Crowded, Truth::Classic, true) => "codel:ecn".to_owned(),
        (RangeSet::Design | RangeSet::Crowded, Truth::Classic, false) => "pie:ecn".to_owned(),
        (RangeSet::HeldBack, Truth::L4s, true) => {
            format!("dualpi2:step={}us", spread(500.0, 1500.0) as u64)
        }
        (RangeSet::HeldBack, Truth::L4s, false) => {
            format!("dualpi2:target={}us", spread(5_000.0, 25_000.0) as u64)
        }
        (RangeSet::HeldBack, Truth::FlowQueued, true) => "cake".to_owned(),
        (RangeSet::HeldBack, Truth::FlowQueued, false) => {
            format!("fq_codel:target={}us", spread(5_000.0, 10_000.0) as u64)
        }
        (RangeSet::HeldBack, Truth::Classic, true) => {
            format!("codel:target={}us,ecn", spread(5_000.0, 10_000.0) as u64)
        }
        (RangeSet::HeldBack, Truth::Classic, false) => {
            format!("pie:target={}us,ecn", spread(10_000.0, 25_000.0) as u64)
        }
    };
    text.parse().expect("a queue discipline")
}

/// A third of the networks have random delays, a third have slots, as on Wi-Fi and cable, and a third have neither.
fn add_jitter(set: RangeSet, path: &mut PathSpec, rng: &mut Rng) {
    let (kind, part) = (rng.below(3), uniform(rng));
    let (distribution, max, slot) = match set {
        RangeSet::Design | RangeSet::Crowded => (JitterDistribution::Uniform, 4.0, 5.0),
        RangeSet::HeldBack => (JitterDistribution::Bell, 8.0, 10.0),
    };
    match kind {
        0 => {
            let max = millis(max * part);
            path.jitter = Some(JitterSpec { distribution, max, reorder: false });
        }
        1 => path.aggregation = Some(AggregationSpec::from(millis(slot * part))),
        _ => {}
    }
}

fn others(set: RangeSet, rng: &mut Rng) -> Vec<OtherFlow> {
    let count = match set {
        RangeSet::Design => rng.below(2),
        RangeSet::HeldBack => rng.below(4),
        RangeSet::Crowded => 5 + rng.below(16),
    };
    let mut other = |_| {
        let ecn = if rng.below(2) == 0 { Ecn::Ect0 } else { Ecn::NotEct };
        let late = uniform(rng) * 20_000.0;
        let start = if set == RangeSet::HeldBack { millis(late) } else { TimeDelta::ZERO };
        OtherFlow { ecn, start }
    };
    (0..count).map(&mut other).collect()
}
