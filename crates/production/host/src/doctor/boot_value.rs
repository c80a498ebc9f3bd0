//! What a sysctl is after the next boot: which setting wins, and which values the kernel refuses.

use uncork_cc::{InLinux, Missing, is_kernel_controller};

use super::ExaminedHost;
use crate::facts::{Module, Setting, triple};

pub(super) const DEFAULT: &str = "net.ipv4.tcp_congestion_control";
pub(super) const DEFAULT_QDISC: &str = "net.core.default_qdisc";
/// Where the kernel's command line is read. The kernel applies it before init runs, so files win.
const COMMAND_LINE: &str = "/proc/cmdline";
/// What the file of each profile of tuned is called.
const TUNED: &str = "/tuned.conf";
/// Queue disciplines of mainline Linux (net/sched/sch_*.c, without disciplines that need parameters or classes).
const QDISCS: [&str; 22] = [
    "bfifo",
    "cake",
    "choke",
    "codel",
    "drr",
    "dualpi2",
    "ets",
    "fq",
    "fq_codel",
    "fq_pie",
    "gred",
    "hhf",
    "mq",
    "noqueue",
    "pfifo",
    "pfifo_fast",
    "pfifo_head_drop",
    "pie",
    "prio",
    "red",
    "sfb",
    "sfq",
];
/// Sysctls of three numbers: a minimum, a default and a maximum.
const TRIPLES: [&str; 3] = ["net.ipv4.tcp_wmem", "net.ipv4.tcp_rmem", "net.ipv4.tcp_mem"];

/// Why the kernel refuses a value at boot.
pub(super) struct BootRefusal {
    pub(super) why: String,
    /// What was meant, if that is clear.
    pub(super) meant: Option<String>,
    /// Whether a module of others could make it right.
    pub(super) is_certain: bool,
}

impl BootRefusal {
    fn new(why: impl Into<String>, meant: Option<&str>) -> Self {
        Self { why: why.into(), meant: meant.map(str::to_owned), is_certain: true }
    }
}

/// Why the kernel refuses the value of a setting at boot; `None` if it takes it.
pub(super) fn refusal(host: ExaminedHost<'_>, setting: &Setting) -> Option<BootRefusal> {
    let value = &*setting.value;
    match &*setting.key {
        DEFAULT | DEFAULT_QDISC => {
            let word = value.split(['#', ';']).next().unwrap_or_default().trim();
            if word == value {
                return if setting.key == DEFAULT {
                    controller(host, value)
                } else {
                    qdisc(host, value)
                };
            }
            let why = format!(
                "sysctl.d(5) has comments at the start of a line only, so the value is `{value}`: no such name, \
                 and the line fails."
            );
            Some(BootRefusal::new(why, Some(word)))
        }
        key => number(host, key, value),
    }
}

fn controller(host: ExaminedHost<'_>, name: &str) -> Option<BootRefusal> {
    if is_kernel_controller(name) {
        let why = "`uncork kernel load` registers it after sysctl.d is read: the name does not exist yet, and the line \
                   fails. uncork-kernel.service makes it the default.";
        return Some(BootRefusal::new(why, None));
    }
    if let Some(refusal) = forbidden(host, &format!("tcp_{name}")) {
        return Some(refusal);
    }
    let module = host.facts.kernel.module(&format!("tcp_{name}"));
    if host.own.has(name) || matches!(module, Module::File | Module::Loaded | Module::BuiltIn) {
        return None;
    }
    match InLinux::named(name) {
        Some(found) if found.name() == name => (module == Module::Absent)
            .then(|| BootRefusal::new(format!("This kernel has no {name}: the line fails."), None)),
        Some(found) => {
            let meant = Some(found.name()).filter(|name| !is_kernel_controller(name));
            Some(BootRefusal::new(format!("The line fails: {}.", Missing(name)), meant))
        }
        None => {
            let refusal = BootRefusal::new(format!("The line fails: {}.", Missing(name)), None);
            Some(BootRefusal { is_certain: false, ..refusal })
        }
    }
}

