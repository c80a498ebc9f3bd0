"""Scenarios given as data: dicts and dataclasses as TOML, which the laboratory reads."""

from __future__ import annotations

import dataclasses
import json
import math
import re
from collections.abc import Mapping
from numbers import Integral, Real

from uncork.measure.errors import InputError
from uncork.options import unicode

BARE = re.compile(r"[\w-]+", re.ASCII)
"""A key that needs no quotes."""


def document(data: object) -> str:
    """A document with the tables of `data`, a mapping or a dataclass."""
    lines: list[str] = []
    try:
        _table(lines, (), _mapping(data))
    except RecursionError:
        raise InputError(
            "scenario", "too many levels, or a dict holds itself", "write at most ten levels"
        ) from None
    return "".join(f"{line}\n" for line in lines)


def value(of: object, place: str) -> str:
    """A value in one line. `place` names it in errors."""
    if isinstance(of, str):
        # JSON's escapes are TOML's, but TOML also has one for DEL.
        return json.dumps(unicode(place, of), ensure_ascii=False).replace("\x7f", "\\u007f")
    if isinstance(of, bool):
        return "true" if of else "false"
    if isinstance(of, Integral):
        return str(int(of))
    if isinstance(of, Real) and math.isfinite(of):
        return repr(float(of))
    if isinstance(of, list | tuple):
        return f"[{', '.join(value(one, f'{place}[{nth}]') for nth, one in enumerate(of))}]"
    if is_data(of):
        pairs = (f"{_key(key, place)} = {value(one, f'{place}.{key}')}" for key, one in _mapping(of).items())
        return f"{{ {', '.join(pairs)} }}"
    shown = repr(of) if of is None or isinstance(of, Real) else type(of).__name__
    remedy = "leave the key out" if of is None else "write a text such as '50ms', a number, a list or a dict"
    raise InputError(place, f"{shown} is not a value of a scenario", remedy)


def is_data(of: object) -> bool:
    """Whether it is a mapping or a dataclass."""
    return isinstance(of, Mapping) or (dataclasses.is_dataclass(of) and not isinstance(of, type))


def _mapping(data: object) -> Mapping[object, object]:
    """The entries. A field of a dataclass without a value is left out."""
    if isinstance(data, Mapping):
        return data
    fields = dataclasses.fields(data)  # type: ignore[arg-type]
    entries = {field.name: getattr(data, field.name) for field in fields}
    return {key: one for key, one in entries.items() if one is not None}


def _table(lines: list[str], keys: tuple[str, ...], data: Mapping[object, object]) -> None:
    """Values come before tables: what follows a table's head belongs to it."""
    place = "scenario" + "".join(f".{key}" for key in keys)
    tables = {}
    if keys:
        lines.append(f"[{'.'.join(_key(key, place) for key in keys)}]")
    for key, one in data.items():
        if is_data(one):
            tables[key] = _mapping(one)
        else:
            lines.append(f"{_key(key, place)} = {value(one, f'{place}.{key}')}")
    for key, table in tables.items():
        _table(lines, (*keys, str(key)), table)


def _key(key: object, place: str) -> str:
    if not isinstance(key, str):
        raise InputError(f"{place}.{key}", f"a key of type {type(key).__name__}", "write it as a text")
    return key if BARE.fullmatch(key) else value(key, place)
