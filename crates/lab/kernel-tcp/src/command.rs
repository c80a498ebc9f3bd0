//! Programs at both ends of a path, and their outcomes.

use std::fs;
use std::io;
use std::os::unix::process::ExitStatusExt;
use std::process::{Command, ExitStatus, Stdio};
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use uncork_emu::{Emulation, ProcessGroup, ServerState};
use uncork_sim::{CommandSpec, FlowSpec, RunSpec};
use uncork_units::Time;

use crate::client::{ClientContext, ReceivedData};
use crate::error::KernelTcpError;
use crate::output::{CommandOutput, last_line};
use crate::scratch::Scratch;
use crate::server::PATIENCE;

/// The outcome of a flow's command.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct CommandRecord {
    /// The flow's index in the run.
    pub flow: u32,
    /// Which of the flow's commands it is.
    pub side: CommandSide,
    /// Its output and error output; above 1 MiB the middle is omitted.
    pub output: String,
    /// Its error, as a sentence.
    pub problem: Option<String>,
}

/// The side of a path on which a command ran.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum CommandSide {
    /// The server side.
    Server,
    /// The client side.
    Client,
}

/// Where the commands of a flow run, and their arguments.
#[derive(Clone, Copy, Debug)]
pub(crate) struct CommandPlace<'a> {
    pub(crate) emulation: &'a Emulation,
    pub(crate) flow: u32,
    /// The index of the client's host.
    pub(crate) host: usize,
    /// A port not used by other flows.
    pub(crate) port: u16,
    /// The controller's name as passed to the programs.
    pub(crate) cc: &'a str,
    pub(crate) scratch: &'a Scratch,
}

/// A running server.
#[derive(Debug)]
pub(crate) struct CommandServer {
    flow: u32,
    name: String,
    job: ProcessGroup,
    output: CommandOutput,
    remark: Option<String>,
}

/// A client that has exited or was stopped.
#[derive(Debug)]
pub(crate) struct CommandExit {
    flow: u32,
    name: String,
    /// `None` if it had to be stopped.
    status: Option<ExitStatus>,
    output: CommandOutput,
}

/// A shell's exit statuses for missing programs and for programs that cannot be executed (POSIX,
/// "Exit Status for Commands").
const NOT_RUN: [i32; 2] = [126, 127];

impl CommandPlace<'_> {
    /// A shell that will run `script`, and its output.
    fn shell(
        &self,
        command: io::Result<Command>,
        script: &str,
    ) -> io::Result<(Command, CommandOutput)> {
        let (output, to) = CommandOutput::pipe()?;
        let mut command = command?;
        command.arg("-c").arg(script).stdin(Stdio::null());
        command.stdout(to.try_clone()?).stderr(to);
        command.env("UNCORK_PORT", self.port.to_string()).env("UNCORK_CC", self.cc);
        let directory = self.scratch.of(self.flow);
        fs::create_dir_all(&directory)?;
        command.env("UNCORK_DIR", directory);
        command.env("UNCORK_RECORDS", self.scratch.records_of(self.flow));
        command.env("UNCORK", std::env::current_exe()?);
        Ok((command, output))
    }

    /// Starts the server of `spec`, if any, and waits until it listens or exits, or until `stop`.
    pub(crate) fn serve(
        &self,
        spec: &CommandSpec,
        stop: &AtomicBool,
    ) -> Result<Option<CommandServer>, KernelTcpError> {
        let Some(script) = &spec.server else { return Ok(None) };
        let failed = KernelTcpError::system("start the server of a command");
        let shell = self.shell(self.emulation.server_command(self.host, "sh"), script);
        let (mut shell, output) = shell.map_err(&failed)?;
        let is_over = || stop.load(Ordering::Relaxed);
        let served = ProcessGroup::serve(self.emulation.server(), &mut shell, is_over);
        let (job, service) = served.map_err(&failed)?;
        drop(shell); // It holds the pipe open, too.
        let name = spec.name.clone();
        let remark = match service {
            ServerState::Exited(status) if !status.success() => {
                let how = format!("the server of {name} {} before it listened", describe(status));
                return Err(KernelTcpError::Command(with_last_line(&how, &output.text())));
            }
            ServerState::TimedOut(waited) => {
                let waited = waited.as_secs();
                Some(format!("the server of {name} did not listen within {waited} s"))
            }
            ServerState::Listening | ServerState::Exited(_) => None,
        };
        Ok(Some(CommandServer { flow: self.flow, name, job, output, remark }))
    }

    /// Runs the client of `spec` from the flow's start until it exits, its time limit is reached,
    /// or the run is over. The calling thread must be in the process's own namespace.
    pub(crate) fn fetch(
        &self,
        spec: &CommandSpec,
        flow: &FlowSpec,
        at: ClientContext<'_>,
    ) -> io::Result<ReceivedData> {
        let mut received = ReceivedData::default();
        if !at.wait_until(flow.start) {
            return Ok(received);
        }
        let (mut shell, output) =
            self.shell(self.emulation.client_command(self.host, "sh"), &spec.client)?;
        let mut job = ProcessGroup::start(&mut shell)?;
        drop(shell);
        let limit = spec.limit.map_or(Time::NEVER, |limit| flow.start + limit);
        let status = loop {
            let left = limit.since(at.clock.now()).as_nanos();
            let status = job.ends_within(PATIENCE.min(Duration::from_nanos(left)))?;
            if status.is_some() || left == 0 || at.is_over() {
                break status;
            }
        };
        let now = at.clock.now();
        received.complete = status.filter(ExitStatus::success).map(|_| now);
        if status.is_none() {
            job.end()?;
        }
        received.command =
            Some(CommandExit { flow: self.flow, name: spec.name.clone(), status, output });
        Ok(received)
    }
}

