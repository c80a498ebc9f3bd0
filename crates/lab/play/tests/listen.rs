//! Listeners of well-behaved and misbehaving servers.
#![cfg(target_os = "linux")]
#![expect(clippy::unwrap_used, reason = "a test that cannot run has failed")]
mod common;

use std::collections::BTreeSet;
use std::sync::Arc;
use std::sync::atomic::AtomicBool;
use std::time::Duration;

use common::{Head, Raw, ServerConnection, header};
use uncork_apps::AudioSpec;
use uncork_play::{CmcdMode, ListenSpec, ListenerReport, Tally, listen};
use uncork_testkit::{assert_message, pause};
use uncork_units::TimeDelta;

fn millis(n: u64) -> TimeDelta {
    TimeDelta::from_millis(n)
}

fn run(spec: &ListenSpec) -> Vec<ListenerReport> {
    listen(spec, &Arc::new(AtomicBool::new(false)), &Arc::new(Tally::default())).unwrap()
}

/// 160 kbit/s in chunks of 200 ms (4000 bytes). One chunk is enough to start and to resume.
fn spec(urls: &[&str]) -> ListenSpec {
    let mut spec = ListenSpec::of(urls.iter().map(|url| url.parse().unwrap()).collect());
    spec.player = AudioSpec {
        chunk: 4000,
        start_threshold: millis(200),
        resume_threshold: millis(200),
        ..AudioSpec::default()
    };
    spec.connect.patience = TimeDelta::from_secs(60);
    spec
}

/// Serves songs of 600 ms.
fn obliging(connection: &mut ServerConnection, _: usize) {
    while let Some(head) = connection.read_request() {
        connection.respond(&head, 12_000);
    }
}

fn ranges(heads: &[Head]) -> Vec<&str> {
    heads.iter().filter_map(|head| header(head, "range")).collect()
}

/// The song's size is requested by HEAD, then the song in chunks on one connection.
#[test]
fn a_song_is_played_to_its_end() {
    let server = Raw::start(obliging);
    let heard = run(&spec(&[&server.url("/a.ogg")])).remove(0);
    assert!(heard.problem.is_none());
    let heads = server.heads();
    assert_eq!(heads[0][0], "HEAD /a.ogg HTTP/1.1");
    assert_eq!(ranges(&heads), ["bytes=0-3999", "bytes=4000-7999", "bytes=8000-11999"]);
    let playback = heard.report.playback.as_ref().unwrap();
    assert_eq!((playback.played, playback.stalls.len()), (millis(600), 0));
    let startup = playback.startup.unwrap();
    assert_eq!(startup, heard.report.transfers[0].end.unwrap().since(heard.click));
    assert_eq!(playback.ended.unwrap().since(heard.click), startup + millis(600));
    let records = heard.records();
    assert_eq!(records.len(), 4);
    assert!(records[..3].iter().all(|one| one.size_bytes == Some(4000) && one.playback.is_none()));
    let playback = records[3].playback.unwrap();
    assert_eq!((playback.startup_ns, playback.played_ns), (Some(startup.as_nanos()), 600_000_000));
    assert_eq!((records[3].size_bytes, records[3].bytes_delivered), (None, 12_000));
}

/// The second chunk is 500 ms late, so the buffer runs empty.
#[test]
fn a_late_chunk_causes_a_stall() {
    let server = Raw::start(|connection, _| {
        while let Some(head) = connection.read_request() {
            let is_second = header(&head, "range") == Some("bytes=4000-7999");
            let late = Duration::from_millis(if is_second { 500 } else { 0 });
            pause(late, "the second chunk comes late");
            connection.respond(&head, 12_000);
        }
    });
    let heard = run(&spec(&[&server.url("/a.ogg")])).remove(0);
    let playback = heard.report.playback.as_ref().unwrap();
    let [stall] = playback.stalls.as_slice() else { panic!("{playback:?}") };
    let ends: Vec<_> = heard.report.transfers.iter().map(|one| one.end.unwrap()).collect();
    assert_eq!(stall.start, ends[0] + millis(200));
    assert_eq!(stall.lasted, ends[1].since(stall.start));
    assert!(stall.lasted >= millis(290) && stall.lasted < millis(2000), "{stall:?}");
    let heads = server.heads();
    let values = |name| heads.iter().filter_map(|head| header(head, name)).collect::<Vec<_>>();
    assert_eq!(values("cmcd-status"), ["bs"], "reported once, with the next request");
    // Urgent only for the first chunk: playback has started by the second request.
    let urgent: Vec<bool> = values("cmcd-request").iter().map(|one| one.ends_with(",su")).collect();
    assert_eq!(urgent, [true, false, false]);
    assert!(values("cmcd-request")[0].starts_with("bl=0,su"));
    assert!(values("cmcd-request")[1].starts_with("bl=200,dl=200,mtp="));
    assert_eq!(values("cmcd-object"), ["br=160,d=200,ot=a"; 3]);
    let sessions: BTreeSet<&str> = values("cmcd-session").into_iter().collect();
    assert_eq!(sessions.len(), 1);
    assert!(sessions.first().unwrap().starts_with("cid=\"/a.ogg\",sf=o,sid=\""));
}

