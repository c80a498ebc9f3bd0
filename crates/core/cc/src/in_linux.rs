//! Names that people write (`BBR`, `bbr1`, `bbr3`), and the names of these controllers in Linux.

use core::fmt;

use crate::spec::Algorithm;

/// Controllers of mainline Linux: each is built in, or the module `tcp_NAME` (net/ipv4/Makefile).
const MAINLINE: [&str; 17] = [
    "bbr",
    "bic",
    "cdg",
    "cubic",
    "dctcp",
    "highspeed",
    "htcp",
    "hybla",
    "illinois",
    "lp",
    "nv",
    "reno",
    "scalable",
    "vegas",
    "veno",
    "westwood",
    "yeah",
];

/// A controller of a Linux host, by the name that its sockets choose.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum InLinux {
    /// A controller of mainline Linux: `bbr` is BBR version 1.
    Mainline(&'static str),
    /// A controller of this crate, which `uncork kernel load` registers: `uncork_bbr3`.
    Uncork(&'static str),
    /// The same with Careful Resume, which `uncork kernel load --resume` registers next to it: `uncork_bbr3_r`.
    Resuming {
        /// The name that sockets choose.
        name: &'static str,
        /// The name without Careful Resume.
        plain: &'static str,
    },
}

impl InLinux {
    /// The controller that `written` names on a Linux host; `None` if neither Linux nor this crate has one of that name.
    /// Upper and lower case are equal. `bbr1` is Linux's `bbr`; `bbr2` and `bbr3` are not part of Linux, but of this crate.
    pub fn named(written: &str) -> Option<Self> {
        let is = |name: &&&str| name.eq_ignore_ascii_case(written);
        if let Some(name) = MAINLINE.iter().find(is) {
            return Some(Self::Mainline(name));
        }
        let own = Algorithm::ALL.map(|algorithm| (algorithm, Self::registered(algorithm)));
        if let Some((_, name)) = own.iter().find(|(_, name)| is(&name)) {
            return Some(Self::Uncork(name));
        }
        if let Some(own) = Algorithm::ALL.into_iter().find(|it| is(&&Self::resuming(*it))) {
            let (name, plain) = (Self::resuming(own), Self::registered(own));
            return Some(Self::Resuming { name, plain });
        }
        let version = own.iter().find(|(algorithm, _)| is(&&algorithm.name()))?;
        Some(match version {
            (Algorithm::Bbr1, _) => Self::Mainline("bbr"),
            (_, name) => Self::Uncork(name),
        })
    }

    /// The name by which `uncork kernel load` registers an algorithm.
    const fn registered(algorithm: Algorithm) -> &'static str {
        match algorithm {
            Algorithm::Reno => "uncork_reno",
            Algorithm::Cubic => "uncork_cubic",
            Algorithm::Bbr1 => "uncork_bbr1",
            Algorithm::Bbr2 => "uncork_bbr2",
            Algorithm::Bbr3 => "uncork_bbr3",
            Algorithm::Prague => "uncork_prague",
        }
    }

    /// The name by which `uncork kernel load --resume` registers an algorithm with Careful Resume.
    const fn resuming(algorithm: Algorithm) -> &'static str {
        match algorithm {
            Algorithm::Reno => "uncork_reno_r",
            Algorithm::Cubic => "uncork_cubic_r",
            Algorithm::Bbr1 => "uncork_bbr1_r",
            Algorithm::Bbr2 => "uncork_bbr2_r",
            Algorithm::Bbr3 => "uncork_bbr3_r",
            Algorithm::Prague => "uncork_prague_r",
        }
    }

    /// The name that sockets choose for the controller `name` with Careful Resume; `None` if it has none.
    pub fn with_resume(name: &str) -> Option<&'static str> {
        let mut all = Algorithm::ALL.into_iter();
        all.find(|algorithm| Self::registered(*algorithm) == name).map(Self::resuming)
    }

    /// The name that sockets choose for the controller `name` without Careful Resume.
    pub fn without_resume(name: &str) -> &str {
        match Self::named(name) {
            Some(Self::Resuming { name: own, plain }) if own == name => plain,
            _ => name,
        }
    }

    /// The name that sockets choose.
    pub const fn name(self) -> &'static str {
        match self {
            Self::Mainline(name) | Self::Uncork(name) | Self::Resuming { name, .. } => name,
        }
    }
}

/// Whether `uncork kernel load` registers controllers of this name, in this version or in another one.
pub fn is_kernel_controller(name: &str) -> bool {
    name.starts_with("uncork_")
}

/// The command that makes a controller available on a host.
impl fmt::Display for InLinux {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Mainline(name) => write!(f, "modprobe tcp_{name}"),
            Self::Uncork(name) => write!(f, "uncork kernel load {name}"),
            Self::Resuming { plain, .. } => write!(f, "uncork kernel load --resume {plain}"),
        }
    }
}

/// The remedy for a controller that a host does not have, as half a sentence.
#[derive(Clone, Copy, Debug)]
pub struct Missing<'a>(
    /// The name as it was written.
    pub &'a str,
);

impl fmt::Display for Missing<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let written = self.0;
        match InLinux::named(written) {
            Some(found) if found.name() == written => write!(f, "load it (`{found}`)"),
            Some(InLinux::Mainline(name)) => write!(f, "Linux calls it `{name}`"),
            Some(found @ (InLinux::Uncork(name) | InLinux::Resuming { name, .. })) => {
                write!(
                    f,
                    "{written} is not part of Linux: load `{name}` (`{found}`) and write that name"
                )
            }
            None => write!(
                f,
                "it is not a controller of Linux: check the name, or load the module that has it"
            ),
        }
    }
}

#[cfg(test)]
mod tests {
    extern crate std;
    use std::string::ToString;

    use super::*;

    #[test]
    fn what_people_write_has_one_name_in_linux() {
        for (written, name) in [
            ("bbr", "bbr"),
            ("BBR", "bbr"),
            ("bbr1", "bbr"),
            ("bbr2", "uncork_bbr2"),
            ("bbr3", "uncork_bbr3"),
            ("BBR3", "uncork_bbr3"),
            ("uncork_bbr1", "uncork_bbr1"),
            ("prague", "uncork_prague"),
            ("Uncork_Prague_R", "uncork_prague_r"),
            ("Uncork_Cubic", "uncork_cubic"),
            ("cubic", "cubic"),
            ("Reno", "reno"),
            ("vegas", "vegas"),
        ] {
            assert_eq!(InLinux::named(written).map(InLinux::name), Some(name), "{written}");
        }
        for unknown in ["", "vegas2", "bbr4", "tcp_bbr", "bbr # faster"] {
            assert_eq!(InLinux::named(unknown), None, "{unknown}");
        }
    }

    #[test]
    fn no_remedy_names_a_module_that_linux_does_not_have() {
        for (written, remedy) in [
            ("vegas", "load it (`modprobe tcp_vegas`)"),
            ("BBR", "Linux calls it `bbr`"),
            ("bbr1", "Linux calls it `bbr`"),
            (
                "bbr3",
                "bbr3 is not part of Linux: load `uncork_bbr3` (`uncork kernel load uncork_bbr3`) and write that name",
            ),
            ("uncork_bbr3", "load it (`uncork kernel load uncork_bbr3`)"),
            ("uncork_prague", "load it (`uncork kernel load uncork_prague`)"),
            ("uncork_cubic_r", "load it (`uncork kernel load --resume uncork_cubic`)"),
            (
                "vegas2",
                "it is not a controller of Linux: check the name, or load the module that has it",
            ),
        ] {
            assert_eq!(Missing(written).to_string(), remedy);
        }
    }
}
