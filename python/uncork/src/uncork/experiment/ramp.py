"""The policy that a verdict says: an A/B experiment of growing share where the treated arm is enabled.

Both arms have the same weight at every step: the control arm is the holdback, and guardrails compare equals.
"""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from uncork.experiment.policyfile import KEY, Arm, bare
from uncork.measure.assignment import settings_lines
from uncork.measure.errors import InputError
from uncork.measure.metrics import SIZE_CLASSES, SIZE_LIMITS
from uncork.measure.regions import _COUNTRIES as COUNTRIES

STEPS = (0.01, 0.1, 0.5)
"""Share of the clients that the treated arm gets, step by step."""
CONDITIONS = {"country": "country", "asn": "asn", "listener": "listener", "host": "host", "client": "client"}
"""Keys of an analysis that are conditions of a policy's rule."""
Condition = Mapping[str, str | Sequence[str]]
"""Keys of a rule with their values: a list of names, or TOML."""
EXPRESSED = ("region", *CONDITIONS, "size_class")


@dataclass(frozen=True)
class Ramp:
    """What the policy is made of."""

    control: Arm
    treated: Arm
    key: str
    step: float
    """One of `STEPS`."""
    unit: str = "prefix"
    source: str = "result.json"
    """Name of the result, for comments."""


def ramp_policy(result: Mapping[str, Any], ramp: Ramp) -> str:
    """The policy as TOML. Raises InputError where the verdict says no policy."""
    verdict = _usable(result, ramp)
    facts = result["facts"]
    name = f"{facts['experiment']}-ramp"
    kept = [(place["key"], place["value"]) for place in [*verdict["worse"], *verdict["broken"]]]
    harmed = [cell for cell in result["cells"] if (cell["key"], cell["value"]) in kept]
    only = _only(facts["where"])
    control = _use(ramp.control)
    lines = _head(result, ramp, name)
    lines += _arms(name, ramp)
    for key, value in map(_named, facts["exclude"]):
        lines += _rules("left out of the analysis", _conditions(key, [value]), control)
    for key in dict.fromkeys(cell["key"] for cell in harmed):
        values = [cell["value"] for cell in harmed if cell["key"] == key]
        lines += _rules(f"harm is proven, by {key}", _both(only, _conditions(key, values)), control)
    experiment = f"experiment = {json.dumps(name)}"
    if verdict["decision"] == "enable" and not harmed:
        who = "clients of the analysis" if facts["where"] else "all clients"
        lines += _rules(f"{ramp.treated.name} for {who}", only, experiment)
    else:
        where = _both(only, _conditions(verdict["key"], verdict["enable"]))
        lines += _rules(f"{ramp.treated.name} is better", where, experiment)
    return "\n".join(lines)


def _usable(result: Mapping[str, Any], ramp: Ramp) -> Mapping[str, Any]:
    verdict = result.get("verdict")
    if not isinstance(verdict, Mapping) or not str(result.get("schema", "")).startswith("experiment-"):
        raise InputError(ramp.source, "not a result of analyze", "name the result.json that analyze -o wrote")
    if not all(isinstance(place, Mapping) for place in [*verdict["worse"], *verdict["broken"]]):
        problem = "an earlier version made it, without the keys of cells with harm"
        raise InputError(ramp.source, problem, "analyse the records again")
    if not {"where", "exclude"} <= set(result["facts"]):
        problem = "an earlier version made it, without the conditions of the records (--where)"
        raise InputError(ramp.source, problem, "analyse the records again")
    decision = verdict["decision"]
    if decision not in ("enable", "enable some"):
        raise InputError(
            ramp.source,
            f"the verdict is `{decision}`: {verdict['sentence']}",
            "a policy needs the verdict `enable` or `enable some`",
        )
    if not KEY.match(ramp.key):
        raise InputError("--key", "it needs 32 hexadecimal digits", "make one with: openssl rand -hex 16")
    if ramp.step not in STEPS:
        raise InputError("--step", f"{100 * ramp.step:g}% is not a step of the ramp", "write 1%, 10% or 50%")
    return verdict


def _head(result: Mapping[str, Any], ramp: Ramp, name: str) -> list[str]:
    verdict, settings = result["verdict"], result["settings"]
    steps = ", ".join(f"{100 * step:g} %" for step in STEPS)
    return [
        f"# {name}: {ramp.treated.name} for {100 * ramp.step:g} % of clients, the control arm for as many.",
        *(f"# {line}" for line in verdict["sentence"].splitlines()),
        f"# {_measured(result['facts'])}",
        f"# Steps: {steps}. Go on when `uncork experiment analyze --follow` on the records of this step ends",
        "# without status 1; roll back on status 1. Guardrails that stop it:",
        f"#   {settings.get('guardrails', '')}",
        f"# Made by uncork experiment policy from {ramp.source}; check with: uncork policy check FILE",
        f'key = "{ramp.key}"',
        "",
    ]


