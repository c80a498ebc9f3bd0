//! Records and series for the tests of this crate.

use proptest::prelude::{Strategy, any};
use smol_str::SmolStr;
use uncork_units::Rng;

use crate::ecn::{EcnEvidence, EcnUse};
use crate::{
    Arm, Choice, FlowRecord, LabRecord, Playback, Quantiles, ResumeUse, Scope, SeriesPoint,
    Service, StartExit, StartRecord,
};

/// A finished transfer of 10 MB with round numbers.
pub(crate) fn record() -> FlowRecord {
    FlowRecord {
        engine: "sim".into(),
        group: "bbr3 vs cubic".into(),
        cc: "bbr3".into(),
        seed: 7,
        flow: 1,
        start_ns: 100_000_000,
        completion_ns: Some(4_420_000_000),
        first_byte_ns: Some(80_000_000),
        busy_ns: 4_400_000_000,
        size_bytes: Some(10_000_000),
        bytes_delivered: 10_000_000,
        bytes_acked: 10_000_000,
        bytes_sent: 10_102_000,
        bytes_retransmitted: 102_000,
        packets_sent: 6_977,
        packets_lost: 70,
        packets_marked: 0,
        timeouts: 0,
        rtt_ms: Some(Quantiles { min: 40.0, p50: 44.25, p95: 61.5 }),
        lab: Some(LabRecord {
            packets_dropped_queue: 2,
            packets_dropped_random: 68,
            ..LabRecord::default()
        }),
        playback: None,
        service: None,
        choice: None,
        start: None,
    }
}

/// An arbitrary record with numbers drawn from a seed.
pub(crate) fn any_record() -> impl Strategy<Value = FlowRecord> {
    (any::<u64>(), "\\PC{0,8}").prop_map(|(seed, cc)| scrambled(&mut Rng::new(seed, 0), cc.into()))
}

fn scrambled(rng: &mut Rng, cc: SmolStr) -> FlowRecord {
    FlowRecord {
        cc,
        seed: rng.next_u64(),
        flow: rng.next_u64() as u32,
        start_ns: rng.next_u64(),
        completion_ns: maybe(rng),
        first_byte_ns: maybe(rng),
        busy_ns: rng.next_u64(),
        size_bytes: maybe(rng),
        bytes_delivered: rng.next_u64(),
        bytes_acked: rng.next_u64(),
        bytes_sent: rng.next_u64(),
        bytes_retransmitted: rng.next_u64(),
        packets_sent: rng.next_u64(),
        packets_lost: rng.next_u64(),
        packets_marked: rng.next_u64(),
        timeouts: rng.next_u64(),
        rtt_ms: maybe(rng).map(|_| quantiles(rng)),
        lab: maybe(rng).map(|_| lab(rng)),
        playback: maybe(rng).map(|_| playback(rng)),
        service: maybe(rng).map(|_| service(rng)),
        choice: maybe(rng).map(|_| Box::new(choice(rng))),
        start: maybe(rng).map(|_| Box::new(start(rng))),
        ..record()
    }
}

fn lab(rng: &mut Rng) -> LabRecord {
    LabRecord {
        bytes_delivered_early: rng.next_u64(),
        packets_dropped_queue: rng.next_u64(),
        packets_dropped_policer: rng.next_u64(),
        packets_dropped_random: rng.next_u64(),
        acks_dropped: rng.next_u64(),
        queue_ms: maybe(rng).map(|_| quantiles(rng)),
        queue_p99_ms: maybe(rng).map(|number| number as f64 / 3e12),
    }
}

fn maybe(rng: &mut Rng) -> Option<u64> {
    let number = rng.next_u64();
    (rng.below(3) > 0).then_some(number)
}

