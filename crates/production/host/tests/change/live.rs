//! Tests on this kernel, in new namespaces: commands killed before every operation, and commands
//! that complete.

use std::fs;
use std::io;
use std::path::Path;
use std::process::{Command, Stdio};

use uncork_host::change::{
    Host, HostContext, HostError, Journal, LiveHost, Now, SettingKey, StateDirectory, Value,
    Watchdog, confirm, recover, revert,
};
use uncork_testkit::{Capability, Scratch, not_run};

use crate::desired_states::apply_text;

/// A variable that is set if the test runs in new namespaces. The value is the outer network namespace, which
/// the test must not be in.
const OUTER: &str = "UNCORK_TEST_OUTER_NETNS";

const SETUP: &str = "set -e
    mount -t tmpfs tmpfs /run
    ip link set lo up
    echo $OTHER > /proc/sys/net/ipv4/tcp_congestion_control
    ip netns add legacy
    ip netns exec legacy sysctl -qw net.ipv4.tcp_congestion_control=$OTHER
    ip tuntap add t0 mode tap
    ip link set t0 up
    ip address add 192.0.2.2/24 dev t0
    ip -6 address add 2001:db8::2/64 dev t0 nodad
    ip route add default via 192.0.2.1 proto dhcp metric 100 mtu 1400
    ip route add 198.51.100.0/24 nexthop via 192.0.2.3 nexthop via 192.0.2.4 weight 2
    ip -6 route add default via 2001:db8::1
    tc qdisc replace dev t0 root tbf rate 1mbit burst 10kb latency 50ms
    ip tuntap add t1 mode tap multi_queue
    ip link set t1 up
    ip tuntap add t2 mode tap
    ip link set t2 up
    tc qdisc replace dev t2 root htb";

const FILE: &str = r#"
algorithm = "reno"
persist = true
[qdisc]
t0 = "pfifo"
[buffers]
send = "16MB"
receive = "16MB"
[[route]]
to = "10.0.0.0/8"
algorithm = "reno"
initial_window = "20p"
[[route]]
to = "0.0.0.0/0"
algorithm = "reno"
lock = true
[[route]]
to = "198.51.100.0/24"
algorithm = "reno"
[[route]]
to = "::/0"
algorithm = "reno"
[[route]]
to = "2001:db8:5::/48"
algorithm = "reno"
[namespaces]
legacy = "reno"
"#;

/// A host with a process that dies after a number of operations.
pub(crate) struct KillableHost {
    pub(crate) host: LiveHost,
    pub(crate) left: u32,
    /// Seconds added to its clock.
    pub(crate) ahead_s: u64,
    /// Its time of day, if it is not this host's.
    pub(crate) unix_s: Option<u64>,
}

impl KillableHost {
    fn alive(&mut self) -> Result<&mut LiveHost, HostError> {
        self.left = self.left.checked_sub(1).ok_or_else(|| HostError("killed".to_owned()))?;
        Ok(&mut self.host)
    }
}

impl Host for KillableHost {
    fn context(&mut self) -> Result<HostContext, HostError> {
        self.alive()?.context()
    }
    fn read(&mut self, setting: &SettingKey) -> Result<Value, HostError> {
        self.alive()?.read(setting)
    }
    /// Killed at each of them, not only before the first.
    fn read_all(&mut self, settings: &[&SettingKey]) -> Result<Vec<Value>, HostError> {
        settings.iter().try_for_each(|_| self.alive().map(drop))?;
        self.host.read_all(settings)
    }
    fn file(&self, path: &Path) -> io::Result<Vec<u8>> {
        self.host.file(path)
    }
    fn may_load(&mut self, module: &str) -> Result<bool, HostError> {
        self.alive()?.may_load(module)
    }
    fn write(&mut self, setting: &SettingKey, from: &Value, to: &Value) -> Result<(), HostError> {
        self.alive()?.write(setting, from, to)
    }
    fn load(&mut self) -> Result<Option<Journal>, HostError> {
        self.alive()?.load()
    }
    fn store(&mut self, journal: &Journal) -> Result<(), HostError> {
        self.alive()?.store(journal)
    }
    /// These tests call `recover` themselves.
    fn post_guard(&mut self) -> Result<(), HostError> {
        Ok(())
    }
    fn guard(&mut self) -> Watchdog {
        Watchdog::Alive
    }
    fn now(&self) -> Now {
        let now = self.host.now();
        let unix_s = self.unix_s.unwrap_or(now.unix_s);
        Now { boot_s: now.boot_s + self.ahead_s, unix_s, ..now }
    }
}

