//! `uncork experiment` and `uncork learn` hand their arguments to the Python part of the installation.

use std::fs;
use std::os::unix::fs::{PermissionsExt, symlink};
use std::path::PathBuf;
use std::process::Command;

use crate::common::{Finished, Scratch, command, finish};

const PRINTS_ITS_ARGUMENTS: &str =
    "#!/bin/sh\nprintf '%s\\n' \"$@\"\necho \"${UNCORK##*/}\"\nexit 7\n";

fn executable(path: PathBuf, script: &str) {
    fs::write(&path, script).expect("a scratch directory");
    fs::set_permissions(path, fs::Permissions::from_mode(0o755)).expect("own file");
}

#[test]
fn arguments_and_exit_status_are_those_of_the_package() {
    for name in ["experiment", "learn"] {
        let scratch = Scratch::new(name);
        executable(scratch.path("uncork-python"), PRINTS_ITS_ARGUMENTS);
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
        fs::create_dir(scratch.path(folder)).unwrap();
        executable(
            scratch.path(&format!("{folder}/uncork-python")),
            &format!("#!/bin/sh\necho {folder}\n"),
        );
    }
    let own = scratch.path("environment/uncork");
    let built = env!("CARGO_BIN_EXE_uncork");
    fs::hard_link(built, &own).or_else(|_| fs::copy(built, &own).map(drop)).unwrap();
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
