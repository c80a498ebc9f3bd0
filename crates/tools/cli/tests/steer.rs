//! `uncork steer`: a server that knows nothing of it gets a policy, each in namespaces and a cgroup of its own.
#![cfg(target_os = "linux")]
mod common;
#[path = "../../../core/policy/tests/policy/mmdb.rs"]
mod mmdb;
#[path = "steer/starts.rs"]
mod starts;

use std::fs;
use std::path::PathBuf;
use std::process::{Command, Stdio};
use std::sync::atomic::{AtomicU32, Ordering};
use std::sync::{Mutex, PoisonError};
use std::thread;

use common::killed::{SHELL, can_kill};
use common::schema::assert_describes;
use common::signed::Signer;
use common::{Finished, finish};
use uncork_testkit::{Capability, not_run};

/// Sends each client the controller and pacing cap that its connection has on this side, and closes it.
const SERVER: &str = r#"
import socket
server = socket.create_server(("::", 8080), family=socket.AF_INET6, dualstack_ipv6=True, backlog=512)
while True:
    connection, _ = server.accept()
    controller = connection.getsockopt(socket.IPPROTO_TCP, 13, 16).split(b"\0")[0].decode()
    cap = int.from_bytes(connection.getsockopt(socket.SOL_SOCKET, 47, 8), "little")
    connection.sendall(f"{controller} {'-' if cap > 2**60 else cap}\n".encode())
    connection.close()
"#;

/// Asks as often as the last argument says, from each of the source addresses.
const CLIENT: &str = r#"
import socket, sys
sources, times = sys.argv[1].split(","), int(sys.argv[2])
for source in sources * times:
    target = "fd01::1" if ":" in source else "10.1.0.1"
    with socket.create_connection((target, 8080), 10, (source, 0)) as connection:
        print(connection.recv(100).decode().strip())
"#;

/// The pins and the active policy end with the file system in the namespace of mounts: nothing stays after a test.
/// All addresses are this namespace's own.
const SETUP: &str = r#"set -e
mount -t bpf bpf /sys/fs/bpf
ip link set lo up
for address in 10.1.0.1 10.1.1.7 10.1.2.7 10.1.3.7; do ip address add $address/32 dev lo; done
for address in fd01::1 fd01:0:1::7; do ip address add $address/128 dev lo nodad; done
echo reno > /proc/sys/net/ipv4/tcp_congestion_control
# Of two arms, as a part of a policy.
experiment() {
    cat <<END
[experiment.$1]
unit = "prefix"
share = "100%"
[experiment.$1.arm.control]
tcp = "reno"
[experiment.$1.arm.cubic]
tcp = "cubic"
END
}
steer() { "$UNCORK" steer "$@"; }
uncork() { "$UNCORK" "$@"; }
ask() { python3 client.py "$1" "${2-1}"; }
# A killed process is seen for a moment.
kill_guard() {
    pkill -KILL -f '[s]teer guard'
    for i in $(seq 6000); do pgrep -f '[s]teer guard' > /dev/null || return 0; sleep 0.01; done
    return 1
}
# Records connections into out.jsonl, with more options, until `end_record`.
record() {
    "$UNCORK" steer record out.jsonl --every 100ms "$@" & recorder=$!
    for i in $(seq 1200); do [ -e out.jsonl ] && break; sleep 0.05; done
    sleep 0.5
}
end_record() { kill -INT $recorder; wait $recorder; }
# Waits until this many records are written.
recorded() { for i in $(seq 1200); do [ "$(wc -l < out.jsonl)" -ge "$1" ] && break; sleep 0.05; done; }
pins() { if [ -e /sys/fs/bpf/uncork ]; then find /sys/fs/bpf/uncork | wc -l; else echo 0; fi; }
serve() {
    sh -c 'echo $$ > "$CGROUP/cgroup.procs"; exec python3 server.py' & server=$!
    for i in $(seq 1200); do ss -Hltn 'sport = 8080' | grep -q . && break; sleep 0.05; done
}
"#;

const POLICY: &str = r#"
[default]
tcp = "reno"

[[rule]]
name = "near"
client = ["10.1.1.0/24", "fd01:0:1::/48"]
use = { tcp = "cubic", pacing_cap = "80mbit" }

[[rule]]
client = "10.1.2.0/24"
listener = "web"
use = { tcp = "cubic" }
"#;

/// A cgroup for a test, removed when the test ends.
struct Cgroup(PathBuf);

impl Cgroup {
    fn new() -> Option<Self> {
        static NUMBER: AtomicU32 = AtomicU32::new(0);
        let mounts = fs::read_to_string("/proc/self/mounts").unwrap_or_default();
        let root = mounts.lines().find_map(|line| {
            let mut fields = line.split(' ').skip(1);
            let place = fields.next()?;
            (fields.next() == Some("cgroup2")).then(|| PathBuf::from(place))
        })?;
        let number = NUMBER.fetch_add(1, Ordering::Relaxed);
        let path = root.join(format!("uncork-test-{}-{number}", std::process::id()));
        fs::create_dir(&path).ok()?;
        Some(Self(path))
    }
}

impl Drop for Cgroup {
    fn drop(&mut self) {
        // Its processes are being killed, or were.
        uncork_testkit::holds_within(std::time::Duration::from_mins(1), || {
            fs::remove_dir(&self.0).is_ok()
        });
    }
}

fn run(script: &str) -> Option<Finished> {
    let Some(cgroup) = Cgroup::new() else {
        not_run(Capability::Bpf, "cgroups of version 2 cannot be made");
        return None;
    };
    let scratch = common::Scratch::new("steer");
    for (name, text) in [("server.py", SERVER), ("client.py", CLIENT), ("policy.toml", POLICY)] {
        fs::write(scratch.path(name), text).expect("it can be written");
    }
    let mut shell = Command::new("unshare");
    shell.args(["--net", "--pid", "--fork", "--mount-proc", "--kill-child"]).stdin(Stdio::null());
    shell.args(["sh", "-c", &format!("{SETUP}{script}")]).current_dir(scratch.path(""));
    shell.env("UNCORK", env!("CARGO_BIN_EXE_uncork")).env("CGROUP", &cgroup.0);
    Some(finish(shell))
}

