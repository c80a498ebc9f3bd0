"""Records to evidence: one query on the engine where the records are.

It returns counts by class of objects, place, client network, AS, country, propensity, day, arm and bucket.
Everything after it is arithmetic on this table.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import reduce as fold

import ibis
import ibis.expr.types as ir
import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from numpy.typing import NDArray

from uncork.experiment import measures
from uncork.learn.confirm import Blocks, Key
from uncork.learn.decisions import Texts
from uncork.learn.defaults import CLASSES, GUARDRAILS
from uncork.learn.networks import are_clients
from uncork.learn.regions import names_of
from uncork.learn.settings import HOLDBACK, PRIMARY, TABLE_RULE, UNIT_RULE, Settings
from uncork.measure import rollups
from uncork.measure.bins import middle
from uncork.measure.cubes import BUCKETS, WEIGHT
from uncork.measure.errors import InputError
from uncork.measure.keys import DAY_NS, KEYS
from uncork.measure.metrics import METRICS, Expression, Metric, missing, size
from uncork.measure.reduce import Queries, ReducePlan, Run, bin_value, in_scope
from uncork.measure.schema import LARGE_BYTES, Columns, canonical

TRAFFIC, STEERED, OF_HOLDBACK, UNITS, SEVERAL = "traffic", "steered", "held", "units", "several"
HOST = re.compile(r"[0-9A-Za-z._-]+|\[[0-9A-Fa-f:.]+\]")
"""A name of a host or an address, as policies write them."""
CODE = re.compile(r"[A-Z]{2}")
"""Of a country (ISO 3166)."""
KEY_COLUMNS = ("class", "place", "client", "asn", "country", "propensity", "day")
TEXT = pa.dictionary(pa.int32(), pa.string())
COLUMNS: Mapping[str, pa.DataType] = {
    "metric": TEXT,
    "class": TEXT,
    "place": TEXT,
    "client": TEXT,
    "asn": pa.int64(),
    "country": TEXT,
    "propensity": pa.int32(),
    "day": pa.int32(),
    "arm": TEXT,
    "bucket": pa.int32(),
    "bin": pa.int32(),
    "n": pa.int64(),
    "numerator": pa.int64(),
    "denominator": pa.int64(),
}
"""Of distributions `bin, n`, and in `numerator` the weight of these records: each client counts once a day in
its network (`WEIGHT`), however many downloads it has. `numerator, denominator` of ratios; of traffic `n`
records and, in `numerator`, bytes, of all arms and days and of records without arm.
`steered` are the primary measure's `bin, n` of all clients that the table decided for, by the arm that their
controller is of: of ASes that a switchback is to confirm. `held` are the primary measure's `bin, n` of all
clients with the unit that the table decided for, as the treated arm, and of the holdback, as the control arm,
with buckets.
`units` are, in `n`, the distinct units of each client network, day, arm and bucket; in `numerator` their
records. `several` are, by day, all units (`denominator`) and those with several arms by one policy (`n`).
A ratio has further rows in which each client counts once a day (`PER_CLIENT`).
"""
PER_CLIENT = " per client"
"""What the metric of such rows ends with."""

PROXIES = {"early_resent": "start_resent"}
"""What stands for a metric in roll-ups, and in records that lack it, as those of HTTP/2 by `uncork serve`."""


def query(records: ir.Table, settings: Settings, on_trial: Sequence[str] = ()) -> ir.Table:
    """The evidence as one expression. `on_trial`: ASes that a switchback is to confirm."""
    parts = [part for of_metric in _parts(records, settings, on_trial).values() for part in of_metric]
    return _union(parts)


def _union(parts: Sequence[ir.Table]) -> ir.Table:
    return fold(lambda one, other: one.union(other), parts)


def _parts(records: ir.Table, settings: Settings, on_trial: Sequence[str]) -> dict[str, list[ir.Table]]:
    """The queries of each metric. Their rows together are its evidence."""
    columns = frozenset(records.columns)
    needed = ("service_client", "service_start_unix_ns", "arm", "arm_bucket")
    for name in needed:
        if name not in columns:
            raise InputError(
                "records", f"they have no column {name!r}", "use records of `uncork serve`, or import them"
            )
    table, plan = _keyed(records, settings), scope(settings)
    names = [name for name in metrics(settings) if name in METRICS]
    known = [name for name in names if not missing(METRICS[name], columns)]
    is_rolled = rollups.has_rollups(table)
    counted = {name: METRICS[name] for name in known}
    for name, proxy in PROXIES.items():
        if name in known and proxy in known:
            if is_rolled:
                del counted[name]
            else:
                counted[proxy] = _where_missing(METRICS[name], METRICS[proxy])
    if not any(measure.metric in known for measure in PRIMARY.values()):
        raise InputError(
            "records", "they have neither throughput nor completion time", "see docs/reference/results.md"
        )
    if is_rolled:
        # Defaults that roll-ups cannot show are listed as not run.
        usual = {measures.parse_limit(text).measure.metric for text in GUARDRAILS}
        asked = [name for name in names if name not in usual and PROXIES.get(name) not in names]
        _check_rolled(table, asked, settings)
    queries = Queries.from_records(table, plan)
    parts = {name: [_metric(queries, metric)] for name, metric in counted.items()}
    once = replace(queries, plan=replace(plan, per_client=True))
    parts |= {
        f"{name}{PER_CLIENT}": [_ratio(once, metric, f"{name}{PER_CLIENT}")]
        for name, metric in counted.items()
        if metric.kind == "ratio"
    }
    parts[TRAFFIC] = [_traffic(table, plan)]
    parts[STEERED] = [
        _steered(table, plan, settings, of_class, numbers_of(on_trial))
        for of_class in CLASSES
        if on_trial and PRIMARY[of_class].metric in known
    ]
    parts[OF_HOLDBACK] = [
        _holdback(table, plan, settings, of) for of in CLASSES if PRIMARY[of].metric in known
    ]
    parts[UNITS] = [_units(table, plan)]
    parts[SEVERAL] = [_several(table, plan)]
    return parts


def _where_missing(metric: Metric, proxy: Metric) -> Metric:
    """The proxy, of records that lack the metric. Both are ratios."""
    whole, of_proxy = metric.per, proxy.per
    assert whole is not None, metric.name
    assert of_proxy is not None, proxy.name

    def only(value: Expression) -> Expression:
        return lambda t: ibis.ifelse(whole(t).isnull(), value(t), ibis.null())

    return replace(proxy, value=only(proxy.value), per=only(of_proxy))


def _check_rolled(table: ir.Table, names: Iterable[str], settings: Settings) -> None:
    """What roll-ups do not have is refused: without it, a guardrail would watch nothing."""
    if settings.place == "host":
        problem = "roll-ups do not have the host of a request: clients can make up any number"
        raise InputError("--place host", problem, "write --place listener, or plan from records")
    for name in names:
        if rollups.distribution(table, name) is None and rollups.sums(table, name) is None:
            remedy = "leave the guardrail out, or plan from records"
            raise InputError(f"--guardrail {name}", "roll-ups do not have this metric", remedy)


def of_day(settings: Settings, day: int) -> Settings:
    """The settings by which the evidence of one day is counted."""
    return replace(settings, as_of=day + 1, window=1)


def scope(settings: Settings) -> ReducePlan:
    """Which records count, and by what."""
    until = settings.as_of * DAY_NS
    return ReducePlan(
        control=settings.control,
        arms=(settings.control, *settings.candidates),
        experiment=settings.experiment,
        by=tuple(f"learn_{name}" for name in KEY_COLUMNS),
        metrics=(),
        window=(until - settings.window * DAY_NS, until),
    )


def metrics(settings: Settings) -> list[str]:
    """All that the evidence may have."""
    ratios = [limit.measure.metric for limit in settings.limits()]
    return [
        *dict.fromkeys([*(measure.metric for measure in PRIMARY.values()), *ratios]),
        *dict.fromkeys(f"{name}{PER_CLIENT}" for name in ratios),
        TRAFFIC,
        STEERED,
        OF_HOLDBACK,
        UNITS,
        SEVERAL,
    ]


def numbers_of(systems: Sequence[str]) -> list[int]:
    """`AS64500` as 64500."""
    return [int(name[2:]) for name in systems]


def collect(records: ir.Table, settings: Settings, run: Run, on_trial: Sequence[str] = ()) -> pa.Table:
    """The evidence in one order for all engines: the same records give the same bytes.

    The query runs once for each metric, so that an engine's wide rows of one metric are there at a time.
    """
    of_metric = _parts(records, settings, on_trial)
    parts = [narrow(run(_union(of_metric[name]))) for name in metrics(settings) if of_metric.get(name)]
    whole = pa.concat_tables(parts).unify_dictionaries()
    columns = {name: whole[name] for name in COLUMNS}
    # With a million networks, memory is short.
    del parts, whole
    return in_order(columns)


def narrow(wide: pa.Table) -> pa.Table:
    """The columns of the evidence, with words as numbers."""
    columns = {}
    for name, kind in COLUMNS.items():
        column = wide[name]
        columns[name] = column.dictionary_encode().cast(kind) if kind == TEXT else column.cast(kind)
    return pa.table(columns)


def in_order(columns: dict[str, pa.ChunkedArray]) -> pa.Table:
    """Rows and dictionaries sorted; nulls come last. Takes the columns, one at a time."""
    arrays: dict[str, pa.Array] = {}
    for name, kind in COLUMNS.items():
        column = columns.pop(name)
        array = column.combine_chunks() if len(column) else pa.array([], kind)
        arrays[name] = _sorted_dictionary(array) if kind == TEXT else array
    order = pa.array(_order(map(_rank, arrays.values())))
    return pa.table({name: arrays.pop(name).take(order) for name in COLUMNS})


def _rank(column: pa.Array) -> NDArray[np.signedinteger]:
    """Of each row, what sorts it."""
    if column.type == TEXT:
        return np.asarray(pc.fill_null(column.indices, len(column.dictionary)))
    return np.asarray(pc.fill_null(column, np.iinfo(column.type.to_pandas_dtype()).max))


def _order(ranks: Iterable[NDArray[np.signedinteger]]) -> Ints:
    """What sorts rows by these columns. Neighbours share a word: fewer columns are sorted faster."""
    words: list[NDArray[np.uint64]] = []
    used = 64
    for rank in ranks:
        low = int(rank.min()) if len(rank) else 0
        bits = max((int(rank.max()) - low).bit_length(), 1) if len(rank) else 1
        part = (rank.astype(np.int64) - low).astype(np.uint64)
        if used + bits > 64:
            words.append(part)
            used = bits
        else:
            words[-1] = words[-1] << np.uint64(bits) | part
            used += bits
    return np.lexsort(words[::-1])


def _sorted_dictionary(column: pa.DictionaryArray) -> pa.DictionaryArray:
    """With the words that rows have, and no others: a file may have more of them."""
    words = column.dictionary
    is_used = np.zeros(len(words), dtype=np.bool_)
    is_used[np.asarray(column.indices.drop_null())] = True
    order = np.asarray(pc.sort_indices(words))
    order = order[is_used[order]]
    rank = np.empty(len(words), dtype=np.int32)
    rank[order] = np.arange(len(order), dtype=np.int32)
    indices = pa.array(rank).take(column.indices) if len(words) else column.indices
    return pa.DictionaryArray.from_arrays(indices, words.take(pa.array(order)))


def last_day(records: ir.Table, run: Run) -> int:
    """The day since 1970 of the latest record."""
    days = canonical(records).select(day=KEYS["day"].value(Columns(records)))
    latest = run(days.aggregate(day=days["day"].max())).to_pylist()[0]["day"]
    if latest is None:
        raise InputError(
            "records", "they have no time (service_start_unix_ns)", "see docs/reference/results.md"
        )
    return int(latest)


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


def _metric(queries: Queries, metric: Metric) -> ir.Table:
    """Counts of a metric. A day is part of the key, so each client counts once a day: evidence loses weight
    by day, and roll-ups are read by day.
    """
    if metric.kind == "distribution":
        counted = queries.weighed(metric)
        # A value that cannot be decides nothing.
        return _shaped(counted.filter(counted["bin"].notnull()).rename(numerator="weight"), metric.name)
    return _ratio(queries, metric, metric.name)


def _ratio(queries: Queries, metric: Metric, name: str) -> ir.Table:
    table = queries.metric(metric)
    # A group without events adds nothing, and roll-ups do not say whether it had records.
    counts = [table[part] > 0 for part in ("numerator", "denominator", "n")]
    return _shaped(table.filter(ibis.or_(*counts)), name)


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
    """Records and bytes of all traffic, in all arms."""
    some = in_scope(table, replace(plan, experiment=None))
    null, no_text = ibis.null().cast("int64"), ibis.null().cast("string")
    keys = [f"learn_{name}" for name in KEY_COLUMNS if name not in ("propensity", "day")]
    records, amount = rollups.traffic(some)
    rows = some.select(*keys, records=records, bytes=amount)
    sums = rows.group_by(keys).aggregate(
        n=rows["records"].sum().fill_null(0).cast("int64"), bytes=rows["bytes"].sum().fill_null(0)
    )
    sums = sums.filter(sums["n"] > 0)
    return sums.select(
        metric=ibis.literal(TRAFFIC),
        **{name: sums[f"learn_{name}"] if f"learn_{name}" in keys else null for name in KEY_COLUMNS},
        arm=no_text,
        bucket=null,
        bin=null,
        n=sums["n"],
        numerator=sums["bytes"].cast("int64"),
        denominator=null,
    )


def _steered(
    table: ir.Table, plan: ReducePlan, settings: Settings, of_class: str, systems: Sequence[int]
) -> ir.Table:
    """The primary measure of what the table decided, by AS and day."""
    metric = METRICS[PRIMARY[of_class].metric]
    some = in_scope(table, replace(plan, experiment=None))
    t = Columns(some)
    some = some.filter(t["arm_experiment"].isnull(), t["service_asn"].isin(systems))
    some = some.filter(some["learn_class"] == of_class)
    t = Columns(some)
    keys = {f"learn_{name}": some[f"learn_{name}"] for name in ("class", "place", "asn", "day")}
    arm = ibis.cases((t["cc"].isin(treated_by(settings)), settings.treated), else_=settings.control)
    return _binned(some, {**keys, "arm": arm, "bucket": ibis.null().cast("int64")}, metric, STEERED)


def treated_by(settings: Settings) -> list[str]:
    """The controllers that only the treated arm has."""
    names = [{*settings.arms[arm].values()} for arm in (settings.treated, settings.control)]
    return sorted(names[0] - names[1])


def _holdback(table: ir.Table, plan: ReducePlan, settings: Settings, of_class: str) -> ir.Table:
    """The primary measure of what the table decided and of the holdback, by day: of clients with the unit."""
    rule = UNIT_RULE if settings.unit_condition else TABLE_RULE
    metric = METRICS[PRIMARY[of_class].metric]
    some = in_scope(table, replace(plan, experiment=None))
    some = some.filter(some["learn_class"] == of_class)
    t = Columns(some)
    arm = ibis.cases(
        (t["arm_experiment"] == HOLDBACK, settings.control),
        (t["arm_experiment"].isnull() & t["choice_rule"].startswith(rule), settings.treated),
        else_=ibis.null().cast("string"),
    )
    some = some.mutate(learn_arm=arm).filter(arm.notnull())
    keys = {f"learn_{name}": some[f"learn_{name}"] for name in ("class", "place", "day")}
    bucket = some["arm_bucket"].cast("int64")
    return _binned(some, {**keys, "arm": some["learn_arm"], "bucket": bucket}, metric, OF_HOLDBACK)


def _units(table: ir.Table, plan: ReducePlan) -> ir.Table:
    """Distinct units of the experiment by class, place, network, propensity and day: to see if an arm loses
    any, whether that is everywhere or in a few networks, and if those of an arm come more often.
    """
    keys = tuple(f"learn_{name}" for name in ("class", "place", "client", "asn", "propensity", "day"))
    counted = Queries.from_records(table, replace(plan, by=keys)).units()
    is_assigned = (counted["bucket"] >= 0) & (counted["bucket"] < BUCKETS) & counted["arm"].isin(plan.arms)
    null, no_text = ibis.null().cast("int64"), ibis.null().cast("string")
    others = {"country": no_text}
    return counted.filter(is_assigned, counted["units"] > 0).select(
        metric=ibis.literal(UNITS),
        **{name: others[name] if name in others else counted[f"learn_{name}"] for name in KEY_COLUMNS},
        arm=counted["arm"],
        bucket=counted["bucket"],
        bin=null,
        n=counted["units"],
        numerator=counted["rows"],
        denominator=null,
    )


def _several(table: ir.Table, plan: ReducePlan) -> ir.Table:
    """Units that one policy had in several arms on a day. A new policy may assign them to others."""
    some = in_scope(table, plan)
    t = Columns(some)
    rows = some.select(
        "learn_day", unit=t["arm_unit"], arm=t["arm"].cast("string"), policy=t["choice_policy"]
    )
    rows = rows.filter(rows["unit"].notnull(), rows["arm"].notnull())
    units = rows.group_by("learn_day", "unit", "policy").aggregate(arms=rows["arm"].nunique())
    days = units.group_by("learn_day").aggregate(n=units.count(where=units["arms"] > 1), units=units.count())
    null, no_text = ibis.null().cast("int64"), ibis.null().cast("string")
    texts = ("class", "place", "client", "country")
    keys = {name: no_text if name in texts else null for name in KEY_COLUMNS} | {"day": days["learn_day"]}
    more = {"arm": no_text, "bucket": null, "bin": null, "n": days["n"], "numerator": null}
    return days.select(metric=ibis.literal(SEVERAL), **keys, **more, denominator=days["units"])


def _binned(records: ir.Table, keys: Mapping[str, ir.Value], metric: Metric, name: str) -> ir.Table:
    """Counts by bin of the metric, and by these keys."""
    if not rollups.has_rollups(records):
        binned = _of_records(records, keys, metric)
        counted = binned.group_by(binned.columns).aggregate(n=binned.count())
    else:
        counted = _summed(records, keys, metric)
    null, no_text = ibis.null().cast("int64"), ibis.null().cast("string")
    others = {"client": no_text, "asn": null, "country": no_text, "propensity": null}
    return counted.select(
        metric=ibis.literal(name),
        **{key: counted[f"learn_{key}"] if f"learn_{key}" in keys else others[key] for key in KEY_COLUMNS},
        arm=counted["arm"],
        bucket=counted["bucket"],
        bin=counted["bin"],
        n=counted["n"],
        numerator=null,
        denominator=null,
    )


def _of_records(records: ir.Table, keys: Mapping[str, ir.Value], metric: Metric) -> ir.Table:
    rows = records.select(**keys, x=metric.value(Columns(records)))
    rows = rows.filter(rows["x"].notnull())
    return rows.select(*keys, bin=bin_value(rows["x"], metric.bounds))


def _summed(records: ir.Table, keys: Mapping[str, ir.Value], metric: Metric) -> ir.Table:
    """Of roll-ups, and of the records next to them."""
    full = records.mutate(**{f"key_{name}": value for name, value in keys.items()})
    columns = {name: full[f"key_{name}"] for name in keys}
    binned = _of_records(full.filter(~rollups.is_rolled(full)), columns, metric)
    binned = binned.mutate(n=ibis.literal(1, "int64"))
    rolled = rollups.bins(full, columns, metric.name)
    assert rolled is not None, metric.name
    both = binned.union(rolled.cast(binned.schema()))
    return both.group_by([*keys, "bin"]).aggregate(n=both["n"].sum().cast("int64"))


def of_metric(evidence: pa.Table, name: str) -> pa.Table:
    """The rows of one metric. Words are compared as numbers: as text they would need much memory."""
    return evidence.filter(pa.array(_Words.of(_whole(evidence["metric"])).has(name)))


def not_guarded(evidence: pa.Table, settings: Settings) -> list[str]:
    """The limits that no record can show, by the names of their measures."""
    shown = {*pc.unique(evidence["metric"].cast(pa.string())).to_pylist()}
    shown |= {name for name, proxy in PROXIES.items() if {name, proxy} & shown}
    shown |= {proxy for name, proxy in PROXIES.items() if name in shown}
    return [measures.name(one.measure) for one in settings.limits() if one.measure.metric not in shown]


def section_name(place: str | None, of_class: str) -> str:
    """`large`, or `PLACE/large`."""
    return f"{place}/{of_class}" if place else of_class


def blocks(evidence: pa.Table, settings: Settings) -> dict[Key, Blocks]:
    """What the table's clients of each AS on trial got, by day."""
    steered = of_metric(evidence, STEERED)
    counted = steered.group_by(["place", "class", "asn", "day", "arm", "bin"]).aggregate([("n", "sum")])
    sums: dict[tuple[str, str], dict[int, dict[int, list[int]]]] = {}
    for row in counted.to_pylist():
        if row["bin"] is None:
            continue
        days = sums.setdefault((section_name(row["place"], row["class"]), f"AS{row['asn']}"), {})
        both = days.setdefault(row["day"], {}).setdefault(row["bin"], [0, 0])
        both[row["arm"] == settings.treated] += row["n_sum"]
    return {key: _blocks(key[0].rpartition("/")[2], days) for key, days in sorted(sums.items())}


