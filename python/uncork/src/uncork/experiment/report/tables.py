"""The tables of a report. On a phone each row becomes a card."""

from __future__ import annotations

from collections.abc import Sequence
from html import escape

from uncork.experiment import measures, words
from uncork.experiment.result import Analysis, Cell, Finding, Guarded, Incident, Interference, Row
from uncork.experiment.verdict import SOURCES, key_words, waiting_words
from uncork.measure.stats.effect import TOTAL_EFFECT

DO = {"enable": "enable {treated}", "keep": "keep {control}", "wait": "wait", "none": "no verdict"}
TONES = {"better": "better", "worse": "worse"}
FIRST = 12
"""Rows of a table of cells that are not folded away."""


def table(
    headings: Sequence[str],
    rows: Sequence[Sequence[str]],
    caption: str = "",
    left: Sequence[int] = (),
    wide: Sequence[int] = (),
) -> str:
    """A table of ready HTML cells; the first is the row's name. Columns of words, `left`, are set left;
    those in `wide` are left out on a phone."""
    heads = "".join(
        f'<th scope="col"{_class(n, left, wide)}>{escape(heading)}</th>' for n, heading in enumerate(headings)
    )
    body = "".join(
        "<tr>"
        + f'<th scope="row" class="broad">{row[0]}</th>'
        + "".join(
            f'<td{_class(n, left, wide)} data-h="{escape(headings[n])}">{cell}</td>'
            for n, cell in enumerate(row[1:], 1)
        )
        + "</tr>\n"
        for row in rows
    )
    below = f"<caption>{escape(caption)}</caption>\n" if caption else ""
    return (
        '<div class="wide cards" tabindex="0" role="group" aria-label="Table">\n<table '
        f'class="free">\n{below}'
        f"<thead>\n<tr>{heads}</tr>\n</thead>\n<tbody>\n{body}</tbody>\n</table>\n</div>\n"
    )


def _class(n: int, left: Sequence[int], wide: Sequence[int] = ()) -> str:
    names = [name for name, some in (("l", left), ("wide-only", wide)) if n in some]
    return f' class="{" ".join(names)}"' if names else ""


def toned(text: str, verdict: str) -> str:
    """A figure in the colour of better or worse; the word stands next to it in the table."""
    return f'<span class="{TONES[verdict]}">{escape(text)}</span>' if verdict in TONES else escape(text)


def change_cell(row: Row | None) -> str:
    """`+6.1 %` and its interval, of shares with the percentage points."""
    if row is None or row.effect is None:
        return "–"
    effect = row.effect
    change = toned(words.change(effect.ratio), row.verdict)
    if words.is_share(row.unit):
        change += f" ({escape(words.points(effect.difference))})"
    reach = escape(words.interval(effect.ratio_low, effect.ratio_high))
    return f'{change}<br/><span class="spread">{reach}</span>'


def decisions(analysis: Analysis, key: str) -> str:
    """Cells of a key with what to do in each."""
    cells = [cell for cell in analysis.cells if cell.key == key]
    control, treated = analysis.facts.names
    several = len({cell.primary.measure for cell in cells if cell.primary}) > 1
    headings = [
        key_words(key),
        "decision",
        "change, 95 % interval",
        "q",
        f"{control} → {treated}",
        "retransmitted",
        "units",
        "of all",
    ]
    rows = [_decision(cell, control, treated, several) for cell in cells]
    whole = next((row for row in analysis.scorecard if row.role == "primary"), None)
    caption = (
        f"By {whole.name if whole else 'the primary measure'}. Units are what was assigned: "
        f"{analysis.facts.control} / "
    )
    caption += f"{analysis.facts.treated}. q is the p-value after correction for all cells of this "
    caption += (
        "table. Where cells do not differ by more than chance, the effect over all clients decides for all."
    )
    caption += adjusted([cell.primary for cell in cells])
    if len(rows) <= FIRST + 3:
        return table(headings, rows, caption, (0, 1))
    rest = table(headings, rows[FIRST:], "", (0, 1))
    return (
        table(headings, rows[:FIRST], caption, (0, 1))
        + f'<details class="kept">\n<summary>{len(rows) - FIRST} more</summary>\n{rest}</details>\n'
    )


def _decision(cell: Cell, control: str, treated: str, several: bool) -> list[str]:
    row = cell.primary
    do = DO[cell.advice].format(control=control, treated=treated)
    why = cell.why
    if cell.advice == "wait":
        do = f"{do}: {waiting_words(cell)}"
    sent = next((one for one in cell.rows if one.measure.metric == "retransmitted"), None)
    name = f"<br/><small>{escape(row.name)}</small>" if several and row else ""
    return [
        escape(cell.value),
        f'<strong>{escape(do)}</strong><br/><span class="why">{escape(why)}</span>',
        change_cell(row) + name,
        words.probability(row.q_value if row else None).replace("<", "&lt;"),
        both(row),
        both(sent),
        f"{cell.units[0]:,} / {cell.units[1]:,}",
        f"{100 * cell.share:.1f} %",
    ]


def both(row: Row | None) -> str:
    """`12.4 → 14.7 Mbit/s`."""
    if row is None or row.control is None or row.treated is None:
        return "–"
    raw = f"<br/>{aside(row)}" if row.raw_treated is not None else ""
    return escape(words.pair(row.control, row.treated, row.unit)) + raw


def aside(row: Row) -> str:
    """The measured value, next to an adjusted one."""
    return (
        f'<span class="spread measured">measured {escape(words.quantity(row.raw_treated, row.unit))}</span>'
    )


def measured(row: Row) -> str:
    """The treated value; where it is adjusted, with the measured value."""
    treated = escape(words.quantity(row.treated, row.unit))
    return treated if row.raw_treated is None else f"{treated}<br/>{aside(row)}"


