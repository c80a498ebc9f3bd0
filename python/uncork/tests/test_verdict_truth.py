"""The headline against the truth: a small part of bench/verdicts.py."""

import sys
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parents[1] / "bench"))

import pytest
from verdicts import Judged, faults, judged

EXPERIMENTS = range(7_000, 7_016)


def test_headlines_of_drawn_experiments_are_not_wrong() -> None:
    wrong = [_line(one) for one in map(judged, EXPERIMENTS) if faults(one)]
    assert len(wrong) <= 1, "\n".join(wrong)


def _line(one: Judged) -> str:
    return f"{one.world.seed}: {', '.join(faults(one))}: {one.sentence}"


@pytest.mark.parametrize("seed", [5, 1456])
def test_a_region_with_heavy_clients_in_one_arm_alone_is_named(seed: int) -> None:
    """About 85 clients in each arm; the treated arm resends ten times as much."""
    one = judged(seed)
    name = one.must_name()
    assert name is not None
    assert name in one.sentence, one.sentence
