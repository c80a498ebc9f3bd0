//! Specification of a path and its validation.

use uncork_units::{Rate, TimeDelta};

use crate::{
    AggregationSpec, Buffer, EcnChange, JitterSpec, LinkSpec, LossSpec, LteError, QueueError, Step,
};

/// A path between a server and a client: its own link and its impairments.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct PathSpec {
    /// The slowest link on the way to the client, shared by all flows of the path.
    pub link: LinkSpec,
    /// Indices of the links shared with other paths, in the order in which they are crossed before
    /// its own.
    pub via: Vec<usize>,
    /// The link back to the server, shared by the ACKs of all flows of the path; `None` for an
    /// unlimited one. Its buffer in packets counts ACKs.
    pub uplink: Option<LinkSpec>,
    /// RTT without queueing; half of it in each direction.
    pub rtt: TimeDelta,
    /// Later RTTs, in order of time. A packet on the way keeps its delay. When the RTT falls, later packets
    /// arrive with the last of the earlier ones, and overtake them only where jitter reorders. Buffers and
    /// hosts use the first RTT.
    pub rtt_steps: Vec<Step<TimeDelta>>,
    /// Random extra delay on the way to the client.
    pub jitter: Option<JitterSpec>,
    /// Slots in which ACKs reach the server together.
    pub aggregation: Option<AggregationSpec>,
    /// Random loss on the way to the receiver.
    pub loss: LossSpec,
    /// Later losses, in order of time, of packets that come to `loss_position` from then on. All packets may
    /// be lost: an outage that drops.
    pub loss_steps: Vec<Step<LossSpec>>,
    /// Position of that loss.
    pub loss_position: LossPosition,
    /// Random loss on the way to the server, behind the uplink: of ACKs and requests.
    pub uplink_loss: LossSpec,
    /// Later losses of that kind, in order of time.
    pub uplink_loss_steps: Vec<Step<LossSpec>>,
    /// What a middlebox does to the ECN field of packets to the client; `None` for nothing.
    pub ecn_change: Option<EcnChange>,
    /// Position of that middlebox. Before the links their queues see the changed field, and after them it also
    /// changes their marks.
    pub ecn_position: LossPosition,
    /// The packets that the last link to the client delivers twice, one right behind the other.
    pub duplicates: LossSpec,
    /// The largest packet in bytes that comes to the links to the client; larger ones are lost without notice, as
    /// where no router reports them (RFC 2923 §2.1).
    pub max_packet: Option<u32>,
}

/// Position on a path relative to its links. That of random loss determines where BBR's cliff is: after
/// the bottleneck, lost packets have already used capacity.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum LossPosition {
    /// Before the queues.
    Before,
    /// After the links, as on a lossy last mile.
    After,
}

/// Why a specification is not a valid path.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum PathSpecError {
    /// The rate is out of range.
    #[error("a rate of {} is out of range; expected {} to {}", .0, LinkSpec::RATES.0, LinkSpec::RATES.1)]
    Rate(Rate),
    /// The mobile link cannot be generated.
    #[error("{0}")]
    Lte(LteError),
    /// The RTT is out of range.
    #[error("an RTT of {} is out of range; expected {} to {}", .0, PathSpec::RTTS.0, PathSpec::RTTS.1)]
    Rtt(TimeDelta),
    /// The queue has invalid parameters.
    #[error("{0}")]
    Queue(QueueError),
    /// Steps of this value are not in order of time.
    #[error("the steps of `{0}` are not in order of time")]
    Steps(&'static str),
    /// More jitter than the longest RTT.
    #[error("jitter of {} is out of range; the limit is {}", .0, PathSpec::RTTS.1)]
    Jitter(TimeDelta),
    /// Slots longer than the maximum RTT.
    #[error("turns of {} are out of range; the limit is {}", .0, PathSpec::RTTS.1)]
    Aggregation(TimeDelta),
    /// The path loses every packet.
    #[error("every packet would be lost; use less than 100%")]
    LosesEverything,
    /// The buffer cannot hold one packet of this many bytes.
    #[error("a buffer of {bytes} B cannot hold one packet of {packet_bytes} B; use at least 1p")]
    Buffer {
        /// Its size.
        bytes: u64,
        /// The size required.
        packet_bytes: u32,
    },
    /// The buffer is too large.
    #[error("a buffer of {} B is too large; the limit is {} B", .0, LinkSpec::MAX_BUFFER)]
    BufferTooLarge(u64),
    /// The policer's burst is smaller than one packet of this many bytes, or too large.
    #[error(
        "a policer's burst of {bytes} B is out of range; expected {packet_bytes} B (one packet) to {} B",
        LinkSpec::MAX_BUFFER
    )]
    Burst {
        /// The size of the bucket.
        bytes: u64,
        /// The size required.
        packet_bytes: u32,
    },
}

impl PathSpec {
    /// Supported range of RTTs.
    pub const RTTS: (TimeDelta, TimeDelta) = (TimeDelta::from_micros(10), TimeDelta::from_secs(60));

    /// A path with one drop-tail link and no random loss.
    pub const fn new(rate: Rate, rtt: TimeDelta, buffer: Buffer) -> Self {
        Self {
            link: LinkSpec::new(rate, buffer),
            via: Vec::new(),
            uplink: None,
            rtt,
            rtt_steps: Vec::new(),
            jitter: None,
            aggregation: None,
            loss: LossSpec::EveryNth(0),
            loss_steps: Vec::new(),
            loss_position: LossPosition::After,
            uplink_loss: LossSpec::NONE,
            uplink_loss_steps: Vec::new(),
            ecn_change: None,
            ecn_position: LossPosition::Before,
            duplicates: LossSpec::NONE,
            max_packet: None,
        }
    }

