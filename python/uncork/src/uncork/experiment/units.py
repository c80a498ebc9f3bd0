"""What could be assigned to an arm: the same past records by client network, by cookie, by PoP and hour.

Records have the bucket of the unit that was assigned. Those of other units are computed: of a client network
by the policy's hash, which needs the embedded engine; of a PoP's hour by its number.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from typing import Any

import ibis
import ibis.expr.types as ir
import pyarrow as pa

from uncork.experiment import design
from uncork.measure.assignment import Experiment, assign, client
from uncork.measure.keys import KEYS
from uncork.measure.reduce import ReducePlan, Run, in_scope, reduce_views
from uncork.measure.schema import Columns, canonical

MAX_PLACES = 100
# The name is part of the hash that forms buckets.
_ANY = Experiment(name="uncork-experiment", arms=("any",))


def candidates(
    records: ir.Table, plan: ReducePlan, place: str, run: Run, *, has_memory_tables: bool
) -> Mapping[str, tuple[design.Days, int]]:
    """Cubes by day and the number of units, for each unit that the records have."""
    full, known = canonical(records), set(records.columns)
    found: dict[str, tuple[design.Days, int]] = {}
    assigned = _assigned(in_scope(full, plan), known, run)
    if assigned is not None:
        found[assigned] = _by_day(records, plan, run)
    if assigned == design.COOKIE and has_memory_tables and "service_client" in known:
        networks = _networks(full, plan, run)
        found |= {design.CLIENT_NETWORK: _by_day(*networks, run)} if networks else {}
    if "service_start_unix_ns" in known:
        found[design.BLOCK] = _by_day(*_blocks(full, plan, place, run), run)
    return found


def _by_day(table: ir.Table, plan: ReducePlan, run: Run) -> tuple[design.Days, int]:
    has_time = "service_start_unix_ns" in table.columns
    views = reduce_views(table, plan, [(), ("day",)] if has_time else [()], run)
    days = views[("day",)] if has_time else views[()]
    units = sum(int(counts.sum()) for counts in views[()].units.values())
    return [cubes for _, cubes in sorted(days.cells.items())], units


def _assigned(full: ir.Table, known: set[str], run: Run) -> str | None:
    """What the recorded unit is: a client network, if each has exactly one unit."""
    if "arm_unit" not in known:
        return None
    if "service_client" not in known:
        return design.COOKIE
    named = full.filter(full["arm_unit"].notnull(), full["service_client"].notnull())
    pairs = named.select(unit="arm_unit", client="service_client").distinct()
    counts = pairs.aggregate(pairs=pairs.count(), units=pairs.unit.nunique(), clients=pairs.client.nunique())
    row = run(counts).to_pylist()[0]
    is_network = 0 < row["pairs"] == row["units"] == row["clients"]
    return design.CLIENT_NETWORK if is_network else design.COOKIE


def _networks(full: ir.Table, plan: ReducePlan, run: Run) -> tuple[ir.Table, ReducePlan] | None:
    """The records with a bucket of their client network; nothing if none is known."""
    some = in_scope(full, plan).filter(lambda t: t["service_client"].notnull())
    names = run(some.select("service_client").distinct())["service_client"].to_pylist()
    if not names:
        return None
    hashed = assign(_ANY, [client(name.partition("/")[0]) for name in names])
    buckets = pa.table(
        {"service_client": names, "network_bucket": hashed.bucket, "network_unit": range(len(names))}
    )
    joined = full.inner_join(ibis.memtable(buckets), "service_client")
    return joined, replace(plan, bucket="network_bucket", unit="network_unit")


def _blocks(full: ir.Table, plan: ReducePlan, place: str, run: Run) -> tuple[ir.Table, ReducePlan]:
    """The records with a bucket of their place and hour. Hours in a row, and places in one hour, differ in
    it.
    """
    where = Columns(full)[KEYS[place].needs[0]]
    some = in_scope(full.mutate(place=where), plan).select("place").distinct().limit(MAX_PLACES)
    places = sorted(name for name in run(some)["place"].to_pylist() if name is not None)
    code: Any = ibis.literal(0, "int64")
    if places:
        steps = [(where == name, ibis.literal(number, "int64")) for number, name in enumerate(places, 1)]
        code = ibis.cases(*steps, else_=code)
    hour = KEYS["block"].value(Columns(full))
    table = full.mutate(block_unit=hour * 1024 + code, block_bucket=(hour * 19 + code * 29) % 100)
    return table, replace(plan, bucket="block_bucket", unit="block_unit")
