"""What records can be split by: columns, and what follows from them.

A key is a small value in the query (a number of the day, not a date) and becomes text afterwards, so that no
engine's dates or collation matter.
"""

from collections.abc import Callable
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Final

import ibis
import ibis.expr.types as ir

from uncork.measure import regions
from uncork.measure.errors import InputError, available
from uncork.measure.metrics import SIZE_CLASSES, SIZE_LIMITS, size
from uncork.measure.schema import NANOS_PER_SECOND, Columns

UNKNOWN: Final = "unknown"
"""The text of a missing value."""

HOUR_NS: Final = 3600 * NANOS_PER_SECOND
DAY_NS: Final = 24 * HOUR_NS


@dataclass(frozen=True)
class KeyColumn:
    """How to compute a key, and its text."""

    value: Callable[[Columns], ir.Value]
    text: Callable[[object], str] = str
    needs: tuple[str, ...] = ()


def _time(t: Columns) -> ir.IntegerValue:
    return t["service_start_unix_ns"]


def _quotient(value: ir.Value, by: int) -> ir.Value:
    """Floor division of what is not negative. Engines divide as floating point: the rest goes first."""
    divisor = ibis.literal(by, "int64")
    return ((value - value % divisor) / divisor).cast("int64")


def _size_class(t: Columns) -> ir.Value:
    """The number of the class; no size, no class."""
    of = size(t)
    steps = [(of < limit, ibis.literal(number, "int64")) for number, limit in enumerate(SIZE_LIMITS)]
    last = (of.notnull(), ibis.literal(len(SIZE_LIMITS), "int64"))
    return ibis.cases(*steps, last, else_=ibis.null().cast("int64"))


def _region(t: Columns) -> ir.Value:
    """The number of the region, by the place of its code in the text of all codes. Null if it is not there;
    beyond the last region if a code cannot have this length.

    Countries would do, and become regions afterwards; but an engine counts faster with fewer groups. DuckDB
    computes functions of the column alone once for each country, not for each record.
    """
    country = t["service_country"]
    place = ibis.literal(regions.CODES).find(country).cast("int64").nullif(-1)
    beyond = (country.length().cast("int64") - 2).abs() * len(regions.CODES)
    return _quotient(place + beyond, regions.WIDTH)


def _region_name(number: object) -> str:
    return regions.NAMES[place] if (place := int(str(number))) < len(regions.NAMES) else UNKNOWN


def _day(number: object) -> str:
    return date(int(str(number)) * DAY_NS, "%Y-%m-%d")


def _block(number: object) -> str:
    return date(int(str(number)) * HOUR_NS, "%Y-%m-%dT%H")


def date(unix_ns: int, form: str) -> str:
    return datetime.fromtimestamp(unix_ns // NANOS_PER_SECOND, UTC).strftime(form)


def _column(name: str) -> KeyColumn:
    return KeyColumn(lambda t: t[name], needs=(name,))


KEYS: Final[dict[str, KeyColumn]] = {
    "size_class": KeyColumn(
        _size_class, lambda n: SIZE_CLASSES[int(str(n))], ("size_bytes|bytes_acked|bytes_delivered",)
    ),
    "day": KeyColumn(lambda t: _quotient(_time(t), DAY_NS), _day, ("service_start_unix_ns",)),
    "hour": KeyColumn(
        lambda t: _quotient(_time(t), HOUR_NS) % ibis.literal(24, "int64"),
        lambda n: f"{int(str(n)):02d}",
        ("service_start_unix_ns",),
    ),
    "block": KeyColumn(lambda t: _quotient(_time(t), HOUR_NS), _block, ("service_start_unix_ns",)),
    "region": KeyColumn(_region, _region_name, ("service_country",)),
    "country": _column("service_country"),
    "asn": KeyColumn(lambda t: t["service_asn"], lambda n: f"AS{n}", ("service_asn",)),
    "client": _column("service_client"),
    "host": _column("service_host"),
    "listener": _column("service_listener"),
    "protocol": _column("service_protocol"),
    "policy": _column("choice_policy"),
    "rule": _column("choice_rule"),
    "propensity": KeyColumn(
        lambda t: (t["arm_propensity"] * 10_000.0).round().cast("int64"),
        lambda n: f"{int(str(n)) / 10_000:g}",
        ("arm_propensity",),
    ),
}
"""Keys with a name of their own. ``hour`` is that of the day (UTC), ``block`` an hour of the calendar,
``region`` a part of the world by country. All other columns
are keys under their own names."""


def has_key(name: str, columns: frozenset[str] | set[str]) -> bool:
    """Whether records with these columns have the key."""
    needs = KEYS[name].needs if name in KEYS else (name,)
    return name in columns or all(columns & set(need.split("|")) for need in needs)


def key_column(name: str, columns: frozenset[str] | set[str]) -> KeyColumn:
    """The key of this name in records with these columns; an error lists the available ones. A column of
    one's own with the name of a key (``region``) goes before it.
    """
    key = _column(name) if name in columns else KEYS.get(name)
    if key is None:
        raise InputError("--by", f"no key or column {name!r}", available(name, [*KEYS, *sorted(columns)]))
    lacking = [need for need in key.needs if not columns & set(need.split("|"))]
    if lacking:
        raise InputError(
            "--by", f"the key {name!r} needs the column {lacking[0]}", "these records do not have it"
        )
    return key
