"""What a calibrated twin expects of ASes without data, as `uncork learn calibrate --prior` wrote it."""

from __future__ import annotations

import math
from collections.abc import Collection, Mapping
from pathlib import Path

from uncork.learn.defaults import LARGE
from uncork.measure.errors import InputError
from uncork.measure.files import read_json

SCHEMA = "twin-prior-1"

Prior = Mapping[str, tuple[float, float]]
"""Of each AS the expected lift of large objects, as a logarithm, and its standard deviation."""


def load_prior(path: Path, controllers: Collection[tuple[str, str]]) -> Prior:
    """The file, if it is about a control and treated of these, and if its twin has earned to be believed."""
    document = _document(path)
    if document.get("schema") != SCHEMA or document.get("class") != LARGE:
        raise InputError(
            str(path),
            f"is not a prior of schema {SCHEMA} for {LARGE} objects",
            "make it with calibrate --prior",
        )
    if (document.get("control"), document.get("treated")) not in controllers:
        arms = " or ".join(f"{treated} and {control}" for control, treated in controllers)
        raise InputError(
            str(path),
            f"is about {document.get('treated')} over {document.get('control')}, the arms have {arms}",
            "make the twin with the controllers of the arms",
        )
    if document.get("earned") is not True:
        raise InputError(
            str(path),
            f"its twin has not earned to stand for ASes without data: {_figures(document)}",
            "plan without --prior; docs/reference/learn.md says what a twin has to show",
        )
    systems = document.get("systems")
    if not isinstance(systems, dict):
        raise InputError(str(path), "`systems` is missing", "make it with calibrate --prior")
    return {str(name): _expected(path, str(name), one) for name, one in sorted(systems.items())}


def _document(path: Path) -> dict[str, object]:
    document = read_json(path, "give the file of calibrate --prior")
    return document if isinstance(document, dict) else {}


def _figures(document: Mapping[str, object]) -> str:
    rank, skill = document.get("rank"), document.get("skill")
    low = rank[1] if isinstance(rank, list) and len(rank) == 3 else None
    return f"rank correlation of surely {low}, skill {skill}"


def _expected(path: Path, name: str, one: object) -> tuple[float, float]:
    lift, sd = (one.get("lift"), one.get("sd")) if isinstance(one, dict) else (None, None)
    if isinstance(lift, int | float) and isinstance(sd, int | float) and 0 < sd < math.inf:
        return float(lift), float(sd)
    raise InputError(str(path), f"{name} needs a lift and a positive sd", "make it with calibrate --prior")
