//! Recorder: a wrapper that forwards each call to a controller and logs it.

use uncork_cc::units::{Time, TimeDelta};
use uncork_cc::{
    AckFrequency, Acked, AnyController, AppState, CcSpec, Control, Controller, Feedback, Lost,
    PathEvent, RttSample, SentPacket, Settings, Snapshot, Timeout, Token,
};

use crate::trace::{Decisions, Event, Header, Kind, Line, SCHEMA, changes, decisions};

/// A controller that writes a trace. Its tokens hold the packet's number.
pub(crate) struct Recorder {
    cc: AnyController,
    clock: Clock,
    tokens: Vec<Token>,
    last: Decisions,
    trace: String,
}

impl Recorder {
    pub(crate) fn new(spec: CcSpec, scenario: &str, settings: &Settings) -> Self {
        let cc = spec.build(settings);
        let last = decisions(&cc);
        let header = Header {
            schema: SCHEMA.into(),
            controller: spec.to_string(),
            scenario: scenario.into(),
            mss: settings.mss,
            initial_window: settings.initial_window,
            paced: settings.paced,
            seed: settings.seed,
            now: settings.now.as_nanos(),
            clock_granularity: settings.clock_granularity.as_nanos(),
            scalable_marks: settings.scalable_marks,
            out: last.clone(),
        };
        let trace = serde_json::to_string(&header).expect("a header is JSON") + "\n";
        let clock = Clock::new(settings.clock_granularity);
        Self { cc, clock, tokens: Vec::new(), last, trace }
    }

    /// The trace so far.
    pub(crate) fn into_trace(self) -> String {
        self.trace
    }

    fn record(&mut self, now: Time, event: Event) {
        let out = changes(&mut self.last, decisions(&self.cc));
        let line = Line { t: now.as_nanos(), event, out };
        self.trace += &serde_json::to_string(&line).expect("a line is JSON");
        self.trace.push('\n');
    }

    fn token(&self, recorded: Token) -> Token {
        self.tokens[number(recorded)]
    }

    fn lost(&self, packets: &[Lost]) -> Vec<Lost> {
        packets.iter().map(|lost| Lost { token: self.token(lost.token), ..*lost }).collect()
    }
}

/// The number of the packet that this token of a [`Recorder`] belongs to.
fn number(token: Token) -> usize {
    token.words()[1] as usize
}

fn numbers(packets: &[Lost]) -> Vec<usize> {
    packets.iter().map(|lost| number(lost.token)).collect()
}

fn other_than(usual: u64, n: u64) -> Option<u64> {
    (n != usual).then_some(n)
}

fn nanos(rtt: RttSample) -> [u64; 3] {
    [rtt.latest, rtt.smoothed, rtt.min].map(TimeDelta::as_nanos)
}

/// The clock of the recorded host, which may be coarse: its times, and the round-trip times that it measures.
struct Clock {
    granularity: TimeDelta,
    /// When each packet was sent, by this clock.
    sent: Vec<Time>,
    smoothed: Option<TimeDelta>,
    min: TimeDelta,
}

impl Clock {
    fn new(granularity: TimeDelta) -> Self {
        let min = TimeDelta::from_nanos(u64::MAX);
        Self { granularity, sent: Vec::new(), smoothed: None, min }
    }

    fn is_exact(&self) -> bool {
        self.granularity.is_zero()
    }

    fn read(&self, now: Time) -> Time {
        if self.is_exact() || now == Time::NEVER {
            return now;
        }
        Time::from_nanos(now.as_nanos() / self.granularity.as_nanos() * self.granularity.as_nanos())
    }

    /// The sample of RFC 9002 section 5 by this clock, for the newest of the acknowledged packets.
    fn sample(&mut self, now: Time, exact: RttSample, acked: &[Acked]) -> RttSample {
        let Some(newest) = acked.last().filter(|_| !self.is_exact()) else { return exact };
        let latest = now.since(self.sent[number(newest.token)]);
        let smoothed = self.smoothed.map_or(latest, |before| {
            TimeDelta::from_nanos((before.as_nanos() * 7 + latest.as_nanos()) / 8)
        });
        self.smoothed = Some(smoothed);
        self.min = self.min.min(latest);
        RttSample { latest, smoothed, min: self.min }
    }
}

