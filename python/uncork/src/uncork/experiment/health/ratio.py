"""Has each arm as many units as were to be assigned to it? (Fabijan et al. 2019)

What was to be assigned is recorded (`arm_propensity`), declared (`--share`) or assumed (equal arms). It is
never the share of the records: a better controller causes more requests, and lost units lose their records.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Final

from uncork.experiment import words
from uncork.experiment.facts import UnitCounts
from uncork.experiment.result import Finding
from uncork.measure.stats.srm import BLOCKS_BELOW, SampleRatio, sample_ratio, weighted_ratio

NAME: Final = "sample ratio"
NO_UNIT: Final = Finding(
    NAME,
    "not run",
    "The records name no unit.",
    "Name the columns of the unit (--unit-columns), or map it ([unit]).",
)

CELLS_BLOCK: Final = 0.1
"""Share of a key's units in cells with a mismatch from which the whole has no verdict either."""

MAX_NAMED: Final = 5

MAX_UNKNOWN: Final = 0.01
"""Part of the units that may lack a propensity where those of the others differ: they are left out."""

CAUSES: Final = (
    "Find out where units are lost or counted twice: a server of one arm fails, records are lost, a bot has "
    "many cookies."
)


@dataclass(frozen=True)
class Planned:
    """The share that was planned."""

    share: float | None
    """Of the treated arm, of the units of both arms; None: each unit has its own propensity."""
    source: str
    """`recorded`, `declared` or `assumed`."""
    problem: str = ""
    """Why what is recorded cannot be, if so."""

    def words(self) -> str:
        """Where the expectation comes from."""
        if self.share is None:
            return "by each unit's recorded propensity"
        percent = f"{100 * self.share:.4g} %"
        return {
            "recorded": f"by the recorded propensities, {percent} treated",
            "declared": f"by --share, {percent} treated",
        }.get(self.source, "to equal arms (assumed: --share declares another share)")

    def remedy(self, otherwise: str) -> str:
        """What to do about a mismatch: an assumed share may be another one."""
        if self.source != "assumed":
            return otherwise
        return f"If another share was planned, declare it: --share 30%. Otherwise: {otherwise}"


def planned(units: UnitCounts, declared: float | None) -> Planned:
    """From `--share` (a fraction), else what is recorded, else equal arms."""
    if declared is not None:
        return Planned(declared, "declared")
    known = [sorted(p for p in arm if p is not None) for arm in (units.control, units.treated)]
    if not all(known):
        return Planned(0.5, "assumed")
    if max(map(len, known)) > 1 and (unknown := _unknown(units)) > MAX_UNKNOWN * _all(units):
        problem = f"{unknown:,} units have no arm_propensity, and those of the others differ"
        return Planned(None, "recorded", problem)
    if min(known[0][0], known[1][0]) <= 0:
        return Planned(None, "recorded", "a unit has the propensity 0, and is in the arm all the same")
    if len(known[0]) > 1 or len(known[1]) > 1:
        return Planned(None, "recorded")
    control, treated = known[0][0], known[1][0]
    if control + treated > 1.001:
        problem = f"the propensities of the arms are {control:g} and {treated:g}, more than 1 together"
        return Planned(treated / (control + treated), "recorded", problem)
    return Planned(treated / (control + treated), "recorded")


def _unknown(units: UnitCounts) -> int:
    return sum(arm.get(None, 0) for arm in (units.control, units.treated))


def _all(units: UnitCounts) -> int:
    return sum(sum(arm.values()) for arm in (units.control, units.treated))


