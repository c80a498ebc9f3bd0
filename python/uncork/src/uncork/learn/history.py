"""The log as lines for a person: rounds that end alike are one line."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from itertools import groupby, pairwise

Line = Mapping[str, object]
INTENT = "activate"
"""What the log has before a version becomes active. What became of it follows."""
ACTIVATED = ("apply", "rollback", "found")
"""What the log has of a version that became active: `found` if another program activated it."""
SIGNED = "sign"
"""An earlier version was signed again, as a new one."""
SHOWN = ("version", "entry", "arm", "result")


def render(log: Sequence[Line]) -> Iterator[str]:
    """Lines, oldest first. Plans of rounds that changed nothing left no version, and are omitted."""
    following = [*pairwise(log), *((line, {}) for line in log[-1:])]
    lines = (line for line, after in following if not _is_left_out(line, after))
    for what, alike in groupby(lines, _what):
        times = [str(line["at"]) for line in alike]
        if what.startswith("round") and len(times) > 1:
            yield f"{times[0]}  {what}, {len(times)} times until {times[-1]}"
        else:
            yield from (f"{at}  {what}" for at in times)


def _what(line: Line) -> str:
    return " ".join([str(line["done"]), *(str(line[name]) for name in SHOWN if line.get(name) is not None)])


def _is_left_out(line: Line, after: Line) -> bool:
    """A plan that changed nothing, and an intent with its outcome."""
    if line["done"] == INTENT:
        return after.get("version") == line.get("version")
    return line["done"] == "plan" and _is_unchanged(after)


def _is_unchanged(line: Line) -> bool:
    return line.get("result") == "unchanged"
