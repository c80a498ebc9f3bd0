//! `uncork host prove` over emulated paths with losses, which make a large difference between Reno and BBR.
#![expect(clippy::unwrap_used, reason = "a test that cannot run has failed")]

use std::fs;
use std::io::{ErrorKind, Read, Write};
use std::net::{SocketAddr, TcpListener, TcpStream};
use std::process::{Command, Stdio};
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::thread;
use std::time::Duration;

use crate::common::schema::assert_describes;
use crate::common::{Finished, Scratch, finish, uncork};
use serde_json::Value;
use uncork_emu::{EmuError, Emulation, EmulationSpec, HostSpec};
use uncork_flow::{FlowRecord, read_flows};
use uncork_path::{Buffer, LossSpec, PathSpec};
use uncork_testkit::{Capability, not_run, pause, wait_until};
use uncork_units::{ByteCount, Probability, Rate, Rng, TimeDelta};

const HOSTS: usize = 6;
const LARGE: u64 = 500_000;
const SMALL: u64 = 20_000;
/// Tests of 6 pairs, in 30 and in 50 seconds. Only the longer windows have enough transfers on a busy machine, too.
const SHORT: &str = "--pairs 6 --window 2500ms --burn-in 400ms --every 100ms --large 200kB -q";
const LONG: &str = "--pairs 6 --window 4s --burn-in 400ms --every 100ms --large 200kB -q";
/// Room for what BBR loses at the start of short transfers.
const WIDE: &str = "--max-retransmitted 50% --max-rtt-p95 10s --max-retransmitted-increase 50%";
const LIMIT: Duration = Duration::from_secs(20);

/// A server behind lossy paths to clients that download one object after the other.
struct World {
    emulation: Emulation,
    scratch: Scratch,
}

impl World {
    /// `None` without the right to make one.
    fn new(seed: u64) -> Option<Self> {
        let (rate, rtt) = (Rate::from_mbit(20), TimeDelta::from_millis(20));
        let buffer = Buffer::Bytes(ByteCount::new(2 * rate.bytes_in(rtt)));
        let loss = LossSpec::Bernoulli("2%".parse::<Probability>().unwrap());
        let path = PathSpec { loss, ..PathSpec::new(rate, rtt, buffer) };
        let spec = EmulationSpec {
            paths: vec![path.clone(); HOSTS],
            hosts: (0..HOSTS).map(HostSpec::over).collect(),
            ..EmulationSpec::over(path, seed)
        };
        let emulation = match Emulation::start(&spec) {
            Ok(emulation) => emulation,
            Err(error @ EmuError::System { .. }) => {
                not_run(Capability::Netns, &error.to_string());
                return None;
            }
            Err(error) => panic!("{error}"),
        };
        let scratch = Scratch::new("host-prove");
        let world = Self { emulation, scratch };
        let allowed = world.sysctl("tcp_allowed_congestion_control");
        for cc in ["bbr", "reno"] {
            if !allowed.split_whitespace().any(|name| name == cc) {
                not_run(Capability::Bbr, &format!("{cc} is not allowed in namespaces"));
                return None;
            }
        }
        world.set("tcp_congestion_control", "reno");
        Some(world)
    }

    fn sysctl(&self, name: &str) -> String {
        let file = format!("/proc/sys/net/ipv4/{name}");
        self.emulation.server().run(|| fs::read_to_string(file).unwrap()).unwrap()
    }

    fn set(&self, name: &str, value: &str) {
        let file = format!("/proc/sys/net/ipv4/{name}");
        self.emulation.server().run(|| fs::write(file, value).unwrap()).unwrap();
    }

    /// What a test may change.
    fn seen(&self) -> [String; 3] {
        let mut route = self.emulation.server().command("ip").unwrap();
        let routes = route.arg("route").output().unwrap().stdout;
        [
            self.sysctl("tcp_congestion_control"),
            self.sysctl("tcp_no_metrics_save"),
            String::from_utf8(routes).unwrap(),
        ]
    }

