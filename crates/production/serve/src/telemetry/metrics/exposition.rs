//! The metrics for Prometheus: OpenMetrics 1.0.

use std::fmt;
use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::time::{SystemTime, UNIX_EPOCH};

use prometheus_client::collector::Collector;
use prometheus_client::encoding::text::encode;
use prometheus_client::encoding::{DescriptorEncoder, MetricEncoder, NoLabelSet};
use prometheus_client::metrics::MetricType;
use prometheus_client::registry::{Registry, Unit};
use smol_str::SmolStr;

use super::buckets::SharedBuckets;
use super::series::{CLASSES, Series, read};
use super::{MetricKey, Metrics, locked};

/// The content type of the metrics.
pub(crate) const CONTENT_TYPE: &str = "application/openmetrics-text; version=1.0.0; charset=utf-8";

type Counted = (&'static str, &'static str, Option<Unit>, fn(&Series) -> u64);
type BucketMetric = (&'static str, &'static str, Option<Unit>, fn(&Series) -> &SharedBuckets);

const COUNTERS: [Counted; 10] = [
    ("connections", "Ended connections", None, |it| read(&it.connections)),
    ("broken_off_responses", "Aborted responses", None, |it| read(&it.broken_off)),
    (
        "acknowledged",
        "Payload acknowledged by clients, open connections included",
        Some(Unit::Bytes),
        |it| read(&it.bytes_acked),
    ),
    ("sent", "Payload sent, retransmissions included", Some(Unit::Bytes), |it| {
        read(&it.bytes_sent)
    }),
    ("retransmitted", "Payload retransmitted", Some(Unit::Bytes), |it| {
        read(&it.bytes_retransmitted)
    }),
    ("sent_packets", "Data packets sent, retransmissions included", None, |it| {
        read(&it.packets_sent)
    }),
    ("lost_packets", "Packets declared lost", None, |it| read(&it.packets_lost)),
    ("marked_packets", "Packets that arrived with CE (ECN)", None, |it| read(&it.packets_marked)),
    (
        "ecn_failed_connections",
        "Ended QUIC connections with missing or wrong ECN counts (RFC 9000 §13.4.2)",
        None,
        |it| read(&it.ecn_failures),
    ),
    ("timeouts", "Retransmission timeouts", None, |it| read(&it.timeouts)),
];

const HISTOGRAMS: [BucketMetric; 4] = [
    (
        "goodput_bytes_per_second",
        "Bytes acknowledged per second of busy time, of responses of at least 100 kB",
        None,
        |it| &it.goodput,
    ),
    (
        "first_byte",
        "Time from a request's head to the first byte of its response",
        Some(Unit::Seconds),
        |it| &it.first_byte,
    ),
    (
        "min_rtt",
        "Minimum round-trip time of the connection, at the end of each response",
        Some(Unit::Seconds),
        |it| &it.min_rtt,
    ),
    (
        "rtt_ratio",
        "Smoothed round-trip time divided by the connection's minimum, at most every 100 ms while a response is sent",
        None,
        |it| &it.rtt_ratio,
    ),
];

impl Metrics {
    /// All metrics as text.
    pub(crate) fn exposition(self: &Arc<Self>) -> Result<String, fmt::Error> {
        let mut registry = Registry::with_prefix("uncork_serve");
        registry.register_collector(Box::new(Arc::clone(self)));
        let mut text = String::new();
        encode(&mut text, &registry)?;
        Ok(text)
    }
}

impl Collector for Metrics {
    fn encode(&self, mut out: DescriptorEncoder<'_>) -> fmt::Result {
        let all = self.all();
        let help = "Open connections";
        let mut family =
            out.encode_descriptor("open_connections", help, None, MetricType::Gauge)?;
        for (key, series) in &all {
            let open = series.open.load(Ordering::Relaxed);
            family.encode_family(&key.labels())?.encode_gauge(&open)?;
        }
        responses(&mut out, &all)?;
        for (name, help, unit, count) in &COUNTERS {
            let kind = MetricType::Counter;
            let mut family = out.encode_descriptor(name, help, unit.as_ref(), kind)?;
            for (key, series) in &all {
                counter(&mut family.encode_family(&key.labels())?, count(series))?;
            }
        }
        for (name, help, unit, buckets) in &HISTOGRAMS {
            let kind = MetricType::Histogram;
            let mut family = out.encode_descriptor(name, help, unit.as_ref(), kind)?;
            for (key, series) in &all {
                let buckets = buckets(series).locked().clone();
                let edges: Vec<_> = buckets.edges().collect();
                let labels = key.labels();
                let mut metric = family.encode_family(&labels)?;
                let (sum, count) = (buckets.sum(), buckets.count());
                metric.encode_histogram::<NoLabelSet>(sum, count, &edges, None)?;
            }
        }
        self.encode_server(&mut out)
    }
}

