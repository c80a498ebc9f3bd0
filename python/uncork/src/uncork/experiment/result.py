"""What an analysis finds: plain data, the same for the terminal, the JSON document and the page."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

from uncork.measure.cubes import PER_RECORD
from uncork.measure.stats.effect import Effect


@dataclass(frozen=True)
class Measure:
    """A metric and what is taken of it: `p50`, `mean`, or `ratio` of a ratio metric."""

    metric: str
    statistic: str

    def __str__(self) -> str:
        return f"{self.metric}:{self.statistic}"


@dataclass(frozen=True)
class Limit:
    """How much worse a guardrail may get: `relative` as a share of the control's value, or `points` of a
    share.
    """

    measure: Measure
    relative: float | None = None
    points: float | None = None


@dataclass(frozen=True)
class Row:
    """A line of a scorecard: one measure in one cell."""

    measure: Measure
    title: str
    unit: str
    better: str
    """`higher` or `lower`."""
    role: str
    """`primary`, `secondary` or `guardrail`."""
    source: str
    control: float | None
    treated: float | None
    """The value that the change implies: control times ratio."""
    raw_treated: float | None
    """The value as measured, where the change is adjusted by the time before the switch (CUPED); else
    null.
    """
    effect: Effect | None
    reason: str
    """The reason for a missing effect; else empty."""
    q_value: float | None
    """p-value adjusted for the declared family (Benjamini-Hochberg); null outside of it."""
    mde: float | None
    """Smallest relative change that this much data would find with power 80 %."""
    verdict: str
    """`better`, `worse`, `equivalent`, `inconclusive` or `no interval`."""

    @property
    def name(self) -> str:
        """`p50 first byte`; ratio metrics have no statistic in their name."""
        return self.title if self.measure.statistic == "ratio" else f"{self.measure.statistic} {self.title}"

    @property
    def gain(self) -> float | None:
        """The relative change, positive if it is for the better."""
        if self.effect is None:
            return None
        change = self.effect.ratio - 1
        return change if self.better == "higher" else -change


@dataclass(frozen=True)
class Guarded:
    """A guardrail's state in one cell."""

    row: Row
    limit: str
    """In words: `at most +2.00 pp`."""
    state: str
    """`holds`, `likely holds`, `open` (no estimate), `likely broken` or `broken`."""
    harm: float | None
    """How much worse it got, in the limit's own unit; with an interval that holds at every look."""
    harm_low: float | None
    harm_high: float | None
    low: float | None = None
    high: float | None = None
    """Interval for one planned look."""
    limit_amount: float = 0.0
    """The limit as a number: points of a share, or a relative change."""
    df: float | None = None
    """Degrees of freedom of the interval; null: normal."""
    p: float | None = None
    """One-sided p-value of the limit being kept, where it is not Student's."""
    units_more: int | None = None
    """Units of both arms together beyond those here until the limit is known to hold or to be broken."""
    per_client: bool = False
    """Whether each client counts once in a share, because records per unit differ between the arms."""

    @property
    def name(self) -> str:
        """`retransmitted`, or `retransmitted per client`."""
        return f"{self.row.name} (per client)" if self.per_client else self.row.name


@dataclass(frozen=True)
class Cell:
    """One value of a key, such as region = Europe, and what to do there."""

    key: str
    value: str
    units: tuple[int, int]
    """Of control and treated."""
    share: float
    """Of all units; a unit may be in several cells, such as of object sizes."""
    primary: Row | None
    rows: tuple[Row, ...]
    guardrails: tuple[Guarded, ...]
    advice: str
    """`enable`, `keep`, `wait`, or `none` where the records give no verdict."""
    why: str
    days_more: int | None
    """Only of `wait`: days until a change of `detect` would be found; null if more days cannot help."""
    units_more: int | None = None
    """Only of `wait`: units of both arms together beyond those here that would find it in the same days."""
    reason: str = ""
    """Of the decision engine: `better`, `worse`, `no gain left`, `guardrail broken`, ..."""
    is_own: bool = False
    """Whether the cell differs from the whole by more than chance, so that its own evidence decides."""


@dataclass(frozen=True)
class Finding:
    """A check of the records' health."""

    name: str
    severity: str
    """`ok`, `warning`, `blocks`, or `not run` of a check that these records or this design do not allow."""
    sentence: str
    remedy: str = ""
    numbers: Mapping[str, float] = field(default_factory=dict)


@dataclass(frozen=True)
class Level:
    """The value of a measure in one arm, with its interval."""

    at: str
    value: float | None
    low: float | None
    high: float | None


@dataclass(frozen=True)
class Series:
    """Both arms of a measure by day."""

    measure: Measure
    title: str
    unit: str
    control: tuple[Level, ...]
    treated: tuple[Level, ...]


@dataclass(frozen=True)
class Curve:
    """A distribution function: (value, share, low, high) for each point."""

    arm: str
    points: tuple[tuple[float, float, float, float], ...]


@dataclass(frozen=True)
class Distribution:
    """Both arms' distribution of a metric, and the quantile treatment curve: (quantile, ratio, low, high)."""

    metric: str
    title: str
    unit: str
    better: str
    source: str
    cdf: tuple[Curve, ...]
    curve: tuple[tuple[float, float, float, float], ...]


@dataclass(frozen=True)
class HeatCell:
    """One size class at one time of day."""

    x: str
    y: str
    row: Row | None