    fn command(&self, arguments: &str) -> Command {
        self.host("prove", arguments)
    }

    fn host(&self, name: &str, arguments: &str) -> Command {
        let mut command = self.emulation.server().command(env!("CARGO_BIN_EXE_uncork")).unwrap();
        command.args(["host", name]).args(arguments.split_whitespace()).arg("--state-dir");
        command.arg(self.scratch.path("state")).arg("--root").arg(self.scratch.path("root"));
        command.current_dir(self.scratch.path("")).stdin(Stdio::null());
        command
    }

    /// Does `work` while all clients download from a server.
    fn under_load<T>(&self, seed: u64, work: impl FnOnce() -> T) -> T {
        let is_over = &AtomicBool::new(false);
        let address = SocketAddr::from((self.emulation.server().addresses().v4, 80));
        let listener = self.emulation.server().run(|| TcpListener::bind(address).unwrap()).unwrap();
        listener.set_nonblocking(true).unwrap();
        thread::scope(|scope| {
            scope.spawn(move || serve(&listener, is_over));
            for (index, host) in self.emulation.hosts().iter().enumerate() {
                let mut rng = Rng::new(seed, index as u64);
                scope.spawn(move || {
                    host.run(|| download(address, &mut rng, is_over)).unwrap();
                });
            }
            let done = work();
            is_over.store(true, Ordering::Relaxed);
            done
        })
    }

    /// A whole test under load, and its result.
    fn prove(&self, seed: u64, arguments: &str) -> (Finished, Value) {
        let before = self.seen();
        let command = self.command(&format!("{arguments} --seed {seed} --format json"));
        let run = self.under_load(seed, || finish(command));
        assert_eq!(self.seen(), before);
        let result = serde_json::from_str(&run.stdout).expect(&run.stderr);
        (run, result)
    }
}

/// Answers 8 bytes with as many bytes as they say.
fn serve(listener: &TcpListener, is_over: &AtomicBool) {
    thread::scope(|scope| {
        while !is_over.load(Ordering::Relaxed) {
            match listener.accept() {
                Ok((mut stream, _)) => {
                    scope.spawn(move || {
                        stream.set_nonblocking(false).unwrap();
                        stream.set_read_timeout(Some(LIMIT)).unwrap();
                        stream.set_write_timeout(Some(LIMIT)).unwrap();
                        let mut size = [0; 8];
                        // A client that has gone is none of the test's business.
                        let _ = stream.read_exact(&mut size);
                        let _ = stream.write_all(&vec![7; u64::from_le_bytes(size) as usize]);
                    });
                }
                Err(error) if error.kind() == ErrorKind::WouldBlock => {
                    pause(Duration::from_millis(1), "until the next client");
                }
                Err(error) => panic!("{error}"),
            }
        }
    });
}

/// Downloads one object after the other. The end of the server cuts the last off.
fn download(address: SocketAddr, rng: &mut Rng, is_over: &AtomicBool) {
    while !is_over.load(Ordering::Relaxed) {
        let size = if rng.below(2) == 0 { LARGE } else { SMALL };
        let size = size + rng.below(size / 10);
        let fetched = TcpStream::connect(address).and_then(|mut stream| {
            // The reset of a server that has ended may be lost.
            stream.set_read_timeout(Some(LIMIT))?;
            stream.write_all(&size.to_le_bytes())?;
            stream.read_to_end(&mut Vec::new())
        });
        assert!(fetched.is_ok() || is_over.load(Ordering::Relaxed), "{fetched:?}");
    }
}

fn effect<'a>(result: &'a Value, metric: &str) -> &'a Value {
    let effects = result["effects"].as_array().unwrap();
    effects.iter().find(|effect| effect["metric"] == metric).unwrap()
}

/// A field with two numbers; `None` where it is null.
fn two(effect: &Value, field: &str) -> Option<[f64; 2]> {
    let numbers = effect[field].as_array()?;
    Some([0, 1].map(|index| numbers[index].as_f64().unwrap()))
}

