"""Experiments on simulated users: designs with known effects, and docs/evidence/interference.md."""

import json
import re
import shlex
import xml.etree.ElementTree as ElementTree
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from numpy.typing import NDArray

from capability import not_run
from test_design import uncork
from uncork.experiment.cli import main
from uncork.experiment.laboratory import worlds
from uncork.experiment.laboratory.designs import RUNS, SHARES, Runs, repetition
from uncork.experiment.laboratory.proof import Plan, Proof, prove, share_with_interval
from uncork.experiment.laboratory.worlds import (
    CELLS,
    CONTESTED,
    USERS,
    Cell,
    Laboratory,
    treated_users,
)
from uncork.experiment.report import laboratory
from uncork.measure.errors import InputError
from uncork.measure.stats.effect import Effect, Outcome

DOCUMENT = Path(__file__).parents[3] / "docs/evidence/interference.md"
Floats = NDArray[np.float64]


def users(share: float, runs: int, rng: np.random.Generator, *, shared: bool) -> Floats:
    """Treated users take twice what others take of a link that they share; on lines of their own they have
    1.5 times as much."""
    is_treated = np.arange(USERS) < treated_users(share)
    appetite = np.exp(rng.normal(0, 0.2, (runs, USERS)))
    if not shared:
        return np.asarray(appetite * np.where(is_treated, 1.5, 1.0))
    parts = appetite * np.where(is_treated, 2.0, 1.0)
    capacity = USERS * np.exp(rng.normal(0, 0.02, (runs, 1)))
    return np.asarray(capacity * parts / parts.sum(axis=1, keepdims=True))


def place(rng: np.random.Generator, *, shared: bool) -> Runs:
    return {(share, cell): users(share, RUNS, rng, shared=shared) for share in SHARES for cell in CELLS}


def ratio(outcome: Outcome) -> float:
    assert isinstance(outcome, Effect), outcome
    return outcome.ratio


def test_designs_on_a_shared_link() -> None:
    found = repetition(place(np.random.default_rng(1), shared=True), np.random.default_rng(2))
    assert ratio(found.ab) == pytest.approx(2.0, rel=0.1)
    assert ratio(found.ab_low) == pytest.approx(2.0, rel=0.2)
    assert ratio(found.ab_high) == pytest.approx(2.0, rel=0.2)
    assert ratio(found.switchback) == pytest.approx(1.0, abs=0.03)
    assert ratio(found.links) == pytest.approx(1.0, abs=0.03)
    # 19 of 20 with weight 2 leave the last control user 20 / 39; one of 20 leaves the others 20 / 21.
    assert ratio(found.spill_over) == pytest.approx(21 / 39, rel=0.15)


def test_designs_on_lines_of_their_own() -> None:
    found = repetition(place(np.random.default_rng(3), shared=False), np.random.default_rng(4))
    for outcome in (found.ab, found.ab_low, found.ab_high, found.switchback, found.links, found.across):
        assert ratio(outcome) == pytest.approx(1.5, rel=0.15), outcome
    assert ratio(found.spill_over) == pytest.approx(1.0, rel=0.15)


def stubbed(monkeypatch: pytest.MonkeyPatch) -> list[tuple[Cell, float, range]]:
    """Replaces the simulator by arithmetic; returns what will have been played, with the seeds."""
    played: list[tuple[Cell, float, range]] = []

    def play(_: Laboratory, cell: Cell, share: float, runs: int, first_seed: int) -> Floats:
        played.append((cell, share, range(first_seed, first_seed + runs)))
        return users(share, runs, np.random.default_rng(first_seed), shared=True)

    monkeypatch.setattr(Laboratory, "play", play)
    return played


def test_no_seed_is_used_twice_but_for_the_truth(monkeypatch: pytest.MonkeyPatch) -> None:
    played, plan = stubbed(monkeypatch), Plan(repetitions=3, seed=5)
    prove(Path("uncork"), CONTESTED, plan)
    seeds = [(cell, seed) for cell, _, run in played for seed in run]
    twice = {one for one in seeds if seeds.count(one) > 1}
    assert len(twice) == len(CELLS) * plan.truth
    assert len({seed for _, seed in seeds}) == len(set(seeds)), "two cells share a seed"
    assert len(seeds) == plan.runs


def test_equal_plans_give_equal_results(monkeypatch: pytest.MonkeyPatch) -> None:
    stubbed(monkeypatch)
    pages = [page_of(prove(Path("uncork"), CONTESTED, Plan(3, 5))) for _ in range(2)]
    assert pages[0] == pages[1]
    ElementTree.fromstring(pages[0].split("\n", 1)[1])


