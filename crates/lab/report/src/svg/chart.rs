//! Line charts.

use super::axis::Axis;
use super::canvas::{self, CHAR, Frame, WIDTH, px, trail};
use super::downsample::downsample;
use super::palette::Ink;

/// A line chart; x ascends in each line.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct Chart {
    pub(crate) title: String,
    pub(crate) description: String,
    pub(crate) x: Axis,
    pub(crate) y: Axis,
    /// The lines. Each name appears once in the legend.
    pub(crate) lines: Vec<ChartLine>,
    /// Points with intervals, drawn over the lines.
    pub(crate) dots: Vec<Dots>,
    pub(crate) rules: Vec<Rule>,
    pub(crate) marks: Vec<Mark>,
    /// Position of the lines' names.
    pub(crate) labels: ChartLabels,
}

/// Position of the lines' names.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum ChartLabels {
    /// In a legend above the plot.
    Legend,
    /// At their right ends if possible: for few lines with short names that reach the right edge.
    Ends,
    /// Not shown, because another chart has them.
    Elsewhere,
}

/// Points with their intervals.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct Dots {
    pub(crate) ink: Ink,
    /// Whether they are only outlined.
    pub(crate) hollow: bool,
    pub(crate) points: Vec<Dot>,
}

/// A point with its interval.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) struct Dot {
    pub(crate) at: (f64, f64),
    /// Lower and upper end of the interval of y.
    pub(crate) interval: Option<(f64, f64)>,
}

/// A vertical line across the chart.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct Mark {
    /// Name; may be empty.
    pub(crate) name: String,
    pub(crate) x: f64,
}

/// One curve.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct ChartLine {
    /// Its name in the legend.
    pub(crate) name: String,
    /// Its colour and dashes.
    pub(crate) ink: Ink,
    pub(crate) points: Vec<(f64, f64)>,
}

/// A horizontal line across the chart.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct Rule {
    pub(crate) name: String,
    pub(crate) y: f64,
    /// Side of its label, away from the curves.
    pub(crate) side: Side,
}

/// A side of a horizontal line.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Side {
    Above,
    Below,
}

const PLOT_HEIGHT: f64 = 210.0;
const LEFT: f64 = 56.0;

/// Maximum rows of event labels, and their distance above the plot, clear of the vertical axis's
/// label.
const MARK_ROWS: usize = 3;
const MARK_ROW: f64 = 14.0;
const ABOVE: f64 = 26.0;

/// A line has at most twice its share of these points; each bucket is over a pixel wide.
const BUCKETS: usize = 750;

/// All lines together have at most four times [`BUCKETS`] points, for any number of lines.
const BUCKETS_OF_ALL: usize = 2 * BUCKETS;

/// With more lines or longer names, lines are not labelled at their ends.
const MAX_ENDS: usize = 8;
const MAX_END_LENGTH: usize = 26;

impl Chart {
    /// An empty chart.
    pub(crate) fn new(title: &str, description: &str, x: Axis, y: Axis) -> Self {
        Self {
            title: title.to_owned(),
            description: description.to_owned(),
            x,
            y,
            lines: Vec::new(),
            dots: Vec::new(),
            rules: Vec::new(),
            marks: Vec::new(),
            labels: ChartLabels::Legend,
        }
    }

    /// The chart as an `<svg>` element.
    pub(crate) fn render(&self) -> String {
        let margin = self.end_margin();
        let (legend, legend_height) = match margin {
            None if self.labels != ChartLabels::Elsewhere => canvas::legend(&self.entries(), LEFT),
            _ => (String::new(), 0.0),
        };
        let right = WIDTH - margin.unwrap_or(12.0);
        let rows = self.mark_rows(LEFT, right);
        let named = rows.iter().flatten().max().map_or(0, |row| row + 1);
        let top = legend_height + 26.0 + MARK_ROW * named as f64;
        let frame = Frame { left: LEFT, right, top, bottom: top + PLOT_HEIGHT };
        let mut body = legend + &frame.x_axis(&self.x) + &frame.y_axis(&self.y);
        body.extend(self.rules.iter().map(|rule| self.rule(&frame, rule)));
        body.push_str(&self.marks(&frame, &rows));
        let buckets = BUCKETS.min(BUCKETS_OF_ALL / self.lines.len().max(1)).max(50);
        // No lines between named values.
        let drawn = self.lines.iter().filter(|_| self.x.names().is_empty());
        body.extend(drawn.map(|line| self.line(&frame, line, buckets)));
        body.extend(self.dots.iter().map(|dots| self.dots(&frame, dots)));
        if margin.is_some() {
            body.push_str(&self.end_labels(&frame));
        }
        let height = frame.bottom + frame.below(&self.x);
        canvas::document(&self.title, &self.description, height, &body)
    }

