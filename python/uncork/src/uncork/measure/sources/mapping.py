"""Mapping files: which field of a log is which canonical column, in TOML."""

import re
import tomllib
from collections.abc import Collection
from collections.abc import Mapping as Table
from dataclasses import dataclass, field
from datetime import UTC, tzinfo
from importlib.resources import files
from pathlib import Path
from typing import Any, Final
from zoneinfo import ZoneInfo

from uncork.measure.assignment import Experiment
from uncork.measure.errors import InputError, available
from uncork.measure.mappings import MAPPINGS
from uncork.measure.own import KINDS as METRIC_KINDS
from uncork.measure.own import OwnMetric
from uncork.measure.schema import COLUMNS, SOURCES, Column
from uncork.measure.sources.fields import TIME_FORMS, ZONED, Field, units_of, written

FORMATS: Final = ("json", "csv", "w3c", "pattern", "text", "parquet")
KINDS: Final = ("prefix", "cookie", "header")
NO_ARM: Final = ""
"""The arm of a unit rule that names none."""

Kind = type[object] | str
"""Of a value in TOML."""

_COLUMNS: Final = {column.name: column for column in COLUMNS}
_TOP: Final = (
    "format", "source", "delimiter", "header", "pattern", "columns", "cmcd", "unit", "flat", "required",
    "optional", "id", "leave_out", "dimensions", "metric", "table", "connection",
)  # fmt: skip
_FIELD: Final = (
    "from", "first", "value", "unit", "time", "zone", "is", "otherwise", "network", "pattern", "names",
    "none", "any", "end",
)  # fmt: skip
_ONLY_OF_VALUES: Final = ("names", "value", "unit", "time", "network", "end")
"""What a condition cannot have: it is 1 or 0."""
_NAME: Final = re.compile(r"[A-Za-z_]\w*", re.ASCII)
"""Of a metric: it is a column of SQL."""
_METRIC: Final = ("kind", "value", "per", "better", "unit", "title", "limit", "statistics")


@dataclass(frozen=True)
class UnitRule:
    """What was assigned: the field, its kind as in a policy, and the experiment that hashes it to a bucket.

    If the experiment has arms, the hash gives the arm too, to rows that have none.
    """

    source: str
    kind: str
    experiment: Experiment
    pattern: re.Pattern[str] | None = None
    """The unit is what its first group matches."""


@dataclass(frozen=True)
class ConnectionRule:
    """Which connection a line is of: fields with the client's address and port."""

    address: str
    port: str | None = None
    """``None``: the address has it, as in ``203.0.113.7:39849``."""


