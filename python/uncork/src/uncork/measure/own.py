"""Metrics of one's own: a mean, a ratio or quantiles of columns that only the operator's records have.

A mapping declares them (``[metric.NAME]``); the files that an import writes carry them in their metadata, so
that an analysis of the files knows them.
"""

from __future__ import annotations

import json
import math
from collections.abc import Iterable, Mapping
from dataclasses import asdict, dataclass, replace
from typing import Any, Final

import ibis
import ibis.expr.types as ir

from uncork.measure.errors import InputError
from uncork.measure.metrics import Metric
from uncork.measure.schema import Columns

KINDS: Final = ("mean", "ratio", "quantile")
METADATA: Final = b"uncork.metrics"
"""The key of a Parquet file's metadata with the metrics, as JSON."""

SUM_DIGITS: Final = 18
"""Of sums in 63 bits."""

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
    """Of means and ratios: values are summed as whole numbers of this precision, exact on every engine. See
    ``fitted``."""

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
        return _whole(t[self.name], self.decimals)

    def _denominator(self, t: Columns) -> ir.Value:
        """Of a mean each record that has a value counts as one."""
        if self.kind == "ratio":
            return _whole(t[f"{self.name}_per"], self.decimals)
        one = ibis.literal(10**self.decimals, "int64")
        return ibis.cases((t[self.name].notnull(), one), else_=ibis.null().cast("int64"))


def _whole(value: ir.Value, decimals: int) -> ir.Value:
    """The value in whole parts; -1, which is left out and counted, where it is negative or not finite."""
    number = value.cast("float64")
    factor = 10.0**decimals
    is_fine = (number >= 0.0) & (number < 9e18 / factor)
    return ibis.cases(
        (value.isnull(), ibis.null().cast("int64")),
        (is_fine, (number * factor).round().cast("int64")),
        else_=ibis.literal(-1, "int64"),
    )


def fitted(metrics: Iterable[OwnMetric], records: ir.Table) -> tuple[OwnMetric, ...]:
    """The metrics with as many decimals as sums in 63 bits have room for. Raises ``InputError``."""
    wanted = [it for it in metrics if it.kind != "quantile" and set(it.columns()) <= set(records.columns)]
    columns = {name: records[name].cast("float64") for it in wanted for name in it.columns()}
    if not columns:
        return tuple(metrics)
    sums = {name: value.sum(where=(value >= 0.0) & (value < 1e300)) for name, value in columns.items()}
    found = records.aggregate(n=records.count(), **sums).to_pyarrow().to_pylist()[0]
    return tuple(_fitted(it, found) if it in wanted else it for it in metrics)


def _fitted(metric: OwnMetric, sums: Mapping[str, float | None]) -> OwnMetric:
    largest = max(float(sums["n"] or 0), *(float(sums[name] or 0) for name in metric.columns()))
    decimals = SUM_DIGITS - math.ceil(math.log10(max(largest, 1)))
    if decimals < 0:
        place, remedy = f"metric.{metric.name}", "write it in a larger unit"
        raise InputError(place, f"its values add up to {largest:.1e}: too large to count", remedy)
    return replace(metric, decimals=decimals)


def dumps(metrics: Iterable[OwnMetric]) -> bytes:
    """As JSON, for the metadata of a file."""
    return json.dumps([asdict(it) for it in metrics]).encode()


def loads(text: bytes) -> tuple[OwnMetric, ...]:
    """What ``dumps`` wrote."""
    entries: list[dict[str, Any]] = json.loads(text)
    return tuple(OwnMetric(**(it | {"statistics": tuple(it["statistics"])})) for it in entries)
