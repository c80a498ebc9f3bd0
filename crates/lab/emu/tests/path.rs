//! Real packets between real namespaces follow the specified path.
#![expect(clippy::unwrap_used, reason = "a test that cannot run has failed")]
mod common;

use std::ops::Range;
use std::thread;
use std::time::Duration;

use common::{addresses, connect, counter, path, start, sysctl, transfer, udp};
use uncork_emu::HostSpec;
use uncork_path::{Buffer, LinkSpec};
use uncork_testkit::{now, pause};
use uncork_units::{Rate, TimeDelta};

#[test]
fn both_directions_take_the_delay_of_the_path() {
    let Some(emulation) = start(&path(100, 40, 100)) else { return };
    let (far, near) = (addresses(emulation.server()), addresses(emulation.client()));
    let mut round_trips = Vec::new();
    for (far, near) in far.into_iter().zip(near) {
        let (server, client) =
            (udp(emulation.server(), far, 7000), udp(emulation.client(), near, 0));
        for n in 0..40_u8 {
            let (sent, mut buffer) = (now(), [0; 200]);
            client.send_to(&[n; 100], (far, 7000)).unwrap();
            let (length, from) = server.recv_from(&mut buffer).unwrap();
            server.send_to(&buffer[..length], from).unwrap();
            let (length, _) = client.recv_from(&mut buffer).unwrap();
            round_trips.push(sent.elapsed());
            assert_eq!(buffer[..length], [n; 100]);
        }
    }
    let report = emulation.stop().unwrap();
    assert_eq!((report.down.delivered_packets, report.up.delivered_packets), (80, 80));
    assert_eq!(report.flows, 2);
    for direction in [&report.down, &report.up] {
        let delay = direction.delay_ms.expect("packets");
        assert!(delay.min >= 20.0, "{delay:?}");
        assert!(delay.p50 < 20.2, "{delay:?}");
    }
    assert_shortest(&round_trips, 40);
}

/// Asserts that the shortest round trip took little longer than `due` milliseconds. On a busy
/// machine the two ends are usually late as well.
fn assert_shortest(round_trips: &[Duration], due: u64) {
    let (due, shortest) = (Duration::from_millis(due), round_trips.iter().min().unwrap());
    assert!((due..due + Duration::from_millis(2)).contains(shortest), "{round_trips:?}");
}

/// IP packets of the datagrams in bits.
const PACKET_BITS: f64 = 12_000.0;

/// When each packet of a datagram stream at 4/3 of the path's rate arrived, in seconds from the first.
fn arrivals(rate_mbit: u64, span: Duration) -> Option<Vec<f64>> {
    const PAYLOAD: usize = 1472;
    // A buffer of 100 ms, so that the path has data even if the sender is not scheduled.
    let emulation = start(&path(rate_mbit, 10, 20.max(rate_mbit * 25 / 3)))?;
    let far = emulation.server().addresses().v4.into();
    let near = emulation.client().addresses().v4.into();
    let (server, client) = (udp(emulation.server(), far, 0), udp(emulation.client(), near, 7000));
    let per_second = rate_mbit as f64 * 1e6 / PACKET_BITS * 4.0 / 3.0;
    let sender = thread::spawn(move || {
        let (start, mut sent) = (now(), 0.0);
        while start.elapsed() < span {
            while sent < start.elapsed().as_secs_f64() * per_second {
                server.send_to(&[0; PAYLOAD], (near, 7000)).unwrap();
                sent += 1.0;
            }
            pause(Duration::from_millis(2), "a sender at a constant rate");
        }
    });
    let mut buffer = [0; PAYLOAD];
    client.recv(&mut buffer).unwrap();
    let (first, mut arrivals) = (now(), vec![0.0]);
    client.set_read_timeout(Some(Duration::from_millis(200))).unwrap();
    while first.elapsed() < span && client.recv(&mut buffer).is_ok() {
        arrivals.push(first.elapsed().as_secs_f64());
    }
    sender.join().unwrap();
    let report = emulation.stop().unwrap();
    eprint!("{}", report.text());
    assert!(report.down.dropped.queue > 0, "the path was full");
    Some(arrivals)
}

