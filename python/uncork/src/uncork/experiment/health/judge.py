"""From counts to findings: what is wrong, how badly, and what to do."""

import math
from collections.abc import Callable, Iterator
from typing import Any, Final

import numpy as np

from uncork.experiment import words
from uncork.experiment.health.arrivals import check_arrivals
from uncork.experiment.health.counts import YEAR_2010, Counts
from uncork.experiment.health.names import same_arm
from uncork.experiment.result import Finding
from uncork.experiment.words import counted, listed
from uncork.measure.cubes import Reduced
from uncork.measure.keys import date

HOUR_NS: Final = 3_600_000_000_000

DUPLICATES: Final = 0.001
"""Share of duplicates from which the verdict is blocked; fewer are a warning."""

HEAVY: Final = (0.05, 0.3)
"""Share of one unit in the records or bytes: a warning, and a block."""

AGAINST: Final = (0.01, 0.1)
"""Share of records with another controller than the chosen one: from which it is a warning, and blocks."""

BY_HASH: Final = "Assign by hash, and do not change weights, key or salt during an experiment."

IMPOSSIBLE: Final = 0.001
"""Share of records with impossible values from which the verdict is blocked."""

RATES: Final = (5e4, 2e10)
"""Bit/s between which large objects are carried, in the geometric mean."""

RTTS: Final = (0.01, 3000.0)
"""Least round-trip times in ms, likewise."""

OVER_BUSY: Final = (0.2, 50.0)
"""Completion time over busy time, likewise."""

MISSING_UNITS: Final = (0.001, 0.05)
"""Share of records without a unit: a warning, and a block."""

MISSING_ARM: Final = 0.01
"""Share of records without an arm from which it is said."""

OUTLIER: Final = 50.0
"""How many times the second unit's share the first one's is, before it is a bot and no heavy tail: of Pareto
tails of index 1.5 one in 350 is so far out."""

BY_CHANCE: Final = 1e-4
"""Probability below which an arm does not lack a listener by chance."""

NEEDS: Final = {
    "compliance": "No record has the chosen controller (choice_cc).",
    "clocks": "No record has a time (service_start_unix_ns).",
    "units of measure": "There are fewer than 20 large objects.",
    "missing units": "The records name no unit.",
    "one client": "The records name no unit.",
    "one arm per unit": "The records name no unit.",
    "arrival times": "The records have no units with times.",
    "shared connections": "No record has its connection (flow, start_ns, service_start_unix_ns).",
    "policy": "No record has its policy (choice_policy).",
}
"""Checks that records may not allow, and what they lack."""

NOT_NANOSECONDS: Final = (
    "service_start_unix_ns counts nanoseconds: convert seconds, milliseconds or microseconds, or map the "
    "column (--mapping)."
)
"""The usual cause of records that are all of 1970."""

FACTOR: Final = 300.0
"""How far a group may be from the others, before its unit is in doubt."""


def judge(counts: Counts, now_ns: int | None = None) -> tuple[Finding, ...]:
    """All findings; what was checked and is well has one, too."""
    if not counts.rows:
        return (_finding("records", "blocks", "There are no records.", "Check paths, --since and --until."),)
    checks: tuple[Callable[[], Finding | None], ...] = (
        lambda: _missing_arm(counts),
        lambda: _compliance(counts),
        lambda: _duplicates(counts),
        lambda: _numbers(counts),
        lambda: _contradictions(counts),
        lambda: _clocks(counts, now_ns),
        lambda: _units_of_measure(counts),
        lambda: _missing_units(counts),
        lambda: _one_client(counts),
        lambda: _two_arms(counts),
        lambda: _arrivals(counts),
        lambda: _arm_names(counts),
        lambda: _shared_connections(counts),
        lambda: _policy(counts),
        lambda: _sources(counts),
    )
    found = tuple(finding for check in checks if (finding := check()) is not None)
    names = {finding.name for finding in found}
    return (*found, *(_finding(name, "not run", why) for name, why in NEEDS.items() if name not in names))