/// Stops `servers` and returns their outcomes and those of `clients`.
pub(crate) fn finish(
    clients: Vec<CommandExit>,
    mut servers: Vec<CommandServer>,
) -> Result<Vec<Finished>, KernelTcpError> {
    let mut finished =
        clients.into_iter().map(CommandExit::finished).collect::<Result<Vec<_>, _>>()?;
    let failed = KernelTcpError::system("end the server of a command");
    servers.iter_mut().try_for_each(CommandServer::ask_to_end).map_err(&failed)?;
    for server in servers {
        finished.push(server.end().map_err(&failed)?);
    }
    Ok(finished)
}

impl CommandServer {
    /// Requests termination.
    fn ask_to_end(&mut self) -> io::Result<()> {
        // A process that has already exited is not stopped by us.
        if let Some(status) = self.job.ends_within(Duration::ZERO)?
            && !status.success()
        {
            self.remark = Some(format!("the server of {} {}", self.name, describe(status)));
        }
        self.job.ask_to_end()
    }

    /// Waits until it has exited. Its child processes may continue until the emulation stops.
    fn end(self) -> io::Result<Finished> {
        let Self { flow, job, output, remark, .. } = self;
        job.end()?;
        Ok(Finished { flow, side: CommandSide::Server, output, problem: remark })
    }
}

/// A command that has exited, though its child processes may still print.
#[derive(Debug)]
pub(crate) struct Finished {
    flow: u32,
    side: CommandSide,
    output: CommandOutput,
    problem: Option<String>,
}

impl CommandExit {
    fn finished(self) -> Result<Finished, KernelTcpError> {
        let Self { flow, name, status, output } = self;
        let problem = status.filter(|status| !status.success());
        let problem = problem.map(|status| format!("the client of {name} {}", describe(status)));
        match (problem, status.and_then(|status| status.code())) {
            (Some(problem), Some(code)) if NOT_RUN.contains(&code) => {
                Err(KernelTcpError::Command(with_last_line(&problem, &output.text())))
            }
            (problem, _) => Ok(Finished { flow, side: CommandSide::Client, output, problem }),
        }
    }
}

impl CommandRecord {
    /// Records another error, unless it has failed anyway.
    pub(crate) fn note(&mut self, problem: String) {
        self.problem.get_or_insert(problem);
    }
}

impl Finished {
    /// Its outcome after all its processes have exited.
    pub(crate) fn record(self) -> CommandRecord {
        let Self { flow, side, output, problem } = self;
        let output = output.text();
        let problem = problem.map(|problem| with_last_line(&problem, &output));
        CommandRecord { flow, side, output, problem }
    }
}

/// Checks that real hosts can run the commands of `run`.
pub(crate) fn check(run: &RunSpec) -> Result<(), KernelTcpError> {
    let mut flows = run.flows.iter().filter_map(|flow| Some((flow, run.command_of(flow)?)));
    match flows.find(|(flow, _)| flow.host.is_some()) {
        Some((_, command)) => Err(KernelTcpError::Spec(format!(
            "the clients of {} and of other flows share a host, so their connections cannot be \
             distinguished; name no host",
            command.name
        ))),
        None => Ok(()),
    }
}

fn describe(status: ExitStatus) -> String {
    match (status.code(), status.signal()) {
        (Some(code), _) => format!("ended with status {code}"),
        (None, Some(signal)) => format!("was ended by signal {signal}"),
        (None, None) => "ended".to_owned(),
    }
}

fn with_last_line(problem: &str, output: &str) -> String {
    match last_line(output) {
        Some(line) => format!("{problem}: {line}"),
        None => format!("{problem}, and printed nothing"),
    }
}
