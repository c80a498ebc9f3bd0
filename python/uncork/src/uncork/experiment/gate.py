"""Whether a version may go on to more hosts of a fleet: the file of `uncork fleet publish --stop-if`.

Its format is docs/schemas/fleet-gate-1.json.
"""

from __future__ import annotations

from collections.abc import Mapping
from datetime import UTC, datetime, timedelta
from typing import Any

from uncork.experiment.verdict import HARM, NO_VERDICT
from uncork.measure.errors import InputError

SCHEMA = "uncork.fleet-gate/1"


def gate(result: object, version: int, ended_unix_s: int, source: str) -> dict[str, object] | None:
    """The verdict on a version, from the result of an analysis that ended then. Proven harm stops it, over
    all clients or in a cell. None: the records give no verdict yet, and the version must not go on.
    """
    verdict = _verdict(result, source)
    status = verdict["exit_status"]
    if status == NO_VERDICT or (status != HARM and verdict["decision"] == "wait"):
        return None
    return {
        "schema": SCHEMA,
        "version": version,
        "unix_s": min(ended_unix_s, _last_unix_s(result, source)),
        "stop": status == HARM,
        "reason": str(verdict["sentence"]),
    }


def _last_unix_s(result: object, source: str) -> int:
    """The end of the last day of the records: they say nothing of a stage that began later."""
    facts = result.get("facts") if isinstance(result, dict) else None
    until = facts.get("until") if isinstance(facts, dict) else None
    try:
        day = datetime.strptime(str(until), "%Y-%m-%d").replace(tzinfo=UTC)
    except ValueError:
        problem, remedy = f"facts.until is {until!r}, not a day", "name the result.json that analyze -o wrote"
        raise InputError(source, problem, remedy) from None
    return int((day + timedelta(days=1)).timestamp())


def _verdict(result: object, source: str) -> Mapping[str, Any]:
    verdict = result.get("verdict") if isinstance(result, dict) else None
    needed = {"decision", "exit_status", "sentence"}
    if not isinstance(verdict, dict) or not needed <= verdict.keys():
        raise InputError(source, "not a result of analyze", "name the result.json that analyze -o wrote")
    return verdict
