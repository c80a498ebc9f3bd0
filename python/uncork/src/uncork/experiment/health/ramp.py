"""A share that changed at one time: clients that return have changed their arm then, and only then."""

from __future__ import annotations

from dataclasses import dataclass

import ibis.expr.types as ir

from uncork.measure import rollups
from uncork.measure.reduce import Run
from uncork.measure.schema import NANOS_PER_SECOND


@dataclass(frozen=True)
class Step:
    """The last change of the shares."""

    at_ns: int
    """The first full second since 1970 that has the new shares only, in nanoseconds."""
    shares: dict[str, tuple[float, float]]
    """By arm: before and after, where they differ."""


def last_step(rows: ir.Table, unit: str, run: Run) -> Step | None:
    """The last change of the recorded shares, if all arms have it at one time and no unit is in several arms
    after it.
    """
    roll = rollups.has_rollups(rows)
    first, last = (
        rows[name] if roll else rows["service_start_unix_ns"] for name in (rollups.FIRST, rollups.LAST)
    )
    known = rows.mutate(first=first, last=last, share=rows["arm_propensity"].round(6))
    known = known.filter(known["arm"].notnull() & known["share"].notnull() & known["first"].notnull())
    query = known.group_by("arm", "share").aggregate(first=known["first"].min(), last=known["last"].max())
    spans: dict[str, list[tuple[int, int, float]]] = {}
    for row in run(query).to_pylist():
        spans.setdefault(row["arm"], []).append((int(row["first"]), int(row["last"]), float(row["share"])))
    changed = {arm: sorted(of)[-2:] for arm, of in spans.items() if len(of) > 1}
    if not changed:
        return None
    # In whole seconds, as times are written.
    at = -(-min(after[0] for _, after in changed.values()) // NANOS_PER_SECOND) * NANOS_PER_SECOND
    if any(before[1] >= at for before, _ in changed.values()):
        return None
    later = known.filter((known["first"] >= at) & known[unit].notnull())
    per_unit = later.group_by(unit, "arm_experiment").aggregate(arms=later["arm"].nunique())
    mixed = run(per_unit.aggregate(n=per_unit.count(where=per_unit["arms"] > 1))).to_pylist()
    if mixed[0]["n"]:
        return None
    return Step(at, {arm: (before[2], after[2]) for arm, (before, after) in changed.items()})