fn start(rng: &mut Rng) -> StartRecord {
    StartRecord {
        // Never all unknown, which is read back as no start.
        window_bytes: Some(rng.next_u64()),
        paced: maybe(rng).map(|number| number % 2 == 0),
        exit: maybe(rng).map(|_| StartExit::Plateau),
        exit_window_bytes: maybe(rng),
        exit_in_flight_bytes: maybe(rng),
        sent_bytes: maybe(rng),
        lost_bytes: maybe(rng),
        early_sent_bytes: maybe(rng),
        early_resent_bytes: maybe(rng),
        rounds_to_100kb: maybe(rng).map(|rounds| rounds as u32),
        resume: maybe(rng).map(|_| ResumeUse::Retreated),
        resume_age_ns: maybe(rng),
    }
}

fn playback(rng: &mut Rng) -> Playback {
    Playback {
        startup_ns: maybe(rng),
        played_ns: rng.next_u64(),
        stalled_ns: rng.next_u64(),
        stutters: rng.next_u64(),
        items: rng.next_u64(),
        bitrate_bps: maybe(rng),
        switches: rng.next_u64(),
    }
}

pub(crate) fn service(rng: &mut Rng) -> Service {
    let ended = maybe(rng);
    Service {
        scope: if rng.below(2) == 0 { Scope::Response } else { Scope::Connection },
        start_unix_ns: rng.next_u64(),
        protocol: text(rng),
        listener: text(rng),
        host: maybe(rng).map(|_| text(rng)),
        client: maybe(rng).map(|_| text(rng)),
        client_port: ended.map(|end| end as u16),
        end_unix_ns: ended,
        initial_window: maybe(rng).map(|window| window as u32),
        region: maybe(rng).map(|_| text(rng)),
        asn: maybe(rng).map(|asn| asn as u32),
        country: maybe(rng).map(|_| text(rng)),
        status: maybe(rng).map(|status| status as u16),
        object_bytes: maybe(rng),
        responses: rng.next_u64(),
        broken_off: rng.next_u64(),
        min_rtt_ns: maybe(rng),
        delivery_rate_bps: maybe(rng),
        ecn: maybe(rng).map(|_| EcnUse::L4s),
        ecn_evidence: maybe(rng).map(|rounds| {
            Box::new(EcnEvidence {
                rounds: rounds as u32,
                l4s_rounds: 3,
                fell_back: rounds % 2 == 0,
                ..EcnEvidence::default()
            })
        }),
        rwnd_limited_ns: maybe(rng),
        sndbuf_limited_ns: maybe(rng),
        app_limited_ns: maybe(rng),
    }
}

pub(crate) fn choice(rng: &mut Rng) -> Choice {
    Choice {
        policy: text(rng),
        rule: text(rng),
        cc: maybe(rng).map(|_| text(rng)),
        arm: maybe(rng).map(|unit| Arm {
            experiment: text(rng),
            arm: text(rng),
            unit,
            bucket: rng.below(100) as u8,
            propensity: rng.next_u64() as f64 / 2_f64.powi(64),
        }),
    }
}

fn text(rng: &mut Rng) -> SmolStr {
    ["", "h1", "0.0.0.0:443", "ä\"\n"][rng.below(4) as usize].into()
}

fn quantiles(rng: &mut Rng) -> Quantiles {
    let mut number = || rng.next_u64() as f64 / 3e12;
    Quantiles { min: number(), p50: number(), p95: number() }
}

/// Alternating points of two flows, two milliseconds apart.
pub(crate) fn points(count: u64) -> Vec<SeriesPoint> {
    let point = |n: u64| SeriesPoint {
        time_ns: n * 2_000_000,
        flow: (n % 2) as u32,
        state: if n < count / 2 { "Startup" } else { "ProbeBW_CRUISE" },
        cwnd_bytes: 14_480 + n,
        inflight_bytes: 1_448 * n,
        pacing_bps: n.is_multiple_of(2).then_some(20_000_000),
        max_bw_bps: n.is_multiple_of(2).then_some(19_000_000 + n),
        min_rtt_ns: (n > 0).then_some(40_000_000),
        rtt_ns: (n > 0).then_some(40_000_000 + n),
        queue_bytes: n * 100,
        delivered_bytes: n * 1_000,
        lost_bytes: n / 10,
    };
    (0..count).map(point).collect()
}
