//! Prints the cost of each controller: nanoseconds per call, and bytes of state.
//!
//! `cargo bench -p uncork-cc-bench` measures the controllers of `uncork-cc`, `noq-proto` and `quinn-proto`.

use uncork_cc::{Algorithm, Token};
use uncork_cc_bench::{Candidate, Noq, Ours, Quinn, Row, Timer, candidate, measure};

/// Path capacities in packets.
const FLIGHTS: [usize; 2] = [128, 1_024];

fn main() {
    // `cargo test --benches` runs it too.
    if !std::env::args().any(|argument| argument == "--bench") {
        return;
    }
    let timer = Timer::calibrated();
    println!("ns per call, medians; a send includes asking for the window.");
    let token = size_of::<Token>();
    println!("Hosts of uncork-cc keep {token} bytes more for each packet in flight.");
    for flight in FLIGHTS {
        println!("\n{}", Row::HEAD);
        let rows = measure(candidates(flight, timer), timer);
        for row in &rows {
            println!("{row}");
        }
        compare(&rows);
    }
}

fn candidates(flight: usize, timer: Timer) -> Vec<Box<dyn Candidate>> {
    let ours = |algorithm: Algorithm| {
        candidate(algorithm.name(), flight, timer, move || Ours::new(algorithm))
    };
    let others = [
        candidate("noq-proto reno", flight, timer, Noq::reno),
        candidate("noq-proto cubic", flight, timer, Noq::cubic),
        candidate("noq-proto bbr3", flight, timer, Noq::bbr3),
        candidate("quinn-proto reno", flight, timer, Quinn::reno),
        candidate("quinn-proto cubic", flight, timer, Quinn::cubic),
        candidate("quinn-proto bbr", flight, timer, Quinn::bbr),
    ];
    Algorithm::ALL.map(ours).into_iter().chain(others).collect()
}

/// Prints the cost of an ACK of one packet in other stacks' BBR, relative to our BBRv3.
fn compare(rows: &[Row]) {
    let Some(ours) = rows.iter().find(|row| row.name == "bbr3") else { return };
    for other in rows.iter().filter(|row| row.name.contains("-proto bbr")) {
        println!("an ACK of one packet: {} / bbr3 = {:.2}", other.name, other.ack[0] / ours.ack[0]);
    }
}