/// A module that is loaded today is not loaded at boot.
fn forbidden(host: ExaminedHost<'_>, module: &str) -> Option<BootRefusal> {
    let line = host.facts.kernel.forbidden(module)?;
    let why = format!("{line} forbids to load {module}: the line fails.");
    Some(BootRefusal::new(why, None))
}

fn qdisc(host: ExaminedHost<'_>, name: &str) -> Option<BootRefusal> {
    if let Some(refusal) = forbidden(host, &format!("sch_{name}")) {
        return Some(refusal);
    }
    let is_in_use = host.own.sysctls.get(DEFAULT_QDISC).is_some_and(|now| now == name);
    match host.facts.kernel.module(&format!("sch_{name}")) {
        _ if is_in_use => None,
        Module::File | Module::Loaded | Module::BuiltIn => None,
        Module::Absent => {
            Some(BootRefusal::new(format!("This kernel has no {name}: the line fails."), None))
        }
        Module::Unknown if QDISCS.contains(&name) => None,
        Module::Unknown => {
            let why = format!("Linux has no queue discipline {name}: the line fails.");
            Some(BootRefusal { is_certain: false, ..BootRefusal::new(why, None) })
        }
    }
}

/// A number must begin with digits; what follows after a space is ignored (linux kernel/sysctl.c, `proc_get_long`). A list must have its
/// numbers in their range.
fn number(host: ExaminedHost<'_>, key: &str, value: &str) -> Option<BootRefusal> {
    let number = |text: &str| text.split_ascii_whitespace().next()?.parse::<i128>().ok();
    let is_numeric = host.own.sysctls.get(key).is_some_and(|now| number(now).is_some());
    let range = range(key);
    if (is_numeric || range.is_some()) && number(value).is_none() {
        return Some(BootRefusal::new(format!("`{value}` is not a number: the line fails."), None));
    }
    let ValueRange { low, high, is_certain } = range?;
    let words = value.split_ascii_whitespace().map_while(|word| word.parse::<i128>().ok());
    let counted = if TRIPLES.contains(&key) { 3 } else { 1 };
    let wrong = words.take(counted).find(|word| !(low..=high).contains(word))?;
    let why = format!("It takes {low} to {high}, not {wrong}: the line fails.");
    Some(BootRefusal { is_certain, ..BootRefusal::new(why, None) })
}

/// The numbers that a sysctl takes.
struct ValueRange {
    low: i128,
    high: i128,
    /// Whether it is so in every kernel.
    is_certain: bool,
}

/// The range of a sysctl, where it is known (net/ipv4/sysctl_net_ipv4.c, net/core/sysctl_net_core.c).
fn range(key: &str) -> Option<ValueRange> {
    const INT: i128 = i32::MAX as i128;
    let certain = |low, high| Some(ValueRange { low, high, is_certain: true });
    match key.strip_prefix("net.ipv4.tcp_").or_else(|| key.strip_prefix("net.core."))? {
        "pacing_ss_ratio" | "pacing_ca_ratio" => certain(0, 1000),
        "early_retrans" => certain(0, 4),
        "syn_retries" => certain(1, 127),
        "notsent_lowat" => certain(0, u32::MAX.into()),
        "wmem" | "rmem" | "rmem_max" | "wmem_max" | "rmem_default" | "wmem_default" => {
            certain(1, INT)
        }
        "limit_output_bytes" | "max_syn_backlog" | "max_tw_buckets" | "fastopen" | "base_mss"
        | "somaxconn" | "netdev_max_backlog" => certain(-INT - 1, INT),
        // Bytes since Linux 5.13 (`proc_dou8vec_minmax`), and integers before.
        "sack"
        | "dsack"
        | "window_scaling"
        | "timestamps"
        | "slow_start_after_idle"
        | "no_metrics_save"
        | "moderate_rcvbuf"
        | "mtu_probing"
        | "recovery"
        | "retries1"
        | "retries2"
        | "frto"
        | "min_tso_segs"
        | "ecn" => Some(ValueRange { low: 0, high: 255, is_certain: false }),
        _ => None,
    }
}