def empty_cells(reduced: Reduced) -> Finding:
    """Cells in which an arm has no unit (or, where units are unknown, no value)."""
    empty = [" ".join(key) for key, units in reduced.units.items() if (units.sum(axis=1) == 0).any()]
    if not any(units.any() for units in reduced.units.values()):
        empty = []
    numbers = {"empty_cells": float(len(empty)), "cells": float(len(reduced.units))}
    if not empty:
        return _finding("empty cells", "ok", "Every cell has records of every arm.", numbers=numbers)
    sentence = f"In {len(empty)} of {len(reduced.units)} cells an arm has no records: {words.some(empty, 5)}."
    return _finding("empty cells", "warning", sentence, "Such cells get no verdict. Use fewer keys.", numbers)


def _finding(
    name: str, severity: str, sentence: str, remedy: str = "", numbers: dict[str, float] | None = None
) -> Finding:
    return Finding(name, severity, sentence, remedy, numbers or {})


def graded(share: float, limits: tuple[float, float]) -> str:
    """The severity of a share. `limits`: from which it warns and blocks."""
    warning, blocks = limits
    return "blocks" if share >= blocks else "warning" if share >= warning else "ok"


def _percent(share: float) -> str:
    return f"{share:.1%}" if share >= 0.001 else f"{share:.2g}"


def _compared(counts: Counts) -> list[str]:
    """The arms that are compared."""
    found = sorted({row["arm"] for row in counts.arms if row["arm"]})
    return [arm for arm in found if counts.plan.arms is None or arm in counts.plan.arms]


def _missing_arm(counts: Counts) -> Finding:
    arms = _compared(counts)
    expected = sorted({counts.plan.control, *(counts.plan.arms or ())})
    absent = [arm for arm in expected if arm not in arms]
    nameless = sum(row["rows"] for row in counts.arms if row["arm"] is None and row["experiment"] is not None)
    numbers = {"arms": float(len(arms)), "without_arm": float(nameless)}
    remedy = "Check the policy, and that all servers' records were read."
    if absent or len(arms) < 2:
        sentence = (
            f"No record has the arm {absent[0]}." if absent else f"There is one arm only, {' '.join(arms)}."
        )
        return _finding("missing arm", "blocks", sentence, remedy, numbers)
    if gaps := list(_gaps(counts, arms)):
        sentence = f"At {len(gaps)} listeners an arm has no record: {', '.join(gaps[:5])}."
        return _finding("missing arm", "blocks", sentence, remedy, numbers)
    if nameless:
        sentence = f"{nameless} records are of the experiment and name no arm."
        return _finding("missing arm", "warning", sentence, "They are left out.", numbers)
    without = sum(row["rows"] for row in counts.arms if row["arm"] is None)
    in_experiments = any(row["experiment"] is not None for row in counts.arms)
    if not in_experiments and without >= MISSING_ARM * counts.rows:
        sentence = f"{without:,} of {counts.rows:,} records ({_percent(without / counts.rows)}) have no arm."
        remedy = "They are left out. Fine if they were not in the experiment; otherwise find their arm."
        return _finding("missing arm", "warning", sentence, remedy, numbers | {"without_arm": float(without)})
    return _finding("missing arm", "ok", f"All arms have records: {', '.join(arms)}.", numbers=numbers)


