//! `uncork kernel`: controllers loaded, used, replaced and unloaded; without rights; killed; and the session
//! of `docs/evidence/kernel.md`. Each in namespaces of its own; but the kernel has only one list of controllers.
#![cfg(target_os = "linux")]
mod common;

use std::fs;
use std::process::{Command, Stdio};
use std::sync::{Mutex, MutexGuard, PoisonError};

use common::killed::{SHELL, can_kill};
use common::schema::assert_describes;
use common::{Finished, finish};
use serde_json::Value;
use uncork_testkit::{Capability, not_run};

/// The pins die with the file system in the namespace of mounts, and the registrations with the pins:
/// nothing stays after a test.
const SETUP: &str = r#"set -e
mount -t bpf bpf /sys/fs/bpf
ip link set lo up
kernel() { "$UNCORK" kernel "$@"; }
registered() { grep -o 'uncork_[a-z0-9]*' /proc/sys/net/ipv4/tcp_available_congestion_control; }
uncork() { "$UNCORK" "$@"; }
listens() { ss -Hltn 'sport = 5201' | grep -q .; }
# A server of one download with the default controller. The one before must have ended.
server() {
    for i in $(seq 1200); do listens || break; sleep 0.05; done
    iperf3 -s -1 -D
    for i in $(seq 1200); do listens && break; sleep 0.05; done
}
# A download of $1 seconds.
transfer() {
    server
    iperf3 -c 127.0.0.1 -R -t "$1" > transfer.txt || { cat transfer.txt; exit 9; }
}
"#;

/// What becomes the default when a controller is unloaded that was: other namespaces than the host's accept only
/// controls that every user may choose.
fn fallback() -> &'static str {
    let allowed = fs::read_to_string("/proc/sys/net/ipv4/tcp_allowed_congestion_control");
    if allowed.expect("TCP").contains("cubic") { "cubic" } else { "reno" }
}

fn alone() -> MutexGuard<'static, ()> {
    static KERNEL: Mutex<()> = Mutex::new(());
    KERNEL.lock().unwrap_or_else(PoisonError::into_inner)
}

fn run(script: &str) -> Finished {
    let scratch = common::Scratch::new("kernel");
    let mut shell = Command::new("unshare");
    shell.args(["--net", "--pid", "--fork", "--mount-proc", "--kill-child"]).stdin(Stdio::null());
    shell.args(["sh", "-c", &format!("{SETUP}{script}")]).current_dir(scratch.path(""));
    shell.env("UNCORK", env!("CARGO_BIN_EXE_uncork"));
    finish(shell)
}

/// What `script` prints; it must succeed. `None`, with a message, if this machine cannot load controllers.
fn succeed(script: &str) -> Option<String> {
    let probe = run("kernel status");
    if probe.status != 0 || !probe.stderr.is_empty() {
        not_run(Capability::Bpf, &probe.stderr);
        return None;
    }
    let done = run(script);
    assert_eq!(done.status, 0, "{}{}", done.stdout, done.stderr);
    Some(done.stdout)
}

#[test]
fn a_controller_is_loaded_used_and_unloaded_under_its_connections() {
    let _alone = alone();
    let script = r"
        kernel load uncork_bbr3 uncork_reno
        registered
        kernel load && exit 9
        echo uncork_bbr3 > /proc/sys/net/ipv4/tcp_congestion_control
        server
        iperf3 -c 127.0.0.1 -R -t 600 > transfer.txt & client=$!
        for i in $(seq 1200); do ss -Htni | grep -q uncork_bbr3 && break; sleep 0.05; done
        kernel status --format json > status.json
        grep -A3 uncork_bbr3 status.json
        kernel upgrade uncork_bbr3
        kernel unload
        cat /proc/sys/net/ipv4/tcp_congestion_control
        registered && exit 9
        kill $client
        wait $client || true
        grep -c receiver transfer.txt
        transfer 1
        kernel unload && exit 9 || echo status $?";
    let Some(seen) = succeed(script) else { return };
    let (before, after) = seen.split_once("uncork_reno is loaded\n").expect("it is loaded");
    assert_eq!(before, "uncork_bbr3 is loaded\n");
    for line in [
        "\"loaded\": true",
        "\"default\": true",
        "\"connections\": ",
        "new connections get this program's uncork_bbr3\n",
        &format!("the default is {}, no longer uncork_bbr3\n", fallback()),
        "uncork_bbr3 is unloaded; ",
        &format!(
            "connections keep it until they end\nuncork_reno is unloaded\n{}\n1\n",
            fallback()
        ),
    ] {
        assert!(after.contains(line), "{line}: {after}");
    }
    assert!(!after.contains("\"connections\": 0"), "{after}");
}

