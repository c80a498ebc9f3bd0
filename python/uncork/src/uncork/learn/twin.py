"""A twin held to measurements: predicted lifts of ASes and networks against those of the experiment.

`uncork lab from-records` makes the twin, `uncork lab run` what controllers do in it. Its predictions may
stand for ASes without data if they predict the ASes with data well enough.
"""

from __future__ import annotations

import json
import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
from numpy.typing import NDArray

from uncork.learn.defaults import LARGE, TCP, TRANSPORTS
from uncork.learn.digits import rounded
from uncork.learn.entries import level_of
from uncork.learn.evidence import Counts, Section, sections
from uncork.learn.lift import NORMAL, Estimate, Hierarchy, hierarchy, pools
from uncork.learn.prior import SCHEMA
from uncork.learn.settings import PRIMARY, Settings
from uncork.measure.errors import InputError

Floats = NDArray[np.float64]

IN_KERNEL: Mapping[str, str] = {"bbr": "bbr1", "cubic": "cubic:linux", "reno": "reno"}
"""The kernel's own controllers, as the library has them. Those of `uncork kernel load` have a prefix."""
PREFIX = "uncork_"
QUANTILE = 0.1
"""Of the throughput of large objects, as `uncork learn` compares them."""
PARTS = 20
"""Of a twin's clients, left out one at a time to find the error of a prediction."""
MIN_CLIENTS = 2 * PARTS

MIN_SYSTEMS = 8
"""ASes with both figures, below which nothing is earned."""
MIN_RANK = 0.3
"""The lower end of the rank correlation's interval that is needed."""
MIN_SKILL = 0.25
"""How much smaller the squared error must be than that of the mean of the other ASes."""


@dataclass(frozen=True)
class Pair:
    """An AS or network with both figures; lifts are logarithms."""

    name: str
    predicted: Estimate
    measured: Estimate


@dataclass(frozen=True)
class Calibration:
    """How measured lifts follow from predicted ones: measured = offset + slope * predicted."""

    pairs: Sequence[Pair]
    rank: float
    """Spearman's rank correlation."""
    rank_low: float
    rank_high: float
    slope: float
    slope_error: float
    offset: float
    middle: float
    """The prediction at which the line is known best, and its error there."""
    middle_error: float
    rest: float
    """Standard deviation of measured lifts around the line, beyond what measuring errs."""
    skill: float
    """1 minus the squared error of predictions over that of the mean of the other ASes, each AS left out
    in turn; what measuring errs is taken off both. 1: predicts all, 0: nothing, below: misleads.
    """

    @property
    def earned(self) -> bool:
        """Whether predictions may stand for ASes without data."""
        return bool(
            len(self.pairs) >= MIN_SYSTEMS
            and self.rank_low >= MIN_RANK
            and self.skill >= MIN_SKILL
            and self.slope > 0
        )

    def prior(self, predicted: Estimate) -> Estimate:
        """What is expected of an AS without data."""
        of_line = math.hypot(self.middle_error, self.slope_error * (predicted.lift - self.middle))
        spread = math.hypot(self.rest, of_line, self.slope * predicted.error)
        # The spread itself is known from so few ASes: that of Student's t.
        free = len(self.pairs) - 2
        spread *= math.sqrt(free / (free - 2)) if free > 2 else math.inf
        return Estimate(self.offset + self.slope * predicted.lift, spread)


@dataclass(frozen=True)
class Measured:
    """The lifts of large objects in an experiment, over all places."""

    systems: Mapping[str, Estimate]
    """Of ASes that have enough records,"""
    networks: Mapping[str, Estimate]
    """and of networks that have."""
    system_of: Mapping[str, str]
    """The AS of each network."""


def measured(evidence: pa.Table, settings: Settings) -> Measured:
    """What the experiment says of ASes and networks."""
    found = Measured({}, {}, {})
    for section in sections(evidence, settings):
        if section.of_class == LARGE and not section.place:
            found = Measured(_by_system(section, settings), *_by_network(section, settings))
    if not found.systems:
        raise InputError(
            "records", "no AS has a lift of large objects", "plan with more records, without --place"
        )
    return found


def _by_network(section: Section, settings: Settings) -> tuple[dict[str, Estimate], dict[str, str]]:
    tree = hierarchy(section)
    counts: Counts = section.metrics["throughput"]
    raw, _ = pools(counts, settings, tree, PRIMARY[LARGE]).estimates(section.bytes)
    names = [str(name) for name in tree.networks]
    of = {names[at]: tree.systems[tree.system[at]] for at in raw}
    return {names[at]: one for at, one in raw.items()}, of


