"""A field of a log to a value of a canonical column: numbers with units, times, networks."""

import ipaddress
import math
import re
from collections.abc import Callable
from dataclasses import dataclass
from datetime import UTC, datetime, tzinfo
from decimal import Decimal, InvalidOperation
from functools import partial
from typing import Final

from uncork.measure.schema import MAX_COUNT, Column
from uncork.measure.sources.lines import Row, RowError

NONE: Final = (
    "", "-", "null", "None", "NULL", "\\N", "<NA>", "N/A", "undefined"
)  # fmt: skip
"""What logs, databases, pandas and JavaScript write for a missing value."""

MAX_HASH: Final = 2**64 - 1

_TIMES: Final = {"s": 10**9, "ms": 10**6, "us": 10**3, "ns": 1}
_BYTES: Final = {"bytes": 1, "kB": 10**3, "MB": 10**6, "KiB": 2**10, "MiB": 2**20}
_RATES: Final = {"bit/s": 1, "kbit/s": 10**3, "Mbit/s": 10**6}
_FACTORS: Final[dict[str, dict[str, Decimal]]] = {
    "ns": {unit: Decimal(factor) for unit, factor in _TIMES.items()},
    "ms": {unit: Decimal(factor) / 10**6 for unit, factor in _TIMES.items()},
    "bytes": {unit: Decimal(factor) for unit, factor in _BYTES.items()},
    "bit/s": {unit: Decimal(factor) for unit, factor in _RATES.items()},
}

Value = str | int | float | None


@dataclass(frozen=True)
class Field:
    """Where a column's value comes from."""

    sources: tuple[str, ...] = ()
    """Names of fields; the values of several are joined with a space, unless ``is_first``."""
    is_first: bool = False
    """The value is that of the first of the fields that has one."""
    value: str | None = None
    """The same for all rows."""
    unit: str | None = None
    time: str | None = None
    """How a time is written: ``iso``, ``clf``, ``unix_s``, ``unix_ms``, ``unix_us``, ``unix_ns``."""
    is_in: tuple[str, ...] = ()
    """1 if the value is one of these, else 0. The empty text is a field that is there without a value.
    Booleans are ``true`` or ``1``, and ``false`` or ``0``."""
    is_one_sided: bool = False
    """Of a condition: a value that is none of these proves nothing, so there is no 0."""
    none: tuple[str, ...] = ()
    """Further values that mean a missing one, such as HAProxy's ``-1``."""
    any_of: tuple["Field", ...] = ()
    """1 if one of these is 1, 0 if one is known: what several fields of a log report."""
    zone: tzinfo = UTC
    """Of a time without an offset."""
    is_end: bool = False
    """The time is that of the end: the start is earlier by the duration (``completion_ns``)."""
    is_network: bool = False
    """An address: only its /24 or /48 is kept."""
    pattern: re.Pattern[str] | None = None
    """The value is what its first group matches; no match, no value."""
    names: tuple[tuple[str, str], ...] = ()
    """Other names for values, such as of arms."""
    is_required: bool = False

    def alternatives(self) -> tuple[tuple[str, ...], ...]:
        """Sets of fields from which there is a value: all of one set are needed."""
        if self.any_of:
            return tuple(part.sources for part in self.any_of)
        if self.is_first:
            return tuple((name,) for name in self.sources)
        return (self.sources,)

    def names_read(self) -> tuple[str, ...]:
        """All fields that are read."""
        return tuple(name for names in self.alternatives() for name in names)


def units_of(column: Column) -> tuple[str, ...]:
    """The units in which a log may have this column."""
    return tuple(_FACTORS.get(column.unit, ()))


def factor_of(column: Column, field: Field) -> Decimal:
    """By which a number of the log is multiplied."""
    return _FACTORS[column.unit][field.unit] if field.unit else Decimal(1)


def converter(column: Column, field: Field) -> Callable[[Row], Value]:
    """The function from a row to the column's value. It raises ``RowError``."""
    if field.any_of:
        return _any([converter(column, one) for one in field.any_of])
    if field.is_in:
        return _condition(field)
    convert = _convert(column, field)
    place = " ".join(field.sources) or column.name
    names = dict(field.names)

    plain = field.sources[0] if _is_plain(column, field) else None

    def value(row: Row) -> Value:
        if plain is not None and type(native := row.get(plain)) is int and 0 <= native <= MAX_COUNT:
            return native
        text = _raw(row, field, names)
        if text is None:
            if field.is_required:
                raise RowError(f"{place}: missing")
            return None
        try:
            return convert(text)
        except (ValueError, ArithmeticError) as error:
            several = ", but several values" if "," in text and column.kind != "text" else ""
            raise RowError(f"{place}: {_reason(error, column, field)}{several}") from error

    return value