/// Bits per second between the most punctual packet of the first quarter and that of the last quarter, by a schedule at `rate`. A busy
/// machine delays packets, but none leaves early and a late emulator catches up, so punctual packets show the schedule.
fn rate_of_punctual(arrivals: &[f64], rate: f64) -> f64 {
    let lateness = |&n: &usize| arrivals[n] - n as f64 * PACKET_BITS / rate;
    let punctual = |quarter: Range<usize>| {
        quarter.min_by(|a, b| lateness(a).total_cmp(&lateness(b))).expect("packets")
    };
    let count = arrivals.len();
    let (first, last) = (punctual(0..count / 4), punctual(count - count / 4..count));
    (last - first) as f64 * PACKET_BITS / (arrivals[last] - arrivals[first])
}

/// The median rate of ten parts. A sender that a busy machine does not run empties the path in some of them.
fn usual_rate(arrivals: &[f64], rate: f64) -> f64 {
    if arrivals.len() < 100 {
        return 0.0;
    }
    let parts = arrivals.chunks_exact(arrivals.len() / 10);
    let mut rates: Vec<f64> = parts.map(|part| rate_of_punctual(part, rate)).collect();
    rates.sort_by(f64::total_cmp);
    rates[rates.len() / 2]
}

#[test]
fn punctual_packets_show_the_rate() {
    let late = |n: usize| if n % 7 == 3 { 0.0 } else { 0.02 };
    let idle = |n: usize| if n < 150 { 0.0 } else { 0.1 };
    let arrivals: Vec<f64> = (0..400).map(|n| n as f64 * 0.0012 + late(n) + idle(n)).collect();
    assert!((usual_rate(&arrivals, 10.1e6) / 10e6 - 1.0).abs() < 1e-9);
}

/// A machine that is busy for most of a run empties the path in most parts, so there are ten attempts.
#[test]
fn rate_is_that_of_the_path() {
    for (rate, milliseconds) in [(1, 4_800), (10, 1_000), (100, 500)] {
        let bits = rate as f64 * 1e6;
        let mut worst: f64 = 0.0;
        let right = (0..10).any(|_| {
            let span = Duration::from_millis(milliseconds);
            let Some(arrivals) = arrivals(rate, span) else { return true };
            worst = usual_rate(&arrivals, bits) / bits - 1.0;
            worst.abs() < 0.005
        });
        assert!(right, "{rate} Mbit/s: {:.2} % off", 100.0 * worst);
    }
}

#[test]
fn loss_follows_the_seed() {
    let mut spec = path(1000, 2, 1000);
    spec.paths[0].loss = "10%".parse().unwrap();
    let mut loss = spec.paths[0].loss_of(0, spec.seed);
    let expected: Vec<u8> = (0..200).filter(|_| !loss.strikes()).collect();
    let arrived = || {
        let emulation = start(&spec)?;
        let far = emulation.server().addresses().v4.into();
        let near = emulation.client().addresses().v4.into();
        let (server, client) = (udp(emulation.server(), far, 5), udp(emulation.client(), near, 6));
        for n in 0..200_u8 {
            server.send_to(&[n], (near, 6)).unwrap();
        }
        let mut buffer = [0; 1];
        let mut arrived = Vec::new();
        while client.recv(&mut buffer).is_ok() {
            arrived.push(buffer[0]);
            if arrived.len() == expected.len() {
                client.set_read_timeout(Some(Duration::from_millis(300))).unwrap();
            }
        }
        let report = emulation.stop().unwrap();
        assert_eq!(report.down.dropped.loss + arrived.len() as u64, 200);
        Some(arrived)
    };
    let Some(first) = arrived() else { return };
    assert_eq!(first, expected);
    assert_eq!(arrived().as_ref(), Some(&expected));
}

/// The kernel at the other end counts the queue's marks and finds all checksums valid.
#[test]
fn marks_are_delivered() {
    let mut spec = path(20, 10, 200);
    spec.paths[0].link.queue = "codel:target=1ms,interval=10ms,ecn".parse().unwrap();
    let Some(emulation) = start(&spec) else { return };
    for host in [emulation.client(), emulation.server()] {
        sysctl(host, "ipv4/tcp_ecn", "1");
    }
    for address in addresses(emulation.server()) {
        let (near, far) = connect(emulation.client(), emulation.server(), address);
        transfer(far, near, 3_000_000);
    }
    let (near, v6) = (emulation.client(), emulation.client().addresses().v6.is_some());
    let v4_marks = counter(near, "InCEPkts");
    let v6_marks = if v6 { counter(near, "Ip6InCEPkts") } else { 0 };
    let errors = ["InHdrErrors", "InCsumErrors"].map(|name| counter(near, name));
    let report = emulation.stop().unwrap();
    assert!(v4_marks > 0, "{report:?}");
    assert!(!v6 || v6_marks > 0, "{report:?}");
    assert_eq!(v4_marks + v6_marks, report.down.marked);
    assert_eq!(errors, [0, 0]);
}

