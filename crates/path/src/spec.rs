//! Describing a path, and what is wrong with a description.

use std::fmt;

use uncork_units::{Rate, Time, TimeDelta};

use crate::{Bottleneck, Buffer, DropTail, LossSpec, PolicerSpec, RateStep};

/// A path with one bottleneck.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct PathSpec {
    /// Rate of the bottleneck, counted in bytes on the wire.
    pub rate: Rate,
    /// Later changes of that rate.
    pub rate_steps: Vec<RateStep>,
    /// Round-trip propagation time; half of it in each direction.
    pub rtt: TimeDelta,
    /// A policer in front of the bottleneck, for all flows together.
    pub policer: Option<PolicerSpec>,
    /// Size of the bottleneck's drop-tail queue.
    pub buffer: Buffer,
    /// Random loss on the way to the receiver.
    pub loss: LossSpec,
    /// Where that loss strikes.
    pub loss_position: LossPosition,
}

/// Where random loss strikes, relative to the bottleneck. It decides where BBR's cliff lies: after
/// the bottleneck, lost packets have cost capacity.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum LossPosition {
    /// Before the queue.
    Before,
    /// After the link: a lossy last mile.
    After,
}

/// Why a description is no path.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum PathSpecError {
    /// The rate is outside what is simulated.
    Rate(Rate),
    /// The RTT is outside what is simulated.
    Rtt(TimeDelta),
    /// The buffer cannot hold one packet of this many bytes.
    Buffer {
        /// What it can hold.
        bytes: u64,
        /// What it would have to.
        packet_bytes: u32,
    },
    /// The buffer is absurdly large.
    BufferTooLarge(u64),
    /// The policer's burst holds no packet of this many bytes, or is absurdly large.
    Burst {
        /// What the bucket holds.
        bytes: u64,
        /// What it would have to.
        packet_bytes: u32,
    },
}

impl PathSpec {
    /// Rates that are simulated.
    pub const RATES: (Rate, Rate) = (Rate::from_bits_per_sec(8_000), Rate::from_mbit(400_000));
    /// Round-trip times that are simulated.
    pub const RTTS: (TimeDelta, TimeDelta) = (TimeDelta::from_micros(10), TimeDelta::from_secs(60));
    /// The largest queue in bytes.
    pub const MAX_BUFFER: u64 = 1 << 36;

    /// The bandwidth-delay product in bytes.
    pub fn bdp_bytes(&self) -> u64 {
        self.rate.bytes_in(self.rtt)
    }

    /// The buffer in bytes, for packets of `packet_bytes` on the wire.
    pub fn buffer_bytes(&self, packet_bytes: u32) -> u64 {
        match self.buffer {
            Buffer::Bytes(bytes) => bytes.as_u64(),
            Buffer::Packets(packets) => packets.saturating_mul(u64::from(packet_bytes)),
            Buffer::MilliBdp(thousandths) => {
                let bytes = u128::from(self.bdp_bytes()) * u128::from(thousandths) / 1000;
                u64::try_from(bytes).unwrap_or(u64::MAX)
            }
        }
    }

    /// Checks that the path can be built for packets of `packet_bytes` on the wire.
    pub fn check(&self, packet_bytes: u32) -> Result<(), PathSpecError> {
        let (slowest, fastest) = Self::RATES;
        let policed = self.policer.map(|policer| policer.rate);
        let steps = self.rate_steps.iter().map(|step| step.rate);
        let mut rates = steps.chain([self.rate]).chain(policed);
        if let Some(rate) = rates.find(|rate| *rate < slowest || *rate > fastest) {
            return Err(PathSpecError::Rate(rate));
        }
        let (shortest, longest) = Self::RTTS;
        if self.rtt < shortest || self.rtt > longest {
            return Err(PathSpecError::Rtt(self.rtt));
        }
        if let Some(policer) = self.policer {
            let bytes = policer.burst.as_u64();
            if !(u64::from(packet_bytes)..=Self::MAX_BUFFER).contains(&bytes) {
                return Err(PathSpecError::Burst { bytes, packet_bytes });
            }
        }
        match self.buffer_bytes(packet_bytes) {
            bytes if bytes < u64::from(packet_bytes) => {
                Err(PathSpecError::Buffer { bytes, packet_bytes })
            }
            bytes if bytes > Self::MAX_BUFFER => Err(PathSpecError::BufferTooLarge(bytes)),
            _ => Ok(()),
        }
    }

    /// The bottleneck, for packets of `packet_bytes` on the wire.
    pub fn bottleneck<T>(&self, packet_bytes: u32) -> Bottleneck<T> {
        let queue = DropTail::new(self.buffer_bytes(packet_bytes));
        Bottleneck::new(self.rate, self.rate_steps.clone(), queue)
    }

