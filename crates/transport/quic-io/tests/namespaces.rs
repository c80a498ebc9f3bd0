//! Workers in network namespaces, with an emulated path between them.
#![cfg(target_os = "linux")]
#![expect(clippy::unwrap_used, reason = "a test that cannot run has failed")]

mod common;
#[path = "common/emulation.rs"]
mod emulation;

use std::net::{SocketAddr, UdpSocket};
use std::sync::atomic::Ordering;
use std::sync::mpsc::channel;
use std::time::Duration;

use common::{Ends, Report, Request, TestClient, TestServer, transport, until};
use emulation::start;
use noq_proto::ConnectionError;
use uncork_emu::Emulation;
use uncork_path::{Buffer, JitterDistribution, JitterSpec, LossSpec, PathSpec};
use uncork_quic_io::{SocketOptions, Workers, bind};
use uncork_testkit::{Capability, not_run};
use uncork_units::{Rate, TimeDelta};

/// A path of 100 Mbit/s and 20 ms that drops every `loss`-th packet.
fn path(loss: Option<u64>, jitter: Option<TimeDelta>) -> PathSpec {
    let rtt = TimeDelta::from_millis(20);
    let path = PathSpec::new(Rate::from_mbit(100), rtt, Buffer::MilliBdp(1000));
    let spec = |max| JitterSpec { distribution: JitterDistribution::Uniform, max, reorder: true };
    let loss = loss.map_or(path.loss, LossSpec::EveryNth);
    PathSpec { loss, jitter: jitter.map(spec), ..path }
}

/// Transfers `bytes` from a server on the far side to a client on the near side. Returns the bytes
/// declared lost, and how often the server's socket was full.
fn transfer(emulation: &Emulation, cc: &str, bytes: u64, buffers: SocketOptions) -> (u64, u64) {
    let ends = Ends::new(&transport(Duration::from_secs(30)));
    let remote = SocketAddr::new(emulation.server().addresses().v4.into(), 443);
    let sockets = emulation.server().run(|| bind(remote, 1)).unwrap().unwrap();
    let (server_app, mut config) = (TestServer::new(&ends, cc), ends.server_config());
    config.socket = buffers;
    let (app, lost) = (server_app.clone(), server_app.lost);
    let server = Workers::start(sockets, &config, move |_| app.clone()).unwrap();
    let socket = emulation.client().run(|| UdpSocket::bind("0.0.0.0:0")).unwrap().unwrap();
    let client = ends.client.clone();
    let make = move |_| TestClient { client: client.clone() };
    let clients = Workers::start(vec![socket], &Ends::client_config(), make).unwrap();
    let (report, reports) = channel();
    clients.send(0, Request { remote, bytes, streams: 1, verify: true, report });
    let end = reports.iter().find(|report| matches!(report, Report::Closed { .. })).unwrap();
    let Report::Closed { bytes: arrived, is_valid: true, reason, .. } = end else {
        panic!("{cc}: {end:?}");
    };
    assert_eq!((arrived, reason), (bytes, ConnectionError::LocallyClosed), "{cc}");
    until("forgotten", || server.stats(0).driver.connections == 0);
    (lost.load(Ordering::Relaxed), server.stats(0).socket.blocked)
}

#[test]
fn a_path_that_loses_and_reorders_packets_is_crossed_with_every_controller() {
    let jitter = TimeDelta::from_micros(500);
    let Some(emulation) = start(path(Some(300), Some(jitter))) else { return };
    for cc in ["reno", "cubic", "bbr1", "bbr2", "bbr3"] {
        let (lost, _) = transfer(&emulation, cc, 10_000_000, SocketOptions::default());
        // The server sends at least 7000 packets; 23 of them are dropped.
        assert!(lost > 20 * 1200, "{cc}: {lost} bytes lost");
    }
    emulation.stop().unwrap();
}

#[test]
fn a_server_with_a_full_socket_waits_for_it() {
    let Some(emulation) = start(path(None, None)) else { return };
    // Packets in a shaper count against the send buffer; packets on the path do not.
    let shaper = "qdisc add dev uncork0 root tbf rate 40mbit burst 20kb latency 1s".split(' ');
    match emulation.server().command("tc").unwrap().args(shaper).status() {
        Ok(status) if status.success() => {}
        other => {
            return not_run(Capability::Programs, &format!("tc with the kernel's tbf: {other:?}"));
        }
    }
    let buffers = SocketOptions { send_buffer: 4096, ..SocketOptions::default() };
    let (_, blocked) = transfer(&emulation, "cubic", 5_000_000, buffers);
    assert!(blocked > 0, "the socket was never full");
    emulation.stop().unwrap();
}
