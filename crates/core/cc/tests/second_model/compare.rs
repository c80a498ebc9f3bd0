//! Feeds the controller and its second model the same events and compares them after each one.

use std::fmt::Write;

use uncork_cc::{
    Acked, AnyController, AppState, CcSpec, Control, Controller, Feedback, Lost, PathEvent,
    RttSample, SentPacket, Settings, Timeout, Token,
};
use uncork_units::Time;

use super::model::{Ack, Bbr, State};
use super::sampler::Packet;
use super::{BYTES, Switches};

/// A packet's state in both models.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Memory {
    pub(crate) token: Token,
    pub(crate) model: Packet,
    pub(crate) bytes: u32,
}

/// Contents of an ACK or a loss timer.
#[derive(Debug, Default)]
pub(crate) struct Report {
    pub(crate) acked: Vec<Memory>,
    /// Each with whether the packet before it was also lost.
    pub(crate) lost: Vec<(Memory, bool)>,
    pub(crate) rtt: Option<RttSample>,
    pub(crate) ce_packets: u32,
    pub(crate) in_flight: u64,
    pub(crate) unacked: u64,
    pub(crate) una_advanced: bool,
    pub(crate) oldest_sent: Time,
    pub(crate) repaired_by_probe: bool,
}

/// How a comparison ended.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Verdict {
    Agreed,
    /// A decision depended on less than the rounding error: the rest is not compared.
    Undecided(&'static str),
    Differed(String),
}

pub(crate) struct Pair {
    real: AnyController,
    pub(crate) model: Bbr,
    pub(crate) verdict: Verdict,
    pub(crate) compared: u64,
    /// The largest accepted difference of two volumes.
    pub(crate) worst: f64,
}

fn name(state: State) -> &'static str {
    match state {
        State::Startup => "Startup",
        State::Drain => "Drain",
        State::ProbeBwDown => "ProbeBW_DOWN",
        State::ProbeBwCruise => "ProbeBW_CRUISE",
        State::ProbeBwRefill => "ProbeBW_REFILL",
        State::ProbeBwUp => "ProbeBW_UP",
        State::ProbeRtt => "ProbeRTT",
    }
}

impl Pair {
    pub(crate) fn new(spec: CcSpec, settings: &Settings, switches: Switches) -> Self {
        let mut pair = Self {
            real: spec.build(settings),
            model: Bbr::new(settings, switches),
            verdict: Verdict::Agreed,
            compared: 0,
            worst: 0.0,
        };
        pair.compare("new");
        pair
    }

    pub(crate) fn control(&self) -> Control {
        self.real.control()
    }

    pub(crate) fn on_sent(&mut self, now: Time, packet: SentPacket, app: AppState) -> Memory {
        let token = self.real.on_sent(now, packet, app);
        let model = self.model.on_sent(super::model::nanos(now), packet, app);
        self.compare("sent");
        Memory { token, model, bytes: packet.bytes }
    }

    pub(crate) fn on_feedback(&mut self, now: Time, report: &Report) {
        let acked = report.acked.iter().map(|p| Acked { token: p.token, bytes: p.bytes });
        let acked: Vec<Acked> = acked.collect();
        let lost = report.lost.iter();
        let lost: Vec<Lost> = lost
            .map(|&(p, contiguous)| Lost { token: p.token, bytes: p.bytes, contiguous })
            .collect();
        let mut feedback = Feedback::new(&acked, &lost, report.in_flight, report.oldest_sent);
        feedback.rtt = report.rtt;
        feedback.ce_packets = report.ce_packets;
        feedback.unacked = report.unacked;
        feedback.una_advanced = report.una_advanced;
        feedback.repaired_by_probe = report.repaired_by_probe;
        self.real.on_feedback(now, &feedback);
        let acked: Vec<Packet> = report.acked.iter().map(|p| p.model).collect();
        let lost: Vec<_> =
            report.lost.iter().map(|(p, contiguous)| (p.model, *contiguous)).collect();
        let ack = Ack {
            acked: &acked,
            lost: &lost,
            rtt: report.rtt,
            ce_packets: report.ce_packets,
            in_flight: report.in_flight,
            unacked: report.unacked,
            repaired_by_probe: report.repaired_by_probe,
        };
        self.model.on_feedback(super::model::nanos(now), &ack);
        self.compare(if acked.is_empty() { "losses" } else { "ACK" });
    }

