"""One version: from its inputs to the bytes of its files, without clock, network or chance."""

from __future__ import annotations

import csv
import io
import json
import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, fields
from operator import attrgetter

import pyarrow as pa

from uncork_experiment.errors import InputError
from uncork_experiment.learn import guardrails, tablefile
from uncork_experiment.learn.changes import told
from uncork_experiment.learn.decide import Before, Decision, State, View, decide
from uncork_experiment.learn.evidence import sections
from uncork_experiment.learn.guardrails import Watched
from uncork_experiment.learn.lift import lifts
from uncork_experiment.learn.settings import Overrides, Settings

DECISIONS, GUARDRAILS, POLICY, CHANGES = "decisions.csv", "guardrails.json", "policy.toml", "changes.txt"


@dataclass(frozen=True)
class Inputs:
    """All that a version follows from."""

    version: int
    settings: Settings
    overrides: Overrides
    before: Sequence[Decision]
    """The decisions of the version in force when it was made; none before the first."""
    before_as_of: int | None
    evidence: pa.Table


def files(inputs: Inputs) -> dict[str, str]:
    """The texts of the version's files by name. The same inputs give the same bytes."""
    settings = inputs.settings
    views = [
        View(section, found, guardrails.of_section(section, settings, found.hierarchy))
        for section in sections(inputs.evidence, settings)
        if (found := lifts(section, settings)) is not None
    ]
    if not views:
        raise InputError(
            "records",
            f"the experiment {settings.experiment!r} has no records with a client network in the window",
            "check --experiment and --until",
        )
    days = 1 if inputs.before_as_of is None else max(settings.as_of - inputs.before_as_of, 0)
    allowance = min(settings.changed * days, 1.0)
    decisions = decide(views, settings, inputs.overrides, states(inputs.before), allowance)
    names = [(view.section.name, view.section.place, view.section.of_class) for view in views]
    return {
        DECISIONS: to_csv(decisions),
        GUARDRAILS: _watched({view.section.name: view.guardrails for view in views}),
        POLICY: tablefile.policy(inputs.version, names, settings),
        tablefile.table_name(inputs.version): tablefile.table(inputs.version, decisions, settings),
        CHANGES: told(inputs.version, decisions, inputs.before, settings),
    }


def states(decisions: Sequence[Decision]) -> Before:
    """What each entry has."""
    return {(one.section, one.key): State(one.arm, one.since) for one in decisions}


def to_csv(decisions: Sequence[Decision]) -> str:
    """All decisions, for people, spreadsheets and the next version."""
    out = io.StringIO()
    writer = csv.writer(out, lineterminator="\n")
    writer.writerow([field.name for field in fields(Decision)])
    values = attrgetter(*(field.name for field in fields(Decision)))
    writer.writerows(map(_plain, values(one)) for one in decisions)
    return out.getvalue()


def of_csv(text: str) -> list[Decision]:
    """The decisions that `to_csv` wrote."""
    found = []
    for row in csv.DictReader(io.StringIO(text)):
        values: dict[str, object] = dict(row)
        for field in fields(Decision):
            kind = str(field.type)
            if kind == "int":
                values[field.name] = int(row[field.name])
            elif kind.startswith("float"):
                values[field.name] = float(row[field.name]) if row[field.name] else None
        found.append(Decision(**values))  # type: ignore[arg-type]
    return found


def _plain(value: object) -> object:
    """Floats in six digits, so that a decision reads the same on every machine."""
    if isinstance(value, float):
        return f"{value:.6g}" if math.isfinite(value) else ""
    return "" if value is None else value


def _watched(found: Mapping[str, Mapping[str, tuple[Watched, ...]]]) -> str:
    document = {
        section: {
            key: [{name: _rounded(value) for name, value in vars(one).items()} for one in watched]
            for key, watched in sorted(of.items())
        }
        for section, of in sorted(found.items())
    }
    return json.dumps(document, ensure_ascii=False, indent=1) + "\n"


def _rounded(value: object) -> object:
    return float(f"{value:.6g}") if isinstance(value, float) else value
