//! `uncork experiment` and `uncork learn` hand their arguments to the Python part of the installation.

use std::os::unix::fs::symlink;
use std::path::Path;
use std::process::Command;

use crate::common::{Finished, Scratch, command, finish};
use uncork_testkit::install;

const PRINTS_ITS_ARGUMENTS: &str =
    "#!/bin/sh\nprintf '%s\\n' \"$@\"\necho \"${UNCORK##*/}\"\nexit 7\n";

#[test]
fn arguments_and_exit_status_are_those_of_the_package() {
    for name in ["experiment", "learn"] {
        let scratch = Scratch::new(name);
        scratch.executable("uncork-python", PRINTS_ITS_ARGUMENTS);
        let mut command = command(name);
        command.args(["analyze", "--by", "region", "--help", "a b"]).env("PATH", scratch.path(""));
        let Finished { status, stdout, .. } = finish(command);
        let expected = format!("{name}\nanalyze\n--by\nregion\n--help\na b\nuncork\n");
        assert_eq!((status, stdout), (7, expected));
    }
}

/// As pipx and uv install it: an environment with both programs, and a link to one of them on the PATH.
#[test]
fn package_of_the_same_environment_runs_before_one_on_the_path() {
    let scratch = Scratch::new("environment");
    for folder in ["environment", "other"] {
        let script = format!("#!/bin/sh\necho {folder}\n");
        scratch.executable(&format!("{folder}/uncork-python"), script);
    }
    let own = scratch.path("environment/uncork");
    install(Path::new(env!("CARGO_BIN_EXE_uncork")), &own);
    let link = scratch.path("uncork");
    symlink(&own, &link).unwrap();
    let mut command = Command::new(link);
    command.arg("learn").env("PATH", scratch.path("other"));
    assert_eq!(finish(command).stdout, "environment\n");
}

#[test]
fn a_missing_package_is_an_error_with_a_remedy() {
    let scratch = Scratch::new("no-experiment");
    let mut command = command("experiment");
    command.arg("--help").env("PATH", scratch.path(""));
    let Finished { status, stdout, stderr } = finish(command);
    assert_eq!((status, stdout.as_str()), (3, ""));
    assert!(stderr.contains("\nhelp: pip install 'uncork[analysis]'"), "{stderr}");
}
