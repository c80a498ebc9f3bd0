//! Programs over this machine's kernel. Skipped with a message without root or TUN.
#![cfg(target_os = "linux")]
#![expect(clippy::unwrap_used, reason = "a test that cannot run has failed")]

use std::fs;
use std::io::{Read, Write};
use std::net::{TcpListener, TcpStream};
use std::os::fd::AsFd;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread;
use std::time::Duration;

use uncork_emu::Clock;
use uncork_kernel_tcp::{CommandSide, Controllers, KernelTcpError, KernelTcpRun, run};
use uncork_path::{Buffer, LinkSpec, PathSpec};
use uncork_sim::{CommandSpec, FlowSpec, RunSpec, Workload};
use uncork_testkit::{Capability, assert_message, not_run, pause};
use uncork_units::{Rate, Time, TimeDelta};

/// Runs `spec`; `None` if the machine does not support it. A failing command is not such a case.
fn played(spec: &RunSpec, stop: &AtomicBool) -> Option<Result<KernelTcpRun, KernelTcpError>> {
    match run(spec, Controllers::Kernel, stop) {
        Err(error) if error.is_of_machine() && !matches!(error, KernelTcpError::Command(_)) => {
            let is_bbr = matches!(error, KernelTcpError::Controller(_));
            let missing = if is_bbr { Capability::Bbr } else { Capability::Netns };
            not_run(missing, &error.to_string());
            None
        }
        played => Some(played),
    }
}

fn play(spec: &RunSpec) -> Option<KernelTcpRun> {
    played(spec, &AtomicBool::new(false)).map(Result::unwrap)
}

fn path() -> PathSpec {
    let rtt = TimeDelta::from_millis(20);
    PathSpec::new(Rate::from_mbit(20), rtt, Buffer::MilliBdp(1000))
}

/// A run of at most ten seconds with a flow for each of `commands` and controllers.
fn spec(commands: Vec<(&str, CommandSpec)>) -> RunSpec {
    let flow = |(index, (cc, _)): (usize, &(&str, CommandSpec))| {
        FlowSpec::new(cc.parse().unwrap(), Workload::Command(index))
    };
    let flows = commands.iter().enumerate().map(flow).collect();
    let end = Time::ZERO + TimeDelta::from_secs(10);
    let commands = commands.into_iter().map(|(_, command)| command).collect();
    RunSpec { commands, ..RunSpec::over(path(), flows, 1, end) }
}

fn command(server: Option<&str>, client: &str) -> CommandSpec {
    let server = server.map(str::to_owned);
    CommandSpec {
        name: "web".into(),
        server,
        client: client.to_owned(),
        limit: None,
        records: None,
        own_cc: false,
    }
}

/// A shell command that runs [`plays_a_part`] as `part`.
fn part(part: &str) -> String {
    let program = std::env::current_exe().unwrap();
    let program = program.display();
    format!("UNCORK_TEST_PART='{part}' exec '{program}' --exact plays_a_part --nocapture")
}

const BYTES: usize = 300_000;

/// Not a test: when this program is run as a server or client, it acts as one without setting a
/// controller, and prints the one set by the kernel.
#[test]
fn plays_a_part() {
    let Ok(part) = std::env::var("UNCORK_TEST_PART") else { return };
    let of = |name: &str| std::env::var(name).unwrap();
    let port = of("UNCORK_PORT");
    let connect = |far: String| TcpStream::connect(format!("{far}:{port}")).unwrap();
    let mut stream = match part.as_str() {
        "server" | "sink" => {
            let listener = TcpListener::bind(format!("[::]:{port}"));
            let listener = listener.or_else(|_| TcpListener::bind(format!("0.0.0.0:{port}")));
            listener.unwrap().accept().unwrap().0
        }
        "client6" => connect(format!("[{}]", of("UNCORK_FAR6"))),
        _ => connect(of("UNCORK_FAR")),
    };
    let cc = rustix::net::sockopt::tcp_congestion(stream.as_fd()).unwrap();
    println!("{part} uses {cc}, {} was asked for", of("UNCORK_CC"));
    if part == "server" || part == "source" {
        stream.write_all(&vec![0; BYTES]).unwrap();
        stream.shutdown(std::net::Shutdown::Write).unwrap();
    }
    let mut read = Vec::new();
    stream.read_to_end(&mut read).unwrap();
    println!("{part} has read {} bytes", read.len());
}

