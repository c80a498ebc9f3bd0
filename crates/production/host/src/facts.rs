//! A snapshot of a host.

use std::collections::BTreeMap;
use std::net::SocketAddr;

use serde::{Deserialize, Serialize};
use uncork_policy::{ActivePolicy, OtherProgram};

/// Schema of a recorded [`HostFacts`].
pub const FACTS_SCHEMA: &str = "uncork.host-facts/1";

/// The key of [`HostFacts::unread_reasons`] for hidden processes: no namespace has this inode.
pub(crate) const HIDDEN: u64 = 0;

/// A snapshot of a host, which `--facts` diagnoses.
#[derive(Clone, Debug, Serialize, Deserialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
#[serde(deny_unknown_fields)]
pub struct HostFacts {
    /// `uncork.host-facts/1`.
    #[cfg_attr(test, schemars(extend("const" = FACTS_SCHEMA)))]
    pub schema: String,
    /// The kernel.
    pub kernel: Kernel,
    /// The container that the snapshot was taken in; null outside.
    pub container: Option<Container>,
    /// Sysctls below `net` set at boot, in the order in which they apply: the kernel's command line (`/proc/cmdline`), sysctl.d,
    /// tuned. The last one wins.
    pub boot_sysctls: Vec<Setting>,
    /// Settings of `/etc/sysctl.conf` where nothing reads it at boot.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub unread_sysctls: Vec<Setting>,
    /// Whether systemd is the init; absent in older facts.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub has_systemd: Option<bool>,
    /// Whether `uncork-kernel.service` is enabled: it loads the controllers of `uncork kernel` at boot.
    #[serde(default, skip_serializing_if = "is_false")]
    pub has_kernel_unit: bool,
    /// Network namespaces, the caller's first.
    pub namespaces: Vec<Namespace>,
    /// Network namespaces that could not be entered, by inode, each with some of its processes.
    pub unread_namespaces: BTreeMap<u64, Vec<String>>,
    /// Why, where the reason is not a missing privilege, by inode.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub unread_reasons: BTreeMap<u64, String>,
    /// Number of processes of other users in network namespaces that the caller may not see.
    pub hidden_processes: u64,
    /// BPF programs of others that see the connections of cgroups under a policy of `uncork steer`.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub other_programs: Vec<OtherProgram>,
    /// The active policies of `uncork steer`.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub policies: Vec<ActivePolicy>,
}

/// The kernel.
#[derive(Clone, Debug, Serialize, Deserialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
#[serde(deny_unknown_fields)]
pub struct Kernel {
    /// The kernel release, like `uname -r`.
    pub release: String,
    /// `tcp_*` and `sch_*` modules, by name.
    #[cfg_attr(test, schemars(extend("propertyNames" = {"pattern": "^(tcp|sch)_"})))]
    pub modules: BTreeMap<String, Module>,
    /// Whether `modules` has all that there are; in older facts it has four of them.
    #[serde(default, skip_serializing_if = "is_false")]
    pub has_all_modules: bool,
    /// Modules that modprobe.d keeps from being loaded, by name, with the place of the line.
    #[cfg_attr(test, schemars(extend("propertyNames" = {"pattern": "^(tcp|sch)_"})))]
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub forbidden_modules: BTreeMap<String, String>,
    /// `CONFIG_DEFAULT_TCP_CONG`, if the kernel configuration can be read.
    pub compiled_default: Option<String>,
    /// BBR's version, by the size of its sock_diag attribute (1 or 3), if a socket with BBR could
    /// be created.
    pub bbr_version: Option<u8>,
}

/// The availability of a kernel module.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
#[serde(rename_all = "kebab-case")]
pub enum Module {
    /// Part of the kernel.
    BuiltIn,
    /// Loaded.
    Loaded,
    /// A file exists, but the module is not loaded.
    File,
    /// No file exists.
    Absent,
    /// `/lib/modules` cannot be read.
    Unknown,
}

