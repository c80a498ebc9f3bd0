"""bench/learned_cc.py: the protocol as scenarios."""

import sys
from pathlib import Path

import pandas
import pytest

import uncork

pytestmark = pytest.mark.module
sys.path.insert(0, str(Path(__file__).parents[1] / "bench"))
import learned_cc  # noqa: E402


def test_protocol__files_of_docs__are_those_of_the_script() -> None:
    for name, text in learned_cc.written().items():
        assert (learned_cc.FOLDER / name).read_text("utf-8") == text


def test_protocol__draws__are_those_of_the_seed() -> None:
    rates, rtts, other_rates, losses = learned_cc.drawn_changes(1)
    assert [len(steps) for steps in (rates, rtts, other_rates, losses)] == [30] * 4
    # Python's random.seed(1): the first draw of 1 to 100 is 18 in both experiments.
    assert rates[0] == ["0s", "18mbit"] == other_rates[0]
    assert {at for at, _ in rtts} == {f"{10 * nth}s" for nth in range(30)}


@pytest.mark.parametrize("name", sorted(learned_cc.ALL))
def test_protocol__first_cell_of_each__runs(name: str) -> None:
    scenario = learned_cc.ALL[name]()
    for key, values in scenario["matrix"].items():
        scenario["matrix"][key] = values if key.endswith("cc") else values[:1]
    cells = pandas.DataFrame.from_arrow(uncork.run(scenario, set={"run.seeds": 1}, progress=False))
    assert set(cells["cc"]) <= {"cubic", "bbr3"}
    assert (cells[cells.metric == "goodput_sum"]["value"] > 0).all()