/// Two classes at once on different ports, with non-default controllers, over IPv4 and IPv6.
#[test]
fn programs_get_the_controller_of_their_class() {
    let server = part("server");
    let v6 = fs::exists("/proc/sys/net/ipv6").unwrap();
    if !v6 {
        not_run(Capability::Ipv6, "/proc/sys/net/ipv6 is missing");
    }
    for client in if v6 { &["client", "client6"][..] } else { &["client"] } {
        let client = part(client);
        let commands = ["bbr1", "reno"].map(|cc| (cc, command(Some(&server), &client)));
        let spec = spec(commands.into());
        let Some(real) = play(&spec) else { return };
        // Both together take 0.24 s on the link.
        let slowest = real.result.flows.iter().filter_map(|flow| flow.completion_ns).max();
        assert!(slowest.unwrap() >= 240_000_000, "{slowest:?}");
        for (flow, cc) in [(0, "bbr"), (1, "reno")] {
            let both = real.commands.iter().filter(|command| command.flow == flow);
            let both: Vec<_> = both.collect();
            assert_eq!(both.len(), 2);
            for command in both {
                let expected = format!("uses {cc}, {cc} was asked for");
                assert!(command.output.contains(&expected), "{command:?}");
                assert_eq!(command.problem, None);
            }
            let record = &real.result.flows[flow as usize];
            let took = record.completion_ns.unwrap();
            assert!((120_000_000..5_000_000_000).contains(&took), "{record:?}");
            // The kernel counts the end of a stream (FIN) as a byte.
            let delivered = record.bytes_delivered;
            assert!((BYTES as u64..=BYTES as u64 + 2).contains(&delivered), "{record:?}");
            assert!(record.packets_sent >= 207 && record.bytes_sent >= BYTES as u64, "{record:?}");
            assert!(record.rtt_ms.unwrap().min >= 19.0, "{record:?}");
            assert_eq!(record.size_bytes, None);
        }
    }
}

/// Not a test: when this program is run as a server, it sends much data from a port of its choice
/// and then a byte from its assigned port; or it is that server's client.
#[test]
fn plays_two_connections() {
    let Ok(side) = std::env::var("UNCORK_TEST_TWO") else { return };
    let given = std::env::var("UNCORK_PORT").unwrap().parse().unwrap();
    if side == "server" {
        let listeners = [77, given].map(|port| TcpListener::bind(("0.0.0.0", port)).unwrap());
        for (listener, bytes) in listeners.iter().zip([BYTES, 1]) {
            listener.accept().unwrap().0.write_all(&vec![0; bytes]).unwrap();
        }
    } else {
        let far = std::env::var("UNCORK_FAR").unwrap();
        for port in [77, given] {
            let mut stream = TcpStream::connect((far.as_str(), port)).unwrap();
            stream.read_to_end(&mut Vec::new()).unwrap();
        }
    }
}

#[test]
fn queueing_delay_covers_all_connections_of_a_program() {
    let program = std::env::current_exe().unwrap();
    let side = |side: &str| {
        let program = program.display();
        format!("UNCORK_TEST_TWO={side} exec '{program}' --exact plays_two_connections")
    };
    let commands = vec![("cubic", command(Some(&side("server")), &side("client")))];
    let Some(real) = play(&spec(commands)) else { return };
    let waited = real.result.flows[0].lab().queue_ms.unwrap();
    // A burst of ten segments at 0.6 ms each, and then more; the single byte finds an empty queue.
    assert!(waited.p95 >= 4.0 && waited.min < 0.1, "{waited:?}: {:?}", real.commands);
}

/// Data sent by a client counts too; only the client host's kernel has its statistics.
#[test]
fn upload_is_measured_at_the_sender() {
    let uplink = LinkSpec::new(Rate::from_mbit(10), Buffer::Packets(20));
    let spec = RunSpec {
        paths: vec![PathSpec { uplink: Some(uplink), ..path() }],
        sample_every: Some(TimeDelta::from_millis(20)),
        ..spec(vec![("bbr1", command(Some(&part("sink")), &part("source")))])
    };
    let Some(real) = play(&spec) else { return };
    let record = &real.result.flows[0];
    // 10 Mbit/s upstream, not 20.
    assert!(record.completion_ns.unwrap() >= 240_000_000, "{record:?}");
    assert!(record.bytes_delivered - BYTES as u64 <= 2, "{record:?}");
    assert!(record.packets_sent >= 207 && record.rtt_ms.unwrap().min >= 19.0, "{record:?}");
    assert!(real.commands[0].output.contains("source uses bbr"), "{:?}", real.commands);
    let series = &real.result.series;
    assert!(series.iter().any(|point| point.state == "Startup"), "{series:?}");
    assert!(series.is_sorted_by(|one, other| one.time_ns < other.time_ns), "one at a time");
}

