//! Listeners.

use serde::{Deserialize, Serialize};
use uncork_flow::{mean, quantile};
use uncork_terminal::{Column, Style, Table, printable, push_line};

use super::{column, figure, figures};
use crate::csv_text::csv_text;
use crate::number::{percent, rate, seconds, short};
use crate::words::counted;

/// With more listeners than this, only failed ones have a row.
const MAX_ROWS: usize = 20;

/// Listeners of a command.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
pub struct ListenDocument {
    /// Name and version of the form.
    #[cfg_attr(test, schemars(extend("const" = Self::SCHEMA)))]
    pub schema: String,
    /// The command.
    pub command: String,
    /// Statistics of all listeners.
    pub audience: AudienceFigures,
    /// Listeners, by click.
    pub listeners: Vec<ListenerFigures>,
}

/// A listener.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
pub struct ListenerFigures {
    /// Version of HTTP: `1.1`, `2` or `3`.
    pub http: Option<String>,
    /// The server's controller, if it sends it.
    pub cc: Option<String>,
    /// Click.
    pub click_s: f64,
    /// Duration of connecting.
    pub connect_ms: Option<f64>,
    /// TLS handshake; null if connecting includes it.
    pub tls_ms: Option<f64>,
    /// From click to first sound; null without sound.
    pub playback_latency_s: Option<f64>,
    /// Interruptions after the first sound.
    pub stutters: u64,
    /// Duration of all interruptions.
    pub stalled_s: f64,
    /// Duration of music played.
    pub played_s: f64,
    /// Songs started.
    pub songs: u64,
    /// Songs finished.
    pub songs_finished: u64,
    /// Bytes of songs received.
    pub bytes: u64,
    /// Bits of complete chunks / time waited for them.
    pub bandwidth_bps: Option<f64>,
    /// Error.
    pub problem: Option<String>,
}

/// Statistics of all listeners.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
pub struct AudienceFigures {
    /// Number of listeners.
    pub listeners: u64,
    /// Failed listeners.
    pub failed: u64,
    /// Listeners without any sound; excluded from the latency quantiles.
    pub silent: u64,
    /// Median time from click to first sound.
    pub playback_latency_p50_s: Option<f64>,
    /// 95th percentile of the same.
    pub playback_latency_p95_s: Option<f64>,
    /// 99th percentile of the same.
    pub playback_latency_p99_s: Option<f64>,
    /// Interruptions per song.
    pub stutters_per_song: Option<f64>,
    /// Interruptions per hour of music.
    pub stutters_per_hour: Option<f64>,
    /// Share of silence after the first sound.
    pub stalled_share: Option<f64>,
    /// Share of listeners without interruption, of those with sound.
    pub without_stutter_share: Option<f64>,
    /// Median of bits of a chunk / time waited for it.
    pub chunk_bandwidth_p50_bps: Option<f64>,
    /// 10th percentile of the same.
    pub chunk_bandwidth_p10_bps: Option<f64>,
    /// 1st percentile of the same.
    pub chunk_bandwidth_p1_bps: Option<f64>,
}

impl AudienceFigures {
    /// Statistics of `listeners` and the bandwidths of their chunks, in bit/s.
    pub fn of(listeners: &[ListenerFigures], chunks_bps: &[f64]) -> Self {
        let latencies: Vec<f64> =
            listeners.iter().filter_map(|listener| listener.playback_latency_s).collect();
        let sum = |of: fn(&ListenerFigures) -> f64| listeners.iter().map(of).sum::<f64>();
        let per = |part: f64, whole: f64| (whole > 0.0).then(|| part / whole);
        let (stutters, songs) = (sum(|one| one.stutters as f64), sum(|one| one.songs as f64));
        let (played, stalled) = (sum(|one| one.played_s), sum(|one| one.stalled_s));
        let heard = listeners.iter().filter(|one| one.playback_latency_s.is_some());
        let smooth: Vec<f64> = heard.map(|one| f64::from(u8::from(one.stutters == 0))).collect();
        Self {
            listeners: listeners.len() as u64,
            failed: listeners.iter().filter(|one| one.problem.is_some()).count() as u64,
            silent: (listeners.len() - latencies.len()) as u64,
            playback_latency_p50_s: quantile(&latencies, 0.5),
            playback_latency_p95_s: quantile(&latencies, 0.95),
            playback_latency_p99_s: quantile(&latencies, 0.99),
            stutters_per_song: per(stutters, songs),
            stutters_per_hour: per(stutters * 3600.0, played),
            stalled_share: per(stalled, played + stalled),
            without_stutter_share: mean(&smooth),
            chunk_bandwidth_p50_bps: quantile(chunks_bps, 0.5),
            chunk_bandwidth_p10_bps: quantile(chunks_bps, 0.1),
            chunk_bandwidth_p1_bps: quantile(chunks_bps, 0.01),
        }
    }
}

