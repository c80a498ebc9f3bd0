//! `iperf3 -J`: one test. Only the sender knows round-trip times.

use serde_json::Value;

use super::{LogSamples, STANDING, Sample};

pub(super) fn read(text: &str, found: &mut LogSamples) -> Result<(), String> {
    let report: Value = serde_json::from_str(text).map_err(|error| {
        let option = if is_stream(text) { "-J, not --json-stream" } else { "-J" };
        format!("not the JSON of one iperf3 test: {error}; run iperf3 with {option}")
    })?;
    if let Some(error) = report["error"].as_str() {
        return Err(format!("the test failed: {error}"));
    }
    if report["start"]["test_start"]["protocol"] == "UDP" {
        return Err(
            "the test is of UDP, which shows no round-trip times; run iperf3 without -u".to_owned()
        );
    }
    // With `-R` the server sends.
    let of_server = &report["server_output_json"];
    let reports = [&report, of_server];
    let Some(sender) = reports.into_iter().find(|it| senders(it).next().is_some()) else {
        return Err(
            "no stream has the sender's round-trip times; run iperf3 -c without -R on the \
                    server, or with -R --get-server-output and a server that runs with -J"
                .to_owned(),
        );
    };
    if senders(sender).all(|it| number(it, "bits_per_second").is_none()) {
        return Err("the test carried no bytes; run it again".to_owned());
    }
    let streams = sender["end"]["streams"].as_array().map_or(0, Vec::len);
    for _ in senders(sender).count()..streams {
        found.note("streams have no round-trip times: this side received");
    }
    let sample = sample(sender, found);
    let host = &report["start"]["connecting_to"]["host"];
    let host = host.as_str().filter(|host| host.bytes().all(|byte| byte.is_ascii_graphic()));
    found.add(host.unwrap_or("all streams").to_owned(), sample);
    Ok(())
}

/// `--json-stream` writes a line for each event.
fn is_stream(text: &str) -> bool {
    let first = text.lines().next().and_then(|line| serde_json::from_str::<Value>(line).ok());
    first.is_some_and(|event| event.get("event").is_some())
}

/// The sending side of each stream with round-trip times. Where this side received, some versions write other numbers.
fn senders(report: &Value) -> impl Iterator<Item = &Value> {
    let streams = report["end"]["streams"].as_array().into_iter().flatten();
    let has_rtt = |it: &&Value| it["sender"] != false && number(it, "min_rtt").is_some();
    streams.map(|it| &it["sender"]).filter(has_rtt)
}

fn sample(report: &Value, found: &mut LogSamples) -> Sample {
    let of = |key: &'static str| senders(report).filter_map(move |it| number(it, key));
    let rate: f64 = of("bits_per_second").sum();
    let least = of("min_rtt").reduce(f64::min).unwrap_or_default();
    let mean = of("mean_rtt").sum::<f64>() / senders(report).count() as f64;
    let largest = of("max_rtt").reduce(f64::max).unwrap_or(least);
    let cc = report["end"]["sender_tcp_congestion"].as_str().unwrap_or_default();
    let is_bbr = cc.contains("bbr");
    if is_bbr {
        found.note("buffers are not shown: BBR does not fill them; run with -C cubic");
    }
    let is_link = is_bbr || mean > STANDING * least;
    if !is_link {
        found.note("rates are not the link's: there was no standing queue");
    }
    Sample {
        rtt_ms: Some(least / 1e3),
        rate_bps: is_link.then_some(rate),
        sent: None,
        buffer_bytes: (is_link && !is_bbr).then(|| rate / 8.0 * (largest - least) / 1e6),
    }
}

fn number(of: &Value, key: &str) -> Option<f64> {
    of[key].as_f64().filter(|value| *value > 0.0)
}
