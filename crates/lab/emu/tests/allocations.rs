//! In steady state the path does not allocate per packet.

use uncork_emu::{Arrival, Body, Direction, EmulationSpec, Fate, FlowKey, Network};
use uncork_path::{Buffer, Ecn, Packet, PathSpec};
use uncork_units::{Rate, Time, TimeDelta};

#[derive(Clone, Copy)]
struct Nothing;

impl Body for Nothing {}

/// Offers packets of twenty flows at twice the link's rate, and their ACKs.
fn offer(network: &mut Network<Nothing>, from: u64, to: u64) -> u64 {
    let mut delivered = 0;
    let mut fate =
        |_, _: Packet<Nothing>, fate| delivered += u64::from(matches!(fate, Fate::Arrives(_)));
    for n in from..to {
        let now = Time::ZERO + TimeDelta::from_micros(60 * n);
        let flow = FlowKey {
            host: 0,
            v6: n % 2 == 0,
            protocol: 6,
            client_port: (n % 20) as u16,
            server_port: 443,
        };
        let ecn = if n % 3 == 0 { Ecn::Ect0 } else { Ecn::NotEct };
        for (direction, bytes) in [(Direction::Down, 1500), (Direction::Up, 52)] {
            network.paths.advance(now, &mut fate);
            network.offer(now, Arrival { direction, flow, bytes, ecn, body: Nothing }, &mut fate);
        }
    }
    delivered
}

#[test]
fn no_allocation_per_packet_in_steady_state() {
    for queue in ["droptail", "codel", "fq_codel", "cake", "pie", "dualpi2"] {
        let rtt = TimeDelta::from_millis(20);
        let mut path = PathSpec::new(Rate::from_mbit(100), rtt, Buffer::MilliBdp(1000));
        path.link.queue = queue.parse().expect("a queue");
        path.loss = "1%".parse().expect("a loss");
        let mut network = Network::new(&EmulationSpec::over(path, 1));
        offer(&mut network, 0, 100_000);
        let mut delivered = 0;
        let counted = allocation_counter::measure(|| {
            delivered = offer(&mut network, 100_000, 200_000);
        });
        assert!(delivered > 140_000, "{queue}: {delivered}");
        // A ring buffer that still doubles is not an allocation per packet.
        assert!(counted.count_total < 100, "{queue}: {} allocations", counted.count_total);
    }
}