impl ListenDocument {
    /// Name and version of the JSON form.
    pub const SCHEMA: &str = "uncork.play.audio/1";

    /// A row per listener, unless there are many, and a summary.
    pub fn text(&self, style: Style) -> String {
        let all = &self.listeners;
        let is_listed = |one: &&ListenerFigures| all.len() <= MAX_ROWS || one.problem.is_some();
        let rows: Vec<&ListenerFigures> = all.iter().filter(is_listed).collect();
        let mut out = String::new();
        if !rows.is_empty() {
            out.push_str(&table(&rows).render(style));
            out.push('\n');
        }
        for line in together(&self.audience) {
            push_line(&mut out, &style.bold(&line));
        }
        out
    }

    /// A header line and a line for each listener, with the names of the JSON form.
    pub fn csv(&self) -> String {
        let row = |listener: &ListenerFigures| {
            let mut row = listener.clone();
            for value in [
                &mut row.connect_ms,
                &mut row.tls_ms,
                &mut row.playback_latency_s,
                &mut row.bandwidth_bps,
            ] {
                *value = figure(*value);
            }
            for value in [&mut row.click_s, &mut row.stalled_s, &mut row.played_s] {
                *value = figure(Some(*value)).unwrap_or_default();
            }
            row
        };
        csv_text(|csv| self.listeners.iter().map(row).try_for_each(|row| csv.serialize(row)))
    }
}

fn table(rows: &[&ListenerFigures]) -> Table {
    let or_dash = |text: &Option<String>| text.as_deref().map_or_else(|| "-".to_owned(), printable);
    let labels = rows.iter().map(|row| vec![or_dash(&row.http), or_dash(&row.cc)]);
    let mut cells: Vec<Vec<String>> = labels.collect();
    let values: [fn(&ListenerFigures) -> Option<f64>; 7] = [
        |row| Some(row.click_s),
        |row| row.connect_ms.map(|ms| ms + row.tls_ms.unwrap_or(0.0)),
        |row| row.playback_latency_s,
        |row| Some(row.stutters as f64),
        |row| Some(row.stalled_s),
        |row| Some(row.played_s),
        |row| row.bandwidth_bps.map(|bps| bps / 1e6),
    ];
    for (index, value) in values.into_iter().enumerate() {
        let column: Vec<String> = match index {
            3 => rows.iter().map(|row| row.stutters.to_string()).collect(),
            _ => column(rows.iter().map(|row| value(row))).collect(),
        };
        for (row, cell) in cells.iter_mut().zip(column) {
            row.push(cell);
        }
    }
    let columns = vec![
        figures("", "HTTP"),
        Column::left("cc"),
        figures("click", "s"),
        figures("connect", "ms"),
        figures("latency", "s"),
        figures("", "stutters"),
        figures("stalled", "s"),
        figures("played", "s"),
        figures("bandwidth", "Mbit/s"),
    ];
    Table { columns, rows: cells }
}

fn together(audience: &AudienceFigures) -> Vec<String> {
    let or_dash =
        |value: Option<f64>, print: fn(f64) -> String| value.map_or_else(|| "-".to_owned(), print);
    let mut lines = vec![format!(
        "{}: playback latency {} (p50), {} (p95), {} (p99)",
        counted(audience.listeners, "listener"),
        or_dash(audience.playback_latency_p50_s, seconds),
        or_dash(audience.playback_latency_p95_s, seconds),
        or_dash(audience.playback_latency_p99_s, seconds),
    )];
    lines.push(format!(
        "{} stutters of a song, {} in an hour of music; {} of listeners heard none; silent {} of the time",
        or_dash(audience.stutters_per_song, short),
        or_dash(audience.stutters_per_hour, short),
        or_dash(audience.without_stutter_share, percent),
        or_dash(audience.stalled_share, percent),
    ));
    lines.push(format!(
        "bandwidth of chunks {} (p50), {} (p10), {} (p1)",
        or_dash(audience.chunk_bandwidth_p50_bps, rate),
        or_dash(audience.chunk_bandwidth_p10_bps, rate),
        or_dash(audience.chunk_bandwidth_p1_bps, rate),
    ));
    if audience.failed + audience.silent > 0 {
        let (failed, silent) = (audience.failed, audience.silent);
        lines.push(format!("{failed} could not go on, {silent} heard nothing"));
    }
    lines
}

