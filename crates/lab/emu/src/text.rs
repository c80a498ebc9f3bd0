//! Results as text.

use std::fmt::Write;

use crate::document::{HostDocument, Way};
use crate::report::{DirectionReport, Drops, Report, Spread};

impl Report {
    /// A summary of a run.
    pub fn text(&self) -> String {
        let mut text = String::new();
        // Writing to a string never fails.
        let _ = write(&mut text, self);
        text
    }
}

impl HostDocument {
    /// A line.
    pub fn text(&self) -> String {
        let Self { side, name, v4, v6, way } = self;
        let v6 = v6.as_deref().unwrap_or("-");
        let host = format!("{side:4}  {name:24}  {v4:14}  ");
        let Some(Way { rtt_ms, path, classes }) = way else { return format!("{host}{v6}\n") };
        let classes = classes.join(", ");
        let classes = if classes.is_empty() { classes } else { format!(": {classes}") };
        format!("{host}{v6:16}  {path}, round trip {rtt_ms} ms{classes}\n")
    }
}

fn write(text: &mut String, report: &Report) -> std::fmt::Result {
    writeln!(
        text,
        "{:9}  {:>9} {:>9} {:>7} {:>7} {:>7} {:>7}  {:>9}  {:>17}  {:>20}",
        "",
        "packets",
        "delivered",
        "queue",
        "policer",
        "loss",
        "marked",
        "Mbit/s",
        "delay ms p50 p99",
        "late ms p50 p99 max"
    )?;
    for (name, direction) in [("to near", &report.down), ("to far", &report.up)] {
        row(text, name, direction)?;
    }
    for link in &report.links {
        if let Some(utilisation) = link.utilisation {
            let (name, percent) = (&link.name, 100.0 * utilisation);
            writeln!(text, "{name}: {percent:.1} % of its capacity used")?;
        }
    }
    for (name, direction) in [("to near", &report.down), ("to far", &report.up)] {
        let Drops { overrun, refused, malformed, stray, .. } = direction.dropped;
        for (count, what) in [
            (overrun, "lost because the emulator was too slow"),
            (refused, "refused by the other side"),
            (malformed, "malformed"),
            (stray, "for other addresses (multicast, unknown)"),
        ] {
            if count > 0 {
                writeln!(text, "{name}: {count} packets {what}")?;
            }
        }
    }
    for flag in &report.flags {
        writeln!(text, "FLAGGED, do not rely on this run: {flag}")?;
    }
    Ok(())
}

fn row(text: &mut String, name: &str, direction: &DirectionReport) -> std::fmt::Result {
    let Drops { queue, policer, loss, .. } = direction.dropped;
    let delay = direction
        .delay_ms
        .map_or("-".to_owned(), |Spread { p50, p99, .. }| format!("{p50:.2} {p99:.2}"));
    let late = direction.lateness_ms.map_or("-".to_owned(), |Spread { p50, p99, max, .. }| {
        format!("{p50:.3} {p99:.3} {max:.2}")
    });
    writeln!(
        text,
        "{name:9}  {:>9} {:>9} {queue:>7} {policer:>7} {loss:>7} {:>7}  {:>9.3}  {delay:>17}  {late:>20}",
        direction.offered_packets,
        direction.delivered_packets,
        direction.marked,
        direction.delivered_bps / 1e6,
    )
}
