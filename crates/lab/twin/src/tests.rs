//! Twins of records that are made up: who has a line, and what is said of the others.

use uncork_cc::{Algorithm, CcSpec};
use uncork_flow::{FlowRecord, Quantiles, Scope, Service};
use uncork_testkit::assert_message;

use super::{NoTwin, Twin, TwinSpec};

const CONTROLLERS: [Algorithm; 2] = [Algorithm::Cubic, Algorithm::Bbr3];

fn spec(by_network: Option<usize>, only: Option<&str>) -> TwinSpec {
    TwinSpec {
        controllers: CONTROLLERS.map(CcSpec::new).to_vec(),
        clients: 20,
        by_network,
        only: only.map(ToOwned::to_owned),
    }
}

/// A response of 10 MB over a line of 20 Mbit/s and 40 ms, of `uncork serve`.
fn response(cc: &str, network: &str, asn: Option<u32>) -> FlowRecord {
    let service = Service {
        client: Some(network.into()),
        asn,
        rwnd_limited_ns: Some(0),
        app_limited_ns: Some(0),
        min_rtt_ns: Some(40_000_000),
        ..Service::blank(Scope::Response, 0, "h3", "main")
    };
    FlowRecord {
        busy_ns: 4_200_000_000,
        bytes_acked: 10_000_000,
        bytes_delivered: 10_000_000,
        packets_sent: 7_000,
        packets_lost: 35,
        rtt_ms: Some(Quantiles { min: 40.0, p50: 55.0, p95: 80.0 }),
        service: Some(service),
        ..FlowRecord::blank("serve", "main", cc, (0, 0))
    }
}

/// The same as `uncork steer record` has it.
fn connection(cc: &str, network: &str, asn: Option<u32>) -> FlowRecord {
    let mut record = response(cc, network, asn);
    let service = record.service.as_mut().expect("it has that part");
    service.scope = Scope::Connection;
    FlowRecord { engine: "watch".into(), ..record }
}

const NETWORKS: [&str; 2] = ["198.18.0.0/24", "2001:db8:7::/48"];

/// Ten records of each controller and network.
fn records(of: fn(&str, &str, Option<u32>) -> FlowRecord, ccs: [&str; 2]) -> Vec<FlowRecord> {
    let pairs = NETWORKS.iter().flat_map(|network| ccs.map(|cc| (cc, *network)));
    pairs.flat_map(|(cc, network)| vec![of(cc, network, Some(64_500)); 10]).collect()
}

/// The text below the head.
fn body(twin: &Twin) -> &str {
    twin.text.split_once("[run]").expect("a table").1
}

fn names(twin: &Twin) -> Vec<&str> {
    let lines = twin.text.lines();
    lines.filter_map(|line| line.strip_prefix("[path.")?.split(']').next()).collect()
}

#[test]
fn the_kernels_connections_make_the_same_twin_as_responses() {
    let of = |records: &[FlowRecord]| Twin::of(records, &spec(None, None)).expect("a twin");
    let served = of(&records(response, ["cubic", "bbr3"]));
    for ccs in [["cubic", "bbr"], ["reno", "uncork_bbr3"], ["uncork_cubic", "uncork_bbr1"]] {
        let kernels = of(&records(connection, ccs));
        assert_eq!(body(&kernels), body(&served), "{ccs:?}");
        assert!(kernels.text.contains("40 of 40 records are the kernel's"), "{}", kernels.text);
    }
    assert!(!served.text.contains("the kernel's"), "{}", served.text);
}

#[test]
fn connections_of_serve_are_not_counted_next_to_their_responses() {
    let mut all = records(response, ["cubic", "bbr3"]);
    let alone = Twin::of(&all, &spec(None, None)).expect("a twin");
    let served = |mut record: FlowRecord| {
        record.engine = "serve".into();
        record
    };
    all.extend(records(connection, ["cubic", "bbr3"]).into_iter().map(served));
    assert_eq!(Twin::of(&all, &spec(None, None)).expect("a twin"), alone);
}

#[test]
fn unknown_controllers_are_left_out_and_reported() {
    let mut all = records(connection, ["cubic", "bbr"]);
    let alone = Twin::of(&all, &spec(None, None)).expect("a twin");
    all.extend(records(connection, ["unknown", "vegas"]));
    let twin = Twin::of(&all, &spec(None, None)).expect("a twin");
    assert_eq!(twin.text, alone.text);
    let notes = ["unknown", "vegas"]
        .map(|name| format!("20 responses have a controller that no rule knows, {name:?}"));
    assert_eq!(twin.left_out, notes);
}