#[test]
fn failing_client_is_reported_and_has_no_completion() {
    let client = "echo all is well; echo 'no such luck' >&2; exit 3";
    let Some(real) = play(&spec(vec![("cubic", command(None, client))])) else { return };
    assert_eq!(real.result.flows[0].completion_ns, None);
    let [client] = real.commands.as_slice() else { panic!("{:?}", real.commands) };
    assert_eq!((client.flow, client.side), (0, CommandSide::Client));
    assert_eq!(client.output, "all is well\nno such luck\n");
    assert_message!("status 3", client.problem.as_ref().unwrap());
}

#[test]
fn command_that_does_not_run_is_an_error() {
    for (server, client, words) in [
        (Some("nothing-like-it"), "true", "the server of web ended with status 127 before it"),
        (Some("echo in use; exit 1"), "true", "ended with status 1 before it listened: in use"),
        (None, "nothing-like-it", "the client of web ended with status 127: "),
    ] {
        let spec = spec(vec![("cubic", command(server, client))]);
        let Some(played) = played(&spec, &AtomicBool::new(false)) else { return };
        let error = played.unwrap_err();
        assert!(error.is_of_machine() && error.to_string().contains(words), "{error}");
    }
    let named = FlowSpec { host: Some(1), ..spec(vec![("cubic", command(None, "true"))]).flows[0] };
    let spec = RunSpec { flows: vec![named], ..spec(vec![("cubic", command(None, "true"))]) };
    let error = run(&spec, Controllers::Kernel, &AtomicBool::new(false)).unwrap_err();
    assert!(!error.is_of_machine() && error.to_string().contains("name no host"), "{error}");
}

fn is_alive(pid: &str) -> bool {
    let stat = fs::read_to_string(format!("/proc/{pid}/stat")).unwrap_or_default();
    stat.rsplit_once(')').is_some_and(|(_, rest)| !rest.trim_start().starts_with(['Z', 'X']))
}

/// Processes that exit on request, processes that ignore it, and processes that left the group.
#[test]
fn no_process_outlives_a_run() {
    let server = format!("setsid sleep 1000 & echo $!; {}", part("server"));
    let client = "trap '' TERM; sleep 1001 & echo $!; echo $$; wait";
    let limit = Some(TimeDelta::from_millis(300));
    let commands = vec![("cubic", CommandSpec { limit, ..command(Some(&server), client) })];
    let Some(real) = play(&spec(commands)) else { return };
    assert_eq!(real.result.flows[0].completion_ns, None);
    let printed: Vec<&str> = real.commands.iter().map(|one| one.output.as_str()).collect();
    let lines = printed.iter().flat_map(|text| text.lines());
    let pids: Vec<&str> = lines.filter(|line| line.parse::<u32>().is_ok()).collect();
    assert_eq!(pids.len(), 3, "{printed:?}");
    for pid in pids {
        assert!(!is_alive(pid), "{pid} of {printed:?}");
    }
    // Only processes that had to be stopped were stopped.
    assert!(real.commands.iter().all(|command| command.problem.is_none()), "{:?}", real.commands);
}

/// Scheduled changes of the path happen on time, however long a server takes to start.
#[test]
fn path_time_starts_when_all_servers_listen() {
    let slow = format!("sleep 1; {}", part("server"));
    let mut steps = path();
    steps.link.rate = uncork_path::RateSpec::Steps {
        first: Rate::from_mbit(20),
        steps: vec![uncork_path::Step {
            at: Time::ZERO + TimeDelta::from_secs(1),
            value: Rate::from_bits_per_sec(8_000),
        }]
        .into(),
    };
    let commands = vec![("cubic", command(Some(&slow), &part("client")))];
    let Some(real) = play(&RunSpec { paths: vec![steps], ..spec(commands) }) else { return };
    let took = real.result.flows[0].completion_ns;
    assert!(took.is_some_and(|took| took < 1_000_000_000), "{:?}", real.result.flows[0]);
}