/// What `script` prints; it must succeed. `None`, with a message, if this machine cannot steer.
fn succeed(script: &str) -> Option<String> {
    let probe = run(r#"steer apply policy.toml --cgroup "$CGROUP""#)?;
    if probe.status == 3 {
        not_run(Capability::Bpf, &probe.stderr);
        return None;
    }
    let done = run(script)?;
    assert_eq!(done.status, 0, "{}{}", done.stdout, done.stderr);
    Some(done.stdout)
}

#[test]
fn a_server_is_steered_and_is_as_before_after_revert() {
    let script = r#"
        serve
        ask 10.1.1.7
        steer apply policy.toml --cgroup "$CGROUP" --listener web=8080 > applied
        sed "s|$CGROUP|CGROUP|" applied
        for client in 10.1.1.7 fd01:0:1::7 10.1.2.7 10.1.3.7; do ask $client; done
        steer explain 10.1.2.7 --port 8080
        steer explain 10.1.2.7 --port 443
        steer status | sed "s|$CGROUP|CGROUP|"
        # Another cgroup is not steered.
        kill $server
        wait $server || true
        python3 server.py & server=$!
        for i in $(seq 1200); do ss -Hltn 'sport = 8080' | grep -q . && break; sleep 0.05; done
        ask 10.1.1.7
        steer revert | sed "s|$CGROUP|CGROUP|"
        pins
        steer status 2>&1 || echo status $?
        kill $server
        wait $server || true
        serve
        ask 10.1.1.7"#;
    let Some(seen) = succeed(script) else { return };
    let expected = "\
reno -
policy.toml is active for new connections of CGROUP: 3 networks
cubic 10000000
cubic 10000000
cubic -
reno -
10.1.2.7, accepted on port 8080: cubic
  rule 2 (line 10) decides
10.1.2.7, accepted on port 443: reno
  the default decides
CGROUP: policy.toml
  rule     arm  controller                connections
  default  -    reno                      1
  near     -    cubic, at most 80 Mbit/s  2
  rule 2   -    cubic                     1
reno -
policy.toml is removed from CGROUP
0
error: nothing is steered
status 1
reno -
";
    assert_eq!(seen, expected);
}

#[test]
fn experiments_give_each_network_its_arm() {
    let script = r#"
        {
            echo 'key = "000102030405060708090a0b0c0d0e0f"'
            experiment trial
            printf '[[rule]]\nlistener = "8080"\nexperiment = "trial"\n'
        } > experiment.toml
        serve
        steer apply experiment.toml --cgroup "$CGROUP" > /dev/null
        for client in 10.1.1.7 10.1.2.7 10.1.3.7 fd01:0:1::7; do
            got=$(ask $client)
            explained=$(uncork policy explain experiment.toml --listener 8080 --ip $client --format json |
                python3 -c 'import json,sys; print(json.load(sys.stdin)["decision"]["tcp"])')
            asked=$(steer explain $client --port 8080 --format json |
                python3 -c 'import json,sys; print(json.load(sys.stdin)["tcp"])')
            [ "$got" = "$explained -" ] && [ "$asked" = "$explained" ] || { echo $client: $got, $explained, $asked; exit 9; }
        done
        steer explain 10.1.1.7 --port 8080 --format json > explained.json
        steer explain 10.1.1.7 --opened --format json > opened.json
        python3 -c 'import json; print(json.dumps([json.load(open(n)) for n in ("explained.json", "opened.json")]))'
        steer status --format json"#;
    let Some(seen) = succeed(script) else { return };
    let (explained, status) = seen.split_once('\n').expect("two documents");
    let explained: Vec<serde_json::Value> = serde_json::from_str(explained).expect("JSON");
    assert_describes("steer-explain-1", &explained);
    assert_eq!((&explained[0]["rule"], &explained[1]["rule"]), (&1.into(), &None::<u8>.into()));
    let status = serde_json::from_str(status).expect("JSON");
    assert_describes("steer-1", [&status]);
    let decided = status["cgroups"][0]["decided"].as_array().expect("a list");
    let connections = decided.iter().map(|one| one["connections"].as_u64().expect("a number"));
    assert_eq!(connections.sum::<u64>(), 4);
}

/// Initial windows: the server sends the controller, the window and the pacing limit before the first data and after their
/// acknowledgement.
const WINDOWS: &str = r#"
cat > server.py <<'END'
import socket
server = socket.create_server(("::", 8080), family=socket.AF_INET6, dualstack_ipv6=True, backlog=512)
def state(connection):
    controller = connection.getsockopt(socket.IPPROTO_TCP, 13, 16).split(b"\0")[0].decode()
    window = int.from_bytes(connection.getsockopt(socket.IPPROTO_TCP, 11, 104)[80:84], "little")
    limit = int.from_bytes(connection.getsockopt(socket.SOL_SOCKET, 47, 8), "little")
    return f"{controller} {window} {'-' if limit > 2**60 else limit}"
while True:
    connection, _ = server.accept()
    before = state(connection)
    connection.sendall(b"data")
    connection.recv(1)
    limit = state(connection).split()[2]
    connection.sendall(f"{before} {limit}\n".encode())
    connection.close()
END
cat > client.py <<'END'
import socket, sys
with socket.create_connection(("10.1.0.1", 8080), 10, (sys.argv[1], 0)) as connection:
    assert connection.recv(4) == b"data"
    connection.sendall(b"!")
    print(connection.recv(100).decode().strip())
END
cat > windows.toml <<'END'
[default]
tcp = "reno"
[[rule]]
name = "paced"
client = "10.1.1.0/24"
use = { initial_window = "32p" }
[[rule]]
name = "burst"
client = "10.1.2.0/24"
use = { tcp = "cubic", initial_window = "58400B", initial_rate = "burst" }
[[rule]]
name = "rate"
client = "10.1.3.0/24"
use = { initial_window = "20p", initial_rate = "80mbit", pacing_cap = "160mbit" }
END
serve
steer apply windows.toml --cgroup "$CGROUP" > /dev/null
record
for client in 10.1.0.1 10.1.1.7 10.1.2.7 10.1.3.7; do ask $client; done
recorded 4
end_record
steer explain 10.1.2.7 --port 8080
steer status | sed "s|$CGROUP|CGROUP|"
steer status --format json | python3 -c 'import json,sys; print(json.dumps(json.load(sys.stdin)))'
cat out.jsonl"#;

#[test]
fn the_initial_window_of_the_policy_is_set_paced_and_recorded() {
    let Some(seen) = succeed(WINDOWS) else { return };
    let expected = "\
reno 10 - -
reno 32 4294967294 4294967294
cubic 40 - -
reno 20 10000000 20000000
10.1.2.7, accepted on port 8080: cubic, initial window 58400B in a burst
  rule 2 `burst` (line 7) decides
CGROUP: windows.toml
  rule     arm  controller                                                    connections
  default  -    reno                                                          1
  paced    -    reno, initial window 32p                                      1
  burst    -    cubic, initial window 58400B in a burst                       1
  rate     -    reno, initial window 20p at up to 80mbit, at most 160 Mbit/s  1
";
    let (text, documents) = seen.split_at(seen.find('{').expect("documents"));
    assert_eq!(text, expected);
    let mut documents = documents
        .lines()
        .map(|line| serde_json::from_str::<serde_json::Value>(line).expect("JSON"));
    let status = documents.next().expect("the status");
    assert_describes("steer-1", [&status]);
    let refused = status["cgroups"][0]["decided"].as_array().expect("a list").iter();
    assert_eq!(refused.map(|one| one["windows_refused"].as_u64()).max(), Some(Some(0)));
    let records: Vec<serde_json::Value> = documents.collect();
    assert_describes("flow-record", &records);
    let windows: Vec<_> =
        records.iter().map(|record| record["service"]["initial_window"].as_u64()).collect();
    assert_eq!(windows, [10, 32, 40, 20].map(Some));
}

/// Over the loopback with packets of 1500 bytes and a receiver that limits the window, 20 MB are enough for an observation.
const RESUMED: &str = r#"
ip link set lo mtu 1500
echo "4096 131072 262144" > /proc/sys/net/ipv4/tcp_rmem
cat > server.py <<'END'
import socket
server = socket.create_server(("10.1.0.1", 8080))
while True:
    connection, _ = server.accept()
    connection.sendall(bytes(int(connection.recv(100))))
    controller = connection.getsockopt(socket.IPPROTO_TCP, 13, 16).split(b"\0")[0]
    connection.sendall(controller)
    connection.recv(1)
    connection.close()
END
cat > client.py <<'END'
import socket, sys
with socket.create_connection(("10.1.0.1", 8080), 10, (sys.argv[1], 0)) as connection:
    connection.sendall(sys.argv[2].encode())
    connection.settimeout(20)
    left, name = int(sys.argv[2]), b""
    while left:
        left -= len(connection.recv(min(left, 1 << 20)))
    while not name.endswith((b"cubic", b"_r")):
        name += connection.recv(100)
    print(name.decode())
END
cat > resume.toml <<'END'
[default]
tcp = "reno"
[[rule]]
name = "resume"
client = "10.1.1.0/24"
use = { tcp = "uncork_cubic", resume = true }
[[rule]]
name = "plain"
client = "10.1.2.0/24"
use = { tcp = "uncork_cubic" }
END
sed 's/uncork_cubic/reno/' resume.toml > reno.toml
sed 's/tcp = "uncork_cubic", //' resume.toml > none.toml
refused() { steer apply $1 --cgroup "$CGROUP" 2>&1 | sed 's/available: .*/available: .../'; }
refused resume.toml
refused reno.toml
refused none.toml
pins
uncork kernel load --resume=64 uncork_cubic > /dev/null
trap 'uncork kernel unload > /dev/null 2>&1 || true' EXIT
serve
steer apply resume.toml --cgroup "$CGROUP" > /dev/null
record
for client in 10.1.1.7 10.1.2.7; do ask $client 20000000; ask $client 1000; done
recorded 4
end_record
steer explain 10.1.1.7 --port 8080
steer status | sed "s|$CGROUP|CGROUP|"
uncork kernel status | grep -o '[0-9]* connections left an observation, [0-9]* began with one'
steer move --dry-run | head -1
steer revert > /dev/null
uncork kernel unload | sed 's/; .*//'
pins
cat out.jsonl"#;

#[test]
fn arms_with_and_without_resume_differ_on_one_host() {
    let Some(seen) = succeed(RESUMED) else { return };
    let expected = "\
error: resume.toml:3: this host does not have the controller `uncork_cubic_r`: load it \
(`uncork kernel load --resume uncork_cubic`); available: ...
warning: reno.toml: `resume` holds for QUIC only with `tcp = reno`; write a controller of `uncork kernel load --resume`, \
such as uncork_cubic
error: reno.toml:3: `resume`: `reno` does not resume; write the tcp of `uncork kernel load --resume`, such as \
tcp = \"uncork_cubic\", or remove `resume`
warning: none.toml: `resume` holds for QUIC only with `tcp = reno`; write a controller of `uncork kernel load --resume`, \
such as uncork_cubic
error: none.toml:3: `resume`: `reno` does not resume; write the tcp of `uncork kernel load --resume`, such as \
tcp = \"uncork_cubic\", or remove `resume`
0
uncork_cubic_r
uncork_cubic_r
uncork_cubic
uncork_cubic
10.1.1.7, accepted on port 8080: uncork_cubic, resume
  rule 1 `resume` (line 3) decides
CGROUP: resume.toml
  rule     arm  controller            connections
  default  -    reno                  0
  resume   -    uncork_cubic, resume  2
  plain    -    uncork_cubic          2
2 connections left an observation, 1 began with one
0 of 0 open connections have other settings
uncork_cubic is unloaded
0
";
    let (text, records) = seen.split_at(seen.find('{').expect("records"));
    assert_eq!(text, expected);
    let records: Vec<serde_json::Value> =
        records.lines().map(|line| serde_json::from_str(line).expect("JSON")).collect();
    assert_describes("flow-record", &records);
    let seen: Vec<_> = records
        .iter()
        .map(|record| {
            let text = |value: &serde_json::Value| value.as_str().unwrap_or("-").to_owned();
            [
                &record["choice"]["rule"],
                &record["choice"]["cc"],
                &record["cc"],
                &record["start"]["resume"],
            ]
            .map(text)
        })
        .collect();
    let of = |rule: &str, cc: &str, resume: &str| [rule, cc, cc, resume].map(str::to_owned);
    assert_eq!(
        seen,
        [
            of("resume", "uncork_cubic_r", "-"),
            of("resume", "uncork_cubic_r", "unused"),
            of("plain", "uncork_cubic", "-"),
            of("plain", "uncork_cubic", "-"),
        ]
    );
}

/// A client on a device of its own, which answers the third SYN-ACK only: the kernel has sent it again twice.
const DEAF_CLIENT: &str = r#"
cat > deaf.py <<'END'
import fcntl, os, socket, struct, subprocess
tun = os.open("/dev/net/tun", os.O_RDWR)
fcntl.ioctl(tun, 0x400454CA, struct.pack("16sH22x", b"deaf", 0x1001))
for command in ("link set deaf up", "route add 10.1.9.0/24 dev deaf"):
    subprocess.run(["ip", *command.split()], check=True)
client, server = socket.inet_aton("10.1.9.7"), socket.inet_aton("10.1.0.1")
def checksum(data):
    total = sum(struct.unpack(f"!{len(data) // 2}H", data))
    while total >> 16:
        total = (total & 0xFFFF) + (total >> 16)
    return ~total & 0xFFFF
def send(sequence, acknowledged, flags):
    tcp = struct.pack("!HHIIBBHHH", 5000, 8080, sequence, acknowledged, 5 << 4, flags, 65535, 0, 0)
    sum_of = checksum(client + server + struct.pack("!HH", 6, 20) + tcp)
    tcp = tcp[:16] + struct.pack("!H", sum_of) + tcp[18:]
    head = struct.pack("!BBHHHBBH4s4s", 0x45, 0, 40, 1, 0, 64, 6, 0, client, server)
    os.write(tun, head[:10] + struct.pack("!H", checksum(head)) + head[12:] + tcp)
def receive(flags):
    while True:
        tcp = os.read(tun, 2000)[20:]
        if len(tcp) >= 20 and tcp[13] & 0x3F == flags:
            return struct.unpack("!I", tcp[4:8])[0]
send(100, 0, 0x02)
for _ in range(3):
    theirs = receive(0x12)
send(101, theirs + 1, 0x10)
receive(0x18)
send(101, 0, 0x04)
END
printf '[default]\ntcp = "reno"\ninitial_window = "32p"\n' > windows.toml
serve
steer apply windows.toml --cgroup "$CGROUP" > /dev/null
record
timeout 30 python3 deaf.py
ask 10.1.1.7 > /dev/null
recorded 2
end_record
steer status | grep window
cat out.jsonl"#;

/// RFC 5681 §3.1: it must be one segment then.
#[test]
fn the_window_stays_at_one_packet_after_lost_syn_acks() {
    let Some(seen) = succeed(DEAF_CLIENT) else { return };
    let (text, records) = seen.split_at(seen.find("\n{").expect("records") + 1);
    let expected = "  the initial window of 1 of them stayed the kernel's: data had left already, or packets of the handshake were lost\n";
    assert!(text.ends_with(expected), "{text}");
    let windows: Vec<_> = records
        .lines()
        .map(|line| serde_json::from_str::<serde_json::Value>(line).expect("JSON"))
        .map(|record| record["service"]["initial_window"].as_u64())
        .collect();
    assert_eq!(windows, [1, 32].map(Some));
}

/// Two policies one after the other, and a server of another service.
const RECORDED: &str = r#"
policy() {
    echo 'key = "000102030405060708090a0b0c0d0e0f"'
    experiment $1
    printf '[[rule]]\nname = "all"\nlistener = "web"\nexperiment = "%s"\n' $1
}
apply() { policy $1 > $1.toml; steer apply $1.toml --cgroup "$CGROUP" --listener web=8080 > /dev/null; }
# A server of another service.
sed 's/8080/8081/' server.py > other.py
sed 's/8080/8081/' client.py > elsewhere.py
python3 other.py &
serve
ip route add local 10.0.0.0/8 dev lo
apply first
# Ends before anybody records.
ask 10.1.1.7
# Begins before the recorder and ends while it runs, when another policy is active.
python3 -c '
import socket, time
with socket.create_connection(("10.1.0.1", 8080), 10, ("10.9.9.9", 0)) as held:
    time.sleep(4)' & held=$!
"$UNCORK" steer record out.jsonl --every 100ms & recorder=$!
for i in $(seq 1200); do [ -e out.jsonl ] && break; sleep 0.05; done
"$UNCORK" steer record other.jsonl 2>&1 | sed "s|/sys/fs[^ ]*|PINS|; s|process [0-9]*|process N|"
sleep 0.5
clients=$(seq -s, -f '10.7.%g.1' 40)
ask $clients 5 > /dev/null
apply second
ask $clients 5 > /dev/null
python3 elsewhere.py $clients 1 > /dev/null
wait $held
recorded 401
sleep 0.5
end_record
cat out.jsonl"#;

/// Each connection leaves one record with its decision, also if an earlier policy decided it. Connections of another
/// service leave none.
#[test]
fn each_connection_leaves_a_record_of_what_it_was_given() {
    let Some(seen) = succeed(RECORDED) else { return };
    let mut lines = seen.lines();
    assert_eq!(lines.next(), Some("cubic -"), "the arm of 10.1.1.0/24");
    let refused = lines.next().expect("a refusal");
    assert!(refused.starts_with("error: ") && refused.contains("PINS (process N)"), "{refused}");
    let records: Vec<serde_json::Value> =
        lines.map(|line| serde_json::from_str(line).expect("a record")).collect();
    assert_describes("flow-record", &records);
    let of = |experiment: &str| {
        let is = |one: &&serde_json::Value| one["choice"]["arm"]["experiment"] == experiment;
        records.iter().filter(is).collect::<Vec<_>>()
    };
    assert_eq!((of("first").len(), of("second").len()), (201, 200), "{} records", records.len());
    assert_eq!(records.len(), 401);
    check_choices(&records);
}

/// One recorder, while policies are removed and applied again, and the listener gets another name.
#[test]
fn a_recorder_follows_the_policy() {
    let script = r#"
        serve
        listeners() { grep -o '"listener":"[^"]*"' out.jsonl | sort | uniq -c | sed 's/^ *//'; }
        count() { recorded $1; wc -l < out.jsonl; }
        apply() { steer apply policy.toml --cgroup "$CGROUP" --listener $1=8080 > /dev/null 2>&1; }
        apply web
        "$UNCORK" steer record out.jsonl --every 100ms 2> notes & recorder=$!
        for i in $(seq 1200); do [ -e out.jsonl ] && break; sleep 0.05; done
        sleep 0.3
        ask 10.1.1.7 3 > /dev/null
        count 3
        apply cdn
        ask 10.1.1.7 3 > /dev/null
        count 6
        steer revert > /dev/null
        for i in $(seq 1200); do grep -q warning notes && break; sleep 0.05; done
        apply web
        for i in $(seq 1200); do grep -q again notes && break; sleep 0.05; done
        ask 10.1.1.7 3 > /dev/null
        count 9
        listeners
        "$UNCORK" steer record other.jsonl 2>&1 | sed "s|/sys/fs[^ ]*|PINS|; s|process [0-9]*|process N|"
        kill -TERM $recorder
        wait $recorder || echo status $?
        sed "s|$CGROUP|CGROUP|" notes"#;
    let Some(seen) = succeed(script) else { return };
    let expected = "\
3
6
9
3 \"listener\":\"cdn\"
6 \"listener\":\"web\"
error: another `uncork steer record` reads PINS (process N); end it first
warning: no policy is active for CGROUP any more; recording goes on when one is applied (uncork steer apply)
note: a policy is active for CGROUP again; recording goes on
note: 9 records written to out.jsonl
";
    assert_eq!(seen, expected);
}

/// A signal, a full disk, and one that cannot be written.
#[test]
fn what_was_recorded_is_written_at_the_end_or_said_to_be_lost() {
    let script = r#"
        serve
        steer apply policy.toml --cgroup "$CGROUP" > /dev/null 2>&1
        mkdir small
        mount -t tmpfs -o size=64k small small
        try() {
            "$UNCORK" steer record $1 --every 100ms 2> notes & recorder=$!
            for i in $(seq 1200); do ls -l /proc/$recorder/fd 2> /dev/null | grep -q uncork/steer && break; sleep 0.05; done
            sleep 0.5
            $2
            ask 10.1.1.7 3 > /dev/null
            sleep 1
            kill -TERM $recorder
            wait $recorder || echo status $?
            cat notes
        }
        try records/ true
        ls records | wc -l
        fill() { head -c 1m /dev/zero > small/fill 2> /dev/null || true; }
        try small/ fill
        rm small/fill
        try small/ "mount -o remount,ro small"
        "$UNCORK" steer record small/ 2>&1 || echo status $?"#;
    let Some(seen) = succeed(script) else { return };
    let expected = "\
note: 3 records written to records/
1
status 3
note: 0 records written to small/
warning: cannot write records to 'small/': No space left on device (os error 28)
warning: 3 of 3 records were lost: the disk was full, or they came faster than they are written
error: 3 records are not in small/
status 3
note: 0 records written to small/
warning: cannot write records to 'small/': Read-only file system (os error 30)
warning: 3 of 3 records were lost: the disk was full, or they came faster than they are written
error: 3 records are not in small/
error: cannot write records to 'small/': Read-only file system (os error 30)
status 3
";
    assert_eq!(seen, expected);
}

/// `ip netns exec` hides the BPF file system; `nsenter` and `--netns` do not.
#[test]
fn another_network_namespace_is_named_and_entered() {
    let script = r#"
        mkdir -p /run/netns
        mount -t tmpfs tmpfs /run/netns
        ip netns add web
        cp server.py inside.py
        nsenter --net=/run/netns/web sh -c 'ip link set lo up; echo $$ > "$CGROUP/cgroup.procs"; exec python3 server.py' &
        for i in $(seq 1200); do nsenter --net=/run/netns/web ss -Hltn 'sport = 8080' | grep -q . && break; sleep 0.05; done
        steer apply policy.toml --cgroup "$CGROUP" > /dev/null
        ip netns exec web "$UNCORK" steer status 2>&1 || echo status $?
        ip netns exec web "$UNCORK" kernel load 2>&1 || echo status $?
        steer move --dry-run 2>&1 | sed "s|$CGROUP|CGROUP|; s|/proc/[0-9]*|/proc/PID|"
        "$UNCORK" steer record out.jsonl --netns web --every 100ms 2> notes & recorder=$!
        for i in $(seq 1200); do [ -e out.jsonl ] && break; sleep 0.05; done
        sleep 0.3
        nsenter --net=/run/netns/web python3 -c 'import socket; socket.create_connection(("127.0.0.1", 8080)).recv(100)'
        recorded 1
        kill -INT $recorder
        wait $recorder
        cat notes"#;
    let Some(seen) = succeed(script) else { return };
    let hidden = "error: the BPF file system at /sys/fs/bpf is hidden in this mount namespace, as `ip netns exec` does; enter the \
                  network namespace alone: nsenter --net=/run/netns/web uncork …\nstatus 3\n";
    let expected = format!(
        "{hidden}{hidden}\
         warning: CGROUP has processes in another network namespace; their connections are not included; add --netns \
         /proc/PID/ns/net\n0 of 0 open connections have other settings\nnote: 1 records written to out.jsonl\n"
    );
    assert_eq!(seen, expected);
}

/// The policy before is active again, or none, unless the pending one is confirmed; also where the guard was killed.
#[test]
fn apply_ttl_without_confirm_rolled_back() {
    let script = r#"
        printf '[default]\ntcp = "cubic"\n' > one.toml
        printf '[default]\ntcp = "cubic"\npacing_cap = "80mbit"\n' > two.toml
        apply() { steer apply "$@" --cgroup "$CGROUP" | tail -1 | sed "s|$CGROUP|CGROUP|"; }
        becomes() { for i in $(seq 1200); do [ "$(ask 10.1.1.7)" = "$1" ] && break; sleep 0.05; done; ask 10.1.1.7; }
        serve
        apply two.toml --ttl 4s
        ask 10.1.1.7
        becomes "reno -"
        for i in $(seq 1200); do [ "$(pins)" = 0 ] && break; sleep 0.05; done
        pins
        apply one.toml
        apply two.toml --ttl 1min
        steer status --format json > status.json
        apply two.toml --ttl 2s
        becomes "cubic -"
        apply two.toml --ttl 3s
        kill_guard
        steer status 2>&1 > /dev/null || echo status $?
        becomes "cubic -"
        steer status | head -1 | sed "s|$CGROUP|CGROUP|"
        apply two.toml --ttl 2s
        kill_guard
        sleep 3
        steer status 2>&1 > /dev/null || echo status $?
        ask 10.1.1.7
        apply two.toml --ttl 5s
        steer confirm
        steer confirm 2>&1 || echo status $?
        sleep 6
        ask 10.1.1.7
        ls /sys/fs/bpf/uncork/steer/* | grep -c '^[0-9]*$'
        for i in $(seq 1200); do pgrep -f '[s]teer guard' > /dev/null || break; sleep 0.05; done
        pgrep -f '[s]teer guard' || true
        cat status.json"#;
    let Some(seen) = succeed(script) else { return };
    let (printed, status) = seen.split_once('{').expect("a document");
    let expected = "\
rolled back in 4s, unless you run: uncork steer confirm
cubic 10000000
reno -
0
one.toml is active for new connections of CGROUP: 0 networks
rolled back in 60s, unless you run: uncork steer confirm
rolled back in 2s, unless you run: uncork steer confirm
cubic -
rolled back in 3s, unless you run: uncork steer confirm
warning: the process that would roll the policy back had ended; another one was started
status 1
cubic -
CGROUP: one.toml
rolled back in 2s, unless you run: uncork steer confirm
warning: the process that would roll the policy back had ended; another one has rolled it back, because its time had passed
status 1
cubic -
rolled back in 5s, unless you run: uncork steer confirm
the policy is kept
error: no policy is pending
status 1
cubic 10000000
1
";
    assert_eq!(printed, expected);
    let status: serde_json::Value = serde_json::from_str(&format!("{{{status}")).expect("JSON");
    assert_describes("steer-1", [&status]);
    let pending = &status["cgroups"][0]["pending"];
    assert_eq!((&pending["returns_to"], &pending["guarded"]), (&"one.toml".into(), &true.into()));
}

/// Who may read a file may flock it: the lock is nothing that others may read. A command that holds it is named.
#[test]
fn only_another_command_of_the_owner_is_waited_for_and_not_forever() {
    let script = r#"
        setpriv --reuid 65534 --regid 65534 --clear-groups flock -x -o "$CGROUP" sleep 600 & other=$!
        sleep 0.3
        steer apply policy.toml --cgroup "$CGROUP" | sed "s|$CGROUP|CGROUP|"
        setpriv --reuid 65534 --regid 65534 --clear-groups flock -x -o /sys/fs/bpf/uncork/steer true 2> /dev/null || echo refused
        flock -o -x /sys/fs/bpf/uncork/steer sh -c 'touch held; exec sleep 600' & holder=$!
        for i in $(seq 1200); do [ -e held ] && break; sleep 0.05; done
        steer revert 2>&1 | sed "s/process $holder /process HOLDER /"
        kill $holder
        for i in $(seq 1200); do steer revert 2> /dev/null | sed "s|$CGROUP|CGROUP|" | grep . && break; sleep 0.05; done
        pins"#;
    let Some(seen) = succeed(script) else { return };
    let expected = "\
policy.toml is active for new connections of CGROUP: 3 networks
refused
error: process HOLDER changes policies, and has not ended; try again, or end it
policy.toml is removed from CGROUP
0
";
    assert_eq!(seen, expected);
}

/// `listener = "web"` without a port of that name.
#[test]
fn a_rule_that_cannot_match_is_said_by_apply_and_status() {
    let script = r#"
        steer apply policy.toml --cgroup "$CGROUP" 2>&1 > /dev/null
        steer status 2>&1 > /dev/null"#;
    let Some(seen) = succeed(script) else { return };
    let warning = "warning: policy.toml:10: `listener = web` never matches: no such listener; ports have their numbers as names; \
                   name one with --listener NAME=PORT\n";
    assert_eq!(seen, warning.repeat(2));
}

/// Controller, unit, bucket and propensity are those of `uncork policy explain`.
fn check_choices(records: &[serde_json::Value]) {
    let scratch = common::Scratch::new("steer-explained");
    for record in records {
        let (choice, service) = (&record["choice"], &record["service"]);
        assert_eq!((&choice["rule"], &service["listener"]), (&"all".into(), &"web".into()));
        assert_eq!((&record["cc"], &record["engine"]), (&choice["cc"], &"watch".into()));
        let cc = if choice["arm"]["arm"] == "control" { "reno" } else { "cubic" };
        assert_eq!(record["cc"], cc);
        // The same unit and bucket as the policy's own.
        let experiment = choice["arm"]["experiment"].as_str().expect("a name");
        let policy = format!(
            "key = \"000102030405060708090a0b0c0d0e0f\"\n[experiment.{experiment}]\nunit = \"prefix\"\nshare = \"100%\"\n\
             [experiment.{experiment}.arm.control]\n[experiment.{experiment}.arm.cubic]\n\
             [[rule]]\nexperiment = \"{experiment}\"\n"
        );
        fs::write(scratch.path("policy.toml"), policy).expect("it can be written");
        let client = service["client"].as_str().and_then(|it| it.split('/').next());
        let (file, client) = (scratch.path("policy.toml"), client.expect("a network"));
        let line = format!("policy explain {} --ip {client} --format json", file.display());
        let document: serde_json::Value =
            serde_json::from_str(&common::stdout(&line)).expect("an explanation");
        for key in ["arm", "unit", "bucket", "propensity"] {
            assert_eq!(document["decision"]["arm"][key], choice["arm"][key], "{client} {key}");
        }
    }
}

#[test]
fn apply_unsupported_policy_refused_and_nothing_changes() {
    let script = r#"
        refused() { steer apply "$@" 2>&1 | sed "s|$CGROUP|CGROUP|"; }
        printf '[[rule]]\nhost = "a.example"\nuse = { tcp = "reno" }\n' > host.toml
        refused host.toml --cgroup "$CGROUP"
        printf '[experiment.e]\nunit = "cookie:uid"\nshare = "1%%"\n[experiment.e.arm.a]\n[[rule]]\nexperiment = "e"\n' > cookie.toml
        refused cookie.toml --cgroup "$CGROUP"
        printf '[[rule]]\nclient = "10.0.0.0/8"\nuse = { tcp = "vegas2" }\n' > vegas.toml
        refused vegas.toml --cgroup "$CGROUP" | sed 's/available: .*/available: .../'
        sed 's/vegas2/uncork_bbr2/' vegas.toml > ours.toml
        refused ours.toml --cgroup "$CGROUP" | sed 's/available: .*/available: .../'
        printf '[default]\npacing_cap = "40gbit"\n' > cap.toml
        refused cap.toml --cgroup "$CGROUP"
        refused policy.toml --cgroup /proc --listener web=80 | head -1
        pins
        umount /sys/fs/bpf
        refused policy.toml --cgroup "$CGROUP" --listener web=80"#;
    let Some(seen) = succeed(script) else { return };
    let expected = "\
error: host.toml:1: `host = a.example`: the kernel does not know the host of a request; remove it, or serve with \
`uncork serve --policy`
error: cookie.toml:5: experiment `e`: the kernel does not know the cookie `uid`; write unit = \"prefix\"
error: vegas.toml:1: this host does not have the controller `vegas2`: it is not a controller of Linux: check \
the name, or load the module that has it; available: ...
error: ours.toml:1: this host does not have the controller `uncork_bbr2`: load it (`uncork kernel load uncork_bbr2`); \
available: ...
error: cap.toml: [default]: the kernel takes rates below 34 Gbit/s; remove `pacing_cap`
error: invalid value '/proc' for '--cgroup <DIR>': not a cgroup v2 directory: it is in a file system of another kind; choose one below the \
directory that `findmnt -t cgroup2` shows
0
error: no BPF file system is mounted at /sys/fs/bpf; mount it: mount -t bpf bpf /sys/fs/bpf
";
    assert_eq!(seen, expected);
}

/// A service that has set a controller for its listening socket, on a host with another default.
#[test]
fn moved_connection_without_a_rule_gets_the_controller_of_its_service() {
    let script = r#"
        cat > hold.py <<'END'
import os, socket, subprocess
open(os.environ["CGROUP"] + "/cgroup.procs", "w").write(str(os.getpid()))
def steer(*args):
    subprocess.run([os.environ["UNCORK"], "steer", *args], check=True, capture_output=True)
def controller(connection):
    return connection.getsockopt(socket.IPPROTO_TCP, 13, 16).split(b"\0")[0].decode()
server = socket.create_server(("10.1.0.1", 8090))
server.setsockopt(socket.IPPROTO_TCP, 13, b"cubic")
steer("apply", "one.toml", "--cgroup", os.environ["CGROUP"])
client = socket.create_connection(("10.1.0.1", 8090), 10, ("10.1.1.7", 0))
accepted, _ = server.accept()
print(controller(server), controller(accepted))
steer("apply", "two.toml", "--cgroup", os.environ["CGROUP"])
steer("move")
print(controller(accepted))
END
        printf '[[rule]]\nclient = "10.1.1.0/24"\nuse = { tcp = "reno" }\n' > one.toml
        printf '[[rule]]\nclient = "10.1.2.0/24"\nuse = { tcp = "reno" }\n' > two.toml
        python3 hold.py"#;
    let Some(seen) = succeed(script) else { return };
    assert_eq!(seen, "cubic reno\ncubic\n");
}

/// Holds connections open, and asks the server what they have, while policies change.
const MOVED: &str = r#"
cat > hold.py <<'END'
import socket, threading
server = socket.create_server(("10.1.0.1", 8090), backlog=512)
def answer(connection):
    while connection.recv(1):
        controller = connection.getsockopt(socket.IPPROTO_TCP, 13, 16).split(b"\0")[0].decode()
        cap = int.from_bytes(connection.getsockopt(socket.SOL_SOCKET, 47, 8), "little")
        connection.sendall(f"{controller} {'-' if cap > 2**60 else cap}".encode())
    connection.close()
while True:
    threading.Thread(target=answer, args=(server.accept()[0],)).start()
END
cat > course.py <<'END'
import json, os, pathlib, signal, socket, subprocess, time
def steer(*args):
    done = subprocess.run([os.environ["UNCORK"], "steer", *args], capture_output=True, text=True)
    print(done.stdout + done.stderr, end="")
def connect(source):
    return socket.create_connection(("10.1.0.1", 8090), 10, (source, 0))
def ask(*connections):
    for connection in connections:
        connection.sendall(b"?")
        print(connection.recv(100).decode())
apply = lambda name: subprocess.run(
    [os.environ["UNCORK"], "steer", "apply", name, "--cgroup", os.environ["CGROUP"]], check=True, capture_output=True)
before = connect("10.1.1.7")
apply("one.toml")
near, far = connect("10.1.1.7"), connect("10.1.2.7")
ask(before, near, far)
apply("two.toml")
after = connect("10.1.1.7")
recorder = subprocess.Popen([os.environ["UNCORK"], "steer", "record", "out.jsonl", "--every", "100ms"])
while not pathlib.Path("out.jsonl").exists():
    time.sleep(0.05)
steer("move", "--dry-run")
move = subprocess.run([os.environ["UNCORK"], "steer", "move", "--dry-run", "--format", "json"], check=True, capture_output=True)
pathlib.Path("move.json").write_bytes(move.stdout)
ask(before, near, far, after)
steer("move", "--client", "10.1.1.0/24", "--from", "cubic")
ask(before, near, far, after)
steer("move", "--rule", "near")
steer("move")
ask(far)
steer("move")
for connection in (before, near, far, after):
    connection.close()
time.sleep(3)
recorder.send_signal(signal.SIGINT)
recorder.wait()
records = [json.loads(line) for line in open("out.jsonl")]
for record in sorted(records, key=lambda it: it["service"]["client"]):
    choice = record["choice"]
    print(choice["rule"], record["cc"], (choice.get("arm") or {}).get("arm"))
END
printf '[default]\ntcp = "cubic"\npacing_cap = "80mbit"\n' > one.toml
cat > two.toml <<'END'
key = "000102030405060708090a0b0c0d0e0f"
[default]
tcp = "cubic"
[experiment.trial]
unit = "prefix"
share = "100%"
[experiment.trial.arm.only]
tcp = "reno"
[[rule]]
name = "near"
client = "10.1.1.0/24"
experiment = "trial"
END
sh -c 'echo $$ > "$CGROUP/cgroup.procs"; exec python3 hold.py' &
for i in $(seq 1200); do ss -Hltn 'sport = 8090' | grep -q . && break; sleep 0.05; done
python3 course.py
cat move.json"#;

/// Connections that are older than the policy can move, too. A moved connection is in no arm: neither the previous nor the new one.
#[test]
fn open_connections_are_moved_on_demand() {
    let Some(seen) = succeed(MOVED) else { return };
    let expected = "\
reno -
cubic 10000000
cubic 10000000
2 of 4 open connections have other settings
  1 another pacing cap, with cubic
  1 from cubic to reno
reno -
cubic 10000000
cubic 10000000
reno -
1 of 1 open connections have other settings
  1 from cubic to reno
1 moved, 0 refused, 0 ended meanwhile
reno -
reno -
cubic 10000000
reno -
0 of 3 open connections have other settings
0 moved, 0 refused, 0 ended meanwhile
1 of 4 open connections have other settings
  1 another pacing cap, with cubic
1 moved, 0 refused, 0 ended meanwhile
cubic -
0 of 4 open connections have other settings
0 moved, 0 refused, 0 ended meanwhile
";
    let (printed, rest) = seen.split_at(seen.len().min(expected.len()));
    assert_eq!(printed, expected);
    let (records, document) = rest.split_once('{').expect("records and a document");
    let document: serde_json::Value = serde_json::from_str(&format!("{{{document}")).expect("JSON");
    assert_describes("steer-move-1", [&document]);
    let moves = &document["cgroups"][0];
    assert_eq!((&moves["connections"], &moves["moved"]), (&4.into(), &None::<u8>.into()));
    assert_eq!(moves["to_move"][1]["to"], "reno");
    let mut records: Vec<&str> = records.lines().collect();
    records.sort_unstable();
    assert_eq!(records, ["default cubic None", "near reno None", "near reno only"]);
}

/// Each connection has the controller and the cap of one policy, whenever policies are exchanged.
#[test]
fn policies_are_exchanged_whole_under_load() {
    let script = r#"
        printf '[default]\ntcp = "cubic"\npacing_cap = "80mbit"\n' > one.toml
        printf '[default]\ntcp = "reno"\npacing_cap = "160mbit"\n' > two.toml
        serve
        steer apply one.toml --cgroup "$CGROUP" > /dev/null
        # Until the last exchange, however long it takes.
        sed 's/^for source in .*/import itertools, pathlib\nfor source in itertools.takewhile(lambda _: not pathlib.Path("stop").exists(), sources * times):/' \
            client.py > while.py
        clients=
        for client in 10.1.1.7 10.1.2.7; do python3 while.py $client 100000 > $client.txt & clients="$clients $!"; done
        for i in $(seq 25); do
            steer apply two.toml --cgroup "$CGROUP" > /dev/null
            steer apply one.toml --cgroup "$CGROUP" > /dev/null
        done
        touch stop
        wait $clients
        cat 10.*.txt | sort | uniq -c
        steer revert > /dev/null
        pins"#;
    let Some(seen) = succeed(script) else { return };
    let lines: Vec<Vec<&str>> =
        seen.lines().map(|line| line.split_whitespace().collect()).collect();
    let count = |line: &[&str]| line[0].parse::<u32>().expect("a number");
    assert_eq!(lines.len(), 3, "{seen}");
    assert_eq!(lines[0][1..], ["cubic", "10000000"]);
    assert_eq!(lines[1][1..], ["reno", "20000000"]);
    assert!(count(&lines[0]).min(count(&lines[1])) > 100, "both were active: {seen}");
    assert_eq!(lines[2], ["0"]);
}

/// Killed at each step that others can see, without and with an active policy: a whole policy is active, or none, and the
/// next `apply` and `revert` succeed.
const KILLED: &str = r#"
printf '[default]\ntcp = "cubic"\npacing_cap = "80mbit"\n' > one.toml
printf '[default]\ntcp = "reno"\npacing_cap = "160mbit"\n' > two.toml
serve
apply() { steer apply $1.toml --cgroup "$CGROUP" 2> warnings > /dev/null && [ ! -s warnings ] || { cat warnings; exit 9; }; }
reverted() { steer revert > /dev/null 2>&1 || [ $? = 1 ]; }
soon() { for i in $(seq 1200); do [ "$(ask 10.1.1.7)" = "$1" ] && return; sleep 0.05; done; echo "$(ask 10.1.1.7), not $1"; exit 9; }
begin() { reverted; [ $1 = none ] || apply $1; }
before=${course%% *} words=${course#* }
begin $before
steps "$UNCORK" steer $words > steps.txt
while read -r call number; do
    begin $before
    killed $call $number "$UNCORK" steer $words
    case "$before $words $(ask 10.1.1.7)" in
        "none apply two"*" reno -" | "none apply two"*" reno 20000000") ;;
        "one apply two"*" cubic 10000000" | "one apply two"*" reno 20000000") ;;
        "one apply one"*" cubic 10000000") ;;
        "one revert cubic 10000000" | "one revert reno -") ;;
        *) echo "$course, $call $number: $(ask 10.1.1.7)"; exit 9 ;;
    esac
    # The active policy has its names: records need them.
    [ "$(ask 10.1.1.7)" = "reno -" ] || ls /sys/fs/bpf/uncork/steer/*/names-* > /dev/null || exit 9
    # An attached program without a pin would be reported as another's.
    apply one
    soon "cubic 10000000"
    # One policy is left, with its link and its names.
    [ "$(find /sys/fs/bpf/uncork/steer/* -mindepth 1 -type d | wc -l)" = 1 ] || { ls /sys/fs/bpf/uncork/steer/*; exit 9; }
    steer revert > /dev/null
    [ "$(pins)" = 0 ] || exit 9
    soon "reno -"
done < steps.txt
echo "$before $(wc -l < steps.txt)""#;

/// The previous policy, and the command that is killed.
const COURSES: [&str; 4] = [
    "none apply two.toml --cgroup $CGROUP",
    "one apply two.toml --cgroup $CGROUP",
    "one apply one.toml --cgroup $CGROUP",
    "one revert",
];

#[test]
fn a_command_that_is_killed_at_any_step_leaves_a_whole_policy_or_none() {
    if !can_kill() {
        return;
    }
    // Each in namespaces of its own, at the same time.
    thread::scope(|scope| {
        for course in COURSES {
            scope.spawn(move || {
                let script = format!("{SHELL}course=\"{course}\"\n{KILLED}");
                let Some(seen) = succeed(&script) else { return };
                println!("{course}: {seen}");
                let steps = seen.split_whitespace().nth(1).and_then(|steps| steps.parse().ok());
                assert!(steps.is_some_and(|steps: u32| steps > 10), "{course}: {seen}");
            });
        }
    });
}

/// `map.py taken` prints how many places of the table of open connections are taken, `map.py fill` puts connections that are none
/// into all others, and prints how many places there are.
const MAP: &str = r#"
cat > map.py <<'END'
import ctypes, glob, os, re, struct, sys
libc = ctypes.CDLL(None, use_errno=True)
NUMBER = {"x86_64": 321, "aarch64": 280}[os.uname().machine]
OBJ_GET, LOOKUP_BATCH, UPDATE_BATCH = 7, 24, 26
ENDED = 1 << 63
def bpf(command, arguments):
    result = libc.syscall(NUMBER, command, arguments, len(arguments))
    if result < 0:
        raise OSError(ctypes.get_errno(), os.strerror(ctypes.get_errno()))
    return result
[path] = glob.glob("/sys/fs/bpf/uncork/steer/*/sockets")
path = ctypes.create_string_buffer(path.encode())
fd = bpf(OBJ_GET, ctypes.create_string_buffer(struct.pack("QII", ctypes.addressof(path), 0, 0), 16))
about = open(f"/proc/self/fdinfo/{fd}").read()
value = lambda name: int(re.search(name + r":\s*(\d+)", about)[1])
most, size = value("max_entries"), value("value_size")
keys = (ctypes.c_uint32 * most)(*range(most))
values, last = ctypes.create_string_buffer(most * size), ctypes.c_uint32()
def batch(command):
    words = (0, ctypes.addressof(last), ctypes.addressof(keys), ctypes.addressof(values), most, fd, 0, 0)
    bpf(command, ctypes.create_string_buffer(struct.pack("QQQQIIQQ", *words), 56))
