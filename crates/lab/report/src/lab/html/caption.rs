//! Default captions for figures.

use crate::lab::figure::{Figure, Plot, TimePanel};
use crate::words;

/// The caption of `figure`, or a sentence about its axes.
pub(super) fn of(figure: &Figure) -> String {
    if !figure.caption.trim().is_empty() {
        return figure.caption.clone();
    }
    let text = match &figure.plot {
        Plot::HeatMap(map) => format!("{} by {} and {}.", map.quantity, map.x_label, map.y_label),
        Plot::Cdf(cdf) => format!("Share of samples up to each {}.", cdf.x_label),
        Plot::Bars(bars) => format!("{}. Whiskers are 95 % intervals.", bars.quantity),
        Plot::Lines(lines) => {
            format!("{} by {}. Whiskers are 95 % intervals.", lines.y_label, lines.x_label)
        }
        Plot::TimeSeries(series) => {
            let panels = series.panels.iter().map(|panel: &TimePanel| panel.label.as_str());
            format!("{} over time, in one run.", words::list(&panels.collect::<Vec<_>>()))
        }
        Plot::Table(table) => {
            let columns = table.columns.iter().map(|column| column.label.as_str());
            format!("{}.", words::list(&columns.collect::<Vec<_>>()))
        }
    };
    let mut letters = text.chars();
    letters.next().map(|first| first.to_uppercase().chain(letters).collect()).unwrap_or_default()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::lab::tests::sample;
    use uncork_testkit::assert_message;

    #[test]
    fn figure_without_a_caption_names_its_axes() {
        let captions = sample().figures.into_iter().map(|mut figure| {
            assert_eq!(of(&figure), figure.caption, "its own");
            figure.caption = " ".to_owned();
            of(&figure)
        });
        let captions: Vec<String> = captions.collect();
        assert!(captions.iter().all(|caption| caption.len() > 20), "{captions:#?}");
        assert_message!("axes", captions.join("\n"));
    }
}
