//! LiteSpeed's published table (20 Mbit/s, "25 ms", 10 MB over random loss), and the same transfer
//! over Linux 6.18 as it was measured.
mod common;

use common::{Case, case, median};

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

/// What happens at 2 % and 3 % is the 2 % loss threshold of BBRv3 at work.
#[test]
fn bbr3_bears_loss_up_to_its_threshold() {
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

/// Linux 6.18 through a user-space emulator of the same path. Its CUBIC is RFC 8312's: RFC 9438 lets
/// W_est grow at Reno's pace once it is back where the loss was, which is where a window of a dozen
/// segments spends its time, and takes 26 s at 1 %.
#[test]
fn agrees_with_linux() {
    let measured = [
        ("cubic", "0%", 4.39),
        ("cubic:rfc8312", "0%", 4.39),
        ("cubic:rfc8312", "1%", 32.1),
        ("bbr1", "0%", 4.39),
        ("bbr1", "1%", 4.48),
        ("reno", "0%", 4.38),
        ("reno", "1%", 30.1),
    ];
    for (cc, loss, linux) in measured {
        let ours = completion(50, loss, cc);
        assert!((ours / linux - 1.0).abs() <= 0.15, "{cc} at {loss}: {ours:.2} s, Linux {linux} s");
    }
}