#[test]
fn load_with_resume_is_shown_and_upgrade_keeps_it() {
    let _alone = alone();
    let script = r"
        kernel load --resume=1000 --default uncork_cubic | grep -o 'the default is .*'
        kernel status | tail -n 1
        kernel upgrade > /dev/null
        kernel status --format json | grep networks_max
        ls /sys/fs/bpf/uncork | grep cubic
        kernel unload | grep -o 'no longer .*'
        ls /sys/fs/bpf/uncork 2> /dev/null | grep . && exit 9
        for i in $(seq 1200); do registered | grep -q cubic || break; sleep 0.05; done
        registered && exit 9
        kernel load uncork_cubic > /dev/null
        kernel status --format json | grep networks_max && exit 9
        kernel load --resume=7 uncork_reno 2> error.txt && exit 9 || echo status $?
        grep -o 'expected 64 to 1048576 networks' error.txt";
    let Some(seen) = succeed(script) else { return };
    let lines: Vec<&str> = seen.lines().map(str::trim).collect();
    let status = "uncork_cubic_r: careful resume for 1000 networks, 0 connections; 0 connections left an observation, 0 began \
                  with one (0 safe retreats), 0 found it in use, 0 too old";
    let expected = [
        "the default is uncork_cubic_r",
        status,
        "\"networks_max\": 1000,",
        "uncork_cubic",
        "uncork_cubic_r",
        "no longer uncork_cubic_r",
        "status 2",
        "expected 64 to 1048576 networks",
    ];
    assert_eq!(lines, expected);
}

#[test]
fn a_route_and_a_program_choose_it_by_name() {
    let _alone = alone();
    let script = r#"
        ip route replace local 10.1.1.7/32 dev lo table local congctl uncork_reno 2> /dev/null && exit 9
        kernel load uncork_reno > /dev/null
        ip route replace local 10.1.1.7/32 dev lo table local congctl uncork_reno
        python3 - <<'END'
import socket
def opened(address, asked=None):
    listener, client = socket.create_server((address, 0)), socket.socket()
    if asked:
        client.setsockopt(socket.IPPROTO_TCP, 13, asked)
    client.connect(listener.getsockname())
    return client.getsockopt(socket.IPPROTO_TCP, 13, 16).split(b"\0")[0].decode()
print(opened("10.1.1.7"), opened("127.0.0.1", b"uncork_reno"), opened("127.0.0.1"))
END
        kernel unload > /dev/null
        cat /proc/sys/net/ipv4/tcp_congestion_control"#;
    let Some(seen) = succeed(script) else { return };
    let (given, default) = seen.trim_end().split_once('\n').expect("two lines");
    assert_eq!(given, format!("uncork_reno uncork_reno {default}"));
}

/// Connections that each carry 20 kB, before and after each word that is read: "done" says that all of them have.
const CONNECTIONS: &str = r#"
import selectors, socket, sys
COUNT, SIZE = int(sys.argv[1]), 20000
listener = socket.create_server(("127.0.0.1", 0), backlog=COUNT)
pairs = []
for _ in range(COUNT):
    client = socket.create_connection(listener.getsockname())
    pairs.append((client, listener.accept()[0]))
def controllers():
    return {pair[1].getsockopt(socket.IPPROTO_TCP, socket.TCP_CONGESTION, 16).rstrip(b"\0").decode() for pair in pairs}
def echo():
    selector, left = selectors.DefaultSelector(), {}
    for client, server in pairs:
        server.sendall(bytes(SIZE))
        left[client] = SIZE
        selector.register(client, selectors.EVENT_READ)
    while left:
        ready = selector.select(timeout=20)
        if not ready:
            sys.exit(f"{len(left)} connections are stuck")
        for key, _ in ready:
            got = len(key.fileobj.recv(65536))
            if got == 0:
                sys.exit("a connection was lost")
            left[key.fileobj] -= got
            if left[key.fileobj] == 0:
                del left[key.fileobj]
                selector.unregister(key.fileobj)
echo()
for line in sys.stdin:
    echo()
    print("done", *controllers(), flush=True)
"#;

