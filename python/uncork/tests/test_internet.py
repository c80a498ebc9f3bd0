"""bench/internet.py, small: the loop in a simulated Internet with a known truth. It needs `uncork`."""

import subprocess
import sys
from dataclasses import replace
from datetime import timedelta
from pathlib import Path

import numpy as np
import pyarrow.parquet as pq
import pytest

from capability import not_run
from test_design import uncork
from uncork.learn import twin
from uncork.learn.cli import main

sys.path.insert(0, str(Path(__file__).parents[1] / "bench"))
import internet

SYSTEMS, NETWORKS = 8, 40


@pytest.fixture(scope="module")
def world() -> internet.World:
    program = uncork()
    if program is None:
        not_run("programs", "build it (cargo build --release --features full), or set UNCORK to its path")
    done = subprocess.run([program, "lab", "internet", "--help"], capture_output=True, check=False)
    assert done.returncode == 0, "this `uncork` is too old: build it"
    return internet.World(
        program, seed=1, networks=NETWORKS, systems=SYSTEMS, connections=20_000, others="0%"
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
        of_oracle = truth.score(truth.oracle())
        assert (of_oracle.harmed, of_oracle.surely, of_oracle.over) == (0, 0, 0)
    large = oracle.truths["large"]
    assert large.score(large.oracle()).gain == pytest.approx(1)
    none, all_clients = (large.score(np.full(NETWORKS, is_on)) for is_on in (False, True))
    assert none == internet.Score(0, 0, 0, 0)
    assert all_clients.gain > 0
    assert all_clients.over > 0


def test_other_rules_are_scored_by_the_truth(looks: list[internet.Look]) -> None:
    """A day of so few records shows who gains by BBR; for the table it is too little."""
    scores = looks[-1].scores
    assert scores["all CUBIC"]["large"].gain == 0
    assert scores["sign by network"]["large"].gain > 0.3
    assert scores["all BBR"]["small"].harmed > scores["sign by network"]["small"].harmed > 0
    assert [one.harmed for one in scores["learned"].values()] == [0, 0]
    assert scores["learned"]["large"].gain == 0


@pytest.mark.usefixtures("looks")
def test_the_table_decides_on_the_next_day(world: internet.World, place: Path) -> None:
    """Of an AS that is pinned, clients outside of the random share get BBR; all others get CUBIC."""
    store = place / "learned"
    assert main(["verify", str(store)]) == 0
    assert main(["pin", str(store), "AS64512", "bbr"]) == 0
    assert main(["plan", str(place / "records"), "-o", str(store), "--until", "2026-11-03"]) == 0
    assert main(["apply", str(store)]) == 0
    next_day = replace(world, connections=2_000, others="100%")
    next_day.records(internet.START + timedelta(1), store / "current/policy.toml", place / "next")
    columns = ["service_asn", "arm_experiment", "choice_cc"]
    rows = pq.read_table(place / "next", columns=columns).to_pylist()
    by_table = {(row["service_asn"] == 64512, row["choice_cc"]) for row in rows if not row["arm_experiment"]}
    assert by_table == {(True, "bbr3"), (False, "cubic")}
    assert {row["choice_cc"] for row in rows if row["arm_experiment"] == "explore"} == {"cubic", "bbr3"}


@pytest.mark.usefixtures("looks")
def test_a_twin_of_it_is_a_scenario_that_runs(world: internet.World, place: Path) -> None:
    scenario, report = place / "twin.toml", place / "twin"
    lab = [world.program, "lab"]
    words = [*lab, "from-records", str(place / "records"), "--clients", "40", "-o", str(scenario)]
    subprocess.run(words, check=True, capture_output=True)
    subprocess.run([*lab, "run", str(scenario), "-q", "-o", str(report)], check=True, capture_output=True)
    found = twin.predicted(pq.read_table(report / "flows.parquet"), "cubic", "bbr3")
    assert len(found) > SYSTEMS // 2
    assert all(abs(one.lift) < 3 for one in found.values())
