//! HTTP/2 frame by frame (RFC 9113), where what matters is what comes when.
#![cfg(target_os = "linux")]

mod common;

use std::io::{BufReader, Read};
use std::net::TcpStream;
use std::time::Duration;

use common::{Client, Scratch, Served, content, spec};
use uncork_testkit::pause;

const DATA: u8 = 0;
const HEADERS: u8 = 1;
const RST_STREAM: u8 = 3;
const SETTINGS: u8 = 4;
const END_STREAM: u8 = 1;
const END_HEADERS: u8 = 4;
/// `GET / HTTP` of `test` (RFC 7541, Appendix A), and `content-length: 1`.
const GET: &[u8] = b"\x82\x84\x86\x41\x04test";
const LENGTH_1: &[u8] = b"\x0f\x0d\x011";

fn frame(kind: u8, flags: u8, stream: u32, payload: &[u8]) -> Vec<u8> {
    let length = u32::try_from(payload.len()).expect("a short one").to_be_bytes();
    [&length[1..], &[kind, flags], &stream.to_be_bytes(), payload].concat()
}

/// The next frame of a stream: its kind, its flags and what is in it.
fn next(stream: &mut BufReader<TcpStream>) -> (u8, u8, u32, Vec<u8>) {
    loop {
        let mut head = [0; 9];
        stream.read_exact(&mut head).expect("a frame");
        let [a, b, c, kind, flags, stream_id @ ..] = head;
        let mut payload = vec![0; u32::from_be_bytes([0, a, b, c]) as usize];
        stream.read_exact(&mut payload).expect("all of a frame");
        let id = u32::from_be_bytes(stream_id);
        if id != 0 {
            return (kind, flags, id, payload);
        }
    }
}

fn begin(served: &Served) -> Client {
    let mut client = served.connect();
    client.send(b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n").expect("a connection");
    client.send(&frame(SETTINGS, 0, 0, &[])).expect("a connection");
    client
}

/// A response would hide that the request turns out malformed (RFC 9113 §8.1.1).
#[test]
fn a_request_that_turns_out_malformed_is_reset() {
    let scratch = Scratch::new();
    let served = Served::new(&spec(&scratch.0));
    let second_head = frame(HEADERS, END_HEADERS, 1, GET);
    let too_long = frame(DATA, END_STREAM, 1, b"four");
    for rest in [second_head, too_long] {
        let mut client = begin(&served);
        let head = [GET, LENGTH_1].concat();
        client.send(&frame(HEADERS, END_HEADERS, 1, &head)).expect("a connection");
        pause(Duration::from_millis(50), "the rest of the request comes later");
        client.send(&rest).expect("a connection");
        let (kind, _, id, payload) = next(&mut client.0);
        let protocol_error = vec![0, 0, 0, 1];
        assert_eq!((kind, id, payload), (RST_STREAM, 1, protocol_error));
    }
    served.stop();
}

/// More requests than one turn of the server takes, all at once; each has its own answer.
#[test]
fn requests_that_come_together_are_all_answered() {
    let scratch = Scratch::new();
    scratch.write("index.html", "0123456789".repeat(100));
    let mut spec = spec(&scratch.0);
    spec.limits.streams = 100;
    let served = Served::new(&spec);
    let mut client = begin(&served);
    let streams = (0..100).map(|number| 2 * number + 1);
    let path = b"\x82\x04\x0b/index.html\x86\x41\x04test";
    let requests = streams.map(|id| frame(HEADERS, END_HEADERS | END_STREAM, id, path));
    client.send(&requests.collect::<Vec<_>>().concat()).expect("a connection");
    let mut bodies = std::collections::BTreeMap::<u32, usize>::new();
    let mut ended = 0;
    // 64 KiB of window: as much as 65 of them need.
    while ended < 65 {
        let (kind, flags, id, payload) = next(&mut client.0);
        if kind == DATA {
            *bodies.entry(id).or_default() += payload.len();
        }
        ended += usize::from(flags & END_STREAM != 0);
    }
    assert_eq!(bodies.values().filter(|length| **length == 1000).count(), 65);
    drop(client);
    served.stop();
}

/// The first window of a connection holds less than the largest frame, and many clients take whole ones only.
#[test]
fn the_first_frame_of_a_body_is_small() {
    let scratch = Scratch::new();
    let bytes = content(40_000);
    scratch.write("index.html", &bytes);
    let served = Served::new(&spec(&scratch.0));
    let mut client = begin(&served);
    let path = b"\x82\x04\x0b/index.html\x86\x41\x04test";
    client.send(&frame(HEADERS, END_HEADERS | END_STREAM, 1, path)).expect("a connection");
    let (mut lengths, mut body) = (Vec::new(), Vec::new());
    while body.len() < bytes.len() {
        let (kind, _, _, payload) = next(&mut client.0);
        if kind == DATA {
            lengths.push(payload.len());
            body.extend(payload);
        }
    }
    assert!(lengths[0] <= 8 * 1024 && lengths.len() <= 4, "{lengths:?}");
    assert_eq!(body, bytes);
    drop(client);
    served.stop();
}
