//! Real connections of the stack, in virtual time, with uncork's controllers.
mod pair;

use std::sync::Arc;
use std::time::Duration;

use pair::{Pair, Spec, choice};
use uncork_cc::InitialWindow;
use uncork_quic::{Choice, Observation};
use uncork_units::Rate;

const MINUTE: Duration = Duration::from_mins(1);
const ALL: [&str; 6] = ["reno", "cubic", "bbr1", "bbr2", "bbr3", "prague"];

/// Fetches `bytes`, then waits until nothing is in flight. Returns the time of the fetch.
fn fetch(pair: &mut Pair, bytes: u64) -> Duration {
    let begun = pair.now;
    let stream = pair.request(bytes);
    pair.run(stream, 5 * MINUTE).expect("it arrives");
    assert_eq!(pair.received(stream), bytes);
    let took = pair.now - begun;
    pair.wait(Duration::from_secs(2));
    took
}

fn observe(pair: &Pair) -> Observation {
    pair.handle.observe().expect("a connection")
}

/// Checks that all bytes sent are acknowledged or lost.
fn assert_balanced(pair: &Pair, what: &str) {
    let seen = observe(pair);
    let Observation { sent_bytes, acked_bytes, lost_bytes, in_flight, .. } = seen;
    assert_eq!(in_flight, 0, "{what}: {seen:?}");
    assert_eq!(sent_bytes, acked_bytes + lost_bytes, "{what}: {seen:?}");
}

#[test]
fn every_controller_fills_the_path() {
    for cc in ALL {
        let mut pair = Pair::new(Spec::new(cc, 20, 40));
        let took = fetch(&mut pair, 5_000_000);
        // 2.05 s at 97 % of 20 Mbit/s, and slow start.
        assert!((2.05..2.6).contains(&took.as_secs_f64()), "{cc}: {took:?}");
        assert_balanced(&pair, cc);
        let rtt = observe(&pair).rtt.expect("a sample");
        assert!((40.0..42.0).contains(&rtt.min.as_millis_f64()), "{cc}: {rtt:?}");
        // Without UDP and IP headers: 1452 of 1480 bytes.
        let rate = observe(&pair).delivery_rate.expect("a sample").bits_per_sec() as f64;
        let share = rate / 20e6 * 1480.0 / 1452.0;
        assert!((0.98..1.03).contains(&share), "{cc}: {share}");
    }
}

#[test]
fn bbr_learns_the_rate_of_the_path() {
    for cc in ["bbr1", "bbr3"] {
        let mut pair = Pair::new(Spec::new(cc, 50, 30));
        let stream = pair.request(50_000_000);
        pair.run_until(Duration::from_secs(3));
        assert!(pair.received(stream) > 10_000_000);
        let snapshot = observe(&pair).snapshot;
        // UDP and IP headers do not count: 1452 of 1480 bytes.
        let share = snapshot.max_bw.unwrap().bytes_per_sec() as f64 / 50e6 * 8.0 * 1480.0 / 1452.0;
        assert!((0.99..1.01).contains(&share), "{cc}: {share} {snapshot:?}");
        assert!(snapshot.state.starts_with("Probe"), "{cc}: {snapshot:?}");
    }
}

#[test]
fn lost_bytes_are_counted() {
    for cc in ALL {
        for (what, is_lost) in [
            ("every tenth", (|n| n % 10 == 9) as fn(u64) -> bool),
            ("a burst", |n| (100..130).contains(&n)),
            ("everything for a while", |n| (200..280).contains(&n)),
        ] {
            let is_lost = Arc::new(is_lost);
            let mut pair = Pair::new(Spec { is_lost, ..Spec::new(cc, 20, 20) });
            fetch(&mut pair, 1_000_000);
            assert_balanced(&pair, &format!("{cc}, {what}"));
            assert!(observe(&pair).lost_bytes > 30_000, "{cc}, {what}");
        }
    }
}

/// The stack probes for larger packets and does not report lost probes.
#[test]
fn lost_mtu_probes_do_not_stay_in_flight() {
    let mut pair = Pair::new(Spec { mtu: Some(1300), ..Spec::new("bbr3", 20, 20) });
    fetch(&mut pair, 2_000_000);
    let Observation { in_flight, unheard_bytes, .. } = observe(&pair);
    assert_eq!(in_flight, 0);
    assert!((1300..20_000).contains(&unheard_bytes), "{unheard_bytes}");
}

#[test]
fn every_mark_is_counted() {
    for cc in ALL {
        let spec = Spec { mark_above: 30_000, ..Spec::new(cc, 20, 40) };
        let mut pair = Pair::new(spec);
        fetch(&mut pair, 3_000_000);
        assert!(pair.marked > 10, "{cc}: {}", pair.marked);
        assert_eq!(observe(&pair).ce_packets, pair.marked, "{cc}");
    }
}

