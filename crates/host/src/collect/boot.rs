//! The sysctls set at the next boot (sysctl.d(5)).

use std::collections::BTreeMap;
use std::fs;
use std::path::{Path, PathBuf};

use crate::facts::Setting;

/// In order of precedence: a file replaces files of the same name in later directories.
const DIRECTORIES: [&str; 5] = [
    "/etc/sysctl.d",
    "/run/sysctl.d",
    "/usr/local/lib/sysctl.d",
    "/usr/lib/sysctl.d",
    "/lib/sysctl.d",
];
/// procps reads this file last. systemd reads it only through a link in `/etc/sysctl.d`.
const LAST: &str = "/etc/sysctl.conf";

/// The settings below `net`, in the order in which they are applied.
pub(super) fn sysctls() -> Vec<Setting> {
    let mut files: BTreeMap<std::ffi::OsString, PathBuf> = BTreeMap::new();
    for directory in DIRECTORIES {
        let Ok(entries) = fs::read_dir(directory) else { continue };
        for path in entries.flatten().map(|entry| entry.path()) {
            if path.extension().is_some_and(|extension| extension == "conf")
                && let Some(name) = path.file_name()
            {
                files.entry(name.to_owned()).or_insert_with(|| path.clone());
            }
        }
    }
    let mut paths: Vec<PathBuf> = files.into_values().collect();
    let is_linked =
        |path: &PathBuf| fs::canonicalize(path).is_ok_and(|real| real == Path::new(LAST));
    if !paths.iter().any(is_linked) {
        paths.push(LAST.into());
    }
    let exists = |key: &str| Path::new("/proc/sys").join(key.replace('.', "/")).exists();
    let read = |path: PathBuf| {
        let text = fs::read_to_string(&path).unwrap_or_default();
        parse(&path.display().to_string(), &text, exists)
    };
    paths.into_iter().flat_map(read).collect()
}

/// The settings below `net` in a file.
fn parse(file: &str, text: &str, exists: impl Fn(&str) -> bool) -> Vec<Setting> {
    let setting = |(index, line): (usize, &str)| {
        let line = line.trim();
        if line.starts_with(['#', ';']) {
            return None;
        }
        let (key, value) = line.split_once('=')?;
        // A leading hyphen means that errors are ignored. Slashes are separators like dots if one
        // comes first.
        let key = key.trim().trim_start_matches('-');
        let slashed = key.find('/').is_some_and(|at| key.find('.').is_none_or(|dot| at < dot));
        let key = if slashed { key.replace('/', ".") } else { key.to_owned() };
        key.starts_with("net.").then(|| Setting {
            file: file.to_owned(),
            line: u32::try_from(index + 1).unwrap_or(u32::MAX),
            exists: key.contains('*') || exists(&key),
            key,
            value: value.trim().to_owned(),
        })
    };
    text.lines().enumerate().filter_map(setting).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn reads_the_lines_that_sysctl_reads() {
        let text = "# a comment\n; another\nnet.ipv4.tcp_congestion_control = bbr\n\n\
                    -net/core/default_qdisc=fq\nvm.swappiness=1\nno setting\n";
        let found = parse("10-a.conf", text, |key| key != "net.core.default_qdisc");
        let found: Vec<_> =
            found.iter().map(|it| (it.line, &*it.key, &*it.value, it.exists)).collect();
        let expected = [
            (3, "net.ipv4.tcp_congestion_control", "bbr", true),
            (5, "net.core.default_qdisc", "fq", false),
        ];
        assert_eq!(found, expected);
    }
}
