//! A small host in namespaces of its own, for scripts that change it.

use std::fs;
use std::process::{Command, Stdio};

use uncork_testkit::{Capability, not_run};

use super::{Finished, Scratch, finish};

/// A network like that of a small host. `$OTHER` is the default algorithm, as `legacy` has it, too.
pub const SETUP: &str = r#"set -e
mount -t tmpfs tmpfs /run
ip link set lo up
echo $OTHER > /proc/sys/net/ipv4/tcp_congestion_control
ip netns add legacy
ip netns exec legacy sysctl -qw net.ipv4.tcp_congestion_control=$OTHER
ip tuntap add t0 mode tap
ip link set t0 up
ip address add 192.0.2.2/24 dev t0
ip -6 address add 2001:db8::2/64 dev t0 nodad
ip route add default via 192.0.2.1 proto dhcp metric 100
ip route add 203.0.113.0/24 via 192.0.2.3 mtu 1400
ip -6 route add default via 2001:db8::1
seen() {
    sysctl net.ipv4.tcp_congestion_control net.ipv4.tcp_wmem net.ipv4.tcp_rmem
    ip netns exec legacy sysctl net.ipv4.tcp_congestion_control
    tc qdisc show dev t0 | sed 's/ [0-9a-f]*: / /'
    ip route; ip -6 route
    find root ! -type d 2> /dev/null | sort
    find root -type f 2> /dev/null | sort | xargs -r cat
}
host() { command=$1; shift; "$UNCORK" host $command --state-dir state --root "$PWD/root" "$@"; }
# A killed process is seen for a moment.
kill_guard() {
    pkill -KILL -f '[h]ost guard'
    for i in $(seq 6000); do pgrep -f '[h]ost guard' > /dev/null || return 0; sleep 0.01; done
    return 1
}
ended() { for i in $(seq 1200); do pgrep -x uncork > /dev/null || return 0; sleep 0.05; done; return 1; }
"#;

/// Runs `script` after [`SETUP`] in new namespaces of network, processes and mounts, in the directory of
/// `scratch`.
pub fn run(scratch: &Scratch, script: &str) -> Option<Finished> {
    let allowed = fs::read_to_string("/proc/sys/net/ipv4/tcp_allowed_congestion_control").unwrap();
    let Some(other) = allowed.split_whitespace().find(|name| *name != "reno") else {
        not_run(Capability::Bbr, "reno is the only algorithm allowed");
        return None;
    };
    let unshare = || {
        let mut unshare = Command::new("unshare");
        unshare.args(["--net", "--pid", "--fork", "--mount-proc"]).stdin(Stdio::null());
        unshare
    };
    let probe = unshare().arg("true").stderr(Stdio::null()).status();
    if !probe.is_ok_and(|status| status.success()) {
        not_run(Capability::Netns, "unshare --net --pid --mount-proc fails");
        return None;
    }
    let mut shell = unshare();
    shell.args(["sh", "-c", &format!("{SETUP}{script}")]).current_dir(scratch.path(""));
    shell.env("UNCORK", env!("CARGO_BIN_EXE_uncork")).env("OTHER", other);
    Some(finish(shell))
}

/// [`run`], which must succeed.
pub fn succeed(scratch: &Scratch, script: &str) -> Option<String> {
    let run = run(scratch, script)?;
    assert_eq!(run.status, 0, "{}{}", run.stdout, run.stderr);
    Some(run.stdout)
}