/// A sysctl of three numbers for which a setting has more or fewer. The kernel takes the numbers that it gets.
pub(super) fn is_malformed(setting: &Setting) -> bool {
    TRIPLES.contains(&&*setting.key) && triple(&setting.value).is_none_or(|it| !is_ordered(it))
}

pub(super) fn is_ordered([low, middle, high]: [u64; 3]) -> bool {
    low <= middle && middle <= high
}

/// The setting of `key` that the next boot applies last, if the kernel takes it. systemd-sysctl(8) writes only the last value of
/// all files; others write each in turn.
pub(super) fn in_effect<'a>(host: ExaminedHost<'a>, key: &str) -> Option<&'a Setting> {
    let settings = || host.facts.boot_sysctls.iter().filter(|setting| setting.key == key);
    let takes = |setting: &&Setting| refusal(host, setting).is_none();
    let mut of_files = settings().rev().filter(|setting| !is_of_command_line(setting));
    let found = if host.facts.has_systemd == Some(false) {
        of_files.find(takes)
    } else {
        of_files.next().filter(takes)
    };
    found.or_else(|| settings().rev().filter(|it| is_of_command_line(it)).find(takes))
}

fn is_of_command_line(setting: &Setting) -> bool {
    setting.file == COMMAND_LINE
}

/// Whether an administrator's file may override the setting: that is what it is for (sysctl.d(5), tuned-main.conf).
pub(super) fn may_be_overridden(setting: &Setting) -> bool {
    let file = &setting.file;
    is_of_command_line(setting)
        || file.ends_with(TUNED)
        || ["/usr/lib/", "/lib/"].iter().any(|at| file.starts_with(at))
}

/// Where a setting is.
pub(super) fn place(setting: &Setting) -> String {
    if is_of_command_line(setting) {
        return format!("the kernel's command line (sysctl.{})", setting.key);
    }
    format!("{}:{}", setting.file, setting.line)
}

/// The commands that have the next boot set `key` to `value`, in place of the setting that wins today. A later file with the key would win, so
/// a line of the administrator is changed in place.
pub(super) fn remedy(host: ExaminedHost<'_>, key: &str, value: &str) -> Vec<String> {
    let settings = || host.facts.boot_sysctls.iter().filter(|setting| setting.key == key);
    let last = settings().next_back();
    if let Some(last) = last.filter(|it| it.file.starts_with("/etc/") && !may_be_overridden(it)) {
        return vec![rewrite(last, value)];
    }
    let names = settings().filter_map(|it| Some(it.file.rsplit_once("/sysctl.d/")?.1));
    let file = after(names.max().unwrap_or_default());
    let mut steps = vec![format!("echo {key}={value} > /etc/sysctl.d/{file}")];
    if last.is_some_and(|it| it.file.ends_with(TUNED)) {
        steps.push(
            "keep reapply_sysctl = 1 in /etc/tuned/tuned-main.conf: then sysctl.d wins over tuned"
                .to_owned(),
        );
    }
    steps
}

/// The command that gives a line another value. The file may be a link: `99-sysctl.conf`. One that is mounted, which sed cannot
/// replace, gets a last line, which wins within the file.
pub(super) fn rewrite(setting: &Setting, value: &str) -> String {
    let Setting { file, line, key, .. } = setting;
    format!(
        "sed -i --follow-symlinks '{line}s|.*|{key} = {value}|' {file} || echo '{key} = {value}' >> {file}"
    )
}

/// The name of a file that is read after the one with this name: in the order of bytes (sysctl.d(5)).
fn after(name: &str) -> String {
    const FILE: &str = "congestion-control.conf";
    let usual = format!("99-{FILE}");
    if name < &*usual {
        return usual;
    }
    // An underscore sorts after the dot.
    format!("{}_{FILE}", name.trim_end_matches(".conf"))
}
