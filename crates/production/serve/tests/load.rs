//! Tests of shutdown and policy reloads at full load: each response is complete, or visibly cut
//! off.
#![cfg(target_os = "linux")]

mod common;
#[path = "common/talker.rs"]
mod talker;

use std::cell::Cell;
use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::io;
use std::path::Path;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::thread;
use std::time::Duration;

use common::{Scratch, Served, content, records};
use futures_util::future::{join, join_all};
use http::StatusCode;
use talker::{Http3Client, ask, replace, request, run, secured};
use uncork_serve::{RecordsSpec, Server};
use uncork_testkit::{pause_async, wait_until, wait_until_async};

/// Timeout of all waits in these tests.
const LIMIT: Duration = Duration::from_mins(1);

/// Half of the responses can be read before the server's deadline, half cannot.
#[test]
fn shutdown_at_full_load_completes_or_visibly_aborts_responses() {
    let (scratch, small, large) = (Scratch::new("serve"), content(300_001), content(30_000_000));
    scratch.write("root/small", &small);
    scratch.write("root/large", &large);
    let served = Served::new(&secured(&scratch));
    let http3_client = Http3Client::new(&scratch, &served);
    let patience = Duration::from_millis(700);
    let (whole, cut, refused) = (Cell::new(0), Cell::new(0), Cell::new(0));
    let ended = run(async {
        let mut connections = Vec::new();
        for _ in 0..8 {
            connections.push(http3_client.connect().await);
        }
        let (whole, cut, refused) = (&whole, &cut, &refused);
        let (small, large) = (&small, &large);
        // Many short responses in succession, and long ones with slow readers.
        let short = connections.iter().map(|connection| async move {
            while let Ok(outcome) = ask(connection, "/small", &[]).await {
                assert_eq!(outcome.status, 200);
                assert!(small.starts_with(&outcome.body), "wrong bytes");
                assert_eq!(outcome.cut.is_none(), outcome.body.len() == small.len());
                whole.set(whole.get() + usize::from(outcome.cut.is_none()));
            }
            refused.set(refused.get() + 1);
        });
        let long = connections.iter().map(|connection| async move {
            let response = connection.request(request("GET", "/large", &[])).await;
            let (mut body, mut at) = (response.expect("a response").into_body(), 0);
            while let Some(chunk) = body.next_chunk().await {
                let Ok(chunk) = chunk else {
                    assert!(at < large.len(), "all of it had come");
                    cut.set(cut.get() + 1);
                    return;
                };
                assert!(large[at..].starts_with(&chunk.data), "wrong bytes at {at}");
                at += chunk.data.len();
                pause_async(Duration::from_millis(5), "a client that reads slowly").await;
            }
            assert_eq!(at, large.len(), "an end in the middle");
        });
        let stop = async {
            wait_until_async("load", LIMIT, || whole.get() > 20).await;
            let begun = talker::now();
            let stopped = thread::spawn(move || served.server.stop(patience));
            wait_until_async("the stop", LIMIT, || stopped.is_finished()).await;
            stopped.join().expect("it ended");
            begun.elapsed()
        };
        let loads = join(join_all(short), join_all(long));
        let (_, ended) = join(loads, stop).await;
        ended
    });
    // The deadline, plus a second for late packets, plus one for threads that wait for a disk.
    assert!(ended < patience + Duration::from_secs(3), "{ended:?}");
    assert_eq!((cut.get(), refused.get()), (8, 8), "each client gets an error");
}

fn policy(quic: &str, tcp: &str) -> String {
    format!(
        "[default]\nquic = \"{quic}\"\ntcp = \"{tcp}\"\n\
         [[rule]]\nhost = \"localhost\"\nuse = {{ quic = \"{quic}\", tcp = \"{tcp}\" }}\n"
    )
}

