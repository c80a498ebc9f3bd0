"""Records to counts: the queries, written once as Ibis expressions.

Each metric is one query that scans its own columns and returns, by cell, arm and bucket, counts of
logarithmic bins or sums of whole numbers. Nothing else leaves the engine, and the same records give the same
counts, bit for bit, on every engine.

Distributions are those of *clients*: a unit counts once in each cell, its records share its weight. If
records counted, a controller that brings slow clients more downloads would make their arm look slower, though
each client is faster (Simpson 1951; Deng, Knoblich and Lu 2018 on the unit of analysis). Ratios (bytes
sent again, responses broken off) are sums over all records: they are the price that all traffic pays.
"""

import importlib.util
import math
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace

import ibis
import ibis.expr.types as ir
import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import sqlglot
from numpy.typing import NDArray

from uncork.measure import rollups
from uncork.measure.bins import IMPOSSIBLE, LN_GAMMA, bin_of
from uncork.measure.cells import Part, Tables, assemble
from uncork.measure.cubes import BUCKETS, WEIGHT, Reduced
from uncork.measure.errors import InputError
from uncork.measure.keys import key_column
from uncork.measure.metrics import METRICS, Metric, available, missing
from uncork.measure.schema import Columns, unbound

Run = Callable[[ir.Table], pa.Table]
"""Runs a query; what comes back is small."""
Keep = Callable[[ir.Table], ir.Table]
"""Runs a query and keeps its result in the engine, as a table."""
PROPENSITY = "own propensity"
PROPENSITY_STEPS = 10_000
"""Slots of a policy: propensities are multiples of 0.01 %."""
FINE_BITS = 20
"""Of the parts of a count that counts by propensity."""
View = tuple[str, ...]
"""The keys by which records are counted."""


@dataclass(frozen=True)
class ReducePlan:
    """What to reduce, and by what."""

    control: str
    """The arm against which the others are measured."""
    arm: str = "arm"
    """The column of arms: ``arm``, or ``cc`` and ``group`` where no policy assigned any."""
    bucket: str = "arm_bucket"
    unit: str = "arm_unit"
    experiment: str | None = None
    """The experiment, where records have several."""
    arms: tuple[str, ...] | None = None
    """Those to compare; all that occur if ``None``."""
    by: tuple[str, ...] = ()
    metrics: tuple[str, ...] | None = None
    """All that the records have if ``None``."""
    window: tuple[int | None, int | None] = (None, None)
    """Since and until, in nanoseconds since 1970 (UTC); until is not part of it."""
    per_unit: bool = True
    """Whether each unit counts once in a distribution; else, and without units, each record does."""
    per_client: bool = False
    """Whether each unit counts once in a ratio, too: the mean of the units' own ratios."""
    by_propensity: bool = False
    """Whether records count by the inverse of their arm's propensity: where shares differ between places or
    times, each arm then stands for all clients."""
    scope: str = "response"
    """Of records of servers: ``response``, or ``connection`` with all its responses; never both."""


@dataclass(frozen=True)
class Prepared:
    """Records of a plan's scope with what all queries read of them: keys, bins and sums. An engine that keeps
    them computes these once instead of in each query.
    """

    table: ir.Table
    values: ir.Table | None
    """The bins of all distributions in one column, with the metric's number: one query counts them all."""
    columns: frozenset[str]
    """Of the records."""

    @staticmethod
    def of(
        records: ir.Table, plan: ReducePlan, keys: tuple[str, ...], metrics: tuple[str, ...], keep: Keep
    ) -> "Prepared":
        """For plans that differ from this one in their window, keys and metrics."""
        queries = Queries.from_records(records, replace(plan, by=keys, metrics=metrics))
        known = frozenset(queries.table.columns)
        distributions = [metric for metric in queries.metrics if metric.kind == "distribution"]
        # Each value once: a bin has its expression several times.
        values = {f"value {it.name}": it.value(Columns(queries.table)) for it in distributions}
        measured = queries.table.mutate(**values)
        t = Columns(measured)
        names = (
            plan.arm,
            plan.bucket,
            plan.unit,
            "arm_experiment",
            "service_start_unix_ns",
            "arm_propensity",
        )
        columns: dict[str, ir.Value] = {name: t[name] for name in names if name in known}
        columns |= {f"key {name}": key_column(name, known).value(t) for name in queries.plan.by}
        for metric in queries.metrics:
            columns |= _values(metric, t)
        is_rolled = rollups.has_rollups(measured)
        if is_rolled:
            columns |= {name: measured[name] for name in (rollups.RECORDS, rollups.FOLD)}
        kept = Prepared(keep(measured.select(**columns)), None, known)
        of_kept = replace(queries, table=kept.table, prepared=kept)
        parts = [of_kept.values(metric) for metric in distributions]
        if is_rolled:
            rolled = [part for metric in distributions for part in queries.rolled(metric)]
            parts = [part.mutate(n=ibis.literal(1, "int64")) for part in parts]
            # An engine that keeps a table gives its columns smaller types.
            parts = rolled + [part.cast(rolled[0].schema()) for part in parts] if rolled else parts
        return replace(kept, values=keep(ibis.union(*parts))) if parts else kept


