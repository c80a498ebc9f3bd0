"""The evidence page of learn_bars.py: from days to Markdown."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

import numpy as np
from learn_bars import BAR, BAR_DAYS, CURVE_DAY, Day

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
            f"Developed on the worlds {' and '.join(developed_on)}. The others are held out: no constant was "
            "chosen by them. `bench/drawn_worlds.py` says what each is drawn from.",
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
                ("world", "random records a day", *(f"{100 * one:g} %" for one in BOUNDS), "no bound"),
                ([one.world, f"{one.rate:,}", *map(_percent, one.curve)] for one in played if one.curve),
            ),
            "",
            "## Limits",
            "",
            *_missing(played),
            *_unreachable(bars),
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
    with_gain = [one for one in bars if one.reference > 0]
    enough = sum(one.gain >= BAR * one.reference for one in with_gain)
    left, stayed = sum(one.left for one in played), sum(one.stayed for one in played)
    wrong = sum(one.on for one in no_gain)
    gain, reference = (sum(getattr(one, name) for one in bars) for name in ("gain", "reference"))
    z = sum(0.9 <= one.z <= 1.1 for one in bars)
    return (
        f"The learned policy reaches {100 * BAR:.0f} % of the reference's gain in {enough} of "
        f"{len(with_gain)} cases. "
        f"Over all cases it has {100 * gain / reference:.0f} % of the reference's gain. "
        f"It switched off {left} networks that gain, in {stayed:,.0f} network-days. "
        f"Where the arms are equal, it switched on {wrong} networks. "
        f"The standard deviation of z is 0.9 to 1.1 in {z} of {len(bars)} cases."
    )


def _unreachable(bars: Sequence[Day]) -> list[str]:
    """What not even the true prior reaches: no estimator knows more."""
    with_gain = [one for one in bars if one.reference > 0]
    ruled = sum(one.ruled >= BAR * one.reference for one in with_gain)
    z = sum(0.9 <= one.z_reference <= 1.1 for one in bars)
    return [
        f"- By the rules of `learn`, the true prior itself reaches {100 * BAR:.0f} % in {ruled} of "
        f"{len(with_gain)} cases. The reference swaps networks each day; `learn` switches off by a network's "
        "own evidence alone.",
        f"- The true prior's z has a standard deviation of 0.9 to 1.1 in {z} of {len(bars)} cases. `learn` "
        "must find the prior in few ASes, so its z differs between seeds (`--seeds 3`) by up to 0.5.",
    ]


def _row(one: Day) -> list[str]:
    ratio = f"{one.gain / one.reference:.2f}" if one.reference > 0 else "–"
    return [
        one.world,
        f"{one.rate:,}",
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
