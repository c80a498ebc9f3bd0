//! Robustness of an emulation, and absence of leftovers.
#![expect(unsafe_code, reason = "malformed packets go through a packet socket, which std lacks")]
#![expect(clippy::unwrap_used, reason = "a test that cannot run has failed")]
mod common;

use std::io;
use std::mem;
use std::net::IpAddr;
use std::os::fd::{AsRawFd, FromRawFd, OwnedFd};
use std::time::Duration;

use common::{connect, path, start, transfer, udp};
use uncork_emu::{Names, Namespace, clean_up};
use uncork_path::Buffer;
use uncork_testkit::{pause, wait_until};

/// Sends `packets` unmodified into the namespace's device.
fn inject(host: &Namespace, packets: &[Vec<u8>]) {
    host.run(|| {
        // SAFETY: system calls on values that live long enough.
        unsafe {
            let index = libc::if_nametoindex(c"uncork0".as_ptr());
            let socket = libc::socket(libc::AF_PACKET, libc::SOCK_DGRAM, 0);
            assert!(index > 0 && socket >= 0, "{}", io::Error::last_os_error());
            let socket = OwnedFd::from_raw_fd(socket);
            let mut to: libc::sockaddr_ll = mem::zeroed();
            to.sll_family = libc::AF_PACKET as u16;
            to.sll_protocol = (libc::ETH_P_IP as u16).to_be();
            to.sll_ifindex = index as i32;
            for packet in packets {
                let sent = libc::sendto(
                    socket.as_raw_fd(),
                    packet.as_ptr().cast(),
                    packet.len(),
                    0,
                    (&raw const to).cast(),
                    mem::size_of_val(&to) as u32,
                );
                assert_eq!(sent, packet.len() as isize, "{}", io::Error::last_os_error());
            }
        }
    })
    .unwrap();
}

#[test]
fn malformed_packets_are_counted_and_dropped() {
    let Some(emulation) = start(&path(100, 2, 100)) else { return };
    let garbage: Vec<Vec<u8>> = (1..200_usize)
        .map(|length| (0..length).map(|byte| (byte * length * 31 + length) as u8).collect())
        .filter(|packet: &Vec<u8>| !matches!(packet[0] >> 4, 4 | 6))
        .collect();
    let short: Vec<Vec<u8>> = [0x45, 0x46, 0x4f, 0x40, 0x60]
        .iter()
        .flat_map(|first| [1, 5, 19, 39].map(|length| [vec![*first], vec![0xff; length]].concat()))
        .collect();
    let stray = [vec![0x45, 0, 0, 20, 0, 0, 0, 0, 64, 6, 0, 0, 198, 19, 0, 1], vec![8; 4]].concat();
    for host in [emulation.client(), emulation.server()] {
        inject(host, &garbage);
        inject(host, &short);
        inject(host, std::slice::from_ref(&stray));
    }
    // When this packet has arrived, the emulation still works and has processed all others.
    let address = emulation.server().addresses().v4.into();
    let (near, far) = connect(emulation.client(), emulation.server(), address);
    transfer(far, near, 10_000);
    let report = emulation.stop().unwrap();
    for direction in [&report.down, &report.up] {
        assert_eq!(direction.dropped.malformed, (garbage.len() + short.len()) as u64);
        assert_eq!(direction.dropped.stray, 1);
    }
}

/// Packets that have left the host's device or were dropped by it.
fn left_device(host: &Namespace) -> u64 {
    let read = || std::fs::read_to_string("/proc/thread-self/net/dev");
    let devices = host.run(read).unwrap().unwrap();
    let line = devices.lines().find_map(|line| line.trim().strip_prefix("uncork0:")).unwrap();
    // Eight receive columns, then: bytes, packets, errs, drop.
    let columns: Vec<u64> = line.split_whitespace().map(|column| column.parse().unwrap()).collect();
    columns[9] + columns[11]
}

#[test]
fn very_long_queues_work() {
    const PACKETS: u32 = 100_000;
    let mut spec = path(1, 2, 0);
    spec.paths[0].link.buffer = Buffer::Packets(u64::from(PACKETS));
    let Some(emulation) = start(&spec) else { return };
    let near = IpAddr::from(emulation.client().addresses().v4);
    let far = udp(emulation.server(), emulation.server().addresses().v4.into(), 1);
    let before = left_device(emulation.server());
    for sent in 0..PACKETS {
        far.send_to(&[0; 72], (near, 2)).unwrap();
        if sent % 1000 == 0 {
            pause(Duration::from_millis(1), "bursts that the device can hold");
        }
    }
    wait_until("the device is empty", Duration::from_mins(1), || {
        left_device(emulation.server()) - before >= u64::from(PACKETS)
    });
    let report = emulation.stop().unwrap();
    let overrun = report.down.dropped.overrun;
    assert_eq!(report.down.dropped.queue, 0);
    assert_eq!(report.down.offered_packets + overrun, u64::from(PACKETS));
    assert!(report.down.travelling > u64::from(PACKETS) * 9 / 10 - overrun, "{report:?}");
}

#[test]
fn emulations_are_isolated_from_each_other() {
    let Some(one) = start(&path(10, 10, 100)) else { return };
    let Some(other) = start(&path(20, 20, 100)) else { return };
    std::thread::scope(|scope| {
        for emulation in [&one, &other] {
            scope.spawn(|| {
                let address = emulation.server().addresses().v4.into();
                let (near, far) = connect(emulation.client(), emulation.server(), address);
                transfer(far, near, 1_000_000);
            });
        }
    });
    let report = one.stop().unwrap();
    let delay = report.down.delay_ms.expect("packets").min;
    assert!((5.0..10.0).contains(&delay), "{delay}");
    let report = other.stop().unwrap();
    assert!(report.down.delay_ms.expect("packets").min >= 10.0);
}

fn open_files() -> usize {
    std::fs::read_dir("/proc/self/fd").unwrap().count()
}

/// `UNCORK_CYCLES=200` runs more than the default of 20 cycles.
#[test]
fn no_leftovers_remain() {
    let cycles = std::env::var("UNCORK_CYCLES").map_or(20, |cycles| cycles.parse().unwrap());
    let mut before = None;
    for cycle in 0..cycles {
        let Some(emulation) = start(&path(100, 2, 100)) else { return };
        let names = Names::give(&emulation, "-cycle").unwrap();
        let paths: Vec<_> = names.all().map(|name| format!("/run/netns/{name}")).collect();
        assert_eq!(paths.len(), 2);
        assert!(paths.iter().all(|path| std::fs::metadata(path).is_ok()));
        // Running emulations are not leftovers.
        let found = clean_up().unwrap();
        assert!(!found.names.iter().any(|name| paths.iter().any(|path| name.ends_with(path))));
        assert!(paths.iter().all(|path| std::fs::metadata(path).is_ok()));
        let address = emulation.server().addresses().v4.into();
        let (near, far) = connect(emulation.client(), emulation.server(), address);
        transfer(far, near, 10_000);
        let files = open_files();
        // Other tests in this file open files at the same time.
        assert!(files < *before.get_or_insert(files) + 50, "{files} in cycle {cycle}");
        drop(names);
        assert!(paths.iter().all(|path| std::fs::symlink_metadata(path).is_err()));
        if cycle % 2 == 0 { drop(emulation) } else { drop(emulation.stop().unwrap()) }
    }
}