try:
    batch(LOOKUP_BATCH)
except FileNotFoundError:
    pass  # the kernel's word for all
cookies = [struct.unpack_from("Q", values, (place + 1) * size - 8)[0] for place in range(most)]
if sys.argv[1] == "taken":
    print(sum(0 < cookie < ENDED for cookie in cookies))
    sys.exit()
# The connections of before have their places. No socket has such a cookie as the others.
for place in range(most):
    struct.pack_into("Q", values, (place + 1) * size - 8, cookies[place] if 0 < cookies[place] < ENDED else ENDED - 1)
batch(UPDATE_BATCH)
print(most)
END
"#;

#[test]
fn a_full_map_leaves_connections_steered_but_without_a_record() {
    let script = r#"
        serve
        steer apply policy.toml --cgroup "$CGROUP" > /dev/null
        ask 10.1.1.7
        # Open until the end: it has a place.
        python3 -c 'import socket, time; held = socket.create_connection(("10.1.0.1", 8080), 10, ("10.1.3.7", 0)); time.sleep(600)' &
        for i in $(seq 1200); do steer status | grep -q 'default .* 1$' && break; sleep 0.05; done
        python3 map.py fill
        ask 10.1.1.7 2
        steer status | tail -2
        # Another policy becomes active nevertheless.
        printf '[default]\ntcp = "cubic"\n' > cubic.toml
        steer apply cubic.toml --cgroup "$CGROUP" > /dev/null
        ask 10.1.3.7
        steer revert > /dev/null
        pins
        ask 10.1.3.7
        steer apply cubic.toml --cgroup "$CGROUP" > /dev/null
        ask 10.1.3.7
        steer status | tail -1"#;
    let Some(seen) = succeed(&format!("{MAP}{script}")) else { return };
    let expected = "\
cubic 10000000
1048576
cubic 10000000
cubic 10000000
  rule 2   -    cubic                     0
  2 of them will have no record: the table was full
cubic -
0
reno -
cubic -
  default  -    cubic       1
";
    assert_eq!(seen, expected);
}