def check_ratio(units: UnitCounts | None, plan: Planned, arms: tuple[str, str]) -> Finding:
    """The units of the whole."""
    name = NAME
    if units is None or not (units.control or units.treated):
        return NO_UNIT
    if plan.problem:
        remedy = "arm_propensity is the probability of the arm that the record's own unit is in."
        return Finding(name, "blocks", f"The plan cannot be: {plan.problem}.", remedy)
    test = _tested(units, plan)
    counts = f"{test.units[0]:,} units of {arms[0]} and {test.units[1]:,} of {arms[1]}"
    counts += f", and {units.both:,} in both arms, not counted" if units.both else ""
    if test.p_value is None:
        return Finding(name, "not run", f"{counts}: {test.reason}.", "Wait for more units.")
    numbers = {"p": test.p_value, "control": float(test.units[0]), "treated": float(test.units[1])}
    if not test.blocks:
        return Finding(
            name, "ok", f"{counts}, as assigned {plan.words()} (p {p_words(test.p_value)}).", "", numbers
        )
    expected = " and ".join(f"{value:,.0f}" for value in test.expected)
    sentence = (
        f"Sample-ratio mismatch: {counts}, where {expected} were to be assigned {plan.words()} (p "
        f"{p_words(test.p_value)})."
    )
    return Finding(name, "blocks", sentence, plan.remedy(CAUSES), numbers)


def check_cells(
    cells: Mapping[str, Mapping[str, UnitCounts]], plan: Planned, skipped: tuple[str, ...] = ()
) -> Finding:
    """The same in each cell, by key and value: a fault of one place hides in the sum.

    All cells of all keys are one family (Bonferroni). `skipped`: by these keys, the arm itself may change the
    number of units. `numbers` has the p-value of each mismatch by `KEY=VALUE`; see `mismatches`.
    """
    name = "sample ratio by cell"
    tests = {
        (key, value): test
        for key, by_value in cells.items()
        for value, units in by_value.items()
        if (test := _tested(units, plan)).p_value is not None
    }
    if plan.problem or not tests:
        why = f"the arms change the units of {', '.join(skipped)}" if skipped else "no cell has enough units"
        return Finding(name, "not run", f"No cell was checked: {why}.")
    bad = sorted(
        (test.p_value, cell, test)
        for cell, test in tests.items()
        if test.p_value is not None and test.p_value * len(tests) < BLOCKS_BELOW
    )
    if not bad:
        return Finding(name, "ok", f"As assigned in each of {len(tests)} cells.", "", {"cells": 0.0})
    of_each = [f"{value} ({test.units[0]:,} and {test.units[1]:,})" for _, (_, value), test in bad]
    named = words.some(of_each, MAX_NAMED)
    sentence = f"Sample-ratio mismatch in {len(bad)} of {len(tests)} cells: units of {named}."
    example = "=".join(bad[0][1])
    remedy = f"Do not use the effects of these cells, and leave them out ({example}). {CAUSES}"
    numbers = {"cells": float(len(bad))} | {f"{key}={value}": p for p, (key, value), _ in bad}
    return Finding(name, _severity(tests, [cell for _, cell, _ in bad]), sentence, remedy, numbers)


def mismatches(findings: tuple[Finding, ...]) -> frozenset[tuple[str, str]]:
    """Key and value of each cell with a mismatch, for the decision about cells."""
    found = [one for one in findings if one.name == "sample ratio by cell"]
    names = [name.partition("=") for one in found for name in one.numbers if "=" in name]
    return frozenset((key, value) for key, _, value in names)


def p_words(value: float) -> str:
    """`= 0.126`, with ends."""
    return "< 0.001" if value < 0.001 else "> 0.99" if value > 0.99 else f"= {value:.3f}"


def _severity(tests: Mapping[tuple[str, str], SampleRatio], bad: list[tuple[str, str]]) -> str:
    """A small cell is left out; one that is a good part of a key's units spoils the whole."""
    for key in {key for key, _ in bad}:
        whole = sum(sum(test.units) for (of, _), test in tests.items() if of == key)
        spoilt = sum(sum(tests[cell].units) for cell in bad if cell[0] == key)
        if spoilt >= CELLS_BLOCK * whole:
            return "blocks"
    return "warning"


def _tested(units: UnitCounts, plan: Planned) -> SampleRatio:
    if plan.share is not None:
        counts = sum(units.control.values()), sum(units.treated.values())
        return sample_ratio(counts, (1 - plan.share, plan.share))
    arms = [{p: n for p, n in arm.items() if p is not None} for arm in (units.control, units.treated)]
    return weighted_ratio(*arms)