/// The kernel hands over no segment larger than a packet and no incomplete checksum.
#[test]
fn packets_reach_but_do_not_exceed_the_mtu() {
    for mtu in [1280, 1500, 9000, 65_535] {
        let mut spec = path(200, 2, 100);
        spec.mtu = mtu;
        spec.paths[0].link.buffer = Buffer::Bytes("4MB".parse().unwrap());
        let Some(emulation) = start(&spec) else { return };
        let address = emulation.server().addresses().v4.into();
        let (near, far) = connect(emulation.client(), emulation.server(), address);
        transfer(far, near, 5_000_000);
        let host = emulation.client().addresses().v4.into();
        let (server, client) =
            (udp(emulation.server(), address, 1), udp(emulation.client(), host, 2));
        // TCP does not always fill packets of 64 kB; IP and UDP headers are 28 bytes.
        server.send_to(&vec![7; mtu as usize - 28], (host, 2)).unwrap();
        assert_eq!(client.recv(&mut vec![0; 65_536]).unwrap(), mtu as usize - 28);
        let errors = counter(emulation.client(), "InErrs");
        let report = emulation.stop().unwrap();
        assert_eq!((report.down.largest_packet, errors), (mtu, 0));
        let per_packet = report.down.delivered_bytes / report.down.delivered_packets;
        assert!(per_packet > u64::from(mtu.min(9000)) * 3 / 4, "{per_packet} of {mtu}");
    }
}

#[test]
fn hosts_share_a_link_and_have_their_own_paths() {
    let mut spec = path(100, 10, 100);
    spec.links = vec![LinkSpec::new(Rate::from_mbit(50), Buffer::Packets(100))];
    spec.paths[0].via = vec![0];
    let mut longer = spec.paths[0].clone();
    longer.rtt = TimeDelta::from_millis(30);
    spec.paths.push(longer);
    spec.hosts = [0, 1, 1].map(HostSpec::over).to_vec();
    let Some(emulation) = start(&spec) else { return };
    let far = emulation.server().addresses().v4.into();
    for (host, rtt) in emulation.hosts().iter().zip([10, 30, 30]) {
        let address = host.addresses().v4.into();
        let (server, client) = (udp(emulation.server(), far, 9), udp(host, address, 9));
        let times: Vec<_> = (0..40)
            .map(|_| {
                let (sent, mut buffer) = (now(), [0; 9]);
                client.send_to(b"ping", (far, 9)).unwrap();
                let (_, from) = server.recv_from(&mut buffer).unwrap();
                assert_eq!(from.ip(), address);
                server.send_to(b"pong", from).unwrap();
                client.recv(&mut buffer).unwrap();
                sent.elapsed()
            })
            .collect();
        assert_shortest(&times, rtt);
    }
    let report = emulation.stop().unwrap();
    let names: Vec<&str> = report.links.iter().map(|link| link.name.as_str()).collect();
    assert_eq!(names, ["shared", "path 0", "path 1"]);
    assert_eq!(report.links[0].bytes, report.links[1].bytes + report.links[2].bytes);
}

#[test]
fn uplink_may_have_its_own_link() {
    let mut spec = path(100, 10, 100);
    let buffer = Buffer::Bytes("100kB".parse().unwrap());
    spec.paths[0].uplink = Some(LinkSpec::new(Rate::from_mbit(8), buffer));
    let Some(emulation) = start(&spec) else { return };
    let address = emulation.server().addresses().v4.into();
    let (near, far) = connect(emulation.client(), emulation.server(), address);
    let begun = now();
    transfer(near, far, 2_000_000);
    let took = begun.elapsed();
    let report = emulation.stop().unwrap();
    assert!(took > Duration::from_secs(2), "{took:?}");
    let uplink = report.links.iter().find(|link| link.name == "uplink").expect("an uplink");
    assert!(uplink.utilisation.is_some_and(|used| used > 0.8 && used <= 1.001), "{uplink:?}");
}
