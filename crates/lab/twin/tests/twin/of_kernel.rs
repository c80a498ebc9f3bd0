//! A twin of what `uncork host watch` recorded of the kernel's TCP.
//!
//! `connections.jsonl` is of eleven downloads of 8 MB with iperf3, CUBIC and BBRv1 of Linux 6.18 by turns, over `uncork emu
//! --rate 20mbit --delay 20ms --loss 0.3% --buffer 1.5bdp`.

use uncork_flow::{FlowRecord, read_json_lines};
use uncork_twin::{Twin, TwinSpec};

use crate::scenario;

fn median(values: impl Iterator<Item = u64>) -> f64 {
    let mut values: Vec<u64> = values.collect();
    values.sort_unstable();
    values[values.len() / 2] as f64
}

/// How long the median download with `cc` took.
fn busy(records: &[FlowRecord], cc: &str) -> f64 {
    median(records.iter().filter(|record| record.cc == cc).map(|record| record.busy_ns))
}

#[test]
fn connections_of_the_kernel_show_their_path() {
    let records = read_json_lines(include_bytes!("connections.jsonl").as_slice()).expect("records");
    let controllers = ["cubic:linux", "bbr1"].map(|cc| cc.parse().expect("a controller")).to_vec();
    let spec = TwinSpec { controllers, clients: 100, by_network: Some(10), only: None };
    let twin = Twin::of(&records, &spec).expect("a twin");
    assert_eq!(twin.left_out, Vec::<String>::new());
    let scenario = scenario(&twin.text, &[]);
    assert_eq!(scenario.cells[0].classes[0].name, "198.19.0.0/24");

    let instance = scenario.instance(0, 1);
    let paths = &instance.run.paths;
    let rate = median(paths.iter().map(|path| path.link.nominal_rate().bits_per_sec())) / 1e6;
    assert!((18.5..20.5).contains(&rate), "{rate} Mbit/s");
    let rtt = paths[0].rtt.as_millis_f64();
    assert!((39.0..41.0).contains(&rtt), "{rtt} ms");
    let loss = 100.0 * paths[0].loss.mean();
    assert!((0.2..0.4).contains(&loss), "{loss} %");
    let buffer = paths[0].buffer_bytes(1500) as f64 / 1e3;
    assert!((120.0..180.0).contains(&buffer), "{buffer} kB of 150");

    let measured = busy(&records, "cubic") / busy(&records, "bbr");
    let flows = uncork_sim::run(&instance.run).flows;
    let predicted = busy(&flows, "cubic:linux") / busy(&flows, "bbr1");
    assert!((2.2..2.7).contains(&measured), "{measured}");
    assert!((0.8..1.25).contains(&(predicted / measured)), "{predicted} for {measured}");
}
