//! States over time, one row for each flow.

use super::axis::Axis;
use super::canvas::{self, CHAR, Frame, WIDTH, rect, text};

/// Rows of coloured spans over a common time axis.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct Timeline {
    /// Text alternative.
    pub(crate) title: String,
    pub(crate) description: String,
    pub(crate) x: Axis,
    /// The rows, top to bottom.
    pub(crate) rows: Vec<TimelineRow>,
}

/// One row.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct TimelineRow {
    pub(crate) name: String,
    /// State, start and end, in order of time and without overlaps.
    pub(crate) spans: Vec<Span>,
}

type Span = (String, f64, f64);

/// The purpose of a state, which determines its colour.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum TimelinePhase {
    Search,
    Drain,
    Cruise,
    Up,
    Down,
    ProbeRtt,
    Recovery,
    Other,
}

/// Maximum spans per row; all rows together have at most six times as many.
const CELLS: usize = 400;
const ROW: f64 = 40.0;
const BAND: f64 = 18.0;

impl TimelinePhase {
    const ALL: [Self; 8] = [
        Self::Search,
        Self::Drain,
        Self::Cruise,
        Self::Up,
        Self::Down,
        Self::ProbeRtt,
        Self::Recovery,
        Self::Other,
    ];

    /// The phase of a state, by its name in the specification.
    fn of(state: &str) -> Self {
        let state = state.to_ascii_lowercase().replace(['_', '-', ' '], "");
        let has = |part: &str| state.contains(part);
        match () {
            () if has("probertt") => Self::ProbeRtt,
            () if has("startup") || has("slowstart") || state == "css" => Self::Search,
            () if has("drain") => Self::Drain,
            () if has("recovery") || has("loss") => Self::Recovery,
            () if has("refill") || has("probebwup") => Self::Up,
            () if has("probebwdown") => Self::Down,
            () if has("probebw") || has("cruise") || has("avoidance") => Self::Cruise,
            () => Self::Other,
        }
    }

    fn class(self) -> &'static str {
        match self {
            Self::Search => "p-search",
            Self::Drain => "p-drain",
            Self::Cruise => "p-cruise",
            Self::Up => "p-up",
            Self::Down => "p-down",
            Self::ProbeRtt => "p-rtt",
            Self::Recovery => "p-recovery",
            Self::Other => "p-other",
        }
    }
}

impl Timeline {
    /// The timeline as an `<svg>` element.
    pub(crate) fn render(&self) -> String {
        let (legend, legend_height) = self.legend();
        let top = legend_height + 6.0;
        let bottom = top + ROW * self.rows.len() as f64 + 4.0;
        let frame = Frame { left: 56.0, right: WIDTH - 12.0, top, bottom };
        let mut body = legend + &frame.x_axis(&self.x);
        let cells = (6 * CELLS / self.rows.len().max(1)).clamp(50, CELLS);
        for (n, row) in self.rows.iter().enumerate() {
            body.push_str(&row.render(&frame, &self.x, top + ROW * n as f64, cells));
        }
        canvas::document(&self.title, &self.description, bottom + 40.0, &body)
    }

    /// A swatch per phase, with the names of its states.
    fn legend(&self) -> (String, f64) {
        let (mut x, mut y) = (56.0, 10.0);
        let mut out = String::new();
        for (phase, states) in self.states() {
            let name = states.join(", ");
            let width = 20.0 + name.chars().count() as f64 * CHAR;
            if x > 56.0 && x + width > WIDTH {
                (x, y) = (56.0, y + 18.0);
            }
            let class = phase.class();
            out.push_str(&canvas::path(class, &rect((x, y - 10.0), (13.0, 12.0))));
            out.push_str(&text(x + 19.0, y, "", &name));
            x += width + 18.0;
        }
        (out, y + 8.0)
    }

    fn states(&self) -> Vec<(TimelinePhase, Vec<&str>)> {
        let mut states: Vec<&str> =
            self.rows.iter().flat_map(|r| &r.spans).map(|(state, ..)| state.as_str()).collect();
        states.sort_unstable();
        states.dedup();
        let of =
            |phase| states.iter().copied().filter(move |s| TimelinePhase::of(s) == phase).collect();
        let phases = TimelinePhase::ALL.into_iter().map(|phase| (phase, of(phase)));
        phases.filter(|(_, states): &(_, Vec<&str>)| !states.is_empty()).collect()
    }
}