#[test]
fn an_upgrade_and_an_unload_under_a_thousand_connections_lose_and_stop_none() {
    let _alone = alone();
    let script = format!(
        r#"
        ulimit -n 4096
        cat > connections.py <<'END'
{CONNECTIONS}
END
        kernel load --default uncork_bbr3
        mkfifo words answers
        python3 connections.py 1000 < words > answers 2> errors & program=$!
        exec 8> words 9< answers
        ask() {{
            echo go >&8
            read -r answer <&9 || {{ cat errors; exit 9; }}
            echo "$answer"
        }}
        ask
        kernel upgrade
        ask
        kernel unload
        ask
        kernel load
        ask
        kernel status --format json | grep -A3 '"uncork_bbr3"'
        exec 8>&-
        wait $program"#
    );
    let Some(seen) = succeed(&script) else { return };
    assert_eq!(
        seen.matches(
            "done uncork_bbr3
"
        )
        .count(),
        4,
        "{seen}"
    );
    assert!(seen.contains("connections keep it until they end"), "{seen}");
}

/// Both ends of each connection have it.
#[test]
fn twenty_thousand_sockets_use_a_controller_at_once() {
    let _alone = alone();
    let script = format!(
        r#"
        ulimit -n 6000
        cat > connections.py <<'END'
{CONNECTIONS}
END
        kernel load --default uncork_bbr3 > /dev/null
        for number in 1 2 3 4; do
            mkfifo words$number
            python3 connections.py 2500 < words$number > answers$number & programs="${{programs-}} $!"
        done
        exec 5> words1 6> words2 7> words3 8> words4
        for descriptor in 5 6 7 8; do echo go >&$descriptor; done
        for number in 1 2 3 4; do
            for i in $(seq 1200); do [ -s answers$number ] && break; sleep 0.05; done
        done
        cat answers?
        kernel status --format json > status.json
        grep -A3 '"uncork_bbr3"' status.json | tail -1
        exec 5>&- 6>&- 7>&- 8>&-
        wait $programs
        kernel unload > /dev/null"#
    );
    let Some(seen) = succeed(&script) else { return };
    let expected = format!("{}      \"connections\": 20000,\n", "done uncork_bbr3\n".repeat(4));
    assert_eq!(seen, expected);
}

/// An old copy that is the default of a namespace would stay loaded.
#[test]
fn an_upgrade_and_a_second_load_leave_no_old_copy_as_a_default() {
    let _alone = alone();
    let script = r#"
        copies() { grep -c '_cong_control' /proc/kallsyms || true; }
        no_more() {
            for i in $(seq 1200); do [ "$(copies)" -le "$before" ] && return; sleep 0.05; done
            echo "$before before, $(copies) now"
            exit 9
        }
        # The kernel frees the copies of the test before this one a little later: they must not be counted.
        for i in $(seq 1200); do [ "$(copies)" -eq 0 ] && break; sleep 0.05; done
        earlier=$(cat /proc/sys/net/ipv4/tcp_congestion_control)
        kernel load --default uncork_bbr3
        before=$(copies)
        [ "$before" -gt 0 ]
        unshare --net sh -c 'echo uncork_bbr3 > /proc/sys/net/ipv4/tcp_congestion_control; touch ready; exec sleep 600' &
        for i in $(seq 1200); do [ -e ready ] && break; sleep 0.05; done
        kernel upgrade 2>&1
        no_more
        cat /proc/sys/net/ipv4/tcp_congestion_control
        kernel unload | sed "s/is $earlier,/is EARLIER,/"
        kernel load
        no_more
        # Without the right to enter the other namespace, or the namespaces of other processes on this machine.
        setpriv --bounding-set=-sys_admin "$UNCORK" kernel upgrade 2>&1 | grep -v 'of netns'
        [ "$(copies)" -gt "$before" ]
        kernel unload"#;
    let Some(seen) = succeed(script) else { return };
    let seen = without_numbers(&seen);
    let namespace = "the network namespace of sleep (N)";
    let expected = format!(
        "uncork_bbr3 is loaded\nthe default is uncork_bbr3\nnew connections get this program's uncork_bbr3\n\
         {namespace} has uncork_bbr3 as its default\nuncork_bbr3\n\
         the default is EARLIER, no longer uncork_bbr3\nuncork_bbr3 is unloaded\n\
         uncork_bbr3 is loaded\n{namespace} has uncork_bbr3 as its default\n\
         new connections get this program's uncork_bbr3\n\
         warning: {namespace}: Operation not permitted (os error 1): where uncork_bbr3 is the default, new connections get the old copy until it is \
         set again; run `uncork kernel upgrade` as the host's root\nuncork_bbr3 is unloaded\n"
    );
    assert_eq!(seen, expected);
}