#[test]
fn a_large_difference_is_found_and_the_host_is_as_before() {
    let Some(world) = World::new(1) else { return };
    let (run, result) = world.prove(1, &format!("reno bbr {LONG} {WIDE} -o out"));
    assert_eq!((run.status, run.stderr.as_str()), (0, ""), "{}", run.stdout);
    assert_describes("host-prove-1", [&result]);
    assert_eq!(result["verdict"]["answer"], "better", "{result:#}");
    for effect in result["effects"].as_array().unwrap() {
        assert_eq!(effect["comparison"], "within-networks", "{effect}");
    }
    let [low, high] = two(effect(&result, "throughput-p50"), "interval").unwrap();
    assert!(low > 0.2 && high < 10.0, "{low} {high}");
    let written = fs::read_to_string(world.scratch.path("out/summary.json")).unwrap();
    assert_eq!(written, run.stdout);
    // The records give the windows' figures again.
    let names = world.scratch.entries("out");
    let parquet = names.iter().filter(|name| name.ends_with(".parquet"));
    let read = |name: &String| read_flows(fs::read(world.scratch.path("out").join(name)).unwrap());
    let flows: Vec<FlowRecord> = parquet.flat_map(|name| read(name).unwrap()).collect();
    let mut medians = vec![Vec::new(); 12];
    for flow in flows.iter().filter(|flow| flow.bytes_acked >= 200_000) {
        let Some(choice) = &flow.choice else { continue };
        let arm = choice.arm.as_ref().unwrap();
        assert_eq!(u64::from(arm.bucket), arm.unit / 2);
        assert!(["unknown", arm.arm.as_str()].contains(&flow.cc.as_str()), "{flow:?}");
        medians[arm.unit as usize].push(flow.bytes_acked as f64 * 8e9 / flow.busy_ns as f64);
    }
    for (window, speeds) in result["windows"].as_array().unwrap().iter().zip(&medians) {
        let reported = window["values"][1].as_f64().unwrap();
        let median = uncork_flow::quantile(speeds, 0.5).unwrap();
        assert!((median / reported - 1.0).abs() < 1e-9, "{median} {reported}");
    }
    let again = finish(world.command(&format!("reno bbr {LONG} {WIDE} -o out")));
    assert!(again.status == 2 && again.stderr.contains("another test"), "{}", again.stderr);
}

#[test]
fn a_route_alternates_alone_and_too_little_traffic_has_no_answer() {
    let Some(world) = World::new(2) else { return };
    let before = world.seen();
    let client = world.emulation.hosts()[0].addresses().v4;
    let [a, b, c, _] = client.octets();
    let arguments = format!(
        "cubic bbr --to {a}.{b}.{c}.0/24 --pairs 1 --window 1s --burn-in 200ms --every 100ms"
    );
    let mut command = world.command(&arguments);
    let child = command.stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().unwrap();
    let mut seen = Vec::new();
    wait_until("both controllers on the route", LIMIT, || {
        let [default, _, routes] = world.seen();
        assert_eq!(default, before[0]);
        seen.extend(
            routes
                .lines()
                .filter_map(|it| it.split_once(" congctl "))
                .map(|it| it.1.trim().to_owned()),
        );
        seen.dedup();
        seen.len() >= 2
    });
    let output = child.wait_with_output().unwrap();
    let (text, progress) =
        (String::from_utf8(output.stdout).unwrap(), String::from_utf8(output.stderr).unwrap());
    assert_eq!(output.status.code(), Some(1), "{text}{progress}");
    for part in [
        "2 of 2 windows complete",
        "No answer",
        "an interval needs 6 pairs with 10 large",
        "The host is as before.",
    ] {
        assert!(text.contains(part), "{part}: {text}");
    }
    for part in ["window 1 of 2: ", "window 2 of 2: ", "1 s left"] {
        assert!(progress.contains(part), "{part}: {progress}");
    }
    assert_eq!(world.seen(), before);
}

