"""Rows of a scorecard: one measure in one cell, with its place in the declared family."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace

from uncork.experiment import estimate, measures, words
from uncork.experiment.estimate import Cubes
from uncork.experiment.measures import GUARDRAILS, PRIMARY
from uncork.experiment.result import Limit, Measure, Row
from uncork.measure.metrics import METRICS
from uncork.measure.stats import power, sequential
from uncork.measure.stats.effect import Effect, NoInterval, Outcome
from uncork.measure.stats.fdr import benjamini_hochberg


@dataclass(frozen=True)
class Settings:
    """What was declared before the data was looked at."""

    keys: tuple[str, ...] = ("region",)
    """Keys by which there is a decision, most important first."""
    primary: Measure | None = None
    guardrails: tuple[Limit, ...] = GUARDRAILS
    are_limits_named: bool = False
    """Whether the guardrails were named. Then records that cannot show one of them are refused."""
    worth: float = 0.01
    """The smallest gain that is worth a change of configuration."""
    detect: float = 0.05
    """The change that a cell without an answer must be able to show."""
    level: float = 0.95
    look: tuple[int, int] | None = None
    """This is look K of N."""
    is_watched: bool = False
    """Whether this is a look without a plan: only bounds that hold at every look count."""
    sources: Mapping[str, str] = field(default_factory=dict)
    """How each metric was measured."""

    def asked(self) -> tuple[str, ...]:
        """The metrics that were named."""
        limits = tuple(limit.measure.metric for limit in self.guardrails)
        return limits if self.primary is None else (self.primary.metric, *limits)

    def words(self) -> dict[str, str]:
        """For the document and the page."""
        return {
            "primary": str(self.primary or ""),
            "by": ", ".join(self.keys),
            "worth": f"{100 * self.worth:g} %",
            "detect": f"{100 * self.detect:g} %",
            "level": f"{100 * self.level:g} %",
            "guardrails": ", ".join(f"{limit.measure} {limit_words(limit)}" for limit in self.guardrails),
            "look": f"{self.look[0]}/{self.look[1]}" if self.look else "",
        }


def limit_words(limit: Limit) -> str:
    """`at most +2.00 pp`, `at most 10 % worse`."""
    if limit.points is not None:
        return f"at most {words.points(limit.points)}"
    return f"at most {100 * (limit.relative or 0):g} % worse"


def first_of(cubes: Cubes) -> Measure | None:
    return next((measure for measure in PRIMARY if measure.metric in cubes), None)


def primary_for(cubes: Cubes, settings: Settings) -> Measure | None:
    """The primary measure, or completion time where a cell has only objects too small for it."""
    wanted = settings.primary
    if wanted is None or wanted.metric in cubes:
        return wanted
    small = Measure("completion", "p50")
    return small if wanted.metric == "throughput" and small.metric in cubes else None


def deciding(whole: Cubes, settings: Settings) -> Measure | None:
    """The primary measure over all clients: as declared, or the first that there is."""
    return primary_for(whole, settings) or settings.primary or first_of(whole)


def row_of(measure: Measure, outcome: Outcome, role: str, settings: Settings) -> Row:
    """A line without its place in the family."""
    effect = outcome if isinstance(outcome, Effect) else None
    is_adjusted = effect is not None and abs(effect.treated / effect.control / effect.ratio - 1) > 1e-9
    return Row(
        measure=measure,
        title=measures.title(measure.metric),
        unit=measures.unit(measure.metric),
        better=METRICS[measure.metric].better,
        role=role,
        source=settings.sources.get(measure.metric, ""),
        control=outcome.control,
        treated=effect.control * effect.ratio if effect and is_adjusted else outcome.treated,
        raw_treated=outcome.treated if is_adjusted else None,
        effect=effect,
        reason=outcome.reason if isinstance(outcome, NoInterval) else "",
        q_value=None,
        mde=power.mde(effect) if effect else None,
        verdict="no interval" if effect is None else "inconclusive",
    )


def rows_of(
    cubes: Cubes,
    wanted: Sequence[tuple[Measure, str]],
    settings: Settings,
    estimand: str,
    past: Cubes | None = None,
) -> list[Row]:
    """Rows of the measures (with their roles) that the cell has. The past adjusts the primary one only."""
    rows: dict[Measure, Row] = {}
    roles = dict(wanted)
    by_metric: dict[tuple[str, bool], list[Measure]] = {}
    for measure, role in wanted:
        if measure.metric in cubes:
            by_metric.setdefault((measure.metric, role == "primary"), []).append(measure)
    for (metric, is_primary), some in by_metric.items():
        before = (past or {}).get(metric) if is_primary else None
        found = estimate.outcomes(cubes[metric], some, level=settings.level, estimand=estimand, past=before)
        for measure, outcome in zip(some, found, strict=True):
            rows[measure] = row_of(measure, outcome, roles[measure], settings)
    return [rows[measure] for measure, _ in wanted if measure in rows]


def in_family(rows: Sequence[Row], settings: Settings) -> list[Row]:
    """The rows with q-values and verdicts: one declared family, Benjamini-Hochberg."""
    q_values = iter(benjamini_hochberg([row.effect.p_value for row in rows if row.effect]))
    judged = []
    for row in rows:
        q = float(next(q_values)) if row.effect else None
        judged.append(replace(row, q_value=q, verdict=_verdict(row, q, settings)))
    return judged


def _verdict(row: Row, q: float | None, settings: Settings) -> str:
    if row.effect is None or row.gain is None or q is None:
        return "no interval"
    if q < 1 - settings.level and _is_decided(row, settings):
        return "better" if row.gain > 0 else "worse"
    ends = row.effect.ratio_low - 1, row.effect.ratio_high - 1
    return "equivalent" if max(map(abs, ends)) < settings.worth else "inconclusive"


def _is_decided(row: Row, settings: Settings) -> bool:
    """Whether the primary measure has crossed the boundary of this look; other rows have none."""
    if settings.look is None or row.role != "primary" or row.effect is None:
        return True
    k, n = settings.look
    return sequential.crosses(row.effect, float(sequential.obrien_fleming(n, 1 - settings.level)[k - 1]))
