//! Tests of the admin endpoint while clients are served.

use std::fs;
use std::io::{Read, Write};
use std::net::SocketAddr;
use std::os::unix::fs::PermissionsExt;
use std::os::unix::net::{UnixListener, UnixStream};
use std::path::Path;
use std::thread;
use std::time::Duration;

use crate::common::{Client, Response, Scratch, Served, content, spec};
use serde_json::Value;
use uncork_serve::{AdminAddress, AdminSpec, RecordsSpec, Server, ServerSpec};
use uncork_testkit::wait_for;

const LIMIT: Duration = Duration::from_mins(1);

fn with_admin(root: &Path, address: &str) -> ServerSpec {
    let mut spec = spec(root);
    spec.admin = Some(AdminSpec { address: address.parse().expect("an address"), anywhere: false });
    spec
}

fn admin_address(served: &Served) -> SocketAddr {
    match served.server.admin() {
        Some(AdminAddress::Tcp(address)) => *address,
        other => panic!("{other:?}"),
    }
}

fn ask(admin_address: SocketAddr, path: &str) -> Response {
    Client::new(admin_address).ask(&admin_address.to_string(), "GET", path, "").expect("an answer")
}

fn status(admin_address: SocketAddr) -> Value {
    serde_json::from_slice(&ask(admin_address, "/status.json").body).expect("JSON")
}

fn text(response: &Response) -> String {
    String::from_utf8(response.body.clone()).expect("text")
}

#[test]
fn health_metrics_and_status_are_served() {
    let scratch = Scratch::new("serve");
    scratch.write("root/file", content(1_000_000));
    let mut spec = with_admin(&scratch.path("root"), "127.0.0.1:0");
    spec.records = Some(RecordsSpec::new(scratch.path("records/")));
    spec.listeners[0].name = "edge".to_owned();
    spec.listeners[0].cc = Some("reno".to_owned());
    let served = Served::new(&spec);
    let admin_address = admin_address(&served);
    assert_eq!(text(&ask(admin_address, "/healthz")), "serving\n");
    let mut client = served.connect();
    client.request("GET", "/file", "").expect("a response");
    client.request("GET", "/missing", "").expect("a response");
    let metrics = ask(admin_address, "/metrics");
    let kind = "application/openmetrics-text; version=1.0.0; charset=utf-8";
    assert_eq!(metrics.header("content-type"), kind);
    let metrics = text(&metrics);
    let labels = r#"listener="edge",protocol="h1",cc="reno",experiment="",arm="""#;
    for line in [
        format!("uncork_serve_open_connections{{{labels}}} 1\n"),
        format!("uncork_serve_responses_total{{{labels},class=\"2xx\"}} 1\n"),
        "uncork_serve_records_total{result=\"lost\"} 0\n".to_owned(),
    ] {
        assert!(metrics.contains(&line), "{line} is not in\n{metrics}");
    }
    let mut scanner = served.connect();
    scanner.send(b"GET / HTTP/1.1\r\nHost: test\r\nA: b\0\r\n\r\n").expect("sent");
    assert_eq!(scanner.head().expect("a head").status, 400);
    drop(scanner);
    wait_for("a count of refused heads", LIMIT, || {
        let line = "uncork_serve_refused_heads_total{listener=\"edge\"} 1\n";
        text(&ask(admin_address, "/metrics")).contains(line).then_some(())
    });
    let series = |status: &Value| {
        let all = status["series"].as_array().expect("series").clone();
        all.into_iter().find(|one| one["protocol"] == "h1").expect("the client's")
    };
    let now = status(admin_address);
    assert_eq!((&now["state"], &now["policy"]), (&"serving".into(), &Value::Null));
    assert!(series(&now)["bytes_acked"].as_u64() > Some(1_000_000), "{now}");
    assert_eq!(now["recent"][0]["service"]["host"], "test");
    drop(client);
    // The observer notices the end of the connection a moment later.
    wait_for("the end of the connection", LIMIT, || {
        (series(&status(admin_address))["open"] == 0).then_some(())
    });
    served.stop();
}

#[test]
fn health_reports_draining() {
    let scratch = Scratch::new("serve");
    scratch.write("file", content(64 << 20));
    let served = Served::new(&with_admin(&scratch.path(""), "127.0.0.1:0"));
    let admin_address = admin_address(&served);
    let mut slow = served.connect();
    slow.send(b"GET /file HTTP/1.1\r\nHost: test\r\n\r\n").expect("sent");
    slow.head().expect("a head");
    let ending = thread::spawn(move || served.stop());
    let health = wait_for("the drain", LIMIT, || {
        Some(ask(admin_address, "/healthz")).filter(|it| it.status != 200)
    });
    assert_eq!((health.status, text(&health).as_str()), (503, "draining\n"));
    assert_eq!(status(admin_address)["state"], "draining");
    slow.0.read_exact(&mut vec![0; 64 << 20]).expect("all of it");
    drop(slow);
    ending.join().expect("ended");
}

const POLICY: &str = r#"key = "000102030405060708090a0b0c0d0e0f"

[default]
tcp = "cubic"

[[rule]]
host = "test"
experiment = "may"

[experiment.may]
unit = "prefix"
share = "100%"
salt = "1"

[experiment.may.arm.all]
weight = 1
tcp = "reno"
"#;