def _blocks(of_class: str, days: dict[int, dict[int, list[int]]]) -> Blocks:
    measure = PRIMARY[of_class]
    q = measures.quantile(measure.statistic)
    assert q is not None
    shares, levels = [], []
    for _, bins in sorted(days.items()):
        counts = np.array([bins[at] for at in sorted(bins)], dtype=np.int64)
        reached = np.searchsorted(np.cumsum(counts.sum(axis=1)), q * counts.sum())
        value = float(middle(np.array(sorted(bins))[reached]))
        shares.append(float(counts[:, 1].sum() / counts.sum()))
        levels.append(value if METRICS[measure.metric].better == "higher" else 1 / value)
    return Blocks(np.array(sorted(days), dtype=np.int64), np.array(shares), np.array(levels))


Ints = NDArray[np.int64]
PARTS = 1_000_000
"""Of a client-day: sums of billions of them fit into 64 bits."""
COUNTED = ("day", "propensity", "bucket", "bin", "n", "numerator", "denominator")


@dataclass(frozen=True)
class Section:
    """The evidence of one class of objects at one place."""

    name: str
    """`large`, or `PLACE/large`."""
    of_class: str
    place: str
    networks: Sequence[str] | Texts
    """All client networks that had traffic, in order."""
    system: Sequence[str] | Texts
    """Of each network, the AS with most of its bytes, as `AS64500`, or its region; empty: unknown."""
    country: Sequence[str] | Texts
    bytes: Ints
    """Of each network in the window."""
    arms: Ints
    """Records of the control arm and of the treated arm: shape (networks, 2)."""
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

    @property
    def amount(self) -> Ints:
        """Of a distribution, what each row counts: its clients, in parts of `PARTS`. Evidence of earlier
        versions has their records alone.
        """
        if not self.numerator.any():
            return self.n
        return np.asarray(np.rint(self.numerator * (PARTS / WEIGHT)), dtype=np.int64)

    def where(self, rows: NDArray[np.bool_] | Ints) -> Counts:
        """Some of the rows."""
        return Counts(*(getattr(self, name)[rows] for name in self.__dataclass_fields__))


