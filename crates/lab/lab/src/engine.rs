//! The engine of a run: the simulator or the kernel.

use std::fmt;
use std::str::FromStr;
use std::sync::atomic::AtomicBool;

use uncork_sim::{RunResult, RunSpec};

use crate::evaluate::CommandOutcome;
use crate::scenario::Scenario;

/// The engine of a run.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub enum Engine {
    /// Simulated segments, in virtual time.
    #[default]
    Sim,
    /// Real QUIC endpoints, in virtual time.
    QuicSim,
    /// The kernel's TCP between network namespaces, over an emulated path, in real time (Linux).
    Netns,
    /// The same with the library's controllers in the kernel (`uncork kernel load`).
    Bpf,
}

/// Why an engine cannot run something.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{message}")]
pub struct EngineError {
    /// The problem and how to fix it.
    pub message: String,
    /// Whether the machine is the cause, not the scenario.
    pub is_of_machine: bool,
}

/// Results of a run and reasons to distrust them.
pub(crate) struct PlayedRun {
    pub(crate) result: RunResult,
    pub(crate) doubts: Vec<String>,
    pub(crate) commands: Vec<CommandOutcome>,
}

impl Engine {
    /// All engines.
    pub const ALL: [Self; 4] = [Self::Sim, Self::QuicSim, Self::Netns, Self::Bpf];

    /// Its name on the command line and in results.
    pub const fn name(self) -> &'static str {
        match self {
            Self::Sim => "sim",
            Self::QuicSim => "quic-sim",
            Self::Netns => "netns",
            Self::Bpf => "bpf",
        }
    }

    /// Whether this build has it, where the system does.
    pub const fn is_built(self) -> bool {
        cfg!(feature = "endpoints") || matches!(self, Self::Sim)
    }

    /// Whether runs are in real time, not in virtual time.
    pub const fn is_in_real_time(self) -> bool {
        matches!(self, Self::Netns | Self::Bpf)
    }

    /// Default number of parallel runs: one per processor, out of `processors`, unless runs would
    /// interfere with each other.
    pub fn usual_jobs(self, processors: usize) -> usize {
        if self.is_in_real_time() { 1 } else { processors }
    }

    /// Whether it can run `scenario`.
    ///
    /// # Errors
    ///
    /// Which part it does not support, and which engine does.
    pub fn check(self, scenario: &Scenario) -> Result<(), EngineError> {
        if self != Self::QuicSim {
            check_tcp(scenario)?;
        }
        let mut classes = scenario.cells.iter().flat_map(|cell| &cell.classes);
        let command = classes.find(|class| class.carries.is_command());
        match command.filter(|_| !self.is_in_real_time()) {
            Some(class) => return Err(no_commands(&class.name)),
            None if !self.is_in_real_time() => return Ok(()),
            None => {}
        }
        let runs =
            (0..scenario.cells.len()).map(|cell| scenario.planned(cell, scenario.first_seed).run);
        let mut only_simulated = runs.filter_map(|run| run.only_simulated());
        only_simulated.next().map_or(Ok(()), |only| Err(self.cannot_have(only)))
    }

    fn cannot_have(self, (key, why): (&str, &str)) -> EngineError {
        let message = format!("--on {self} cannot have `{key}`: {why}; remove it, or use --on sim");
        EngineError { message, is_of_machine: false }
    }

    /// Executes `run`. Long parts are aborted when `stop` is set.
    pub(crate) fn play(self, run: &RunSpec, stop: &AtomicBool) -> Result<PlayedRun, EngineError> {
        match (self, run.commands.first()) {
            (Self::Sim | Self::QuicSim, Some(command)) => Err(no_commands(&command.name)),
            (Self::Sim, None) => {
                let (doubts, commands) = (Vec::new(), Vec::new());
                Ok(PlayedRun { result: uncork_sim::run(run), doubts, commands })
            }
            (Self::QuicSim, None) => quic(run, stop),
            (Self::Netns | Self::Bpf, _) => kernel_tcp(self, run, stop),
        }
    }
}

/// Whether TCP can run `scenario`.
fn check_tcp(scenario: &Scenario) -> Result<(), EngineError> {
    let mut paths = scenario.cells.iter().flat_map(|cell| &cell.plan.paths);
    let mut flows = scenario.cells.iter().flat_map(|cell| &cell.plan.flows);
    let problem = if paths.any(|path| path.spec.max_packet.is_some()) {
        "TCP does not search for its packet size here, and all that is larger than `max_packet` would be lost"
    } else if flows.any(|flow| !flow.migrations.is_empty()) {
        "a TCP connection ends when an address changes, so flows have no `migrations`"
    } else {
        return Ok(());
    };
    let message = format!("{problem}; remove it, or use --on quic-sim");
    Err(EngineError { message, is_of_machine: false })
}

fn no_commands(class: &str) -> EngineError {
    let message = format!(
        "the class '{class}' is a command, and the simulator runs no programs; have the scenario \
         played by the kernel: uncork lab run --on netns"
    );
    EngineError { message, is_of_machine: false }
}

#[cfg(feature = "endpoints")]
fn quic(run: &RunSpec, stop: &AtomicBool) -> Result<PlayedRun, EngineError> {
    let played = uncork_quic_sim::run(run, stop);
    let played =
        played.map_err(|error| EngineError { message: error.to_string(), is_of_machine: false })?;
    Ok(PlayedRun { result: played.result, doubts: played.failures, commands: Vec::new() })
}

#[cfg(not(feature = "endpoints"))]
fn quic(_: &RunSpec, _: &AtomicBool) -> Result<PlayedRun, EngineError> {
    let message = "QUIC endpoints are not in this build; run it with --on sim".to_owned();
    Err(EngineError { message, is_of_machine: true })
}

#[cfg(all(target_os = "linux", feature = "endpoints"))]
fn kernel_tcp(engine: Engine, run: &RunSpec, stop: &AtomicBool) -> Result<PlayedRun, EngineError> {
    let controllers = match engine {
        Engine::Bpf => uncork_kernel_tcp::Controllers::Library,
        _ => uncork_kernel_tcp::Controllers::Kernel,
    };
    let played = uncork_kernel_tcp::run(run, controllers, stop).map_err(|error| EngineError {
        message: error.to_string(),
        is_of_machine: error.is_of_machine(),
    })?;
    let command = |command: uncork_kernel_tcp::CommandRecord| CommandOutcome {
        flow: command.flow,
        is_server: command.side == uncork_kernel_tcp::CommandSide::Server,
        output: command.output,
        problem: command.problem,
    };
    let commands = played.commands.into_iter().map(command).collect();
    Ok(PlayedRun { result: played.result, doubts: played.path.flags, commands })
}

#[cfg(not(all(target_os = "linux", feature = "endpoints")))]
fn kernel_tcp(_: Engine, _: &RunSpec, _: &AtomicBool) -> Result<PlayedRun, EngineError> {
    let message =
        "real connections are played on Linux only, and not by this build; run it with --on sim"
            .to_owned();
    Err(EngineError { message, is_of_machine: true })
}

impl fmt::Display for Engine {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.name())
    }
}

impl FromStr for Engine {
    type Err = &'static str;

    fn from_str(text: &str) -> Result<Self, &'static str> {
        let found = Self::ALL.into_iter().find(|engine| engine.name() == text);
        found.ok_or("engines are sim, quic-sim, netns and bpf")
    }
}
