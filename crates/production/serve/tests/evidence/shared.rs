//! Records of responses that share a connection, and of clients that end it early.

use std::io::Read;
use std::net::Shutdown;
use std::time::Duration;

use crate::common::{Client, Scratch, Served, connections, content, records, spec};
use crate::frames::{
    DATA, END_HEADERS, END_STREAM, GET_INDEX, HEADERS, RST_STREAM, SETTINGS, WINDOW_UPDATE, frame,
    next,
};
use socket2::SockRef;
use uncork_flow::FlowRecord;
use uncork_serve::{RecordsSpec, ServerSpec};
use uncork_testkit::pause;

const GET: &str = "GET /index.html HTTP/1.1\r\nHost: test\r\n\r\n";
const PREFACE: &[u8] = b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n";
/// What a client's socket holds unread. A connection has less than twice of it on the way.
const ROOM: usize = 60_000;
/// More bytes than clients read here: half of it are read.
const MANY: usize = 600_000;

fn serving(scratch: &Scratch, length: usize) -> ServerSpec {
    scratch.write("root/index.html", content(length));
    ServerSpec {
        records: Some(RecordsSpec::new(scratch.path("records"))),
        ..spec(&scratch.path("root"))
    }
}

fn read(client: &mut Client, bytes: usize) {
    client.0.read_exact(&mut vec![0; bytes]).expect("bytes");
}

/// Ends the connection with a RST, when what was read is acknowledged.
fn reset(client: Client) {
    pause(Duration::from_millis(100), "acknowledgements");
    SockRef::from(client.0.get_ref()).set_linger(Some(Duration::ZERO)).expect("a socket");
    drop(client);
}

fn is_broken_off(record: &FlowRecord) -> bool {
    record.service.as_ref().is_some_and(|service| service.broken_off == 1)
}

/// The records of the responses. Those of the connection agree with them, and count no byte twice.
fn consistent(scratch: &Scratch) -> (Vec<FlowRecord>, FlowRecord) {
    let responses = records(&scratch.path("records"));
    let [all] = connections(&scratch.path("records")).try_into().expect("one connection");
    let sum: u64 = responses.iter().map(|record| record.bytes_delivered).sum();
    assert_eq!(sum, all.bytes_delivered);
    assert!(sum <= all.bytes_acked, "{sum} delivered, {} acknowledged", all.bytes_acked);
    for record in &responses {
        assert!(record.bytes_delivered <= record.bytes_acked, "{record:?}");
        assert_eq!(record.completion_ns.is_none(), is_broken_off(record), "{record:?}");
    }
    (responses, all)
}

/// RFC 9293 §3.6: who has closed his side still receives.
#[test]
fn a_client_that_shuts_down_its_side_gets_the_whole_response() {
    let scratch = Scratch::new("serve");
    let length = 10_000_000;
    let served = Served::new(&serving(&scratch, length));
    let mut client = Client::with_room_for(ROOM, served.address);
    client.send(GET.as_bytes()).expect("sent");
    client.0.get_ref().shutdown(Shutdown::Write).expect("shut down");
    let head = client.head().expect("a head");
    let (body, ended) = client.rest();
    ended.expect("an orderly end");
    assert_eq!((head.status, body.len()), (200, length));
    drop(client);
    // A client without a request has nothing to wait for.
    let mut idle = served.connect();
    idle.0.get_ref().shutdown(Shutdown::Write).expect("shut down");
    assert!(idle.rest().0.is_empty());
    served.stop();
    let [record] = records(&scratch.path("records")).try_into().expect("one response");
    assert_eq!(record.bytes_delivered, length as u64);
    assert!(!is_broken_off(&record) && record.completion_ns.is_some());
}

/// HTTP/1.1 sends one response after the other, so it is known which of them have arrived.
#[test]
fn pipelined_responses_then_a_reset_whole_ones_are_whole_and_bytes_count_once() {
    let scratch = Scratch::new("serve");
    let length = 100_000;
    let served = Served::new(&serving(&scratch, length));
    let mut client = Client::with_room_for(ROOM, served.address);
    client.send(GET.repeat(20).as_bytes()).expect("sent");
    read(&mut client, MANY);
    reset(client);
    served.stop();
    let (responses, all) = consistent(&scratch);
    let whole = responses.iter().take_while(|record| !is_broken_off(record)).count();
    assert!((5..20).contains(&whole), "{whole}");
    for record in &responses[..whole] {
        assert_eq!(record.bytes_delivered, length as u64);
        assert!((100..1000).contains(&(record.bytes_acked - length as u64)), "{record:?}");
    }
    let broken = &responses[whole..];
    assert!(broken.iter().all(is_broken_off), "they come in order");
    assert!(broken.iter().skip(1).all(|record| record.bytes_delivered == 0), "{broken:?}");
    let heads = 1000 * responses.len() as u64;
    assert!(all.bytes_delivered + heads >= all.bytes_acked, "nothing else was sent");
}

