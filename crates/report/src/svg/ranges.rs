//! Ranges with a middle, side by side: the whole comparison at a glance.

use super::axis::Axis;
use super::canvas::{self, CHAR, Frame, WIDTH, path, px, text};
use super::palette::Ink;

/// Small panels next to each other that share their rows.
#[derive(Clone, Debug, PartialEq)]
pub struct RangeChart {
    /// Read out in place of the picture.
    pub title: String,
    /// The same, longer.
    pub description: String,
    /// Names of the rows, top to bottom.
    pub rows: Vec<String>,
    /// The panels, left to right.
    pub panels: Vec<RangePanel>,
}

/// One quantity.
#[derive(Clone, Debug, PartialEq)]
pub struct RangePanel {
    /// What is good: `shorter is better`.
    pub hint: String,
    /// The quantity with its unit, and its values from zero.
    pub axis: Axis,
    /// One for each row; `None` where there is nothing to show.
    pub ranges: Vec<Option<Range>>,
}

/// A range, its middle, and the middle in print.
#[derive(Clone, Debug, PartialEq)]
pub struct Range {
    /// Where it begins.
    pub low: f64,
    /// The value that the dot marks.
    pub middle: f64,
    /// Where it ends.
    pub high: f64,
    /// The middle as printed beside the dot.
    pub label: String,
}

const ROW: f64 = 36.0;
const TOP: f64 = 46.0;
const GAP: f64 = 34.0;

impl RangeChart {
    /// The chart as an `<svg>` element.
    pub fn render(&self) -> String {
        let bottom = TOP + ROW * self.rows.len() as f64;
        let left = self.label_width();
        let mut body = String::new();
        for (n, name) in self.rows.iter().enumerate() {
            body.push_str(&text(0.0, row(n) + 4.0, "h", &canvas::fitted(name, left)));
        }
        let panels = self.panels.len().max(1) as f64;
        let width = (WIDTH - left - GAP * (panels - 1.0) - 12.0) / panels;
        for (n, panel) in self.panels.iter().enumerate() {
            let from = left + n as f64 * (width + GAP);
            let frame = Frame { left: from, right: from + width, top: TOP - 8.0, bottom };
            body.push_str(&panel.render(&frame));
        }
        canvas::document(&self.title, &self.description, bottom + 22.0, &body)
    }

    fn label_width(&self) -> f64 {
        let longest = self.rows.iter().map(|name| name.chars().count()).max().unwrap_or(0);
        (longest as f64 * (CHAR + 0.8) + 16.0).clamp(70.0, 200.0)
    }
}

impl RangePanel {
    fn render(&self, frame: &Frame) -> String {
        let mut axis = self.axis.clone();
        let heading = std::mem::take(&mut axis.label);
        let mut out = text(frame.left, 10.0, "h", &heading);
        out.push_str(&text(frame.left, 25.0, "q", &self.hint));
        out.push_str(&frame.x_axis(&axis));
        for (n, range) in self.ranges.iter().enumerate() {
            let mark = match range {
                Some(range) => range.render(frame, &axis, n),
                None => text(frame.left + 6.0, row(n) + 4.0, "q", "none"),
            };
            out.push_str(&mark);
        }
        out
    }
}

impl Range {
    fn render(&self, frame: &Frame, axis: &Axis, n: usize) -> String {
        let x = |value| frame.x(axis, value);
        let (y, ink) = (row(n), Ink::Series(n));
        let bar = format!("M{} {}H{}", px(x(self.low)), px(y), px(x(self.high)));
        let dot = format!(
            "<circle class=\"{}\" cx=\"{}\" cy=\"{}\" r=\"5\"/>\n",
            ink.fill(),
            px(x(self.middle)),
            px(y)
        );
        let half = self.label.chars().count() as f64 * CHAR / 2.0;
        let middle = x(self.middle).clamp(frame.left + half, frame.right.max(frame.left + half));
        path(&format!("bar {}", ink.edge()), &bar)
            + &dot
            + &text(middle, y - 10.0, "m", &self.label)
    }
}

/// The middle of the n-th row.
fn row(n: usize) -> f64 {
    TOP + ROW * (n as f64 + 0.5) + 2.0
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_row_for_each_name_and_a_dot_for_each_range() {
        let range = Range { low: 1.0, middle: 2.0, high: 3.0, label: "2 s".to_owned() };
        let panel = RangePanel {
            hint: "shorter is better".to_owned(),
            axis: Axis::from_zero("s", 4.0),
            ranges: vec![Some(range), None],
        };
        let chart = RangeChart {
            title: "t".to_owned(),
            description: "d".to_owned(),
            rows: vec!["<one>".to_owned(), "two".to_owned()],
            panels: vec![panel.clone(), panel],
        };
        let svg = chart.render();
        assert!(roxmltree::Document::parse(&svg).is_ok());
        assert_eq!(svg.matches("<circle").count(), 2);
        assert_eq!(svg.matches(">none<").count(), 2);
        assert!(svg.contains("&lt;one&gt;"));
    }
}
