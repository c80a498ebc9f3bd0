"""Small queries about the experiment itself: who ran what when, and with which share."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Mapping
from dataclasses import dataclass

import ibis.expr.types as ir
import pyarrow as pa

from uncork_experiment.errors import InputError
from uncork_experiment.keys import DAY_NS, HOUR_NS, KEYS

Run = Callable[[ir.Table], pa.Table]
Row = dict[str, object]


@dataclass(frozen=True)
class Traffic:
    """Rows by hour, arm and controller: enough to tell the arms, the switch and the days."""

    rows: tuple[Row, ...]
    has_time: bool

    def arms(self) -> list[str]:
        """All arms, in alphabetical order."""
        return sorted({str(row["arm"]) for row in self.rows})

    def controller(self, arm: str, since_hour: int | None = None) -> str:
        """What was in force in most of the arm's records."""
        seen: Counter[str] = Counter()
        for row in self.rows:
            if row["arm"] == arm and (since_hour is None or _number(row["hour"]) >= since_hour):
                seen[str(row["cc"] or "")] += _number(row["n"])
        return seen.most_common(1)[0][0] if seen else ""

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
        """The first hour in which the arms' controllers differ, if before it they were the same for a
        time.
        """
        by_hour: dict[int, dict[str, Counter[str]]] = {}
        for row in self.rows:
            if row["hour"] is not None:
                arms = by_hour.setdefault(_number(row["hour"]), {})
                arms.setdefault(str(row["arm"]), Counter())[str(row["cc"] or "")] += _number(row["n"])
        same_before = False
        for hour in sorted(by_hour):
            arms = by_hour[hour]
            if control not in arms or treated not in arms:
                continue
            differs = arms[control].most_common(1)[0][0] != arms[treated].most_common(1)[0][0]
            if differs:
                return hour if same_before else None
            same_before = True
        return None

    def share(self, treated: str, since_hour: int | None) -> float:
        """The treated arm's mean propensity, or its share of the records where none was recorded."""
        rows = [row for row in self.rows if since_hour is None or _number(row["hour"]) >= since_hour]
        return _share(rows, treated)

    def shares_by_day(self, treated: str) -> dict[int, float]:
        """The same for each day since 1970."""
        days: dict[int, list[Row]] = {}
        for row in self.rows:
            if row["hour"] is not None:
                days.setdefault(_number(row["hour"]) * HOUR_NS // DAY_NS, []).append(row)
        return {day: _share(rows, treated) for day, rows in sorted(days.items())}


def _share(rows: list[Row], treated: str) -> float:
    own = [row for row in rows if row["arm"] == treated]
    count = sum(_number(row["n"]) for row in own)
    known = [row for row in own if row["propensity"] is not None]
    if known:
        weights = sum(_number(row["n"]) for row in known)
        return sum(float(str(row["propensity"])) * _number(row["n"]) for row in known) / weights
    everything = sum(_number(row["n"]) for row in rows)
    return count / everything if everything else 0.0


def _number(value: object) -> int:
    return int(str(value)) if value is not None else 0


def traffic(records: ir.Table, run: Run, *, arm: str = "arm", experiment: str | None = None) -> Traffic:
    """One scan of a few columns. `records` has the canonical columns."""
    table = records.filter(records[arm].notnull())
    if experiment:
        table = table.filter(table["arm_experiment"] == experiment)
    grouped = table.group_by(
        hour=KEYS["block"].value(table),
        arm=table[arm].cast("string"),
        cc=table["cc"],
        experiment=table["arm_experiment"],
        policy=table["choice_policy"],
    ).aggregate(n=table.count(), propensity=table["arm_propensity"].mean())
    rows = run(grouped).to_pylist()
    rows.sort(key=lambda row: tuple(str(row[name]) for name in ("hour", "arm", "cc", "experiment", "policy")))
    if not rows:
        what = f"of the experiment {experiment!r}" if experiment else f"with a value in the column {arm!r}"
        raise InputError(
            "records", f"there are none {what}", "name the column of arms with --arm, such as --arm cc"
        )
    return Traffic(tuple(rows), any(row["hour"] is not None for row in rows))


def sources(records: ir.Table, run: Run, metrics: Mapping[str, object]) -> dict[str, str]:
    """The worst source that more than 1 % of the records of each metric have; see `schema.SOURCES`."""
    from uncork_experiment.metrics import METRICS
    from uncork_experiment.schema import SOURCES

    found: dict[str, str] = {}
    for name in metrics:
        value = METRICS[name].value(records)
        rows = records.filter(value.notnull())
        counted = run(rows.group_by(source=rows["source"]).aggregate(n=rows.count())).to_pylist()
        everything = sum(_number(row["n"]) for row in counted)
        some = {
            str(row["source"]) for row in counted if row["source"] and _number(row["n"]) > 0.01 * everything
        }
        worst = [source for source in SOURCES if source in some]
        if worst:
            found[name] = worst[-1]
    return found