    fn entries(&self) -> Vec<(Ink, &str)> {
        self.lines.iter().map(|line| (line.ink, line.name.as_str())).collect()
    }

    /// Space for labels at the right, if lines are labelled there.
    fn end_margin(&self) -> Option<f64> {
        let longest = self.lines.iter().map(|line| line.name.chars().count()).max()?;
        let few = self.lines.len() <= MAX_ENDS && longest <= MAX_END_LENGTH;
        let at_edge =
            |line: &ChartLine| line.points.last().is_some_and(|(x, _)| self.x.fraction(*x) > 0.96);
        let possible = few && self.lines.iter().all(at_edge);
        (self.labels == ChartLabels::Ends && possible).then_some(longest as f64 * CHAR + 24.0)
    }

    fn end_labels(&self, frame: &Frame) -> String {
        let end = |line: &ChartLine| {
            line.points.last().map_or(frame.bottom, |(_, y)| frame.y(&self.y, *y))
        };
        let ends: Vec<(f64, Ink, &str)> =
            self.lines.iter().map(|line| (end(line), line.ink, line.name.as_str())).collect();
        canvas::end_labels(&ends, frame)
    }

    fn line(&self, frame: &Frame, line: &ChartLine, buckets: usize) -> String {
        let points = downsample(&line.points, buckets);
        let points = points.iter().map(|(x, y)| (frame.x(&self.x, *x), frame.y(&self.y, *y)));
        canvas::path(&format!("line {}", line.ink.stroke()), &trail(points))
    }

    /// A whisker for each interval, and the points over them.
    fn dots(&self, frame: &Frame, dots: &Dots) -> String {
        let whiskers = dots.points.iter().filter_map(|dot| {
            let (low, high) = dot.interval?;
            let (x, low, high) =
                (frame.x(&self.x, dot.at.0), frame.y(&self.y, low), frame.y(&self.y, high));
            let cap = |y: f64| format!("M{} {}h8", px(x - 4.0), px(y));
            Some(format!("M{} {}V{}{}{}", px(x), px(low), px(high), cap(low), cap(high)))
        });
        let whiskers: String = whiskers.collect();
        let ink = dots.ink;
        let class = if dots.hollow { format!("hollow {}", ink.edge()) } else { ink.fill() };
        let circle = |dot: &Dot| {
            let (x, y) = (px(frame.x(&self.x, dot.at.0)), px(frame.y(&self.y, dot.at.1)));
            format!("<circle class=\"{class}\" cx=\"{x}\" cy=\"{y}\" r=\"3.5\"/>\n")
        };
        let circles: String = dots.points.iter().map(circle).collect();
        if whiskers.is_empty() {
            return circles;
        }
        canvas::path(&format!("error {}", ink.edge()), &whiskers) + &circles
    }

    /// Vertical lines with labels above the plot.
    fn marks(&self, frame: &Frame, names: &[Option<usize>]) -> String {
        let mark = |(mark, row): (&Mark, &Option<usize>)| {
            let x = frame.x(&self.x, mark.x);
            let y = row.map(|row| frame.top - ABOVE - MARK_ROW * row as f64);
            let d = format!("M{} {}V{}", px(x), px(y.unwrap_or(frame.top)), px(frame.bottom));
            let beyond = x + 4.0 + canvas::width(&mark.name) > WIDTH;
            let (x, class) = if beyond { (x - 4.0, "e q") } else { (x + 4.0, "q") };
            let name = y.map(|y| canvas::text(x, y, class, &mark.name));
            canvas::path("rule", &d) + &name.unwrap_or_default()
        };
        self.marks.iter().zip(names).map(mark).collect()
    }

    /// The row of each event's label, counted from the bottom: the first without overlap. A label
    /// without space is omitted.
    fn mark_rows(&self, left: f64, right: f64) -> Vec<Option<usize>> {
        let mut taken: [Vec<(f64, f64)>; MARK_ROWS] = Default::default();
        let mut row = |mark: &Mark| {
            let width = canvas::width(&mark.name);
            let x = left + self.x.fraction(mark.x) * (right - left);
            let from = if x + 4.0 + width > WIDTH { x - 4.0 - width } else { x };
            let span = (from, from + width + 8.0);
            let free = |row: &Vec<(f64, f64)>| row.iter().all(|it| span.1 < it.0 || it.1 < span.0);
            let row = taken.iter().position(free).filter(|_| width > 0.0 && from >= 0.0)?;
            taken[row].push(span);
            Some(row)
        };
        self.marks.iter().map(&mut row).collect()
    }

