//! The rules, one test case each.

use std::time::Duration;

use h3i::actions::h3::{Action, WaitType};
use h3i::quiche::h3::frame::Frame;

use crate::{
    ConformanceCase, Wanted, bytes, case, control, frame, head, literal, request, uni, with_control,
};

pub(crate) fn streams() -> Vec<ConformanceCase> {
    use Wanted::{Answered, Closed, Refused};
    let data = Frame::Data { payload: b"x".to_vec() };
    vec![
        case(
            "no settings first",
            "6.2.1",
            Closed(0x10a),
            vec![uni(2, 0), bytes(2, false, &[7, 1, 0])],
        ),
        case(
            "two control streams",
            "6.2.1",
            Closed(0x103),
            with_control(vec![uni(6, 0), bytes(6, false, &[4, 0])]),
        ),
        case(
            "a control stream that ends",
            "6.2.1",
            Closed(0x104),
            vec![uni(2, 0), bytes(2, true, &[4, 0])],
        ),
        case(
            "a control stream that is reset",
            "6.2.1",
            Closed(0x104),
            with_control(vec![
                Action::FlushPackets,
                Action::ResetStream { stream_id: 2, error_code: 0x100 },
            ]),
        ),
        case(
            "a push stream of a client's",
            "6.2.2",
            Closed(0x103),
            with_control(vec![uni(6, 1), bytes(6, false, &[0])]),
        ),
        case(
            "a stream of an unknown type",
            "6.2.3",
            Answered,
            [
                control(),
                vec![uni(6, 0x21), bytes(6, false, b"grease")],
                request("/small", &[])[2..].to_vec(),
            ]
            .concat(),
        ),
        case(
            "settings twice",
            "7.2.4",
            Closed(0x105),
            vec![uni(2, 0), bytes(2, false, &[4, 0, 4, 0])],
        ),
        case(
            "a setting twice",
            "7.2.4",
            Closed(0x109),
            vec![uni(2, 0), bytes(2, false, &[4, 4, 6, 10, 6, 10])],
        ),
        case(
            "a setting of HTTP/2",
            "7.2.4.1",
            Closed(0x109),
            vec![uni(2, 0), bytes(2, false, &[4, 2, 2, 1])],
        ),
        case(
            "an unknown setting",
            "7.2.4.1",
            Answered,
            [
                vec![uni(2, 0), bytes(2, false, &[4, 2, 0x21, 1])],
                request("/small", &[])[2..].to_vec(),
            ]
            .concat(),
        ),
        case(
            "settings that are cut off",
            "7.1",
            Closed(0x106),
            vec![uni(2, 0), bytes(2, false, &[4, 1, 6])],
        ),
        case(
            "data on the control stream",
            "7.2.1",
            Closed(0x105),
            with_control(vec![frame(2, false, data.clone())]),
        ),
        case(
            "a head on the control stream",
            "7.2.2",
            Closed(0x105),
            with_control(vec![bytes(2, false, &[1, 2, 0, 0])]),
        ),
        case(
            "a push promise of a client's",
            "7.2.5",
            Closed(0x105),
            with_control(vec![bytes(0, false, &[5, 3, 0, 0, 0])]),
        ),
        case(
            "a cancelled push that never was",
            "7.2.3",
            Closed(0x108),
            with_control(vec![bytes(2, false, &[3, 1, 5])]),
        ),
        case(
            "a smaller maximum of pushes",
            "7.2.7",
            Closed(0x108),
            with_control(vec![bytes(2, false, &[13, 1, 5, 13, 1, 2])]),
        ),
        case(
            "a farewell that rises",
            "5.2",
            Closed(0x108),
            with_control(vec![bytes(2, false, &[7, 1, 0, 7, 1, 4])]),
        ),
        case(
            "a frame of HTTP/2 on the control stream",
            "7.2.8",
            Closed(0x105),
            with_control(vec![bytes(2, false, &[6, 0])]),
        ),
        case(
            "a frame of HTTP/2 before a head",
            "7.2.8",
            Closed(0x105),
            with_control(vec![bytes(0, false, &[8, 4, 0, 0, 0, 1])]),
        ),
        case(
            "data before the head",
            "4.1",
            Closed(0x105),
            with_control(vec![frame(0, true, data)]),
        ),
        case(
            "settings on a request",
            "7.2.4",
            Closed(0x105),
            with_control(vec![bytes(0, true, &[4, 0])]),
        ),
        case(
            "a farewell on a request",
            "7.2.6",
            Closed(0x105),
            with_control(vec![bytes(0, true, &[7, 1, 0])]),
        ),
        case(
            "a frame that is cut off",
            "7.1",
            Closed(0x106),
            with_control(vec![bytes(0, true, &[1, 40, 0, 0])]),
        ),
        case(
            "a request of nothing",
            "4.1",
            Refused(0x10d),
            with_control(vec![bytes(0, true, &[])]),
        ),
        case(
            "an unknown frame before the head",
            "9",
            Answered,
            [
                control(),
                vec![bytes(0, false, &[0x21, 2, 1, 1])],
                request("/small", &[])[2..].to_vec(),
            ]
            .concat(),
        ),
    ]
}

