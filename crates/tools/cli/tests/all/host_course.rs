//! The commands of docs/reference/host.md: other tests run some of them, this one runs the rest.
#![expect(clippy::unwrap_used, reason = "a test that cannot run has failed")]

use std::fs;
use std::os::unix::fs::symlink;
use std::process::{Command, Stdio};

use crate::common::Scratch;
use crate::common::sandbox::succeed;
use uncork_testkit::{Capability, not_run};

const ROOT: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/../../..");
/// How the blocks begin that other tests run and compare.
const ELSEWHERE: [(&str, &str); 3] = [
    ("uncork host doctor --expect bbr --facts", include_str!("host_doctor.rs")),
    ("cat host.toml", include_str!("host_change.rs")),
    ("uncork host prove ", include_str!("host_prove.rs")),
];
/// How a block that no test runs begins: what it needs.
const MARK: &str = "# Not tested: it needs ";

/// The blocks of code of the page: language and text.
fn blocks(page: &str) -> Vec<(&str, &str)> {
    let fenced = page.split("\n```").skip(1).step_by(2);
    fenced.map(|block| block.split_once('\n').unwrap()).collect()
}

/// The commands of a console session. What they print is below each.
fn commands(session: &str) -> Vec<&str> {
    session.lines().filter_map(|line| line.strip_prefix("$ ")).collect()
}

/// The sessions that this test runs.
fn sessions(page: &str) -> Vec<&str> {
    let consoles = blocks(page).into_iter().filter(|(language, _)| *language == "console");
    let is_ours = |session: &&str| {
        let first = commands(session)[0];
        !ELSEWHERE.iter().any(|(start, _)| first.starts_with(start))
    };
    consoles.map(|(_, session)| session).filter(is_ours).collect()
}

#[test]
fn each_block_is_run_by_a_test_or_says_what_it_needs() {
    let page = fs::read_to_string(format!("{ROOT}/docs/reference/host.md")).unwrap();
    assert_eq!(page.matches("\n```").count() % 2, 0);
    for (language, text) in blocks(&page) {
        match language {
            "console" => assert!(text.starts_with("$ "), "no command: {text}"),
            "sh" => assert!(text.starts_with(MARK), "a test runs only `console`: {text}"),
            // Files and data.
            _ => assert!(!text.contains("$ "), "a command in a block of `{language}`: {text}"),
        }
    }
    for (start, test) in ELSEWHERE {
        assert!(page.contains(&format!("```console\n$ {start}")), "the page lost `{start}`");
        let words: Vec<_> = start.split(' ').filter(|word| *word != "bbr").collect();
        assert!(words.iter().all(|word| test.contains(word)), "no test runs `{start}`");
    }
    let all: Vec<_> = sessions(&page).into_iter().flat_map(commands).collect();
    for step in ["apply", "confirm", "doctor", "iperf3", "watch", "promtool", "revert"] {
        assert!(all.iter().any(|line| line.contains(step)), "the course lost `{step}`");
    }
}

/// The words of what a command printed, without figures and their units of time: these differ between machines.
fn form(text: &str) -> Vec<String> {
    let is_word =
        |word: &&str| !word.contains(|c: char| c.is_ascii_digit()) && !["s", "min"].contains(word);
    let words = |line: &str| line.split_whitespace().filter(is_word).collect::<Vec<_>>().join(" ");
    text.lines().map(words).collect()
}

/// Runs the page's sessions one after the other, on one host. `UPDATE_DOCS=1` writes what they print.
#[test]
fn the_course_runs_as_documented() {
    for (program, capability) in
        [("promtool", Capability::Promtool), ("iperf3", Capability::Programs)]
    {
        let version = Command::new(program).arg("--version").stdout(Stdio::null()).status();
        if version.is_err() {
            return not_run(capability, &format!("{program} is not installed"));
        }
    }
    let allowed = fs::read_to_string("/proc/sys/net/ipv4/tcp_allowed_congestion_control").unwrap();
    if !allowed.split_whitespace().any(|name| name == "bbr") {
        return not_run(Capability::Bbr, "bbr is not allowed in containers");
    }
    let file = format!("{ROOT}/docs/reference/host.md");
    let page = fs::read_to_string(&file).unwrap();
    let scratch = Scratch::new("host-course");
    for directory in ["crates", "deploy"] {
        let there = fs::canonicalize(format!("{ROOT}/{directory}")).unwrap();
        symlink(there, scratch.path(directory)).unwrap();
    }
    let sessions = sessions(&page);
    let run = |session: &str| -> String {
        let each = commands(session).into_iter().map(|line| {
            let quoted = line.replace('\'', r"'\''");
            format!("printf '%s\\n' '$ {quoted}'\n{line} || true\n")
        });
        each.chain(["printf '%s\\n' END\n".to_owned()]).collect()
    };
    let script: String = sessions.iter().map(|session| run(session)).collect();
    let Some(printed) = succeed(&scratch, &format!("{PREPARE}{script}")) else { return };
    let printed: Vec<_> = printed.split("END\n").filter(|text| !text.is_empty()).collect();
    assert_eq!(printed.len(), sessions.len(), "{printed:?}");
    if std::env::var_os("UPDATE_DOCS").is_some() {
        let replace = |page: String, (old, new): (&&str, &&str)| {
            page.replacen(
                &format!("```console\n{old}"),
                &format!("```console\n{}", new.trim_end()),
                1,
            )
        };
        let new = sessions.iter().zip(&printed).fold(page.clone(), replace);
        fs::write(&file, new).unwrap();
        return;
    }
    for (session, printed) in sessions.iter().zip(&printed) {
        let (printed, known) = (printed.trim_end(), session.trim_end());
        assert_eq!(form(printed), form(known), "UPDATE_DOCS=1 writes it\n{printed}");
    }
}

/// A host of its own: Reno is the default, the interface is called eth0, /etc is a copy, and systemd seems to run.
const PREPARE: &str = r#"
ip netns delete legacy
mkdir etc; cp -a /etc/. etc; mount --bind etc /etc
mkdir -p /etc/sysctl.d /etc/modules-load.d /etc/systemd/system /run/systemd/system
mount -t tmpfs tmpfs /var/lib
ip link set t0 name eth0
echo reno > /proc/sys/net/ipv4/tcp_congestion_control
uncork() { "$UNCORK" "$@"; }
exec 2>&1
"#;
