"""Counts to lifts: of each network that has enough evidence, and of the rest of its AS, country and all.

A lift is the logarithm of the treated arm's value over the control's, positive if better: 0.05 is 5 %.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property, partial

import numpy as np
from numpy.typing import NDArray

from uncork.experiment import measures
from uncork.experiment.result import Measure
from uncork.learn.decisions import Texts, coded
from uncork.learn.evidence import Counts, Section
from uncork.learn.settings import PRIMARY, Settings
from uncork.learn.tree import Level, Posterior, posteriors
from uncork.learn.trim import trimmed, with_enough_networks
from uncork.measure.bins import GAMMA
from uncork.measure.cubes import BUCKETS, DistributionCube, RatioCube
from uncork.measure.metrics import METRICS
from uncork.measure.stats import jackknife
from uncork.measure.stats.effect import Effect

Floats = NDArray[np.float64]
Ints = NDArray[np.int64]
Bools = NDArray[np.bool_]

SCALE = 1000
"""Weights are whole numbers of this fraction: sums of them are exact in any order."""
NORMAL = 1.959963984540054
MIN_TAIL = 4
"""Minimum weight of the tail beyond a quantile, in independent users of each arm. With this weight, the
share of the tail less two standard errors is nothing; with fewer, no scale of the error is known. People read
the interval of an experiment, so that asks for more; an estimate here is one of many, and weighs what its
error says.
"""


@dataclass(frozen=True)
class Estimate:
    """A lift by itself, and its standard error."""

    lift: float
    error: float


@dataclass(frozen=True)
class Hierarchy:
    """Who belongs to whom: networks to ASes, ASes to countries."""

    networks: Sequence[str] | Texts
    systems: Sequence[str]
    countries: Sequence[str]
    system: Ints
    """Of each network, its AS's index; networks of unknown AS share one for their country."""
    country: Ints
    """Of each AS, its country's index."""

    @cached_property
    def country_of(self) -> Mapping[str, str]:
        """The country of each AS."""
        return {
            name: self.countries[at] for name, at in zip(self.systems, self.country.tolist(), strict=True)
        }


@dataclass(frozen=True)
class Lifts:
    """The lift of each network, AS and country, and of all clients, before and after shrinkage."""

    hierarchy: Hierarchy
    raw: dict[int, Estimate]
    """Of networks with enough evidence, by index."""
    network: Posterior
    system: Posterior
    country: Posterior
    all_clients: Posterior
    rests: Rests = field(default_factory=lambda: ({}, {}, None))
    """Networks without enough evidence of their own, by AS, by country and of all."""
    widening: float = 1.0
    """Factor of all standard deviations that the days held out ask for (calibration.py)."""

    def lean(self) -> Lifts:
        """Estimates, means and variances: the rest takes most of the memory of a million networks."""
        return replace(
            self,
            network=self.network.lean(),
            system=self.system.lean(),
            country=self.country.lean(),
            all_clients=self.all_clients.lean(),
        )


def hierarchy(section: Section) -> Hierarchy:
    """The places of the section's networks. An AS belongs to the country that has most of its bytes."""
    names, homes = np.asarray(section.system, dtype=np.object_), np.asarray(section.country, dtype=np.object_)
    system, systems = coded(np.where(names == "", "?" + homes, names))
    country, countries = coded(homes)
    bytes_ = np.zeros(len(systems) * len(countries), dtype=np.int64)
    both = system * len(countries) + country
    np.add.at(bytes_, both, section.bytes)
    # An AS without any bytes still belongs to a country that it has networks in.
    seen = np.zeros(len(bytes_), dtype=np.bool_)
    seen[both] = True
    amount = np.where(seen, bytes_, -1).reshape(len(systems), len(countries))
    home = np.argmax(amount, axis=1)
    known, home = np.unique(home, return_inverse=True)
    return Hierarchy(section.networks, systems.tolist(), countries[known].tolist(), system, home)


def lifts(section: Section, settings: Settings) -> Lifts | None:
    """All lifts of a section; none if it has no evidence."""
    if PRIMARY[section.of_class].metric not in section.metrics:
        return None
    return estimated(section, settings, hierarchy(section))


def estimated(section: Section, settings: Settings, tree: Hierarchy) -> Lifts:
    """All lifts of a section that has evidence."""
    measure = PRIMARY[section.of_class]
    prior = settings.prior_of(section.of_class)
    expected = {at: prior[name] for at, name in enumerate(tree.systems) if name in prior}
    found = pools(section.metrics[measure.metric], settings, tree, measure)
    return shrink(tree, *found.estimates(section.bytes), expected)


@dataclass(frozen=True)
class Rest:
    """Networks that have too little evidence of their own, taken together."""

    estimate: Estimate
    extra: float
    """Part of tau^2 that remains in the mean of the networks."""


Rests = tuple[dict[int, Rest], dict[int, Rest], Rest | None]
"""By AS, by country and of all."""


