"""Evidence by an engine of the operator's: the query as SQL, and a plan from its result."""

import io
import re
import shutil
from collections.abc import Callable, Sequence
from contextlib import redirect_stdout
from datetime import datetime, tzinfo
from pathlib import Path
from typing import Self

import duckdb
import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq
import pytest

from learning import FIRST_DAY, KEY, SETTINGS
from uncork.learn import commands, demo, resultfile
from uncork.learn.cli import main
from uncork.learn.store import Store
from uncork.learn.tablefile import date
from uncork.measure.schema import arrow_schema

UNTIL = date(FIRST_DAY + 7)
NEXT = date(FIRST_DAY + 8)
DAY_NS = 86_400 * 10**9


@pytest.fixture(scope="module")
def directory(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """With records of a week, in which some columns are unknown here and there."""
    path = tmp_path_factory.mktemp("records")
    table = demo.table(days=8, daily=100)
    for name, every in (("service_country", 7), ("service_asn", 11), ("arm", 13), ("size_bytes", 17)):
        some = pa.array(np.arange(table.num_rows) % every == 0)
        column = pc.if_else(some, pa.nulls(table.num_rows, table[name].type), table[name])
        table = table.set_column(table.column_names.index(name), name, column)
    pq.write_table(table, path / "records.parquet")
    return path


@pytest.fixture(scope="module")
def result(directory: Path) -> pa.Table:
    """What DuckDB answers to the statement that is shown."""
    return asked(directory, [])


def shown(*options: str, dialect: str = "duckdb") -> str:
    with redirect_stdout(io.StringIO()) as out:
        assert main(["plan", "--show-sql", dialect, *options]) == 0
    return out.getvalue()


def asked(directory: Path, options: Sequence[str], until: str = UNTIL) -> pa.Table:
    """The operator's table has all canonical columns. Parquet files are what all engines write."""
    statement = shown("--until", until, *options).strip().removesuffix(";")
    connection = duckdb.connect()
    connection.register("canonical", arrow_schema().empty_table())
    connection.execute(
        "CREATE VIEW records AS FROM canonical UNION ALL BY NAME "
        f"FROM read_parquet('{directory / 'records.parquet'}')"
    )
    file = directory / "result.parquet.tmp"
    connection.execute(f"COPY ({statement}) TO '{file}' (FORMAT parquet)")
    return pq.read_table(file)


def planned(root: Path, *options: str) -> int:
    return main(["plan", "-o", str(root), "--key", KEY, "--harmed", "5%", *options])


def files(root: Path, number: int = 1) -> dict[str, bytes]:
    return {one.name: one.read_bytes() for one in Store(root).path(number).iterdir()}


def bounds(text: str) -> set[tuple[str, int]]:
    """The comparisons with the time of a record."""
    found = re.findall(r'"service_start_unix_ns" (>=|<) (\d+)', text)
    return {(sign, int(value)) for sign, value in found}


def test_the_query_is_of_the_days_before_until() -> None:
    until = 20_766
    assert date(until) == "2026-11-09"
    wanted = {(">=", (until - 28) * DAY_NS), ("<", until * DAY_NS)}
    for dialect in ("trino", "bigquery", "snowflake"):
        text = shown("--until", "2026-11-09", dialect=dialect).replace("`", '"')
        assert bounds(text) == wanted, dialect
        assert "records before 2026-11-09" in text


def test_the_query_is_of_the_days_before_today(monkeypatch: pytest.MonkeyPatch) -> None:
    class Clock(datetime):
        @classmethod
        def now(cls, tz: tzinfo | None = None) -> Self:
            return cls(2026, 11, 9, 23, 59, tzinfo=tz)

    monkeypatch.setattr(commands, "datetime", Clock)
    assert bounds(shown()) == {(">=", (20_766 - 28) * DAY_NS), ("<", 20_766 * DAY_NS)}


def test_versions_from_a_result_have_the_same_bytes(
    directory: Path, result: pa.Table, tmp_path: Path
) -> None:
    pq.write_table(result, tmp_path / "result.parquet")
    assert planned(tmp_path / "a", str(directory), "--until", UNTIL) == 0
    assert planned(tmp_path / "b", "--evidence", str(tmp_path / "result.parquet")) == 0
    assert files(tmp_path / "a") == files(tmp_path / "b")
    assert main(["verify", str(tmp_path / "b")]) == 0


def test_a_result_in_parts_and_in_other_types_is_the_same(result: pa.Table, tmp_path: Path) -> None:
    """Snowflake's numbers are decimals; engines write parts, and `_SUCCESS` next to them."""
    parts = tmp_path / "parts"
    parts.mkdir()
    (parts / "_SUCCESS").touch()
    decimals = pa.table(
        {
            name: column if pa.types.is_string(column.type) else column.cast(pa.decimal128(38, 0))
            for name, column in zip(result.column_names, result.columns, strict=True)
        }
    )
    mixed = result.take(pa.array(np.random.default_rng(1).permutation(result.num_rows)))
    pq.write_table(decimals.slice(1000), parts / "0_0_0.snappy.parquet")
    pq.write_table(decimals.slice(0, 1000), parts / "0_1_0.snappy.parquet")
    pq.write_table(mixed, tmp_path / "mixed.parquet", use_dictionary=False, row_group_size=5000)
    expected = resultfile.counts(written(result, tmp_path / "result.parquet"), SETTINGS)
    for path in (parts, tmp_path / "mixed.parquet"):
        assert resultfile.counts(resultfile.load_result(path), SETTINGS).equals(expected)


def written(table: pa.Table, path: Path) -> resultfile.Result:
    pq.write_table(table, path)
    return resultfile.load_result(path)


def test_ases_on_trial_are_part_of_the_query(directory: Path, tmp_path: Path) -> None:
    """A switchback of the active version needs what the table decided in these ASes."""
    options = ["--confirm", "10%", "--changed", "100%"]
    records, root, other = str(directory), tmp_path / "a", tmp_path / "b"
    assert planned(root, records, "--until", UNTIL, *options) == 0
    assert main(["apply", str(root)]) == 0
    shutil.copytree(root, other, symlinks=True)
    result = written(asked(directory, ["-o", str(root), *options], NEXT), tmp_path / "result.parquet")
    assert "on trial AS64501" in result.asked
    assert planned(root, records, "--until", NEXT, *options) == 0
    assert planned(other, "--evidence", str(result.path), *options) == 0
    assert files(root, 2) == files(other, 2)
    assert planned(tmp_path / "c", "--evidence", str(result.path), *options) == 2


def column(table: pa.Table, name: str, values: object) -> pa.Table:
    return table.set_column(table.column_names.index(name), name, values)


def at(table: pa.Table, name: str, value: object) -> pa.Table:
    """With this value in the first row that has one."""
    values = table[name].to_pylist()
    values[next(at for at, one in enumerate(values) if one is not None)] = value
    return column(table, name, pa.array(values, table[name].type))


BAD: dict[str, tuple[Callable[[pa.Table], pa.Table], list[str], str]] = {
    "no column": (lambda it: it.drop(["bin"]), [], "no column 'bin'"),
    "text for a number": (
        lambda it: column(it, "n", it["n"].cast(pa.string())),
        [],
        "column 'n' is string ('",
    ),
    "a number for text": (lambda it: column(it, "client", it["n"]), [], "and not text"),
    "a fraction": (
        lambda it: at(column(it, "n", it["n"].cast(pa.float64())), "n", 1.5),
        [],
        "column 'n' has a wrong value: Float value 1.5",
    ),
    "too large": (lambda it: at(it, "bin", 2**40), [], "column 'bin' has a wrong value: Integer value 10995"),
    "negative": (lambda it: at(it, "n", -3), [], "column 'n' has -3; it must be 0 or more"),
    "bucket": (lambda it: at(it, "bucket", 100), [], "column 'bucket' has 100; it must be 0 to 99"),
    "metric": (lambda it: at(it, "metric", "speed"), [], "column 'metric' has 'speed'"),
    "a day before": (
        lambda it: at(it, "day", FIRST_DAY - 22),
        [],
        f"({date(FIRST_DAY - 22)}); it must be {FIRST_DAY - 21} ({date(FIRST_DAY - 21)}) to",
    ),
    "other dates": (
        lambda it: it,
        ["--until", date(FIRST_DAY + 8)],
        f"it is the result of another query: records before {UNTIL}, and not records before",
    ),
    "another experiment": (lambda it: it, ["--experiment", "e"], "experiment explore, and not experiment e"),
    "other guardrails": (
        lambda it: it,
        ["--guardrail", "stutters=5%"],
        "guardrails retransmitted aborted failed, and not guardrails stutters",
    ),
    "the end cut off": (lambda it: it.slice(0, it.num_rows // 2), [], "it has 0 rows of the metric 'query'"),
    "traffic cut off": (
        lambda it: it.filter(pc.fill_null(pc.not_equal(it["client"], "198.18.0.0/24"), True)),
        [],
        "rows are missing",
    ),
    "twice": (lambda it: pa.concat_tables([it, it]), [], "it has 2 rows of the metric 'query'"),
    "records, too": (lambda it: it, ["records"], "PATH: with --evidence no records are read"),
    "a condition": (lambda it: it, ["--where", "cc=bbr"], "--where: with --evidence no records are read"),
}


@pytest.mark.parametrize("name", BAD)
def test_a_wrong_result_is_refused(
    name: str, result: pa.Table, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    change, options, words = BAD[name]
    file = tmp_path / "result.parquet"
    pq.write_table(change(result), file)
    assert planned(tmp_path / "out", "--evidence", str(file), *options) == 2
    errors = capsys.readouterr().err
    assert words in errors
    assert str(file) in errors or words.startswith(("PATH", "--where"))
    assert "; " in errors, "the remedy"
    assert not (tmp_path / "out").exists()


def test_a_file_that_is_not_parquet_is_refused(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (tmp_path / "result.csv").write_text("metric,class\n")
    (tmp_path / "empty").mkdir()
    for name, words in (
        ("result.csv", "it cannot be read as Parquet"),
        ("empty", "there are no files in it"),
        ("none.parquet", "no such file or directory"),
    ):
        assert planned(tmp_path / "out", "--evidence", str(tmp_path / name)) == 2
        assert words in capsys.readouterr().err
    with pytest.raises(SystemExit):
        main(["plan", "--show-sql", "oracle"])
    assert main(["plan", "--show-sql", "trino", "--where", "cc=bbr"]) == 2
    assert "--where: the query is of a table `records`" in capsys.readouterr().err
