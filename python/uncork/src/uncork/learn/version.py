"""One version: from its inputs to the bytes of its files, without clock, network or chance."""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from functools import partial

import pyarrow as pa

from uncork.learn import confirm, guardrails, harm, sample_ratio, tablefile
from uncork.learn.budget import choices
from uncork.learn.calibration import calibrated
from uncork.learn.changes import summary
from uncork.learn.decide import decide_with_trials
from uncork.learn.decisions import Decisions
from uncork.learn.digits import rounded
from uncork.learn.entries import PreviousArms, View
from uncork.learn.evidence import Section, blocks, places, sections
from uncork.learn.guardrails import WatchedByName
from uncork.learn.settings import Overrides, Settings
from uncork.measure.errors import InputError

DECISIONS, GUARDRAILS, TRIALS = "decisions.parquet", "guardrails.json", "trials.json"
POLICY, CHANGES, BUDGET = "policy.toml", "changes.txt", "budget.json"


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
    each = map(partial(_view, settings), sections(inputs.evidence, settings))
    views = [view for view in each if view is not None]
    if not views:
        raise InputError(
            "records",
            f"the experiment {settings.experiment!r} has no records with a client network in the window",
            "check --experiment and --until",
        )
    ratios = sample_ratio.ratios(inputs.evidence, settings, [view.section.name for view in views])
    views = [replace(view, ratio=ratios.get(view.section.name)) for view in views]
    before = inputs.before()
    days = 1 if inputs.before_as_of is None else max(settings.as_of - inputs.before_as_of, 0)
    allowance = min(settings.changed * days, 1.0)
    decisions, trials = decide_with_trials(
        views,
        settings,
        inputs.overrides,
        before,
        allowance,
        inputs.before_trials,
        blocks(inputs.evidence, settings),
    )
    names = [(view.section.name, view.section.place, view.section.of_class) for view in views]
    watched = _watched({view.section.name: view for view in views})
    # With a million networks, memory is short.
    del views
    _release()
    table = tablefile.table(inputs.version, decisions, settings)
    _, others = places(inputs.evidence, settings)
    changes = summary(inputs.version, decisions, before, settings, trials, ratios, others)
    del before
    _release()
    texts = {
        GUARDRAILS: watched,
        POLICY: tablefile.policy(inputs.version, names, settings),
        tablefile.table_name(inputs.version): table,
        TRIALS: json.dumps(confirm.document(trials), ensure_ascii=False, indent=1) + "\n",
        CHANGES: changes,
        BUDGET: _by_bound(decisions, settings),
    }
    return {DECISIONS: decisions.to_bytes()} | {name: text.encode() for name, text in texts.items()}


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


def _view(settings: Settings, section: Section) -> View | None:
    """The estimates of a section, without the evidence behind them."""
    found = calibrated(section, settings)
    if found is None:
        return None
    return View(
        replace(section, metrics={}),
        found,
        guardrails.of_section(section, settings, found.hierarchy),
        harm.margins(section, settings, found.hierarchy),
    )


def is_same(name: str, one: bytes, other: bytes) -> bool:
    """Whether two files say the same. Of decisions each value counts, because another version of the library
    that writes them may put the same values into other bytes.
    """
    if one == other or name != DECISIONS:
        return one == other
    # Written again by one library: tables with NaN do not equal themselves.
    return Decisions.from_bytes(one).to_bytes() == Decisions.from_bytes(other).to_bytes()


def _watched(views: Mapping[str, View]) -> str:
    """By section: those of entries, those of wide entries without networks that break them alone, and the
    ratio of the arms' units, which evidence of before does not have.
    """
    document = {}
    for section, of in sorted(views.items()):
        document[section] = {
            "entries": _plain(of.guardrails.entries),
            "others": _plain(of.guardrails.others),
            **({sample_ratio.KEY: sample_ratio.document(of.ratio)} if of.ratio else {}),
        }
    return json.dumps(document, ensure_ascii=False, indent=1) + "\n"


def _plain(found: WatchedByName) -> dict[str, list[dict[str, object]]]:
    return {
        key: [{name: rounded(value) for name, value in vars(one).items()} for one in watched]
        for key, watched in sorted(found.items())
    }
