//! `[routes]` of a desired state: a policy as routes, in namespaces of their own, with real connections.
#![expect(clippy::unwrap_used, reason = "a test that cannot run has failed")]

use std::fmt::Write;
use std::fs;

use crate::common::Scratch;
use crate::common::sandbox::succeed;
use crate::common::schema::assert_describes;
use crate::common::signed::Signer;
use serde_json::Value;
use uncork_testkit::finished_table;

const DEFAULT: &str = r#"
key = "000102030405060708090a0b0c0d0e0f"
[default]
tcp = "reno"
"#;

const EXPERIMENTS: &str = r#"
[experiment.holdback]
unit = "prefix"
share = "5%"
[experiment.holdback.arm.control]
tcp = "reno"
[experiment.explore]
unit = "prefix"
share = "50%"
[experiment.explore.arm.control]
tcp = "reno"
[experiment.explore.arm.other]
tcp = "OTHER"
[[rule]]
experiment = "holdback"
[[rule]]
experiment = "explore"
"#;

const TABLE: &str = r#"
[table]
file = "networks.table"
[table.arm.control]
tcp = "reno"
[table.arm.other]
tcp = "OTHER"
[[rule]]
table = "large"
"#;

/// A server behind `v0`. All its clients are in the namespace `legacy`.
const NETWORK: &str = r#"
mkdir -p learned
sed "s/OTHER/$OTHER/" policy > learned/policy.toml
mv table learned/networks.table
printf 'algorithm = "reno"\n[routes]\npolicy = "%s/learned/policy.toml"\n' "$PWD" > host.toml
ip link add v0 type veth peer name v1 netns legacy
ip address add 198.51.100.1/24 dev v0
ip -6 address add 2001:db8:ff::1/64 dev v0 nodad
ip link set v0 up
in_legacy() { ip netns exec legacy "$@"; }
in_legacy ip link set lo up
in_legacy ip address add 198.51.100.2/24 dev v1
in_legacy ip -6 address add 2001:db8:ff::2/64 dev v1 nodad
in_legacy ip link set v1 up
ip route replace default via 198.51.100.2 dev v0 metric 100
ip -6 route replace default via 2001:db8:ff::2 dev v0
for client in $(cat clients); do
    case $client in *:*) in_legacy ip -6 address add $client/128 dev lo nodad;; *) in_legacy ip address add $client/32 dev lo;; esac
done
"#;

/// Prints the controller of a connection that the server accepts from each client, and of one that it opens to it.
const CONNECT: &str = r#"
import socket, subprocess, sys
clients = open("clients").read().split()
def listening(family, address):
    it = socket.socket(family)
    it.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
    it.bind((address, 8080))
    it.listen(64)
    it.settimeout(20)
    return it
def family(client): return socket.AF_INET6 if ":" in client else socket.AF_INET
def controller(it): return it.getsockopt(socket.IPPROTO_TCP, socket.TCP_CONGESTION, 16).rstrip(b"\0").decode()
if sys.argv[1:] == ["client"]:
    all = [listening(family(client), client) for client in clients]
    print("listening", flush=True)
    for client in clients:
        server = "2001:db8:ff::1" if ":" in client else "198.51.100.1"
        it = socket.create_connection((server, 8080), 20, (client, 0))
        it.recv(1)
    sys.stdin.read()
else:
    servers = {f: listening(f, a) for f, a in [(socket.AF_INET, "198.51.100.1"), (socket.AF_INET6, "2001:db8:ff::1")]}
    peer = subprocess.Popen(["ip", "netns", "exec", "legacy", sys.executable, "connect.py", "client"],
                            stdin=subprocess.PIPE, stdout=subprocess.PIPE)
    peer.stdout.readline()
    for client in clients:
        accepted, _ = servers[family(client)].accept()
        opened = socket.create_connection((client, 8080), 20)
        print(client, controller(accepted), controller(opened))
        accepted.send(b"x")
    peer.stdin.close()
    peer.wait(20)
"#;

fn table(entries: &str, expires: &str) -> String {
    finished_table(&format!(
        "uncork-table 1\nversion 7\nmade 2026-01-01T00:00:00Z\nexpires {expires}\nsection large\n{entries}"
    ))
}

/// Networks of /24 and /48 and a wide one, with a client in each.
fn prepare(scratch: &Scratch, experiments: &str) -> Vec<String> {
    let (mut entries, mut clients) = (String::new(), Vec::new());
    for index in 0..12 {
        let arm = if index % 2 == 0 { "other" } else { "control" };
        writeln!(entries, "10.1.{index}.0/24 {arm}\n2001:db9:{index}::/48 {arm}").unwrap();
        clients.push(format!("10.1.{index}.{}", index + 7));
        clients.push(format!("2001:db9:{index}::7"));
    }
    writeln!(entries, "10.64.0.0/12 other").unwrap();
    clients.extend((0..12).map(|index| format!("10.{}.{}.9", 64 + index, index * 20)));
    // In no network of the table.
    clients.push("10.2.0.1".to_owned());
    scratch.write("policy", format!("{DEFAULT}{experiments}{TABLE}"));
    scratch.write("table", table(&entries, "2100-01-01T00:00:00Z"));
    scratch.write("clients", &(clients.join("\n") + "\n"));
    scratch.write("connect.py", CONNECT);
    clients
}

