//! The controller in force, and what is told of each response.
#![cfg(target_os = "linux")]

mod common;

use std::fs;
use std::process::Command;

use common::{Scratch, Served, available, content, listener, records, spec};
use uncork_serve::{Identity, Server};

const LENGTH: usize = 3_000_000;

#[test]
fn each_listener_has_the_controller_asked_for() {
    let scratch = Scratch::new();
    scratch.write("file", "fine");
    let mut spec = spec(&scratch.0);
    spec.listeners = available().iter().map(|cc| listener(cc, Some(cc))).collect();
    let served = Served::new(&spec);
    for (listening, name) in served.server.listening().iter().zip(available()) {
        assert_eq!(listening.cc, name);
        let mut client = common::Client::new(listening.address);
        let response = client.request("GET", "/file", "").expect("a response");
        assert_eq!(response.header("server-timing"), format!("cc;desc=\"{name}\""));
        assert_eq!(client.controller(), name);
    }
    served.stop();
}

#[test]
fn a_controller_that_is_not_there_is_an_error_with_those_that_are() {
    let scratch = Scratch::new();
    let mut spec = spec(&scratch.0);
    spec.listeners[0].cc = Some("nosuchcc".to_owned());
    for error in [Server::start(&spec).map(drop), spec.check().map(drop)] {
        let error = error.expect_err("no such controller").to_string();
        assert!(error.contains("no congestion control 'nosuchcc'"), "{error}");
        assert!(error.contains(&available().join(", ")), "{error}");
    }
}

/// Over loopback the figures are those of the file: nothing is lost, and TLS or heads add little.
#[test]
fn a_response_leaves_a_record() {
    let scratch = Scratch::new();
    scratch.write("root/file", content(LENGTH));
    // More than the sockets of both sides hold.
    scratch.write("root/large", content(64 << 20));
    let mut spec = spec(&scratch.path("root"));
    spec.records = Some(scratch.path("records"));
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
    assert_eq!((summary.written, summary.lost), (4, 0));
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
        assert!(first <= last + 1_000_000, "{first} {last}: acknowledgements are told to the ms");
    }
    assert!(records[0].start_ns < records[1].start_ns);
    assert_eq!(records[2].bytes_delivered, "404 Not Found\n".len() as u64);
    assert!(records[3].bytes_delivered < 64 << 20);
    assert_eq!((records[3].flow, records[3].completion_ns), (1, None));
}

/// curl negotiates HTTP/2 by ALPN, and falls back to HTTP/1.1 where asked to.
#[test]
fn curl_gets_files_over_both_versions() {
    let (scratch, bytes) = (Scratch::new(), content(LENGTH));
    scratch.write("root/file", &bytes);
    let mut spec = spec(&scratch.path("root"));
    spec.identity = Identity::SelfSigned;
    spec.records = Some(scratch.path("records"));
    let served = Served::new(&spec);
    let url = format!("https://{}/file", served.address);
    for (version, told) in [("--http2", "2"), ("--http1.1", "1.1")] {
        let out = scratch.path("out");
        let curl = Command::new("curl")
            .args(["-sSk", version, "-w", "%{http_version} %{http_code}", "-r", "1000-", "-o"])
            .args([out.as_os_str(), url.as_ref()])
            .output()
            .expect("curl runs");
        assert!(curl.status.success(), "{}", String::from_utf8_lossy(&curl.stderr));
        assert_eq!(String::from_utf8_lossy(&curl.stdout), format!("{told} 206"));
        assert!(fs::read(out).expect("the file") == bytes[1000..]);
    }
    // Many streams of one connection.
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

/// The standard library's client, over HTTP/1.1 and TLS, on one connection.
#[test]
fn python_gets_ranges() {
    let (scratch, bytes) = (Scratch::new(), content(LENGTH));
    scratch.write("file", &bytes);
    let mut spec = spec(&scratch.0);
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
    let told = String::from_utf8_lossy(&python.stderr).into_owned();
    assert_eq!(String::from_utf8_lossy(&python.stdout), "equal\n", "{told}");
    served.stop();
}
