//! Checks the limits that the watch reports for the kernel's TCP, over emulated paths, in scripted
//! cases.
#![cfg(target_os = "linux")]
#![expect(clippy::unwrap_used, reason = "a test that cannot run has failed")]

use std::fs;
use std::process::{Child, Stdio};
use std::thread;
use std::time::Duration;

use uncork_emu::{EmuError, Emulation, EmulationSpec, Namespace};
use uncork_path::{Buffer, LossSpec, PathSpec, PolicerSpec};
use uncork_testkit::{Capability, not_run, pause, wait_for};
use uncork_units::{ByteCount, Probability, Rate, TimeDelta};
use uncork_watch::{Limit, Session, Tick, Tracked, WatchSpec};

const PORT: u16 = 8080;

/// Sends chunks until it is killed, with a pause after each.
const SERVER: &str = r"
import socket, sys, time
address, cc, chunk, pause, sndbuf, cap = sys.argv[1], sys.argv[2], *map(float, sys.argv[3:])
listener = socket.create_server((address, 8080))
listener.setsockopt(socket.IPPROTO_TCP, socket.TCP_CONGESTION, cc.encode())
connection = listener.accept()[0]
if sndbuf: connection.setsockopt(socket.SOL_SOCKET, socket.SO_SNDBUF, int(sndbuf))
if cap: connection.setsockopt(socket.SOL_SOCKET, 47, int(cap)) # SO_MAX_PACING_RATE
while True:
    connection.sendall(bytes(int(chunk)))
    time.sleep(pause)
";

/// Reads until it is killed.
const CLIENT: &str = r"
import socket, sys, time
address, chunk, pause, rcvbuf = sys.argv[1], *map(float, sys.argv[2:])
connection = socket.socket()
if rcvbuf: connection.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, int(rcvbuf))
for attempt in range(500):
    if connection.connect_ex((address, 8080)) == 0: break
    time.sleep(0.01)
while connection.recv(int(chunk)):
    time.sleep(pause)
";

/// The behaviour of both ends and of the path.
#[derive(Clone)]
struct Case {
    name: &'static str,
    expected: Limit,
    cc: &'static str,
    path: PathSpec,
    /// Bytes of a chunk, seconds between chunks, send buffer, pacing cap in bytes per second; 0 is
    /// the system's default.
    server: [f64; 4],
    /// Bytes of a chunk, seconds between chunks, receive buffer.
    client: [f64; 3],
}

/// A process that is killed at the end of the test.
struct Process(Child);

