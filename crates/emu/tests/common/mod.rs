//! What tests over real namespaces have in common.

use uncork_emu::{EmuError, Emulation, EmulationSpec};
use uncork_path::{Buffer, PathSpec};
use uncork_units::{Rate, TimeDelta};

/// Starts an emulation; `None`, loudly, where the machine has no namespaces or TUN devices for us.
pub fn start(spec: &EmulationSpec) -> Option<Emulation> {
    match Emulation::start(spec) {
        Ok(emulation) => Some(emulation),
        Err(error @ EmuError::System { .. }) => {
            eprintln!("NOT RUN: needs CAP_SYS_ADMIN, CAP_NET_ADMIN and /dev/net/tun: {error}");
            None
        }
        Err(error) => panic!("{error}"),
    }
}

/// A drop-tail path.
pub fn path(rate_mbit: u64, rtt_ms: u64, packets: u64) -> EmulationSpec {
    let rtt = TimeDelta::from_millis(rtt_ms);
    let path = PathSpec::new(Rate::from_mbit(rate_mbit), rtt, Buffer::Packets(packets));
    EmulationSpec::over(path, 1)
}
