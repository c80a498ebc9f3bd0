"""Records that lack the primary measure in one arm, and ratios in which each client counts once."""

from dataclasses import replace

import ibis
import numpy as np
import pyarrow as pa
import pytest

import flows
from uncork.experiment.health.balance import uneven_cells
from uncork.experiment.health.measured import check_measured
from uncork.experiment.result import Finding, Measure
from uncork.measure.cubes import RatioCube
from uncork.measure.reduce import ReducePlan, reduce, to_arrow

ARMS = ("control", "bbr")
PLAN = ReducePlan(control="control", arms=ARMS)
LARGE = pa.array(np.full(3000, 5_000_000))


def large(seed: int = 1) -> pa.Table:
    """Large downloads of others: throughput follows from the completion time."""
    table = flows.table(seed=seed).drop_columns("busy_ns")
    columns = {"engine": ["mine"] * 3000, "source": ["client"] * 3000, "size_bytes": LARGE}
    return flows.changed(table, **columns, bytes_delivered=LARGE, completion_ns=pa.array(range(1, 3001)))


def lost(table: pa.Table, share: float, *, both: bool = False) -> pa.Table:
    """A share of the completion times is not there, in the treated arm or in both."""
    is_lost = np.random.default_rng(2).random(3000) < share
    if not both:
        is_lost &= np.array(table["arm"].to_pylist()) == "bbr"
    return flows.changed(table, completion_ns=pa.array(range(1, 3001), mask=is_lost))


def checked(table: pa.Table, metric: str = "throughput") -> Finding:
    return check_measured(ibis.memtable(table), PLAN, Measure(metric, "p50"), ARMS, to_arrow)


def test_measured_records__completion_times_lost_in_one_arm__block() -> None:
    finding = checked(lost(large(), 0.3))
    assert finding.severity == "blocks"
    assert finding.sentence.startswith("Measured records differ between the arms: 0 % of the records")
    assert finding.numbers["treated"] == pytest.approx(0.3, abs=0.03)


@pytest.mark.parametrize("seed", [1, 2, 3])
def test_measured_records__lost_alike_in_both_arms__are_no_fault(seed: int) -> None:
    assert checked(lost(large(seed), 0.3, both=True)).severity == "ok"


def test_measured_records__small_objects_without_a_time_in_one_arm__block() -> None:
    small = pa.array(np.full(3000, 50_000))
    table = flows.changed(lost(large(), 0.3), size_bytes=small, bytes_delivered=small)
    assert checked(table, "completion").severity == "blocks"


def test_measured_records__broken_off_in_one_arm__are_left_to_the_guardrail() -> None:
    table = large()
    is_cut = (np.arange(3000) % 3 == 0) & (np.array(table["arm"].to_pylist()) == "bbr")
    table = flows.changed(table, bytes_delivered=pa.array(np.where(is_cut, 100_000, 5_000_000)))
    assert checked(table).severity == "ok"
    aborted = reduce(ibis.memtable(table), replace(PLAN, metrics=("aborted",))).cells[()]["aborted"]
    assert isinstance(aborted, RatioCube)
    broken = (is_cut | (np.array(table["service_broken_off"].to_pylist()) > 0)).sum()
    assert aborted.numerator.sum() == broken
    assert aborted.denominator.sum() == 3000


def test_aborted__records_of_others_with_sizes_alone__has_the_short_ones() -> None:
    table = large().drop_columns(["service_broken_off", "service_responses"])
    table = flows.changed(table, bytes_delivered=pa.array([10] * 30 + [5_000_000] * 2970))
    aborted = reduce(ibis.memtable(table), replace(PLAN, metrics=("aborted",))).cells[()]["aborted"]
    assert isinstance(aborted, RatioCube)
    assert (aborted.numerator.sum(), aborted.denominator.sum()) == (30, 3000)


def test_ratio__per_client__is_the_mean_of_the_clients_own_ratios() -> None:
    table = flows.table()
    plan = replace(PLAN, metrics=("retransmitted",), per_client=True)
    cube = reduce(ibis.memtable(table), plan).cells[()]["retransmitted"]
    assert isinstance(cube, RatioCube)
    sums: dict[tuple[str, int], np.ndarray] = {}
    for row in table.to_pylist():
        pair = np.array([row["bytes_retransmitted"], row["bytes_sent"]], dtype=float)
        sums.setdefault((row["arm"], row["arm_unit"]), np.zeros(2))
        sums[row["arm"], row["arm_unit"]] += pair
    for at, arm in enumerate(ARMS):
        ratios = [top / bottom for (of, _), (top, bottom) in sums.items() if of == arm]
        assert cube.numerator[at].sum() == pytest.approx(sum(ratios), rel=1e-7)
        assert cube.denominator[at].sum() == len(ratios)


def test_uneven_cells__one_arm_comes_twice_as_often__are_named() -> None:
    table = flows.table()
    more = table.filter(ibis.memtable(table).arm.to_pyarrow().to_numpy() == "bbr")
    reduced = reduce(
        ibis.memtable(pa.concat_tables([table, more])), replace(PLAN, metrics=("retransmitted",))
    )
    assert uneven_cells(reduced, 1) == [()]
    alike = reduce(ibis.memtable(table), replace(PLAN, metrics=("retransmitted",)))
    assert uneven_cells(alike, 1) == []
