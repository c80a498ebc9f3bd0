//! Bar charts with intervals.

use super::axis::Axis;
use super::canvas::{self, CHAR, Frame, WIDTH, path, px, rect, text};
use super::palette::Ink;

/// Groups of bars, one below the other.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct BarChart {
    /// Text alternative.
    pub(crate) title: String,
    pub(crate) description: String,
    /// The axis of the bars, starting at zero.
    pub(crate) axis: Axis,
    /// Headings, each with its bars.
    pub(crate) groups: Vec<(String, Vec<BarMark>)>,
}

/// One bar.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct BarMark {
    pub(crate) name: String,
    pub(crate) ink: Ink,
    pub(crate) value: f64,
    /// The value printed next to it.
    pub(crate) label: String,
    /// The interval of the value.
    pub(crate) interval: Option<(f64, f64)>,
}

const ROW: f64 = 22.0;
const BAR: f64 = 14.0;
const HEADING: f64 = 26.0;
const WHISKER: f64 = 4.0;

impl BarChart {
    /// The chart as an `<svg>` element.
    pub(crate) fn render(&self) -> String {
        let rows = self.groups.iter().map(|(_, bars)| bars.len() as f64 * ROW + HEADING);
        let bottom = 4.0 + rows.sum::<f64>() + 4.0;
        let names =
            self.groups.iter().flat_map(|(_, bars)| bars).map(|bar| bar.name.chars().count());
        let left = (names.max().unwrap_or(0) as f64 * CHAR + 14.0).clamp(60.0, 240.0);
        let frame = Frame { left, right: WIDTH - self.label_width(), top: 4.0, bottom };
        let mut body = frame.x_axis(&self.axis);
        let mut y = 4.0;
        for (heading, bars) in &self.groups {
            body.push_str(&text(0.0, y + 16.0, "h", &canvas::fitted(heading, WIDTH)));
            y += HEADING;
            for bar in bars {
                body.push_str(&text(
                    left - 8.0,
                    y + 11.0,
                    "e",
                    &canvas::fitted(&bar.name, left - 8.0),
                ));
                body.push_str(&bar.render(&frame, &self.axis, y));
                y += ROW;
            }
        }
        canvas::document(&self.title, &self.description, bottom + 40.0, &body)
    }

    /// Width of the longest value next to the longest bar.
    fn label_width(&self) -> f64 {
        let bars = self.groups.iter().flat_map(|(_, bars)| bars);
        bars.map(|bar| bar.label.chars().count()).max().unwrap_or(0) as f64 * CHAR + 14.0
    }
}

impl BarMark {
    fn render(&self, frame: &Frame, axis: &Axis, y: f64) -> String {
        let x = |value: f64| frame.x(axis, value);
        let end = x(self.value);
        let bar = rect((frame.left, y), (end - frame.left, BAR));
        let mut out = path(&format!("length {}", self.ink.fill()), &bar);
        let mut clear = end;
        if let Some((low, high)) = self.interval {
            let (middle, reach) = (y + BAR / 2.0, WHISKER);
            let (from, to) = (x(low), x(high));
            let cap = |at: f64| format!("M{} {}v{}", px(at), px(middle - reach), px(reach * 2.0));
            let d = format!("M{} {}H{}{}{}", px(from), px(middle), px(to), cap(from), cap(to));
            out.push_str(&path("whisker", &d));
            clear = end.max(to);
        }
        out + &text(clear + 6.0, y + 11.0, "", &self.label)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn chart(interval: Option<(f64, f64)>) -> BarChart {
        let bar = BarMark {
            name: "bbr3 & co".to_owned(),
            ink: Ink { colour: 2, dash: 2 },
            value: 50.0,
            label: "50 ms".to_owned(),
            interval,
        };
        BarChart {
            title: "t".to_owned(),
            description: "d".to_owned(),
            axis: Axis::from_zero("ms", 100.0),
            groups: vec![("p90".to_owned(), vec![bar])],
        }
    }

    #[test]
    fn bars_end_at_their_values_and_whiskers_at_the_interval() {
        let chart = chart(Some((40.0, 80.0)));
        let svg = chart.render();
        assert!(roxmltree::Document::parse(&svg).is_ok());
        let (left, right) = (9.0 * CHAR + 14.0, WIDTH - 5.0 * CHAR - 14.0);
        let x = |value: f64| left + (right - left) * value / 100.0;
        let length = format!("class=\"length f2\" d=\"M{} 30h{}v14", px(left), px(x(50.0) - left));
        assert!(svg.contains(&length), "{length} {svg}");
        let (low, high) = (px(x(40.0)), px(x(80.0)));
        let whisker = format!("class=\"whisker\" d=\"M{low} 37H{high}M{low} 33v8M{high} 33v8\"");
        assert!(svg.contains(&whisker), "{whisker} {svg}");
    }

    #[test]
    fn no_whisker_without_an_interval() {
        let svg = chart(None).render();
        assert!(svg.contains("50 ms") && !svg.contains("whisker") && svg.contains("bbr3 &amp; co"));
    }
}
