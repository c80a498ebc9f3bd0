//! A controller that something outside of the simulation decides for.

use std::fmt;

use uncork_cc::{
    AppState, CcSpec, Control, Controller, ControllerSpec, Either, Feedback, PathEvent, RttSample,
    SentPacket, Settings, Snapshot, Timeout, Token,
};
use uncork_sim::MSS_BYTES;
use uncork_units::{Rate, Time, TimeDelta};

/// The controller of a flow: steered, or one of the library's.
pub(crate) type FlowSpec = Either<SteeredSpec, CcSpec>;

/// What the host reported since the last decision.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Report {
    pub(crate) acked_bytes: u64,
    pub(crate) lost_bytes: u64,
    pub(crate) marked_packets: u32,
    pub(crate) timeouts: u32,
    /// Sum and number of RTT samples.
    pub(crate) rtts: (TimeDelta, u32),
    /// The latest sample of the connection.
    pub(crate) rtt: Option<RttSample>,
    /// Bytes in flight after the latest feedback.
    pub(crate) in_flight: u64,
}

/// Holds window and rate until the next decision.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Steered {
    control: Control,
    report: Report,
    /// Whether nothing is sent between a feedback and the decision about it.
    waits: bool,
    is_due: bool,
}

impl Steered {
    /// Whether a feedback has come since the last decision.
    pub(crate) fn is_due(&self) -> bool {
        self.is_due
    }

    /// Window and rate of the last decision.
    pub(crate) fn decided(&self) -> Control {
        self.control
    }

    /// What was reported since the last decision; a new report begins.
    pub(crate) fn take_report(&mut self) -> Report {
        let Report { rtt, in_flight, .. } = self.report;
        self.is_due = false;
        std::mem::replace(&mut self.report, Report { rtt, in_flight, ..Report::default() })
    }

    /// Sends with this window, of two packets at least, and at this rate from now on.
    pub(crate) fn decide(&mut self, window: u64, rate: Option<Rate>) {
        let control = Control::new(window.max(2 * u64::from(MSS_BYTES)));
        self.control = match rate {
            Some(rate) => control.with_pacing(rate, 2 * u64::from(MSS_BYTES)),
            None => control,
        };
    }
}

impl Controller for Steered {
    fn on_sent(&mut self, now: Time, _: SentPacket, _: AppState) -> Token {
        Token::from_words([now.as_nanos(), 0, 0, 0, 0, 0])
    }

    fn on_feedback(&mut self, _: Time, feedback: &Feedback<'_>) {
        let report = &mut self.report;
        report.acked_bytes += feedback.acked_bytes();
        report.lost_bytes += feedback.lost_bytes();
        report.marked_packets += feedback.ce_packets;
        report.in_flight = feedback.in_flight;
        if let Some(rtt) = feedback.rtt {
            report.rtt = Some(rtt);
            report.rtts = (report.rtts.0 + rtt.latest, report.rtts.1 + 1);
        }
        self.is_due = true;
    }

    fn on_timeout(&mut self, _: Time, timeout: Timeout) {
        self.report.timeouts += u32::from(timeout == Timeout::Retransmission);
    }

    fn on_path(&mut self, _: Time, _: PathEvent) {}

    fn control(&self) -> Control {
        let mut control = self.control;
        if self.waits && self.is_due {
            control.cwnd = 0;
        }
        control
    }

    fn snapshot(&self) -> Snapshot {
        Snapshot::of_state("Steered")
    }
}

/// Builds [`Steered`] with the initial window.
#[derive(Clone, Copy, Debug)]
pub(crate) struct SteeredSpec {
    /// Whether each feedback waits for a decision.
    pub(crate) waits: bool,
}

impl ControllerSpec for SteeredSpec {
    type Controller = Steered;

    fn name(&self) -> impl fmt::Display {
        "steered"
    }

    fn build(&self, settings: &Settings) -> Steered {
        let control = Control::new(settings.initial_window);
        Steered { control, report: Report::default(), waits: self.waits, is_due: false }
    }
}