def _values(metric: Metric, t: Columns) -> dict[str, ir.Value]:
    """What prepared records have of a metric."""
    if metric.kind == "ratio":
        assert metric.per is not None, metric.name
        of, per = metric.value(t), metric.per(t)
        if rollups.has_rollups(t.table):
            nothing = ibis.null().cast("int64")
            rolled = rollups.sums(t.table, metric.name) or (nothing, nothing)
            is_rolled = rollups.is_rolled(t.table)
            of, per = (ibis.ifelse(is_rolled, *pair) for pair in zip(rolled, (of, per), strict=True))
        return {f"of {metric.name}": of, f"per {metric.name}": per}
    x = t.table[f"value {metric.name}"]
    if rollups.has_rollups(t.table):
        x = ibis.ifelse(rollups.is_rolled(t.table), ibis.null(), x)
    known = bin_value(x, metric.bounds).fill_null(ibis.literal(IMPOSSIBLE, "int64"))
    # for Spark, ibis takes NaN for null; here it is a value that cannot be
    has_value = x.notnull() | x.isnan()
    return {f"bin {metric.name}": ibis.cases((has_value, known), else_=ibis.null()).cast("int32")}


def _number(metric: Metric) -> int:
    """Engines find a metric by a number faster than by its name."""
    return list(METRICS).index(metric.name)


def _numbered(counts: ir.Table, metric: Metric) -> ir.Table:
    return counts.mutate(metric=ibis.literal(_number(metric), "int16"))


def to_arrow(query: ir.Table) -> pa.Table:
    """Runs the query where its table is."""
    return query.to_pyarrow()


def reduce(records: ir.Table, plan: ReducePlan, run: Run = to_arrow) -> Reduced:
    """Counts of all metrics by ``plan.by``, arm and bucket."""
    return reduce_views(records, plan, [plan.by], run)[plan.by]


def reduce_views(
    records: ir.Table | Prepared,
    plan: ReducePlan,
    views: Iterable[View] | Mapping[View, tuple[str, ...]],
    run: Run = to_arrow,
) -> dict[View, Reduced]:
    """The records by each of the views, with its metrics; those of the plan if it names none."""
    if not views:
        return {}
    wanted = views if isinstance(views, Mapping) else dict.fromkeys(views, plan.metrics)
    if isinstance(records, ir.Table) and rollups.has_rollups(records):
        keys = tuple(dict.fromkeys(key for view in wanted for key in view))
        names = available(frozenset(records.columns))
        records = Prepared.of(records, replace(plan, window=(None, None)), keys, names, lambda query: query)
    queries = {
        view: Queries.from_records(records, replace(plan, by=view, metrics=metrics))
        for view, metrics in wanted.items()
    }
    units = {view: run(of_view.units()) for view, of_view in queries.items()}
    arms = _arms(next(iter(units.values())), plan)
    return {
        view: assemble(Tables(_parts(of_view, run), units[view]), of_view.texts(), arms)
        for view, of_view in queries.items()
    }


def _parts(query: "Queries", run: Run) -> list[Part]:
    """The counts of each metric. One query counts all distributions, another one all ratios."""
    found: dict[Metric, pa.Table] = {}
    for kind in ("distribution", "ratio"):
        if some := [metric for metric in query.metrics if metric.kind == kind]:
            table = run(query.together(some))
            found |= {metric: table.filter(pc.equal(table["metric"], _number(metric))) for metric in some}
    parts = [Part(metric, found[metric], query.whole(metric)) for metric in query.metrics]
    return [by_propensity(part) for part in parts] if query.plan.by_propensity else parts


