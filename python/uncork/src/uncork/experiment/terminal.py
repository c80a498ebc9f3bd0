"""The scorecard on a terminal, within its width."""

from __future__ import annotations

import textwrap
from collections.abc import Sequence

from uncork.experiment import words
from uncork.experiment.result import Analysis, Cell, Guarded, Row, Verdict
from uncork.experiment.verdict import key_words, waiting_words
from uncork.measure.console import in_line

ADJUSTED = (
    "Changes of the primary measure are adjusted by what the same units did before the switch (CUPED): the "
    "value of "
    "the treated arm is control times the change; as measured it is in the report."
)
NARROWEST = 40
SAID = {"holds": "that hold", "open": "without an estimate", "likely holds": "that likely hold"}
DO = {"enable": "enable {treated}", "keep": "keep {control}", "wait": "wait", "none": "no verdict"}


def scorecard(analysis: Analysis, verdict: Verdict, width: int) -> str:
    """Decision, guardrails, cells, health and measures."""
    width = max(width, NARROWEST)
    facts = analysis.facts
    blocks = [
        wrapped(
            f"{facts.names[1]} against {facts.names[0]} · {facts.experiment} · "
            f"{words.counted(facts.days, 'day')}, {words.counted(facts.total_units, 'unit')}, "
            f"{words.counted(facts.rows, 'record')}{_left_out(analysis)}",
            width,
        )
    ]
    if facts.made_up:
        blocks.append(
            wrapped("MADE UP: the records come from a small generator; nothing was measured.", width)
        )
    blocks.append("\n".join(wrapped(text, width) for text in (verdict.sentence, *verdict.reasons)))
    blocks += _guardrails(analysis, width)
    blocks += _health(analysis, width)
    for key in dict.fromkeys(cell.key for cell in analysis.cells):
        blocks.append(_cells(analysis, key, width))
    blocks.append(_measures(analysis, width))
    if any(row.raw_treated is not None for row in analysis.scorecard):
        blocks.append(wrapped(ADJUSTED, width))
    return "\n\n".join(block for block in blocks if block) + "\n"


def _left_out(analysis: Analysis) -> str:
    left_out = sum(analysis.facts.rejected.values())
    return f", {left_out:,} left out" if left_out else ""


def wrapped(text: str, width: int, indent: str = "") -> str:
    """The text in lines of at most `width`."""
    return textwrap.fill(text, width, subsequent_indent=indent, break_on_hyphens=False)


def _guardrails(analysis: Analysis, width: int) -> list[str]:
    guards = analysis.guardrails
    marks = {"holds": "✓", "likely holds": "✓", "open": "?", "likely broken": "!", "broken": "✗"}
    order = ("broken", "likely broken", "open", "likely holds", "holds")
    lines = [
        wrapped(
            f"{marks[state]} guardrails {SAID.get(state, state)}: "
            f"{words.listed([_guard(g) for g in guards if g.state == state])}",
            width,
            "  ",
        )
        for state in order
        if any(g.state == state for g in guards)
    ]
    if analysis.not_guarded:
        lines.append(wrapped(f"– {words.not_guarded(analysis.not_guarded)}", width, "  "))
    return ["\n".join(lines)] if lines else []


def _guard(one: Guarded) -> str:
    if one.state == "holds":
        return one.name
    more = f"; about {one.units_more:,} more units" if one.units_more is not None else ""
    return f"{one.name} ({one.limit}{more})"


def _health(analysis: Analysis, width: int) -> list[str]:
    bad = [finding for finding in analysis.health if finding.severity in ("warning", "blocks")]
    idle = [finding.name for finding in analysis.health if finding.severity == "not run"]
    marks = {"warning": "!", "blocks": "✗"}
    lines = [
        wrapped(f"{marks[one.severity]} {one.name}: {one.sentence} {one.remedy}", width, "  ") for one in bad
    ]
    passed = len(analysis.health) - len(bad) - len(idle)
    if passed:
        lines.append(f"✓ {words.counted(passed, 'check')} of the records passed")
    ratio = next(
        (one for one in analysis.health if one.name == "sample ratio" and one.severity == "ok"), None
    )
    if ratio is not None:
        lines.append(wrapped(f"  sample ratio: {ratio.sentence}", width, "  "))
    if idle:
        lines.append(wrapped(f"– not run: {words.listed(idle)} (reasons in the report)", width, "  "))
    return ["\n".join(lines)] if lines else []


def _cells(analysis: Analysis, key: str, width: int) -> str:
    control, treated = analysis.facts.names
    headings = [
        key_words(key),
        "decision",
        "change",
        "95 % interval",
        f"{control} → {treated}",
        "retransmitted",
        "units",
    ]
    rows = [_cell(cell, control, treated) for cell in analysis.cells if cell.key == key]
    return table(headings, rows, width, left=2)


def _cell(cell: Cell, control: str, treated: str) -> list[str]:
    row = cell.primary
    do = DO[cell.advice].format(control=control, treated=treated)
    if cell.advice == "wait":
        do = f"{do}: {waiting_words(cell)}"
    sent = next((one for one in cell.rows if one.measure.metric == "retransmitted"), None)
    return [cell.value, do, *_change(row), _pair(row), _pair(sent), f"{sum(cell.units):,}"]


def _change(row: Row | None) -> list[str]:
    if row is None or row.effect is None:
        return ["–", "–"]
    return [words.change(row.effect.ratio), words.interval(row.effect.ratio_low, row.effect.ratio_high)]


def _pair(row: Row | None) -> str:
    if row is None or row.control is None or row.treated is None:
        return "–"
    return words.pair(row.control, row.treated, row.unit)


def _measures(analysis: Analysis, width: int) -> str:
    control, treated = analysis.facts.names
    headings = [
        "measure",
        "verdict",
        "change",
        "95 % interval",
        f"{control} → {treated}",
        "q",
        "MDE",
        "source",
        "estimand",
    ]
    rows = [
        [
            row.name,
            row.verdict,
            *_change(row),
            _pair(row),
            words.probability(row.q_value),
            f"{100 * row.mde:.1f} %" if row.mde is not None else "–",
            row.source or "–",
            row.effect.estimand if row.effect else "–",
        ]
        for row in analysis.scorecard
    ]
    return table(headings, rows, width, left=2)


def table(headings: Sequence[str], rows: Sequence[Sequence[str]], width: int, left: int) -> str:
    """Columns in line; the first `left` are words. What does not fit is left out from the right, and
    counted.
    """
    rows = [[in_line(cell) for cell in line] for line in rows]
    widths = [max(len(line[n]) for line in [headings, *rows]) for n in range(len(headings))]
    shown = len(headings)
    while shown > 2 and sum(widths[:shown]) + 2 * (shown - 1) > width:
        shown -= 1
    cut = width - sum(widths[1:shown]) - 2 * (shown - 1)
    widths[0] = max(min(widths[0], cut), 8)
    lines = [_line(line, widths[:shown], left) for line in [headings, *rows]]
    if shown < len(headings):
        more = words.listed(headings[shown:])
        lines.append(wrapped(f"(in the report: {more})", width))
    return "\n".join(line[:width] for line in lines)


def _line(cells: Sequence[str], widths: Sequence[int], left: int) -> str:
    shown = zip(cells, widths, strict=False)
    parts = [
        _fitted(cell, width).ljust(width) if n < left else cell.rjust(width)
        for n, (cell, width) in enumerate(shown)
    ]
    return "  ".join(parts).rstrip()


def _fitted(cell: str, width: int) -> str:
    return cell if len(cell) <= width else cell[: width - 1] + "…"