/// Each connection has an entry in the table. The entry is free after its end, although no recorder runs.
#[test]
fn twenty_thousand_connections_are_steered_at_once() {
    let script = r#"
        cat > many.py <<'END'
import pathlib, socket, sys, time
number = sys.argv[1]
listener = socket.create_server(("10.1.0.1", 8090 + int(number)), backlog=512)
sources, pairs = ["10.1.1.7", "10.1.2.7"], []
for count in range(5000):
    client = socket.create_connection(listener.getsockname(), 30, (sources[count % 2], 0))
    pairs.append((client, listener.accept()[0]))
controllers = [server.getsockopt(socket.IPPROTO_TCP, 13, 16).rstrip(b"\0").decode() for _, server in pairs]
pathlib.Path("open" + number).write_text(" ".join(f"{name} {controllers.count(name)}" for name in ("cubic", "reno")) + "\n")
while not pathlib.Path("done").exists():
    time.sleep(0.05)
for client, server in pairs:
    server.close()
    client.close()
END
        printf '[[rule]]\nclient = "10.1.1.0/24"\nuse = { tcp = "cubic" }\n' > near.toml
        steer apply near.toml --cgroup "$CGROUP" > /dev/null
        programs=
        for number in 1 2 3 4; do
            sh -c 'echo $$ > "$CGROUP/cgroup.procs"; exec python3 many.py '$number & programs="$programs $!"
        done
        for number in 1 2 3 4; do
            for i in $(seq 2000); do [ -e open$number ] && break; sleep 0.05; done
            cat open$number
        done
        python3 map.py taken
        touch done
        wait $programs
        python3 map.py taken
        steer status | tail -2 | awk '{print $NF}'"#;
    let Some(seen) = succeed(&format!("{MAP}{script}")) else { return };
    println!("{seen}");
    let lines: Vec<&str> = seen.lines().collect();
    let [programs @ .., taken, left, default, near] = &lines[..] else { panic!("{seen}") };
    assert_eq!(programs, ["cubic 2500 reno 2500"; 4]);
    assert_eq!((*taken, *left), ("40000", "0"));
    // Both ends of each connection are sockets of the cgroup. A connection that the cgroup opens ends at its own address.
    assert_eq!((*default, *near), ("30000", "10000"));
}

