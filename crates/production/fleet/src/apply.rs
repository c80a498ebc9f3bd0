//! Activates a version once the link leads to it, and says whether it is active.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

/// What follows the link.
pub trait Apply {
    /// Activates the policy in programs that do not follow the link by themselves.
    ///
    /// # Errors
    ///
    /// Why it is not active.
    fn apply(&self, policy: &Path) -> Result<(), String>;

    /// What has not followed this policy yet.
    fn behind(&self, policy: &Path) -> Vec<String>;
}

/// A command that applies, and files that say what is applied.
#[derive(Clone, Debug, Default)]
pub struct Commands {
    /// Run by the shell, with the policy in $POLICY. Its status says whether it is active.
    pub apply: Option<String>,
    /// Files with the path of the policy that is applied, as `uncork-steer@.service` writes them.
    pub applied: Vec<PathBuf>,
}

impl Apply for Commands {
    fn apply(&self, policy: &Path) -> Result<(), String> {
        let Some(command) = &self.apply else { return Ok(()) };
        let mut shell = Command::new("sh");
        shell.args(["-c", command]).env("POLICY", policy).stdin(Stdio::null());
        let output = shell.output().map_err(|error| format!("cannot run `{command}`: {error}"))?;
        if output.status.success() {
            return Ok(());
        }
        let said = String::from_utf8_lossy(&output.stderr);
        let line = said.lines().find(|line| !line.trim().is_empty()).unwrap_or("no message");
        Err(format!("`{command}` ended with {}: {line}", output.status))
    }

    fn behind(&self, policy: &Path) -> Vec<String> {
        let policy = fs::canonicalize(policy).unwrap_or_else(|_| policy.to_owned());
        let is_behind = |file: &&PathBuf| {
            !fs::read_to_string(file).is_ok_and(|text| Path::new(text.trim_end()) == policy)
        };
        self.applied.iter().filter(is_behind).map(|file| file.display().to_string()).collect()
    }
}

#[cfg(test)]
mod tests {
    use uncork_testkit::Scratch;

    use super::*;

    #[test]
    fn command_that_fails_is_reported_with_its_first_line() {
        let run = |command: &str| {
            let apply = Some(command.to_owned());
            Commands { apply, applied: Vec::new() }.apply(Path::new("/p/policy.toml"))
        };
        assert_eq!(run("test $POLICY = /p/policy.toml"), Ok(()));
        let error = run("echo >&2 'no such kernel'; exit 3").unwrap_err();
        assert!(error.contains("exit status: 3: no such kernel"), "{error}");
    }

    #[test]
    fn file_with_another_policy_is_behind() {
        let scratch = Scratch::new("fleet-applied");
        let policy = scratch.write("v/policy.toml", "");
        let applied = scratch.write("applied", format!("{}\n", policy.display()));
        let commands = Commands { apply: None, applied: vec![applied.clone()] };
        assert!(commands.behind(&policy).is_empty());
        let other = scratch.write("w/policy.toml", "");
        assert_eq!(commands.behind(&other), [applied.display().to_string()]);
    }
}