impl TimelineRow {
    /// One path per phase, because a row can have hundreds of spans.
    fn render(&self, frame: &Frame, axis: &Axis, top: f64, cells: usize) -> String {
        let spans = merged(&self.spans, axis, cells);
        let x = |(_, from, to): &Span| (frame.x(axis, *from), frame.x(axis, *to));
        let area = |phase: TimelinePhase| -> String {
            let spans = spans.iter().filter(|(state, ..)| TimelinePhase::of(state) == phase).map(x);
            spans.map(|(from, to)| rect((from, top + 17.0), (to - from, BAND))).collect()
        };
        let mut out = text(frame.left, top + 12.0, "h", &self.name);
        for phase in TimelinePhase::ALL {
            let d = area(phase);
            out.push_str(&if d.is_empty() { d } else { canvas::path(phase.class(), &d) });
        }
        out.extend(spans.iter().map(|span| name_within(span, x(span), top + 30.0)));
        out
    }
}

/// The state's name in the middle of its span, if it fits.
fn name_within((state, ..): &Span, (from, to): (f64, f64), y: f64) -> String {
    let name = state.trim_start_matches("ProbeBW_");
    let fits = name.chars().count() as f64 * CHAR + 6.0 <= to - from;
    if fits { text(f64::midpoint(from, to), y, "m ink", name) } else { String::new() }
}

/// The spans; if there are more than `cells`, the longest in each of `cells` equal parts of the axis.
fn merged(spans: &[Span], axis: &Axis, cells: usize) -> Vec<Span> {
    if spans.len() <= cells {
        return spans.to_vec();
    }
    let cell = |value: f64| ((axis.fraction(value) * cells as f64) as usize).min(cells - 1);
    let mut longest: Vec<Option<&Span>> = vec![None; cells];
    for span in spans {
        for best in &mut longest[cell(span.1)..=cell(span.2)] {
            if best.is_none_or(|best| best.2 - best.1 < span.2 - span.1) {
                *best = Some(span);
            }
        }
    }
    let runs = longest.chunk_by(|a, b| a.map(|span| &span.0) == b.map(|span| &span.0));
    runs.filter_map(joined).collect()
}

/// One span for a run of cells with the same state.
fn joined(run: &[Option<&Span>]) -> Option<Span> {
    let (first, last) = (run.first().copied()??, run.last().copied()??);
    Some((first.0.clone(), first.1, last.2))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn timeline(spans: usize) -> Timeline {
        let state = |n: usize| ["SlowStart", "Recovery", "CongestionAvoidance"][n % 3].to_owned();
        let span = |n| (state(n), n as f64, n as f64 + 1.0);
        let rows =
            vec![TimelineRow { name: "<cubic>".to_owned(), spans: (0..spans).map(span).collect() }];
        let x = Axis::linear("time, s", 0.0, spans as f64);
        Timeline { title: "t".to_owned(), description: "d".to_owned(), x, rows }
    }

    #[test]
    fn states_with_one_purpose_share_a_phase() {
        for (state, phase) in [
            ("Startup", TimelinePhase::Search),
            ("SlowStart", TimelinePhase::Search),
            ("CSS", TimelinePhase::Search),
            ("Drain", TimelinePhase::Drain),
            ("ProbeBW_DOWN", TimelinePhase::Down),
            ("ProbeBW_CRUISE", TimelinePhase::Cruise),
            ("ProbeBW_REFILL", TimelinePhase::Up),
            ("ProbeBW_UP", TimelinePhase::Up),
            ("ProbeBW", TimelinePhase::Cruise),
            ("ProbeRTT", TimelinePhase::ProbeRtt),
            ("CongestionAvoidance", TimelinePhase::Cruise),
            ("Recovery", TimelinePhase::Recovery),
            ("unknown state", TimelinePhase::Other),
        ] {
            assert_eq!(TimelinePhase::of(state), phase, "{state}");
        }
    }

    #[test]
    fn few_spans_are_drawn_as_they_are() {
        let svg = timeline(6).render();
        assert!(roxmltree::Document::parse(&svg).is_ok());
        assert_eq!(svg.matches("v18h").count(), 6, "spans");
        assert_eq!(svg.matches("v12h").count(), 3, "swatches");
        assert!(svg.contains("&lt;cubic&gt;"));
    }

    #[test]
    fn many_spans_stay_drawable() {
        let svg = timeline(50_000).render();
        assert!(svg.matches("v18h").count() <= CELLS);
        assert!(svg.len() < 20_000, "{}", svg.len());
    }
}
