//! `uncork serve` as its documentation shows it.

use std::fs;
use std::io::{BufRead, BufReader, Read, Write};
use std::net::TcpStream;
use std::path::Path;
use std::process::{Child, Command, Stdio};

use crate::common::schema::{assert_describes, lines};
use crate::common::{Scratch, command, finish};
use rustix::process::{Pid, Signal, kill_process};

/// Ends with the test.
struct Server(Child);

impl Server {
    /// Starts `uncork` with the arguments of `line`, and gives what it prints for each of its listeners.
    fn start(line: &str, directory: &Path, listeners: usize) -> (Self, Vec<String>) {
        let mut serve = command(line);
        serve.current_dir(directory).stdout(Stdio::piped()).stderr(Stdio::piped());
        let mut child = serve.spawn().expect("starts");
        let lines = BufReader::new(child.stdout.take().expect("piped")).lines();
        let lines: Vec<_> = lines.take(listeners).map(|line| line.expect("text")).collect();
        (Self(child), lines)
    }

    fn end(mut self) -> Option<i32> {
        let pid = Pid::from_child(&self.0);
        kill_process(pid, Signal::TERM).expect("signalled");
        self.0.wait().expect("ends").code()
    }
}

impl Drop for Server {
    fn drop(&mut self) {
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

fn public(name: &str) -> Scratch {
    let scratch = Scratch::new(name);
    fs::create_dir(scratch.path("public")).expect("a directory");
    fs::write(scratch.path("public/file"), "fine").expect("a file");
    let policy = "[[rule]]\nhost = \"*-bbr*\"\nuse = { tcp = \"bbr\" }\n";
    fs::write(scratch.path("policy.toml"), policy).expect("a policy");
    scratch
}

/// The commands of the page, on free ports, at the same time.
#[test]
fn the_documentation_serves() {
    let page = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../../docs/reference/serve.md");
    let page = fs::read_to_string(page).expect("the page");
    let scratch = public("serve-documented");
    let mut count = 0;
    for line in page.lines().filter_map(|line| line.strip_prefix("uncork ")) {
        let mut line = line.split('#').next().unwrap_or_default().trim().to_owned();
        count += 1;
        if line.contains("--check") {
            // The documentation's port may be taken here.
            let mut check = command(&format!("{line} --listen 127.0.0.1:0"));
            check.current_dir(scratch.path(""));
            let done = finish(check);
            assert_eq!((done.status, done.stdout.as_str(), done.stderr.as_str()), (0, "", ""));
            continue;
        }
        for port in [":8080", ":8081", ":8443"] {
            line = line.replace(port, ":0");
        }
        if !line.contains("--listen") {
            line.push_str(" --listen 127.0.0.1:0");
        }
        let listeners = line.matches("--listen").count();
        let (server, printed) = Server::start(&line, &scratch.path(""), listeners);
        for line in &printed {
            let &[url, cc, versions] = &*line.split(' ').collect::<Vec<_>>() else {
                panic!("a URL, a controller and versions: {line}");
            };
            assert!(!cc.is_empty() && versions.starts_with("http/1.1"), "{line}");
            let url = url.replace("0.0.0.0", "127.0.0.1");
            let curl = Command::new("curl").args(["-sSk", &format!("{url}/file")]).output();
            let curl = curl.expect("curl runs");
            assert_eq!(String::from_utf8_lossy(&curl.stdout), "fine", "{line}");
        }
        if line.contains("--admin unix:admin.sock") {
            let mut curl = Command::new("curl");
            curl.args(["-sS", "--unix-socket", "admin.sock", "http://localhost/status.json"]);
            let status = curl.current_dir(scratch.path("")).output().expect("curl runs").stdout;
            assert_describes("serve-status-1", &lines(&String::from_utf8_lossy(&status)));
        }
        assert_eq!(server.end(), Some(0), "{line}");
    }
    assert_eq!(count, 7);
    let records = fs::read_to_string(scratch.path("responses.jsonl")).expect("the records");
    assert!(records.starts_with(r#"{"engine":"serve","group":"bbr","cc":"bbr","#), "{records}");
    let records = lines(&records);
    assert_eq!(records.len(), 2, "of a response, and of its connection");
    assert_describes("flow-record", &records);
}

#[test]
fn impossible_options_exit_with_their_status() {
    let scratch = public("serve-refused");
    let serve = |arguments: &str| {
        let mut serve = command(&format!("serve --listen 127.0.0.1:0 {arguments}"));
        serve.current_dir(scratch.path(""));
        let done = finish(serve);
        (done.status, done.stderr)
    };
    let (status, error) = serve("--root public --cc nosuchcc");
    assert_eq!(status, 3, "{error}");
    assert!(error.starts_with("error: ") && error.contains(" 'nosuchcc': "), "{error}");
    let (status, error) = serve("--root missing");
    assert_eq!(status, 3, "{error}");
    let (status, error) = serve("--root public --listen 0.0.0.0:0");
    assert_eq!(status, 2, "{error}");
    let (status, error) = serve("--root public --tls-cert public/file --tls-key public/file");
    assert_eq!(status, 2, "{error}");
    assert!(error.contains("public/file"), "{error}");
    let (status, error) = serve("--root public --cors a\u{7f}");
    assert_eq!(status, 2, "{error}");
}

/// A response to a slow client is completed after SIGTERM.
#[test]
fn sigterm_lets_responses_end() {
    let scratch = public("serve-ended");
    let length = 64 << 20;
    fs::write(scratch.path("public/large"), vec![7; length]).expect("a file");
    let line = "serve --root public --listen 127.0.0.1:0";
    let (server, lines) = Server::start(line, &scratch.path(""), 1);
    let address = lines[0].split(['/', ' ']).nth(2).expect("an address").to_owned();
    let mut client = TcpStream::connect(address).expect("a connection");
    client.write_all(b"GET /large HTTP/1.1\r\nHost: test\r\n\r\n").expect("sent");
    client.read_exact(&mut [0; 1000]).expect("some of it");
    kill_process(Pid::from_child(&server.0), Signal::TERM).expect("signalled");
    let mut rest = Vec::new();
    client.read_to_end(&mut rest).expect("the rest");
    assert!(rest.len() + 1000 > length && rest.ends_with(&[7; 1000]));
    let mut server = server;
    assert_eq!(server.0.wait().expect("ends").code(), Some(0));
}
