"""The published stories through `analyze`, small: bench/stories.py says what the laboratory's flows say."""

import sys
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow.parquet as pq
import pytest

from capability import not_run
from test_design import uncork

sys.path.insert(0, str(Path(__file__).parents[1] / "bench"))

import published
import stories
from stories import Comparison

COUNT = 60
"""Flows of each region: 30 paths, with CUBIC and with BBR."""


@pytest.fixture(scope="module")
def analysed(
    tmp_path_factory: pytest.TempPathFactory,
) -> tuple[Path, dict[str, Any], dict[str, Comparison]]:
    """Flows of one seed of spotify-streaming, their analysis, and its rows next to the published figures."""
    program = uncork()
    if program is None:
        not_run("programs", "build it (cargo build --release --features full), or set UNCORK to its path")
    out = tmp_path_factory.mktemp("stories")
    counts = [word for name in published.REGIONS for word in ("--set", f"flow.{name}.count={COUNT}")]
    story = published.STORIES[0]
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("UNCORK", str(program))
        flows = stories.run(replace(story, lab=(*story.lab, *counts)), out, 1)
    look = story.looks[0]
    result = stories.analyse(flows / "flows.parquet", look, out / "analysis")
    rows = {figure.what: stories.compare(figure, result) for figure in look.figures}
    return flows / "flows.parquet", result, rows


def test_the_analysis_has_the_median_bandwidth_of_the_flows(
    analysed: tuple[Path, dict[str, Any], Any],
) -> None:
    table = pq.read_table(analysed[0])
    assert analysed[1]["facts"]["units"] == [4 * COUNT // 2] * 2
    row = next(row for row in analysed[1]["scorecard"] if row["measure"] == "bandwidth:p50")
    rates = np.array(table["bytes_acked"]) * 8e9 / np.array(table["busy_ns"])
    for arm, cc in (("control", "cubic"), ("treated", "bbr1")):
        own = np.sort(rates[np.array(table["cc"]) == cc])
        # The median lies between the two middle values, and a bin is 2 % wide.
        middle = own[len(own) // 2 - 1 : len(own) // 2 + 1]
        assert 0.98 * middle[0] <= row[arm] <= 1.02 * middle[1]


def test_every_published_figure_has_its_row(
    analysed: tuple[Path, Any, dict[str, Comparison]],
) -> None:
    rows = analysed[2]
    assert all(one.here != "not measured" for one in rows.values())
    assert rows["playback latency p50, all"].agrees in ("agrees", "open")
    # Hardly a song stutters on these links: a ratio of nothing has no interval, and agrees with nothing.
    assert rows["stutters, all"].agrees == ""
    assert "are needed" in rows["stutters, all"].here


def test_agreement_needs_more_than_chance() -> None:
    figure = published.Figure("", "+5 to +7 %", "bandwidth:p50", None, (1.05, 1.07))
    found = [stories.agrees(figure, *it) for it in ((1.05, 1.06, 1.07), (0.9, 1.06, 1.2), (1.1, 1.2, 1.3))]
    assert found == ["agrees", "open", "differs"]
    assert stories.agrees(replace(figure, range=(0.98, 1.02)), 0.99, 1.0, 1.01) == "agrees"
