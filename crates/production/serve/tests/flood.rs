//! A flood of Initial packets from clients that never answer. A client that validates its address
//! is still served.
#![cfg(target_os = "linux")]

mod common;
#[path = "common/talker.rs"]
mod talker;

use std::fs;
use std::net::{Ipv4Addr, SocketAddr, UdpSocket};
use std::num::NonZeroUsize;
use std::sync::Arc;
use std::thread;
use std::time::Duration;

use common::{Scratch, Served, connections, content};
use noq_proto::crypto::rustls::QuicClientConfig;
use noq_proto::{ClientConfig, Endpoint};
use talker::{Http3Client, get, now, run, secured};
use uncork_quic_io::Identity;
use uncork_serve::RecordsSpec;
use uncork_testkit::{pause, wait_until, wait_until_async};

/// Concurrent handshakes per worker before clients must validate their addresses.
const TRUSTED: usize = 100;
const SENDERS: u16 = 400;

/// A flood of first packets from many clients.
struct Flood {
    config: ClientConfig,
    to: SocketAddr,
}

impl Flood {
    fn new(to: SocketAddr) -> Self {
        let provider = Arc::new(rustls::crypto::ring::default_provider());
        let tls = rustls::ClientConfig::builder_with_provider(provider);
        let tls = tls.with_protocol_versions(&[&rustls::version::TLS13]).expect("a version");
        let no_roots = rustls::RootCertStore::empty();
        let mut tls = tls.with_root_certificates(no_roots).with_no_client_auth();
        tls.alpn_protocols = vec![b"h3".to_vec()];
        let crypto = QuicClientConfig::try_from(tls).expect("what QUIC needs");
        Self { config: ClientConfig::new(Arc::new(crypto)), to }
    }

    fn packets(&self, count: usize) -> Vec<Vec<u8>> {
        let config = Identity::random().expect("random numbers").endpoint_config(0);
        let mut endpoint = Endpoint::new(Arc::new(config), None, false);
        let packet = |_| {
            let begun = endpoint.connect(now(), self.config.clone(), self.to, "localhost");
            let (_, mut connection) = begun.expect("begun");
            let mut packet = Vec::new();
            let sent = connection.poll_transmit(now(), NonZeroUsize::MIN, &mut packet);
            assert!(sent.is_some() && packet.len() >= 1200);
            packet
        };
        (0..count).map(packet).collect()
    }
}

/// The sources of packets: to the server, each is a different address.
struct Senders {
    sockets: Vec<UdpSocket>,
    /// Bytes sent from each address, and bytes received.
    bytes: Vec<[usize; 2]>,
    retries: usize,
    handshakes: usize,
}

impl Senders {
    fn new() -> Self {
        let socket = |number: u16| {
            let [high, low] = number.to_be_bytes();
            let socket = UdpSocket::bind((Ipv4Addr::new(127, 9, high, low.max(1)), 0));
            let socket = socket.expect("an address of loopback");
            socket.set_nonblocking(true).expect("a socket");
            socket
        };
        let sockets: Vec<_> = (0..SENDERS).map(socket).collect();
        Self { bytes: vec![[0; 2]; sockets.len()], sockets, retries: 0, handshakes: 0 }
    }

    fn flood(&mut self, flood: &Flood, count: usize) {
        for (number, packet) in flood.packets(count).iter().enumerate() {
            let sender = number % self.sockets.len();
            self.sockets[sender].send_to(packet, flood.to).expect("sent");
            self.bytes[sender][0] += packet.len();
            if number % 50 == 49 {
                pause(Duration::from_millis(2), "a flood that the socket drops is none");
                self.hear();
            }
        }
        pause(Duration::from_millis(50), "answers on their way; some may be lost");
        self.hear();
    }

    fn hear(&mut self) {
        let mut packet = [0; 2000];
        for (socket, bytes) in self.sockets.iter().zip(&mut self.bytes) {
            while let Ok(length) = socket.recv(&mut packet) {
                bytes[1] += length;
                // The type of a packet with a long header (RFC 9000 §17.2).
                match packet[0] >> 4 {
                    0b1111 => self.retries += 1,
                    0b1100 => self.handshakes += 1,
                    _ => {}
                }
            }
        }
    }
}

