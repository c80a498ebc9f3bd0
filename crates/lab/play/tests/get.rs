//! Downloads from well-behaved and misbehaving servers.
#![cfg(target_os = "linux")]
#![expect(clippy::unwrap_used, reason = "a test that cannot run has failed")]
mod common;

use std::fs;
use std::net::{Ipv4Addr, TcpListener, TcpStream};
use std::sync::Arc;
use std::sync::atomic::AtomicBool;
use std::thread;
use std::time::Duration;

use common::{Raw, Script, header};
use uncork_play::{ClientError, Connections, Fetched, GetSpec, Tally, Version, get};
use uncork_testkit::{Scratch, assert_message, pause, wait_until};
use uncork_units::TimeDelta;

fn run(spec: &GetSpec) -> Vec<Fetched> {
    get(spec, &Arc::new(AtomicBool::new(false)), &Arc::new(Tally::default())).unwrap()
}

fn spec(urls: &[&str]) -> GetSpec {
    let mut spec = GetSpec::of(urls.iter().map(|url| url.parse().unwrap()).collect());
    // Long enough that only a real hang times out.
    spec.connect.patience = TimeDelta::from_secs(60);
    spec
}

/// The result of a download from a server with this script.
fn fetch(script: Script) -> Fetched {
    let server = Raw::start(script);
    run(&spec(&[&server.url("/file")])).remove(0)
}

fn problem(script: Script) -> String {
    fetch(script).problem.unwrap().to_string()
}

#[test]
fn received_bytes_are_counted_and_recorded() {
    let fetched = fetch(|connection, _| {
        connection.read_request();
        connection.write(
            "HTTP/1.1 200 OK\r\nContent-Length: 3\r\nServer-Timing: cc;desc=\"bbr\"\r\n\r\nabc",
        );
    });
    assert!(fetched.problem.is_none());
    assert_eq!((fetched.status, fetched.received, fetched.size), (Some(200), 3, Some(3)));
    assert_eq!((fetched.version, fetched.cc.as_deref()), (Some(Version::Http1), Some("bbr")));
    let first = fetched.first_byte.unwrap();
    assert!(first <= fetched.took && fetched.setup.unwrap().connect <= first);
    let record = fetched.record();
    assert_eq!((record.engine.as_str(), record.cc.as_str()), ("play", "bbr"));
    assert_eq!((record.size_bytes, record.bytes_delivered), (Some(3), 3));
    assert_eq!(record.completion_ns, Some(fetched.took.as_nanos()));
}

#[test]
fn a_chunked_body_ends_with_its_last_chunk() {
    let fetched = fetch(|connection, _| {
        connection.read_request();
        connection.write(
            "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n3\r\nabc\r\n2\r\nde\r\n0\r\n\r\n",
        );
    });
    assert!(fetched.problem.is_none());
    assert_eq!((fetched.received, fetched.size), (5, None));
    let cut = fetch(|connection, _| {
        connection.read_request();
        connection.write("HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n3\r\nabc\r\n");
    });
    assert!(matches!(cut.problem, Some(ClientError::Broken { received: 3, .. })), "{cut:?}");
    assert_eq!(cut.record().completion_ns, None);
}

#[test]
fn a_truncated_body_is_a_failure() {
    let fetched = fetch(|connection, _| {
        connection.read_request();
        connection.write("HTTP/1.1 200 OK\r\nContent-Length: 10\r\n\r\nabc");
    });
    assert_eq!((fetched.received, fetched.size), (3, Some(10)));
    assert_message!("3 of 10 bytes", fetched.problem.as_ref().unwrap());
    let record = fetched.record();
    assert_eq!((record.completion_ns, record.bytes_delivered), (None, 3));
}

#[test]
fn invalid_and_unsuccessful_responses_are_failures() {
    let garbage = problem(|connection, _| {
        connection.read_request();
        connection.write("SSH-2.0-OpenSSH_9.9\r\n\r\n");
    });
    assert!(garbage.starts_with("the connection failed after 0 bytes: "), "{garbage}");
    let missing = problem(|connection, _| {
        connection.read_request();
        connection.write("HTTP/1.1 404 Not Found\r\nContent-Length: 0\r\n\r\n");
    });
    assert_eq!(missing, "status 404");
    let moved = problem(|connection, _| {
        connection.read_request();
        connection.write("HTTP/1.1 302 Found\r\nLocation: /other\r\nContent-Length: 0\r\n\r\n");
    });
    assert_eq!(moved, "status 302");
}

#[test]
fn a_silent_server_times_out() {
    // Silent from the start, within the head, within the body.
    let scripts: [Script; 3] = [
        |connection, _| {
            connection.read_request();
            connection.read_request();
        },
        |connection, _| {
            connection.read_request();
            connection.write("HTTP/1.1 200 OK\r\nContent-");
            connection.read_request();
        },
        |connection, _| {
            connection.read_request();
            connection.write("HTTP/1.1 200 OK\r\nContent-Length: 10\r\n\r\nabc");
            connection.read_request();
        },
    ];
    for script in scripts {
        let server = Raw::start(script);
        let mut spec = spec(&[&server.url("/file")]);
        spec.connect.patience = TimeDelta::from_millis(200);
        let fetched = run(&spec).remove(0);
        assert_eq!(fetched.problem.as_ref().unwrap().to_string(), "nothing came for 200ms");
        assert!(fetched.took >= spec.connect.patience);
    }
}

