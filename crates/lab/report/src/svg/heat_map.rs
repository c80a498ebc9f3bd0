//! Heat maps: a coloured value for each pair of two settings.

use super::canvas::{self, WIDTH, path, rect, text};
use super::heat_colours::STEPS;

/// A grid of coloured cells with their values.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct HeatGrid {
    /// Text alternative.
    pub(crate) title: String,
    pub(crate) description: String,
    /// Name of the horizontal axis, and of its cells from left to right.
    pub(crate) x: (String, Vec<String>),
    /// Name of the vertical axis, and of its cells from bottom to top.
    pub(crate) y: (String, Vec<String>),
    /// Meaning of the colours.
    pub(crate) legend: String,
    /// Rows from bottom to top with each cell's position on the colour scale, 0 to 1, and its
    /// printed value; `None` if unknown.
    pub(crate) cells: Vec<Vec<Option<(f64, String)>>>,
    /// Values at the lower end, the middle and the upper end of the colour scale.
    pub(crate) ends: [String; 3],
    /// Whether the scale diverges from its middle.
    pub(crate) diverging: bool,
}

const ROW: f64 = 34.0;
const WIDEST: f64 = 150.0;
const LEGEND: f64 = 220.0;

/// Labels of narrower columns are not broken into lines.
const NARROW: f64 = 60.0;

impl HeatGrid {
    /// The map as an `<svg>` element.
    pub(crate) fn render(&self) -> String {
        let left = self.label_width();
        let top = 62.0;
        let columns = self.x.1.len().max(1) as f64;
        let width = ((WIDTH - left - 4.0) / columns).min(WIDEST);
        let bottom = top + ROW * self.y.1.len() as f64;
        let mut body =
            self.legend(left) + &text(0.0, top - 9.0, "q", &canvas::fitted(&self.y.0, WIDTH));
        for (n, name) in self.y.1.iter().enumerate() {
            let middle = bottom - ROW * (n as f64 + 0.5) + 4.0;
            body.push_str(&text(left - 8.0, middle, "e", &canvas::fitted(name, left - 8.0)));
        }
        let (names, below) = self.column_names((left, bottom), width);
        body.push_str(&names);
        let values = self.cells.iter().flatten().flatten();
        let printed = values.map(|(_, value)| canvas::width(value)).fold(0.0, f64::max) <= width;
        for (row, cells) in self.cells.iter().enumerate() {
            for (column, cell) in cells.iter().enumerate() {
                let corner = (left + width * column as f64, bottom - ROW * (row as f64 + 1.0));
                let cell = cell.as_ref().map(|(at, value)| (*at, if printed { value } else { "" }));
                body.push_str(&self.cell(corner, width, cell));
            }
        }
        // Centred below the columns, but within the picture.
        let name = canvas::fitted(&self.x.0, WIDTH - 4.0);
        let half = canvas::width(&name) / 2.0;
        let middle = (left + width * columns / 2.0).max(half).min(WIDTH - half);
        body.push_str(&text(middle, bottom + below + 19.0, "m q", &name));
        canvas::document(&self.title, &self.description, bottom + below + 27.0, &body)
    }

    /// The labels below the columns, and their height. With many columns only some are labelled;
    /// with few the labels are broken into lines.
    fn column_names(&self, (left, bottom): (f64, f64), width: f64) -> (String, f64) {
        let middle = |n: usize| left + width * (n as f64 + 0.5);
        let widest = self.x.1.iter().map(|name| canvas::width(name) + 6.0).fold(1.0, f64::max);
        if width < NARROW {
            let shown = self.x.1.iter().enumerate().step_by((widest / width).ceil() as usize);
            let shown = shown.map(|(n, name)| text(middle(n), bottom + 17.0, "m", name));
            return (shown.collect(), 17.0);
        }
        let broken = |name: &String| canvas::broken(name, width - 4.0);
        let lines: Vec<Vec<String>> = self.x.1.iter().map(broken).collect();
        let line = |(n, lines): (usize, &Vec<String>)| -> String {
            let place = |row: usize| bottom + 17.0 + 14.0 * row as f64;
            let rows = lines.iter().enumerate();
            rows.map(|(row, line)| text(middle(n), place(row), "m", line)).collect()
        };
        let most = lines.iter().map(Vec::len).max().unwrap_or(1).max(1);
        (lines.iter().enumerate().map(line).collect(), 3.0 + 14.0 * most as f64)
    }

    fn label_width(&self) -> f64 {
        let longest = self.y.1.iter().map(|name| canvas::width(name)).fold(0.0, f64::max);
        (longest + 18.0).clamp(56.0, 200.0)
    }

