"""What a record counts: less the older it is, and by inverse propensity where that has changed."""

from dataclasses import replace

import ibis
import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pytest

from learning import FIRST_DAY, SETTINGS
from uncork.learn import demo, evidence
from uncork.learn.evidence import COUNTED, Counts
from uncork.learn.lift import Estimate, factors, lifts
from uncork.measure.reduce import to_arrow

ONE_NETWORK = (demo.System(64501, "PE", 1, 0.3),)


def lift(records: pa.Table) -> Estimate:
    """Of the only network, by its large objects."""
    settings = replace(SETTINGS, as_of=FIRST_DAY + 2)
    counts = evidence.collect(ibis.memtable(records), settings, to_arrow)
    large = next(one for one in evidence.sections(counts, settings) if one.of_class == "large")
    found = lifts(large, settings)
    assert found is not None
    return found.raw[0]


def changed(records: pa.Table, name: str, values: object) -> pa.Table:
    return records.set_column(records.column_names.index(name), name, pa.array(values))


def test_a_propensity_that_changes_gives_the_same_lift() -> None:
    """On the second day all is four times as slow, and BBR has 80 % of the clients in place of 50 %."""
    records = demo.table(ONE_NETWORK, days=2, daily=20_000, spread=0.0)
    is_late = np.array(records["service_start_unix_ns"]) >= (FIRST_DAY + 1) * 86_400 * 10**9
    is_bbr = np.array(records["arm"]) == "bbr"
    slow = changed(records, "busy_ns", np.where(is_late, 4, 1) * np.array(records["busy_ns"]))
    # A quarter of the control arm: 0.2 of the clients against 0.8.
    is_left = is_bbr | ~is_late | (np.random.default_rng(1).random(len(is_bbr)) < 0.25)
    propensity = np.where(is_late, np.where(is_bbr, 0.8, 0.2), 0.5)
    steady = lift(slow)
    shifted = slow.filter(pa.array(is_left))
    weighted = lift(changed(slow, "arm_propensity", propensity).filter(pa.array(is_left)))
    assert steady.lift == pytest.approx(0.3, abs=3 * steady.error)
    assert weighted.lift == pytest.approx(steady.lift, abs=2 * weighted.error)
    assert abs(lift(shifted).lift - steady.lift) > 10 * weighted.error, "wrong without the propensity"
    assert pc.all(pc.equal(shifted["arm_propensity"], 0.5)).as_py()


def rows(**columns: list[int]) -> Counts:
    count = len(columns["day"])
    values = {name: np.zeros(count, dtype=np.int64) for name in (*COUNTED, "network", "arm")}
    return Counts(**values | {name: np.array(column) for name, column in columns.items()})


def test_a_record_counts_half_after_the_half_life() -> None:
    last = SETTINGS.as_of - 1
    counts = rows(day=[last, last - 14, last - 28], n=[1, 1, 1])
    assert factors(counts, counts.n, SETTINGS) == pytest.approx([1, 0.5, 0.25])
    settings = replace(SETTINGS, half_life=7)
    assert factors(counts, counts.n, settings) == pytest.approx([1, 0.25, 0.0625])


def test_a_record_counts_by_inverse_propensity_within_its_arm() -> None:
    """800 records at 0.8 weigh as much as 500 at 0.5, and the arm as a whole keeps its weight roughly."""
    last = SETTINGS.as_of - 1
    counts = rows(day=[last] * 4, arm=[0, 0, 1, 1], propensity=[500, 200, 500, 800], n=[500, 200, 500, 800])
    weight = counts.n * factors(counts, counts.n, SETTINGS)
    assert weight[0] == pytest.approx(weight[1])
    assert weight[2] == pytest.approx(weight[3])
    assert weight[2] + weight[3] == pytest.approx(1300, rel=0.1)


def of_clients(downloads: np.ndarray, lift: np.ndarray, level: np.ndarray) -> pa.Table:
    """Records of one day: of each client the downloads in the control arm and in the treated arm (shape
    (clients, 2)), and what the arm changes. Half of the clients are in either arm.
    """
    rng = np.random.default_rng(2)
    clients = len(lift)
    is_bbr, bucket = rng.random(clients) < 0.5, rng.integers(0, 100, clients)
    who = np.repeat(np.arange(clients), downloads[np.arange(clients), is_bbr.astype(int)])
    log_rate = level[who] + lift[who] * is_bbr[who] + rng.normal(0, 0.3, len(who))
    table = demo.table(ONE_NETWORK, days=1, daily=len(who))
    columns = {
        "arm": np.where(is_bbr, "bbr", "control")[who],
        "arm_unit": who.astype(np.uint64),
        "arm_bucket": bucket[who],
        "size_bytes": np.full(len(who), 5_000_000),
        "bytes_acked": np.full(len(who), 5_000_000),
        "busy_ns": (5_000_000 * 8e9 / np.exp(log_rate)).astype(np.int64),
    }
    for name, values in columns.items():
        table = changed(table, name, values)
    return table


def test_a_few_clients_with_most_downloads_do_not_decide_for_all() -> None:
    """5 % of the clients have 70 % of the downloads and gain 40 %. All others lose 10 %."""
    is_heavy = np.arange(6000) % 20 == 0
    downloads = np.where(is_heavy, 44, 1)[:, None].repeat(2, axis=1)
    found = lift(of_clients(downloads, np.where(is_heavy, 0.34, -0.1), np.full(6000, 16.6)))
    assert found.lift + 2 * found.error < 0
    assert found.lift == pytest.approx(-0.1, abs=0.05)


def test_clients_that_come_more_often_with_the_treated_arm_do_not_decide_for_all() -> None:
    """The arm is 10 % slower for all. Fast clients have more downloads with it, so they are faster."""
    is_fast = np.arange(6000) % 2 == 0
    downloads = np.stack([np.ones(6000, dtype=int), np.where(is_fast, 5, 1)], axis=1)
    level = np.where(is_fast, 17.2, 16.0)
    found = lift(of_clients(downloads, np.full(6000, -0.1), level))
    assert found.lift == pytest.approx(-0.1, abs=3 * found.error)
    assert found.error < 0.02
