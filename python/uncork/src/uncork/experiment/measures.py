"""Which measures are shown, under which short name, and the guardrails that hold by default."""

from __future__ import annotations

import re
from collections.abc import Sequence

from uncork.experiment.result import Limit, Measure
from uncork.measure.errors import InputError
from uncork.measure.metrics import METRICS

TITLES = {
    "throughput": "throughput ≥ 3 MB",
    "completion": "completion < 3 MB",
    "first_byte": "first byte",
    "retransmitted": "retransmitted",
    "rtt_inflation": "RTT over min RTT",
    "queue_delay": "queueing delay",
    "early_resent": "resent in 2 RTTs",
    "start_lost": "lost in start",
    "start_rounds": "RTTs to 100 kB",
    "start_resent": "resent ≤ 100 kB",
    "queued": "queueing in RTT",
    "aborted": "aborted",
    "failed": "error pages",
    "playback_latency": "playback latency",
    "stutters": "stutters per song",
    "stalled": "stalled",
    "bandwidth": "bandwidth",
}
"""Names short enough for a table; the glossary has the whole."""

SHARES = frozenset(
    {"retransmitted", "early_resent", "start_lost", "start_resent", "queued", "aborted", "failed", "stalled"}
)
"""Ratios that are parts of a whole: shown in percent, their change in percentage points with the ratio."""

STATISTICS: dict[str, tuple[str, ...]] = {
    "throughput": ("p10", "p50", "p90"),
    "completion": ("p50", "p90", "p99"),
    "first_byte": ("p50", "p90", "p99"),
    "rtt_inflation": ("p50", "p90"),
    "queue_delay": ("p50", "p99"),
    "start_rounds": ("p50", "p90"),
    "playback_latency": ("p50", "p90", "p99"),
    "bandwidth": ("p50", "p10", "p01"),
}
"""Of distributions; ratio metrics have one value."""

PRIMARY = (Measure("throughput", "p50"), Measure("bandwidth", "p50"), Measure("completion", "p50"))
"""The first that the records have is the primary measure, unless one is named."""

IN_CELLS = ("throughput", "completion", "retransmitted", "stutters", "bandwidth")
"""Metrics that are shown of each cell."""

GUARDRAILS = (
    Limit(Measure("retransmitted", "ratio"), points=0.02),
    Limit(Measure("early_resent", "ratio"), points=0.02),
    Limit(Measure("aborted", "ratio"), points=0.005),
    Limit(Measure("failed", "ratio"), points=0.01),
    Limit(Measure("stutters", "ratio"), relative=0.05),
    Limit(Measure("first_byte", "p90"), relative=0.10),
    Limit(Measure("completion", "p90"), relative=0.05),
    Limit(Measure("rtt_inflation", "p90"), relative=0.25),
)

_QUANTILE = re.compile(r"p(\d{2})$")


def title(metric: str) -> str:
    return TITLES.get(metric) or METRICS[metric].title


def name(measure: Measure) -> str:
    """`p50 first byte`; ratio metrics have no statistic in their name."""
    of = title(measure.metric)
    return of if measure.statistic == "ratio" else f"{measure.statistic} {of}"


def unit(metric: str) -> str:
    return "share" if metric in SHARES or METRICS[metric].is_share else METRICS[metric].unit


def quantile(statistic: str) -> float | None:
    """0.1 of `p10`; None of `mean` and `ratio`."""
    found = _QUANTILE.match(statistic)
    return int(found[1]) / 100 if found else None


def shown(metric: str) -> tuple[Measure, ...]:
    """The measures of a metric in the scorecard."""
    own = METRICS[metric].statistics or ("p50",)
    statistics = ("ratio",) if METRICS[metric].kind == "ratio" else STATISTICS.get(metric, own)
    return tuple(Measure(metric, statistic) for statistic in statistics)


def parse(text: str, option: str) -> Measure:
    """`throughput:p10`, `stutters`. The error names what there is."""
    metric, _, statistic = text.partition(":")
    if metric not in METRICS:
        raise InputError(
            f"{option} {text}", f"no such metric: {metric!r}", f"choose one of {', '.join(METRICS)}"
        )
    is_ratio = METRICS[metric].kind == "ratio"
    statistic = "ratio" if METRICS[metric].is_mean and statistic == "mean" else statistic
    statistic = statistic or ("ratio" if is_ratio else "p50")
    if is_ratio and statistic != "ratio":
        raise InputError(f"{option} {text}", f"{metric} is a ratio without quantiles", f"write {metric}")
    at = quantile(statistic)
    if not is_ratio and statistic != "mean" and not at:
        raise InputError(
            f"{option} {text}", f"{statistic!r} is not a statistic", f"write {metric}:p50 or {metric}:mean"
        )
    return Measure(metric, statistic)


def own_guardrails() -> tuple[Limit, ...]:
    """The limits that metrics of one's own declare."""
    return tuple(parse_limit(f"{name}={metric.limit}") for name, metric in METRICS.items() if metric.limit)


def parse_limits(texts: Sequence[str]) -> tuple[Limit, ...]:
    """One limit for each measure: of two, it would not be clear which was declared."""
    limits: dict[Measure, str] = {}
    found = tuple(parse_limit(text) for text in texts)
    for limit, text in zip(found, texts, strict=True):
        if limit.measure in limits:
            problem = f"{name(limit.measure)} has the limit {limits[limit.measure]} already"
            raise InputError(f"--guardrail {text}", problem, "name each measure once")
        limits[limit.measure] = text.partition("=")[2]
    return found


def parse_limit(text: str) -> Limit:
    """`retransmitted=2pp`, `first_byte:p90=10%`."""
    name, equals, amount = text.partition("=")
    found = re.fullmatch(r"\+?([0-9.]+)\s*(%|pp)", amount)
    if not equals or not found:
        raise InputError(
            f"--guardrail {text}",
            "no limit with a unit",
            "write METRIC[:STATISTIC]=10% (relative) or =2pp (points)",
        )
    measure, value = parse(name, "--guardrail"), float(found[1]) / 100
    if found[2] == "pp" and unit(measure.metric) != "share":
        raise InputError(f"--guardrail {text}", f"{measure.metric} is not a share", f"write {name}=10%")
    return Limit(measure, points=value) if found[2] == "pp" else Limit(measure, relative=value)
