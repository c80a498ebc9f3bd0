//! Plays scripts of streams against a server.

use std::net::UdpSocket;
use std::time::Duration;

use noq_proto::{Dir, VarInt};
use uncork_quic_io::ShutdownOptions;

use crate::common::Test;
use crate::common::raw::{RawEvent, Written, ask, fields, frame, request};

/// Decodes streams: per stream a byte for its kind, a byte for its length, and the bytes to write.
fn streams(mut script: &[u8]) -> Vec<Written> {
    let mut streams = Vec::new();
    while let [kind, length, rest @ ..] = script
        && streams.len() < 8
    {
        let (bytes, more) = rest.split_at(usize::from(*length).min(rest.len()));
        let dir = if kind & 1 == 0 { Dir::Uni } else { Dir::Bi };
        streams.push((dir, bytes.to_vec(), kind & 2 != 0));
        script = more;
    }
    streams
}

/// Writes the script's streams, then a request. The server must answer it or close the connection with
/// an error code of HTTP/3 or QPACK (RFC 9114 §8.1, RFC 9204 §6), which is returned.
pub(crate) fn play(test: &Test, script: &[u8]) -> Option<u64> {
    let mut streams = streams(script);
    let last = 4 * streams.iter().filter(|(dir, ..)| *dir == Dir::Bi).count() as u64;
    streams.push(request(&frame(1, &fields("/10"))));
    let socket = UdpSocket::bind("127.0.0.1:0").expect("a socket");
    let (workers, events) = ask(socket, test, &streams, &[]);
    let code = loop {
        match events.recv_timeout(Duration::from_secs(20)) {
            Ok(RawEvent::Closed(code)) => break Some(code),
            Ok(RawEvent::Answered(stream)) if stream == last => break None,
            Ok(_) => {}
            Err(error) => panic!("neither answered nor closed, {error}: {}", script.escape_ascii()),
        }
    };
    let is_known = |code| matches!(code, 0x100..=0x110 | 0x200..=0x202);
    assert!(code.is_none_or(is_known), "{code:#x?}: {}", script.escape_ascii());
    workers.shut_down(&ShutdownOptions::at_once(VarInt::from_u32(0x100)));
    workers.join().expect("ended");
    code
}