/// Packets overtaken by twenty later ones are declared lost until the stack has learned to expect them.
#[test]
fn late_packets_are_spurious_losses_until_they_are_expected() {
    for cc in ALL {
        let late: fn(u64) -> Duration =
            |n| if n % 100 == 50 { Duration::from_millis(12) } else { Duration::ZERO };
        let mut pair = Pair::new(Spec { late: Arc::new(late), ..Spec::new(cc, 20, 40) });
        fetch(&mut pair, 3_000_000);
        let (late, seen) = (3_000_000 / 1452 / 100, observe(&pair));
        let lost = seen.lost_bytes.div_ceil(1452);
        assert!((1..late / 2).contains(&seen.spurious_packets), "{cc}: {late} {seen:?}");
        assert!(lost >= seen.spurious_packets, "{cc}: {seen:?}");
        assert_eq!(seen.in_flight, 0, "{cc}");
    }
}

#[test]
fn runs_are_reproducible() {
    let trace = |seed| {
        let is_lost = Arc::new(|n| n % 50 == 49);
        let mut pair = Pair::new(Spec { is_lost, seed, ..Spec::new("bbr3", 20, 40) });
        fetch(&mut pair, 2_000_000);
        pair.trace
    };
    assert_eq!(trace(1), trace(1));
    assert_ne!(trace(1), trace(2));
}

/// Application-limited samples must not lower the bandwidth estimate.
#[test]
fn an_application_limited_sender_keeps_its_estimate() {
    for cc in ["bbr1", "bbr3"] {
        let mut pair = Pair::new(Spec::new(cc, 20, 40));
        fetch(&mut pair, 5_000_000);
        for _ in 0..100 {
            let stream = pair.request(20_000);
            pair.run(stream, 5 * MINUTE).unwrap();
            pair.wait(Duration::from_millis(200));
        }
        let max_bw = observe(&pair).snapshot.max_bw.unwrap();
        assert!(max_bw > Rate::from_mbit(18), "{cc}: {max_bw}");
    }
}

#[test]
fn the_server_name_chooses_the_controller() {
    let spec = Spec::new("reno", 20, 40);
    let mut pair = Pair::choosing(spec, |name| {
        assert_eq!(name, Some("named.example"));
        Some(choice("bbr3"))
    });
    let stream = pair.request(1_000_000);
    assert_eq!(observe(&pair).spec.to_string(), "bbr3", "before the first byte of data");
    pair.run(stream, MINUTE).unwrap();
    assert!(observe(&pair).snapshot.max_bw.is_some());
}

/// A restart from scratch would deliver a tenth less in these two seconds.
#[test]
fn the_algorithm_of_an_open_connection_can_change() {
    for (from, to) in [("cubic", "bbr3"), ("bbr3", "cubic"), ("reno", "bbr1"), ("bbr1", "reno")] {
        let mut pair = Pair::new(Spec::new(from, 20, 40));
        let stream = pair.request(10_000_000);
        pair.run_until(Duration::from_secs(2));
        let (before, dropped) = (pair.received(stream), pair.dropped);
        pair.handle.choose(choice(to));
        assert_eq!(observe(&pair).spec.to_string(), to);
        pair.run_until(Duration::from_secs(4));
        let share = (pair.received(stream) - before) as f64 / 5e6;
        let lost = pair.dropped - dropped;
        println!("{from} to {to}: {share:.3} of the path, {lost} packets dropped in 2 s");
        assert!((0.9..1.0).contains(&share), "{from} to {to}: {share}");
        assert!(lost < 30, "{from} to {to}: {lost}");
        pair.run(stream, MINUTE).unwrap();
        pair.wait(Duration::from_secs(2));
        assert_balanced(&pair, &format!("{from} to {to}"));
    }
}

/// RFC 9000 §9.4: a new port of the same host is most likely the same path, a new host is not.
#[test]
fn a_new_port_keeps_the_measurements_a_new_host_resets_them() {
    for (address, knows) in [("192.0.2.2:6000", true), ("192.0.2.3:5000", false)] {
        let mut pair = Pair::new(Spec::new("bbr3", 20, 40));
        fetch(&mut pair, 3_000_000);
        pair.move_client(address);
        let stream = pair.request(20_000_000);
        pair.wait(Duration::from_millis(100));
        let snapshot = observe(&pair).snapshot;
        assert_eq!(snapshot.state != "Startup", knows, "{address}: {snapshot:?}");
        pair.run(stream, MINUTE).unwrap();
        pair.wait(Duration::from_secs(2));
        let seen = observe(&pair);
        assert_eq!(seen.in_flight, 0, "{address}");
        assert!(seen.sent_bytes > 23_000_000, "of both paths: {seen:?}");
        assert_eq!(seen.sent_bytes, seen.acked_bytes + seen.lost_bytes + seen.unheard_bytes);
    }
}

