"""Metrics of `uncork learn run` in the text format of Prometheus, for node_exporter's textfile collector."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from datetime import datetime

from uncork.learn.settings import Settings
from uncork.learn.store import Store

RESULTS = ("applied", "unchanged", "stopped", "failed", "ended", "waiting")
Series = Sequence[tuple[Mapping[str, str], float]]


def text(
    store: Store, results: Mapping[str, int], succeeded: datetime | None, every: float, seconds: float
) -> str:
    """All families, with those of the active version if there is one."""
    rounds: Series = [({"result": name}, results.get(name, 0)) for name in RESULTS]
    families = [
        _family("rounds_total", "counter", "Rounds since the start.", rounds),
        _gauge("every_seconds", "Time from the start of a round to the start of the next.", every),
        _gauge("round_seconds", "Duration of the last round.", seconds),
        _gauge("stopped", "1 if the kill switch is on.", float(store.is_stopped())),
    ]
    if succeeded is not None:
        families.append(
            _gauge(
                "last_success_timestamp_seconds",
                "Last round without an error, as Unix time.",
                succeeded.timestamp(),
            )
        )
    current = store.current()
    if current is not None:
        families += _of_version(store, current, store.settings(current))
    return "".join(families)


def _of_version(store: Store, number: int, settings: Settings) -> list[str]:
    decisions = store.decisions(number).networks
    of = {arm: decisions.arm == arm for arm in (settings.control, *settings.candidates)}
    count: Series = [({"arm": arm}, int(rows.sum())) for arm, rows in of.items()]
    share: Series = [({"arm": arm}, float(decisions.share[rows].sum())) for arm, rows in of.items()]
    changed = float(decisions.share[decisions.since == settings.as_of].sum())
    watched = store.guardrails(number)
    broken = sum(
        one["state"] == "broken"
        for of in watched.values()
        for entry in of["entries"].values()
        for one in entry
    )
    expires = (settings.as_of + settings.ttl) * 86_400
    return [
        _gauge("version", "Active version.", number),
        _gauge("expires_timestamp_seconds", "Expiry of the active table, as Unix time.", expires),
        _family("networks", "gauge", "Networks by arm, for large and for small objects.", count),
        _family("traffic_share", "gauge", "Share of the bytes by arm of the client's network.", share),
        _gauge("changed_share", "Share of the bytes that changed arm on the last day.", changed),
        _gauge("guardrails_broken", "Broken guardrails of all entries.", broken),
        _gauge(
            "sample_ratio_mismatches",
            "Sections in which an arm lost clients.",
            len(store.mismatches(number)),
        ),
    ]


def _gauge(name: str, about: str, value: float) -> str:
    return _family(name, "gauge", about, [({}, value)])


def _family(name: str, kind: str, about: str, series: Series) -> str:
    lines = [f"# HELP uncork_learn_{name} {about}", f"# TYPE uncork_learn_{name} {kind}"]
    for labels, value in series:
        inside = ",".join(f"{key}={json.dumps(label)}" for key, label in labels.items())
        lines.append(f"uncork_learn_{name}{f'{{{inside}}}' if inside else ''} {value:.16g}")
    return "\n".join(lines) + "\n"