fn own_netns() -> String {
    fs::read_link("/proc/self/ns/net").unwrap().display().to_string()
}

/// Runs `inside`, the body of the test `name`, in new network, process and mount namespaces.
pub(crate) fn in_namespaces(name: &str, inside: impl FnOnce(&Scratch)) {
    if let Ok(outer) = std::env::var(OUTER) {
        assert_ne!(outer, own_netns(), "this would change the real host");
        shell(SETUP);
        return inside(&Scratch::new("host-change"));
    }
    let allowed = fs::read_to_string("/proc/sys/net/ipv4/tcp_allowed_congestion_control").unwrap();
    let Some(other) = allowed.split_whitespace().find(|name| *name != "reno") else {
        return not_run(Capability::Bbr, "reno is the only algorithm allowed");
    };
    let unshare = || {
        let mut unshare = Command::new("unshare");
        unshare.args(["--net", "--pid", "--fork", "--mount-proc"]).stdin(Stdio::null());
        unshare
    };
    let probe = unshare().arg("true").stderr(Stdio::null()).status();
    if !probe.is_ok_and(|status| status.success()) {
        return not_run(Capability::Netns, "unshare --net --pid --mount-proc fails");
    }
    let mut again = unshare();
    again.arg(std::env::current_exe().unwrap()).args(["--exact", name, "--nocapture"]);
    let run = again.env(OUTER, own_netns()).env("OTHER", other).output().unwrap();
    let output = [run.stdout, run.stderr].map(|text| String::from_utf8_lossy(&text).into_owned());
    assert!(run.status.success() && output[0].contains("1 passed"), "{}", output.concat());
    print!("{}", output[0]);
}

pub(crate) fn shell(script: &str) -> String {
    let run = Command::new("sh").args(["-c", script]).output().unwrap();
    assert!(run.status.success(), "{script}\n{}", String::from_utf8_lossy(&run.stderr));
    String::from_utf8(run.stdout).unwrap()
}

/// The host as other programs see it, without handles that the kernel chose.
pub(crate) fn seen(root: &Path) -> String {
    let script = "sysctl net.ipv4.tcp_congestion_control net.ipv4.tcp_wmem net.ipv4.tcp_rmem
        ip netns exec legacy sysctl net.ipv4.tcp_congestion_control
        tc qdisc show dev t0 | sed 's/ [0-9a-f]*: / /'; ip route; ip -6 route";
    let files = format!(
        "cd {} && find . ! -type d | sort; find . -type f | sort | xargs -r cat",
        root.display()
    );
    shell(script) + &shell(&files)
}

pub(crate) fn live(scratch: &Scratch) -> LiveHost {
    LiveHost::new(StateDirectory::new(&scratch.path("state")), &scratch.path("root"))
}

pub(crate) fn root(scratch: &Scratch) -> std::path::PathBuf {
    let root = scratch.path("root");
    fs::create_dir_all(&root).unwrap();
    root
}

/// Kills `command` before each of its operations. After recovery the host must be in the state
/// `old` or `new`: in `new` only if the command is completed.
fn kill_everywhere(
    scratch: &Scratch,
    (old, new): (&str, &str),
    command: impl Fn(&mut KillableHost) -> bool,
) -> u32 {
    for step in 0..1_000 {
        let mut killable =
            KillableHost { host: live(scratch), left: step, ahead_s: 0, unix_s: None };
        let is_through = command(&mut killable);
        recover(&mut live(scratch)).unwrap();
        let found = seen(&root(scratch));
        if is_through {
            assert_eq!(found, new);
            return step;
        }
        assert!(found == old || found == new, "killed at {step}: {found}");
    }
    panic!("it never ended");
}