#[cfg(test)]
mod tests {
    use super::*;

    fn document() -> ListenDocument {
        let smooth = ListenerFigures {
            http: Some("3".to_owned()),
            cc: Some("bbr3".to_owned()),
            connect_ms: Some(51.25),
            playback_latency_s: Some(0.25),
            played_s: 210.0,
            songs: 1,
            songs_finished: 1,
            bytes: 4_200_000,
            bandwidth_bps: Some(4e6),
            ..ListenerFigures::default()
        };
        let stuttering = ListenerFigures {
            click_s: 1.5,
            playback_latency_s: Some(0.75),
            stutters: 3,
            stalled_s: 10.0,
            played_s: 150.0,
            songs: 1,
            bandwidth_bps: Some(2e5),
            ..smooth.clone()
        };
        let problem = Some("status 503".to_owned());
        let silent = ListenerFigures { click_s: 2.0, problem, ..ListenerFigures::default() };
        let listeners = vec![smooth, stuttering, silent];
        let schema = ListenDocument::SCHEMA.to_owned();
        let audience = AudienceFigures::of(&listeners, &[1e6, 2e6, 3e6]);
        ListenDocument { schema, command: "uncork play audio".to_owned(), audience, listeners }
    }

    /// Three stutters of two songs in 360 s of music; 10 s of stalls in 370 s.
    #[test]
    fn audience_is_the_sum_of_its_listeners() {
        let audience = document().audience;
        assert_eq!((audience.listeners, audience.failed, audience.silent), (3, 1, 1));
        assert_eq!(audience.playback_latency_p50_s, Some(0.5));
        assert_eq!(audience.stutters_per_song, Some(1.5));
        assert_eq!(audience.stutters_per_hour, Some(30.0));
        assert_eq!(audience.stalled_share, Some(10.0 / 370.0));
        assert_eq!(audience.without_stutter_share, Some(0.5));
        assert_eq!(audience.chunk_bandwidth_p50_bps, Some(2e6));
        assert_eq!(AudienceFigures::of(&[], &[]).stutters_per_song, None);
    }

    #[test]
    fn one_row_per_listener_and_a_summary() {
        let table = document().text(Style::Plain);
        let expected = [
            "            click  connect  latency            stalled  played  bandwidth",
            "HTTP  cc        s       ms        s  stutters        s       s     Mbit/s",
            "   3  bbr3   0.00     51.2    0.250         0      0.0     210      4.000",
            "   3  bbr3   1.50     51.2    0.750         3     10.0     150      0.200",
            "   -  -      2.00        -        -         0      0.0       0          -",
            "",
            "3 listeners: playback latency 500 ms (p50), 725 ms (p95), 745 ms (p99)",
            "1.5 stutters of a song, 30 in an hour of music; 50 % of listeners heard none; \
             silent 2.7 % of the time",
            "bandwidth of chunks 2 Mbit/s (p50), 1.2 Mbit/s (p10), 1.02 Mbit/s (p1)",
            "1 could not go on, 1 heard nothing",
            "",
        ];
        assert_eq!(table, expected.join("\n"));
    }

    #[test]
    fn one_line_per_listener() {
        let csv = document().csv();
        let lines: Vec<&str> = csv.lines().collect();
        assert_eq!(lines.len(), 4);
        assert!(lines[0].starts_with("http,cc,click_s,connect_ms,tls_ms,playback_latency_s,"));
        assert_eq!(lines[2], "3,bbr3,1.5,51.25,,0.75,3,10.0,150.0,1,1,4200000,200000.0,");
        assert!(lines[3].ends_with(",status 503"));
    }
}