def sections(evidence: pa.Table, settings: Settings) -> Iterator[Section]:
    """The evidence by place and class, in order; without traffic between sites and
    without classes that do not decide. One at a time: that of a million networks is large.
    """
    columns = {name: _whole(evidence[name]) for name in COLUMNS}
    words = {name: _Words.of(columns[name]) for name, kind in COLUMNS.items() if kind == TEXT}
    is_client = np.append(are_clients(columns["client"].dictionary, settings.sites), False)
    usable = is_client[words["client"].codes]
    for place in places(evidence, settings)[0]:
        at_place = usable & (words["place"].has(place) | (words["place"].has(None) & (place == "")))
        for of_class in (settings.only,) if settings.only else CLASSES:
            rows = np.flatnonzero(at_place & words["class"].has(of_class))
            if len(rows):
                some = pa.array(rows)
                yield _section(
                    {name: values.take(some) for name, values in columns.items()}, of_class, place, settings
                )


@dataclass(frozen=True)
class _Words:
    """A column of text as codes, one for each row; the last word is None, for nulls."""

    codes: NDArray[np.int32]
    words: list[str | None]

    @staticmethod
    def of(column: pa.DictionaryArray) -> _Words:
        words = [*column.dictionary.to_pylist(), None]
        codes = np.asarray(pc.fill_null(column.indices, len(words) - 1), dtype=np.int32)
        return _Words(codes, words)

    def has(self, word: str | None) -> NDArray[np.bool_]:
        """The rows with this word."""
        at = self.words.index(word) if word in self.words else -1
        return np.asarray(self.codes == at)

    def in_order(self) -> tuple[Ints, Texts]:
        """A number for each row, -1 for nulls, and the words by number, in order."""
        words = np.array(self.words[:-1], dtype=np.object_)
        order = np.argsort(words)
        rank = np.full(len(words) + 1, -1, dtype=np.int64)
        rank[order] = np.arange(len(words))
        return rank[self.codes], words[order]


