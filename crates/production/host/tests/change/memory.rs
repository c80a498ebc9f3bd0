//! A host in memory that can be killed before any of its operations.

use std::collections::{BTreeMap, BTreeSet};
use std::fmt::Write;
use std::io;
use std::path::{Path, PathBuf};

use netlink_packet_core::Emitable;
use netlink_packet_route::AddressFamily;
use netlink_packet_route::route::{
    RouteAttribute, RouteHeader, RouteMessage, RouteProtocol, RouteType,
};
use uncork_host::change::{
    Host, HostContext, HostError, Installed, Journal, Now, Prefix, Qdisc, Route, SettingKey, Value,
    Watchdog, apply_again,
};

pub(crate) const DEFAULT: &str = "net.ipv4.tcp_congestion_control";
pub(crate) const ALLOWED: &str = "net.ipv4.tcp_allowed_congestion_control";
const DEFAULT_QDISC: &str = "net.core.default_qdisc";
const SYSCTLS: &str = "/etc/sysctl.d/99-uncork.conf";
const MODULES: &str = "/etc/modules-load.d/uncork.conf";
const ENABLED: &str = "/etc/systemd/system/multi-user.target.wants/uncork-host.service";

/// The initial network namespace of a host with systemd, with the kernel's initial values.
#[derive(Clone)]
pub(crate) struct Memory {
    pub(crate) values: BTreeMap<SettingKey, Value>,
    pub(crate) journal: Option<Journal>,
    pub(crate) boots: u32,
    pub(crate) clock: u64,
    /// Operations left until it is killed.
    pub(crate) fuse: Option<u32>,
    /// Settings that cannot be changed.
    pub(crate) broken: Vec<SettingKey>,
    /// Whether nothing can be written to its disk.
    pub(crate) is_full: bool,
    /// Destinations that lead nowhere.
    pub(crate) closed: BTreeSet<Prefix>,
    /// Destinations of routes that expire.
    pub(crate) fixed: BTreeSet<Prefix>,
    /// Files that desired states name.
    pub(crate) files: BTreeMap<PathBuf, Vec<u8>>,
}

pub(crate) fn sysctl(key: &str) -> SettingKey {
    SettingKey::Sysctl { key: key.to_owned(), namespace: None }
}

pub(crate) fn qdisc(name: &str, is_installed: bool) -> Value {
    let options = Some("00".to_owned());
    let installed = is_installed.then_some(Installed { handle: 1, options, unrestorable: None });
    Value::Qdisc(Qdisc { name: name.to_owned(), leaves: Vec::new(), installed })
}

fn bbr() -> SettingKey {
    SettingKey::Module { name: "tcp_bbr".to_owned() }
}

fn default_route() -> Value {
    let mut message = RouteMessage::default();
    message.header.address_family = AddressFamily::Inet;
    message.header.table = RouteHeader::RT_TABLE_MAIN;
    message.header.kind = RouteType::Unicast;
    message.header.protocol = RouteProtocol::Dhcp;
    message.attributes = vec![
        RouteAttribute::Oif(2),
        RouteAttribute::Gateway(std::net::IpAddr::from([192, 0, 2, 1]).into()),
    ];
    let mut bytes = vec![0; message.buffer_len()];
    message.emit(&mut bytes);
    let mut message = String::new();
    for byte in bytes {
        write!(message, "{byte:02x}").unwrap();
    }
    let path = "via 192.0.2.1 dev eth0 proto dhcp".to_owned();
    Value::Route(Route { path, congctl: None, locked: false, message })
}

impl Memory {
    pub(crate) fn new() -> Self {
        let mut memory = Self {
            values: BTreeMap::new(),
            journal: None,
            boots: 0,
            clock: 0,
            fuse: None,
            broken: Vec::new(),
            is_full: false,
            closed: BTreeSet::new(),
            fixed: BTreeSet::new(),
            files: BTreeMap::new(),
        };
        memory.reset();
        memory
    }

    /// Sets everything except files to its value at boot.
    fn reset(&mut self) {
        self.values.retain(|setting, _| {
            matches!(setting, SettingKey::File { .. } | SettingKey::Link { .. })
        });
        let legacy =
            SettingKey::Sysctl { key: DEFAULT.to_owned(), namespace: Some("legacy".to_owned()) };
        let texts = [
            (sysctl(DEFAULT), "cubic"),
            (sysctl(ALLOWED), "cubic reno"),
            (sysctl(DEFAULT_QDISC), "pfifo_fast"),
            (sysctl("net.ipv4.tcp_wmem"), "4096 16384 4194304"),
            (sysctl("net.ipv4.tcp_rmem"), "4096 131072 6291456"),
            (legacy, "cubic"),
        ];
        self.values.extend(texts.map(|(setting, text)| (setting, Value::text(text))));
        let interface = "eth0".to_owned();
        self.values.insert(SettingKey::Qdisc { interface }, qdisc("pfifo_fast", false));
        self.values.insert(SettingKey::Route { to: "0.0.0.0/0".to_owned() }, default_route());
    }

    /// A reboot: the unit runs if it is enabled.
    pub(crate) fn reboot(&mut self) {
        self.boot();
        if self.values.contains_key(&SettingKey::Link { path: ENABLED.to_owned() }) {
            apply_again(self).unwrap();
        }
    }

