//! Tests of files that change, of clients that misbehave, and of a shutdown under load.
#![cfg(target_os = "linux")]

mod common;

use std::fs::{self, File};
use std::io::{Read, Write};
use std::net::{Ipv4Addr, TcpStream};
use std::thread;
use std::time::Duration;

use common::{Client, Scratch, Served, content, spec};
use uncork_serve::{Limits, ServeError, Server};
use uncork_testkit::{pause, wait_until};

/// More than the socket buffers of both sides hold.
const LARGE: usize = 64 << 20;

/// A client that has received the head of a large response, and has some of the body in its socket.
fn half_way(served: &Served) -> (Client, u64) {
    let mut client = served.connect();
    client.send(b"GET /file HTTP/1.1\r\nHost: test\r\n\r\n").expect("sent");
    let head = client.head().expect("a head");
    assert_eq!(head.status, 200);
    (client, head.header("content-length").parse().expect("a length"))
}

#[test]
fn a_response_keeps_sending_the_replaced_file() {
    let (scratch, old) = (Scratch::new("serve"), content(LARGE));
    scratch.write("file", &old);
    let served = Served::new(&spec(&scratch.path("")));
    let (mut client, length) = half_way(&served);
    scratch.write("new", "new");
    fs::rename(scratch.path("new"), scratch.path("file")).expect("renamed");
    let mut body = vec![0; length as usize];
    client.0.read_exact(&mut body).expect("all of it");
    assert!(body == old);
    assert_eq!(client.request("GET", "/file", "").expect("a response").body, b"new");
    served.stop();
}

/// A file that is only moved or linked to has not changed its contents.
#[test]
fn a_moved_file_is_sent_completely() {
    let (scratch, bytes) = (Scratch::new("serve"), content(LARGE));
    scratch.write("file", &bytes);
    let served = Served::new(&spec(&scratch.path("")));
    let (mut client, length) = half_way(&served);
    let mut body = vec![0; length as usize];
    let (first, rest) = body.split_at_mut(LARGE / 4);
    fs::hard_link(scratch.path("file"), scratch.path("link")).expect("linked");
    client.0.read_exact(first).expect("some of it");
    fs::rename(scratch.path("file"), scratch.path("moved")).expect("renamed");
    client.0.read_exact(rest).expect("all of it");
    assert!(body == bytes);
    served.stop();
}

/// No padding and no mixture of versions: the connection ends before the promised length, after
/// correct bytes only.
#[test]
fn a_changed_file_aborts_the_response() {
    let (truncate, overwrite) = (
        |file: &mut File| file.set_len(1000).expect("truncated"),
        |file: &mut File| file.write_all(&vec![b'x'; LARGE]).expect("overwritten"),
    );
    let put_back = |file: &mut File| {
        let modified = file.metadata().and_then(|it| it.modified()).expect("a time");
        file.write_all(&vec![b'x'; LARGE]).expect("overwritten");
        file.set_modified(modified).expect("put back");
    };
    for change in [truncate as fn(&mut File), overwrite, put_back] {
        let (scratch, old) = (Scratch::new("serve"), content(LARGE));
        scratch.write("file", &old);
        let served = Served::new(&spec(&scratch.path("")));
        let (mut client, length) = half_way(&served);
        change(&mut File::options().write(true).open(scratch.path("file")).expect("the file"));
        let (rest, _) = client.rest();
        assert!((rest.len() as u64) < length, "{}", rest.len());
        assert!(rest == old[..rest.len()]);
        served.stop();
    }
}

#[test]
fn large_slow_and_malformed_heads_are_rejected() {
    let (scratch, limits) = (Scratch::new("serve"), Limits::default());
    scratch.write("file", "fine");
    let mut spec = spec(&scratch.path(""));
    spec.limits = Limits { head_time: Duration::from_millis(300), ..limits };
    spec.limits.idle_time = Duration::from_millis(300);
    let served = Served::new(&spec);
    // Slow loris: an occasional byte does not keep the connection open.
    let (mut slow, mut silent, mut idle) = (served.connect(), served.connect(), served.connect());
    assert_eq!(idle.request("GET", "/file", "").expect("a response").body, b"fine");
    for byte in b"GET /file HTTP/1.1\r\nX: ".iter().chain(std::iter::repeat_n(&b'x', 1000)) {
        pause(Duration::from_millis(20), "a client that sends a byte now and then");
        if slow.send(&[*byte]).is_err() {
            break;
        }
    }
    assert!(slow.send(b"x").is_err(), "a connection that never ends");
    for client in [&mut silent, &mut idle] {
        assert_eq!(client.rest().0, b"");
    }
    let mut large = served.connect();
    let _reset = large.send(format!("GET / HTTP/1.1\r\nX: {}\r\n", "x".repeat(1 << 20)).as_bytes());
    let (answer, _) = large.rest();
    assert!(answer.is_empty() || answer.starts_with(b"HTTP/1.1 431 "), "{answer:?}");
    for garbage in [b"\x16\x03\x01\x02\x00".as_slice(), b"GET\r\n\r\n", b"\0\0\0\0\r\n\r\n"] {
        let mut client = served.connect();
        client.send(garbage).expect("sent");
        let (answer, _) = client.rest();
        assert!(answer.is_empty() || answer.starts_with(b"HTTP/1.1 400 "), "{answer:?}");
    }
    assert_eq!(served.get("/file", "").body, b"fine");
    served.stop();
}