impl Metrics {
    /// Metrics without series labels.
    fn encode_server(&self, out: &mut DescriptorEncoder<'_>) -> fmt::Result {
        let mut counters = |name, help, rows: Vec<(Vec<(&'static str, String)>, u64)>| {
            let mut family = out.encode_descriptor(name, help, None, MetricType::Counter)?;
            let count = |(labels, count): (Vec<_>, u64)| {
                counter(&mut family.encode_family(&labels)?, count)
            };
            rows.into_iter().try_for_each(count)
        };
        let assignments = locked(&self.assignments).clone().into_iter();
        let assigned = |((experiment, arm), count): ((SmolStr, SmolStr), u64)| {
            (vec![("experiment", experiment.into()), ("arm", arm.into())], count)
        };
        let help = "Connections assigned to an arm";
        counters("assignments", help, assignments.map(assigned).collect())?;
        let reloads = locked(&self.reloads).clone().into_iter();
        let reload = |((what, is_ok), count): ((&str, bool), u64)| {
            let result = if is_ok { "ok" } else { "failed" };
            (vec![("what", what.to_owned()), ("result", result.to_owned())], count)
        };
        counters(
            "reloads",
            "Reloads of configuration, policy, databases, certificate and keys",
            reloads.map(reload).collect(),
        )?;
        let refused = locked(&self.refused_heads).clone().into_iter();
        let refused = refused.map(|(listener, count)| (vec![("listener", listener.into())], count));
        let help =
            "Requests of HTTP/1.1 with a head that is invalid or too large: status 400, 414 or 431";
        counters("refused_heads", help, refused.collect())?;
        if let Some(records) = &self.records {
            let summary = records.summary();
            let rows = [("written", summary.written), ("lost", summary.lost)];
            let row = |(result, count): (&str, u64)| (vec![("result", result.to_owned())], count);
            counters("records", "Records written or lost", rows.map(row).into())?;
        }
        let version = [("version", env!("CARGO_PKG_VERSION"))];
        info(out, "build", "Version of the program", &version)?;
        gauge(out, "start_time", "Start of the server, as Unix time", unix(self.started))?;
        if let Some(policy) = locked(&self.policy).clone() {
            let fingerprint = [("fingerprint", policy.fingerprint.as_str())];
            info(out, "policy", "Fingerprint of the active policy", &fingerprint)?;
            gauge(
                out,
                "policy_start_time",
                "Activation of the policy, as Unix time",
                unix(policy.since),
            )?;
        }
        Ok(())
    }
}

fn responses(out: &mut DescriptorEncoder<'_>, all: &[(MetricKey, Arc<Series>)]) -> fmt::Result {
    let help = "Ended responses, by the first digit of the status";
    let mut family = out.encode_descriptor("responses", help, None, MetricType::Counter)?;
    for (key, series) in all {
        for (class, count) in CLASSES.into_iter().zip(&series.responses) {
            let labels = (key.labels(), [("class", class)]);
            counter(&mut family.encode_family(&labels)?, read(count))?;
        }
    }
    Ok(())
}

fn counter(metric: &mut MetricEncoder<'_>, count: u64) -> fmt::Result {
    metric.encode_counter::<NoLabelSet, u64, u64>(&count, None)
}

fn info(
    out: &mut DescriptorEncoder<'_>,
    name: &str,
    help: &str,
    labels: &[(&'static str, &str)],
) -> fmt::Result {
    out.encode_descriptor(name, help, None, MetricType::Info)?.encode_info(&labels)
}

fn gauge(out: &mut DescriptorEncoder<'_>, name: &str, help: &str, value: f64) -> fmt::Result {
    let kind = MetricType::Gauge;
    out.encode_descriptor(name, help, Some(&Unit::Seconds), kind)?.encode_gauge(&value)
}

fn unix(time: SystemTime) -> f64 {
    time.duration_since(UNIX_EPOCH).unwrap_or_default().as_secs_f64()
}