def _by_system(section: Section, settings: Settings) -> dict[str, Estimate]:
    """As if each AS were a network."""
    tree = hierarchy(section)
    counts: Counts = section.metrics["throughput"]
    counts = replace(counts, network=tree.system[counts.network])
    names = tree.systems
    of_all = Hierarchy(names, names, tree.countries, np.arange(len(names), dtype=np.int64), tree.country)
    bytes_ = np.zeros(len(names), dtype=np.int64)
    np.add.at(bytes_, tree.system, section.bytes)
    raw, _ = pools(counts, settings, of_all, PRIMARY[LARGE]).estimates(bytes_)
    return {names[at]: one for at, one in raw.items()}


def predicted(flows: pa.Table, control: str, treated: str) -> dict[str, Estimate]:
    """The lift of each AS and network in the twin: classes as `uncork lab from-records` names them."""
    found = {}
    names = ["group", "cc", "seed", "flow", "bytes_acked", "busy_ns"]
    if lacking := [name for name in names if name not in flows.column_names]:
        raise InputError("the twin", f"has no column {lacking[0]}", "name the flows.parquet of its run")
    if lacking := [name for name in names if flows[name].null_count]:
        raise InputError(f"the twin: column {lacking[0]}", "it has null", "name the flows.parquet of its run")
    table = flows.select(names).to_pandas()
    for group, rows in table.groupby("group"):
        values = {}
        for cc in (control, treated):
            of = rows[rows["cc"] == cc].sort_values(["seed", "flow"])
            rate = of["bytes_acked"].to_numpy() * 8e9 / np.maximum(of["busy_ns"].to_numpy(), 1)
            values[cc] = rate.astype(np.float64)
            if len(rate) and np.quantile(rate, QUANTILE / 2) <= 0:
                problem = f"clients with {cc} that moved nothing decide its lift"
                raise InputError(str(group), problem, "run the twin for longer")
        clients = min(map(len, values.values()))
        if clients < MIN_CLIENTS or len(values[control]) != len(values[treated]):
            raise InputError(
                str(group),
                f"has {len(values[control])} clients with {control}, {len(values[treated])} with {treated}",
                f"make the twin with both, and --clients {MIN_CLIENTS} or more",
            )
        name = str(group)
        found[name if level_of(name) == "network" else name.upper()] = _paired(
            values[control], values[treated]
        )
    return found


def _paired(control: Floats, treated: Floats) -> Estimate:
    """The k-th clients of both arms have the same path, so they are left out together."""
    part = np.arange(len(control)) % PARTS

    def lift(keep: NDArray[np.bool_]) -> float:
        one, other = (float(np.quantile(values[keep], QUANTILE)) for values in (control, treated))
        return math.log(other / one)

    without = np.array([lift(part != at) for at in range(PARTS)])
    error = math.sqrt(float(((without - without.mean()) ** 2).sum()) * (PARTS - 1) / PARTS)
    return Estimate(lift(np.ones(len(control), dtype=np.bool_)), error)


def calibrate(of_twin: Mapping[str, Estimate], of_records: Mapping[str, Estimate]) -> Calibration:
    """Predictions held to measurements, by AS or by network."""
    pairs = [Pair(name, of_twin[name], of_records[name]) for name in sorted(of_twin) if name in of_records]
    if len(pairs) < 3:
        raise InputError(
            "the twin", f"has {len(pairs)} ASes that were measured, too", "record both arms in more ASes"
        )
    x = np.array([pair.predicted.lift for pair in pairs])
    y = np.array([pair.measured.lift for pair in pairs])
    errors = np.array([pair.measured.error for pair in pairs])
    rank = _correlation(_ranks(x), _ranks(y))
    # Fisher's z with the variance of ranks (Fieller, Hartley and Pearson, 1957).
    reach = NORMAL * math.sqrt(1.06 / (len(pairs) - 3)) if len(pairs) > 3 else math.inf
    z = math.atanh(max(min(rank, 0.999999), -0.999999))
    rest = _rest(x, y, errors)
    offset, slope, slope_error = _line(x, y, errors, rest)
    weight = _weights(errors, rest)
    return Calibration(
        pairs=pairs,
        rank=rank,
        rank_low=math.tanh(z - reach),
        rank_high=math.tanh(z + reach),
        slope=slope,
        slope_error=slope_error,
        offset=offset,
        middle=float(np.average(x, weights=weight)),
        middle_error=1 / math.sqrt(float(weight.sum())),
        rest=rest,
        skill=_skill(x, y, errors),
    )


