//! Measures the cost of a pass, compares it with `ss -tin`, and checks that both report the same
//! values.
#![cfg(target_os = "linux")]
#![expect(clippy::unwrap_used, reason = "a test that cannot run has failed")]

use std::collections::BTreeMap;
use std::fs;
use std::io::{Read, Write};
use std::net::{Ipv4Addr, TcpListener, TcpStream};
use std::process::{Child, Stdio};
use std::time::Duration;

use rustix::time::{ClockId, clock_gettime};
use uncork_emu::{EmuError, Emulation, EmulationSpec, Namespace};
use uncork_path::{Buffer, PathSpec};
use uncork_testkit::{Capability, not_run, pause};
use uncork_units::{Rate, TimeDelta};
use uncork_watch::{Session, SocketSample, Tick, WatchSpec};

/// A namespace with loopback: the server side of an emulation.
fn emulation() -> Option<Emulation> {
    let path = PathSpec::new(Rate::from_mbit(1), TimeDelta::from_millis(1), Buffer::Packets(1));
    match Emulation::start(&EmulationSpec::over(path, 1)) {
        Ok(emulation) => Some(emulation),
        Err(error @ EmuError::System { .. }) => {
            not_run(Capability::Netns, &error.to_string());
            None
        }
        Err(error) => panic!("{error}"),
    }
}

/// Connections over loopback. This process holds both sockets of each.
fn connections(host: &Namespace, count: usize) -> Vec<(TcpStream, TcpStream)> {
    let pairs = host.run(|| {
        let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).unwrap();
        let address = listener.local_addr().unwrap();
        let pair = |_| (TcpStream::connect(address).unwrap(), listener.accept().unwrap().0);
        (0..count).map(pair).collect()
    });
    pairs.unwrap()
}

/// A program that holds one end of many connections until its standard input ends.
const HOLDER: &str = r#"
import resource, socket, sys
role, count = sys.argv[1], int(sys.argv[2])
limit = resource.getrlimit(resource.RLIMIT_NOFILE)[1]
resource.setrlimit(resource.RLIMIT_NOFILE, (limit, limit))
if role == "server":
    listener = socket.create_server(("127.0.0.1", 8080), backlog=4096)
    print("ready", flush=True)
    held = [listener.accept() for _ in range(count)]
else:
    held = [socket.create_connection(("127.0.0.1", 8080)) for _ in range(count)]
print("ready", flush=True)
sys.stdin.read()
"#;

/// A process that is killed at the end of the test.
struct Holder(Child);

impl Holder {
    fn start(host: &Namespace, role: &str, count: usize) -> Self {
        let mut command = host.command("python3").unwrap();
        command.args(["-c", HOLDER, role, &count.to_string()]);
        let child = command.stdin(Stdio::piped()).stdout(Stdio::piped()).spawn().expect("python3");
        let mut holder = Self(child);
        holder.wait();
        holder
    }

    /// Waits until the process reports that it is ready.
    fn wait(&mut self) {
        let mut line = [0; 6];
        self.0.stdout.as_mut().unwrap().read_exact(&mut line).unwrap();
        assert_eq!(&line, b"ready\n");
    }
}

