//! `uncork serve --config`: one file, checked, and replaced as a whole while it serves.
#![expect(clippy::unwrap_used, reason = "a test that cannot run has failed")]

use std::fs;
use std::io::{BufRead, BufReader};
use std::path::Path;
use std::process::{Child, ChildStderr, Command, Stdio};
use std::time::Duration;

use crate::common::{Finished, Scratch, command, finish};
use rustix::process::{Pid, Signal, kill_process};
use uncork_testkit::{Capability, not_run, wait_for};

/// Ends with the test.
struct Server {
    child: Child,
    /// What it prints for each of its listeners.
    printed: Vec<String>,
    notes: BufReader<ChildStderr>,
}

impl Server {
    fn start(mut command: Command, directory: &Path, listeners: usize) -> Self {
        command.current_dir(directory).stdout(Stdio::piped()).stderr(Stdio::piped());
        let mut child = command.spawn().unwrap();
        let lines = BufReader::new(child.stdout.take().unwrap()).lines();
        let printed: Vec<_> = lines.take(listeners).map(Result::unwrap).collect();
        let notes = BufReader::new(child.stderr.take().unwrap());
        let server = Self { child, printed, notes };
        assert_eq!(server.printed.len(), listeners, "it listens");
        server
    }

    fn url(&self, listener: usize, path: &str) -> String {
        format!("{}{path}", self.printed[listener].split(' ').next().unwrap())
    }

    fn signal(&self, signal: Signal) {
        kill_process(Pid::from_child(&self.child), signal).unwrap();
    }

    /// Reads notes until one contains `words`. All of them.
    fn notes_until(&mut self, words: &str) -> String {
        let mut all = String::new();
        while !all.contains(words) {
            assert_ne!(self.notes.read_line(&mut all).unwrap(), 0, "no {words} in {all}");
        }
        all
    }

    fn end(mut self) {
        self.signal(Signal::TERM);
        assert_eq!(self.child.wait().unwrap().code(), Some(0));
    }
}

