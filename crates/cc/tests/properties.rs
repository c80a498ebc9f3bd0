//! What holds for every algorithm, whatever a host tells it: no panic, a window, a rate, a known
//! state, and the same decisions the second time.

use proptest::prelude::*;
use proptest::sample::{Index, select};
use uncork_cc::{
    Acked, Algorithm, AnyController, AppState, CcSpec, Control, Controller, Feedback, Lost,
    PathEvent, ResumeHint, RttSample, SentPacket, Settings, Timeout, Token,
};
use uncork_units::{Time, TimeDelta};

/// One call of a host. Packets are named by their index among all that were sent, so that a script
/// may acknowledge them out of order, twice, and after they were lost.
#[derive(Clone, Debug)]
enum Operation {
    /// So many round trips as they should be, to get somewhere before the next mischief.
    Rounds {
        count: u8,
        packets: u8,
        rtt: u64,
    },
    Send {
        bytes: u32,
        in_flight: u64,
        unacked: u64,
        app: AppState,
    },
    Feedback {
        acked: Vec<Index>,
        lost: Vec<Index>,
        rtt: Option<u64>,
        ce: u32,
        after: After,
    },
    Spurious(Vec<Index>),
    Timeout(Timeout),
    Path(PathEvent),
}

/// What a feedback says of the connection after it.
#[derive(Clone, Copy, Debug)]
struct After {
    in_flight: u64,
    unacked: u64,
    oldest_sent: u64,
    una_advanced: bool,
    repaired_by_probe: bool,
}

/// Amounts as they occur, none at all, and the largest there are.
fn amount() -> impl Strategy<Value = u64> {
    prop_oneof![8 => 0..2_000_000_u64, 1 => Just(0), 1 => Just(u64::MAX), 1 => any::<u64>()]
}

/// Nanoseconds between two calls: none, up to 50 ms, up to a quarter of an hour, or anything.
fn step() -> impl Strategy<Value = u64> {
    let (short, long) = (0..50_000_000_u64, 0..1_000_000_000_000_u64);
    prop_oneof![4 => Just(0), 16 => short, 2 => long, 1 => any::<u64>()]
}

fn packet_size() -> impl Strategy<Value = u32> {
    prop_oneof![8 => Just(1_448_u32), 2 => 0..1_448_u32, 1 => 0..3_u32, 1 => any::<u32>()]
}

fn packets(most: usize) -> impl Strategy<Value = Vec<Index>> {
    proptest::collection::vec(any::<Index>(), 0..most)
}

fn after() -> impl Strategy<Value = After> {
    (amount(), amount(), amount(), any::<bool>(), any::<bool>()).prop_map(
        |(in_flight, unacked, oldest_sent, una_advanced, repaired_by_probe)| After {
            in_flight,
            unacked,
            oldest_sent,
            una_advanced,
            repaired_by_probe,
        },
    )
}

fn operation() -> impl Strategy<Value = Operation> {
    let app = select(vec![AppState::Backlogged, AppState::Drained]);
    let ce = prop_oneof![8 => Just(0_u32), 1 => 0..8_u32, 1 => any::<u32>()];
    let rtt = proptest::option::of(prop_oneof![9 => 0..400_000_000_u64, 1 => any::<u64>()]);
    let timeouts = vec![Timeout::Probe, Timeout::Retransmission, Timeout::Persistent];
    let path = prop_oneof![
        Just(PathEvent::Migrated),
        packet_size().prop_map(|mss| PathEvent::MtuChanged { mss }),
        (0_u32..64, 0_u32..40).prop_map(|(cwnd, rtt)| {
            let saved_rtt = TimeDelta::from_nanos(1 << rtt);
            PathEvent::Resume(ResumeHint { saved_cwnd: 1 << cwnd, saved_rtt })
        }),
    ];
    prop_oneof![
        4 => (1..20_u8, 1..40_u8, 1_000_000..200_000_000_u64)
            .prop_map(|(count, packets, rtt)| Operation::Rounds { count, packets, rtt }),
        20 => (packet_size(), amount(), amount(), app).prop_map(
            |(bytes, in_flight, unacked, app)| Operation::Send { bytes, in_flight, unacked, app }
        ),
        20 => (packets(8), packets(4), rtt, ce, after()).prop_map(
            |(acked, lost, rtt, ce, after)| Operation::Feedback { acked, lost, rtt, ce, after }
        ),
        2 => packets(8).prop_map(Operation::Spurious),
        1 => select(timeouts).prop_map(Operation::Timeout),
        1 => path.prop_map(Operation::Path),
    ]
}

