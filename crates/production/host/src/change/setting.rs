//! Settings of a host and their values.

use std::fmt;

use serde::{Deserialize, Serialize};

use super::desired_state::Prefix;
use super::files::{self, SYSCTLS};

/// Algorithm of new connections.
pub(crate) const DEFAULT: &str = "net.ipv4.tcp_congestion_control";
/// Algorithms that unprivileged processes and other network namespaces may choose.
pub(crate) const ALLOWED: &str = "net.ipv4.tcp_allowed_congestion_control";
/// Queue discipline of new interfaces, and of the queues below `mq`.
pub(crate) const DEFAULT_QDISC: &str = "net.core.default_qdisc";

/// Largest send buffer, third of three words.
pub(crate) const SEND_BUFFER: &str = "net.ipv4.tcp_wmem";
/// Largest receive buffer, third of three words.
pub(crate) const RECEIVE_BUFFER: &str = "net.ipv4.tcp_rmem";
/// Whether the kernel leaves out what a connection learned about its destination when it ends. What is saved begins the next
/// connections, with any controller (linux net/ipv4/tcp_metrics.c, `tcp_update_metrics`).
pub(crate) const NO_METRICS_SAVE: &str = "net.ipv4.tcp_no_metrics_save";
/// The sysctls that uncork changes.
const SYSCTLS_CHANGED: [&str; 6] =
    [DEFAULT, ALLOWED, DEFAULT_QDISC, SEND_BUFFER, RECEIVE_BUFFER, NO_METRICS_SAVE];

/// The value of a loadable module that is loaded.
pub(crate) const LOADED: &str = "loaded";
/// Suffix of systemd's service units.
const UNIT: &str = ".service";

/// One setting of a host.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
#[serde(tag = "kind", rename_all = "kebab-case", deny_unknown_fields)]
pub enum SettingKey {
    /// A kernel module. It is loaded, but never unloaded.
    Module {
        /// Its name, such as `tcp_bbr`.
        name: String,
    },
    /// A sysctl below `net`.
    Sysctl {
        /// Its key, such as `net.ipv4.tcp_congestion_control`.
        key: String,
        /// A namespace in `/run/netns`; absent: the journal's own.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        namespace: Option<String>,
    },
    /// The root queue discipline of an interface.
    Qdisc {
        /// Its name, such as `eth0`.
        interface: String,
    },
    /// The preferred unicast route to a prefix in the main table.
    Route {
        /// Its destination, such as `10.0.0.0/8` or `::/0`.
        to: String,
    },
    /// A text file.
    File {
        /// Absolute path.
        path: String,
    },
    /// A symbolic link.
    Link {
        /// Absolute path.
        path: String,
    },
}

/// The value of a setting.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
#[serde(tag = "is", rename_all = "kebab-case", deny_unknown_fields)]
pub enum Value {
    /// No such module, sysctl, interface, route, file or link.
    Absent,
    /// The words of a sysctl, the text of a file, the target of a link, `loaded` or `built in` for a
    /// module.
    Text {
        /// The text itself.
        text: String,
    },
    /// A queue discipline.
    Qdisc(Qdisc),
    /// A route.
    Route(Route),
}

/// A root queue discipline.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
#[serde(deny_unknown_fields)]
pub struct Qdisc {
    /// Its name, such as `fq`.
    pub name: String,
    /// Names of the disciplines below `mq`, each once.
    pub leaves: Vec<String>,
    /// Null if the kernel chose the discipline itself.
    pub installed: Option<Installed>,
}

/// Properties of a discipline that a program installed.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
#[serde(deny_unknown_fields)]
pub struct Installed {
    /// Its handle (`8001` of `8001:`); 0: any.
    pub handle: u16,
    /// `TCA_OPTIONS` in hexadecimal digits; null: any.
    pub options: Option<String>,
    /// Why it cannot be reinstalled in its current form, such as its classes.
    pub unrestorable: Option<String>,
}

/// A route.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
#[serde(deny_unknown_fields)]
pub struct Route {
    /// In the syntax of `ip route`, without the algorithm: `via 192.0.2.1 dev eth0 proto dhcp`.
    pub path: String,
    /// The algorithm that it sets.
    pub congctl: Option<String>,
    /// Whether applications cannot override it.
    pub locked: bool,
    /// The route as an rtnetlink message, in hexadecimal digits.
    pub message: String,
}

impl SettingKey {
    pub(crate) fn sysctl(key: &str) -> Self {
        Self::Sysctl { key: key.to_owned(), namespace: None }
    }

    /// Position among the changes of `apply`, if this change sets the setting to `target`. An
    /// algorithm comes after the discipline that paces it. A setting that chooses an algorithm
    /// comes after the setting that allows it. `default_qdisc` comes before the interfaces that
    /// follow it. Files come last, so that until then a reboot restores the old state. The unit is
    /// installed while the other files change: at boot, it completes any state of these files.
    pub(crate) fn apply_rank(&self, target: &Value) -> u8 {
        let is_removed = *target == Value::Absent;
        match self {
            Self::Module { .. } => 0,
            Self::Sysctl { key, .. } if key == ALLOWED => 1,
            Self::Sysctl { key, .. } if key == DEFAULT_QDISC => 2,
            Self::Qdisc { .. } => 3,
            Self::Sysctl { key, .. } if key != DEFAULT => 4,
            Self::Route { .. } => 5,
            Self::Sysctl { namespace: Some(_), .. } => 6,
            Self::Sysctl { .. } => 7,
            Self::File { path } if path.ends_with(UNIT) => {
                if is_removed {
                    13
                } else {
                    8
                }
            }
            Self::Link { .. } => {
                if is_removed {
                    12
                } else {
                    9
                }
            }
            // A boot with the sysctls alone would not load the modules of the allowed algorithms.
            Self::File { path } if (path == SYSCTLS) == is_removed => 10,
            Self::File { .. } => 11,
        }
    }

