//! The metrics for Prometheus: OpenMetrics 1.0. No label contains an address. [`Label`] bounds the
//! number of series.

use std::collections::BTreeMap;
use std::fmt;

use prometheus_client::collector::Collector;
use prometheus_client::encoding::text::encode;
use prometheus_client::encoding::{DescriptorEncoder, MetricEncoder, NoLabelSet};
use prometheus_client::metrics::MetricType;
use prometheus_client::registry::{Registry, Unit};
use uncork_diag::CcName;
use uncork_flow::Buckets;
use uncork_units::TimeDelta;

use crate::policy_choice::PolicyChoice;
use crate::totals::{Label, Sums, Totals};
use crate::tracker::Tracker;
use crate::why::Limit;

/// The content type of the metrics.
pub const METRICS_TYPE: &str = "application/openmetrics-text; version=1.0.0; charset=utf-8";

type SumsCounter = (&'static str, &'static str, Option<Unit>, fn(&Sums) -> u64);

const COUNTERS: [SumsCounter; 8] = [
    ("ended_connections", "Ended connections", None, |it| it.ended),
    ("acknowledged", "Payload acknowledged", Some(Unit::Bytes), |it| it.figures.bytes_acked),
    ("sent", "Payload sent, retransmissions included", Some(Unit::Bytes), |it| {
        it.figures.bytes_sent
    }),
    ("retransmitted", "Payload retransmitted", Some(Unit::Bytes), |it| {
        it.figures.bytes_retransmitted
    }),
    ("sent_packets", "Data packets sent, retransmissions included", None, |it| {
        it.figures.packets_sent
    }),
    ("lost_packets", "Packets retransmitted", None, |it| it.figures.packets_lost),
    ("marked_packets", "Packets that arrived with CE (ECN)", None, |it| it.figures.packets_marked),
    ("timeouts", "Retransmission timeouts", None, |it| it.figures.timeouts),
];

type Spread = (&'static str, &'static str, Option<Unit>, fn(&Sums) -> &Buckets);

/// Values of connections that sent something, one at each pass.
const HISTOGRAMS: [Spread; 4] = [
    ("rtt", "Smoothed round-trip time", Some(Unit::Seconds), |it| &it.rtt),
    (
        "queue_delay",
        "Smoothed round-trip time minus the connection's minimum",
        Some(Unit::Seconds),
        |it| &it.queue_delay,
    ),
    ("rtt_ratio", "Smoothed round-trip time divided by the connection's minimum", None, |it| {
        &it.rtt_ratio
    }),
    ("pacing_rate_bytes_per_second", "Pacing rate", None, |it| &it.pacing_rate),
];

/// The counters that a pass leaves for Prometheus.
#[derive(Debug)]
struct MetricsSnapshot {
    totals: Totals,
    connections: BTreeMap<Label, u64>,
    steered: BTreeMap<PolicyChoice, i64>,
    passes: u64,
    unseen: u64,
    lost_close_events: u64,
    default_cc: Option<String>,
}

/// All metrics as text. `default_cc` is the controller that new connections get, if it is known.
///
/// # Errors
///
/// Writing to a string cannot fail.
pub fn metrics(tracker: &Tracker, default_cc: Option<String>) -> Result<String, fmt::Error> {
    let totals = tracker.totals().clone();
    let (mut connections, mut steered) = (BTreeMap::new(), BTreeMap::new());
    for tracked in tracker.connections() {
        *connections.entry(totals.label(&tracked.now, tracked.now.cc)).or_default() += 1;
        if let Some(given) = tracked.now.given {
            *steered.entry(totals.given(given)).or_default() += 1;
        }
    }
    let mut registry = Registry::with_prefix("uncork_watch");
    let snapshot = MetricsSnapshot {
        totals,
        connections,
        steered,
        passes: tracker.passes(),
        unseen: tracker.unseen_connections(),
        lost_close_events: tracker.lost_close_events(),
        default_cc,
    };
    registry.register_collector(Box::new(snapshot));
    let mut text = String::new();
    encode(&mut text, &registry)?;
    Ok(text)
}

