//! A toy transport over UDP: `cargo run -p uncork-cc --example udp -- bbr3` sends 8 MB to itself.
//!
//! Each packet carries a unique number and a chunk of the data. The receiver acknowledges ranges of
//! numbers. A packet is declared lost when one sent three later has arrived; a timeout sends a
//! probe (RFC 9002 without its time threshold). The link loses 1 % of the packets.

mod receiver;
mod sender;

use std::io::{
    self,
    ErrorKind::{TimedOut, WouldBlock},
};
use std::net::{SocketAddr, UdpSocket};
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use uncork_cc::CcSpec;
use uncork_cc::units::TimeDelta;

/// Header bytes: the packet number and the chunk number.
const HEADER: usize = 16;
/// Bytes of data in a packet.
const CHUNK: usize = 1_184;
/// The most ranges in an ACK, each of 16 bytes.
const MAX_RANGES: usize = 64;

/// Waits for a packet, for at most `wait`.
fn hear(
    socket: &UdpSocket,
    wait: TimeDelta,
    packet: &mut [u8],
) -> io::Result<Option<(usize, SocketAddr)>> {
    let wait = Duration::from(wait).max(Duration::from_micros(1));
    socket.set_read_timeout(Some(wait))?;
    match socket.recv_from(packet) {
        Err(error) if matches!(error.kind(), WouldBlock | TimedOut) => Ok(None),
        heard => heard.map(Some),
    }
}

fn number(bytes: &[u8]) -> u64 {
    bytes.first_chunk().map_or(0, |bytes| u64::from_le_bytes(*bytes))
}

/// Sends `data` through loopback; returns the received data and a line of statistics.
fn transfer(spec: CcSpec, data: &[u8]) -> io::Result<(Vec<u8>, String)> {
    let receiver = UdpSocket::bind("127.0.0.1:0")?;
    let socket = UdpSocket::bind("127.0.0.1:0")?;
    socket.connect(receiver.local_addr()?)?;
    let mut sender = sender::Sender::new(spec, data, socket);
    let done = AtomicBool::new(false);
    let (sent, received) = std::thread::scope(|scope| {
        let receiving = scope.spawn(|| receiver::receive(&receiver, data.len(), &done));
        let sent = sender.run();
        done.store(true, Ordering::Relaxed);
        (sent, receiving.join().expect("the receiver does not panic"))
    });
    sent?;
    Ok((received?, format!("{spec}: {}", sender.report())))
}

fn main() -> Result<(), Box<dyn std::error::Error>> {
    let spec = std::env::args().nth(1).unwrap_or_else(|| "bbr3".into()).parse()?;
    let (_, report) = transfer(spec, &vec![7; 8 << 20])?;
    println!("{report}");
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn udp_example_delivers_every_byte_with_every_controller() {
        let data: Vec<u8> = (0..1_000_003_u32).map(|i| (i ^ (i >> 8)) as u8).collect();
        for algorithm in uncork_cc::Algorithm::ALL {
            let (received, report) =
                transfer(CcSpec::new(algorithm), &data).expect("loopback delivers in time");
            assert!(received == data, "{report}");
        }
    }
}
