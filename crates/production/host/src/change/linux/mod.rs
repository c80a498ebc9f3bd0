//! The live host.

mod files;
mod guard;
mod module;
mod namespace;
mod others;
mod qdisc;
mod routes;
mod state;
mod sysctl;

use std::collections::HashMap;
use std::io;
use std::path::{Path, PathBuf};

use rustix::time::{ClockId, clock_gettime};
use uncork_policy::Release;
use uncork_private_files::releases::{ReleaseError, Releases};

use super::host::{Host, HostContext, HostError, Now, Watchdog};
use super::journal::Journal;
use super::setting::{SettingKey, Value};
use crate::collect::is_initial;
use crate::netlink::Netlink;
pub use guard::watch;
pub use others::OtherJournal;
use routes::MainTable;
pub use state::StateDirectory;

/// The caller's network namespace, and the files of the host.
#[derive(Debug)]
pub struct LiveHost {
    state: StateDirectory,
    /// Where the paths of files begin: `/`, or another directory in tests.
    root: PathBuf,
    /// Why the journal on disk is older than it should be.
    unwritten: Option<HostError>,
    /// The journal that was loaded last, for the guard: the disk may fail later.
    remembered: Option<Journal>,
}

impl LiveHost {
    /// A host with its journal in `state` and its files below `root`.
    pub fn new(state: StateDirectory, root: &Path) -> Self {
        Self { state, root: root.to_owned(), unwritten: None, remembered: None }
    }
}

impl Host for LiveHost {
    fn context(&mut self) -> Result<HostContext, HostError> {
        let words = |name: &str| -> Result<Vec<String>, HostError> {
            let text = sysctl::read(&format!("net.ipv4.tcp_{name}_congestion_control"), None)?;
            let words = text.as_text().unwrap_or_default().split(' ');
            Ok(words.map(str::to_owned).collect())
        };
        let MainTable { routes, closed, fixed } =
            routes::main_table().map_err(routes::unreadable)?;
        let program = std::env::current_exe();
        let program = program.map_err(|error| HostError(format!("this program: {error}")))?;
        Ok(HostContext {
            available: words("available")?,
            allowed: words("allowed")?,
            is_initial: is_initial(),
            boots: namespace::boots(),
            has_systemd: guard::has_systemd(),
            routes,
            closed,
            fixed,
            program: program.display().to_string(),
            state: self.state.path().display().to_string(),
        })
    }

    fn read(&mut self, setting: &SettingKey) -> Result<Value, HostError> {
        let read = match setting {
            SettingKey::Module { name } => Ok(module::read(name)),
            SettingKey::Sysctl { key, namespace } => {
                return sysctl::read(key, namespace.as_deref());
            }
            SettingKey::Qdisc { interface } => qdisc::read(interface),
            SettingKey::Route { to } => routes::read(to),
            SettingKey::File { path } => files::read(&self.below(path)),
            SettingKey::Link { path } => files::read_link(&self.below(path)),
        };
        read.map_err(|error| HostError(format!("cannot read {setting}: {error}")))
    }

    /// The routes are read at once.
    fn read_all(&mut self, settings: &[&SettingKey]) -> Result<Vec<Value>, HostError> {
        let has_routes = settings.iter().any(|setting| matches!(setting, SettingKey::Route { .. }));
        let routes = if has_routes {
            routes::by_name(routes::main_table().map_err(routes::unreadable)?.routes)
        } else {
            HashMap::new()
        };
        let mut read = |setting: &&SettingKey| match setting {
            SettingKey::Route { to } => {
                Ok(routes.get(to).cloned().map_or(Value::Absent, Value::Route))
            }
            setting => self.read(setting),
        };
        settings.iter().map(&mut read).collect()
    }

    fn file(&self, path: &Path) -> io::Result<Vec<u8>> {
        std::fs::read(path)
    }