impl Collector for MetricsSnapshot {
    fn encode(&self, mut out: DescriptorEncoder<'_>) -> fmt::Result {
        for (name, help, count) in [
            ("passes", "Passes over all sockets", self.passes),
            (
                "unseen_connections",
                "Ended connections that no pass saw: their controller is unknown",
                self.unseen,
            ),
            (
                "lost_close_events",
                "Losses of the kernel's events about ended connections",
                self.lost_close_events,
            ),
        ] {
            let family = out.encode_descriptor(name, help, None, MetricType::Counter)?;
            counter(family, count)?;
        }
        let help = "Open connections";
        let mut family = out.encode_descriptor("connections", help, None, MetricType::Gauge)?;
        for (label, count) in &self.connections {
            let count = count.cast_signed();
            family.encode_family(&labels(label))?.encode_gauge(&count)?;
        }
        for (name, help, unit, count) in &COUNTERS {
            let kind = MetricType::Counter;
            let mut family = out.encode_descriptor(name, help, unit.as_ref(), kind)?;
            for (label, sums) in self.totals.series() {
                counter(family.encode_family(&labels(label))?, count(sums))?;
            }
        }
        for (name, help, unit, buckets) in &HISTOGRAMS {
            let kind = MetricType::Histogram;
            let mut family = out.encode_descriptor(name, help, unit.as_ref(), kind)?;
            for (label, sums) in self.totals.series() {
                let buckets = buckets(sums);
                let edges: Vec<_> = buckets.edges().collect();
                let labels = labels(label);
                let mut metric = family.encode_family(&labels)?;
                let (sum, count) = (buckets.sum(), buckets.count());
                metric.encode_histogram::<NoLabelSet>(sum, count, &edges, None)?;
            }
        }
        self.encode_steered(&mut out)?;
        self.encode_default(&mut out)?;
        self.encode_limits(&mut out)
    }
}

impl MetricsSnapshot {
    /// Connections under a policy of `uncork steer`: the same counters by rule and arm. Absent without a policy.
    fn encode_steered(&self, out: &mut DescriptorEncoder<'_>) -> fmt::Result {
        if self.steered.is_empty() && self.totals.steered().next().is_none() {
            return Ok(());
        }
        let labels = |given: &PolicyChoice| {
            let arm = given.arm.map(|arm| arm.to_string()).unwrap_or_default();
            [("rule", given.rule.to_string()), ("arm", arm)]
        };
        let help = "Open connections under a policy";
        let kind = MetricType::Gauge;
        let mut family = out.encode_descriptor("steered_connections", help, None, kind)?;
        for (given, count) in &self.steered {
            family.encode_family(&labels(given))?.encode_gauge(count)?;
        }
        for (name, help, unit, count) in &COUNTERS {
            let (name, help) = (format!("steered_{name}"), format!("{help}, under a policy"));
            let kind = MetricType::Counter;
            let mut family = out.encode_descriptor(&name, &help, unit.as_ref(), kind)?;
            for (given, sums) in self.totals.steered() {
                counter(family.encode_family(&labels(given))?, count(sums))?;
            }
        }
        Ok(())
    }

    fn encode_default(&self, out: &mut DescriptorEncoder<'_>) -> fmt::Result {
        let Some(cc) = &self.default_cc else { return Ok(()) };
        let help = "Controller of new connections (net.ipv4.tcp_congestion_control)";
        let mut family =
            out.encode_descriptor("default_controller", help, None, MetricType::Gauge)?;
        family.encode_family(&[("cc", cc.as_str())])?.encode_gauge(&1_i64)
    }

    fn encode_limits(&self, out: &mut DescriptorEncoder<'_>) -> fmt::Result {
        let help = "Time of connections that sent something, by limit";
        let kind = MetricType::Counter;
        let mut family = out.encode_descriptor("limited", help, Some(&Unit::Seconds), kind)?;
        for (label, sums) in self.totals.series() {
            for limit in Limit::ALL {
                let labels = (labels(label), [("by", limit.name())]);
                let seconds = TimeDelta::as_secs_f64(sums.limits.time(limit));
                let mut metric = family.encode_family(&labels)?;
                metric.encode_counter::<NoLabelSet, f64, u64>(&seconds, None)?;
            }
        }
        Ok(())
    }
}

fn labels(label: &Label) -> [(&'static str, String); 2] {
    let cc = label.cc.as_ref().map_or("other", CcName::as_str).to_owned();
    let port = label.port.map_or_else(|| "other".to_owned(), |port| port.to_string());
    [("cc", cc), ("port", port)]
}

fn counter(mut metric: MetricEncoder<'_>, count: u64) -> fmt::Result {
    metric.encode_counter::<NoLabelSet, u64, u64>(&count, None)
}
