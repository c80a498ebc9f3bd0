//! Specification of a link: its rate and its queue.

use uncork_units::{Rate, Rng, TimeDelta};

use crate::spec::PathSpecError;
use crate::{Bottleneck, Buffer, LinkRate, PolicerSpec, QueueSpec, RateSpec};

/// A link with a limited rate.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct LinkSpec {
    /// Its rate, counted in bytes on the wire.
    pub rate: RateSpec,
    /// A policer in front of it, shared by all flows.
    pub policer: Option<PolicerSpec>,
    /// The discipline of its queue.
    pub queue: QueueSpec,
    /// The size of its queue.
    pub buffer: Buffer,
}

impl LinkSpec {
    /// Supported range of rates.
    pub const RATES: (Rate, Rate) = (Rate::from_bits_per_sec(8_000), Rate::from_mbit(400_000));
    /// Maximum queue size in bytes.
    pub const MAX_BUFFER: u64 = 1 << 36;

    /// A link of constant rate behind a drop-tail queue.
    pub const fn new(rate: Rate, buffer: Buffer) -> Self {
        let (rate, queue) = (RateSpec::Constant(rate), QueueSpec::DropTail);
        Self { rate, policer: None, queue, buffer }
    }

    /// The rate used for the BDP: the first rate of steps, the mean of other variable rates.
    pub fn nominal_rate(&self) -> Rate {
        match &self.rate {
            RateSpec::Steps { first, .. } => *first,
            other => other.mean(),
        }
    }

    /// The buffer in bytes, for packets of `packet_bytes` on the wire and an RTT of `rtt`.
    pub fn buffer_bytes(&self, packet_bytes: u32, rtt: TimeDelta) -> u64 {
        match self.buffer {
            Buffer::Bytes(bytes) => bytes.as_u64(),
            Buffer::Packets(packets) => packets.saturating_mul(u64::from(packet_bytes)),
            Buffer::MilliBdp(thousandths) => {
                let bdp = self.nominal_rate().bytes_in(rtt);
                let bytes = u128::from(bdp) * u128::from(thousandths) / 1000;
                u64::try_from(bytes).unwrap_or(u64::MAX)
            }
        }
    }

    /// Checks that the link can be built for packets of `packet_bytes` on the wire and an RTT of
    /// `rtt`.
    pub fn check(&self, packet_bytes: u32, rtt: TimeDelta) -> Result<(), PathSpecError> {
        self.check_rates()?;
        self.queue.check().map_err(PathSpecError::Queue)?;
        if let Some(policer) = self.policer {
            let bytes = policer.burst.as_u64();
            if !(u64::from(packet_bytes)..=Self::MAX_BUFFER).contains(&bytes) {
                return Err(PathSpecError::Burst { bytes, packet_bytes });
            }
        }
        match self.buffer_bytes(packet_bytes, rtt) {
            bytes if bytes < u64::from(packet_bytes) => {
                Err(PathSpecError::Buffer { bytes, packet_bytes })
            }
            bytes if bytes > Self::MAX_BUFFER => Err(PathSpecError::BufferTooLarge(bytes)),
            _ => Ok(()),
        }
    }

    /// Checks that its rates, and that of its policer, are supported.
    fn check_rates(&self) -> Result<(), PathSpecError> {
        let (slowest, fastest) = Self::RATES;
        if let RateSpec::Lte(lte) = &self.rate {
            lte.check().map_err(PathSpecError::Lte)?;
        }
        let steps = match &self.rate {
            RateSpec::Steps { steps, .. } => steps.as_ref(),
            _ => &[],
        };
        // A step to zero is an outage.
        let steps = steps.iter().map(|step| step.value).filter(|rate| *rate > Rate::ZERO);
        let policed = self.policer.map(|policer| policer.rate);
        let mut rates = steps.chain([self.nominal_rate()]).chain(policed);
        let outside = rates.find(|rate| *rate < slowest || *rate > fastest);
        outside.map_or(Ok(()), |rate| Err(PathSpecError::Rate(rate)))
    }

    /// Builds the link for packets of `packet_bytes` on the wire and an RTT of `rtt`. Its queue
    /// uses the stream `stream` of `seed`; a random rate uses the next one.
    pub fn build<T>(
        &self,
        packet_bytes: u32,
        rtt: TimeDelta,
        (seed, stream): (u64, u64),
    ) -> Bottleneck<T> {
        let queue = self.queue.build(self.buffer_bytes(packet_bytes, rtt));
        Bottleneck::new(self.seeded_rate((seed, stream)), queue, Rng::new(seed, stream))
    }

    /// The rate of a link built with these streams.
    pub(crate) fn seeded_rate(&self, (seed, stream): (u64, u64)) -> LinkRate {
        self.rate.link(seed, stream + 1)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::Step;
    use uncork_testkit::assert_message;
    use uncork_units::Time;

    const RTT: TimeDelta = TimeDelta::from_millis(50);

    fn link() -> LinkSpec {
        LinkSpec::new(Rate::from_mbit(20), Buffer::MilliBdp(1000))
    }

    #[test]
    fn equal_buffers_in_different_units() {
        let bytes = |buffer| LinkSpec { buffer, ..link() }.buffer_bytes(1500, RTT);
        assert_eq!(bytes(Buffer::MilliBdp(1000)), 125_000);
        assert_eq!(bytes(Buffer::Packets(83)), 124_500);
        assert_eq!(bytes(Buffer::MilliBdp(250)), 31_250);
    }

    #[test]
    fn unsupported_links_are_rejected() {
        assert_eq!(link().check(1500, RTT), Ok(()));
        let step = RateSpec::Steps {
            first: Rate::from_mbit(1),
            steps: [Step { at: Time::ZERO, value: Rate::from_bits_per_sec(4_000) }].into(),
        };
        for (case, rate, buffer) in [
            ("no rate", RateSpec::Constant(Rate::ZERO), Buffer::MilliBdp(1000)),
            ("any rate", RateSpec::Constant(Rate::MAX), Buffer::MilliBdp(1000)),
            ("a slow step", step, Buffer::MilliBdp(1000)),
            ("0.001bdp", link().rate, Buffer::MilliBdp(1)),
            ("any buffer", link().rate, Buffer::Packets(u64::MAX)),
        ] {
            let refused = LinkSpec { rate, buffer, ..link() }.check(1500, RTT);
            assert_message!(case, refused.expect_err(case));
        }
    }

    #[test]
    fn a_step_may_be_an_outage() {
        let steps = [Step { at: Time::ZERO, value: Rate::ZERO }];
        let rate = RateSpec::Steps { first: Rate::from_mbit(1), steps: steps.into() };
        assert_eq!(LinkSpec { rate, ..link() }.check(1500, RTT), Ok(()));
    }

    #[test]
    fn policer_without_room_for_a_packet_is_rejected() {
        let check = |text: &str| {
            let policer = Some(text.parse().expect("a policer"));
            LinkSpec { policer, ..link() }.check(1500, RTT)
        };
        assert_eq!(check("5mbit:1500B"), Ok(()));
        for text in ["0mbit:50kB", "5mbit:1499B", "5mbit:1TB"] {
            assert_message!(text, check(text).expect_err(text));
        }
    }
}
