"""A twin held to what was measured: predicted lifts of ASes beside those of the experiment.

`uncork lab from-records` makes the twin, `uncork lab run` what controllers do in it. Whether its predictions
may stand for ASes without data is decided by how well they predict the ones that have some.
"""

from __future__ import annotations

import json
import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from html import escape
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
from numpy.typing import NDArray

from uncork_experiment import words
from uncork_experiment.document import package_version
from uncork_experiment.errors import InputError
from uncork_experiment.learn.digits import rounded
from uncork_experiment.learn.evidence import Counts, Section, sections
from uncork_experiment.learn.lift import Estimate, Hierarchy, hierarchy, pools
from uncork_experiment.learn.prior import SCHEMA
from uncork_experiment.learn.settings import LARGE, PRIMARY, Settings
from uncork_experiment.metrics import LARGE_BYTES
from uncork_experiment.report import svg, tables
from uncork_experiment.report.figures import Figure, percent
from uncork_experiment.report.page import document, figure

Floats = NDArray[np.float64]

NORMAL = 1.959963984540054
QUANTILE = 0.1
"""Of the throughput of large objects, as `uncork learn` compares them."""
PARTS = 20
"""Of a twin's clients, left out one at a time to find the error of a prediction."""
FEWEST_CLIENTS = 2 * PARTS

FEWEST_SYSTEMS = 8
"""ASes with both figures, below which nothing is earned."""
LEAST_RANK = 0.3
"""The lower end of the rank correlation's interval that is needed."""
LEAST_SKILL = 0.25
"""How much smaller the squared error has to be than that of the mean of the other ASes."""


@dataclass(frozen=True)
class Pair:
    """An AS with both figures; lifts are logarithms."""

    system: str
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
            len(self.pairs) >= FEWEST_SYSTEMS
            and self.rank_low >= LEAST_RANK
            and self.skill >= LEAST_SKILL
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


def measured(evidence: pa.Table, settings: Settings) -> dict[str, Estimate]:
    """The lift of large objects of each AS that has enough records, over all places."""
    found: dict[str, Estimate] = {}
    for section in sections(evidence, settings):
        if section.of_class == LARGE and not section.place:
            found.update(_by_system(section, settings))
    if not found:
        raise InputError(
            "records", "no AS has a lift of large objects", "plan with more records, without --place"
        )
    return found


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
    """The lift of each AS in the twin: classes as `uncork lab from-records` names them."""
    found = {}
    table = flows.select(["group", "cc", "seed", "flow", "bytes_acked", "busy_ns"]).to_pandas()
    for group, rows in table.groupby("group"):
        values = {}
        for cc in (control, treated):
            of = rows[rows["cc"] == cc].sort_values(["seed", "flow"])
            rate = of["bytes_acked"].to_numpy() * 8e9 / np.maximum(of["busy_ns"].to_numpy(), 1)
            values[cc] = rate.astype(np.float64)
        clients = min(map(len, values.values()))
        if clients < FEWEST_CLIENTS or len(values[control]) != len(values[treated]):
            raise InputError(
                str(group),
                f"has {len(values[control])} clients with {control}, {len(values[treated])} with {treated}",
                f"make the twin with both, and --clients {FEWEST_CLIENTS} or more",
            )
        found[str(group).upper()] = _paired(values[control], values[treated])
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
    """Predictions held to measurements, by AS."""
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
    """Each AS by the line of the others, against the mean of the others."""
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
class Trial:
    """The twin's predictions of the controllers, and how far they may be trusted."""

    control: str
    treated: str
    calibration: Calibration
    of_twin: Mapping[str, Mapping[str, Estimate]]
    """By controller, then by AS: lifts over the control arm's."""

    def unknown(self) -> dict[str, Estimate]:
        """Predictions for the ASes that have no measurement."""
        known = {pair.system for pair in self.calibration.pairs}
        return {name: one for name, one in self.of_twin[self.treated].items() if name not in known}

    def told(self) -> str:
        """For a terminal."""
        fit = self.calibration
        lines = [
            f"{len(fit.pairs)} ASes, {self.treated} over {self.control}: rank correlation {fit.rank:.2f} "
            f"({fit.rank_low:.2f} to {fit.rank_high:.2f}), slope {fit.slope:.2f} "
            f"(±{NORMAL * fit.slope_error:.2f}), skill {fit.skill:.2f}.",
            _earned(fit),
        ]
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


def _earned(fit: Calibration) -> str:
    if fit.earned:
        return "Its predictions may stand for ASes without data."
    return (
        "Its predictions may not stand for ASes without data: that needs "
        f"{FEWEST_SYSTEMS} ASes, a rank correlation of surely {LEAST_RANK} and a skill of {LEAST_SKILL}."
    )


def controller(arms: Mapping[str, Mapping[str, str]], arm: str) -> str:
    """What flows of an arm have in the twin: the library's controllers."""
    return arms[arm].get("quic", arm)