/// The timeout applies to silence, not to the whole transfer.
#[test]
fn a_slow_server_does_not_time_out() {
    let server = Raw::start(|connection, _| {
        connection.read_request();
        connection.write("HTTP/1.1 200 OK\r\nContent-Length: 8\r\n\r\n");
        for _ in 0..8 {
            pause(Duration::from_millis(100), "a server that sends slowly");
            connection.write("x");
        }
    });
    let mut spec = spec(&[&server.url("/file")]);
    spec.connect.patience = TimeDelta::from_millis(600);
    let fetched = run(&spec).remove(0);
    assert!(fetched.problem.is_none(), "{fetched:?}");
    assert!(fetched.took >= TimeDelta::from_millis(800));
}

#[test]
fn unreachable_servers_are_reported() {
    let free = TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).unwrap().local_addr().unwrap();
    let fetched = run(&spec(&[&format!("http://{free}/")])).remove(0);
    let problem = fetched.problem.unwrap().to_string();
    assert_message!("no server", problem.replace(&free.to_string(), "ADDRESS"));
    let fetched = run(&spec(&["http://nowhere.invalid/"])).remove(0);
    let problem = fetched.problem.unwrap().to_string();
    // The resolver's words differ between machines.
    assert!(problem.contains("'nowhere.invalid': "), "{problem}");
}

#[test]
fn given_addresses_replace_resolution() {
    let server = Raw::start(|connection, _| {
        let head = connection.read_request().unwrap();
        connection.respond(&head, 4);
    });
    let mut spec = spec(&["http://nowhere.invalid:81/file?a=b"]);
    spec.connect.to = vec![server.address];
    assert!(run(&spec).remove(0).problem.is_none());
    let heads = server.heads();
    assert_eq!(heads[0][0], "GET /file?a=b HTTP/1.1");
    assert_eq!(header(&heads[0], "host"), Some("nowhere.invalid:81"));
}

/// A listener with a full queue: the kernel drops further SYNs.
fn black_hole() -> (TcpListener, Vec<TcpStream>) {
    let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).unwrap();
    let address = listener.local_addr().unwrap();
    let connect = || TcpStream::connect_timeout(&address, Duration::from_millis(300)).ok();
    let queued = std::iter::from_fn(connect).collect();
    (listener, queued)
}

#[test]
fn unresponsive_address_costs_250_ms() {
    let server = Raw::start(obliging);
    let (listener, _queued) = black_hole();
    let mut spec = spec(&[&server.url("/file")]);
    spec.connect.to = vec![listener.local_addr().unwrap(), server.address];
    let fetched = run(&spec).remove(0);
    assert!(fetched.problem.is_none(), "{fetched:?}");
    let setup = fetched.setup.unwrap();
    assert_eq!(setup.peer, server.address);
    let (least, most) = (TimeDelta::from_millis(250), TimeDelta::from_secs(5));
    assert!((least..most).contains(&setup.connect), "{setup:?}");
}

#[test]
fn refusing_address_costs_no_delay() {
    let server = Raw::start(obliging);
    let free = TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).unwrap().local_addr().unwrap();
    let mut spec = spec(&[&server.url("/file")]);
    spec.connect.to = vec![free, free, server.address];
    let setup = run(&spec).remove(0).setup.unwrap();
    assert_eq!(setup.peer, server.address);
    assert!(setup.connect < TimeDelta::from_millis(250), "{setup:?}");
}

#[test]
fn responses_without_the_requested_range_are_failures() {
    let ask = |script: Script| {
        let server = Raw::start(script);
        let mut spec = spec(&[&server.url("/file")]);
        spec.range = Some("10-19".parse().unwrap());
        let fetched = run(&spec).remove(0);
        assert_eq!(header(&server.heads()[0], "range"), Some("bytes=10-19"));
        fetched
    };
    let right = ask(|connection, _| {
        let head = connection.read_request().unwrap();
        connection.respond(&head, 100);
    });
    assert_eq!((right.status, right.received), (Some(206), 10));
    assert!(right.problem.is_none());
    let whole = ask(|connection, _| {
        connection.read_request();
        connection.write("HTTP/1.1 200 OK\r\nContent-Length: 1\r\n\r\nx");
    });
    assert_eq!(
        whole.problem.unwrap().to_string(),
        "asked for bytes=10-19, got the whole file: the server gives no ranges"
    );
    let other = ask(|connection, _| {
        connection.read_request();
        connection.write(
            "HTTP/1.1 206 Partial Content\r\nContent-Length: 1\r\nContent-Range: bytes 0-0/9\r\n\r\nx",
        );
    });
    assert_eq!(other.problem.unwrap().to_string(), "asked for bytes=10-19, got bytes 0-0/9");
}

