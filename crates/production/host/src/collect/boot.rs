//! What the next boot sets: the kernel's command line, sysctl.d(5), `/etc/sysctl.conf` and tuned.

use std::collections::BTreeMap;
use std::ffi::OsString;
use std::fs;
use std::path::{Path, PathBuf};

use super::tuned;
use crate::facts::Setting;

/// In order of precedence: a file replaces files of the same name in later directories.
const DIRECTORIES: [&str; 5] =
    ["etc/sysctl.d", "run/sysctl.d", "usr/local/lib/sysctl.d", "usr/lib/sysctl.d", "lib/sysctl.d"];
/// procps reads this file last. systemd reads it only through a link in `/etc/sysctl.d`, which Debian 13 no longer has.
const LAST: &str = "etc/sysctl.conf";
/// There if systemd is the init (sd_booted(3)).
const SYSTEMD: &str = "run/systemd/system";
const KERNEL_UNIT: &str = "etc/systemd/system/multi-user.target.wants/uncork-kernel.service";

/// What the next boot sets.
pub(super) struct Boot {
    /// Sysctls below `net`, in the order in which they are applied.
    pub(super) settings: Vec<Setting>,
    /// Those of `/etc/sysctl.conf`, if nothing reads it.
    pub(super) unread: Vec<Setting>,
    pub(super) has_systemd: bool,
    /// Whether `uncork-kernel.service` is enabled.
    pub(super) has_kernel_unit: bool,
}

/// Reads the files below `root`.
pub(super) fn read(root: &Path) -> Boot {
    let read = |path: &Path| {
        let text = fs::read_to_string(path).unwrap_or_default();
        parse(&shown(root, path), &text, |key| exists(root, key))
    };
    let (paths, is_linked) = files(root);
    let mut settings: Vec<Setting> = paths.iter().flat_map(|path| read(path)).collect();
    let has_systemd = root.join(SYSTEMD).is_dir();
    let tuned = tuned::read(root);
    let last = read(&root.join(LAST));
    // tuned reads it, too, where it applies sysctl.d again after its profile.
    let is_read = is_linked || !has_systemd || tuned.as_ref().is_some_and(|it| it.reapplies);
    let (last, unread) = match (is_read, is_linked) {
        (true, true) => (Vec::new(), Vec::new()),
        (true, false) => (last, Vec::new()),
        (false, _) => (Vec::new(), last),
    };
    settings.extend(last);
    if let Some(tuned) = tuned {
        settings = with_tuned(settings, tuned.settings(root), tuned.reapplies);
    }
    let command_line = fs::read_to_string(root.join("proc/cmdline")).unwrap_or_default();
    settings.splice(..0, of_command_line(&command_line, |key| exists(root, key)));
    let has_kernel_unit = root.join(KERNEL_UNIT).symlink_metadata().is_ok();
    Boot { settings, unread, has_systemd, has_kernel_unit }
}

/// The files of sysctl.d, in the order in which they are read, and whether one is a link to `/etc/sysctl.conf`.
fn files(root: &Path) -> (Vec<PathBuf>, bool) {
    let mut files: BTreeMap<OsString, PathBuf> = BTreeMap::new();
    for directory in DIRECTORIES {
        let Ok(entries) = fs::read_dir(root.join(directory)) else { continue };
        for path in entries.flatten().map(|entry| entry.path()) {
            if path.extension().is_some_and(|extension| extension == "conf")
                && let Some(name) = path.file_name()
            {
                files.entry(name.to_owned()).or_insert_with(|| path.clone());
            }
        }
    }
    let paths: Vec<PathBuf> = files.into_values().collect();
    let last = fs::canonicalize(root.join(LAST)).ok();
    let is_linked = last.is_some() && paths.iter().any(|path| fs::canonicalize(path).ok() == last);
    (paths, is_linked)
}

/// tuned starts after sysctl.d was read, and by default applies `/run/sysctl.d`, `/etc/sysctl.d` and `/etc/sysctl.conf` again
/// (tuned/plugins/plugin_sysctl.py, `_apply_system_sysctl`): these win over its profile, and the profile over `/usr/lib`.
fn with_tuned(settings: Vec<Setting>, tuned: Vec<Setting>, reapplies: bool) -> Vec<Setting> {
    let is_applied_again = |it: &Setting| {
        let is_admins = it.file.starts_with("/etc/") || it.file.starts_with("/run/");
        reapplies && is_admins && tuned.iter().any(|of_tuned| of_tuned.key == it.key)
    };
    let (again, mut first): (Vec<_>, Vec<_>) = settings.into_iter().partition(is_applied_again);
    first.extend(tuned);
    first.extend(again);
    first
}