def trial(evidence: pa.Table, settings: Settings, flows: Path) -> Trial:
    """The twin's flows against the records that a version was made of."""
    control, treated = (controller(settings.arms, arm) for arm in (settings.control, settings.treated))
    try:
        table = pq.read_table(flows)
    except (OSError, pa.ArrowInvalid) as error:
        raise InputError(str(flows), str(error), "give flows.parquet of uncork lab run -o") from None
    controllers = sorted(set(table["cc"].to_pylist()) - {control})
    if treated not in controllers:
        raise InputError(
            str(flows), f"has no flows with {treated}", f"make the twin with --cc {control} --cc {treated}"
        )
    of_twin = {cc: predicted(table, control, cc) for cc in controllers}
    return Trial(control, treated, calibrate(of_twin[treated], measured(evidence, settings)), of_twin)


def page(found: Trial) -> str:
    """Predicted beside measured, as one file."""
    fit = found.calibration
    header = (
        f'<header>\n<p class="kind">uncork learn</p>\n<h1>The twin: {escape(found.treated)} over '
        f"{escape(found.control)}, predicted and measured</h1>\n"
        '<p class="question">Throughput of large objects, tenth percentile, by AS.</p>\n</header>\n'
        '<section class="verdict" aria-label="Calibration">\n'
        f'<p class="sentence">{escape(_earned(fit))}</p>\n'
        f"<p>{escape(found.told().splitlines()[0])} Skill 1 predicts every AS, 0 no better than the mean of "
        "the others.</p>\n</section>\n"
    )
    parts = [header, figure(_beside(found), 1), _table(found), _untried(found)]
    footer = f"<footer>\n<p>Made by uncork-experiment {escape(package_version())}</p>\n</footer>\n"
    return document("uncork learn: the twin", "".join([*parts, footer]))


def _beside(found: Trial) -> Figure:
    fit = found.calibration
    points: list[tuple[str, float, float, float, float, str, float]] = []
    for pair in fit.pairs:
        off = abs(pair.measured.lift - fit.prior(pair.predicted).lift)
        reach = NORMAL * math.hypot(pair.measured.error, fit.prior(pair.predicted).error)
        tone = "open" if off <= reach else "worse"
        lifts = (math.expm1(one.lift) for one in (pair.predicted, pair.measured))
        x, y, low, high = (100 * value for value in (*lifts, *_ends(pair.measured)))
        points.append((pair.system, x, y, low, high, tone, 0.3))
    across = svg.around("predicted lift", [point[1] for point in points], zero=True, shown=percent)
    up = svg.around("measured lift", [v for point in points for v in point[2:5]], zero=True, shown=percent)
    caption = (
        "Each AS by the lift that the twin predicts and the one that the experiment measured, with its 95 % "
        "interval. Marked as worse: off the line by more than both errors and the spread explain."
    )
    chart = svg.Scatter("Predicted and measured lift by AS", caption, across, up, points)
    return Figure("beside", "Predicted and measured", caption, chart.render)


def _ends(one: Estimate) -> tuple[float, float]:
    return math.expm1(one.lift - NORMAL * one.error), math.expm1(one.lift + NORMAL * one.error)


def _shown(one: Estimate) -> str:
    low, high = _ends(one)
    return f"{words.change(math.exp(one.lift))} ({words.interval(1 + low, 1 + high)})"


def _table(found: Trial) -> str:
    rows = sorted(found.calibration.pairs, key=lambda pair: -pair.measured.lift)
    cells = [
        [escape(text) for text in (one.system, _shown(one.predicted), _shown(one.measured))] for one in rows
    ]
    body = tables.table(["AS", "predicted", "measured"], cells, left=(0,))
    return f'<section id="systems">\n<h2>By AS</h2>\n{body}</section>\n'


def _untried(found: Trial) -> str:
    """Controllers that no client has had, and ASes that no experiment was in."""
    others = [cc for cc in found.of_twin if cc != found.treated]
    fit = found.calibration
    unknown = found.unknown() if fit.earned else {}
    parts = []
    if others:
        systems = sorted({name for cc in others for name in found.of_twin[cc]})
        cells = [
            [escape(name), *(escape(_shown(found.of_twin[cc][name])) for cc in others)] for name in systems
        ]
        parts.append(
            '<section id="untried">\n<h2>Controllers that nobody has had</h2>\n<p>As the twin predicts them, '
            "over the control arm; held to no measurement.</p>\n"
            f"{tables.table(['AS', *map(escape, others)], cells, left=(0,))}</section>\n"
        )
    if unknown:
        cells = [[escape(name), escape(_shown(fit.prior(one)))] for name, one in sorted(unknown.items())]
        parts.append(
            '<section id="prior">\n<h2>ASes without data</h2>\n'
            f"{tables.table(['AS', 'expected'], cells, left=(0,))}</section>\n"
        )
    return "".join(parts)


assert LARGE_BYTES == 3_000_000, "the twin has objects of more than this, as uncork lab from-records does"