#[test]
fn cmcd_is_sent_in_the_query_or_not_at_all() {
    let ask = |cmcd| {
        let server = Raw::start(obliging);
        let duration = Some(millis(200));
        assert!(
            run(&ListenSpec { cmcd, duration, ..spec(&[&server.url("/a")]) })[0].problem.is_none()
        );
        server.heads().remove(0)
    };
    let query = ask(CmcdMode::Query);
    assert!(
        query[0].starts_with("GET /a?CMCD=bl%3D0%2Cbr%3D160%2Ccid%3D%22%2Fa%22%2Cd%3D200%2Cot%3Da")
    );
    assert!(header(&query, "cmcd-object").is_none());
    let off = ask(CmcdMode::Off);
    assert_eq!(off[0], "GET /a HTTP/1.1");
    assert!(!off.iter().any(|line| line.to_ascii_lowercase().contains("cmcd")));
}

#[test]
fn songs_follow_one_another() {
    let server = Raw::start(obliging);
    let heard = run(&spec(&[&server.url("/a"), &server.url("/b")])).remove(0);
    let audio = heard.report.audio.unwrap();
    assert_eq!((audio.started, audio.finished), (2, 2));
    assert_eq!(heard.report.playback.unwrap().stalls, []);
    assert_eq!(server.heads().iter().filter(|head| head[0].starts_with("GET /b")).count(), 3);
}

/// Each listener has its own connection, session and click time.
#[test]
fn many_listeners_run_in_parallel() {
    let server = Raw::start(obliging);
    let spread = millis(300);
    let all = run(&ListenSpec { listeners: 20, spread, ..spec(&[&server.url("/a")]) });
    assert_eq!(all.len(), 20);
    assert!(all.iter().all(|heard| heard.problem.is_none() && heard.setup.is_some()));
    let clicks: BTreeSet<_> = all.iter().map(|heard| heard.click).collect();
    assert!(clicks.last().unwrap().since(*clicks.first().unwrap()) > millis(100));
    let heads = server.heads();
    let sessions: BTreeSet<_> =
        heads.iter().filter_map(|head| header(head, "cmcd-session")).collect();
    assert_eq!(sessions.len(), 20);
}

#[test]
fn failed_listeners_report_the_problem_and_their_playback() {
    let cut = Raw::start(|connection, _| {
        let head = connection.read_request().unwrap();
        connection.respond(&head, 12_000);
        connection.read_request();
        connection.write(
            "HTTP/1.1 206 Partial Content\r\nContent-Length: 4000\r\n\
                  Content-Range: bytes 4000-7999/12000\r\n\r\nabc",
        );
    });
    let heard =
        run(&ListenSpec { duration: Some(millis(600)), ..spec(&[&cut.url("/a")]) }).remove(0);
    assert_message!("3 of 4000 bytes", heard.problem.unwrap());
    assert!(heard.report.playback.unwrap().startup.is_some());
    assert_eq!(heard.report.transfers.len(), 2);
    // A file that is shorter than the given duration.
    let short = Raw::start(obliging);
    let duration = Some(millis(700));
    let heard = run(&ListenSpec { duration, ..spec(&[&short.url("/a")]) }).remove(0);
    assert!(heard.problem.is_some());
    assert_eq!(heard.report.audio.unwrap().finished, 0);
}

#[test]
fn listeners_stop_at_the_limit() {
    let server = Raw::start(|connection, _| {
        while let Some(head) = connection.read_request() {
            connection.respond(&head, 1_000_000);
        }
    });
    let limit = Some(millis(500));
    let heard = run(&ListenSpec { limit, ..spec(&[&server.url("/a")]) }).remove(0);
    assert!(heard.problem.is_none());
    let playback = heard.report.playback.unwrap();
    assert!(playback.ended.is_none() && playback.played < millis(1500), "{playback:?}");
}

#[test]
fn unplayable_songs_are_reported_before_the_first_click() {
    let error = |script: common::Script| {
        let server = Raw::start(script);
        let spec = spec(&[&server.url("/a")]);
        let stop = Arc::new(AtomicBool::new(false));
        listen(&spec, &stop, &Arc::new(Tally::default())).unwrap_err().to_string()
    };
    let unsized_ = error(|connection, _| {
        connection.read_request();
        connection.write("HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n");
    });
    assert!(unsized_.contains("/a: ") && unsized_.contains("Content-Length"), "{unsized_}");
    let missing = error(|connection, _| {
        connection.read_request();
        connection.write("HTTP/1.1 404 Not Found\r\nContent-Length: 0\r\n\r\n");
    });
    assert!(missing.starts_with("http://") && missing.ends_with("/a: status 404"), "{missing}");
}