/// A kind of container.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
#[serde(rename_all = "kebab-case")]
pub enum Container {
    /// A Kubernetes pod.
    Kubernetes,
    /// Docker, Podman, LXC or another.
    Other,
}

/// A sysctl that a file sets.
#[derive(Clone, Debug, Serialize, Deserialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
#[serde(deny_unknown_fields)]
pub struct Setting {
    /// The file.
    pub file: String,
    /// Its line, from 1.
    pub line: u32,
    /// Its key, such as `net.ipv4.tcp_congestion_control`.
    pub key: String,
    /// The value, without surrounding whitespace.
    pub value: String,
    /// Whether this kernel has the sysctl.
    pub exists: bool,
}

/// A network namespace.
#[derive(Clone, Debug, Serialize, Deserialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
#[serde(deny_unknown_fields)]
pub struct Namespace {
    /// The inode of `/proc/PID/ns/net`.
    pub inode: u64,
    /// Whether it is the host's initial namespace rather than a container's.
    pub is_initial: bool,
    /// Some of its processes, such as `nginx (812)`.
    pub processes: Vec<String>,
    /// Registered algorithms.
    pub available: Vec<String>,
    /// Algorithms that unprivileged processes may choose.
    pub allowed: Vec<String>,
    /// The algorithm of new connections.
    pub default: String,
    /// Whether that is an old copy, if the default is a controller that `uncork kernel` has loaded, and it could be found out.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub default_is_old: Option<bool>,
    /// Other sysctls below `net`.
    #[cfg_attr(test, schemars(extend("propertyNames" = {"pattern": "^net\\."})))]
    pub sysctls: BTreeMap<String, String>,
    /// Network interfaces.
    pub interfaces: Vec<Interface>,
    /// Routes that set an algorithm.
    pub routes: Vec<Route>,
    /// Routes that limit windows or packets.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub limiting_routes: Vec<LimitingRoute>,
    /// Listening and connected TCP sockets.
    pub sockets: Vec<Socket>,
}

/// A network interface.
#[derive(Clone, Debug, Serialize, Deserialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
#[serde(deny_unknown_fields)]
pub struct Interface {
    /// Its name, such as `eth0`.
    pub name: String,
    /// Whether it is up.
    pub is_up: bool,
    /// Whether it is a loopback, bridge, veth or other interface without hardware.
    pub is_virtual: bool,
    /// The root queue discipline.
    pub qdisc: String,
    /// The disciplines below the root.
    pub leaves: Vec<String>,
    /// Its MTU in bytes.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub mtu: Option<u32>,
    /// The rate to which the root discipline shapes it, in bytes per second.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub shaped_rate: Option<u64>,
    /// Packets that the root discipline has sent.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub sent_packets: Option<u64>,
    /// Packets that the root discipline has dropped.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub dropped_packets: Option<u64>,
}

/// A route that sets an algorithm.
#[derive(Clone, Debug, Serialize, Deserialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
#[serde(deny_unknown_fields)]
pub struct Route {
    /// Prefix, or `default`.
    pub destination: String,
    /// Routing table.
    pub table: u32,
    /// The algorithm.
    pub congctl: String,
    /// Whether applications cannot override it.
    pub is_locked: bool,
}

/// A route with metrics that limit its connections (ip-route(8)).
#[derive(Clone, Debug, Serialize, Deserialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
#[serde(deny_unknown_fields)]
pub struct LimitingRoute {
    /// Prefix, or `default`.
    pub destination: String,
    /// Routing table.
    pub table: u32,
    /// The initial congestion window in packets.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub initcwnd: Option<u32>,
    /// The largest congestion window in packets, if it is locked: else it is ignored.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub cwnd: Option<u32>,
    /// The largest window that this host announces, in bytes.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub window: Option<u32>,
    /// The MTU in bytes.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub mtu: Option<u32>,
}