@dataclass(frozen=True)
class Mapping:
    """How to read a log, or a table with column names of its own."""

    name: str
    format: str
    columns: dict[str, Field]
    source: str | None = None
    """How throughput was measured (``schema.SOURCES``); by the engine if ``None``."""
    delimiter: str | None = None
    """Of CSV; found from the header if ``None``."""
    header: tuple[str, ...] = ()
    """Names of the fields of a CSV file without a first line of names."""
    pattern: re.Pattern[str] | None = None
    cmcd: tuple[str, ...] = ()
    """The fields with CMCD. Its keys become fields ``cmcd.KEY``."""
    unit: UnitRule | None = None
    flat: bool = field(default=False)
    """Nested JSON becomes fields such as ``service.host``."""
    optional: bool = False
    """Whether a CSV file may lack mapped columns."""
    id: Field | None = None
    """The field that identifies a line; by default its text does."""
    has_ids: bool = True
    """Whether lines need to be identified: records of uncork have numbers of their own."""
    leave_out: tuple[Field, ...] = ()
    """Rows that are not downloads: those in which one of these is 1."""
    dimensions: dict[str, Field] = field(default_factory=dict)
    """Columns of one's own, of text."""
    metrics: tuple[OwnMetric, ...] = ()
    inputs: dict[str, Field] = field(default_factory=dict)
    """What own metrics are computed from, by column (``OwnMetric.columns``)."""
    connection: ConnectionRule | None = None
    """What a join with records of connections needs."""
    table: str = ""
    """Of a DuckDB file: the table or view, or a query."""

    def extra(self) -> dict[str, tuple[Column, Field]]:
        """Columns in addition to the canonical ones."""
        texts = {name: (Column(name, "text"), of) for name, of in self.dimensions.items()}
        return texts | {name: (Column(name, "number"), of) for name, of in self.inputs.items()}

    def fields(self) -> dict[str, tuple[Column, Field]]:
        """All columns with where they come from."""
        return {name: (_COLUMNS[name], of) for name, of in self.columns.items()} | self.extra()

    def is_built_in(self) -> bool:
        """Whether it is for all servers of a kind, with and without each field."""
        return self.name in (*MAPPINGS, "uncork")

    def named(self) -> dict[str, Field]:
        """All fields that are read, by what they are for."""
        of = {name: it for name, (_, it) in self.fields().items()}
        of |= {f"leave_out {n}": it for n, it in enumerate(self.leave_out, 1)}
        of |= {} if self.id is None else {"id": self.id}
        return of | ({} if self.unit is None else {"unit": Field(sources=(self.unit.source,))})

    def names_read(self) -> tuple[str, ...]:
        """Names of all fields that are read."""
        return tuple(dict.fromkeys(name for of in self.named().values() for name in of.names_read()))

    def lacking(self, names: Collection[str]) -> tuple[str, ...]:
        """Fields that are read and not among these. Of ``first``, one is enough."""
        found = []
        for of in self.named().values():
            absent = [name for name in of.names_read() if name not in names]
            is_enough = of.is_first and len(absent) < len(of.sources)
            found += [] if is_enough else absent
        return tuple(dict.fromkeys(found))

    def unseen(self, seen: Collection[str]) -> tuple[str, ...]:
        """Fields that are read, and that no line had; of a built-in mapping, which is for servers with and
        without them, only fields without which nothing is in their column.
        """
        lacking = []
        for of in self.named().values():
            sets = of.alternatives()
            if self.is_built_in() and any(set(seen).issuperset(names) for names in sets):
                continue
            lacking += [name for name in of.names_read() if name not in seen]
        made = ("cmcd.", "chunk.", "session.") if self.cmcd else ()
        return tuple(dict.fromkeys(name for name in lacking if not made or not name.startswith(made)))

    def required(self) -> tuple[str, ...]:
        """Names of fields without which no row is a record."""
        needed = [name for _, of in self.fields().values() if of.is_required for name in of.sources]
        return tuple(dict.fromkeys([*needed, *([self.unit.source] if self.unit else [])]))


def built_in(name: str) -> Mapping:
    """One of ``MAPPINGS``."""
    if name not in MAPPINGS:
        raise InputError(
            "--mapping", f"no built-in mapping {name!r}", f"there are {', '.join(MAPPINGS)}, or a file"
        )
    return parse(_text(name), name)


def expected(mapping: Mapping) -> str:
    """The log format that a built-in mapping reads: the comment at the beginning of its file."""
    if mapping.name == "uncork":
        return "records of uncork, a JSON object on each line"
    if mapping.name not in MAPPINGS:
        return f"format = {mapping.format!r} in {mapping.name}"
    comment = []
    for line in _text(mapping.name).splitlines():
        if not line.startswith("#"):
            break
        comment.append(line[1:].removeprefix(" "))
    return "\n".join(comment)


def _text(name: str) -> str:
    return files("uncork.measure.sources").joinpath("mappings", f"{name}.toml").read_text("utf-8")


def load(name: str | Path) -> Mapping:
    """A built-in mapping by its name, or a file."""
    if isinstance(name, str) and name in MAPPINGS:
        return built_in(name)
    path = Path(name)
    if not path.is_file():
        raise InputError("--mapping", f"no file {name}", f"built-in are {', '.join(MAPPINGS)}")
    try:
        return parse(path.read_text("utf-8"), str(path))
    except UnicodeDecodeError as error:
        raise InputError(str(path), f"no UTF-8 at byte {error.start}", "save it as UTF-8") from None


