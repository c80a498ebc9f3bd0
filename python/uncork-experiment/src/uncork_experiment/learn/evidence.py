"""Records to evidence: one query on the engine where the records are.

It returns counts by class of objects, place, client network, AS, country, propensity, day, arm and bucket.
Everything after it is arithmetic on this table.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from functools import reduce as fold

import ibis
import ibis.expr.types as ir
import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from numpy.typing import NDArray

from uncork_experiment.errors import InputError
from uncork_experiment.keys import DAY_NS, KEYS
from uncork_experiment.learn.networks import is_client
from uncork_experiment.learn.settings import CLASSES, PRIMARY, Settings
from uncork_experiment.metrics import LARGE_BYTES, METRICS, missing, size
from uncork_experiment.reduce import Queries, ReducePlan, Run, in_scope
from uncork_experiment.schema import Columns, canonical, unbound

TRAFFIC = "traffic"
KEY_COLUMNS = ("class", "place", "client", "asn", "country", "propensity", "day")
COLUMNS: Mapping[str, pa.DataType] = {
    "metric": pa.string(),
    "class": pa.string(),
    "place": pa.string(),
    "client": pa.string(),
    "asn": pa.int64(),
    "country": pa.string(),
    "propensity": pa.int64(),
    "day": pa.int64(),
    "arm": pa.string(),
    "bucket": pa.int64(),
    "bin": pa.int64(),
    "n": pa.int64(),
    "numerator": pa.int64(),
    "denominator": pa.int64(),
}
"""`bin, n` of distributions; `numerator, denominator` of ratios; of traffic `n` records and, in `numerator`,
bytes, of all arms and of records without one."""


def query(records: ir.Table, settings: Settings) -> ir.Table:
    """The evidence as one expression."""
    columns = frozenset(records.columns)
    needed = ("service_client", "service_start_unix_ns", "arm", "arm_bucket")
    for name in needed:
        if name not in columns:
            raise InputError(
                "records", f"they have no column {name!r}", "use records of `uncork serve`, or import them"
            )
    table = _keyed(records, settings)
    until = settings.as_of * DAY_NS
    plan = ReducePlan(
        control=settings.control,
        arms=(settings.control, settings.treated),
        experiment=settings.experiment,
        by=tuple(f"learn_{name}" for name in KEY_COLUMNS),
        metrics=(),
        window=(until - settings.window * DAY_NS, until),
    )
    ratios = [limit.measure.metric for limit in settings.limits()]
    names = [measure.metric for measure in PRIMARY.values()] + list(dict.fromkeys(ratios))
    known = [name for name in names if not missing(METRICS[name], columns)]
    if not any(measure.metric in known for measure in PRIMARY.values()):
        raise InputError("records", "they have neither throughput nor completion time", "see docs/results.md")
    queries = Queries.of(table, plan)
    parts = [_shaped(queries.metric(METRICS[name]), name) for name in known]
    return fold(lambda one, other: one.union(other), [*parts, _traffic(table, plan)])


def read(records: ir.Table, settings: Settings, run: Run) -> pa.Table:
    """The evidence in one order, whatever the engine: the same records give the same bytes."""
    found = run(query(records, settings))
    table = pa.table({name: found[name].cast(kind) for name, kind in COLUMNS.items()})
    return table.sort_by([(name, "ascending") for name in COLUMNS]).combine_chunks()


def last_day(records: ir.Table, run: Run) -> int:
    """The day since 1970 of the latest record."""
    days = canonical(records).select(day=KEYS["day"].value(Columns(records)))
    latest = run(days.aggregate(day=days["day"].max())).to_pylist()[0]["day"]
    if latest is None:
        raise InputError("records", "they have no time (service_start_unix_ns)", "see docs/results.md")
    return int(latest)


def sql(settings: Settings, dialect: str) -> str:
    """The query in a dialect, over a table `records` with all canonical columns."""
    return f"{ibis.to_sql(query(unbound(), settings), dialect=dialect)};\n"


def _keyed(records: ir.Table, settings: Settings) -> ir.Table:
    """The records with the keys of the evidence as columns."""
    full = canonical(records)
    t = Columns(full)
    of = size(t)
    large, small = CLASSES
    place = f"service_{settings.place}" if settings.place else None
    return full.mutate(
        learn_class=ibis.cases(
            (of >= LARGE_BYTES, large), (of.notnull(), small), else_=ibis.null().cast("string")
        ),
        learn_place=full[place].cast("string") if place else ibis.literal(""),
        learn_client=t["service_client"],
        learn_asn=t["service_asn"],
        learn_country=t["service_country"],
        learn_propensity=KEYS["propensity"].value(t),
        learn_day=KEYS["day"].value(t),
    )


def _shaped(table: ir.Table, metric: str) -> ir.Table:
    """Counts of a metric in the columns of the evidence."""
    null = ibis.null().cast("int64")
    has = frozenset(table.columns)
    return table.select(
        metric=ibis.literal(metric),
        **{name: table[f"learn_{name}"] for name in KEY_COLUMNS},
        **{name: table[name] if name in has else null for name in ("arm", "bucket", "bin", "n")},
        **{name: table[name] if name in has else null for name in ("numerator", "denominator")},
    )


def _traffic(table: ir.Table, plan: ReducePlan) -> ir.Table:
    """Records and bytes of all traffic, by the arm that it had."""
    some = in_scope(table, replace(plan, experiment=None))
    t = Columns(some)
    null = ibis.null().cast("int64")
    keys = [f"learn_{name}" for name in KEY_COLUMNS]
    rows = some.select(*keys, arm=t["arm"], bytes=ibis.coalesce(t["bytes_acked"], t["bytes_delivered"]))
    sums = rows.group_by([*keys, "arm"]).aggregate(n=rows.count(), bytes=rows["bytes"].sum().fill_null(0))
    return sums.select(
        metric=ibis.literal(TRAFFIC),
        **{name: sums[f"learn_{name}"] for name in KEY_COLUMNS},
        arm=sums["arm"],
        bucket=null,
        bin=null,
        n=sums["n"],
        numerator=sums["bytes"].cast("int64"),
        denominator=null,
    )


Ints = NDArray[np.int64]
Network = str


@dataclass(frozen=True)
class Section:
    """The evidence of one class of objects at one place."""

    name: str
    """`large`, or `PLACE/large`."""
    of_class: str
    place: str
    networks: tuple[Network, ...]
    """All client networks that had traffic, in order."""
    system: tuple[str, ...]
    """Of each network, the AS with most of its bytes, as `AS64500`; empty: unknown."""
    country: tuple[str, ...]
    bytes: Ints
    """Of each network in the window."""
    arms: Mapping[Network, tuple[int, int]]
    """Records of the control arm and of the treated arm, of networks that had any."""
    metrics: Mapping[str, Counts]


@dataclass(frozen=True)
class Counts:
    """Rows of one metric: the network's index, 0 or 1 for the arm, and the counts."""

    network: Ints
    day: Ints
    propensity: Ints
    arm: Ints
    bucket: Ints
    bin: Ints
    n: Ints
    numerator: Ints
    denominator: Ints

    def where(self, rows: NDArray[np.bool_] | Ints) -> Counts:
        """Some of the rows."""
        return Counts(*(getattr(self, name)[rows] for name in self.__dataclass_fields__))


