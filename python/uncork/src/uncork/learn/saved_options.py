"""The options of plans that are saved in the directory of versions: the next plan need not repeat them.

Options of records, of keys and `--until` are not saved.
"""

from __future__ import annotations

import argparse
import json
import shlex
from collections.abc import Mapping
from pathlib import Path

from uncork.learn.defaults import DEFAULTS, Value
from uncork.measure.errors import InputError
from uncork.measure.files import read_json, write

FILE = "options.json"

FILES = ("prior", "rules")
"""Options that name files: saved as absolute paths, because the next plan may start elsewhere."""


def complete(options: argparse.Namespace, directory: Path | None) -> argparse.Namespace:
    """Each option as given; otherwise as in the last plan of the directory, or by default."""
    saved = {} if directory is None or options.forget_options else load(directory)
    given = {name: value for name in DEFAULTS if (value := getattr(options, name)) is not None}
    given |= {name: str(Path(given[name]).resolve()) for name in FILES if given.get(name)}
    if given.get("arm") == [""]:
        given["arm"] = []
    _check_treated(given, saved)
    return argparse.Namespace(**{**vars(options), **DEFAULTS, **saved, **given})


def _check_treated(given: Mapping[str, Value], saved: Mapping[str, Value]) -> None:
    """Refuses two ways to name the treated arm: one of them would count for nothing."""
    arms = given.get("arm", saved.get("arm"))
    named = [name for name in ("treated", "treated_settings") if given.get(name)]
    if not isinstance(arms, list) or not any(arms) or not named:
        return
    is_saved = "arm" not in given
    origin = " of the last plan" if is_saved else ""
    problem = f"--arm {arms[0]}{origin} names the treated arm and its settings, too"
    remedy = f"leave {flag(named[0])} out" + (", or reset the other one with --arm ''" if is_saved else "")
    raise InputError(f"{flag(named[0])} {given[named[0]]}", problem, remedy)


def save(options: argparse.Namespace, directory: Path) -> None:
    """Writes the values of completed options that are not the defaults."""
    values = {name: getattr(options, name) for name in DEFAULTS}
    text = json.dumps({name: value for name, value in values.items() if value != DEFAULTS[name]}, indent=2)
    write(directory / FILE, text + "\n")


def load(directory: Path) -> dict[str, Value]:
    """The options saved in the directory."""
    path = directory / FILE
    if not path.exists():
        return {}
    remedy = "repair it, or write --forget-options"
    document = read_json(path, remedy)
    if not isinstance(document, dict):
        raise InputError(str(path), "not a table of options", remedy)
    for name, value in document.items():
        if name not in DEFAULTS:
            raise InputError(f"{path}: {name}", "is not an option of a plan", remedy)
        if not _is_like(value, DEFAULTS[name]):
            raise InputError(f"{path}: {name}", f"`{value}` is not a value of {flag(name)}", remedy)
    return document


def _is_like(value: object, default: Value) -> bool:
    if isinstance(default, list):
        return isinstance(value, list) and all(isinstance(one, str) for one in value)
    if isinstance(default, float):
        return isinstance(value, int | float) and not isinstance(value, bool)
    return type(value) is type(default)


def described(options: argparse.Namespace, completed: argparse.Namespace) -> str:
    """The options that were not given and are not the defaults, as one would write them."""
    return " ".join(
        f"{flag(name)} {shlex.quote(str(one))}"
        for name, default in DEFAULTS.items()
        if getattr(options, name) is None and (value := getattr(completed, name)) != default
        for one in (value if isinstance(value, list) else [value])
    )


def flag(name: str) -> str:
    """How the option is written."""
    return "--" + name.replace("_", "-")
