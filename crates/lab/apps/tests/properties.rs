//! Properties of every player with any sequence of deliveries.

use proptest::prelude::*;
use uncork_apps::{
    Abr, Action, AudioSpec, Client, ClientReport, ClientSpec, FetchSpec, ObjectSizes, Think, Track,
    VideoSpec,
};
use uncork_units::{Rate, Rng, Time, TimeDelta};

fn millis(millis: u64) -> TimeDelta {
    TimeDelta::from_millis(millis)
}

fn audio() -> impl Strategy<Value = AudioSpec> {
    let track = (1_u64..60_000, 1_000_u64..50_000);
    let tracks = proptest::collection::vec(track, 1..4);
    (tracks, 100_u64..600_000, 0_u64..5_000, 0_u64..5_000, 0_u64..40_000).prop_map(
        |(tracks, chunk, start, resume, low)| AudioSpec {
            tracks: tracks
                .into_iter()
                .map(|(length, rate)| Track {
                    duration: millis(length),
                    bitrate: Rate::from_bytes_per_sec(rate),
                })
                .collect(),
            chunk,
            start_threshold: millis(start),
            resume_threshold: millis(resume),
            low_water: millis(low),
        },
    )
}

fn video() -> impl Strategy<Value = VideoSpec> {
    let abr = prop_oneof![
        Just(Abr::THROUGHPUT),
        (0_u64..8_000, 1_u64..8_000).prop_map(|(reservoir, cushion)| Abr::BufferBased {
            reservoir: millis(reservoir),
            cushion: millis(cushion),
        }),
    ];
    (1_u64..120_000, 500_u64..10_000, abr, 0_u64..10_000, 0_u64..10_000, 0_u64..30_000).prop_map(
        |(duration, segment, abr, start, resume, room)| VideoSpec {
            segment: millis(segment),
            start_threshold: millis(start),
            resume_threshold: millis(resume),
            max_buffer: millis(segment + 16_000 + room),
            ..VideoSpec::new(millis(duration), abr)
        },
    )
}

fn player() -> impl Strategy<Value = ClientSpec> {
    prop_oneof![audio().prop_map(ClientSpec::Audio), video().prop_map(ClientSpec::Video)]
}

/// Deliveries in turn: milliseconds after the last event, and bytes.
fn deliveries() -> impl Strategy<Value = Vec<(u64, u64)>> {
    proptest::collection::vec((0_u64..4_000, 1_u64..120_000), 1..60)
}

/// The maximum playing time available once `bytes` have arrived, given the files and lengths.
fn media_of(spec: &ClientSpec, report: &ClientReport) -> TimeDelta {
    match spec {
        ClientSpec::Audio(spec) => {
            let mut bytes: u64 = report.transfers.iter().map(|transfer| transfer.received).sum();
            let mut media = TimeDelta::ZERO;
            for track in &spec.tracks {
                let part = bytes.min(track.bytes());
                let whole = part == track.bytes();
                media += if whole { track.duration } else { track.bitrate.time_for(part) };
                bytes -= part;
            }
            media
        }
        ClientSpec::Video(spec) => {
            let whole = report.transfers.iter().filter(|transfer| transfer.end.is_some());
            spec.segment.times(whole.count() as u64).min(spec.duration)
        }
        _ => unreachable!("only players play"),
    }
}

fn check(spec: &ClientSpec, client: &Client, now: Time) -> Result<ClientReport, TestCaseError> {
    let report = client.report(now);
    let playback = report.playback.clone().expect("a player");
    prop_assert!(playback.played <= media_of(spec, &report), "plays media that has not arrived");
    let until = playback.ended.unwrap_or(now);
    let startup = playback.startup.unwrap_or(now.since(Time::ZERO));
    let accounted = startup + playback.played + playback.stalled();
    prop_assert_eq!(accounted, until.since(Time::ZERO), "times do not add up");
    prop_assert!(playback.stalls.iter().all(|stall| !stall.lasted.is_zero()));
    let open = report.transfers.iter().filter(|transfer| transfer.end.is_none()).count();
    prop_assert!(open <= 1);
    Ok(report)
}

