use uncork_flow::SeriesPoint;

use super::*;
use crate::document::CompareDocument;
use crate::sample;

fn page(document: &CompareDocument) -> String {
    compare_html(document, &sample::series(document))
}

fn parse(page: &str) -> roxmltree::Document<'_> {
    let options = roxmltree::ParsingOptions { allow_dtd: true, ..Default::default() };
    roxmltree::Document::parse_with_options(page, options).unwrap()
}

#[test]
fn is_well_formed_small_and_repeatable() {
    for document in [sample::transfers(), sample::mix()] {
        let page = page(&document);
        parse(&page);
        assert!(page.len() < 300_000, "{}", page.len());
        assert_eq!(page, self::page(&document));
    }
}

/// Three columns of eight flows each, and far more points than a picture can show.
#[test]
fn crowds_stay_small() {
    let mut document = sample::mix();
    document.results.push(document.results[1].clone());
    let mut series = sample::series(&document);
    for column in &mut series.columns {
        let pair = std::mem::take(&mut column.points);
        column.cc = std::iter::repeat_n(column.cc.clone(), 4).flatten().collect();
        let copies = (0..8).flat_map(|flow| {
            let points = pair.iter().filter(move |p| p.flow == flow % 2);
            points.map(move |p| SeriesPoint { flow, ..*p })
        });
        column.points = copies.collect();
    }
    let page = compare_html(&document, &series);
    assert!(page.contains("flow 7: cubic"));
    assert!(page.len() < 300_000, "{}", page.len());
}

#[test]
fn loads_nothing_and_runs_nothing() {
    let page = page(&sample::transfers()).replace("http://www.w3.org/2000/svg", "");
    for forbidden in
        ["http://", "https://", "<script", "javascript:", "url(", "@import", "<img", "<link"]
    {
        assert!(!page.contains(forbidden), "{forbidden}");
    }
    assert!(
        page.contains("content=\"default-src 'none'; style-src 'unsafe-inline'; img-src data:\"")
    );
}

#[test]
fn hostile_text_stays_text() {
    let hostile = "</title></svg><script>alert(1)</script>\" onload='x'&\0";
    let mut document = sample::mix();
    document.command = hostile.to_owned();
    document.verdict = hostile.to_owned();
    document.version = hostile.to_owned();
    let mut series = sample::series(&document);
    for (result, column) in document.results.iter_mut().zip(&mut series.columns) {
        result.cc = hostile.to_owned();
        column.label = hostile.to_owned();
        result.per_flow[0].cc = hostile.to_owned();
        column.cc[0] = hostile.to_owned();
    }
    let page = compare_html(&document, &series);
    assert!(!page.contains("<script") && !page.contains("' onload"));
    let parsed = parse(&page);
    assert!(parsed.descendants().all(|n| n.tag_name().name() != "script"));
    assert!(parsed.descendants().all(|n| n.attribute("onload").is_none()));
}

#[test]
fn transfers_have_all_figures() {
    let page = page(&sample::transfers());
    let parsed = parse(&page);
    let headings: Vec<&str> =
        parsed.descendants().filter(|n| n.has_tag_name("h3")).filter_map(|n| n.text()).collect();
    assert_eq!(
        headings,
        [
            "At a glance",
            "Completion times",
            "Delivery rate",
            "Round-trip time",
            "Queue of the bottleneck",
            "What the controllers did"
        ]
    );
    let source = "Seed shown: 7. Repeat with: uncork compare --rate 20mbit";
    assert_eq!(page.matches(source).count(), 4, "under every figure of single runs");
}

#[test]
fn a_column_of_several_flows_has_figures_of_its_own() {
    let page = page(&sample::mix());
    assert!(page.contains("Delivery rate: 2xbbr3") && page.contains("Delivery rate: bbr3+cubic"));
    assert!(page.contains(">total<") && page.contains(">flow 1: cubic<"));
    assert!(!page.contains("Completion times"), "there are none");
    assert!(page.contains(">30</text>"), "the axis covers the whole duration");
}

#[test]
fn without_series_the_figures_of_the_document_remain() {
    let page = compare_html(&sample::transfers(), &ReportSeries::default());
    let parsed = parse(&page);
    assert_eq!(parsed.descendants().filter(|n| n.has_tag_name("figure")).count(), 1);
}

#[test]
fn the_document_can_be_read_back_from_the_page() {
    let document = sample::transfers();
    let page = page(&document);
    let parsed = parse(&page);
    let details = parsed.descendants().find(|n| n.has_tag_name("details")).unwrap();
    let json = details.descendants().find(|n| n.has_tag_name("pre")).and_then(|n| n.text());
    assert_eq!(CompareDocument::from_json(json.unwrap()).unwrap(), document);
}
