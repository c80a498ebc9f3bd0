//! Clients that do not speak HTTP/3 as they should: each is told what it did wrong, and nobody else
//! notices.
#![cfg(target_os = "linux")]

mod common;

use std::collections::BTreeSet;
use std::net::{SocketAddr, UdpSocket};
use std::sync::mpsc::{Sender, channel};
use std::time::Duration;

use common::{Test, client, fits, get, identity, now, run, transport};
use noq_proto::{ConnectionError, Dir, ReadError, StreamId, VarInt};
use uncork_quic_io::{
    App, Arrival, Client, Config, Farewell, Host, Identity, Turn, Verdict, Workers,
};

/// What is written on a stream, and whether it ends there.
type Written = (Dir, Vec<u8>, bool);

/// Writes, and waits for what comes of it.
struct Raw(Client);

struct Ask {
    remote: SocketAddr,
    streams: Vec<Written>,
    tell: Sender<Told>,
}

#[derive(Debug, PartialEq, Eq)]
enum Told {
    /// The connection was closed, with this code.
    Closed(u64),
    /// A stream was reset, or nobody reads it any more.
    Reset(u64),
    /// A stream was answered to its end.
    Answered,
}

struct State {
    ask: Ask,
    requests: BTreeSet<StreamId>,
}

impl App for Raw {
    type State = State;
    type Command = Ask;

    fn incoming(&mut self, _: &Arrival<'_>) -> Verdict<State> {
        Verdict::Ignore
    }

    fn command(&mut self, host: &mut Host<'_, State>, ask: Ask) {
        let config = self.0.begin("cubic".parse().expect("a controller"), 1);
        let remote = ask.remote;
        let state = State { ask, requests: BTreeSet::new() };
        host.connect(config, remote, identity::NAME, state).expect("begun");
    }

    fn connected(&mut self, turn: &mut Turn<'_, State>) {
        for (dir, bytes, ends) in std::mem::take(&mut turn.state.ask.streams) {
            let id = turn.connection.streams().open(dir).expect("room");
            let mut stream = turn.connection.send_stream(id);
            assert_eq!(stream.write(&bytes), Ok(bytes.len()));
            if ends {
                stream.finish().expect("open");
            }
            turn.state.requests.insert(id);
        }
    }

    fn readable(&mut self, turn: &mut Turn<'_, State>, id: StreamId) {
        if !turn.state.requests.contains(&id) {
            return;
        }
        let mut stream = turn.connection.recv_stream(id);
        let Ok(mut chunks) = stream.read(true) else { return };
        let told = loop {
            match chunks.next(usize::MAX) {
                Ok(Some(_)) => {}
                Ok(None) => break Some(Told::Answered),
                Err(ReadError::Reset(code)) => break Some(Told::Reset(code.into_inner())),
                Err(ReadError::Blocked) => break None,
            }
        };
        let _credit = chunks.finalize();
        if let Some(told) = told {
            let _ = turn.state.ask.tell.send(told);
        }
    }

    fn stopped(&mut self, turn: &mut Turn<'_, State>, _: StreamId, code: VarInt) {
        let _ = turn.state.ask.tell.send(Told::Reset(code.into_inner()));
    }

    fn closed(&mut self, turn: &mut Turn<'_, State>, reason: &ConnectionError) {
        if let ConnectionError::ApplicationClosed(close) = reason {
            let _ = turn.state.ask.tell.send(Told::Closed(close.error_code.into_inner()));
        }
    }
}

/// Waits until the server makes `wanted` of these streams, whatever else it does.
fn expect(test: &Test, streams: &[Written], wanted: &Told, what: &str) {
    let socket = UdpSocket::bind("127.0.0.1:0").expect("a socket");
    let crypto = std::sync::Arc::clone(&test.crypto);
    let raw = Client::new(crypto, transport(), now());
    let config = Config::new(Identity::random().expect("random numbers"));
    let workers = Workers::start(vec![socket], &config, move |_| Raw(raw.clone()));
    let workers = workers.expect("a thread");
    let (tell, told) = channel();
    workers.tell(0, Ask { remote: test.address, streams: streams.to_vec(), tell });
    let mut others = Vec::new();
    loop {
        match told.recv_timeout(Duration::from_secs(20)) {
            Ok(told) if told == *wanted => break,
            Ok(other) => others.push(other),
            Err(error) => panic!("{what}: {others:?} in place of {wanted:?}: {error}"),
        }
    }
    workers.shut_down(&Farewell::at_once(VarInt::from_u32(0x100)));
}

