"""Export for a GrowthBook on the premises: tables for its warehouse, and definitions for its REST API.

GrowthBook is warehouse-native: it reads assignments and facts by SQL. So the export has Parquet files to
load, the SQL of the assignment query, and the body of `POST /api/v1/bulk-import/facts` and of `POST
/api/v1/experiments`. GrowthBook has neither switchback nor interference: the result document stays the place
of the verdict.
"""

from __future__ import annotations

import json
from collections.abc import Sequence
from pathlib import Path

import duckdb
import ibis
import ibis.expr.types as ir

from uncork.experiment import measures
from uncork.experiment.result import Measure
from uncork.experiment.rows import Settings
from uncork.measure.errors import OutputError
from uncork.measure.files import part_of, put_in_place, write, writing
from uncork.measure.keys import KEYS
from uncork.measure.metrics import METRICS, SIZE_CLASSES, available
from uncork.measure.schema import canonical

ASSIGNMENTS, FACTS = "assignments.parquet", "facts.parquet"
FACT_TABLE = "ftb_uncork_transfers"


def assignments(records: ir.Table, arms: Sequence[str], arm: str) -> ir.Table:
    """A row for each unit: `user_id, timestamp, experiment_id, variation_id`, from its first record."""
    table = canonical(records)
    table = table.filter(table[arm].isin(list(arms)) & table["arm_unit"].notnull())
    keys = {
        "user_id": table["arm_unit"].cast("string"),
        "experiment_id": table["arm_experiment"],
        "variation_id": table[arm].cast("string"),
    }
    first = table.group_by(**keys).aggregate(timestamp=_time(table).min())
    return first.order_by("user_id", "experiment_id", "variation_id")


def facts(records: ir.Table, metrics: Sequence[str], arms: Sequence[str], arm: str) -> ir.Table:
    """A row for each transfer: `user_id, timestamp`, region and size class, and a column (two of a ratio)
    by metric.
    """
    have = set(records.columns)
    table = canonical(records)
    table = table.filter(table[arm].isin(list(arms)) & table["arm_unit"].notnull())
    columns: dict[str, ir.Value] = {"user_id": table["arm_unit"].cast("string"), "timestamp": _time(table)}
    for key in ("region", "size_class"):
        if not [need for need in KEYS[key].needs if not have & set(need.split("|"))]:
            columns[key] = KEYS[key].value(table)
    if "size_class" in columns:
        steps = [(columns["size_class"] == number, name) for number, name in enumerate(SIZE_CLASSES)]
        columns["size_class"] = ibis.cases(*steps, else_=ibis.null().cast("string"))
    for name in metrics:
        metric = METRICS[name]
        columns[name] = metric.value(table).cast("float64")
        if metric.per is not None:
            columns[f"{name}_per"] = ibis.coalesce(metric.per(table), 0).cast("float64")
    return table.select(**columns).order_by("timestamp", "user_id")


def _time(table: ir.Table) -> ir.TimestampValue:
    return (table["service_start_unix_ns"] // 1_000_000).cast("int64").as_timestamp("ms")


def definitions(metrics: Sequence[str], settings: Settings, datasource: str, table: str) -> dict[str, object]:
    """The body of `POST /api/v1/bulk-import/facts`: one fact table and the metrics on it."""
    fact_table = {
        "id": FACT_TABLE,
        "data": {
            "name": "uncork transfers",
            "description": "One row for each transfer, by uncork experiment export growthbook.",
            "datasource": datasource,
            "userIdTypes": ["user_id"],
            "sql": f"SELECT * FROM {table}",
        },
    }
    declared = [settings.primary, *(limit.measure for limit in settings.guardrails)]
    wanted = [measure for name in metrics for measure in measures.shown(name)]
    wanted += [measure for measure in declared if measure and measure.metric in metrics]
    return {
        "factTables": [fact_table],
        "factMetrics": [_fact_metric(measure) for measure in dict.fromkeys(wanted)],
    }


def _fact_metric(measure: Measure) -> dict[str, object]:
    name = measure.metric
    metric = METRICS[name]
    common = {"description": metric.about or metric.title, "inverse": metric.better == "lower"}
    if metric.kind == "ratio":
        sums = {
            "numerator": {"factTableId": FACT_TABLE, "column": name},
            "denominator": {"factTableId": FACT_TABLE, "column": f"{name}_per"},
        }
        return {
            "id": _metric_id(measure),
            "data": {"name": metric.title, "metricType": "ratio", **sums, **common},
        }
    value = {"numerator": {"factTableId": FACT_TABLE, "column": name}}
    q = measures.quantile(measure.statistic)
    if q is None:
        return {
            "id": _metric_id(measure),
            "data": {"name": metric.title, "metricType": "mean", **value, **common},
        }
    quantile = {"quantileSettings": {"type": "event", "ignoreZeros": False, "quantile": q}}
    data = {
        "name": f"{metric.title}, {measure.statistic}",
        "metricType": "quantile",
        **value,
        **quantile,
        **common,
    }
    return {"id": _metric_id(measure), "data": data}


def experiment(
    name: str, arms: Sequence[str], settings: Settings, metrics: Sequence[str], datasource: str
) -> dict[str, object]:
    """The body of `POST /api/v1/experiments`. Put the id of the assignment query in its place."""
    goal = _metric_id(settings.primary) if settings.primary else None
    guards = [_metric_id(limit.measure) for limit in settings.guardrails if limit.measure.metric in metrics]
    return {
        "datasourceId": datasource,
        "assignmentQueryId": "user_id",
        "trackingKey": name,
        "name": name,
        "hashAttribute": "user_id",
        "variations": [{"key": arm, "name": arm} for arm in arms],
        "metrics": [goal] if goal else [],
        "guardrailMetrics": guards,
    }


def _metric_id(measure: Measure) -> str:
    ending = "" if measure.statistic == "ratio" else f"_{measure.statistic}"
    return f"fact__uncork_{measure.metric}{ending}"


def export(
    records: ir.Table,
    arms: Sequence[str],
    name: str,
    settings: Settings,
    into: Path,
    *,
    arm: str = "arm",
    datasource: str = "DATASOURCE_ID",
) -> list[Path]:
    """Writes all files, and returns their paths."""
    metrics = available(set(records.columns))
    _write_rows(into / ASSIGNMENTS, assignments(records, arms, arm))
    _write_rows(into / FACTS, facts(records, metrics, arms, arm))
    texts = {
        "assignment.sql": "SELECT user_id, timestamp, experiment_id, variation_id FROM assignments\n",
        "bulk-import-facts.json": _json(definitions(metrics, settings, datasource, "facts")),
        "experiment.json": _json(experiment(name, arms, settings, metrics, datasource)),
    }
    for file, text in texts.items():
        write(into / file, text)
    return [into / file for file in (ASSIGNMENTS, FACTS, *texts)]


def _write_rows(path: Path, of: ir.Table) -> None:
    """By the engine: there may be more rows than memory."""
    part = part_of(path)
    with writing(path):
        path.parent.mkdir(parents=True, exist_ok=True)
        try:
            of.to_parquet(part)
            put_in_place(part, path)
        except duckdb.IOException as error:
            raise OutputError(f"{path}: {str(error).splitlines()[0]}") from error
        finally:
            part.unlink(missing_ok=True)


def _json(of: object) -> str:
    return json.dumps(of, ensure_ascii=False, indent=1) + "\n"
