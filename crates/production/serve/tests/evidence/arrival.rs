//! Tests of the records of responses over all versions of HTTP.

use std::io::Read;
use std::thread;
use std::time::Duration;

use crate::common::{Client, Scratch, Served, content, records};
use crate::frames::{
    DATA, END_HEADERS, END_STREAM, GET_INDEX, HEADERS, SETTINGS, WINDOW_UPDATE, frame, next,
};
use crate::late::DelayedPath;
use crate::talker::{Http3Client, get, request, run, secured};
use uncork_flow::FlowRecord;
use uncork_serve::{Identity, RecordsSpec, ServerSpec};
use uncork_testkit::{pause, pause_async};

const PROTOCOLS: [&str; 3] = ["h1", "h2", "h3"];

/// A server that writes records; over TCP without TLS.
fn site(protocol: &str, length: usize) -> (Scratch, ServerSpec) {
    let scratch = Scratch::new("serve");
    scratch.write("root/index.html", content(length));
    let mut spec = secured(&scratch);
    if protocol != "h3" {
        spec.identity = Identity::Plain;
    }
    spec.records = Some(RecordsSpec::new(scratch.path("records")));
    (scratch, spec)
}

/// A client that has requested the file over TCP, and has received the first bytes of the response.
fn ask(protocol: &str, mut client: Client) -> Client {
    if protocol == "h1" {
        client.send(b"GET /index.html HTTP/1.1\r\nHost: test\r\n\r\n").expect("sent");
        client.head().expect("a head");
        return client;
    }
    let window = 0x7fff_0000_u32.to_be_bytes();
    let settings = frame(SETTINGS, 0, 0, &[&[0, 4][..], &window].concat());
    let hello = [
        b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n".to_vec(),
        settings,
        frame(WINDOW_UPDATE, 0, 0, &window),
        frame(HEADERS, END_HEADERS | END_STREAM, 1, GET_INDEX),
    ];
    client.send(&hello.concat()).expect("sent");
    assert_eq!(next(&mut client.0).0, HEADERS);
    client
}

/// Reads the rest of a response, with a pause after each piece.
fn read(protocol: &str, client: &mut Client, length: usize, rest: Duration) {
    let (mut read, mut piece) = (0, vec![0; length.min(100_000)]);
    while read < length {
        let got = match protocol {
            "h1" => client.0.read(&mut piece).expect("a piece"),
            _ => Some(next(&mut client.0)).filter(|it| it.0 == DATA).map_or(0, |it| it.3.len()),
        };
        assert!(got > 0, "it ended after {read} bytes");
        read += got;
        if !rest.is_zero() {
            pause(rest, "a client that reads slowly");
        }
    }
}

fn summary(scratch: &Scratch) -> Vec<(Option<u64>, bool, u64)> {
    let row = |it: &FlowRecord| {
        let service = it.service.as_ref().expect("a server's");
        (it.size_bytes, it.completion_ns.is_some(), service.broken_off)
    };
    records(&scratch.path("records")).iter().map(row).collect()
}

/// Clients that receive a whole response and close the connection immediately.
#[test]
fn fully_received_responses_are_not_recorded_as_broken_off() {
    for protocol in PROTOCOLS {
        for length in [1000, 1_000_000] {
            let (scratch, spec) = site(protocol, length);
            let served = Served::new(&spec);
            if protocol == "h3" {
                let mut http3_client = Http3Client::new(&scratch, &served);
                let path = DelayedPath::to(http3_client.address, Duration::from_millis(25));
                http3_client.address = path.address;
                run(async {
                    for _ in 0..10 {
                        let connection = http3_client.connect().await;
                        get(&connection, "/index.html", &[]).await.expect("a response");
                    }
                    pause_async(Duration::from_millis(100), "the last end is on its way").await;
                });
            } else {
                for _ in 0..10 {
                    let mut client = ask(protocol, served.connect());
                    read(protocol, &mut client, length, Duration::ZERO);
                }
            }
            served.stop();
            assert_eq!(summary(&scratch), [(Some(length as u64), true, 0); 10], "{protocol}");
        }
    }
}

/// Clients that disconnect in the middle of a response.
#[test]
fn aborted_responses_are_recorded_as_broken_off() {
    for protocol in PROTOCOLS {
        let length = 64 << 20;
        let (scratch, spec) = site(protocol, length);
        let served = Served::new(&spec);
        if protocol == "h3" {
            let http3_client = Http3Client::new(&scratch, &served);
            run(async {
                let connection = http3_client.connect().await;
                let response = connection.request(request("GET", "/index.html", &[])).await;
                drop((response.expect("a head"), connection));
            });
        } else {
            drop(ask(protocol, served.connect()));
        }
        served.stop();
        assert_eq!(summary(&scratch), [(Some(length as u64), false, 1)], "{protocol}");
    }
}

/// The server exits while a client has not read the bytes in the kernel. The kernel continues to
/// send them, so the client receives the whole response.
#[test]
fn responses_in_the_kernel_at_shutdown_are_not_broken_off() {
    for protocol in ["h1", "h2"] {
        let length = 100_000;
        let (scratch, spec) = site(protocol, length);
        let served = Served::new(&spec);
        let mut client = ask(protocol, Client::with_room_for(8192, served.address));
        pause(Duration::from_millis(300), "the server writes, and the client does not read");
        let end = thread::spawn(move || served.server.stop(Duration::ZERO));
        pause(
            Duration::from_millis(300),
            "the server has broken off all responses that it may drop",
        );
        read(protocol, &mut client, length, Duration::ZERO);
        end.join().expect("stopped");
        let [(size, _, broken_off)] = summary(&scratch).try_into().expect("a response");
        assert_eq!((size, broken_off), (Some(length as u64), 0), "{protocol}");
    }
}

/// The client's window limits a response to a slow reader, not the application.
#[test]
fn a_slow_reader_is_client_limited_not_application_limited() {
    for protocol in PROTOCOLS {
        let length = 12_000_000;
        let (scratch, spec) = site(protocol, length);
        let served = Served::new(&spec);
        if protocol == "h3" {
            let http3_client = Http3Client::new(&scratch, &served);
            run(async {
                let connection = http3_client.connect().await;
                let response = connection.request(request("GET", "/index.html", &[])).await;
                let mut body = response.expect("a response").into_body();
                while let Some(chunk) = body.next_chunk().await {
                    chunk.expect("the rest");
                    pause_async(Duration::from_millis(10), "a client that reads slowly").await;
                }
            });
        } else {
            let mut client = ask(protocol, served.connect());
            pause(Duration::from_millis(800), "a client that does not read");
            read(protocol, &mut client, length, Duration::ZERO);
        }
        served.stop();
        let [record] = records(&scratch.path("records")).try_into().expect("a response");
        let service = record.service.as_ref().expect("a server's");
        let share = |part: Option<u64>| part.unwrap_or(0) as f64 / record.busy_ns as f64;
        let (client, application) = (share(service.rwnd_limited_ns), share(service.app_limited_ns));
        assert!(client > 0.5 && application < 0.1, "{protocol}: {client} {application} {record:?}");
    }
}
