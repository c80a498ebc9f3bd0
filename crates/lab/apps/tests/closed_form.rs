//! Players on a constant-rate link, compared with closed forms.

mod link;

use link::Link;
use uncork_apps::{
    Abr, AudioSpec, Client, ClientSpec, FetchSpec, PlaybackReport, Think, Track, VideoSpec,
};
use uncork_units::{Rate, Rng, Time, TimeDelta};

fn kbit(kbit: u64) -> Rate {
    Rate::from_bits_per_sec(kbit * 1000)
}

fn secs(secs: u64) -> TimeDelta {
    TimeDelta::from_secs(secs)
}

fn at(secs: u64) -> Time {
    Time::ZERO + TimeDelta::from_secs(secs)
}

/// One song of 210 s at 160 kbit/s, 4.2 MB, by default.
fn listen(link: &Link, spec: &AudioSpec) -> PlaybackReport {
    let (report, _) = link.serve(ClientSpec::Audio(spec.clone()));
    report.playback.expect("a player")
}

/// A buffer that is never full, so chunks follow each other without a pause.
fn greedy() -> AudioSpec {
    AudioSpec { low_water: TimeDelta::MAX, ..AudioSpec::default() }
}

/// A second of music is 20 kB.
#[test]
fn playback_latency_is_the_threshold_over_the_rate() {
    for rate in [kbit(64), kbit(160), kbit(1000), kbit(20_000)] {
        for latency in [TimeDelta::ZERO, TimeDelta::from_millis(75)] {
            let link = Link { latency, ..Link::new(rate) };
            let startup = listen(&link, &AudioSpec::default()).startup;
            assert_eq!(startup, Some(latency + rate.time_for(20_000)), "{rate}");
        }
    }
}

#[test]
fn player_fed_at_the_bitrate_never_stalls() {
    for rate in [kbit(160), kbit(161), kbit(1000)] {
        for spec in [AudioSpec::default(), greedy()] {
            let playback = listen(&Link::new(rate), &spec);
            assert!(playback.stalls.is_empty(), "{rate}: {playback:?}");
            assert_eq!(playback.played, secs(210));
            let startup = playback.startup.expect("it was heard");
            assert_eq!(playback.ended, Some(Time::ZERO + startup + secs(210)));
        }
    }
}

/// At 4.2 MB, the rate must be below the bitrate by more than a packet or a threshold can hide.
#[test]
fn player_fed_below_the_bitrate_stalls() {
    let playback = listen(&Link::new(kbit(158)), &greedy());
    assert_eq!(playback.stalls.len(), 1, "{playback:?}");
}

/// Playback ends when the last packet (50 ms of music), or the music held back by the resume
/// threshold, has been played: 4.2 MB / rate after the click. Apart from playing and startup, all
/// time is stalled.
#[test]
fn slow_songs_stall_for_the_time_by_which_the_download_exceeds_them() {
    for (rate, resume) in [(80, 0), (80, 2), (120, 0), (120, 2), (150, 0)] {
        let (rate, resume_threshold) = (kbit(rate), secs(resume));
        let playback = listen(&Link::new(rate), &AudioSpec { resume_threshold, ..greedy() });
        let startup = playback.startup.expect("it was heard");
        let expected = (rate.time_for(4_200_000) - startup) - secs(210);
        let excess = playback.stalled() - expected;
        let packet = TimeDelta::from_millis(50);
        assert!(!excess.is_zero() && excess <= resume_threshold + packet, "{rate}: {excess}");
    }
}

/// At half the bitrate, each stall of 2 s of music takes 4 s of download; then the player plays 4
/// s: the 2 s buffered and 2 s that arrive meanwhile.
#[test]
fn stalls_recur_at_intervals_set_by_the_resume_threshold() {
    let playback = listen(&Link::new(kbit(80)), &greedy());
    for pair in playback.stalls[1..playback.stalls.len() - 1].windows(2) {
        let period = pair[1].start.since(pair[0].start).as_secs_f64();
        // A packet is 50 ms of music and takes 100 ms.
        assert!((period - 8.0).abs() <= 0.2, "{period}");
        assert!((pair[0].lasted.as_secs_f64() - 4.0).abs() <= 0.2, "{:?}", pair[0]);
    }
}

