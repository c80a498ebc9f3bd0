//! Sysctls of a network namespace.

use std::fs::{self, File};
use std::io;
use std::os::fd::AsFd;
use std::path::{Path, PathBuf};
use std::thread;

use rustix::thread::{LinkNameSpaceType, move_into_link_name_space};
use uncork_cc::Missing;

use super::super::host::HostError;
use super::super::setting::{ALLOWED, DEFAULT, Value};
use super::{module, remedy};

const AVAILABLE: &str = "net.ipv4.tcp_available_congestion_control";

pub(super) fn file(key: &str) -> PathBuf {
    Path::new("/proc/sys").join(key.replace('.', "/"))
}

/// The value, words separated by single spaces. The kernel's order of algorithms means nothing.
pub(super) fn read(key: &str, namespace: Option<&str>) -> Result<Value, HostError> {
    let path = file(key);
    let text = match within(namespace, move || fs::read_to_string(path)) {
        Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(Value::Absent),
        read => read.map_err(|error| HostError(format!("cannot read {key}: {error}")))?,
    };
    let mut words: Vec<&str> = text.split_ascii_whitespace().collect();
    if key == ALLOWED {
        words.sort_unstable();
    }
    Ok(Value::text(words.join(" ")))
}

/// Whether the kernel has an algorithm now.
pub(super) fn has_algorithm(name: &str) -> bool {
    read(AVAILABLE, None).is_ok_and(|names| {
        names.as_text().unwrap_or_default().split(' ').any(|available| available == name)
    })
}

pub(super) fn write(key: &str, namespace: Option<&str>, text: &str) -> Result<(), HostError> {
    if key == ALLOWED {
        // The kernel does not load the algorithms of such a list. The error below names those it lacks.
        text.split(' ').for_each(|name| drop(module::load_algorithm(name)));
    }
    let path = file(key);
    let value = text.to_owned();
    within(namespace, move || fs::write(path, value)).map_err(|error| {
        let algorithm = [DEFAULT, ALLOWED].contains(&key);
        let reason = match error.kind() {
            io::ErrorKind::NotFound if algorithm => {
                let available = fs::read_to_string(file(AVAILABLE)).unwrap_or_default();
                let is_missing = |name: &&str| available.split_whitespace().all(|it| it != *name);
                let missing = text.split(' ').filter(is_missing);
                let missing: Vec<_> =
                    missing.map(|name| format!("no {name} here: {}", Missing(name))).collect();
                missing.join("; ")
            }
            io::ErrorKind::PermissionDenied if algorithm => format!(
                "{error}: it needs CAP_NET_ADMIN, and outside of the initial namespace the algorithm must be \
                 in {ALLOWED} of the host"
            ),
            _ => remedy(&error),
        };
        HostError(format!("cannot set {key} to {text}: {reason}"))
    })
}

/// Does `work` in a namespace of `ip netns`, on a thread of its own. `/proc/sys/net` is the thread's.
fn within<T: Send + 'static>(
    namespace: Option<&str>,
    work: impl FnOnce() -> io::Result<T> + Send + 'static,
) -> io::Result<T> {
    let Some(name) = namespace else { return work() };
    let file = File::open(Path::new("/run/netns").join(name))?;
    let enter = move || {
        move_into_link_name_space(file.as_fd(), Some(LinkNameSpaceType::Network)).map_err(
            |error| {
                let error = io::Error::from(error);
                io::Error::new(error.kind(), format!("{error}: entering it needs CAP_SYS_ADMIN"))
            },
        )?;
        work()
    };
    thread::spawn(enter).join().unwrap_or_else(|_| Err(io::Error::other("the thread panicked")))
}
