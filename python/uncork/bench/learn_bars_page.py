"""The evidence page of learn_bars.py: from days to Markdown."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

import numpy as np
from learn_bars import AIMED_AT, BAR, BAR_DAYS, CURVE_DAY, SETTINGS, Day

from uncork.learn.budget import BOUNDS

COMMAND = "python bench/learn_bars.py --seeds {seeds} --page ../../docs/evidence/learn.md"


def page(days: Sequence[Day], developed_on: Sequence[str], no_gain: str, seeds: int = 1) -> str:
    """The whole page."""
    played = [one for one in days if one.world != no_gain]
    bars = [one for one in played if one.day in BAR_DAYS]
    return "\n".join(
        [
            "# Does the learned policy decide as well as the evidence allows?",
            "",
            _conclusion(played, bars, [one for one in days if one.world == no_gain]),
            "",
            "The reference knows the true prior of each world. It decides afresh on each day, from the same "
            "estimates and under the same bound of harm (0.2 % of the traffic). *By the rules* is the true "
            "prior with the rules of `learn`: the test of any gain, three days between changes, and networks "
            "that are on come first in the budget of harm. It shows what the rules cost.",
            "",
            "```sh",
            "cd python/uncork",
            COMMAND.format(seeds=seeds),
            "```",
            "",
            f"Constants were chosen on the worlds {' and '.join(developed_on)} alone. Two rules came from "
            "the other worlds: the test of any gain needs products (*alike*), and an entry beyond the budget "
            "of harm must leave (*season*).",
            "",
            "`bench/drawn_worlds.py` says what each world is drawn from. The largest rate has one seed: it "
            "takes ten times as long.",
            "",
            *_summary(bars),
            "",
            "## Gain, errors and harm",
            "",
            "Gains are parts of the oracle's gain, which knows all lifts. z is (belief − truth) / error; its "
            "standard deviation over networks should be 1. Harm is the traffic that is on and more than 2 % "
            "worse: by the claimed probabilities, and truly.",
            "",
            *_table(
                (
                    "world",
                    "random records a day",
                    "seed",
                    "day",
                    "learned",
                    "reference",
                    "by the rules",
                    "learned / reference",
                    "sd of z",
                    "sd of the reference's z",
                    "harm claimed",
                    "harm true",
                ),
                map(_row, bars),
            ),
            "",
            "## Traffic harmed, by claimed probability",
            "",
            "All networks on the days of the table above, by their claimed probability of being more than "
            "2 % worse.",
            "",
            *_table(("claimed", "share of the traffic", "mean claimed", "true"), _deciles(bars)),
            "",
            "## What the bound of harm costs",
            "",
            f"Gain on day {CURVE_DAY} by bound of harm, decided afresh, as a part of the oracle's.",
            "",
            *_table(
                (
                    "world",
                    "random records a day",
                    "seed",
                    *(f"{100 * one:g} %" for one in BOUNDS),
                    "no bound",
                ),
                (
                    [one.world, f"{one.rate:,}", str(one.seed), *map(_percent, one.curve)]
                    for one in played
                    if one.curve
                ),
            ),
            "",
            "## Limits",
            "",
            *_missing(played),
            *_missed(bars),
            "- Evidence is drawn, not measured: a record's throughput is log-normal, and a lift shifts all "
            "quantiles alike. Guardrails are not part of these worlds.",
            "- Where networks turn over (*review* on day 5, *turning* on day 12) the old evidence misleads "
            "until it fades. Held-out days widen errors less than that needs.",
            "- Errors are too wide where networks of an AS are alike and evidence is thin (*alike*, "
            "*turning* before it turns): few networks do not show that siblings are alike.",
            "",
        ]
    )


def _missing(played: Sequence[Day]) -> list[str]:
    """Worlds without the largest rate, which takes ten times as long."""
    most = max(one.rate for one in played)
    there = {one.world for one in played if one.rate == most}
    names = dict.fromkeys(one.world for one in played if one.world not in there)
    return [f"- Not played with {most:,} records a day: {', '.join(names)}."] if names else []


def _conclusion(played: Sequence[Day], bars: Sequence[Day], no_gain: Sequence[Day]) -> str:
    thick, _ = _by_rate(bars)
    left, stayed = sum(one.left for one in played), sum(one.stayed for one in played)
    wrong, runs = sum(one.on for one in no_gain), len({(one.rate, one.seed) for one in no_gain})
    of_reference, of_ruled = _reached(thick, "gain", "reference"), _reached(thick, "gain", "ruled")
    return (
        f"With {_rates(thick)} random records a day, the learned policy reaches {100 * BAR:.0f} % of the "
        f"reference's gain in {of_reference} cases. With the rules of `learn`, the true prior gains less: "
        f"the learned policy reaches {100 * BAR:.0f} % of that in {of_ruled} cases. "
        f"The standard deviation of z is 0.9 to 1.1 in {_fitting(thick, 'z')} cases. "
        f"It switched off {left} networks that gain, in {stayed:,.0f} network-days. "
        f"Where the arms are equal, it switched on {wrong} networks in {runs} runs."
    )


def _by_rate(bars: Sequence[Day]) -> tuple[list[Day], list[Day]]:
    """Cases with the records that the bars are for, and with fewer."""
    return [one for one in bars if one.rate >= AIMED_AT], [one for one in bars if one.rate < AIMED_AT]


def _rates(some: Sequence[Day]) -> str:
    return " and ".join(f"{rate:,}" for rate in sorted({one.rate for one in some}))


def _summary(bars: Sequence[Day]) -> list[str]:
    """Next to each bar, what the true prior reaches."""
    groups = [some for some in _by_rate(bars) if some]
    bar = f"{100 * BAR:.0f} %"
    lines = [
        (f"at least {bar} of the reference's gain", _reached, "gain", "reference"),
        ("the same, by the true prior with the rules of `learn`", _reached, "ruled", "reference"),
        (
            f"at least {bar} of the gain of the true prior with the rules of `learn`",
            _reached,
            "gain",
            "ruled",
        ),
        ("sum of the gains, as a part of the reference's", _part, "gain", "reference"),
        ("the same, as a part of the true prior's with the rules of `learn`", _part, "gain", "ruled"),
    ]
    rows = [(text, *(of(some, *names) for some in groups)) for text, of, *names in lines]
    for text, name in (("sd of z from 0.9 to 1.1", "z"), ("the same, of the reference's z", "z_reference")):
        rows.append((text, *(_fitting(some, name) for some in groups)))
    return _table(("cases", *(f"{_rates(some)} records a day" for some in groups)), rows)


def _reached(bars: Sequence[Day], one_of: str, other: str) -> str:
    with_gain = [(getattr(one, one_of), getattr(one, other)) for one in bars if getattr(one, other) > 0]
    return f"{sum(gain >= BAR * most for gain, most in with_gain)} of {len(with_gain)}"


def _part(bars: Sequence[Day], one_of: str, other: str) -> str:
    return _percent(sum(getattr(one, one_of) for one in bars) / sum(getattr(one, other) for one in bars))


def _fitting(bars: Sequence[Day], of: str) -> str:
    return f"{sum(0.9 <= getattr(one, of) <= 1.1 for one in bars)} of {len(bars)}"


def _missed(bars: Sequence[Day]) -> list[str]:
    harmed = sum(round(one.harm_true, 4) > SETTINGS.harmed for one in bars)
    return [
        "- The reference swaps networks each day; `learn` switches off by a network's own evidence alone.",
        "- `learn` must find the prior in few ASes.",
        f"- More than the budget of {100 * SETTINGS.harmed:g} % of the traffic is truly harmed in {harmed} "
        f"of {len(bars)} cases.",
        "- Days of a world and seed have records in common: cases are not independent.",
    ]


def _row(one: Day) -> list[str]:
    ratio = f"{one.gain / one.reference:.2f}" if one.reference > 0 else "–"
    return [
        one.world,
        f"{one.rate:,}",
        str(one.seed),
        str(one.day),
        _percent(one.gain),
        _percent(one.reference),
        _percent(one.ruled),
        ratio,
        f"{one.z:.2f}",
        f"{one.z_reference:.2f}",
        f"{100 * one.harm_said:.2f} %",
        f"{100 * one.harm_true:.2f} %",
    ]


def _deciles(days: Sequence[Day]) -> Iterable[list[str]]:
    share, said, true = np.sum([one.deciles for one in days], axis=0)
    for at in range(10):
        if share[at] > 0:
            yield [
                f"{10 * at} to {10 * at + 10} %",
                _percent(share[at] / share.sum()),
                _percent(said[at] / share[at]),
                _percent(true[at] / share[at]),
            ]


def _percent(part: float) -> str:
    return f"{100 * part:.1f} %"


def _table(headings: Sequence[str], rows: Iterable[Sequence[str]]) -> list[str]:
    ends = "|".join(["---"] + ["---:"] * (len(headings) - 1))
    return [f"| {' | '.join(headings)} |", f"|{ends}|", *(f"| {' | '.join(row)} |" for row in rows)]
