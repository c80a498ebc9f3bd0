//! The record of a flow.

use uncork_apps::ClientReport;
use uncork_flow::{FlowRecord, LabRecord, SeriesPoint, StartRecord};
use uncork_quic::{ConnectionStart, Observation};
use uncork_sim::RunSpec;
use uncork_units::{Rate, Time, TimeDelta};

use crate::flow::QuicFlow;

/// The record of the flow with this index. `flow` is `None` if it never started.
pub(crate) fn record(
    run: &RunSpec,
    index: u32,
    flow: Option<&QuicFlow<'_>>,
    report: Option<&ClientReport>,
) -> FlowRecord {
    let unplayed = run.unplayed(index, "quic-sim");
    let Some(flow) = flow else { return unplayed };
    let since_start = |time: Option<Time>| time.map(|time| time.since(flow.spec.start).as_nanos());
    let (seen, counts, sent) = (flow.client.seen, flow.counts, flow.observe());
    let of_sent = |field: fn(&Observation) -> u64| sent.as_ref().map_or(0, field);
    FlowRecord {
        completion_ns: since_start(seen.complete.filter(|_| flow.spec.completes())),
        first_byte_ns: since_start(seen.first_byte),
        busy_ns: flow.busy.as_nanos(),
        bytes_delivered: seen.bytes,
        bytes_acked: flow.acked(),
        bytes_sent: of_sent(|sent| sent.sent_bytes),
        bytes_retransmitted: of_sent(|sent| sent.lost_bytes),
        packets_sent: counts.sent,
        packets_lost: of_sent(|sent| sent.lost_packets),
        packets_marked: counts.marked,
        rtt_ms: flow.rtts.quantiles(),
        lab: Some(LabRecord {
            bytes_delivered_early: seen.early,
            packets_dropped_queue: counts.dropped_queue,
            packets_dropped_policer: counts.dropped_policer,
            packets_dropped_random: counts.dropped_random,
            acks_dropped: counts.acks_dropped,
            queue_ms: flow.queueing.quantiles(),
            queue_p99_ms: flow.queueing.p99_ms(),
        }),
        playback: report.and_then(ClientReport::playback_record),
        start: sent.as_ref().and_then(|sent| sent.start).map(|it| Box::new(start(&it))),
        ..unplayed
    }
}

/// The stack paces all that it sends (RFC 9002 §7.7).
fn start(start: &ConnectionStart) -> StartRecord {
    StartRecord {
        window_bytes: Some(start.initial_window),
        paced: Some(true),
        ..StartRecord::of(&start.report)
    }
}

/// The state of a flow at one instant.
pub(crate) fn point(now: Time, index: u32, flow: &QuicFlow<'_>, queue: u64) -> Option<SeriesPoint> {
    let Observation { control, snapshot, rtt, in_flight, lost_bytes, .. } = flow.observe()?;
    let min_rtt = snapshot.min_rtt.or(rtt.map(|rtt| rtt.min));
    Some(SeriesPoint {
        time_ns: now.as_nanos(),
        flow: index,
        state: snapshot.state,
        cwnd_bytes: control.cwnd,
        inflight_bytes: in_flight,
        pacing_bps: control.pacing_rate.map(Rate::bits_per_sec),
        max_bw_bps: snapshot.max_bw.map(Rate::bits_per_sec),
        min_rtt_ns: min_rtt.map(TimeDelta::as_nanos),
        rtt_ns: rtt.map(|rtt| rtt.latest.as_nanos()),
        queue_bytes: queue,
        delivered_bytes: flow.client.seen.bytes,
        lost_bytes,
    })
}
