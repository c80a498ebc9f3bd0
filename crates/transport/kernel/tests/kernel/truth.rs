//! What the shim reports to a controller, compared with the kernel and the path: `tcp_info`, the counters of
//! `/proc/net/netstat`, and the packets that the path dropped. `docs/evidence/kernel.md` has the figures.

use std::collections::BTreeMap;

use uncork_cc::Bbr3;
use uncork_diag::TcpInfo;
use uncork_kernel::{Algorithm, Loaded};
use uncork_path::Ecn;

use crate::glue::{APP_LIMITED, Call, REPAIRED_BY_PROBE};
use crate::record::{ACK, RESIZED, Record, SENT, SPURIOUS, TIMEOUT};
use crate::traffic::{Downloads, Served};
use crate::{alone, loaded};

/// A download and every call that the controller got.
struct CallLog {
    served: Served,
    calls: Vec<(u32, Call)>,
    mss: u64,
}

impl CallLog {
    fn of(downloads: Downloads) -> Option<Self> {
        let _alone = alone(Algorithm::Bbr3);
        let loaded = loaded(Loaded::traced, Algorithm::Bbr3)?;
        let registered = loaded.register().expect("it is free");
        let served = downloads.run(&loaded)?;
        drop(registered);
        let (mut trace, mut calls) = (loaded.trace(), Vec::new());
        while let Some(record) = trace.pop().expect("a queue") {
            let record = Record::<Bbr3>::read(record);
            calls.push((record.kind, record.connection.call));
        }
        let mss = calls.first().expect("a connection").1.mss;
        let log = Self { served, calls, mss };
        println!("{downloads:?}\n{}", log.figures());
        Some(log)
    }

    fn calls(&self, kind: u32) -> impl Iterator<Item = &Call> {
        self.calls.iter().filter(move |(of, _)| *of == kind).map(|(_, call)| call)
    }

    /// Packets in all calls of a kind.
    fn packets(&self, kind: u32, bytes: fn(&Call) -> u64) -> u64 {
        self.calls(kind).map(|call| bytes(call) / call.mss).sum()
    }

    fn acks_with(&self, flag: u64) -> u64 {
        self.calls(ACK).filter(|call| call.flags & flag != 0).count() as u64
    }

    /// Times that the kernel took losses back.
    fn undone(&self) -> u64 {
        let counters = ["TCPFullUndo", "TCPPartialUndo", "TCPDSACKUndo", "TCPLossUndo"];
        counters.map(|name| self.served.counter(name)).iter().sum()
    }

    /// What the kernel counted since the start: the handshake may have had timeouts, too.
    fn since_start<N: std::ops::Sub<Output = N>>(&self, count: fn(&TcpInfo) -> Option<N>) -> N {
        let [start, end] = self.served.infos[0];
        count(&end).expect("Linux 6.7") - count(&start).expect("Linux 6.7")
    }

    fn delivered(&self) -> u32 {
        self.since_start(|info| info.delivered)
    }

    fn timeouts(&self) -> u16 {
        self.since_start(|info| info.total_rto)
    }

    /// What the controller got.
    fn marks(&self) -> u64 {
        self.calls(ACK).map(|call| call.ce_packets).sum()
    }

    /// What the kernel counts.
    fn marked(&self) -> u32 {
        self.since_start(|info| info.delivered_ce)
    }

    fn figures(&self) -> String {
        let [start, end] = &self.served.infos[0];
        format!(
            "reported: {} delivered, {} lost, {} of them spurious, {} repaired by probes, {} timeouts, {} CE; \
             kernel: {} delivered, {} retransmitted, {} undone, {} repaired by probes, {} timeouts, \
             {} CE; path: {} dropped",
            self.packets(ACK, |call| call.acked),
            self.packets(ACK, |call| call.lost),
            self.packets(SPURIOUS, |call| call.lost),
            self.acks_with(REPAIRED_BY_PROBE),
            self.calls(TIMEOUT).count(),
            self.marks(),
            self.delivered(),
            end.total_retrans - start.total_retrans,
            self.undone(),
            self.served.counter("TCPLossProbeRecovery"),
            self.timeouts(),
            self.marked(),
            self.served.dropped,
        )
    }

    /// Checks invariants for any path.
    fn check(&self) {
        let [_, end] = &self.served.infos[0];
        assert_eq!(self.packets(ACK, |call| call.acked), u64::from(self.delivered()));
        let sent = self.since_start(|info| info.data_segs_out);
        assert_eq!(self.packets(SENT, |call| call.sent), u64::from(sent));
        assert_eq!(self.calls(TIMEOUT).count(), usize::from(self.timeouts()));
        assert!(self.marks() <= u64::from(self.marked()));
        assert_eq!(self.acks_with(REPAIRED_BY_PROBE), self.served.counter("TCPLossProbeRecovery"));
        let last = self.calls(ACK).last().expect("an ACK");
        assert_eq!(last.srtt / 1_000, end.rtt.as_micros());
        assert_eq!(last.min_rtt / 1_000, end.min_rtt.expect("Linux 4.6").as_micros());
        assert_eq!(last.in_flight, 0);
        assert_eq!(last.mss, u64::from(end.snd_mss));
    }

    /// How far what was in flight at the departure of the newest packet delivered is from what was delivered
    /// since, in packets: equal where nothing was lost, and packets left one by one.
    fn flights(&self) -> BTreeMap<i64, usize> {
        let (mut total, mut differences) = (0, BTreeMap::new());
        for call in self.calls(ACK).filter(|call| call.acked > 0) {
            total += call.acked;
            let difference = call.tx_in_flight as i64 - (total - call.delivered) as i64;
            *differences.entry(difference / self.mss as i64).or_default() += 1;
        }
        differences
    }