/// As on a server where BBR is the default.
#[test]
fn clients_that_have_all_bbr_have_no_line() {
    let all = vec![connection("bbr", NETWORKS[0], Some(64_500)); 20];
    assert_message!("all BBR", Twin::of(&all, &spec(None, None)).expect_err("no loss"));
}

/// Between two passes of the recorder: BBR's show the rate, CUBIC's nothing.
#[test]
fn connections_that_no_pass_saw_show_no_queue() {
    let unseen = |mut record: FlowRecord| {
        record.rtt_ms = None;
        record
    };
    let all: Vec<_> = records(connection, ["cubic", "bbr"]).into_iter().map(unseen).collect();
    assert_message!("all", Twin::of(&all, &spec(None, None)).expect_err("no queue was seen"));

    let mut some = records(connection, ["cubic", "bbr"]);
    some.extend(all);
    some.push(response("bbr", "198.18.9.0/24", Some(0)));
    let twin = Twin::of(&some, &spec(None, None)).expect("a twin");
    assert!(!twin.text.contains("as0]"), "AS 0 is none");
    assert!(
        twin.text.contains("[path.as64500]  # 60 responses, 40 show the rate"),
        "{}",
        twin.text
    );
    assert!(twin.text.contains("20 of BBR between two passes"), "{}", twin.text);
    assert_message!("some", twin.left_out.join("\n"));
}

/// With pauses, a slow disk or a small send buffer the rate says nothing of the path.
#[test]
fn records_that_the_server_limits_are_unusable() {
    let limited = |is_buffer: bool| {
        move |mut record: FlowRecord| {
            let busy = record.busy_ns;
            let service = record.service.as_mut().expect("it has that part");
            let limit = if is_buffer {
                &mut service.sndbuf_limited_ns
            } else {
                &mut service.app_limited_ns
            };
            *limit = Some(busy / 5);
            record
        }
    };
    let all = |of, is_buffer| {
        records(of, ["cubic", "bbr"]).into_iter().map(limited(is_buffer)).collect::<Vec<_>>()
    };
    assert_message!(
        "idle",
        Twin::of(&all(connection, false), &spec(None, None)).expect_err("no path")
    );
    for is_buffer in [false, true] {
        assert!(Twin::of(&all(response, is_buffer), &spec(None, None)).is_err());
    }
}

#[test]
fn networks_with_enough_responses_have_lines_in_addition_to_their_systems() {
    let mut all = records(response, ["cubic", "bbr3"]);
    all.push(response("cubic", "198.18.1.0/24", Some(64_500)));
    let by = |least| Twin::of(&all, &spec(Some(least), None)).expect("a twin");
    assert_eq!(names(&by(20)), ["as64500", "\"198.18.0.0/24\"", "\"2001:db8:7::/48\""]);
    assert_eq!(names(&by(21)), ["as64500"]);
    assert_message!("1", by(1).left_out.join("\n"));
    let [with, without] = [by(20), Twin::of(&all, &spec(None, None)).expect("a twin")];
    let line = |twin: &Twin| {
        body(twin).split("[path.").nth(1).map(|text| text.split("[flow").next().map(str::to_owned))
    };
    assert_eq!(line(&with), line(&without), "the system keeps all its records");
}

#[test]
fn one_system_or_network_may_have_the_twin_alone() {
    let all = records(response, ["cubic", "bbr3"]);
    for (only, name) in [("AS64500", "as64500"), (NETWORKS[1], "\"2001:db8:7::/48\"")] {
        let twin = Twin::of(&all, &spec(None, Some(only))).expect("a twin");
        assert_eq!(names(&twin), [name]);
    }
    let error = Twin::of(&all, &spec(None, Some("AS64501"))).expect_err("no response");
    assert_eq!(error, NoTwin::UnknownGroup("AS64501".into()));
}