/// Without the numbers of processes.
fn without_numbers(text: &str) -> String {
    let mut parts = text.split('(');
    let first = parts.next().unwrap_or_default().to_owned();
    parts.fold(first, |text, part| {
        let rest = part.trim_start_matches(|one: char| one.is_ascii_digit());
        text + if rest.len() < part.len() { "(N" } else { "(" } + rest
    })
}

/// Every step of the loader that makes something fails once.
#[test]
fn a_loader_that_fails_at_any_step_leaves_nothing() {
    let _alone = alone();
    let script = r#"
        failed=0
        for files in $(seq 3 40); do
            if prlimit --nofile=$files "$UNCORK" kernel load > output 2>&1; then
                echo "works with $files"
                break
            fi
            failed=$((failed + 1))
            grep -q '^error: \|cannot open shared' output || { cat output; exit 9; }
            [ -e /sys/fs/bpf/uncork/uncork_bbr3 ] && exit 9
            registered && exit 9
        done
        [ "$failed" -gt 10 ]
        kernel unload"#;
    let Some(seen) = succeed(script) else { return };
    assert!(seen.contains("works with"), "{seen}");
}

/// The state of real sockets, as `uncork host watch` records it: with rights, and without.
#[test]
fn watch_reads_the_state_of_each_connection() {
    let _alone = alone();
    let script = r#"
        kernel load uncork_bbr1 uncork_bbr3 uncork_cubic
        for name in uncork_bbr1 uncork_bbr3 uncork_cubic; do
            echo $name > /proc/sys/net/ipv4/tcp_congestion_control
            transfer 2 & client=$!
            for i in $(seq 1200); do ss -Htni state established | grep -q $name && break; sleep 0.05; done
            uncork host watch -q --every 200ms --for 1s --record $name.jsonl
            setpriv --bounding-set=-bpf,-sys_admin "$UNCORK" host watch -q --every 200ms --for 400ms --record $name-poor.jsonl
            wait $client
        done
        kernel unload
        for name in uncork_bbr1 uncork_bbr3 uncork_cubic uncork_bbr3-poor; do echo "session $name"; cat $name.jsonl; done"#;
    let Some(seen) = succeed(script) else { return };
    let sessions: Vec<&str> = seen.split("session ").skip(1).collect();
    let [first, third, cubic, poor] = sessions[..] else { panic!("{seen}") };
    let states = |session: &str| -> Vec<Value> {
        let (cc, session) = session.split_once('\n').expect("its name");
        let cc = cc.trim_end_matches("-poor");
        let lines = session.lines().map(|line| serde_json::from_str::<Value>(line).expect("JSON"));
        let lines: Vec<Value> = lines.collect();
        assert_describes("host-watch-1", &lines);
        let sockets = lines.iter().filter_map(|line| line["pass"]["sockets"].as_array());
        let sent = |socket: &&Value| {
            socket["cc"] == cc && socket["figures"]["bytes_acked"].as_u64() > Some(100_000)
        };
        sockets.flatten().filter(sent).map(|socket| socket["bbr"].clone()).collect()
    };
    let known = |states: &[Value], version: u64| {
        assert!(!states.is_empty());
        for state in states {
            assert_eq!(state["version"], version);
            assert!(state["bandwidth_bps"].as_u64() > Some(1_000_000), "{state}");
            assert!(state["min_rtt_ns"].is_u64(), "{state}");
            assert_eq!(state["bounds"].is_object(), version > 1, "{state}");
        }
    };
    known(&states(first), 1);
    let third = states(third);
    known(&third, 3);
    assert!(third.iter().all(|state| state["bounds"]["max_bandwidth_bps"].as_u64() > Some(0)));
    for none in [cubic, poor] {
        let states = states(none);
        assert!(!states.is_empty() && states.iter().all(Value::is_null), "{states:?}");
    }
}