impl Drop for Server {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

fn site(name: &str) -> Scratch {
    let scratch = Scratch::new(name);
    scratch.write("public/file", "fine");
    scratch.write("public/downloads/file", "fine");
    scratch.write("other/file", "other");
    scratch
}

fn curl(arguments: &[&str]) -> String {
    let curl = Command::new("curl").arg("-sSki").args(arguments).output().unwrap();
    assert!(curl.status.success(), "{arguments:?}: {}", String::from_utf8_lossy(&curl.stderr));
    String::from_utf8(curl.stdout).unwrap()
}

/// A whole file, as a careful editor leaves it.
fn replace(scratch: &Scratch, text: &str) {
    scratch.write("serve.toml.new", text);
    fs::rename(scratch.path("serve.toml.new"), scratch.path("serve.toml")).unwrap();
}

#[test]
fn flags_win_over_keys_and_tables_are_read() {
    let scratch = site("config-flags");
    replace(
        &scratch,
        "root = \"other\"\nlisten = [\"127.0.0.1:1\", \"127.0.0.1:2=nosuchcc\"]\nself_signed = true\n\
         max_streams = 50\nhead_time = \"5s\"\n[headers]\nX-Mine = \"1\"\n",
    );
    let serve = command("serve --config serve.toml --root public --listen 127.0.0.1:0");
    let server = Server::start(serve, &scratch.path(""), 2);
    let response = curl(&[&server.url(0, "/file")]);
    assert!(response.contains("x-mine: 1") && response.ends_with("fine"), "{response}");
    server.end();
}

#[test]
fn errors_show_place_value_and_remedy() {
    let scratch = site("config-errors");
    for (text, words) in [
        ("rot = \"public\"", "unknown key `rot`\n --> serve.toml:1:1"),
        ("rot = \"public\"", "did you mean `root`?"),
        ("root = \"public\"\nmax_connections = \"many\"", "--> serve.toml:2:19"),
        ("root = \"public\"\nnetwork_share = 101", "101 is not in 1..=100"),
        ("root = \"public\"\nindex = \"yes\"", "a string where true or false belongs"),
        ("root = \"public\"\nidle_time = \"0s\"", "is not possible"),
        ("root = \"public\"\nlisten = [\"localhost:80\"]", "IP address and port expected"),
        ("root = \"public\"\nquiet = true", "unknown key `quiet`"),
        (
            "root = \"public\"\nself_signed = true\ntls_cert = \"a\"\ntls_key = \"b\"",
            "cannot be used with",
        ),
        ("root = \"public\"\n[[host]]\nname = [\"a\"]", "did you mean `names`?"),
        ("root = ", "not valid TOML"),
        ("index = true", "the configuration has no root"),
    ] {
        replace(&scratch, text);
        let mut check = command("serve --config serve.toml --check");
        check.current_dir(scratch.path(""));
        let Finished { status, stderr, .. } = finish(check);
        assert_eq!(status, 2, "{text}: {stderr}");
        assert!(stderr.contains(words), "{text}: {stderr}");
    }
    let mut missing = command("serve --config missing.toml --check");
    missing.current_dir(scratch.path(""));
    assert_eq!(finish(missing).status, 2);
}

const LISTEN: &str = "listen = \"127.0.0.1:0\"\n";

#[test]
fn reload_changed_file_active_or_the_old_one_stays() {
    let scratch = site("config-reload");
    replace(&scratch, &format!("root = \"public\"\n{LISTEN}"));
    let mut server = Server::start(command("serve --config serve.toml"), &scratch.path(""), 1);
    let url = server.url(0, "/file");
    let body = || curl(&[&url]).rsplit("\r\n").next().unwrap().to_owned();
    assert_eq!(body(), "fine");
    // By itself, once it has come to rest.
    replace(&scratch, &format!("root = \"other\"\n{LISTEN}"));
    server.notes_until("note: read again: the configuration");
    assert_eq!(body(), "other");
    for (text, words) in [
        (format!("rot = \"public\"\n{LISTEN}"), "did you mean `root`?"),
        (format!("root = \"missing\"\n{LISTEN}"), "cannot serve 'missing'"),
        (
            format!("root = \"public\"\nmax_streams = 7\n{LISTEN}"),
            "cannot change while the server runs",
        ),
    ] {
        replace(&scratch, &text);
        server.signal(Signal::HUP);
        let notes = server.notes_until("configuration stays active");
        assert!(notes.contains(words), "{notes}");
        assert_eq!(body(), "other");
    }
    replace(&scratch, &format!("root = \"public\"\n{LISTEN}[headers]\nX-Mine = \"1\"\n"));
    server.signal(Signal::HUP);
    server.notes_until("note: read again: the configuration");
    assert!(curl(&[&url]).contains("x-mine: 1"));
    assert_eq!(body(), "fine");
    server.end();
}

/// Opens sockets as systemd does, and runs the rest of the arguments with them.
const ACTIVATE: &str = "
import os, socket, sys
kinds = sys.argv[1].split(',')
port = 0
sockets = []
for kind in kinds:
    it = socket.socket(socket.AF_INET, socket.SOCK_STREAM if kind == 'tcp' else socket.SOCK_DGRAM)
    if kind == 'udp':
        it.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEPORT, 1)
    it.bind(('127.0.0.1', port))
    port = it.getsockname()[1]
    if kind == 'tcp':
        it.listen(64)
    sockets.append(it)
for number, it in enumerate(sockets):
    os.dup2(it.fileno(), 20 + number)
for number in range(len(sockets)):
    os.dup2(20 + number, 3 + number)
    os.close(20 + number)
os.environ['LISTEN_PID'] = str(os.getpid())
os.environ['LISTEN_FDS'] = str(len(sockets))
command = [it.replace('PORT', str(port)) for it in sys.argv[2:]]
os.execv(command[0], command)
";

fn activated(kinds: &str, arguments: &str) -> Command {
    let mut python = Command::new("python3");
    python.args(["-c", ACTIVATE, kinds, env!("CARGO_BIN_EXE_uncork")]);
    python.args(arguments.split(' ')).stdin(Stdio::null());
    python
}

