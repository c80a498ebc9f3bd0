"""One version: from its inputs to the bytes of its files, without clock, network or chance."""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import partial

import pyarrow as pa

from uncork.experiment import words
from uncork.experiment.result import Finding
from uncork.learn import checks, confirm, guardrails, harm, monotone, sample_ratio, tablefile
from uncork.learn.budget import choices
from uncork.learn.calibration import calibrated
from uncork.learn.changes import summary
from uncork.learn.decide import decide_with_trials
from uncork.learn.decisions import Decisions
from uncork.learn.digits import rounded
from uncork.learn.entries import PreviousArms, View
from uncork.learn.evidence import Section, blocks, not_guarded, places, sections
from uncork.learn.guardrails import WatchedByName
from uncork.learn.sample_ratio import Ratio
from uncork.learn.settings import Overrides, Settings
from uncork.learn.units import Rows, client_days, planned
from uncork.measure.errors import InputError

DECISIONS, GUARDRAILS, TRIALS = "decisions.parquet", "guardrails.json", "trials.json"
ARMS = "arms.parquet"
"""Of several treated arms the figures of each, as `DECISIONS` has those of one."""
POLICY, CHANGES, BUDGET, CHECKS = "policy.toml", "changes.txt", "budget.json", "checks.json"


@dataclass(frozen=True)
class Inputs:
    """All that a version follows from."""

    version: int
    settings: Settings
    overrides: Overrides
    before: Callable[[], PreviousArms]
    """Reads what entries had by the version that was active before. It is read late: together with the
    evidence of a million networks it does not fit into memory.
    """
    before_as_of: int | None
    before_trials: confirm.Trials
    evidence: pa.Table


def files(inputs: Inputs) -> dict[str, bytes]:
    """The version's files by name. The same inputs give the same bytes."""
    settings = inputs.settings
    views = _views(inputs.evidence, settings)
    if not views:
        raise InputError(
            "records",
            f"the experiment {settings.experiment!r} has no records with a client network in the window",
            "check --experiment and --until",
        )
    ratios = _ratios(inputs.evidence, settings, views)
    views = _with_findings(views, ratios, inputs.evidence, settings)
    before = inputs.before()
    days = 1 if inputs.before_as_of is None else max(settings.as_of - inputs.before_as_of, 0)
    allowance = min(settings.changed * days, 1.0)
    decided = decide_with_trials(
        views,
        settings,
        inputs.overrides,
        before,
        allowance,
        inputs.before_trials,
        blocks(inputs.evidence, settings),
    )
    decisions, trials = decided.decisions, decided.trials
    names = list(
        dict.fromkeys((view.section.name, view.section.place, view.section.of_class) for view in views)
    )
    watched = _watched(views)
    findings = {watched_name(view.section.name, view.arm): view.findings for view in views}
    # With a million networks, memory is short.
    del views
    _release()
    table = tablefile.table(inputs.version, decisions, settings)
    _, others = places(inputs.evidence, settings)
    changes = summary(
        inputs.version,
        decisions,
        before,
        settings,
        trials,
        _said(findings, ratios, inputs.evidence, settings),
        others,
    )
    del before
    _release()
    texts = {
        GUARDRAILS: watched,
        POLICY: tablefile.policy(inputs.version, names, settings),
        tablefile.table_name(inputs.version): table,
        TRIALS: json.dumps(confirm.document(trials), ensure_ascii=False, indent=1) + "\n",
        CHANGES: changes,
        BUDGET: _by_bound(decisions, settings),
        CHECKS: checks.document(findings),
    }
    found = {DECISIONS: decisions.to_bytes()} | {name: text.encode() for name, text in texts.items()}
    return found | ({ARMS: decided.figures.to_bytes()} if settings.others else {})


def _by_bound(decisions: Decisions, settings: Settings) -> str:
    """Of each budget of harm: networks that are on, their share of the bytes, and the expected mean log lift
    over all bytes.
    """
    each = [
        {name: rounded(value) for name, value in vars(one).items()} for one in choices(decisions, settings)
    ]
    return json.dumps(each, indent=1) + "\n"


def _release() -> None:
    """Gives the system back what Arrow keeps of freed memory, which numpy's arrays do not get."""
    pa.default_memory_pool().release_unused()


def _views(evidence: pa.Table, settings: Settings) -> list[View]:
    """Each section with each treated arm, next to control: two arms at a time. A section that lacks the
    records of control and of some treated arm is left out.
    """
    found: list[View] = []
    for arm in settings.candidates:
        of = settings.of(arm)
        each = map(partial(_view, of, client_days(evidence, of)), sections(evidence, of))
        name = arm if settings.others else ""
        found += [replace(view, arm=name) for view in each if view is not None]
    if not settings.others:
        return found
    by_section: dict[str, list[View]] = {}
    for view in found:
        by_section.setdefault(view.section.name, []).append(view)
    whole = [of_arms for of_arms in by_section.values() if len(of_arms) == len(settings.candidates)]
    return [view for of_arms in whole for view in monotone.with_smaller(of_arms, settings)]


