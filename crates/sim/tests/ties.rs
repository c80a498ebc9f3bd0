//! Half a BDP of 5 Mbit/s and 10 ms: two packets of buffer, and a link and a server that act at the same
//! instant. What the kernel makes of the same path stands beside it.
mod common;

use common::page::{agree, page, table};
use common::{case, median};
use uncork_path::{JitterDistribution, JitterSpec};
use uncork_units::TimeDelta;

const TWO_MB: u64 = 2_000_000;

/// Seconds that 2 MB take, the median of nine seeds. Jitter keeps packets in order.
fn completion(cc: &str, milli_bdp: u64, jitter_us: u64) -> f64 {
    let mut case = case(5, 10, milli_bdp);
    case.path.jitter = (jitter_us > 0).then_some(JitterSpec {
        distribution: JitterDistribution::Uniform,
        max: TimeDelta::from_micros(jitter_us),
        reorder: false,
    });
    median((1..=9).map(|seed| case.download(cc, TWO_MB, seed)))
}

/// Controller, and what Linux 6.18 took in seconds, the median of so many runs and their spread:
/// six over the path as it is, which has nothing random, and eight with jitter of up to 0.2 ms.
const LINUX: [(&str, &str, f64, &str); 3] = [
    ("reno", "4.41 (3.83–4.87)", 4.97, "4.68–5.18"),
    ("cubic", "3.99 (3.79–4.23)", 4.42, "4.26–4.56"),
    ("cubic:rfc8312", "3.99 (3.79–4.23)", 4.42, "4.26–4.56"),
];

/// ACKs are as far apart as the packets that they acknowledge took to be sent. A server that sends two
/// at an ACK thus finds, when the next comes, that the link has just sent the second, and whether the
/// third of three has room hangs on who of the two is first. Here it is the link (`crates/path/src/network/schedule.rs`); with
/// the least jitter it is a matter of chance, as for real hosts.
#[test]
fn two_packets_of_buffer_hang_on_who_is_first() {
    let mut rows = Vec::new();
    for (cc, as_is, linux, spread) in LINUX {
        let [exact, least, more] = [0, 5, 200].map(|jitter_us| completion(cc, 500, jitter_us));
        let least_of_all = if cc == "reno" { 1.25 } else { 1.04 };
        assert!(least > least_of_all * exact, "{cc}: {exact:.2} s, {least:.2} s with 5 us");
        assert!((more / least - 1.0).abs() < 0.03, "{cc}: {least:.2} s, {more:.2} s with 200 us");
        // CUBIC: Linux keeps whole segments and rounds down, which costs it 0.4 s.
        let limit = if cc == "reno" { 0.1 } else { 0.25 };
        assert!((linux / more - 1.0).abs() <= limit, "{cc}: Linux {linux} s, here {more:.2} s");
        let [exact, least, more] = [exact, least, more].map(|seconds| format!("{seconds:.2}"));
        let linux = format!("{linux:.2} ({spread})");
        rows.push(vec![format!("`{cc}`"), as_is.to_owned(), exact, least, linux, more]);
    }
    let header = ["controller", "Linux", "here", "here, 5 µs", "Linux, 0.2 ms", "here, 0.2 ms"];
    agree(&page("docs/fidelity.md"), "ties", &table(&header, rows));
}

#[test]
fn sixteen_packets_of_buffer_do_not() {
    for cc in ["reno", "cubic"] {
        let [exact, jittery] = [0, 5].map(|jitter_us| completion(cc, 4000, jitter_us));
        assert!((jittery / exact - 1.0).abs() < 0.01, "{cc}: {exact:.3} s, {jittery:.3} s");
    }
}