fn streams(client: &mut Client, count: u32) {
    let settings = [&[0, 4][..], &(1_u32 << 24).to_be_bytes()].concat();
    let mut bytes = PREFACE.to_vec();
    bytes.extend(frame(SETTINGS, 0, 0, &settings));
    bytes.extend(frame(WINDOW_UPDATE, 0, 0, &100_000_000_u32.to_be_bytes()));
    for number in 0..count {
        bytes.extend(frame(HEADERS, END_HEADERS | END_STREAM, 2 * number + 1, GET_INDEX));
    }
    client.send(&bytes).expect("sent");
}

/// Ten streams share what was acknowledged.
#[test]
fn streams_then_a_reset_of_the_connection_bytes_count_once() {
    let scratch = Scratch::new("serve");
    let length = 300_000;
    let served = Served::new(&serving(&scratch, length));
    let mut client = Client::with_room_for(ROOM, served.address);
    streams(&mut client, 10);
    read(&mut client, MANY);
    reset(client);
    served.stop();
    let (responses, all) = consistent(&scratch);
    assert_eq!(responses.len(), 10);
    assert!(all.bytes_delivered >= MANY as u64 / 2, "{}", all.bytes_delivered);
    let broken: Vec<_> = responses.iter().filter(|record| is_broken_off(record)).collect();
    assert!(broken.len() > 5, "{} are whole", 10 - broken.len());
    assert!(broken.iter().all(|record| record.bytes_delivered < length as u64), "{broken:?}");
}

/// The bytes of reset streams are not counted from whole ones.
#[test]
fn streams_that_the_client_resets_whole_ones_keep_all_of_their_bytes() {
    let scratch = Scratch::new("serve");
    // Much more than the buffers on the way hold, so that no stream is complete when it is reset.
    let length = 3_000_000;
    let served = Served::new(&serving(&scratch, length));
    let mut client = Client::with_room_for(ROOM, served.address);
    streams(&mut client, 4);
    let (mut bytes, mut ended, mut is_reset) = (0, 0, false);
    while ended < 2 {
        let (kind, flags, id, payload) = next(&mut client.0);
        if kind == DATA {
            bytes += payload.len();
            ended += usize::from(flags & END_STREAM != 0 && id > 3);
        }
        if bytes > 100_000 && !std::mem::replace(&mut is_reset, true) {
            let cancel = 8_u32.to_be_bytes();
            let resets = [1, 3].map(|id| frame(RST_STREAM, 0, id, &cancel)).concat();
            client.send(&resets).expect("sent");
        }
    }
    pause(Duration::from_millis(100), "acknowledgements");
    drop(client);
    served.stop();
    let (responses, _) = consistent(&scratch);
    let whole = responses.iter().filter(|record| record.bytes_delivered == length as u64);
    let found: Vec<_> = responses.iter().map(is_broken_off).collect();
    assert_eq!(whole.count(), 2, "{responses:?}");
    assert_eq!(found, [true, true, false, false]);
}

/// The kernel's time of the last ACK is that of a clock tick, which may be before the response.
#[test]
fn no_response_is_complete_before_its_last_byte_was_written_and_came_back() {
    let scratch = Scratch::new("serve");
    let served = Served::new(&serving(&scratch, 100_000));
    for _ in 0..100 {
        served.get("/index.html", "");
    }
    served.stop();
    let responses = records(&scratch.path("records"));
    assert_eq!(responses.len(), 100);
    for record in responses {
        let (first, last) = (record.first_byte_ns.expect("a first"), record.completion_ns);
        let min_rtt = record.service.and_then(|it| it.min_rtt_ns).expect("an RTT");
        assert!(last >= Some(first + min_rtt), "{first} {last:?} {min_rtt}");
    }
}
