//! The fate of packets depends on their arrival times, not on thread scheduling.
mod common;

use common::{path, recorded};
use uncork_emu::{BackSpec, Body, EmulationSpec, Fate, HostSpec, Network, PacketRecord};
use uncork_path::{Ecn, JitterDistribution, JitterSpec, LinkSpec, LossPosition, Packet};
use uncork_units::{Rate, Time, TimeDelta};

/// A packet's number.
#[derive(Clone, Copy)]
struct Number(usize);

impl Body for Number {}

/// Replays the same packets at the same times on a path in virtual time.
fn replayed(spec: &EmulationSpec, packets: &[PacketRecord]) -> Vec<Option<(Fate, Ecn)>> {
    let mut network = Network::new(spec);
    let mut ends = vec![None; packets.len()];
    let mut fate = |_, packet: Packet<Number>, fate| ends[packet.body.0] = Some((fate, packet.ecn));
    for (index, packet) in packets.iter().enumerate() {
        network.paths.advance(packet.came, &mut fate);
        let uncork_emu::Arrival { direction, flow, bytes, ecn, body: () } = packet.arrival;
        let arrival = uncork_emu::Arrival { direction, flow, bytes, ecn, body: Number(index) };
        network.offer(packet.came, arrival, &mut fate);
    }
    network.paths.advance(Time::NEVER, &mut fate);
    ends
}

#[test]
fn replay_of_a_recorded_run_gives_the_same_fates() {
    let max = TimeDelta::from_millis(3);
    let jitter = JitterSpec { distribution: JitterDistribution::Uniform, max, reorder: true };
    for (queue, position) in [
        ("codel:target=1ms,interval=10ms,ecn", LossPosition::After),
        ("fq_codel:target=1ms,interval=10ms", LossPosition::Before),
        ("pie:target=2ms,tupdate=5ms,ecn", LossPosition::After),
        ("cake:rtt=10ms", LossPosition::After),
        ("dualpi2", LossPosition::Before),
    ] {
        let mut spec = path(20, 10, 60);
        spec.record = true;
        spec.hosts = vec![HostSpec::over(0); 2];
        spec.back = BackSpec { loss: "0.5%".parse().expect("a loss"), jitter: None };
        let over = &mut spec.paths[0];
        over.link.queue = queue.parse().expect("a queue");
        (over.loss, over.loss_position) = ("0.5%".parse().expect("a loss"), position);
        over.jitter = Some(jitter);
        let buffer = uncork_path::Buffer::Bytes("60kB".parse().expect("a size"));
        over.uplink = Some(LinkSpec::new(Rate::from_mbit(5), buffer));
        let Some(packets) = recorded(&spec) else { return };
        let ends = replayed(&spec, &packets);
        let count = |wanted: fn(&(Fate, Ecn)) -> bool| {
            packets.iter().filter_map(|packet| packet.end).filter(wanted).count()
        };
        let dropped = count(|(fate, _)| matches!(fate, Fate::Dropped(_)));
        let marked = count(|(_, ecn)| *ecn == Ecn::Ce);
        eprintln!("{queue}: {} packets, {dropped} dropped, {marked} marked", packets.len());
        assert!(packets.len() > 4000 && dropped > 10, "{queue}");
        // PIE marks few packets: it drops instead above 10 % (RFC 8033 §5.1).
        assert!(marked > 0 || queue.starts_with("pie"), "{queue}");
        for (packet, again) in packets.iter().zip(ends) {
            // Packets still in flight have no recorded fate.
            assert!(packet.end.is_none() || packet.end == again, "{queue}: {packet:?} {again:?}");
        }
    }
}
