//! Tests of the controller in effect, and of the record of each response.

use std::fs;
use std::io::Read;
use std::process::Command;
use std::time::{Duration, UNIX_EPOCH};

use crate::common::{Scratch, Served, available, connections, content, listener, records, spec};
use uncork_flow::{FlowRecord, Scope};
use uncork_serve::{Identity, RecordsSpec, Server};
use uncork_testkit::pause;

const LENGTH: usize = 3_000_000;

#[test]
fn each_listener_uses_its_configured_controller() {
    let scratch = Scratch::new("serve");
    scratch.write("file", "fine");
    let mut spec = spec(&scratch.path(""));
    spec.listeners = available().iter().map(|cc| listener(cc, Some(cc))).collect();
    let served = Served::new(&spec);
    for (listening, name) in served.server.listening().iter().zip(available()) {
        assert_eq!(listening.cc, name);
        let mut client = crate::common::Client::new(listening.address);
        let response = client.request("GET", "/file", "").expect("a response");
        assert_eq!(response.timing_controller(), format!("cc;desc=\"{name}\""));
        let timing = response.header("server-timing");
        assert!(timing.contains(", rtt;dur=") && timing.contains(", min-rtt;dur="), "{timing}");
        assert_eq!(timing.contains(", pacing;desc="), name.starts_with("bbr"), "{timing}");
        assert_eq!(client.controller(), name);
    }
    served.stop();
}

#[test]
fn an_unavailable_controller_is_an_error_that_lists_available_ones() {
    let scratch = Scratch::new("serve");
    let mut spec = spec(&scratch.path(""));
    spec.listeners[0].cc = Some("nosuchcc".to_owned());
    for error in [Server::start(&spec).map(drop), spec.check().map(drop)] {
        let error = error.expect_err("no such controller").to_string();
        assert!(error.contains("no congestion control 'nosuchcc'"), "{error}");
        assert!(error.contains(&available().join(", ")), "{error}");
    }
}

/// Over loopback the figures match the file: nothing is lost, and TLS or heads add little.
#[test]
fn a_response_leaves_a_record() {
    let scratch = Scratch::new("serve");
    scratch.write("root/file", content(LENGTH));
    // More than the socket buffers of both sides hold.
    scratch.write("root/large", content(64 << 20));
    let mut spec = spec(&scratch.path("root"));
    spec.records = Some(RecordsSpec::new(scratch.path("records")));
    spec.listeners[0].cc = Some("reno".to_owned());
    let served = Served::new(&spec);
    let mut client = served.connect();
    for _ in 0..2 {
        client.request("GET", "/file", "").expect("a response");
    }
    client.request("GET", "/missing", "").expect("a response");
    drop(client);
    let mut broken = served.connect();
    broken.send(b"GET /large HTTP/1.1\r\nHost: test\r\n\r\n").expect("sent");
    broken.head().expect("a head");
    drop(broken);
    let summary = served.stop();
    assert_eq!((summary.written, summary.lost), (6, 0));
    let records = records(&scratch.path("records"));
    for record in &records {
        assert_eq!((record.engine.as_str(), record.cc.as_str()), ("serve", "reno"));
    }
    for whole in &records[..2] {
        assert_eq!((whole.size_bytes, whole.bytes_delivered), (Some(LENGTH as u64), LENGTH as u64));
        let head = whole.bytes_acked - LENGTH as u64;
        assert!((100..1000).contains(&head), "{head}");
        assert!(whole.bytes_sent >= whole.bytes_acked);
        assert!(whole.packets_sent > 0 && whole.rtt_ms.is_some());
        let (first, last) =
            (whole.first_byte_ns.expect("bytes"), whole.completion_ns.expect("an end"));
        assert!(first <= last, "{first} {last}: nothing is acknowledged before it was written");
    }
    assert!(records[0].start_ns < records[1].start_ns);
    assert_eq!(records[2].bytes_delivered, "404 Not Found\n".len() as u64);
    assert!(records[3].bytes_delivered < 64 << 20);
    assert_eq!((records[3].flow, records[3].completion_ns), (1, None));
    let [all, broken] = connections(&scratch.path("records")).try_into().expect("two connections");
    assert_eq!((all.flow, broken.flow), (0, 1));
    let of = |record: &FlowRecord| record.service.clone().expect("a server's");
    assert_eq!((of(&all).responses, of(&all).broken_off), (3, 0));
    assert_eq!((of(&broken).responses, of(&broken).broken_off), (1, 1));
    assert_eq!(all.bytes_delivered, 2 * LENGTH as u64 + "404 Not Found\n".len() as u64);
    let acked: u64 = records[..3].iter().map(|record| record.bytes_acked).sum();
    assert_eq!(all.bytes_acked, acked, "what was sent is what responses are");
    assert!(all.start_ns <= records[0].start_ns && all.completion_ns > records[1].completion_ns);
}

