//! The sysctls of tuned's active profile (tuned.conf(5), tuned-main.conf(5)).

use std::fs;
use std::path::{Path, PathBuf};

use super::boot;
use crate::facts::Setting;

const UNIT: &str = "etc/systemd/system/multi-user.target.wants/tuned.service";
const ACTIVE: &str = "etc/tuned/active_profile";
const MAIN: &str = "etc/tuned/tuned-main.conf";
/// In order of precedence.
const DIRECTORIES: [&str; 4] =
    ["etc/tuned/profiles", "etc/tuned", "usr/lib/tuned/profiles", "usr/lib/tuned"];
/// Profiles include others; a chain that is longer is a circle.
const MAX_DEPTH: usize = 8;

/// tuned, if it starts at boot.
pub(super) struct Tuned {
    /// The files of the active profiles, each after the profiles that it includes.
    files: Vec<PathBuf>,
    /// Whether it applies sysctl.d again after its profile.
    pub(super) reapplies: bool,
}

/// `None` if tuned does not start at boot.
pub(super) fn read(root: &Path) -> Option<Tuned> {
    root.join(UNIT).symlink_metadata().ok()?;
    let active = fs::read_to_string(root.join(ACTIVE)).ok()?;
    let mut files = Vec::new();
    active.split_whitespace().for_each(|name| add(root, name, 0, &mut files));
    let main = fs::read_to_string(root.join(MAIN)).unwrap_or_default();
    let values = main.lines().filter_map(|line| line.split_once('='));
    let of_key = values.rev().find(|(key, _)| key.trim() == "reapply_sysctl");
    let is_off = |value: &str| matches!(value, "0" | "false" | "False" | "no" | "off");
    let reapplies = of_key.is_none_or(|(_, value)| !is_off(value.trim()));
    Some(Tuned { files, reapplies })
}

impl Tuned {
    /// Its settings below `net`, without settings that depend on the value before (`=>`) or on variables.
    pub(super) fn settings(&self, root: &Path) -> Vec<Setting> {
        self.files.iter().flat_map(|file| settings(root, file)).collect()
    }
}

fn add(root: &Path, name: &str, depth: usize, files: &mut Vec<PathBuf>) {
    let places = DIRECTORIES.map(|directory| root.join(directory).join(name).join("tuned.conf"));
    let Some(file) = places.into_iter().find(|path| path.is_file()) else { return };
    let text = fs::read_to_string(&file).unwrap_or_default();
    let included =
        entries(&text).find(|(_, section, key, _)| *section == "main" && *key == "include");
    if depth < MAX_DEPTH
        && let Some((.., names)) = included
    {
        let names = names.split([',', ' ']).filter(|name| !name.is_empty());
        names.for_each(|name| add(root, name, depth + 1, files));
    }
    files.push(file);
}

fn settings(root: &Path, file: &Path) -> Vec<Setting> {
    let text = fs::read_to_string(file).unwrap_or_default();
    let of_sysctl = entries(&text).filter(|(_, section, key, value)| {
        *section == "sysctl"
            && key.starts_with("net.")
            && !value.starts_with(['>', '<'])
            && !value.contains("${")
    });
    of_sysctl
        .map(|(line, _, key, value)| Setting {
            file: boot::shown(root, file),
            line,
            key: key.to_owned(),
            value: value.trim_matches('"').to_owned(),
            exists: boot::exists(root, key),
        })
        .collect()
}

/// Line from 1, section, key and value of each entry.
fn entries(text: &str) -> impl Iterator<Item = (u32, &str, &str, &str)> {
    let mut section = "";
    (1..).zip(text.lines()).filter_map(move |(number, line)| {
        let line = line.trim();
        if let Some(name) = line.strip_prefix('[') {
            section = name.split(']').next().unwrap_or_default();
        }
        let (key, value) = line.split_once('=').filter(|_| !line.starts_with(['#', ';', '[']))?;
        let value = value.split(" #").next().unwrap_or_default();
        Some((number, section, key.trim(), value.trim()))
    })
}
