"""Whether the arms of a plan are those of the records: by name, and by the controllers that ran.

The policy gives clients the settings of an arm. They must be what the arm's records measured.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping

import ibis.expr.types as ir
import pyarrow as pa

from uncork.experiment.facts import NEARLY_ALL, known_controller
from uncork.learn.defaults import TRANSPORTS
from uncork.learn.evidence import scope
from uncork.learn.settings import Settings
from uncork.measure import rollups
from uncork.measure.errors import InputError
from uncork.measure.reduce import Run, in_scope
from uncork.measure.schema import Columns, canonical

Controllers = Mapping[str, Counter[str]]
"""Records of each arm, by controller; empty: unknown."""


def of_records(records: ir.Table, settings: Settings, run: Run) -> Controllers:
    """The arms of the experiment in the window."""
    some = in_scope(canonical(records), scope(settings))
    t = Columns(some)
    keyed = some.mutate(arm=t["arm"].cast("string"), cc=t["cc"]).filter(t["arm"].notnull())
    rows = run(keyed.group_by("arm", "cc").aggregate(n=rollups.count(keyed))).to_pylist()
    found: dict[str, Counter[str]] = {}
    for row in rows:
        found.setdefault(row["arm"], Counter())[known_controller(row["cc"])] += row["n"]
    return found


def of_evidence(evidence: pa.Table) -> Controllers:
    """The arms alone: evidence does not have the controllers."""
    return {arm: Counter() for arm in evidence["arm"].unique().to_pylist() if arm}


def check(found: Controllers, settings: Settings) -> None:
    """Refuses arms that no record has, and settings that an arm's records did not run."""
    for arm in (settings.control, *settings.candidates) if found else ():
        if arm not in found:
            there = ", ".join(sorted(found))
            problem = f"no record of the experiment {settings.experiment!r} has this arm"
            raise InputError(
                f"arm {arm}", problem, f"there are: {there}; name them with --control, --treated or --arm"
            )
        _check_controllers(arm, found[arm], settings)


def _check_controllers(arm: str, seen: Counter[str], settings: Settings) -> None:
    """Settings without a controller, such as a window alone, say nothing about it."""
    meant = {name.casefold() for key, name in settings.arms[arm].items() if key in TRANSPORTS}
    known = Counter({name: n for name, n in seen.items() if name})
    if not meant or not known:
        return
    others = sum(n for name, n in known.items() if name.casefold() not in meant)
    if others >= NEARLY_ALL * known.total():
        most = known.most_common(1)[0][0]
        problem = f"nearly all of its records ran {most}, and its settings are {', '.join(sorted(meant))}"
        option = "--control-settings" if arm == settings.control else "--treated-settings or --arm"
        raise InputError(f"arm {arm}", problem, f"name what ran with {option}, or find out why it fell back")
