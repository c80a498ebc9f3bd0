//! The kernel and its modules.

use std::collections::BTreeMap;
use std::fs::{self, File};
use std::io::{self, Read};
use std::net::{Ipv4Addr, TcpListener};
use std::path::Path;

use flate2::read::GzDecoder;
use uncork_diag::Diag;

use super::{copies, modprobe, sockets};
use crate::facts::{Kernel, Module, Namespace};

const LOADED: &str = "/proc/modules";
/// Modules that are always reported, also if absent.
const MODULES: [&str; 4] = ["tcp_bbr", "tcp_cubic", "sch_fq", "sch_fq_codel"];

pub(super) fn kernel(own: &Namespace) -> io::Result<Kernel> {
    let release = fs::read_to_string("/proc/sys/kernel/osrelease")?.trim().to_owned();
    let files = ModuleFiles::read(&Path::new("/lib/modules").join(&release));
    let configuration = configuration(&release);
    let names = MODULES.iter().map(|name| (*name).to_owned()).chain(files.names());
    let modules = names.map(|name| {
        let found = match files.find(&name, |algorithm| own.has(algorithm)) {
            Module::Unknown => configured(&name, configuration.as_deref()),
            found => found,
        };
        (name, found)
    });
    Ok(Kernel {
        modules: modules.collect::<BTreeMap<_, _>>(),
        has_all_modules: files.files.is_some(),
        forbidden_modules: modprobe::forbidden(Path::new("/")),
        compiled_default: configuration.as_deref().and_then(default_in),
        bbr_version: own.has("bbr").then(probe_bbr).flatten(),
        release,
    })
}

/// The availability of a module.
pub(crate) fn module(name: &str) -> Module {
    let read = |file: &str| fs::read_to_string(file).unwrap_or_default();
    let release = read("/proc/sys/kernel/osrelease");
    let available = read("/proc/sys/net/ipv4/tcp_available_congestion_control");
    let has = |algorithm: &str| available.split_ascii_whitespace().any(|it| it == algorithm);
    ModuleFiles::read(&Path::new("/lib/modules").join(release.trim())).find(name, has)
}

struct ModuleFiles {
    loaded: String,
    built_in: Option<String>,
    files: Option<String>,
    /// Whether the kernel can load modules at all (`CONFIG_MODULES`).
    can_load: bool,
}

impl ModuleFiles {
    fn read(directory: &Path) -> Self {
        let read = |name| fs::read_to_string(directory.join(name)).ok();
        Self {
            loaded: fs::read_to_string(LOADED).unwrap_or_default(),
            can_load: Path::new(LOADED).exists(),
            built_in: read("modules.builtin"),
            files: read("modules.dep"),
        }
    }

    /// The modules of algorithms and queue disciplines that there are: a vendor's, too.
    fn names(&self) -> impl Iterator<Item = String> {
        let texts = self.built_in.iter().chain(&self.files);
        let paths = texts.flat_map(|text| text.lines()).filter_map(|line| line.split(':').next());
        let names = paths.filter_map(|path| path.rsplit('/').next()?.split(".ko").next());
        let is_named = |name: &&str| name.starts_with("tcp_") || name.starts_with("sch_");
        names.filter(is_named).map(str::to_owned)
    }

    fn find(&self, name: &str, has: impl Fn(&str) -> bool) -> Module {
        let is_in = |text: &Option<String>| {
            let text = text.as_deref().unwrap_or_default();
            text.lines().any(|line| is_file_of(line.split(':').next().unwrap_or_default(), name))
        };
        if self.loaded.lines().any(|line| line.split(' ').next() == Some(name)) {
            Module::Loaded
        } else if is_in(&self.built_in) {
            Module::BuiltIn
        } else if is_in(&self.files) {
            Module::File
        } else if name.strip_prefix("tcp_").is_some_and(has) {
            Module::BuiltIn
        } else if self.files.is_some() || (!self.can_load && name.starts_with("tcp_")) {
            // All algorithms that are built in are registered.
            Module::Absent
        } else {
            Module::Unknown
        }
    }
}

/// Whether `path` is `…/NAME.ko`, or a compressed one.
fn is_file_of(path: &str, name: &str) -> bool {
    let file = path.rsplit('/').next().unwrap_or_default();
    file.strip_prefix(name).is_some_and(|rest| rest.starts_with(".ko"))
}

