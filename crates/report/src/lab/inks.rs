//! One colour for each controller, in all figures of a document.

use super::document::LabDocument;
use super::figure::Plot;
use crate::svg::{COLOURS, Ink};

/// Dashes of what was published elsewhere.
const PUBLISHED: usize = 1;

/// Dashes of curves with one colour in one figure: whole lines first.
const REPEATED: [usize; 4] = [0, 2, 3, 4];

/// Who has which colour: controllers in the order of their appearance, then what has none.
#[derive(Debug)]
pub(super) struct Inks {
    keys: Vec<String>,
}

impl Inks {
    /// Those of all `documents` that share a page.
    pub(super) fn of(documents: &[&LabDocument]) -> Self {
        let cells = documents.iter().flat_map(|document| &document.cells);
        let classes = cells.flat_map(|cell| &cell.classes);
        let mut keys: Vec<String> = Vec::new();
        let figures = documents.iter().flat_map(|document| &document.figures);
        let drawn: Vec<(&str, &str)> = figures.flat_map(|figure| drawn(&figure.plot)).collect();
        let controllers = drawn.iter().filter(|(cc, _)| !cc.is_empty()).map(|(cc, _)| *cc);
        let others = drawn.iter().filter(|(cc, _)| cc.is_empty()).map(|(_, label)| *label);
        for key in classes.map(|class| class.cc.as_str()).chain(controllers).chain(others) {
            if !keys.iter().any(|known| known == key) {
                keys.push(key.to_owned());
            }
        }
        Self { keys }
    }

    /// The inks of marks that share a picture, by controller and label and whether published.
    pub(super) fn assign<'a>(
        &self,
        marks: impl Iterator<Item = (&'a str, &'a str, bool)>,
    ) -> Vec<Ink> {
        let mut seen: Vec<(usize, bool)> = Vec::new();
        let mut ink = |(cc, label, published): (&str, &str, bool)| {
            let key = self.key(cc, label);
            let repeated = seen.iter().filter(|other| **other == (key, published)).count();
            seen.push((key, published));
            let turn = REPEATED[(repeated + key / COLOURS.len()) % REPEATED.len()];
            Ink::Styled { colour: key, dash: if published { PUBLISHED } else { turn } }
        };
        marks.map(&mut ink).collect()
    }

    fn key(&self, cc: &str, label: &str) -> usize {
        let key = if cc.is_empty() { label } else { cc };
        self.keys.iter().position(|known| known == key).unwrap_or(self.keys.len())
    }
}

/// Controller and label of everything coloured in a figure.
fn drawn(plot: &Plot) -> Vec<(&str, &str)> {
    match plot {
        Plot::Cdf(cdf) => cdf.curves.iter().map(|c| (c.cc.as_str(), c.label.as_str())).collect(),
        Plot::Bars(bars) => {
            let bars = bars.groups.iter().flat_map(|group| &group.bars);
            bars.map(|bar| (bar.cc.as_str(), bar.label.as_str())).collect()
        }
        Plot::Lines(lines) => {
            lines.curves.iter().map(|c| (c.cc.as_str(), c.label.as_str())).collect()
        }
        Plot::TimeSeries(series) => {
            let curves = series.panels.iter().flat_map(|panel| &panel.curves);
            curves.map(|c| (c.cc.as_str(), c.label.as_str())).collect()
        }
        Plot::HeatMap(_) | Plot::Table(_) => Vec::new(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn one_colour_each_and_dashes_for_the_rest() {
        let inks = Inks { keys: ["cubic", "bbr3", "link"].map(str::to_owned).to_vec() };
        let marks = [
            ("bbr3", "bbr3", false),
            ("bbr3", "Cardwell 2017", true),
            ("cubic", "first", false),
            ("cubic", "second", false),
            ("", "link", false),
        ];
        let of = |colour, dash| Ink::Styled { colour, dash };
        let expected = [of(1, 0), of(1, 1), of(0, 0), of(0, 2), of(2, 0)];
        assert_eq!(inks.assign(marks.into_iter()), expected);
    }

    #[test]
    fn the_eighth_controller_differs_from_the_first() {
        let keys: Vec<String> = (0..8).map(|n| format!("cc{n}")).collect();
        let inks = Inks { keys: keys.clone() };
        let ink = |n: usize| inks.assign(std::iter::once((keys[n].as_str(), "", false)))[0];
        assert_eq!(ink(0), Ink::Styled { colour: 0, dash: 0 });
        assert_eq!(ink(7), Ink::Styled { colour: 7, dash: 2 });
    }
}