@dataclass(frozen=True)
class Heat:
    """Changes by two keys. Rows of large objects are of throughput, of small ones of completion time."""

    x: str
    y: str
    x_values: tuple[str, ...]
    y_values: tuple[str, ...]
    cells: tuple[HeatCell, ...]


@dataclass(frozen=True)
class Price:
    """Retransmissions against gain in one network."""

    value: str
    retransmitted_control: float
    retransmitted_treated: float
    gain: Effect
    share: float
    verdict: str


@dataclass(frozen=True)
class Incident:
    """A break in time in one cell: both arms before, during and after."""

    key: str
    value: str
    first: str
    last: str
    contested: bool
    """Whether the control arm suffered while both arms shared the link."""
    phases: tuple[tuple[str, tuple[Row, ...]], ...]
    series: tuple[Series, ...]


@dataclass(frozen=True)
class SequentialLook:
    """The primary measure with all data until a day: its z score, positive for the better, and the
    boundary.
    """

    at: str
    z: float | None
    boundary: float


@dataclass(frozen=True)
class Allocation:
    """The control arm's level at one share of treated traffic."""

    share: float
    days: int
    control: Level
    effect: Effect | None


@dataclass(frozen=True)
class Interference:
    """Whether the control arm moves with the allocation."""

    measure: Measure
    title: str
    unit: str
    steps: tuple[Allocation, ...]
    sentence: str
    moved: bool
    spill_over: Effect | None
    """From no treated traffic to nothing else, where the share changed."""


@dataclass(frozen=True)
class Designed:
    """The estimate of one measure by a design in time (switchback, paired links, steps of the share)."""

    design: str
    measure: Measure
    title: str
    estimand: str
    effect: Effect | None
    reason: str
    """The reason for a missing effect; else empty."""


@dataclass(frozen=True)
class Trace:
    """The primary measure in each span of a calendar at one place."""

    place: str
    points: tuple[tuple[int, float, float | None], ...]
    """Start (Unix seconds), share of treated traffic, value of the arm with most of the traffic."""


@dataclass(frozen=True)
class Facts:
    """Facts about the experiment, apart from its results."""

    experiment: str
    control: str
    treated: str
    controllers: tuple[str, str]
    """The controller of most records of each arm; empty: unknown, or the other arm's, but not of nearly all
    records.
    """
    share: float
    """Planned for the treated arm, of the units; `share_is` has where this comes from."""
    since: str
    until: str
    days: int
    switch: str
    """When the arms began to differ; empty if the records do not show it."""
    rows: int
    rejected: Mapping[str, int]
    units: tuple[int, int]
    policies: tuple[str, ...] = ()
    made_up: bool = False
    share_is: str = "recorded"
    """`recorded` (`arm_propensity`), `declared` (`--share`), or `assumed`: equal arms."""
    units_in_both: int = 0
    """Units with records in both arms; `units` counts them in each."""
    weighting: str = PER_RECORD
    """Whom means and quantiles are about."""
    where: tuple[str, ...] = ()
    """Conditions of the records, `COLUMN=VALUE` (`--where`)."""
    exclude: tuple[str, ...] = ()
    """Likewise of records left out (`--exclude`)."""
    windows: tuple[int | None, int | None] = (None, None)
    """The initial window of most records of each arm, in packets or bytes; None: unknown."""

    @property
    def total_units(self) -> int:
        """Each unit once."""
        return sum(self.units) - self.units_in_both

    @property
    def names(self) -> tuple[str, str]:
        """What to call control and treated: their controllers if both are known and differ, else the arms."""
        first, second = self.controllers
        return self.controllers if first and second and first != second else (self.control, self.treated)


@dataclass(frozen=True)
class Place:
    """A cell by its name: cells of two keys may have equal values."""

    key: str
    value: str


@dataclass(frozen=True)
class Verdict:
    """The decision in words."""

    decision: str
    """`enable`, `enable some`, `keep`, `wait`, `stop` (a guardrail is broken), `blocked`, `refused`,
    `A/A`.
    """
    sentence: str
    reasons: tuple[str, ...]
    enable: tuple[str, ...]
    keep: tuple[str, ...]
    wait: tuple[str, ...]
    exit_status: int
    key: str = ""
    """Of the cells in `enable`, `keep` and `wait`; empty: there are none."""
    worse: tuple[Place, ...] = ()
    """Cells of all keys with a proven loss of the primary measure; of each key the largest first."""
    broken: tuple[Place, ...] = ()
    """Cells of all keys with a broken guardrail; of each key the furthest beyond its limit first."""
    heterogeneous: bool = False
    """Whether the cells differ by more than chance."""


@dataclass(frozen=True)
class Analysis:
    """Everything that the report shows."""

    facts: Facts
    settings: Mapping[str, str]
    health: tuple[Finding, ...]
    scorecard: tuple[Row, ...]
    guardrails: tuple[Guarded, ...]
    cells: tuple[Cell, ...]
    distributions: tuple[Distribution, ...]
    daily: tuple[Series, ...]
    looks: tuple[SequentialLook, ...]
    heat: Heat | None
    prices: tuple[Price, ...]
    incidents: tuple[Incident, ...]
    interference: Interference | None
    designed: tuple[Designed, ...] = ()
    traces: tuple[Trace, ...] = ()
    notes: tuple[str, ...] = ()
    not_guarded: tuple[str, ...] = ()
    """Guardrails that no record can show."""