def parse(text: str, place: str) -> Mapping:
    """A mapping from TOML."""
    try:
        document = tomllib.loads(text)
    except tomllib.TOMLDecodeError as error:
        raise InputError(place, f"no TOML: {error}") from None
    _known(document, _TOP, place)
    for key, kind in _KINDS_OF_TOP.items():
        if key in document and not _is_of(document[key], kind):
            raise InputError(f"{place}, {key}", f"{document[key]!r} is not {_WORDS[kind]}", _EXAMPLES[key])
    form = _choice(document, "format", FORMATS, place)
    pattern = _pattern(document["pattern"], f"{place}, pattern") if "pattern" in document else None
    if (form == "pattern") != (pattern is not None):
        raise InputError(place, "format = \"pattern\" and pattern = '…' go together")
    columns = _columns(document, place)
    metrics, inputs = _metrics(document.get("metric", {}), place)
    mapping = Mapping(
        name=place,
        format=form,
        columns=columns,
        source=_choice(document, "source", SOURCES, place) if "source" in document else None,
        delimiter=document.get("delimiter"),
        header=tuple(document.get("header", ())),
        pattern=pattern,
        cmcd=_names(document.get("cmcd", ())),
        unit=_unit(document["unit"], place) if "unit" in document else None,
        flat=bool(document.get("flat", False)),
        optional=bool(document.get("optional", False)),
        id=Field(sources=_names(document["id"])) if "id" in document else None,
        leave_out=tuple(_condition(it, f"{place}, leave_out") for it in document.get("leave_out", ())),
        dimensions=_dimensions(document.get("dimensions", {}), place),
        metrics=metrics,
        inputs=inputs,
        connection=_connection(document["connection"], place) if "connection" in document else None,
        table=document.get("table", ""),
    )
    _check_names(mapping, place)
    return mapping


def _check_names(mapping: Mapping, place: str) -> None:
    """Whether the pattern or header of the mapping has all fields that it reads."""
    if mapping.cmcd:
        return
    there = tuple(mapping.pattern.groupindex) if mapping.pattern else mapping.header
    if twice := [name for name in mapping.names_read() if there.count(name) > 1]:
        raise InputError(f"{place}, header", f"{twice[0]!r} is there twice", "rename one of both")
    for what, of in mapping.named().items():
        for name in of.names_read():
            if there and name not in there:
                source = "group of the pattern" if mapping.pattern else "name in header"
                where = f"{place}, {'columns.' if what in _COLUMNS else ''}{what}"
                raise InputError(where, f"no {source} is {name!r}", available(name, there))


_KINDS_OF_TOP: Final[dict[str, Kind]] = {
    "columns": dict, "unit": dict, "dimensions": dict, "metric": dict, "connection": dict,
    "leave_out": list, "header": "names", "required": "names", "cmcd": "name or names", "id": "name or names",
    "delimiter": "character", "pattern": str, "table": str, "flat": bool, "optional": bool,
}  # fmt: skip
_WORDS: Final[dict[Kind, str]] = {
    dict: "a table",
    list: "a list",
    str: "a text",
    bool: "true or false",
    "names": "a list of names",
    "name or names": "a name, or a list of names",
    "character": "one character",
}
_EXAMPLES: Final = {
    "columns": "write [columns]", "unit": "write [unit]", "dimensions": "write [dimensions]",
    "metric": "write [metric.NAME]", "connection": "write [connection]",
    "leave_out": 'write leave_out = [{ from = "method", is = ["HEAD"] }]',
    "header": 'write header = ["NAME", "NAME"]', "required": 'write required = ["bytes_delivered"]',
    "cmcd": 'write cmcd = "FIELD"', "id": 'write id = "FIELD"',
    "delimiter": 'write delimiter = "\\t" for a tab',
    "pattern": "write pattern = '(?P<NAME>…)'", "table": 'write table = "NAME"', "flat": "write flat = true",
    "optional": "write optional = true",
}  # fmt: skip


def _is_of(value: Any, kind: Kind) -> bool:
    if kind == "character":
        return isinstance(value, str) and len(value) == 1
    if kind == "name or names" and isinstance(value, str):
        return True
    if kind in ("names", "name or names"):
        return isinstance(value, list) and all(isinstance(it, str) for it in value)
    return isinstance(kind, type) and isinstance(value, kind)


def _columns(document: dict[str, Any], place: str) -> dict[str, Field]:
    required = tuple(document.get("required", ()))
    columns = {
        name: _column(name, entry, name in required, place)
        for name, entry in document.get("columns", {}).items()
    }
    if stray := [name for name in required if name not in columns]:
        raise InputError(place, f"required names {stray[0]!r}, which is not in [columns]")
    return columns


def _column(name: str, entry: Any, is_required: bool, place: str) -> Field:
    where = f"{place}, columns.{name}"
    column = _COLUMNS.get(name)
    if column is None:
        raise InputError(where, "no such column", f"{available(name, _COLUMNS)}; or put it into [dimensions]")
    return _field(column, entry, where, is_required)


