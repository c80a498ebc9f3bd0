"""Metrics of one's own: a mean, a ratio or quantiles of columns that only the operator's records have.

A mapping declares them (``[metric.NAME]``); the files that an import writes carry them in their metadata, so
that an analysis of the files knows them.
"""

from __future__ import annotations

import json
from collections.abc import Iterable
from dataclasses import asdict, dataclass
from typing import Any, Final

import ibis
import ibis.expr.types as ir

from uncork.measure.metrics import Metric
from uncork.measure.schema import Columns

KINDS: Final = ("mean", "ratio", "quantile")
METADATA: Final = b"uncork.metrics"
"""The key of a Parquet file's metadata with the metrics, as JSON."""

BOUNDS: Final = (1e-9, 1e15)
"""Of distributions: values beyond count as these."""


@dataclass(frozen=True)
class OwnMetric:
    """A declared metric. Its values are in columns of its name (``columns``)."""

    name: str
    kind: str
    better: str
    unit: str = ""
    """``s``, ``bit/s``, ``share`` (of a ratio that is a part of a whole), or any text."""
    title: str = ""
    limit: str = ""
    """How much worse it may get: ``5%`` or, of a share, ``2pp``. Then it is a guardrail."""
    statistics: tuple[str, ...] = ()
    """Of quantiles, what the scorecard shows: ``p50``, ``p90``."""
    decimals: int = 3
    """Of means and ratios: values are summed as whole numbers of this precision, exact on every engine."""

    def columns(self) -> tuple[str, ...]:
        """The columns of its value and, of a ratio, of its denominator."""
        return (self.name, f"{self.name}_per") if self.kind == "ratio" else (self.name,)

    def metric(self) -> Metric:
        """As a metric like the built-in ones."""
        is_quantile = self.kind == "quantile"
        return Metric(
            name=self.name,
            title=self.title or self.name,
            kind="distribution" if is_quantile else "ratio",
            unit="" if self.unit == "share" else self.unit,
            better="higher" if self.better == "higher" else "lower",
            needs=self.columns(),
            value=self._value if is_quantile else self._numerator,
            per=None if is_quantile else self._denominator,
            bounds=BOUNDS,
            about="A metric of these records.",
            statistics=self.statistics or (("p50", "p90") if is_quantile else ()),
            is_share=self.unit == "share",
            is_mean=self.kind == "mean",
            limit=self.limit,
        )

    def _value(self, t: Columns) -> ir.Value:
        return t[self.name].cast("float64")

    def _numerator(self, t: Columns) -> ir.Value:
        return _whole(t[self.name], 10**self.decimals)

    def _denominator(self, t: Columns) -> ir.Value:
        """Of a mean each record that has a value counts as one."""
        if self.kind == "ratio":
            return _whole(t[f"{self.name}_per"], 10**self.decimals)
        one = ibis.literal(10**self.decimals, "int64")
        return ibis.cases((t[self.name].notnull(), one), else_=ibis.null().cast("int64"))


def _whole(value: ir.Value, factor: int) -> ir.Value:
    """The value in whole parts; -1, which is left out and counted, where it is negative or not finite."""
    number = value.cast("float64")
    is_fine = (number >= 0.0) & (number < 9e18 / factor)
    return ibis.cases(
        (value.isnull(), ibis.null().cast("int64")),
        (is_fine, (number * float(factor)).round().cast("int64")),
        else_=ibis.literal(-1, "int64"),
    )


def dumps(metrics: Iterable[OwnMetric]) -> bytes:
    """As JSON, for the metadata of a file."""
    return json.dumps([asdict(it) for it in metrics]).encode()


def loads(text: bytes) -> tuple[OwnMetric, ...]:
    """What ``dumps`` wrote."""
    entries: list[dict[str, Any]] = json.loads(text)
    return tuple(OwnMetric(**(it | {"statistics": tuple(it["statistics"])})) for it in entries)
