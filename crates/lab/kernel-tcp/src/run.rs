//! A run, from its specification to its records.

use std::collections::BTreeMap;
use std::io;
use std::net::{SocketAddr, TcpListener, TcpStream};
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread::{self, ScopedJoinHandle};

use uncork_emu::{Clock, Emulation, EmulationSpec, HostSpec, Report};
use uncork_path::Ecn;
use uncork_sim::{CommandSpec, FlowSpec, RunResult, RunSpec};
use uncork_units::{Time, TimeDelta};

use crate::client::{self, ClientContext, ReceivedData};
use crate::command::{
    self, CommandExit, CommandPlace, CommandRecord, CommandServer, CommandSide, Finished,
};
use crate::error::KernelTcpError;
use crate::kernel::Controllers;
use crate::scratch::Scratch;
use crate::traffic::CommandTraffic;
use crate::watch::{ConnectionWatch, Sent};
use crate::{kernel, record, records, server};

/// Port of flow 0's server; the others follow.
const FIRST_PORT: u16 = 10_000;
/// Maximum flows per run: each needs two threads and a namespace for its client.
const MAX_FLOWS: usize = 500;
/// Time from the first thread to the start of the run, and of the path's time.
const LEAD: TimeDelta = TimeDelta::from_millis(100);

/// The result of a run.
#[derive(Clone, Debug)]
pub struct KernelTcpRun {
    /// The same as of a simulated run.
    pub result: RunResult,
    /// The path's report, including its timing.
    pub path: Report,
    /// The outcomes of commands, by flow.
    pub commands: Vec<CommandRecord>,
}

/// Runs `spec` in real time until its end, until no events are left, or until `stop`. Connections get
/// `choice`'s controllers.
///
/// # Errors
///
/// If real endpoints do not support `spec`, in general or on this machine.
pub fn run(
    spec: &RunSpec,
    choice: Controllers,
    stop: &AtomicBool,
) -> Result<KernelTcpRun, KernelTcpError> {
    let (emulated, host_of) = emulation(spec)?;
    let scratch = Scratch::new().map_err(KernelTcpError::system("make a directory for a run"))?;
    let mut stage =
        RunStage { spec, choice, emulation: Emulation::prepare(&emulated)?, host_of, scratch };
    let controllers = stage.prepare()?;
    let servers = stage.serve(&controllers, stop)?;
    let (listeners, watch) = (stage.listeners(&controllers)?, stage.watch()?);
    let clock = Clock::after(LEAD);
    stage.emulation.begin(clock)?;
    let (mut result, clients) = stage.play(&controllers, (listeners, watch), clock, stop)?;
    let finished = command::finish(clients, servers)?;
    let path = stage.emulation.stop()?;
    record::note_drops(&mut result.flows, &stage.host_of, &path);
    record::note_queueing(&mut result.flows, spec, &stage.host_of, FIRST_PORT, &path);
    // No process that could print is running any more.
    let mut commands: Vec<_> = finished.into_iter().map(Finished::record).collect();
    commands.sort_by_key(|command| command.flow);
    for (flow, problem) in records::take(spec, &mut result, &stage.scratch) {
        let mut own = commands.iter_mut().filter(|command| command.flow == flow);
        if let Some(client) = own.find(|command| command.side == CommandSide::Client) {
            client.note(problem);
        }
    }
    Ok(KernelTcpRun { result, path, commands })
}

