"""A share that changed at one time: clients that return have changed their arm then, and only then."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Any

from uncork.measure.schema import NANOS_PER_SECOND


@dataclass(frozen=True)
class Step:
    """The last change of the shares."""

    at_ns: int
    """The first full second since 1970 that has the new shares only, in nanoseconds."""
    shares: dict[str, tuple[float, float]]
    """By arm: before and after, where they differ."""


def last_step(rows: Iterable[Mapping[str, Any]]) -> Step | None:
    """The last change of the shares, if all arms have it at one time and several go on after it. `rows`: the
    first and last time by arm and share.
    """
    spans: dict[str, list[tuple[int, int, float]]] = {}
    for row in rows:
        spans.setdefault(row["arm"], []).append((int(row["first"]), int(row["last"]), float(row["share"])))
    changed = {arm: sorted(of)[-2:] for arm, of in spans.items() if len(of) > 1}
    if not changed:
        return None
    # In whole seconds, as times are written.
    at = -(-min(after[0] for _, after in changed.values()) // NANOS_PER_SECOND) * NANOS_PER_SECOND
    go_on = sum(max(last for _, last, _ in of) >= at for of in spans.values())
    if go_on < 2 or any(before[1] >= at for before, _ in changed.values()):
        return None
    return Step(at, {arm: (before[2], after[2]) for arm, (before, after) in changed.items()})
