"""The SQL for engines: DuckDB's text, and what the statements for engines that are not here consist of.

UNCORK_UPDATE=1 pytest tests/test_sql.py writes both files again.
"""

import json
import os
from collections import Counter
from pathlib import Path

import pytest
import sqlglot
from sqlglot import exp

from uncork.measure.reduce import ReducePlan, sql

GOLDEN = Path(__file__).parent / "golden"
SHAPES = GOLDEN / "dialects.json"
PLAN = ReducePlan(control="control", by=("region", "day", "size_class"), experiment="bbr-2026")
DIALECTS = ["trino", "bigquery", "snowflake", "databricks", "clickhouse"]


def shape(statement: exp.Expression) -> dict[str, object]:
    """What an engine computes: output columns, tables, literals, functions, joins, groups and filters."""
    select = statement.find(exp.Select)
    functions = Counter(
        node.name.lower() if isinstance(node, exp.Anonymous) else node.sql_name().lower()
        for node in statement.find_all(exp.Func)
    )
    return {
        "columns": select.named_selects if select else [],
        "tables": sorted({table.name for table in statement.find_all(exp.Table)}),
        "literals": dict(
            sorted(Counter(literal.name for literal in statement.find_all(exp.Literal)).items())
        ),
        "functions": dict(sorted(functions.items())),
        "joins": len(list(statement.find_all(exp.Join))),
        "groups": sorted(len(group.expressions) for group in statement.find_all(exp.Group)),
        "filters": len(list(statement.find_all(exp.Where))),
    }


def shapes(dialect: str) -> list[dict[str, object]]:
    return [shape(statement) for statement in sqlglot.parse(sql(PLAN, dialect), dialect=dialect) if statement]


def write(name: Path, text: str) -> None:
    if os.environ.get("UNCORK_UPDATE"):
        name.write_text(text, "utf-8")


def test_duckdb_runs_the_pinned_text() -> None:
    text = sql(PLAN, "duckdb")
    write(GOLDEN / "duckdb.sql", text)
    assert text == (GOLDEN / "duckdb.sql").read_text("utf-8")


def test_other_engines_compute_the_same_as_before() -> None:
    found = {dialect: shapes(dialect) for dialect in DIALECTS}
    # One statement is one line, so that a change of it is a line of a diff.
    lines = [
        f'"{dialect}": [\n'
        + ",\n".join(json.dumps(shape, ensure_ascii=False) for shape in statements)
        + "\n]"
        for dialect, statements in found.items()
    ]
    write(SHAPES, "{\n" + ",\n".join(lines) + "\n}\n")
    assert found == json.loads(SHAPES.read_text("utf-8"))


@pytest.mark.parametrize("dialect", ["duckdb", *DIALECTS])
def test_all_metrics_are_computed_by_functions_on_which_engines_agree(dialect: str) -> None:
    text = sql(PLAN, dialect)
    assert len(sqlglot.parse(text, dialect=dialect)) >= 11, "ten metrics and units"
    for word in ("quantile", "percentile", "hash", "random", "approx", "uniq("):
        assert word not in text.lower(), "engines do not agree on it"