#[test]
fn stopped_run_ends_soon() {
    let sleeps = |server| spec(vec![("cubic", command(server, "exec sleep 1000"))]);
    let start = Time::ZERO + TimeDelta::from_secs(9);
    let late = |run: RunSpec| RunSpec { flows: vec![FlowSpec { start, ..run.flows[0] }], ..run };
    let own = FlowSpec::new("cubic".parse().unwrap(), Workload::Transfer(1));
    let own = RunSpec { flows: vec![own], ..spec(Vec::new()) };
    // Stopped while a client runs, before a client (a command or not) starts, and while a server is
    // not listening yet.
    for spec in [sleeps(None), late(sleeps(None)), late(own), sleeps(Some("exec sleep 1000"))] {
        let (stop, clock) = (AtomicBool::new(false), Clock::start());
        let real = thread::scope(|scope| {
            scope.spawn(|| {
                pause(Duration::from_millis(500), "the run is under way when it is stopped");
                stop.store(true, Ordering::Relaxed);
            });
            played(&spec, &stop)
        });
        let Some(real) = real else { return };
        real.unwrap();
        let took = clock.now().since(Time::ZERO);
        assert!(took < TimeDelta::from_secs(5), "{took}: {spec:?}");
    }
}

/// Requests and playback reported by a program are stored in the flow's record; missing reports are
/// an error. The run's files are deleted.
#[test]
fn records_of_programs_are_merged_into_the_flow() {
    let empty = FlowSpec::new("reno".parse().unwrap(), Workload::Transfer(1));
    let run = RunSpec { flows: vec![empty], ..spec(Vec::new()) };
    let request = uncork_flow::FlowRecord {
        start_ns: 5,
        first_byte_ns: Some(7),
        completion_ns: Some(9),
        size_bytes: Some(100),
        bytes_delivered: 100,
        ..run.unplayed(0, "play")
    };
    let playback = Some(uncork_flow::Playback { stutters: 3, ..Default::default() });
    let listener =
        uncork_flow::FlowRecord { size_bytes: None, playback, ..run.unplayed(0, "play") };
    let mut records = Vec::new();
    uncork_flow::write_json_lines(&mut records, [&request, &request, &listener]).unwrap();
    let records = String::from_utf8(records).unwrap();
    let writes =
        format!("echo $UNCORK_DIR; test -x \"$UNCORK\" && printf %s '{records}' > $UNCORK_RECORDS");
    let recorded = |client: &str| CommandSpec {
        records: Some(uncork_sim::CommandRecords::Audio),
        ..command(None, client)
    };
    let commands =
        [recorded(&writes), recorded("true"), recorded("echo nonsense > $UNCORK_RECORDS")];
    let Some(real) = play(&spec(commands.map(|one| ("cubic", one)).into())) else { return };
    let [first, ..] = real.result.flows.as_slice() else { panic!("no flows") };
    assert_eq!((first.bytes_delivered, first.first_byte_ns), (200, Some(12)));
    assert_eq!(first.playback, playback);
    assert_eq!(real.result.requests.len(), 2);
    assert_eq!(real.result.requests[1].completion_ns, Some(9));
    let problem = |flow: usize| real.commands[flow].problem.clone().unwrap_or_default();
    assert_eq!(problem(0), "");
    for (flow, case) in [(1, "no records"), (2, "nonsense")] {
        assert_message!(case, problem(flow));
    }
    let directory = real.commands[0].output.trim();
    assert!(directory.contains("uncork-run-") && !fs::exists(directory).unwrap(), "{directory}");
}

/// Programs with their own congestion control get the controller's name, which need not be known to
/// the kernel; the route is not changed.
#[test]
fn programs_may_have_their_own_congestion_control() {
    let own = |client: &str| CommandSpec { own_cc: true, ..command(None, client) };
    let report = own("echo \"$UNCORK_CC\"; ip route get $UNCORK_FAR");
    let Some(real) = play(&spec(vec![("bbr3", report)])) else { return };
    let output = &real.commands[0].output;
    assert!(output.starts_with("bbr3\n") && !output.contains("congctl"), "{output}");
    let route = command(None, "ip route get $UNCORK_FAR");
    let Some(real) = play(&spec(vec![("reno", route)])) else { return };
    let output = &real.commands[0].output;
    assert!(output.contains("congctl reno"), "{output}");
}
