//! `uncork serve --policy`: what it says, and that it does what `uncork policy explain` says.

use std::fs;
use std::io::{BufRead, BufReader, Lines};
use std::path::Path;
use std::process::{Child, ChildStderr, Command, Stdio};

use crate::common::signed::{Signer, sha256};
use crate::common::{Finished, Scratch, command, finish};
use rustix::process::{Pid, Signal, kill_process};
use uncork_testkit::{Capability, not_run};

const POLICY: &str = "\
[default]
tcp = \"reno\"

[[rule]]
name = \"spotify\"
host = \"*-bbr*\"
use = { tcp = \"bbr\" }

[[rule]]
listener = \"internal\"
path = \"/file\"
use = { tcp = \"bbr\" }
";

/// Ends with the test.
struct Server {
    child: Child,
    said: Lines<BufReader<ChildStderr>>,
    /// Where it listens.
    addresses: Vec<String>,
}

impl Server {
    fn start(scratch: &Scratch, arguments: &str, listeners: usize) -> Self {
        let mut serve = command(&format!("serve --root public {arguments}"));
        serve.current_dir(scratch.path("")).env("STATE_DIRECTORY", scratch.path("state"));
        serve.stdout(Stdio::piped()).stderr(Stdio::piped());
        let mut child = serve.spawn().expect("starts");
        let lines = BufReader::new(child.stdout.take().expect("piped")).lines();
        let addresses = lines.take(listeners).map(|line| {
            let line = line.expect("text");
            assert!(line.contains(" policy http/1.1"), "{line}");
            line.split(['/', ' ']).nth(2).expect("an address").to_owned()
        });
        let addresses = addresses.collect();
        let said = BufReader::new(child.stderr.take().expect("piped")).lines();
        Self { child, said, addresses }
    }

    /// What it says up to the line that begins so.
    fn says(&mut self, beginning: &str) -> String {
        let mut said = String::new();
        for line in &mut self.said {
            let line = line.expect("text");
            said.extend([line.as_str(), "\n"]);
            if line.starts_with(beginning) {
                return said;
            }
        }
        panic!("no line begins with {beginning:?}: {said}");
    }

    fn signal(&self, signal: Signal) {
        kill_process(Pid::from_child(&self.child), signal).expect("signalled");
    }

    /// The controller that a new connection has behind a request for `url`'s path.
    fn controller(&self, listener: usize, host: &str, path: &str) -> String {
        let url = format!("http://{}{path}", self.addresses[listener]);
        let header = format!("Host: {host}");
        let mut curl = Command::new("curl");
        curl.args(["-sS", "-D-", "-o/dev/null", "-H", &header, &url]);
        let headers = String::from_utf8(curl.output().expect("curl runs").stdout).expect("text");
        let timing =
            headers.lines().find_map(|line| line.strip_prefix("server-timing: cc;desc=\""));
        timing.and_then(|timing| timing.split('"').next()).expect("a controller").to_owned()
    }
}

impl Drop for Server {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

fn public(name: &str) -> Scratch {
    let scratch = Scratch::new(name);
    fs::create_dir(scratch.path("public")).expect("a directory");
    fs::write(scratch.path("public/file"), "fine").expect("a file");
    fs::write(scratch.path("policy.toml"), POLICY).expect("a policy");
    scratch
}

fn run(scratch: &Scratch, line: &str) -> Finished {
    let mut command = command(line);
    command.current_dir(scratch.path("")).env("STATE_DIRECTORY", scratch.path("state"));
    finish(command)
}

#[test]
fn the_server_does_what_is_explained() {
    let scratch = public("serve-policy-explained");
    let arguments =
        "--policy policy.toml --listen public@127.0.0.1:0 --listen internal@127.0.0.1:0";
    let mut server = Server::start(&scratch, arguments, 2);
    let said = server.says("note: policy");
    assert!(said.contains("policy 'policy.toml', fingerprint ") && said.ends_with(": 2 rules\n"));
    for (listener, name) in ["public", "internal"].into_iter().enumerate() {
        for host in ["audio-fa.example", "audio-fa-BBR.example:80"] {
            for path in ["/file", "/missing", "/fil%65?x"] {
                let decoded = path.replace("%65", "e");
                let line = format!(
                    "policy explain policy.toml --listener {name} --ip 127.0.0.1 --host {host} --path {decoded}"
                );
                let Finished { stdout, .. } = run(&scratch, &line);
                let cc = server.controller(listener, host, path);
                assert!(stdout.contains(" decides finally: "), "{stdout}");
                assert!(stdout.ends_with(&format!(", tcp {cc}\n")), "{line}: {cc} {stdout}");
            }
        }
    }
}

/// Its first argument is the binary, its second `lock` or nothing.
const BEHIND_A_ROUTE: &str = "\
ip link set lo up
ip route replace local 127.0.0.1 dev lo table local congctl $2 reno || exit 3
$1 serve -q --root public --policy policy.toml --listen 127.0.0.1:8080 --records records.jsonl >started &
until [ -s started ]; do sleep 0.05; done
for host in a-bbr a; do curl -sS -o/dev/null -H \"Host: $host\" http://127.0.0.1:8080/file; done
kill $!
wait $!
";

/// A route may prefer a controller of its own, or lock it. Then records report that the choice had no effect.
#[test]
fn requirements_of_routes_are_reported() {
    for (lock, bbr) in [("", "bbr"), ("lock", "reno")] {
        let scratch = public(&format!("serve-policy-route-{lock}"));
        let mut shell = Command::new("unshare");
        shell.args(["-n", "sh", "-c", BEHIND_A_ROUTE, "sh", env!("CARGO_BIN_EXE_uncork"), lock]);
        shell.current_dir(scratch.path(""));
        let Finished { status, stderr, .. } = finish(shell);
        if stderr.contains("unshare failed") {
            return not_run(Capability::Netns, &format!("needs CAP_SYS_ADMIN: {stderr}"));
        }
        assert_eq!((status, stderr.as_str()), (0, ""));
        let records = fs::read_to_string(scratch.path("records.jsonl")).expect("records");
        let choices: Vec<_> = records
            .lines()
            .map(|line| serde_json::from_str::<serde_json::Value>(line).expect("JSON"))
            .filter(|record| record["service"]["scope"] == "response")
            .map(|record| (record["cc"].clone(), record["choice"]["cc"].clone()))
            .collect();
        let expected = [(bbr.into(), "bbr".into()), ("reno".into(), "reno".into())];
        assert_eq!(choices, expected, "{lock}");
    }
}

fn replace(path: &Path, text: &str) {
    let new = path.with_extension("new");
    fs::write(&new, text).expect("written");
    fs::rename(new, path).expect("renamed");
}

#[test]
fn a_new_policy_is_read_on_sighup_and_when_it_changes() {
    let scratch = public("serve-policy-reload");
    let mut server = Server::start(&scratch, "--policy policy.toml --listen 127.0.0.1:0", 1);
    server.says("note: policy");
    assert_eq!(server.controller(0, "a", "/file"), "reno");
    let path = scratch.path("policy.toml");
    // Without a signal, the server notices the change.
    replace(&path, "[default]\ntcp = \"bbr\"\n");
    let said = server.says("note: read again");
    assert!(said.contains("policy 'policy.toml', fingerprint ") && said.ends_with(": 0 rules\n"));
    assert_eq!(server.controller(0, "a", "/file"), "bbr");
    // What is wrong is shown with its place, and nothing changes.
    replace(&path, &POLICY.replace("host", "hots"));
    server.signal(Signal::HUP);
    let said = server.says("note:");
    assert!(said.starts_with("error: unknown key `hots`"), "{said}");
    assert!(said.contains("policy.toml:6:1") && said.contains("`host`?"), "{said}");
    assert!(said.ends_with("previous policy stays active\n"), "{said}");
    assert_eq!(server.controller(0, "a-bbr", "/file"), "bbr");
    replace(&path, &POLICY.replace("bbr\" }", "nosuchcc\" }"));
    server.signal(Signal::HUP);
    let said = server.says("note:");
    assert!(said.contains(" 'nosuchcc': "), "{said}");
    assert_eq!(server.controller(0, "a-bbr", "/file"), "bbr");
    replace(&path, POLICY);
    server.signal(Signal::HUP);
    server.says("note: read again");
    assert_eq!(server.controller(0, "a", "/file"), "reno");
    server.signal(Signal::TERM);
    assert_eq!(server.child.wait().expect("ends").code(), Some(0));
}

#[test]
fn a_server_without_files_to_read_again_outlives_sighup() {
    let scratch = public("serve-policy-hangup");
    let mut serve = command("serve --root public --listen 127.0.0.1:0");
    serve.current_dir(scratch.path("")).stdout(Stdio::piped());
    let mut child = serve.spawn().expect("starts");
    let mut line = String::new();
    BufReader::new(child.stdout.take().expect("piped")).read_line(&mut line).expect("a line");
    kill_process(Pid::from_child(&child), Signal::HUP).expect("signalled");
    // Linux delivers the signal with the lower number first: SIGHUP, then SIGTERM.
    kill_process(Pid::from_child(&child), Signal::TERM).expect("signalled");
    assert_eq!(child.wait().expect("ends").code(), Some(0));
}

#[test]
fn impossible_options_exit_with_their_status() {
    let scratch = public("serve-policy-refused");
    fs::write(scratch.path("bad.toml"), POLICY.replace("host", "hots")).expect("a policy");
    fs::write(scratch.path("lacks.toml"), POLICY.replace("\"reno\"", "\"nosuchcc\""))
        .expect("a policy");
    for (arguments, status, words) in [
        ("--policy policy.toml --cc bbr", 2, "[default] with tcp = \"bbr\""),
        (
            "--policy policy.toml --listen in@127.0.0.1:0=bbr",
            2,
            "[[rule]] with listener = \"in\" and use = { tcp = \"bbr\" }",
        ),
        ("--policy none.toml", 2, "'none.toml'"),
        ("--policy public", 2, "'public'"),
        ("--policy bad.toml", 2, "`hots`"),
        (
            "--policy lacks.toml",
            3,
            "'lacks.toml': this kernel has no congestion control 'nosuchcc'",
        ),
        ("--geo none.mmdb", 2, "'none.mmdb'"),
        ("--geo policy.toml", 2, "'policy.toml'"),
    ] {
        for check in ["", "--check"] {
            let done = run(&scratch, &format!("serve --root public {arguments} {check}"));
            assert_eq!((done.status, done.stdout.as_str()), (status, ""), "{}", done.stderr);
            assert!(done.stderr.starts_with("error: "), "{}", done.stderr);
            assert!(done.stderr.contains(words), "{}", done.stderr);
        }
    }
    let good = "serve --root public --policy policy.toml --check";
    let done = run(&scratch, &format!("{good} --listen internal@127.0.0.1:0"));
    assert_eq!((done.status, done.stdout.as_str(), done.stderr.as_str()), (0, "", ""));
    let done = run(&scratch, &format!("{good} --listen intern@127.0.0.1:0"));
    let note = "note: policy.toml:9: `listener = internal` never matches: no such listener; there is `intern`\n";
    assert_eq!((done.status, done.stdout.as_str(), done.stderr.as_str()), (0, "", note));
    let done = run(&scratch, &format!("{good} --listen intern@127.0.0.1:0 --quiet"));
    assert_eq!((done.status, done.stderr.as_str()), (0, ""));
}

const WITH_TABLE: &str = "\
[default]
tcp = \"reno\"

[table]
file = \"networks.table\"

[table.arm.bbr]
tcp = \"bbr\"

[[rule]]
table = \"all\"
";

const NETWORKS: &str = "\
uncork-table 1
version 1
made 2020-01-01T00:00:00Z
expires 2099-01-01T00:00:00Z
section all
127.0.0.0/8 bbr
";

/// A policy and its table as `uncork learn plan --sign` leaves them. All names are of files in the same directory.
struct Version {
    scratch: Scratch,
    signer: Signer,
}

impl Version {
    fn new(name: &str) -> Self {
        let version = Self { scratch: public(name), signer: Signer::new() };
        version.write("learn.pub", version.signer.public_key());
        version.write("other.pub", Signer::new().public_key());
        version.write("policy.toml", WITH_TABLE);
        version
            .write("networks.table", format!("{NETWORKS}sha256 {}\n", sha256(NETWORKS.as_bytes())));
        version.sign();
        version
    }

    fn write(&self, name: &str, bytes: impl AsRef<[u8]>) {
        fs::write(self.scratch.path(name), bytes).expect("written");
    }

    fn sign(&self) {
        self.sign_as("\"version\": 1");
    }

    fn sign_as(&self, order: &str) {
        self.signer.sign(&self.scratch.path(""), &["policy.toml", "networks.table"], order);
    }

    /// Another table, with the hash that a table must have.
    fn forge_the_table(&self) {
        let forged = NETWORKS.replace("127.0.0.0/8", "0.0.0.0/0");
        self.write("networks.table", format!("{forged}sha256 {}\n", sha256(forged.as_bytes())));
    }

    fn forge_the_policy(&self) {
        self.write("policy.toml", WITH_TABLE.replace("reno", "cubic"));
    }

    fn lose_the_signature(&self) {
        fs::remove_file(self.scratch.path("inputs.sig")).expect("removed");
    }
}

/// Who refuses what is not signed.
const READERS: [&str; 5] = [
    "serve --root public --listen 127.0.0.1:0 --policy policy.toml",
    "serve --root public --listen 127.0.0.1:0 --policy policy.toml --check",
    "policy check policy.toml",
    "policy explain policy.toml",
    "steer apply policy.toml --cgroup /nonexistent",
];

#[test]
fn what_is_altered_or_not_signed_is_refused() {
    type Tampering = fn(&Version);
    let forgeries: [(Tampering, &str, &str); 6] = [
        (Version::forge_the_policy, "learn.pub", "'policy.toml' is not as it was signed"),
        (Version::forge_the_table, "learn.pub", "'networks.table' is not as it was signed"),
        (Version::lose_the_signature, "learn.pub", "inputs.sig' is missing; plan with"),
        (
            |it| it.write("inputs.json", "{\"sha256\": {}}"),
            "learn.pub",
            "inputs.json is not signed by the owner of the key",
        ),
        (|_| {}, "other.pub", "inputs.json is not signed by the owner of the key"),
        (|_| {}, "policy.toml", "the key is not an Ed25519 public key in PEM"),
    ];
    for (at, (tamper, key, words)) in forgeries.into_iter().enumerate() {
        let version = Version::new(&format!("serve-policy-forged-{at}"));
        tamper(&version);
        for reader in READERS {
            let done = run(&version.scratch, &format!("{reader} --policy-key {key}"));
            assert_eq!((done.status, done.stdout.as_str()), (2, ""), "{reader}: {}", done.stderr);
            assert!(done.stderr.contains(words), "{reader}: {}", done.stderr);
        }
    }
}

#[test]
fn what_is_signed_is_taken() {
    let version = Version::new("serve-policy-signed");
    for reader in &READERS[1..4] {
        let done = run(&version.scratch, &format!("{reader} --policy-key learn.pub"));
        assert_eq!(done.status, 0, "{reader}: {}", done.stderr);
    }
    version.write(
        "uncork.toml",
        "root = \"public\"\npolicy = \"policy.toml\"\npolicy_key = \"learn.pub\"\n",
    );
    let checked = "serve --check --config uncork.toml --listen 127.0.0.1:0";
    assert_eq!(run(&version.scratch, checked).status, 0);
    version.forge_the_table();
    let done = run(&version.scratch, checked);
    assert_eq!(done.status, 2, "{}", done.stderr);
    let done = run(&version.scratch, "serve --root public --policy-key learn.pub");
    assert_eq!(done.status, 2, "a key without a policy: {}", done.stderr);
}

/// A running server ignores an altered file, the policy or its table. It loads a new version that is signed.
#[test]
fn reload_forged_policy_or_table_old_policy_stays_active() {
    let version = Version::new("serve-policy-forged-later");
    let arguments = "--policy policy.toml --policy-key learn.pub --listen 127.0.0.1:0";
    let mut server = Server::start(&version.scratch, arguments, 1);
    server.says("note: policy");
    assert_eq!(server.controller(0, "a", "/file"), "bbr");
    let forgeries: [fn(&Version); 3] =
        [Version::forge_the_policy, Version::forge_the_table, Version::lose_the_signature];
    for forge in forgeries {
        forge(&version);
        server.signal(Signal::HUP);
        let said = server.says("note: the previous policy stays active");
        assert!(said.starts_with("error: cannot "), "{said}");
        assert_eq!(server.controller(0, "a", "/file"), "bbr");
    }
    version.write("policy.toml", WITH_TABLE.replace("tcp = \"bbr\"", "tcp = \"cubic\""));
    version.sign();
    server.signal(Signal::HUP);
    server.says("note: read again");
    assert_eq!(server.controller(0, "a", "/file"), "cubic");
}

/// Who can write the policy's files, but has no key, can put back what the owner of the key has signed before.
#[test]
fn an_older_signed_policy_is_refused_by_a_server_that_runs_and_by_the_next_one() {
    let version = Version::new("serve-policy-older");
    version.sign_as("\"version\": 1, \"serial\": 1000");
    let old = ["policy.toml", "inputs.json", "inputs.sig"]
        .map(|name| (name, fs::read(version.scratch.path(name)).expect("a file")));
    let replay = || old.iter().for_each(|(name, bytes)| version.write(name, bytes));
    let with = |tcp: &str, serial: u32| {
        version
            .write("policy.toml", WITH_TABLE.replace("tcp = \"bbr\"", &format!("tcp = \"{tcp}\"")));
        version.sign_as(&format!("\"version\": 2, \"serial\": {serial}"));
    };
    let accepted = || {
        let directory = fs::read_dir(version.scratch.path("state/accepted")).expect("accepted");
        let mut files = directory.map(|entry| entry.expect("a file").path());
        let file = files.find(|path| path.extension().is_some_and(|it| it == "json"));
        fs::read_to_string(file.expect("a release")).expect("text")
    };
    let arguments = "--policy policy.toml --policy-key learn.pub --listen 127.0.0.1:0";
    with("cubic", 2000);
    let mut server = Server::start(&version.scratch, arguments, 1);
    server.says("note: policy");
    replay();
    server.signal(Signal::HUP);
    let said = server.says("note: the previous policy stays active");
    let words = "version 1 (serial 1000) is older than version 2 (serial 2000)";
    assert!(said.contains(words) && said.contains("uncork learn rollback"), "{said}");
    assert_eq!(server.controller(0, "a", "/file"), "cubic");
    // Without the key nothing raises what is noted.
    let files = ["policy.toml", "networks.table"];
    Signer::new().sign(&version.scratch.path(""), &files, "\"serial\": 9000");
    server.signal(Signal::HUP);
    server.says("note: the previous policy stays active");
    assert!(accepted().contains("2000"), "{}", accepted());
    drop(server);
    replay();
    for reader in [READERS[0], READERS[1], READERS[2], READERS[4]] {
        let done = run(&version.scratch, &format!("{reader} --policy-key learn.pub"));
        assert_eq!(done.status, 2, "{reader}: {}", done.stderr);
        assert!(done.stderr.contains(words), "{reader}: {}", done.stderr);
    }
    // The same rules, signed again, as `uncork learn rollback --sign` does.
    with("bbr", 2001);
    let mut server = Server::start(&version.scratch, arguments, 1);
    server.says("note: policy");
    assert_eq!(server.controller(0, "a", "/file"), "bbr");
    assert!(accepted().contains("2001"), "{}", accepted());
    // Without a key all is as it was.
    replay();
    let unsigned = run(&version.scratch, "policy check policy.toml");
    assert_eq!(unsigned.status, 0, "{}", unsigned.stderr);
}

/// A disk that is full, or read-only, keeps no newer policy out.
#[test]
fn a_server_that_cannot_note_the_policy_says_so_and_serves() {
    let version = Version::new("serve-policy-unnoted");
    version.sign_as("\"version\": 1, \"serial\": 1000");
    std::os::unix::fs::symlink("/nowhere", version.scratch.path("state")).expect("a link");
    let arguments = "--policy policy.toml --policy-key learn.pub --listen 127.0.0.1:0";
    let mut server = Server::start(&version.scratch, arguments, 1);
    let said = server.says("note: version 1 (serial 1000) is active, but an older policy");
    assert!(said.contains("will be accepted after a restart"), "{said}");
    assert_eq!(server.controller(0, "a", "/file"), "bbr");
}