/// The kernel is sampled while a response is written, not only at its end.
#[test]
fn an_open_tcp_connection_counts_for_its_arm() {
    const READ: usize = 5_000_000;
    let scratch = Scratch::new("serve");
    scratch.write("root/large", content(64 << 20));
    scratch.write("policy.toml", POLICY);
    let mut spec = with_admin(&scratch.path("root"), "127.0.0.1:0");
    spec.policy = Some(scratch.path("policy.toml"));
    let served = Served::new(&spec);
    let admin_address = admin_address(&served);
    let series = |what: &str, is_so: &dyn Fn(&Value) -> bool| {
        wait_for(what, LIMIT, || {
            let all = status(admin_address)["series"].as_array().expect("series").clone();
            all.into_iter().find(|one| one["protocol"] == "h1" && is_so(one))
        })
    };
    let mut client = served.connect();
    client.request("GET", "/policy.toml", "").expect("a response");
    let is_over =
        |it: &Value| it["responses"].as_array().expect("classes").iter().any(|it| it[1] == 1);
    let looks = |it: &Value| {
        let counts = it["rtt_ratio"].as_array().expect("counts");
        counts.iter().filter_map(Value::as_u64).sum::<u64>()
    };
    let before = looks(&series("the first response", &is_over));
    client.send(b"GET /large HTTP/1.1\r\nHost: test\r\n\r\n").expect("sent");
    client.head().expect("a head");
    client.0.read_exact(&mut vec![0; READ]).expect("the first part");
    // The client does not read the rest, so the response does not end.
    let open =
        series("the part that was read", &|it| it["bytes_acked"].as_u64() >= Some(READ as u64));
    assert_eq!((&open["open"], &open["connections"]), (&1.into(), &0.into()), "{open}");
    let labels = ["cc", "experiment", "arm"].map(|label| open[label].as_str().expect("text"));
    assert_eq!(labels, ["reno", "may", "all"]);
    series("more samples of the round trip", &|it| looks(it) > before + 1);
    drop(client);
    let over = series("the end", &|it| it["open"] == 0);
    assert_eq!((&over["connections"], &over["broken_off"]), (&1.into(), &1.into()), "{over}");
    served.stop();
}

#[test]
fn invalid_admin_requests_get_specific_errors() {
    let scratch = Scratch::new("serve");
    let served = Served::new(&with_admin(&scratch.path(""), "127.0.0.1:0"));
    let admin_address = admin_address(&served);
    let of = |method: &str, path: &str, host: &str| {
        Client::new(admin_address).ask(host, method, path, "").expect("an answer")
    };
    assert_eq!(of("GET", "/nothing", "localhost").status, 404);
    let post = of("POST", "/healthz", "localhost:1");
    assert_eq!((post.status, post.header("allow")), (405, "GET, HEAD"));
    assert_eq!(of("GET", "/status.json", "[::1]:80").status, 200);
    assert_eq!(of("GET", "/status.json", "LocalHost:80").status, 200);
    // A web page with such a host name could read the responses (DNS rebinding).
    for name in ["evil.example", "localhost.evil.example", "127.0.0.1.evil.example:80", ""] {
        assert_eq!(of("GET", "/status.json", name).status, 421, "{name}");
    }
    let page = of("GET", "/", "127.0.0.1");
    let policy = page.header("content-security-policy");
    assert!(policy.starts_with("default-src 'none'; style-src 'sha256-"), "{policy}");
    assert!(!policy.contains("unsafe"), "{policy}");
    assert_eq!(page.header("x-content-type-options"), "nosniff");
    assert!(!text(&page).contains("http://") || text(&page).matches("src=").count() == 0);
    served.stop();
}

#[test]
fn admin_listens_on_public_addresses_only_if_allowed() {
    let scratch = Scratch::new("serve");
    let mut spec = with_admin(&scratch.path(""), "0.0.0.0:0");
    let refused = Server::start(&spec).map(drop).expect_err("refused");
    assert!(refused.is_usage());
    assert!(refused.to_string().starts_with("0.0.0.0:0 is reachable by others"), "{refused}");
    if let Some(admin) = &mut spec.admin {
        admin.anywhere = true;
    }
    Served::new(&spec).stop();
}

fn ask_unix(path: &Path, what: &str) -> String {
    let mut stream = UnixStream::connect(path).expect("connects");
    write!(stream, "GET {what} HTTP/1.1\r\nHost: any\r\nConnection: close\r\n\r\n").expect("sent");
    let mut answer = String::new();
    stream.read_to_string(&mut answer).expect("an answer");
    answer
}

#[test]
fn a_unix_socket_is_accessible_only_to_its_owner() {
    let scratch = Scratch::new("serve");
    let socket = scratch.path("admin.sock");
    let address = format!("unix:{}", socket.display());
    let spec = with_admin(&scratch.path(""), &address);
    // A socket file left behind by a killed server.
    drop(UnixListener::bind(&socket).expect("bound"));
    let served = Served::new(&spec);
    let mode = fs::metadata(&socket).expect("a socket").permissions().mode();
    assert_eq!(mode & 0o777, 0o600);
    assert!(ask_unix(&socket, "/healthz").ends_with("\r\n\r\nserving\n"));
    let taken = Server::start(&spec).map(drop).expect_err("taken").to_string();
    assert!(taken.contains(&address) && taken.contains("in use"), "{taken}");
    served.stop();
    assert!(!socket.exists());
    // A file that is not a socket is not replaced.
    fs::write(&socket, "precious").expect("a file");
    Server::start(&spec).map(drop).expect_err("a file of somebody's");
    assert_eq!(fs::read_to_string(&socket).expect("the file"), "precious");
}

/// Polls like Prometheus: counters grow between two polls, and silent clients do not block it.
#[test]
fn silent_admin_clients_block_no_others() {
    let scratch = Scratch::new("serve");
    let served = Served::new(&with_admin(&scratch.path(""), "127.0.0.1:0"));
    let admin_address = admin_address(&served);
    let silent: Vec<_> = (0..20).map(|_| Client::new(admin_address)).collect();
    assert_eq!(ask(admin_address, "/healthz").status, 200);
    drop(silent);
    served.stop();
}
