"""Policy files for experiments, as `uncork serve --policy` reads them (docs/reference/policy.md)."""

from __future__ import annotations

import json
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

from uncork.experiment.schedules import Calendar, Span, merged, utc
from uncork.measure.assignment import SLOTS, settings_lines
from uncork.measure.errors import InputError

BARE = re.compile(r"[A-Za-z0-9_-]+\Z")
KEY = re.compile(r"[0-9a-f]{32}\Z")
UNITS = re.compile(r"prefix|(cookie|header):[!#$%&'*+.^_`|~0-9A-Za-z-]+\Z")


@dataclass(frozen=True)
class Arm:
    """An arm and the settings of its connections, such as {"quic": "bbr3", "tcp": "bbr"}."""

    name: str
    settings: Mapping[str, str]
    weight: int = 1


@dataclass(frozen=True)
class PolicyPlan:
    """The content of a policy file."""

    name: str
    """Of the experiment; also its salt."""
    control: Arm
    treated: Arm
    key: str
    """32 hexadecimal digits, the same on all servers."""
    unit: str = "prefix"
    share: float = 1.0
    """Share of the units that take part, in steps of 0.0001."""
    conditions: Mapping[str, str] = field(default_factory=dict)
    """Of the rules, such as {"listener": "public"}."""
    others: tuple[Arm, ...] = ()
    """More treated arms, of an A/B experiment."""


def ab_policy(plan: PolicyPlan) -> str:
    """The policy of an A/B experiment."""
    _check(plan)
    share = f"{plan.share * 100:g}%"
    return "\n".join(
        [
            *_head(plan, "A/B experiment"),
            *_experiment(plan, plan.name, share, (plan.control, plan.treated, *plan.others)),
            "[[rule]]",
            *_conditions(plan.conditions),
            f"experiment = {json.dumps(plan.name)}",
            "",
        ]
    )


def calendar_policy(plan: PolicyPlan, calendar: Calendar, place: str = "listener") -> str:
    """The policy of a design in time. `place` is the condition that names a place: `listener` or `host`.

    Each share has an experiment of its own with the same salt, so records have arm, bucket and propensity.
    """
    _check(plan)
    if place not in ("listener", "host"):
        raise InputError("place", f"`{place}` does not name places", "choose listener or host")
    if plan.share != 1:
        raise InputError("--share", f"a {calendar.kind} moves all traffic", "leave the share out")
    shares = sorted({span.treated for span in calendar.spans})
    names = {share: f"{plan.name}-{_percent(share).replace('.', '-')}" for share in shares}
    lines = _head(plan, f"{calendar.kind}, seed {calendar.seed}")
    for share, name in names.items():
        lines += _experiment(plan, name, "100%", _arms_at(plan, share))
    for span in merged(calendar.spans):
        lines += [*_rule(plan, span, place), f"experiment = {json.dumps(names[span.treated])}", ""]
    return "\n".join(lines)


def _check(plan: PolicyPlan) -> None:
    if not KEY.match(plan.key):
        raise InputError("--key", "it needs 32 hexadecimal digits", "make one with: openssl rand -hex 16")
    if not UNITS.match(plan.unit):
        raise InputError("--unit", f"`{plan.unit}` is not a unit", "write prefix, cookie:NAME or header:NAME")
    if not plan.name or not plan.control.name or not plan.treated.name:
        raise InputError("--name", "an experiment and its arms have names")
    if plan.control.name == plan.treated.name:
        raise InputError("--arm", f"both arms are called `{plan.control.name}`")
    slots = plan.share * SLOTS
    if not 0 < plan.share <= 1 or abs(slots - round(slots)) > 1e-9:
        raise InputError("--share", f"{plan.share:g} is not a share in steps of 0.01 %", "write 10% or 0.25%")


def _head(plan: PolicyPlan, what: str) -> list[str]:
    return [
        f"# {plan.name}: {what}. Made by uncork experiment design; check with: uncork policy check FILE",
        f'key = "{plan.key}"',
        "",
    ]


def _experiment(plan: PolicyPlan, name: str, share: str, arms: Sequence[Arm]) -> list[str]:
    table = f"experiment.{bare(name)}"
    lines = [f"[{table}]", f"unit = {json.dumps(plan.unit)}", f'share = "{share}"']
    lines += [f"salt = {json.dumps(plan.name, ensure_ascii=False)}", ""]
    for arm in arms:
        lines.append(f"[{table}.arm.{bare(arm.name)}]")
        lines += settings_lines(arm.settings)
        lines += [f"weight = {arm.weight}", ""]
    return lines


def _arms_at(plan: PolicyPlan, share: float) -> list[Arm]:
    """The arms by weight; an arm without any traffic is left out."""
    weights = round((1 - share) * SLOTS), round(share * SLOTS)
    arms = zip((plan.control, plan.treated), weights, strict=True)
    return [Arm(arm.name, arm.settings, weight) for arm, weight in arms if weight > 0]


def _rule(plan: PolicyPlan, span: Span, place: str) -> list[str]:
    name = f"{plan.name} {span.place} {_percent(span.treated)}% from {utc(span.since)}"
    return [
        "[[rule]]",
        f"name = {json.dumps(name, ensure_ascii=False)}",
        *_conditions({**plan.conditions, **({place: span.place} if span.place else {})}),
        f"time = {{ since = {utc(span.since)}, until = {utc(span.until)} }}",
    ]


def _conditions(conditions: Mapping[str, str]) -> list[str]:
    return [f"{key} = {json.dumps(value, ensure_ascii=False)}" for key, value in conditions.items()]


def _percent(share: float) -> str:
    return f"{share * 100:g}"


def bare(name: str) -> str:
    """A name as a key of TOML."""
    return name if BARE.match(name) else json.dumps(name, ensure_ascii=False)
