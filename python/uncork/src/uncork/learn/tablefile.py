"""The files that a server reads: the policy, and the table of networks (docs/reference/policy.md)."""

from __future__ import annotations

import hashlib
import io
import json
import re
from collections.abc import Iterator, Sequence
from datetime import UTC, datetime

import numpy as np
import pyarrow as pa

from uncork.experiment.policyfile import Arm, PolicyPlan, ab_policy, bare
from uncork.learn import networks
from uncork.learn.decisions import ABSENT, Bools, Decisions, Ints, Texts, places
from uncork.learn.defaults import LARGE
from uncork.learn.entries import ALL_CLIENTS, LEVELS, REGION, level_of
from uncork.learn.settings import HOLDBACK, LIMIT_TEXT, TABLE_RULE, UNIT_RULE, Settings
from uncork.measure.assignment import settings_lines


def table(version: int, decisions: Decisions, settings: Settings) -> str:
    """The text of the table. Networks that have the arm of their AS, country or all clients are left out only
    if that is the control arm, so that a server without a database of ASes knows all that are switched on.
    """
    # Written line by line, and by index: copies of a million networks do not fit into memory.
    text = io.StringIO()
    text.write(f"uncork-table 1\nversion {version}\nmade {instant(settings.as_of)}\n")
    text.write(f"expires {instant(settings.as_of + settings.ttl)}\n")
    for section in decisions.sections:
        text.write(f"section {section}\n")
        own = np.flatnonzero(decisions.section == section)
        for key, arm in _lines(decisions, own, settings):
            text.write(f"{key} {arm}\n")
    text.write(f"sha256 {hashlib.sha256(text.getvalue().encode()).hexdigest()}\n")
    return text.getvalue()


def _lines(decisions: Decisions, own: Ints, settings: Settings) -> Iterator[tuple[str, str]]:
    """Wide entries first, then networks by address. A server does not know the names of regions: their
    networks stand for them.
    """
    key, arm, level = decisions.key[own], decisions.arm[own], decisions.level[own]
    is_network, is_region = level == "network", level == REGION
    wide = np.flatnonzero(~is_network & ~is_region).tolist()
    for at in sorted(wide, key=lambda at: _wide_order(str(key[at]))):
        yield key[at], arm[at]
    needed = _is_needed(key, arm, decisions.parent[own], settings)
    if settings.inside:
        needed |= _is_of_a_person(decisions.where(own), settings)
    some = np.flatnonzero(is_network & needed)
    names, arms = key[some], arm[some]
    if is_region.any() and (arm[~is_network] != settings.control).any():
        of_region = dict(zip(key[is_region].tolist(), arm[is_region].tolist(), strict=True))
        seen = set(names.tolist())
        more = [(one, of_region[name]) for one, name in settings.regions.items() if name in of_region]
        more = [(one, its) for one, its in more if one not in seen]
        names = np.append(names, np.array([one for one, _ in more], dtype=np.object_))
        arms = np.append(arms, np.array([its for _, its in more], dtype=np.object_))
    for at in networks.parse_all(pa.array(names, pa.string())).order().tolist():
        yield names[at], arms[at]


def _wide_order(key: str) -> tuple[bool, bool, int, str]:
    is_system = level_of(key) == "AS"
    return key != ALL_CLIENTS, is_system, int(key[2:]) if is_system else 0, key


def _is_needed(key: Texts, arm: Texts, parent: Texts, settings: Settings) -> Bools:
    """Which entries do not have the control arm, or have a wider one that does not."""
    needed = arm != settings.control
    at = places(parent, key)
    for _ in LEVELS:
        needed = needed | ((at != ABSENT) & needed[at])
    return np.asarray(needed, dtype=np.bool_)


def _is_of_a_person(own: Decisions, settings: Settings) -> Bools:
    """Pinned networks, frozen ones without own traffic, and the networks in these that the table would
    otherwise give their arm.
    """
    found = (own.level == "network") & (
        (own.reason == "pinned") | ((own.reason == "frozen") & (own.share == 0))
    )
    around = own.key[found & (own.arm != settings.control)].tolist()
    if around:
        columns = networks.parse_all(pa.array(own.key, pa.string()))
        for name in around:
            found |= columns.within(networks.parse(name))
    return np.asarray(found, dtype=np.bool_)


