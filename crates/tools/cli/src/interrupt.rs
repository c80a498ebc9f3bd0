//! Handling of Ctrl-C and of SIGTERM from batch systems.

use std::io;
use std::sync::Arc;
use std::sync::atomic::AtomicBool;

use signal_hook::consts::{SIGINT, SIGTERM};
use signal_hook::flag;

use crate::exit::INTERRUPTED;
use crate::failure::Failure;

/// A flag set by the first such signal; the second ends the process at once.
pub(crate) fn flag_on_signal() -> Result<Arc<AtomicBool>, Failure> {
    flag_on_signals()
        .map_err(|error| Failure::Environment(format!("cannot listen for signals: {error}")))
}

fn flag_on_signals() -> io::Result<Arc<AtomicBool>> {
    let stop = Arc::new(AtomicBool::new(false));
    for signal in [SIGINT, SIGTERM] {
        // In this order: the first signal finds the flag unset and sets it.
        flag::register_conditional_shutdown(signal, i32::from(INTERRUPTED), Arc::clone(&stop))?;
        flag::register(signal, Arc::clone(&stop))?;
    }
    Ok(stop)
}
