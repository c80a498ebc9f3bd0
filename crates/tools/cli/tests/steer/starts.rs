//! How connections start, behind `uncork emu`, as the recorder has it. The server reads `TCP_INFO` at the end of each: the kernel's own
//! count. No test depends on time: a stalled machine makes timeouts, which the kernel counts, too.

use serde_json::Value;

use super::common::schema::assert_describes;
use super::succeed;

/// `case_of NAME KEYS PATH SIZES` applies a policy, fetches the sizes one after the other, and prints the records with the kernel's
/// counts at their ends, joined by the client's port. Without UNCORK_EMU, `uncork emu --cleanup` outside this namespace of processes does not
/// take them for what a killed emulation left.
const CASE: &str = r#"
cat > server.py <<'END'
import json, socket, sys
listener = socket.create_server(("", 5002))
with open(sys.argv[1] + ".kernel", "w") as counts:
    while True:
        connection, (_, port, *_) = listener.accept()
        with connection:
            size = int(connection.makefile().readline())
            connection.sendall(bytes(size))
            connection.shutdown(socket.SHUT_WR)
            while connection.recv(100):
                pass
            info = connection.getsockopt(socket.IPPROTO_TCP, 11, 232)
            number = lambda at: int.from_bytes(info[at:at + 4], "little")
            kernel = {"mss": number(16), "threshold": number(76), "resent": number(100)}
            print(json.dumps({"port": port, "size": size, **kernel}), file=counts, flush=True)
END
cat > client.py <<'END'
import pathlib, socket, sys, time
pathlib.Path("/proc/sys/net/ipv4/tcp_ecn").write_text("1")
for size in sys.argv[2:]:
    with socket.create_connection(("198.18.0.1", 5002), 60) as connection:
        connection.sendall(f"{size}\n".encode())
        left = int(size)
        while chunk := connection.recv(1 << 20):
            left -= len(chunk)
        assert left == 0, left
files = [pathlib.Path(sys.argv[1] + end) for end in (".jsonl", ".watch.jsonl")]
for _ in range(1200):
    if all(it.read_bytes().count(b"\n") >= len(sys.argv) - 2 for it in files):
        break
    time.sleep(0.05)
END
cat > server.sh <<'END'
unset UNCORK_EMU
"$UNCORK" steer record $1.jsonl --every 100ms --client-ports &
"$UNCORK" host watch --quiet --records $1.watch.jsonl --every 100ms &
for i in $(seq 1200); do [ -e $1.jsonl ] && [ -e $1.watch.jsonl ] && break; sleep 0.05; done
sleep 0.5
echo $$ > "$CGROUP/cgroup.procs"
exec python3 server.py $1
END
cat > print.py <<'END'
import json, sys
lines = lambda end: [json.loads(line) for line in open(sys.argv[1] + end)]
kernel = {one["port"]: one for one in lines(".kernel")}
for record, watch in zip(lines(".jsonl"), lines(".watch.jsonl"), strict=True):
    print(json.dumps({"record": record, "kernel": kernel[record["service"]["client_port"]], "watch": watch}))
END
case_of() {
    printf '[default]\n%s\n' "$2" > starts.toml
    steer apply starts.toml --cgroup "$CGROUP" > /dev/null
    uncork emu --quiet $3 --server "sh server.sh $1" -- env -u UNCORK_EMU python3 client.py $1 $4
    python3 print.py $1
}
"#;

/// A connection's record next to the kernel's counts at its end, and the record of `uncork host watch`.
#[derive(serde::Deserialize)]
struct Connection {
    record: Value,
    kernel: Value,
    watch: Value,
}

impl Connection {
    fn start(&self, name: &str) -> Option<u64> {
        self.record["start"][name].as_u64()
    }

    fn exit(&self) -> Option<&str> {
        self.record["start"]["exit"].as_str()
    }

    fn kernel(&self, name: &str) -> u64 {
        self.kernel[name].as_u64().expect("a number")
    }
}

/// The connections of one case.
fn connections(keys: &str, path: &str, sizes: &str) -> Option<Vec<Connection>> {
    let seen = succeed(&format!("{CASE}case_of starts '{keys}' '{path}' '{sizes}'"))?;
    let parse = |line: &str| serde_json::from_str(line).expect("JSON");
    let all: Vec<Connection> = seen.lines().map(parse).collect();
    let records: Vec<Value> = all.iter().map(|it| it.record.clone()).collect();
    assert_describes("flow-record", &records);
    assert_eq!(all.len(), sizes.split(' ').count(), "{seen}");
    Some(all)
}

/// Packets that leave at once. The buffer behind them has room for half.
const BURST: &str = "tcp = \"cubic\"\ninitial_window = \"40p\"\ninitial_rate = \"burst\"";
const SHALLOW: &str = "--rate 20mbit --rtt 50ms --buffer 20p";
const AMPLE: &str = "--rate 100mbit --rtt 100ms --buffer 4bdp";

#[test]
fn a_window_above_the_buffer_is_resent_as_often_as_the_kernel_counts() {
    let Some(all) = connections(BURST, SHALLOW, "58000 300000 58000") else { return };
    for it in &all {
        let mss = it.kernel("mss");
        let resent = it.start("early_resent_bytes").expect("observed");
        assert!(resent > 0, "{}", it.record);
        assert_eq!(it.start("window_bytes"), Some(40 * mss));
        assert_eq!(it.record["start"]["paced"], false);
        let has_timed_out = it.record["timeouts"].as_u64() > Some(0);
        let is_right = it.exit() == Some("loss") || has_timed_out && it.exit() == Some("timeout");
        assert!(is_right, "{}", it.record);
        assert!(it.start("exit_window_bytes") >= Some(40 * mss), "{}", it.record);
        assert!(it.start("exit_in_flight_bytes") > Some(0), "{}", it.record);
        let size = it.kernel("size");
        if size == 58_000 {
            // All of it belongs to the first round trips, and so does all that was sent again.
            assert_eq!(it.start("early_sent_bytes"), Some(size));
            assert_eq!(resent, (it.kernel("resent") * mss).min(size), "{}", it.record);
            assert_eq!(it.start("rounds_to_100kb"), None);
        }
    }
}

