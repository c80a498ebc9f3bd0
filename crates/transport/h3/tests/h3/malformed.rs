//! Clients that violate HTTP/3: each gets the right error code, and no other connection is affected.

use std::net::UdpSocket;
use std::time::Duration;

use crate::common::raw::{
    GET, HTTPS, RawEvent, SETTINGS, Written, ask, control, fields, frame, request,
};
use crate::common::{Test, still_serves};
use noq_proto::{Dir, VarInt};
use uncork_quic_io::ShutdownOptions;

/// Sends these streams and waits for the event `wanted`, ignoring others.
fn expect(test: &Test, streams: &[Written], wanted: &RawEvent, what: &str) {
    let socket = UdpSocket::bind("127.0.0.1:0").expect("a socket");
    let (workers, events) = ask(socket, test, streams, &[]);
    let mut others = Vec::new();
    loop {
        match events.recv_timeout(Duration::from_secs(20)) {
            Ok(event) if event == *wanted => break,
            Ok(other) => others.push(other),
            Err(error) => panic!("{what}: {others:?} in place of {wanted:?}: {error}"),
        }
    }
    workers.shut_down(&ShutdownOptions::at_once(VarInt::from_u32(0x100)));
}

#[test]
fn connection_errors_close_with_the_right_code() {
    let test = Test::new();
    let settings = control(&SETTINGS);
    // PRIORITY_UPDATE (RFC 9218 §7.2) for stream 1, which the server opens, and without a stream.
    let update = |payload: &[u8]| vec![control(&[&[4, 0, 0x80, 0x0f, 7, 0], payload].concat())];
    let cases: [(&str, Vec<Written>, u64); 12] = [
        ("the priority of a stream that is not a request", update(&[2, 1, b'i']), 0x108),
        ("a priority of nothing", update(&[0]), 0x106),
        ("two control streams", vec![settings.clone(), settings.clone()], 0x103),
        ("a control stream that ends", vec![(Dir::Uni, vec![0, 4, 0], true)], 0x104),
        ("no settings", vec![control(&frame(7, &[0]))], 0x10a),
        ("settings twice", vec![control(&[4, 0, 4, 0])], 0x105),
        ("a setting of HTTP/2", vec![control(&frame(4, &[2, 1]))], 0x109),
        ("a frame of HTTP/2", vec![control(&[4, 0, 6, 0])], 0x105),
        ("a body on the control stream", vec![control(&[4, 0, 0, 1, 1])], 0x105),
        ("a body without a head", vec![settings.clone(), request(&frame(0, b"x"))], 0x105),
        ("a frame that is cut off", vec![settings.clone(), request(&[1, 10, 0, 0])], 0x106),
        (
            "a head that is not QPACK",
            vec![settings.clone(), request(&frame(1, &[0xff; 20]))],
            0x200,
        ),
    ];
    for (what, streams, code) in cases {
        expect(&test, &streams, &RawEvent::Closed(code), what);
    }
    still_serves(&test);
}

#[test]
fn malformed_requests_reset_their_stream() {
    let test = Test::new();
    let settings = control(&SETTINGS);
    let head = |bytes: &[u8]| request(&frame(1, bytes));
    // A field with a name that is not in lower case.
    let upper = [&fields("/1")[..], &[0x21, b'A', 1, b'x']].concat();
    let large = [vec![1, 0x80, 0x10, 0, 0], vec![0; 200_000]].concat();
    let cases = [
        ("nothing", request(&[]), 0x10d),
        ("no path", head(&[0, 0, GET, HTTPS]), 0x10e),
        ("a name in upper case", head(&upper), 0x10e),
        ("a head without end", request(&large), 0x107),
    ];
    for (what, stream, code) in cases {
        expect(&test, &[settings.clone(), stream], &RawEvent::Reset(code), what);
    }
    still_serves(&test);
}

/// `h3` sends this response itself and then drops the stream.
#[test]
fn a_head_that_is_too_large_is_answered() {
    let test = Test::new();
    let long = [&[0x21, b'x', 0x7f, 0xa1, 0x9b, 0x01][..], &vec![b'a'; 20_000]].concat();
    let fields = [&fields("/1")[..], &long].concat();
    let length = (fields.len() as u32 | 0x8000_0000).to_be_bytes();
    let large = request(&[&[1], &length[..], &fields].concat());
    expect(&test, &[control(&SETTINGS), large], &RawEvent::Answered(0), "a large head");
    still_serves(&test);
}

#[test]
fn unknown_frames_and_streams_are_ignored() {
    let test = Test::new();
    let grease = [&SETTINGS[..], &frame(0x21, b"what"), &frame(0x21, b"")].concat();
    let streams = [
        control(&grease),
        // A request with an unknown frame before its head (RFC 9114 §9).
        request(&[frame(0x21, b"before"), frame(1, &fields("/10"))].concat()),
    ];
    expect(&test, &streams, &RawEvent::Answered(0), "unknown frames");
    let unknown = [control(&SETTINGS), (Dir::Uni, vec![0x21, 1, 2, 3], false)];
    expect(&test, &unknown, &RawEvent::Reset(0x103), "an unknown stream");
    still_serves(&test);
}