def _dimensions(entries: Table[str, Any], place: str) -> dict[str, Field]:
    found = {}
    for name, entry in entries.items():
        where = f"{place}, dimensions.{name}"
        if name in _COLUMNS:
            raise InputError(where, "this is a canonical column", "put it into [columns]")
        found[name] = _field(Column(name, "text"), entry, where)
    return found


def _metrics(entries: Table[str, Any], place: str) -> tuple[tuple[OwnMetric, ...], dict[str, Field]]:
    """Own metrics, and the columns from which they are computed."""
    metrics, inputs = [], {}
    for name, entry in entries.items():
        where = f"{place}, metric.{name}"
        if not isinstance(entry, dict):
            raise InputError(where, f"{entry!r} is not a table", f"write [metric.{name}]")
        if not _NAME.fullmatch(name):
            raise InputError(where, "a name has letters, digits and _ alone", "write [metric.queue_ms]")
        _known(entry, _METRIC, where)
        statistics = entry.get("statistics", [])
        if not _is_of(statistics, "names"):
            problem = f"{statistics!r} is not a list of statistics"
            raise InputError(f"{where}.statistics", problem, 'write statistics = ["p50", "p90"]')
        _choice(entry, "kind", METRIC_KINDS, where)
        _choice(entry, "better", ("higher", "lower"), where)
        if ("per" in entry) != (entry["kind"] == "ratio"):
            raise InputError(where, 'kind = "ratio" and per go together')
        metric = OwnMetric(
            name=name,
            kind=entry["kind"],
            better=entry["better"],
            unit=str(entry.get("unit", "")),
            title=str(entry.get("title", name)),
            limit=str(entry.get("limit", "")),
            statistics=tuple(statistics),
        )
        parts = [entry.get("value", name), *([entry["per"]] if "per" in entry else [])]
        for column, part in zip(metric.columns(), parts, strict=True):
            if column in _COLUMNS:
                raise InputError(where, f"{column} is a canonical column", "give the metric another name")
            inputs[column] = _field(Column(column, "number"), part, where)
        metrics.append(metric)
    return tuple(metrics), inputs


def _condition(entry: Any, where: str) -> Field:
    """A field that is 1 where the condition holds."""
    field = _field(Column("condition", "count"), entry, where)
    if not field.is_in:
        raise InputError(where, "a condition needs is, the values for which it holds", 'write is = ["499"]')
    return field


def _field(column: Column, entry: Any, where: str, is_required: bool = False) -> Field:
    if isinstance(entry, str):
        entry = {"from": entry}
    if not isinstance(entry, dict):
        raise InputError(where, "neither the name of a field nor a table", f'write {column.name} = "FIELD"')
    _known(entry, _FIELD, where)
    if sum(key in entry for key in ("from", "first", "value", "any")) != 1:
        raise InputError(where, "needs either from or value (or first, or any, a list of conditions)")
    _check_kinds(entry, where)
    _check_condition(entry, where)
    if "unit" in entry:
        _choice(entry, "unit", units_of(column), where)
    if "time" in entry:
        _choice(entry, "time", TIME_FORMS, where)
    return Field(
        sources=_names(entry.get("from", entry.get("first", ()))),
        is_first="first" in entry,
        value=None if "value" not in entry else str(entry["value"]),
        unit=entry.get("unit"),
        time=entry.get("time"),
        zone=_zone(entry, where),
        is_in=_values(entry, "is", where),
        is_one_sided="otherwise" in entry,
        none=_values(entry, "none", where),
        any_of=tuple(_condition(it, where) for it in entry.get("any", ())),
        is_end=bool(entry.get("end", False)),
        is_network=bool(entry.get("network", False)),
        pattern=_group(entry["pattern"], where) if "pattern" in entry else None,
        names=tuple((str(a), str(b)) for a, b in entry.get("names", {}).items()),
        is_required=is_required,
    )


def _check_kinds(entry: dict[str, Any], where: str) -> None:
    """Whether each value has the type of its key."""
    kinds: tuple[tuple[str, Kind, str], ...] = (
        ("from", "name or names", 'write from = "FIELD"'),
        ("first", "names", 'write first = ["FIELD", "FIELD"]'),
        ("names", dict, 'write names = { "VALUE" = "NAME" }'),
        ("any", list, 'write any = [{ from = "FIELD", is = ["VALUE"] }]'),
        ("network", bool, "write network = true"),
        ("end", bool, "write end = true"),
    )
    for key, kind, remedy in kinds:
        if key in entry and not _is_of(entry[key], kind):
            raise InputError(f"{where}.{key}", f"{entry[key]!r} is not {_WORDS[kind]}", remedy)


