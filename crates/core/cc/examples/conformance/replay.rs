//! Replay: feeds a trace's events into a controller and compares its decisions with the trace's.

use std::collections::BTreeSet;

use uncork_cc::units::{Time, TimeDelta};
use uncork_cc::{
    Acked, AnyController, AppState, CcSpec, Controller, Feedback, Lost, PathEvent, ResumeHint,
    RttSample, SentPacket, Settings, Timeout, Token,
};

use crate::trace::{Event, Header, Kind, Line, SCHEMA, changes, decisions};

/// Replays `trace`. An error names the line and the first difference.
pub(crate) fn check(trace: &str) -> Result<(), String> {
    let mut lines = trace.lines().enumerate().map(|(n, text)| (n + 1, text));
    let (_, first) = lines.next().ok_or("line 1: the trace is empty")?;
    let header: Header = parse(1, first)?;
    if header.schema != SCHEMA {
        return Err(format!("line 1: schema {:?}; this program reads {SCHEMA:?}", header.schema));
    }
    let mut player = Player::new(&header)?;
    let mut last = decisions(&player.cc);
    compare(1, &header.out, &last)?;
    for (n, text) in lines {
        let line: Line = parse(n, text)?;
        player.play(n, line.t, &line.event)?;
        let now = changes(&mut last, decisions(&player.cc));
        compare(n, &line.out, &now)?;
    }
    Ok(())
}

fn parse<'a, T: serde::Deserialize<'a>>(n: usize, text: &'a str) -> Result<T, String> {
    serde_json::from_str(text).map_err(|error| format!("line {n}: {error}"))
}

fn compare<T: PartialEq + serde::Serialize>(n: usize, trace: &T, here: &T) -> Result<(), String> {
    if trace == here {
        return Ok(());
    }
    let json = |value| serde_json::to_string(value).unwrap_or_default();
    Err(format!("line {n}: the trace decides {}, this controller {}", json(trace), json(here)))
}

struct Packet {
    token: Token,
    bytes: u32,
}

/// A controller, and the packets that were sent.
struct Player {
    cc: AnyController,
    packets: Vec<Packet>,
    declared_lost: BTreeSet<usize>,
}

impl Player {
    fn new(header: &Header) -> Result<Self, String> {
        let spec: CcSpec =
            header.controller.parse().map_err(|error| format!("line 1: controller: {error}"))?;
        let settings = Settings::new(header.mss, header.seed, Time::from_nanos(header.now))
            .with_initial_window(header.initial_window)
            .with_clock_granularity(TimeDelta::from_nanos(header.clock_granularity))
            .with_paced(header.paced)
            .with_scalable_marks(header.scalable_marks);
        let cc = spec.build(&settings);
        Ok(Self { cc, packets: Vec::new(), declared_lost: BTreeSet::new() })
    }

    fn play(&mut self, n: usize, t: u64, event: &Event) -> Result<(), String> {
        let now = Time::from_nanos(t);
        match event {
            Event::Sent { bytes, in_flight, unacked, drained } => {
                let app = if *drained { AppState::Drained } else { AppState::Backlogged };
                let unacked = unacked.unwrap_or(*in_flight);
                let sent = SentPacket { bytes: *bytes, in_flight: *in_flight, unacked };
                let token = self.cc.on_sent(now, sent, app);
                self.packets.push(Packet { token, bytes: *bytes });
            }
            Event::Feedback { .. } => self.feedback(n, now, event)?,
            Event::Spurious { packets } => {
                let lost = self.lost(n, packets)?;
                self.cc.on_spurious(now, &lost);
            }
            Event::Timeout { kind } => self.cc.on_timeout(now, timeout(kind)),
            Event::Mtu { mss } => self.cc.on_path(now, PathEvent::MtuChanged { mss: *mss }),
            Event::Migrated => self.cc.on_path(now, PathEvent::Migrated),
            Event::Drained => self.cc.on_path(now, PathEvent::Drained),
            Event::ClassicEcn => self.cc.on_path(now, PathEvent::ClassicEcn),
            Event::Resume { saved_cwnd, saved_rtt } => {
                let saved_rtt = TimeDelta::from_nanos(*saved_rtt);
                let hint = ResumeHint { saved_cwnd: *saved_cwnd, saved_rtt };
                self.cc.on_path(now, PathEvent::Resume(hint));
            }
        }
        Ok(())
    }

    fn feedback(&mut self, n: usize, now: Time, event: &Event) -> Result<(), String> {
        let Event::Feedback {
            acked,
            lost,
            rtt,
            ce_packets,
            in_flight,
            unacked,
            una_advanced,
            oldest_sent,
            repaired_by_probe,
        } = event
        else {
            return Ok(());
        };
        let acked: Vec<Acked> = acked
            .iter()
            .map(|number| self.packet(n, *number))
            .map(|packet| packet.map(|&Packet { token, bytes }| Acked { token, bytes }))
            .collect::<Result<_, _>>()?;
        self.declared_lost.extend(lost);
        let lost = self.lost(n, lost)?;
        let oldest = oldest_sent.map_or(Time::NEVER, Time::from_nanos);
        let mut feedback = Feedback::new(&acked, &lost, *in_flight, oldest)
            .with_unacked(unacked.unwrap_or(*in_flight))
            .with_una_advanced(*una_advanced)
            .with_ce_packets(*ce_packets)
            .with_repaired_by_probe(*repaired_by_probe);
        feedback.rtt = rtt.map(|rtt| {
            let [latest, smoothed, min] = rtt.map(TimeDelta::from_nanos);
            RttSample { latest, smoothed, min }
        });
        self.cc.on_feedback(now, &feedback);
        Ok(())
    }

    fn packet(&self, n: usize, number: usize) -> Result<&Packet, String> {
        let sent = self.packets.len();
        self.packets.get(number).ok_or_else(|| {
            format!("line {n}: packet {number} is unknown: {sent} packets were sent, from 0 on")
        })
    }

    fn lost(&self, n: usize, numbers: &[usize]) -> Result<Vec<Lost>, String> {
        let lost = |number: &usize| {
            let &Packet { token, bytes } = self.packet(n, *number)?;
            let before = number.checked_sub(1);
            let contiguous = before.is_some_and(|before| self.declared_lost.contains(&before));
            Ok(Lost { token, bytes, contiguous })
        };
        numbers.iter().map(lost).collect()
    }
}

fn timeout(kind: &Kind) -> Timeout {
    match kind {
        Kind::Probe => Timeout::Probe,
        Kind::Retransmission => Timeout::Retransmission,
        Kind::Persistent => Timeout::Persistent,
    }
}
