"""Error pages and redirects are no fast downloads."""

import ibis

import flows
from uncork.experiment.measures import GUARDRAILS
from uncork.measure.reduce import ReducePlan, reduce

METRICS = ("completion", "throughput", "bandwidth", "first_byte", "failed")


def test_error_pages_and_redirects__have_no_speed_and_errors_are_a_share() -> None:
    statuses = [None, 200, 206, 302, 404, 460, 499, 502]
    table = flows.changed(
        flows.table(8),
        service_status=statuses,
        arm=["control"] * 8,
        arm_bucket=list(range(8)),
        size_bytes=[4_000_000, 5, 5, 5, 5, 5, 5, 4_000_000],
    )
    plan = ReducePlan(control="control", metrics=METRICS, per_unit=False)
    cubes = reduce(ibis.memtable(table), plan).cells[()]
    failed = cubes["failed"]
    assert failed.numerator[0, :8].tolist() == [0, 0, 0, 0, 1, 0, 0, 1]  # type: ignore[union-attr]
    assert failed.denominator[0, :8].tolist() == [0, 1, 1, 1, 1, 1, 1, 1]  # type: ignore[union-attr]
    counted = {
        name: cubes[name].counts[0, :8].sum(axis=1).tolist()  # type: ignore[union-attr]
        for name in METRICS[:-1]
    }
    assert counted == {
        "completion": [0, 1, 1, 0, 0, 1, 1, 0],
        "throughput": [1, 0, 0, 0, 0, 0, 0, 0],
        "bandwidth": [1, 0, 0, 0, 0, 0, 0, 0],
        "first_byte": [1, 1, 1, 0, 0, 1, 1, 0],
    }


def test_error_pages__are_a_guardrail_by_default() -> None:
    assert [limit.points for limit in GUARDRAILS if limit.measure.metric == "failed"] == [0.01]
