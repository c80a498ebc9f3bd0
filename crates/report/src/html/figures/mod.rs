//! The figures of the page and their captions.

mod completions;
mod glance;
mod over_time;
mod states;

use uncork_units::{Time, TimeDelta};

use crate::curves::Strand;
use crate::document::{CompareDocument, Workload};
use crate::escape::escape;
use crate::series::{ColumnSeries, ReportSeries};
use crate::svg::Ink;

/// All figures that the document and the series can fill.
pub(super) fn all(document: &CompareDocument, series: &ReportSeries) -> String {
    let page = Page::new(document, series);
    let panels = page.panels();
    let mut figures = vec![glance::figure(document)];
    figures.extend(page.completions());
    figures.extend(panels.iter().map(|panel| page.delivery_rates(panel)));
    figures.extend(panels.iter().map(|panel| page.round_trips(panel)));
    figures.extend(page.queues());
    figures.extend(page.states());
    let numbered: Vec<String> =
        figures.iter().enumerate().map(|(n, figure)| figure.render(n + 1)).collect();
    format!("<section>\n<h2>Figures</h2>\n{}</section>\n", numbered.concat())
}

struct Figure {
    heading: String,
    svg: String,
    caption: String,
    /// Which runs are shown and how to repeat them; empty where the figure shows no runs.
    source: String,
}

impl Figure {
    fn render(&self, number: usize) -> String {
        let source = match self.source.as_str() {
            "" => String::new(),
            source => format!(" <span class=\"source\">{}</span>", escape(source)),
        };
        format!(
            "<figure>\n<h3>{}</h3>\n{}<figcaption><b>Figure {number}.</b> {}{source}</figcaption>\n\
             </figure>\n",
            escape(&self.heading),
            self.svg,
            escape(&self.caption),
        )
    }
}

/// What all figures of runs share.
struct Page<'a> {
    document: &'a CompareDocument,
    series: &'a ReportSeries,
    /// Where the time axes end, in seconds.
    end_s: f64,
    /// Over which rates are averaged.
    rate_window: TimeDelta,
    /// Over which samples are summed up; longer with many lines, to bound the size of the page.
    sample_window: TimeDelta,
}

/// Columns that share a figure.
struct Panel<'a> {
    /// What tells its heading from that of its siblings.
    suffix: String,
    columns: Vec<&'a ColumnSeries>,
    subjects: Vec<Subject<'a>>,
}

/// A line of a figure, before its values are known.
struct Subject<'a> {
    column: &'a ColumnSeries,
    strand: Strand,
    ink: Ink,
}

impl<'a> Page<'a> {
    fn new(document: &'a CompareDocument, series: &'a ReportSeries) -> Self {
        let end = series.end();
        let length = end.since(Time::ZERO);
        let end_s = match document.workload {
            Workload::Duration { duration_s } => end.as_secs_f64().max(duration_s),
            Workload::Size { .. } => end.as_secs_f64(),
        };
        let rtt = TimeDelta::from_nanos((document.path.rtt_ms * 1e6) as u64);
        let lines: usize = series.columns.iter().map(|column| column.strands().len()).sum();
        let windows = (2400 / lines.max(1) as u64).clamp(50, 300);
        Self {
            document,
            series,
            end_s,
            rate_window: rtt.max(length.divided_by(200)),
            sample_window: length.divided_by(windows).max(TimeDelta::from_nanos(1)),
        }
    }

    /// One panel for all columns of a single flow, and one for each column of several.
    fn panels(&self) -> Vec<Panel<'a>> {
        let (single, several): (Vec<_>, Vec<_>) =
            self.series.columns.iter().enumerate().partition(|(_, c)| c.cc.len() <= 1);
        let shared = Panel {
            suffix: String::new(),
            columns: single.iter().map(|(_, c)| *c).collect(),
            subjects: single.iter().flat_map(|(n, c)| subjects(c, *n)).collect(),
        };
        let own = several.into_iter().map(|(_, column)| Panel {
            suffix: format!(": {}", column.label),
            columns: vec![column],
            subjects: subjects(column, 0),
        });
        std::iter::once(shared).filter(|p| !p.columns.is_empty()).chain(own).collect()
    }

    /// Which runs a figure shows and how to repeat them.
    fn source(&self, columns: &[&ColumnSeries]) -> String {
        let seeds = match columns {
            [first, rest @ ..] if rest.iter().any(|c| c.seed != first.seed) => {
                let seeds = columns.iter().map(|c| format!("{} {}", c.label, c.seed));
                format!("Seeds shown: {}.", seeds.collect::<Vec<_>>().join(", "))
            }
            [first, ..] => format!("Seed shown: {}.", first.seed),
            [] => String::new(),
        };
        format!("{seeds} Repeat with: {}", self.document.command)
    }
}

/// The lines of a column, in the colours from `first_ink` on.
fn subjects(column: &ColumnSeries, first_ink: usize) -> Vec<Subject<'_>> {
    let strands = column.strands().into_iter().enumerate();
    strands.map(|(n, strand)| Subject { column, strand, ink: Ink::Series(first_ink + n) }).collect()
}
