//! Building blocks of all charts.

use super::axis::Axis;
use super::palette::Ink;
use crate::escape::escape;

/// Width of every chart in view box units.
pub(super) const WIDTH: f64 = 680.0;

/// Conservative estimate of the width of a character in the 12-pixel font.
pub(super) const CHAR: f64 = 6.7;

/// Line height of a label below a plot.
const TICK_LINE: f64 = 14.0;

/// Maximum lines per label.
const TICK_LINES: usize = 4;

/// Position of a plot within its chart.
#[derive(Clone, Copy, Debug)]
pub(super) struct Frame {
    pub(super) left: f64,
    pub(super) right: f64,
    pub(super) top: f64,
    pub(super) bottom: f64,
}

impl Frame {
    pub(super) fn x(&self, axis: &Axis, value: f64) -> f64 {
        self.left + axis.fraction(value) * (self.right - self.left)
    }

    pub(super) fn y(&self, axis: &Axis, value: f64) -> f64 {
        self.bottom - axis.fraction(value) * (self.bottom - self.top)
    }

    /// Grid, ticks and label of a horizontal axis at the bottom.
    pub(super) fn x_axis(&self, axis: &Axis) -> String {
        let (top, bottom) = (px(self.top), px(self.bottom));
        let ticks: Vec<(f64, String)> =
            axis.ticks().into_iter().map(|(value, label)| (self.x(axis, value), label)).collect();
        let grid = ticks.iter().map(|(x, _)| format!("M{} {top}V{bottom}", px(*x)));
        let line = |(n, line): (usize, String), x: f64| {
            text(x, self.bottom + 16.0 + TICK_LINE * n as f64, "m q", &line)
        };
        let labels = ticks.iter().flat_map(|(x, label)| {
            let lines = self.tick_lines(axis, label).into_iter().enumerate();
            lines.map(|one| line(one, *x)).collect::<Vec<_>>()
        });
        let middle = f64::midpoint(self.left, self.right);
        let below = self.bottom + self.below(axis) - 6.0;
        path("grid", &concat(grid))
            + &path("axis", &format!("M{} {bottom}H{}", px(self.left), px(self.right)))
            + &concat(labels)
            + &text(middle, below, "m q", &fitted(&axis.label, self.right - self.left))
    }

    /// Height of the labels below the plot.
    pub(super) fn below(&self, axis: &Axis) -> f64 {
        let lines = axis.names().iter().map(|name| self.tick_lines(axis, name).len());
        40.0 + TICK_LINE * lines.max().map_or(0, |lines| lines.saturating_sub(1)) as f64
    }

    /// A label of the horizontal axis, broken to fit; a number is not broken.
    fn tick_lines(&self, axis: &Axis, label: &str) -> Vec<String> {
        match axis.names().len() {
            0 => vec![label.to_owned()],
            count => broken(label, (self.right - self.left) / count as f64 - 4.0),
        }
    }

    /// Grid, ticks and label of a vertical axis at the left.
    pub(super) fn y_axis(&self, axis: &Axis) -> String {
        let (left, right) = (px(self.left), px(self.right));
        let ticks: Vec<(f64, String)> =
            axis.ticks().into_iter().map(|(value, label)| (self.y(axis, value), label)).collect();
        let grid = ticks.iter().map(|(y, _)| format!("M{left} {}H{right}", px(*y)));
        let labels = ticks.iter().map(|(y, label)| text(self.left - 8.0, y + 4.0, "e q", label));
        path("grid", &concat(grid))
            + &concat(labels)
            + &text(0.0, self.top - 12.0, "q", &fitted(&axis.label, WIDTH))
    }
}

fn concat(parts: impl Iterator<Item = String>) -> String {
    parts.collect::<Vec<_>>().concat()
}

/// Maximum width of `text`.
pub(super) fn width(text: &str) -> f64 {
    text.chars().count() as f64 * CHAR
}

