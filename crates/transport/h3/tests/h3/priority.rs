//! Priorities of responses that compete for a bottleneck (RFC 9218).

use std::net::UdpSocket;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use crate::common::raw::{RawEvent, SETTINGS, ask, control, fields, frame, request as raw_request};
use crate::common::{Test, get, now, run, until};
use http::{HeaderValue, Request};
use noq_proto::VarInt;
use uncork_emu::Emulation;
use uncork_h3::Client;
use uncork_h3::client::{ClientOptions, Connection};
use uncork_path::{Buffer, PathSpec};
use uncork_quic_io::{ShutdownOptions, bind};
use uncork_testkit::pause;
use uncork_units::{Rate, TimeDelta};

const FIRST: u64 = 4_000_000;
const SECOND: u64 = 1_000_000;

/// A path of 20 Mbit/s and 20 ms, or `None` without permission for namespaces and TUN devices.
fn start() -> Option<Emulation> {
    let rtt = TimeDelta::from_millis(20);
    let path = PathSpec::new(Rate::from_mbit(20), rtt, Buffer::MilliBdp(1000));
    crate::emulation::start(path)
}

fn request(length: u64, priority: Option<&'static str>) -> Request<()> {
    let mut request = get(&format!("/{length}"));
    if let Some(value) = priority {
        request.headers_mut().insert("priority", HeaderValue::from_static(value));
    }
    request
}

async fn read(connection: &Connection, request: Request<()>, length: &AtomicU64) {
    let response = connection.request(request).await.expect("a response");
    let mut body = response.into_body();
    while let Some(chunk) = body.next_chunk().await {
        length.fetch_add(chunk.expect("all of it").data.len() as u64, Ordering::Relaxed);
    }
}

/// Bytes of a first response that arrive between the request for a second response and the end of
/// that one.
async fn meanwhile(
    connection: &Connection,
    first: Option<&'static str>,
    second: Option<&'static str>,
) -> u64 {
    let (one, two) = (AtomicU64::new(0), AtomicU64::new(0));
    let both = async {
        until("it goes", || one.load(Ordering::Relaxed) > 300_000).await;
        let before = one.load(Ordering::Relaxed);
        read(connection, request(SECOND, second), &two).await;
        one.load(Ordering::Relaxed) - before
    };
    let whole = read(connection, request(FIRST, first), &one);
    let ((), meanwhile) = futures_util::future::join(whole, both).await;
    assert_eq!(one.into_inner(), FIRST);
    meanwhile
}

#[test]
fn urgent_responses_overtake_others() {
    let Some(emulation) = start() else { return };
    let address = (emulation.server().addresses().v4, 443).into();
    let sockets = emulation.server().run(|| bind(address, 1)).expect("there").expect("bound");
    let test = Test::on(sockets);
    let started = emulation.client().run(|| Client::start(&ClientOptions::default(), now()));
    let client = started.expect("there").expect("a client");
    run(async {
        let connection = test.connect(&client).await;
        // Data already in flight: 50 kB on the path, its queue, and the next batches.
        let most = 400_000;
        let took = meanwhile(&connection, Some("u=7"), Some("u=0")).await;
        assert!(took < most, "u=7 took {took} bytes from u=0");
        let took = meanwhile(&connection, Some("u=3, i"), Some("u=2")).await;
        assert!(took < most, "u=3 took {took} bytes from u=2");
        // Non-incremental responses are sent in the order of their requests.
        let took = meanwhile(&connection, Some("u=3"), Some("u=3")).await;
        assert!(took > FIRST - 300_000 - most, "only {took} bytes went before");
        for (first, second) in [(Some("u=5, i"), Some("u=5, i")), (None, None)] {
            let took = meanwhile(&connection, first, second).await;
            let fair = SECOND - most..SECOND + most;
            assert!(fair.contains(&took), "{first:?}: {took} bytes of two that share");
        }
    });
    drop((client, test));
    pause(Duration::from_millis(10), "sockets in the namespace are closed before it goes");
    emulation.stop().expect("stopped");
}

/// A PRIORITY_UPDATE frame for a stream ID below 64.
fn update(stream: u8, value: &str) -> Vec<u8> {
    let length = 1 + value.len() as u8;
    [&[0x80, 0x0f, 7, 0, length, stream], value.as_bytes()].concat()
}

/// Sends two requests without priorities, the second for more data, with `before` on the control stream
/// ahead of them and `later` during the responses. Returns the stream that is answered first.
fn first_of_two(test: &Test, emulation: &Emulation, before: &[u8], later: &[u8]) -> u64 {
    let socket = emulation.client().run(|| UdpSocket::bind("0.0.0.0:0")).expect("there");
    let get = |path| raw_request(&frame(1, &fields(path)));
    let streams = [control(&[&SETTINGS, before].concat()), get("/1500000"), get("/2000000")];
    let (workers, events) = ask(socket.expect("bound"), test, &streams, later);
    let first = events.recv_timeout(Duration::from_mins(1)).expect("an answer");
    workers.shut_down(&ShutdownOptions::at_once(VarInt::from_u32(0x100)));
    let RawEvent::Answered(stream) = first else { panic!("{first:?}") };
    stream
}

#[test]
fn priority_updates_take_effect() {
    let Some(emulation) = start() else { return };
    let address = (emulation.server().addresses().v4, 443).into();
    let sockets = emulation.server().run(|| bind(address, 1)).expect("there").expect("bound");
    let test = Test::on(sockets);
    let first = |before: &[u8], later: &[u8]| first_of_two(&test, &emulation, before, later);
    assert_eq!(first(&[], &[]), 0, "the shorter one, of two that share");
    assert_eq!(first(&[], &update(4, "u=0")), 4, "what became urgent");
    assert_eq!(first(&[], &update(0, "u=7")), 4, "what can wait now");
    assert_eq!(first(&update(4, "u=1"), &[]), 4, "said before the request");
    assert_eq!(first(&update(4, "u=1"), &update(4, "u=5")), 0, "taken back");
    drop(test);
    pause(Duration::from_millis(10), "sockets in the namespace are closed before it goes");
    emulation.stop().expect("stopped");
}
