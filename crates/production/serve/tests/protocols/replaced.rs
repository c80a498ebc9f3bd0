//! Files that are replaced and truncated at full load: no response mixes two versions.

use std::cell::RefCell;
use std::collections::BTreeMap;
use std::fs;
use std::io::Read;
use std::path::Path;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread;
use std::time::Duration;

use crate::common::{Client, Response, Scratch, Served, content};
use crate::talker::{Http3Client, ask, replace, request, run, secured};
use futures_util::future::join_all;
use uncork_h3::client::{ClientError, Connection};
use uncork_serve::Identity;
use uncork_testkit::{pause, pause_async};

/// The version of a file for each entity tag that the server has sent.
#[derive(Default)]
struct States(RefCell<BTreeMap<String, usize>>);

impl States {
    /// Checks that all received bytes are of one version, always the same one for a tag.
    fn check(&self, versions: &[Vec<u8>], etag: &str, from: usize, got: &[u8]) {
        let fits = |version: &Vec<u8>| version.get(from..).is_some_and(|it| it.starts_with(got));
        let mut states = self.0.borrow_mut();
        if let Some(state) = states.get(etag) {
            assert!(fits(&versions[*state]), "another state for {etag} at {from}");
        } else {
            let state = versions.iter().position(fits).expect("bytes of one state");
            states.insert(etag.to_owned(), state);
        }
    }
}

const STATES: usize = 7;

/// Contents of different lengths that differ from their first bytes on.
fn versions() -> Vec<Vec<u8>> {
    let all = content(3_000_000);
    (0..STATES).map(|state| all[state * 8..2_000_000 + state * 100_000].to_vec()).collect()
}

/// Over HTTP/3: requests the first half, then with `If-Range` the rest of the same version, or the
/// whole of another.
async fn in_halves(connection: &Connection, states: &States, versions: &[Vec<u8>]) -> bool {
    let half = ask(connection, "/file", &[("range", "bytes=0-999999")]).await.expect("a response");
    assert_eq!((half.status, half.body.len()), (206, 1_000_000), "{:?}", half.cut);
    states.check(versions, &half.etag, 0, &half.body);
    pause_async(Duration::from_millis(2), "the file may be replaced between the halves").await;
    let headers = [("range", "bytes=1000000-"), ("if-range", half.etag.as_str())];
    let rest = ask(connection, "/file", &headers).await.expect("a response");
    assert!(rest.cut.is_none(), "{:?}", rest.cut);
    let is_continued = rest.etag == half.etag;
    assert_eq!(rest.status, if is_continued { 206 } else { 200 });
    states.check(versions, &rest.etag, if is_continued { 1_000_000 } else { 0 }, &rest.body);
    let state = states.0.borrow()[&rest.etag];
    let length = versions[state].len() - if is_continued { 1_000_000 } else { 0 };
    assert_eq!(rest.body.len(), length);
    is_continued
}

/// The same over plain TCP.
fn in_halves_over_tcp(client: &mut Client, states: &States, versions: &[Vec<u8>]) -> bool {
    let half = client.request("GET", "/file", "Range: bytes=0-999999\r\n").expect("a response");
    let etag = half.header("etag").to_owned();
    assert_eq!((half.status, half.body.len()), (206, 1_000_000));
    states.check(versions, &etag, 0, &half.body);
    let headers = format!("Range: bytes=1000000-\r\nIf-Range: {etag}\r\n");
    let rest: Response = client.request("GET", "/file", &headers).expect("a response");
    let is_continued = rest.header("etag") == etag;
    assert_eq!(rest.status, if is_continued { 206 } else { 200 });
    let from = if is_continued { 1_000_000 } else { 0 };
    states.check(versions, rest.header("etag"), from, &rest.body);
    is_continued
}

/// Stops a parallel thread at the end of a load, even if the load panics.
struct Ending<'a>(&'a AtomicBool);

impl Drop for Ending<'_> {
    fn drop(&mut self) {
        self.0.store(true, Ordering::Relaxed);
    }
}

/// Replaces the file with each version in turn while `load` runs.
fn replacing<T>(path: &Path, versions: &[Vec<u8>], load: impl FnOnce() -> T) -> T {
    let is_over = AtomicBool::new(false);
    thread::scope(|scope| {
        scope.spawn(|| {
            for (state, version) in versions.iter().enumerate().cycle() {
                if is_over.load(Ordering::Relaxed) {
                    break;
                }
                replace(path, version);
                // One of them stays until a busy machine has sent both halves of it, too.
                let ms = if state == 0 { 400 } else { 20 };
                pause(Duration::from_millis(ms), "each state is served for a while");
            }
        });
        let _ending = Ending(&is_over);
        load()
    })
}