/// B is the buffer when the link stops, known from a run up to that time.
#[test]
fn outage_stalls_for_its_length_minus_the_buffer() {
    let (rate, stop) = (kbit(320), at(20));
    let spec = AudioSpec { resume_threshold: TimeDelta::ZERO, ..greedy() };
    // 40 kB per second arrive and 20 kB are played from 0.5 s on: 40 s of music, 19.5 s played.
    let buffer = TimeDelta::from_millis(20_500);
    for length in [1_000, 20_000, 20_400, 21_000, 60_000].map(TimeDelta::from_millis) {
        let playback = listen(&Link { outage: (stop, length), ..Link::new(rate) }, &spec);
        // The packet in flight when the link stops arrives after the outage: 25 ms.
        let exact = length + TimeDelta::from_millis(25) - buffer;
        if length < buffer {
            assert!(playback.stalls.is_empty(), "{length}: {playback:?}");
        } else {
            let stall = playback.stalls[0];
            assert_eq!(playback.stalls.len(), 1, "{length}");
            assert_eq!((stall.start, stall.lasted), (stop + buffer, exact), "{length}");
        }
    }
}

/// Measured with a real browser (headless Chromium, MSE): MP3 of 320 kbit/s in chunks of 512 KiB
/// that are appended as a whole, over 250 kbit/s. Latency 16.4 s; stalls of 3.62 s and 3.57 s at
/// 13.1 s and 26.2 s of the song. Such chunks are equivalent to segments with one bitrate.
#[test]
fn player_stalls_for_the_time_of_a_measured_browser() {
    let segment = kbit(320).time_for(512 * 1024);
    let spec = VideoSpec {
        segment,
        ladder: vec![kbit(320)],
        start_threshold: segment,
        resume_threshold: segment,
        ..VideoSpec::new(segment.times(3), Abr::THROUGHPUT)
    };
    let playback = watch(&Link::new(kbit(250)), &spec).playback.expect("a player");
    let startup = playback.startup.expect("it was heard").as_secs_f64();
    assert!((startup / 16.4 - 1.0).abs() < 0.03, "{startup}");
    assert_eq!(playback.stalls.len(), 2);
    for (stall, measured) in playback.stalls.iter().zip([3.62, 3.57]) {
        let lasted = stall.lasted.as_secs_f64();
        assert!((lasted / measured - 1.0).abs() < 0.03, "{lasted}");
    }
}

/// The next chunk is due 30 s before the buffer runs dry; a chunk takes 4 s at 1 Mbit/s.
#[test]
fn prefetching_player_downloads_at_the_bitrate_in_the_long_run() {
    let track = Track { duration: secs(3600), bitrate: kbit(160) };
    let spec = AudioSpec { tracks: vec![track], ..AudioSpec::default() };
    let (report, end) = Link::new(kbit(1000)).serve(ClientSpec::Audio(spec));
    let starts: Vec<Time> = report.transfers.iter().map(|transfer| transfer.start).collect();
    // A chunk is 25.6 s of music. Once the buffer is full, requests have that interval.
    for pair in starts[4..].windows(2) {
        let gap = pair[1].since(pair[0]);
        assert!(gap.as_nanos().abs_diff(25_600_000_000) <= 1, "{gap}");
    }
    assert_eq!(end, Time::ZERO + TimeDelta::from_millis(160) + secs(3600));
}

/// A request for 15 kB has 20 ms of latency and takes 12 ms at 10 Mbit/s.
#[test]
fn request_time_is_latency_plus_size_over_rate() {
    let latency = TimeDelta::from_millis(20);
    let link = Link { latency, ..Link::new(Rate::from_mbit(10)) };
    let think = Think::Fixed(TimeDelta::from_millis(8));
    let spec = FetchSpec { requests: Some(25), think, ..FetchSpec::once(15_000) };
    let (report, end) = link.serve(ClientSpec::Fetch(spec));
    for (index, transfer) in report.transfers.iter().enumerate() {
        assert_eq!(transfer.start, Time::ZERO + TimeDelta::from_millis(40).times(index as u64));
        let took = transfer.end.expect("all ended").since(transfer.start);
        assert_eq!(took, TimeDelta::from_millis(32));
        let first = transfer.first_byte.expect("all began").since(transfer.start);
        assert_eq!(first, latency + Rate::from_mbit(10).time_for(1000));
    }
    assert_eq!((report.transfers.len(), end), (25, Time::ZERO + TimeDelta::from_millis(992)));
}