def page_of(proof: Proof) -> str:
    return laboratory.page((proof,), Plan(3, 5), "uncork experiment interference --lab")


def test_the_share_of_covering_intervals_has_an_exact_interval() -> None:
    share, low, high = share_with_interval(186, 200)
    assert share == 0.93
    # Clopper and Pearson, R: binom.test(186, 200)
    assert (low, high) == pytest.approx((0.8853, 0.9612), abs=1e-4)


def objects(path: Path, **changed: list[object]) -> Path:
    """Two objects of user 0 (treated) and one of each other user."""
    flow = [0, *range(USERS)]
    columns: dict[str, list[object]] = {
        "seed": [7] * len(flow),
        "flow": list(flow),
        "cc": ["bbr3" if user < 10 else "cubic" for user in flow],
        "start_ns": [0] * len(flow),
        "completion_ns": [10**9] * len(flow),
        "bytes_delivered": [1_000_000] * len(flow),
    }
    pq.write_table(pa.table(columns | changed), path)
    return path


def test_throughput_is_bytes_over_waiting(tmp_path: Path) -> None:
    took = [3 * 10**9, *[10**9] * USERS]
    found = worlds._throughput(objects(tmp_path / "a.parquet", completion_ns=took), 10, 1, 7)
    assert found.shape == (1, USERS)
    assert found[0, 0] == pytest.approx(8 * 2 / 4)
    assert found[0, 1:] == pytest.approx(8.0)


@pytest.mark.parametrize(
    ("changed", "problem"),
    [
        ({"completion_ns": [None, *[10**9] * USERS]}, "1 objects did not finish"),
        ({"cc": ["cubic"] * (USERS + 1)}, "do not have the controllers"),
        ({"flow": [0] * (USERS + 1), "cc": ["bbr3"] * (USERS + 1)}, "19 users asked for nothing"),
    ],
)
def test_runs_that_cannot_be_used_are_refused(
    changed: dict[str, list[object]], problem: str, tmp_path: Path
) -> None:
    with pytest.raises(InputError, match=problem):
        worlds._throughput(objects(tmp_path / "a.parquet", **changed), 10, 1, 7)


def test_errors_name_the_remedy(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setenv("UNCORK", str(tmp_path / "none"))
    assert main(["interference", "--lab", "-o", str(tmp_path)]) == 2
    assert "set UNCORK to its path" in capsys.readouterr().err
    assert main(["interference", "--lab", "--repetitions", "0", "-o", str(tmp_path)]) == 2
    assert "from 1 to" in capsys.readouterr().err
    assert main(["interference", "--repetitions", "5", "-o", str(tmp_path)]) == 2
    assert "add --lab" in capsys.readouterr().err


def test_the_laboratory_shows_what_the_document_says(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    if not DOCUMENT.exists():
        pytest.skip(f"*** NOT RUN: {DOCUMENT} is only in the repository ***")
    program = uncork()
    if program is None:
        not_run("programs", "build it (cargo build --release --features full), or set UNCORK to its path")
    assert program is not None
    monkeypatch.setenv("UNCORK", program)
    monkeypatch.chdir(tmp_path)
    blocks = re.findall(r"^```sh\n(.*?)^```", DOCUMENT.read_text(encoding="utf-8"), flags=re.M | re.S)
    lines = [line for block in blocks for line in block.strip().splitlines()]
    assert len(lines) == 1
    program_name, command, *arguments = shlex.split(lines[0])
    assert (program_name, command) == ("uncork", "experiment")
    assert main(arguments) == 0
    page = (tmp_path / "interference-lab/interference.html").read_text(encoding="utf-8")
    ElementTree.fromstring(page.split("\n", 1)[1])
    document = json.loads((tmp_path / "interference-lab/interference.json").read_text(encoding="utf-8"))
    contested, lossy = document["worlds"]
    naive = {one["design"]: one for one in contested["designs"]}["A/B test, 50 % treated"]
    # Far from the truth, on a link that is shared; near it, on lines of one's own.
    assert contested["true_total_effect"] < 1.1
    assert naive["mean_ratio"] > 1.15
    assert naive["covers_total_effect"] == 0
    naive = {one["design"]: one for one in lossy["designs"]}["A/B test, 50 % treated"]
    assert lossy["true_total_effect"] > 1.1
    assert naive["mean_ratio"] == pytest.approx(lossy["true_total_effect"], rel=0.06)
