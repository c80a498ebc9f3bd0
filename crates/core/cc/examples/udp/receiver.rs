//! The receiver.

use std::collections::VecDeque;
use std::io;
use std::net::UdpSocket;
use std::sync::atomic::{AtomicBool, Ordering};

use uncork_cc::units::TimeDelta;

use crate::{CHUNK, HEADER, MAX_RANGES, hear, number};

/// Receives and acknowledges packets until `done`; returns the data.
pub(crate) fn receive(socket: &UdpSocket, size: usize, done: &AtomicBool) -> io::Result<Vec<u8>> {
    let mut data = vec![0; size.next_multiple_of(CHUNK)];
    let mut ranges: VecDeque<[u64; 2]> = VecDeque::new();
    let mut packet = [0; HEADER + CHUNK];
    while !done.load(Ordering::Relaxed) {
        let wait = TimeDelta::from_millis(20);
        let Some((_, peer)) = hear(socket, wait, &mut packet)? else { continue };
        let arrived = number(&packet);
        match ranges.front_mut() {
            Some([_, to]) if *to + 1 == arrived => *to = arrived,
            _ => ranges.push_front([arrived; 2]),
        }
        ranges.truncate(MAX_RANGES);
        let chunk = number(&packet[8..]) as usize;
        data[chunk * CHUNK..][..CHUNK].copy_from_slice(&packet[HEADER..]);
        let ack: Vec<u8> = ranges.iter().flatten().flat_map(|end| end.to_le_bytes()).collect();
        socket.send_to(&ack, peer)?;
    }
    data.truncate(size);
    Ok(data)
}