impl Drop for Holder {
    fn drop(&mut self) {
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

/// Two processes, each with one end of `count` connections: one process may have at most 20,000
/// descriptors.
fn held(host: &Namespace, count: usize) -> [Holder; 2] {
    let mut server = Holder::start(host, "server", count);
    let clients = Holder::start(host, "client", count);
    server.wait();
    [server, clients]
}

fn session(host: &Namespace) -> Session {
    let spec = WatchSpec::live(Duration::from_millis(1));
    host.run(|| Session::start(&spec)).unwrap().unwrap()
}

fn pass(session: &mut Session) {
    while let Tick::Wait(time) = session.tick().unwrap() {
        pause(time, "the time between two passes");
    }
}

fn cpu_time() -> Duration {
    clock_gettime(ClockId::ThreadCPUTime).try_into().unwrap()
}

/// CPU milliseconds of each of `passes` passes, sorted. The smallest is the cost of a pass without
/// cache misses caused by other processes.
fn costs_ms(session: &mut Session, passes: usize) -> Vec<f64> {
    let mut costs: Vec<f64> = (0..passes)
        .map(|_| {
            let before = cpu_time();
            pass(session);
            cpu_time().saturating_sub(before).as_secs_f64() * 1e3
        })
        .collect();
    costs.sort_by(f64::total_cmp);
    costs
}

/// Resident memory of this process in megabytes.
fn resident_mb() -> f64 {
    let status = fs::read_to_string("/proc/self/status").unwrap();
    let line = status.lines().find_map(|line| line.strip_prefix("VmRSS:")).unwrap();
    line.trim().trim_end_matches(" kB").parse::<f64>().unwrap() / 1e3
}

/// CPU milliseconds of `ss -tin`.
fn cost_of_ss(host: &Namespace) -> f64 {
    let script = "TIMEFORMAT='%3U %3S'; time ss -tin state established > /dev/null";
    let output = host.run(|| host.command("bash").unwrap().args(["-c", script]).output());
    let text = String::from_utf8(output.unwrap().unwrap().stderr).unwrap();
    text.split_whitespace().map(|word| word.parse::<f64>().unwrap() * 1e3).sum()
}

/// Both sizes are measured in one test, because parallel measurements would disturb each other. The
/// small one comes first: closed connections stay in the kernel's table for a while.
#[test]
fn a_pass_is_cheap() {
    // Machines differ: `ss`, which reads the same, is the measure. It takes twice to seven times as long.
    let Some((cost, ss, _)) = cost_of(1000) else { return };
    assert!(cost <= 0.75 * ss, "{cost} ms; ss {ss} ms");
    let Some((cost, ss, memory)) = cost_of(20_000) else { return };
    assert!(cost <= 0.75 * ss, "{cost} ms; ss {ss} ms");
    assert!(memory <= 50.0, "{memory} MB");
}

/// For this many sockets, CPU milliseconds of a pass and of `ss`, and megabytes.
fn cost_of(sockets: usize) -> Option<(f64, f64, f64)> {
    let emulation = emulation()?;
    let host = emulation.server();
    let _held = held(host, sockets / 2);
    let before = resident_mb();
    let mut watch = session(host);
    let costs = costs_ms(&mut watch, 21);
    let (least, median) = (costs[0], costs[10]);
    assert_eq!(watch.tracker().connections().count(), sockets);
    let (memory, ss) = (resident_mb() - before, cost_of_ss(host));
    eprintln!(
        "{sockets} sockets: {least:.2} to {median:.2} ms of CPU time, {memory:.1} MB; ss -tin: {ss:.1} ms"
    );
    Some((least, ss, memory))
}

/// The output of `ss -tin` for each socket, by name: `cwnd:10` and `pacing_rate 5bps`; `cubic` is a
/// name without value.
fn said_by_ss(host: &Namespace) -> BTreeMap<String, BTreeMap<String, String>> {
    let output = host.run(|| host.command("ss").unwrap().arg("-tinOH").output());
    let text = String::from_utf8(output.unwrap().unwrap().stdout).unwrap();
    let socket = |line: &str| {
        let words: Vec<&str> = line.split_whitespace().collect();
        let key = format!("{} > {}", words[3], words[4]);
        let fields = words[5..].iter().enumerate().map(|(nth, word)| {
            let (name, value) = match word.split_once(':') {
                Some(pair) => pair,
                None => (*word, words.get(5 + nth + 1).copied().unwrap_or_default()),
            };
            (name.to_owned(), value.to_owned())
        });
        (key, fields.collect())
    };
    text.lines().map(socket).collect()
}

#[test]
fn a_pass_matches_ss() {
    let Some(emulation) = emulation() else { return };
    let host = emulation.server();
    let mut pairs = connections(host, 5);
    for (size, (client, server)) in pairs.iter_mut().enumerate() {
        let mut buffer = vec![7; 100_000 * (size + 1)];
        client.write_all(b"request").unwrap();
        server.read_exact(&mut buffer[..7]).unwrap();
        let written = std::thread::scope(|scope| {
            let length = buffer.len();
            scope.spawn(move || server.write_all(&vec![7; length]).unwrap());
            client.read_exact(&mut buffer)
        });
        written.unwrap();
    }
    pause(Duration::from_millis(300), "until the last acknowledgements are there");
    let mut watch = session(host);
    pass(&mut watch);
    let said = said_by_ss(host);
    let mut compared = 0;
    for tracked in watch.tracker().connections() {
        let SocketSample { local, remote, cc, figures, .. } = tracked.now;
        let ss = &said[&format!("{local} > {remote}")];
        let same = |name: &str, ours: String| {
            // ss omits zero values.
            let theirs = ss.get(name).map_or("0", String::as_str);
            assert_eq!(theirs, ours, "{name} of {local} > {remote}: {ss:?}");
        };
        assert!(ss.contains_key(cc.unwrap().as_str()), "{ss:?}");
        let ms = |time: TimeDelta| time.as_millis_f64();
        let rtt = ss["rtt"].split('/').next().unwrap().parse::<f64>().unwrap();
        assert!((rtt - ms(figures.rtt.unwrap())).abs() < 0.001, "{rtt} {figures:?}");
        let min = ss["minrtt"].parse::<f64>().unwrap();
        assert!((min - ms(figures.min_rtt.unwrap())).abs() < 0.001, "{min} {figures:?}");
        same("bytes_sent", figures.bytes_sent.to_string());
        same("bytes_received", tracked.now.bytes_received.to_string());
        same("bytes_retrans", figures.bytes_retransmitted.to_string());
        same("data_segs_out", figures.packets_sent.to_string());
        same("delivered", tracked.now.delivered_packets.unwrap().to_string());
        same("mss", tracked.now.mss_bytes.to_string());
        let packets = tracked.now.cwnd_bytes / u64::from(tracked.now.mss_bytes);
        same("cwnd", packets.to_string());
        same("pacing_rate", format!("{}bps", tracked.now.pacing_rate.unwrap().bits_per_sec()));
        same("delivery_rate", format!("{}bps", figures.delivery_rate.unwrap().bits_per_sec()));
        let busy = ss.get("busy").map_or("0", String::as_str).trim_end_matches("ms");
        assert_eq!(busy, (figures.busy.as_nanos() / 1_000_000).to_string());
        // ss counts the SYN of connect as a byte.
        let acked = ss["bytes_acked"].parse::<u64>().unwrap();
        let syn = u64::from(figures.bytes_acked < 10_000);
        assert_eq!(acked, figures.bytes_acked + syn, "{ss:?}");
        compared += 1;
    }
    assert_eq!(compared, 10);
}
