//! Curves over an x axis.

use super::axis::Axis;
use super::canvas::{self, Frame, WIDTH, px, trail};
use super::downsample::downsample;
use super::palette::Ink;

/// A chart of lines and bands, x ascending in each.
#[derive(Clone, Debug, PartialEq)]
pub struct Chart {
    /// Read out in place of the picture.
    pub title: String,
    /// The same, longer.
    pub description: String,
    /// The horizontal axis.
    pub x: Axis,
    /// The vertical axis.
    pub y: Axis,
    /// Areas behind the lines.
    pub bands: Vec<Band>,
    /// The lines, those of one name in the legend once.
    pub lines: Vec<Line>,
    /// Limits to compare with.
    pub rules: Vec<Rule>,
}

/// One curve.
#[derive(Clone, Debug, PartialEq)]
pub struct Line {
    /// Its name in the legend.
    pub name: String,
    /// Its colour and dashes.
    pub ink: Ink,
    /// Where it leads.
    pub points: Vec<(f64, f64)>,
}

/// The area between two curves, such as two percentiles.
#[derive(Clone, Debug, PartialEq)]
pub struct Band {
    /// Its colour.
    pub ink: Ink,
    /// x, lower and upper edge.
    pub points: Vec<(f64, f64, f64)>,
}

/// A horizontal line across the chart.
#[derive(Clone, Debug, PartialEq)]
pub struct Rule {
    /// What it stands for.
    pub name: String,
    /// Where it lies.
    pub y: f64,
    /// Where its name stands: on the side that curves stay clear of.
    pub side: Side,
}

/// A side of a horizontal line.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Side {
    /// For upper limits.
    Above,
    /// For lower limits.
    Below,
}

const PLOT_HEIGHT: f64 = 210.0;

/// A line has at most twice as many points as its share of these; each bucket is over a pixel wide.
const BUCKETS: usize = 750;

/// Points of all lines together stay within four times [`BUCKETS`], whatever their number.
const BUCKETS_OF_ALL: usize = 2 * BUCKETS;

impl Chart {
    /// The chart as an `<svg>` element.
    pub fn render(&self) -> String {
        let entries: Vec<(Ink, &str)> =
            self.lines.iter().map(|line| (line.ink, line.name.as_str())).collect();
        let (legend, legend_height) = canvas::legend(&entries, 56.0);
        let top = legend_height + 26.0;
        let frame = Frame { left: 56.0, right: WIDTH - 12.0, top, bottom: top + PLOT_HEIGHT };
        let mut body = legend;
        body.push_str(&frame.x_axis(&self.x));
        body.push_str(&frame.y_axis(&self.y));
        for band in &self.bands {
            body.push_str(&self.band(&frame, band));
        }
        for rule in &self.rules {
            body.push_str(&self.rule(&frame, rule));
        }
        let buckets = BUCKETS.min(BUCKETS_OF_ALL / self.lines.len().max(1)).max(50);
        for line in &self.lines {
            body.push_str(&self.line(&frame, line, buckets));
        }
        canvas::document(&self.title, &self.description, frame.bottom + 40.0, &body)
    }

    fn line(&self, frame: &Frame, line: &Line, buckets: usize) -> String {
        let points = downsample(&line.points, buckets);
        let points = points.iter().map(|(x, y)| (frame.x(&self.x, *x), frame.y(&self.y, *y)));
        canvas::path(&format!("line {}", line.ink.stroke()), &trail(points))
    }

    fn band(&self, frame: &Frame, band: &Band) -> String {
        let upper = band.points.iter().map(|(x, _, high)| (*x, *high));
        let lower = band.points.iter().rev().map(|(x, low, _)| (*x, *low));
        let edge = upper.chain(lower).map(|(x, y)| (frame.x(&self.x, x), frame.y(&self.y, y)));
        canvas::path(&format!("band {}", band.ink.fill()), &format!("{}z", trail(edge)))
    }

    /// The name stands at the right, where most curves have ended.
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
        Chart {
            title: "<title> & co".to_owned(),
            description: "what it shows".to_owned(),
            x: Axis::linear("time, s", 0.0, 50_000.0),
            y: Axis::from_zero("ms", 100.0),
            bands: vec![Band {
                ink: Ink::Series(0),
                points: vec![(0.0, 1.0, 9.0), (9.0, 2.0, 8.0)],
            }],
            lines: vec![Line { name: "a<b".to_owned(), ink: Ink::Series(1), points }],
            rules: vec![Rule { name: "limit".to_owned(), y: 40.0, side: Side::Above }],
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
    fn empty_charts_are_drawn_too() {
        let empty = Chart { bands: Vec::new(), lines: Vec::new(), rules: Vec::new(), ..chart() };
        assert!(roxmltree::Document::parse(&empty.render()).is_ok());
    }
}