#[test]
fn systemds_sockets_are_used() {
    let scratch = site("config-activated");
    let line = "serve --root public --self-signed --listen 127.0.0.1:PORT";
    let server = Server::start(activated("tcp,udp,udp", line), &scratch.path(""), 2);
    assert!(curl(&[&server.url(0, "/file")]).ends_with("fine"));
    let get = format!("play get --http 3 --insecure {}", server.url(0, "/file"));
    assert_eq!(finish(command(&get)).status, 0);
    server.end();
    let mut other = activated("tcp,udp", "serve --root public --check --listen 127.0.0.1:PORT");
    other.current_dir(scratch.path(""));
    let Finished { status, stderr, .. } = finish(other);
    assert_eq!(status, 3, "{stderr}");
    assert!(
        stderr.contains("nothing listens on 127.0.0.1:") && stderr.contains("over UDP"),
        "{stderr}"
    );
}

/// What `/proc` says of all threads.
fn statuses(pid: u32) -> Vec<String> {
    let tasks = fs::read_dir(format!("/proc/{pid}/task")).unwrap();
    tasks.map(|it| fs::read_to_string(it.unwrap().path().join("status")).unwrap()).collect()
}

#[test]
fn privileges_are_dropped_once_it_listens() {
    if !rustix::process::geteuid().is_root() {
        return not_run(Capability::Netns, "not root");
    }
    let scratch = site("config-user");
    let open = |path: &str| {
        let mode = std::os::unix::fs::PermissionsExt::from_mode(0o777);
        fs::set_permissions(scratch.path(path), mode).unwrap();
    };
    open("");
    // An address of loopback that no other test uses, and a port that takes privileges.
    replace(
        &scratch,
        "root = \"public\"\nlisten = \"127.77.0.1:80\"\nuser = \"nobody\"\nkeys = \"keys\"\n",
    );
    let serve = command("serve --config serve.toml --admin unix:admin.sock");
    let mut server = Server::start(serve, &scratch.path(""), 1);
    let statuses = statuses(server.child.id());
    assert!(statuses.len() > 1);
    for status in statuses {
        let field = |name: &str| {
            let line = status.lines().find(|line| line.starts_with(name)).unwrap();
            line.split_whitespace().skip(1).map(str::to_owned).collect::<Vec<_>>()
        };
        assert_eq!(field("Uid:"), ["65534"; 4], "{status}");
        assert!(!field("Gid:").contains(&"0".to_owned()), "{status}");
        assert!(!field("Groups:").contains(&"0".to_owned()), "{status}");
        for set in ["CapEff:", "CapPrm:", "CapInh:", "CapAmb:"] {
            assert_eq!(field(set), ["0000000000000000"], "{set}");
        }
    }
    assert!(curl(&["http://127.77.0.1/file"]).ends_with("fine"));
    // What the user cannot read is refused, now and at the start.
    scratch.write("secret/file", "");
    let mode = std::os::unix::fs::PermissionsExt::from_mode(0o700);
    fs::set_permissions(scratch.path("secret"), mode).unwrap();
    let text = fs::read_to_string(scratch.path("serve.toml")).unwrap().replace("public", "secret");
    replace(&scratch, &text);
    server.signal(Signal::HUP);
    let notes = server.notes_until("configuration stays active");
    assert!(notes.contains("cannot serve 'secret'"), "{notes}");
    server.end();
    for (user, status, words) in [
        ("nobody", 3, "cannot serve 'secret'"),
        ("nosuchuser", 3, "user 'nosuchuser' does not exist"),
        ("root", 3, "root keeps its privileges"),
    ] {
        let mut serve = command(&format!("serve --root secret --listen 127.0.0.1:0 --user {user}"));
        serve.current_dir(scratch.path(""));
        let done = finish(serve);
        assert_eq!(done.status, status, "{}", done.stderr);
        assert!(done.stderr.contains(words), "{}", done.stderr);
    }
}

/// The texts in a language in the documentation, in order.
fn documented(language: &str) -> Vec<String> {
    let page = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../../docs/reference/serve.md");
    let page = fs::read_to_string(page).unwrap();
    let fence = format!("```{language}\n");
    let blocks = page.split(&fence).skip(1);
    blocks.map(|block| block.split("```").next().unwrap().to_owned()).collect()
}

