"""Faults in records: each one found and named. Engines count, plain functions judge."""

import ibis.expr.types as ir

from uncork.experiment.health.counts import count
from uncork.experiment.health.judge import empty_cells, judge
from uncork.experiment.health.lost import lost_lines, unread_fields
from uncork.experiment.result import Finding
from uncork.measure.reduce import ReducePlan, Run, to_arrow
from uncork.measure.sources.losses import Losses

__all__ = ["check", "count", "empty_cells", "judge"]


def check(
    records: ir.Table,
    plan: ReducePlan,
    run: Run = to_arrow,
    now_ns: int | None = None,
    unit_columns: tuple[str, ...] = (),
    losses: Losses | None = None,
) -> tuple[Finding, ...]:
    """All checks of the records that ``plan`` reads. ``now_ns`` (since 1970) serves to find later ones,
    ``unit_columns`` to name units. ``losses``: of logs that were imported.
    """
    found = judge(count(records, plan, run, unit_columns), now_ns)
    if losses is None:
        return found
    return (*found, lost_lines(losses, plan.arms or ()), *unread_fields(losses))
