"""The page and the document: whole, self-contained, of the same look as the laboratory's reports."""

import json
import re
from pathlib import Path
from xml.etree import ElementTree

import jsonschema
import pytest

from demos import demo
from pages import WIDTHS, assert_fits
from uncork.experiment import json_schema
from uncork.experiment.interference import lessons
from uncork.experiment.report import explain, palette, svg

REPOSITORY = Path(__file__).parents[3]
SCHEMA = REPOSITORY / "docs/schemas/experiment-1.json"


def report() -> str:
    return (demo() / "report.html").read_text(encoding="utf-8")


def document() -> dict[str, object]:
    found: dict[str, object] = json.loads((demo() / "result.json").read_text(encoding="utf-8"))
    return found


def test_page_is_well_formed_and_needs_nothing_else() -> None:
    page = report()
    ElementTree.fromstring(page.split("\n", 1)[1])
    assert "<script" not in page
    assert "default-src 'none'" in page
    outside = [url for url in re.findall(r'(?:src|href)="([^"]+)"', page) if not url.startswith("#")]
    assert outside == []
    assert not re.search(r"\b(nan|inf|None)\b", re.sub(r"<style>.*?</style>", "", page, flags=re.S))


def test_decision_comes_first_then_the_table() -> None:
    page = report()
    order = [
        'id="decision"',
        'id="guardrails"',
        'id="cells-region"',
        'id="health"',
        'id="scorecard"',
        "<figure",
    ]
    places = [page.index(mark) for mark in order]
    assert places == sorted(places)
    assert "Made up:" in page[: places[0]]
    sentence = document()["verdict"]["sentence"]  # type: ignore[index]
    assert f'<p class="sentence">{sentence}' in page


def test_every_picture_is_there_for_wide_and_narrow_pages() -> None:
    page = report()
    figures = re.findall(r'<figure id="([^"]+)"', page)
    expected = {
        "by-region",
        "by-asn",
        "by-size_class",
        "cdf-throughput",
        "curve-throughput",
        "cdf-completion",
        "daily",
        "looks",
        "heat",
        "price",
        "incident-0",
    }
    assert expected <= set(figures)
    assert page.count('<svg xmlns="http://www.w3.org/2000/svg"') >= 2 * len(figures)
    assert page.count('viewBox="0 0 680 ') == page.count('viewBox="0 0 372 ')


def test_numbers_carry_their_estimand() -> None:
    rows = document()["scorecard"]
    assert isinstance(rows, list)
    assert {row["effect"]["estimand"] for row in rows if row["effect"]} == {"A/B at share 50 %"}
    page = report()
    assert "total effect" in page
    assert "cannot show whether bbr takes bandwidth from cubic" in page


def test_demo_says_what_was_made_into_it() -> None:
    """The generator helps long lossy paths, hurts inside the data centre, and has a failure in AS64503."""
    found = document()
    cells = {(cell["key"], cell["value"]): cell for cell in found["cells"]}  # type: ignore[attr-defined]
    assert cells[("asn", "AS64511")]["primary"]["effect"]["ratio"] > 1.05
    assert cells[("asn", "AS64600")]["primary"]["effect"]["ratio"] < 0.6
    assert "AS64503" in {incident["value"] for incident in found["incidents"]}  # type: ignore[attr-defined]
    assert found["facts"]["switch"].startswith("2026-11-05")  # type: ignore[index]
    assert {finding["severity"] for finding in found["health"]} == {"ok"}  # type: ignore[attr-defined]


def test_document_matches_its_schema() -> None:
    jsonschema.Draft202012Validator.check_schema(json_schema.schema())
    jsonschema.validate(document(), json_schema.schema())


def test_schema_refuses_what_is_wrong() -> None:
    wrong = document() | {"verdict": {"decision": "perhaps"}}
    with pytest.raises(jsonschema.ValidationError):
        jsonschema.validate(wrong, json_schema.schema())


def in_repository(path: Path) -> Path:
    if not path.exists():
        pytest.skip(f"*** NOT RUN: {path} is only in the repository ***")
    return path


def test_published_schema_is_that_of_the_code() -> None:
    assert in_repository(SCHEMA).read_text(encoding="utf-8") == json_schema.text(), (
        "write it again: python -m uncork.experiment.json_schema > docs/schemas/experiment-1.json"
    )


def test_a_controller_has_one_colour() -> None:
    assert palette.inks(("cubic", "bbr")) == ("s0 d0", "s1 d0")
    assert palette.inks(("bbr", "bbr3"))[0] == "s1 d0"
    assert palette.inks(("cubic", "cubic")) == ("s0 d0", "s0 d1")
    assert palette.colour_of("bbr3:loss_floor") == palette.colour_of("bbr3")
    both = palette.inks(("mine", "yours"))
    assert both[0] != both[1]


def test_ticks_are_round_and_within() -> None:
    axis = svg.around("", [-3.2, 17.5], zero=True)
    assert [label for _, label in axis.ticks()] == ["-5", "0", "5", "10", "15", "20"]
    log = svg.Axis("", 0.8, 120, log=True)
    assert [value for value, _ in log.ticks()] == [1, 2, 5, 10, 20, 50, 100]
    short = svg.Axis("share", 2.7, 4.2, log=True)
    assert [label for _, label in short.ticks()] == ["3.0", "3.5", "4.0"]


def test_names_above_a_chart_do_not_overlap() -> None:
    marks = [svg.Mark("first name", 1), svg.Mark("second name", 1.2, 2), svg.Mark("third name", 1.4)]
    chart = svg.Chart("t", "d", svg.Axis("", 0, 10), svg.Axis("label", 0, 1), [], marks)
    rows = chart._mark_rows(40, 360)
    assert sorted(rows.values()) == [0, 1, 2]


@pytest.mark.parametrize("width", WIDTHS)
def test_nothing_leaves_the_page(width: int, tmp_path: Path) -> None:
    assert_fits(report(), width, tmp_path)


def test_interference_page() -> None:
    some = lessons(1)
    page = explain.page(some, "uncork experiment interference")
    ElementTree.fromstring(page.split("\n", 1)[1])
    full = some[0]
    assert full.truth == pytest.approx(1.0)
    covers = {result.design: result.covers(full.truth) for result in full.results}
    assert covers["A/B test, 50 % treated"] is False
    assert covers["switchback"] is True
    assert "spill-over" in page
    assert "the A/B test says +100 %" in page.replace("\n", " ")