def _any(parts: list[Callable[[Row], Value]]) -> Callable[[Row], Value]:
    def value(row: Row) -> Value:
        known = [found for part in parts if isinstance(found := part(row), int)]
        return max(known) if known else None

    return value


def _is_plain(column: Column, field: Field) -> bool:
    """Whether a whole number of JSON is the value as it is."""
    changes = field.unit or field.time or field.is_in or field.pattern or field.names or field.none
    is_one = len(field.sources) == 1 or field.is_first
    return column.kind == "count" and is_one and not changes


def _reason(error: Exception, column: Column, field: Field) -> str:
    if isinstance(error, RowError):
        return str(error)
    if field.time:
        return f"no time of the form {field.time}"
    return {"text": "no address" if field.is_network else "no text"}.get(column.kind, "no number")


def _condition(field: Field) -> Callable[[Row], Value]:
    """1 or 0 where the fields are there: also ``-``, which servers write where there is nothing to report."""

    def value(row: Row) -> Value:
        if any(name not in row for name in field.sources):
            return None
        values = [row[name] for name in field.sources]
        text = " ".join(map(written, values))
        if not text:
            return 1 if "" in field.is_in else None
        if text in field.none:
            return None
        if len(values) == 1 and isinstance(values[0], bool) and str(int(values[0])) in field.is_in:
            return 1
        if not {first_group(field.pattern, of) or "" for of in (text, _plain(text))}.isdisjoint(field.is_in):
            return 1
        return None if field.is_one_sided else 0

    return value


_WITH_ZEROS: Final = re.compile(r"(-?\d+)\.0+")


def _plain(text: str) -> str:
    """Without blanks around it; a whole number without decimals, which pandas writes."""
    text = text.strip()
    match = _WITH_ZEROS.fullmatch(text)
    return match[1] if match else text


def _raw(row: Row, field: Field, names: dict[str, str]) -> str | None:
    """The text to convert. `names`: those of the field; one may stand for ``-``."""
    if field.value is not None:
        return field.value
    if field.is_first:
        parts = (_of_names(row, (name,), field, names) for name in field.sources)
        return next((text for text in parts if text is not None), None)
    return _of_names(row, field.sources, field, names)


def _of_names(row: Row, sources: tuple[str, ...], field: Field, names: dict[str, str]) -> str | None:
    if names and len(sources) == 1:
        other = names.get(written(row.get(sources[0])))
        if other is not None:
            return other
    found = [text_of(row.get(name)) for name in sources]
    if None in found:
        return None
    text = first_group(field.pattern, " ".join(map(str, found))) or ""
    return None if text in NONE or text in field.none else names.get(text, text)


def first_group(pattern: re.Pattern[str] | None, text: str | None) -> str | None:
    """What the pattern's first group matches; the whole text without a pattern."""
    if text is None or pattern is None:
        return text
    match = pattern.search(text)
    return match.group(1) if match else None


def text_of(value: object) -> str | None:
    """The value as text; ``None`` if it is missing."""
    text = written(value)
    if text in NONE:
        return None
    return str(int(value)) if isinstance(value, bool) else text


def written(value: object) -> str:
    """The value as a log has it, empty if it is null. Headers of some servers are lists (Caddy): one member
    is the value itself. Whole numbers have no decimals: pandas makes ``499.0`` of a column that has missing
    values.
    """
    if value is None:
        return ""
    if isinstance(value, list):
        return ", ".join(map(str, value))
    if isinstance(value, bool):
        return str(value).lower()
    if isinstance(value, float) and value.is_integer() and abs(value) <= MAX_COUNT:
        return str(int(value))
    return str(value)


def _convert(column: Column, field: Field) -> Callable[[str], Value]:
    if field.time in ZONED:
        return partial(_TIME_FORMS[field.time], zone=field.zone)
    if field.time:
        return _TIME_FORMS[field.time]
    if field.is_network:
        return network_of
    if column.kind == "text":
        return _unicode
    factor = factor_of(column, field)
    if column.kind == "number":
        return lambda text: _number(text, factor)
    limit = MAX_HASH if column.name == "arm_unit" else MAX_COUNT
    if factor == 1 and column.unit != "ns":
        return lambda text: _count(_exact(text), factor, limit)
    return lambda text: _count(text, factor, limit)


_HALVES: Final = re.compile("[\ud800-\udfff]")


