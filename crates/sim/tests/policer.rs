//! Flows behind a token-bucket policer.
mod common;

use common::case;

/// Of a policer that admits a twentieth of the link, all losses are its own; what it admits arrives.
#[test]
fn drops_of_the_policer_are_counted_as_such() {
    let run = case(100, 40, 2000).policed("5mbit:50kB").flow("cubic", 20, 1);
    let record = &run.result.flows[0];
    assert_eq!((record.packets_dropped_queue, record.packets_dropped_random), (0, 0));
    assert!(record.packets_dropped_policer > 0);
    let arrived = record.packets_sent - record.packets_dropped_policer;
    let admitted = 50_000 + 625_000 * 20;
    assert!(arrived * 1500 <= admitted, "{arrived} packets");
}
