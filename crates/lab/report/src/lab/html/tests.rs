use uncork_testkit::assert_message;

use super::*;
use crate::lab::figure::{Curve, Plot};
use crate::lab::tests::{sample, suite};

fn parse(page: &str) -> roxmltree::Document<'_> {
    let options = roxmltree::ParsingOptions { allow_dtd: true, ..Default::default() };
    roxmltree::Document::parse_with_options(page, options).unwrap()
}

/// The page without its script: its licence and comments contain URLs.
fn without_script(page: &str) -> String {
    let script = script();
    assert!(page.contains(&script));
    page.replace(&script, "")
}

#[test]
fn is_well_formed_small_and_repeatable() {
    let page = sample().html();
    parse(&page);
    assert!(page.len() < 200_000, "{}", page.len());
    assert_eq!(page, sample().html());
}

#[test]
fn page_loads_nothing_and_runs_one_script() {
    let page = sample().html();
    let rest = without_script(&page).replace("http://www.w3.org/2000/svg", "");
    for forbidden in [
        "http://",
        "https://",
        "<script>",
        "javascript:",
        "url(",
        "@import",
        "<img",
        "<link",
        "src=",
    ] {
        assert!(!rest.contains(forbidden), "{forbidden}");
    }
    let policy = format!(
        "content=\"default-src 'none'; style-src 'unsafe-inline'; script-src '{SCRIPT_HASH}'; \
         img-src data:\""
    );
    assert!(page.contains(&policy));
    assert!(page.contains("Copyright (c) 2022 Leon Sorokin"), "the licence is included");
    for forbidden in ["fetch(", "XMLHttpRequest", "WebSocket", "import(", "eval("] {
        assert!(!script().contains(forbidden), "{forbidden}");
    }
}

#[test]
fn failures_come_first() {
    let page = sample().html();
    let place = |text: &str| page.find(text).unwrap_or_else(|| panic!("{text} is missing"));
    let order = [
        "2 of 9 thresholds missed.",
        "bbr3</td><td class=\"l\" data-h=\"where\">loss 10 %, buffer 1 BDP",
        "7 thresholds met",
        "<h2>Figures</h2>",
        "<h2>Results</h2>",
        "What the columns mean",
        "Published results",
        "3 assumptions",
        "The scenario as it was run",
        "4\u{202f}801\u{202f}234 packets",
    ];
    let places: Vec<usize> = order.into_iter().map(place).collect();
    assert!(places.is_sorted(), "{places:?}");

    let mut document = sample();
    document.thresholds.iter_mut().for_each(|threshold| threshold.passed = true);
    assert!(document.html().contains("All 9 thresholds met."));
    document.thresholds.clear();
    assert!(!document.html().contains("id=\"thresholds\""), "no section without thresholds");
}

#[test]
fn hostile_text_stays_text() {
    let hostile = "</title></svg></script><script>alert(1)</script>]]>--><!--\" onload='x'&\0";
    let safe = sample().to_json();
    let mut value: serde_json::Value = serde_json::from_str(&safe).unwrap();
    poison(&mut value, hostile);
    let document = LabDocument::from_json(&value.to_string()).unwrap();
    let page = document.html();
    let parsed = parse(&page);
    let scripts: Vec<_> =
        parsed.descendants().filter(|n| n.tag_name().name() == "script").collect();
    assert_eq!(scripts.len(), 4, "three with data and the page's own");
    assert!(parsed.descendants().all(|n| n.attribute("onload").is_none()));
    // A browser ends a script at the first end tag, wherever it is.
    assert_eq!(page.matches("</script").count(), 4);
    assert_eq!(page.matches("<!--").count(), 0);
    for script in &scripts[..3] {
        let data: serde_json::Value = serde_json::from_str(script.text().unwrap()).unwrap();
        assert!(data[0]["series"][0]["label"].as_str().unwrap().starts_with("</title>"));
    }
}

/// Replaces every text that comes from a scenario by `hostile`.
fn poison(value: &mut serde_json::Value, hostile: &str) {
    match value {
        serde_json::Value::String(text) => hostile.clone_into(text),
        serde_json::Value::Array(items) => items.iter_mut().for_each(|item| poison(item, hostile)),
        serde_json::Value::Object(fields) => {
            // Names of the format, and names that must be unique.
            let kept = ["schema", "kind", "scale", "better", "align", "id", "verdict"];
            let fields = fields.iter_mut().filter(|(name, _)| !kept.contains(&name.as_str()));
            fields.for_each(|(_, field)| poison(field, hostile));
        }
        _ => {}
    }
}

