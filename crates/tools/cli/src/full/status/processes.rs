//! Running commands of uncork: servers, watchers, tests, recorders, guards. They are known by the file that they run, not by what
//! they call themselves.

use std::fs;
use std::path::Path;

use serde::Serialize;

/// Commands that last. The longest comes first that begins like another.
const LASTING: &[&[&str]] = &[
    &["serve"],
    &["host", "watch"],
    &["host", "prove"],
    &["host", "guard"],
    &["steer", "record"],
    &["steer", "guard"],
];

/// A running command.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
pub(super) struct Process {
    /// The command.
    #[cfg_attr(test, schemars(extend("enum" = LASTING.iter().map(|it| it.join(" ")).collect::<Vec<_>>())))]
    pub(super) kind: String,
    /// The process.
    #[serde(rename = "process")]
    pub(super) number: u32,
    /// The whole command line.
    pub(super) command: String,
}

/// The processes that this user may see, by kind and number.
pub(super) fn all() -> Result<Vec<Process>, String> {
    let entries = fs::read_dir("/proc").map_err(|error| format!("/proc: {error}"))?;
    let numbers =
        entries.flatten().filter_map(|entry| entry.file_name().to_str()?.parse::<u32>().ok());
    let mut found: Vec<Process> = numbers.filter_map(one).collect();
    found.sort();
    Ok(found)
}

fn one(process: u32) -> Option<Process> {
    let at = |name: &str| format!("/proc/{process}/{name}");
    // A file that was replaced since has ` (deleted)` behind its name (proc_pid_exe(5)).
    let program = fs::read_link(at("exe")).ok()?;
    let program = program.to_str()?.trim_end_matches(" (deleted)");
    if Path::new(program).file_name() != Some("uncork".as_ref()) {
        return None;
    }
    lasting(process, &fs::read(at("cmdline")).ok()?)
}

/// The command of a line of arguments, each with a zero byte behind it, if it is one that lasts.
fn lasting(process: u32, line: &[u8]) -> Option<Process> {
    let line = line.strip_suffix(b"\0")?;
    let words: Vec<_> = line.split(|byte| *byte == 0).map(String::from_utf8_lossy).collect();
    let given = words.get(1..)?;
    let is_kind = |kind: &&&[&str]| {
        given.len() >= kind.len() && given.iter().zip(**kind).all(|(a, b)| a == b)
    };
    let kind = LASTING.iter().find(is_kind)?;
    Some(Process { kind: kind.join(" "), number: process, command: words.join(" ") })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn commands_that_last_are_known_by_their_first_words() {
        let kind = |line: &[u8]| lasting(7, line).map(|it| it.kind);
        assert_eq!(kind(b"uncork\0serve\0--root\0a b\0"), Some("serve".to_owned()));
        assert_eq!(kind(b"/usr/bin/uncork\0steer\0record\0r/\0"), Some("steer record".to_owned()));
        for line in
            [&b""[..], b"uncork\0", b"uncork\0steer\0", b"uncork\0status\0", b"uncork\0x\0serve\0"]
        {
            assert_eq!(kind(line), None);
        }
    }
}
