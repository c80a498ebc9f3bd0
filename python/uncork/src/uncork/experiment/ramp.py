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
    name = f"{result['facts']['experiment']}-ramp"
    kept = [(place["key"], place["value"]) for place in [*verdict["worse"], *verdict["broken"]]]
    harmed = [cell for cell in result["cells"] if (cell["key"], cell["value"]) in kept]
    lines = _head(result, ramp, name)
    lines += _arms(name, ramp)
    for key in dict.fromkeys(cell["key"] for cell in harmed):
        values = [cell["value"] for cell in harmed if cell["key"] == key]
        lines += [*_rules(f"harm is proven, by {key}", key, values, _use(ramp.control))]
    experiment = f"experiment = {json.dumps(name)}"
    if verdict["decision"] == "enable" and not harmed:
        lines += ["[[rule]]", f'name = "{ramp.treated.name} for all clients"', experiment, ""]
    else:
        lines += _rules(f"{ramp.treated.name} is better", verdict["key"], verdict["enable"], experiment)
    return "\n".join(lines)


def _usable(result: Mapping[str, Any], ramp: Ramp) -> Mapping[str, Any]:
    verdict = result.get("verdict")
    if not isinstance(verdict, Mapping) or not str(result.get("schema", "")).startswith("experiment-"):
        raise InputError(ramp.source, "not a result of analyze", "name the result.json that analyze -o wrote")
    if not all(isinstance(place, Mapping) for place in [*verdict["worse"], *verdict["broken"]]):
        problem = "an earlier version made it, without the keys of cells with harm"
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
        f"# Steps: {steps}. Go on when `uncork experiment analyze --follow` on the records of this step ends",
        "# without status 1; roll back on status 1. Guardrails that stop it:",
        f"#   {settings.get('guardrails', '')}",
        f"# Made by uncork experiment policy from {ramp.source}; check with: uncork policy check FILE",
        f'key = "{ramp.key}"',
        "",
    ]


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


def _rules(name: str, key: str, values: Sequence[str], then: str) -> list[str]:
    """One rule, or one for each size class."""
    conditions = [_size(value) for value in values] if key == "size_class" else [_condition(key, values)]
    lines: list[str] = []
    for condition in conditions:
        lines += ["[[rule]]", f"name = {json.dumps(name, ensure_ascii=False)}", condition, then, ""]
    return lines


def _condition(key: str, values: Sequence[str]) -> str:
    if key not in EXPRESSED:
        raise InputError(
            f"key {key}", "a policy has no such condition", f"analyse --by one of {', '.join(EXPRESSED)}"
        )
    if "unknown" in values or any(value.startswith("AS0") or value == "AS" for value in values):
        raise InputError(
            f"{key} unknown",
            "a policy cannot name clients of an unknown place",
            "analyse with a database (--geo) or by another key",
        )
    if key == "region":
        codes = [code for value in values for code in COUNTRIES[value].split()]
        return f"country = {json.dumps(codes)}"
    return f"{CONDITIONS[key]} = {json.dumps(list(values), ensure_ascii=False)}"


def _size(value: str) -> str:
    """`size` of a policy: at least `min`, less than `below`."""
    at = SIZE_CLASSES.index(value)
    ends = [f'min = "{SIZE_LIMITS[at - 1] // 1000}kB"'] if at > 0 else []
    ends += [f'below = "{SIZE_LIMITS[at] // 1000}kB"'] if at < len(SIZE_LIMITS) else []
    return f"size = {{ {', '.join(ends)} }}"