#[test]
fn the_doctor_finds_what_is_loaded_and_what_is_an_old_copy() {
    let _alone = alone();
    let script = r#"
        findings() { uncork host doctor --format json "$@" | grep -o '"id": "[a-z-]*\(kernel-controller\|old-cop\)[a-z-]*"\|"what": ".*uncork_.*"' || true; }
        echo missing; findings --expect uncork_bbr3
        kernel load uncork_bbr3 > /dev/null
        unshare --net sh -c 'ip link set lo up; echo uncork_bbr3 > /proc/sys/net/ipv4/tcp_congestion_control; touch ready; exec sleep 600' &
        for i in $(seq 1200); do [ -e ready ] && break; sleep 0.05; done
        echo loaded; findings
        kernel unload > /dev/null
        echo unloaded; findings
        # A load that may not enter the other namespace leaves its old copy there.
        setpriv --bounding-set=-sys_admin "$UNCORK" kernel load > /dev/null
        echo again; findings
        kernel upgrade > /dev/null
        echo upgraded; findings
        kernel unload > /dev/null"#;
    let Some(seen) = succeed(script) else { return };
    let (missing, rest) = seen.split_once("loaded\n").expect("three parts");
    let (loaded, rest) = rest.split_once("unloaded\n").expect("three parts");
    let (unloaded, rest) = rest.split_once("again\n").expect("four parts");
    let (again, upgraded) = rest.split_once("upgraded\n").expect("five parts");
    assert!(missing.contains("kernel-controller-not-loaded"), "{missing}");
    assert!(loaded.contains("Loaded by BPF: uncork_bbr3."), "{loaded}");
    assert!(!loaded.contains("old-copy"), "{loaded}");
    assert!(unloaded.contains("old-copy-is-default") && unloaded.contains("sleep ("), "{unloaded}");
    let old = "is an old copy of uncork_bbr3, not the loaded one.";
    assert!(again.contains(old) && again.contains("sleep ("), "{again}");
    assert!(!upgraded.contains("old-copy"), "{upgraded}");
}

/// One connection that moves 100 kB, and its controller.
const CONNECT: &str = r#"
cat > connect.py <<'END'
import socket
server = socket.create_server(("127.0.0.1", 0))
client = socket.create_connection(server.getsockname(), 10)
accepted, _ = server.accept()
accepted.sendall(bytes(100000))
left = 100000
while left:
    left -= len(client.recv(left))
print(accepted.getsockopt(socket.IPPROTO_TCP, socket.TCP_CONGESTION, 16).rstrip(b"\0").decode())
END
"#;

/// Killed at each step that others can see: sockets always get a controller that works, and the next `unload` leaves nothing.
const KILLED: &str = include_str!("kernel/killed.sh");

fn kill_commands(variables: &str) {
    let _alone = alone();
    if !can_kill() {
        return;
    }
    let Some(seen) = succeed(&format!(
        "{SHELL}{CONNECT}\nconnect() {{ timeout 20 python3 connect.py; }}\n{variables}\n{KILLED}"
    )) else {
        return;
    };
    println!("steps: {seen}");
    let steps = seen.lines().filter_map(|line| line.split_once(' ')?.1.parse().ok());
    let steps: Vec<u32> = steps.collect();
    // At least: directory, link, pin and default; exchange and default; default, pin and directory.
    assert!(steps.len() == 3 && steps[0] >= 4 && steps[1] >= 2 && steps[2] >= 3, "{seen}");
}

#[test]
fn a_command_that_is_killed_at_any_step_leaves_a_controller_that_works_and_no_other() {
    kill_commands("controller=uncork_reno");
}

/// It has pins of devices, too.
#[test]
fn killed_command_leaves_prague_whole_or_not_at_all() {
    kill_commands("controller=uncork_prague");
}

/// It has a pin for each of its names.
#[test]
fn killed_command_leaves_no_second_name_alone() {
    kill_commands("controller=uncork_cubic chosen=uncork_cubic_r options=--resume=64");
}

/// Each is attached once.
#[test]
fn devices_of_later_get_the_program_of_prague_by_loading_it_again() {
    let _alone = alone();
    let script = r#"
        pins() { find /sys/fs/bpf/uncork -name 'ect1-*-*' | wc -l; }
        kernel load uncork_prague
        pins
        ip link add first type veth peer name second
        kernel load uncork_prague
        pins
        kernel load uncork_prague 2>&1 || echo status $?
        unshare --net "$UNCORK" kernel load uncork_prague
        pins
        kernel unload
        find /sys/fs/bpf/uncork 2> /dev/null || echo none"#;
    let Some(seen) = succeed(script) else { return };
    let loaded = "uncork_prague is loaded\n";
    let expected = format!(
        "{loaded}1\n{loaded}3\nerror: uncork_prague is loaded already; unload it first\nstatus 1\n{loaded}4\n\
         uncork_prague is unloaded\nnone\n"
    );
    assert_eq!(seen, expected);
}