def policy(version: int, sections: Sequence[tuple[str, str, str]], settings: Settings) -> str:
    """The policy: own rules, sites, holdback, random share, table. `sections`: (name, place, class)."""
    control, treated, *others = (
        Arm(name, settings.arms[name]) for name in (settings.control, *settings.candidates)
    )
    conditions = {"listener": settings.listener} if settings.listener else {}
    where = [f"{key} = {json.dumps(value)}" for key, value in conditions.items()]
    plan = PolicyPlan(
        name=settings.experiment,
        control=control,
        treated=treated,
        others=tuple(others),
        key=settings.key,
        unit=settings.unit,
        share=settings.random or 1.0,
    )
    head, _, experiment = ab_policy(plan).partition("\n\n")
    random_, _, _ = experiment.partition("[[rule]]")
    experiments = [HOLDBACK, *([settings.experiment] if settings.random else [])]
    lines = [
        f"# Version {version}. Made by uncork learn; see: uncork learn history",
        head.splitlines()[-1],
        "",
        "[default]",
        *_settings(control),
        "",
        "# Never changes: what it brings is measured against this share.",
        f"[experiment.{HOLDBACK}]",
        f"unit = {json.dumps(settings.unit)}",
        f'share = "{settings.holdback * 100:g}%"',
        "",
        f"[experiment.{HOLDBACK}.arm.{bare(control.name)}]",
        *_settings(control),
        "",
    ]
    if settings.random:
        why = "# Stays random, so that the table can be checked and follows what changes."
        lines += [why, random_.rstrip(), ""]
    lines += [
        "[table]",
        f'file = "{table_name(version)}"',
        "",
    ]
    for arm in (control, treated, *others):
        lines += [f"[table.arm.{bare(arm.name)}]", *_settings(arm), ""]
    if settings.rules:
        lines += [settings.rules.strip(), ""]
    if settings.sites:
        lines += [
            "[[rule]]",
            'name = "between sites"',
            f"client = {json.dumps(list(settings.sites))}",
            f"use = {{ {', '.join(_settings(control))} }}",
            "",
        ]
    for experiment_name in experiments:
        lines += ["[[rule]]", *where, f"experiment = {json.dumps(experiment_name)}", ""]
    for name, place, of_class in sections:
        bound = "min" if of_class == LARGE else "below"
        own = [*where, *([f"{settings.place} = {json.dumps(_literal(place))}"] if settings.place else [])]
        own += [] if settings.only else [f'size = {{ {bound} = "{LIMIT_TEXT}" }}']
        for prefix, condition in _by_unit(settings):
            lines += ["[[rule]]", f"name = {json.dumps(prefix + name)}", *condition, *own]
            lines += [f"table = {json.dumps(name)}", ""]
    return "\n".join(lines)


def _by_unit(settings: Settings) -> list[tuple[str, list[str]]]:
    """How rules of the table are named, and their condition. Clients with the unit have a name of their own
    in records, so that they can be compared with the holdback, which has such clients only.
    """
    if settings.unit_condition is None:
        return [(TABLE_RULE, [])]
    kind, name = settings.unit_condition
    return [(UNIT_RULE, [f'{kind} = {{ {json.dumps(name)} = "*" }}']), (TABLE_RULE, [])]


def _settings(arm: Arm) -> list[str]:
    return settings_lines(arm.settings)


def _literal(name: str) -> str:
    """A pattern that only this name matches."""
    return re.sub(r"([*\\])", r"\\\1", name)


def table_name(version: int) -> str:
    """Each version's has a name of its own, so that a server never mixes two."""
    return f"networks-{version}.table"


def instant(day: int) -> str:
    """A day since 1970 as the time at which it begins."""
    return datetime.fromtimestamp(day * 86_400, UTC).strftime("%Y-%m-%dT%H:%M:%SZ")


def date(day: int) -> str:
    return instant(day)[:10]
