"""Whether a version may go on to more hosts of a fleet: the file of `uncork fleet publish --stop-if`.

Its format is docs/schemas/fleet-gate-1.json.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from uncork.experiment.verdict import HARM, NO_VERDICT
from uncork.measure.errors import InputError

SCHEMA = "uncork.fleet-gate/1"


def gate(result: object, version: int, unix_s: int, source: str) -> dict[str, object] | None:
    """The verdict on a version, from the result of an analysis that ended at `unix_s`. Proven harm stops it,
    over all clients or in a cell. None: the records give no verdict, and the version must not go on.
    """
    verdict = _verdict(result, source)
    status = verdict["exit_status"]
    if status == NO_VERDICT:
        return None
    return {
        "schema": SCHEMA,
        "version": version,
        "unix_s": unix_s,
        "stop": status == HARM,
        "reason": str(verdict["sentence"]),
    }


def _verdict(result: object, source: str) -> Mapping[str, Any]:
    verdict = result.get("verdict") if isinstance(result, dict) else None
    if not isinstance(verdict, dict) or not {"exit_status", "sentence"} <= verdict.keys():
        raise InputError(source, "not a result of analyze", "name the result.json that analyze -o wrote")
    return verdict