#[test]
fn killed_everywhere() {
    in_namespaces("live::killed_everywhere", |scratch| {
        let old = seen(&root(scratch));
        apply_text(
            &mut KillableHost { host: live(scratch), left: 1_000, ahead_s: 0, unix_s: None },
            FILE,
            None,
        )
        .unwrap();
        let new = seen(&root(scratch));
        for part in [
            "10.0.0.0/8 via 192.0.2.1 dev t0 proto static metric 100",
            "initcwnd 20",
            "congctl lock reno",
            "2001:db8:5::/48 via 2001:db8::1",
            "pfifo",
            "16000000",
            "uncork-host.service",
        ] {
            assert!(new.contains(part), "{part}: {new}");
        }
        // A revert that had begun was completed.
        let revert = |killable: &mut KillableHost| {
            let host = live(scratch);
            let mut host = KillableHost { host, left: 1_000, ahead_s: 0, unix_s: None };
            apply_text(&mut host, FILE, None).unwrap();
            revert(killable).is_ok()
        };
        let reverting = kill_everywhere(scratch, (&new, &old), revert);
        let apply = |killable: &mut KillableHost| apply_text(killable, FILE, None).is_ok();
        let applying = kill_everywhere(scratch, (&old, &new), apply);
        assert!(applying > 60 && reverting > 40, "{applying} {reverting}");
    });
}

/// Changes that wait for `confirm` touch no file, and expired changes leave nothing behind.
#[test]
fn a_limit_passes() {
    in_namespaces("live::a_limit_passes", |scratch| {
        let old = seen(&root(scratch));
        let mut host = KillableHost { host: live(scratch), left: 10_000, ahead_s: 0, unix_s: None };
        apply_text(&mut host, FILE, Some(1)).unwrap();
        let waiting = seen(&root(scratch));
        assert!(waiting.contains("congctl reno") && !waiting.contains("uncork-host"), "{waiting}");
        uncork_testkit::wait_until("the limit", std::time::Duration::from_mins(1), || {
            recover(&mut live(scratch)).unwrap().0.open.is_none()
        });
        assert_eq!(seen(&root(scratch)), old);
        assert!(confirm(&mut host).unwrap_err().to_string().contains("not confirmed in time"));
        apply_text(&mut host, FILE, Some(60)).unwrap();
        confirm(&mut host).unwrap();
        assert!(seen(&root(scratch)).contains("uncork-host"));
        revert(&mut host).unwrap();
        assert_eq!(seen(&root(scratch)), old);
    });
}

#[test]
fn what_this_kernel_lacks_is_refused_and_undone() {
    in_namespaces("live::what_this_kernel_lacks_is_refused_and_undone", |scratch| {
        let old = seen(&root(scratch));
        let cases = [
            ("algorithm = \"vegas2\"", "algorithm vegas2 does not exist here"),
            ("algorithm = \"reno\"\n[qdisc]\nt0 = \"nosuch\"", "no queue discipline nosuch"),
            ("algorithm = \"reno\"\n[qdisc]\neth7 = \"pfifo\"", "no such interface"),
            ("[[route]]\nto = \"10.0.0.0/8\"\nalgorithm = \"vegas2\"", "the kernel lacks vegas2"),
            ("[namespaces]\nnowhere = \"reno\"", "ip netns add nowhere"),
            ("[qdisc]\ndefault = \"pfifo\"", "net.core.default_qdisc"),
            ("[qdisc]\nt1 = \"pfifo\"", "follow net.core.default_qdisc of the initial namespace"),
            ("[qdisc]\nt2 = \"pfifo\"", "it is htb"),
            ("allowed = [\"reno\"]", "only the initial namespace"),
            ("modules = [\"sch_nosuch\"]", "module sch_nosuch: "),
        ];
        for (text, part) in cases {
            let mut host =
                KillableHost { host: live(scratch), left: 10_000, ahead_s: 0, unix_s: None };
            let error = apply_text(&mut host, text, None).unwrap_err().to_string();
            assert!(error.contains(part), "{part}: {error}");
            assert_eq!(seen(&root(scratch)), old, "{text}");
        }
    });
}
