"""Small queries about the experiment itself: who ran what when, and which share was planned.

What was planned is recorded or declared; it never follows from the records that it is to check.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import dataclass
from typing import Final, Literal

import ibis
import ibis.expr.types as ir
import pyarrow as pa

from uncork.measure import rollups
from uncork.measure.errors import InputError, available
from uncork.measure.keys import DAY_NS, HOUR_NS, KEYS, UNKNOWN, date, key_column
from uncork.measure.reduce import PROPENSITY_STEPS, ReducePlan, in_scope
from uncork.measure.schema import Columns

Run = Callable[[ir.Table], pa.Table]
Row = dict[str, object]
Relation = Literal["equal", "different", "unknown"]

LABORATORY: Final = ("sim", "quic-sim", "netns", "bpf")
"""Engines that repeat runs in each arm: a unit is in each arm by design (docs/reference/results.md)."""

PLACEHOLDERS: Final = frozenset(
    {"", "-", "?", "unknown", "none", "null", "nil", "n/a", "na", "nan", "undefined"}
)
"""What logs write in place of a controller that they do not know."""

NEARLY_ALL: Final = 0.99
"""Share of an arm's records from which it runs one controller. Of less, the rest fell back to another."""

SAME_SHARE: Final = 1.02
"""Propensities that differ by this factor and a slot are one step of the share."""

MIXED: Final = 0.02
"""Part of the records that may be of hours in which shares change."""