#[test]
fn error_says_why_records_make_no_twin() {
    let error = |case: &str, records: &[FlowRecord], by| {
        assert_message!(case, Twin::of(records, &spec(by, None)).expect_err(case));
    };
    let small = FlowRecord { bytes_acked: 1_000, ..response("cubic", NETWORKS[0], Some(64_500)) };
    error("small", &[small], None);
    let nowhere = [response("bbr3", NETWORKS[0], None)];
    error("no AS", &nowhere, None);
    error("no AS, by network", &nowhere, Some(2));
    let mut mixed = records(response, ["cubic", "bbr3"]);
    mixed.extend(nowhere);
    let twin = Twin::of(&mixed, &spec(None, None)).expect("a twin");
    assert_message!("left out", twin.left_out.join("\n"));
    assert!(Twin::of(&mixed, &spec(Some(20), None)).expect("a twin").left_out.is_empty());
    error("few", &[response("cubic", NETWORKS[0], Some(64_500))], None);
    // A client that is not a network cannot name a line.
    let odd = vec![response("cubic", "\"]\n[run]", Some(64_500)); 30];
    assert_eq!(names(&Twin::of(&odd, &spec(Some(1), None)).expect("a twin")), ["as64500"]);
}

/// A download of 3.3 MB over 40 Mbit/s and 20 ms without random loss, of `uncork steer record`: half of CUBIC's did not have
/// a queue at most passes, and slow start overran the buffer of one product of rate and round-trip time.
fn download(cc: &str, mbit_s: f64, lost: u64, p50: f64) -> FlowRecord {
    let mut record = connection(cc, NETWORKS[0], Some(64_500));
    record.service.as_mut().expect("a service").min_rtt_ns = Some(20_000_000);
    FlowRecord {
        busy_ns: (3_300_000.0 * 8e3 / mbit_s) as u64,
        bytes_acked: 3_300_000,
        bytes_delivered: 3_300_000,
        packets_sent: 2_280 + lost,
        packets_lost: lost,
        rtt_ms: Some(Quantiles { min: 20.0, p50, p95: 40.0 }),
        ..record
    }
}

fn downloads(ccs: [(&str, f64, u64); 2]) -> Vec<FlowRecord> {
    let spread = |nth: u32| 1.0 + 0.01 * f64::from(nth);
    let of = |(cc, mbit_s, lost)| {
        (0..20).map(move |nth| {
            download(cc, mbit_s * spread(nth), lost, if nth < 10 { 22.0 } else { 30.0 })
        })
    };
    ccs.into_iter().flat_map(of).collect()
}

#[test]
fn losses_of_slow_start_are_not_of_the_path() {
    let all = downloads([("cubic", 28.0, 48), ("bbr", 30.0, 170)]);
    let twin = Twin::of(&all, &spec(None, None)).expect("a twin");
    assert!(twin.text.contains("10 lost packets"), "{}", twin.text);
    assert!(twin.text.contains("loss = \"0.000%\""), "{}", twin.text);
    let alone: Vec<_> = all.into_iter().filter(|record| record.cc == "cubic").collect();
    let twin = Twin::of(&alone, &spec(None, None)).expect("a twin");
    assert!(twin.text.contains("loss = \"0.000%\""), "{}", twin.text);
}

#[test]
fn losses_that_contradict_the_throughput_of_cubic_are_refused() {
    let all = downloads([("cubic", 28.0, 400), ("bbr", 30.0, 400)]);
    assert_message!("no loss", Twin::of(&all, &spec(None, None)).expect_err("no loss"));
}

/// Equal paths cannot have ten times the throughput with one of two controllers.
#[test]
fn lines_that_contradict_the_ratio_of_the_arms_are_refused() {
    let all = downloads([("cubic", 3.0, 0), ("bbr", 30.0, 0)]);
    assert_message!("no ratio", Twin::of(&all, &spec(None, None)).expect_err("no ratio"));
}

/// Access logs of another program count no packets.
#[test]
fn responses_without_counts_are_left_out() {
    let mut all = records(response, ["cubic", "bbr3"]);
    let alone = Twin::of(&all, &spec(None, None)).expect("a twin");
    all.push(FlowRecord { packets_sent: 0, ..response("cubic", NETWORKS[0], Some(64_500)) });
    let twin = Twin::of(&all, &spec(None, None)).expect("a twin");
    assert_eq!(twin.text, alone.text);
    assert_eq!(twin.left_out.len(), 1, "{:?}", twin.left_out);
}