    pub(crate) fn on_spurious(&mut self, now: Time, packets: &[(Memory, bool)]) {
        let lost = packets.iter();
        let lost: Vec<Lost> = lost
            .map(|&(p, contiguous)| Lost { token: p.token, bytes: p.bytes, contiguous })
            .collect();
        self.real.on_spurious(now, &lost);
        let lost: Vec<Packet> = packets.iter().map(|(p, _)| p.model).collect();
        self.model.on_spurious(super::model::nanos(now), &lost);
        self.compare("spurious");
    }

    pub(crate) fn on_timeout(&mut self, now: Time, timeout: Timeout) {
        self.real.on_timeout(now, timeout);
        self.model.on_timeout(super::model::nanos(now), timeout);
        self.compare("timeout");
    }

    pub(crate) fn on_path(&mut self, now: Time, event: PathEvent) {
        self.real.on_path(now, event);
        self.model.on_path(super::model::nanos(now), event);
        self.compare("path");
    }

    fn compare(&mut self, event: &str) {
        if self.verdict != Verdict::Agreed {
            return;
        }
        if let Some(what) = self.model.close_call {
            self.verdict = Verdict::Undecided(what);
            return;
        }
        self.compared += 1;
        let differences = self.differences();
        if !differences.is_empty() {
            let (now, control, snapshot) =
                (self.model.now, self.real.control(), self.real.snapshot());
            self.verdict = Verdict::Differed(format!(
                "after event {} ({event}) at {now} ns, {} against {:?}:{differences}\n{control:?}\n{snapshot:?}\n{:#?}",
                self.compared, snapshot.state, self.model.state, self.model
            ));
        }
    }

    fn differences(&mut self) -> String {
        let (control, snapshot) = (self.real.control(), self.real.snapshot());
        let model = &self.model;
        let mut text = String::new();
        let mut exact = |what: &str, same: bool| {
            if !same {
                let _ = write!(text, " {what}");
            }
        };
        exact("state", snapshot.state == name(model.state));
        exact("round_count", snapshot.round_count == model.round_count);
        exact("in_recovery", snapshot.in_recovery == model.recovery.in_recovery);
        let min_rtt = snapshot.min_rtt.map_or(f64::INFINITY, |rtt| rtt.as_nanos() as f64);
        exact("min_rtt", min_rtt == model.min_rtt);

        let rate = |rate: Option<uncork_units::Rate>, unknown: f64| {
            rate.map_or(unknown, |rate| rate.bytes_per_sec() as f64)
        };
        let bytes = |bytes: Option<u64>| bytes.map_or(f64::INFINITY, |bytes| bytes as f64);
        let rates = [
            // One packet per second at the least: a choice of this crate (DEVIATIONS.md).
            ("pacing_rate", rate(control.pacing_rate, 0.0), model.pacing_rate.max(model.c.smss)),
            ("max_bw", rate(snapshot.max_bw, 0.0), model.max_bw),
            ("bw", rate(snapshot.bw, 0.0), model.bw),
            ("bw_shortterm", rate(snapshot.bw_shortterm, f64::INFINITY), model.bw_shortterm),
        ];
        let volumes = [
            ("cwnd", control.cwnd as f64, model.c.cwnd),
            ("send_quantum", control.send_quantum as f64, model.send_quantum),
            ("inflight_shortterm", bytes(snapshot.inflight_shortterm), model.inflight_shortterm),
            ("inflight_longterm", bytes(snapshot.inflight_longterm), model.inflight_longterm),
        ];
        for (what, real, model) in rates {
            if real != model {
                let _ = write!(text, " {what} ({real} against {model})");
            }
        }
        for (what, real, model) in volumes {
            let apart = if real == model { 0.0 } else { (real - model).abs() };
            if apart < BYTES {
                self.worst = self.worst.max(apart);
            } else {
                let _ = write!(text, " {what} ({real} against {model})");
            }
        }
        text
    }
}
