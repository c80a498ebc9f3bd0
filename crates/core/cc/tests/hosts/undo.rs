//! Spurious losses: for every algorithm an episode is undone as a whole or not at all. The unit
//! tests of BBRv3 and CUBIC cover the rest of the state that they restore.

use uncork_cc::{Algorithm, CcSpec, Controller, Settings, Timeout};
use uncork_units::{Time, TimeDelta};

use crate::host::truthful::Truthful;
use crate::host::{Watched, specs};

const MSS: u32 = 1_448;

/// For every algorithm, a connection with a full window. Its oldest packet is about to be
/// acknowledged. It had one loss some rounds ago, of a packet that is still lost.
fn hosts() -> impl Iterator<Item = (CcSpec, Truthful<Watched>)> {
    specs().into_iter().map(|spec| {
        let mut settings = Settings::new(MSS, 1, Time::ZERO);
        settings.initial_window = 20 * u64::from(MSS);
        let mut host = Truthful::new(Watched::new(spec, &settings), &settings);
        rounds(&mut host, 2);
        host.lose(1, 1, 3);
        rounds(&mut host, 12);
        assert!(!host.cc.snapshot().in_recovery && host.packets() > 8, "{spec}");
        host.now += TimeDelta::from_millis(40);
        (spec, host)
    })
}

/// Round trips of 40 ms with room for 20 packets.
fn rounds(host: &mut Truthful<Watched>, n: usize) {
    (0..n).for_each(|_| host.round(TimeDelta::from_millis(40), TimeDelta::from_millis(2)));
}

#[test]
fn spurious_loss_restores_the_window() {
    for (spec, mut host) in hosts() {
        let (cwnd, before) = (host.cc.control().cwnd, host.cc.snapshot());
        host.lose(3, 2, 2);
        assert!(host.cc.snapshot().in_recovery, "{spec}");
        host.arrive_after_all(1, 3);
        let after = host.cc.snapshot();
        assert!(host.cc.control().cwnd >= cwnd, "{spec}: {} < {cwnd}", host.cc.control().cwnd);
        assert_eq!((after.state, after.in_recovery), (before.state, false), "{spec}");
        assert_eq!(after.ssthresh, before.ssthresh, "{spec}");
        assert_eq!(after.max_bw, before.max_bw, "{spec}");
        assert_eq!(after.bw_shortterm, before.bw_shortterm, "{spec}");
        assert_eq!(after.inflight_shortterm, before.inflight_shortterm, "{spec}");
        assert_eq!(after.inflight_longterm, before.inflight_longterm, "{spec}");
    }
}

#[test]
fn two_of_three_lost_packets_arriving_do_not_undo() {
    for (spec, mut host) in hosts() {
        host.lose(3, 2, 2);
        let ssthresh = host.cc.snapshot().ssthresh;
        host.arrive_after_all(1, 2);
        let after = host.cc.snapshot();
        assert_eq!((after.in_recovery, after.ssthresh), (true, ssthresh), "{spec}");
    }
}

#[test]
fn spurious_timeout_restores_the_window() {
    for (spec, mut host) in hosts() {
        let (cwnd, before) = (host.cc.control().cwnd, host.cc.snapshot());
        host.now += TimeDelta::from_secs(1);
        host.time_out(Timeout::Retransmission);
        assert!(host.cc.control().cwnd < cwnd, "{spec}");
        host.arrive_after_all(0, usize::MAX);
        let after = host.cc.snapshot();
        assert!(host.cc.control().cwnd >= cwnd, "{spec}: {} < {cwnd}", host.cc.control().cwnd);
        assert_eq!((after.in_recovery, after.ssthresh), (false, before.ssthresh), "{spec}");
    }
}

#[test]
fn persistent_congestion_inside_an_episode_cancels_the_undo() {
    for (spec, mut host) in hosts() {
        host.lose(3, 2, 2);
        host.now += TimeDelta::from_secs(3);
        host.time_out(Timeout::Persistent);
        let (cwnd, ssthresh) = (host.cc.control().cwnd, host.cc.snapshot().ssthresh);
        assert!(cwnd <= 4 * u64::from(MSS), "{spec}: {cwnd}");
        let delivered = host.delivered();
        host.arrive_after_all(0, usize::MAX);
        // The late arrivals may grow the window, but do not restore it.
        let most = cwnd + host.delivered() - delivered;
        assert!(host.cc.control().cwnd <= most, "{spec}: {}", host.cc.control().cwnd);
        assert_eq!(host.cc.snapshot().ssthresh, ssthresh, "{spec}");
    }
}

#[test]
fn ce_mark_inside_an_episode_cancels_the_undo() {
    for (spec, mut host) in hosts() {
        host.marks = 1;
        host.lose(3, 2, 2);
        let ssthresh = host.cc.snapshot().ssthresh;
        host.arrive_after_all(1, 3);
        // BBRv1 ignores marks, so only losses count. For Prague marks are not losses: the next one reduces the window.
        let is_undone = matches!(spec.algorithm(), Algorithm::Bbr1 | Algorithm::Prague);
        assert_eq!(host.cc.snapshot().in_recovery, !is_undone, "{spec}");
        let is_restored = spec.algorithm() == Algorithm::Prague;
        assert_eq!(host.cc.snapshot().ssthresh != ssthresh, is_restored, "{spec}");
    }
}

/// RFC 9000 §21.4: a receiver that claims the late arrival of all losses takes back all reductions but one of sixteen.
#[test]
fn receiver_that_claims_every_lost_packet_does_not_undo_forever() {
    for (spec, mut host) in hosts() {
        let stand: Vec<_> = (1..=32)
            .filter(|_| {
                host.lose(1, 1, 3);
                host.arrive_after_all(1, 1);
                let stands = host.cc.snapshot().in_recovery;
                rounds(&mut host, 3);
                stands
            })
            .collect();
        assert_eq!(stand, [16, 32], "{spec}");
    }
}
