"""What a world's true prior says of each network, from the estimates that `learn` has: the reference.

The estimates are those of `learn` (networks that have enough evidence, and the rests of ASes), with their
errors. Where `learn` has to find out how lifts are spread, the reference knows: the kinds of AS, how networks
deviate, how many change their sign and when, drift and season.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from drawn_worlds import Kind, World
from numpy.typing import NDArray
from scipy.special import logsumexp, ndtr

from uncork.learn.lift import Estimate, Hierarchy, Rest
from uncork.learn.mixture import Belief

Floats = NDArray[np.float64]
Ints = NDArray[np.int64]

GRID = 41
"""Lifts of an AS of each kind that are considered, from -4 to 4 standard deviations."""
CHUNK = 500
"""Networks at a time."""


def days_seen(world: World, day: int, half_life: float) -> tuple[float, float, float]:
    """Of the evidence up to `day`: mean factor of a lift; that of a lift of the other sign; mean age."""
    days = np.arange(day + 1)
    weight = 0.5 ** ((day - days) / half_life)
    weight = weight / weight.sum()
    factor = np.array([world.factor(one) for one in days.tolist()])
    sign = np.where(days >= world.turns, -1.0, 1.0)
    return float(weight @ factor), float(weight @ (factor * sign)), float(weight @ (day - days))


class Reference:
    """Hypotheses about ASes (kind and lift) and what the estimates make of them: shape (ASes, hypotheses)."""

    def __init__(self, world: World, day: int, half_life: float, tree: Hierarchy) -> None:
        self.world, self.tree = world, tree
        steady, turned, age = days_seen(world, day, half_life)
        share = world.turned if day >= world.turns else 0.0
        self.states = [(1 - share, steady, 1.0)] + ([(share, turned, -1.0)] if share else [])
        """How likely, what the evidence shows of the lift on the first day, and the sign today."""
        self.late = world.drift**2 * age
        of = [_grid(kind, world.drift**2 * day) for kind in world.kinds]
        self.lift = np.concatenate([lift for lift, _ in of])
        self.kind = np.repeat(np.arange(len(of)), GRID)
        self.prior = np.concatenate([np.log(weight) for _, weight in of])

    def beliefs(self, raw: dict[int, Estimate], rests: dict[int, Rest], limits: Sequence[float]) -> Belief:
        """Of each network."""
        at = np.fromiter(raw, dtype=np.int64, count=len(raw))
        own = np.array([[one.lift, one.error**2] for one in raw.values()]).reshape(-1, 2)
        log = np.tile(self.prior, (len(self.tree.systems), 1))
        fits = np.concatenate(
            [self._fits(own[rows]) for rows in _chunks(len(at))] or [np.zeros((0, len(self.lift)))]
        )
        np.add.at(log, self.tree.system[at], fits)
        for system, rest in rests.items():
            log[system] += self._fits_rest(rest)
        after = np.exp(log - logsumexp(log, axis=1, keepdims=True))
        unknown = self._moments(after, None, limits)
        found = unknown[self.tree.system]
        for rows in _chunks(len(at)):
            found[at[rows]] = self._moments(after[self.tree.system[at[rows]]], own[rows], limits)
        mean, square, *above = found.T
        return Belief(mean, np.sqrt(square - mean**2), tuple(np.clip(one, 0, 1) for one in above))

    def _parts(self) -> list[tuple[Floats, Floats, Floats, float, float]]:
        """Of each hypothesis: how likely, mean and variance of a network's lift on the first day."""
        found = []
        most = max(len(kind.parts) for kind in self.world.kinds)
        for index in range(most):
            values = [
                (part.weight / sum(one.weight for one in kind.parts), part.offset, part.spread**2)
                for kind in self.world.kinds
                for part in [kind.parts[index] if index < len(kind.parts) else None]
                for part in [part or _NOTHING]
            ]
            weight, offset, variance = np.array(values)[self.kind].T
            for share, seen, sign in self.states:
                found.append((share * weight, self.lift + offset, variance, seen, sign))
        return found

    def _fits(self, own: Floats) -> Floats:
        """Log-likelihood of networks' estimates: shape (networks, hypotheses)."""
        with np.errstate(divide="ignore"):
            each = [
                np.log(weight) + _log_density(own[:, :1] - seen * mean, own[:, 1:] + seen**2 * variance)
                for weight, mean, variance, seen, _ in self._parts()
            ]
        return np.asarray(logsumexp(np.stack(each), axis=0))

    def _fits_rest(self, rest: Rest) -> Floats:
        mean, square = np.zeros((2, len(self.lift)))
        for weight, lift, variance, seen, _ in self._parts():
            mean += weight * seen * lift
            square += weight * seen**2 * (lift**2 + variance)
        spread = rest.extra * (square - mean**2) + rest.estimate.error**2
        return _log_density(rest.estimate.lift - mean, spread)

    def _moments(self, after: Floats, own: Floats | None, limits: Sequence[float]) -> Floats:
        """Mean, mean square and probabilities above the limits: shape (nodes, 2 + limits)."""
        total = self._fits(own) if own is not None else 0.0
        found = np.zeros((len(after), 2 + len(limits)))
        for weight, mean, variance, seen, sign in self._parts():
            likely, centre, spread = weight, mean[None], variance[None]
            if own is not None:
                away = own[:, :1] - seen * mean
                around = own[:, 1:] + seen**2 * variance
                likely = weight * np.exp(_log_density(away, around) - total)
                centre = mean + variance * seen / around * away
                spread = variance * own[:, 1:] / around
            centre, spread = sign * centre, spread + self.late
            sd = np.sqrt(np.maximum(spread, 1e-12))
            values = (centre, centre**2 + spread, *(ndtr((centre - limit) / sd) for limit in limits))
            for column, value in enumerate(values):
                found[:, column] += (after * likely * value).sum(axis=1)
        return found


class _NOTHING:
    weight, offset, spread = 0.0, 0.0, 0.0


def _grid(kind: Kind, drift: float) -> tuple[Floats, Floats]:
    deviation = np.linspace(-4, 4, GRID)
    weight = np.exp(-0.5 * deviation**2)
    return kind.lift + deviation * np.hypot(kind.spread, np.sqrt(drift)), kind.weight * weight / weight.sum()


def _log_density(away: Floats, variance: Floats) -> Floats:
    return np.asarray(-0.5 * (away**2 / variance + np.log(2 * np.pi * variance)))


def _chunks(count: int) -> list[slice]:
    return [slice(start, start + CHUNK) for start in range(0, count, CHUNK)]