/// `sysctl.KEY=VALUE` on the kernel's command line. The kernel applies them before it starts init
/// (Documentation/admin-guide/kernel-parameters.txt).
fn of_command_line(line: &str, exists: impl Fn(&str) -> bool) -> Vec<Setting> {
    let mut is_quoted = false;
    let words = line.trim().split(|character: char| {
        is_quoted ^= character == '"';
        character == ' ' && !is_quoted
    });
    let settings = words.filter_map(|word| {
        let word = word.replace('"', "");
        parse("/proc/cmdline", word.strip_prefix("sysctl.")?, &exists).pop()
    });
    settings.collect()
}

pub(super) fn exists(root: &Path, key: &str) -> bool {
    root.join("proc/sys").join(key.replace('.', "/")).exists()
}

/// The path as it is without `root`.
pub(super) fn shown(root: &Path, path: &Path) -> String {
    let path = path.strip_prefix(root).unwrap_or(path);
    format!("/{}", path.display())
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
    use uncork_testkit::Scratch;

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

    #[test]
    fn the_command_line_is_read_with_quotes_and_slashes() {
        let line = "quiet sysctl.net.ipv4.tcp_congestion_control=bbr sysctl.vm.swappiness=1 \
                    sysctl.net/ipv4/tcp_wmem=\"4096 16384 8388608\" ro\n";
        let found = of_command_line(line, |_| true);
        let found: Vec<_> = found.iter().map(|it| (&*it.key, &*it.value)).collect();
        let expected = [
            ("net.ipv4.tcp_congestion_control", "bbr"),
            ("net.ipv4.tcp_wmem", "4096 16384 8388608"),
        ];
        assert_eq!(found, expected);
    }

    fn line(cc: &str) -> String {
        format!("net.ipv4.tcp_congestion_control = {cc}\n")
    }

    /// What each file of a root sets, in the order of the boot; and what nothing reads.
    fn order(root: &Scratch) -> (Vec<String>, Vec<String>) {
        let boot = read(&root.path(""));
        let values = |settings: &[Setting]| settings.iter().map(|it| it.value.clone()).collect();
        (values(&boot.settings), values(&boot.unread))
    }

    #[test]
    fn systemd_reads_sysctl_conf_through_a_link_alone() {
        let root = Scratch::new("boot");
        root.write("etc/sysctl.conf", line("cubic"));
        root.write("etc/sysctl.d/50-a.conf", line("bbr"));
        assert_eq!(order(&root), (vec!["bbr".into(), "cubic".into()], vec![]), "no systemd");
        root.write("run/systemd/system/none", "");
        assert_eq!(order(&root), (vec!["bbr".into()], vec!["cubic".into()]));
        std::os::unix::fs::symlink("../sysctl.conf", root.path("etc/sysctl.d/99-sysctl.conf"))
            .expect("a link");
        assert_eq!(order(&root), (vec!["bbr".into(), "cubic".into()], vec![]), "a link");
    }

    #[test]
    fn tuned_comes_after_the_vendor_and_before_the_administrator() {
        let root = Scratch::new("boot");
        root.write("run/systemd/system/none", "");
        root.write("etc/systemd/system/multi-user.target.wants/tuned.service", "");
        root.write("etc/tuned/active_profile", "mine\n");
        root.write(
            "etc/tuned/mine/tuned.conf",
            "[main]\ninclude = base\n[sysctl]\nnet.core.a = 1\n",
        );
        let base = "[sysctl]\n# no\nnet.ipv4.tcp_congestion_control=dctcp\nnet.core.b=>9\n";
        root.write("usr/lib/tuned/profiles/base/tuned.conf", base);
        root.write("usr/lib/sysctl.d/99-vendor.conf", line("reno"));
        assert_eq!(order(&root).0, ["reno", "dctcp", "1"]);
        root.write("etc/sysctl.d/10-mine.conf", line("bbr"));
        assert_eq!(order(&root).0, ["reno", "dctcp", "1", "bbr"]);
        root.write("etc/tuned/tuned-main.conf", "reapply_sysctl = 0\n");
        assert_eq!(order(&root).0, ["bbr", "reno", "dctcp", "1"]);
    }
}
