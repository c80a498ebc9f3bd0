"""bench/internet.py, small: the loop in a simulated Internet, whose truth is known. It needs `uncork`."""

import subprocess
import sys
from datetime import timedelta
from pathlib import Path

import numpy as np
import pyarrow.parquet as pq
import pytest

from test_assignment import not_run
from test_design import uncork
from uncork_experiment.learn.cli import main

sys.path.insert(0, str(Path(__file__).parents[1] / "bench"))
import internet

SYSTEMS, NETWORKS = 8, 40


@pytest.fixture(scope="module")
def world() -> internet.World:
    program = uncork()
    if program is None:
        not_run("programs", "build it (cargo build --release), or set UNCORK to its path")
    done = subprocess.run([program, "lab", "internet", "--help"], capture_output=True, check=False)
    assert done.returncode == 0, "this `uncork` is too old: build it"
    return internet.World(
        program, seed=1, networks=NETWORKS, systems=SYSTEMS, connections=150_000, others="0%"
    )


@pytest.fixture(scope="module")
def oracle(world: internet.World, tmp_path_factory: pytest.TempPathFactory) -> internet.Oracle:
    return world.oracle(60, tmp_path_factory.mktemp("oracle") / "oracle.csv")


@pytest.fixture(scope="module")
def place(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tmp_path_factory.mktemp("internet")


@pytest.fixture(scope="module")
def looks(world: internet.World, oracle: internet.Oracle, place: Path) -> list[internet.Look]:
    """One day. All traffic may change at once, so that it suffices."""
    return internet.follow(world, oracle, 1, place, ["--changed", "100%"])


def test_the_truth_is_of_all_networks(oracle: internet.Oracle) -> None:
    for truth in oracle.truths.values():
        assert len(set(truth.network)) == NETWORKS
        assert len(set(truth.system)) == SYSTEMS
        assert truth.share.sum() == pytest.approx(1, abs=1e-6)
        assert truth.harmed(truth.lift > 0) == 0
    large = oracle.truths["large"]
    assert large.gain(large.lift > 0) == pytest.approx(1)
    assert large.gain(np.zeros(NETWORKS, dtype=np.bool_)) == 0
    assert 0 < large.gain(np.ones(NETWORKS, dtype=np.bool_)) < 1


def test_learning_gains_and_harms_less_than_other_rules(looks: list[internet.Look]) -> None:
    scores = looks[-1].scores
    assert scores["all CUBIC"].gain["large"] == 0
    learned, everybody = scores["without that limit"], scores["all BBR"]
    assert learned.gain["large"] > 0.3
    for of in ("large", "small"):
        assert learned.harmed[of] <= everybody.harmed[of]
    assert scores["sign by network"].harmed["small"] > learned.harmed["small"]


def test_the_table_decides_on_the_next_day(
    world: internet.World, looks: list[internet.Look], place: Path
) -> None:
    """Records outside of the random share come by the table, and versions can be computed again."""
    assert len(looks) == 1
    assert main(["verify", str(place / "learned")]) == 0
    policy, output = place / "without-that-limit/current/policy.toml", place / "next"
    some = internet.World(world.program, world.seed, NETWORKS, SYSTEMS, connections=2_000, others="100%")
    some.records(internet.START + timedelta(1), policy, output)
    table = pq.read_table(output, columns=["choice_rule", "choice_cc"]).to_pylist()
    by_rule = {(row["choice_rule"], row["choice_cc"]) for row in table}
    assert {cc for _, cc in by_rule} == {"cubic", "bbr3"}
    assert any(cc == "bbr3" and rule.startswith("learned") for rule, cc in by_rule), by_rule


@pytest.mark.usefixtures("looks")
def test_a_twin_of_it_is_a_scenario_that_runs(world: internet.World, place: Path) -> None:
    scenario, report = place / "twin.toml", place / "twin"
    lab = [world.program, "lab"]
    words = [*lab, "from-records", str(place / "records"), "--clients", "40", "-o", str(scenario)]
    subprocess.run(words, check=True, capture_output=True)
    subprocess.run([*lab, "run", str(scenario), "-q", "-o", str(report)], check=True, capture_output=True)
    learned, page, prior = place / "without-that-limit", place / "twin.html", place / "prior.json"
    flows = report / "flows.parquet"
    assert main(["calibrate", str(learned), str(flows), "-o", str(page), "--prior", str(prior)]) == 0
    assert "rank correlation" in page.read_text(encoding="utf-8")
