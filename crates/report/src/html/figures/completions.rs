//! How the transfers of all seeds fared.

use super::{Figure, Page};
use crate::number::time_unit;
use crate::series::ColumnSeries;
use crate::svg::{self, Axis, Chart, Ink, Line};
use crate::words;

impl Page<'_> {
    pub(super) fn completions(&self) -> Option<Figure> {
        let columns = &self.series.columns;
        let all = || columns.iter().flat_map(|c| &c.completions_s).copied().filter(|v| *v > 0.0);
        let (min, max) = (all().fold(f64::INFINITY, f64::min), all().fold(0.0, f64::max));
        if max <= 0.0 {
            return None;
        }
        let unit = time_unit(max);
        let mut lines: Vec<Line> =
            columns.iter().enumerate().map(|(n, c)| self.staircase(n, c)).collect();
        for (x, _) in lines.iter_mut().flat_map(|line| &mut line.points) {
            *x /= unit.size;
        }
        let label = format!("completion, {}", unit.name);
        let wide = max / min > 20.0;
        let x = if wide {
            Axis::log(&format!("{label} (log scale)"), min / unit.size, max / unit.size)
        } else {
            Axis::from_zero(&label, max / unit.size)
        };
        let caption = format!(
            "Part of the transfers that were complete after a given time, in percent, over {}. \
             Further left is better; a line that ends below 100 % has transfers that did not finish.",
            words::counted(self.document.seeds, "seed")
        );
        let y = Axis::from_zero("% of transfers complete", 100.0);
        let chart =
            Chart { lines, ..Chart::new("Distribution of completion times", &caption, x, y) };
        let source = format!("Repeat with: {}", self.document.command);
        Some(Figure {
            heading: "Completion times".to_owned(),
            svg: chart.render(),
            caption,
            source,
        })
    }

    fn staircase(&self, n: usize, column: &ColumnSeries) -> Line {
        let unfinished = self.document.results.get(n).map_or(0, |r| r.unfinished);
        let points = svg::steps(&column.completions_s, unfinished);
        Line { name: column.label.clone(), ink: Ink::Series(n), points }
    }
}