#[test]
fn a_file_that_is_replaced_all_the_time_is_never_mixed_over_http3() {
    let (scratch, versions, states) = (Scratch::new("serve"), versions(), States::default());
    scratch.write("root/file", &versions[0]);
    let served = Served::new(&secured(&scratch));
    let http3_client = Http3Client::new(&scratch, &served);
    let continued = replacing(&scratch.path("root/file"), &versions, || {
        run(async {
            let connections = [http3_client.connect().await, http3_client.connect().await];
            let loads = (0..6).map(async |load| {
                let mut continued = 0;
                for _ in 0..25 {
                    let connection = &connections[load % 2];
                    continued += u32::from(in_halves(connection, &states, &versions).await);
                }
                continued
            });
            join_all(loads).await.into_iter().sum::<u32>()
        })
    });
    assert!((1..150).contains(&continued), "both happened: {continued} of 150 were continued");
    assert!(states.0.borrow().len() >= STATES, "{} states", states.0.borrow().len());
    served.stop();
}

#[test]
fn a_file_that_is_replaced_all_the_time_is_never_mixed_over_tcp() {
    let (scratch, versions) = (Scratch::new("serve"), versions());
    scratch.write("root/file", &versions[0]);
    let served = Served::new(&crate::common::spec(&scratch.path("root")));
    let [continued, replaced] = [AtomicBool::new(false), AtomicBool::new(false)];
    replacing(&scratch.path("root/file"), &versions, || {
        let load = || {
            let (states, mut client) = (States::default(), served.connect());
            for request in 0..5_000 {
                let is_continued = in_halves_over_tcp(&mut client, &states, &versions);
                let seen = if is_continued { &continued } else { &replaced };
                seen.store(true, Ordering::Relaxed);
                // On a busy machine one of both is rare.
                let are_both = [&continued, &replaced].iter().all(|it| it.load(Ordering::Relaxed));
                if request >= 60 && are_both {
                    break;
                }
            }
        };
        thread::scope(|scope| (0..3).for_each(|_| drop(scope.spawn(load))));
    });
    let (continued, replaced) = (continued.into_inner(), replaced.into_inner());
    assert!(continued && replaced, "both happened: continued {continued}, replaced {replaced}");
    served.stop();
}

/// A file that is changed in place cannot be sent completely, and the bytes sent are of one
/// version. There are many file names, so that no response starts with a file that is being
/// written.
#[test]
fn files_that_are_truncated_while_they_are_sent_are_cut_and_not_mixed() {
    let scratch = Scratch::new("serve");
    let old = content(8_000_000);
    let mut spec = secured(&scratch);
    let names: Vec<String> = (0..40).map(|number| format!("file-{number}")).collect();
    for name in &names {
        scratch.write(&format!("root/{name}"), &old);
    }
    let served = Served::new(&spec);
    let http3_client = Http3Client::new(&scratch, &served);
    let change = |name: &str, turn: usize| {
        let file = fs::File::options().write(true).open(scratch.path("root").join(name));
        let file = file.expect("the file");
        file.set_len([0, 1, 4_000_000, 7_999_999][turn % 4]).expect("truncated");
        // Half of them get their length back, filled with zeros.
        if turn.is_multiple_of(2) {
            file.set_len(old.len() as u64).expect("made longer");
        }
    };
    let mut cut = 0;
    run(async {
        let connection = http3_client.connect().await;
        for (turn, name) in names.iter().enumerate() {
            let response = connection.request(request("GET", &format!("/{name}"), &[])).await;
            let (mut body, mut at) = (response.expect("a response").into_body(), 0);
            let mut is_changed = false;
            let ended = loop {
                match body.next_chunk().await {
                    Some(Ok(chunk)) => {
                        assert!(old[at..].starts_with(&chunk.data), "wrong bytes at {at}");
                        at += chunk.data.len();
                    }
                    Some(Err(error)) => break Err(error),
                    None => break Ok(()),
                }
                if at > 100_000 && !is_changed {
                    is_changed = true;
                    change(name, turn);
                }
            };
            match ended {
                Ok(()) => assert_eq!(at, old.len(), "cut without an error"),
                Err(error) => {
                    assert_eq!(error, ClientError::Reset(0x102));
                    cut += 1;
                }
            }
        }
    });
    assert!(cut > 20, "most were still being sent: {cut}");
    served.stop();
    // The same over TCP, where the connection is closed.
    spec.identity = Identity::Plain;
    let served = Served::new(&spec);
    for (turn, name) in names.iter().enumerate() {
        replace(&scratch.path("root").join(name), &old);
        let mut client = served.connect();
        client.send(format!("GET /{name} HTTP/1.1\r\nHost: a\r\n\r\n").as_bytes()).expect("sent");
        client.head().expect("a head");
        let mut got = vec![0; 100_000];
        client.0.read_exact(&mut got).expect("some of it");
        change(name, turn);
        client.0.get_mut().shutdown(std::net::Shutdown::Write).expect("no more requests");
        let (rest, _) = client.rest();
        got.extend(rest);
        assert!(old.starts_with(&got), "wrong bytes over TCP");
    }
    served.stop();
}
