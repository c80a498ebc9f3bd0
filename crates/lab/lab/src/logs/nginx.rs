//! nginx: responses, with the kernel's smoothed round-trip time at their end.

use std::borrow::Cow;
use std::net::IpAddr;

use serde_json::Value;
use uncork_flow::LARGE_BYTES;

use super::{LogSamples, Sample, positive};

/// A line of either format.
struct NginxLine<'a> {
    client: &'a str,
    bytes: &'a str,
    seconds: &'a str,
    rtt_us: &'a str,
    /// `None`: the format does not have it.
    is_complete: Option<bool>,
}

pub(super) fn read(text: &str, found: &mut LogSamples) {
    found.is_of_responses = true;
    for line in text.lines().filter(|line| !line.trim().is_empty()) {
        let read = if line.starts_with('{') {
            serde_json::from_str(line).ok().and_then(|json: Value| of_json(&json, found))
        } else {
            of_fields(line).and_then(|line| of_line(&line, found))
        };
        if read.is_none() {
            found.note("lines are not of the documented log_format");
        }
    }
}

fn of_json(json: &Value, found: &mut LogSamples) -> Option<()> {
    // With and without quotes around the variable.
    let text = |key: &str| match &json[key] {
        Value::String(text) => Some(Cow::from(text)),
        Value::Number(number) => Some(Cow::from(number.to_string())),
        _ => None,
    };
    let bytes = text("body_bytes_sent")?;
    let length = text("content_length").and_then(|it| it.parse::<f64>().ok());
    let sent = bytes.parse::<f64>().ok();
    let is_short = length.zip(sent).is_some_and(|(length, sent)| sent < length);
    let is_complete = text("completed").map(|completed| completed == "OK");
    let (client, seconds) = (text("remote_addr")?, text("request_time")?);
    let line = NginxLine {
        client: &client,
        bytes: &bytes,
        seconds: &seconds,
        rtt_us: &text("rtt").unwrap_or_default(),
        is_complete: if is_short { Some(false) } else { is_complete },
    };
    of_line(&line, found)
}

/// `$remote_addr $body_bytes_sent $request_time $tcpinfo_rtt …`.
fn of_fields(line: &str) -> Option<NginxLine<'_>> {
    let mut fields = line.split_whitespace();
    let (client, bytes) = (fields.next()?, fields.next()?);
    let (seconds, rtt_us) = (fields.next()?, fields.next()?);
    Some(NginxLine { client, bytes, seconds, rtt_us, is_complete: None })
}

/// `None`: values are not of the format.
fn of_line(line: &NginxLine<'_>, found: &mut LogSamples) -> Option<()> {
    let client: IpAddr = line.client.parse().ok()?;
    let bytes: f64 = line.bytes.parse().ok().filter(|it: &f64| it.is_finite() && *it >= 0.0)?;
    let seconds: f64 = line.seconds.parse().ok().filter(|it: &f64| it.is_finite())?;
    let rtt_ms = positive(line.rtt_us).map(|micros| micros / 1e3);
    if rtt_ms.is_none() {
        found.note("responses have no RTT, as of HTTP/3");
    }
    let rate = rate(bytes, seconds, line.is_complete, found);
    if rate.is_some() || rtt_ms.is_some() {
        let sample = Sample { rtt_ms, rate_bps: rate, ..Sample::default() };
        found.add(client.to_canonical().to_string(), sample);
    }
    Some(())
}

fn rate(
    bytes: f64,
    seconds: f64,
    is_complete: Option<bool>,
    found: &mut LogSamples,
) -> Option<f64> {
    if bytes < LARGE_BYTES as f64 {
        found.note("responses are too short for a rate: less than 3 MB");
    } else if is_complete == Some(false) {
        found.note("responses were aborted");
    } else if seconds <= 0.0 {
        found.note("responses took 0 s: the kernel had room for all of them");
    } else {
        if is_complete.is_none() {
            found
                .note("responses may have been aborted: the log_format has no $request_completion");
        }
        return Some(bytes * 8.0 / seconds);
    }
    None
}
