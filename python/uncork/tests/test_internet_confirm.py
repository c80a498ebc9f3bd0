"""bench/confirm.py, small: a switchback in a simulated Internet, day by day. It needs `uncork`."""

import sys
from collections.abc import Mapping
from pathlib import Path

import numpy as np
import pyarrow.parquet as pq
import pytest

from capability import not_run
from test_design import uncork
from uncork.learn.confirm import OPEN, Key, Trial, is_on_today
from uncork.learn.store import Store
from uncork.measure.keys import DAY_NS
from uncork.measure.schema import LARGE_BYTES

sys.path.insert(0, str(Path(__file__).parents[1] / "bench"))
import confirm
import internet

DAYS = 4
"""The first has no table, on the second trials wait, the others are a pair."""
RASH = ["--changed", "100%", "--harmed", "100%", "--sure", "60%", "--tolerate", "20%", "--holdback", "10%"]
"""Two days of so few records are no proof for anybody else."""


@pytest.fixture(scope="module")
def site(tmp_path_factory: pytest.TempPathFactory) -> confirm.Site:
    program = uncork()
    if program is None:
        not_run("programs", "build it (cargo build --release --features full), or set UNCORK to its path")
    home = tmp_path_factory.mktemp("confirm")
    world = internet.World(program, seed=28, networks=9, systems=3, connections=3_000, others="10%")
    oracle = world.oracle(40, home / "oracle.csv")
    internet.follow(world, oracle, DAYS, home, [*RASH, "--confirm", "50%"])
    return confirm.Site(world, home, Store(home / "learned"), DAYS)


@pytest.fixture(scope="module")
def trials(site: confirm.Site) -> Mapping[Key, Trial]:
    found = {key: one for key, one in site.store.trials(DAYS).items() if one.since == confirm.FIRST + 2}
    assert found, "nothing is tried, so this shows nothing"
    return found


def steered(records: Path, section: str, system: str, day: int) -> set[str]:
    """The controllers that the table gives objects of an AS on a day."""
    columns = ["service_start_unix_ns", "service_asn", "service_object_bytes", "cc", "arm_experiment"]
    return {
        row["cc"]
        for row in pq.read_table(records, columns=columns).to_pylist()
        if row["arm_experiment"] is None
        and row["service_asn"] == int(system[2:])
        and (row["service_object_bytes"] >= LARGE_BYTES) == (section == "large")
        and row["service_start_unix_ns"] // DAY_NS == day
    }


def test_the_coin_of_a_day_is_active_on_that_day(site: confirm.Site, trials: Mapping[Key, Trial]) -> None:
    for key, trial in trials.items():
        assert trial.verdict == OPEN
        days = trial.since, trial.since + 1
        coins = [is_on_today(trial, key, site.settings, day) for day in days]
        assert sorted(coins) == [False, True]
        found = [steered(site.directory / "records", *key, day) for day in days]
        assert ["bbr3" in controllers for controllers in found] == coins


def test_at_most_half_of_an_as_changes_without_a_verdict(site: confirm.Site) -> None:
    assert confirm.most_unconfirmed(site) <= 0.5


def test_trials_are_compared_with_the_truth(site: confirm.Site, trials: Mapping[Key, Trial]) -> None:
    """By other days, with all that is tried and with nothing."""
    oracle = internet.Oracle.load(site.directory / "oracle.csv")
    none = {name: np.zeros(len(truth.share), dtype=np.bool_) for name, truth in oracle.truths.items()}
    found = confirm.verdicts(site, oracle, none, fresh=2)
    assert {one.key for one in found} >= set(trials)
    assert max(one.truth for one in found) > 0.05, "somebody gains"
    assert all(one.is_right is None for one in found)
    day = (confirm.FRESH - confirm.EPOCH).days
    for section, system in trials:
        assert steered(site.directory / "records-none", section, system, day) == {"cubic"}
        assert "bbr3" in steered(site.directory / f"records-{section}", section, system, day)