#[test]
fn limits_interrupts_and_others_end_a_test() {
    let Some(world) = World::new(3) else { return };
    let (run, result) = world.prove(3, &format!("reno bbr {SHORT} --max-retransmitted 0.1%"));
    assert_eq!(run.status, 1, "{}", run.stderr);
    let stopped = result["stopped"].as_str().unwrap();
    assert!(
        stopped.contains("in window 1 ") && stopped.contains("the limit is 0.10 %"),
        "{stopped}"
    );
    assert_describes("host-prove-1", [&result]);
    let (run, result) =
        world.prove(3, &format!("reno bbr {SHORT} --max-rtt-p95 1ms --max-retransmitted 100%"));
    assert_eq!((run.status, &result["verdict"]["answer"]), (1, &"open".into()));
    assert!(result["stopped"].as_str().unwrap().contains("the limit is 1.0 ms"), "{result}");

    let before = world.seen();
    let start = || {
        let mut command = world.command("bbr bbr --pairs 100 --window 1min");
        let child = command.stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().unwrap();
        wait_until("the test has begun", LIMIT, || world.seen()[0] == "bbr\n");
        child
    };
    let child = start();
    let status = finish(world.host("status", ""));
    let live = format!("Process {} is changing or testing settings.\n", child.id());
    assert!(status.status == 0 && status.stdout.starts_with(&live), "{}", status.stdout);
    rustix::process::kill_process(
        rustix::process::Pid::from_child(&child),
        rustix::process::Signal::INT,
    )
    .unwrap();
    let output = child.wait_with_output().unwrap();
    assert_eq!(output.status.code(), Some(130));
    assert!(String::from_utf8(output.stdout).unwrap().contains("it was interrupted"));
    assert_eq!(world.seen(), before);

    let child = start();
    world.set("tcp_congestion_control", "reno");
    let output = child.wait_with_output().unwrap();
    let text = String::from_utf8(output.stdout).unwrap();
    assert_eq!(output.status.code(), Some(1), "{text}");
    assert!(text.contains("net.ipv4.tcp_congestion_control is reno"), "{text}");
    assert_eq!(world.seen(), ["reno\n".to_owned(), before[1].clone(), before[2].clone()]);
}

/// A stopped test watches no limits. It is ended, and the host restored.
#[test]
fn stopped_for_long_a_test_is_ended() {
    let Some(world) = World::new(8) else { return };
    let before = world.seen();
    let mut child = world.command("bbr bbr --pairs 100 --window 1min -q").spawn().unwrap();
    wait_until("the test has begun", LIMIT, || world.seen()[0] == "bbr\n");
    let pid = rustix::process::Pid::from_child(&child);
    let signal = |signal| rustix::process::kill_process(pid, signal).unwrap();
    // Not for a moment.
    signal(rustix::process::Signal::STOP);
    pause(Duration::from_secs(2), "a short stop");
    signal(rustix::process::Signal::CONT);
    pause(Duration::from_secs(9), "longer than a stop may take, with the first one");
    assert!(child.try_wait().unwrap().is_none() && world.seen()[0] == "bbr\n");
    signal(rustix::process::Signal::STOP);
    wait_until("the guard has restored the host", 2 * LIMIT, || world.seen() == before);
    assert_eq!(std::os::unix::process::ExitStatusExt::signal(&child.wait().unwrap()), Some(9));
}