    fn may_load(&mut self, module: &str) -> Result<bool, HostError> {
        Ok(module::may_load(module))
    }

    fn may_have_qdisc(&mut self, name: &str) -> Result<bool, HostError> {
        Ok(module::may_have_qdisc(name))
    }

    fn write(&mut self, setting: &SettingKey, from: &Value, to: &Value) -> Result<(), HostError> {
        let written = match (setting, to) {
            (SettingKey::Module { name }, Value::Text { .. }) => return module::load(name),
            (SettingKey::Sysctl { key, namespace }, Value::Text { text }) => {
                return sysctl::write(key, namespace.as_deref(), text);
            }
            (SettingKey::Qdisc { interface }, Value::Qdisc(to)) => qdisc::write(interface, to),
            (SettingKey::Route { .. }, _) => return routes::write(setting, from, to),
            (SettingKey::File { path }, to) => files::write(&self.below(path), to),
            (SettingKey::Link { path }, to) => files::write_link(&self.below(path), to),
            _ => Err(io::Error::other("invalid value")),
        };
        written.map_err(|error| HostError(format!("cannot change {setting}: {}", remedy(&error))))
    }

    fn load(&mut self) -> Result<Option<Journal>, HostError> {
        match self.state.load() {
            Ok(None) | Err(_) if self.remembered.is_some() => Ok(self.remembered.clone()),
            loaded => loaded,
        }
    }

    fn store(&mut self, journal: &Journal) -> Result<(), HostError> {
        self.state.store(journal)?;
        self.unwritten = None;
        Ok(())
    }

    fn note(&mut self, journal: &Journal) -> bool {
        self.unwritten = self.state.store(journal).err();
        self.unwritten.is_none()
    }

    fn check_reserved(&mut self) -> Result<(), HostError> {
        self.state.check_reserved()
    }

    fn check_release(&mut self, release: &Release) -> Result<(), ReleaseError> {
        self.releases().check(release)
    }

    fn accept_release(&mut self, release: &Release) -> Result<(), String> {
        self.releases().accept(release)
    }

    fn post_guard(&mut self) -> Result<(), HostError> {
        guard::post(&self.state, &self.root)
    }

    fn guard(&mut self) -> Watchdog {
        guard::find(&self.state)
    }

    fn now(&self) -> Now {
        let unix = std::time::SystemTime::UNIX_EPOCH.elapsed().unwrap_or_default();
        let boot_s = clock_gettime(ClockId::Boottime).tv_sec;
        Now { boot: namespace::boot(), boot_s: boot_s.unsigned_abs(), unix_s: unix.as_secs() }
    }
}

impl LiveHost {
    /// Why the journal on disk does not say what was done, if it could not be written.
    pub fn unwritten(&self) -> Option<&HostError> {
        self.unwritten.as_ref()
    }

    /// From now on, the journal as it is now counts where it cannot be read any more.
    fn remember(&mut self) {
        if let Ok(Some(journal)) = self.state.load() {
            self.remembered = Some(journal);
        }
    }

    /// Next to the journal: a namespace does not change what the host has accepted.
    fn releases(&self) -> Releases {
        Releases::in_directory(&self.state.path().join("accepted"))
    }

    fn below(&self, path: &str) -> PathBuf {
        self.root.join(path.trim_start_matches('/'))
    }
}

/// An error of the kernel with its remedy.
fn remedy(error: &io::Error) -> String {
    match error.kind() {
        io::ErrorKind::PermissionDenied => format!("{error}: it needs CAP_NET_ADMIN"),
        io::ErrorKind::ReadOnlyFilesystem => {
            format!(
                "{error}: a container or ProtectKernelTunables= forbids it; run this on the host"
            )
        }
        _ => error.to_string(),
    }
}

fn netlink<T>(work: impl FnOnce(&mut Netlink) -> io::Result<T>) -> io::Result<T> {
    work(&mut Netlink::open()?)
}
