//! Kinds of access networks, and the paths of their users.

use std::fmt;

use uncork_path::{
    AggregationSpec, Buffer, FqCodelSpec, JitterDistribution, JitterSpec, LossSpec, PathSpec,
    PolicerSpec, QueueSpec,
};
use uncork_units::{ByteCount, Probability, Rate, Rng, TimeDelta};

use crate::draw::{log_normal, log_uniform, uniform};

/// The kind of an autonomous system.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Kind {
    /// Fast lines, short round trips, hardly any loss.
    Fibre,
    /// Slower lines with buffers of several BDP.
    Dsl,
    /// Variable delay, aggregation, deep buffers, some loss.
    Mobile,
    /// Long round trips, losses in the air.
    Satellite,
    /// Fast lines behind a home's Wi-Fi: aggregation, jitter, loss.
    Wifi,
    /// A token bucket before fast lines.
    Policed,
    /// Lines behind an uplink of their network that is full in the evening.
    Shared,
}

impl Kind {
    /// All kinds, in the order of their shares.
    pub const ALL: [Self; 7] = [
        Self::Fibre,
        Self::Dsl,
        Self::Mobile,
        Self::Satellite,
        Self::Wifi,
        Self::Policed,
        Self::Shared,
    ];

    /// Systems of each kind out of 20.
    const SHARES: [u64; 7] = [4, 4, 4, 1, 3, 2, 2];

    /// Its name in documents.
    pub const fn name(self) -> &'static str {
        match self {
            Self::Fibre => "fibre",
            Self::Dsl => "dsl",
            Self::Mobile => "mobile",
            Self::Satellite => "satellite",
            Self::Wifi => "wifi",
            Self::Policed => "policed",
            Self::Shared => "shared",
        }
    }

    pub(super) fn draw(rng: &mut Rng) -> Self {
        let mut left = rng.below(Self::SHARES.iter().sum());
        for (kind, share) in Self::ALL.into_iter().zip(Self::SHARES) {
            if left < share {
                return kind;
            }
            left -= share;
        }
        Self::Fibre
    }

    /// The least and the largest of a system's typical values.
    const fn ranges(self) -> ProfileRanges {
        // Rate in Mbit/s, round-trip time in ms, loss in per mille, buffer in BDP.
        let (rate, rtt, loss, buffer) = match self {
            Self::Fibre => ((80.0, 300.0), (8.0, 30.0), (0.001, 0.05), (0.5, 2.0)),
            Self::Dsl => ((8.0, 40.0), (20.0, 50.0), (0.001, 0.3), (1.0, 6.0)),
            Self::Mobile => ((8.0, 50.0), (40.0, 100.0), (0.05, 8.0), (2.0, 8.0)),
            Self::Satellite => ((8.0, 30.0), (60.0, 600.0), (0.5, 15.0), (0.5, 2.0)),
            Self::Wifi => ((20.0, 100.0), (15.0, 50.0), (0.05, 5.0), (0.5, 3.0)),
            Self::Policed => ((60.0, 150.0), (15.0, 60.0), (0.001, 0.3), (1.0, 2.0)),
            Self::Shared => ((20.0, 60.0), (20.0, 70.0), (0.001, 0.5), (1.0, 3.0)),
        };
        ProfileRanges { rate, rtt, loss, buffer }
    }
}

impl fmt::Display for Kind {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.name())
    }
}

type Range = (f64, f64);

struct ProfileRanges {
    rate: Range,
    rtt: Range,
    loss: Range,
    buffer: Range,
}

/// Typical values of a group of networks of one system. Their users' values scatter around them.
#[derive(Clone, Debug, PartialEq)]
pub(super) struct NetworkProfile {
    pub(super) kind: Kind,
    /// Bits per second on the wire.
    rate: f64,
    rtt_ms: f64,
    loss: f64,
    buffer_bdp: f64,
    slot_ms: f64,
    jitter_ms: f64,
    /// The policer's rate as a part of the line's, and its burst in bytes.
    policer: Option<(f64, f64)>,
    /// Whether the queue is FQ-CoDel.
    is_fair: bool,
    /// The network's uplink in bits per second, if it is full in the evening.
    pub(super) uplink: Option<f64>,
}