/// The path to emulate, and the host of each flow's client.
fn emulation(spec: &RunSpec) -> Result<(EmulationSpec, Vec<usize>), KernelTcpError> {
    spec.check().map_err(|error| KernelTcpError::Spec(error.to_string()))?;
    let Some(path) = spec.paths.first() else {
        return Err(KernelTcpError::Spec("missing path".into()));
    };
    if spec.flows.len() > MAX_FLOWS {
        let flows = spec.flows.len();
        return Err(KernelTcpError::Spec(format!(
            "{flows} flows are too many; the limit is {MAX_FLOWS}"
        )));
    }
    command::check(spec)?;
    if let Some((key, why)) = spec.only_simulated() {
        return Err(KernelTcpError::Spec(format!(
            "real connections cannot have {key}: {why}; remove it"
        )));
    }
    let (mut hosts, mut named, mut host_of) = (Vec::new(), BTreeMap::new(), Vec::new());
    for (number, flow) in (0..).zip(&spec.flows) {
        if flow.ecn == Ecn::Ect1 {
            return Err(KernelTcpError::Spec(
                "the kernel's own controllers do not support ECT(1); use ect0".into(),
            ));
        }
        if flow.resume.is_some() {
            return Err(KernelTcpError::Spec(
                "the kernel knows no careful resume; leave it out".into(),
            ));
        }
        let rtt = flow.rtt.filter(|rtt| *rtt != spec.paths[flow.path].rtt);
        let wanted = HostSpec { path: flow.path, rtt, number: Some(spec.host_of(number)) };
        let mut new = || {
            hosts.push(wanted);
            hosts.len() - 1
        };
        let index = match flow.host {
            Some(host) => *named.entry((host, flow.path)).or_insert_with(new),
            None => new(),
        };
        if hosts[index] != wanted {
            return Err(one_round_trip(spec, flow, hosts[index]));
        }
        host_of.push(index);
    }
    let emulation = EmulationSpec {
        links: spec.links.clone(),
        paths: spec.paths.clone(),
        hosts,
        report_queueing: true,
        ..EmulationSpec::over(path.clone(), spec.seed)
    };
    Ok((emulation, host_of))
}

/// Error: a flow has a different RTT than earlier ones on the same host.
fn one_round_trip(spec: &RunSpec, flow: &FlowSpec, host: HostSpec) -> KernelTcpError {
    let number = flow.host.unwrap_or_default();
    let of_path = spec.paths[flow.path].rtt;
    let [first, second] = [host.rtt, flow.rtt].map(|rtt| rtt.unwrap_or(of_path));
    KernelTcpError::Spec(format!(
        "host {number} has flows with round trips of {first} and {second}, and a real host has one \
         over each path; use separate hosts"
    ))
}

/// The environment of a run.
struct RunStage<'a> {
    spec: &'a RunSpec,
    choice: Controllers,
    emulation: Emulation,
    host_of: Vec<usize>,
    /// For files of programs.
    scratch: Scratch,
}

