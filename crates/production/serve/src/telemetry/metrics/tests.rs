//! Tests of the metrics, as read by Prometheus and the page.

use std::collections::BTreeSet;

use uncork_flow::{Arm, Choice, FlowRecord, Scope, Service, TransportFigures};
use uncork_testkit::{assert_generated, metrics_table};
use uncork_units::TimeDelta;

use super::*;

fn of(protocol: &'static str, cc: &str, arm: &str) -> MetricKey {
    let experiment = if arm.is_empty() { "" } else { "may" };
    MetricKey {
        listener: "[::1]:443".into(),
        protocol,
        cc: cc.into(),
        experiment: experiment.into(),
        arm: arm.into(),
    }
}

/// A record of a response or a connection.
fn record(flow: u32, scope: Scope) -> FlowRecord {
    let service = Service { responses: 1, ..Service::blank(scope, 0, "h1", "[::1]:1") };
    FlowRecord { service: Some(service), ..FlowRecord::blank("serve", "g", "bbr", (0, flow)) }
}

/// A response of 1 MB in half a second.
fn response(host: &str, client: &str) -> FlowRecord {
    let plain = record(1, Scope::Response);
    let service = Service {
        protocol: "h2".into(),
        listener: "[::1]:443".into(),
        host: Some(host.into()),
        client: Some(client.into()),
        status: Some(206),
        min_rtt_ns: Some(40_000_000),
        scope: Scope::Response,
        ..plain.service.clone().expect("a server's")
    };
    FlowRecord {
        cc: "bbr".into(),
        bytes_acked: 1_000_000,
        busy_ns: 500_000_000,
        first_byte_ns: Some(3_000_000),
        service: Some(service),
        choice: Some(Box::new(Choice {
            policy: "f".into(),
            rule: "1".into(),
            cc: Some("bbr".into()),
            arm: Some(Arm {
                experiment: "may".into(),
                arm: "b".into(),
                unit: 1,
                bucket: 1,
                propensity: 0.5,
            }),
        })),
        ..plain
    }
}

/// The value of a line of the metrics.
fn value(text: &str, name: &str) -> Option<f64> {
    let line = text.lines().find_map(|line| line.strip_prefix(name)?.strip_prefix(' '));
    line.map(|value| value.parse().expect("a number"))
}

const H2: &str = r#"{listener="[::1]:443",protocol="h2",cc="bbr",experiment="may",arm="b"}"#;

#[test]
fn a_response_is_counted_once_with_its_labels() {
    let metrics = Arc::new(Metrics::new(None));
    metrics.count(&Arc::new(response("a", "192.0.2.0/24")));
    let text = metrics.exposition().expect("text");
    let with = |name: &str, more: &str| {
        let labels = H2.replace('}', more) + "}";
        let labels =
            if more.contains("le=") { H2.replace('{', &format!("{{{more}")) } else { labels };
        value(&text, &format!("uncork_serve_{name}{labels}"))
    };
    assert_eq!(with("responses_total", ",class=\"2xx\""), Some(1.0), "{text}");
    assert_eq!(with("responses_total", ",class=\"4xx\""), Some(0.0));
    // 2 MB/s, in the bucket with that upper bound.
    assert_eq!(with("goodput_bytes_per_second_sum", ""), Some(2e6));
    assert_eq!(with("goodput_bytes_per_second_bucket", "le=\"1000000.0\","), Some(0.0));
    assert_eq!(with("goodput_bytes_per_second_bucket", "le=\"2000000.0\","), Some(1.0));
    assert_eq!(with("goodput_bytes_per_second_bucket", "le=\"+Inf\","), Some(1.0));
    assert_eq!(with("first_byte_seconds_sum", ""), Some(0.003));
    assert_eq!(with("min_rtt_seconds_sum", ""), Some(0.04));
    assert!(text.ends_with("# EOF\n"));
}

/// Short responses say nothing about the path.
#[test]
fn short_responses_have_no_rate() {
    let metrics = Arc::new(Metrics::new(None));
    metrics.count(&Arc::new(FlowRecord { bytes_acked: 99_999, ..response("a", "192.0.2.0/24") }));
    let text = metrics.exposition().expect("text");
    let count = format!("uncork_serve_goodput_bytes_per_second_count{H2}");
    assert_eq!(value(&text, &count), Some(0.0));
}

/// The lines without their values.
fn names(text: &str) -> BTreeSet<String> {
    text.lines().filter_map(|line| Some(line.rsplit_once(' ')?.0.to_owned())).collect()
}

#[test]
fn clients_and_hosts_create_no_series() {
    let metrics = Arc::new(Metrics::new(None));
    metrics.count(&Arc::new(response("a", "192.0.2.0/24")));
    let before = names(&metrics.exposition().expect("text"));
    for n in 0..10_000 {
        metrics.count(&Arc::new(response(
            &format!("host-{n}"),
            &format!("10.{}.{}.0/24", n / 256, n % 256),
        )));
    }
    let text = metrics.exposition().expect("text");
    assert_eq!(names(&text), before);
    let all = H2.replace('}', ",class=\"2xx\"}");
    assert_eq!(value(&text, &format!("uncork_serve_responses_total{all}")), Some(10_001.0));
    assert_eq!(metrics.status(false).recent().len(), RECENT);
}

