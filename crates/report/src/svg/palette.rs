//! Colours and dashes. The colours are those of Okabe and Ito, which people with any kind of colour
//! vision tell apart; a dash pattern says the same a second time.

/// What a mark is drawn in.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Ink {
    /// The n-th of several series.
    Series(usize),
    /// A colour and a dash pattern by number, where they say different things; dash pattern 0 is
    /// none.
    Styled {
        /// Number of the colour.
        colour: usize,
        /// Number of the dash pattern.
        dash: usize,
    },
    /// The sum of all series: the page's own text colour.
    Total,
}

/// For a light and for a dark page. The first five are those of controllers.
pub(crate) const COLOURS: [(&str, &str); 7] = [
    ("#0072b2", "#56b4e9"),
    ("#d55e00", "#e69f00"),
    ("#009e73", "#2fc499"),
    ("#cc79a7", "#cc79a7"),
    ("#e69f00", "#f0e442"),
    ("#56b4e9", "#3d8fc7"),
    ("#666666", "#b0b0b0"),
];

const DASHES: [&str; 5] = ["none", "7 4.5", "0.5 4", "9 4.5 0.5 4.5", "14 5.5"];

impl Ink {
    /// Class that gives a line its colour and its dashes.
    pub(crate) fn stroke(self) -> String {
        let dash = match self {
            Self::Series(n) => n,
            Self::Styled { dash, .. } => dash,
            Self::Total => return "st".to_owned(),
        };
        format!("{} d{}", self.class('s'), dash % DASHES.len())
    }

    /// Class of a line's colour alone, for broad bars and whiskers.
    pub(super) fn edge(self) -> String {
        self.class('s')
    }

    /// Class that gives an area its colour.
    pub(super) fn fill(self) -> String {
        self.class('f')
    }

    fn class(self, kind: char) -> String {
        match self {
            Self::Series(n) | Self::Styled { colour: n, .. } => {
                format!("{kind}{}", n % COLOURS.len())
            }
            Self::Total => format!("{kind}t"),
        }
    }
}

/// The style sheet that every chart of this module relies on.
pub fn style() -> String {
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
    use std::collections::HashSet;

    use super::*;

    #[test]
    fn many_series_differ_in_colour_or_dashes() {
        let classes: HashSet<String> = (0..35).map(|n| Ink::Series(n).stroke()).collect();
        assert_eq!(classes.len(), 35);
    }

    #[test]
    fn every_class_has_a_rule() {
        let style = style();
        for n in 0..35 {
            for class in Ink::Series(n).stroke().split(' ') {
                assert!(style.contains(&format!(".{class}{{")), "{class}");
            }
            assert!(style.contains(&format!(".{}{{", Ink::Series(n).fill())));
        }
        assert!(style.contains(".st{") && style.contains(".ft{"));
    }
}
