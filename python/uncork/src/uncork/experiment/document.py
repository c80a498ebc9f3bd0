"""The result document: JSON, versioned. Its schema is docs/schemas/experiment-1.json."""

from __future__ import annotations

import json
import math
from collections.abc import Mapping
from dataclasses import fields, is_dataclass

from uncork import __version__
from uncork.experiment.result import Analysis, Measure, Verdict

SCHEMA = "experiment-1"


def document(analysis: Analysis, verdict: Verdict, command: str) -> dict[str, object]:
    """All that the page shows. `command` repeats it."""
    plain = _plain(analysis)
    assert isinstance(plain, dict)
    head = {"schema": SCHEMA, "version": __version__, "command": command, "verdict": _plain(verdict)}
    return head | plain


def to_json(of: Mapping[str, object]) -> str:
    """The same document gives the same bytes."""
    return json.dumps(of, ensure_ascii=False, indent=1, allow_nan=False) + "\n"


def to_line(of: Mapping[str, object]) -> str:
    """The same on one line."""
    return json.dumps(of, ensure_ascii=False, allow_nan=False) + "\n"


def _plain(value: object) -> object:
    """Dataclasses as objects, tuples as arrays, measures as text, infinite numbers and NaN as null."""
    if isinstance(value, Measure):
        return str(value)
    if is_dataclass(value):
        return {field.name: _plain(getattr(value, field.name)) for field in fields(value)}
    if isinstance(value, Mapping):
        return {str(key): _plain(one) for key, one in value.items()}
    if isinstance(value, tuple | list):
        return [_plain(one) for one in value]
    if isinstance(value, float):
        return float(f"{value:.9g}") if math.isfinite(value) else None
    return value
