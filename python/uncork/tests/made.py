"""Cubes and analyses made by hand, for tests of what is said about them."""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from uncork.experiment.result import Analysis, Cell, Facts, Finding, Guarded, Measure, Row
from uncork.measure.bins import bin_of
from uncork.measure.cubes import DistributionCube, RatioCube, Reduced
from uncork.measure.stats.effect import Effect

GAMMA = 1.02
BUCKETS = 100


def distribution(
    rng: np.random.Generator, ratio: float = 1.0, samples: int = 4000, median: float = 2e7
) -> DistributionCube:
    """Two arms of lognormal values; the second is `ratio` times as large."""
    bins, buckets, arms = [], [], []
    for arm in (0, 1):
        bucket = rng.integers(0, BUCKETS, samples)
        values = median * (ratio if arm else 1.0) * np.exp(rng.normal(0, 0.6, samples))
        bins.append(np.asarray(bin_of(values), dtype=np.int64))
        buckets.append(bucket)
        arms.append(np.full(samples, arm))
    index = np.concatenate(bins)
    first = int(index.min())
    counts = np.zeros((2, BUCKETS, int(index.max()) - first + 1), dtype=np.int64)
    np.add.at(counts, (np.concatenate(arms), np.concatenate(buckets), index - first), 1)
    return DistributionCube(counts, first, GAMMA)


def share(rng: np.random.Generator, control: float, treated: float, per: float = 1e6) -> RatioCube:
    """Two arms of a share, such as bytes sent again."""
    denominator = rng.uniform(0.5, 1.5, (2, BUCKETS)) * per
    rates = np.array([[control], [treated]]) * np.exp(rng.normal(0, 0.2, (2, BUCKETS)))
    return RatioCube(denominator * rates, denominator)


def reduced(
    by: tuple[str, ...], cells: dict[tuple[str, ...], dict[str, DistributionCube | RatioCube]]
) -> Reduced:
    """Cells with ten units for each arm and bucket."""
    units = {key: np.full((2, BUCKETS), 10, dtype=np.int64) for key in cells}
    return Reduced(arms=("control", "bbr"), by=by, cells=cells, units=units, rows=1000)


FACTS = Facts(
    experiment="e",
    control="control",
    treated="bbr",
    controllers=("cubic", "bbr"),
    share=0.5,
    since="2026-11-02",
    until="2026-11-15",
    days=14,
    switch="",
    rows=1000,
    rejected={},
    units=(1000, 1000),
)


def effect(ratio: float, error: float = 0.01) -> Effect:
    """An effect with a 95 % interval of about two errors on each side."""
    p = 0.001 if abs(np.log(ratio)) > 3 * error else 0.5
    return Effect(
        1.0,
        ratio,
        ratio - 1,
        ratio - 1 - 2 * error,
        ratio - 1 + 2 * error,
        ratio,
        ratio * np.exp(-2 * error),
        ratio * np.exp(2 * error),
        p,
        98.0,
        0.95,
        "A/B at share 50 %",
    )


def row(
    ratio: float, verdict: str, role: str = "primary", metric: str = "throughput", source: str = "acked"
) -> Row:
    better = "higher" if metric == "throughput" else "lower"
    one = effect(ratio)
    return Row(
        Measure(metric, "p50"),
        metric,
        "bit/s",
        better,
        role,
        source,
        2e7,
        2e7 * ratio,
        None,
        one,
        "",
        0.01,
        0.03,
        verdict,
    )


def cell(
    value: str,
    ratio: float,
    error: float = 0.01,
    days: int | None = None,
    key: str = "region",
    guardrails: tuple[Guarded, ...] = (),
) -> Cell:
    one = replace(row(ratio, ""), effect=effect(ratio, error))
    return Cell(key, value, (500, 500), 0.25, one, (), guardrails, "wait", "", days)


def guarded(state: str, harm: float | None = None) -> Guarded:
    """Retransmissions, limit 2 points. `harm` in points wins over the state's own."""
    one = replace(
        row(2.0, "worse", "guardrail", "retransmitted"),
        unit="share",
        control=0.01,
        treated=0.05,
        title="retransmitted",
        measure=Measure("retransmitted", "ratio"),
    )
    at = {"broken": 0.04, "likely broken": 0.025, "likely holds": 0.015, "holds": 0.0, "open": None}[state]
    at = at if harm is None else harm
    if at is None:
        return Guarded(one, "at most +2.00 pp", state, None, None, None, limit_amount=0.02)
    return Guarded(one, "at most +2.00 pp", state, at, at - 0.01, at + 0.01, at - 0.008, at + 0.008, 0.02)


def analysis(
    cells: tuple[Cell, ...] = (),
    scorecard: tuple[Row, ...] = (),
    guardrails: tuple[Guarded, ...] = (),
    health: tuple[Finding, ...] = (),
    facts: Facts = FACTS,
) -> Analysis:
    return Analysis(
        facts=facts,
        settings={},
        health=health,
        scorecard=scorecard or (row(1.05, "better"),),
        guardrails=guardrails,
        cells=cells,
        distributions=(),
        daily=(),
        looks=(),
        heat=None,
        prices=(),
        incidents=(),
        interference=None,
    )