/// Drives a player to its end, with additional polls at the instants given by `looks`.
fn drive(
    spec: &ClientSpec,
    deliveries: &[(u64, u64)],
    looks: u64,
) -> Result<(ClientReport, Time), TestCaseError> {
    let mut client = Client::new(spec.clone(), Time::ZERO, Rng::new(1, 0)).expect("valid");
    let mut deliveries = deliveries.iter().cycle();
    let (mut now, mut open, mut arrival) = (Time::ZERO, 0_u64, Time::NEVER);
    let mut packet = 0;
    loop {
        let action = client.poll(now);
        let wake = match action {
            Action::Request { bytes } => {
                prop_assert!(bytes > 0 && open == 0, "one request at a time");
                open = bytes;
                let (gap, size) = *deliveries.next().expect("endless");
                (arrival, packet) = (now + millis(gap), size);
                continue;
            }
            Action::WaitUntil(then) => {
                prop_assert!(then > now, "a wait of zero length");
                then
            }
            Action::WaitForData => {
                prop_assert!(open > 0, "waits without an outstanding request");
                Time::NEVER
            }
            Action::Done => {
                prop_assert_eq!(open, 0);
                return Ok((check(spec, &client, now)?, now));
            }
        };
        prop_assert_eq!(client.poll(now), action, "a second poll changes the answer");
        let next = if open > 0 { arrival.min(wake) } else { wake };
        for look in 1..=looks {
            let between = now + next.since(now).divided_by(looks + 1).times(look);
            client.poll(between);
            check(spec, &client, between)?;
        }
        now = next;
        if open > 0 && arrival == now {
            let bytes = packet.min(open);
            client.on_body(now, bytes);
            open -= bytes;
            let (gap, size) = *deliveries.next().expect("endless");
            (arrival, packet) = (now + millis(gap), size);
        }
        check(spec, &client, now)?;
    }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(200))]

    /// Conservation is checked on the way. At the end everything has been requested and played
    /// exactly once.
    #[test]
    fn players_play_everything_once(spec in player(), deliveries in deliveries()) {
        let (report, end) = drive(&spec, &deliveries, 0)?;
        let playback = report.playback.expect("a player");
        prop_assert_eq!(playback.ended, Some(end));
        let asked: u64 = report.transfers.iter().map(|transfer| transfer.bytes).sum();
        let received: u64 = report.transfers.iter().map(|transfer| transfer.received).sum();
        prop_assert_eq!(asked, received);
        match &spec {
            ClientSpec::Audio(spec) => {
                prop_assert_eq!(asked, spec.tracks.iter().map(Track::bytes).sum::<u64>());
                prop_assert!(report.transfers.iter().all(|transfer| transfer.bytes <= spec.chunk));
                let audio = report.audio.expect("a player of songs");
                prop_assert_eq!((audio.started, audio.finished), (spec.tracks.len(), spec.tracks.len()));
            }
            ClientSpec::Video(spec) => {
                let video = report.video.expect("a player of a film");
                let segments = spec.duration.as_nanos().div_ceil(spec.segment.as_nanos());
                prop_assert_eq!(video.segments as u64, segments);
                prop_assert!(video.mean_bitrate <= *spec.ladder.last().expect("a ladder"));
                prop_assert_eq!(playback.played, spec.duration);
            }
            _ => unreachable!("only players play"),
        }
    }

    /// More frequent polls change nothing: instants are computed, not sampled.
    #[test]
    fn additional_polls_change_nothing(spec in player(), deliveries in deliveries(), looks in 1_u64..4) {
        prop_assert_eq!(drive(&spec, &deliveries, 0)?, drive(&spec, &deliveries, looks)?);
    }

    /// Bytes that were not requested change nothing.
    #[test]
    fn stray_bytes_are_ignored(spec in player(), now in 0_u64..10_000, bytes: u64) {
        let mut client = Client::new(spec, Time::ZERO, Rng::new(1, 0)).expect("valid");
        let now = Time::ZERO + millis(now);
        let before = client.report(now);
        client.on_body(now, bytes);
        prop_assert_eq!(client.report(now), before);
    }

    /// Equal seeds give equal requests; sizes are within the table.
    #[test]
    fn downloads_repeat_themselves(seed: u64, mean in 0_u64..1000, took in 0_u64..100) {
        let run = || {
            let sizes: ObjectSizes = "web".parse().expect("a name");
            let think = Think::Exponential(millis(mean));
            let spec = FetchSpec { sizes, requests: Some(30), until: Time::NEVER, think };
            let mut client = Client::new(ClientSpec::Fetch(spec), Time::ZERO, Rng::new(seed, 0))
                .expect("valid");
            let mut now = Time::ZERO;
            loop {
                match client.poll(now) {
                    Action::Request { bytes } => {
                        now += millis(took);
                        client.on_body(now, bytes);
                    }
                    Action::WaitUntil(then) => now = then,
                    _ => return client.report(now),
                }
            }
        };
        let report = run();
        prop_assert_eq!(report.transfers.len(), 30);
        let sizes = report.transfers.iter().map(|transfer| transfer.bytes);
        prop_assert!(sizes.clone().all(|bytes| (1..=100_000_000).contains(&bytes)));
        prop_assert_eq!(run(), report);
    }
}