impl RunStage<'_> {
    /// Applies the hosts' settings. Returns the controller name for each flow's endpoints.
    fn prepare(&self) -> Result<Vec<String>, KernelTcpError> {
        let failed = KernelTcpError::system("enter a network namespace");
        let settle = || kernel::settle().and_then(|()| kernel::available());
        let far = self.emulation.server().run(settle).map_err(&failed)?;
        let available = far.map_err(KernelTcpError::system("set a namespace's TCP up"))?;
        for (index, host) in self.emulation.hosts().iter().enumerate() {
            let asks = self.asks_for_ecn(index);
            let ask = || if asks { kernel::ask_for_ecn() } else { Ok(()) };
            let settle = || kernel::settle().and_then(|()| ask());
            let near = host.run(settle).map_err(&failed)?;
            near.map_err(KernelTcpError::system("set a namespace's TCP up"))?;
        }
        let controller = |flow: &FlowSpec| match self.spec.command_of(flow) {
            Some(command) if command.own_cc => Ok(flow.cc.to_string()),
            _ => self.choice.find(flow.cc, &available),
        };
        let controllers = self.spec.flows.iter().map(controller).collect::<Result<Vec<_>, _>>()?;
        let mut ruled = self.commands().filter(|(_, command)| !command.own_cc);
        ruled.try_for_each(|(flow, _)| self.control(flow, &controllers[flow]))?;
        Ok(controllers)
    }

    /// The flows that are commands.
    fn commands(&self) -> impl Iterator<Item = (usize, &CommandSpec)> {
        let flows = self.spec.flows.iter().enumerate();
        flows.filter_map(|(flow, spec)| Some((flow, self.spec.command_of(spec)?)))
    }

    /// Sets the route so that connections of a flow use `cc` in both directions, if its programs do
    /// not set a controller.
    fn control(&self, flow: usize, cc: &str) -> Result<(), KernelTcpError> {
        let (far, near) = (self.emulation.server(), &self.emulation.hosts()[self.host_of[flow]]);
        far.control_congestion(near.addresses(), cc)
            .and_then(|()| near.control_congestion(far.addresses(), cc))
            .map_err(KernelTcpError::system("set a route's congestion control"))
    }

    fn asks_for_ecn(&self, host: usize) -> bool {
        let mut flows = self.host_of.iter().zip(&self.spec.flows);
        flows.any(|(of, flow)| *of == host && flow.ecn == Ecn::Ect0)
    }

    fn address(&self, flow: usize) -> SocketAddr {
        SocketAddr::new(self.emulation.server().addresses().v4.into(), FIRST_PORT + flow as u16)
    }

    /// Listening sockets for the flows' clients.
    fn listeners(
        &self,
        controllers: &[String],
    ) -> Result<Vec<(usize, TcpListener)>, KernelTcpError> {
        let listen = || {
            let listen =
                |(flow, cc): (usize, &String)| Ok((flow, server::listen(self.address(flow), cc)?));
            let flows = controllers.iter().enumerate();
            let own = flows.filter(|(flow, _)| self.command(*flow).is_none());
            own.map(listen).collect::<io::Result<Vec<_>>>()
        };
        let listeners = self
            .emulation
            .server()
            .run(listen)
            .map_err(KernelTcpError::system("enter a network namespace"))?;
        listeners.map_err(KernelTcpError::system("listen for clients"))
    }

    fn command(&self, flow: usize) -> Option<&CommandSpec> {
        self.spec.command_of(&self.spec.flows[flow])
    }

    fn setting<'b>(&'b self, flow: usize, controllers: &'b [String]) -> CommandPlace<'b> {
        CommandPlace {
            emulation: &self.emulation,
            flow: flow as u32,
            host: self.host_of[flow],
            port: self.address(flow).port(),
            cc: &controllers[flow],
            scratch: &self.scratch,
        }
    }

    /// Starts the servers of commands and waits until they listen, or until `stop`.
    fn serve(
        &self,
        controllers: &[String],
        stop: &AtomicBool,
    ) -> Result<Vec<CommandServer>, KernelTcpError> {
        let wanted = self.commands().take_while(|_| !stop.load(Ordering::Relaxed));
        let served = wanted.map(|(flow, spec)| self.setting(flow, controllers).serve(spec, stop));
        Ok(served.collect::<Result<Vec<_>, _>>()?.into_iter().flatten().collect())
    }

    /// The watcher of the flows.
    fn watch(&self) -> Result<ConnectionWatch, KernelTcpError> {
        let traffic = CommandTraffic::open(&self.emulation, self.spec, &self.host_of)?;
        ConnectionWatch::open(self.emulation.server(), self.spec, FIRST_PORT, traffic)
    }

    /// Runs all flows. Returns their records and the outcomes of the commands' clients.
    fn play(
        &self,
        controllers: &[String],
        (listeners, watch): (Vec<(usize, TcpListener)>, ConnectionWatch),
        clock: Clock,
        stop: &AtomicBool,
    ) -> Result<(RunResult, Vec<CommandExit>), KernelTcpError> {
        let over = AtomicBool::new(stop.load(Ordering::Relaxed));
        let at = ClientContext { clock, warmup: self.spec.warmup, stop: &over };
        thread::scope(|scope| {
            let serve = |(flow, listener): (usize, TcpListener)| {
                let flow = &self.spec.flows[flow];
                scope.spawn(move || server::serve(&listener, flow.workload, flow.start, at))
            };
            let servers: Vec<_> = listeners.into_iter().map(serve).collect();
            let fetch = |flow| scope.spawn(move || self.fetch(flow, controllers, at));
            let clients: Vec<_> = (0..self.spec.flows.len()).map(fetch).collect();
            let is_done = || clients.iter().all(ScopedJoinHandle::is_finished);
            let watched =
                watch.until(self.spec.end, clock, || stop.load(Ordering::Relaxed) || is_done());
            over.store(true, Ordering::Relaxed);
            let received =
                clients.into_iter().map(joined).collect::<io::Result<Vec<ReceivedData>>>();
            let kept =
                servers.into_iter().map(joined).collect::<io::Result<Vec<Option<TcpStream>>>>();
            let (sent, series) = watched?;
            let kept = kept.map_err(KernelTcpError::system("serve a client"))?;
            let ended = kept.iter().flatten().try_for_each(server::abort);
            ended.map_err(KernelTcpError::system("end a connection"))?;
            let mut received = received.map_err(KernelTcpError::system("fetch from a server"))?;
            let result = self.result(clock.now(), &received, &sent, series);
            Ok((
                result,
                received.iter_mut().filter_map(|received| received.command.take()).collect(),
            ))
        })
    }

    /// Runs the client of a flow on the calling thread.
    fn fetch(
        &self,
        flow: usize,
        controllers: &[String],
        at: ClientContext<'_>,
    ) -> io::Result<ReceivedData> {
        let spec = &self.spec.flows[flow];
        if let Some(command) = self.command(flow) {
            return self.setting(flow, controllers).fetch(command, spec, at);
        }
        self.emulation.hosts()[self.host_of[flow]].enter()?;
        let client = self.spec.client_of(flow as u32);
        client::fetch(self.address(flow), spec, client, at)
    }

    fn result(
        &self,
        now: Time,
        received: &[ReceivedData],
        sent: &[Sent],
        series: Vec<uncork_flow::SeriesPoint>,
    ) -> RunResult {
        let (mut flows, mut requests) = (Vec::new(), Vec::new());
        for (index, (received, sent)) in (0..).zip(received.iter().zip(sent)) {
            let report = received.client.as_ref().map(|client| client.report(now));
            flows.push(record::flow(
                self.spec,
                self.choice,
                index,
                (received, report.as_ref()),
                sent,
            ));
            requests.extend(report.into_iter().flat_map(|report| report.request_records(index)));
        }
        let packets = sent.iter().map(|sent| sent.figures.packets_sent).sum();
        RunResult { flows, requests, series, packets }
    }
}

