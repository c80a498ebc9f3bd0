//! Tests of HTTP/2 frame by frame (RFC 9113), where the order of frames matters.

use std::time::Duration;

use crate::common::{Client, Scratch, Served, content, spec};
use crate::frames::{
    DATA, END_HEADERS, END_STREAM, GET_INDEX, HEADERS, RST_STREAM, SETTINGS, frame, next,
};
use uncork_testkit::pause;

/// `GET / HTTP` with the authority `test` (RFC 7541, Appendix A), and `content-length: 1`.
const GET: &[u8] = b"\x82\x84\x86\x41\x04test";
const LENGTH_1: &[u8] = b"\x0f\x0d\x011";

fn begin(served: &Served) -> Client {
    let mut client = served.connect();
    client.send(b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n").expect("a connection");
    client.send(&frame(SETTINGS, 0, 0, &[])).expect("a connection");
    client
}

/// After a response, the client would no longer learn that its request was malformed (RFC 9113
/// §8.1.1).
#[test]
fn a_request_that_turns_out_malformed_is_reset() {
    let scratch = Scratch::new("serve");
    let served = Served::new(&spec(&scratch.path("")));
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

/// RFC 9113 §8.3.1, RFC 9110 §7.2: as over HTTP/1.1 and HTTP/3. Indices of names as in RFC 7541, Appendix A.
#[test]
fn a_request_that_is_not_for_one_host_is_refused() {
    const INDEX: &[u8] = b"\x82\x04\x0b/index.html\x86";
    const AUTHORITY: &[u8] = b"\x41\x04test";
    const HOST: &[u8] = b"\x66\x04test";
    const LENGTH_0: &[u8] = b"\x0f\x0d\x010";
    /// `:status` 200 and 400.
    const STATUS: [u8; 2] = [0x88, 0x8c];
    let scratch = Scratch::new("serve");
    scratch.write("index.html", "index");
    let served = Served::new(&spec(&scratch.path("")));
    let answer = |fields: &[&[u8]]| {
        let mut client = begin(&served);
        let head = [&[INDEX], fields].concat().concat();
        client.send(&frame(HEADERS, END_HEADERS | END_STREAM, 1, &head)).expect("a connection");
        let (kind, _, _, payload) = next(&mut client.0);
        (kind, payload[0], payload[3])
    };
    for fields in [&[AUTHORITY][..], &[HOST], &[AUTHORITY, HOST], &[b"\x41\x07TEST:80", HOST]] {
        let (kind, status, _) = answer(fields);
        assert_eq!((kind, status), (HEADERS, STATUS[0]), "{fields:?}");
    }
    for fields in [&[][..], &[AUTHORITY, HOST, HOST], &[b"\x66\x03a b"]] {
        let (kind, status, _) = answer(fields);
        assert_eq!((kind, status), (HEADERS, STATUS[1]), "{fields:?}");
    }
    for fields in [
        &[AUTHORITY, b"\x66\x01b"][..],
        &[b"\x41\x06u@test"],
        &[AUTHORITY, LENGTH_0, b"\x0f\x0d\x0200", LENGTH_0, b"\x0f\x0d\x011"],
    ] {
        let (kind, _, error) = answer(fields);
        assert_eq!((kind, error), (RST_STREAM, 1), "PROTOCOL_ERROR: {fields:?}");
    }
    served.stop();
}

/// More requests than one turn of the server accepts, all at once; each gets its own response.
#[test]
fn simultaneous_requests_are_all_answered() {
    let scratch = Scratch::new("serve");
    scratch.write("index.html", "0123456789".repeat(100));
    let mut spec = spec(&scratch.path(""));
    spec.limits.streams = 100;
    let served = Served::new(&spec);
    let mut client = begin(&served);
    let streams = (0..100).map(|number| 2 * number + 1);
    let requests = streams.map(|id| frame(HEADERS, END_HEADERS | END_STREAM, id, GET_INDEX));
    client.send(&requests.collect::<Vec<_>>().concat()).expect("a connection");
    let mut bodies = std::collections::BTreeMap::<u32, usize>::new();
    let mut ended = 0;
    // 65 responses fill the window of 64 KiB.
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

/// The initial window of a connection holds less than the largest frame, and many clients process
/// only complete frames.
#[test]
fn the_first_frame_of_a_body_is_small() {
    let scratch = Scratch::new("serve");
    let bytes = content(40_000);
    scratch.write("index.html", &bytes);
    let served = Served::new(&spec(&scratch.path("")));
    let mut client = begin(&served);
    client.send(&frame(HEADERS, END_HEADERS | END_STREAM, 1, GET_INDEX)).expect("a connection");
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