/// A record contains the client's network, the response and the sender's limits, but not the
/// client's address.
#[test]
fn a_record_contains_the_response_and_the_client_network() {
    let scratch = Scratch::new("serve");
    scratch.write("root/file", content(LENGTH));
    let mut spec = spec(&scratch.path("root"));
    spec.records = Some(RecordsSpec::new(scratch.path("records")));
    spec.listeners[0].name = "edge".to_owned();
    let before = UNIX_EPOCH.elapsed().expect("after 1970").as_nanos() as u64;
    let served = Served::new(&spec);
    // Accepted first, and closed before it sends a request.
    let mut silent = served.connect();
    silent.send(b"GE").expect("sent");
    drop(silent);
    let mut client = served.connect();
    client
        .send(b"GET /file HTTP/1.1\r\nHost: WWW.Example.org:80\r\nRange: bytes=10-19\r\n\r\n")
        .expect("sent");
    client.head().expect("a head");
    drop(client);
    served.stop();
    let [record] = records(&scratch.path("records")).try_into().expect("one response");
    let service = record.service.expect("a server's");
    assert_eq!((service.scope, service.protocol.as_str()), (Scope::Response, "h1"));
    assert_eq!((&*service.listener, service.host.as_deref()), ("edge", Some("www.example.org")));
    assert_eq!((service.client.as_deref(), service.status), (Some("127.0.0.0/24"), Some(206)));
    assert_eq!((record.size_bytes, service.object_bytes), (Some(10), Some(LENGTH as u64)));
    assert!((before..before + 60_000_000_000).contains(&service.start_unix_ns));
    assert!(service.min_rtt_ns.is_some_and(|min| min < 1_000_000_000));
    assert_eq!((service.rwnd_limited_ns, service.sndbuf_limited_ns), (Some(0), Some(0)));
    assert_eq!(record.choice, None);
    let mut all = connections(&scratch.path("records"));
    // Separate tasks serve the connections, so their numbers and the order of their ends are
    // random.
    all.sort_by_key(|record| record.service.as_ref().expect("it").responses);
    let services = all.iter().map(|record| record.service.as_ref().expect("it"));
    let found: Vec<_> = services.map(|it| (it.responses, &*it.protocol)).collect();
    assert_eq!(found, [(0, "tcp"), (1, "h1")]);
}

/// A client that reads slowly limits the sender by its window.
#[test]
fn a_slow_client_is_distinguished_from_a_slow_path() {
    let scratch = Scratch::new("serve");
    scratch.write("root/file", content(64 << 20));
    let mut spec = spec(&scratch.path("root"));
    spec.records = Some(RecordsSpec::new(scratch.path("records")));
    let served = Served::new(&spec);
    let mut client = served.connect();
    client.send(b"GET /file HTTP/1.1\r\nHost: test\r\n\r\n").expect("sent");
    client.head().expect("a head");
    pause(Duration::from_millis(600), "a client that does not read");
    let mut body = vec![0; 64 << 20];
    client.0.read_exact(&mut body).expect("a body");
    drop(client);
    served.stop();
    let [record] = records(&scratch.path("records")).try_into().expect("one response");
    let limited =
        record.service.and_then(|service| service.rwnd_limited_ns).expect("a limited time");
    assert!((400_000_000..=record.busy_ns).contains(&limited), "{limited} of {}", record.busy_ns);
}

/// curl negotiates HTTP/2 by ALPN, and falls back to HTTP/1.1 if asked to.
#[test]
fn curl_gets_files_over_both_versions() {
    let (scratch, bytes) = (Scratch::new("serve"), content(LENGTH));
    scratch.write("root/file", &bytes);
    let mut spec = spec(&scratch.path("root"));
    spec.identity = Identity::SelfSigned;
    spec.records = Some(RecordsSpec::new(scratch.path("records")));
    let served = Served::new(&spec);
    let url = format!("https://{}/file", served.address);
    for (version, number) in [("--http2", "2"), ("--http1.1", "1.1")] {
        let out = scratch.path("out");
        let curl = Command::new("curl")
            .args(["-sSk", version, "-w", "%{http_version} %{http_code}", "-r", "1000-", "-o"])
            .args([out.as_os_str(), url.as_ref()])
            .output()
            .expect("curl runs");
        assert!(curl.status.success(), "{}", String::from_utf8_lossy(&curl.stderr));
        assert_eq!(String::from_utf8_lossy(&curl.stdout), format!("{number} 206"));
        assert!(fs::read(out).expect("the file") == bytes[1000..]);
    }
    // Many streams on one connection.
    let many = format!("{url}?[1-20]");
    let curl = Command::new("curl")
        .args(["-sSkZ", "--http2", "-o", "/dev/null", "-w", "%{size_download}\n"])
        .arg(many)
        .output()
        .expect("curl runs");
    let sizes = String::from_utf8_lossy(&curl.stdout).into_owned();
    assert_eq!(sizes.lines().filter(|size| *size == LENGTH.to_string()).count(), 20, "{sizes}");
    served.stop();
    let records = records(&scratch.path("records"));
    assert_eq!(records.len(), 22);
    for record in &records {
        assert_eq!(Some(record.bytes_delivered), record.size_bytes, "{record:?}");
        assert!(record.completion_ns.is_some(), "{record:?}");
    }
}

/// The client of Python's standard library, over HTTP/1.1 and TLS, on one connection.
#[test]
fn python_gets_ranges() {
    let (scratch, bytes) = (Scratch::new("serve"), content(LENGTH));
    scratch.write("file", &bytes);
    let mut spec = spec(&scratch.path(""));
    spec.identity = Identity::SelfSigned;
    let served = Served::new(&spec);
    let script = "import http.client, ssl, sys, hashlib\n\
        c = http.client.HTTPSConnection('127.0.0.1', int(sys.argv[1]), \
        context=ssl._create_unverified_context())\n\
        whole = open(sys.argv[2], 'rb').read()\n\
        for i in range(200):\n    \
            a = (i * 7919) % 2900000; b = a + i * 331\n    \
            c.request('GET', '/file', headers={'Range': f'bytes={a}-{b}'})\n    \
            r = c.getresponse(); body = r.read()\n    \
            assert r.status == 206 and body == whole[a:b + 1], (i, r.status, len(body))\n\
        print('equal')";
    let python = Command::new("python3")
        .args(["-c", script, &served.address.port().to_string()])
        .arg(scratch.path("file"))
        .output()
        .expect("python3 runs");
    let errors = String::from_utf8_lossy(&python.stderr).into_owned();
    assert_eq!(String::from_utf8_lossy(&python.stdout), "equal\n", "{errors}");
    served.stop();
}