/// Counted on the wire, through an upgrade and the unloading.
#[test]
fn only_connections_with_prague_and_accecn_send_ect1() {
    let _alone = alone();
    let script = concat!(env!("CARGO_MANIFEST_DIR"), "/../../transport/kernel/ect1.py");
    let Some(table) = succeed(&format!("python3 {script} \"$UNCORK\" 4000 300")) else { return };
    println!("{table}");
    assert!(table.contains(" 0 packets not counted"), "{table}");
}

/// The kernel takes what a socket keeps from a budget of the socket (`net.core.optmem_max`, by namespace since Linux 6.8).
#[test]
fn a_connection_without_memory_for_the_state_gets_a_controller_that_works() {
    let _alone = alone();
    let script = r#"
        [ -e /proc/sys/net/core/optmem_max ] || { echo "optmem_max is not of the namespace"; exit 0; }
        kernel load --default uncork_bbr3 > /dev/null
        enough=$(cat /proc/sys/net/core/optmem_max)
        for most in $enough 2048 $enough; do
            echo $most > /proc/sys/net/core/optmem_max
            timeout 20 python3 connect.py
        done
        kernel unload > /dev/null"#;
    let Some(seen) = succeed(&format!("{CONNECT}{script}")) else { return };
    if seen.starts_with("optmem_max") {
        return not_run(Capability::Bpf, "net.core.optmem_max by namespace: Linux 6.8");
    }
    let available = fs::read_to_string("/proc/sys/net/ipv4/tcp_available_congestion_control");
    let other = if available.expect("TCP").contains("cubic") { "cubic" } else { "reno" };
    assert_eq!(seen, format!("uncork_bbr3\n{other}\nuncork_bbr3\n"));
}

#[test]
fn three_capabilities_are_enough_and_none_is_too_few() {
    let _alone = alone();
    let script = r#"
        chmod 1777 /sys/fs/bpf
        caps=+bpf,+perfmon,+net_admin
        drop="setpriv --reuid 65534 --regid 65534 --clear-groups"
        some="$drop --inh-caps=-all,$caps --ambient-caps=-all,$caps --bounding-set=-all,$caps"
        none="$drop --inh-caps=-all --ambient-caps=-all --bounding-set=-all"
        $some "$UNCORK" kernel load uncork_bbr3 uncork_prague
        $none "$UNCORK" kernel upgrade 2>&1 || echo status $?
        $some "$UNCORK" kernel upgrade
        # It reads nothing that is anybody's.
        $none "$UNCORK" kernel status 2>&1 | grep 'uncork_bbr3 \|note'
        $some "$UNCORK" kernel unload
        $none "$UNCORK" kernel load 2>&1 || echo status $?
        umount /sys/fs/bpf
        kernel load 2>&1 || echo status $?"#;
    let Some(seen) = succeed(script) else { return };
    let expected = "uncork_bbr3 is loaded\nuncork_prague is loaded\n\
        error: cannot load the types of uncork_bbr3 without the privilege; run as root, or with CAP_BPF, \
        CAP_PERFMON and CAP_NET_ADMIN\nstatus 3\n\
        new connections get this program's uncork_bbr3\n\
        new connections get this program's uncork_prague\n\
        uncork_bbr3    yes     no       0\n\
        note: connections in the network namespaces of other users are not counted; run as root\n\
        note: it is not known whether more can be loaded: cannot load the types of uncork_reno without the privilege; run as \
        root, or with CAP_BPF, CAP_PERFMON and CAP_NET_ADMIN\n\
        uncork_bbr3 is unloaded\nuncork_prague is unloaded\n\
        error: cannot load the types of uncork_bbr3 without the privilege; run as root, or with CAP_BPF, \
        CAP_PERFMON and CAP_NET_ADMIN\nstatus 3\n\
        error: no BPF file system is mounted at /sys/fs/bpf; mount it: mount -t bpf bpf /sys/fs/bpf\n\
        status 3\n";
    assert_eq!(seen, expected);
}