def places(evidence: pa.Table, settings: Settings) -> tuple[list[str], int]:
    """The places that have sections, in order, and the number of other places. One place without a name if
    no column names places. A client can send any host, or none. A server refuses a condition that is not the
    name of a host, or applies it to the hosts of others; and the number of names is unlimited.
    """
    of = _Words.of(_whole(evidence["place"]))
    named = sorted({word or "" for word in of.words})
    if not settings.place:
        return named, 0
    is_place = HOST.fullmatch if settings.place == "host" else bool
    found = [place for place in named if is_place(place)]
    if not found and len(of.codes):
        raise InputError("--place", f"no record has the name of a {settings.place}", "leave it out")
    if settings.places is None or len(found) <= settings.places:
        return found, 0
    amount = np.bincount(of.codes, _client_bytes(evidence, settings), len(of.words))
    by_place = dict(zip(of.words, amount.tolist(), strict=True))
    most = sorted(found, key=lambda place: -by_place[place])[: settings.places]
    return sorted(most), len(found) - len(most)


def _client_bytes(evidence: pa.Table, settings: Settings) -> Ints:
    """Of each row; 0 of rows that are no traffic, or between sites."""
    client = _whole(evidence["client"])
    is_client = np.append(are_clients(client.dictionary, settings.sites), False)[_Words.of(client).codes]
    is_traffic = _Words.of(_whole(evidence["metric"])).has(TRAFFIC)
    return np.where(is_client & is_traffic, _ints(_whole(evidence["numerator"])), 0)