fn control(bytes: &[u8]) -> Written {
    (Dir::Uni, [&[0], bytes].concat(), false)
}

fn request(bytes: &[u8]) -> Written {
    (Dir::Bi, bytes.to_vec(), true)
}

/// A frame of less than 64 bytes.
fn frame(kind: u8, payload: &[u8]) -> Vec<u8> {
    [&[kind, payload.len() as u8], payload].concat()
}

/// `:method: GET` and `:scheme: https` of QPACK's static table (RFC 9204, appendix A).
const GET: u8 = 0xd1;
const HTTPS: u8 = 0xd7;

/// These, and `:authority` and `:path` with values of their own.
fn fields(path: &str) -> Vec<u8> {
    let literal =
        |name: u8, value: &str| [&[0x50 | name, value.len() as u8], value.as_bytes()].concat();
    [&[0, 0, GET, HTTPS][..], &literal(0, "a"), &literal(1, path)].concat()
}

const SETTINGS: [u8; 2] = [4, 0];

#[test]
fn what_breaks_the_protocol_closes_the_connection_with_its_code() {
    let test = Test::new();
    let settings = control(&SETTINGS);
    let cases: [(&str, Vec<Written>, u64); 10] = [
        ("two control streams", vec![settings.clone(), settings.clone()], 0x103),
        ("a control stream that ends", vec![(Dir::Uni, vec![0, 4, 0], true)], 0x104),
        ("no settings", vec![control(&frame(7, &[0]))], 0x10a),
        ("settings twice", vec![control(&[4, 0, 4, 0])], 0x105),
        ("a setting of HTTP/2", vec![control(&frame(4, &[2, 1]))], 0x109),
        ("a frame of HTTP/2", vec![control(&[4, 0, 6, 0])], 0x105),
        ("a body on the control stream", vec![control(&[4, 0, 0, 1, 1])], 0x105),
        ("a body without a head", vec![settings.clone(), request(&frame(0, b"x"))], 0x105),
        ("a frame that is cut off", vec![settings.clone(), request(&[1, 10, 0, 0])], 0x106),
        ("a head that is no QPACK", vec![settings.clone(), request(&frame(1, &[0xff; 20]))], 0x200),
    ];
    for (what, streams, code) in cases {
        expect(&test, &streams, &Told::Closed(code), what);
    }
    still_serves(&test);
}

#[test]
fn what_is_wrong_with_a_request_resets_its_stream() {
    let test = Test::new();
    let settings = control(&SETTINGS);
    let head = |bytes: &[u8]| request(&frame(1, bytes));
    // A field whose name is not in lower case.
    let upper = [&fields("/1")[..], &[0x21, b'A', 1, b'x']].concat();
    let large = [vec![1, 0x80, 0x10, 0, 0], vec![0; 200_000]].concat();
    let cases = [
        ("nothing", request(&[]), 0x10d),
        ("no path", head(&[0, 0, GET, HTTPS]), 0x10e),
        ("a name in upper case", head(&upper), 0x10e),
        ("a head without end", request(&large), 0x107),
    ];
    for (what, stream, code) in cases {
        expect(&test, &[settings.clone(), stream], &Told::Reset(code), what);
    }
    still_serves(&test);
}

#[test]
fn what_is_unknown_is_ignored() {
    let test = Test::new();
    let grease = [&SETTINGS[..], &frame(0x21, b"what"), &frame(0x21, b"")].concat();
    let streams = [
        control(&grease),
        // A stream of a type that nobody knows; nobody reads it (RFC 9114 §6.2).
        request(&[frame(0x21, b"before"), frame(1, &fields("/10"))].concat()),
    ];
    expect(&test, &streams, &Told::Answered, "unknown frames");
    let unknown = [control(&SETTINGS), (Dir::Uni, vec![0x21, 1, 2, 3], false)];
    expect(&test, &unknown, &Told::Reset(0x103), "an unknown stream");
    still_serves(&test);
}

fn still_serves(test: &Test) {
    let client = client();
    run(async {
        let connection = test.connect(&client).await;
        let mut response = connection.request(get("/1000")).await.expect("a response");
        let chunk = response.body_mut().next_chunk().await.expect("a body").expect("all of it");
        assert!(fits(0, &chunk.data));
    });
}
