//! Frames of HTTP/2 (RFC 9113 §4.1).
#![allow(dead_code, reason = "each test binary uses its own part")]

use std::io::{BufReader, Read};
use std::net::TcpStream;

pub(crate) const DATA: u8 = 0;
pub(crate) const HEADERS: u8 = 1;
pub(crate) const RST_STREAM: u8 = 3;
pub(crate) const SETTINGS: u8 = 4;
pub(crate) const PING: u8 = 6;
pub(crate) const WINDOW_UPDATE: u8 = 8;
pub(crate) const END_STREAM: u8 = 1;
pub(crate) const END_HEADERS: u8 = 4;
/// `GET /index.html HTTP` with the authority `test` (RFC 7541, Appendix A).
pub(crate) const GET_INDEX: &[u8] = b"\x82\x04\x0b/index.html\x86\x41\x04test";

pub(crate) fn frame(kind: u8, flags: u8, stream: u32, payload: &[u8]) -> Vec<u8> {
    let length = u32::try_from(payload.len()).expect("a short one").to_be_bytes();
    [&length[1..], &[kind, flags], &stream.to_be_bytes(), payload].concat()
}

/// The next frame of a stream: its type, its flags, the stream ID and the payload.
pub(crate) fn next(stream: &mut BufReader<TcpStream>) -> (u8, u8, u32, Vec<u8>) {
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