def _section(rows: Mapping[str, pa.Array], of_class: str, place: str, settings: Settings) -> Section:
    words = {name: _Words.of(rows[name]) for name in ("metric", "client", "country", "arm")}
    is_traffic = words["metric"].has(TRAFFIC)
    # Clients by the order of their names, of those alone that have traffic.
    client, names = words["client"].in_order()
    seen = np.unique(client[is_traffic])
    index = np.full(len(names), -1, dtype=np.int64)
    index[seen] = np.arange(len(seen))
    network = index[client]
    traffic, amount = network[is_traffic], _ints(rows["numerator"])[is_traffic]
    total = np.zeros(len(seen), dtype=np.int64)
    np.add.at(total, traffic, amount)
    country, countries = words["country"].in_order()
    asn = np.where(np.asarray(rows["asn"].is_valid()), _ints(rows["asn"]), -1)
    system = _most_frequent(traffic, asn[is_traffic], amount, len(seen))
    country = np.append(np.where(_are_codes(countries), np.arange(len(countries)), -1), -1)[country]
    home = _most_frequent(traffic, country[is_traffic], amount, len(seen))
    arm = np.full(len(network), -1, dtype=np.int64)
    for at, name in enumerate((settings.control, settings.treated)):
        arm[words["arm"].has(name)] = at
    counts = {}
    for name in sorted(
        {word for word in words["metric"].words if word} - {TRAFFIC, STEERED, OF_HOLDBACK, UNITS, SEVERAL}
    ):
        some = np.flatnonzero(words["metric"].has(name) & (arm >= 0) & (network >= 0))
        if len(some):
            values = {column: _ints(rows[column].take(pa.array(some))) for column in COUNTED}
            counts[name] = Counts(network=network[some], arm=arm[some], **values)
    systems = _named(system, lambda one: f"AS{one}")
    if settings.regions:
        named = np.array(names_of(names[seen].tolist(), settings.regions), dtype=np.object_)
        systems = np.where(named != "", named, systems)
    return Section(
        name=section_name(place, of_class),
        of_class=of_class,
        place=place,
        networks=names[seen],
        system=systems,
        country=_named(home, lambda one: str(countries[one])),
        bytes=total,
        arms=_arms(len(seen), counts.get(PRIMARY[of_class].metric)),
        metrics=counts,
    )


