//! uncork's controllers inside quinn-proto: `adapter.rs` implements its `congestion::Controller`.
//!
//! ```console
//! $ cargo run -p uncork-cc-bench --example quinn -- bbr3
//! ```
//!
//! `docs/reference/embedding.md` lists what quinn's interface does not report.

mod adapter;
mod pair;

use uncork_cc::CcSpec;

const BYTES: u64 = 4_000_000;

fn main() -> Result<(), Box<dyn std::error::Error>> {
    let spec: CcSpec = std::env::args().nth(1).unwrap_or_else(|| "bbr3".into()).parse()?;
    let report = pair::transfer(spec, BYTES)?;
    let (seconds, dropped, state) = (report.seconds, report.dropped, report.snapshot.state);
    println!("{spec}: {BYTES} bytes in {seconds:.3} s, {dropped} packets dropped, in {state}");
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    /// 20 Mbit/s, 40 ms, a buffer of 1 BDP: 1.6 s at the rate of the link.
    #[test]
    fn every_controller_fills_most_of_the_link_through_quinn() {
        for algorithm in uncork_cc::Algorithm::ALL {
            let report = pair::transfer(CcSpec::new(algorithm), BYTES).expect("a transfer");
            let (seconds, name) = (report.seconds, algorithm.name());
            assert!((1.6..3.2).contains(&seconds), "{name}: {seconds} s");
            assert!(report.snapshot.round_count > 10, "{name}: {:?}", report.snapshot);
        }
    }

    #[test]
    fn the_adapter_reports_losses_and_round_trips() {
        let spec = CcSpec::new(uncork_cc::Algorithm::Reno);
        let report = pair::transfer(spec, BYTES).expect("a transfer");
        assert!(report.dropped > 0, "slow start overflows the buffer");
        assert!(report.snapshot.ssthresh.is_some(), "{:?}", report.snapshot);
        let spec = CcSpec::new(uncork_cc::Algorithm::Bbr3);
        let snapshot = pair::transfer(spec, BYTES).expect("a transfer").snapshot;
        let min_rtt = snapshot.min_rtt.expect("measured").as_millis_f64();
        assert!((40.0..42.0).contains(&min_rtt), "{min_rtt} ms");
        let max_bw = snapshot.max_bw.expect("measured").bytes_per_sec();
        assert!((2_250_000..=2_750_000).contains(&max_bw), "{max_bw} of 2500000 B/s");
    }
}