def _ranks(values: Floats) -> Floats:
    """From 1 on; equal values share the mean of theirs."""
    return np.array([(values < one).sum() + ((values == one).sum() + 1) / 2 for one in values])


def _correlation(one: Floats, other: Floats) -> float:
    """Pearson's; 0 if either does not vary."""
    one, other = one - one.mean(), other - other.mean()
    size = math.sqrt(float((one**2).sum() * (other**2).sum()))
    return float((one * other).sum()) / size if size else 0.0


def _weights(errors: Floats, rest: float) -> Floats:
    return np.asarray(1 / (errors**2 + rest**2 + 1e-12))


def _line(x: Floats, y: Floats, errors: Floats, rest: float) -> tuple[float, float, float]:
    """Offset, slope and its error, by least squares with the weights of errors and rest."""
    weight = _weights(errors, rest)
    mean_x, mean_y = float(np.average(x, weights=weight)), float(np.average(y, weights=weight))
    spread = float((weight * (x - mean_x) ** 2).sum())
    if spread <= 0:
        return mean_y, 0.0, math.inf
    slope = float((weight * (x - mean_x) * (y - mean_y)).sum()) / spread
    return mean_y - slope * mean_x, slope, 1 / math.sqrt(spread)


def _rest(x: Floats, y: Floats, errors: Floats) -> float:
    """Found by bisection, such that the residuals are as large as errors and rest say."""

    def excess(rest: float) -> float:
        offset, slope, _ = _line(x, y, errors, rest)
        residuals = (y - offset - slope * x) ** 2 * _weights(errors, rest)
        return float(residuals.sum()) - max(len(x) - 2, 1)

    low, high = 0.0, 10.0
    if excess(low) <= 0:
        return 0.0
    for _ in range(60):
        middle = (low + high) / 2
        low, high = (middle, high) if excess(middle) > 0 else (low, middle)
    return high


def _skill(x: Floats, y: Floats, errors: Floats) -> float:
    """Each by the line of the others, against the mean of the others."""
    by_line, by_mean = 0.0, 0.0
    for at in range(len(x)):
        keep = np.arange(len(x)) != at
        rest = _rest(x[keep], y[keep], errors[keep])
        offset, slope, _ = _line(x[keep], y[keep], errors[keep], rest)
        by_line += (y[at] - offset - slope * x[at]) ** 2 - errors[at] ** 2
        mean = np.average(y[keep], weights=1 / (errors[keep] ** 2 + y[keep].var() + 1e-12))
        by_mean += (y[at] - mean) ** 2 - errors[at] ** 2
    return 1 - max(by_line, 0.0) / by_mean if by_mean > 0 else 0.0


@dataclass(frozen=True)
class ByNetwork:
    """Predictions of networks, by lines of their own and by the lines of their ASes."""

    own: Calibration
    by_system: Calibration
    """The same networks, each predicted by its AS's line."""

    def summary(self) -> str:
        """For a terminal."""
        own, by_system = self.own, self.by_system
        return (
            f"{len(own.pairs)} networks: rank correlation {own.rank:.2f} ({own.rank_low:.2f} to "
            f"{own.rank_high:.2f}), skill {own.skill:.2f}; by the lines of their ASes {by_system.rank:.2f} "
            f"and {by_system.skill:.2f}."
        )


@dataclass(frozen=True)
class Trial:
    """The twin's predictions of the controllers, and how far they may be trusted."""

    control: str
    treated: str
    calibration: Calibration
    of_twin: Mapping[str, Mapping[str, Estimate]]
    """By controller, then by AS: lifts over the control arm's."""
    networks: ByNetwork | None = None
    """If enough networks have lines of their own, and were measured."""

    def unknown(self) -> dict[str, Estimate]:
        """Predictions for the ASes that have no measurement."""
        known = {pair.name for pair in self.calibration.pairs}
        return {name: one for name, one in self.of_twin[self.treated].items() if name not in known}

    def summary(self) -> str:
        """For a terminal."""
        fit = self.calibration
        lines = [
            f"{len(fit.pairs)} ASes, {self.treated} over {self.control}: rank correlation {fit.rank:.2f} "
            f"({fit.rank_low:.2f} to {fit.rank_high:.2f}), slope {fit.slope:.2f} "
            f"(±{NORMAL * fit.slope_error:.2f}), skill {fit.skill:.2f}.",
            earned(fit),
        ]
        if self.networks is not None:
            lines.append(self.networks.summary())
        return "\n".join(lines) + "\n"

    def prior(self) -> str:
        """Expected lifts of ASes without data, as JSON; none unless they are earned."""
        fit = self.calibration
        expected = {name: fit.prior(one) for name, one in self.unknown().items()} if fit.earned else {}
        document = {
            "schema": SCHEMA,
            "class": LARGE,
            "control": self.control,
            "treated": self.treated,
            "earned": fit.earned,
            "rank": [rounded(value) for value in (fit.rank, fit.rank_low, fit.rank_high)],
            "skill": rounded(fit.skill),
            "slope": rounded(fit.slope),
            "offset": rounded(fit.offset),
            "rest": rounded(fit.rest),
            "systems": {
                name: {"lift": rounded(one.lift), "sd": rounded(one.error)}
                for name, one in sorted(expected.items())
            },
        }
        return json.dumps(document, indent=1) + "\n"