def _gaps(counts: Counts, arms: list[str]) -> Iterator[str]:
    """Listeners that an arm lacks, and not by chance: units there are too many; of records without units, a
    thousand.
    """
    by_listener: dict[str, dict[str, tuple[int, int]]] = {}
    for row in counts.arms:
        if row["arm"] in arms and row["listener"] is not None:
            of = by_listener.setdefault(row["listener"], {})
            rows, units = of.get(row["arm"], (0, 0))
            of[row["arm"]] = rows + row["rows"], units + row["units"]
    whole = {arm: sum(of[arm][1] for of in by_listener.values() if arm in of) for arm in arms}
    total = sum(whole.values())
    for listener, of in sorted(by_listener.items()):
        rows, units = (sum(pair[n] for pair in of.values()) for n in (0, 1))
        for arm in arms:
            by_chance = (1 - whole[arm] / total) ** units if total else 0.0
            is_gap = by_chance < BY_CHANCE / len(by_listener) if units else rows >= 1000
            if arm not in of and (is_gap or (not whole[arm] and rows >= 1000)):
                yield f"{arm} at {listener}"


def _compliance(counts: Counts) -> Finding | None:
    arms = _compared(counts)
    by_arm = {arm: [row for row in counts.arms if row["arm"] == arm] for arm in arms}
    shares = {
        arm: sum(row["against"] for row in rows) / chosen
        for arm, rows in by_arm.items()
        if (chosen := sum(row["chosen"] for row in rows))
    }
    if not shares:
        return None
    worst = max(shares, key=lambda arm: shares[arm])
    severity = graded(shares[worst], AGAINST)
    numbers = {"compliant_share": 1 - shares[worst]} | {
        f"compliant_share_{a}": 1 - s for a, s in shares.items()
    }
    if severity == "ok":
        return _finding("compliance", "ok", "The active controllers are the chosen ones.", numbers=numbers)
    sentence = (
        f"Of the arm {worst}, {_percent(shares[worst])} of the records ran another controller than chosen."
    )
    remedy = "A route may lock its controller (congctl lock), or the kernel lack it: see cc and choice_cc."
    return _finding("compliance", severity, sentence, remedy, numbers)


def _duplicates(counts: Counts) -> Finding:
    share = counts.duplicates / max(counts.compared, 1)
    numbers = {"duplicates": float(counts.duplicates), "compared": float(counts.compared)}
    if not counts.duplicates:
        return _finding("duplicates", "ok", "No record is there twice.", numbers=numbers)
    severity = "blocks" if share >= DUPLICATES else "warning"
    sentence = (
        f"{counts.duplicates} of {counts.compared} records are there more than once ({_percent(share)})."
    )
    return _finding(
        "duplicates", severity, sentence, "Was a file read twice, or rotated by copying?", numbers
    )


def _numbers(counts: Counts) -> Finding:
    if not counts.numbers:
        return _finding("impossible values", "ok", "No value is negative, infinite or no number.")
    parts = []
    for name, (below, nan) in sorted(counts.numbers.items()):
        # Values that are no number are -1 or NaN by now (`schema.typed`).
        parts.append(f"{counted(below + nan, 'value')} of {name}")
    worst = max(max(pair) for pair in counts.numbers.values())
    severity = "blocks" if worst / counts.rows >= IMPOSSIBLE else "warning"
    numbers = {name: float(sum(pair)) for name, pair in counts.numbers.items()}
    return _finding("impossible values", severity, f"Negative, infinite or no number: {listed(parts)}.",
                    "They are left out. Repair what writes them.", numbers)  # fmt: skip


def _contradictions(counts: Counts) -> Finding:
    found = {name: count for name, count in counts.impossible.items() if count}
    numbers = {name: float(count) for name, count in found.items()}
    if not found:
        return _finding("contradictions", "ok", "No record contradicts itself.")
    severity = "blocks" if max(found.values()) / counts.rows >= 10 * IMPOSSIBLE else "warning"
    sentence = "; ".join(f"in {count} records {name}" for name, count in found.items())
    return _finding("contradictions", severity, sentence[0].upper() + sentence[1:] + ".",
                    "Units or clocks of one of the two columns are wrong.", numbers)  # fmt: skip


