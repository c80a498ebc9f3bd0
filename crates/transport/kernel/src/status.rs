//! Which controllers are loaded, and who uses them: `docs/schemas/kernel-1.json`.

use std::collections::BTreeMap;

use serde::Serialize;
use uncork_terminal::{Column, Style, Table};

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
        let word = |is: bool| if is { "yes" } else { "no" }.to_owned();
        let rows = self.controllers.iter().map(|one| {
            [one.name.to_owned(), word(one.loaded), word(one.default), one.connections.to_string()]
        });
        Table::new(["name", "loaded", "default", "connections"].map(Column::left), rows)
            .render(Style::Plain)
    }
}