fn window(cc: &str, packets: u32) -> Choice {
    Choice { initial_window: Some(InitialWindow::Packets(packets)), ..choice(cc) }
}

/// Bytes that the client receives in the first flight: within 95 ms of the first byte, on a path
/// with a round trip of 100 ms. This is the initial window: later data waits for acknowledgements.
fn first_flight(pair: &mut Pair) -> u64 {
    let stream = pair.request(1_000_000);
    while pair.received(stream) == 0 {
        pair.wait(Duration::from_millis(1));
    }
    pair.wait(Duration::from_millis(95));
    pair.received(stream)
}

#[test]
fn the_chosen_initial_window_is_used() {
    // The end of the handshake uses some of the 14,520 bytes (RFC 9002 §7.2).
    for (cc, packets, bytes) in [
        ("cubic", None, 12_000..14_521),
        ("cubic", Some(4), 3_000..4 * 1_452 + 1),
        ("cubic", Some(60), 60 * 1_380..60 * 1_452 + 5_000),
        ("bbr3", Some(60), 60 * 1_380..60 * 1_452 + 5_000),
    ] {
        let cc = packets.map_or(choice(cc), |packets| window(cc, packets));
        let mut pair = Pair::new(Spec { cc, ..Spec::new("reno", 200, 100) });
        let first = first_flight(&mut pair);
        println!("{cc:?}: {first}");
        assert!(bytes.contains(&first), "{cc:?}: {first}");
    }
}

/// By server name, and with the first request.
#[test]
fn a_window_chosen_before_data_is_sent_applies() {
    for cc in ["cubic", "bbr3"] {
        let spec = Spec::new(cc, 200, 100);
        let mut named = Pair::choosing(spec.clone(), move |_| Some(window(cc, 60)));
        let mut asked = Pair::new(spec);
        asked.request(0);
        asked.wait(Duration::from_millis(60));
        asked.handle.choose(window(cc, 60));
        for pair in [&mut named, &mut asked] {
            let first = first_flight(pair);
            assert!(first > 60 * 1_380, "{cc}: {first}");
            assert_eq!(observe(pair).lost_packets, 0);
        }
    }
}

#[test]
fn a_window_chosen_late_applies_to_the_next_path() {
    let (mut pair, mut other) =
        (Pair::new(Spec::new("cubic", 20, 40)), Pair::new(Spec::new("cubic", 20, 40)));
    for pair in [&mut pair, &mut other] {
        fetch(pair, 1_000_000);
    }
    pair.handle.choose(window("cubic", 1000));
    let control = |pair: &Pair| observe(pair).control;
    assert_eq!(control(&pair), control(&other));
    // It applies to the next path.
    pair.move_client("192.0.2.3:5000");
    pair.request(10_000_000);
    pair.wait(Duration::from_millis(25));
    assert!(control(&pair).cwnd >= 1000 * 1200, "{:?}", control(&pair));
}

/// In every state of the algorithm. The cap can also be removed.
#[test]
fn nothing_is_paced_faster_than_the_cap() {
    for cc in ALL {
        let cap = Rate::from_mbit(5);
        let capped = Choice { pacing_cap: Some(cap), ..choice(cc) };
        let mut pair = Pair::new(Spec { cc: capped, ..Spec::new(cc, 50, 40) });
        let stream = pair.request(100_000_000);
        pair.run_until(Duration::from_secs(1));
        let rate = |pair: &mut Pair| {
            let before = pair.received(stream);
            pair.wait(Duration::from_secs(4));
            (pair.received(stream) - before) as f64 * 8.0 / 4e6
        };
        // Payload only; the cap includes QUIC headers.
        let capped = rate(&mut pair);
        pair.handle.choose(choice(cc));
        pair.wait(Duration::from_secs(8));
        let free = rate(&mut pair);
        pair.handle.choose(Choice { pacing_cap: Some(cap), ..choice(cc) });
        pair.wait(Duration::from_secs(1));
        let again = rate(&mut pair);
        println!("{cc}: {capped:.2}, then {free:.2}, then {again:.2} Mbit/s");
        // The interval may include a ProbeRTT.
        assert!((4.6..=5.0).contains(&capped) && (4.6..=5.0).contains(&again), "{cc}");
        assert!(free > 40.0, "{cc}: {free}");
    }
}