def sql(
    plan: ReducePlan,
    dialect: str,
    columns: Iterable[str] = (),
    among: Callable[[ir.Table], ir.Table] = lambda records: records,
) -> str:
    """All queries as SQL of a dialect (``trino``, ``bigquery``, …) over a table ``records``.

    ``columns`` are those of the records beyond the canonical ones; ``among`` selects rows.
    """
    queries = Queries.from_records(among(unbound(columns)), plan)
    tables = {metric.name: queries.metric(metric) for metric in queries.metrics}
    tables |= {"units": queries.units()}
    return "\n".join(f"-- {name}\n{compiled(table, dialect)};\n" for name, table in tables.items())


def compiled(query: ir.Table, dialect: str) -> str:
    """The query as SQL. For ClickHouse, ibis counts distinct values with `uniq`, which is approximate."""
    try:
        text = str(ibis.to_sql(query, dialect=dialect))
    except AttributeError:
        # ibis's compiler reads the types of pyspark, where that is installed.
        if dialect != "pyspark" or importlib.util.find_spec("pyspark"):
            raise
        remedy = "pip install 'uncork[spark]', or write databricks: its SQL is Spark's"
        raise InputError("--show-sql pyspark", "pyspark is not installed", remedy) from None
    if dialect != "clickhouse":
        return text
    tree = sqlglot.parse_one(text, read=dialect)
    for approximate in tree.find_all(sqlglot.exp.ApproxDistinct):
        approximate.replace(sqlglot.exp.func("uniqExact", approximate.this))
    return tree.sql(dialect=dialect, pretty=True)