/// Policies with ever new arms eventually share one series.
#[test]
fn the_number_of_series_is_bounded() {
    let metrics = Arc::new(Metrics::new(None));
    for n in 0..ROOM + 100 {
        metrics.series_of(&of("h2", "bbr", &format!("arm-{n}")));
    }
    assert_eq!(metrics.all().len(), ROOM + 1);
    assert!(metrics.all().iter().any(|(key, _)| *key == MetricKey::other()));
}

#[test]
fn an_open_connection_counts_for_its_current_labels() {
    let metrics = Arc::new(Metrics::new(None));
    let open = |protocol, cc, arm| {
        metrics.series_of(&of(protocol, cc, arm)).open.load(std::sync::atomic::Ordering::Relaxed)
    };
    let live = Live::open(&metrics, of("tls", "cubic", ""));
    assert_eq!(open("tls", "cubic", ""), 1);
    live.becomes(of("h2", "bbr", "b"));
    live.becomes(of("h2", "bbr", "b"));
    assert_eq!((open("tls", "cubic", ""), open("h2", "bbr", "b")), (0, 1));
    let figures = |bytes_acked| TransportFigures {
        bytes_acked,
        packets_lost: 3,
        packets_marked: 2,
        ..TransportFigures::default()
    };
    live.moved(&figures(1000));
    live.moved(&figures(1500));
    // A sample that arrives out of order must not decrease a counter.
    live.queues(TimeDelta::from_millis(60), TimeDelta::from_millis(40));
    live.queues(TimeDelta::from_millis(60), TimeDelta::ZERO);
    let text = metrics.exposition().expect("text");
    assert_eq!(value(&text, &format!("uncork_serve_acknowledged_bytes_total{H2}")), Some(1500.0));
    assert_eq!(value(&text, &format!("uncork_serve_lost_packets_total{H2}")), Some(3.0));
    assert_eq!(value(&text, &format!("uncork_serve_marked_packets_total{H2}")), Some(2.0));
    assert_eq!(value(&text, &format!("uncork_serve_rtt_ratio_sum{H2}")), Some(1.5));
    assert_eq!(value(&text, &format!("uncork_serve_rtt_ratio_count{H2}")), Some(1.0));
    let assigned = r#"uncork_serve_assignments_total{experiment="may",arm="b"}"#;
    assert_eq!(value(&text, assigned), Some(1.0));
    drop(live);
    assert_eq!(open("h2", "bbr", "b"), 0);
}

#[test]
fn server_metrics_are_exposed() {
    let metrics = Arc::new(Metrics::new(Some(Arc::default())));
    let text = metrics.exposition().expect("text");
    assert!(!text.contains("uncork_serve_policy"), "{text}");
    metrics.policy("0123456789abcdef");
    metrics.reloaded("policy", true);
    metrics.reloaded("policy", false);
    metrics.reloaded("policy", false);
    let text = metrics.exposition().expect("text");
    let version = env!("CARGO_PKG_VERSION");
    for (name, expected) in [
        (format!("build_info{{version=\"{version}\"}}"), 1.0),
        ("policy_info{fingerprint=\"0123456789abcdef\"}".to_owned(), 1.0),
        ("reloads_total{what=\"policy\",result=\"ok\"}".to_owned(), 1.0),
        ("reloads_total{what=\"policy\",result=\"failed\"}".to_owned(), 2.0),
        ("records_total{result=\"lost\"}".to_owned(), 0.0),
    ] {
        assert_eq!(value(&text, &format!("uncork_serve_{name}")), Some(expected), "{text}");
    }
    assert!(value(&text, "uncork_serve_policy_start_time_seconds") > Some(1.7e9));
}

#[test]
fn table_of_metrics_is_current() {
    let metrics = Arc::new(Metrics::new(Some(Arc::default())));
    metrics.assigned(&of("h2", "bbr", "b"));
    metrics.series_of(&of("h2", "bbr", "b"));
    metrics.policy("0123456789abcdef");
    metrics.reloaded("policy", true);
    metrics.refused_head("[::1]:443");
    let table = metrics_table(&metrics.exposition().expect("text"), "uncork_serve_");
    let page = concat!(env!("CARGO_MANIFEST_DIR"), "/../../../docs/reference/serve.md");
    let command = "UPDATE_DOCS=1 cargo test -p uncork-serve --lib metrics";
    assert_generated(page.as_ref(), "metrics", command, &table);
}

/// An operator may choose any name for an arm.
#[test]
fn labels_are_escaped() {
    let metrics = Arc::new(Metrics::new(None));
    metrics.series_of(&of("h1", "cubic", "a\"b\\c\nd"));
    let text = metrics.exposition().expect("text");
    assert!(text.contains(r#"arm="a\"b\\c\nd"} 0"#), "{text}");
}