/// Connections of each client have the controller that `uncork policy explain` reports. The holdback, both arms of the
/// random share, the table and the default are among them.
#[test]
fn connections_have_the_controllers_that_the_policy_decides() {
    let scratch = Scratch::new("host-policy");
    let clients = prepare(&scratch, EXPERIMENTS);
    let script = format!(
        r#"{NETWORK}
        seen > before
        host apply host.toml > applied
        python3 connect.py > found
        for client in $(cat clients); do
            "$UNCORK" policy explain learned/policy.toml --ip $client --at 2026-06-01T00:00:00Z --format json | tr -d '\n'
            echo
        done > explained
        host apply host.toml
        cat state/host*.json > journal
        host revert > /dev/null
        seen | cmp before -
        ended"#
    );
    let Some(stdout) = succeed(&scratch, &script) else { return };
    assert!(stdout.contains("Nothing was changed."), "{stdout}");
    let read = |name: &str| fs::read_to_string(scratch.path(name)).unwrap();
    let (found, explained) = (read("found"), read("explained"));
    assert_eq!((found.lines().count(), explained.lines().count()), (clients.len(), clients.len()));
    let mut by_arm = std::collections::BTreeMap::new();
    for ((client, found), explained) in clients.iter().zip(found.lines()).zip(explained.lines()) {
        let decision = &serde_json::from_str::<Value>(explained).unwrap()["decision"];
        // A client in no network has the default, and not what a random share would give it.
        let expected =
            if client == "10.2.0.1" { "reno" } else { decision["tcp"].as_str().unwrap() };
        assert_eq!(found, format!("{client} {expected} {expected}"), "{decision}");
        *by_arm.entry(decision["arm"].to_string()).or_insert(0) += 1;
    }
    assert!(by_arm.len() >= 3, "{by_arm:?}");
    assert_describes("host-journal-1", [&serde_json::from_str(&read("journal")).unwrap()]);
    let applied = read("applied");
    assert!(applied.contains("route to 10.64.0.0/12") && applied.contains("congctl"), "{applied}");
}

/// As the units for systemd do it: apply again, when the table is another one, has expired, or is damaged.
#[test]
fn another_table_an_expired_one_and_a_damaged_one() {
    let scratch = Scratch::new("host-policy-again");
    prepare(&scratch, "");
    scratch
        .write("expired", table("10.1.0.0/24 other\n10.1.1.0/24 other\n", "2026-01-08T00:00:00Z"));
    scratch.write("next", table("10.1.0.0/24 other\n10.1.1.0/24 other\n", "2100-01-01T00:00:00Z"));
    let script = format!(
        r"{NETWORK}
        routes() {{ ip route show proto static | grep -c congctl || true; }}
        seen > before
        host apply host.toml > /dev/null
        routes
        cp next learned/networks.table
        host apply host.toml > again
        routes
        echo cut > learned/networks.table
        host apply host.toml 2> refused && exit 9
        routes
        cp expired learned/networks.table
        host apply host.toml > expired.out
        routes
        host revert > /dev/null
        seen | cmp before -
        ended"
    );
    let Some(stdout) = succeed(&scratch, &script) else { return };
    // Seven for IPv4: every other /24, and the wide one.
    assert_eq!(stdout, "7\n2\n2\n0\n");
    let read = |name: &str| fs::read_to_string(scratch.path(name)).unwrap();
    let again = read("again");
    assert!(!again.contains("route to 10.1.0.0/24"), "it changed what stays: {again}");
    assert!(again.contains("route to 10.1.1.0/24") && again.contains("10.64.0.0/12"), "{again}");
    let refused = read("refused");
    assert!(
        refused.contains("networks.table") && refused.contains("nothing was changed"),
        "{refused}"
    );
    assert!(read("expired.out").contains("its table has expired"), "{}", read("expired.out"));
}

/// The routes of an older signed policy are refused; active routes stay.
#[test]
fn an_older_signed_policy_makes_no_routes() {
    let scratch = Scratch::new("host-policy-older");
    let signer = Signer::new();
    let rule = "[[rule]]\nclient = \"198.18.0.0/16\"\nuse = { tcp = \"OTHER\" }\n";
    for (name, serial) in [("1", 1000), ("2", 2000), ("3", 2001)] {
        let policy = format!("{DEFAULT}{}", if name == "2" { "" } else { rule });
        // The script signs nothing, so the algorithm must be one that it does not choose.
        let policy = policy.replace("OTHER", "cubic");
        signer.policy(&scratch.path(name), &policy, &format!("\"serial\": {serial}"));
    }
    fs::write(scratch.path("learn.pub"), signer.public_key()).unwrap();
    let script = r#"
printf 'algorithm = "reno"\n[routes]\npolicy = "%s/current/policy.toml"\npolicy_key = "%s/learn.pub"\n' "$PWD" "$PWD" > host.toml
point() { ln -sfn "$1" current; }
routes() { ip route | grep -c congctl || true; }
point 1; host apply host.toml > /dev/null; routes
point 2; host apply host.toml --ttl 1min > /dev/null; host revert > /dev/null
point 1; host apply host.toml > /dev/null; routes
point 2; host apply host.toml --ttl 1min > /dev/null; host confirm > /dev/null; routes
point 1; host plan host.toml 2>&1 || echo $?
host apply host.toml 2>&1 || echo $?
host apply --boot 2>&1 || echo $?
routes
point 3; host apply host.toml > /dev/null; routes
stat -c %a state/accepted
"#;
    let Some(said) = succeed(&scratch, script) else { return };
    let older = "serial 1000 is older than serial 2000";
    assert_eq!(said.matches(older).count(), 3, "{said}");
    let rest: Vec<&str> = said.lines().filter(|line| line.len() < 4).collect();
    assert_eq!(rest, ["1", "1", "0", "2", "2", "2", "0", "1", "700"], "{said}");
}
