"""The checks of `uncork experiment analyze` that a plan makes of each section, by the same rules and words.

What they need is counted in the evidence, by day: roll-ups and records give the same.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from numpy.typing import NDArray

from uncork.experiment import words
from uncork.experiment.health import balance, ratio
from uncork.experiment.health.balance import is_beyond_chance
from uncork.experiment.health.judge import two_arms
from uncork.experiment.health.ratio import Planned
from uncork.experiment.result import Finding
from uncork.learn.decisions import Texts, places
from uncork.learn.digits import rounded
from uncork.learn.evidence import PER_CLIENT, SEVERAL, Section, of_metric
from uncork.learn.sample_ratio import LOST, NOTHING, Ratio
from uncork.learn.settings import Settings
from uncork.learn.units import Rows
from uncork.measure.stats.balance import records_per_unit
from uncork.measure.stats.effect import Effect
from uncork.measure.stats.jackknife import MIN_BUCKETS
from uncork.measure.stats.srm import WatchedRatio, watched_ratio

Floats = NDArray[np.float64]

LEVEL = 0.999
"""Of all networks and ASes of a section together, as of the whole."""
MAX_NAMED = 5
OF_BEFORE = Finding(
    balance.NAME,
    "not run",
    "The evidence is of an earlier version: each download counts, and not each client.",
    "Run the query of plan --show-sql again.",
)
BY_CELL, ONE_ARM = "sample ratio by cell", "one arm per unit"
KEEP = "They are not switched on, nor is a network in such an AS."


@dataclass(frozen=True)
class Balance:
    """Whether clients of one arm come more often."""

    finding: Finding
    is_uneven: bool
    """In the section or in a part of it: then guardrails count each client once."""


def check_balance(rows: Rows | None, section: Section, settings: Settings) -> Balance:
    """Records per client-day, of the section and of each network and AS."""
    arms = settings.control, settings.treated
    if rows is None:
        return Balance(balance.UNKNOWN, is_uneven=False)
    if not rows.records.any():
        return Balance(OF_BEFORE, is_uneven=False)
    whole = balance.judged(*_sums(rows), arms, is_adjusted=True)
    if whole.severity != "ok":
        return Balance(whole, is_uneven=whole.severity == "warning")
    parts = [of for names in (rows.network, systems_of(rows, section)) for of in rows.groups(names)]
    level = 1 - (1 - LEVEL) / max(len(parts), 1)
    effects = {name: records_per_unit(*_sums(of), level=level) for name, of in parts}
    uneven = [name for name, one in effects.items() if isinstance(one, Effect) and is_beyond_chance(one)]
    if not uneven:
        return Balance(whole, is_uneven=False)
    sentence = (
        f"Records per unit differ between the arms in {len(uneven)} of "
        f"{words.counted(len(parts), 'network')} and ASes: {words.some(uneven, MAX_NAMED)}."
    )
    return Balance(replace(whole, severity="warning", sentence=sentence, remedy=balance.ADJUSTED), True)


def check_ratio(found: Ratio | None, plan: Planned, settings: Settings, *, has_units: bool) -> Finding:
    """The sample ratio of the section."""
    if not has_units:
        return ratio.NO_UNIT
    if found is None:
        why = f"An arm has units in fewer than {MIN_BUCKETS} buckets."
        return Finding(ratio.NAME, "not run", why, "Wait for more units.")
    numbers = {"ratio": found.ratio, "low": found.low, "high": found.high}
    if found.is_mismatch:
        remedy = f"{NOTHING} {plan.remedy(LOST)}"
        return Finding(ratio.NAME, "blocks", found.mismatch(settings), remedy, numbers)
    sentence = f"{found.away(settings)}, as assigned {plan.words()}."
    return Finding(ratio.NAME, "ok", sentence, numbers=numbers)


def check_arms(evidence: pa.Table) -> Finding:
    """Whether each unit is in one arm, of all sections together."""
    rows = of_metric(evidence, SEVERAL)
    several, units = (pc.sum(rows[name]).as_py() or 0 for name in ("n", "denominator"))
    if not units:
        return Finding(ONE_ARM, "not run", ratio.NO_UNIT.sentence)
    found = two_arms(several, units)
    return replace(found, remedy=f"{NOTHING} {found.remedy}") if found.severity == "blocks" else found


def check_cells(rows: Rows | None, section: Section) -> Finding:
    """The sample ratio of each network and AS: `numbers` has those with a mismatch. A network with one does
    not count for its AS.
    """
    networks = list(rows.groups(rows.network)) if rows is not None else []
    systems = list(rows.groups(systems_of(rows, section))) if rows is not None else []
    tests = len(networks) + len(systems)
    if rows is None or not tests:
        return Finding(BY_CELL, "not run", "No cell was checked: no network and no AS has enough units.")
    bad = _mismatches(networks, tests)
    rest = rows.where(~np.isin(rows.network, list(bad)))
    bad |= _mismatches(rest.groups(systems_of(rest, section)), tests)
    if not bad:
        return Finding(BY_CELL, "ok", f"As assigned in each of {tests} networks and ASes.")
    of_each = [f"{name} ({control:,} and {treated:,})" for name, ((control, treated), _) in bad.items()]
    some = words.some(of_each, MAX_NAMED)
    sentence = f"Sample-ratio mismatch in {len(bad)} of {tests} networks and ASes: client-days of {some}."
    numbers = {name: found.ratio for name, (_, found) in bad.items()}
    return Finding(BY_CELL, "warning", sentence, f"{KEEP} {ratio.CAUSES}", numbers)


def _mismatches(
    parts: Iterable[tuple[str, Rows]], tests: int
) -> dict[str, tuple[tuple[int, int], WatchedRatio]]:
    """Of each part with a mismatch the client-days of the arms, and their ratio to what was dealt."""
    found = {}
    for name, of in parts:
        one = watched_ratio(*of.sums(of.weight * of.n), tests=tests)
        if one is not None and one.is_mismatch:
            control, treated = of.sums(of.n).sum(axis=1).astype(np.int64).tolist()
            found[name] = (control, treated), one
    return found


def adjusted(section: Section, found: Balance) -> Section:
    """The section with the ratios that its guardrails are decided by."""
    once = {
        name.removesuffix(PER_CLIENT): counts
        for name, counts in section.metrics.items()
        if name.endswith(PER_CLIENT)
    }
    each = {name: counts for name, counts in section.metrics.items() if not name.endswith(PER_CLIENT)}
    return replace(section, metrics=each | once if found.is_uneven else each)


def systems_of(rows: Rows, section: Section) -> Texts:
    """Of each row the AS or region to which decisions count its network; empty: unknown."""
    networks, systems = (np.asarray(one, dtype=np.object_) for one in (section.networks, section.system))
    return np.asarray(np.append(systems, "")[places(rows.network, networks)])


def _sums(rows: Rows) -> tuple[Floats, Floats]:
    return rows.sums(rows.weight * rows.records), rows.sums(rows.weight * rows.n)


def lines(of_sections: Mapping[str, Sequence[Finding]]) -> list[str]:
    """What a person must know, of each section; checks that did not run have their reason."""
    by_text: dict[str, list[str]] = {}
    for name, findings in sorted(of_sections.items()):
        for one in findings:
            text = f"{one.sentence} {one.remedy}".rstrip()
            if one.severity == "warning":
                by_text.setdefault(f"{one.name}: {text}", []).append(name)
            elif one.severity == "not run":
                by_text.setdefault(f"{one.name} not run: {text}", []).append(name)
    others = [f"Check of {words.listed(names)}: {text}" for text, names in by_text.items()]
    return [*blocks(of_sections), *others]


def blocks(of_sections: Mapping[str, Sequence[Finding]]) -> list[str]:
    """What holds all of a section back."""
    bad = [one for _, of in sorted(of_sections.items()) for one in of if one.severity == "blocks"]
    return list(dict.fromkeys(f"{one.sentence} {one.remedy}" for one in bad))


def warnings(of_sections: Mapping[str, Sequence[Finding]]) -> list[str]:
    """What a loop without a reader must report: what holds back, and where nothing was compared."""
    lacking = {
        name: [one for one in of if (one.name, one.severity) == (ratio.NAME, "not run")]
        for name, of in of_sections.items()
    }
    return [*blocks(of_sections), *lines(lacking)]


def document(of_sections: Mapping[str, Sequence[Finding]]) -> str:
    """For JSON."""
    found = {
        name: [
            vars(one) | {"numbers": {key: rounded(value) for key, value in one.numbers.items()}}
            for one in findings
        ]
        for name, findings in sorted(of_sections.items())
    }
    return json.dumps(found, ensure_ascii=False, indent=1) + "\n"


def load(document: Mapping[str, Sequence[Mapping[str, object]]]) -> dict[str, list[Finding]]:
    """What `document` wrote."""
    return {name: [Finding(**one) for one in of] for name, of in document.items()}  # type: ignore[arg-type]