def _are_codes(countries: Iterable[str | None]) -> NDArray[np.bool_]:
    """Which of these are codes of countries: servers refuse a policy with other words."""
    return np.array([CODE.fullmatch(word or "") is not None for word in countries], dtype=np.bool_)


def without_code(evidence: pa.Table) -> tuple[int, str]:
    """Records that name their country in another way than by its code, and an example."""
    rows = of_metric(evidence, TRAFFIC)
    of = _Words.of(_whole(rows["country"]))
    records = np.bincount(of.codes, _ints(_whole(rows["n"])), len(of.words))[:-1]
    wrong = np.flatnonzero((records > 0) & ~_are_codes(of.words[:-1])).tolist()
    return int(records[wrong].sum()), min((str(of.words[at]) for at in wrong), default="")


def _arms(networks: int, counts: Counts | None) -> Ints:
    rows = np.zeros((networks, 2), dtype=np.int64)
    if counts is not None:
        np.add.at(rows, (counts.network, counts.arm), counts.n)
    return rows


def _most_frequent(index: Ints, values: Ints, amount: Ints, count: int) -> Ints:
    """Of each network the value with most bytes, of equals the least; -1 if all its values are -1."""
    known = values >= 0
    index, values, amount = index[known], values[known], amount[known]
    found = np.full(count, -1, dtype=np.int64)
    if len(index):
        order = np.lexsort((values, index))
        index, values = index[order], values[order]
        starts = np.flatnonzero((np.diff(index, prepend=-1) != 0) | (np.diff(values, prepend=-1) != 0))
        sums = np.add.reduceat(amount[order], starts)
        index, values = index[starts], values[starts]
        best = np.lexsort((-values, sums, index))
        last = np.flatnonzero(np.diff(index[best], append=-1) != 0)
        found[index[best][last]] = values[best][last]
    return found


def _named(values: Ints, text: Callable[[int], str]) -> Texts:
    words, codes = np.unique(values, return_inverse=True)
    return np.array([text(one) if one >= 0 else "" for one in words.tolist()], dtype=np.object_)[codes]


def _whole(column: pa.ChunkedArray) -> pa.Array:
    one = column.unify_dictionaries() if pa.types.is_dictionary(column.type) else column
    return one.combine_chunks()


def _ints(column: pa.Array) -> Ints:
    """The column's integers; a null is 0."""
    return np.asarray(pc.fill_null(column, 0), dtype=np.int64)