def _unicode(text: str) -> str:
    """The text without halves of characters, which are bytes that are no UTF-8, or escapes of JSON."""
    return text if text.isascii() else _HALVES.sub("\ufffd", text)


def _count(text: str, factor: Decimal, limit: int = MAX_COUNT) -> int:
    is_plain = factor == 1 and text.isascii() and text.isdigit()
    number = int(text) if is_plain else _whole(text, factor)
    if number < 0:
        raise RowError("negative")
    if number > limit:
        raise RowError("too large")
    return number


_GROUPED: Final = re.compile(r"\s*-?\d{1,3}(\.\d{3})+\s*")


def _exact(text: str) -> str:
    """A whole number. ``1.234`` may be one with separators of thousands, or a fraction: neither is read."""
    if "." in text and (_GROUPED.fullmatch(text) or Decimal(text) % 1):
        raise RowError("a fraction, or separators of thousands")
    return text


def _whole(text: str, factor: Decimal) -> int:
    if "_" in text:
        raise RowError("no number")
    try:
        number = Decimal(text) * factor
    except InvalidOperation:
        raise RowError("no number") from None
    if not number.is_finite():
        raise RowError("not finite")
    return int(number.to_integral_value())


def _number(text: str, factor: Decimal) -> float:
    number = float(text) if factor == 1 else float(Decimal(text) * factor)
    if not math.isfinite(number):
        raise RowError("not finite")
    if number < 0:
        raise RowError("negative")
    return number


_WITH_PORT: Final = re.compile(r"\[([0-9a-fA-F.:]+)\](?::\d+)?|([0-9.]+):\d+")
"""``203.0.113.7:443`` and ``[2001:db8::1]:443``, as Envoy and old versions of Caddy write a client."""


def address_of(text: str) -> str:
    """The address without a port and brackets."""
    match = _WITH_PORT.fullmatch(text)
    return text if match is None else match[1] or match[2]


def network_of(text: str) -> str:
    """The network of an address, which may have a port, as records have it: /24 of IPv4, /48 of IPv6. Raises
    ``ValueError``.
    """
    address = ipaddress.ip_address(address_of(text))
    if isinstance(address, ipaddress.IPv6Address) and address.ipv4_mapped:
        address = address.ipv4_mapped
    return str(ipaddress.ip_network((address, 24 if address.version == 4 else 48), strict=False))


def _unix(factor: int) -> Callable[[str], int]:
    return lambda text: _count(text, Decimal(factor))


def _iso(text: str, zone: tzinfo = UTC) -> int:
    """Without an offset it is of the zone."""
    return _unix_ns(datetime.fromisoformat(text), zone)


_MONTHS: Final = ("Jan", "Feb", "Mar", "Apr", "May", "Jun", "Jul", "Aug", "Sep", "Oct", "Nov", "Dec")
_CLF: Final = re.compile(
    r"\[?(\d\d)/(\w{3})/(\d{4}):(\d\d:\d\d:\d\d(?:\.\d+)?)(?: ?([+-]\d\d:?\d\d|UTC|GMT|Z))?\]?"
)


def _clf(text: str, zone: tzinfo = UTC) -> int:
    """``10/Oct/2026:13:55:36.123 -0700``: of NCSA logs, and of HAProxy (without an offset)."""
    match = _CLF.fullmatch(text)
    if match is None or match[2] not in _MONTHS:
        raise ValueError(text)
    day, month, year, time, offset = match.groups()
    offset = "+0000" if offset in ("UTC", "GMT", "Z") else offset or ""
    return _iso(f"{year}-{_MONTHS.index(month) + 1:02d}-{day}T{time}{offset}", zone)


def _unix_ns(time: datetime, zone: tzinfo) -> int:
    aware = (time if time.tzinfo else time.replace(tzinfo=zone)).astimezone(UTC)
    since = aware - datetime(1970, 1, 1, tzinfo=UTC)
    ns = ((since.days * 86400 + since.seconds) * 10**6 + since.microseconds) * 1000
    if not 0 <= ns <= MAX_COUNT:
        raise RowError(f"no possible time: {time.isoformat()}")
    return ns


ZONED: Final = ("iso", "clf")
"""Forms of times that may lack an offset."""
_TIME_FORMS: Final[dict[str, Callable[..., int]]] = {
    "iso": _iso,
    "clf": _clf,
    **{f"unix_{unit}": _unix(factor) for unit, factor in _TIMES.items()},
}
TIME_FORMS: Final = tuple(_TIME_FORMS)
