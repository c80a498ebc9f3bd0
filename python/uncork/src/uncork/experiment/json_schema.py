"""The JSON Schema of the result document, from the types of `result`.

    python -m uncork.experiment.json_schema > docs/schemas/experiment-1.json

writes it; a test compares.
"""

from __future__ import annotations

import ast
import inspect
import json
import types
from collections.abc import Mapping
from dataclasses import fields, is_dataclass
from typing import Any, Union, get_args, get_origin, get_type_hints

from uncork.experiment import result
from uncork.experiment.document import SCHEMA
from uncork.experiment.result import Analysis, Measure, Verdict
from uncork.measure import console
from uncork.measure.stats import effect

Json = dict[str, Any]

CHOICES: dict[tuple[str, str], list[str]] = {
    ("Row", "better"): ["higher", "lower"],
    ("Row", "role"): ["primary", "secondary", "guardrail"],
    ("Row", "verdict"): ["better", "worse", "equivalent", "inconclusive", "no interval"],
    ("Guarded", "state"): ["holds", "likely holds", "open", "likely broken", "broken"],
    ("Cell", "advice"): ["enable", "keep", "wait", "none"],
    ("Finding", "severity"): ["ok", "warning", "blocks", "not run"],
    ("Verdict", "decision"): [
        "enable",
        "enable some",
        "keep",
        "wait",
        "stop",
        "blocked",
        "refused",
        "A/A",
    ],
}
PLAIN: dict[object, Json] = {
    str: {"type": "string"},
    bool: {"type": "boolean"},
    int: {"type": "integer"},
    float: {"type": ["number", "null"]},
    Measure: {"type": "string", "description": "A metric and its statistic, such as `throughput:p50`."},
    type(None): {"type": "null"},
}


def schema() -> Json:
    """The whole schema, draft 2020-12."""
    definitions: dict[str, Json] = {}
    head: dict[str, Json] = {
        "schema": {"const": SCHEMA},
        "version": {"type": "string", "description": "Of uncork."},
        "command": {"type": "string", "description": "Repeats the analysis."},
        "verdict": _of(Verdict, definitions),
    }
    body = _object(Analysis, definitions)
    return {
        "$schema": "https://json-schema.org/draft/2020-12/schema",
        "title": "Result of `uncork experiment analyze`",
        "description": "All that the report shows. Rates are in bit/s, times in s, shares as parts of 1; "
        "ratios are "
        "treated over control. A number is null where it is not known.",
        "type": "object",
        "properties": head | body["properties"],
        "required": [*head, *body["required"]],
        "additionalProperties": False,
        "$defs": dict(sorted(definitions.items())),
    }


def _of(kind: Any, definitions: dict[str, Json]) -> Json:
    if kind in PLAIN:
        return dict(PLAIN[kind])
    if is_dataclass(kind) and isinstance(kind, type):
        if kind.__name__ not in definitions:
            definitions[kind.__name__] = {}
            definitions[kind.__name__] = _object(kind, definitions)
        return {"$ref": f"#/$defs/{kind.__name__}"}
    origin, arguments = get_origin(kind), get_args(kind)
    if origin is tuple:
        return _array(arguments, definitions)
    if origin is Mapping:
        return {"type": "object", "additionalProperties": _of(arguments[1], definitions)}
    if origin in (Union, types.UnionType):
        return {"anyOf": [_of(argument, definitions) for argument in arguments]}
    raise TypeError(f"{kind} has no place in the document")


def _array(arguments: tuple[Any, ...], definitions: dict[str, Json]) -> Json:
    if len(arguments) == 2 and arguments[1] is Ellipsis:
        return {"type": "array", "items": _of(arguments[0], definitions)}
    items = [_of(argument, definitions) for argument in arguments]
    return {"type": "array", "prefixItems": items, "minItems": len(items), "maxItems": len(items)}


def _object(kind: type, definitions: dict[str, Json]) -> Json:
    hints = get_type_hints(kind, vars(result) | vars(effect))
    about = _about(kind)
    properties = {}
    for field in fields(kind):
        one = _of(hints[field.name], definitions)
        choices = CHOICES.get((kind.__name__, field.name))
        one |= {"enum": choices} if choices else {}
        one |= {"description": about[field.name]} if field.name in about else {}
        properties[field.name] = one
    return {
        "type": "object",
        "description": " ".join(inspect.cleandoc(kind.__doc__ or "").split()),
        "properties": properties,
        "required": list(properties),
        "additionalProperties": False,
    }


def _about(kind: type) -> dict[str, str]:
    """The sentence below each field in the source."""
    body = ast.parse(inspect.getsource(kind)).body[0]
    assert isinstance(body, ast.ClassDef)
    about = {}
    for one, after in zip(body.body, body.body[1:], strict=False):
        if (
            isinstance(one, ast.AnnAssign)
            and isinstance(one.target, ast.Name)
            and isinstance(after, ast.Expr)
        ):
            text = ast.literal_eval(after.value)
            about[one.target.id] = " ".join(str(text).split())
    return about


def text() -> str:
    """The schema as JSON."""
    return json.dumps(schema(), ensure_ascii=False, indent=2) + "\n"


if __name__ == "__main__":
    console.data(text())
