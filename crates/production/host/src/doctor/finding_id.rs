//! The list of findings.

use std::fmt;

use serde::Serialize;

use super::finding::Severity;

macro_rules! findings {
    ($($name:ident $id:literal [$($severity:ident),+]: $meaning:literal;)+) => {
        /// What a finding is about.
        #[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize)]
        #[cfg_attr(test, derive(schemars::JsonSchema))]
        pub enum FindingId {
            $(#[doc = $meaning] #[serde(rename = $id)] $name,)+
        }

        impl FindingId {
            /// All findings.
            pub const ALL: &[Self] = &[$(Self::$name),+];

            /// The stable name, such as `old-sockets`.
            pub fn name(self) -> &'static str {
                match self { $(Self::$name => $id,)+ }
            }

            /// The severities that it may have, worst first.
            pub fn severities(self) -> &'static [Severity] {
                match self { $(Self::$name => &[$(Severity::$severity),+],)+ }
            }

            /// What it means, as Markdown.
            pub fn meaning(self) -> &'static str {
                match self { $(Self::$name => $meaning,)+ }
            }
        }
    };
}

findings! {
    AlgorithmMissing "algorithm-missing" [Problem]: "the kernel, or the container's host, does not offer the algorithm";
    ModuleNotLoaded "module-not-loaded" [Warning]: "the module exists but is not loaded";
    ModuleForbidden "module-forbidden" [Problem, Warning]: "`modprobe.d` forbids to load the module";
    ModuleUnknown "module-unknown" [Warning]: "`/lib/modules` or the list of algorithms cannot be read";
    KernelTooOld "kernel-too-old" [Problem]: "Linux before 4.9 lacks BBR";
    KernelNeedsFq "kernel-needs-fq" [Problem]: "before Linux 4.13 BBR needs `fq` on each interface";
    NotDefault "not-default" [Problem]: "new connections run another algorithm";
    Restricted "restricted" [Warning]: "containers and unprivileged programs cannot choose the algorithm";
    OldSockets "old-sockets" [Warning]: "open connections keep the algorithm that they began with";
    ListenerDiffers "listener-differs" [Warning]: "a listener runs another algorithm: its program may have set `TCP_CONGESTION`";
    ListenerOlderThanDefault "listener-older-than-default" [Note]: "the listener is probably older than the default; then it accepts with the new default and needs no restart";
    RouteOverrides "route-overrides" [Warning]: "a route with `congctl` replaces the default, and a listener's `TCP_CONGESTION`";
    RouteLocks "route-locks" [Note]: "a route with `congctl lock` forbids any other choice";
    RouteLimits "route-limits" [Warning]: "a route has a small `initcwnd`, `window`, `cwnd lock` or `mtu`";
    NamespaceDiffers "namespace-differs" [Warning, Note]: "containers copied the default when they were created. A note if the doctor runs in a namespace";
    NamespacesNotExamined "namespaces-not-examined" [Note]: "only root can read all namespaces";
    FqNotInUse "fq-not-in-use" [Warning]: "`default_qdisc` is `fq`, but the interface has another discipline";
    PacingCapIgnored "pacing-cap-ignored" [Problem]: "before Linux 4.13 pacing caps need `fq`";
    PacingCapsWithoutFq "pacing-caps-without-fq" [Warning]: "connections with a cap may not be paced, because `fq` was removed";
    ManyTimers "many-timers" [Warning]: "over a thousand connections pace by their own timers; `fq` takes less CPU time";
    InternalPacing "internal-pacing" [Note]: "TCP paces without `fq`, correct since Linux 4.13";
    InterfaceShaped "interface-shaped" [Warning]: "the host shapes the interface (`tbf`, `htb`, `cake`)";
    InterfaceDrops "interface-drops" [Warning]: "the host drops its own packets before it sends them";
    MtuSmall "mtu-small" [Warning]: "the MTU is below 1280 bytes";
    SendBufferTooSmall "send-buffer-too-small" [Warning]: "the send buffer is too small for the paths of the host's connections, or its maximum is below 1 MiB";
    ReceiveBufferTooSmall "receive-buffer-too-small" [Warning]: "the maximum of the receive buffer is below 1 MiB";
    TcpMemoryTooSmall "tcp-memory-too-small" [Warning]: "`tcp_mem` is small; it counts pages";
    MalformedTriple "malformed-triple" [Warning]: "`tcp_wmem`, `tcp_rmem` or `tcp_mem` does not have three rising numbers";
    TcpFeatureOff "tcp-feature-off" [Problem]: "SACK, timestamps or window scaling is off";
    LossRecoveryOff "loss-recovery-off" [Warning]: "RACK or TLP is off";
    Bbr1IgnoresEcn "bbr1-ignores-ecn" [Warning]: "connections ask for ECN, and BBRv1 ignores marks";
    L4sNotNegotiated "l4s-not-negotiated" [Warning]: "connections have `uncork_prague`, and their listener has another controller, so they do not send ECT(1)";
    L4sBursts "l4s-bursts" [Note]: "connections have `uncork_prague`, and Linux sends at least two segments at once: slow links get a longer queue and a smaller share";
    Bbr1Loses "bbr1-loses" [Warning]: "BBRv1 retransmits much: shallow buffers, policers";
    VendorBbr "vendor-bbr" [Note]: "a vendor's kernel has BBRv2 or BBRv3 under the name `bbr`; compare such hosts separately";
    KernelControllerNotLoaded "kernel-controller-not-loaded" [Problem]: "a controller of [`uncork kernel`](kernel.md) is not loaded";
    KernelControllers "kernel-controllers" [Note]: "controllers of `uncork kernel` are loaded; a reboot removes them unless a unit loads them";
    OldCopyIsDefault "old-copy-is-default" [Warning]: "the default is an unloaded or replaced copy of a controller";
    OldCopies "old-copies" [Note]: "connections still use an unloaded or replaced copy";
    PolicyControllerMissing "policy-controller-missing" [Problem]: "an active policy of [`uncork steer`](steer.md) names a controller that is not loaded";
    OtherProgramAtCgroup "other-program-at-cgroup" [Warning, Note]: "another BPF program runs at a steered cgroup. A warning if it runs last, because its choice then counts";
    PodHasOwnDefault "pod-has-own-default" [Note]: "a Kubernetes pod has its own default";
    PodPacesItself "pod-paces-itself" [Note]: "the pod's interface has no queue, so TCP paces";
    PodUsesNodeNetwork "pod-uses-node-network" [Note]: "the pod has the node's network (`hostNetwork`)";
    LostAtBoot "lost-at-boot" [Warning]: "the next boot brings another default";
    RefusedAtBoot "refused-at-boot" [Warning]: "the kernel will refuse a line of the boot configuration";
    SetTwice "set-twice" [Warning]: "two lines contradict each other";
    UnknownSysctl "unknown-sysctl" [Warning]: "a line names a key that does not exist";
    FileNotRead "file-not-read" [Warning]: "systemd does not read `/etc/sysctl.conf` here";
    NoEffectOnBbr "no-effect-on-bbr" [Note]: "a line that has no effect on BBR";
}

impl fmt::Display for FindingId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.name())
    }
}