/// Responds to every request on a connection with five bytes.
fn obliging(connection: &mut common::ServerConnection, _: usize) {
    while let Some(head) = connection.read_request() {
        connection.respond(&head, 5);
    }
}

#[test]
fn connections_are_reused_if_requested() {
    for (connections, made) in [(Connections::Each, 6), (Connections::Kept, 1)] {
        let server = Raw::start(obliging);
        let (one, other) = (server.url("/one"), server.url("/other"));
        let mut spec = GetSpec { connections, repeat: 3, ..spec(&[&one, &other]) };
        spec.digest = true;
        let all = run(&spec);
        assert_eq!(
            all.iter().map(|fetched| fetched.number).collect::<Vec<_>>(),
            [0, 1, 2, 3, 4, 5]
        );
        assert_eq!(all.iter().filter(|fetched| fetched.setup.is_some()).count(), made);
        assert!(all.iter().all(|fetched| fetched.problem.is_none()));
        let paths: Vec<_> = server.heads().iter().map(|head| head[0].clone()).collect();
        let round = ["GET /one HTTP/1.1", "GET /other HTTP/1.1"];
        assert_eq!(paths, [round, round, round].concat());
        // Five zero bytes: `head -c 5 /dev/zero | sha256sum`.
        let zeros = "8855508aade16ec573d21e6a485dfd0a7624085c1a14b5ecdd6485de0c6839a4";
        assert_eq!(all[0].sha256.as_deref(), Some(zeros));
    }
}

/// A server may close a persistent connection at any time; the request is retried once.
#[test]
fn a_request_on_a_closed_connection_is_retried() {
    let server = Raw::start(|connection, _| {
        let head = connection.read_request().unwrap();
        connection.respond(&head, 5);
    });
    let spec =
        GetSpec { connections: Connections::Kept, repeat: 4, ..spec(&[&server.url("/file")]) };
    let all = run(&spec);
    assert!(all.iter().all(|fetched| fetched.problem.is_none()), "{all:?}");
    assert_eq!(all.iter().filter(|fetched| fetched.setup.is_some()).count(), 4);
}

#[test]
fn downloads_start_a_gap_apart_and_respect_the_parallel_limit() {
    let server = Raw::start(|connection, _| {
        let head = connection.read_request().unwrap();
        let wait = Duration::from_millis(if head[0].contains("/slow") { 500 } else { 0 });
        pause(wait, "a server that answers late");
        connection.respond(&head, 5);
    });
    let (slow, quick) = (server.url("/slow"), server.url("/quick"));
    let gap = TimeDelta::from_millis(100);
    let spec = GetSpec { parallel: 2, gap, ..spec(&[&slow, &quick, &quick, &slow]) };
    let all = run(&spec);
    let starts: Vec<u64> = all.iter().map(|fetched| fetched.start.as_nanos() / 1_000_000).collect();
    assert!(starts.iter().zip(0..).all(|(start, nth)| *start >= nth * 100), "{starts:?}");
    assert!(starts[3] < 500, "in parallel with the first, which is slow: {starts:?}");
    let one = GetSpec { parallel: 1, ..spec };
    let all = run(&one);
    assert!(all[1].start.since(all[0].start) >= all[0].took);
}

#[test]
fn files_appear_when_they_are_complete() {
    let directory = Scratch::new("get");
    let keep = |script: Script, name: &str| {
        let server = Raw::start(script);
        let file = Some(directory.path(name));
        run(&GetSpec { file, ..spec(&[&server.url("/file")]) }).remove(0)
    };
    let whole = keep(obliging, "whole");
    assert!(whole.problem.is_none());
    let cut = keep(
        |connection, _| {
            connection.read_request();
            connection.write("HTTP/1.1 200 OK\r\nContent-Length: 10\r\n\r\nabc");
        },
        "cut",
    );
    assert!(cut.problem.is_some());
    let nowhere = keep(obliging, "no/where");
    assert!(matches!(nowhere.problem, Some(ClientError::File(..))), "{nowhere:?}");
    assert_eq!(directory.entries(""), ["whole"]);
    assert_eq!(fs::read(directory.path("whole")).unwrap(), [0; 5]);
}

/// Stopping returns the partial results immediately.
#[test]
fn stopping_returns_partial_results() {
    let server = Raw::start(|connection, _| {
        connection.read_request();
        connection.write("HTTP/1.1 200 OK\r\nContent-Length: 10\r\n\r\nabc");
        connection.read_request();
    });
    let spec = GetSpec { repeat: 3, ..spec(&[&server.url("/file")]) };
    let (stop, tally) = (Arc::new(AtomicBool::new(false)), Arc::new(Tally::default()));
    let all = thread::scope(|scope| {
        let run = scope.spawn(|| get(&spec, &stop, &tally).unwrap());
        wait_until("a part of the body", Duration::from_mins(1), || tally.bytes() >= 3);
        stop.store(true, std::sync::atomic::Ordering::Relaxed);
        run.join().unwrap()
    });
    assert_eq!(all.len(), 1);
    assert_eq!((all[0].received, all[0].size), (3, Some(10)));
    assert!(matches!(all[0].problem, Some(ClientError::Interrupted)));
}