/// All users may write to the root of a BPF file system by default. A user who may write to the directory of the pins has the controllers.
#[test]
fn pins_are_in_a_directory_of_this_user_alone() {
    let _alone = alone();
    let script = r#"
        chmod 1777 /sys/fs/bpf
        unprivileged="setpriv --reuid 65534 --regid 65534 --clear-groups"
        $unprivileged mkdir -m 755 /sys/fs/bpf/uncork
        kernel load uncork_reno 2>&1 || echo status $?
        kernel status 2>&1 > /dev/null || echo status $?
        kernel unload uncork_reno 2>&1 || echo status $?
        rmdir /sys/fs/bpf/uncork
        $unprivileged ln -s /tmp /sys/fs/bpf/uncork
        kernel load uncork_reno 2>&1 || echo status $?
        rm /sys/fs/bpf/uncork
        umask 0
        kernel load uncork_reno
        stat -c %a /sys/fs/bpf/uncork
        $unprivileged rm /sys/fs/bpf/uncork/uncork_reno 2> /dev/null || registered | grep uncork_reno"#;
    let Some(seen) = succeed(script) else { return };
    let refused = |reason: &str, remedy: &str| {
        format!(
            "error: unsafe directory for pins: /sys/fs/bpf/uncork: {reason}; run `{remedy} /sys/fs/bpf/uncork`, and try \
             again (it removes the pins in it)\nstatus 3\n"
        )
    };
    let other = refused("it belongs to user 65534, not to user 0 or root", "rm -r").repeat(3);
    let link = refused("it is a link", "rm");
    assert_eq!(seen, format!("{other}{link}uncork_reno is loaded\n700\nuncork_reno\n"));
}

#[test]
fn unload_pin_was_moved_unloads_by_name() {
    let _alone = alone();
    let script = r"
        kernel load uncork_reno
        mv /sys/fs/bpf/uncork/uncork_reno /sys/fs/bpf/moved
        kernel load uncork_reno 2>&1 || echo status $?
        kernel unload 2>&1 | grep uncork_reno
        echo uncork_reno > /proc/sys/net/ipv4/tcp_congestion_control
        kernel unload uncork_reno 2> warned
        grep -c 'had no pin' warned
        registered | grep uncork_reno || true
        # The name is free again, although the pin is still there.
        kernel load uncork_reno";
    let Some(seen) = succeed(script) else { return };
    let unregister = "registered, but not by a pin in /sys/fs/bpf/uncork; unregister it: uncork kernel unload uncork_reno";
    let expected = format!(
        "uncork_reno is loaded\n\
         error: uncork_reno is {unregister}\nstatus 3\n\
         note: uncork_reno is {unregister}\n\
         the default is {}, no longer uncork_reno\nuncork_reno is unloaded\n1\nuncork_reno is loaded\n",
        fallback()
    );
    assert_eq!(seen, expected);
}

#[test]
fn unload_restores_the_default_before_load() {
    let _alone = alone();
    let script = r"
        echo reno > /proc/sys/net/ipv4/tcp_congestion_control
        kernel load --default uncork_reno
        kernel unload
        ls /sys/fs/bpf | grep uncork || true";
    let Some(seen) = succeed(script) else { return };
    let expected = "uncork_reno is loaded\nthe default is uncork_reno\nthe default is reno, no longer uncork_reno\n\
                    uncork_reno is unloaded\n";
    assert_eq!(seen, expected);
}

/// The commands of a unit as a script, in which a failure fails unless it has a minus, as systemd sees it.
fn commands(unit: &str, which: &str) -> String {
    let lines = unit.lines().filter_map(|line| line.strip_prefix(which)?.strip_prefix('='));
    let commands = lines.map(|line| {
        let (line, otherwise) =
            line.strip_prefix('-').map_or((line, "return 1"), |line| (line, "true"));
        let arguments = line.strip_prefix("/usr/bin/uncork ").expect("it runs uncork only");
        format!("$LIMIT \"$UNCORK\" {arguments} || {otherwise}\n")
    });
    commands.collect()
}