#[test]
fn every_figure_has_its_provenance() {
    let page = sample().html();
    let parsed = parse(&page);
    let figures: Vec<_> = parsed.descendants().filter(|n| n.has_tag_name("figure")).collect();
    assert_eq!(figures.len(), 7);
    for figure in figures {
        let find = |name: &str| figure.descendants().find(|n| n.tag_name().name() == name);
        let code = find("code").unwrap();
        assert_eq!(code.attribute("class"), Some("command"));
        let command = code.text().unwrap();
        assert!(command.starts_with("uncork "), "{command}");
        let caption = find("figcaption").unwrap();
        let text: String = caption.descendants().filter_map(|n| n.text()).collect();
        assert!(text.contains("uncork 0.1.0") && text.contains("Seed"), "{text}");
        assert!(find("svg").is_some() || find("table").is_some());
        if let Some(svg) = find("svg") {
            let title = svg.first_element_child().unwrap();
            assert!(title.tag_name().name() == "title" && title.text().is_some());
        }
    }
    assert!(page.contains("Seed 1, uncork") && page.contains("Seeds 1 to 20, uncork"));
}

#[test]
fn tables_are_accessible() {
    let page = sample().html();
    let parsed = parse(&page);
    let tables: Vec<_> = parsed.descendants().filter(|n| n.has_tag_name("table")).collect();
    assert!(tables.len() >= 8, "{}", tables.len());
    for table in tables {
        assert!(table.children().any(|n| n.has_tag_name("caption")), "each has a caption");
        let headings = table.descendants().filter(|n| n.has_tag_name("th"));
        assert!(headings.clone().count() > 0);
        for heading in headings {
            assert!(heading.attribute("scope").is_some(), "{:?}", heading.text());
        }
    }
}

#[test]
fn controller_keeps_its_colour() {
    let page = sample().html();
    let parsed = parse(&page);
    let figure = |n: usize| {
        let id = format!("figure-{n}");
        parsed.descendants().find(|node| node.attribute("id") == Some(id.as_str())).unwrap()
    };
    let classes = |n: usize, kind: &str| -> Vec<String> {
        let paths = figure(n).descendants().filter_map(|node| node.attribute("class"));
        paths.filter(|c| c.starts_with(kind)).map(|c| c[kind.len()..].to_owned()).collect()
    };
    // cubic, bbr1 and bbr3, in the order of the cells: legend and lines of a distribution, bars of
    // three groups, lines and the published line.
    assert_eq!(classes(3, "line "), ["s0 d0", "s1 d0", "s2 d0", "s0 d0", "s1 d0", "s2 d0"]);
    assert_eq!(classes(4, "length "), ["f0", "f1", "f2", "f0", "f1", "f2", "f0", "f1", "f2"]);
    assert_eq!(classes(5, "line "), ["s0 d0", "s1 d0", "s2 d0", "s5 d1"]);
}

/// The `d` of each line of a distribution only moves right and up.
#[test]
fn distributions_only_rise() {
    let page = sample().html();
    let parsed = parse(&page);
    let figure = parsed.descendants().find(|n| n.attribute("id") == Some("figure-3")).unwrap();
    let lines: Vec<&str> = figure
        .descendants()
        .filter(|n| n.attribute("class").is_some_and(|class| class.starts_with("line ")))
        .filter_map(|n| n.attribute("d"))
        .filter(|d| d.contains('l'))
        .collect();
    assert_eq!(lines.len(), 3);
    for line in lines {
        let steps = &line[line.find('l').unwrap() + 1..];
        let steps: Vec<f64> = steps.split(' ').map(|step| step.parse().unwrap()).collect();
        assert!(steps.chunks(2).all(|step| step[0] >= 0.0 && step[1] <= 0.0), "{line}");
        let height: f64 = steps.iter().skip(1).step_by(2).sum();
        assert!((height + 210.0).abs() < 0.05, "from 0 to 100 %: {height}");
    }
}

/// Eight flows of 50 000 points each in each of 30 figures.
#[test]
fn large_pages_are_limited_and_list_what_is_missing() {
    let mut document = sample();
    let mut figure = document.figures.remove(5);
    let points: Vec<(f64, f64)> =
        (0..50_000).map(|n| (f64::from(n) / 1e3, f64::from(n * 7919 % 1000) / 7.0)).collect();
    if let Plot::TimeSeries(series) = &mut figure.plot {
        let curve = |n: u32| Curve {
            label: format!("flow {n}"),
            cc: "cubic".to_owned(),
            points: points.clone(),
        };
        series.panels.iter_mut().for_each(|panel| panel.curves = (0..8).map(curve).collect());
    }
    document.figures =
        (0..30).map(|n| crate::lab::Figure { id: format!("run-{n}"), ..figure.clone() }).collect();
    let page = document.html();
    parse(&page);
    assert!(page.len() < figures::PAGE_LIMIT + 300_000, "{}", page.len());
    assert!(page.contains(" 50000 points "));
    let left_out = page.matches("class=\"left-out\"").count();
    assert!((1..30).contains(&left_out), "{left_out} of 30");
    assert_eq!(page.matches("<figcaption>").count(), 30, "captions stay");
}

#[test]
fn many_cells_are_truncated_and_counted() {
    let mut document = sample();
    document.cells = std::iter::repeat_n(document.cells.clone(), 20).flatten().collect();
    let page = document.html();
    assert!(page.contains("600 rows more: see the CSV."));
    let parsed = parse(&page);
    let results = parsed.descendants().find(|n| n.attribute("id") == Some("results")).unwrap();
    let body = results.descendants().find(|n| n.has_tag_name("tbody")).unwrap();
    assert_eq!(body.children().filter(|n| n.has_tag_name("tr")).count(), 300);
}