/// Its place in the table was free when the kernel reported its end.
#[test]
fn host_watch_has_the_starts_of_connections_that_have_ended() {
    let Some(all) = connections(BURST, SHALLOW, "58000 1000 300000") else { return };
    for it in &all {
        let mut expected = it.record["start"].clone();
        if it.watch["cc"] == "unknown" {
            for name in ["exit", "exit_window_bytes", "exit_in_flight_bytes"] {
                expected[name] = Value::Null;
            }
            for name in ["sent_bytes", "lost_bytes"] {
                expected[name] = it.watch["start"][name].clone();
            }
        }
        assert_eq!(it.watch["start"], expected, "{}", it.watch);
        let window = |record: &Value| record["service"]["initial_window"].as_u64();
        assert_eq!((window(&it.watch), window(&it.record)), (Some(40), Some(40)));
    }
}

#[test]
fn a_larger_window_saves_a_round_trip_where_the_buffer_has_room() {
    let sizes = "150000 1000 150000 150000";
    let Some(large) = connections(BURST, AMPLE, sizes) else { return };
    let small = connections("tcp = \"cubic\"", AMPLE, sizes).expect("as before");
    for it in large.iter().chain(&small) {
        let resent = it.kernel("resent") * it.kernel("mss");
        assert!(
            it.start("early_resent_bytes").is_some_and(|early| early <= resent),
            "{}",
            it.record
        );
    }
    // A stalled machine loses time in one of them, not in all.
    let least = |of: &[Connection], name: &str| of.iter().filter_map(|it| it.start(name)).min();
    assert_eq!(least(&large, "early_resent_bytes"), Some(0));
    assert_eq!(least(&large, "rounds_to_100kb"), Some(2));
    assert_eq!(least(&small, "rounds_to_100kb"), Some(3));
    for it in [&large[1], &small[1]] {
        assert_eq!(it.start("early_sent_bytes"), Some(1000), "{}", it.record);
        assert_eq!((it.exit(), it.start("rounds_to_100kb")), (None, None));
        assert_eq!((it.start("exit_window_bytes"), it.start("exit_in_flight_bytes")), (None, None));
    }
}

/// The exits of some connections: one of them is as expected also on a stalled machine.
fn has_exit(keys: &str, path: &str, size: &str, exit: &str) -> Option<Connection> {
    let all = connections(keys, path, &[size; 3].join(" "))?;
    let seen: Vec<_> = all.iter().map(|it| it.record["start"].to_string()).collect();
    let found = all.into_iter().find(|it| it.exit() == Some(exit));
    Some(found.unwrap_or_else(|| panic!("{exit}: {seen:#?}")))
}

#[test]
fn the_reason_of_the_exit_is_that_of_the_kernel() {
    let deep = "--rate 10mbit --rtt 40ms --buffer 20bdp";
    let Some(delay) = has_exit("tcp = \"cubic\"", deep, "2000000", "delay") else { return };
    if delay.kernel("resent") == 0 {
        let threshold = delay.kernel("threshold") * delay.kernel("mss");
        assert_eq!(delay.start("exit_window_bytes"), Some(threshold), "HyStart's");
    }
    assert_eq!(delay.start("exit_in_flight_bytes"), None);
    let loss = has_exit("tcp = \"reno\"", SHALLOW, "600000", "loss").expect("as before");
    assert!(loss.start("lost_bytes") > Some(0), "{}", loss.record);
    let marking = "--rate 20mbit --rtt 50ms --buffer 10bdp --queue codel:ecn";
    let mark = has_exit("tcp = \"reno\"", marking, "2000000", "mark").expect("as before");
    let threshold = mark.kernel("threshold") * mark.kernel("mss");
    assert!(mark.start("exit_window_bytes") > Some(threshold), "{}", mark.record);
    let controllers =
        std::fs::read_to_string("/proc/sys/net/ipv4/tcp_available_congestion_control");
    if controllers.unwrap_or_default().split_whitespace().any(|name| name == "bbr") {
        let path = "--rate 20mbit --rtt 50ms --buffer 4bdp";
        let bbr = has_exit("tcp = \"bbr\"", path, "2000000", "plateau").expect("as before");
        assert_eq!(bbr.start("exit_window_bytes"), None);
        assert_eq!(bbr.record["start"]["paced"], true);
    }
}

#[test]
fn a_kernel_without_types_has_what_the_events_say() {
    let hide = "mount --bind /dev/null /sys/kernel/btf/vmlinux";
    let script = format!("{hide}\n{CASE}case_of starts '{BURST}' '{SHALLOW}' 58000");
    let Some(seen) = succeed(&script) else { return };
    let it: Value = serde_json::from_str(&seen).expect("JSON");
    let start = &it["record"]["start"];
    let number = |name: &str| it["kernel"][name].as_u64().expect("a number");
    let resent = (number("resent") * number("mss")).min(number("size"));
    assert_eq!(start["early_resent_bytes"].as_u64(), Some(resent), "{it}");
    assert_eq!((&start["paced"], &start["exit"]), (&Value::Null, &Value::Null));
}