def _ratios(evidence: pa.Table, settings: Settings, views: Sequence[View]) -> dict[tuple[str, str], Ratio]:
    """By treated arm and section."""
    found: dict[tuple[str, str], Ratio] = {}
    for arm in dict.fromkeys(view.arm for view in views):
        names = [view.section.name for view in views if view.arm == arm]
        own = sample_ratio.ratios(evidence, settings.of(arm or settings.treated), names)
        found |= {(arm, name): one for name, one in own.items()}
    return found


def _with_findings(
    views: Sequence[View],
    ratios: Mapping[tuple[str, str], Ratio],
    evidence: pa.Table,
    settings: Settings,
) -> list[View]:
    """With the sample ratio of each section, or why it was not compared."""
    of_arms = {view.arm: settings.of(view.arm or settings.treated) for view in views}
    units = {arm: frozenset(client_days(evidence, of)) for arm, of in of_arms.items()}
    plans = {arm: planned(evidence, of) for arm, of in of_arms.items()}
    of_all = checks.check_arms(evidence)

    def with_finding(view: View) -> View:
        found, of = ratios.get((view.arm, view.section.name)), of_arms[view.arm]
        has_units = view.section.name in units[view.arm]
        one = checks.check_ratio(found, plans[view.arm], of, has_units=has_units)
        return replace(view, ratio=found, findings=(one, *view.findings, of_all))

    return [with_finding(view) for view in views]


def _said(
    findings: Mapping[str, Sequence[Finding]],
    ratios: Mapping[tuple[str, str], Ratio],
    evidence: pa.Table,
    settings: Settings,
) -> list[str]:
    """What a plan prints of its checks."""
    if not settings.checked:
        return [one.warning(settings.of(arm)) for (arm, _), one in sorted(ratios.items()) if one.is_mismatch]
    plan = planned(evidence, settings)
    known = [] if plan.source == "recorded" else [f"Sample ratio: compared {plan.words()}."]
    lacking = not_guarded(evidence, settings)
    text = words.not_guarded(lacking) if lacking else ""
    return [*checks.lines(findings), *known, *([f"{text[:1].upper()}{text[1:]}."] if text else [])]


def _view(settings: Settings, units: Mapping[str, Rows], section: Section) -> View | None:
    """The estimates of a section, without the evidence behind them."""
    rows = units.get(section.name)
    balance = checks.check_balance(rows, section, settings)
    cells = checks.check_cells(rows, section)
    section = checks.adjusted(section, balance)
    found = calibrated(section, settings)
    if found is None:
        return None
    return View(
        replace(section, metrics={}),
        found,
        guardrails.of_section(section, settings, found.hierarchy),
        harm.margins(section, settings, found.hierarchy),
        findings=(cells, balance.finding),
        unlike=tuple(cells.numbers) if settings.checked else (),
    )


def is_same(name: str, one: bytes, other: bytes) -> bool:
    """Whether two files say the same. Of decisions each value counts, because another version of the library
    that writes them may put the same values into other bytes.
    """
    if one == other or name not in (DECISIONS, ARMS):
        return one == other
    # Written again by one library: tables with NaN do not equal themselves.
    return Decisions.from_bytes(one).to_bytes() == Decisions.from_bytes(other).to_bytes()


def _watched(views: Sequence[View]) -> str:
    """By section, and by treated arm if there are several: guardrails of entries, those of wide entries
    without networks that break them alone, and the ratio of the arms' units, which evidence of before does
    not have.
    """
    document = {}
    by_name = {watched_name(view.section.name, view.arm): view for view in views}
    for name, of in sorted(by_name.items()):
        document[name] = {
            "entries": _plain(of.guardrails.entries),
            "others": _plain(of.guardrails.others),
            **({sample_ratio.KEY: sample_ratio.document(of.ratio)} if of.ratio else {}),
        }
    return json.dumps(document, ensure_ascii=False, indent=1) + "\n"


def watched_name(section: str, arm: str) -> str:
    """What a section's guardrails are called. No name of a section has a space."""
    return f"{section} {arm}" if arm else section


def _plain(found: WatchedByName) -> dict[str, list[dict[str, object]]]:
    return {
        key: [{name: rounded(value) for name, value in vars(one).items()} for one in watched]
        for key, watched in sorted(found.items())
    }