/// Resident memory of this process in MiB.
fn resident() -> usize {
    let status = fs::read_to_string("/proc/self/status").expect("figures");
    let line = status.lines().find(|line| line.starts_with("VmRSS:")).expect("one of them");
    line.split_whitespace().nth(1).and_then(|it| it.parse::<usize>().ok()).expect("kB") / 1024
}

#[test]
fn clients_that_validate_their_address_are_served() {
    let (scratch, bytes) = (Scratch::new("serve"), content(300_000));
    scratch.write("root/file", &bytes);
    let mut spec = secured(&scratch);
    spec.limits.head_time = Duration::from_secs(8);
    let served = Served::new(&spec);
    let http3_client = Http3Client::new(&scratch, &served);
    let (flood, mut senders) = (Flood::new(http3_client.address), Senders::new());
    let workers = thread::available_parallelism().map_or(1, usize::from);
    senders.flood(&flood, 2000);
    assert!(senders.handshakes > 0, "the first are trusted");
    let before = resident();
    let mut served_meanwhile = 0;
    for _ in 0..5 {
        senders.flood(&flood, 2000);
        run(async {
            let connection = http3_client.connect().await;
            let (_, body) = get(&connection, "/file", &[]).await.expect("a response");
            assert!(body == bytes);
            served_meanwhile += 1;
        });
    }
    let (retries, handshakes) = (senders.retries, senders.handshakes);
    // As in any flood, some packets are lost, and Initial packets are repeated several times.
    assert!(retries > 9000, "{retries} retries");
    assert!(handshakes < workers * TRUSTED * 8, "{handshakes} packets of handshakes");
    assert!(resident() < before + 64, "{} MiB after {before}", resident());
    for [sent, heard] in &senders.bytes {
        assert!(
            *heard <= 3 * sent,
            "{heard} bytes for {sent}: amplification harms the owner of the address (RFC 9000 §8)"
        );
    }
    // The server forgets clients that never answer.
    senders.hear();
    senders.handshakes = 0;
    wait_until("strangers are trusted again", Duration::from_mins(1), || {
        senders.flood(&flood, 10);
        senders.handshakes > 0
    });
    assert_eq!(served_meanwhile, 5);
    served.stop();
}

/// RFC 9000 §8.1: the address of a first packet may be anyone's.
#[test]
fn first_packets_of_a_spoofed_neighbour_do_not_take_an_observation() {
    let scratch = Scratch::new("serve");
    scratch.write("root/large", content(30_000_000));
    scratch.write("policy.toml", "[default]\nquic = \"cubic\"\nresume = true\n");
    let records = scratch.path("records.jsonl");
    let mut spec = secured(&scratch);
    spec.records = Some(RecordsSpec::new(records.clone()));
    spec.policy = Some(scratch.path("policy.toml"));
    let served = Served::new(&spec);
    let http3_client = Http3Client::new(&scratch, &served);
    let flood = Flood::new(http3_client.address);
    let neighbour = UdpSocket::bind((Ipv4Addr::new(127, 0, 0, 77), 0)).expect("an address");
    run(async {
        for count in 1..=2 {
            let connection = http3_client.connect().await;
            get(&connection, "/large", &[]).await.expect("a response");
            drop(connection);
            wait_until_async("its end", Duration::from_mins(1), || {
                let text = fs::read_to_string(&records).unwrap_or_default();
                text.matches(r#""cc":"cubic""#).count() >= 2 * count
            })
            .await;
            let packet = flood.packets(1).remove(0);
            neighbour.send_to(&packet, flood.to).expect("sent");
            assert!(neighbour.recv(&mut [0; 2000]).is_ok_and(|length| length > 0), "accepted");
        }
    });
    served.stop();
    let of_clients = connections(&records);
    let starts: Vec<_> = of_clients.iter().filter_map(|it| it.start.as_deref()).collect();
    assert_eq!(starts.iter().filter(|start| start.resume.is_some()).count(), 1, "{starts:?}");
}
