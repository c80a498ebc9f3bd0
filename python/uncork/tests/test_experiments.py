"""Experiments as an API: the same results as the command, as data frames and figures."""

import json
from functools import cache
from html import escape
from pathlib import Path
from xml.etree import ElementTree

import pytest

import uncork
from demos import demo
from uncork.experiment.cli import main


@cache
def report() -> uncork.Report:
    return uncork.Experiment(demo() / "records").analyze(by=["region"])


def test_the_document_is_that_of_the_command(tmp_path: Path) -> None:
    words = ["analyze", str(demo() / "records"), "--by=region", "-o", str(tmp_path)]
    assert main(words) in (0, 1)
    made = json.loads((tmp_path / "result.json").read_text("utf-8"))
    # Both look at the clock.
    made["health"], found = None, report().document | {"health": None}
    assert found.pop("command") == f"uncork experiment analyze {demo() / 'records'} --by=region"
    assert made.pop("command")
    assert found == made


def test_the_tables_are_data_frames_of_what_the_document_has() -> None:
    document = report().document
    cells = report().cells
    assert list(cells["value"]) == [cell["value"] for cell in document["cells"]]
    assert set(cells["key"]) == {"region"}
    assert set(cells["advice"]) <= {"enable", "keep", "wait", "none"}
    scorecard = report().scorecard.set_index("role")
    primary = next(row for row in document["scorecard"] if row["role"] == "primary")
    assert scorecard.loc["primary", "change"] == pytest.approx(primary["effect"]["ratio"] - 1)
    assert scorecard.loc["primary", "low"] < scorecard.loc["primary", "change"]
    assert list(report().guardrails["state"]) == [one["state"] for one in document["guardrails"]]
    assert list(report().health["check"]) == [one["name"] for one in document["health"]]


def test_the_verdict_has_its_decision_and_sentence() -> None:
    assert report().verdict.decision == report().document["verdict"]["decision"]
    assert report().verdict.sentence in str(report()).replace("\n", " ")
    assert report().verdict.sentence in repr(report())
    assert report()._repr_html_().startswith("<pre>")


def test_figures_are_pages_of_their_own() -> None:
    assert report().figures
    for figure in report().figures.values():
        assert escape(figure.title) in figure.html()
        page = ElementTree.fromstring(figure.html().split("\n", 1)[1])
        assert page.find(".//figcaption") is not None
        assert "<script" not in figure.html()
        assert figure._repr_html_().startswith('<iframe srcdoc="&lt;!DOCTYPE html&gt;')


def test_the_report_is_saved_as_the_command_does(tmp_path: Path) -> None:
    page = report().save(tmp_path / "new")
    assert page.read_text("utf-8").startswith("<!DOCTYPE html>")
    assert (tmp_path / "new/result.json").read_text("utf-8") == report().json


WRONG = [
    ({}, {"by": ["planet"]}, "by", "available: "),
    ({}, {"by": "region"}, "by='region'", "['region']"),
    ({}, {"primary": "throughput:p200"}, "primary", ""),
    ({}, {"primary": "speed"}, "primary", ""),
    ({}, {"guardrails": ["retransmitted"]}, "guardrail", ""),
    ({}, {"look": "5/4"}, "look 5/4", "K/N"),
    ({}, {"share": "half"}, "share half", "percent"),
    ({}, {"worth": "1"}, "worth 1", "percent"),
    ({}, {"since": "yesterday"}, "since yesterday", "2026-11-02"),
    ({}, {"treated": "other"}, "other", ""),
    ({"where": ["country"]}, {}, "where country", "COLUMN=VALUE"),
    ({"where": ["country=XX"]}, {}, "where country=XX", "country has"),
    ({"memory": "much"}, {}, "memory much", "3GB"),
    ({"engine": "oracle"}, {}, "engine", ""),
    ({"mapping": "apache2"}, {}, "apache2", ""),
]


@pytest.mark.parametrize(("reading", "options", "place", "remedy"), WRONG)
def test_wrong_input_is_an_exception_with_place_and_remedy(
    reading: dict[str, object], options: dict[str, object], place: str, remedy: str
) -> None:
    with pytest.raises(uncork.InputError) as caught:
        uncork.Experiment(demo() / "records", **reading).analyze(**options)  # type: ignore[arg-type]
    assert place in str(caught.value)
    assert remedy in caught.value.remedy
    assert caught.value.problem


def test_records_that_are_not_there_are_named(tmp_path: Path) -> None:
    for records in (tmp_path / "none", [], tmp_path):
        with pytest.raises(uncork.InputError, match=r"none|PATH|" + tmp_path.name):
            uncork.Experiment(records).analyze()


@pytest.mark.parametrize("records", [None, 3, b"records", [None], ["records", 3]])
def test_records_that_are_no_paths_are_named(records: object) -> None:
    with pytest.raises(uncork.InputError) as caught:
        uncork.Experiment(records)  # type: ignore[arg-type]
    assert caught.value.place == f"records={records!r}"
    assert "Experiment('records')" in caught.value.remedy


@pytest.mark.parametrize("records", ["--help", "-x"])
def test_a_path_that_looks_like_an_option_is_a_path(records: str) -> None:
    with pytest.raises(uncork.InputError, match=f"^{records}: no such file"):
        uncork.Experiment(records).analyze()


def test_a_list_of_keys_is_not_a_single_text() -> None:
    with pytest.raises(uncork.InputError, match="not a list"):
        uncork.Experiment("records", where="country=PE").analyze()