def adjusted(rows: Sequence[Row | None]) -> str:
    """What adjusted values are, if there are any."""
    if all(row is None or row.raw_treated is None for row in rows):
        return ""
    return (
        " The change is adjusted by what the same units did before the switch (CUPED), and the treated value "
        "is control times that change; the measured value stands next to it."
    )


def scorecard(analysis: Analysis) -> str:
    """Every measure over all clients."""
    control, treated = analysis.facts.names
    headings = [
        "measure",
        "verdict",
        control,
        treated,
        "change, 95 % interval",
        "q",
        "MDE",
        "source",
        "estimand",
    ]
    rows = [
        [
            escape(row.name) + (" <small>primary</small>" if row.role == "primary" else ""),
            toned(row.verdict, row.verdict),
            words.quantity(row.control, row.unit),
            measured(row),
            change_cell(row),
            words.probability(row.q_value).replace("<", "&lt;"),
            f"{100 * row.mde:.1f} %" if row.mde is not None else "–",
            escape(SOURCES.get(row.source, row.source) or "records"),
            escape(row.effect.estimand if row.effect else ""),
        ]
        for row in analysis.scorecard
    ]
    estimands = words.listed(
        list(dict.fromkeys(row.effect.estimand for row in analysis.scorecard if row.effect))
    )
    caption = (
        "MDE: the smallest change that this much data finds four times out of five. A wide interval is no "
        "proof of "
        "equality. q: p-value adjusted for all rows but the primary one, which was declared "
        "(Benjamini-Hochberg). "
        f"Verdicts need q < 0.05. Every row estimates: {estimands}."
    )
    caption += adjusted(analysis.scorecard)
    return table(headings, rows, caption, (0, 1, 7, 8), (7, 8))


SIGNS = {
    "holds": ("✓", "yes"),
    "ok": ("✓", "yes"),
    "broken": ("✗", "no"),
    "blocks": ("✗", "no"),
    "likely holds": ("✓", "soft"),
    "likely broken": ("!", "no"),
    "open": ("?", "soft"),
    "warning": ("!", "soft"),
    "not run": ("–", "soft"),
}


def sign(state: str) -> str:
    mark, kind = SIGNS[state]
    return f'<span class="{kind}"><span aria-hidden="true">{mark}</span> {escape(state)}</span>'


def guardrails(guards: Sequence[Guarded], control: str, treated: str) -> str:
    """The guardrails with their bounds."""
    rows = [
        [
            escape(one.name),
            sign(one.state),
            escape(one.limit),
            harm(one),
            words.quantity(one.row.control, one.row.unit),
            words.quantity(one.row.treated, one.row.unit),
        ]
        for one in guards
    ]
    caption = (
        "Worse by: with the interval that holds at every look. Broken: proven beyond the limit, by that "
        "interval or, at the last planned look, by the fixed one. Likely: by the estimate alone. Open: no "
        "estimate."
    )
    return table(["guardrail", "state", "limit", "worse by", control, treated], rows, caption, (0, 1, 2))


def harm(one: Guarded) -> str:
    if one.harm is None or one.harm_low is None or one.harm_high is None:
        return escape(one.row.reason or "–")
    if one.limit.endswith("pp"):
        return (
            f'{words.points(one.harm)}<br/><span class="spread">{words.points(one.harm_low)} to '
            f"{words.points(one.harm_high)}</span>"
        )
    ends = words.interval(1 + one.harm_low, 1 + one.harm_high)
    return f'{words.change(1 + one.harm)}<br/><span class="spread">{ends}</span>'


def health(findings: Sequence[Finding]) -> str:
    rows = [
        [escape(one.name), sign(one.severity), escape(one.sentence), escape(one.remedy)] for one in findings
    ]
    return table(["check", "state", "finding", "remedy"], rows, "", (0, 1, 2, 3))


def incident(of: Incident, names: tuple[str, str]) -> str:
    """Both arms before, during and after."""
    rows = [
        [escape(row.name), escape(phase), both(row), change_cell(row)]
        for measure in dict.fromkeys(row.measure for _, some in of.phases for row in some)
        for phase, some in of.phases
        for row in some
        if row.measure == measure
    ]
    return table(["measure", "when", f"{names[0]} → {names[1]}", "change, 95 % interval"], rows, "", (0, 1))


def estimands(analysis: Analysis, found: Interference) -> str:
    """A/B, spill-over and total effect: the estimate of each."""
    row = next((row for row in analysis.scorecard if row.role == "primary"), None)
    unknown = "not known"
    rows = []
    if row is not None and row.effect is not None:
        rows.append(
            [escape(row.effect.estimand), change_cell(row), "the difference between the arms, side by side"]
        )
    spill = found.spill_over
    rows.append(
        [
            "spill-over",
            escape(
                f"{words.change(spill.ratio)} ({words.interval(spill.ratio_low, spill.ratio_high)})"
                if spill
                else unknown
            ),
            "how the control arm moves because others are treated, from none to all",
        ]
    )
    for one in analysis.designed[:6]:
        effect = one.effect
        change = (
            f"{words.change(effect.ratio)} ({words.interval(effect.ratio_low, effect.ratio_high)})"
            if effect
            else "–"
        )
        about = f"{measures.name(one.measure)}, by {one.design}" + (f": {one.reason}" if one.reason else "")
        rows.append([escape(one.estimand), escape(change), escape(about)])
    if not any(one.estimand == TOTAL_EFFECT for one in analysis.designed):
        rows.append(["total effect", unknown, "all treated against none: needs a switchback or paired links"])
    return table(["quantity", row.name if row else "estimate", "what it is"], rows, "", (0, 2))
