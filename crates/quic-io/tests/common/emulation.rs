//! An emulated path, if the machine lets tests have one.

use uncork_emu::{EmuError, Emulation, EmulationSpec};
use uncork_path::PathSpec;
use uncork_testkit::{Capability, not_run};

/// Starts an emulation; `None`, loudly, where the machine has no namespaces or TUN devices for us.
pub(crate) fn start(path: PathSpec) -> Option<Emulation> {
    match Emulation::start(&EmulationSpec::over(path, 1)) {
        Ok(emulation) => Some(emulation),
        Err(error @ EmuError::System { .. }) => {
            not_run(Capability::Netns, &error.to_string());
            None
        }
        Err(error) => panic!("{error}"),
    }
}
