//! The kernel's controllers, and settings of a namespace.

use std::fs;
use std::io;

use uncork_cc::{Algorithm, CcSpec};

use crate::error::KernelTcpError;

const AVAILABLE: &str = "/proc/sys/net/ipv4/tcp_available_congestion_control";

/// Settings of each namespace: buffers that only limit if a scenario asks for it, and no state
/// shared between connections.
const SETTINGS: [(&str, &str); 5] = [
    ("/proc/sys/net/ipv4/tcp_wmem", "4096 131072 268435456"),
    ("/proc/sys/net/ipv4/tcp_rmem", "4096 131072 268435456"),
    ("/proc/sys/net/ipv4/tcp_no_metrics_save", "1"),
    ("/proc/sys/net/ipv4/tcp_no_ssthresh_metrics_save", "1"),
    ("/proc/sys/net/ipv4/tcp_slow_start_after_idle", "0"),
];

/// The controllers of the kernel's connections.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Controllers {
    /// The kernel's own: Reno, CUBIC, and BBR, which is version 1.
    Kernel,
    /// This library's, registered by `uncork kernel load`.
    Library,
}

impl Controllers {
    /// The engine's name in flow records.
    pub(crate) const fn engine(self) -> &'static str {
        match self {
            Self::Kernel => "netns",
            Self::Library => "bpf",
        }
    }

    /// The kernel's name of `cc`, if there can be one.
    fn name(self, cc: CcSpec) -> Option<String> {
        match (self, cc.algorithm()) {
            (Self::Kernel, Algorithm::Bbr1) => Some("bbr".to_owned()),
            (Self::Kernel, own @ (Algorithm::Reno | Algorithm::Cubic)) => {
                Some(own.name().to_owned())
            }
            (Self::Library, own) if cc.chosen().next().is_none() && own != Algorithm::Prague => {
                Some(format!("uncork_{}", own.name()))
            }
            _ => None,
        }
    }

    /// The kernel's name of `cc`, if available.
    pub(crate) fn find(self, cc: CcSpec, available: &str) -> Result<String, KernelTcpError> {
        let name = self.name(cc);
        let known =
            name.as_ref().filter(|name| available.split_whitespace().any(|one| one == **name));
        known.cloned().ok_or_else(|| {
            let hint = match (self, &name) {
                (Self::Kernel, Some(name)) => format!("load it with `modprobe tcp_{name}`"),
                (Self::Kernel, None) => "its own are reno, cubic and bbr1".to_owned(),
                (Self::Library, Some(name)) => format!("load it with `uncork kernel load {name}`"),
                (Self::Library, None) if cc.chosen().next().is_some() => {
                    "there it has no options".to_owned()
                }
                (Self::Library, None) => {
                    "this engine does not run it; choose the engine `sim`".to_owned()
                }
            };
            let wanted = match self {
                Self::Kernel => cc.to_string(),
                Self::Library => name.unwrap_or_else(|| cc.to_string()),
            };
            KernelTcpError::Controller(format!(
                "this kernel has no {wanted}: it has {}; {hint}",
                available.split_whitespace().collect::<Vec<_>>().join(", ")
            ))
        })
    }
}

/// The controllers available to the calling thread's namespace.
pub(crate) fn available() -> io::Result<String> {
    fs::read_to_string(AVAILABLE)
}

/// Enables ECN (RFC 3168) for outgoing connections of the calling thread's namespace. Kernels
/// accept ECN by default for incoming ones.
pub(crate) fn ask_for_ecn() -> io::Result<()> {
    fs::write("/proc/sys/net/ipv4/tcp_ecn", "1")
}

/// Applies the settings to the calling thread's namespace.
pub(crate) fn settle() -> io::Result<()> {
    SETTINGS.iter().try_for_each(|(path, value)| match fs::write(path, value) {
        // Some kernels lack some of them.
        Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(()),
        done => done,
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use uncork_testkit::assert_message;

    fn named(controllers: Controllers, cc: &str) -> Result<String, String> {
        let cc = cc.parse().expect("a controller");
        controllers.find(cc, "reno bbr uncork_bbr3\n").map_err(|error| error.to_string())
    }

    #[test]
    fn controllers_have_their_kernel_names() {
        let named = |cc| named(Controllers::Kernel, cc);
        assert_eq!(named("bbr1"), Ok("bbr".into()));
        assert_eq!(named("reno"), Ok("reno".into()));
        for cc in ["cubic", "bbr3"] {
            assert_message!(cc, named(cc).expect_err("it is not there"));
        }
    }

    #[test]
    fn the_librarys_controllers_have_names_of_their_own() {
        let named = |cc| named(Controllers::Library, cc);
        assert_eq!(named("bbr3"), Ok("uncork_bbr3".into()));
        let missing = named("reno").expect_err("it is not loaded");
        assert!(missing.ends_with("`uncork kernel load uncork_reno`"), "{missing}");
        let option = named("bbr3:loss_floor").expect_err("no options there");
        assert!(option.starts_with("this kernel has no bbr3:loss_floor"), "{option}");
    }
}