    /// The label is at the right, where most curves have ended.
    fn rule(&self, frame: &Frame, rule: &Rule) -> String {
        let y = frame.y(&self.y, rule.y);
        let d = format!("M{} {}H{}", px(frame.left), px(y), px(frame.right));
        let name = canvas::fitted(&rule.name, WIDTH);
        let offset = match rule.side {
            Side::Above => -5.0,
            Side::Below => 14.0,
        };
        canvas::path("rule", &d) + &canvas::text(frame.right, y + offset, "e q", &name)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn chart() -> Chart {
        let points: Vec<_> = (0..50_000).map(|i| (f64::from(i), f64::from(i % 100))).collect();
        let x = Axis::linear("time, s", 0.0, 50_000.0);
        Chart {
            lines: vec![ChartLine {
                name: "a<b".to_owned(),
                ink: Ink { colour: 1, dash: 1 },
                points,
            }],
            rules: vec![Rule { name: "limit".to_owned(), y: 40.0, side: Side::Above }],
            ..Chart::new("<title> & co", "what it shows", x, Axis::from_zero("ms", 100.0))
        }
    }

    #[test]
    fn is_well_formed_and_described() {
        let svg = chart().render();
        let xml = roxmltree::Document::parse(&svg).unwrap();
        let text = |tag: &str| {
            xml.descendants().find(|n| n.has_tag_name(("http://www.w3.org/2000/svg", tag))).unwrap()
        };
        assert_eq!(text("title").text(), Some("<title> & co"));
        assert_eq!(text("desc").text(), Some("what it shows"));
        assert!(svg.contains("a&lt;b"));
    }

    #[test]
    fn long_lines_are_thinned_out() {
        let svg = chart().render();
        let line =
            svg.lines().rfind(|l| l.starts_with("<path class=\"line s1 d1\" d=\"M56 ")).unwrap();
        let steps = line.split(' ').count() / 2;
        assert!((1000..1510).contains(&steps), "{steps}");
    }

    #[test]
    fn whiskers_end_at_the_interval() {
        let dot = Dot { at: (25_000.0, 50.0), interval: Some((20.0, 100.0)) };
        let dots = vec![Dots { ink: Ink { colour: 3, dash: 3 }, hollow: false, points: vec![dot] }];
        let svg = Chart { dots, labels: ChartLabels::Ends, ..chart() }.render();
        let right = WIDTH - 3.0 * CHAR - 24.0; // room for the name "a<b"
        let x = f64::midpoint(LEFT, right);
        let (low, high) = (26.0 + 0.8 * PLOT_HEIGHT, 26.0);
        let stem = format!("error s3\" d=\"M{} {}V{}", px(x), px(low), px(high));
        let caps = format!("M{} {}h8M{} {}h8\"", px(x - 4.0), px(low), px(x - 4.0), px(high));
        assert!(svg.contains(&(stem + &caps)), "{svg}");
        assert!(svg.contains(&format!("cx=\"{}\" cy=\"131\"", px(x))), "{svg}");
    }

    #[test]
    fn events_are_labelled_where_there_is_room() {
        let mark = |x| Mark { name: "handover".to_owned(), x };
        let rows = |marks: Vec<Mark>| Chart { marks, ..chart() }.mark_rows(LEFT, 848.0);
        assert_eq!(
            rows(vec![mark(100.0), mark(200.0), mark(40_000.0)]),
            [Some(0), Some(1), Some(0)]
        );
        assert_eq!(rows((0..4).map(|n| mark(f64::from(n))).collect())[3], None, "a line alone");
        let svg = Chart { marks: vec![mark(1.0), mark(49_999.0)], ..chart() }.render();
        assert_eq!(svg.matches("class=\"q\">handover<").count(), 1);
        assert_eq!(svg.matches("class=\"e q\">handover<").count(), 1, "left of the right edge");
    }

    #[test]
    fn named_axis_has_dots_and_no_lines() {
        let x = Axis::named("queue", &["fq_codel", "dualpi2 with ECN"].map(str::to_owned));
        let dot = Dot { at: (1.0, 50.0), interval: None };
        let dots = vec![Dots { ink: Ink { colour: 1, dash: 1 }, hollow: false, points: vec![dot] }];
        let svg = Chart { x, dots, ..chart() }.render();
        assert!(svg.contains(">fq_codel<") && svg.contains(">dualpi2 with ECN<"), "{svg}");
        let frame = (WIDTH - 12.0 - LEFT) * 0.75 + LEFT;
        assert!(svg.contains(&format!("cx=\"{}\"", px(frame))), "{svg}");
        assert_eq!(svg.matches("class=\"line ").count(), 1, "the sample in the legend: {svg}");
    }

    #[test]
    fn empty_charts_are_drawn() {
        let empty = Chart { lines: Vec::new(), rules: Vec::new(), ..chart() };
        assert!(roxmltree::Document::parse(&empty.render()).is_ok());
    }
}
