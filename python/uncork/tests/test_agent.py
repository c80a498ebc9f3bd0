"""bench/agent.py, small."""

import sys
from pathlib import Path

import numpy as np
import pytest

pytest.importorskip("gymnasium")
pytestmark = pytest.mark.module
sys.path.insert(0, str(Path(__file__).parents[1] / "bench"))
import agent  # noqa: E402

SMALL = agent.Training(iterations=2, population=4, elite=2, paths=1, steps=10)


def test_training__equal_seeds__finds_equal_weights() -> None:
    first, again = agent.train(SMALL), agent.train(SMALL)
    assert first.tolist() == again.tolist()
    other = agent.train(agent.Training(**{**vars(SMALL), "seed": 2}))
    assert first.tolist() != other.tolist()


def test_comparison__constant_rate__has_the_share_that_was_acknowledged() -> None:
    path = {"rate": "6mbit", "rtt": "40ms", "loss": "0%", "buffer": "1bdp"}
    share, rtt, loss = agent.of_agent(np.zeros(agent.VALUES + 1), path, [], 1)
    # Ten packets in 40 ms: 2.9 of 6 Mbit/s.
    assert share == pytest.approx(2.896 / 6, rel=0.03)
    assert rtt == pytest.approx(1.1, abs=0.1)
    assert loss == 0


def test_comparison__one_seed_and_path__has_each_controller(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(agent, "UNSEEN", {"in the range": agent.UNSEEN["in the range"]})
    monkeypatch.setattr(agent, "SECONDS", 2)
    found = agent.compare(np.zeros(agent.VALUES + 1), seeds=[1])
    assert len(found) == len(agent.RIVALS) * 3
    assert found["share"].between(0, 1).all()
    assert len(agent.table(found).splitlines()) == 2 + len(agent.RIVALS)