pub(crate) fn qpack() -> Vec<ConformanceCase> {
    use Wanted::Closed;
    vec![
        case(
            "no field of the static table",
            "RFC 9204 3.1",
            Closed(0x200),
            with_control(vec![bytes(0, true, &[1, 4, 0, 0, 0xff, 0x7f])]),
        ),
        case(
            "a reference to a table of no size",
            "RFC 9204 2.2",
            Closed(0x200),
            with_control(vec![bytes(0, true, &[1, 3, 2, 0, 0x80])]),
        ),
        case(
            "an entry for a table of no size",
            "RFC 9204 3.2.2",
            Closed(0x201),
            with_control(vec![uni(6, 2), bytes(6, false, &[0x41, b'a', 1, b'b'])]),
        ),
        case(
            "a table larger than allowed",
            "RFC 9204 4.3.1",
            Closed(0x201),
            with_control(vec![uni(6, 2), bytes(6, false, &[0x3f, 0xe1, 0x1f])]),
        ),
        case(
            "an acknowledgement of nothing",
            "RFC 9204 4.4.1",
            Closed(0x202),
            with_control(vec![uni(6, 3), bytes(6, false, &[0x84])]),
        ),
        case(
            "two streams of an encoder",
            "RFC 9204 4.2",
            Closed(0x103),
            with_control(vec![uni(6, 2), uni(10, 2)]),
        ),
        case(
            "a stream of an encoder that ends",
            "RFC 9204 4.2",
            Closed(0x104),
            with_control(vec![uni(6, 2), bytes(6, true, &[])]),
        ),
    ]
}

pub(crate) fn requests(path: &str) -> Vec<ConformanceCase> {
    use Wanted::{Answered, Refused};
    const BAD: Wanted = Refused(0x10e);
    let (method, scheme, authority, path) =
        ((":method", "GET"), (":scheme", "https"), (":authority", "test"), (":path", path));
    let only = |fields: &[(&str, &str)]| with_control(vec![head(fields, true)]);
    let with_body = |length: &str| {
        let fields = [method, scheme, authority, path, ("content-length", length)];
        let body = Frame::Data { payload: b"test".to_vec() };
        with_control(vec![head(&fields, false), frame(0, true, body)])
    };
    let trailers = |fields: &[(&str, &str)]| {
        let first = [method, scheme, authority, path];
        with_control(vec![
            head(&first, false),
            frame(0, false, Frame::Data { payload: b"x".to_vec() }),
            head(fields, true),
        ])
    };
    vec![
        case("a request", "4.1", Answered, request(path.1, &[])),
        case("trailers", "4.1", Refused(0x10e), trailers(&[(":path", "/")])),
        case("a name in upper case", "4.2", BAD, request(path.1, &[("Accept", "x")])),
        case("a connection header", "4.2", BAD, request(path.1, &[("connection", "close")])),
        case("a transfer coding", "4.2", BAD, request(path.1, &[("transfer-encoding", "chunked")])),
        case("keep-alive", "4.2", BAD, request(path.1, &[("keep-alive", "timeout=5")])),
        case("proxy-connection", "4.2", BAD, request(path.1, &[("proxy-connection", "close")])),
        case("upgrade", "4.2", BAD, request(path.1, &[("upgrade", "websocket")])),
        case("te: gzip", "4.2", BAD, request(path.1, &[("te", "gzip")])),
        case("te: trailers", "4.2", Answered, request(path.1, &[("te", "trailers")])),
        case("a line end in a value", "10.3", BAD, request(path.1, &[("x", "a\r\nb: c")])),
        case("a zero in a value", "10.3", BAD, request(path.1, &[("x", "a\0b")])),
        case("a colon in a name", "10.3", BAD, request(path.1, &[("x:y", "a")])),
        case("no method", "4.3.1", BAD, only(&[scheme, authority, path])),
        case("no scheme", "4.3.1", BAD, only(&[method, authority, path])),
        case("no path", "4.3.1", BAD, only(&[method, scheme, authority])),
        case("an empty path", "4.3.1", BAD, only(&[method, scheme, authority, (":path", "")])),
        case("no authority", "4.3.1", BAD, only(&[method, scheme, path])),
        case("an empty authority", "4.3.1", BAD, only(&[method, scheme, (":authority", ""), path])),
        case("two authorities", "4.3.1", BAD, request(path.1, &[("host", "other")])),
        case("a path twice", "4.3.1", BAD, only(&[method, scheme, authority, path, path])),
        case("a method twice", "4.3.1", BAD, only(&[method, method, scheme, authority, path])),
        case(
            "a pseudo-header behind others",
            "4.3",
            BAD,
            only(&[method, scheme, authority, ("accept", "x"), path]),
        ),
        case(
            "a pseudo-header of responses",
            "4.3",
            BAD,
            only(&[(":status", "200"), method, scheme, authority, path]),
        ),
        case(
            "an unknown pseudo-header",
            "4.3",
            BAD,
            only(&[(":what", "x"), method, scheme, authority, path]),
        ),
        case(
            "a protocol without CONNECT",
            "RFC 8441 4",
            BAD,
            only(&[method, scheme, authority, path, (":protocol", "x")]),
        ),
        case("a body shorter than it says", "4.1.2", BAD, with_body("5")),
        case("a body longer than it says", "4.1.2", BAD, with_body("3")),
        case("a length that is none", "4.1.2", BAD, with_body("four")),
        case("a head of 21 kB", "4.2.2", Refused(0x107), with_control(large())),
    ]
}

/// A head larger than servers accept, in pieces that fit into the initial congestion window.
fn large() -> Vec<Action> {
    let value = "a".repeat(21_000);
    let block = literal(&[
        (":method", "GET"),
        (":scheme", "https"),
        (":authority", "test"),
        (":path", "/"),
        ("x", &value),
    ]);
    let length = (block.len() as u32 | 0x8000_0000).to_be_bytes();
    let head = [&[1], &length[..], &block].concat();
    let pause = || Action::Wait { wait_type: WaitType::WaitDuration(Duration::from_millis(80)) };
    let pieces =
        head.chunks(7000).flat_map(|piece| [bytes(0, false, piece), Action::FlushPackets, pause()]);
    pieces.collect()
}