    /// A reboot up to the point where sysctl.d has been read.
    pub(crate) fn boot(&mut self) {
        self.boots += 1;
        self.clock = 0;
        self.reset();
        let file = SettingKey::File { path: SYSCTLS.to_owned() };
        let text = match self.values.get(&file) {
            Some(Value::Text { text }) => text.clone(),
            _ => String::new(),
        };
        let file = SettingKey::File { path: MODULES.to_owned() };
        if let Some(Value::Text { text }) = self.values.get(&file)
            && text.lines().any(|line| line == "tcp_bbr")
        {
            self.values.insert(bbr(), Value::text("loaded"));
        }
        for (key, value) in text.lines().filter_map(|line| line.split_once(" = ")) {
            // The kernel loads the module of a default algorithm, but not the modules of a list.
            let names_bbr = value.split(' ').any(|word| word == "bbr");
            if key == ALLOWED && names_bbr && !self.values.contains_key(&bbr()) {
                continue;
            }
            self.set(&sysctl(key), Value::text(value));
        }
    }

    /// Changes a setting like the kernel, with the side effects on other settings.
    pub(crate) fn set(&mut self, setting: &SettingKey, value: Value) {
        let value = match (setting, value) {
            (_, Value::Absent) => {
                self.values.remove(setting);
                return;
            }
            (SettingKey::Qdisc { .. }, Value::Qdisc(Qdisc { installed: None, .. })) => {
                let chosen = self.values[&sysctl(DEFAULT_QDISC)].to_string();
                qdisc(&chosen, false)
            }
            (SettingKey::Qdisc { .. }, Value::Qdisc(Qdisc { name, .. })) => qdisc(&name, true),
            (_, value) => value,
        };
        if value.to_string().split(' ').any(|word| word == "bbr") {
            self.values.insert(bbr(), Value::text("loaded"));
        }
        if *setting == sysctl(DEFAULT) {
            let allowed = self.values[&sysctl(ALLOWED)].to_string();
            let mut names: Vec<&str> = allowed.split(' ').collect();
            let Value::Text { text } = &value else { panic!("{value}") };
            names.push(text);
            names.sort_unstable();
            names.dedup();
            let names = Value::text(names.join(" "));
            self.values.insert(sysctl(ALLOWED), names);
        }
        self.values.insert(setting.clone(), value);
    }

    /// The state visible from outside, without loaded modules.
    pub(crate) fn visible(&self) -> BTreeMap<String, String> {
        let seen = |(setting, value): (&SettingKey, &Value)| match (setting, value) {
            (SettingKey::Module { .. }, _) => None,
            (SettingKey::File { path }, Value::Text { text }) => Some((path.clone(), text.clone())),
            _ => Some((setting.to_string(), value.to_string())),
        };
        self.values.iter().filter_map(seen).collect()
    }

    fn available(&self) -> Vec<&'static str> {
        let all = ["bbr", "cubic", "dctcp", "reno"];
        all.into_iter().filter(|name| *name != "bbr" || self.values.contains_key(&bbr())).collect()
    }

    fn step(&mut self) -> Result<(), HostError> {
        match &mut self.fuse {
            Some(0) => Err(HostError("killed".to_owned())),
            Some(left) => {
                *left -= 1;
                Ok(())
            }
            None => Ok(()),
        }
    }
}

impl Host for Memory {
    fn context(&mut self) -> Result<HostContext, HostError> {
        self.step()?;
        let words = |text: String| text.split(' ').map(str::to_owned).collect();
        let route = |(setting, value): (&SettingKey, &Value)| match (setting, value) {
            (SettingKey::Route { to }, Value::Route(route)) => {
                Some((to.parse::<Prefix>().unwrap(), route.clone()))
            }
            _ => None,
        };
        Ok(HostContext {
            available: words(self.available().join(" ")),
            allowed: words(self.values[&sysctl(ALLOWED)].to_string()),
            is_initial: true,
            boots: true,
            has_systemd: true,
            routes: self.values.iter().filter_map(route).collect(),
            closed: self.closed.clone(),
            fixed: self.fixed.clone(),
            program: "/usr/bin/uncork".to_owned(),
            state: "/var/lib/uncork".to_owned(),
        })
    }

    fn read(&mut self, setting: &SettingKey) -> Result<Value, HostError> {
        self.step()?;
        Ok(self.values.get(setting).cloned().unwrap_or(Value::Absent))
    }

    fn file(&self, path: &Path) -> io::Result<Vec<u8>> {
        self.files.get(path).cloned().ok_or_else(|| io::ErrorKind::NotFound.into())
    }

    fn may_load(&mut self, module: &str) -> Result<bool, HostError> {
        self.step()?;
        Ok(["sch_fq", "tcp_bbr"].contains(&module))
    }

    fn may_have_qdisc(&mut self, name: &str) -> Result<bool, HostError> {
        Ok(name != "nosuch")
    }

    fn write(&mut self, setting: &SettingKey, from: &Value, to: &Value) -> Result<(), HostError> {
        self.step()?;
        assert_eq!(self.values.get(setting).unwrap_or(&Value::Absent), from, "{setting}");
        if self.broken.contains(setting) {
            return Err(HostError(format!("{setting} is broken")));
        }
        self.set(setting, to.clone());
        Ok(())
    }

    fn load(&mut self) -> Result<Option<Journal>, HostError> {
        self.step()?;
        Ok(self.journal.clone())
    }

    fn store(&mut self, journal: &Journal) -> Result<(), HostError> {
        self.step()?;
        if self.is_full {
            return Err(HostError("no space left".to_owned()));
        }
        let text = serde_json::to_string(journal).unwrap();
        self.journal = Some(serde_json::from_str(&text).unwrap());
        Ok(())
    }

    fn post_guard(&mut self) -> Result<(), HostError> {
        self.step()
    }

    fn guard(&mut self) -> Watchdog {
        Watchdog::Alive
    }

    fn now(&self) -> Now {
        Now { boot: format!("boot {}", self.boots), boot_s: self.clock, unix_s: self.clock }
    }
}
