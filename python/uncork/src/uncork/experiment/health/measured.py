"""Measured records: does one arm lack the primary measure more often than the other?

A log loses slow and cut transfers first. An arm that loses them looks faster than it is.
Each unit counts once, with the share of its records that lack the measure. Responses that were broken off are
not expected to have it: the guardrail `aborted` counts them.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Final

import ibis
import ibis.expr.types as ir
import numpy as np

from uncork.experiment import measures, words
from uncork.experiment.result import Finding, Measure
from uncork.measure import rollups
from uncork.measure.cubes import BUCKETS, WEIGHT
from uncork.measure.metrics import is_chunk, is_large, is_small, is_unfinished, rate
from uncork.measure.reduce import (
    PROPENSITY,
    ReducePlan,
    Run,
    in_scope,
    inverse_propensity,
    of_units,
    own_propensity,
)
from uncork.measure.schema import Columns
from uncork.measure.stats.rare import ShareDifference, share_difference

NAME: Final = "measured records"

LEVEL: Final = 0.999
"""This is a check of every analysis: one fair experiment in 1,000 fails it."""

SHOWN: Final = 0.001
"""Difference of the shares from which it is said."""

BLOCKS: Final = 0.01
"""Difference of the shares from which a quantile may move by more than is worth a change."""


@dataclass(frozen=True)
class _Expected:
    """Of a metric: which records must have it, and which do."""

    is_expected: Callable[[Columns], ir.Value]
    is_measured: Callable[[Columns], ir.Value]


def _has_rate(t: Columns) -> ir.Value:
    value = rate(t)
    return ((value > 0.0) & (value < 1e300)).fill_null(False)


EXPECTED: Final = {
    "throughput": _Expected(is_large, _has_rate),
    "bandwidth": _Expected(is_chunk, _has_rate),
    "completion": _Expected(is_small, lambda t: t["completion_ns"] >= 0),
}
"""Metrics that count as missing where a record lacks them."""


def check_measured(
    records: ir.Table, plan: ReducePlan, primary: Measure | None, arms: tuple[str, str], run: Run
) -> Finding:
    """`primary`: the measure that decides."""
    if primary is None or primary.metric not in EXPECTED:
        return Finding(NAME, "not run", "Records may lack the primary measure.")
    if rollups.has_rollups(records):
        return Finding(NAME, "not run", "Roll-ups do not carry single records.")
    lacking, units = _counted(records, plan, EXPECTED[primary.metric], arms, run)
    found = share_difference(lacking[0], units[0], lacking[1], units[1], level=LEVEL)
    if not isinstance(found, ShareDifference):
        return Finding(NAME, "not run", f"{found.reason[:1].upper()}{found.reason[1:]}.")
    return _judged(found, measures.title(primary.metric), arms)


def _judged(found: ShareDifference, title: str, arms: tuple[str, str]) -> Finding:
    numbers = {"control": found.control, "treated": found.treated, "low": found.low, "high": found.high}
    is_beyond = not found.low <= 0 <= found.high
    if not is_beyond or abs(found.difference) < SHOWN:
        return Finding(NAME, "ok", f"The arms lack {title} alike.", numbers=numbers)
    shares = " and ".join(
        f"{words.quantity(share, 'share')} of the records of {arm}"
        for share, arm in zip((found.control, found.treated), arms, strict=True)
    )
    return Finding(
        NAME,
        "blocks" if abs(found.difference) > BLOCKS else "warning",
        f"Measured records differ between the arms: {shares} have no {title}, by client.",
        "Slow or cut transfers that are not measured make the rest look faster. Log each transfer with its "
        "time, or as broken off.",
        numbers,
    )


def _counted(
    records: ir.Table, plan: ReducePlan, expected: _Expected, arms: tuple[str, str], run: Run
) -> tuple[np.ndarray, np.ndarray]:
    """Units with such records, and the sum of their shares that lack the metric, by arm and bucket."""
    scope = in_scope(records, plan)
    t = Columns(scope)
    has_units = plan.unit in scope.columns
    rows = scope.filter(expected.is_expected(t).fill_null(False) & ~is_unfinished(t))
    of = Columns(rows)
    parts = rows.select(
        arm=of[plan.arm].cast("string"),
        bucket=of[plan.bucket].cast("int64"),
        numerator=(~expected.is_measured(of)).fill_null(True).cast("int64"),
        denominator=ibis.literal(1, "int64"),
        **({"unit": rows[plan.unit]} if has_units else {}),
        **({PROPENSITY: own_propensity(of)} if plan.by_propensity else {}),
    )
    parts = parts.filter(parts["arm"].isin(arms), parts["bucket"] >= 0, parts["bucket"] < BUCKETS)
    by = ["arm", "bucket", *([PROPENSITY] if plan.by_propensity else [])]
    whole = WEIGHT if has_units else 1
    parts = of_units(parts, by) if has_units else parts
    query = parts.group_by(by).aggregate(units=parts.count(), lacks=parts["numerator"].sum())
    lacking, units = np.zeros((2, BUCKETS)), np.zeros((2, BUCKETS))
    counted = run(query)
    factors = inverse_propensity(counted, "units") if plan.by_propensity else np.ones(len(counted))
    for row, factor in zip(counted.to_pylist(), factors, strict=True):
        at = arms.index(row["arm"]), int(row["bucket"])
        units[at] += row["units"] * factor
        lacking[at] += row["lacks"] / whole * factor
    return lacking, units