    /// The link's rate at `time`.
    pub fn rate_at(&self, time: Time) -> Rate {
        let steps = self.rate_steps.iter().filter(|step| step.at <= time);
        steps.max_by_key(|step| step.at).map_or(self.rate, |step| step.rate)
    }
}

impl fmt::Display for PathSpecError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Rate(rate) => {
                let (slowest, fastest) = PathSpec::RATES;
                write!(f, "a rate of {rate} is not simulated; {slowest} to {fastest} are")
            }
            Self::Rtt(rtt) => {
                let (shortest, longest) = PathSpec::RTTS;
                write!(f, "an RTT of {rtt} is not simulated; {shortest} to {longest} are")
            }
            Self::Buffer { bytes, packet_bytes } => {
                write!(
                    f,
                    "a buffer of {bytes} B cannot hold one packet of {packet_bytes} B; \
                     give at least 1p"
                )
            }
            Self::BufferTooLarge(bytes) => {
                write!(f, "a buffer of {bytes} B is too large; at most {} B", PathSpec::MAX_BUFFER)
            }
            Self::Burst { bytes, packet_bytes } => {
                write!(
                    f,
                    "a policer's burst of {bytes} B is not simulated; {packet_bytes} B, which is \
                     one packet, to {} B are",
                    PathSpec::MAX_BUFFER
                )
            }
        }
    }
}

impl std::error::Error for PathSpecError {}

#[cfg(test)]
mod tests {
    use super::*;

    fn path() -> PathSpec {
        PathSpec {
            rate: Rate::from_mbit(20),
            rate_steps: Vec::new(),
            rtt: TimeDelta::from_millis(50),
            policer: None,
            buffer: Buffer::MilliBdp(1000),
            loss: LossSpec::Bernoulli("1%".parse().expect("a percentage")),
            loss_position: LossPosition::After,
        }
    }

    #[test]
    fn buffers_mean_the_same_in_every_unit() {
        let mut path = path();
        assert_eq!(path.bdp_bytes(), 125_000);
        assert_eq!(path.buffer_bytes(1500), 125_000);
        path.buffer = Buffer::Packets(83);
        assert_eq!(path.buffer_bytes(1500), 124_500);
        path.buffer = Buffer::MilliBdp(250);
        assert_eq!(path.buffer_bytes(1500), 31_250);
    }

    #[test]
    fn what_cannot_be_simulated_is_refused() {
        assert_eq!(path().check(1500), Ok(()));
        let refused = |change: fn(&mut PathSpec)| {
            let mut path = path();
            change(&mut path);
            path.check(1500).expect_err("refused").to_string()
        };
        assert!(refused(|path| path.rate = Rate::ZERO).contains("a rate of 0"));
        assert!(refused(|path| path.rate = Rate::MAX).contains("is not simulated"));
        assert!(refused(|path| path.rtt = TimeDelta::ZERO).contains("an RTT of 0"));
        assert!(refused(|path| path.rtt = TimeDelta::MAX).contains("is not simulated"));
        let small = refused(|path| path.buffer = Buffer::MilliBdp(1));
        assert!(small.contains("a buffer of 125 B cannot hold one packet of 1500 B"), "{small}");
        assert!(refused(|path| path.buffer = Buffer::Packets(u64::MAX)).contains("too large"));
        let step = |path: &mut PathSpec| {
            path.rate_steps.push(RateStep { at: Time::ZERO, rate: Rate::ZERO });
        };
        assert!(refused(step).contains("a rate of 0"));
    }

    #[test]
    fn a_policer_that_lets_nothing_through_is_refused() {
        let check = |text: &str| {
            let policer = Some(text.parse().expect("a policer"));
            PathSpec { policer, ..path() }.check(1500)
        };
        assert_eq!(check("5mbit:1500B"), Ok(()));
        let refused = |text| check(text).expect_err("refused").to_string();
        assert!(refused("0mbit:50kB").contains("a rate of 0"));
        assert!(refused("5mbit:1499B").contains("a policer's burst of 1499 B is not simulated"));
        assert!(refused("5mbit:1TB").contains("a policer's burst of 1000000000000 B"));
    }

    #[test]
    fn the_rate_follows_its_steps() {
        let mut path = path();
        let at = |secs| Time::ZERO + TimeDelta::from_secs(secs);
        path.rate_steps = vec![
            RateStep { at: at(20), rate: Rate::from_mbit(5) },
            RateStep { at: at(10), rate: Rate::from_mbit(50) },
        ];
        let rates =
            [0, 10, 19, 20, 99].map(|secs| path.rate_at(at(secs)).bits_per_sec() / 1_000_000);
        assert_eq!(rates, [20, 50, 50, 5, 5]);
    }
}
