"""The SQL for engines that are not here, pinned: a change of it must be seen.

UNCORK_UPDATE=1 pytest tests/test_sql.py writes the files again.
"""

import os
from pathlib import Path

import pytest
import sqlglot

from uncork_experiment.reduce import ReducePlan, sql

GOLDEN = Path(__file__).parent / "golden"
PLAN = ReducePlan(control="control", by=("region", "day", "size_class"), experiment="bbr-2026")


@pytest.mark.parametrize("dialect", ["trino", "bigquery", "snowflake", "databricks", "clickhouse"])
def test_sql_is_the_pinned_one(dialect: str) -> None:
    text, file = sql(PLAN, dialect), GOLDEN / f"{dialect}.sql"
    if os.environ.get("UNCORK_UPDATE"):
        file.write_text(text, "utf-8")
    assert text == file.read_text("utf-8")
    assert len(sqlglot.parse(text, dialect=dialect)) >= 12, "ten metrics, units and sources"
    for word in ("quantile", "percentile", "hash", "random", "approx", "uniq("):
        assert word not in text.lower(), "engines do not agree on it"
