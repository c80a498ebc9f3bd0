//! An emulated path, if the machine allows tests to create one.

use uncork_emu::{EmuError, Emulation, EmulationSpec};
use uncork_path::PathSpec;
use uncork_testkit::{Capability, not_run};

/// Starts an emulation. Reports the test as not run and returns `None` without permission for
/// namespaces and TUN devices.
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
