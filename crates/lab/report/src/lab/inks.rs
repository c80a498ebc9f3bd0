//! One colour per controller, the same on every page.

use super::document::LabDocument;
use super::figure::Plot;
use crate::svg::{COLOURS, Ink};

/// Dashes of published results.
const PUBLISHED: usize = 1;

/// Dashes of curves with the same colour in one figure, solid first.
const REPEATED: [usize; 4] = [0, 2, 3, 4];

/// The controllers in the order of [`COLOURS`].
pub(crate) const CONTROLLERS: [&str; 5] = ["cubic", "bbr1", "bbr3", "bbr2", "reno"];

/// Colours of everything else, followed by those of controllers not on the page.
pub(crate) const OTHERS: [usize; COLOURS.len()] = [5, 6, 4, 3, 2, 1, 0];

/// Assignment of colours, and of dashes for entries with the same colour.
#[derive(Debug)]
pub(super) struct Inks {
    keys: Vec<InkKey>,
}

#[derive(Debug)]
struct InkKey {
    name: String,
    colour: usize,
    /// Number of earlier keys with the same colour.
    repeats: usize,
}

impl Inks {
    /// The inks for all `documents` that share a page.
    pub(super) fn of(documents: &[&LabDocument]) -> Self {
        let cells = documents.iter().flat_map(|document| &document.cells);
        let classes = cells.flat_map(|cell| &cell.classes).map(|class| class.cc.as_str());
        let figures = documents.iter().flat_map(|document| &document.figures);
        let drawn = figures.flat_map(|figure| drawn(&figure.plot));
        let drawn = drawn.map(|(cc, label)| if cc.is_empty() { label } else { cc });
        Self::named(classes.chain(drawn))
    }

    fn named<'a>(all: impl Iterator<Item = &'a str>) -> Self {
        let mut names: Vec<&str> = Vec::new();
        for name in all {
            if !names.contains(&name) {
                names.push(name);
            }
        }
        // A controller without options gets solid lines, with any variants.
        names.sort_by_key(|name| name.contains(':'));
        let taken: Vec<usize> = names.iter().filter_map(|name| controller(name)).collect();
        let mut free: Vec<usize> = OTHERS.into_iter().filter(|n| !taken.contains(n)).collect();
        if free.is_empty() {
            free = OTHERS.into();
        }
        let mut others = free.iter().copied().cycle();
        let mut keys: Vec<InkKey> = Vec::new();
        for name in names {
            let colour = controller(name).or_else(|| others.next()).unwrap_or(0);
            let repeats = keys.iter().filter(|key| key.colour == colour).count();
            keys.push(InkKey { name: name.to_owned(), colour, repeats });
        }
        Self { keys }
    }

    /// The inks of the curves in a picture, given by controller, label and whether published.
    pub(super) fn assign<'a>(
        &self,
        marks: impl Iterator<Item = (&'a str, &'a str, bool)>,
    ) -> Vec<Ink> {
        let mut seen: Vec<(&str, bool)> = Vec::new();
        let mut ink = |(cc, label, published): (&'a str, &'a str, bool)| {
            let name = if cc.is_empty() { label } else { cc };
            let repeated = seen.iter().filter(|other| **other == (name, published)).count();
            seen.push((name, published));
            let key = self.keys.iter().find(|key| key.name == name);
            let (colour, repeats) = key.map_or((OTHERS[0], 0), |key| (key.colour, key.repeats));
            let dash = REPEATED[(repeated + repeats) % REPEATED.len()];
            Ink { colour, dash: if published { PUBLISHED } else { dash } }
        };
        marks.map(&mut ink).collect()
    }
}

/// The colour of a controller regardless of options: `bbr3:rtt_fair` has that of `bbr3`.
fn controller(name: &str) -> Option<usize> {
    let (name, _) = name.split_once(':').unwrap_or((name, ""));
    CONTROLLERS.iter().position(|known| *known == name)
}

/// Controller and label of every coloured element of a figure.
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

    fn ink(inks: &Inks, name: &str) -> (usize, usize) {
        match inks.assign(std::iter::once((name, name, false)))[..] {
            [Ink { colour, dash }] => (colour, dash),
            ref other => panic!("{other:?}"),
        }
    }

    #[test]
    fn controller_has_one_colour_in_any_figure() {
        let all = [&["cubic", "bbr1", "bbr3"][..], &["bbr3", "reno", "cubic"], &["link", "bbr3"]];
        let pages = all.map(|names| Inks::named(names.iter().copied()));
        assert_eq!(pages.each_ref().map(|page| ink(page, "bbr3")), [(2, 0); 3]);
        assert_eq!(ink(&pages[0], "cubic"), ink(&pages[1], "cubic"));
        assert_eq!(ink(&pages[2], "link"), (5, 0));
    }

    #[test]
    fn options_of_a_controller_share_its_colour_and_differ_in_dashes() {
        let inks = Inks::named(["bbr3:rtt_fair", "bbr3", "bbr3:loss_floor"].into_iter());
        assert_eq!(ink(&inks, "bbr3"), (2, 0));
        assert_eq!(ink(&inks, "bbr3:rtt_fair"), (2, 2));
        assert_eq!(ink(&inks, "bbr3:loss_floor"), (2, 3));
    }

    #[test]
    fn curves_of_one_colour_in_one_figure_differ_in_dashes() {
        let inks = Inks::named(["cubic", "bbr3", "link"].into_iter());
        let marks = [
            ("bbr3", "bbr3", false),
            ("bbr3", "Cardwell 2017", true),
            ("cubic", "first", false),
            ("cubic", "second", false),
            ("", "link", false),
        ];
        let of = |colour, dash| Ink { colour, dash };
        let expected = [of(2, 0), of(2, 1), of(0, 0), of(0, 2), of(5, 0)];
        assert_eq!(inks.assign(marks.into_iter()), expected);
    }

    #[test]
    fn other_curves_avoid_the_controllers_colours() {
        let names: Vec<String> = (0..7).map(|n| format!("link {n}")).collect();
        let inks =
            Inks::named(["cubic", "bbr1"].into_iter().chain(names.iter().map(String::as_str)));
        let all: Vec<(usize, usize)> = names.iter().map(|name| ink(&inks, name)).collect();
        assert!(all.iter().all(|(colour, _)| ![0, 1].contains(colour)), "{all:?}");
        assert_eq!(all.iter().collect::<std::collections::HashSet<_>>().len(), 7, "{all:?}");
    }
}
