//! Modules that modprobe.d(5) keeps from being loaded: `install tcp_bbr /bin/false`.

use std::collections::BTreeMap;
use std::fs;
use std::path::Path;

use super::boot::shown;

const DIRECTORIES: [&str; 5] = [
    "etc/modprobe.d",
    "run/modprobe.d",
    "usr/local/lib/modprobe.d",
    "usr/lib/modprobe.d",
    "lib/modprobe.d",
];
/// Commands that load nothing.
const NOTHING: [&str; 3] = ["false", "true", ":"];

/// The places of these lines below `root`, by the module of an algorithm or a queue discipline. `blacklist` is not among them: it does
/// not count for a module that is named, as the kernel names it.
pub(super) fn forbidden(root: &Path) -> BTreeMap<String, String> {
    let mut found = BTreeMap::new();
    for directory in DIRECTORIES {
        let Ok(entries) = fs::read_dir(root.join(directory)) else { continue };
        let paths = entries.flatten().map(|entry| entry.path());
        for path in paths.filter(|path| path.extension().is_some_and(|it| it == "conf")) {
            let text = fs::read_to_string(&path).unwrap_or_default();
            for (index, line) in text.lines().enumerate() {
                if let Some(module) = module(line) {
                    let place = format!("{}:{}", shown(root, &path), index + 1);
                    found.entry(module).or_insert(place);
                }
            }
        }
    }
    found
}

/// The module that a line keeps from being loaded.
fn module(line: &str) -> Option<String> {
    let mut words = line.split_ascii_whitespace();
    if words.next() != Some("install") {
        return None;
    }
    // Hyphens and underscores are the same in the names of modules.
    let module = words.next()?.replace('-', "_");
    let is_nothing = NOTHING.contains(&words.next()?.rsplit('/').next()?);
    let is_ours = module.starts_with("tcp_") || module.starts_with("sch_");
    (is_nothing && is_ours).then_some(module)
}

#[cfg(test)]
mod tests {
    use uncork_testkit::Scratch;

    use super::*;

    #[test]
    fn a_command_that_does_nothing_forbids_a_module() {
        let root = Scratch::new("modprobe");
        let text = "# install tcp_vegas /bin/false\ninstall tcp-bbr /bin/false\nblacklist tcp_cubic\n\
                    install tcp_htcp /sbin/modprobe --ignore-install tcp_htcp\ninstall dccp /bin/true\n";
        root.write("etc/modprobe.d/cis.conf", text);
        root.write("usr/lib/modprobe.d/fq.conf", "install sch_fq :\n");
        root.write("etc/modprobe.d/old.bak", "install tcp_reno /bin/false\n");
        let found: Vec<_> = forbidden(&root.path("")).into_iter().collect();
        let expected = [
            ("sch_fq", "/usr/lib/modprobe.d/fq.conf:1"),
            ("tcp_bbr", "/etc/modprobe.d/cis.conf:2"),
        ];
        assert_eq!(found, expected.map(|(module, place)| (module.to_owned(), place.to_owned())));
    }
}
