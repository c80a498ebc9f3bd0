//! The qlog of a connection matches its events.
mod pair;

use std::sync::{Arc, Mutex};
use std::time::Duration;

use pair::{Pair, Spec};
use serde_json::Value;
use uncork_quic::{Event, Observation, Qlog, Watch};
use uncork_units::Time;

/// Writes a qlog into memory.
struct Memory {
    qlog: Qlog,
    text: Arc<Mutex<String>>,
}

impl Watch for Memory {
    fn event(&mut self, now: Time, event: &Event<'_>) {
        self.qlog.event(&mut self.text.lock().expect("one thread"), now, event);
    }
}

/// The records of a connection that fetches 2 MB, and its final state.
fn trace(spec: Spec) -> (Vec<Value>, Observation) {
    let text = Arc::new(Mutex::new(String::new()));
    let mut pair = Pair::new(spec);
    let begun =
        |text: &mut String| Qlog::begin(text, "a \"title\"", Time::ZERO, 1_800_000_000_000.5);
    let qlog = begun(&mut text.lock().expect("one thread"));
    pair.handle.watch(Box::new(Memory { qlog, text: Arc::clone(&text) }));
    let stream = pair.request(2_000_000);
    pair.run(stream, Duration::from_mins(1)).expect("it arrives");
    pair.wait(Duration::from_secs(2));
    let seen = pair.handle.observe().expect("a connection");
    drop(pair);
    let text = text.lock().expect("one thread");
    // RFC 7464: each record between RS and LF.
    let records = text.split_terminator('\n').map(|line| {
        let json = line.strip_prefix('\u{1e}').expect("a record");
        serde_json::from_str(json).expect("JSON")
    });
    (records.collect(), seen)
}

fn named<'a>(events: &'a [Value], name: &str) -> Vec<&'a Value> {
    events.iter().filter(|event| event["name"] == name).map(|event| &event["data"]).collect()
}

fn number(value: &Value) -> u64 {
    value.as_u64().unwrap_or_else(|| panic!("{value}"))
}

fn lossy(cc: &str) -> Spec {
    Spec { is_lost: Arc::new(|n| n == 300 || n == 700), ..Spec::new(cc, 20, 40) }
}

#[test]
fn a_qlog_file_starts_with_a_valid_header() {
    let (records, _) = trace(lossy("cubic"));
    let head = &records[0];
    assert_eq!((&head["qlog_version"], &head["qlog_format"]), (&"0.3".into(), &"JSON-SEQ".into()));
    assert_eq!(head["trace"]["vantage_point"]["type"], "server");
    let common = &head["trace"]["common_fields"];
    assert_eq!(common["time_format"], "relative");
    assert_eq!(common["reference_time"], 1_800_000_000_000.5);
    assert_eq!(head["title"], "a _title_");
    let times: Vec<f64> = records[1..].iter().map(|it| it["time"].as_f64().expect("ms")).collect();
    assert!(times.is_sorted() && times[0] < 100.0 && times.last() > Some(&800.0), "{times:?}");
}

#[test]
fn each_packet_is_recorded_with_its_fate() {
    for cc in ["reno", "bbr3"] {
        let (events, seen) = trace(lossy(cc));
        let sent = named(&events, "transport:packet_sent");
        let bytes: u64 = sent.iter().map(|data| number(&data["raw"]["length"])).sum();
        assert_eq!(bytes, seen.sent_bytes, "{cc}");
        let lost = named(&events, "recovery:packet_lost");
        assert_eq!(lost.len() as u64, seen.lost_packets, "{cc}");
        assert!(seen.lost_packets >= 2, "{seen:?}");
        let of = |data: &Value, kind: &str| data["header"]["packet_type"] == kind;
        for kind in ["initial", "handshake", "1RTT"] {
            assert!(sent.iter().any(|data| of(data, kind)), "{cc}: {kind}");
        }
        // All packets are acknowledged except the lost ones.
        let acks = named(&events, "transport:packet_received");
        let is_acked = |packet: u64| {
            let frames = acks.iter().filter(|data| of(data, "1RTT"));
            let mut ranges = frames
                .flat_map(|data| data["frames"][0]["acked_ranges"].as_array().expect("ranges"));
            ranges.any(|range| (number(&range[0])..=number(&range[1])).contains(&packet))
        };
        let is_lost =
            |packet| lost.iter().any(|data| number(&data["header"]["packet_number"]) == packet);
        for data in sent.iter().filter(|data| of(data, "1RTT")) {
            let packet = number(&data["header"]["packet_number"]);
            assert_ne!(is_acked(packet), is_lost(packet), "{cc}: {packet}");
        }
    }
}

#[test]
fn the_controllers_state_can_be_followed() {
    let states = |cc| {
        let (events, _) = trace(lossy(cc));
        assert_eq!(named(&events, "uncork:controller_chosen")[0]["new"], cc);
        let states = named(&events, "recovery:congestion_state_updated");
        let states: Vec<_> =
            states.iter().map(|data| data["new"].as_str().expect("text").to_owned()).collect();
        (states, events)
    };
    let (reno, events) = states("reno");
    assert_eq!(reno[..3], ["slow_start", "recovery", "congestion_avoidance"]);
    let metrics = named(&events, "recovery:metrics_updated");
    let windows: Vec<u64> =
        metrics.iter().filter_map(|data| data.get("congestion_window")).map(number).collect();
    let largest = *windows.iter().max().expect("windows");
    let after = windows.iter().skip_while(|window| **window < largest);
    assert!(after.min().is_some_and(|least| least * 10 < largest * 6), "it halves: {windows:?}");
    let least = metrics.iter().filter_map(|data| data["min_rtt"].as_f64()).next_back();
    assert!(least.is_some_and(|ms| (40.0..42.0).contains(&ms)), "{least:?}");
    let (bbr, events) = states("bbr3");
    assert_eq!(bbr[..2], ["Startup", "Drain"]);
    let metrics = named(&events, "recovery:metrics_updated");
    let bw = metrics.iter().filter_map(|data| data["uncork_max_bw"].as_f64()).next_back();
    assert!(bw.is_some_and(|bits| (18e6..21e6).contains(&bits)), "{bw:?}");
    assert!(metrics.iter().any(|data| data["pacing_rate"].as_f64() > Some(20e6)));
}
