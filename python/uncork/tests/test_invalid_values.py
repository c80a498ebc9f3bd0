"""Values that no record can have: `analyze` and `learn` refuse them in the same words."""

import re
from collections.abc import Callable
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from learning import KEY
from test_learn_weights import changed
from uncork.experiment.cli import main as experiment
from uncork.learn import demo
from uncork.learn.cli import main as learn

WRONG: dict[str, tuple[str, object, str, str]] = {
    "NaN": ("arm_propensity", float("nan"), "such as nan; it must be above 0 and at most 1", "or no value"),
    "infinite": ("arm_propensity", float("inf"), "such as inf; it must be above 0", "or no value"),
    "negative": ("arm_propensity", -0.5, "such as -0.5; it must be above 0", "or no value"),
    "zero": ("arm_propensity", 0.0, "such as 0.0; it must be above 0", "or no value"),
    "above 1": ("arm_propensity", 50.0, "such as 50.0; it must be above 0 and at most 1", "or no value"),
    "bucket": ("arm_bucket", 100, "such as 100; it must be 0 to 99", "modulo 100"),
    "negative bucket": ("arm_bucket", -1, "such as -1; it must be 0 to 99", "modulo 100"),
    "size": ("size_bytes", -5, "such as -5; it must be 0 or more", "if it is unknown"),
    "host bits": (
        "service_client",
        "203.0.113.7/24",
        "host bits, such as 203.0.113.7/24",
        "write 203.0.113.0/24",
    ),
    "IPv6": ("service_client", "2001:db8::1/48", "host bits, such as 2001:db8::1/48", "write 2001:db8::/48"),
}


def with_wrong(column: str, value: object) -> pa.Table:
    """Records in which the first three rows have this value."""
    table = demo.table((demo.System(64501, "PE", 2, 0.3),), days=1, daily=400)
    values = table[column].to_pylist()
    return changed(table, column, [value] * 3 + values[3:])


@pytest.mark.parametrize("name", WRONG)
def test_a_value_that_cannot_be_is_refused_by_both(
    name: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    column, value, problem, remedy = WRONG[name]
    records = tmp_path / "records"
    records.mkdir()
    good, bad = records / "a.parquet", records / "b.parquet"
    pq.write_table(demo.table(demo.SYSTEMS[:1], days=1), good)
    pq.write_table(with_wrong(column, value), bad)
    commands: list[tuple[Callable[[list[str]], int], list[str]]] = [
        (experiment, ["analyze", str(records), "-o", str(tmp_path / "report")]),
        (learn, ["plan", str(records), "-o", str(tmp_path / "learned"), "--key", KEY]),
    ]
    said = []
    for main, words in commands:
        assert main(words) == 2
        said.append(re.findall(r"error: (.*)", capsys.readouterr().err)[-1])
    assert said[0] == said[1]
    assert said[0].startswith(f"{bad}: column {column}: 3 rows have ")
    assert problem in said[0]
    assert remedy in said[0].rpartition("; ")[2]
    assert not (tmp_path / "learned").exists()


def test_an_address_and_a_network_without_host_bits_are_taken(tmp_path: Path) -> None:
    table = demo.table((demo.System(64501, "PE", 2, 0.3),), days=1, daily=400)
    clients = ["203.0.113.7", "203.0.113.128/25", "2001:db8::/48", "unknown"]
    column = [*clients, *table["service_client"].to_pylist()[4:]]
    pq.write_table(changed(table, "service_client", column), tmp_path / "r.parquet")
    options = ["--key", KEY, "-o", str(tmp_path / "learned")]
    assert learn(["plan", str(tmp_path / "r.parquet"), *options]) == 0
