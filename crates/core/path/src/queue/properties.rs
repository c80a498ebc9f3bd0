//! Properties shared by all disciplines.

use std::collections::BTreeMap;

use proptest::prelude::*;
use uncork_units::{Rng, Time, TimeDelta};

use super::{Queue, QueueSpec};
use crate::{Ecn, Packet};

/// Parameters with which drops, collisions and batches occur within a few dozen packets.
const SPECS: [&str; 10] = [
    "droptail",
    "codel:target=1ms,interval=5ms",
    "codel:target=1ms,interval=5ms,ecn",
    "fq_codel:flows=4,limit=20,target=1ms,interval=5ms,noecn",
    "fq_codel:flows=2,quantum=256B,target=1ms,interval=5ms",
    "cake:rtt=5ms,noecn",
    "cake:rtt=5ms",
    "pie:target=1ms,tupdate=1ms,burst=0s,ecn",
    "dualpi2:target=1ms,tupdate=1ms,step=1ms",
    "step:threshold=1ms",
];
const LIMIT: u64 = 40_000;

/// A packet arrives or leaves, some time after the previous step.
#[derive(Clone, Copy, Debug)]
enum QueueStep {
    Enqueue { after: u64, flow: u32, bytes: u32 },
    Dequeue { after: u64 },
}

fn step() -> impl Strategy<Value = QueueStep> {
    prop_oneof![
        3 => (0_u64..500, 0_u32..6, 40_u32..9000)
            .prop_map(|(after, flow, bytes)| QueueStep::Enqueue { after, flow, bytes }),
        2 => (0_u64..2000).prop_map(|after| QueueStep::Dequeue { after }),
    ]
}

/// All packets of a flow have the same ECN field: DualPI2 selects the queue by it.
fn ecn_of(flow: u32) -> Ecn {
    [Ecn::NotEct, Ecn::Ect0, Ecn::Ect1][flow as usize % 3]
}

/// The fate of a packet.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum PacketFate {
    Left(Packet<usize>),
    Dropped(Packet<usize>),
}

/// After each step the queue holds exactly the packets that arrived and neither left nor were
/// dropped. A packet's body is its number.
fn run(spec: &str, steps: &[QueueStep]) -> Result<Vec<PacketFate>, TestCaseError> {
    let spec: QueueSpec = spec.parse().expect("a discipline");
    let mut queue: Queue<usize> = spec.build(LIMIT);
    let (mut rng, mut now) = (Rng::new(7, 0), Time::ZERO);
    let (mut fates, mut came) = (Vec::new(), Vec::new());
    let (mut bytes, mut packets) = (0, 0);
    let flush = (0..steps.len()).map(|_| QueueStep::Dequeue { after: 1000 });
    for step in steps.iter().copied().chain(flush) {
        let before = fates.len();
        match step {
            QueueStep::Enqueue { after, flow, bytes: size } => {
                now += TimeDelta::from_micros(after);
                let ecn = ecn_of(flow);
                let packet = Packet { flow, host: flow / 2, bytes: size, ecn, body: came.len() };
                came.push(now);
                (bytes, packets) = (bytes + u64::from(size), packets + 1);
                let drop = &mut |packet| fates.push(PacketFate::Dropped(packet));
                queue.enqueue(now, packet, &mut rng, drop);
            }
            QueueStep::Dequeue { after } => {
                now += TimeDelta::from_micros(after);
                let drop = &mut |packet| fates.push(PacketFate::Dropped(packet));
                if let Some(queued) = queue.dequeue(now, &mut rng, drop) {
                    prop_assert_eq!(queued.since, came[queued.packet.body]);
                    fates.push(PacketFate::Left(queued.packet));
                } else {
                    prop_assert_eq!(queue.packets(), 0, "idle although packets are waiting");
                }
            }
        }
        for fate in &fates[before..] {
            let (PacketFate::Left(packet) | PacketFate::Dropped(packet)) = fate;
            (bytes, packets) = (bytes - u64::from(packet.bytes), packets - 1);
        }
        prop_assert_eq!((queue.bytes(), queue.packets()), (bytes, packets));
        prop_assert!(bytes <= LIMIT);
    }
    prop_assert_eq!(packets, 0);
    prop_assert_eq!(fates.len(), came.len());
    Ok(fates)
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(200))]

    /// Every packet either leaves once or is dropped once; a flow's packets leave in order; only
    /// ECN-capable packets are marked; and a second run gives the same result.
    #[test]
    fn packets_are_conserved_and_flows_keep_their_order(
        steps in proptest::collection::vec(step(), 1..300),
    ) {
        for spec in SPECS {
            let fates = run(spec, &steps)?;
            prop_assert_eq!(&fates, &run(spec, &steps)?);
            let mut seen = vec![false; fates.len()];
            let mut last: BTreeMap<u32, usize> = BTreeMap::new();
            for fate in fates {
                let (PacketFate::Left(packet) | PacketFate::Dropped(packet)) = fate;
                prop_assert!(!std::mem::replace(&mut seen[packet.body], true));
                if let PacketFate::Left(packet) = fate {
                    prop_assert!(packet.ecn.is_capable() == ecn_of(packet.flow).is_capable());
                    let before = last.insert(packet.flow, packet.body);
                    prop_assert!(before.is_none_or(|before| before < packet.body), "{}", spec);
                }
            }
        }
    }
}