    /// The RTTs that it has one after the other.
    fn rtts(&self) -> impl Iterator<Item = TimeDelta> {
        let steps = self.rtt_steps.iter().map(|step| step.value);
        std::iter::once(self.rtt).chain(steps)
    }

    /// The shortest RTT that it has at any time.
    pub fn shortest_rtt(&self) -> TimeDelta {
        self.rtts().fold(self.rtt, TimeDelta::min)
    }

    /// The bandwidth-delay product in bytes.
    pub fn bdp_bytes(&self) -> u64 {
        self.link.nominal_rate().bytes_in(self.rtt)
    }

    /// The buffer of its link in bytes, for packets of `packet_bytes` on the wire.
    pub fn buffer_bytes(&self, packet_bytes: u32) -> u64 {
        self.link.buffer_bytes(packet_bytes, self.rtt)
    }

    /// Checks that the path can be built for packets of `packet_bytes` on the wire and ACKs of
    /// `ack_bytes`.
    pub fn check(&self, packet_bytes: u32, ack_bytes: u32) -> Result<(), PathSpecError> {
        let (shortest, longest) = Self::RTTS;
        if let Some(rtt) = self.rtts().find(|rtt| !(shortest..=longest).contains(rtt)) {
            return Err(PathSpecError::Rtt(rtt));
        }
        if !Step::are_in_order(&self.rtt_steps) {
            return Err(PathSpecError::Steps("rtt"));
        }
        if !Step::are_in_order(&self.loss_steps) {
            return Err(PathSpecError::Steps("loss"));
        }
        if let Some(jitter) = self.jitter.filter(|jitter| jitter.max > longest) {
            return Err(PathSpecError::Jitter(jitter.max));
        }
        if let Some(turns) = self.aggregation.filter(|turns| turns.slot > longest) {
            return Err(PathSpecError::Aggregation(turns.slot));
        }
        if !Step::are_in_order(&self.uplink_loss_steps) {
            return Err(PathSpecError::Steps("uplink_loss"));
        }
        if self.loss.mean() >= 1.0 || self.uplink_loss.mean() >= 1.0 {
            return Err(PathSpecError::LosesEverything);
        }
        if let Some(uplink) = &self.uplink {
            uplink.check(ack_bytes, self.rtt)?;
        }
        self.link.check(packet_bytes, self.rtt)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use uncork_testkit::assert_message;

    fn path() -> PathSpec {
        PathSpec::new(Rate::from_mbit(20), TimeDelta::from_millis(50), Buffer::MilliBdp(1000))
    }

    #[test]
    fn buffer_uses_the_paths_own_bdp() {
        assert_eq!((path().bdp_bytes(), path().buffer_bytes(1500)), (125_000, 125_000));
    }

    #[test]
    fn unsupported_paths_are_rejected() {
        assert_eq!(path().check(1500, 52), Ok(()));
        let step =
            |millis| Step { at: uncork_units::Time::ZERO, value: TimeDelta::from_millis(millis) };
        let pie = crate::PieSpec { tupdate: TimeDelta::ZERO, ..crate::PieSpec::default() };
        let uplink = Some(LinkSpec::new(Rate::from_mbit(1), Buffer::Packets(0)));
        let refused = |case: &str, change: &dyn Fn(&mut PathSpec)| {
            let mut path = path();
            change(&mut path);
            assert_message!(case, path.check(1500, 52).expect_err(case));
        };
        refused("no rtt", &|path| path.rtt = TimeDelta::ZERO);
        refused("any rtt", &|path| path.rtt = TimeDelta::MAX);
        refused("rate", &|path| path.link.rate = crate::RateSpec::Constant(Rate::ZERO));
        refused("rtt of a step", &|path| path.rtt_steps = vec![step(90_000)]);
        refused("two steps at once", &|path| path.rtt_steps = vec![step(20); 2]);
        refused("uplink", &|path| path.uplink.clone_from(&uplink));
        refused("pie", &|path| path.link.queue = crate::QueueSpec::Pie(pie));
        refused("aggregation", &|path| path.aggregation = Some(TimeDelta::MAX.into()));
        let lossy = Step { at: uncork_units::Time::ZERO, value: LossSpec::NONE };
        let mut loss_twice = path();
        loss_twice.loss_steps = vec![lossy; 2];
        assert_eq!(loss_twice.check(1500, 52), Err(PathSpecError::Steps("loss")));
        let (distribution, max) = (crate::JitterDistribution::Bell, TimeDelta::from_secs(61));
        let mut path = path();
        path.jitter = Some(JitterSpec { distribution, max, reorder: false });
        assert_eq!(path.check(1500, 52), Err(PathSpecError::Jitter(max)));
        for loss in ["100%", "every:1", "gemodel:p=100%,r=0%"] {
            path.jitter = None;
            path.loss = loss.parse().expect("a loss");
            assert_eq!(path.check(1500, 52), Err(PathSpecError::LosesEverything), "{loss}");
            path.uplink_loss = std::mem::replace(&mut path.loss, LossSpec::NONE);
            assert_eq!(path.check(1500, 52), Err(PathSpecError::LosesEverything), "{loss} up");
        }
    }
}
