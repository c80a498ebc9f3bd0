"""How much one network can move what is said of many: nothing, if it is far from the others.

A client that sends many bursts, or resets many connections, moves sums over all networks of an AS without
limit. So a trimmed mean over networks leaves out the networks with the strongest evidence of harm, and as
many with the strongest evidence against it. It breaks down when more networks than that lie.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from uncork.experiment import measures
from uncork.experiment.result import Measure
from uncork.learn.evidence import Counts
from uncork.measure.metrics import METRICS

Ints = NDArray[np.int64]
Floats = NDArray[np.float64]
Bools = NDArray[np.bool_]

PART = 10
"""One in `PART` is left out at either end, and at least one."""
FAR = 5.0
"""Deviations from which a group's sample ratio is far from the others'."""
FEW = 5
"""With fewer networks, outliers cannot be detected."""


def trimmed(counts: Counts, group: Ints, measure: Measure, weight: Ints) -> Bools:
    """Which rows remain. `group`: of each row; `weight`: of each row of a distribution."""
    if not len(group):
        return np.ones(0, dtype=np.bool_)
    groups = int(group.max()) + 1
    numerator, denominator = _parts(counts, group, measure, weight)
    is_treated = counts.arm == 1
    total = np.bincount(group * 2 + counts.arm, denominator, 2 * groups).reshape(-1, 2)
    at_control = np.bincount(group[~is_treated], numerator[~is_treated], groups)
    level = at_control / np.maximum(total[:, 0], 1e-300)
    away = (numerator - level[group] * denominator) / np.maximum(total[group, counts.arm], 1e-300)
    # Of each network in each group; a network is in one group only.
    network, index = np.unique(counts.network, return_inverse=True)
    harm = np.bincount(index, np.where(is_treated, away, -away), len(network))
    of = np.zeros(len(network), dtype=np.int64)
    of[index] = group
    order = np.lexsort((network, harm, of))
    size = np.bincount(of, minlength=groups)
    start = np.concatenate([[0], np.cumsum(size)[:-1]])
    rank = np.empty(len(network), dtype=np.int64)
    rank[order] = np.arange(len(network)) - start[of[order]]
    ends = np.where(size >= FEW, -(-size // PART), 0)[of]
    return np.asarray(((rank >= ends) & (rank < size[of] - ends))[index], dtype=np.bool_)


def far_from_others(difference: Floats, total: Floats, variance: Floats) -> Bools:
    """Groups (networks, or ASes) to leave out: in the tenth at either end, groups with arms that differ by
    far more than in the whole, in their own error and the others' spread. All arrays: shape (groups,).

    A group that differs as all do is kept, so what is lost everywhere is found as fast as without.
    """
    count = len(total)
    is_out = np.zeros(count, dtype=np.bool_)
    if count < FEW:
        return is_out
    ends = -(-count // PART)
    for _ in range(3):
        whole = difference[~is_out].sum() / total[~is_out].sum()
        away = (difference - whole * total) / np.sqrt(variance)
        # Clients return on other days, so counts vary more than those of coins.
        spread = max(1.0, 1.4826 * float(np.median(np.abs(away - np.median(away)))))
        order = np.argsort(away, kind="stable")
        is_out = np.zeros(count, dtype=np.bool_)
        is_out[order[:ends]] = away[order[:ends]] < -FAR * spread
        is_out[order[-ends:]] = away[order[-ends:]] > FAR * spread
    return is_out


def with_enough_networks(group: Ints, network: Ints) -> Bools:
    """Which rows belong to groups with enough networks to detect one that lies."""
    if not len(group):
        return np.ones(0, dtype=np.bool_)
    networks = int(network.max()) + 1
    count = np.bincount(np.unique(group * networks + network) // networks)
    return np.asarray(count[group] >= FEW, dtype=np.bool_)


def _parts(counts: Counts, group: Ints, measure: Measure, weight: Ints) -> tuple[Floats, Floats]:
    """Numerator and denominator of each row. The higher their ratio, the worse."""
    if METRICS[measure.metric].kind == "ratio":
        sign = 1.0 if METRICS[measure.metric].better == "lower" else -1.0
        return sign * counts.numerator.astype(np.float64), counts.denominator.astype(np.float64)
    q = measures.quantile(measure.statistic)
    assert q is not None
    middle = _quantiles(counts, group, q, weight)[group]
    is_worse = counts.bin > middle if METRICS[measure.metric].better == "lower" else counts.bin < middle
    return np.where(is_worse, weight, 0).astype(np.float64), weight.astype(np.float64)


def _quantiles(counts: Counts, group: Ints, q: float, weight: Ints) -> Ints:
    """The bin of each group's quantile in the control arm; 0 of groups without."""
    rows = np.flatnonzero((counts.arm == 0) & (weight > 0))
    order = rows[np.lexsort((counts.bin[rows], group[rows]))]
    of = group[order]
    sums = np.cumsum(weight[order])
    total = np.bincount(of, weight[order], int(group.max()) + 1)
    before = np.cumsum(total) - total
    is_reached = sums - before[of] >= q * total[of]
    found = np.zeros(len(total), dtype=np.int64)
    # Backwards, so that the first one that reaches it is written last.
    hits = order[is_reached][::-1]
    found[group[hits]] = counts.bin[hits]
    return found
