//! Results as documents: `docs/schemas/play.get-1.json` and `play.audio-1.json`. Their texts are in `uncork-report`.

use uncork_apps::Transfer;
use uncork_report::play::{
    AudienceFigures, GetDocument, ListenDocument, ListenerFigures, TransferFigures,
};
use uncork_units::TimeDelta;

use crate::{ClientError, Fetched, ListenerReport};

impl Fetched {
    /// The downloads of `command`.
    pub fn document(all: &[Self], command: String) -> GetDocument {
        let schema = GetDocument::SCHEMA.to_owned();
        GetDocument { schema, command, transfers: all.iter().map(transfer).collect() }
    }
}

impl ListenerReport {
    /// The listeners of `command`.
    pub fn document(all: &[Self], command: String) -> ListenDocument {
        let listeners: Vec<ListenerFigures> = all.iter().map(listener).collect();
        let chunks = all.iter().flat_map(|one| &one.report.transfers);
        let chunks = chunks.filter_map(Transfer::throughput);
        let chunks: Vec<f64> = chunks.map(|rate| rate.bits_per_sec() as f64).collect();
        ListenDocument {
            schema: ListenDocument::SCHEMA.to_owned(),
            command,
            audience: AudienceFigures::of(&listeners, &chunks),
            listeners,
        }
    }
}

fn transfer(fetched: &Fetched) -> TransferFigures {
    let setup = fetched.setup;
    TransferFigures {
        url: fetched.target.to_string(),
        http: fetched.version.map(|version| version.number().to_owned()),
        status: fetched.status,
        cc: fetched.cc.clone(),
        bytes: fetched.received,
        size_bytes: fetched.size,
        start_s: fetched.start.as_secs_f64(),
        resolve_ms: setup.map(|setup| setup.resolve.as_millis_f64()),
        connect_ms: setup.map(|setup| setup.connect.as_millis_f64()),
        tls_ms: setup.and_then(|setup| setup.tls).map(TimeDelta::as_millis_f64),
        first_byte_ms: fetched.first_byte.map(TimeDelta::as_millis_f64),
        time_s: fetched.took.as_secs_f64(),
        goodput_bps: fetched.goodput_bps(),
        sha256: fetched.sha256.clone(),
        problem: fetched.problem.as_ref().map(ClientError::explained),
    }
}

fn listener(heard: &ListenerReport) -> ListenerFigures {
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
        problem: problem.as_ref().map(ClientError::explained),
    }
}