def earned(fit: Calibration) -> str:
    """Whether predictions may stand for ASes without data, in words."""
    if fit.earned:
        return "Its predictions may stand for ASes without data."
    return (
        "Its predictions may not stand for ASes without data: that needs "
        f"{MIN_SYSTEMS} ASes, a rank correlation of surely {MIN_RANK} and a skill of {MIN_SKILL}."
    )


def in_kernel(name: str) -> str:
    """What a socket of Linux has by this name, as the library's controller."""
    return name.removeprefix(PREFIX) if name.startswith(PREFIX) else IN_KERNEL.get(name, name)


def controllers(
    arms: Mapping[str, Mapping[str, str]], control: str, treated: str
) -> dict[str, tuple[str, str]]:
    """Of each transport that both arms have a controller for: control and treated, as the twin names them."""
    found = {}
    for transport in TRANSPORTS:
        names = [arms[arm].get(transport) for arm in (control, treated)]
        one, other = (in_kernel(name) if name and transport == TCP else name for name in names)
        if one and other:
            found[transport] = (one, other)
    return found


def trial(evidence: pa.Table, settings: Settings, flows: Path, transport: str | None = None) -> Trial:
    """The twin's flows against the records that a version was made of. Without a `transport`, it is QUIC if
    the arms have a controller for it.
    """
    known = controllers(settings.arms, settings.control, settings.treated)
    control, treated = _of_transport(known, transport)
    try:
        table = pq.read_table(flows)
    except (OSError, pa.ArrowInvalid) as error:
        raise InputError(str(flows), str(error), "give flows.parquet of uncork lab run -o") from None
    there = set(table["cc"].to_pylist())
    if not {control, treated} <= there:
        other = "".join(f", or say --transport {name}" for name, pair in known.items() if {*pair} <= there)
        remedy = f"make the twin with --cc {control} --cc {treated}{other}"
        raise InputError(str(flows), f"has only flows with {', '.join(sorted(there))}", remedy)
    of_twin = {cc: predicted(table, control, cc) for cc in sorted(there - {control})}
    of_records = measured(evidence, settings)
    systems = {cc: _part(of, networks=False) for cc, of in of_twin.items()}
    fit = calibrate(systems[treated], of_records.systems)
    return Trial(control, treated, fit, systems, _networks(of_twin[treated], of_records))


def _of_transport(known: Mapping[str, tuple[str, str]], transport: str | None) -> tuple[str, str]:
    if not known:
        raise InputError(
            "the arms",
            "have no controllers of one transport",
            "plan with --treated-settings quic=bbr3,tcp=bbr",
        )
    if transport is not None and transport not in known:
        raise InputError(
            f"--transport {transport}", "the arms have no controllers for it", f"choose {', '.join(known)}"
        )
    return known[transport or next(iter(known))]


def _part(of_twin: Mapping[str, Estimate], *, networks: bool) -> dict[str, Estimate]:
    return {name: one for name, one in of_twin.items() if (level_of(name) == "network") == networks}


def _networks(of_twin: Mapping[str, Estimate], of_records: Measured) -> ByNetwork | None:
    """Of networks with lines of their own and of their AS: both are held to the same measurements."""
    by_system = {
        name: of_twin[system]
        for name, system in of_records.system_of.items()
        if name in of_twin and system in of_twin
    }
    if len(by_system) < MIN_SYSTEMS:
        return None
    own = {name: of_twin[name] for name in by_system}
    return ByNetwork(calibrate(own, of_records.networks), calibrate(by_system, of_records.networks))