/// A TCP socket.
#[derive(Clone, Debug, Serialize, Deserialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
#[serde(deny_unknown_fields)]
pub struct Socket {
    /// The local address.
    pub local: SocketAddr,
    /// The peer's address; null of a listener.
    pub remote: Option<SocketAddr>,
    /// The algorithm.
    pub cc: String,
    /// A lower bound of its age in seconds, from its own timers.
    pub age_s: u64,
    /// `SO_MAX_PACING_RATE`, in bytes per second.
    pub pacing_cap: Option<u64>,
    /// Bandwidth, in bytes per second: BBR's estimate, or the delivery rate unless it was
    /// application-limited.
    pub bandwidth: Option<u64>,
    /// Smallest round-trip time, in microseconds.
    pub min_rtt_us: Option<u64>,
    /// Milliseconds with data in flight or waiting to be sent.
    pub busy_ms: u64,
    /// Of these, milliseconds limited by the send buffer.
    pub sndbuf_limited_ms: u64,
    /// Bytes sent, retransmissions included.
    pub sent: u64,
    /// Bytes retransmitted.
    pub retransmitted: u64,
    /// BBR's state, if the socket runs BBR.
    pub bbr: Option<Bbr>,
}

/// BBR's state.
#[derive(Clone, Copy, Debug, Serialize, Deserialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
#[serde(deny_unknown_fields)]
pub struct Bbr {
    /// 1, 2 or 3.
    pub version: u8,
}

#[expect(clippy::trivially_copy_pass_by_ref, reason = "serde passes a reference")]
const fn is_false(value: &bool) -> bool {
    !*value
}

/// Three numbers, and nothing else but a comment.
pub(crate) fn triple(text: &str) -> Option<[u64; 3]> {
    let words = text.split('#').next().unwrap_or_default().split_ascii_whitespace();
    let numbers: Vec<u64> = words.map(str::parse).collect::<Result<_, _>>().ok()?;
    numbers.try_into().ok()
}

impl HostFacts {
    /// The caller's namespace.
    pub fn own(&self) -> Option<&Namespace> {
        self.namespaces.first()
    }
}

impl Kernel {
    /// Major and minor version; `(0, 0)` if the release does not start with them.
    pub fn version(&self) -> (u32, u32) {
        let mut numbers = self.release.split(|c: char| !c.is_ascii_digit()).map(str::parse);
        match (numbers.next(), numbers.next()) {
            (Some(Ok(major)), Some(Ok(minor))) => (major, minor),
            _ => (0, 0),
        }
    }

    /// The availability of a module.
    pub fn module(&self, name: &str) -> Module {
        let otherwise = if self.has_all_modules { Module::Absent } else { Module::Unknown };
        self.modules.get(name).copied().unwrap_or(otherwise)
    }

    /// The place of the line that keeps a module from being loaded, if it is not built in.
    pub fn forbidden(&self, module: &str) -> Option<&str> {
        let place = self.forbidden_modules.get(module)?;
        (self.module(module) != Module::BuiltIn).then_some(place)
    }
}

impl Namespace {
    /// A numeric sysctl.
    pub fn number(&self, key: &str) -> Option<u64> {
        self.sysctls.get(key)?.split_ascii_whitespace().next()?.parse().ok()
    }

    /// The three numbers of a sysctl such as `net.ipv4.tcp_wmem`.
    pub fn triple(&self, key: &str) -> Option<[u64; 3]> {
        triple(self.sysctls.get(key)?)
    }

    /// Connected sockets.
    pub fn connections(&self) -> impl Iterator<Item = &Socket> {
        self.sockets.iter().filter(|socket| socket.remote.is_some())
    }

    /// Listening sockets.
    pub fn listeners(&self) -> impl Iterator<Item = &Socket> {
        self.sockets.iter().filter(|socket| socket.remote.is_none())
    }

    /// Whether the namespace can use an algorithm without loading a module.
    pub fn has(&self, algorithm: &str) -> bool {
        self.available.iter().any(|name| name == algorithm)
    }
}

impl Interface {
    /// Whether packets leave through `fq`, at the root or below it.
    pub fn has_fq(&self) -> bool {
        self.qdisc == "fq" || self.leaves.iter().any(|leaf| leaf == "fq")
    }
}