/// SIGKILL at random times: the guard restores the host.
#[test]
fn killed_at_any_time_the_host_is_as_before() {
    let Some(world) = World::new(4) else { return };
    let before = world.seen();
    let mut rng = Rng::new(4, 0);
    for (round, routes) in ["", "--to 198.19.0.0/24"].repeat(15).into_iter().enumerate() {
        let windows = "--pairs 50 --window 60ms --burn-in 20ms --every 10ms -q -o out";
        let arguments = format!("reno bbr {routes} {windows}");
        let _ = fs::remove_dir_all(world.scratch.path("out"));
        let mut child = world.command(&arguments).stdout(Stdio::null()).spawn().unwrap();
        // Half of the kills come while the host is changed, the others at any time from the start on.
        if round % 4 < 2 {
            wait_until("the test has changed the host", LIMIT, || world.seen() != before);
        }
        pause(Duration::from_millis(rng.below(200)), "until some moment of the test");
        child.kill().unwrap();
        child.wait().unwrap();
        wait_until("the guard has restored the host", LIMIT, || world.seen() == before);
    }
    let journal = || fs::read_dir(world.scratch.path("state")).unwrap();
    wait_until("the journal is closed", LIMIT, || {
        journal()
            .map(|entry| entry.unwrap().path())
            .filter(|it| it.extension().is_some_and(|it| it == "json"))
            .all(|path| {
                let text = fs::read_to_string(path).unwrap();
                serde_json::from_str::<Value>(&text).unwrap()["open"].is_null()
            })
    });
}

/// A user without any other right than CAP_NET_ADMIN.
#[test]
fn it_needs_cap_net_admin_alone() {
    let Some(world) = World::new(7) else { return };
    let state = world.scratch.path("state");
    fs::create_dir(&state).unwrap();
    std::os::unix::fs::chown(&state, Some(65534), Some(65534)).unwrap();
    let before = world.seen();
    for (right, status, part) in
        [(",+net_admin", 1, "2 of 2 windows complete"), ("", 3, "it needs CAP_NET_ADMIN")]
    {
        let mut command = world.emulation.server().command("setpriv").unwrap();
        command.args(["--reuid=65534", "--regid=65534", "--clear-groups"]);
        for set in ["--bounding-set", "--inh-caps", "--ambient-caps"] {
            command.arg(format!("{set}=-all{right}"));
        }
        command.arg(env!("CARGO_BIN_EXE_uncork")).args(["host", "prove", "reno", "bbr"]);
        command.args("--pairs 1 --window 300ms --burn-in 60ms --every 20ms".split(' '));
        command.arg("--state-dir").arg(&state);
        let run = finish(command);
        assert_eq!(run.status, status, "{}", run.stderr);
        assert!(run.stdout.contains(part) || run.stderr.contains(part), "{}", run.stderr);
        assert_eq!(world.seen(), before);
    }
}

#[test]
fn wrong_arguments_are_refused_with_a_remedy() {
    for (arguments, part) in [
        ("cubic", "<B>"),
        ("cubic c/c", "such as bbr or cubic"),
        ("cubic bbr --pairs 0", "expected 1 to 1000"),
        ("cubic bbr --every 1ms", "expected 10ms or more"),
        ("cubic bbr --burn-in 1s", "two periods of --every, 2s"),
        ("cubic bbr --window 50s", "twice the --burn-in, 60s"),
        ("cubic bbr --window 8d", "to 604800s"),
        ("cubic bbr --to 10.0.0.1/32", "/24 of IPv4"),
        ("cubic bbr --to 10.0.0.1/8", "10.0.0.0/8"),
        ("cubic bbr --to 10.0.0.0/8 --to 10.1.0.0/16", "overlaps with 10.0.0.0/8"),
        ("cubic bbr --max-retransmitted 0.1", "%"),
        ("cubic bbr --dry-run -o out", "cannot be used with"),
        ("cubic bbr --max-retransmitted-increase 2", "%"),
    ] {
        let run = uncork(&format!("host prove {arguments}"));
        assert!(run.status == 2 && run.stderr.contains(part), "{arguments}: {}", run.stderr);
        assert!(!run.stderr.contains("panicked"), "{}", run.stderr);
    }
}