    /// Position among the changes of `revert`, if this change sets the setting to `target`: the
    /// reverse order, with two exceptions. The list of allowed algorithms comes before the default
    /// again, because the default would otherwise add itself to the list. `default_qdisc` comes
    /// before the interfaces again, because the kernel's choice for them depends on it. A socket
    /// that `fq` paced does not pace itself once `fq` is removed (linux net/sched/sch_fq.c sets
    /// `SK_PACING_FQ`, nothing resets it), so new connections stop choosing the algorithm before
    /// that.
    pub(crate) fn revert_rank(&self, target: &Value) -> u8 {
        match self {
            // 0 to 5.
            Self::File { .. } | Self::Link { .. } => self.apply_rank(target) - 8,
            Self::Sysctl { key, .. } if key == ALLOWED => 6,
            Self::Sysctl { namespace: None, key } if key == DEFAULT => 7,
            Self::Sysctl { namespace: Some(_), .. } => 8,
            Self::Route { .. } => 9,
            Self::Sysctl { key, .. } if key != DEFAULT_QDISC => 10,
            Self::Sysctl { .. } => 11,
            Self::Qdisc { .. } => 12,
            Self::Module { .. } => 13,
        }
    }

    /// Whether uncork ever changes this setting.
    pub(crate) fn is_known(&self) -> bool {
        let is_name = |name: &str| {
            !name.is_empty() && ![".", ".."].contains(&name) && !name.contains(['/', '\0'])
        };
        match self {
            Self::Module { name } => is_name(name) && !name.starts_with('-'),
            Self::Sysctl { key, namespace } => {
                SYSCTLS_CHANGED.contains(&&**key) && namespace.as_deref().is_none_or(is_name)
            }
            Self::Qdisc { interface } => is_name(interface),
            Self::Route { to } => to.parse::<Prefix>().is_ok(),
            Self::File { path } => files::FILES.contains(&&**path),
            Self::Link { path } => path == files::ENABLED,
        }
    }

    /// Whether the setting survives a reboot.
    pub(crate) fn survives_reboot(&self) -> bool {
        matches!(self, Self::File { .. } | Self::Link { .. })
    }
}

impl fmt::Display for SettingKey {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Module { name } => write!(f, "module {name}"),
            Self::Sysctl { key, namespace: None } => f.write_str(key),
            Self::Sysctl { key, namespace: Some(name) } => write!(f, "{key} in {name}"),
            Self::Qdisc { interface } => write!(f, "root qdisc of {interface}"),
            Self::Route { to } => write!(f, "route to {to}"),
            Self::File { path } | Self::Link { path } => f.write_str(path),
        }
    }
}

impl Value {
    /// A text value.
    pub fn text(text: impl Into<String>) -> Self {
        Self::Text { text: text.into() }
    }

    pub(crate) fn as_text(&self) -> Option<&str> {
        if let Self::Text { text } = self { Some(text) } else { None }
    }

    /// Whether `current` matches this value. Parts that this value leaves unspecified match
    /// anything.
    pub(crate) fn holds(&self, current: &Self) -> bool {
        match (self, current) {
            (Self::Qdisc(want), Self::Qdisc(is)) => match (&want.installed, &is.installed) {
                // The kernel's own choice of a discipline depends on another setting.
                (None, None) => true,
                (Some(wanted), Some(found)) => {
                    want.name == is.name
                        && (want.leaves.is_empty() || want.leaves == is.leaves)
                        && wanted.options.as_ref().is_none_or(|_| wanted.options == found.options)
                }
                _ => false,
            },
            (Self::Route(want), Self::Route(is)) => want.message == is.message,
            _ => self == current,
        }
    }
}

impl fmt::Display for Value {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Absent => f.write_str("-"),
            Self::Text { text } if text.contains('\n') => {
                let lines = text.lines().count();
                write!(f, "{lines} line{}", if lines == 1 { "" } else { "s" })
            }
            Self::Text { text } => f.write_str(text),
            Self::Qdisc(Qdisc { name, leaves, installed }) => {
                f.write_str(name)?;
                if !leaves.is_empty() {
                    write!(f, " of {}", leaves.join(", "))?;
                }
                f.write_str(if installed.is_none() { " (kernel's choice)" } else { "" })
            }
            Self::Route(Route { path, congctl, locked, .. }) => {
                f.write_str(path)?;
                let lock = if *locked { "lock " } else { "" };
                congctl.as_ref().map_or(Ok(()), |name| write!(f, " congctl {lock}{name}"))
            }
        }
    }
}