impl Drop for Process {
    fn drop(&mut self) {
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

fn python(host: &Namespace, script: &str, arguments: &[String]) -> Process {
    let mut command = host.command("python3").unwrap();
    command.args(["-c", script]).args(arguments).stdin(Stdio::null());
    Process(command.spawn().expect("python3"))
}

fn path(mbit: u64, rtt: u64, bdps: u64) -> PathSpec {
    let (rate, rtt) = (Rate::from_mbit(mbit), TimeDelta::from_millis(rtt));
    PathSpec::new(rate, rtt, Buffer::Bytes(ByteCount::new(bdps * rate.bytes_in(rtt))))
}

/// The limit of the server's connection that the watch reports after some seconds.
fn watched(case: &Case) -> Option<(Limit, f64, String)> {
    let emulation = match Emulation::start(&EmulationSpec::over(case.path.clone(), 1)) {
        Ok(emulation) => emulation,
        Err(error @ EmuError::System { .. }) => {
            not_run(Capability::Netns, &error.to_string());
            return None;
        }
        Err(error) => panic!("{error}"),
    };
    let address = emulation.server().addresses().v4.to_string();
    let texts = |numbers: &[f64]| numbers.iter().map(f64::to_string).collect::<Vec<_>>();
    let server = [vec![address.clone(), case.cc.to_owned()], texts(&case.server)].concat();
    let client = [vec![address], texts(&case.client)].concat();
    let spec = WatchSpec::live(Duration::from_millis(250));
    let mut session = emulation.server().run(|| Session::start(&spec)).unwrap().unwrap();
    let _server = python(emulation.server(), SERVER, &server);
    let _client = python(emulation.client(), CLIENT, &client);
    let seen = wait_for("four seconds of the connection", Duration::from_secs(30), || {
        while let Tick::Wait(_) = session.tick().unwrap() {
            pause(Duration::from_millis(20), "the time between two passes");
        }
        let mut all = session.tracker().connections();
        let ours = all.find(|it| it.now.local.port() == PORT)?;
        (ours.life.total() >= TimeDelta::from_secs(4)).then(|| summary(ours))
    });
    emulation.stop().unwrap();
    Some(seen)
}

fn summary(tracked: &Tracked) -> (Limit, f64, String) {
    let (limit, share) = tracked.life.main().unwrap();
    let times = Limit::ALL.map(|it| format!("{} {}", it.name(), tracked.life.time(it)));
    (limit, share, format!("{} {:?}", times.join(", "), tracked.now))
}

#[test]
fn each_limit_is_detected() {
    let fast = Case {
        name: "",
        expected: Limit::Network,
        cc: "cubic",
        path: path(50, 40, 2),
        server: [65_536.0, 0.0, 0.0, 0.0],
        client: [1e6, 0.0, 0.0],
    };
    let case = |name, expected| Case { name, expected, ..fast.clone() };
    let mut lossy = path(20, 40, 2);
    lossy.loss = LossSpec::Bernoulli("2%".parse::<Probability>().unwrap());
    let mut policed = path(50, 40, 2);
    let burst = ByteCount::new(30_000);
    policed.link.policer = Some(PolicerSpec { rate: Rate::from_mbit(5), burst });
    let cases = [
        Case { client: [100_000.0, 0.1, 0.0], ..case("slow reader", Limit::Receiver) },
        Case { client: [1e6, 0.0, 8192.0], ..case("small window", Limit::Receiver) },
        Case {
            cc: "bbr",
            client: [1e6, 0.0, 8192.0],
            ..case("small window, BBR", Limit::Receiver)
        },
        Case {
            cc: "bbr",
            server: [65_536.0, 0.0, 16_384.0, 0.0],
            ..case("small send buffer", Limit::SendBuffer)
        },
        Case { server: [65_536.0, 0.0, 0.0, 625e3], ..case("pacing cap", Limit::PacingCap) },
        Case { server: [10_000.0, 0.05, 0.0, 0.0], ..case("slow application", Limit::Application) },
        Case { server: [4000.0, 0.01, 0.0, 0.0], ..case("steady trickle", Limit::Application) },
        Case { path: lossy, ..case("loss", Limit::Network) },
        Case { path: path(10, 20, 10), ..case("full queue", Limit::Network) },
        Case { path: policed.clone(), ..case("policer", Limit::Network) },
        Case { cc: "bbr", path: policed, ..case("policer, BBR", Limit::Network) },
        Case { cc: "bbr", path: path(10, 20, 10), ..case("full queue, BBR", Limit::Network) },
    ];
    let available = fs::read_to_string("/proc/sys/net/ipv4/tcp_available_congestion_control");
    if !available.unwrap().contains("bbr") {
        return not_run(Capability::Bbr, "the kernel has no bbr: modprobe tcp_bbr");
    }
    // A connection hardly needs the processor, and each has a path of its own.
    thread::scope(|scope| {
        for case in &cases {
            scope.spawn(|| detects(case));
        }
    });
}

fn detects(case: &Case) {
    let Some((limit, share, seen)) = watched(case) else { return };
    eprintln!("{}: {} for {:.0} % of the time", case.name, limit.name(), share * 100.0);
    assert_eq!(limit, case.expected, "{}: {seen}", case.name);
    assert!(share > 0.5, "{}: {share} {seen}", case.name);
}
