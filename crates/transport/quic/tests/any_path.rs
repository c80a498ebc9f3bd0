//! On any path and with any controller, every byte sent is accounted for.
mod pair;

use std::sync::Arc;
use std::time::Duration;

use pair::{Pair, Spec, choice};
use proptest::prelude::*;

const ALL: [&str; 10] = [
    "reno",
    "reno:start=search",
    "reno:start=rapid",
    "cubic",
    "cubic:start=search",
    "cubic:start=rapid",
    "bbr1",
    "bbr2",
    "bbr3",
    "bbr3:loss_floor",
];

/// A pseudo-random value below `limit`, from a number and a salt.
fn draw(number: u64, salt: u64, limit: u64) -> u64 {
    let mut rng = uncork_units::Rng::new(salt, number);
    rng.below(limit)
}

#[derive(Clone, Debug)]
struct Drawn {
    cc: usize,
    rate_mbit: u64,
    rtt_ms: u64,
    queue_packets: u64,
    lost_permille: u64,
    late_permille: u64,
    late_ms: u64,
    mark_above: Option<u64>,
    salt: u64,
}

impl Drawn {
    fn spec(&self) -> Spec {
        let &Self { lost_permille, late_permille, late_ms, salt, .. } = self;
        let late = move |n| {
            let is_late = draw(n, salt ^ 1, 1000) < late_permille;
            Duration::from_millis(if is_late { draw(n, salt ^ 2, late_ms + 1) } else { 0 })
        };
        Spec {
            queue: 3_000 + self.queue_packets * 1_500,
            is_lost: Arc::new(move |n| draw(n, salt, 1000) < lost_permille),
            late: Arc::new(late),
            mark_above: self.mark_above.unwrap_or(u64::MAX),
            seed: salt as u8,
            ..Spec::new(ALL[self.cc], self.rate_mbit, self.rtt_ms)
        }
    }
}

prop_compose! {
    fn paths()(
        cc in 0..ALL.len(),
        rate_mbit in 1..200_u64,
        rtt_ms in 1..200_u64,
        queue_packets in 1..400_u64,
        lost_permille in 0..80_u64,
        late_permille in 0..80_u64,
        late_ms in 0..40_u64,
        mark_above in prop::option::of(0..100_000_u64),
        salt in any::<u64>(),
    ) -> Drawn {
        Drawn {
            cc, rate_mbit, rtt_ms, queue_packets, lost_permille, late_permille, late_ms, mark_above,
            salt,
        }
    }
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 60, failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn every_byte_is_accounted_for(
        path in paths(),
        bytes in 1..3_000_000_u64,
        changes in prop::collection::vec((0..2_000_u64, 0..ALL.len()), 0..4),
    ) {
        let mut pair = Pair::new(path.spec());
        let stream = pair.request(bytes);
        for (after_ms, cc) in changes {
            pair.wait(Duration::from_millis(after_ms));
            pair.handle.choose(choice(ALL[cc]));
        }
        prop_assert!(pair.run(stream, Duration::from_secs(4_000)).is_some());
        prop_assert_eq!(pair.received(stream), bytes);
        pair.wait(Duration::from_secs(10));
        let seen = pair.handle.observe().expect("a connection");
        prop_assert_eq!(seen.in_flight, 0);
        let accounted = seen.acked_bytes + seen.lost_bytes + seen.unheard_bytes;
        prop_assert_eq!(seen.sent_bytes, accounted, "{:?}", seen);
        prop_assert!(seen.acked_bytes + seen.lost_bytes >= bytes);
        prop_assert!(seen.ce_packets <= pair.marked);
        prop_assert!(seen.spurious_packets <= seen.lost_packets);
    }
}