def _clocks(counts: Counts, now_ns: int | None) -> Finding | None:
    first, last, old = (counts.times[name] for name in ("first", "last", "old"))
    if first is None or last is None:
        return None
    numbers = {"first_unix_s": first / 1e9, "last_unix_s": last / 1e9, "before_2010": float(old or 0)}
    remedy = "Set the clocks (NTP), and leave such records out with --since and --until."
    if old and last < YEAR_2010:
        sentence = f"All records are from before 2010, the last of {date(last, '%Y-%m-%d')}."
        return _finding("clocks", "blocks", sentence, NOT_NANOSECONDS, numbers)
    if old:
        sentence = f"{old} records are from before 2010, the first of {date(first, '%Y-%m-%d')}."
        return _finding("clocks", "blocks", sentence, remedy, numbers)
    if now_ns is not None and last > now_ns + HOUR_NS:
        sentence = f"The last record is of {date(last, '%Y-%m-%d %H:%M')} UTC, which is to come."
        return _finding("clocks", "blocks", sentence, remedy, numbers)
    span = f"{date(first, '%Y-%m-%d %H:%M')} to {date(last, '%Y-%m-%d %H:%M')} UTC"
    return _finding("clocks", "ok", f"All records are from {span}.", numbers=numbers)


def _units_of_measure(counts: Counts) -> Finding | None:
    """Large objects at an impossible speed, or a group far from the others: ms for s, and the like."""
    groups = [row for row in counts.scales if row["rows"] >= 20]
    checks = (
        ("rate", "throughput in bit/s", RATES),
        ("rtt_ms", "the least round-trip time in ms", RTTS),
        ("over_busy", "completion over busy time", OVER_BUSY),
    )
    numbers: dict[str, float] = {}
    for column, title, limits in checks:
        known = [row for row in groups if row[column] is not None]
        usual = float(np.median([row[column] for row in known])) if known else 0.0
        for row in known:
            value = float(f"{math.exp(row[column]):.6g}")
            numbers[f"{column} {_group(row)}"] = value
            is_far = len(known) > 1 and abs(row[column] - usual) > math.log(FACTOR)
            is_outside = not limits[0] <= value <= limits[1]
            if is_outside or is_far:
                sentence = f"Of {_group(row)}, {title} of large objects is {value:.3g} in the mean."
                remedy = "Is a time in ms taken for s, or the reverse? Correct the mapping's units."
                severity = "blocks" if is_outside else "warning"
                return _finding("units of measure", severity, sentence, remedy, {column: value})
    return (
        _finding("units of measure", "ok", "Rates and times are plausible.", numbers=numbers)
        if groups
        else None
    )


def _group(row: dict[str, Any]) -> str:
    parts = [row["engine"], row["source"], row["listener"]]
    return " ".join(part for part in parts if part) or "all records"


def _missing_units(counts: Counts) -> Finding | None:
    if not counts.units:
        return None
    missing = counts.units["missing"]
    share = missing / max(missing + counts.units["rows"], 1)
    numbers = {"without_unit": float(missing)}
    if not missing:
        return _finding("missing units", "ok", "Every record has a unit.", numbers=numbers)
    sentence = f"{missing:,} records have no unit ({_percent(share)}), and are left out."
    remedy = "Find out why: a cookie that is refused, a field that is not logged. Lost units may differ."
    severity = "warning" if share < MISSING_UNITS[1] else "blocks"
    return _finding("missing units", severity, sentence, remedy, numbers)


def _one_client(counts: Counts) -> Finding | None:
    units = counts.units
    if not units or not units["units"]:
        return None
    share, what = units["share"], "records" if units["what"] == "rows" else "bytes"
    numbers = {f"share_of_{what}": share}
    # with few units each one has a large share
    if share < max(HEAVY[0], 20 / units["units"]):
        sentence = f"The heaviest client has {_percent(share)} of the {what}."
        return _finding("one client", "ok", sentence, numbers=numbers)
    sentence = f"One client, {units['client']}, has {_percent(share)} of the {what}."
    remedy = "Leave it out if it is a crawler, a proxy or a test."
    severity = "blocks" if share >= HEAVY[1] and share > OUTLIER * units["second"] else "warning"
    return _finding("one client", severity, sentence, remedy, numbers)


