//! Downloads.

use serde::{Deserialize, Serialize};
use uncork_flow::quantile;
use uncork_terminal::{Column, Style, Table, printable, push_line};

use super::{column, figure, figures};
use crate::csv_text::csv_text;
use crate::number::{bytes, rate, seconds};
use crate::words::counted;

/// With more downloads than this, only failed ones have a row.
const MAX_ROWS: usize = 40;

/// Downloads of a command.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
pub struct GetDocument {
    /// Name and version of the form.
    #[cfg_attr(test, schemars(extend("const" = Self::SCHEMA)))]
    pub schema: String,
    /// The command.
    pub command: String,
    /// Downloads, by start.
    pub transfers: Vec<TransferFigures>,
}

/// A download. Times count from its start.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
pub struct TransferFigures {
    /// URL.
    pub url: String,
    /// Version of HTTP: `1.1`, `2` or `3`.
    pub http: Option<String>,
    /// Status code.
    pub status: Option<u16>,
    /// The server's controller, if it sends it.
    pub cc: Option<String>,
    /// Bytes of the body received.
    pub bytes: u64,
    /// Content length.
    pub size_bytes: Option<u64>,
    /// Start, counted from the first download.
    pub start_s: f64,
    /// Name resolution; null on an existing connection.
    pub resolve_ms: Option<f64>,
    /// Connecting, from the end of the resolution.
    pub connect_ms: Option<f64>,
    /// TLS handshake; null if connecting includes it.
    pub tls_ms: Option<f64>,
    /// First byte of the body.
    pub first_byte_ms: Option<f64>,
    /// Last byte, or failure.
    pub time_s: f64,
    /// Bits of the body / `time_s`, if it succeeded.
    pub goodput_bps: Option<f64>,
    /// SHA-256 of the body, with `--sha256`.
    pub sha256: Option<String>,
    /// Error.
    pub problem: Option<String>,
}

impl GetDocument {
    /// Name and version of the JSON form.
    pub const SCHEMA: &str = "uncork.play.get/1";

    /// Failed downloads.
    pub fn failed(&self) -> impl Iterator<Item = &TransferFigures> {
        self.transfers.iter().filter(|transfer| transfer.problem.is_some())
    }

    /// A row per download, and a summary if there are many.
    pub fn text(&self, style: Style) -> String {
        let all = &self.transfers;
        let is_listed =
            |transfer: &&TransferFigures| all.len() <= MAX_ROWS || transfer.problem.is_some();
        let rows: Vec<&TransferFigures> = all.iter().filter(is_listed).collect();
        let mut out = String::new();
        if !rows.is_empty() {
            out.push_str(&table(&rows).render(style));
        }
        if all.len() > 1 {
            if !rows.is_empty() {
                out.push('\n');
            }
            push_line(&mut out, &style.bold(&together(all)));
        }
        for transfer in all {
            if let Some(digest) = &transfer.sha256 {
                push_line(&mut out, &format!("{digest}  {}", printable(&transfer.url)));
            }
        }
        out
    }

    /// A header line and a line for each download, with the names of the JSON form.
    pub fn csv(&self) -> String {
        let row = |transfer: &TransferFigures| {
            let mut row = transfer.clone();
            for value in [
                &mut row.resolve_ms,
                &mut row.connect_ms,
                &mut row.tls_ms,
                &mut row.first_byte_ms,
                &mut row.goodput_bps,
            ] {
                *value = figure(*value);
            }
            row.start_s = figure(Some(row.start_s)).unwrap_or_default();
            row.time_s = figure(Some(row.time_s)).unwrap_or_default();
            row
        };
        csv_text(|csv| self.transfers.iter().map(row).try_for_each(|row| csv.serialize(row)))
    }
}

fn table(rows: &[&TransferFigures]) -> Table {
    let or_dash = |text: Option<String>| text.map_or_else(|| "-".to_owned(), |t| printable(&t));
    let labels = rows.iter().map(|row| {
        let status = row.status.map(|status| status.to_string());
        let labels = [Some(row.url.clone()), row.http.clone(), status, row.cc.clone()];
        let size = bytes(row.bytes as f64);
        labels.into_iter().map(or_dash).chain([size]).collect::<Vec<_>>()
    });
    let mut cells: Vec<Vec<String>> = labels.collect();
    let values: [fn(&TransferFigures) -> Option<f64>; 5] = [
        |row| row.connect_ms,
        |row| row.tls_ms,
        |row| row.first_byte_ms,
        |row| Some(row.time_s),
        |row| row.goodput_bps.map(|bps| bps / 1e6),
    ];
    for value in values {
        for (row, cell) in cells.iter_mut().zip(column(rows.iter().map(|row| value(row)))) {
            row.push(cell);
        }
    }
    let columns = vec![
        Column::left(""),
        figures("", "HTTP"),
        figures("", "status"),
        Column::left("cc"),
        figures("", "body"),
        figures("connect", "ms"),
        figures("TLS", "ms"),
        figures("first byte", "ms"),
        figures("time", "s"),
        figures("goodput", "Mbit/s"),
    ];
    Table { columns, rows: cells }
}