/// `deploy/systemd/live.sh` runs the unit where all goes well.
#[test]
fn a_boot_at_which_a_step_fails_leaves_the_kernel_s_own_controllers() {
    let _alone = alone();
    let unit =
        concat!(env!("CARGO_MANIFEST_DIR"), "/../../../deploy/systemd/uncork-kernel.service");
    let unit = fs::read_to_string(unit).expect("it is there");
    let (start, stop_post) = (commands(&unit, "ExecStart"), commands(&unit, "ExecStopPost"));
    assert!(!start.is_empty() && !stop_post.is_empty());
    let script = format!(
        r#"
        start() {{
            {start}
        }}
        stop_post() {{
            {stop_post}
        }}
        # Of all, this one alone is loaded here; others on this machine may load others.
        reno() {{ grep -o uncork_reno /proc/sys/net/ipv4/tcp_available_congestion_control; }}
        state() {{ echo $(reno) default $(cat /proc/sys/net/ipv4/tcp_congestion_control); }}
        boot() {{
            CONTROLLERS=$1 LIMIT=${{2:-}}
            echo "boot: $CONTROLLERS"
            start > output 2>&1 && {{ cat output; exit 9; }}
            grep error: output || true
            state
            LIMIT=
            stop_post 2>&1 || exit 9
            for i in $(seq 1200); do reno > registered.txt || break; sleep 0.05; done
            [ -z "$(find /sys/fs/bpf/uncork -type f 2> /dev/null)" ] || exit 9
            state
        }}
        echo reno > /proc/sys/net/ipv4/tcp_congestion_control
        boot "uncork_vegas"
        boot "uncork_reno uncork_reno"
        # The default cannot be written.
        mount --bind /proc/sys /proc/sys
        mount -o remount,bind,ro /proc/sys
        boot "uncork_reno"
        umount /proc/sys
        # Killed when it reports that the default is set: the disk has room for the line before.
        boot "uncork_reno" "prlimit --fsize=25""#
    );
    let Some(seen) = succeed(&script) else { return };
    let fallback = fallback();
    let boots: Vec<&str> = seen.split("boot: ").skip(1).collect();
    let [unknown, twice, read_only, killed] = boots[..] else { panic!("{seen}") };
    assert!(unknown.starts_with("uncork_vegas\nerror: invalid value 'uncork_vegas'"), "{unknown}");
    assert!(unknown.ends_with("default reno\nerror: none is loaded\ndefault reno\n"), "{unknown}");
    assert_eq!(
        twice,
        "uncork_reno uncork_reno\nerror: uncork_reno is loaded already; unload it first\n\
         uncork_reno default reno\nuncork_reno is unloaded\ndefault reno\n"
    );
    assert!(
        read_only.starts_with("uncork_reno\nerror: cannot make uncork_reno the default"),
        "{read_only}"
    );
    assert!(
        read_only.ends_with("\nuncork_reno default reno\nuncork_reno is unloaded\ndefault reno\n"),
        "{read_only}"
    );
    assert_eq!(
        killed,
        format!(
            "uncork_reno\nuncork_reno default uncork_reno\n\
             the default is {fallback}, no longer uncork_reno\nuncork_reno is unloaded\ndefault {fallback}\n"
        )
    );
}

#[test]
fn status_with_privileges_reports_verified_instructions() {
    let _alone = alone();
    let script = r#"
        kernel load uncork_reno uncork_cubic > /dev/null
        kernel status --format json
        echo poor
        setpriv --bounding-set=-sys_admin "$UNCORK" kernel status --format json
        kernel unload > /dev/null"#;
    let Some(seen) = succeed(script) else { return };
    let (root, poor) = seen.split_once("poor\n").expect("two documents");
    let documents = [root, poor].map(|text| serde_json::from_str::<Value>(text).expect("JSON"));
    assert_describes("kernel-1", &documents);
    let counts = documents.each_ref().map(|document| {
        let controllers = document["controllers"].as_array().expect("a list").iter();
        controllers.filter_map(|one| one["verified_instructions"].as_u64()).collect::<Vec<_>>()
    });
    let [cubic, reno] = counts[0][..] else { panic!("{root}") };
    // The kernel's limit is a million.
    assert!(1000 < reno && reno < cubic && cubic < 1_000_000, "{root}");
    assert!(counts[1].is_empty(), "{poor}");
}

#[test]
fn status_has_a_schema() {
    let status = common::uncork("kernel status --format json");
    assert!([0, 3].contains(&status.status), "{}", status.stderr);
    assert_describes("kernel-1", [&serde_json::from_str(&status.stdout).expect("JSON")]);
}

#[test]
fn load_unknown_controller_refusal_lists_the_known_ones() {
    let refused = common::uncork("kernel load uncork_vegas");
    assert_eq!(refused.status, 2);
    assert!(refused.stderr.contains("(available: uncork_bbr1, "), "{}", refused.stderr);
}

/// The first console block is run line by line, and shows what comes out.
#[test]
fn the_session_of_the_documentation_is_true() {
    let _alone = alone();
    let docs = concat!(env!("CARGO_MANIFEST_DIR"), "/../../../docs/evidence/kernel.md");
    let docs = fs::read_to_string(docs).expect("it is there");
    let (_, session) = docs.split_once("```console\n").expect("a session");
    let (session, _) = session.split_once("```").expect("its end");
    let lines = session.lines().filter_map(|line| line.strip_prefix("$ "));
    let script = lines.map(|line| format!("echo '$ {line}'\n{}\n", line.replace("sudo ", "")));
    let Some(seen) = succeed(&script.collect::<String>()) else { return };
    let fallback = format!("the default is {},", fallback());
    assert_eq!(seen, session.replace("the default is cubic,", &fallback));
}