impl NetworkProfile {
    /// The typical profile of a system.
    pub(super) fn of_system(kind: Kind, rng: &mut Rng) -> Self {
        let ProfileRanges { rate, rtt, loss, buffer } = kind.ranges();
        let mut within = |(low, high): Range| log_uniform(rng, low, high);
        let (rate, rtt_ms) = (within(rate) * 1e6, within(rtt));
        let (loss, buffer_bdp) = (within(loss) / 1e3, within(buffer));
        let (slot, jitter, part, burst) =
            (within((2.0, 8.0)), within((1.0, 6.0)), within((0.1, 0.5)), within((5e4, 5e5)));
        let waits = matches!(kind, Kind::Mobile | Kind::Wifi);
        Self {
            kind,
            rate,
            rtt_ms,
            loss,
            buffer_bdp,
            slot_ms: if waits { slot } else { 0.0 },
            jitter_ms: if waits { jitter } else { 0.0 },
            policer: (kind == Kind::Policed).then_some((part, burst)),
            is_fair: kind == Kind::Fibre && uniform(rng) < 0.3,
            uplink: (kind == Kind::Shared).then(|| rate * log_uniform(rng, 0.7, 1.3)),
        }
    }

    /// A profile of networks of the same system: its values with a spread of their own.
    pub(super) fn varied(&self, rng: &mut Rng) -> Self {
        Self {
            rate: self.rate * log_normal(rng, 0.2),
            rtt_ms: self.rtt_ms * log_normal(rng, 0.15),
            loss: self.loss * log_normal(rng, 0.6),
            buffer_bdp: (self.buffer_bdp * log_normal(rng, 0.25)).max(0.3),
            ..self.clone()
        }
    }

    /// The path of a user.
    pub(super) fn path(&self, rng: &mut Rng) -> PathSpec {
        let rate = self.rate * log_normal(rng, 0.4);
        let rtt_ms = (self.rtt_ms * log_normal(rng, 0.25)).max(2.0);
        let loss = (self.loss * log_normal(rng, 0.8)).min(0.1);
        let bdp = rate / 8e3 * rtt_ms;
        let buffer = (self.buffer_bdp * bdp).max(MIN_BUFFER);
        let mut path =
            PathSpec::new(bits(rate), millis(rtt_ms), Buffer::Bytes(ByteCount::new(buffer as u64)));
        if self.is_fair {
            path.link.queue = QueueSpec::FqCodel(FqCodelSpec::default());
        }
        path.link.policer = self.policer.map(|(part, burst)| PolicerSpec {
            rate: bits(rate * part),
            burst: ByteCount::new(burst as u64),
        });
        let steps = Probability::ALWAYS.steps();
        path.loss = LossSpec::Bernoulli(Probability::of((loss * steps as f64) as u64, steps));
        path.aggregation =
            (self.slot_ms > 0.0).then(|| AggregationSpec::from(millis(self.slot_ms)));
        path.jitter = (self.jitter_ms > 0.0).then(|| JitterSpec {
            distribution: JitterDistribution::Uniform,
            max: millis(self.jitter_ms),
            reorder: false,
        });
        path
    }
}

/// Ten packets: lines have at least this buffer, in bytes.
const MIN_BUFFER: f64 = 15_000.0;

pub(super) fn bits(rate: f64) -> Rate {
    Rate::from_bits_per_sec(rate.max(200_000.0) as u64)
}

pub(super) fn millis(time: f64) -> TimeDelta {
    TimeDelta::from_nanos((time * 1e6) as u64)
}

#[cfg(test)]
mod tests {
    use uncork_sim::{HEADER_BYTES, PACKET_BYTES};

    use super::*;

    #[test]
    fn every_path_can_be_built() {
        let mut rng = Rng::new(1, 0);
        for nth in 0..7_000 {
            let kind = Kind::ALL[nth % 7];
            let profile = NetworkProfile::of_system(kind, &mut rng).varied(&mut rng);
            let path = profile.path(&mut rng);
            assert_eq!(path.check(PACKET_BYTES, HEADER_BYTES), Ok(()), "{profile:?}");
            assert_eq!(path.link.policer.is_some(), kind == Kind::Policed);
            assert_eq!(profile.uplink.is_some(), kind == Kind::Shared);
        }
    }

    #[test]
    fn kinds_have_their_shares() {
        let mut rng = Rng::new(2, 0);
        let draws: Vec<Kind> = (0..20_000).map(|_| Kind::draw(&mut rng)).collect();
        for (kind, share) in Kind::ALL.into_iter().zip(Kind::SHARES) {
            let count = draws.iter().filter(|draw| **draw == kind).count() as u64;
            assert!(count.abs_diff(share * 1000) < 250, "{kind}: {count}");
        }
    }
}