#[test]
fn the_documented_file_is_right() {
    let scratch = site("config-documented");
    let [file] = documented("toml").try_into().expect("one file");
    let here = |path: &str| scratch.path(path).display().to_string();
    let mut file: String = file;
    for (documented, own) in [
        ("/srv/www", here("public")),
        ("/srv/example.org", here("other")),
        ("/etc/uncork/example.org", here("")),
        ("/etc/uncork", here("")),
        ("/run/uncork/", format!("{}/", here(""))),
        ("[::]:443", "127.0.0.1:0".to_owned()),
        ("[::]:80", "127.0.0.1:0".to_owned()),
    ] {
        assert!(file.contains(documented), "{documented}");
        file = file.replace(documented, &own);
    }
    let made = rcgen::generate_simple_self_signed(["example.org".to_owned()]).unwrap();
    scratch.write("chain.pem", made.cert.pem());
    scratch.write("key.pem", made.signing_key.serialize_pem());
    scratch.write("policy.toml", "");
    scratch.write("public/404.html", "");
    replace(&scratch, &file);
    let mut check = command("serve --config serve.toml --check");
    check.current_dir(scratch.path(""));
    let Finished { status, stdout, stderr } = finish(check);
    assert_eq!((status, stdout.as_str(), stderr.as_str()), (0, "", ""));
    let server = Server::start(command("serve --config serve.toml --quiet"), &scratch.path(""), 3);
    let moved = curl(&[&server.url(2, "/old/x")]);
    assert!(moved.contains("308") && moved.contains("location: https://127.0.0.1:"), "{moved}");
    let own = curl(&[&server.url(0, "/file"), "-H", "Host: www.example.org"]);
    assert!(own.contains("x-frame-options: DENY") && own.ends_with("other"), "{own}");
    server.end();
}

/// A free port of loopback.
fn free_port() -> u16 {
    std::net::TcpListener::bind("127.0.0.1:0").unwrap().local_addr().unwrap().port()
}

struct Nginx(Child);

impl Nginx {
    /// Runs nginx with the documentation's configuration, in which `replacements` are made.
    fn start(scratch: &Scratch, configuration: &str, replacements: &[(&str, String)]) -> Self {
        let configuration = replacements
            .iter()
            .fold(configuration.to_owned(), |text, (from, to)| text.replace(from, to));
        let main = format!(
            "daemon off;\nmaster_process off;\npid nginx.pid;\nerror_log error.log;\nevents {{}}\n{configuration}"
        );
        scratch.write("nginx.conf", main);
        let mut nginx = Command::new("nginx");
        nginx.arg("-p").arg(scratch.path("")).args(["-c", "nginx.conf", "-e", "error.log"]);
        Self(nginx.stdin(Stdio::null()).stderr(Stdio::null()).spawn().unwrap())
    }
}

impl Drop for Nginx {
    fn drop(&mut self) {
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

/// What curl says, once something listens.
fn curl_soon(url: &str) -> String {
    wait_for("nginx", Duration::from_secs(20), || {
        let curl = Command::new("curl").args(["-sSkiL", url]).output().unwrap();
        curl.status.success().then(|| String::from_utf8(curl.stdout).unwrap())
    })
}

#[test]
fn serve_next_to_and_behind_nginx_as_documented() {
    if Command::new("nginx").arg("-v").output().is_err() {
        return not_run(Capability::Nginx, "nginx is not installed");
    }
    let documented = documented("nginx");
    assert_eq!(documented.len(), 2, "one next to nginx, one behind");
    for configuration in &documented {
        let scratch = site("config-nginx");
        let is_behind = configuration.contains("proxy_pass");
        let identity = if is_behind { "" } else { "--self-signed" };
        let serve = format!(
            "serve --root public --listen 127.0.0.1:0 --no-http3 --records records.jsonl {identity}"
        );
        let server = Server::start(command(&serve), &scratch.path(""), 1);
        let upstream = server.printed[0].split(['/', ' ']).nth(2).unwrap().to_owned();
        let port = free_port();
        let replacements = [
            ("files.example.org", upstream.clone()),
            ("127.0.0.1:8080", upstream),
            ("listen 80", format!("listen 127.0.0.1:{port}")),
        ];
        let _nginx = Nginx::start(&scratch, configuration, &replacements);
        let response = curl_soon(&format!("http://127.0.0.1:{port}/downloads/file"));
        assert!(response.ends_with("fine"), "{configuration}\n{response}");
        server.end();
        let records = fs::read_to_string(scratch.path("records.jsonl")).unwrap();
        assert!(records.contains("\"status\":200"), "{records}");
    }
}
