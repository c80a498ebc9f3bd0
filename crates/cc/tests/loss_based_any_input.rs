//! No sequence of events, however absurd, makes a loss-based controller panic, close its window or
//! decide differently the second time.

use proptest::prelude::*;
use uncork_cc::{
    Acked, AnyController, AppState, CcSpec, Control, Controller, Feedback, Lost, PathEvent,
    ResumeHint, ResumePhase, RttSample, SentPacket, Settings, Timeout, Token,
};
use uncork_units::{Time, TimeDelta};

#[derive(Clone, Debug)]
enum Event {
    Send {
        bytes: u32,
        in_flight: u64,
        unacked: u64,
    },
    /// Packets by index into all that were sent: repeated, reordered, acknowledged and lost at once.
    Feedback {
        acked: Vec<usize>,
        lost: Vec<usize>,
        rtt: Option<u64>,
        in_flight: u64,
        flags: u32,
    },
    Spurious(Vec<usize>),
    Timeout(Timeout),
    Path(PathEvent),
}

/// Small numbers, and numbers near the largest.
fn amount() -> impl Strategy<Value = u64> {
    prop_oneof![0..200_000_u64, Just(0), Just(u64::MAX), any::<u64>()]
}

fn packets() -> impl Strategy<Value = Vec<usize>> {
    proptest::collection::vec(any::<usize>(), 0..12)
}

fn event() -> impl Strategy<Value = Event> {
    let mss = prop_oneof![1..10_000_u32, any::<u32>()];
    let sent = (any::<u32>(), amount(), amount());
    let feedback = (packets(), packets(), proptest::option::of(amount()), amount(), any::<u32>());
    prop_oneof![
        5 => sent.prop_map(|(bytes, in_flight, unacked)| Event::Send { bytes, in_flight, unacked }),
        5 => feedback.prop_map(|(acked, lost, rtt, in_flight, flags)| {
            Event::Feedback { acked, lost, rtt, in_flight, flags }
        }),
        1 => packets().prop_map(Event::Spurious),
        1 => prop_oneof![
            Just(Timeout::Probe),
            Just(Timeout::Retransmission),
            Just(Timeout::Persistent),
        ]
        .prop_map(Event::Timeout),
        1 => mss.prop_map(|mss| Event::Path(PathEvent::MtuChanged { mss })),
        1 => Just(Event::Path(PathEvent::Migrated)),
        1 => (any::<u64>(), any::<u64>()).prop_map(|(saved_cwnd, saved_rtt)| {
            let saved_rtt = TimeDelta::from_nanos(saved_rtt >> (saved_cwnd % 64));
            Event::Path(PathEvent::Resume(ResumeHint { saved_cwnd, saved_rtt }))
        }),
    ]
}

struct Run {
    controller: AnyController,
    tokens: Vec<(Token, u32)>,
}

impl Run {
    fn new(cc: &str) -> Self {
        let settings = Settings {
            mss: 1_200,
            initial_window: 12_000,
            initial_rtt: None,
            seed: 1,
            now: Time::ZERO,
        };
        let spec: CcSpec = cc.parse().expect("a known controller");
        Self { controller: spec.build(&settings), tokens: Vec::new() }
    }

    fn select(&self, indices: &[usize]) -> Vec<(Token, u32)> {
        let all = self.tokens.len();
        indices.iter().filter(|_| all > 0).map(|index| self.tokens[index % all]).collect()
    }

    fn lost(&self, indices: &[usize]) -> Vec<Lost> {
        let packets = self.select(indices).into_iter();
        packets.map(|(token, bytes)| Lost { token, bytes, contiguous: bytes % 2 == 0 }).collect()
    }

    fn apply(&mut self, now: Time, event: &Event) -> Control {
        match event {
            &Event::Send { bytes, in_flight, unacked } => {
                let packet = SentPacket { bytes, in_flight, unacked };
                let token = self.controller.on_sent(now, packet, AppState::Backlogged);
                self.tokens.push((token, bytes));
            }
            Event::Feedback { acked, lost, rtt, in_flight, flags } => {
                let acked = self.select(acked).into_iter();
                let acked: Vec<_> = acked.map(|(token, bytes)| Acked { token, bytes }).collect();
                let rtt = rtt.map(TimeDelta::from_nanos);
                let feedback = Feedback {
                    acked: &acked,
                    lost: &self.lost(lost),
                    rtt: rtt.map(|rtt| RttSample { latest: rtt, smoothed: rtt, min: rtt }),
                    ce_packets: flags & flags >> 8 & 1,
                    in_flight: *in_flight,
                    unacked: in_flight.rotate_left(flags & 1),
                    una_advanced: flags & 2 != 0,
                    oldest_sent: Time::NEVER,
                    repaired_by_probe: flags & 0x3c == 0,
                };
                self.controller.on_feedback(now, &feedback);
            }
            Event::Spurious(packets) => self.controller.on_spurious(now, &self.lost(packets)),
            Event::Timeout(timeout) => self.controller.on_timeout(now, *timeout),
            Event::Path(event) => self.controller.on_path(now, *event),
        }
        self.controller.control()
    }
}

proptest! {
    #[test]
    fn any_sequence_of_events(
        cc in prop_oneof![Just("reno"), Just("cubic")],
        events in proptest::collection::vec((amount(), event()), 1..120),
    ) {
        let (mut one, mut other) = (Run::new(cc), Run::new(cc));
        let mut now = Time::ZERO;
        let mut mss = 1_200;
        for (step, event) in &events {
            now += TimeDelta::from_nanos(*step);
            if let Event::Path(PathEvent::MtuChanged { mss: new }) = event {
                mss = *new;
            }
            let control = one.apply(now, event);
            prop_assert!(control.cwnd >= u64::from(mss), "{control:?} after {event:?}");
            let is_on_trust = one.controller.snapshot().resume == Some(ResumePhase::Unvalidated);
            prop_assert_eq!(control.pacing_rate.is_some(), is_on_trust);
            prop_assert_eq!(control, other.apply(now, event));
            let ssthresh = one.controller.snapshot().ssthresh;
            prop_assert!(ssthresh.is_none_or(|ssthresh| ssthresh >= 2 * u64::from(mss)));
        }
    }
}