@dataclass(frozen=True)
class Traffic:
    """Rows by hour, arm and controller. They show the arms, the switch and the days."""

    rows: tuple[Row, ...]
    has_time: bool

    def arms(self) -> list[str]:
        """All arms, in alphabetical order."""
        return sorted({str(row["arm"]) for row in self.rows})

    def controllers(self, arm: str, since_hour: int | None = None) -> Counter[str]:
        """Records of the arm by controller; empty: unknown."""
        seen: Counter[str] = Counter()
        for row in self.rows:
            if row["arm"] == arm and (since_hour is None or _number(row["hour"]) >= since_hour):
                seen[known_controller(row["cc"])] += _number(row["n"])
        return seen

    def controller(self, arm: str, since_hour: int | None = None) -> str:
        """The controller of most of the arm's records."""
        return _most(self.controllers(arm, since_hour))

    def pair(self, control: str, treated: str, since_hour: int | None = None) -> tuple[str, str]:
        """The controllers of both arms. If they seem equal, an arm that ran others as well has none."""
        seen = self.controllers(control, since_hour), self.controllers(treated, since_hour)
        first, second = map(_most, seen)
        if controllers_relation(first, second) != "equal":
            return first, second
        is_first, is_second = (_share_of_most(of) >= NEARLY_ALL for of in seen)
        return (first if is_first else ""), (second if is_second else "")

    def windows(
        self, control: str, treated: str, since_hour: int | None = None
    ) -> tuple[int | None, int | None]:
        """The initial window of most of each arm's records; None: unknown."""
        first, second = (self._window(arm, since_hour) for arm in (control, treated))
        return first, second

    def _window(self, arm: str, since_hour: int | None) -> int | None:
        seen: Counter[int] = Counter()
        for row in self.rows:
            is_asked = row["arm"] == arm and (since_hour is None or _number(row["hour"]) >= since_hour)
            if is_asked and row.get("window") is not None:
                seen[_number(row["window"])] += _number(row["n"])
        return seen.most_common(1)[0][0] if seen else None

    def experiments(self) -> list[str]:
        return sorted({str(row["experiment"]) for row in self.rows if row["experiment"]})

    def policies(self) -> tuple[str, ...]:
        return tuple(sorted({str(row["policy"]) for row in self.rows if row["policy"]}))

    def days(self) -> list[int]:
        """Days since 1970 in which there are records."""
        return sorted(
            {_number(row["hour"]) * HOUR_NS // DAY_NS for row in self.rows if row["hour"] is not None}
        )

    def switch_hour(self, control: str, treated: str) -> int | None:
        """The first hour in which the arms' controllers differ, if before it they were known to be the same
        for a time.
        """
        by_hour: dict[int, dict[str, Counter[str]]] = {}
        for row in self.rows:
            if row["hour"] is not None:
                arms = by_hour.setdefault(_number(row["hour"]), {})
                arms.setdefault(str(row["arm"]), Counter())[known_controller(row["cc"])] += _number(row["n"])
        is_same_before = False
        for hour in sorted(by_hour):
            arms = by_hour[hour]
            if control not in arms or treated not in arms:
                continue
            used = [_most(arms[arm]) for arm in (control, treated)]
            relation = controllers_relation(*used)
            if relation == "different":
                return hour if is_same_before else None
            is_same_before = is_same_before or relation == "equal"
        return None

    def is_laboratory(self) -> bool:
        """Whether all records are of the laboratory, where arms repeat the same runs."""
        return {row["engine"] for row in self.rows} <= set(LABORATORY)

    def span(self) -> str:
        """First and last hour with records, in words; empty without times."""
        hours = [_number(row["hour"]) for row in self.rows if row["hour"] is not None]
        if not hours:
            return ""
        first, last = (date(hour * HOUR_NS, "%Y-%m-%d %H:00") for hour in (min(hours), max(hours)))
        return f"{first} to {last} UTC"

    def has_unequal_shares(
        self, arms: tuple[str, str], since_hour: int | None, until_hour: int | None
    ) -> bool:
        """Whether recorded propensities differ. Equal shares of both arms that change with time are left out:
        there, plain sums compare the same clients and times.
        """
        of_arm: dict[str, list[float]] = {arm: [] for arm in arms}
        of_hour: dict[int, list[float]] = {}
        records: Counter[int] = Counter()
        for row in self.rows:
            arm, hour = str(row["arm"]), _number(row["hour"])
            is_before = since_hour is not None and hour < since_hour
            is_after = until_hour is not None and hour >= until_hour
            if arm in of_arm and row["lowest"] is not None and not is_before and not is_after:
                ends = [float(str(row[end])) for end in ("lowest", "highest")]
                of_arm[arm] += ends
                of_hour.setdefault(hour, []).extend(ends)
                records[hour] += _number(row["n"])
        mixed = sum(records[hour] for hour, ends in of_hour.items() if _differ(ends))
        return any(map(_differ, of_arm.values())) and mixed > MIXED * records.total()

    def shares_by_day(self, treated: str) -> dict[int, float]:
        """The treated arm's recorded propensity on each day since 1970, where all its records have the same.

        Where it differs within a day, its mean moves with the mix of records and is not a step of the design.
        """
        days: dict[int, list[tuple[float, float]]] = {}
        for row in self.rows:
            if row["hour"] is not None and row["arm"] == treated and row["lowest"] is not None:
                ends = float(str(row["lowest"])), float(str(row["highest"]))
                days.setdefault(_number(row["hour"]) * HOUR_NS // DAY_NS, []).append(ends)
        spans = {day: (min(e[0] for e in ends), max(e[1] for e in ends)) for day, ends in days.items()}
        return {day: low for day, (low, high) in sorted(spans.items()) if not _differ((low, high))}


def _differ(shares: Sequence[float]) -> bool:
    return bool(shares) and max(shares) > SAME_SHARE * min(shares) + 1 / PROPENSITY_STEPS


def known_controller(name: object) -> str:
    """The controller that a record names; empty if it names none."""
    text = "" if name is None else str(name).strip()
    return "" if text.casefold() in PLACEHOLDERS else text


def _most(seen: Counter[str]) -> str:
    return seen.most_common(1)[0][0] if seen else ""


def _share_of_most(seen: Counter[str]) -> float:
    return seen[_most(seen)] / max(seen.total(), 1)


def controllers_relation(control: str, treated: str) -> Relation:
    """Whether two arms run the same controller. One that is unknown (empty) equals no other."""
    if not control or not treated:
        return "unknown"
    return "equal" if control.casefold() == treated.casefold() else "different"


def is_laboratory_table(columns: Collection[str]) -> bool:
    """Whether these are the columns of `objects.parquet`, without an engine (docs/reference/results.md)."""
    objects = {"group", "seed", "flow", "start_ns"}
    return objects <= set(columns) and not {"engine", "service_start_unix_ns"} & set(columns)


@dataclass(frozen=True)
class UnitCounts:
    """Units of the two arms. Each unit is counted once."""

    control: Mapping[float | None, int]
    """Units with records in this arm alone, by their lowest recorded propensity; None: not recorded.

    A unit of an arm that grew was in it all the time with the probability of the smallest share.
    """
    treated: Mapping[float | None, int]
    both: int
    """Units with records in both arms."""


def unit_counts(
    records: ir.Table, plan: ReducePlan, by: tuple[str, ...], run: Run
) -> dict[tuple[str, ...], UnitCounts]:
    """Units of the plan's two arms by the values of `by`; nothing if the records name no unit."""
    if plan.unit not in records.columns or plan.arms is None:
        return {}
    scope = in_scope(records, plan)
    t, columns = Columns(scope), set(records.columns)
    keys = {f"key{n}": key_column(name, columns) for n, name in enumerate(by)}
    arm = t[plan.arm].cast("string")
    rows = scope.select(
        **{name: key.value(t) for name, key in keys.items()},
        unit=scope[plan.unit],
        is_control=(arm == plan.arms[0]).cast("int64"),
        is_treated=(arm == plan.arms[1]).cast("int64"),
        share=(t["arm_propensity"] * PROPENSITY_STEPS).round().cast("int64"),
    ).filter(lambda r: r.unit.notnull() & ((r.is_control + r.is_treated) > 0))
    per_unit = rows.group_by([*keys, "unit"]).aggregate(
        control=rows.is_control.max(), treated=rows.is_treated.max(), share=rows.share.min()
    )
    query = per_unit.group_by([*keys, "control", "treated", "share"]).aggregate(n=per_unit.count())
    found: dict[tuple[str, ...], list[Row]] = {}
    for row in run(query).to_pylist():
        value = tuple(UNKNOWN if row[name] is None else key.text(row[name]) for name, key in keys.items())
        found.setdefault(value, []).append(row)
    return {value: _unit_counts(rows) for value, rows in sorted(found.items())}


def _unit_counts(rows: list[Row]) -> UnitCounts:
    arms: tuple[Counter[float | None], Counter[float | None]] = (Counter(), Counter())
    both = 0
    for row in rows:
        if row["control"] and row["treated"]:
            both += _number(row["n"])
            continue
        share = None if row["share"] is None else _number(row["share"]) / PROPENSITY_STEPS
        arms[_number(row["treated"])][share] += _number(row["n"])
    return UnitCounts(arms[0], arms[1], both)


def _number(value: object) -> int:
    return int(str(value)) if value is not None else 0


def _initial_window(table: ir.Table) -> ir.Value:
    """In packets where a record has them, else in bytes; null: unknown."""
    names = [name for name in ("service_initial_window", "start_window_bytes") if name in table.columns]
    values = [table[name].cast("int64") for name in names]
    return ibis.coalesce(*values) if values else ibis.null().cast("int64")


def traffic(records: ir.Table, run: Run, *, arm: str = "arm", experiment: str | None = None) -> Traffic:
    """One scan of a few columns. `records` has the canonical columns."""
    if arm not in records.columns:
        raise InputError(f"--arm {arm}", f"no column {arm!r}", available(arm, records.columns))
    table = records.filter(records[arm].notnull())
    if experiment:
        table = table.filter(table["arm_experiment"] == experiment)
    grouped = table.group_by(
        hour=KEYS["block"].value(table),
        arm=table[arm].cast("string"),
        cc=table["cc"],
        experiment=table["arm_experiment"],
        policy=table["choice_policy"],
        engine=table["engine"],
        window=_initial_window(table),
    ).aggregate(
        n=rollups.count(table), lowest=table["arm_propensity"].min(), highest=table["arm_propensity"].max()
    )
    rows = run(grouped).to_pylist()
    rows.sort(
        key=lambda row: tuple(
            str(row[name]) for name in ("hour", "arm", "cc", "experiment", "policy", "engine", "window")
        )
    )
    if not rows:
        _raise_no_rows(records, run, arm, experiment)
    return Traffic(tuple(rows), any(row["hour"] is not None for row in rows))


def _raise_no_rows(records: ir.Table, run: Run, arm: str, experiment: str | None) -> None:
    """Which step left nothing: reading, the experiment, or the column of arms."""
    total = int(run(records.aggregate(n=records.count())).to_pylist()[0]["n"])
    if not total:
        raise InputError("records", "there are no rows", "check the files, --where, and what import rejects")
    if experiment:
        of = records["arm_experiment"]
        found = run(records.filter(of.notnull()).select(name=of).distinct())["name"].to_pylist()
        problem = f"none of {total:,} records is of this experiment"
        raise InputError(f"--experiment {experiment}", problem, available(experiment, sorted(found)))
    remedy = "name the column of arms with --arm, such as --arm cc"
    raise InputError("records", f"none of {total:,} has a value in the column {arm!r}", remedy)


def sources(records: ir.Table, run: Run, metrics: Mapping[str, object]) -> dict[str, str]:
    """The worst source that more than 1 % of the records of each metric have; see `schema.SOURCES`."""
    from uncork.measure.metrics import METRICS
    from uncork.measure.schema import SOURCES

    known = {name: METRICS[name].value(records).notnull() for name in metrics}
    if not known:
        return {}
    if rollups.has_rollups(records):
        is_rolled = rollups.is_rolled(records)
        numbers = {
            name: ibis.ifelse(is_rolled, rollups.known(records, name), is_known.cast("int64"))
            for name, is_known in known.items()
        }
        rows = records.select(source=records["source"], **numbers)
        query = rows.group_by("source").aggregate(
            **{name: rows[name].sum().fill_null(0).cast("int64") for name in known}
        )
    else:
        query = records.group_by(source=records["source"]).aggregate(
            **{name: records.count(where=is_known) for name, is_known in known.items()}
        )
    counted = run(query).to_pylist()
    found: dict[str, str] = {}
    for name in metrics:
        everything = sum(_number(row[name]) for row in counted)
        some = {
            str(row["source"]) for row in counted if row["source"] and _number(row[name]) > 0.01 * everything
        }
        worst = [source for source in SOURCES if source in some]
        if worst:
            found[name] = worst[-1]
    return found