fn watch(link: &Link, spec: &VideoSpec) -> uncork_apps::ClientReport {
    link.serve(ClientSpec::Video(spec.clone())).0
}

/// 0.9 times the rate; the first segment has the lowest rung and starts playback when complete.
#[test]
fn throughput_rule_settles_on_the_rung_below_the_rate() {
    let spec = VideoSpec::new(secs(600), Abr::THROUGHPUT);
    for (rate, settled) in [(1000, 750), (1200, 1050), (3300, 2350), (3400, 3000), (20_000, 5800)] {
        let report = watch(&Link::new(kbit(rate)), &spec);
        let last = report.transfers[149];
        assert_eq!(last.bytes, kbit(settled).bytes_in(secs(4)), "{rate}");
        let playback = report.playback.expect("a player");
        assert!(playback.stalls.is_empty());
        assert_eq!(playback.startup, Some(kbit(rate).time_for(kbit(235).bytes_in(secs(4)))));
        assert_eq!(report.video.expect("a video").switches, 1);
    }
}

/// If the rate is high enough, the buffer grows beyond the cushion, and only the highest rung is
/// fetched.
#[test]
fn bba0_settles_on_the_highest_rung_the_rate_allows() {
    let spec = VideoSpec::new(secs(3600), Abr::BBA0);
    let report = watch(&Link::new(kbit(8000)), &spec);
    assert_eq!(report.transfers[899].bytes, kbit(5800).bytes_in(secs(4)));
    assert!(report.playback.expect("a player").stalls.is_empty());
    // At 2 Mbit/s the buffer reaches an equilibrium between the rungs of 1.75 and 2.35 Mbit/s.
    let report = watch(&Link::new(kbit(2000)), &spec);
    let settled = &report.transfers[450..];
    let rungs = [kbit(1750), kbit(2350)].map(|rate| rate.bytes_in(secs(4)));
    assert!(settled.iter().all(|transfer| rungs.contains(&transfer.bytes)), "{settled:?}");
    assert!(report.playback.expect("a player").stalls.is_empty());
    let mean = settled.iter().map(|transfer| transfer.bytes).sum::<u64>() / settled.len() as u64;
    let mean = Rate::of(mean, secs(4)).bits_per_sec();
    assert!(mean.abs_diff(2_000_000) < 100_000, "{mean}");
}

/// Too slow for the lowest rung of 235 kbit/s: each segment of 117.5 kB takes 4.7 s at 200 kbit/s
/// and lasts 4 s, so every one except the first stalls for 0.7 s.
#[test]
fn video_on_a_slow_link_stalls_at_each_segment() {
    let spec = VideoSpec::new(secs(400), Abr::THROUGHPUT);
    let playback = watch(&Link::new(kbit(200)), &spec).playback.expect("a player");
    assert_eq!(playback.startup, Some(TimeDelta::from_millis(4700)));
    assert_eq!(playback.stalls.len(), 99);
    for stall in &playback.stalls {
        assert_eq!(stall.lasted, TimeDelta::from_millis(700));
    }
}

/// A client that is polled late still accounts for the time: the buffer ran dry without a poll.
#[test]
fn player_report_needs_no_poll() {
    let spec = ClientSpec::Audio(AudioSpec::default());
    let mut client = Client::new(spec, at(5), Rng::new(1, 0)).expect("valid");
    client.poll(at(6));
    client.on_body(at(7), 100_000);
    let playback = client.report(at(15)).playback.expect("a player");
    assert_eq!(playback.startup, Some(secs(2)));
    assert_eq!((playback.played, playback.stalled()), (secs(5), secs(3)));
    assert_eq!(playback.stalls[0].start, at(12));
}
