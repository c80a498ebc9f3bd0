//! The C interface from C: the header, and a compiled and executed host.

mod rust_host;

use std::path::{Path, PathBuf};
use std::process::{Command, Output};

use uncork_testkit::{Capability, Scratch, not_run};

fn package() -> &'static Path {
    Path::new(env!("CARGO_MANIFEST_DIR"))
}

#[test]
fn committed_header_is_current() {
    let config = cbindgen::Config::from_file(package().join("cbindgen.toml")).expect("a config");
    let sources = ["types", "lib"].map(|name| package().join(format!("src/{name}.rs")));
    let builder = sources
        .iter()
        .fold(cbindgen::Builder::new().with_config(config), cbindgen::Builder::with_src);
    let mut header = Vec::new();
    builder.generate().expect("a header").write(&mut header);
    let header = String::from_utf8(header).expect("UTF-8");
    let path = package().join("include/uncork_cc.h");
    if std::env::var_os("UNCORK_UPDATE").is_some() {
        std::fs::write(&path, &header).expect("the header is written");
    }
    let committed = std::fs::read_to_string(&path).unwrap_or_default();
    assert!(header == committed, "out of date: UNCORK_UPDATE=1 cargo test -p uncork-cc-ffi header");
}

/// The newest static library next to this test, built by cargo with it.
fn library() -> PathBuf {
    let test = std::env::current_exe().expect("this test has a path");
    let entries = test.parent().expect("a directory").read_dir().expect("entries");
    let is_library = |path: &PathBuf| {
        let name = path.file_name().unwrap_or_default().to_string_lossy();
        name.starts_with("libuncork_cc_ffi") && name.ends_with(".a")
    };
    let libraries = entries.filter_map(|entry| Some(entry.ok()?.path())).filter(is_library);
    let modified = |path: &PathBuf| path.metadata().and_then(|data| data.modified()).ok();
    libraries.max_by_key(modified).expect("cargo has built the static library")
}

/// Compiles a C program with warnings as errors; `None` without a compiler.
fn compile(source: &Path, scratch: &Scratch) -> Option<PathBuf> {
    let program = scratch.path("program");
    let compiled = Command::new("cc")
        .args(["-std=c11", "-Wall", "-Wextra", "-Werror", "-O1", "-g", "-I"])
        .arg(package().join("include"))
        .arg(source)
        .arg(library())
        .args(["-lm", "-lpthread", "-ldl", "-o"])
        .arg(&program)
        .output();
    match compiled {
        Ok(output) => {
            assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
            Some(program)
        }
        Err(error) => {
            not_run(Capability::Programs, &format!("cc: {error}"));
            None
        }
    }
}

fn run(command: &mut Command) -> Output {
    command.output().unwrap_or_else(|error| panic!("{command:?}: {error}"))
}

#[test]
fn the_host_in_c_matches_the_host_in_rust() {
    let scratch = Scratch::new("ffi-host");
    let Some(program) = compile(&package().join("examples/host.c"), &scratch) else { return };
    for arguments in [
        ["reno"].as_slice(),
        &["cubic"],
        &["bbr1"],
        &["bbr2"],
        &["bbr3"],
        &["bbr3", "ect1"],
        &["bbr3:loss_floor"],
        &["cubic:linux"],
        &["cubic:start=search"],
        &["cubic:start=rapid"],
        &["prague"],
        &["prague", "ect1"],
    ] {
        let output = run(Command::new(&program).args(arguments));
        assert!(output.status.success(), "{output:?}");
        let (here, there) = (rust_host::output(arguments), String::from_utf8_lossy(&output.stdout));
        assert_eq!(here.lines().count(), 30, "{here}");
        assert_eq!(there, here, "{arguments:?}");
    }
}

#[test]
fn prague_behind_a_queue_that_marks_loses_nothing() {
    let lost = |arguments: &[&str]| {
        let output = rust_host::output(arguments);
        let last = output.lines().last().and_then(|line| line.split(' ').nth(4)).map(str::to_owned);
        last.expect("a line with the lost bytes")
    };
    assert_eq!(lost(&["prague", "ect1"]), "0");
    assert_ne!(lost(&["prague"]), "0");
}

#[test]
fn the_host_in_c_reports_an_unknown_controller() {
    let scratch = Scratch::new("ffi-unknown");
    let Some(program) = compile(&package().join("examples/host.c"), &scratch) else { return };
    let output = run(Command::new(&program).arg("bbr3:fast"));
    let message = String::from_utf8_lossy(&output.stderr);
    assert_eq!(output.status.code(), Some(2));
    assert!(message.contains("loss_floor") && message.contains("unknown controller"), "{message}");
}

#[test]
fn the_host_in_c_has_no_invalid_reads_and_no_leaks() {
    if Command::new("valgrind").arg("--version").output().is_err() {
        return not_run(Capability::Programs, "valgrind is missing");
    }
    let scratch = Scratch::new("ffi-valgrind");
    let Some(program) = compile(&package().join("examples/host.c"), &scratch) else { return };
    let options = ["--quiet", "--error-exitcode=9", "--leak-check=full"];
    let output = run(Command::new("valgrind").args(options).arg(&program).arg("cubic"));
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
}
