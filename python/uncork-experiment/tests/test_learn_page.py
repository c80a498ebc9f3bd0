"""The report page of `uncork learn`."""

import json
import re
from dataclasses import replace
from pathlib import Path
from xml.etree import ElementTree

import ibis
import pytest

from learning import FIRST_DAY, NOW, SETTINGS
from pages import WIDTHS, assert_fits
from test_learn_gain import steered
from uncork_experiment.learn import demo, evidence
from uncork_experiment.learn.cli import main
from uncork_experiment.learn.store import Store
from uncork_experiment.reduce import to_arrow


@pytest.fixture(scope="module")
def page(tmp_path_factory: pytest.TempPathFactory) -> str:
    """Of two versions; the first may change a fifth of the traffic."""
    root = tmp_path_factory.mktemp("learned")
    table = ibis.memtable(steered(demo.table(days=8), part=0.2))
    for days in (7, 8):
        settings = replace(SETTINGS, as_of=FIRST_DAY + days, changed=0.2)
        store = Store(root)
        number, _ = store.plan(settings, evidence.read(table, settings, to_arrow), NOW)
        store.apply(number, NOW)
    assert main(["report", str(root), "-o", str(root / "page.html")]) == 0
    return (root / "page.html").read_text(encoding="utf-8")


def test_the_page_is_whole_and_needs_nothing_else(page: str) -> None:
    ElementTree.fromstring(page.split("\n", 1)[1])
    assert "<script" not in page
    assert not re.search(r"\b(nan|inf|None)\b", re.sub(r"<style>.*?</style>", "", page, flags=re.S))
    for words in (
        "Version 2",
        "expected lift over all traffic",
        "AS64522",
        "switched on",
        "2026-11-10",
        "against the holdback, in 7 days",
    ):
        assert words in page, words
    assert re.findall(r'<figure id="([^"]+)"', page) == [
        "gain",
        "share",
        "measured-1",
        "measured-2",
        "systems",
    ]


@pytest.mark.parametrize("width", WIDTHS)
def test_nothing_leaves_the_page(page: str, width: int, tmp_path: Path) -> None:
    assert_fits(page, width, tmp_path)


def test_one_version_alone_has_no_course(tmp_path: Path) -> None:
    settings = replace(SETTINGS, as_of=FIRST_DAY + 7)
    store = Store(tmp_path)
    table = ibis.memtable(demo.table(demo.SYSTEMS[:1], days=7, daily=60))
    store.plan(settings, evidence.read(table, settings, to_arrow), NOW)
    store.apply(1, NOW)
    assert main(["report", str(tmp_path), "-o", str(tmp_path / "page.html")]) == 0
    told = (tmp_path / "page.html").read_text(encoding="utf-8")
    assert re.findall(r'<figure id="([^"]+)"', told) == ["systems"]


def test_the_example_of_the_docs_is_recomputed(capsys: pytest.CaptureFixture[str]) -> None:
    """A run with real servers (bench/thirty.py): from its evidence, bit by bit, and what it found."""
    example = Path(__file__).parents[3] / "docs/example/learn"
    if not example.exists():
        pytest.skip(f"*** NOT RUN: {example} is only in the repository ***")
    assert main(["verify", str(example / "learned")]) == 0
    assert capsys.readouterr().out == "version 1: the same bytes\nversion 2: the same bytes\n"
    found = json.loads((example / "result.json").read_text(encoding="utf-8"))["networks"]
    on = Store(example / "learned").decisions(2).networks
    arms = dict(zip(on.key.tolist(), on.arm.tolist(), strict=True))
    right = {one["network"]: {"bbr": "bbr", "cubic": "control"}[one["right"]] for one in found}
    assert len(right) == 30
    assert sum(arms[name] == arm for name, arm in right.items()) >= 28