/// The file of the result is a directory, as good as a full disk: the result is printed all the same.
#[test]
fn a_result_that_cannot_be_written_is_printed() {
    let Some(world) = World::new(10) else { return };
    let mut command =
        world.command("reno bbr --pairs 1 --window 2s --burn-in 60ms --every 20ms -q -o full");
    let child = command.stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().unwrap();
    let directory = world.scratch.path("full/summary.json/in-the-way");
    wait_until("the test has begun", LIMIT, || world.seen()[1] == "1\n");
    fs::create_dir_all(directory).unwrap();
    let output = child.wait_with_output().unwrap();
    let [out, error] = [output.stdout, output.stderr].map(|text| String::from_utf8(text).unwrap());
    assert_eq!(output.status.code(), Some(3), "{error}");
    assert!(out.contains("2 of 2 windows complete") && error.contains("full"), "{out}{error}");
}

/// Three pairs take half an hour, and have no interval.
#[test]
fn too_few_pairs_are_said_before_the_test() {
    let Some(world) = World::new(9) else { return };
    let run = finish(world.command("reno bbr --dry-run --pairs 3"));
    assert_eq!(run.status, 0, "{}", run.stderr);
    let warning = "warning: --pairs 3 gives no interval and no verdict: they need 6 pairs or more";
    assert!(run.stdout.contains(warning), "{}", run.stdout);
    let run =
        finish(world.command("reno bbr --pairs 1 --window 300ms --burn-in 60ms --every 20ms"));
    assert!(run.stderr.contains("warning: --pairs 1 gives no interval"), "{}", run.stderr);
    let run = finish(world.command("reno bbr --dry-run --pairs 6"));
    assert!(!run.stdout.contains("warning"), "{}", run.stdout);
    // A test that was killed has left its records: those of another one must not be mixed with them.
    fs::create_dir(world.scratch.path("out")).unwrap();
    fs::write(world.scratch.path("out/connections-1.parquet"), "").unwrap();
    let run = finish(world.command("reno bbr -o out"));
    let refusal = "it has connections-1.parquet of another test; choose another directory";
    assert!(run.status == 2 && run.stderr.contains(refusal), "{}", run.stderr);
}

/// The commands in docs/reference/host.md print what stands there; the second in other figures. `UPDATE_DOCS=1` writes it.
#[test]
fn the_documented_commands_print_what_is_documented() {
    let Some(world) = World::new(6) else { return };
    let file = concat!(env!("CARGO_MANIFEST_DIR"), "/../../../docs/reference/host.md");
    let mut text = fs::read_to_string(file).unwrap();
    let start = "```console\n$ uncork host prove ";
    let lines: Vec<String> =
        text.split(start).skip(1).map(|rest| rest.lines().next().unwrap().to_owned()).collect();
    assert_eq!(lines.len(), 2);
    for line in lines {
        let run = world.under_load(6, || finish(world.command(&line)));
        assert_eq!((run.status, run.stderr.as_str()), (0, ""), "{line}");
        let begin = format!("{start}{line}\n");
        let (before, rest) = text.split_once(&begin).unwrap();
        let (known, after) = rest.split_once("```").unwrap();
        if std::env::var_os("UPDATE_DOCS").is_some() {
            text = format!("{before}{begin}{}```{after}", run.stdout);
            fs::write(file, &text).unwrap();
        } else if line.contains("--dry-run") {
            assert_eq!(run.stdout, known, "UPDATE_DOCS=1 writes docs/reference/host.md again");
        } else {
            assert_eq!(
                form(&run.stdout),
                form(known),
                "UPDATE_DOCS=1 writes docs/reference/host.md again"
            );
        }
    }
}

/// The words of a result without figures, intervals that are missing, and connections that did not count.
fn form(text: &str) -> Vec<String> {
    let varies = ["Not counted: ", "Without an interval: "];
    let lines = text.lines().filter(|line| !varies.iter().any(|start| line.starts_with(start)));
    let is_word = |word: &&str| {
        let has_digit = word.contains(|c: char| c.is_ascii_digit()) && !word.starts_with('p');
        !has_digit && !["-", "to", "%", "points"].contains(word)
    };
    lines
        .map(|line| line.split_whitespace().filter(is_word).collect::<Vec<_>>().join(" "))
        .collect()
}

