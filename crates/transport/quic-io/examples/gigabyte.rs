//! Measures the server's CPU time per gigabyte: one stream over a veth pair (MTU 1500) between two
//! network namespaces, the server on core 0, the client on core 1. Needs root, `ip` and `taskset`.
//!
//! `gigabyte [ROUNDS] [CONTROLLER…]` prints medians of interleaved rounds. Controllers are uncork's and the
//! stack's own, `noq-cubic` and `noq-bbr3`. The variable `WAIT_US` is the longest delay of a connection
//! for larger batches; `MBIT` replaces the veth pair by an emulated path of this rate and 20 ms.
#![expect(clippy::unwrap_used, reason = "a measurement that cannot run has failed")]

#[path = "../tests/common/mod.rs"]
mod common;

use std::io::{BufRead, BufReader, Read};
use std::net::{Ipv4Addr, SocketAddr, UdpSocket};
use std::process::{Child, Command, Stdio};
use std::sync::Arc;
use std::sync::mpsc::channel;
use std::time::Duration;

use common::identity::certificate;
use common::{Ends, Report, Request, TestClient, TestServer, now, transport};
use noq_proto::ConnectionError;
use rustix::time::{ClockId, clock_gettime};
use uncork_emu::{Emulation, EmulationSpec};
use uncork_path::{Buffer, PathSpec};
use uncork_quic_io::{SocketStats, Stats, Workers, bind};
use uncork_units::{Rate, TimeDelta};

const BYTES: u64 = 1_000_000_000;
const SECRETS: [&str; 2] = ["CERTIFICATE", "KEY"];
const SERVER: &str = "10.254.77.1";
const PORT: u16 = 4433;

fn main() {
    let args: Vec<String> = std::env::args().skip(1).collect();
    let args: Vec<&str> = args.iter().map(String::as_str).collect();
    match args[..] {
        ["serve", cc] => serve(cc),
        ["get", server] => get(server),
        [] => measure(5, &["bbr3", "cubic"]),
        [rounds] => measure(rounds.parse().unwrap(), &["bbr3", "cubic"]),
        [rounds, ref ccs @ ..] => measure(rounds.parse().unwrap(), ccs),
    }
}

/// CPU seconds of this process.
fn cpu() -> f64 {
    let time = clock_gettime(ClockId::ProcessCPUTime);
    time.tv_sec as f64 + time.tv_nsec as f64 / 1e9
}

/// The certificate of both ends, made by the parent process.
fn ends() -> Ends {
    let [certificate, key] = SECRETS.map(|name| {
        let text = std::env::var(name).unwrap();
        text.split(' ').map(|byte| byte.parse().unwrap()).collect::<Vec<u8>>()
    });
    Ends::with(&certificate, &key, &transport(Duration::from_secs(30)))
}

fn serve(cc: &str) {
    let ends = ends();
    let mut app = TestServer::new(&ends, cc.strip_prefix("noq-").unwrap_or(cc));
    if let Some(name) = cc.strip_prefix("noq-") {
        let mut transport = transport(Duration::from_secs(30));
        if name == "bbr3" {
            let config = noq_proto::congestion::Bbr3Config::default();
            transport.congestion_controller_factory(Arc::new(config));
        }
        let mut config = (*ends.server.base()).clone();
        config.transport_config(Arc::new(transport));
        app.other = Some(Arc::new(config));
    }
    let mut config = ends.server_config();
    if let Ok(wait) = std::env::var("WAIT_US") {
        config.limits.longest_wait = Duration::from_micros(wait.parse().unwrap());
    }
    let sockets = bind((Ipv4Addr::UNSPECIFIED, PORT).into(), 1).unwrap();
    let lost = Arc::clone(&app.lost);
    let workers = Workers::start(sockets, &config, move |_| app.clone()).unwrap();
    println!("ready");
    let before = cpu();
    // Waits until the other process closes the pipe.
    std::io::stdin().read_to_end(&mut Vec::new()).unwrap();
    let used = cpu() - before;
    let Stats { socket, wakes, .. } = workers.stats(0);
    drop(workers);
    let SocketStats { batches_sent, datagrams_sent, blocked, datagrams_received, .. } = socket;
    let lost = lost.load(std::sync::atomic::Ordering::Relaxed);
    println!(
        "{used} {batches_sent} {datagrams_sent} {blocked} {datagrams_received} {wakes} {lost}"
    );
}

fn get(server: &str) {
    let client = ends().client;
    let socket = UdpSocket::bind("0.0.0.0:0").unwrap();
    let make = move |_| TestClient { client: client.clone() };
    let workers = Workers::start(vec![socket], &Ends::client_config(), make).unwrap();
    let (report, reports) = channel();
    let remote = SocketAddr::new(server.parse().unwrap(), PORT);
    let (before, start) = (cpu(), now());
    workers.send(0, Request { remote, bytes: BYTES, streams: 1, verify: false, report });
    let end = reports.iter().find(|report| matches!(report, Report::Closed { .. }));
    let (used, took) = (cpu() - before, start.elapsed().as_secs_f64());
    let Some(Report::Closed { bytes: BYTES, reason: ConnectionError::LocallyClosed, .. }) = end
    else {
        panic!("{end:?}");
    };
    println!("{used} {took}");
}

/// The network between server and client.
enum Between {
    /// Two connected namespaces, by name.
    Wire([String; 2]),
    /// A path.
    Path(Box<Emulation>),
}