/// A hundred policy reloads while clients download over HTTP/3, and over HTTP/2 with TLS in
/// parallel.
#[test]
fn a_hundred_reloads_at_full_load_over_http3() {
    let (scratch, whole) = (Scratch::new("serve"), content(200_000));
    scratch.write("root/large", &whole);
    let mut spec = secured(&scratch);
    spec.policy = Some(scratch.path("policy.toml"));
    spec.records = Some(RecordsSpec::new(scratch.path("records")));
    let both = [("bbr3", "bbr"), ("reno", "reno")].map(|(quic, tcp)| policy(quic, tcp));
    scratch.write("policy.toml", &both[0]);
    let mut served = Served::new(&spec);
    let http3_client = Http3Client::new(&scratch, &served);
    let (address, is_over) = (served.address, AtomicBool::new(false));
    let count = AtomicU64::new(0);
    thread::scope(|scope| {
        let over_tcp = scope.spawn(|| {
            let url = format!("https://localhost:{}/large", address.port());
            let mut total = 0;
            while !is_over.load(Ordering::Relaxed) {
                let got = over_tcp(&url, &scratch.path("chain.pem")).expect("curl runs");
                assert!(got == whole, "wrong bytes over TCP");
                total += 1;
            }
            total
        });
        let over_quic = scope.spawn(|| {
            run(async {
                let loads = (0..4).map(async |_| {
                    while !is_over.load(Ordering::Relaxed) {
                        let connection = http3_client.connect().await;
                        for _ in 0..3 {
                            let got = ask(&connection, "/large", &[]).await.expect("a response");
                            assert!(got.cut.is_none() && got.body == whole, "{:?}", got.cut);
                            count.fetch_add(1, Ordering::Relaxed);
                        }
                    }
                });
                join_all(loads).await;
            });
        });
        for turn in 0..100 {
            let before = count.load(Ordering::Relaxed);
            replace(&scratch.path("policy.toml"), both[(turn + 1) % 2].as_bytes());
            assert!(served.server.reload().iter().all(|it| it.result.is_ok()));
            wait_until("requests between reloads", LIMIT, || {
                count.load(Ordering::Relaxed) >= before + 4 || over_quic.is_finished()
            });
        }
        is_over.store(true, Ordering::Relaxed);
        assert!(over_tcp.join().expect("all is well over TCP") > 0);
        over_quic.join().expect("all is well over HTTP/3");
    });
    assert_eq!(served.stop().lost, 0);
    let mut seen = BTreeSet::new();
    let mut of_connection = BTreeMap::new();
    for record in records(&scratch.path("records")) {
        let choice = record.choice.expect("a policy");
        let protocol = record.service.expect("whom it served").protocol;
        assert_eq!(choice.cc.as_ref(), Some(&record.cc), "the chosen controller was active");
        let policy = of_connection.entry(record.flow).or_insert_with(|| choice.policy.clone());
        assert_eq!(*policy, choice.policy);
        seen.insert((protocol, record.cc));
    }
    let seen: Vec<_> = seen.iter().map(|(it, cc)| (it.as_str(), cc.as_str())).collect();
    assert_eq!(seen, [("h2", "bbr"), ("h2", "reno"), ("h3", "bbr3"), ("h3", "reno")]);
}

fn over_tcp(url: &str, authority: &Path) -> io::Result<Vec<u8>> {
    let mut curl = std::process::Command::new("curl");
    curl.args(["-sS", "--http2", "--cacert"]).arg(authority).arg(url);
    Ok(curl.output()?.stdout)
}

/// The number of entries in a directory of this process in /proc.
fn entries(name: &str) -> usize {
    fs::read_dir(format!("/proc/self/{name}")).expect("a list").count()
}

/// Must run alone: see `leaves_nothing`.
#[test]
#[ignore = "counts what the whole process has, so it is run in one of its own"]
fn leaves_nothing_alone() {
    let (scratch, bytes) = (Scratch::new("serve"), content(5_000_000));
    scratch.write("root/file", &bytes);
    let spec = secured(&scratch);
    let before = (entries("fd"), entries("task"));
    for patience in [Duration::ZERO, Duration::from_secs(5)] {
        let served = Served::new(&spec);
        let http3_client = Http3Client::new(&scratch, &served);
        let mut tcp = served.connect();
        tcp.send(b"no TLS").expect("sent");
        run(async {
            let connection = http3_client.connect().await;
            let bodies = (0..4).map(|_| ask(&connection, "/file", &[]));
            let bodies = join_all(bodies);
            let stop = async {
                pause_async(Duration::from_millis(5), "responses are under way").await;
                let server: Server = served.server;
                thread::spawn(move || server.stop(patience))
            };
            let (bodies, stopped) = join(bodies, stop).await;
            for body in bodies.into_iter().flatten() {
                assert_eq!(StatusCode::OK, body.status);
                assert!(
                    bytes.starts_with(&body.body)
                        && (body.body.len() < bytes.len()) == body.cut.is_some()
                );
            }
            stopped.join().expect("it ended");
        });
        drop((http3_client, tcp));
    }
    let after = || (entries("fd"), entries("task"));
    // The client's threads end by themselves.
    wait_until("open files and threads as before", LIMIT, || after() == before);
}

#[test]
fn leaves_nothing() {
    let test = std::env::current_exe().expect("this test");
    let mut alone = std::process::Command::new(test);
    alone.args(["--exact", "leaves_nothing_alone", "--ignored", "--test-threads=1"]);
    let done = alone.output().expect("it runs");
    let said = String::from_utf8_lossy(&done.stdout);
    assert!(done.status.success() && said.contains("1 passed"), "{said}");
}