/// `name`, truncated to `width` with an ellipsis.
pub(super) fn fitted(name: &str, width: f64) -> String {
    let room = (width / CHAR) as usize;
    if name.chars().count() <= room {
        return name.to_owned();
    }
    name.chars().take(room.saturating_sub(1)).chain(['…']).collect()
}

/// `name` in lines of at most `width`, broken between words; what does not fit is omitted.
pub(super) fn broken(name: &str, width: f64) -> Vec<String> {
    let room = (width / CHAR) as usize;
    let mut lines: Vec<String> = Vec::new();
    for word in name.split_whitespace() {
        let full = lines.len() == TICK_LINES;
        match lines.last_mut() {
            Some(line) if line.chars().count() + 1 + word.chars().count() <= room => {
                *line += " ";
                *line += word;
            }
            Some(line) if full => {
                *line += "…";
                break;
            }
            _ => lines.push(word.to_owned()),
        }
    }
    lines.iter().map(|line| fitted(line, width)).collect()
}

/// The complete picture around `body`.
pub(super) fn document(title: &str, description: &str, height: f64, body: &str) -> String {
    format!(
        "<svg xmlns=\"http://www.w3.org/2000/svg\" class=\"chart\" role=\"img\" \
         viewBox=\"0 0 {} {}\">\n<title>{}</title>\n<desc>{}</desc>\n{body}</svg>\n",
        px(WIDTH),
        px(height),
        escape(title),
        escape(description)
    )
}

/// A coordinate with at most one decimal.
pub(super) fn px(value: f64) -> String {
    format!("{}", (value * 10.0).round() / 10.0)
}

pub(super) fn text(x: f64, y: f64, class: &str, content: &str) -> String {
    if content.is_empty() {
        return String::new();
    }
    format!("<text x=\"{}\" y=\"{}\" class=\"{class}\">{}</text>\n", px(x), px(y), escape(content))
}

pub(super) fn path(class: &str, d: &str) -> String {
    format!("<path class=\"{class}\" d=\"{d}\"/>\n")
}

/// Path data of a rectangle.
pub(super) fn rect((x, y): (f64, f64), (width, height): (f64, f64)) -> String {
    format!("M{} {}h{}v{}h{}z", px(x), px(y), px(width), px(height), px(-width))
}

/// Path data of straight lines through `points`, relative because that is shorter.
pub(super) fn trail(points: impl Iterator<Item = (f64, f64)>) -> String {
    let rounded = points.map(|(x, y)| ((x * 10.0).round() as i64, (y * 10.0).round() as i64));
    let mut points: Vec<(i64, i64)> = rounded.collect();
    points.dedup();
    let Some(&(x, y)) = points.first() else { return String::new() };
    let step = |pair: &[(i64, i64)]| {
        let [(x0, y0), (x1, y1)] = [pair[0], pair[1]];
        format!("{} {}", tenths(x1 - x0), tenths(y1 - y0))
    };
    if points.len() == 1 {
        points.push((x, y)); // no length, yet drawn where line ends are round
    }
    let steps: Vec<String> = points.windows(2).map(step).collect();
    format!("M{} {}l{}", tenths(x), tenths(y), steps.join(" "))
}

fn tenths(n: i64) -> String {
    px(n as f64 / 10.0)
}

/// Legend entries with samples, in rows above the plot, and their height.
pub(super) fn legend(entries: &[(Ink, &str)], left: f64) -> (String, f64) {
    let (sample, gap, row) = (26.0, 18.0, 18.0);
    let (mut x, mut y) = (left, 10.0);
    let mut out = String::new();
    for (ink, name) in entries {
        let width = sample + 6.0 + name.chars().count() as f64 * CHAR;
        if x > left && x + width > WIDTH {
            (x, y) = (left, y + row);
        }
        let stroke = format!("line {}", ink.stroke());
        out.push_str(&path(&stroke, &format!("M{} {}h{}", px(x), px(y - 4.0), px(sample))));
        out.push_str(&text(x + sample + 6.0, y, "", name));
        x += width + gap;
    }
    (out, if entries.is_empty() { 0.0 } else { y + 4.0 })
}

