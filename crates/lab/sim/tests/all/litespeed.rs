//! LiteSpeed's published table (20 Mbit/s, "25 ms", 10 MB with random loss), and the same transfer
//! measured with Linux 6.18.

use crate::common::page::{agree, page, table};
use crate::common::{Case, case, median};
use uncork_sim::MSS_BYTES;

const TEN_MB: u64 = 10_000_000;

fn litespeed(rtt_ms: u64, loss: &str) -> Case {
    case(20, rtt_ms, 1000).packets(83).loss(loss)
}

fn completion(rtt_ms: u64, loss: &str, cc: &str) -> f64 {
    let seconds = (1..=9).map(|seed| litespeed(rtt_ms, loss).download(cc, TEN_MB, seed));
    let seconds = median(seconds);
    println!("{cc:6} RTT {rtt_ms} ms, loss {loss:>4}: {seconds:.2} s");
    seconds
}

#[test]
fn bbr1_ignores_random_loss() {
    for rtt_ms in [25, 50] {
        for loss in ["0%", "0.5%", "1%", "2%"] {
            assert!(completion(rtt_ms, loss, "bbr1") <= 5.0);
        }
        assert!(completion(rtt_ms, "3%", "bbr1") <= 5.2);
    }
}

/// The results at 2 % and 3 % come from BBRv3's 2 % loss threshold.
#[test]
fn bbr3_tolerates_loss_up_to_its_threshold() {
    for (loss, limit) in [("0.5%", 5.2), ("1%", 5.5), ("2%", 6.5), ("3%", 7.5)] {
        assert!(completion(50, loss, "bbr3") <= limit);
    }
}

#[test]
fn without_loss_the_controllers_tie() {
    for rtt_ms in [25, 50] {
        let seconds = ["reno", "cubic", "bbr1", "bbr3"].map(|cc| completion(rtt_ms, "0%", cc));
        let fastest = seconds.iter().copied().fold(f64::INFINITY, f64::min);
        let slowest = seconds.iter().copied().fold(0.0, f64::max);
        assert!(slowest <= 1.05 * fastest, "{seconds:?}");
    }
}

#[test]
fn one_percent_costs_cubic_three_times_bbr1() {
    for rtt_ms in [25, 50] {
        let cubic = completion(rtt_ms, "1%", "cubic");
        assert!(cubic >= 3.0 * completion(rtt_ms, "1%", "bbr1"));
    }
}

/// Controller, loss, and the time with Linux 6.18 through a user-space emulator of the same path,
/// in seconds: median of five runs and their spread. With RFC 9438, W_est grows at Reno's rate once
/// it is back at the window of the loss, where a window of a dozen segments spends its time.
const LINUX: [(&str, &str, f64, &str); 8] = [
    ("reno", "0%", 4.38, "4.35–4.46"),
    ("reno", "1%", 30.1, "27.0–32.8"),
    ("cubic", "0%", 4.39, "4.34–4.46"),
    ("cubic:linux", "0%", 4.39, "4.34–4.46"),
    ("cubic", "1%", 32.1, "28.1–35.8"),
    ("cubic:linux", "1%", 32.1, "28.1–35.8"),
    ("bbr1", "0%", 4.39, "4.37–4.40"),
    ("bbr1", "1%", 4.48, "4.43–4.59"),
];

#[test]
fn agrees_with_linux() {
    let mut rows = Vec::new();
    for (cc, loss, linux, spread) in LINUX {
        let case = litespeed(50, loss);
        let mut seconds: Vec<f64> = (1..=9).map(|seed| case.download(cc, TEN_MB, seed)).collect();
        seconds.sort_by(f64::total_cmp);
        let [median, least, most] = [seconds[4], seconds[0], seconds[8]];
        rows.push(vec![
            format!("`{cc}`, {}", loss.replace('%', " %")),
            format!("{linux} ({spread})"),
            format!("{median:.2} ({least:.2}–{most:.2})"),
        ]);
        let is_another_standard = (cc, loss) == ("cubic", "1%");
        let limit = if is_another_standard { 0.25 } else { 0.15 };
        assert!((median / linux - 1.0).abs() <= limit, "{cc} at {loss}: {seconds:.2?}");
    }
    let header = ["controller, loss", "Linux 6.18, s", "here, s"];
    agree(&page("docs/evidence/fidelity.md"), "Linux download", &table(&header, rows));
}

/// In the runs without loss, Linux's CUBIC retransmits 10 to 12 packets at the end of slow start.
/// The standard's leaves it a round earlier.
#[test]
fn slow_start_of_linux_overshoots_as_in_linux() {
    let lost = |cc| {
        let end = 5.0;
        litespeed(50, "0%").flow(cc, 5, 1).lost_bytes(0, 0.0, end) / u64::from(MSS_BYTES)
    };
    assert!((10..=12).contains(&lost("cubic:linux")), "{}", lost("cubic:linux"));
    assert!(lost("cubic") < 5, "{}", lost("cubic"));
}
