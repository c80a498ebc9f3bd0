//! `uncork play audio`: listeners, and what they experience.

use uncork_apps::{AudioSpec, Transfer};
use uncork_play::{ListenSpec, ListenerReport};
use uncork_report::play::{
    AudienceFigures, ListenDocument, ListenerFigures, listen_csv, listen_table,
};
use uncork_units::TimeDelta;

use super::args::AudioArgs;
use super::measure::{explained, measure};
use crate::failure::Failure;
use crate::values::{Format, command_line, shown};
use crate::{color, stdout};

/// Each listener has a connection and thus a file descriptor.
const MAX_LISTENERS: u32 = 100_000;

pub(super) fn audio(args: &AudioArgs) -> Result<(), Failure> {
    let spec = specification(args)?;
    let work = |stop: &_, tally: &_| uncork_play::listen(&spec, stop, tally);
    let what = (spec.listeners, "listeners");
    let (heard, is_stopped) = measure(&args.shown, what, work, ListenerReport::records)?;
    let document = document(&heard);
    let text = match args.shown.format {
        Format::Human => listen_table(&document, color::style(args.shown.color)),
        Format::Json => document.to_json(),
        Format::Csv => listen_csv(&document),
    };
    match args.shown.format {
        Format::Human => stdout::styled(&text)?,
        Format::Json | Format::Csv => stdout::data(text.as_bytes())?,
    }
    if is_stopped {
        let (clicked, all) = (heard.len(), spec.listeners);
        return Err(Failure::Interrupted(format!("{clicked} of {all} listeners had clicked")));
    }
    let mut problems = document.listeners.iter().filter_map(|one| one.problem.as_deref());
    problems.next().map_or(Ok(()), |first| {
        let failed = document.audience.failed;
        let all = document.audience.listeners;
        Err(Failure::Missed(format!("{failed} of {all} listeners could not go on: {first}")))
    })
}

fn specification(args: &AudioArgs) -> Result<ListenSpec, Failure> {
    if args.listeners == 0 || args.listeners > MAX_LISTENERS {
        let reason = format!("expected 1 to {MAX_LISTENERS}");
        return Err(Failure::value(&shown::<AudioArgs>("listeners"), args.listeners, reason));
    }
    let spec = ListenSpec {
        targets: args.url.clone(),
        connect: args.transport.spec(),
        bitrate: args.bitrate,
        duration: args.duration,
        player: AudioSpec {
            tracks: Vec::new(),
            chunk: args.chunk.as_u64(),
            start_threshold: args.start_threshold,
            resume_threshold: args.resume_threshold,
            low_water: args.low_water,
        },
        listeners: args.listeners as usize,
        spread: args.spread,
        seed: args.seed,
        limit: args.limit,
        cmcd: args.cmcd.mode(),
        enough: args.enough,
    };
    spec.check().map_err(|error| Failure::Usage(error.to_string()))?;
    Ok(spec)
}

fn document(heard: &[ListenerReport]) -> ListenDocument {
    let listeners: Vec<ListenerFigures> = heard.iter().map(figures).collect();
    let chunks = heard.iter().flat_map(|heard| &heard.report.transfers);
    let chunks = chunks.filter_map(Transfer::throughput);
    let chunks: Vec<f64> = chunks.map(|rate| rate.bits_per_sec() as f64).collect();
    ListenDocument {
        schema: ListenDocument::SCHEMA.to_owned(),
        command: command_line(),
        audience: AudienceFigures::of(&listeners, &chunks),
        listeners,
    }
}

fn figures(heard: &ListenerReport) -> ListenerFigures {
    let ListenerReport { click, setup, version, cc, report, problem, .. } = heard;
    let playback = report.playback.as_ref();
    let audio = report.audio;
    let seconds = |span: Option<TimeDelta>| span.map(TimeDelta::as_secs_f64);
    let whole = report.transfers.iter().filter_map(|one| Some((one, one.end?)));
    let (bytes, waited) = whole.fold((0.0, 0.0), |(bytes, waited), (one, end)| {
        (bytes + one.bytes as f64, waited + end.since(one.start).as_secs_f64())
    });
    ListenerFigures {
        http: version.map(|version| version.number().to_owned()),
        cc: cc.clone(),
        click_s: click.as_secs_f64(),
        connect_ms: setup.map(|setup| (setup.resolve + setup.connect).as_millis_f64()),
        tls_ms: setup.and_then(|setup| setup.tls).map(TimeDelta::as_millis_f64),
        playback_latency_s: seconds(playback.and_then(|playback| playback.startup)),
        stutters: playback.map_or(0, |playback| playback.stalls.len() as u64),
        stalled_s: playback.map_or(0.0, |playback| playback.stalled().as_secs_f64()),
        played_s: playback.map_or(0.0, |playback| playback.played.as_secs_f64()),
        songs: audio.map_or(0, |audio| audio.started as u64),
        songs_finished: audio.map_or(0, |audio| audio.finished as u64),
        bytes: report.transfers.iter().map(|transfer| transfer.received).sum(),
        bandwidth_bps: (waited > 0.0).then(|| bytes * 8.0 / waited),
        problem: problem.as_ref().map(explained),
    }
}