fn settings() -> impl Strategy<Value = Settings> {
    let initial_rtt = proptest::option::of(amount().prop_map(TimeDelta::from_nanos));
    (packet_size(), amount(), initial_rtt, any::<u64>(), step()).prop_map(
        |(mss, initial_window, initial_rtt, seed, now)| Settings {
            mss,
            initial_window,
            initial_rtt,
            seed,
            now: Time::from_nanos(now),
        },
    )
}

/// A host that does as the script says.
struct Host {
    cc: AnyController,
    now: Time,
    mss: u32,
    sent: Vec<Acked>,
}

impl Host {
    fn new(spec: CcSpec, settings: &Settings) -> Self {
        let cc = spec.build(settings);
        Self { cc, now: settings.now, mss: settings.mss, sent: Vec::new() }
    }

    fn apply(&mut self, step: u64, operation: &Operation) {
        self.now += TimeDelta::from_nanos(step);
        match operation {
            &Operation::Rounds { count, packets, rtt } => {
                (0..count).for_each(|_| self.round(u64::from(packets), rtt));
            }
            &Operation::Send { bytes, in_flight, unacked, app } => {
                let packet = SentPacket { bytes, in_flight, unacked };
                let token: Token = self.cc.on_sent(self.now, packet, app);
                self.sent.push(Acked { token, bytes });
            }
            Operation::Feedback { acked, lost, rtt, ce, after } => {
                self.feedback(acked, lost, *rtt, *ce, *after);
            }
            Operation::Spurious(packets) => self.cc.on_spurious(self.now, &self.lost(packets)),
            Operation::Timeout(timeout) => self.cc.on_timeout(self.now, *timeout),
            Operation::Path(event) => {
                if let PathEvent::MtuChanged { mss } = event {
                    self.mss = *mss;
                }
                self.cc.on_path(self.now, *event);
            }
        }
    }

    /// Sends so many packets and has each acknowledged after `rtt` nanoseconds.
    fn round(&mut self, packets: u64, rtt: u64) {
        let bytes = u64::from(self.mss);
        let flight = self.sent.len();
        for sent in 1..=packets {
            let in_flight = sent * bytes;
            let packet = SentPacket { bytes: self.mss, in_flight, unacked: in_flight };
            let token = self.cc.on_sent(self.now, packet, AppState::Backlogged);
            self.sent.push(Acked { token, bytes: self.mss });
        }
        self.now += TimeDelta::from_nanos(rtt);
        let rtt = TimeDelta::from_nanos(rtt);
        for (left, packet) in (0..packets).rev().zip(&self.sent[flight..]) {
            let feedback = Feedback {
                acked: &[*packet],
                lost: &[],
                rtt: Some(RttSample { latest: rtt, smoothed: rtt, min: rtt }),
                ce_packets: 0,
                in_flight: left * bytes,
                unacked: left * bytes,
                una_advanced: true,
                oldest_sent: if left > 0 { packet.token.send_time() } else { Time::NEVER },
                repaired_by_probe: false,
            };
            self.cc.on_feedback(self.now, &feedback);
        }
    }

