//! Close events of destroyed sockets: even the shortest connection has a record.
#![cfg(target_os = "linux")]
#![expect(clippy::unwrap_used, reason = "a test that cannot run has failed")]

use std::fs;
use std::io::{Read, Write};
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr, TcpListener, TcpStream};
use std::time::Duration;

use uncork_emu::{EmuError, Emulation, EmulationSpec};
use uncork_flow::read_json_lines;
use uncork_path::{Buffer, PathSpec};
use uncork_testkit::{Capability, Scratch, not_run, now, wait_until};
use uncork_units::{Rate, TimeDelta};
use uncork_watch::{RecordsSpec, Session, Tick, WatchSpec};

/// A connection over loopback that sends this many bytes and closes after some milliseconds.
fn short_connection(address: IpAddr, bytes: usize) -> u16 {
    let listener = TcpListener::bind((address, 0)).unwrap();
    let port = listener.local_addr().unwrap().port();
    let mut client = TcpStream::connect((address, port)).unwrap();
    let (mut server, _) = listener.accept().unwrap();
    server.write_all(&vec![7; bytes]).unwrap();
    drop(server);
    let mut read = Vec::new();
    client.read_to_end(&mut read).unwrap();
    port
}

#[test]
fn connections_between_two_passes_are_in_the_records() {
    let path = PathSpec::new(Rate::from_mbit(1), TimeDelta::from_millis(1), Buffer::Packets(1));
    let emulation = match Emulation::start(&EmulationSpec::over(path, 1)) {
        Ok(emulation) => emulation,
        Err(error @ EmuError::System { .. }) => {
            return not_run(Capability::Netns, &error.to_string());
        }
        Err(error) => panic!("{error}"),
    };
    let scratch = Scratch::new("watch-close-events");
    let file = scratch.path("records.jsonl");
    // The period is longer than the test.
    let spec = WatchSpec {
        records: Some(RecordsSpec::new(&file)),
        ..WatchSpec::live(Duration::from_hours(1))
    };
    let mut session = emulation.server().run(|| Session::start(&spec)).unwrap().unwrap();
    assert_eq!(session.tick().unwrap(), Tick::Passed);
    let mut addresses: Vec<IpAddr> = vec![Ipv4Addr::LOCALHOST.into()];
    if emulation.server().addresses().v6.is_some() {
        addresses.push(Ipv6Addr::LOCALHOST.into());
    } else {
        not_run(Capability::Ipv6, "the namespace has no IPv6");
    }
    let mut sent = Vec::new();
    for address in addresses {
        for bytes in [1, 5000, 20_000] {
            let start = now();
            let port = emulation.server().run(|| short_connection(address, bytes)).unwrap();
            eprintln!("{address}: {bytes} bytes in {:?}", start.elapsed());
            sent.push((port, bytes as u64));
        }
    }
    let both_ends = 2 * sent.len() as u32;
    wait_until("a close event of each socket", Duration::from_mins(1), || {
        assert!(matches!(session.tick().unwrap(), Tick::Wait(_)));
        session.tracker().ended_connections() == both_ends
    });
    assert_eq!(session.tracker().unseen_connections(), u64::from(both_ends));
    session.end().unwrap();
    let records = read_json_lines(fs::read(&file).unwrap().as_slice()).unwrap();
    for (port, bytes) in sent {
        let of_server = |it: &&uncork_flow::FlowRecord| {
            it.service.as_ref().is_some_and(|it| it.listener.ends_with(&format!(":{port}")))
        };
        let ours: Vec<_> = records.iter().filter(of_server).collect();
        assert_eq!(ours.len(), 1, "{port}");
        assert_eq!((ours[0].bytes_acked, ours[0].cc.as_str()), (bytes, "unknown"));
    }
}
