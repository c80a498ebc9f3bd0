//! Colours and dashes. The colours are those of Okabe and Ito, which are distinguishable with any
//! colour vision; dash patterns distinguish curves a second time.

/// Colour and dash pattern by number; dash pattern 0 is solid.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Ink {
    pub(crate) colour: usize,
    pub(crate) dash: usize,
}

/// For light and dark pages. The first five are for controllers.
pub(crate) const COLOURS: [(&str, &str); 7] = [
    ("#0072b2", "#56b4e9"),
    ("#d55e00", "#e69f00"),
    ("#009e73", "#2fc499"),
    ("#cc79a7", "#cc79a7"),
    ("#e69f00", "#f0e442"),
    ("#56b4e9", "#3d8fc7"),
    ("#666666", "#b0b0b0"),
];

pub(crate) const DASHES: [&str; 5] = ["none", "7 4.5", "0.5 4", "9 4.5 0.5 4.5", "14 5.5"];

impl Ink {
    /// Classes of a line's colour and dashes.
    pub(crate) fn stroke(self) -> String {
        format!("{} d{}", self.edge(), self.dash % DASHES.len())
    }

    /// CSS class of a line's colour only, for thick bars and whiskers.
    pub(super) fn edge(self) -> String {
        format!("s{}", self.colour % COLOURS.len())
    }

    /// Class of an area's colour.
    pub(super) fn fill(self) -> String {
        format!("f{}", self.colour % COLOURS.len())
    }
}

/// The style sheet required by every chart in this module.
pub(crate) fn style() -> String {
    let light = colours(|(light, _)| light);
    let dark = colours(|(_, dark)| dark);
    let dashes = DASHES.iter().enumerate();
    let dashes: Vec<_> = dashes.map(|(n, d)| format!(".d{n}{{stroke-dasharray:{d}}}\n")).collect();
    format!(
        "{BASE}{light}{}@media screen and (prefers-color-scheme:dark){{\n{dark}}}\n",
        dashes.concat()
    )
}

fn colours(pick: fn((&'static str, &'static str)) -> &'static str) -> String {
    let colours = COLOURS.iter().enumerate().map(|(n, pair)| (n, pick(*pair)));
    let rules = colours.map(|(n, c)| format!(".s{n}{{stroke:{c}}}.f{n}{{fill:{c}}}\n"));
    rules.collect::<Vec<_>>().concat()
}

const BASE: &str = include_str!("chart.css");

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_class_has_a_rule() {
        let style = style();
        for n in 0..35 {
            let ink = Ink { colour: n, dash: n };
            for class in ink.stroke().split(' ').chain([ink.fill().as_str()]) {
                assert!(style.contains(&format!(".{class}{{")), "{class}");
            }
        }
    }
}