def shrink(
    tree: Hierarchy,
    raw: dict[int, Estimate],
    rests: Rests,
    expected: Mapping[int, tuple[float, float]] | None = None,
) -> Lifts:
    """Posteriors from estimates: of networks, and of the rests of ASes, of countries and of all. `expected`:
    lift and standard deviation of ASes by a twin, which take the place of what the country suggests.
    """
    of_twin = {at: (lift, sd**2) for at, (lift, sd) in (expected or {}).items()}
    by_system, by_country, of_all = rests
    networks, systems, countries = len(tree.networks), len(tree.systems), len(tree.countries)
    # A rest is one more child at each level below its own.
    rests_of: list[Rest] = []
    parents: list[int] = []
    system_parents = tree.country.tolist()
    country_count = countries
    for at, rest in sorted(by_system.items()):
        rests_of.append(rest)
        parents.append(at)
    for at, rest in sorted(by_country.items()):
        rests_of.append(rest)
        parents.append(len(system_parents))
        system_parents.append(at)
    if of_all is not None:
        rests_of.append(of_all)
        parents.append(len(system_parents))
        system_parents.append(countries)
        country_count += 1
    nothing = [_empty(len(system_parents)), _empty(country_count), _empty(1)]
    levels = [
        Level(np.zeros(1, dtype=np.int64), *nothing[2]),
        Level(np.zeros(country_count, dtype=np.int64), *nothing[1]),
        Level(np.array(system_parents, dtype=np.int64), *nothing[0], of_twin),
        Level(np.append(tree.system, np.array(parents, dtype=np.int64)), *_leaves(networks, raw, rests_of)),
    ]
    root, of_country, of_system, of_network = posteriors(levels)
    return Lifts(
        tree,
        raw,
        _first(of_network, networks),
        _first(of_system, systems),
        _first(of_country, countries),
        root,
        rests,
    )


def _leaves(
    networks: int, raw: Mapping[int, Estimate], rests: Sequence[Rest]
) -> tuple[Floats, Floats, Floats]:
    """Means, variances and the factors of tau^2: of networks, and of the rests after them."""
    mean, variance, extra = _empty(networks)
    at = np.fromiter(raw, dtype=np.int64, count=len(raw))
    mean[at] = [one.lift for one in raw.values()]
    variance[at] = [one.error**2 for one in raw.values()]
    return (
        np.append(mean, [one.estimate.lift for one in rests]),
        np.append(variance, [one.estimate.error**2 for one in rests]),
        np.append(extra, [one.extra for one in rests]),
    )


def _empty(count: int) -> tuple[Floats, Floats, Floats]:
    return np.full(count, np.nan), np.full(count, np.inf), np.ones(count)


def _first(of: Posterior, count: int) -> Posterior:
    return Posterior(
        of.mean[:count],
        of.variance[:count],
        of.prior_mean[:count],
        of.prior_variance[:count],
        of.tau2,
        of.is_outlier[:count],
        of.own_mean[:count],
        of.own_variance[:count],
        of.is_expected[:count],
    )


@dataclass(frozen=True)
class Pools:
    """Counts of a measure by network. Any networks can be pooled."""

    counts: Counts
    weight: Ints
    """Of each row."""
    tree: Hierarchy
    measure: Measure
    estimate: Callable[[Counts, Ints], Estimate | None]
    """The estimate by some rows and their weights, if a jackknife over their buckets gives an interval."""

    def estimates(self, bytes_: Ints) -> tuple[dict[int, Estimate], Rests]:
        """Estimates of networks with enough evidence of their own; of the others by AS; and so on."""
        networks = len(self.tree.networks)
        country = self.tree.country[self.tree.system]
        all_clients = np.zeros(networks, dtype=np.int64)
        raw, thin = self.of_networks()
        is_thin = np.ones(networks, dtype=np.bool_)
        is_thin[np.fromiter(raw, dtype=np.int64, count=len(raw))] = False
        by_system, thin = self._each(self.tree.system, thin)
        by_country, thin = self._each(country, thin)
        of_all, _ = self._each(all_clients, thin)

        def rest(found: dict[int, Estimate], group: Ints) -> dict[int, Rest]:
            extra = _extra(group[is_thin], bytes_[is_thin])
            return {at: Rest(one, float(extra[at])) for at, one in found.items()}

        some, rests = rest(by_system, self.tree.system), rest(by_country, country)
        return raw, (some, rests, rest(of_all, all_clients).get(0))

    def of_networks(self) -> tuple[dict[int, Estimate], Bools]:
        """Those of networks that have enough evidence, by index; and which networks have not."""
        networks = np.arange(len(self.tree.networks), dtype=np.int64)
        return self._each(networks, networks >= 0, is_single=True)

    def _each(self, group: Ints, among: Bools, is_single: bool = False) -> tuple[dict[int, Estimate], Bools]:
        """Estimates of the groups of these networks; and the networks of groups that have none. Among
        several networks, outliers are left out. A few networks are too few to detect outliers.
        """
        rows = np.flatnonzero(among[self.counts.network])
        of = group[self.counts.network[rows]]
        some = np.isin(of, with_enough_buckets(of, self.counts.arm[rows], self.counts.bucket[rows]))
        rows, of = rows[some], of[some]
        if not is_single:
            kept = trimmed(self.counts.where(rows), of, self.measure, self.weight[rows])
            kept &= with_enough_networks(of, self.counts.network[rows])
            rows, of = rows[kept], of[kept]
        order = np.argsort(of, kind="stable")
        rows, of = rows[order], of[order]
        cuts = np.flatnonzero(np.diff(of)) + 1
        found: dict[int, Estimate] = {}
        for part in np.split(rows, cuts):
            one = self.estimate(self.counts.where(part), self.weight[part]) if len(part) else None
            if one is not None:
                found[int(group[self.counts.network[part[0]]])] = one
        return found, among & ~np.isin(group, np.fromiter(found, dtype=np.int64, count=len(found)))


