"""Calendars of experiments in time: which arm, or which share, is active where and when. Seeded, so
reproducible."""

from __future__ import annotations

import csv
import io
from collections.abc import Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from itertools import groupby

import numpy as np

from uncork.measure.errors import InputError
from uncork.measure.stats.switchback import DAY, WEEK, paired_schedule

BITS = 2**32


@dataclass(frozen=True)
class Span:
    """From `since` to before `until` (Unix seconds) the share `treated` (0 to 1) of the units at `place` is
    treated."""

    since: int
    until: int
    place: str
    treated: float
    pair: int
    """Spans of one pair were ordered by one coin."""


@dataclass(frozen=True)
class Calendar:
    """The spans of a design, in order of time and place."""

    kind: str
    """`switchback`, `paired links` or `steps of the share`."""
    seed: int
    burn_in: int
    """Seconds at the start of each span. Connections that begin there are left out."""
    spans: tuple[Span, ...]

    def mixed_shares(self) -> tuple[float, ...]:
        """Shares of the treated arm, ascending, at which a place has both arms."""
        return tuple(sorted({span.treated for span in self.spans if 0 < span.treated < 1}))


def switchback(
    places: Sequence[str],
    since: int,
    *,
    block: int,
    periods: int,
    seed: int,
    period: int = WEEK,
    burn_in: int = 600,
) -> Calendar:
    """Each place alternates by itself. Blocks of `block` seconds are paired by their hour in successive
    periods."""
    if burn_in >= block:
        raise InputError(
            "--burn-in", f"{burn_in} s leave nothing of a block of {block} s", "choose longer blocks"
        )
    spans = []
    for at, place in enumerate(places):
        try:
            plan = paired_schedule(
                since, block=block, period=period, periods=periods, rng=np.random.default_rng((seed, at))
            )
        except ValueError as error:
            raise InputError("the switchback", str(error)) from error
        pairs = int(plan.pair.max()) + 1
        spans += [
            Span(int(start), int(start) + block, place, float(treated), at * pairs + int(pair))
            for start, treated, pair in zip(plan.start, plan.treated, plan.pair, strict=True)
        ]
    return Calendar("switchback", seed, burn_in, _in_order(spans))


def paired_links(
    links: tuple[str, str],
    since: int,
    *,
    periods: int,
    seed: int,
    shares: tuple[float, float] = (0.05, 0.95),
    period: int = DAY,
    burn_in: int = 3_600,
) -> Calendar:
    """One link treats the higher share, the other the lower; they swap within each pair of periods."""
    if periods < 2 or periods % 2 != 0:
        raise InputError("--periods", f"{periods} periods cannot be paired", "choose an even number")
    if links[0] == links[1]:
        raise InputError("--place", f"both links are {links[0]}", "name two links")
    heads = np.random.default_rng(seed).integers(0, 2, periods // 2)
    spans = []
    for number in range(periods):
        high = (int(heads[number // 2]) + number) % 2
        start = since + number * period
        spans += [
            Span(start, start + period, link, shares[int(at == high)], number // 2)
            for at, link in enumerate(links)
        ]
    return Calendar("paired links", seed, burn_in, _in_order(spans))


def steps(
    places: Sequence[str],
    since: int,
    *,
    seed: int,
    shares: Sequence[float] = (0.05, 0.5, 0.95),
    period: int = DAY,
    burn_in: int = 3_600,
) -> Calendar:
    """Steps of the treated share in an order that is drawn for each place, to see whether the control arm
    moves."""
    spans = []
    for at, place in enumerate(places):
        order = np.random.default_rng((seed, at)).permutation(np.asarray(shares, dtype=np.float64))
        spans += [
            Span(since + number * period, since + (number + 1) * period, place, float(share), at)
            for number, share in enumerate(order)
        ]
    return Calendar("steps of the share", seed, burn_in, _in_order(spans))


def to_csv(calendar: Calendar) -> str:
    """The calendar as CSV: since, until (UTC), place, treated share, pair, and the time from which records
    count."""
    text = io.StringIO()
    lines = csv.writer(text, lineterminator="\n")
    lines.writerow(["since", "until", "place", "treated", "pair", "counts_from"])
    for span in calendar.spans:
        times = [utc(time) for time in (span.since, span.until, span.since + calendar.burn_in)]
        lines.writerow([*times[:2], span.place, f"{span.treated:g}", span.pair, times[2]])
    return text.getvalue()


def merged(spans: Sequence[Span]) -> list[Span]:
    """Adjacent spans of one place and share as one."""
    whole: list[Span] = []
    for _, some in groupby(
        sorted(spans, key=lambda span: (span.place, span.since)), key=lambda span: span.place
    ):
        for span in some:
            last = whole[-1] if whole else None
            if last and (last.place, last.treated, last.until) == (span.place, span.treated, span.since):
                whole[-1] = Span(last.since, span.until, span.place, span.treated, last.pair)
            else:
                whole.append(span)
    return whole


def utc(seconds: int) -> str:
    """A Unix time as `2026-12-01T18:00:00Z`."""
    return datetime.fromtimestamp(seconds, UTC).strftime("%Y-%m-%dT%H:%M:%SZ")


def _in_order(spans: Sequence[Span]) -> tuple[Span, ...]:
    return tuple(sorted(spans, key=lambda span: (span.since, span.place)))