def _two_arms(counts: Counts) -> Finding | None:
    units = counts.units
    if not units or not units["units"]:
        return None
    several, number = int(units["several"]), int(units["units"])
    if counts.step:
        since = date(counts.step.at_ns, "%Y-%m-%dT%H:%M:%SZ")
        return two_arms(several, number, _changed(counts), f"Analyse the last share alone: --since {since}.")
    names = ", ".join(units["several_names"])
    return two_arms(several, number, f", such as {names}" if names else "")


def two_arms(several: int, units: int, more: str = "", remedy: str = BY_HASH) -> Finding:
    """How many units are in several arms; `more` ends the sentence with the reason, or with some of them."""
    name, share = "one arm per unit", several / units
    numbers = {"units_in_several_arms": float(several), "units": float(units)}
    if not several:
        return _finding(name, "ok", "Every unit is in one arm.", numbers=numbers)
    sentence = f"{several} of {units} units are in more than one arm ({_percent(share)}){more}."
    return _finding(name, graded(share, (0.0, 0.01)), sentence, remedy, numbers)


def _changed(counts: Counts) -> str:
    """The change of shares that explains units in several arms."""
    assert counts.step is not None
    shares = sorted(item for item in counts.step.shares.items() if item[0] != counts.plan.control)
    changes = [
        f"of {arm} changed from {_percent(before)} to {_percent(after)}" for arm, (before, after) in shares
    ]
    at = date(counts.step.at_ns, "%Y-%m-%d %H:%M:%S")
    return f": the share {listed(changes)} at {at} UTC, and units that returned changed their arm"


def _arrivals(counts: Counts) -> Finding | None:
    arms = counts.plan.arms
    if not counts.arrivals or arms is None or len(arms) != 2:
        return None
    return check_arrivals(counts.arrivals, (arms[0], arms[1]))


def _arm_names(counts: Counts) -> Finding | None:
    """Arms that are left out and look like one that is compared."""
    compared = _compared(counts)
    others = sorted({row["arm"] for row in counts.arms if row["arm"] and row["arm"] not in compared})
    if not others:
        return None
    for arm in compared:
        for other in others:
            if remedy := same_arm([arm, other]):
                sentence = f"The arm {other!r} is left out, and is {arm!r} but for case or blanks."
                return _finding("arm names", "blocks", sentence, remedy[0].upper() + remedy[1:] + ".")
            if when := _replaced(counts, arm, other):
                sentence = f"The arms {arm} and {other} are never there together, and change at {when} UTC."
                remedy = (
                    f'Was {arm} renamed? Give both one name in a mapping (names = {{ "{other}" = "{arm}" }}).'
                )
                return _finding("arm names", "warning", sentence, remedy)
    return _finding("arm names", "ok", f"Arms that are left out: {', '.join(others)}.")


def _replaced(counts: Counts, arm: str, other: str) -> str:
    """When one arm ended and the other began, if they do not overlap; else empty."""
    spans = []
    for name in (arm, other):
        of = [row for row in counts.arms if row["arm"] == name and row["first"] is not None]
        if not of:
            return ""
        spans.append((min(row["first"] for row in of), max(row["last"] for row in of)))
    (_, ended), (began, _) = sorted(spans)
    return date(began, "%Y-%m-%d %H:%M") if ended <= began else ""


def _shared_connections(counts: Counts) -> Finding | None:
    if not counts.leaks or not counts.leaks["connections"]:
        return None
    mixed, connections = counts.leaks["mixed"], counts.leaks["connections"]
    numbers = {name: float(value) for name, value in counts.leaks.items()}
    if not mixed:
        return _finding("shared connections", "ok", "No connection carried several arms.", numbers=numbers)
    share = mixed / connections
    sentence = f"{mixed} of {connections} connections carried requests of several arms ({_percent(share)})."
    remedy = "Give each arm its own address or certificate: HTTP/2 and 3 share connections between names."
    return _finding("shared connections", graded(share, (0.0, 0.01)), sentence, remedy, numbers)