/// Labels at the ends of lines, moved apart to avoid overlaps. Ends are heights within the frame.
pub(super) fn end_labels(ends: &[(f64, Ink, &str)], frame: &Frame) -> String {
    let row = 14.0;
    let mut order: Vec<usize> = (0..ends.len()).collect();
    order.sort_by(|a, b| ends[*a].0.total_cmp(&ends[*b].0));
    let mut below = frame.top - row;
    let mut placed: Vec<f64> = order
        .iter()
        .map(|at| {
            below = ends[*at].0.max(below + row);
            below
        })
        .collect();
    let mut above = frame.bottom + row;
    for y in placed.iter_mut().rev() {
        above = y.min(above - row);
        *y = above;
    }
    let label = |(at, y): (&usize, f64)| {
        let (end, ink, name) = ends[*at];
        let leader =
            format!("M{} {}L{} {}", px(frame.right), px(end), px(frame.right + 14.0), px(y));
        path(&format!("leader {}", ink.edge()), &leader)
            + &text(frame.right + 18.0, y + 4.0, "", name)
    };
    concat(order.iter().zip(placed).map(label))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn truncated_name_ends_in_an_ellipsis() {
        let room = 10.0 * CHAR + 0.1;
        assert_eq!(fitted("bbr3+cubic", room), "bbr3+cubic");
        assert_eq!(fitted("bbr3+cubic+reno", room), "bbr3+cubi…");
        assert_eq!(fitted("bbr3", 0.0), "…");
    }

    #[test]
    fn names_are_broken_between_words() {
        let room = 9.0 * CHAR + 0.1;
        assert_eq!(broken("bbr1 joins late", room), ["bbr1", "joins", "late"]);
        assert_eq!(broken("a b c bbr1+cubic", room), ["a b c", "bbr1+cub…"]);
        assert_eq!(broken("", room), [""; 0]);
        let long = broken("one-of-us two-of-us three-of four-of-us five-of-us", room);
        assert_eq!(long.len(), TICK_LINES);
        assert!(long[TICK_LINES - 1].ends_with('…'), "{long:?}");
    }

    #[test]
    fn trails_are_relative_and_exact() {
        // Ten steps of a third: rounding errors must not accumulate.
        let points = (0..=30).map(|i| (f64::from(i) / 3.0, f64::from(i % 2)));
        let trail = trail(points);
        let steps = trail.trim_start_matches("M0 0l").split(' ').step_by(2);
        let sum: f64 = steps.map(|dx| dx.parse::<f64>().unwrap()).sum();
        assert!((sum - 10.0).abs() < 1e-9, "{trail}");
    }

    #[test]
    fn repeated_points_are_drawn_once() {
        assert_eq!(trail([(0.0, 0.0), (0.01, 0.0), (1.0, 2.5)].into_iter()), "M0 0l1 2.5");
        assert_eq!(trail(std::iter::empty()), "");
        assert_eq!(trail([(1.0, 2.0)].into_iter()), "M1 2l0 0", "a dot, with round ends");
    }

    #[test]
    fn labels_at_one_height_move_apart() {
        let frame = Frame { left: 0.0, right: 100.0, top: 0.0, bottom: 100.0 };
        let ends = [98.0, 99.0, 20.0].map(|y| (y, Ink { colour: 0, dash: 0 }, "name"));
        let labels = end_labels(&ends, &frame);
        let heights: Vec<f64> = (labels.lines().filter(|line| line.starts_with("<text")))
            .map(|line| line.split('"').nth(3).unwrap().parse().unwrap())
            .collect();
        assert_eq!(heights, [24.0, 90.0, 104.0], "within the frame, a row apart");
    }

    #[test]
    fn long_legends_wrap() {
        let name = "a controller with a long name";
        let entries: Vec<_> = (0..8).map(|n| (Ink { colour: n, dash: n }, name)).collect();
        assert!((legend(&entries[..2], 56.0).1 - 14.0).abs() < 1e-9, "one row");
        assert!((legend(&entries, 56.0).1 - 68.0).abs() < 1e-9, "four rows");
    }
}
