//! Tests of the records and metrics of QUIC connections and their responses.

use std::collections::BTreeSet;
use std::time::Duration;

use crate::common::{Client, Scratch, Served, connections, content, records};
use crate::talker::{Http3Client, body, get, request, run, secured};
use serde_json::Value;
use uncork_flow::{EcnUse, FlowRecord, Service};
use uncork_serve::{AdminAddress, AdminSpec, RecordsSpec, Server, ServerSpec};
use uncork_testkit::{pause_async, wait_for_async, wait_until_async};

const LENGTH: usize = 700_001;

fn site() -> (Scratch, ServerSpec) {
    let scratch = Scratch::new("serve");
    scratch.write("root/file.bin", content(LENGTH));
    let mut spec = secured(&scratch);
    spec.records = Some(RecordsSpec::new(scratch.path("records.jsonl")));
    (scratch, spec)
}

fn service(record: &FlowRecord) -> &Service {
    record.service.as_ref().expect("whom it served")
}

/// Waits until this many responses are recorded: a client acknowledges the last packet up to 25 ms
/// later.
async fn recorded(scratch: &Scratch, count: usize) {
    let records = scratch.path("records.jsonl");
    wait_until_async("the record of a response", Duration::from_mins(1), || {
        let text = std::fs::read_to_string(&records).unwrap_or_default();
        text.matches(r#""scope":"response""#).count() >= count
    })
    .await;
}

#[test]
fn records_contain_the_outcome_of_each_response() {
    let (scratch, mut spec) = site();
    scratch.write("root/large", content(50_000_000));
    spec.listeners[0].quic_cc = Some("bbr3".parse().expect("a controller"));
    let served = Served::new(&spec);
    let http3_client = Http3Client::new(&scratch, &served);
    run(async {
        let connection = http3_client.connect().await;
        for count in 1..=3 {
            get(&connection, "/file.bin", &[]).await.expect("a response");
            recorded(&scratch, count).await;
            pause_async(Duration::from_millis(200), "idle time, which is not busy time").await;
        }
        let given_up = connection.request(request("GET", "/large", &[])).await;
        drop(given_up.expect("a response"));
    });
    let summary = served.stop();
    assert_eq!((summary.written, summary.lost), (5, 0));
    for (index, record) in records(&scratch.path("records.jsonl")).iter().enumerate() {
        assert_eq!((record.engine.as_str(), record.cc.as_str()), ("serve", "bbr3"));
        if index == 3 {
            assert_eq!((record.size_bytes, record.completion_ns), (Some(50_000_000), None));
            assert!(record.bytes_delivered < 50_000_000, "{record:?}");
            continue;
        }
        assert_eq!(record.size_bytes, Some(LENGTH as u64));
        let service = service(record);
        assert_eq!((service.protocol.as_str(), service.status), ("h3", Some(200)));
        assert_eq!(service.host.as_deref(), Some("localhost"));
        assert_eq!(service.client.as_deref(), Some("127.0.0.0/24"));
        let (end, first) = (record.completion_ns, record.first_byte_ns);
        assert!(end > first && first.is_some() && record.busy_ns > 0, "{record:?}");
        assert_eq!(record.bytes_delivered, LENGTH as u64);
        // The overhead of frames, packets and acknowledgements is small.
        let overhead = record.bytes_acked as f64 / LENGTH as f64;
        assert!((1.0..1.1).contains(&overhead), "{record:?}");
        assert!(record.packets_sent >= LENGTH as u64 / 1452, "{record:?}");
        assert!(record.rtt_ms.is_some_and(|rtt| rtt.min > 0.0), "{record:?}");
        // The newest sample: on a busy machine it may be slower than the average.
        assert!(service.delivery_rate_bps > Some(0), "{record:?}");
        let limited =
            [service.rwnd_limited_ns, service.app_limited_ns].map(Option::unwrap_or_default);
        assert!(limited.iter().sum::<u64>() <= record.busy_ns, "{record:?}");
    }
    let connections = connections(&scratch.path("records.jsonl"));
    let all = &connections[0];
    assert_eq!((connections.len(), all.cc.as_str()), (1, "bbr3"));
    let of = service(all);
    assert_eq!((of.protocol.as_str(), of.responses, of.broken_off), ("h3", 4, 1));
    assert_eq!((of.host.as_deref(), of.status), (Some("localhost"), None));
    let responses = records(&scratch.path("records.jsonl"));
    let sum = |of: fn(&FlowRecord) -> u64| responses.iter().map(of).sum::<u64>();
    assert_eq!(all.bytes_delivered, sum(|it| it.bytes_delivered));
    // The responses came one after the other. The handshake and the traffic between them belong to
    // none.
    assert!(all.bytes_acked > sum(|it| it.bytes_acked), "{all:?}");
    let busy = all.busy_ns as f64 / sum(|it| it.busy_ns) as f64;
    assert!((0.99..1.01).contains(&busy), "{busy}");
    assert!(all.completion_ns > Some(600_000_000) && all.busy_ns < 600_000_000, "{all:?}");
    assert!(all.start_ns < responses[0].start_ns && all.first_byte_ns.is_some());
    assert!(all.packets_sent > sum(|it| it.packets_sent) && all.rtt_ms.is_some());
}

/// The client's window limits such a response, not the path.
#[test]
fn a_slow_client_is_seen_in_the_record() {
    let (scratch, spec) = site();
    scratch.write("root/large", content(10_000_000));
    let served = Served::new(&spec);
    let http3_client = Http3Client::new(&scratch, &served);
    run(async {
        let connection = http3_client.connect().await;
        let response = connection.request(request("GET", "/large", &[])).await;
        let mut body = response.expect("a response").into_body();
        while let Some(chunk) = body.next_chunk().await {
            chunk.expect("the rest");
            pause_async(Duration::from_millis(5), "a client that reads slowly").await;
        }
        let response = connection.request(request("GET", "/file.bin", &[])).await;
        crate::talker::body(response.expect("a response")).await.expect("a body");
        recorded(&scratch, 2).await;
    });
    served.stop();
    let responses = records(&scratch.path("records.jsonl"));
    let share = |record: &FlowRecord| {
        let limited = service(record).rwnd_limited_ns.expect("known");
        limited as f64 / record.busy_ns as f64
    };
    assert!(share(&responses[0]) > 0.5, "{}: {:?}", share(&responses[0]), responses[0]);
    assert!(share(&responses[1]) < 0.5, "{}: {:?}", share(&responses[1]), responses[1]);
    let all = connections(&scratch.path("records.jsonl"));
    let sum: Option<u64> = responses.iter().map(|it| service(it).rwnd_limited_ns).sum();
    assert!(service(&all[0]).rwnd_limited_ns >= sum, "{all:?}");
}

#[test]
fn idle_connections_have_records() {
    let (scratch, mut spec) = site();
    scratch.write("root/large", content(50_000_000));
    spec.limits.head_time = Duration::from_millis(300);
    spec.limits.idle_time = Duration::from_millis(600);
    spec.limits.stall_time = Duration::from_millis(900);
    let served = Served::new(&spec);
    let http3_client = Http3Client::new(&scratch, &served);
    run(async {
        let silent = http3_client.connect().await;
        silent.closed().await;
        let idle = http3_client.connect().await;
        get(&idle, "/file.bin", &[]).await.expect("a response");
        idle.closed().await;
        let stalled = http3_client.connect().await;
        let response = stalled.request(request("GET", "/large", &[])).await;
        stalled.closed().await;
        assert!(body(response.expect("a response")).await.is_err());
    });
    served.stop();
    let all = connections(&scratch.path("records.jsonl"));
    let connections: Vec<_> = all
        .iter()
        .map(|record| {
            let Service { protocol, responses, broken_off, .. } = service(record);
            (protocol.as_str(), *responses, *broken_off)
        })
        .collect();
    assert_eq!(connections, [("quic", 0, 0), ("h3", 1, 0), ("h3", 1, 1)]);
    for (record, at_least) in all.iter().zip([300, 600, 900]) {
        let took = record.completion_ns.expect("an end") / 1_000_000;
        // The timer may have begun a little before the record.
        assert!((at_least - 1..at_least + 2_000).contains(&took), "{took} ms: {record:?}");
    }
    let [_, stalled] = records(&scratch.path("records.jsonl")).try_into().expect("two responses");
    assert_eq!((stalled.flow, stalled.completion_ns), (2, None));
    assert!(stalled.bytes_delivered < 50_000_000, "{stalled:?}");
}

/// Failed handshakes do not count as connections.
#[test]
fn failed_handshakes_leave_no_record() {
    let (scratch, spec) = site();
    let served = Served::new(&spec);
    let http3_client = Http3Client::new(&scratch, &served);
    let other = Scratch::new("serve");
    secured(&other);
    run(async {
        let cc = ("cubic".parse().expect("a controller"), 1);
        let tls = crate::talker::tls(&other.path("chain.pem"));
        let refused =
            http3_client.client.connect(http3_client.address, "localhost", cc, &tls).await;
        assert!(refused.is_err());
    });
    assert_eq!(served.stop().written, 0);
}

fn admin_text(served: &Served, path: &str) -> String {
    let Some(AdminAddress::Tcp(admin_address)) = served.server.admin() else {
        panic!("no address")
    };
    let answer = Client::new(*admin_address)
        .ask(&admin_address.to_string(), "GET", path, "")
        .expect("an answer");
    String::from_utf8(answer.body).expect("text")
}

/// The status of the HTTP/3 series, once it satisfies `is_so`.
async fn series(served: &Served, what: &str, is_so: impl Fn(&Value) -> bool) -> Value {
    wait_for_async(what, Duration::from_mins(1), || {
        let status: Value =
            serde_json::from_str(&admin_text(served, "/status.json")).expect("JSON");
        let all = status["series"].as_array().expect("series");
        all.iter().find(|one| one["protocol"] == "h3" && is_so(one)).cloned()
    })
    .await
}

const POLICY: &str = r#"key = "000102030405060708090a0b0c0d0e0f"

[default]
quic = "reno"

[[rule]]
host = "localhost"
experiment = "may"

[experiment.may]
unit = "prefix"
share = "100%"
salt = "1"

[experiment.may.arm.all]
weight = 1
quic = "bbr3"
"#;

#[test]
fn an_open_connection_counts_for_its_arm() {
    let (scratch, mut spec) = site();
    scratch.write("root/large", content(30_000_000));
    scratch.write("policy.toml", POLICY);
    spec.policy = Some(scratch.path("policy.toml"));
    let address = "127.0.0.1:0".parse().expect("an address");
    spec.admin = Some(AdminSpec { address, anywhere: false });
    let served = Served::new(&spec);
    let http3_client = Http3Client::new(&scratch, &served);
    run(async {
        let connection = http3_client.connect().await;
        let response = connection.request(request("GET", "/large", &[])).await;
        let mut body = response.expect("a response").into_body();
        let first = body.next_chunk().await.expect("bytes").expect("bytes");
        // The client does not read it, so it does not end.
        let open = series(&served, "it moves", |it| it["bytes_acked"].as_u64() > Some(500_000));
        let open = open.await;
        assert_eq!((&open["open"], &open["connections"]), (&1.into(), &0.into()), "{open}");
        let labels = ["cc", "experiment", "arm"].map(|label| open[label].as_str().expect("text"));
        assert_eq!(labels, ["bbr3", "may", "all"]);
        // Bytes sent before the arm was known count for another series, although they may be
        // acknowledged later.
        let [sent, acked] = ["bytes_sent", "bytes_acked"].map(|key| open[key].as_u64());
        assert!(sent.map(|sent| sent + 10_000) >= acked, "{open}");
        let looks = open["rtt_ratio"].as_array().expect("counts");
        assert!(looks.iter().filter_map(Value::as_u64).sum::<u64>() > 0, "{open}");
        drop((first, body, connection));
        let over = series(&served, "it ends", |it| it["open"] == 0).await;
        assert_eq!((&over["connections"], &over["broken_off"]), (&1.into(), &1.into()), "{over}");
    });
    let metrics = admin_text(&served, "/metrics");
    let assigned = "uncork_serve_assignments_total{experiment=\"may\",arm=\"all\"} 1\n";
    assert!(metrics.contains(assigned), "{metrics}");
    served.stop();
    let all = connections(&scratch.path("records.jsonl"));
    let arm = all[0].choice.as_ref().and_then(|choice| choice.arm.as_ref()).expect("an arm");
    assert_eq!((arm.experiment.as_str(), arm.arm.as_str()), ("may", "all"));
    assert_eq!(all[0].group, "may/all");
}

/// Loopback marks nothing: what counts is the codepoint that arrives, and that its counts are believed.
#[test]
fn ecn_of_the_policy_is_sent_and_recorded() {
    for (settings, expected) in [
        ("quic = \"prague\"", EcnUse::L4s),
        ("quic = \"prague\"\necn = \"classic\"", EcnUse::Classic),
        ("quic = \"bbr3\"\necn = \"none\"", EcnUse::None),
        ("quic = \"cubic\"", EcnUse::Classic),
    ] {
        let (scratch, mut spec) = site();
        scratch.write("policy.toml", format!("[default]\n{settings}\n"));
        spec.policy = Some(scratch.path("policy.toml"));
        let served = Served::new(&spec);
        let http3_client = Http3Client::new(&scratch, &served);
        run(async {
            let connection = http3_client.connect().await;
            get(&connection, "/file.bin", &[]).await.expect("a response");
        });
        served.stop();
        let all = connections(&scratch.path("records.jsonl"));
        let service = all[0].service.as_ref().expect("a server's record");
        assert_eq!(service.ecn, Some(expected), "{settings}");
    }
}

/// The numbers of the 1-RTT packets that were sent, and that were acknowledged.
fn packets(records: &[Value]) -> (BTreeSet<u64>, BTreeSet<u64>) {
    let (mut sent, mut acked) = (BTreeSet::new(), BTreeSet::new());
    let number = |value: &Value| value.as_u64().expect("a number");
    for data in records.iter().map(|record| &record["data"]) {
        if data["header"]["packet_type"] != "1RTT" {
            continue;
        }
        if data["raw"].is_object() {
            sent.insert(number(&data["header"]["packet_number"]));
        }
        for range in data["frames"][0]["acked_ranges"].as_array().into_iter().flatten() {
            acked.extend(number(&range[0])..=number(&range[1]));
        }
    }
    (sent, acked)
}

/// Each connection has a file, and each record in it is valid JSON.
#[test]
fn qlog_of_each_connection_is_written() {
    let (scratch, mut spec) = site();
    spec.qlog = Some(scratch.path("traces/qlog"));
    let served = Served::new(&spec);
    let http3_client = Http3Client::new(&scratch, &served);
    run(async {
        for count in 1..=2 {
            let connection = http3_client.connect().await;
            get(&connection, "/file.bin", &[]).await.expect("a response");
            recorded(&scratch, count).await;
        }
    });
    assert_eq!(served.server.problem(), None);
    served.stop();
    let files = std::fs::read_dir(scratch.path("traces/qlog")).expect("made");
    let files: Vec<_> = files.map(|file| file.expect("a file").path()).collect();
    assert_eq!(files.len(), 2, "{files:?}");
    for path in files {
        assert_eq!(path.extension().and_then(|it| it.to_str()), Some("sqlog"), "{path:?}");
        let text = std::fs::read_to_string(path).expect("text");
        let records = text.split_terminator('\n').map(|line| {
            serde_json::from_str(line.strip_prefix('\u{1e}').expect("a record")).expect("JSON")
        });
        let records: Vec<Value> = records.collect();
        assert_eq!(records[0]["qlog_format"], "JSON-SEQ");
        let lengths = records.iter().filter_map(|it| it["data"]["raw"]["length"].as_u64());
        assert!(lengths.sum::<u64>() > LENGTH as u64);
        assert!(records[1]["time"].as_f64() < Some(1000.0), "since the connection began");
        // Every packet number is recorded, however many were acknowledged at once.
        let (sent, acked) = packets(&records);
        let missing = sent.difference(&acked).count();
        assert!(sent.len() > 450 && missing < 10, "{missing} of {}", sent.len());
    }
}

/// A rule on the host sets the initial window: the first request arrives early enough.
#[test]
fn the_first_request_chooses_the_window_to_begin_with() {
    let (scratch, mut spec) = site();
    scratch.write("root/little", "little");
    let policy = "[default]\nquic = \"cubic\"\n\
                  [[rule]]\nhost = \"localhost\"\nuse = { initial_window = \"60p\" }\n";
    scratch.write("policy.toml", policy);
    spec.policy = Some(scratch.path("policy.toml"));
    spec.qlog = Some(scratch.path("qlog"));
    let served = Served::new(&spec);
    let http3_client = Http3Client::new(&scratch, &served);
    run(async {
        let connection = http3_client.connect().await;
        get(&connection, "/little", &[]).await.expect("a response");
        recorded(&scratch, 1).await;
    });
    served.stop();
    let file = std::fs::read_dir(scratch.path("qlog")).expect("made").next().expect("a file");
    let text = std::fs::read_to_string(file.expect("a file").path()).expect("text");
    let records = text.lines().map(|line| serde_json::from_str(&line[1..]).expect("JSON"));
    let windows = |record: Value| record["data"]["congestion_window"].as_u64();
    let windows: Vec<u64> = records.filter_map(windows).collect();
    // In packets of the current size.
    let (first, last) = (windows[0], windows[windows.len() - 1]);
    assert!(first < 20_000 && (60 * 1200..=60 * 1452).contains(&last), "{windows:?}");
}

#[test]
fn qlog_that_cannot_be_written_is_an_error() {
    let (scratch, mut spec) = site();
    scratch.write("file", "");
    spec.qlog = Some(scratch.path("file/qlog"));
    let error = Server::start(&spec).map(drop).expect_err("no directory").to_string();
    assert!(error.starts_with("cannot write qlog into '"), "{error}");
    spec.qlog = Some(scratch.path("qlog"));
    spec.http3 = false;
    let error = Server::start(&spec).map(drop).expect_err("no HTTP/3");
    assert!(error.is_usage(), "{error}");
}

#[test]
fn the_start_of_a_connection_is_in_its_record_and_in_that_of_its_first_response() {
    let (scratch, mut spec) = site();
    scratch.write("policy.toml", "[default]\nquic = \"cubic\"\ninitial_window = \"32p\"\n");
    spec.policy = Some(scratch.path("policy.toml"));
    let served = Served::new(&spec);
    let http3_client = Http3Client::new(&scratch, &served);
    run(async {
        let connection = http3_client.connect().await;
        for count in 1..=2 {
            get(&connection, "/file.bin", &[]).await.expect("a response");
            recorded(&scratch, count).await;
        }
    });
    served.stop();
    let responses = records(&scratch.path("records.jsonl"));
    let connections = connections(&scratch.path("records.jsonl"));
    for record in [&responses[0], &connections[0]] {
        let start = record.start.as_deref().expect("a start");
        let window = start.window_bytes.expect("its window");
        assert!((32 * 1200..=32 * 1452).contains(&window), "{start:?}");
        assert!(start.rounds_to_100kb.is_some_and(|rounds| rounds >= 1), "{start:?}");
        assert!(start.early_sent_bytes > Some(2_000), "{start:?}");
        assert_eq!((start.resume, start.resume_age_ns), (None, None), "{start:?}");
    }
    assert_eq!(responses[1].start, None, "it found a connection that had started");
}

/// Over loopback round-trip times vary, so whether the window jumps is not known.
#[test]
fn a_connection_begins_with_what_an_earlier_one_of_its_network_observed() {
    for resume in [true, false] {
        let (scratch, mut spec) = site();
        scratch.write("root/large", content(30_000_000));
        let policy = format!("[default]\nquic = \"cubic\"\nresume = {resume}\n");
        scratch.write("policy.toml", policy);
        spec.policy = Some(scratch.path("policy.toml"));
        let served = Served::new(&spec);
        let http3_client = Http3Client::new(&scratch, &served);
        run(async {
            for (count, file) in [(1, "/large"), (2, "/large"), (3, "/large")] {
                let connection = http3_client.connect().await;
                get(&connection, file, &[]).await.expect("a response");
                recorded(&scratch, count).await;
                drop(connection);
                let connections = scratch.path("records.jsonl");
                wait_until_async("its end", Duration::from_mins(1), || {
                    let text = std::fs::read_to_string(&connections).unwrap_or_default();
                    text.matches(r#""scope":"connection""#).count() >= count
                })
                .await;
            }
        });
        served.stop();
        let starts = connections(&scratch.path("records.jsonl"));
        let starts: Vec<_> =
            starts.iter().map(|it| it.start.as_deref().expect("a start")).collect();
        let has = |index: usize| {
            let start = starts[index];
            assert_eq!(start.resume.is_some(), start.resume_age_ns.is_some(), "{start:?}");
            start.resume.is_some()
        };
        assert!(!has(0), "nothing was observed before");
        assert_eq!(has(1), resume, "{starts:?}");
    }
}
