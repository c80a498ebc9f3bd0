//! Clients that request a lot and read nothing.
#![cfg(target_os = "linux")]

mod common;
#[path = "common/frames.rs"]
mod frames;
#[path = "common/load.rs"]
mod load;
#[path = "common/talker.rs"]
mod talker;

use std::fs;
use std::io::{self, Read};
use std::net::Ipv4Addr;
use std::time::Duration;

use common::{Client, Scratch, Served, content, spec};
use frames::{END_HEADERS, END_STREAM, GET_INDEX, HEADERS, PING, SETTINGS, frame, next};
use talker::{now, request, run, secured, tls};
use uncork_h3::client::ClientOptions;
use uncork_testkit::{pause, pause_async, wait_until};

/// The address of a client in another network than the attacker's.
const BYSTANDER: Ipv4Addr = Ipv4Addr::new(127, 0, 0, 2);

/// A client that gives each stream a window of `window` bytes.
fn begin(served: &Served, window: u32) -> Client {
    let mut client = served.connect();
    client.send(b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n").expect("a connection");
    let initial_window_size = [&[0, 4][..], &window.to_be_bytes()].concat();
    client.send(&frame(SETTINGS, 0, 0, &initial_window_size)).expect("a connection");
    client
}

fn ask(client: &mut Client, requests: u32) {
    let ids = (0..requests).map(|number| 2 * number + 1);
    let frames = ids.map(|id| frame(HEADERS, END_HEADERS | END_STREAM, id, GET_INDEX));
    client.send(&frames.collect::<Vec<_>>().concat()).expect("a connection");
}

/// Resident memory of this process in MiB.
fn resident() -> usize {
    let status = fs::read_to_string("/proc/self/status").expect("figures");
    let line = status.lines().find(|line| line.starts_with("VmRSS:")).expect("one of them");
    line.split_whitespace().nth(1).and_then(|it| it.parse::<usize>().ok()).expect("kB") / 1024
}

fn descriptors() -> usize {
    fs::read_dir("/proc/self/fd").expect("descriptors").count()
}

/// Each of 2000 responses may send one byte. Buffers of 138 kB and a descriptor for each would be
/// 276 MB and 2000 files.
#[test]
fn blocked_responses_hold_neither_buffers_nor_files() {
    let scratch = Scratch::new("serve");
    scratch.write("index.html", content(1_000_000));
    let served = Served::new(&spec(&scratch.path("")));
    let mut clients: Vec<_> = (0..20).map(|_| begin(&served, 1)).collect();
    let (memory, files) = (resident(), descriptors());
    for client in &mut clients {
        ask(client, 100);
        let mut first_bytes = 0;
        while first_bytes < 100 {
            let (kind, _, _, payload) = next(&mut client.0);
            first_bytes += if kind == frames::DATA { payload.len() } else { 0 };
        }
    }
    let (memory, files) = (resident().saturating_sub(memory), descriptors().saturating_sub(files));
    assert!(memory < 40, "{memory} MiB");
    assert!(files < 100, "{files} descriptors");
    drop(clients);
    served.stop();
}

/// PINGs are answered, but they are no progress of a response.
#[test]
fn a_client_that_only_pings_is_disconnected() {
    let scratch = Scratch::new("serve");
    scratch.write("index.html", content(1_000_000));
    let mut spec = spec(&scratch.path(""));
    spec.limits.head_time = Duration::from_millis(500);
    spec.limits.stall_time = Duration::from_millis(500);
    let served = Served::new(&spec);
    let mut client = begin(&served, 0);
    ask(&mut client, 3);
    let stream = client.0.get_ref();
    stream.set_nonblocking(true).expect("a socket");
    let mut is_over = false;
    for _ in 0..100 {
        pause(Duration::from_millis(50), "a client that sends a PING now and then");
        is_over = client.send(&frame(PING, 0, 0, &[7; 8])).is_err()
            || match client.0.read(&mut [0; 4096]) {
                Ok(length) => length == 0,
                Err(error) => error.kind() != io::ErrorKind::WouldBlock,
            };
        if is_over {
            break;
        }
    }
    assert!(is_over, "it still is connected after 5 s");
    served.stop();
}

/// A blocked response is reset while others make progress, and the connection continues.
#[test]
fn a_blocked_response_is_reset_while_others_go_on() {
    let scratch = Scratch::new("serve");
    scratch.write("index.html", content(1_000_000));
    let mut spec = spec(&scratch.path(""));
    spec.limits.idle_time = Duration::from_millis(500);
    let served = Served::new(&spec);
    let mut client = begin(&served, 1);
    ask(&mut client, 2);
    let (mut reset, mut sent) = (None, 0);
    wait_until("the blocked response is reset", Duration::from_mins(1), || {
        let (kind, _, id, payload) = next(&mut client.0);
        match kind {
            frames::DATA if id == 1 => {
                sent += payload.len();
                pause(Duration::from_millis(20), "a client that takes byte by byte");
                let more = frame(frames::WINDOW_UPDATE, 0, 1, &1_u32.to_be_bytes());
                client.send(&more).expect("a connection");
            }
            frames::RST_STREAM => reset = Some((id, payload)),
            _ => {}
        }
        reset.is_some()
    });
    let cancel = vec![0, 0, 0, 8];
    assert_eq!(reset, Some((3, cancel)));
    assert!(sent > 5, "{sent} bytes");
    drop(client);
    served.stop();
}

/// HTTP/1.1 clients that request a lot and read nothing are limited to the share of their network.
#[test]
fn slow_readers_of_one_network_do_not_affect_others() {
    let scratch = Scratch::new("serve");
    scratch.write("index.html", content(4_000_000));
    scratch.write("small", "small");
    let mut spec = spec(&scratch.path(""));
    spec.limits.connections = 100;
    let served = Served::new(&spec);
    let (memory, files) = (resident(), descriptors());
    let mut readers = Vec::new();
    for _ in 0..200 {
        let mut reader = Client::with_room_for(4096, served.address);
        // Connections beyond the share of the network are refused.
        let _refused = reader.send(b"GET /index.html HTTP/1.1\r\nHost: a\r\n\r\n");
        readers.push(reader);
        let answer = Client::from(BYSTANDER, served.address).request("GET", "/small", "");
        assert_eq!(answer.expect("a response").body, b"small", "with {} readers", readers.len());
    }
    let (memory, files) = (resident().saturating_sub(memory), descriptors().saturating_sub(files));
    assert!(memory < 100, "{memory} MiB");
    // The clients' own sockets also belong to this process.
    assert!(files < 200 + 100, "{files} descriptors");
    drop(readers);
    served.stop();
}

/// The same over HTTP/3, with 100 responses on each connection. Only a few of them fit into its
/// window.
#[test]
fn blocked_http3_streams_do_not_affect_other_networks() {
    let scratch = Scratch::new("serve");
    scratch.write("root/index.html", content(4_000_000));
    scratch.write("root/small", "small");
    let mut spec = secured(&scratch);
    spec.limits.memory = 64 << 20;
    let served = Served::new(&spec);
    let mut options = ClientOptions::default();
    options.receive_window = 64 * 1024;
    let attacker = uncork_h3::Client::start(&options, now()).expect("a client");
    let tls = tls(&scratch.path("chain.pem"));
    let bystander = load::client(&scratch.path("chain.pem"), &rustls::version::TLS13, b"http/1.1");
    let (memory, files) = (resident(), descriptors());
    run(async {
        let mut asked = Vec::new();
        for number in 0..15 {
            let cc = ("cubic".parse().expect("a controller"), number);
            let connection = attacker.connect(served.address, "localhost", cc, &tls).await;
            let connection = connection.expect("a connection");
            for _ in 0..100 {
                let connection = connection.clone();
                asked.push(tokio::spawn(async move {
                    let response = connection.request(request("GET", "/index.html", &[])).await;
                    // The client reads nothing meanwhile.
                    pause_async(Duration::from_secs(20), "a response waits").await;
                    drop(response);
                }));
            }
            pause_async(Duration::from_millis(100), "the responses begin").await;
            for _ in 0..5 {
                let answer = load::get_from(BYSTANDER, &bystander, served.address, "/small").await;
                assert_eq!(answer.expect("a response"), b"small", "with {number} connections");
            }
        }
        let (memory, files) =
            (resident().saturating_sub(memory), descriptors().saturating_sub(files));
        // A quarter of the memory limit, plus the stack's buffers, plus the attacker's own memory.
        assert!(memory < 150, "{memory} MiB");
        assert!(files < 100, "{files} descriptors");
        asked.iter().for_each(tokio::task::JoinHandle::abort);
    });
    drop(attacker);
    served.stop();
}