    /// ACKs with another number of losses before the departure of the newest packet delivered than was reported
    /// until then, and all.
    fn misdated(&self) -> (usize, usize) {
        let (mut lost, mut log) = (0, vec![(0, 0)]);
        let (mut misdated, mut all) = (0, 0);
        for call in self.calls(ACK) {
            lost += call.lost;
            log.push((call.now, lost));
            let then = log.iter().rev().find(|(at, _)| *at <= call.send_time).expect("the first");
            misdated += usize::from(call.lost_then != then.1);
            all += 1;
        }
        (misdated, all)
    }
}

#[test]
fn arrivals_are_reported_with_the_bytes_in_flight() {
    let download = Downloads { buffer: "10bdp", ..Downloads::new(20, "0%", 1, 3_000_000) };
    let Some(log) = CallLog::of(download) else { return };
    log.check();
    assert_eq!((log.served.dropped, log.packets(ACK, |call| call.lost)), (0, 0));
    let flights = log.flights();
    println!("in flight at departure less delivered since: {flights:?}");
    // Packets that left as one have one stamp, and the first of them is delivered before the last.
    let near = flights.range(0..=3).map(|(_, acks)| acks).sum::<usize>();
    assert!(near * 10 > flights.values().sum::<usize>() * 9, "{flights:?}");
}

#[test]
fn losses_are_reported_when_the_kernel_detects_them() {
    for download in [Downloads::new(20, "1%", 1, 6_000_000), Downloads::new(20, "5%", 1, 2_000_000)]
    {
        let Some(log) = CallLog::of(download) else { return };
        log.check();
        assert!(log.served.dropped > 20, "{}", log.figures());
        if log.undone() == 0 && log.calls(TIMEOUT).count() == 0 {
            let repaired = log.acks_with(REPAIRED_BY_PROBE);
            let lost = log.packets(ACK, |call| call.lost);
            assert_eq!(lost + repaired, log.served.dropped, "{}", log.figures());
        }
        let (misdated, all) = log.misdated();
        println!("{misdated} of {all} ACKs count losses that came earlier or later");
        assert!(misdated * 20 < all);
    }
}

#[test]
fn tails_and_idle_times_are_reported() {
    let bursts = 60;
    let download = Downloads { bursts, ..Downloads::new(20, "8%", 1, 360_000) };
    let Some(log) = CallLog::of(download) else { return };
    log.check();
    // The first packet of each burst, and retransmissions of what was in flight alone.
    let starts = log.calls(SENT).filter(|call| call.unacked == log.mss).count();
    assert!(starts >= bursts, "{starts}");
    assert!(log.acks_with(REPAIRED_BY_PROBE) > 0, "{}", log.figures());
    assert!(log.acks_with(APP_LIMITED) * 2 > log.calls(ACK).count() as u64);
}

#[test]
fn timeouts_are_reported() {
    let mut timeouts = 0;
    for _ in 0..10 {
        let Some(log) = CallLog::of(Downloads::new(20, "40%", 1, 20_000)) else { return };
        log.check();
        timeouts += log.calls(TIMEOUT).count();
        if timeouts > 0 {
            break;
        }
    }
    assert!(timeouts > 0);
}

/// Packets that the path marked.
fn marked_by_the_path(log: &CallLog) -> u64 {
    log.served.fields.iter().filter(|(_, end)| *end == Ecn::Ce).count() as u64
}

/// RFC 3168 §6.1.3: the peer repeats a mark until it has the answer.
#[test]
fn mark_that_a_client_without_accecn_repeats_for_a_round_is_reported_once() {
    let download = Downloads { queue: "codel:ecn", ..Downloads::new(20, "0%", 1, 3_000_000) };
    let Some(log) = CallLog::of(download) else { return };
    log.check();
    let (marks, by_path) = (log.marks(), marked_by_the_path(&log));
    println!("{by_path} marked by the path, {}, {marks} reported", log.marked());
    assert!(u64::from(log.marked()) > 5 * by_path, "{}", log.figures());
    assert!(marks > 0 && marks <= by_path, "{}", log.figures());
    assert!(log.calls(ACK).all(|call| call.ce_packets <= 1));
}

#[test]
fn spurious_losses_are_reported_when_the_kernel_detects_them() {
    let download = Downloads { jitter_ms: 20, ..Downloads::new(20, "0%", 1, 12_000_000) };
    let Some(log) = CallLog::of(download) else { return };
    log.check();
    assert!(log.undone() > 0, "{}", log.figures());
    // Losses that were not reported are not reported as spurious, either.
    assert!(log.calls(SPURIOUS).count() as u64 <= log.undone(), "{}", log.figures());
}

#[test]
fn another_mtu_changes_the_size_of_the_packets() {
    let download = Downloads { later_mtu: Some(1_000), ..Downloads::new(20, "0%", 1, 3_000_000) };
    let Some(log) = CallLog::of(download) else { return };
    log.check();
    assert_eq!(log.served.infos[0][1].snd_mss, 1_000 - 52);
    let sizes: Vec<u64> = log.calls(RESIZED).map(|call| call.mss).collect();
    assert_eq!(sizes, [1_000 - 52], "once");
    // The same bytes leave in more packets: the window in bytes goes on where it was.
    let acks: Vec<&Call> = log.calls(ACK).collect();
    let after = acks.iter().position(|call| call.mss == sizes[0]).expect("an ACK");
    let (before, after) = (acks[after - 1], acks[after]);
    println!("window before {} and after {} bytes", before.cwnd, after.cwnd);
    assert!(after.cwnd.abs_diff(before.cwnd) <= before.cwnd / 4, "{before:?} {after:?}");
}
