//! The figures of a run, for programs.

use serde::Serialize;
use uncork_emu::{Emulation, Namespace, Report};

use crate::failure::Failure;
use crate::lab::quoted;

/// What is in summary.json.
#[derive(Debug, Serialize)]
pub(super) struct Document {
    /// The command line.
    pub(super) command: String,
    /// With which status COMMAND ended; `None` if there was none.
    pub(super) status: Option<u8>,
    #[serde(flatten)]
    pub(super) report: Report,
}

/// A host and how to get there.
#[derive(Debug, Serialize)]
pub(super) struct Host {
    pub(super) side: &'static str,
    pub(super) name: String,
    pub(super) v4: String,
    pub(super) v6: Option<String>,
}

impl Host {
    /// The hosts of `emulation`, the far side first, with their `names`.
    pub(super) fn all<'a>(
        emulation: &Emulation,
        names: impl Iterator<Item = &'a str>,
    ) -> Vec<Self> {
        let near = emulation.hosts().iter().map(|host| ("near", host));
        let hosts = [("far", emulation.far())].into_iter().chain(near);
        hosts.zip(names).map(|((side, host), name)| Self::new(side, host, name)).collect()
    }

    fn new(side: &'static str, host: &Namespace, name: &str) -> Self {
        let addresses = host.addresses();
        let v6 = addresses.v6.map(|address| address.to_string());
        Self { side, name: name.to_owned(), v4: addresses.v4.to_string(), v6 }
    }
}

/// The command line that was given, for a shell.
pub(super) fn command_line() -> String {
    let words = std::env::args_os().skip(1);
    let words = words.map(|word| quoted(&word.to_string_lossy()));
    ["uncork".to_owned()].into_iter().chain(words).collect::<Vec<_>>().join(" ")
}

/// A document of one line, or laid out for people.
pub(super) fn json(value: &impl Serialize, pretty: bool) -> Result<Vec<u8>, Failure> {
    let text = if pretty { serde_json::to_vec_pretty(value) } else { serde_json::to_vec(value) };
    let text = text.map_err(|error| Failure::Environment(format!("no JSON: {error}")));
    text.map(|mut text| {
        text.push(b'\n');
        text
    })
}
