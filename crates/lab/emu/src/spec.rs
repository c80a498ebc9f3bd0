//! Specification of an emulation.

use uncork_path::{BackSpec, LinkSpec, LossSpec, PathSpec, PathSpecError, shared_rtt};
use uncork_units::TimeDelta;

use crate::EmuError;
use crate::address::MAX_HOSTS;

/// An emulation: paths between client hosts and one server host. The downstream direction of a path
/// is from the server side.
#[derive(Clone, Debug)]
pub struct EmulationSpec {
    /// Links shared by several paths, crossed before the paths' own.
    pub links: Vec<LinkSpec>,
    /// The paths.
    pub paths: Vec<PathSpec>,
    /// The hosts on the client side.
    pub hosts: Vec<HostSpec>,
    /// Impairments towards the server side, in addition to the paths' own.
    pub back: BackSpec,
    /// Seed of all random numbers.
    pub seed: u64,
    /// Maximum packet size in bytes including the IP header. Buffers in packets use this size;
    /// uplink buffers use the ACK size.
    pub mtu: u32,
    /// How long before a packet is due to busy-wait for it.
    pub busy_wait: TimeDelta,
    /// Whether to use real-time priority if permitted.
    pub first: bool,
    /// Whether to record each packet for [`crate::Emulation::stop_with_packets`]. Uses memory per
    /// packet.
    pub record: bool,
    /// Whether to report the queueing delays of each flow's packets to the client side. Uses memory
    /// per flow.
    pub report_queueing: bool,
}

/// A host on the client side.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct HostSpec {
    /// Index of its path in [`EmulationSpec::paths`].
    pub path: usize,
    /// RTT without queueing; `None` uses the path's. Buffers always use the path's RTT.
    pub rtt: Option<TimeDelta>,
    /// Host number for queues that share a link among hosts; `None` uses the index. Hosts with the
    /// same number count as one.
    pub number: Option<u32>,
}

impl HostSpec {
    /// A host with the RTT of its path.
    pub const fn over(path: usize) -> Self {
        Self { path, rtt: None, number: None }
    }
}

impl EmulationSpec {
    /// The MTU of Ethernet.
    pub const MTU: u32 = 1500;
    /// Supported packet sizes. IPv6 requires 1280 bytes (RFC 8200 §5).
    pub const MTUS: (u32, u32) = (1280, 65_535);
    /// Size of an ACK with timestamps in bytes, as in the simulator.
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
            report_queueing: false,
        }
    }

    /// Checks that the specification can be emulated.
    ///
    /// # Errors
    ///
    /// The first unsupported value, with the valid range.
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
                return refuse(format!("a host has the unknown path {path}"));
            }
            if let Some(rtt) = rtt.filter(|rtt| !(shortest..=longest).contains(rtt)) {
                return Err(PathSpecError::Rtt(rtt).into());
            }
        }
        for path in &self.paths {
            path.check(self.mtu, Self::ACK_BYTES)?;
            if path.duplicates != LossSpec::NONE {
                return refuse(
                    "a path delivers packets twice, which the emulator does not".to_owned(),
                );
            }
            if let Some(link) = path.via.iter().find(|link| **link >= self.links.len()) {
                return refuse(format!("a path crosses the unknown link {link}"));
            }
        }
        for (index, link) in self.links.iter().enumerate() {
            if let Some(rtt) = shared_rtt(&self.paths, index) {
                link.check(self.mtu, rtt)?;
            }
        }
        Ok(())
    }

    /// The shortest one-way delay of a packet.
    pub(crate) fn shortest_way(&self) -> TimeDelta {
        let rtts = self
            .hosts
            .iter()
            .map(|host| host.rtt.unwrap_or_else(|| self.paths[host.path].shortest_rtt()));
        rtts.min().unwrap_or(TimeDelta::ZERO).divided_by(2)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use uncork_path::Buffer;
    use uncork_testkit::assert_message;
    use uncork_units::Rate;

    fn spec() -> EmulationSpec {
        let rtt = TimeDelta::from_millis(50);
        EmulationSpec::over(PathSpec::new(Rate::from_mbit(20), rtt, Buffer::MilliBdp(1000)), 1)
    }

    #[test]
    fn unsupported_emulations_are_rejected() {
        spec().check().expect("a path");
        let refused = |case: &str, change: fn(&mut EmulationSpec)| {
            let mut spec = spec();
            change(&mut spec);
            assert_message!(case, spec.check().expect_err(case));
        };
        refused("mtu", |spec| spec.mtu = 1279);
        refused("no hosts", |spec| spec.hosts.clear());
        refused("many hosts", |spec| spec.hosts = vec![HostSpec::over(0); 1001]);
        refused("path of a host", |spec| spec.hosts = vec![HostSpec::over(1)]);
        refused("rtt of a host", |spec| spec.hosts[0].rtt = Some(TimeDelta::ZERO));
        refused("link of a path", |spec| spec.paths[0].via = vec![0]);
        refused("rtt of a path", |spec| spec.paths[0].rtt = TimeDelta::ZERO);
        refused("rate of a link", |spec| {
            spec.links = vec![LinkSpec::new(Rate::ZERO, Buffer::Packets(10))];
            spec.paths[0].via = vec![0];
        });
    }
}