/// Half-open connections are the kernel's: neither the policy nor a controller keeps anything for them.
#[test]
fn a_flood_of_syns_takes_no_memory() {
    let script = r#"
        cat > flood.py <<'END'
import socket, struct, sys
def total(data):
    return sum(struct.unpack(f"!{len(data) // 2}H", data))
def folded(number):
    while number >> 16:
        number = (number & 0xffff) + (number >> 16)
    return ~number & 0xffff
raw = socket.socket(socket.AF_INET, socket.SOCK_RAW, socket.IPPROTO_RAW)
server = socket.inet_aton("10.1.0.1")
for number in range(int(sys.argv[1])):
    # 198.18.0.0/15 is for benchmarks (RFC 2544).
    client = struct.pack("!I", (198 << 24 | 18 << 16) + number % (1 << 17))
    fields = struct.pack("!HHIIBBH", 1024 + number % 60000, 8080, number, 0, 5 << 4, 2, 65535)
    check = folded(total(client + server + fields) + socket.IPPROTO_TCP + 20)
    tcp = fields + struct.pack("!HH", check, 0)
    raw.sendto(struct.pack("!BBHHHBBH4s4s", 0x45, 0, 40, 0, 0, 64, socket.IPPROTO_TCP, 0, client, server) + tcp, ("10.1.0.1", 0))
END
        # Answers leave, and arrive nowhere.
        ip link add away0 type veth peer away1
        ip link set away0 up arp off
        ip link set away1 up
        ip route add 198.18.0.0/15 dev away0
        slab() { awk '/^Slab:/ { print $2 }' /proc/meminfo; }
        uncork kernel load uncork_reno > /dev/null
        printf '[default]\ntcp = "uncork_reno"\n' > ours.toml
        serve
        steer apply ours.toml --cgroup "$CGROUP" > /dev/null
        python3 flood.py 1000
        slab_before=$(slab)
        python3 flood.py 100000
        python3 map.py taken
        steer status | tail -1
        echo "half-open $(ss -Htn state syn-recv | wc -l)"
        echo "slab $(($(slab) - slab_before))"
        grep TcpExt /proc/net/netstat | awk 'NR == 1 { split($0, names) } NR == 2 { for (i = 2; i <= NF; i++) if (names[i] == "SyncookiesSent") print "cookies", $i }'
        ask 10.1.1.7
        steer revert > /dev/null
        uncork kernel unload > /dev/null"#;
    let Some(seen) = succeed(&format!("{MAP}{script}")) else { return };
    println!("{seen}");
    let lines: Vec<&str> = seen.lines().collect();
    let number = |line: &str, name: &str| -> i64 {
        let number = line.strip_prefix(name).expect("its name").trim();
        number.parse().expect("a number")
    };
    let [taken, status, half_open, slab, cookies, asked] = lines[..] else { panic!("{seen}") };
    assert_eq!((taken, status, asked), ("0", "  default  -    uncork_reno  0", "uncork_reno -"));
    // The server's backlog is 512.
    assert!((1..=1_024).contains(&number(half_open, "half-open")), "{seen}");
    assert!(number(cookies, "cookies") > 50_000, "the flood has arrived: {seen}");
    // In kB, with what others on the machine take.
    assert!(number(slab, "slab") < 65_536, "{seen}");
}

#[test]
fn three_capabilities_are_enough_and_none_is_too_few() {
    let script = r#"
        chmod 1777 /sys/fs/bpf
        caps=+bpf,+perfmon,+net_admin
        drop="setpriv --reuid 65534 --regid 65534 --clear-groups"
        some="$drop --inh-caps=-all,$caps --ambient-caps=-all,$caps --bounding-set=-all,$caps"
        none="$drop --inh-caps=-all --ambient-caps=-all --bounding-set=-all"
        serve
        $some "$UNCORK" steer apply policy.toml --cgroup "$CGROUP" > /dev/null
        ask 10.1.1.7
        $some "$UNCORK" steer status | tail -1
        $some "$UNCORK" steer explain 10.1.1.7 | tail -1
        $some "$UNCORK" steer revert | sed "s|$CGROUP|CGROUP|"
        $none "$UNCORK" steer apply policy.toml --cgroup "$CGROUP" --listener web=80 2>&1 || echo status $?
        pins"#;
    let Some(seen) = succeed(script) else { return };
    let expected = "\
cubic 10000000
  rule 2   -    cubic                     0
  rule 1 `near` (line 5) decides
policy.toml is removed from CGROUP
error: cannot load the types of uncork steer without the privilege; run as root, or with CAP_BPF, CAP_PERFMON and \
CAP_NET_ADMIN
status 3
0
";
    assert_eq!(seen, expected);
}

