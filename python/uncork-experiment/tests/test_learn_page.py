"""The report page of `uncork learn`."""

import re
import subprocess
from dataclasses import replace
from pathlib import Path
from xml.etree import ElementTree

import ibis
import pytest

from test_learn_run import FIRST_DAY, NOW, SETTINGS
from test_report import CHROMIUM, PROBE
from uncork_experiment.learn import demo, evidence
from uncork_experiment.learn.cli import main
from uncork_experiment.learn.store import Store
from uncork_experiment.reduce import to_arrow


@pytest.fixture(scope="module")
def page(tmp_path_factory: pytest.TempPathFactory) -> str:
    """Of two versions; the first may change a fifth of the traffic."""
    root = tmp_path_factory.mktemp("learned")
    table = ibis.memtable(demo.table(days=8))
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
    for words in ("Version 2", "expected lift over all traffic", "AS64522", "switched on", "2026-11-10"):
        assert words in page, words
    assert re.findall(r'<figure id="([^"]+)"', page) == ["gain", "share", "systems"]


@pytest.mark.parametrize("width", [1280, 400])
def test_nothing_leaves_the_page(page: str, width: int, tmp_path: Path) -> None:
    """On a screen and on a phone, in a real browser."""
    if CHROMIUM is None:
        pytest.skip("*** NOT RUN: there is no chromium ***")
    probed = re.sub(r"<meta http-equiv[^>]+>", "", page).replace("</body>", PROBE)
    (tmp_path / "page.html").write_text(probed, encoding="utf-8")
    flags = f"--no-sandbox --headless --disable-gpu --window-size={width},900 --dump-dom".split()
    command = [CHROMIUM, *flags, (tmp_path / "page.html").as_uri()]
    dom = subprocess.run(command, capture_output=True, text=True, timeout=120, check=True).stdout
    found = re.search(r"<title>(\d+) (\d+) (-?\d+)</title>", dom)
    assert found is not None, dom[:500]
    whole, window, table = (int(part) for part in found.groups())
    assert whole <= window
    assert table <= 0, "a table has to be scrolled sideways"


def test_one_version_alone_has_no_course(tmp_path: Path) -> None:
    settings = replace(SETTINGS, as_of=FIRST_DAY + 7)
    store = Store(tmp_path)
    table = ibis.memtable(demo.table(demo.SYSTEMS[:1], days=7, daily=60))
    store.plan(settings, evidence.read(table, settings, to_arrow), NOW)
    store.apply(1, NOW)
    assert main(["report", str(tmp_path), "-o", str(tmp_path / "page.html")]) == 0
    told = (tmp_path / "page.html").read_text(encoding="utf-8")
    assert re.findall(r'<figure id="([^"]+)"', told) == ["systems"]