@dataclass(frozen=True)
class Queries:
    """The queries of a plan over some records."""

    table: ir.Table
    plan: ReducePlan
    metrics: tuple[Metric, ...]
    columns: frozenset[str]
    prepared: Prepared | None = None

    @staticmethod
    def from_records(records: ir.Table | Prepared, plan: ReducePlan) -> "Queries":
        """Checks the plan against the records' columns."""
        prepared = records if isinstance(records, Prepared) else None
        columns = prepared.columns if prepared else frozenset(records.columns)
        table = records.table if isinstance(records, Prepared) else records
        for role, name in (("arm", plan.arm), ("bucket", plan.bucket)):
            if name not in columns:
                raise InputError(
                    f"--{role}", f"the records have no column {name!r}", "name another one, or import them"
                )
        names = available(columns) if plan.metrics is None else plan.metrics
        metrics = tuple(_metric(name, columns) for name in names)
        return Queries(in_scope(table, plan), plan, metrics, columns, prepared)

    def texts(self) -> dict[str, Callable[[object], str]]:
        """How the values of each key become text."""
        return {name: key_column(name, self.columns).text for name in self.plan.by}

    def whole(self, metric: Metric) -> int:
        """What counts as one in the counts of this metric."""
        is_weighed = metric.kind == "distribution" or self.plan.per_client
        return WEIGHT if is_weighed and self._has_units() else 1

    def _has_units(self) -> bool:
        return self.plan.per_unit and self.plan.unit in self.columns

    def metric(self, metric: Metric) -> ir.Table:
        """Counts of one metric by the keys, arm and bucket: ``bin, n`` of a distribution, ``numerator,
        denominator, n`` of a ratio. Values that cannot be (negative, infinite, no number) have the bin null,
        or are counted by ``n``. With units, ``n`` sums their weights.
        """
        rows = self._assigned()
        if metric.kind == "ratio":
            return self._ratio(rows, metric)
        return self._counted(self._all_binned(rows, metric), self.plan.by)

    def weighed(self, metric: Metric) -> ir.Table:
        """The same of a distribution: `n` counts its records, and `weight` sums their weights. A record
        without a unit weighs as much as a unit.
        """
        binned = self._all_binned(self._assigned(), metric)
        counts = binned["n"] if "n" in binned.columns else ibis.literal(1, "int64")
        groups = [name for name in binned.columns if name not in ("unit", "n")]
        rows = binned.select(
            *groups, n=counts, weight=_weight(binned, (*self.plan.by, "arm"), counts) * counts
        )
        return rows.group_by(groups).aggregate(
            n=rows["n"].sum().cast("int64"), weight=rows["weight"].sum().cast("int64")
        )

    def _all_binned(self, rows: ir.Table, metric: Metric) -> ir.Table:
        """The bins of records, and of roll-ups next to them."""
        binned = self._binned(rows, metric, {})
        if self.prepared is None and rollups.has_rollups(rows):
            return self._with_rolled(binned, metric)
        return binned

    def _with_rolled(self, binned: ir.Table, metric: Metric) -> ir.Table:
        """The bins of records, and those of roll-ups."""
        counted = binned.mutate(n=ibis.literal(1, "int64"))
        parts = [rolled.select(*counted.columns).cast(counted.schema()) for rolled in self.rolled(metric)]
        return ibis.union(counted, *parts) if parts else counted

    def together(self, metrics: Sequence[Metric]) -> ir.Table:
        """The same of several metrics of one kind, by ``metric``."""
        if self.prepared is None or self.prepared.values is None or metrics[0].kind == "ratio":
            return ibis.union(*(_numbered(self.metric(one), one) for one in metrics))
        # They are of the experiment, and have no column of it.
        values = in_scope(self.prepared.values, replace(self.plan, experiment=None))
        # DuckDB makes a join of `isin`, and a slow window over it.
        values = values.filter(ibis.or_(*(values["metric"] == _number(one) for one in metrics)))
        by, unit = ("metric", *self.plan.by), ["unit"] if self._has_units() else []
        more = [name for name in (PROPENSITY, "n") if name in values.columns]
        return self._counted(values.select(*by, "arm", "bucket", *unit, "bin", *more), by)

    def values(self, metric: Metric) -> ir.Table:
        """The bins of a distribution, each with its keys, arm, bucket, unit and time."""
        rows, time = self._assigned(), "service_start_unix_ns"
        times = {time: rows[time]} if time in rows.columns else {}
        return _numbered(self._binned(rows, metric, times), metric)

    def rolled(self, metric: Metric) -> list[ir.Table]:
        """The same of roll-ups, with how many records have the bin; nothing of a metric that they lack."""
        rows = self._assigned()
        t, time = Columns(rows), "service_start_unix_ns"
        unit = {"unit": rows[self.plan.unit]} if self._has_units() else {}
        names = {**self._keys(t), **unit, time: t[time]}
        binned = rollups.bins(rows, names, metric.name)
        if binned is None:
            return []
        named = _numbered(binned, metric)
        return [named.select(*names, "bin", "metric", "n")]

    def units(self) -> ir.Table:
        """Records and distinct units by the keys, arm, bucket and experiment; also those without an arm."""
        t = Columns(self.table)
        unit = self.table[self.plan.unit] if self.plan.unit in self.columns else None
        keys = self._keys(t) | {"experiment": t["arm_experiment"]}
        keys.pop(PROPENSITY, None)
        counted = {rollups.RECORDS: self.table[rollups.RECORDS]} if rollups.has_rollups(self.table) else {}
        rows = self.table.select(**keys, **counted, **({} if unit is None else {"unit": unit}))
        units = ibis.literal(0, "int64") if unit is None else rows["unit"].nunique()
        found = rows.group_by(list(keys)).aggregate(rows=rollups.count(rows), units=units)
        return found.filter(found["rows"] > 0) if counted else found

    def _keys(self, t: Columns) -> dict[str, ir.Value]:
        bucket = t.table[self.plan.bucket] if self.prepared else t[self.plan.bucket].cast("int64")
        of = {"arm": t[self.plan.arm].cast("string"), "bucket": bucket}
        if self.plan.by_propensity:
            of[PROPENSITY] = own_propensity(t)
        if self.prepared:
            return {name: t.table[f"key {name}"] for name in self.plan.by} | of
        return {name: key_column(name, self.columns).value(t) for name in self.plan.by} | of

    def _assigned(self) -> ir.Table:
        """Records with an arm that is compared, and a bucket."""
        t = Columns(self.table)
        arm, bucket = t[self.plan.arm].cast("string"), t[self.plan.bucket]
        of_arms = arm.notnull() if self.plan.arms is None else arm.isin(self.plan.arms)
        return self.table.filter(of_arms, bucket >= 0, bucket < BUCKETS)

    def _counted(self, binned: ir.Table, by: Sequence[str]) -> ir.Table:
        """A distribution. With units, the records of a unit share its weight."""
        has_counts = "n" in binned.columns
        groups = [name for name in binned.columns if name not in ("unit", "n")]
        if not self._has_units():
            n = binned["n"].sum().cast("int64") if has_counts else binned.count()
            return binned.group_by(groups).aggregate(n=n)
        # By propensity, a unit shares its weight between its arms: each arm then has its part of all times.
        of = by if self.plan.by_propensity else (*by, "arm")
        if has_counts:
            weighed = binned.select(*groups, n=_weight(binned, of, binned["n"]) * binned["n"])
            return weighed.group_by(groups).aggregate(n=weighed["n"].sum().cast("int64"))
        weighed = binned.select(*groups, n=_weight(binned, of))
        return weighed.group_by(groups).aggregate(n=weighed["n"].sum())

    def _binned(self, rows: ir.Table, metric: Metric, more: Mapping[str, ir.Value]) -> ir.Table:
        """The records with a value of the metric: their keys, arm, bucket, unit, bin, and more."""
        if self.prepared is None and rollups.has_rollups(rows):
            rows = rows.filter(~rollups.is_rolled(rows))
        t = Columns(rows)
        keys = {**self._keys(t), **({"unit": rows[self.plan.unit]} if self._has_units() else {}), **more}
        if self.prepared:
            binned = rows.select(**keys, bin=rows[f"bin {metric.name}"])
            binned = binned.filter(binned["bin"].notnull())
            return binned.mutate(bin=binned["bin"].nullif(IMPOSSIBLE))
        values = rows.select(**keys, x=metric.value(t))
        # for Spark, ibis takes NaN for null; here it is a value that cannot be
        values = values.filter(values["x"].notnull() | values["x"].isnan())
        return values.select(*keys, bin=bin_value(values["x"], metric.bounds))

    def _ratio(self, rows: ir.Table, metric: Metric) -> ir.Table:
        t = Columns(rows)
        names = (f"of {metric.name}", f"per {metric.name}")
        values = {name: rows[name] for name in names} if self.prepared else _values(metric, t)
        is_per_client = self.plan.per_client and self._has_units()
        unit = {"unit": rows[self.plan.unit]} if is_per_client else {}
        parts = rows.select(**self._keys(t), **unit, numerator=values[names[0]], denominator=values[names[1]])
        parts = parts.filter(parts["numerator"].notnull() & parts["denominator"].notnull())
        groups = [name for name in parts.columns if name not in ("unit", "numerator", "denominator")]
        if is_per_client:
            parts = of_units(parts, groups)
        valid = (parts["numerator"] >= 0) & (parts["denominator"] >= 0)
        return parts.group_by(groups).aggregate(
            numerator=parts["numerator"].sum(where=valid).fill_null(0),
            denominator=parts["denominator"].sum(where=valid).fill_null(0),
            n=parts.count(where=~valid),
        )


