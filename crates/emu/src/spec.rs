//! What to emulate.

use uncork_path::{BackSpec, LinkSpec, PathSpec, PathSpecError, shared_rtt};
use uncork_units::TimeDelta;

use crate::EmuError;
use crate::address::MAX_HOSTS;

/// What to emulate: paths between hosts on the client side, which stand for clients, and one on the far
/// side, which stands for the servers. What a path calls downstream comes from the server side.
#[derive(Clone, Debug)]
pub struct EmulationSpec {
    /// Links that several paths cross on the way to their own.
    pub links: Vec<LinkSpec>,
    /// The paths.
    pub paths: Vec<PathSpec>,
    /// The hosts on the client side.
    pub hosts: Vec<HostSpec>,
    /// What happens to packets on the way to the server side, besides what their paths say.
    pub back: BackSpec,
    /// Seed of everything random.
    pub seed: u64,
    /// The largest packet, in bytes with its IP header. Buffers in packets are measured in these;
    /// that of an uplink holds acknowledgements.
    pub mtu: u32,
    /// For how long before it is due to wait for a packet without letting go of the processor.
    pub busy_wait: TimeDelta,
    /// Whether to run before all other processes where that is permitted.
    pub first: bool,
    /// Whether to record each packet, for [`crate::Emulation::stop_and_tell`]. It takes memory for each.
    pub record: bool,
    /// Whether to tell of each flow how long its packets to the client side waited in queues. It takes
    /// memory for each flow.
    pub tell_queueing: bool,
}

/// A host on the client side.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct HostSpec {
    /// Index of its path in [`EmulationSpec::paths`].
    pub path: usize,
    /// Round-trip propagation time; `None` takes the path's, in which buffers are measured either way.
    pub rtt: Option<TimeDelta>,
    /// What queues that share a link out among hosts know it by; `None` takes its index. Those that
    /// have a number in common are one host to them.
    pub number: Option<u32>,
}

impl HostSpec {
    /// A host that has the round-trip time of its path.
    pub const fn over(path: usize) -> Self {
        Self { path, rtt: None, number: None }
    }
}

impl EmulationSpec {
    /// What Ethernet carries.
    pub const MTU: u32 = 1500;
    /// Packet sizes that are emulated: IPv6 takes 1280 bytes (RFC 8200 §5).
    pub const MTUS: (u32, u32) = (1280, 65_535);
    /// An acknowledgement with timestamps, in bytes, as the simulator has it.
    pub(crate) const ACK_BYTES: u32 = 52;

    /// One host on each side of `path`.
    pub fn over(path: PathSpec, seed: u64) -> Self {
        Self {
            links: Vec::new(),
            paths: vec![path],
            hosts: vec![HostSpec::over(0)],
            back: BackSpec::default(),
            seed,
            mtu: Self::MTU,
            busy_wait: TimeDelta::ZERO,
            first: true,
            record: false,
            tell_queueing: false,
        }
    }

    /// Checks that it can be emulated.
    ///
    /// # Errors
    ///
    /// What cannot, and what could.
    pub fn check(&self) -> Result<(), EmuError> {
        let refuse = |problem: String| Err(EmuError::Spec(problem));
        let (smallest, largest) = Self::MTUS;
        if !(smallest..=largest).contains(&self.mtu) {
            return Err(EmuError::Mtu(self.mtu));
        }
        if self.hosts.is_empty() || self.hosts.len() > MAX_HOSTS {
            return Err(EmuError::Hosts(self.hosts.len()));
        }
        let (shortest, longest) = PathSpec::RTTS;
        for HostSpec { path, rtt, .. } in &self.hosts {
            if *path >= self.paths.len() {
                return refuse(format!("a host has path {path}, and there is none of this index"));
            }
            if let Some(rtt) = rtt.filter(|rtt| !(shortest..=longest).contains(rtt)) {
                return Err(PathSpecError::Rtt(rtt).into());
            }
        }
        for path in &self.paths {
            path.check(self.mtu, Self::ACK_BYTES)?;
            if let Some(link) = path.via.iter().find(|link| **link >= self.links.len()) {
                return refuse(format!("a path crosses link {link}, and there is none"));
            }
        }
        for (index, link) in self.links.iter().enumerate() {
            if let Some(rtt) = shared_rtt(&self.paths, index) {
                link.check(self.mtu, rtt)?;
            }
        }
        Ok(())
    }

    /// The shortest time that a packet needs to the other side.
    pub(crate) fn shortest_way(&self) -> TimeDelta {
        let rtts = self.hosts.iter().map(|host| host.rtt.unwrap_or(self.paths[host.path].rtt));
        rtts.min().unwrap_or(TimeDelta::ZERO).divided_by(2)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use uncork_path::Buffer;
    use uncork_units::Rate;

    fn spec() -> EmulationSpec {
        let rtt = TimeDelta::from_millis(50);
        EmulationSpec::over(PathSpec::new(Rate::from_mbit(20), rtt, Buffer::MilliBdp(1000)), 1)
    }

    #[test]
    fn what_cannot_be_emulated_is_refused() {
        spec().check().expect("a path");
        let refused = |change: fn(&mut EmulationSpec)| {
            let mut spec = spec();
            change(&mut spec);
            spec.check().expect_err("refused").to_string()
        };
        assert!(refused(|spec| spec.mtu = 1279).contains("1280 B to 65535 B"));
        assert!(refused(|spec| spec.hosts.clear()).contains("0 hosts are out of range"));
        assert!(refused(|spec| spec.hosts = vec![HostSpec::over(0); 1001]).contains("1 to 1000"));
        assert!(refused(|spec| spec.hosts = vec![HostSpec::over(1)]).contains("a host has path 1"));
        let instant = |spec: &mut EmulationSpec| spec.hosts[0].rtt = Some(TimeDelta::ZERO);
        assert!(refused(instant).contains("an RTT of 0ns is out of range"));
        assert!(refused(|spec| spec.paths[0].via = vec![0]).contains("a path crosses link 0"));
        assert!(refused(|spec| spec.paths[0].rtt = TimeDelta::ZERO).contains("an RTT of 0"));
        let shared = |spec: &mut EmulationSpec| {
            spec.links = vec![LinkSpec::new(Rate::ZERO, Buffer::Packets(10))];
            spec.paths[0].via = vec![0];
        };
        assert!(refused(shared).contains("a rate of 0"));
    }
}