#[test]
fn record_socket_still_open_counts_missing_close_events() {
    let script = r#"
        cat > holds.py <<'END'
import socket, time
server = socket.create_server(("10.1.0.1", 8081))
open("listens", "w").close()
held = [server.accept()[0] for _ in range(3)]
open("accepted", "w").close()
time.sleep(600)
END
        cat > resets.py <<'END'
import pathlib, socket, struct, time
clients = [socket.create_connection(("10.1.0.1", 8081), 10, ("10.1.1.7", 0)) for _ in range(3)]
while not pathlib.Path("accepted").exists():
    time.sleep(0.05)
for client in clients:
    client.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
    client.close()
END
        steer apply policy.toml --cgroup "$CGROUP" > /dev/null
        "$UNCORK" steer record out.jsonl --every 100ms 2> said & recorder=$!
        sh -c 'echo $$ > "$CGROUP/cgroup.procs"; exec python3 holds.py' &
        for i in $(seq 1200); do [ -e out.jsonl ] && [ -e listens ] && break; sleep 0.05; done
        sleep 0.5
        python3 resets.py
        sleep 0.5
        kill -INT $recorder
        wait $recorder
        wc -l < out.jsonl
        cat said"#;
    let Some(seen) = succeed(script) else { return };
    let expected = "\
0
note: 0 records written to out.jsonl
warning: lost 3 connections: the kernel sent no close event; a program has them open, they are in another \
network namespace (--netns), or events were lost
";
    assert_eq!(seen, expected);
}

/// The pins belong to their owner. Without any capability, the owner can read them and remove the policy.
#[test]
fn readers_need_the_right_to_open_the_pins_and_no_other() {
    let script = r#"
        read_as() {
            file=$1 caps=$2
            shift 2
            with() {
                setpriv "$@" --inh-caps=-all$caps --ambient-caps=-all$caps --bounding-set=-all$caps "$UNCORK" steer $words 2>&1 |
                    sed 's|/steer/[0-9]*/|/steer/N/|'
            }
            for words in "status" "explain 10.1.1.7"; do with "$@" | tail -2; done
            words="record $file --for 4s"
            with "$@" > said & recorder=$!
            for i in $(seq 1200); do [ -e $file ] || grep -q error said && break; sleep 0.05; done
            ask 10.1.1.7 3 > /dev/null
            wait $recorder
            grep error said || echo "$(wc -l < $file) records"
        }
        serve
        steer apply policy.toml --cgroup "$CGROUP" > /dev/null
        mkdir -m 777 other
        echo "the owner:"
        read_as owner.jsonl "" --no-new-privs
        stranger="--reuid 65534 --regid 65534 --clear-groups"
        echo "somebody else:"
        read_as other/none.jsonl "" $stranger
        echo "somebody else with CAP_DAC_OVERRIDE:"
        read_as other/some.jsonl ,+dac_override $stranger
        echo "the owner:"
        words=revert
        with --no-new-privs > /dev/null
        pins"#;
    let Some(seen) = succeed(script) else { return };
    let reads = |connections: u32| {
        format!(
            "  near     -    cubic, at most 80 Mbit/s  {connections}\n  rule 2   -    cubic                     0\n\
             10.1.1.7, accepted on port 443: cubic, at most 80 Mbit/s\n  rule 1 `near` (line 5) decides\n3 records\n"
        )
    };
    let refused = "error: /sys/fs/bpf/uncork/steer may be opened by its owner only; run as the user who made it, or with \
                   CAP_DAC_OVERRIDE\n";
    let (first, second) = (reads(0), reads(6));
    let refused = refused.repeat(3);
    let expected = format!(
        "the owner:\n{first}somebody else:\n{refused}somebody else with CAP_DAC_OVERRIDE:\n{second}the owner:\n0\n"
    );
    assert_eq!(seen, expected);
}

#[test]
fn apply_route_locks_controller_warns_and_counts() {
    let script = r#"
        ip route replace local 10.1.1.7/32 dev lo table local congctl lock reno
        ip route replace local 10.1.2.7/32 dev lo table local congctl reno
        printf '[default]\ntcp = "cubic"\n' > cubic.toml
        serve
        steer apply cubic.toml --cgroup "$CGROUP" 2>&1 > /dev/null
        for client in 10.1.1.7 10.1.2.7 10.1.3.7; do ask $client; done
        steer status | tail -2"#;
    let Some(seen) = succeed(script) else { return };
    let expected = "\
warning: connections to 10.1.1.7/32 keep reno despite the policy: a route locks it (ip route show table 255 \
10.1.1.7/32)
reno -
cubic -
cubic -
  default  -    cubic       3
  the kernel refused the settings of 1 of them
";
    assert_eq!(seen, expected);
}

/// A policy of a cgroup above is such a program, too: it runs last, so its controller counts.
#[test]
fn apply_program_of_another_warns() {
    let script = r#"
        printf '[default]\ntcp = "cubic"\n' > cubic.toml
        printf '[default]\ntcp = "reno"\n' > reno.toml
        mkdir "$CGROUP/child"
        mask_ids() { sed "s/ id [0-9]*/ id N/"; }
        steer apply cubic.toml --cgroup "$CGROUP/child" 2>&1 > /dev/null | mask_ids
        steer apply reno.toml --cgroup "$CGROUP" 2>&1 > /dev/null | mask_ids | sed "s|$CGROUP|CGROUP|g"
        uncork status --state-dir "$PWD/state" --format json > all || echo status $?
        grep -c "runs after the policy's" all
        steer status --cgroup "$CGROUP/child" 2>&1 > /dev/null | mask_ids
        (uncork host doctor || [ $? = 1 ]) | grep -A3 'BPF program' | tr -s ' \n' ' ' | mask_ids | sed "s|$CGROUP|CGROUP|g"
        echo
        sh -c 'echo $$ > "$CGROUP/child/cgroup.procs"; exec python3 server.py' & server=$!
        for i in $(seq 1200); do ss -Hltn 'sport = 8080' | grep -q . && break; sleep 0.05; done
        ask 10.1.1.7
        steer revert --cgroup "$CGROUP" > /dev/null
        steer status --cgroup "$CGROUP/child" 2>&1 > /dev/null | mask_ids
        ask 10.1.1.7
        kill $server
        wait $server || true
        steer revert > /dev/null
        rmdir "$CGROUP/child""#;
    let Some(seen) = succeed(script) else { return };
    let expected = "\
warning: this policy replaces the one of CGROUP/child, which lies below: of several the outermost counts; `uncork steer revert` \
removes one
status 1
1
warning: another program `steer` runs after the policy's for the same connections: if it chooses a controller, its counts \
(bpftool prog show id N)
warning: Another BPF program `steer` runs after the policy's for connections of CGROUP/child: if it chooses a controller, \
its counts. [other-program-at-cgroup] why: Programs of a cgroup run before those of the cgroups above it; the last choice \
is active. do: bpftool prog show id N\x20
reno -
cubic -
";
    assert_eq!(seen, expected);
}

/// `foreign.py CGROUP FLAGS` attaches a program that treats accepted connections as bpftune does: it subscribes to the events
/// of FLAGS (4: changes of state, 2: retransmissions), and chooses a controller (reno). It stays attached until the cgroup is removed.
const FOREIGN: &str = r#"
cat > foreign.py <<'END'
import ctypes, os, struct, sys
libc = ctypes.CDLL(None, use_errno=True)
NUMBER = {"x86_64": 321, "aarch64": 280}[os.uname().machine]
PROG_LOAD, PROG_ATTACH = 5, 8
SOCK_OPS, ALLOW_MULTI = 3, 2
def bpf(command, form, *words):
    arguments = ctypes.create_string_buffer(struct.pack(form, *words))
    result = libc.syscall(NUMBER, command, arguments, struct.calcsize(form))
    if result < 0:
        raise OSError(ctypes.get_errno(), os.strerror(ctypes.get_errno()))
    return result
cgroup, flags = os.open(sys.argv[1], os.O_RDONLY), int(sys.argv[2])
code = b"".join(struct.pack("<BBhi", *words) for words in [
    (0xbf, 0x16, 0, 0),  # r6 = the context
    (0x61, 0x12, 0, 0),  # r2 = what happened
    (0x55, 0x02, 11, 5),  # to the end, if no connection was accepted
    (0xb7, 0x02, 0, flags), (0x85, 0, 0, 59),  # bpf_sock_ops_cb_flags_set(r6, flags)
    (0x62, 0x0a, -16, int.from_bytes(b"reno", "little")), (0x62, 0x0a, -12, 0),  # on the stack: "reno"
    (0xbf, 0x61, 0, 0), (0xb7, 0x02, 0, 6), (0xb7, 0x03, 0, 13),  # IPPROTO_TCP, TCP_CONGESTION
    (0xbf, 0xa4, 0, 0), (0x07, 0x04, 0, -16), (0xb7, 0x05, 0, 8),
    (0x85, 0, 0, 49),  # bpf_setsockopt(r6, ...)
    (0xb7, 0x00, 0, 1), (0x95, 0, 0, 0),
])
instructions, words = ctypes.create_string_buffer(code), ctypes.create_string_buffer(b"GPL")
program = bpf(PROG_LOAD, "IIQQIIQII16sII", 13, len(code) // 8, ctypes.addressof(instructions), ctypes.addressof(words),
              0, 0, 0, 0, 0, b"foreign", 0, SOCK_OPS)
bpf(PROG_ATTACH, "IIII", cgroup, program, SOCK_OPS, ALLOW_MULTI)
END
"#;

/// The kernel answers that the right is missing, also to root.
#[test]
fn apply_where_a_program_allows_no_other_names_the_cause() {
    let script = format!(
        r#"{FOREIGN}
        sed -i 's/SOCK_OPS, ALLOW_MULTI)/SOCK_OPS, 0)/' foreign.py
        python3 foreign.py "$CGROUP" 0
        steer apply policy.toml --cgroup "$CGROUP" --listener web=8080 2>&1 || echo status $?"#
    );
    let Some(seen) = succeed(&script) else { return };
    assert!(seen.contains("allows no other: ") && seen.contains("(foreign)"), "{seen}");
    assert!(seen.contains("BPF_F_ALLOW_MULTI") && !seen.contains("run as root"), "{seen}");
    assert!(seen.ends_with("status 3\n"), "{seen}");
}