    fn cell(&self, (x, y): (f64, f64), width: f64, cell: Option<(f64, &str)>) -> String {
        let (class, value) = match cell {
            Some((position, value)) => (self.class(position), value),
            None => ("none".to_owned(), "–"),
        };
        let area = path("cell", &rect((x + 1.0, y + 1.0), (width - 2.0, ROW - 2.0)));
        group(&class, &(area + &text(x + width / 2.0, y + ROW / 2.0 + 4.0, "m", value)))
    }

    fn class(&self, position: f64) -> String {
        let step = (position.clamp(0.0, 1.0) * (STEPS - 1) as f64).round() as usize;
        format!("{}{step}", if self.diverging { 'v' } else { 'h' })
    }

    /// All steps of the scale in a row, with values below.
    fn legend(&self, left: f64) -> String {
        let step = LEGEND / STEPS as f64;
        let mut out = String::new();
        for n in 0..STEPS {
            let class = self.class(n as f64 / (STEPS - 1) as f64);
            let area = rect((left + step * n as f64, 2.0), (step + 0.2, 10.0));
            out += &group(&class, &path("cell", &area));
        }
        let [low, middle, high] = &self.ends;
        out + &text(left, 25.0, "q", low)
            + &text(left + LEGEND / 2.0, 25.0, "m q", middle)
            + &text(left + LEGEND, 25.0, "e q", high)
            + &text(left + LEGEND + 14.0, 12.0, "h", &self.legend)
    }
}

fn group(class: &str, content: &str) -> String {
    format!("<g class=\"{class}\">{content}</g>\n")
}

#[cfg(test)]
mod tests {
    use super::*;

    fn grid() -> HeatGrid {
        let cell = |position: f64| Some((position, format!("{position}")));
        HeatGrid {
            title: "t".to_owned(),
            description: "d".to_owned(),
            x: ("<loss>".to_owned(), ["0 %", "1 %", "2 %"].map(str::to_owned).to_vec()),
            y: ("buffer".to_owned(), ["1", "4"].map(str::to_owned).to_vec()),
            legend: "goodput".to_owned(),
            cells: vec![vec![cell(0.0), cell(0.52), cell(1.0)], vec![cell(0.1), None, cell(7.0)]],
            ends: ["0", "5", "10"].map(str::to_owned),
            diverging: false,
        }
    }

    /// CSS classes of the cells by row, from the top.
    fn classes(svg: &str) -> Vec<(String, f64)> {
        let xml = roxmltree::Document::parse(svg).unwrap();
        let groups = xml.descendants().filter(|n| n.tag_name().name() == "g").skip(STEPS);
        groups
            .map(|group| {
                let d = group.first_element_child().unwrap().attribute("d").unwrap().to_owned();
                let y = d[1..d.find('h').unwrap()].split(' ').nth(1).unwrap().parse().unwrap();
                (group.attribute("class").unwrap().to_owned(), y)
            })
            .collect()
    }

    #[test]
    fn colours_follow_the_values_and_rows_rise() {
        let classes = classes(&grid().render());
        let names: Vec<&str> = classes.iter().map(|(class, _)| class.as_str()).collect();
        assert_eq!(names, ["h0", "h5", "h10", "h1", "none", "h10"]);
        assert!((classes[0].1 - classes[3].1 - ROW).abs() < 1e-9, "the first row is the lower one");
    }

    #[test]
    fn diverging_scales_have_separate_classes() {
        let svg = HeatGrid { diverging: true, ..grid() }.render();
        assert!(svg.contains("class=\"v5\"") && !svg.contains("class=\"h5\""));
        assert!(svg.contains("&lt;loss&gt;"));
    }

    /// With many columns only some are labelled, and values are only in the table.
    #[test]
    fn narrow_cells_have_no_text() {
        let columns: Vec<String> = (0..40).map(|n| format!("{n} ms")).collect();
        let row = (0..40).map(|n| Some((f64::from(n) / 40.0, format!("{n}.25")))).collect();
        let grid = HeatGrid { x: ("x".to_owned(), columns), cells: vec![row], ..grid() };
        let svg = grid.render();
        let names = (0..40).filter(|n| svg.contains(&format!(">{n} ms<"))).count();
        assert_eq!(names, 14, "every third: 15 px for each column, 34 for the longest name");
        assert!(!svg.contains(".25<"));
    }

    #[test]
    fn empty_heat_map_is_drawn() {
        let empty = HeatGrid {
            x: (String::new(), Vec::new()),
            y: (String::new(), Vec::new()),
            cells: Vec::new(),
            ..grid()
        };
        assert!(roxmltree::Document::parse(&empty.render()).is_ok());
    }
}