impl Controller for Recorder {
    fn on_sent(&mut self, now: Time, packet: SentPacket, app: AppState) -> Token {
        let exact = now;
        let now = self.clock.read(now);
        self.clock.sent.push(now);
        let token = self.cc.on_sent(now, packet, app);
        let number = self.tokens.len() as u64;
        self.tokens.push(token);
        let SentPacket { bytes, in_flight, unacked } = packet;
        let (unacked, drained) = (other_than(in_flight, unacked), app == AppState::Drained);
        self.record(now, Event::Sent { bytes, in_flight, unacked, drained });
        Token::from_words([exact.as_nanos(), number, 0, 0, 0, 0])
    }

    fn on_feedback(&mut self, now: Time, feedback: &Feedback<'_>) {
        let now = self.clock.read(now);
        let oldest = self.clock.read(feedback.oldest_sent);
        let rtt = feedback.rtt.map(|exact| self.clock.sample(now, exact, feedback.acked));
        let acked = feedback.acked.iter();
        let acked: Vec<Acked> =
            acked.map(|acked| Acked { token: self.token(acked.token), ..*acked }).collect();
        let lost = self.lost(feedback.lost);
        let mut reported = *feedback;
        (reported.acked, reported.lost) = (&acked, &lost);
        (reported.oldest_sent, reported.rtt) = (oldest, rtt);
        self.cc.on_feedback(now, &reported);
        let event = Event::Feedback {
            acked: feedback.acked.iter().map(|acked| number(acked.token)).collect(),
            lost: numbers(feedback.lost),
            rtt: rtt.map(nanos),
            ce_packets: feedback.ce_packets,
            in_flight: feedback.in_flight,
            unacked: other_than(feedback.in_flight, feedback.unacked),
            una_advanced: feedback.una_advanced,
            oldest_sent: (oldest != Time::NEVER).then(|| oldest.as_nanos()),
            repaired_by_probe: feedback.repaired_by_probe,
        };
        self.record(now, event);
    }

    fn on_spurious(&mut self, now: Time, packets: &[Lost]) {
        let now = self.clock.read(now);
        let lost = self.lost(packets);
        self.cc.on_spurious(now, &lost);
        self.record(now, Event::Spurious { packets: numbers(packets) });
    }

    fn on_timeout(&mut self, now: Time, timeout: Timeout) {
        let now = self.clock.read(now);
        self.cc.on_timeout(now, timeout);
        let kind = match timeout {
            Timeout::Probe => Kind::Probe,
            Timeout::Retransmission => Kind::Retransmission,
            Timeout::Persistent => Kind::Persistent,
            _ => unreachable!("the recorder knows every timeout of this version"),
        };
        self.record(now, Event::Timeout { kind });
    }

    fn on_path(&mut self, now: Time, event: PathEvent) {
        let now = self.clock.read(now);
        self.cc.on_path(now, event);
        let event = match event {
            PathEvent::MtuChanged { mss } => Event::Mtu { mss },
            PathEvent::Migrated => Event::Migrated,
            PathEvent::Drained => Event::Drained,
            PathEvent::ClassicEcn => Event::ClassicEcn,
            PathEvent::Resume(hint) => {
                Event::Resume { saved_cwnd: hint.saved_cwnd, saved_rtt: hint.saved_rtt.as_nanos() }
            }
            _ => unreachable!("the recorder knows every path event of this version"),
        };
        self.record(now, event);
    }

    fn control(&self) -> Control {
        self.cc.control()
    }

    fn ack_frequency(&self) -> Option<AckFrequency> {
        self.cc.ack_frequency()
    }

    fn snapshot(&self) -> Snapshot {
        self.cc.snapshot()
    }
}
