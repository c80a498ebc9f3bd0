//! The record of a flow.

use std::collections::BTreeSet;

use uncork_apps::ClientReport;
use uncork_emu::{FlowQueueing, Report};
use uncork_flow::{Distribution, FlowRecord, LabRecord};
use uncork_sim::RunSpec;
use uncork_units::Time;

use crate::client::ReceivedData;
use crate::kernel::Controllers;
use crate::watch::Sent;

/// The record of the flow with index `index`, from its client's measurements and the kernel's
/// statistics of its server.
pub(crate) fn flow(
    run: &RunSpec,
    controllers: Controllers,
    index: u32,
    (received, report): (&ReceivedData, Option<&ClientReport>),
    sent: &Sent,
) -> FlowRecord {
    let spec = &run.flows[index as usize];
    let is_command = run.command_of(spec).is_some();
    let (delivered, early) = if is_command {
        (sent.received, sent.received_early)
    } else {
        (received.bytes, received.early)
    };
    let since_start = |time: Option<Time>| time.map(|time| time.since(spec.start).as_nanos());
    let record = FlowRecord {
        completion_ns: since_start(received.complete.filter(|_| spec.completes())),
        first_byte_ns: since_start(received.first_byte),
        bytes_delivered: delivered,
        lab: Some(LabRecord { bytes_delivered_early: early, ..LabRecord::default() }),
        rtt_ms: sent.rtts.quantiles(),
        playback: report.and_then(ClientReport::playback_record),
        ..run.unplayed(index, controllers.engine())
    };
    sent.figures.fill(record)
}

/// Adds the path's drops to `flows`. If several clients share a host, drops are counted for the
/// first one, because their flow is unknown.
pub(crate) fn note_drops(flows: &mut [FlowRecord], host_of: &[usize], path: &Report) {
    let mut filled = BTreeSet::new();
    for (flow, host) in flows.iter_mut().zip(host_of) {
        let (Some(down), Some(up)) = (path.down.hosts.get(*host), path.up.hosts.get(*host)) else {
            continue;
        };
        if filled.insert(*host) {
            flow.lab = Some(LabRecord {
                packets_dropped_queue: down.queue,
                packets_dropped_policer: down.policer,
                packets_dropped_random: down.loss,
                acks_dropped: up.queue + up.policer + up.loss,
                ..flow.lab()
            });
        }
    }
}

/// Adds the queueing delays of the flows of `run`. Servers' ports start at `first_port`; programs
/// use any port and have a separate host.
pub(crate) fn note_queueing(
    flows: &mut [FlowRecord],
    run: &RunSpec,
    host_of: &[usize],
    first_port: u16,
    path: &Report,
) {
    let mut waits = vec![Distribution::new(); flows.len()];
    for FlowQueueing { flow, waited } in &path.queueing {
        let of_host = host_of.iter().position(|host| *host == flow.host as usize);
        let of_command = of_host.filter(|index| run.command_of(&run.flows[*index]).is_some());
        let of_port = || flow.server_port.checked_sub(first_port).map(usize::from);
        if let Some(sum) = of_command.or_else(of_port).and_then(|index| waits.get_mut(index)) {
            sum.merge(waited);
        }
    }
    for (record, waited) in flows.iter_mut().zip(waits) {
        record.lab = Some(LabRecord {
            queue_ms: waited.quantiles(),
            queue_p99_ms: waited.p99_ms(),
            ..record.lab()
        });
    }
}
