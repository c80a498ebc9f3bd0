//! What each controller was about, and when.

use super::{Figure, Page};
use crate::curves::{self, StateSpan, Strand};
use crate::series::ColumnSeries;
use crate::svg::{Axis, Span, Timeline, TimelineRow};

const CAPTION: &str = "State of each controller over time, by the name that its specification gives \
    it; states with one purpose share a colour. Where a row stands for several flows, it shows the \
    first of them.";

impl Page<'_> {
    pub(super) fn states(&self) -> Option<Figure> {
        let columns: Vec<&ColumnSeries> = self.series.columns.iter().collect();
        let rows = columns.iter().flat_map(|column| rows(column));
        let rows: Vec<TimelineRow> = rows.filter(|row| !row.spans.is_empty()).collect();
        if rows.is_empty() {
            return None;
        }
        let timeline = Timeline {
            title: "Controller states over time".to_owned(),
            description: CAPTION.to_owned(),
            x: Axis::linear("time, s", 0.0, self.end_s),
            rows,
        };
        Some(Figure {
            heading: "What the controllers did".to_owned(),
            svg: timeline.render(),
            caption: CAPTION.to_owned(),
            source: self.source(&columns),
        })
    }
}

fn rows(column: &ColumnSeries) -> Vec<TimelineRow> {
    column.strands().iter().map(|strand| row(column, strand)).collect()
}

fn row(column: &ColumnSeries, strand: &Strand) -> TimelineRow {
    let name = match column.cc.len() {
        0 | 1 => column.label.clone(),
        _ => format!("{}, {}", column.label, strand.label),
    };
    let first = strand.flows.first().copied().unwrap_or(0);
    TimelineRow { name, spans: curves::states(column, first).iter().map(span).collect() }
}

fn span(span: &StateSpan) -> Span {
    Span { state: span.state.to_owned(), from: span.from_s, to: span.to_s }
}