def of_units(parts: ir.Table, by: list[str]) -> ir.Table:
    """The ratio of each unit, in parts of `WEIGHT`. Records with a part that cannot be are left out."""
    valid = (parts["numerator"] >= 0) & (parts["denominator"] >= 0)
    known = parts.filter(valid & parts["unit"].notnull())
    sums = known.group_by([*by, "unit"]).aggregate(
        numerator=known["numerator"].sum().cast("float64"),
        denominator=known["denominator"].sum().cast("float64"),
    )
    sums = sums.filter(sums["denominator"] > 0.0)
    share = sums["numerator"] / sums["denominator"] * float(WEIGHT)
    return sums.select(*by, numerator=share.floor().cast("int64"), denominator=ibis.literal(WEIGHT, "int64"))


def own_propensity(t: Columns) -> ir.Value:
    """The record's own propensity, in slots."""
    return (t["arm_propensity"] * PROPENSITY_STEPS).round().cast("int64")


def inverse_propensity(table: pa.Table, amount: str) -> NDArray[np.float64]:
    """What each row counts by the inverse of its propensity, with each arm's sum of `amount` as before. A row
    without a propensity counts nothing.
    """
    share = np.asarray(pc.fill_null(table[PROPENSITY], 0).to_numpy(), dtype=np.float64)
    factor = np.where(share > 0, PROPENSITY_STEPS / np.maximum(share, 1), 0.0)
    base = np.asarray(table[amount].cast(pa.float64()).to_numpy())
    for arm in pc.unique(table["arm"]):
        rows = np.asarray(pc.equal(table["arm"], arm).to_numpy())
        factor[rows] *= base[rows].sum() / max(float((base * factor)[rows].sum()), 1e-300)
    return factor


