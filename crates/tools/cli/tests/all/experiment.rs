//! `uncork experiment` and `uncork learn` hand their arguments to programs of the Python package.

use std::fs;
use std::os::unix::fs::PermissionsExt;

use crate::common::{Finished, Scratch, command, finish};

#[test]
fn arguments_and_exit_status_are_those_of_the_package() {
    for name in ["experiment", "learn"] {
        let scratch = Scratch::new(name);
        let program = scratch.path(&format!("uncork-{name}"));
        fs::write(&program, "#!/bin/sh\nprintf '%s\\n' \"$@\"\necho \"${UNCORK##*/}\"\nexit 7\n")
            .unwrap();
        fs::set_permissions(&program, fs::Permissions::from_mode(0o755)).unwrap();
        let mut command = command(name);
        command.args(["analyze", "--by", "region", "--help", "a b"]).env("PATH", scratch.path(""));
        let Finished { status, stdout, .. } = finish(command);
        assert_eq!((status, stdout.as_str()), (7, "analyze\n--by\nregion\n--help\na b\nuncork\n"));
    }
}

#[test]
fn a_missing_package_is_an_error_with_a_remedy() {
    let scratch = Scratch::new("no-experiment");
    let mut command = command("experiment");
    command.arg("--help").env("PATH", scratch.path(""));
    let Finished { status, stdout, stderr } = finish(command);
    assert_eq!((status, stdout.as_str()), (3, ""));
    assert!(stderr.contains("pip install python/uncork"), "{stderr}");
}