def sections(evidence: pa.Table, settings: Settings) -> list[Section]:
    """The evidence by place and class, in order; without traffic between sites."""
    evidence = evidence.filter(pc.and_(pc.is_valid(evidence["client"]), pc.is_valid(evidence["class"])))
    names = evidence["client"].unique().to_pylist()
    keep = pa.array([name for name in names if is_client(name, settings.sites)], pa.string())
    evidence = evidence.filter(pc.is_in(evidence["client"], value_set=keep))
    places = sorted({place or "" for place in evidence["place"].unique().to_pylist()})
    found = []
    for place in places:
        for of_class in CLASSES:
            rows = evidence.filter(
                pc.and_(
                    pc.equal(pc.fill_null(evidence["place"], ""), place),
                    pc.equal(evidence["class"], of_class),
                )
            )
            if rows.num_rows:
                found.append(_section(rows, of_class, place, settings))
    return found


def _section(rows: pa.Table, of_class: str, place: str, settings: Settings) -> Section:
    traffic = rows.filter(pc.equal(rows["metric"], TRAFFIC))
    networks = tuple(sorted(traffic["client"].unique().to_pylist()))
    values = pa.array(networks, pa.string())
    index = _ints(pc.index_in(traffic["client"], value_set=values))
    amount = _ints(traffic["numerator"])
    total = np.zeros(len(networks), dtype=np.int64)
    np.add.at(total, index, amount)
    systems = _most(index, traffic["asn"].to_pylist(), amount, len(networks), lambda asn: f"AS{asn}")
    countries = _most(index, traffic["country"].to_pylist(), amount, len(networks), str)
    order = pa.array([settings.control, settings.treated])
    metrics = {}
    for name in sorted(set(rows["metric"].unique().to_pylist()) - {TRAFFIC}):
        of = rows.filter(pc.equal(rows["metric"], name))
        of = of.filter(
            pc.and_(pc.is_in(of["arm"], value_set=order), pc.is_in(of["client"], value_set=values))
        )
        columns = {
            column: _ints(of[column])
            for column in ("day", "propensity", "bucket", "bin", "n", "numerator", "denominator")
        }
        metrics[name] = Counts(
            network=_ints(pc.index_in(of["client"], value_set=values)),
            arm=_ints(pc.index_in(of["arm"], value_set=order)),
            **columns,
        )
    return Section(
        name=f"{place}/{of_class}" if place else of_class,
        of_class=of_class,
        place=place,
        networks=networks,
        system=systems,
        country=countries,
        bytes=total,
        arms=_arms(networks, metrics.get(PRIMARY[of_class].metric)),
        metrics=metrics,
    )


def _arms(networks: tuple[Network, ...], counts: Counts | None) -> dict[Network, tuple[int, int]]:
    if counts is None:
        return {}
    rows = np.zeros((len(networks), 2), dtype=np.int64)
    np.add.at(rows, (counts.network, counts.arm), counts.n)
    return {networks[at]: (int(rows[at, 0]), int(rows[at, 1])) for at in np.flatnonzero(rows.sum(axis=1))}


def _most(
    index: Ints, values: list[object], amount: Ints, count: int, text: Callable[[object], str]
) -> tuple[str, ...]:
    """Of each network the value with most bytes; of equals the first in order."""
    sums: dict[tuple[int, str], int] = {}
    for at, value, n in zip(index.tolist(), values, amount.tolist(), strict=True):
        if value is not None:
            key = at, text(value)
            sums[key] = sums.get(key, 0) + n
    best: list[tuple[int, str]] = [(-1, "")] * count
    for (at, name), n in sorted(sums.items()):
        if n > best[at][0]:
            best[at] = n, name
    return tuple(name for _, name in best)


def _ints(column: pa.ChunkedArray | pa.Array) -> Ints:
    """The column's integers; a null is 0."""
    filled = pc.fill_null(column.cast(pa.int64()), 0)
    return np.asarray(filled, dtype=np.int64)