def _check_condition(entry: dict[str, Any], where: str) -> None:
    """Whether the entry is a condition, or a value, and not half of each."""
    is_condition = "is" in entry or "any" in entry
    for key in _ONLY_OF_VALUES if is_condition else ():
        if key in entry:
            problem = f"a condition is 1 or 0 and has no {key}"
            raise InputError(where, problem, f"leave out {key}, or {'is' if 'is' in entry else 'any'}")
    if "otherwise" in entry and ("is" not in entry or entry["otherwise"] != "unknown"):
        raise InputError(
            f"{where}.otherwise", "it is for conditions", 'write otherwise = "unknown" next to is'
        )
    if "first" in entry and "is" in entry:
        raise InputError(
            where, "first and is do not go together", "write any, with a condition for each field"
        )


def _zone(entry: dict[str, Any], where: str) -> tzinfo:
    if "zone" not in entry:
        return UTC
    if entry.get("time") not in ZONED:
        raise InputError(f"{where}.zone", f"only times of the forms {' and '.join(ZONED)} may lack one")
    try:
        return ZoneInfo(str(entry["zone"]))
    except (KeyError, OSError, ValueError):
        problem = f"no time zone {entry['zone']!r}"
        raise InputError(f"{where}.zone", problem, 'write a name such as "Asia/Kolkata"') from None


def _values(entry: dict[str, Any], key: str, where: str) -> tuple[str, ...]:
    """The texts of a list of values."""
    values = entry.get(key, [])
    if not isinstance(values, list) or any(isinstance(it, list | dict) for it in values):
        problem = f"{values!r} is not a list of values"
        raise InputError(f"{where}.{key}", problem, f'write {key} = ["{values}"]')
    return tuple(written(it) for it in values)


def _names(of: Any) -> tuple[str, ...]:
    return (of,) if isinstance(of, str) else tuple(of)


def _connection(entry: dict[str, Any], place: str) -> ConnectionRule:
    where = f"{place}, connection"
    _known(entry, ("address", "port"), where)
    if "address" not in entry:
        raise InputError(where, "needs address, the field with the client's address")
    return ConnectionRule(str(entry["address"]), str(entry["port"]) if "port" in entry else None)


def _unit(entry: dict[str, Any], place: str) -> UnitRule:
    where = f"{place}, unit"
    _known(entry, ("from", "kind", "pattern", "salt", "key", "arms", "share"), where)
    if not isinstance(entry.get("from"), str):
        raise InputError(where, "needs from, the field with what was assigned", 'write from = "FIELD"')
    if not _is_of(entry.get("arms", []), "names"):
        raise InputError(
            f"{where}.arms", f"{entry['arms']!r} is not a list of names", 'write arms = ["a", "b"]'
        )
    key = str(entry.get("key", "00" * 16))
    if not re.fullmatch(r"[0-9a-fA-F]{32}", key):
        raise InputError(f"{where}.key", f"{key!r} has not 32 hexadecimal digits", "copy it from the policy")
    share = re.fullmatch(r"(\d+(?:\.\d{1,2})?)%", str(entry.get("share", "100%")))
    if share is None or float(share[1]) > 100:
        raise InputError(f"{where}.share", f"{entry['share']!r} is not a share", 'write "10%"')
    experiment = Experiment(
        name=str(entry.get("salt", "")),
        arms=tuple(entry.get("arms", (NO_ARM,))),
        share=round(float(share[1]) * 100),
        key=bytes.fromhex(key),
    )
    return UnitRule(
        str(entry["from"]),
        _choice(entry, "kind", KINDS, where),
        experiment,
        _group(entry["pattern"], where) if "pattern" in entry else None,
    )


def _group(text: Any, where: str) -> re.Pattern[str]:
    """A regular expression with a group, which is the value."""
    pattern = _pattern(text, f"{where}.pattern")
    if not pattern.groups:
        remedy = f"put what counts into brackets: ({text})"
        raise InputError(f"{where}.pattern", f"{text!r} has no group", remedy)
    return pattern


def _pattern(text: Any, place: str) -> re.Pattern[str]:
    if not isinstance(text, str):
        raise InputError(place, f"{text!r} is not a text", "write pattern = '…'")
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
            raise InputError(place, f"unknown key {key!r}", available(key, keys))
