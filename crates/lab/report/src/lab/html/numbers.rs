//! The values of a picture as a collapsed table, for exact numbers and screen readers.

use uncork_terminal::Align;

use super::tables::wide;
use crate::escape::escape;
use crate::lab::figure::{Bars, Figure, FigureTable, HeatMap, Lines, Plot};
use crate::number::rounded;

/// Pictures with more values have no table; the result document has them.
const MAX_VALUES: usize = 400;

/// The table; empty for time series and distributions.
pub(super) fn of(figure: &Figure) -> String {
    let table = match &figure.plot {
        Plot::HeatMap(map) if map.x.len() * map.y.len() <= MAX_VALUES => heat_map(map),
        Plot::Bars(data) => bars(data),
        Plot::Lines(data) => lines(data),
        Plot::HeatMap(_) | Plot::Cdf(_) | Plot::TimeSeries(_) | Plot::Table(_) => {
            return String::new();
        }
    };
    if table.is_empty() {
        return table;
    }
    let caption = format!("<caption class=\"aside\">{}</caption>\n", escape(&figure.title));
    format!(
        "<details class=\"numbers\">\n<summary>In numbers</summary>\n{}</details>\n",
        wide(&(caption + &table))
    )
}

/// A figure that is a table.
pub(super) fn table(data: &FigureTable, title: &str) -> String {
    let class = |at: usize| match data.columns.get(at).map(|column| column.align) {
        Some(Align::Left) => " class=\"l\"",
        _ => "",
    };
    let heading = |(at, column): (usize, &crate::lab::TableColumn)| {
        let unit =
            if column.unit.is_empty() { String::new() } else { format!(", {}", column.unit) };
        format!(
            "<th scope=\"col\"{}>{}</th>",
            class(at),
            escape(&format!("{}{unit}", column.label))
        )
    };
    let cell = |(at, text): (usize, &String)| match at {
        0 => format!("<th scope=\"row\">{}</th>", escape(text)),
        _ => format!("<td{}>{}</td>", class(at), escape(text)),
    };
    let row = |row: &Vec<String>| {
        format!("<tr>{}</tr>\n", row.iter().enumerate().map(cell).collect::<String>())
    };
    wide(&format!(
        "<caption class=\"aside\">{}</caption>\n<thead>\n<tr>{}</tr>\n</thead>\n<tbody>\n{}</tbody>\n",
        escape(title),
        data.columns.iter().enumerate().map(heading).collect::<String>(),
        data.rows.iter().map(row).collect::<String>()
    ))
}

fn heat_map(map: &HeatMap) -> String {
    let headings: Vec<&str> =
        std::iter::once(map.y_label.as_str()).chain(map.x.iter().map(String::as_str)).collect();
    let rows = map.y.iter().zip(&map.values).rev();
    let rows =
        rows.map(|(name, values)| (name.as_str(), values.iter().map(|v| print(*v)).collect()));
    body(&headings, rows)
}

fn bars(data: &Bars) -> String {
    let value = format!("{}, {}", data.quantity, data.unit);
    let bars = data.groups.iter().flat_map(|group| group.bars.iter().map(move |bar| (group, bar)));
    let names: Vec<(String, Vec<String>)> = bars
        .map(|(group, bar)| {
            let figures = [Some(bar.value), bar.low, bar.high].map(print).to_vec();
            (format!("{}, {}", group.label, bar.label), figures)
        })
        .collect();
    let rows = names.iter().map(|(name, figures)| (name.as_str(), figures.clone()));
    body(&["bar", &value, "low", "high"], rows)
}

fn lines(data: &Lines) -> String {
    let points =
        data.curves.iter().flat_map(|curve| curve.points.iter().map(move |point| (curve, point)));
    let rows: Vec<(&str, Vec<String>)> = points
        .map(|(curve, p)| {
            let name = data.x_names.get(p.x as usize);
            let x = name.map_or_else(|| print(Some(p.x)), |name| escape(name));
            let [y, low, high] = [Some(p.y), p.low, p.high].map(print);
            (curve.label.as_str(), vec![x, y, low, high])
        })
        .collect();
    if rows.len() > MAX_VALUES {
        return String::new();
    }
    body(&["curve", &data.x_label, &data.y_label, "low", "high"], rows.into_iter())
}

fn body<'a>(headings: &[&str], rows: impl Iterator<Item = (&'a str, Vec<String>)>) -> String {
    let heading = |name: &&str| format!("<th scope=\"col\">{}</th>", escape(name));
    let row = |(name, figures): (&str, Vec<String>)| {
        let name = escape(name);
        format!("<tr><th scope=\"row\">{name}</th><td>{}</td></tr>\n", figures.join("</td><td>"))
    };
    format!(
        "<thead>\n<tr>{}</tr>\n</thead>\n<tbody>\n{}</tbody>\n",
        headings.iter().map(heading).collect::<String>(),
        rows.map(row).collect::<String>()
    )
}

fn print(value: Option<f64>) -> String {
    value.map_or_else(|| "–".to_owned(), |value| format!("{}", rounded(value, 4)))
}
