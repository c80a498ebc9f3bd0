"""From cubes to effects, levels and curves: the calls of the statistics that all parts of an analysis
share.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping, Sequence

import numpy as np
from numpy.typing import NDArray

from uncork.experiment import measures
from uncork.experiment.result import Level, Measure
from uncork.measure.cubes import Cube, DistributionCube, RatioCube
from uncork.measure.stats import cuped, jackknife
from uncork.measure.stats.effect import Effect, NoInterval, Outcome
from uncork.measure.stats.tails import student_quantile

Cubes = Mapping[str, Cube]


def outcomes(
    cube: Cube, wanted: Sequence[Measure], *, level: float, estimand: str, past: Cube | None = None
) -> list[Outcome]:
    """The effect of arm 1 against arm 0 on each measure of one metric; adjusted by the past where there is
    one.
    """
    quantiles = [q for measure in wanted if (q := measures.quantile(measure.statistic))]
    if isinstance(cube, DistributionCube) and len(quantiles) == len(wanted) and past is None:
        return jackknife.quantile_effects(
            cube.counts[0],
            cube.counts[1],
            quantiles,
            first_bin=cube.first_bin,
            gamma=cube.gamma,
            level=level,
            estimand=estimand,
        )
    return [_outcome(cube, measure, level, estimand, past) for measure in wanted]


def _outcome(cube: Cube, measure: Measure, level: float, estimand: str, past: Cube | None) -> Outcome:
    q = measures.quantile(measure.statistic)
    if isinstance(cube, DistributionCube) and q:
        return _quantile(cube, q, level, estimand, past)
    now = _sums(cube)
    if past is None:
        return jackknife.ratio_effect(*now, level=level, estimand=estimand)
    adjusted = cuped.ratio_effect(now, _sums(past), level=level, estimand=estimand)
    return (
        adjusted
        if isinstance(adjusted, Effect)
        else jackknife.ratio_effect(*now, level=level, estimand=estimand)
    )


def _quantile(cube: DistributionCube, q: float, level: float, estimand: str, past: Cube | None) -> Outcome:
    plain = jackknife.quantile_effect(
        cube.counts[0],
        cube.counts[1],
        q,
        first_bin=cube.first_bin,
        gamma=cube.gamma,
        level=level,
        estimand=estimand,
    )
    if not isinstance(past, DistributionCube) or not isinstance(plain, Effect):
        return plain
    adjusted = cuped.quantile_effect(
        (cube.counts[0], cube.counts[1]),
        (past.counts[0], past.counts[1]),
        q,
        first_bins=(cube.first_bin, past.first_bin),
        gamma=cube.gamma,
        level=level,
        estimand=estimand,
    )
    return adjusted if isinstance(adjusted, Effect) else plain


def _sums(cube: Cube) -> tuple[NDArray[np.float64], ...]:
    ratio = cube.mean() if isinstance(cube, DistributionCube) else cube
    return ratio.numerator[0], ratio.denominator[0], ratio.numerator[1], ratio.denominator[1]


def level_of(cube: Cube | None, arm: int, measure: Measure, at: str, *, level: float = 0.95) -> Level:
    """One arm's value with a jackknife interval on the logarithmic scale; empty where there is too little."""
    replicates = _replicates(cube, arm, measure)
    if replicates is None:
        return Level(at, None, None, None)
    value = float(replicates[0])
    if np.any(replicates <= 0):
        return Level(at, value, None, None)
    logs = np.log(replicates)
    count = len(logs) - 1
    error = float(np.std(logs[1:]) * math.sqrt(count - 1))
    reach = student_quantile(0.5 + level / 2, count - 1) * error
    return Level(at, value, value * math.exp(-reach), value * math.exp(reach))


def _replicates(cube: Cube | None, arm: int, measure: Measure) -> NDArray[np.float64] | None:
    """The value of all buckets, then without each that has data."""
    if cube is None:
        return None
    q = measures.quantile(measure.statistic)
    if isinstance(cube, DistributionCube) and q:
        counts = cube.counts[arm]
        counts = counts[counts.sum(axis=1) > 0]
        if len(counts) < 2 or counts.sum() / cube.whole * min(q, 1 - q) < 5:
            return None
        return jackknife.quantiles_with_replicates(
            counts, np.array([q]), first_bin=cube.first_bin, gamma=cube.gamma
        )[:, 0]
    ratio = cube.mean() if isinstance(cube, DistributionCube) else cube
    used = ratio.denominator[arm] > 0
    numerator, denominator = ratio.numerator[arm][used], ratio.denominator[arm][used]
    if len(denominator) < 2:
        return None
    values: NDArray[np.float64] = np.append(numerator.sum(), numerator.sum() - numerator) / np.append(
        denominator.sum(), denominator.sum() - denominator
    )
    return values


def total(cubes: Iterable[Cube]) -> Cube | None:
    """The sum of cubes of one metric."""
    parts = list(cubes)
    if not parts:
        return None
    if all(isinstance(part, RatioCube) for part in parts):
        ratios = [part for part in parts if isinstance(part, RatioCube)]
        return RatioCube(
            np.sum([part.numerator for part in ratios], axis=0),
            np.sum([part.denominator for part in ratios], axis=0),
        )
    counted = [part for part in parts if isinstance(part, DistributionCube)]
    first = min(part.first_bin for part in counted)
    last = max(part.first_bin + part.counts.shape[2] for part in counted)
    counts = np.zeros((*counted[0].counts.shape[:2], last - first), dtype=np.int64)
    for part in counted:
        start = part.first_bin - first
        counts[:, :, start : start + part.counts.shape[2]] += part.counts
    return DistributionCube(counts, first, counted[0].gamma, counted[0].whole)


def pooled(parts: Sequence[Cubes], metrics: Iterable[str]) -> dict[str, Cube]:
    """The sum of cells, of these metrics."""
    sums = {name: total([cubes[name] for cubes in parts if name in cubes]) for name in dict.fromkeys(metrics)}
    return {name: cube for name, cube in sums.items() if cube is not None}


def curve(
    cube: DistributionCube, *, level: float, estimand: str
) -> tuple[tuple[float, float, float, float], ...]:
    """The quantile treatment curve where it can be estimated: (quantile, ratio, low, high)."""
    points = jackknife.treatment_curve(
        cube.counts[0],
        cube.counts[1],
        first_bin=cube.first_bin,
        gamma=cube.gamma,
        level=level,
        estimand=estimand,
    )
    return tuple(
        (q, effect.ratio, effect.ratio_low, effect.ratio_high)
        for q, effect in points
        if isinstance(effect, Effect)
    )


def cdf(
    cube: DistributionCube, arm: int, *, level: float, most: int = 140
) -> tuple[tuple[float, float, float, float], ...]:
    """One arm's distribution function with its band, at most `most` points: (value, share, low, high)."""
    band = jackknife.cdf_band(cube.counts[arm], first_bin=cube.first_bin, gamma=cube.gamma, level=level)
    if isinstance(band, NoInterval):
        return ()
    every = -(-len(band.values) // most)
    columns = (band.values, band.share, band.low, band.high)
    return tuple(zip(*(map(float, column[::every]) for column in columns), strict=True))