/// Another program that also chooses: the last one in the order counts. Records have the requested and the actual controller, even
/// if the other program unsubscribes the policy's from events.
#[test]
fn record_another_program_chooses_too_requested_and_actual_controller() {
    let script = r#"
        printf '[default]\ntcp = "cubic"\n' > cubic.toml
        mask_ids() { sed "s/ id [0-9]*/ id N/"; }
        try() {
            steer record $1.jsonl --for 4s > /dev/null & recorder=$!
            for i in $(seq 1200); do [ -e $1.jsonl ] && break; sleep 0.05; done
            echo "$1: $(ask 10.1.1.7)"
            wait $recorder
            python3 -c 'import json, sys; [print("recorded", r["choice"]["cc"], r["cc"]) for r in map(json.loads, open(sys.argv[1]))]' $1.jsonl
        }
        mkdir "$CGROUP/child"
        serve_in() { sh -c 'echo $$ > "'$1'/cgroup.procs"; exec python3 server.py' & server=$!
            for i in $(seq 1200); do ss -Hltn 'sport = 8080' | grep -q . && break; sleep 0.05; done; }
        serve_in "$CGROUP/child"
        python3 foreign.py "$CGROUP/child" 6
        steer apply cubic.toml --cgroup "$CGROUP/child" 2>&1 > /dev/null | mask_ids
        try before
        steer revert > /dev/null
        kill $server
        wait $server || true
        rmdir "$CGROUP/child"
        mkdir "$CGROUP/second"
        serve_in "$CGROUP/second"
        steer apply cubic.toml --cgroup "$CGROUP/second" > /dev/null
        python3 foreign.py "$CGROUP/second" 6
        steer status 2>&1 > /dev/null | mask_ids
        try after
        python3 foreign.py "$CGROUP" 0
        try above
        kill $server
        wait $server || true
        steer revert > /dev/null
        rmdir "$CGROUP/second""#;
    let Some(seen) = succeed(&format!("{FOREIGN}{script}")) else { return };
    // What another program keeps from the policy's is known from the kernel's close event, which lacks the controller.
    let expected = "\
warning: another program `foreign` runs before the policy's for the same connections: if it chooses a controller, the policy's \
counts (bpftool prog show id N)
before: cubic -
recorded cubic cubic
warning: another program `foreign` runs after the policy's for the same connections: if it chooses a controller, its counts \
(bpftool prog show id N)
after: reno -
recorded cubic reno
above: reno -
recorded cubic unknown
";
    assert_eq!(seen, expected);
}

#[test]
fn a_cgroup_that_was_removed_leaves_pins_that_revert_removes() {
    let script = r#"
        mkdir "$CGROUP/child"
        steer apply policy.toml --cgroup "$CGROUP/child" > /dev/null
        rmdir "$CGROUP/child"
        # The kernel removes it a moment later.
        for i in $(seq 1200); do steer status > /dev/null 2>&1 || break; sleep 0.05; done
        steer status 2>&1 || echo status $?
        steer revert
        pins"#;
    let Some(seen) = succeed(script) else { return };
    let expected = "\
error: no policy is active
status 1
what a killed process or a removed cgroup had left is removed
0
";
    assert_eq!(seen, expected);
}

/// Makes a database of origins with these bytes.
fn database(name: &str, bytes: &[u8]) -> String {
    format!("python3 -c 'open(\"{name}.mmdb\", \"wb\").write(bytes({bytes:?}))'\n")
}

/// Rules by origin and a table, with clients at the ends of networks and just outside.
const ORIGINS: &str = r#"
cat > origins.toml <<'END'
[default]
tcp = "reno"
[experiment.trial]
unit = "prefix"
share = "100%"
[experiment.trial.arm.only]
tcp = "cubic"
pacing_cap = "80mbit"
[table]
file = "networks.table"
[table.arm.fast]
tcp = "cubic"
[table.arm.slow]
tcp = "reno"
pacing_cap = "40mbit"
[[rule]]
name = "system"
asn = "AS64500"
experiment = "trial"
[[rule]]
name = "country"
country = "PE"
use = { tcp = "cubic", pacing_cap = "160mbit" }
[[rule]]
name = "learned"
table = "all"
END
cat > body <<'END'
uncork-table 1
version 1
made 2026-01-01T00:00:00Z
expires 2100-01-01T00:00:00Z
section all
AS64501 fast
CL slow
10.5.0.0/16 fast
10.5.128.0/17 slow
END
{ cat body; echo "sha256 $(sha256sum < body | cut -d ' ' -f 1)"; } > networks.table
ip route add local 10.0.0.0/8 dev lo
ip address add fd01:0:2::7/128 dev lo nodad
serve
geo="--geo system.mmdb --geo system6.mmdb --geo country.mmdb --geo other.mmdb"
steer apply origins.toml --cgroup "$CGROUP" $geo > /dev/null
record $geo
for client in 10.1.255.255 10.2.0.0 10.2.255.255 10.3.0.0 10.3.255.255 10.4.0.0 10.5.0.0 10.5.127.255 10.5.128.0 10.6.0.0 \
    fd01:0:1::7 fd01:0:2::7; do
    echo "$client $(ask $client)"
done
recorded 12
end_record
# Without the databases nothing of origins matches.
steer apply origins.toml --cgroup "$CGROUP" > /dev/null 2>&1
echo "without: $(ask 10.2.0.0), $(ask 10.4.0.0), $(ask 10.5.0.0)"
cat out.jsonl"#;

#[test]
fn origins_and_a_table_decide_and_are_recorded() {
    let databases = [
        database("system", &mmdb::of_asn(0x0a02_0000, 16, 64_500)),
        database("system6", &mmdb::database_v6(0xfd01_0000_0001 << 80, 48, &mmdb::asn(64_501))),
        database("country", &mmdb::of_country(0x0a02_0000, 15, "PE")),
        database("other", &mmdb::of_country(0x0a04_0000, 15, "CL")),
    ];
    let Some(seen) = succeed(&format!("{}{ORIGINS}", databases.concat())) else { return };
    let expected = "\
10.1.255.255 reno -
10.2.0.0 cubic 10000000
10.2.255.255 cubic 10000000
10.3.0.0 cubic 20000000
10.3.255.255 cubic 20000000
10.4.0.0 reno 5000000
10.5.0.0 cubic -
10.5.127.255 cubic -
10.5.128.0 reno 5000000
10.6.0.0 reno -
fd01:0:1::7 cubic -
fd01:0:2::7 reno -
without: reno -, reno -, cubic -
";
    let (printed, records) = seen.split_at(seen.len().min(expected.len()));
    assert_eq!(printed, expected);
    let expected = [
        "10.1.255.0/24 - - default - reno",
        "10.2.0.0/24 64500 PE system only cubic",
        "10.2.255.0/24 64500 PE system only cubic",
        "10.3.0.0/24 - PE country - cubic",
        "10.3.255.0/24 - PE country - cubic",
        "10.4.0.0/24 - CL learned - reno",
        "10.5.0.0/24 - CL learned - cubic",
        "10.5.127.0/24 - CL learned - cubic",
        "10.5.128.0/24 - CL learned - reno",
        "10.6.0.0/24 - - default - reno",
        "fd01:0:1::/48 64501 - learned - cubic",
        "fd01:0:2::/48 - - default - reno",
    ];
    assert_eq!(in_short(records), expected);
}

/// Client, system, country, rule, arm and controller of each record, sorted.
fn in_short(records: &str) -> Vec<String> {
    let records: Vec<serde_json::Value> =
        records.lines().map(|line| serde_json::from_str(line).expect("a record")).collect();
    assert_describes("flow-record", &records);
    let words = records.iter().map(|record| {
        let (service, choice) = (&record["service"], &record["choice"]);
        let origin = [&service["client"], &service["asn"], &service["country"]];
        let given = [&choice["rule"], &choice["arm"]["arm"], &record["cc"]];
        let words = origin.into_iter().chain(given).map(|value| match value {
            serde_json::Value::Null => "-".to_owned(),
            serde_json::Value::String(text) => text.clone(),
            other => other.to_string(),
        });
        words.collect::<Vec<_>>().join(" ")
    });
    let mut words: Vec<String> = words.collect();
    words.sort_unstable();
    words
}

/// The other side's address counts, not the service's own; and no listener, although a rule is for all listeners.
#[test]
fn connections_that_the_service_opens_are_steered_by_the_other_side() {
    let script = r#"
        cat > opened.toml <<'END'
[default]
tcp = "reno"
[[rule]]
name = "accepted"
listener = "*"
use = { tcp = "cubic", pacing_cap = "40mbit" }
[[rule]]
name = "own"
client = ["10.1.1.0/24", "fd01:0:1::/48"]
use = { tcp = "cubic", pacing_cap = "160mbit" }
[[rule]]
name = "upstream"
client = ["10.1.2.0/24", "fd01::1"]
use = { tcp = "cubic", pacing_cap = "80mbit" }
END
        cat > opens.py <<'END'
import socket
def given(connection):
    controller = connection.getsockopt(socket.IPPROTO_TCP, 13, 16).split(b"\0")[0].decode()
    cap = int.from_bytes(connection.getsockopt(socket.SOL_SOCKET, 47, 8), "little")
    return f"{controller} {'-' if cap > 2**60 else cap}"
for source, target in [("10.1.1.7", "10.1.2.7"), ("10.1.1.7", "10.1.3.7"), ("10.1.2.7", "10.1.1.7"),
                       ("::ffff:10.1.1.7", "::ffff:10.1.2.7"), ("fd01:0:1::7", "fd01::1"), ("fd01::1", "fd01:0:1::7")]:
    with socket.create_connection((target, 8080), 10, (source, 0)) as connection:
        connection.recv(100)
        print(f"{source} to {target}: {given(connection)}")
END
        # The server is in another cgroup: it is not steered.
        python3 server.py &
        for i in $(seq 1200); do ss -Hltn 'sport = 8080' | grep -q . && break; sleep 0.05; done
        steer apply opened.toml --cgroup "$CGROUP" > /dev/null
        "$UNCORK" steer record out.jsonl --every 100ms > /dev/null 2>&1 & recorder=$!
        for i in $(seq 1200); do [ -e out.jsonl ] && break; sleep 0.05; done
        sleep 0.5
        sh -c 'echo $$ > "$CGROUP/cgroup.procs"; exec python3 opens.py'
        steer explain 10.1.2.7 --opened
        steer status | tail -4
        recorded 6
        kill -INT $recorder
        wait $recorder
        cat out.jsonl"#;
    let Some(seen) = succeed(script) else { return };
    let expected = "\
10.1.1.7 to 10.1.2.7: cubic 10000000
10.1.1.7 to 10.1.3.7: reno -
10.1.2.7 to 10.1.1.7: cubic 20000000
::ffff:10.1.1.7 to ::ffff:10.1.2.7: cubic 10000000
fd01:0:1::7 to fd01::1: cubic 10000000
fd01::1 to fd01:0:1::7: cubic 20000000
10.1.2.7, opened by the service: cubic, at most 80 Mbit/s
  rule 3 `upstream` (line 11) decides
  default   -    reno                       1
  accepted  -    cubic, at most 40 Mbit/s   0
  own       -    cubic, at most 160 Mbit/s  2
  upstream  -    cubic, at most 80 Mbit/s   3
";
    let (printed, records) = seen.split_at(seen.len().min(expected.len()));
    assert_eq!(printed, expected);
    let expected = [
        "10.1.1.0/24 - - own - cubic",
        "10.1.2.0/24 - - upstream - cubic",
        "10.1.2.0/24 - - upstream - cubic",
        "10.1.3.0/24 - - default - reno",
        "fd01:0:1::/48 - - own - cubic",
        "fd01::/48 - - upstream - cubic",
    ];
    assert_eq!(in_short(records), expected);
}

/// By the kernel's clock. All windows begin and end hours from now.
#[test]
fn the_time_of_a_connection_decides() {
    let script = r#"
        cat > windows.py <<'END'
import datetime
now = datetime.datetime.now(datetime.timezone.utc)
at = lambda hours: now + datetime.timedelta(hours=hours)
time = lambda hours: f"{at(hours):%Y-%m-%dT%H:%M:%SZ}"
hours = lambda begin, end: f'from = "{at(begin):%H}:00", to = "{at(end):%H}:00"'
days = lambda begin, end: "days = [" + ", ".join(f'"{at(24 * day):%a}"'.lower() for day in range(begin, end)) + "]"
windows = [
    f"since = {time(-2)}, until = {time(2)}",
    f"until = {time(-2)}",
    f"since = {time(2)}",
    hours(-3, 3),
    hours(3, -3),
    # Local time seven hours ahead: around now there, and around now here.
    hours(4, 10) + ', utc_offset = "+07:00"',
    hours(-3, 3) + ', utc_offset = "+07:00"',
    days(-1, 2),
    days(2, 6),
    # They have begun today, or yesterday.
    hours(-3, 3) + ", " + days(-1, 1),
    hours(-3, 3) + ", " + days(1, 6),
]
print('[default]\ntcp = "reno"')
for number, window in enumerate(windows):
    print(f'[[rule]]\nclient = "10.8.{number}.0/24"\ntime = {{ {window} }}\nuse = {{ tcp = "cubic" }}')
END
        python3 windows.py > windows.toml
        ip route add local 10.0.0.0/8 dev lo
        serve
        steer apply windows.toml --cgroup "$CGROUP" > /dev/null
        ask $(seq -s, -f '10.8.%g.1' 0 10)
        cat windows.toml"#;
    let Some(seen) = succeed(script) else { return };
    let given: Vec<&str> = seen.lines().take(11).collect();
    let [holds, fails] = ["cubic -", "reno -"];
    let expected = [holds, fails, fails, holds, fails, holds, fails, holds, fails, holds, fails];
    assert_eq!(given, expected, "{seen}");
}

