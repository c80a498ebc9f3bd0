//! Which controllers are loaded, and who uses them: `docs/schemas/kernel-1.json`.

use std::collections::BTreeMap;
use std::fmt::Write as _;

use serde::Serialize;

use crate::algorithm::Algorithm;
use crate::error::Error;
use crate::host::{available, default};
use crate::pin::Pins;

/// The controllers that this program can load.
#[derive(Clone, Debug, Serialize)]
pub struct KernelStatus {
    schema: &'static str,
    /// Why nothing can be loaded; `None` if it can.
    missing: Option<String>,
    /// By name.
    pub controllers: Vec<ControllerStatus>,
}

/// A controller.
#[derive(Clone, Debug, Serialize)]
pub struct ControllerStatus {
    /// Its name.
    pub name: &'static str,
    /// Whether sockets can choose it.
    pub loaded: bool,
    /// Whether it is the default of this network namespace.
    pub default: bool,
    /// Connections that have it.
    pub connections: u64,
    /// `None` if it is not loaded by our pin, or the kernel does not report it.
    verified_instructions: Option<u32>,
}

impl KernelStatus {
    /// The controllers with their `users`, connections by controller, and what is `missing` to load them.
    pub fn new(pins: &Pins, users: &BTreeMap<String, u64>, missing: Option<&Error>) -> Self {
        let (default, available) = (default(), available());
        let controllers = Algorithm::ALL.map(|one| ControllerStatus {
            name: one.name(),
            loaded: available.iter().any(|name| name == one.name()),
            default: default == one.name(),
            connections: users.get(one.name()).copied().unwrap_or(0),
            verified_instructions: pins.verified_instructions(one).ok(),
        });
        Self {
            schema: "uncork.kernel/1",
            missing: missing.map(Error::to_string),
            controllers: controllers.into(),
        }
    }

    /// A table.
    pub fn text(&self) -> String {
        let mut text = format!("{:<14}{:<8}{:<9}connections\n", "name", "loaded", "default");
        for one in &self.controllers {
            let word = |is: bool| if is { "yes" } else { "no" };
            let (loaded, default) = (word(one.loaded), word(one.default));
            // Writing into a string cannot fail.
            let _ = writeln!(text, "{:<14}{loaded:<8}{default:<9}{}", one.name, one.connections);
        }
        text
    }
}