def _policy(counts: Counts) -> Finding | None:
    if not counts.policies:
        return None
    names = sorted({row["policy"] for row in counts.policies}, key=lambda name: _since(counts, name))
    of_arms: dict[str, dict[str, set[float]]] = {}
    for row in counts.policies:
        values = {row["propensity"], row["most"]} - {None}
        of_policy = of_arms.setdefault(row["arm"], {}).setdefault(row["policy"], set())
        of_policy.update(round(value, 6) for value in values)
    shares = {arm: set.union(*of.values()) for arm, of in of_arms.items()}
    moved = sorted(arm for arm, of in of_arms.items() if any(it != shares[arm] for it in of.values() if it))
    several = sorted(arm for arm, values in shares.items() if len(values) > 1)
    numbers = {"policies": float(len(names))} | {
        f"propensities_{arm}": float(len(shares[arm])) for arm in several
    }
    if len(names) < 2:
        sentence = "One policy was active all the time."
        if several:
            sentence += f" Shares of {', '.join(several)} differ between records, which count by propensity."
        return _finding("policy", "ok", sentence, numbers=numbers)
    since = ", ".join(f"{name} from {date(_since(counts, name), '%Y-%m-%d %H:%M')}" for name in names)
    if moved:
        sentence = f"The policy changed ({since}), and with it the share of the arm {', '.join(moved)}."
        remedy = "Analyse each share on its own (--since, --until): units that joined later differ."
        return _finding("policy", "blocks", sentence, remedy, numbers)
    remedy = "Fine if the arms stayed the same. Otherwise analyse each policy on its own (--since, --until)."
    return _finding("policy", "warning", f"The policy changed: {since} UTC.", remedy, numbers)


def _since(counts: Counts, policy: str) -> int:
    return min(
        (row["first"] for row in counts.policies if row["policy"] == policy and row["first"]), default=0
    )


def _sources(counts: Counts) -> Finding | None:
    arms = _compared(counts)
    by_source: dict[str, dict[str, int]] = {}
    engines = {row["engine"] for row in counts.scopes if row["engine"]}
    for row in counts.scopes:
        if row["arm"] in arms:
            found = by_source.setdefault(row["source"] or "unknown", {})
            found[row["arm"]] = found.get(row["arm"], 0) + row["rows"]
    numbers = {f"records_{source}": float(sum(rows.values())) for source, rows in sorted(by_source.items())}
    if {"serve", "watch"} <= engines:
        sentence = "There are records of `serve` and of `host watch`: the same traffic may be in both."
        return _finding("sources", "blocks", sentence, "Read the records of one of them.", numbers)
    if len(by_source) < 2:
        return _finding(
            "sources", "ok", f"All arms were measured alike: {', '.join(by_source)}.", numbers=numbers
        )
    totals = {arm: sum(rows.get(arm, 0) for rows in by_source.values()) for arm in arms}
    shares = {s: [rows.get(arm, 0) / max(totals[arm], 1) for arm in arms] for s, rows in by_source.items()}
    differs = max(max(values) - min(values) for values in shares.values())
    # Of few units each has one source, and the arms differ by chance.
    units = int(counts.units.get("units") or 0) if counts.units else 0
    if differs > max(0.05, 4 / math.sqrt(units) if units else 0.0):
        sentence = f"The arms were not measured alike: {', '.join(sorted(by_source))} in different shares."
        return _finding("sources", "blocks", sentence, "Analyse one source at a time.", numbers)
    severity = "ok" if set(by_source) <= {"client", "acked"} else "warning"
    sentence = f"The arms were measured alike, by several sources: {', '.join(sorted(by_source))}."
    return _finding("sources", severity, sentence, numbers=numbers)