/// `5 transfers of 50 MB: time 4.41 s (p50), 4.52 s (p95); …`
fn together(all: &[TransferFigures]) -> String {
    let whole: Vec<&TransferFigures> =
        all.iter().filter(|transfer| transfer.problem.is_none()).collect();
    let sum: u64 = all.iter().map(|transfer| transfer.bytes).sum();
    let mut parts =
        vec![format!("{}, {}", counted(all.len() as u64, "transfer"), bytes(sum as f64))];
    let spread = |values: Vec<f64>| {
        let at = |q| quantile(&values, q).map_or_else(|| "-".to_owned(), seconds);
        format!("{} (p50), {} (p95)", at(0.5), at(0.95))
    };
    if !whole.is_empty() {
        let firsts = whole.iter().filter_map(|transfer| transfer.first_byte_ms);
        let times = whole.iter().map(|transfer| transfer.time_s);
        let rates: Vec<f64> = whole.iter().filter_map(|transfer| transfer.goodput_bps).collect();
        parts.push(format!("first byte {}", spread(firsts.map(|ms| ms / 1e3).collect())));
        parts.push(format!("time {}", spread(times.collect())));
        if let Some(median) = quantile(&rates, 0.5) {
            parts.push(format!("goodput {} (p50)", rate(median)));
        }
    }
    let failed = all.len() - whole.len();
    parts.extend((failed > 0).then(|| format!("{failed} failed")));
    parts.join("; ")
}

#[cfg(test)]
mod tests {
    use super::*;

    fn document() -> GetDocument {
        let whole = TransferFigures {
            url: "https://example.org/large".to_owned(),
            http: Some("2".to_owned()),
            status: Some(200),
            cc: Some("bbr".to_owned()),
            bytes: 10_000_000,
            size_bytes: Some(10_000_000),
            resolve_ms: Some(0.1),
            connect_ms: Some(50.25),
            tls_ms: Some(51.0),
            first_byte_ms: Some(152.5),
            time_s: 4.5,
            goodput_bps: Some(17_777_777.777),
            sha256: Some("00ff".to_owned()),
            ..TransferFigures::default()
        };
        let failed = TransferFigures {
            url: "https://example.org/\u{1b}[1m".to_owned(),
            start_s: 1.0,
            time_s: 0.25,
            problem: Some("refused".to_owned()),
            ..TransferFigures::default()
        };
        let schema = GetDocument::SCHEMA.to_owned();
        let command = "uncork play get".to_owned();
        GetDocument { schema, command, transfers: vec![whole, failed] }
    }

    #[test]
    fn one_row_per_download_and_a_summary() {
        let expected = [
            "                                                         connect   TLS  first byte   time  goodput",
            "                               HTTP  status  cc    body       ms    ms          ms      s   Mbit/s",
            "https://example.org/large         2     200  bbr  10 MB     50.2  51.0         152  4.500     17.8",
            "https://example.org/\\u001b[1m     -       -  -      0 B        -     -           -  0.250        -",
            "",
            "2 transfers, 10 MB; first byte 152 ms (p50), 152 ms (p95); time 4.5 s (p50), 4.5 s (p95); \
             goodput 17.8 Mbit/s (p50); 1 failed",
            "00ff  https://example.org/large",
            "",
        ];
        assert_eq!(document().text(Style::Plain), expected.join("\n"));
    }

    #[test]
    fn one_line_per_download() {
        let expected = "\
url,http,status,cc,bytes,size_bytes,start_s,resolve_ms,connect_ms,tls_ms,first_byte_ms,time_s,\
goodput_bps,sha256,problem
https://example.org/large,2,200,bbr,10000000,10000000,0.0,0.1,50.25,51.0,152.5,4.5,17777800.0,00ff,
https://example.org/\u{1b}[1m,,,,0,,1.0,,,,,0.25,,,refused
";
        assert_eq!(document().csv(), expected);
    }

    #[test]
    fn with_many_downloads_only_failed_ones_have_a_row() {
        let mut document = document();
        let failed = document.transfers.remove(1);
        document.transfers[0].sha256 = None;
        document.transfers = vec![document.transfers[0].clone(); MAX_ROWS];
        assert_eq!(document.text(Style::Plain).lines().count(), MAX_ROWS + 4);
        document.transfers.push(failed);
        let table = document.text(Style::Plain);
        assert_eq!(table.lines().count(), 5, "{table}");
        assert!(table.contains("41 transfers, 400 MB; first byte"), "{table}");
    }
}