def _measured(facts: Mapping[str, Any]) -> str:
    """The records that the verdict is of."""
    conditions = [f"--where {one}" for one in facts["where"]] + [
        f"--exclude {one}" for one in facts["exclude"]
    ]
    span = f" of {facts['since']} to {facts['until']}" if facts["since"] else ""
    return f"Measured: records{span}{''.join(f', {one}' for one in conditions)}."


def _arms(name: str, ramp: Ramp) -> list[str]:
    """Both arms together have twice the step's share; what no rule decides has the control's settings."""
    table = f"experiment.{bare(name)}"
    lines = ["[default]", *_settings(ramp.control), ""]
    lines += [f"[{table}]", f"unit = {json.dumps(ramp.unit)}", f'share = "{200 * ramp.step:g}%"', ""]
    for arm in (ramp.control, ramp.treated):
        lines += [f"[{table}.arm.{bare(arm.name)}]", *_settings(arm), ""]
    return lines


def _settings(arm: Arm) -> list[str]:
    return settings_lines(arm.settings)


def _use(arm: Arm) -> str:
    return f"use = {{ {', '.join(_settings(arm))} }}"


def _rules(name: str, conditions: Sequence[Condition], then: str) -> list[str]:
    """A rule for each of the conditions."""
    lines: list[str] = []
    for condition in conditions:
        keys = [f"{key} = {_toml(value)}" for key, value in condition.items()]
        lines += ["[[rule]]", f"name = {json.dumps(name, ensure_ascii=False)}", *keys, then, ""]
    return lines


def _toml(value: str | Sequence[str]) -> str:
    return value if isinstance(value, str) else json.dumps(list(value), ensure_ascii=False)


def _only(where: Sequence[str]) -> list[Condition]:
    """The conditions of the analysis: without any, one that all clients meet."""
    found: list[Condition] = [{}]
    for key, value in map(_named, where):
        found = _both(found, _conditions(key, [value]))
    return found


def _named(condition: str) -> tuple[str, str]:
    """`COLUMN=VALUE` of `--where` as a key of an analysis and its value."""
    column, _, value = condition.rpartition("=")
    key = column.removeprefix("service_")
    return key, f"AS{value}" if key == "asn" and value.isdigit() else value


def _both(some: Sequence[Condition], others: Sequence[Condition]) -> list[Condition]:
    """What meets one of `some` and one of `others`. Raises InputError where nothing does."""
    pairs = [_met(one, other) for one in some for other in others]
    found = [pair for pair in pairs if pair is not None]
    if not found:
        problem = "nothing meets both the conditions of the analysis and those of its cells"
        raise InputError("--where", problem, "analyse again with one condition on each key")
    return found


def _met(one: Condition, other: Condition) -> Condition | None:
    """Both conditions as one, if anything can meet both."""
    found = {**one, **other}
    for key in one.keys() & other.keys():
        if isinstance(one[key], str) or isinstance(other[key], str):
            if one[key] != other[key]:
                return None
            continue
        found[key] = [value for value in other[key] if value in one[key]]
        if not found[key]:
            return None
    return found


def _conditions(key: str, values: Sequence[str]) -> list[Condition]:
    """One condition, or one for each size class."""
    if key not in EXPRESSED:
        remedy = f"analyse --by or --where with {', '.join(EXPRESSED)}"
        raise InputError(f"key {key}", "a policy has no such condition", remedy)
    if "unknown" in values or any(value.startswith("AS0") or value == "AS" for value in values):
        raise InputError(
            f"{key} unknown",
            "a policy cannot name clients of an unknown place",
            "analyse with a database (--geo) or by another key",
        )
    if key == "size_class":
        return [{"size": _size(value)} for value in values]
    if key != "region":
        return [{CONDITIONS[key]: list(values)}]
    if own := [value for value in values if value not in COUNTRIES]:
        problem = "is a region of your own, which a policy does not know"
        remedy = "analyse --by client, country or asn, or write the rule with the region's networks"
        raise InputError(f"region {own[0]}", problem, remedy)
    return [{"country": [code for value in values for code in COUNTRIES[value].split()]}]


def _size(value: str) -> str:
    """`size` of a policy: at least `min`, less than `below`."""
    if value not in SIZE_CLASSES:
        raise InputError(f"size_class {value}", "is not a class", f"there are: {', '.join(SIZE_CLASSES)}")
    at = SIZE_CLASSES.index(value)
    ends = [f'min = "{SIZE_LIMITS[at - 1] // 1000}kB"'] if at > 0 else []
    ends += [f'below = "{SIZE_LIMITS[at] // 1000}kB"'] if at < len(SIZE_LIMITS) else []
    return f"{{ {', '.join(ends)} }}"
