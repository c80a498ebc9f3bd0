"""Mapping files: which field of a log is which canonical column, in TOML."""

import re
import tomllib
from dataclasses import dataclass, field
from difflib import get_close_matches
from importlib.resources import files
from pathlib import Path
from typing import Any, Final

from uncork_experiment.assignment import Experiment
from uncork_experiment.errors import InputError
from uncork_experiment.schema import COLUMNS, SOURCES
from uncork_experiment.sources.fields import TIME_FORMS, Field, units_of

FORMATS: Final = ("json", "csv", "w3c", "pattern", "text")
KINDS: Final = ("prefix", "cookie", "header")
MAPPINGS: Final = ("nginx", "haproxy", "haproxy-http", "varnish", "w3c", "iis", "csv", "cmcd", "cmcd-log")
"""Names of the built-in mappings."""

NO_ARM: Final = ""
"""The arm of a unit rule that names none."""

_COLUMNS: Final = {column.name: column for column in COLUMNS}


@dataclass(frozen=True)
class UnitRule:
    """What was assigned: the field, its kind as in a policy, and the experiment whose hash gives the bucket.

    If the experiment has arms, the hash gives the arm too, to rows that have none.
    """

    source: str
    kind: str
    experiment: Experiment


@dataclass(frozen=True)
class Mapping:
    """How to read a log."""

    name: str
    format: str
    columns: dict[str, Field]
    source: str | None = None
    """How throughput was measured (``schema.SOURCES``); by the engine if ``None``."""
    delimiter: str = ","
    pattern: re.Pattern[str] | None = None
    cmcd: str | None = None
    """The field with CMCD, whose keys become fields ``cmcd.KEY``."""
    unit: UnitRule | None = None
    flat: bool = field(default=False)
    """Nested JSON becomes fields such as ``service.host``."""


def built_in(name: str) -> Mapping:
    """One of ``MAPPINGS``."""
    if name not in MAPPINGS:
        raise InputError(
            "--mapping", f"no built-in mapping {name!r}", f"there are {', '.join(MAPPINGS)}, or a file"
        )
    text = files("uncork_experiment.sources").joinpath("mappings", f"{name}.toml").read_text("utf-8")
    return parse(text, name)


def load(name: str | Path) -> Mapping:
    """A built-in mapping by its name, or a file."""
    if isinstance(name, str) and name in MAPPINGS:
        return built_in(name)
    path = Path(name)
    if not path.is_file():
        raise InputError("--mapping", f"no file {name}", f"built-in are {', '.join(MAPPINGS)}")
    return parse(path.read_text("utf-8"), str(path))


def parse(text: str, place: str) -> Mapping:
    """A mapping from TOML."""
    try:
        document = tomllib.loads(text)
    except tomllib.TOMLDecodeError as error:
        raise InputError(place, f"no TOML: {error}") from None
    keys = ("format", "source", "delimiter", "pattern", "columns", "cmcd", "unit", "flat", "required")
    _known(document, keys, place)
    form = _choice(document, "format", FORMATS, place)
    source = _choice(document, "source", SOURCES, place) if "source" in document else None
    required = tuple(document.get("required", ()))
    pattern = _pattern(document["pattern"], place) if "pattern" in document else None
    if (form == "pattern") != (pattern is not None):
        raise InputError(place, "format = \"pattern\" and pattern = '…' go together")
    columns = {
        name: _field(name, entry, name in required, place)
        for name, entry in document.get("columns", {}).items()
    }
    if stray := [name for name in required if name not in columns]:
        raise InputError(place, f"required names {stray[0]!r}, which is not in [columns]")
    return Mapping(
        name=place,
        format=form,
        columns=columns,
        source=source,
        delimiter=document.get("delimiter", ","),
        pattern=pattern,
        cmcd=document.get("cmcd"),
        unit=_unit(document["unit"], place) if "unit" in document else None,
        flat=bool(document.get("flat", False)),
    )


def _field(name: str, entry: Any, is_required: bool, place: str) -> Field:
    where = f"{place}, columns.{name}"
    column = _COLUMNS.get(name)
    if column is None:
        raise InputError(where, "no such column", _nearest(name, tuple(_COLUMNS)))
    if isinstance(entry, str):
        entry = {"from": entry}
    if not isinstance(entry, dict):
        raise InputError(where, "neither the name of a field nor a table", f'write {name} = "FIELD"')
    _known(entry, ("from", "value", "unit", "time", "is", "network", "pattern", "names"), where)
    if ("from" in entry) == ("value" in entry):
        raise InputError(where, "needs either from or value")
    if "unit" in entry:
        _choice(entry, "unit", units_of(column), where)
    if "time" in entry:
        _choice(entry, "time", TIME_FORMS, where)
    origin = entry.get("from", [])
    return Field(
        sources=(origin,) if isinstance(origin, str) else tuple(origin),
        value=None if "value" not in entry else str(entry["value"]),
        unit=entry.get("unit"),
        time=entry.get("time"),
        is_in=tuple(str(it) for it in entry.get("is", ())),
        is_network=bool(entry.get("network", False)),
        pattern=_pattern(entry["pattern"], where) if "pattern" in entry else None,
        names=tuple((str(a), str(b)) for a, b in entry.get("names", {}).items()),
        is_required=is_required,
    )


def _unit(entry: dict[str, Any], place: str) -> UnitRule:
    where = f"{place}, unit"
    _known(entry, ("from", "kind", "salt", "key", "arms", "share"), where)
    if "from" not in entry:
        raise InputError(where, "needs from, the field with what was assigned")
    key = str(entry.get("key", "00" * 16))
    if not re.fullmatch(r"[0-9a-fA-F]{32}", key):
        raise InputError(f"{where}.key", f"{key!r} has not 32 hexadecimal digits", "copy it from the policy")
    share = re.fullmatch(r"(\d+(?:\.\d{1,2})?)%", str(entry.get("share", "100%")))
    if share is None or float(share[1]) > 100:
        raise InputError(f"{where}.share", f"{entry['share']!r} is no share", 'write "10%"')
    experiment = Experiment(
        name=str(entry.get("salt", "")),
        arms=tuple(entry.get("arms", (NO_ARM,))),
        share=round(float(share[1]) * 100),
        key=bytes.fromhex(key),
    )
    return UnitRule(str(entry["from"]), _choice(entry, "kind", KINDS, where), experiment)


def _pattern(text: str, place: str) -> re.Pattern[str]:
    try:
        return re.compile(text)
    except re.error as error:
        raise InputError(place, f"no regular expression: {text!r} ({error})") from None


def _choice(entry: dict[str, Any], key: str, among: tuple[str, ...], place: str) -> str:
    value = entry.get(key)
    if value not in among:
        raise InputError(
            f"{place}, {key}", f"{value!r} is none of {', '.join(among) or 'the units (it has none)'}"
        )
    return str(value)


def _known(entry: dict[str, Any], keys: tuple[str, ...], place: str) -> None:
    for key in entry:
        if key not in keys:
            raise InputError(place, f"unknown key {key!r}", _nearest(key, keys))


def _nearest(name: str, among: tuple[str, ...]) -> str:
    near = get_close_matches(name, among, 1)
    return f"did you mean {near[0]}?" if near else f"there are {', '.join(among)}"