impl Between {
    fn new() -> Self {
        if let Ok(rate) = std::env::var("MBIT") {
            let (rate, rtt) = (Rate::from_mbit(rate.parse().unwrap()), TimeDelta::from_millis(20));
            let spec = EmulationSpec::over(PathSpec::new(rate, rtt, Buffer::MilliBdp(2000)), 1);
            return Self::Path(Box::new(Emulation::start(&spec).unwrap()));
        }
        let names = ["s", "c"].map(|end| format!("uncork-{}-{end}", std::process::id()));
        let wire = Self::Wire(names.clone());
        let [server, client] = names;
        for command in [
            format!("netns add {server}"),
            format!("netns add {client}"),
            format!("link add wire netns {server} type veth peer name wire netns {client}"),
            format!("-n {server} addr add {SERVER}/24 dev wire"),
            format!("-n {client} addr add 10.254.77.2/24 dev wire"),
            format!("-n {server} link set wire up mtu 1500"),
            format!("-n {client} link set wire up mtu 1500"),
        ] {
            let status = Command::new("ip").args(command.split(' ')).status().unwrap();
            assert!(status.success(), "ip {command}");
        }
        wire
    }

    fn server(&self) -> String {
        match self {
            Self::Wire(_) => SERVER.to_owned(),
            Self::Path(emulation) => emulation.server().addresses().v4.to_string(),
        }
    }

    /// Starts this program at one end.
    fn start(&self, end: usize, args: &[&str], secrets: &[String; 2]) -> Child {
        let program = std::env::current_exe().unwrap();
        let mut command = match self {
            Self::Wire(names) => {
                let mut command = Command::new("ip");
                command.args(["netns", "exec", &names[end], "taskset"]);
                command
            }
            Self::Path(emulation) if end == 0 => emulation.server().command("taskset").unwrap(),
            Self::Path(emulation) => emulation.client().command("taskset").unwrap(),
        };
        command.args(["-c", &end.to_string()]).arg(program).args(args);
        command.stdin(Stdio::piped()).stdout(Stdio::piped());
        command.envs(SECRETS.iter().zip(secrets)).spawn().unwrap()
    }
}

impl Drop for Between {
    fn drop(&mut self) {
        if let Self::Wire(names) = self {
            for name in names {
                let _ = Command::new("ip").args(["netns", "del", name]).status();
            }
        }
    }
}

/// Measurements of a transfer.
#[derive(Clone, Copy)]
struct Round {
    server_cpu: f64,
    client_cpu: f64,
    mbit: f64,
    per_batch: f64,
    blocked: f64,
    acks: f64,
    wakes: f64,
    lost: f64,
}

fn round(between: &Between, secrets: &[String; 2], cc: &str) -> Round {
    let mut server = between.start(0, &["serve", cc], secrets);
    let mut output = BufReader::new(server.stdout.take().unwrap());
    let mut line = String::new();
    output.read_line(&mut line).unwrap();
    let client = between.start(1, &["get", &between.server()], secrets).wait_with_output().unwrap();
    drop(server.stdin.take());
    line.clear();
    output.read_line(&mut line).unwrap();
    server.wait().unwrap();
    let numbers = |text: &str| -> Vec<f64> {
        text.split_whitespace().map(|number| number.parse().unwrap()).collect()
    };
    let [used, batches, datagrams, blocked, acks, wakes, lost] = numbers(&line)[..] else {
        panic!("the server said {line:?}");
    };
    let [client_cpu, took] = numbers(std::str::from_utf8(&client.stdout).unwrap())[..] else {
        panic!("the client failed");
    };
    let gigabytes = BYTES as f64 / 1e9;
    Round {
        server_cpu: used / gigabytes,
        client_cpu: client_cpu / gigabytes,
        mbit: BYTES as f64 * 8.0 / 1e6 / took,
        per_batch: datagrams / batches,
        blocked,
        acks,
        wakes,
        lost: lost / 1e6,
    }
}

fn measure(rounds: usize, ccs: &[&str]) {
    let between = Between::new();
    let (certificate, key) = certificate();
    let secrets = [certificate, key]
        .map(|bytes| bytes.iter().map(u8::to_string).collect::<Vec<_>>().join(" "));
    let mut results: Vec<Vec<Round>> = vec![Vec::new(); ccs.len()];
    for _ in 0..rounds {
        for (cc, results) in ccs.iter().zip(&mut results) {
            results.push(round(&between, &secrets, cc));
        }
    }
    println!("1 GB on one stream, MTU 1500; medians of {rounds} rounds (least to most)");
    println!(
        "{:<10} {:>22} {:>14} {:>12} {:>11} {:>8} {:>10} {:>10} {:>10}",
        "controller",
        "server CPU-s/GB",
        "client CPU-s",
        "Mbit/s",
        "dgrams/send",
        "EAGAIN",
        "received",
        "wakes",
        "lost MB"
    );
    for (cc, results) in ccs.iter().zip(&results) {
        let of = |field: fn(&Round) -> f64| {
            let mut values: Vec<f64> = results.iter().map(field).collect();
            values.sort_by(f64::total_cmp);
            (values[values.len() / 2], values[0], values[values.len() - 1])
        };
        let (cpu, least, most) = of(|round| round.server_cpu);
        println!(
            "{cc:<10} {:>22} {:>14.2} {:>12.0} {:>11.1} {:>8.0} {:>10.0} {:>10.0} {:>10.2}",
            format!("{cpu:.2} ({least:.2} to {most:.2})"),
            of(|round| round.client_cpu).0,
            of(|round| round.mbit).0,
            of(|round| round.per_batch).0,
            of(|round| round.blocked).0,
            of(|round| round.acks).0,
            of(|round| round.wakes).0,
            of(|round| round.lost).0,
        );
    }
}