def by_propensity(part: Part) -> Part:
    """The counts by the inverse of the propensity, with the sum of each arm as before."""
    table = part.table
    amounts = ("n",) if part.metric.kind == "distribution" else ("numerator", "denominator")
    factor = inverse_propensity(table, amounts[-1])
    weighed = {name: np.asarray(table[name].cast(pa.float64()).to_numpy()) * factor for name in amounts}
    largest = max(float(counts.sum()) for counts in weighed.values())
    # Parts of a count, as many as sums in 63 bits have room for.
    scale = 2 ** max(0, min(FINE_BITS, 62 - math.frexp(largest)[1]))
    for name, counts in weighed.items():
        column = pa.array(np.rint(counts * scale).astype(np.int64))
        table = table.set_column(table.column_names.index(name), name, column)
    return Part(part.metric, table, part.whole * scale)


def _weight(binned: ir.Table, of: Sequence[str], counts: ir.Value | None = None) -> ir.Value:
    """A record's part of the weight of its unit among the records of one `of`; 1 of a value that cannot be. A
    record without a unit is a unit of its own. ``counts``: how many records a row stands for."""
    whole = ibis.literal(WEIGHT, "int64")
    known = (
        binned["bin"].count()
        if counts is None
        else ibis.ifelse(binned["bin"].notnull(), counts, 0).sum().cast("int64")
    )
    shared = known.over(group_by=[binned[name] for name in (*of, "unit")]).nullif(0)
    part = ((whole - whole % shared) / shared).cast("int64")
    return ibis.cases(
        (binned["bin"].isnull(), ibis.literal(1, "int64")), (binned["unit"].isnull(), whole), else_=part
    )


def bin_value(x: ir.Value, bounds: tuple[float, float]) -> ir.Value:
    """The bin of a value, zero in the lowest; null for a value that cannot be. NaN is never below 1e300."""
    low, high = (int(bin_of(bound)) for bound in bounds)
    return ibis.cases(
        (~((x >= 0.0) & (x < 1e300)), ibis.null().cast("int64")),
        (x < bounds[0], ibis.literal(low, "int64")),
        (x > bounds[1], ibis.literal(high, "int64")),
        else_=(x.ln() / ibis.literal(LN_GAMMA, "float64")).ceil().cast("int64"),
    )


def _metric(name: str, columns: frozenset[str]) -> Metric:
    metric = METRICS.get(name)
    if metric is None:
        raise InputError("--metric", f"no metric {name!r}", f"there are {', '.join(METRICS)}")
    if lacking := missing(metric, columns):
        raise InputError(
            "--metric", f"{name} needs the column {lacking[0].replace('|', ' or ')}", "leave it out"
        )
    return metric


def in_scope(records: ir.Table, plan: ReducePlan) -> ir.Table:
    """Records of the scope, the experiment and the window. `uncork host watch` has connections only."""
    t, known = Columns(records), frozenset(records.columns)
    conditions: list[ir.Value] = []
    if "service_scope" in known:
        scope = t["service_scope"]
        is_watch = (t["engine"] == "watch") & (scope == "connection")
        conditions.append((scope == plan.scope) | scope.isnull() | is_watch)
    if plan.experiment is not None:
        if "arm_experiment" not in known:
            raise InputError(
                "--experiment", "the records have no column 'arm_experiment'", "leave the option out"
            )
        conditions.append(t["arm_experiment"] == plan.experiment)
    since, until = plan.window
    if since is not None:
        conditions.append(t["service_start_unix_ns"] >= since)
    if until is not None:
        conditions.append(t["service_start_unix_ns"] < until)
    return records.filter(conditions) if conditions else records


def _arms(units: pa.Table, plan: ReducePlan) -> tuple[str, ...]:
    """The arms that occur, control first. Arms of several experiments are never mixed."""
    experiments = sorted({name for name in units["experiment"].to_pylist() if name})
    if len(experiments) > 1:
        raise InputError(
            "--experiment", f"the records are of several: {', '.join(experiments)}", "choose one"
        )
    found = sorted({arm for arm in units["arm"].to_pylist() if arm})
    if plan.control not in found:
        there = ", ".join(found) or "none"
        raise InputError(
            "--control", f"the column {plan.arm} has no arm {plan.control!r}", f"there are: {there}"
        )
    others = [arm for arm in found if arm != plan.control and (plan.arms is None or arm in plan.arms)]
    return (plan.control, *others)