fn joined<T>(thread: ScopedJoinHandle<'_, T>) -> T {
    match thread.join() {
        Ok(result) => result,
        Err(panic) => std::panic::resume_unwind(panic),
    }
}

#[cfg(test)]
mod tests {
    use uncork_path::{Buffer, PathSpec};
    use uncork_sim::Workload;
    use uncork_units::Rate;

    use super::*;

    /// Queues share among hosts as in the simulator.
    #[test]
    fn hosts_have_the_same_numbers_as_in_the_simulator() {
        let path = |millis| {
            let rtt = TimeDelta::from_millis(millis);
            PathSpec::new(Rate::from_mbit(20), rtt, Buffer::MilliBdp(1000))
        };
        let of = |host, path| FlowSpec {
            host,
            path,
            ..FlowSpec::new("reno".parse().expect("a controller"), Workload::Transfer(1))
        };
        let flows = vec![of(None, 0), of(Some(7), 0), of(None, 1), of(Some(7), 0), of(Some(7), 1)];
        let mut run = RunSpec::over(path(20), flows, 1, Time::ZERO + TimeDelta::from_secs(1));
        run.paths.push(path(40));
        let (emulated, host_of) = emulation(&run).expect("it can be played");
        assert_eq!(host_of, [0, 1, 2, 1, 3], "host 7 is the same on each path");
        let numbers: Vec<_> = host_of.iter().map(|host| emulated.hosts[*host].number).collect();
        assert_eq!(numbers, [0, 1, 2, 3, 4].map(|flow| Some(run.host_of(flow))));
        assert_eq!(numbers[1..], [Some(7), Some(1 << 31 | 2), Some(7), Some(7)]);
    }
}