def pools(counts: Counts, settings: Settings, tree: Hierarchy, measure: Measure) -> Pools:
    """Pools that estimate the lift of a quantile."""
    return Pools(counts, weights(counts, settings), tree, measure, partial(_lift, measure))


def _lift(measure: Measure, counts: Counts, weight: Ints) -> Estimate | None:
    first = int(counts.bin.min())
    cube = np.zeros((2, BUCKETS, int(counts.bin.max()) - first + 1), dtype=np.int64)
    np.add.at(cube, (counts.arm, counts.bucket, counts.bin - first), weight)
    q = measures.quantile(measure.statistic)
    assert q is not None
    effect = jackknife.quantile_effect(cube[0], cube[1], q, first_bin=first, gamma=GAMMA, min_tail=MIN_TAIL)
    if not isinstance(effect, Effect):
        return None
    sign = 1 if METRICS[measure.metric].better == "higher" else -1
    # With few buckets the error itself is uncertain: what matters is that the 95 % interval is kept.
    error = (math.log(effect.ratio_high) - math.log(effect.ratio)) / NORMAL
    return Estimate(sign * math.log(effect.ratio), error)


def with_enough_buckets(group: Ints, arm: Ints, bucket: Ints) -> Ints:
    """The groups that have data in enough buckets of both arms. Of many networks most have not."""
    filled = np.unique((group * 2 + arm) * BUCKETS + bucket) // BUCKETS
    arms, buckets = np.unique(filled, return_counts=True)
    groups, both = np.unique(arms[buckets >= jackknife.MIN_BUCKETS] // 2, return_counts=True)
    return np.asarray(groups[both == 2], dtype=np.int64)


def _extra(group: Ints, bytes_: Ints) -> Floats:
    """Of each group the sum of squared shares: 1 for one network, 1/n for n of equal size."""
    total = np.bincount(group, bytes_)
    squares = np.bincount(group, bytes_.astype(np.float64) ** 2)
    return np.where(total > 0, squares / np.where(total > 0, total, 1.0) ** 2, 1.0)


def weights(counts: Counts, settings: Settings) -> Ints:
    """What each row counts, less the older it is, by inverse propensity where that has changed."""
    amount = counts.amount
    return np.asarray(np.rint(amount * factors(counts, amount, settings) * SCALE), dtype=np.int64)


def factors(counts: Counts, amount: Ints, settings: Settings) -> Floats:
    """What each row counts: less the older it is, by inverse propensity where that has changed. `amount`: of
    each row, for the mean propensity.
    """
    return faded(counts.day, settings) * by_propensity(counts, amount)


def by_propensity(counts: Counts, amount: Ints) -> Floats:
    """What each row counts by inverse propensity, where that has changed: each arm has the same days."""
    factor = np.ones(len(counts.arm))
    for arm in (0, 1):
        rows = (counts.arm == arm) & (counts.propensity > 0)
        if rows.any():
            mean = float((amount[rows] * counts.propensity[rows]).sum() / amount[rows].sum())
            factor[rows] = mean / counts.propensity[rows]
    return factor


def faded(day: Ints, settings: Settings) -> Floats:
    """What evidence of these days counts today."""
    age = settings.as_of - 1 - day
    return np.asarray(0.5 ** (np.maximum(age, 0) / settings.half_life))


def recent(counts: Counts, settings: Settings, days: int) -> Counts:
    """The rows of the last days."""
    return counts.where(counts.day >= settings.as_of - days)


def distribution(counts: Counts) -> DistributionCube | None:
    """What the rows count, as a cube."""
    if not len(counts.bin):
        return None
    first = int(counts.bin.min())
    cube = np.zeros((2, BUCKETS, int(counts.bin.max()) - first + 1), dtype=np.int64)
    np.add.at(cube, (counts.arm, counts.bucket, counts.bin - first), counts.amount)
    return DistributionCube(cube, first, GAMMA)


def ratio(counts: Counts) -> RatioCube | None:
    """Plain sums as a cube."""
    sums = np.zeros((2, 2, BUCKETS))
    for at, values in enumerate((counts.numerator, counts.denominator)):
        np.add.at(sums[at], (counts.arm, counts.bucket), values)
    return RatioCube(sums[0], sums[1]) if sums[1].any() else None
