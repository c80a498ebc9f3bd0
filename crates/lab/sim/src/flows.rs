//! All flows of a run: future, active and finished ones.

use uncork_cc::ControllerSpec;
use uncork_flow::{FlowRecord, RequestRecord, SeriesPoint};
use uncork_path::{Cause, DropSink, Packet};
use uncork_units::Time;

use crate::flow::{Downstream, Flow, Upstream};

/// Flows use memory only from their start until they have ended and settled, so that a hundred
/// thousand short flows can follow each other.
#[derive(Debug)]
pub(crate) struct Flows<'a, S: ControllerSpec> {
    slots: Vec<FlowSlot<'a, S>>,
}

#[derive(Debug)]
enum FlowSlot<'a, S: ControllerSpec> {
    ToCome,
    Live(Box<Flow<'a, S>>),
    Over(Box<FlowOutcome>),
}

/// The result of a flow.
#[derive(Debug)]
pub(crate) struct FlowOutcome {
    pub(crate) record: FlowRecord,
    pub(crate) requests: Vec<RequestRecord>,
    /// Its last state, until the series has it.
    last: Option<SeriesPoint>,
}

impl<'a, S: ControllerSpec> Flows<'a, S> {
    /// `count` future flows.
    pub(crate) fn new(count: usize) -> Self {
        let slots = std::iter::repeat_with(|| FlowSlot::ToCome).take(count).collect();
        Self { slots }
    }

    pub(crate) fn is_to_come(&self, index: u32) -> bool {
        matches!(self.slots.get(index as usize), Some(FlowSlot::ToCome))
    }

    pub(crate) fn is_over(&self, index: u32) -> bool {
        matches!(self.slots.get(index as usize), Some(FlowSlot::Over(_)))
    }

    /// Starts a flow.
    pub(crate) fn begin(&mut self, index: u32, flow: Flow<'a, S>) {
        self.slots[index as usize] = FlowSlot::Live(Box::new(flow));
    }

    /// A flow, if it is active.
    pub(crate) fn get(&self, index: u32) -> Option<&Flow<'a, S>> {
        match &self.slots[index as usize] {
            FlowSlot::Live(flow) => Some(flow),
            FlowSlot::ToCome | FlowSlot::Over(_) => None,
        }
    }

    /// A flow, if it is active.
    pub(crate) fn get_mut(&mut self, index: u32) -> Option<&mut Flow<'a, S>> {
        match &mut self.slots[index as usize] {
            FlowSlot::Live(flow) => Some(flow),
            FlowSlot::ToCome | FlowSlot::Over(_) => None,
        }
    }

    /// Reduces a flow to its outcome.
    pub(crate) fn end(&mut self, now: Time, index: u32) {
        if let Some(flow) = self.get(index) {
            self.slots[index as usize] = FlowSlot::Over(Box::new(FlowOutcome::of(flow, now)));
        }
    }

    /// A point of the series for each flow that has a connection, and a last one for each that had. Thousands
    /// of short flows would otherwise make the series, and the time it takes, grow with the square of the run.
    pub(crate) fn sample(
        &mut self,
        now: Time,
        queued_bytes: impl Fn(u32) -> u64,
    ) -> impl Iterator<Item = SeriesPoint> {
        (0..).zip(&mut self.slots).filter_map(move |(index, slot)| match slot {
            FlowSlot::ToCome => None,
            FlowSlot::Live(flow) => flow.sample(now, queued_bytes(index)),
            FlowSlot::Over(outcome) => outcome.last.take().map(|last| SeriesPoint {
                time_ns: now.as_nanos(),
                queue_bytes: queued_bytes(index),
                ..last
            }),
        })
    }

    /// The outcomes of all flows. `begin` creates the flows that have not started.
    pub(crate) fn into_outcomes(
        self,
        now: Time,
        begin: impl Fn(u32) -> Flow<'a, S>,
    ) -> impl Iterator<Item = FlowOutcome> {
        (0..).zip(self.slots).map(move |(index, slot)| match slot {
            FlowSlot::ToCome => FlowOutcome::of(&begin(index), now),
            FlowSlot::Live(flow) => FlowOutcome::of(&flow, now),
            FlowSlot::Over(outcome) => *outcome,
        })
    }
}

impl<S: ControllerSpec> DropSink<Downstream, Upstream> for Flows<'_, S> {
    fn down(&mut self, packet: Packet<Downstream>, cause: Cause) {
        if let Some(flow) = self.get_mut(packet.flow) {
            flow.note_drop(&packet.body, cause);
        }
    }

    fn up(&mut self, packet: Packet<Upstream>, _: Cause) {
        if let Some(flow) = self.get_mut(packet.flow) {
            flow.note_ack_drop();
        }
    }

    fn copied_down(&mut self, flow: u32) {
        if let Some(flow) = self.get_mut(flow) {
            flow.travelling += 1;
        }
    }
}

impl FlowOutcome {
    fn of(flow: &Flow<'_, impl ControllerSpec>, now: Time) -> Self {
        let report = flow.report(now);
        let requests = report.as_ref().map(|report| report.request_records(flow.index));
        Self {
            record: flow.record(report.as_ref()),
            requests: requests.unwrap_or_default(),
            last: flow.sample(now, 0),
        }
    }
}