#[test]
fn a_client_that_reads_nothing_is_disconnected() {
    let scratch = Scratch::new("serve");
    scratch.write("file", content(LARGE));
    let mut spec = spec(&scratch.path(""));
    spec.limits.stall_time = Duration::from_millis(500);
    let served = Served::new(&spec);
    let (mut client, length) = half_way(&served);
    pause(Duration::from_secs(2), "a client that takes nothing for longer than the stall time");
    let (rest, _) = client.rest();
    assert!((rest.len() as u64) < length);
    served.stop();
}

/// Number of open TCP sockets with this local port, so that sockets of parallel tests do not count.
fn sockets_to(port: u16) -> usize {
    let table = fs::read_to_string("/proc/self/net/tcp").expect("the kernel's table");
    let local = format!(":{port:04X} ");
    let is_open = |line: &&str| {
        let state = line.split_whitespace().nth(3);
        // Exclude LISTEN and TIME-WAIT.
        line.split_whitespace().nth(1).is_some_and(|at| format!("{at} ").ends_with(&local))
            && !matches!(state, Some("0A" | "06"))
    };
    table.lines().filter(is_open).count()
}

#[test]
fn abandoned_connections_leave_nothing() {
    let scratch = Scratch::new("serve");
    scratch.write("file", content(LARGE));
    let served = Served::new(&spec(&scratch.path("")));
    let request = b"GET /file HTTP/1.1\r\nHost: test\r\n\r\n";
    for _ in 0..10 {
        let mut clients: Vec<_> = (0..100).map(|_| served.connect()).collect();
        for (index, client) in clients.iter_mut().enumerate() {
            // Nothing, a part of a head, or a request; its response is not read.
            client.send(&request[..[0, 10, request.len()][index % 3]]).expect("sent");
        }
    }
    let port = served.address.port();
    wait_until("all connections are closed", Duration::from_mins(1), || sockets_to(port) == 0);
    assert_eq!(served.get("/file", "Range: bytes=0-0\r\n").status, 206);
    served.stop();
}

/// Responses in progress are completed; idle connections are closed.
#[test]
fn a_shutdown_under_load_completes_responses() {
    let (scratch, bytes) = (Scratch::new("serve"), content(LARGE));
    scratch.write("file", &bytes);
    let served = Served::new(&spec(&scratch.path("")));
    let mut idle = served.connect();
    assert_eq!(idle.request("HEAD", "/file", "").expect("a response").status, 200);
    let address = served.address;
    let mut loads: Vec<_> = (0..8).map(|_| half_way(&served)).collect();
    let end = thread::spawn(move || served.stop());
    assert_eq!(idle.rest().0, b"");
    wait_until("the listener is closed", Duration::from_mins(1), || {
        TcpStream::connect(address).is_err()
    });
    for (client, length) in &mut loads {
        let mut body = vec![0; *length as usize];
        client.0.read_exact(&mut body).expect("all of it");
        assert!(body == bytes);
        assert_eq!(client.rest().0, b"");
    }
    end.join().expect("stopped");
}

#[test]
fn a_shutdown_aborts_responses_at_the_deadline() {
    let scratch = Scratch::new("serve");
    scratch.write("file", content(LARGE));
    let served = Served::new(&spec(&scratch.path("")));
    let (mut client, length) = half_way(&served);
    served.server.stop(Duration::from_millis(100));
    assert!((client.rest().0.len() as u64) < length);
}

#[test]
fn start_errors_name_the_problem() {
    let scratch = Scratch::new("serve");
    let error = |spec| Server::start(&spec).expect_err("an error");
    let missing = error(spec(&scratch.path("missing"))).to_string();
    assert!(missing.contains("/missing': "), "{missing}");
    let mut exposed = spec(&scratch.path(""));
    exposed.listeners[0].address = (Ipv4Addr::UNSPECIFIED, 0).into();
    assert!(matches!(error(exposed), ServeError::Plain(_)));
    let taken = Served::new(&spec(&scratch.path("")));
    let mut second = spec(&scratch.path(""));
    second.listeners[0].address = taken.address;
    assert!(matches!(error(second), ServeError::Listen(..)));
    taken.stop();
}