#[test]
fn minimal_document_makes_a_page() {
    let mut document = sample();
    document.thresholds.clear();
    document.axes.clear();
    document.cells.clear();
    document.published.clear();
    document.assumptions.clear();
    document.files.clear();
    for figure in &mut document.figures {
        match &mut figure.plot {
            Plot::HeatMap(map) => (map.x.clear(), map.y.clear(), map.values.clear()).0,
            Plot::Cdf(cdf) => cdf.curves.clear(),
            Plot::Bars(bars) => bars.groups.clear(),
            Plot::Lines(lines) => lines.curves.clear(),
            Plot::TimeSeries(series) => series.panels.clear(),
            Plot::Table(table) => table.rows.clear(),
        }
    }
    parse(&document.html());
    document.figures.clear();
    parse(&document.html());
}

/// Link names are unique, and every link leads to one of them.
#[test]
fn suite_has_a_summary_and_a_section_for_each_scenario() {
    let page = suite().html();
    let parsed = parse(&page);
    let ids: Vec<&str> = parsed.descendants().filter_map(|n| n.attribute("id")).collect();
    let mut once = ids.clone();
    once.sort_unstable();
    once.dedup();
    assert_eq!(once.len(), ids.len(), "{ids:?}");
    let links = parsed.descendants().filter_map(|n| n.attribute("href"));
    let (inside, outside): (Vec<&str>, Vec<&str>) = links.partition(|link| link.starts_with('#'));
    assert!(inside.iter().all(|link| ids.contains(&&link[1..])), "{inside:?}");
    assert_eq!(outside, ["first/report.html", "second/report.html"]);

    let place = |text: &str| page.find(text).unwrap_or_else(|| panic!("{text} is missing"));
    let order = [
        "2 of 18 thresholds missed, in 1 of 2 scenarios.",
        "✗ 2 of 9 missed</td><td class=\"l broad\">2 by bbr3 (class download)<",
        "✓ all 9 met",
        "600 in 2 scenarios",
        "<h2>The first</h2>",
        "2 of 9 thresholds missed.",
        "<b>Figure 7.</b>",
        "<h2>The second</h2>",
        "All 9 thresholds met.",
        "<b>Figure 14.</b>",
        "<h2>Not judged</h2>",
    ];
    let places: Vec<usize> = order.into_iter().map(place).collect();
    assert!(places.is_sorted(), "{places:?}");
    assert!(!page.contains("0 cells"));
    let section = parsed.descendants().find(|n| n.attribute("id") == Some("second")).unwrap();
    let text: String = section.descendants().filter_map(|n| n.text()).collect();
    for part in ["Does BBR move", "Published results", "3 assumptions", "Figure 8."] {
        assert!(text.contains(part), "{part}");
    }
}

#[test]
fn commands_in_a_text_can_be_copied() {
    let html = paragraphs("One.\n\n    uncork lab run <x>\n\nTwo,\nstill two.");
    assert_eq!(
        html,
        "<p class=\"question\">One.</p>\n<pre><code class=\"command\">uncork lab run &lt;x&gt;</code>\
         </pre>\n<p class=\"question\">Two,\nstill two.</p>\n"
    );
}

/// A ratio of completion times: lower is better, with the same green as higher goodput.
#[test]
fn heat_maps_show_which_end_is_better() {
    let mut document = sample();
    let draw = |document: &LabDocument| {
        let page = document.html();
        let from = page.find("id=\"figure-1\"").unwrap();
        page[from..from + page[from..].find("</svg>").unwrap()].to_owned()
    };
    let ends = |svg: &str| -> Vec<String> {
        let texts = svg.split("<text ").skip(1).map(|text| text.split(['>', '<']).nth(1).unwrap());
        texts.take(3).map(str::to_owned).collect()
    };
    let set = |document: &mut LabDocument, better| match &mut document.figures[0].plot {
        Plot::HeatMap(map) => map.better = better,
        other => panic!("{other:?}"),
    };
    set(&mut document, None);
    let neither = ends(&draw(&document));
    set(&mut document, Some(crate::lab::Better::Higher));
    let higher = draw(&document);
    let [low, middle, high] = [0, 1, 2].map(|n| neither[n].clone());
    assert_eq!(ends(&higher), [format!("{low} worse"), middle.clone(), format!("better {high}")]);
    set(&mut document, Some(crate::lab::Better::Lower));
    let lower = draw(&document);
    assert_eq!(ends(&lower), [format!("{high} worse"), middle, format!("better {low}")]);
    assert!(higher.contains("class=\"v10\"") && lower.contains("class=\"v0\""));
}

#[test]
fn no_caption_is_empty() {
    let mut document = sample();
    document.figures.iter_mut().for_each(|figure| figure.caption.clear());
    let page = document.html();
    let first = page.split("<b>Figure 1.</b> ").nth(1).and_then(|rest| rest.split(" <").next());
    assert_message!("first figure", first.unwrap());
    assert_eq!(page.matches(".</b>  <").count(), 0);
}