    fn feedback(
        &mut self,
        acked: &[Index],
        lost: &[Index],
        rtt: Option<u64>,
        ce_packets: u32,
        after: After,
    ) {
        let rtt = rtt.map(TimeDelta::from_nanos);
        let feedback = Feedback {
            acked: &self.packets(acked),
            lost: &self.lost(lost),
            rtt: rtt.map(|rtt| RttSample { latest: rtt, smoothed: rtt, min: rtt }),
            ce_packets,
            in_flight: after.in_flight,
            unacked: after.unacked,
            una_advanced: after.una_advanced,
            oldest_sent: Time::from_nanos(after.oldest_sent),
            repaired_by_probe: after.repaired_by_probe,
        };
        self.cc.on_feedback(self.now, &feedback);
    }

    fn packets(&self, indices: &[Index]) -> Vec<Acked> {
        let sent = indices.iter().filter(|_| !self.sent.is_empty());
        sent.map(|index| *index.get(&self.sent)).collect()
    }

    fn lost(&self, indices: &[Index]) -> Vec<Lost> {
        let packets = self.packets(indices).into_iter();
        packets
            .map(|Acked { token, bytes }| Lost { token, bytes, contiguous: bytes % 2 == 0 })
            .collect()
    }
}

fn states(algorithm: Algorithm) -> &'static [&'static str] {
    match algorithm {
        Algorithm::Reno => &["SlowStart", "CongestionAvoidance", "Recovery"],
        Algorithm::Cubic => &["SlowStart", "CSS", "CongestionAvoidance", "Recovery"],
        Algorithm::Bbr1 => &["Startup", "Drain", "ProbeBW", "ProbeRTT"],
        Algorithm::Bbr2 | Algorithm::Bbr3 => &[
            "Startup",
            "Drain",
            "ProbeBW_DOWN",
            "ProbeBW_CRUISE",
            "ProbeBW_REFILL",
            "ProbeBW_UP",
            "ProbeRTT",
        ],
        other => panic!("{other:?} has no list of states"),
    }
}

/// What no sequence of calls may break.
fn invariants(algorithm: Algorithm, host: &Host) -> Result<Control, TestCaseError> {
    let (control, snapshot) = (host.cc.control(), host.cc.snapshot());
    let mss = u64::from(host.mss.max(1));
    prop_assert!(control.cwnd >= mss, "{control:?} with packets of {mss}");
    prop_assert!(control.send_quantum >= 1, "{control:?}");
    prop_assert!(states(algorithm).contains(&snapshot.state), "{}", snapshot.state);
    if matches!(algorithm, Algorithm::Bbr1 | Algorithm::Bbr2 | Algorithm::Bbr3) {
        // Recovery begins with what is in flight, and after a timeout that is one packet.
        prop_assert!(snapshot.in_recovery || control.cwnd >= 4 * mss, "{control:?}, {snapshot:?}");
        prop_assert!(control.pacing_rate.is_some_and(|rate| !rate.is_zero()), "{control:?}");
    }
    Ok(control)
}

/// Plays the script twice and looks at the controller after every call.
fn play(
    spec: CcSpec,
    settings: &Settings,
    script: &[(u64, Operation)],
) -> Result<(), TestCaseError> {
    let mut host = Host::new(spec, settings);
    let mut twin = Host::new(spec, settings);
    for (step, operation) in script {
        host.apply(*step, operation);
        twin.apply(*step, operation);
        let control = invariants(spec.algorithm(), &host)?;
        prop_assert_eq!(control, twin.cc.control());
        prop_assert_eq!(host.cc.snapshot(), twin.cc.snapshot());
    }
    Ok(())
}

/// Every algorithm, without options and with each of them.
fn specs() -> impl Iterator<Item = CcSpec> {
    let plain = Algorithm::ALL.map(CcSpec::new);
    let options = Algorithm::ALL.into_iter().flat_map(|algorithm| {
        algorithm.options().iter().map(move |option| {
            let text = format!("{}:{option}", algorithm.name());
            text.parse().expect("an option that the algorithm names")
        })
    });
    plain.into_iter().chain(options)
}

proptest! {
    #[test]
    fn any_script(
        settings in settings(),
        script in proptest::collection::vec((step(), operation()), 1..150),
    ) {
        for spec in specs() {
            play(spec, &settings, &script)?;
        }
    }
}