/// A run of the long proof: the median throughput's interval, and its level in both arms. A machine that is too busy for ten
/// transfers in each window has none.
struct Proof {
    interval: Option<[f64; 2]>,
    levels: Option<[f64; 2]>,
}

impl Proof {
    fn contains(&self, value: f64) -> bool {
        self.interval.is_some_and(|[low, high]| low <= value && value <= high)
    }

    fn claims(&self) -> bool {
        self.interval.is_some_and(|[low, high]| low > 0.0 || high < 0.0)
    }
}

fn proof(seed: u64, controllers: &str) -> Proof {
    let world = World::new(seed).expect("a world");
    let (_, result) = world.prove(seed, &format!("{controllers} --to 198.19.0.0/24 {LONG} {WIDE}"));
    assert_eq!(result["stopped"], Value::Null);
    let effect = effect(&result, "throughput-p50");
    Proof { interval: two(effect, "interval"), levels: two(effect, "levels") }
}

/// The proof of each pair of controllers, with its index as seed; four at a time.
fn in_parallel(work: &[&str]) -> Vec<Proof> {
    let next = &AtomicUsize::new(0);
    let worker = || {
        let mut done = Vec::new();
        loop {
            let index = next.fetch_add(1, Ordering::Relaxed);
            let Some(controllers) = work.get(index) else { return done };
            let proof = proof(index as u64, controllers);
            eprintln!("{index} {controllers}: {:?}, {:?}", proof.interval, proof.levels);
            done.push((index, proof));
        }
    };
    let mut done: Vec<(usize, Proof)> = thread::scope(|scope| {
        let workers = [(); 4].map(|()| scope.spawn(worker));
        workers.into_iter().flat_map(|worker| worker.join().unwrap()).collect()
    });
    done.sort_by_key(|(index, _)| *index);
    done.into_iter().map(|(_, proof)| proof).collect()
}

/// The true effect is known from running all one way and all the other. Of 40 tests 36 or more contain it; of 40 tests of equal
/// controllers at most 3 claim an effect. Twenty minutes and more:
/// `cargo test -p uncork --test all host_prove -- --ignored --nocapture`.
#[test]
#[ignore = "it takes twenty minutes"]
fn forty_tests_contain_the_true_effect() {
    const RUNS: usize = 40;
    if World::new(5).is_none() {
        return;
    }
    let kinds = ["bbr bbr", "cubic bbr", "cubic cubic"];
    // One in eleven goes all one way; the others alternate.
    let kind = |index: usize| kinds[if index.is_multiple_of(11) { 0 } else { 2 - index % 11 % 2 }];
    let work: Vec<&str> = (0..RUNS / 5 * 11).map(kind).collect();
    let proofs = in_parallel(&work);
    let [bbr, change, cubic] = kinds.map(|kind| -> Vec<&Proof> {
        work.iter().zip(&proofs).filter(|(it, _)| **it == kind).map(|(_, proof)| proof).collect()
    });
    assert_eq!((change.len(), cubic.len()), (RUNS, RUNS));
    let level = |proofs: &[&Proof]| {
        let levels = proofs.iter().filter_map(|proof| proof.levels).flatten();
        uncork_flow::mean(&levels.map(f64::ln).collect::<Vec<_>>()).unwrap()
    };
    let truth = (level(&bbr) - level(&cubic)).exp_m1();
    let count = |proofs: &[&Proof], is: &dyn Fn(&Proof) -> bool| {
        proofs.iter().filter(|proof| is(proof)).count()
    };
    let covered = count(&change, &|proof| proof.contains(truth));
    let [found, claimed] = [&change, &cubic].map(|proofs| count(proofs, &Proof::claims));
    eprintln!(
        "true effect {:+.1} %: {covered} of {RUNS} contain it, {found} exclude zero; without an effect \
         {claimed} of {RUNS} exclude zero",
        truth * 100.0
    );
    assert!(covered >= 36, "{covered}");
    assert!(claimed <= 3, "{claimed}");
}