/// What the kernel's configuration says of an algorithm's module, where `/lib/modules` cannot be read: whether a module that was
/// built was also installed is not known.
fn configured(module: &str, configuration: Option<&str>) -> Module {
    let (Some(name), Some(configuration)) = (module.strip_prefix("tcp_"), configuration) else {
        return Module::Unknown;
    };
    let option = format!("CONFIG_TCP_CONG_{}=", name.to_uppercase());
    match configuration.lines().find_map(|line| line.strip_prefix(&option)) {
        Some("y") => Module::BuiltIn,
        Some(_) => Module::Unknown,
        None => Module::Absent,
    }
}

/// The kernel's configuration: a distribution's file, or the kernel's own copy (`CONFIG_IKCONFIG_PROC`).
fn configuration(release: &str) -> Option<String> {
    let own_copy = || {
        let mut text = String::new();
        GzDecoder::new(File::open("/proc/config.gz").ok()?).read_to_string(&mut text).ok()?;
        Some(text)
    };
    fs::read_to_string(format!("/boot/config-{release}")).ok().or_else(own_copy)
}

fn default_in(configuration: &str) -> Option<String> {
    let mut lines = configuration.lines();
    let value = lines.find_map(|line| line.strip_prefix("CONFIG_DEFAULT_TCP_CONG="))?;
    Some(value.trim_matches('"').to_owned())
}

/// BBR's version, determined by a connection over loopback.
fn probe_bbr() -> Option<u8> {
    let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).ok()?;
    let client = copies::connection(listener.local_addr().ok()?, Some("bbr"))?;
    let (local, remote) = (client.local_addr().ok()?, client.peer_addr().ok()?);
    let connection = Diag::open().ok()?.find(local, remote).ok()??;
    sockets::version(&connection)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_compiled_default_is_in_the_configuration() {
        let text =
            "# CONFIG_DEFAULT_RENO is not set\nCONFIG_DEFAULT_TCP_CONG=\"bbr\"\nCONFIG_IPV6=y\n";
        assert_eq!(default_in(text).as_deref(), Some("bbr"));
        assert_eq!(default_in("# CONFIG_TCP_CONG_ADVANCED is not set\n"), None);
    }

    /// Where the kernel has its own copy, it is read.
    #[test]
    fn the_kernel_s_own_configuration_is_read() {
        if Path::new("/proc/config.gz").exists() {
            let configuration = configuration("no such release").expect("a configuration");
            assert!(configuration.contains("CONFIG_NET=y"), "{configuration}");
        }
    }

    #[test]
    fn without_lib_modules_the_configuration_distinguishes_built_in_from_absent() {
        let found = |line: &str| configured("tcp_bbr", Some(line));
        assert_eq!(found("CONFIG_TCP_CONG_BBR=y"), Module::BuiltIn);
        assert_eq!(found("CONFIG_TCP_CONG_BBR=m"), Module::Unknown);
        assert_eq!(found("# CONFIG_TCP_CONG_BBR is not set"), Module::Absent);
        assert_eq!(configured("tcp_bbr", None), Module::Unknown);
        assert_eq!(configured("sch_fq", Some("")), Module::Unknown);
    }

    #[test]
    fn modules_of_vendors_are_listed() {
        let files = ModuleFiles {
            loaded: String::new(),
            built_in: Some("kernel/net/ipv4/tcp_cubic.ko\n".to_owned()),
            files: Some(
                "updates/dkms/tcp_brutal.ko.xz: kernel/a.ko\nkernel/net/sched/sch_fq.ko:\n"
                    .to_owned(),
            ),
            can_load: true,
        };
        assert_eq!(files.names().collect::<Vec<_>>(), ["tcp_cubic", "tcp_brutal", "sch_fq"]);
    }

    #[test]
    fn a_module_is_known_by_its_file() {
        assert!(is_file_of("kernel/net/ipv4/tcp_bbr.ko.xz", "tcp_bbr"));
        assert!(is_file_of("kernel/net/ipv4/tcp_bbr.ko", "tcp_bbr"));
        assert!(!is_file_of("kernel/net/ipv4/tcp_bbr3.ko", "tcp_bbr"));
    }
}