#[test]
fn three_capabilities_are_enough_to_move_open_connections() {
    let script = r#"
        cat > hold.py <<'END'
import pathlib, socket, time
connection, _ = socket.create_server(("10.1.0.1", 8090)).accept()
while not pathlib.Path("moved").exists():
    time.sleep(0.05)
print(connection.getsockopt(socket.IPPROTO_TCP, 13, 16).split(b"\0")[0].decode())
END
        chmod 1777 /sys/fs/bpf
        with() {
            caps=$1
            shift
            setpriv --reuid 65534 --regid 65534 --clear-groups --inh-caps=-all$caps --ambient-caps=-all$caps --bounding-set=-all$caps \
                "$UNCORK" steer "$@"
        }
        three=,+bpf,+perfmon,+net_admin
        sh -c 'echo $$ > "$CGROUP/cgroup.procs"; exec python3 hold.py' & server=$!
        for i in $(seq 1200); do ss -Hltn 'sport = 8090' | grep -q . && break; sleep 0.05; done
        printf '[default]\ntcp = "reno"\n' > one.toml
        printf '[default]\ntcp = "cubic"\n' > two.toml
        with $three apply one.toml --cgroup "$CGROUP" > /dev/null
        python3 -c 'import socket, time; held = socket.create_connection(("10.1.0.1", 8090), 10); time.sleep(600)' &
        for i in $(seq 1200); do with "" status | grep -q 'default .* 1$' && break; sleep 0.05; done
        with $three apply two.toml --cgroup "$CGROUP" > /dev/null
        with "" move 2>&1 || echo status $?
        with $three move
        touch moved
        wait $server"#;
    let Some(seen) = succeed(script) else { return };
    let expected = "\
error: cannot load the types of uncork steer move without the privilege; run as root, or with CAP_BPF, CAP_PERFMON and \
CAP_NET_ADMIN
status 3
1 of 1 open connections have other settings
  1 from reno to cubic
1 moved, 0 refused, 0 ended meanwhile
cubic
";
    assert_eq!(seen, expected);
}

/// For clients of any origin, entries in the table are free after the connection's end, although no recorder runs.
#[test]
fn connections_from_thousands_of_networks_leave_nothing_after_their_end() {
    let script = r#"
        { experiment trial; printf '[[rule]]\nexperiment = "trial"\n'; } > trial.toml
        cat > networks.py <<'END'
import random
draw = random.Random(1)
print(",".join(f"10.{number >> 8}.{number & 255}.{draw.randrange(256)}" for number in draw.sample(range(1 << 16), 4000)))
END
        ip route add local 10.0.0.0/8 dev lo
        serve
        steer apply trial.toml --cgroup "$CGROUP" > /dev/null
        # One of the service that is open meanwhile.
        python3 -m http.server 8081 > /dev/null 2>&1 &
        for i in $(seq 1200); do ss -Hltn 'sport = 8081' | grep -q . && break; sleep 0.05; done
        sh -c 'echo $$ > "$CGROUP/cgroup.procs"
            exec python3 -c "import socket, time; held = socket.create_connection((\"10.1.0.1\", 8081), 10); time.sleep(600)"' & held=$!
        for i in $(seq 1200); do ss -Htn 'dport = 8081' | grep -q . && break; sleep 0.05; done
        ask $(python3 networks.py) > given
        wc -l < given
        sort -u given
        taken() { for i in $(seq 20); do [ "$(python3 map.py taken)" = $1 ] && break; sleep 0.2; done; python3 map.py taken; }
        taken 1
        kill $held
        taken 0
        steer status | tail -3"#;
    let Some(seen) = succeed(&format!("{MAP}{script}")) else { return };
    println!("{seen}");
    let lines: Vec<&str> = seen.lines().collect();
    let [given, one, other, open, left, arms @ ..] = &lines[..] else { panic!("{seen}") };
    assert_eq!((*given, *one, *other), ("4000", "cubic -", "reno -"));
    assert_eq!((*open, *left), ("1", "0"));
    let counts = arms.iter().filter_map(|line| line.split_whitespace().last()?.parse().ok());
    let counts: Vec<u32> = counts.collect();
    assert_eq!((counts.len(), counts[0], counts[1] + counts[2]), (3, 0, 4_001), "{seen}");
    assert!(counts[1..].iter().all(|count| *count > 1_800), "{seen}");
}

/// With `--ttl` a policy counts as accepted once it is confirmed.
#[test]
fn an_older_signed_policy_is_refused() {
    let state = common::Scratch::new("steer-older");
    let signer = Signer::new();
    for serial in [1000, 2000] {
        signer.policy(&state.path(&serial.to_string()), POLICY, &format!("\"serial\": {serial}"));
    }
    fs::write(state.path("learn.pub"), signer.public_key()).expect("written");
    let script = r#"
export STATE_DIRECTORY="$STATE/state"
signed() { steer apply "$STATE/$1/policy.toml" --policy-key "$STATE/learn.pub" --cgroup "$CGROUP" --listener web=8080 $2 > /dev/null; }
signed 1000
signed 2000 --ttl=1min
signed 1000
signed 2000 --ttl=1min
steer confirm > /dev/null
signed 1000 2>&1 || echo $?
steer status | head -1
steer revert > /dev/null
signed 1000 2>&1 || echo $?
"#;
    let script = script.replace("$STATE", &state.path("").display().to_string());
    let Some(said) = succeed(&script) else { return };
    assert_eq!(said.matches("serial 1000 is older than serial 2000").count(), 2, "{said}");
    assert!(said.contains("/2000/policy.toml\n"), "{said}");
}

/// `uncork status` shows what is steered, who records it, and that the guard of a policy is dead.
#[test]
fn one_status_shows_what_is_steered() {
    let script = r#"
all() { "$UNCORK" status --state-dir "$PWD/state" "$@"; }
steer apply policy.toml --cgroup "$CGROUP" --listener web=8080 --ttl 1min > /dev/null
"$UNCORK" steer record r/ --cgroup "$CGROUP" & recorder=$!
for i in $(seq 1200); do all | grep -q 'recorded by' && break; sleep 0.05; done
all
all --format json > status.json
kill $recorder; wait $recorder || true
kill_guard
all && exit 9
steer revert > /dev/null
echo ---
cat status.json
"#;
    let Some(said) = succeed(script) else { return };
    let (said, document) = said.split_once("---\n").expect("a document");
    let rows = [
        "policy.toml, 0 connections, recorded by process",
        "watchdog alive",
        "uncork steer record r/",
    ];
    // Without the places at which lines are broken.
    let said = said.split_whitespace().collect::<Vec<_>>().join(" ");
    for part in rows.into_iter().chain(["watchdog dead", "attention", "uncork steer status"]) {
        assert!(said.contains(part), "{part}: {said}");
    }
    let document: serde_json::Value = serde_json::from_str(document).expect(document);
    assert_describes("status-1", [&document]);
    assert_eq!(document["recorders"].as_array().map(Vec::len), Some(1), "{document}");
}

/// The name of a controller is the host's, also from a namespace: one test at a time loads `uncork_prague`.
static PRAGUE: Mutex<()> = Mutex::new(());

/// AccECN is negotiated by the listener's controller, before the policy knows the client.
#[test]
fn apply_policy_with_prague_listeners_get_it_and_revert_returns_the_default() {
    let _alone = PRAGUE.lock().unwrap_or_else(PoisonError::into_inner);
    let script = r#"
        printf '[[rule]]\nclient = "10.1.1.0/24"\nuse = { tcp = "uncork_prague", ecn = "l4s" }\n' > l4s.toml
        printf '[default]\ntcp = "cubic"\n' > other.toml
        apply() { steer apply "$@" --cgroup "$CGROUP" 2>&1 | sed "s|$CGROUP|CGROUP|"; }
        listener() { ss -Hltni "sport = ${1-8080}" | grep -o 'cubic\|reno\|uncork_prague'; }
        restart() { kill $server; wait $server || true; serve; }
        uncork kernel load uncork_prague
        serve
        apply l4s.toml
        listener
        ask 10.1.1.7
        ask 10.1.2.7
        restart
        listener
        apply other.toml
        listener
        apply l4s.toml
        steer revert > /dev/null
        listener
        ask 10.1.1.7
        apply l4s.toml --ttl 2s > /dev/null
        listener
        for i in $(seq 1200); do [ "$(pins)" = 0 ] && break; sleep 0.05; done
        listener
        # A server that sets its own.
        sed 's/^while/server.listen(0); server.setsockopt(6, 13, b"cubic"); server.listen(9)\nwhile/' -i server.py
        restart
        apply l4s.toml
        listener
        steer revert > /dev/null
        uncork kernel unload"#;
    let Some(seen) = succeed(script) else { return };
    let active = "l4s.toml is active for new connections of CGROUP: 1 network\n";
    let again = "l4s.toml replaces the policy before for new connections of CGROUP: 1 network\n";
    let one = "1 listening socket got uncork_prague: connections can negotiate AccECN\n";
    let expected = format!(
        "uncork_prague is loaded\n{active}{one}uncork_prague\nuncork_prague -\nreno -\nuncork_prague\n\
         other.toml replaces the policy before for new connections of CGROUP: 0 networks\nreno\n\
         {again}{one}reno\nreno -\nuncork_prague\nreno\n\
         {active}warning: 1 listening socket with a controller that the server has set: connections do not negotiate \
         AccECN; set uncork_prague in the server, or none\ncubic\nuncork_prague is unloaded\n"
    );
    assert_eq!(seen, expected);
}

#[test]
fn apply_policy_with_prague_keeps_controllers_of_services_and_routes() {
    let _alone = PRAGUE.lock().unwrap_or_else(PoisonError::into_inner);
    let script = r#"
        printf '[[rule]]\nclient = "10.1.1.0/24"\nuse = { tcp = "uncork_prague" }\n' > l4s.toml
        ip route replace local 10.1.3.7/32 dev lo table local congctl cubic
        ask_all() { for client in 10.1.1.7 10.1.2.7 10.1.3.7; do ask $client; done; }
        of_service() {
            sed "s/^while/server.setsockopt(6, 13, b\"$1\")\nwhile/" server.py > own.py
            kill $server; wait $server || true
            sh -c 'echo $$ > "$CGROUP/cgroup.procs"; exec python3 own.py' & server=$!
            for i in $(seq 100); do ss -Hltni 'sport = 8080' | grep -q "$1" && break; sleep 0.05; done
        }
        uncork kernel load uncork_prague > /dev/null
        serve
        steer apply l4s.toml --cgroup "$CGROUP" > /dev/null
        ask_all
        of_service cubic
        ask_all
        steer revert > /dev/null
        of_service uncork_prague
        steer apply l4s.toml --cgroup "$CGROUP" > /dev/null
        ask_all
        steer revert > /dev/null
        uncork kernel unload > /dev/null"#;
    let Some(seen) = succeed(script) else { return };
    let expected = "uncork_prague -\nreno -\ncubic -\n\
                    uncork_prague -\ncubic -\ncubic -\n\
                    uncork_prague -\nuncork_prague -\ncubic -\n";
    assert_eq!(seen, expected);
}
