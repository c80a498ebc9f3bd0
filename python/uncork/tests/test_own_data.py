"""Tables with columns, dimensions and metrics of one's own: read by a mapping, chosen, excluded, refused."""

import json
from collections.abc import Iterator
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import duckdb
import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from uncork.experiment import measures
from uncork.experiment.cli import main
from uncork.experiment.commands.common import selected
from uncork.measure.errors import InputError
from uncork.measure.metrics import METRICS, declared
from uncork.measure.reduce import ReducePlan, reduce
from uncork.measure.sources import load, read
from uncork.measure.sources.networks import parse as parse_networks

MAPPING = """format = "parquet"
source = "client"
required = ["completion_ns"]
[columns]
service_start_unix_ns = "ts"
completion_ns = { from = "download_ms", unit = "ms" }
bytes_delivered = "bytes"
size_bytes = "wanted"
service_client = { from = "ip", network = true }
cc = "variant"
arm = { from = "variant", names = { "BBR " = "bbr" } }
[unit]
from = "user_id"
kind = "cookie"
[dimensions]
device = { from = "ua", pattern = "^([A-Za-z]+)" }
[metric.rebuffers]
kind = "mean"
value = "rebuffer_count"
better = "lower"
limit = "20%"
title = "rebuffers"
[metric.late]
kind = "ratio"
value = "late_ms"
per = "watched_ms"
better = "lower"
unit = "share"
[metric.score]
kind = "quantile"
value = "score"
better = "higher"
"""
USERS, ROWS = 600, 6000
TABLE = Path("own.parquet")


def table() -> pa.Table:
    """600 users; `bbr` has half of the rebuffers, and everything else alike."""
    random = np.random.default_rng(7)
    user = random.integers(0, USERS, ROWS)
    is_bbr = user % 2 == 1
    start = datetime(2026, 11, 2, tzinfo=UTC)
    wanted = np.full(ROWS, 2_000_000)
    return pa.table(
        {
            "ts": pa.array(
                [start + timedelta(seconds=30 * n) for n in range(ROWS)], pa.timestamp("ns", "UTC")
            ),
            "download_ms": random.lognormal(6, 0.5, ROWS),
            "bytes": wanted,
            "wanted": wanted,
            "ip": [f"203.0.{it % 250}.7" for it in user],
            "variant": np.where(is_bbr, "bbr", "cubic").tolist(),
            "user_id": [f"u{it}" for it in user],
            "ua": [("Phone/1", "TV/2")[it % 2] for it in range(ROWS)],
            "region": [("north", "south")[it % 3 == 0] for it in range(ROWS)],
            "rebuffer_count": random.poisson(np.where(is_bbr, 1.0, 2.0)),
            "late_ms": random.gamma(2, 50, ROWS),
            "watched_ms": np.full(ROWS, 10_000.0),
            "score": random.lognormal(0, 0.2, ROWS),
        }
    )


def changed(of: pa.Table, name: str, values: Any) -> pa.Table:
    return of.set_column(of.column_names.index(name), name, pa.array(values))


@pytest.fixture
def own(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Path]:
    monkeypatch.chdir(tmp_path)
    pq.write_table(table(), TABLE)
    Path("my.toml").write_text(MAPPING)
    return tmp_path


def analyze(*options: str) -> int:
    return main(["analyze", str(TABLE), *options])


@pytest.mark.usefixtures("own")
def test_own_columns_dimensions_and_metrics(capsys: pytest.CaptureFixture[str]) -> None:
    options = ("--mapping", "my.toml", "--by", "region,device", "--primary", "rebuffers:mean",
               "--guardrail", "score:p90=10%", "--guardrail", "late=2pp", "--format", "json")  # fmt: skip
    status = analyze(*options)
    said = capsys.readouterr()
    assert status == 0, said.err
    document = json.loads(said.out)
    primary = next(row for row in document["scorecard"] if row["role"] == "primary")
    assert primary["measure"] == "rebuffers:ratio"
    assert primary["control"] == pytest.approx(2.0, rel=0.05)
    assert primary["effect"]["ratio"] == pytest.approx(0.5, rel=0.1)
    assert {row["measure"] for row in document["scorecard"]} >= {"late:ratio", "score:p50", "score:p90"}
    assert {cell["value"] for cell in document["cells"]} == {"north", "south", "Phone", "TV"}
    assert "rebuffers" not in METRICS, "the metrics of a command end with it"


@pytest.mark.usefixtures("own")
@pytest.mark.parametrize("unit", [1e-6, 1e-3, 1e9])
def test_own_means_of_any_size_keep_their_digits(unit: float, capsys: pytest.CaptureFixture[str]) -> None:
    of = table()
    counts = np.array(of["rebuffer_count"]) * unit
    pq.write_table(changed(of, "rebuffer_count", counts), TABLE)
    assert analyze("--mapping", "my.toml", "--primary", "rebuffers:mean", "--format", "json") in (0, 1, 4)
    document = json.loads(capsys.readouterr().out)
    primary = next(row for row in document["scorecard"] if row["role"] == "primary")
    assert primary["control"] == pytest.approx(2.0 * unit, rel=0.05)
    assert primary["effect"]["ratio"] == pytest.approx(0.5, rel=0.1)


@pytest.mark.usefixtures("own")
def test_own_means_that_cannot_be_added_are_named(capsys: pytest.CaptureFixture[str]) -> None:
    of = table()
    pq.write_table(changed(of, "rebuffer_count", np.array(of["rebuffer_count"]) * 1e16), TABLE)
    assert analyze("--mapping", "my.toml", "--primary", "rebuffers:mean") == 2
    assert "metric.rebuffers: its values add up to" in capsys.readouterr().err


@pytest.mark.usefixtures("own")
def test_values_are_exact_and_units_are_users() -> None:
    loaded = read([TABLE], load("my.toml"))
    with declared(metric.metric() for metric in loaded.metrics):
        reduced = reduce(loaded.table, ReducePlan(control="cubic"))
        assert [str(limit.measure) for limit in measures.own_guardrails()] == ["rebuffers:ratio"]
    of = table()
    total = sum(of["rebuffer_count"].to_pylist())
    cube = reduced.cells[()]["rebuffers"]
    assert cube.numerator.sum() == 1000 * total  # type: ignore[union-attr]
    assert cube.denominator.sum() == 1000 * ROWS  # type: ignore[union-attr]
    assert reduced.units[()].sum() == len(set(of["user_id"].to_pylist()))
    first = loaded.table.order_by("service_start_unix_ns").limit(1).to_pyarrow().to_pylist()[0]
    assert first["service_start_unix_ns"] == 1_793_577_600_000_000_000
    assert first["service_client"].endswith("/24")


@pytest.mark.usefixtures("own")
def test_an_import_carries_the_metrics_and_duckdb_is_read() -> None:
    assert main(["import", str(TABLE), "--mapping", "my.toml", "-o", "records"]) == 0
    assert [it.name for it in read([Path("records")]).metrics] == ["rebuffers", "late", "score"]
    with duckdb.connect("own.duckdb") as connection:
        connection.sql(f"CREATE TABLE downloads AS FROM '{TABLE}'")
    Path("db.toml").write_text('table = "downloads"\n' + MAPPING)
    assert read([Path("own.duckdb")], load("db.toml")).table.count().to_pyarrow().as_py() == ROWS
    with pytest.raises(InputError, match="the mapping names no table"):
        read([Path("own.duckdb")], load("my.toml"))


@pytest.mark.usefixtures("own")
def test_bad_values_and_missing_units_are_left_out_and_counted() -> None:
    of = table()
    took = of["download_ms"].to_pylist()
    took[:4] = [float("inf"), float("nan"), -5.0, None]
    users: list[str | None] = [
        None if n in (10, 11) else it for n, it in enumerate(of["user_id"].to_pylist())
    ]
    pq.write_table(changed(changed(of, "download_ms", took), "user_id", users), TABLE)
    loaded = read([TABLE], load("my.toml"), rejected=Path("bad.jsonl"))
    assert loaded.rejected == {
        "download_ms: not finite": 2,
        "download_ms: negative": 1,
        "download_ms: missing": 1,
        "user_id: missing, and it is the unit": 2,
    }
    assert '"line": 1, "reason": "download_ms: not finite"' in Path("bad.jsonl").read_text().splitlines()[0]


@pytest.mark.usefixtures("own")
def test_broken_off_downloads_of_a_table() -> None:
    of = table()
    pq.write_table(changed(of, "bytes", [1000, *([2_000_000] * (ROWS - 1))]), TABLE)
    rows = read([TABLE], load("my.toml")).table
    broken = rows.filter(rows["service_broken_off"] == 1).to_pyarrow().to_pylist()
    assert [row["completion_ns"] for row in broken] == [None]


def canonical(**columns: Any) -> None:
    """Records with canonical names, without a mapping."""
    of = table()
    base = {
        "arm": of["variant"], "cc": of["variant"], "user_id": of["user_id"],
        "service_start_unix_ns": of["ts"],
        "completion_ns": pa.array((of["download_ms"].to_numpy() * 1e6).astype("int64")),
        "size_bytes": of["wanted"], "bytes_delivered": of["bytes"],
        "source": pa.array(["client"] * ROWS), "service_country": pa.array(["DE", "FR"] * (ROWS // 2)),
    }  # fmt: skip
    pq.write_table(
        pa.table({name: value for name, value in (base | columns).items() if value is not None}), TABLE
    )


@pytest.mark.usefixtures("own")
def test_times_and_floating_point_of_canonical_columns() -> None:
    took = [1e9] * ROWS
    took[:3] = [float("inf"), float("nan"), -5.0]
    canonical(completion_ns=pa.array(took, pa.float64()))
    loaded = read([TABLE], unit=("user_id",))
    rows = loaded.table.order_by("service_start_unix_ns").limit(4).to_pyarrow()
    assert rows["service_start_unix_ns"].to_pylist()[1] == 1_793_577_630_000_000_000
    assert sorted(rows["completion_ns"].to_pylist()) == [-5, -1, -1, 10**9]
    assert reduce(loaded.table, ReducePlan(control="cubic")).rejected == {
        "completion: a value that cannot be": 3,
        "bandwidth: a value that cannot be": 3,
    }
    assert analyze("--unit-columns", "user_id", "-o", "out") in (0, 1, 4)


@pytest.mark.usefixtures("own")
@pytest.mark.parametrize(
    ("name", "text", "remedy"),
    [
        ("service_start_unix_ns", "2026-11-02T10:00:00Z", 'time = "iso"'),
        ("completion_ns", "1.2 s", 'completion_ns = "COLUMN"'),
    ],
)
def test_a_column_of_numbers_with_texts_alone_is_refused_by_name(name: str, text: str, remedy: str) -> None:
    canonical(**{name: pa.array([text, *([None] * (ROWS - 1))])})
    with pytest.raises(InputError) as refused:
        read([TABLE], unit=("user_id",))
    assert refused.value.place.endswith(f"{TABLE}: column {name}")
    assert refused.value.problem == f"none of its 1 values is a number, such as '{text}'"
    assert remedy in refused.value.remedy
    canonical(**{name: pa.array([text, "", *(["1793577600000000000"] * (ROWS - 2))])})
    values = read([TABLE], unit=("user_id",)).table[name].to_pyarrow().to_pylist()
    assert (values.count(-1), values.count(None)) == (1, 1)


@pytest.mark.usefixtures("own")
def test_missing_units_are_not_one_unit() -> None:
    users = [None if n % 5 == 0 else it for n, it in enumerate(table()["user_id"].to_pylist())]
    canonical(user_id=pa.array(users))
    reduced = reduce(read([TABLE], unit=("user_id",)).table, ReducePlan(control="cubic"))
    assert reduced.rejected == {"no bucket from 0 to 99": ROWS // 5}


@pytest.mark.usefixtures("own")
def test_where_and_exclude_take_columns_and_keys() -> None:
    canonical()
    of = read([TABLE], unit=("user_id",)).table

    def count(where: list[str], exclude: list[str]) -> int:
        return int(selected(of, where, exclude).count().to_pyarrow().as_py())

    assert count(["country=DE"], []) == ROWS // 2
    assert count(["region=Europe"], []) == ROWS
    user = table()["user_id"].to_pylist().count("u7")
    assert count([], ["user_id=u7"]) == ROWS - user
    for where, exclude in (["region=Asia-Pacific"], []), ([], ["country=DE", "country=FR"]):
        with pytest.raises(InputError, match="no record is left"):
            count(where, exclude)


@pytest.mark.parametrize(
    ("options", "message"),
    [
        (("--where", "contry=DE"), "did you mean country?"),
        (("--where", "country"), "no value is given"),
        (("--exclude", "zzz=1"), "no column or key 'zzz'"),
        (("--memory", "10"), "--memory 10: not a size with a unit; write 3GB"),
        (("--by", "regoin"), "did you mean region?"),
        (("--by", "day"), "no decision is made by time"),
        (("--networks", "none.csv"), "--networks none.csv: no such file"),
    ],
)
@pytest.mark.usefixtures("own")
def test_wrong_options_are_named(
    capsys: pytest.CaptureFixture[str], options: tuple[str, ...], message: str
) -> None:
    canonical()
    assert analyze("--unit-columns", "user_id", *options) == 2
    assert message in capsys.readouterr().err


@pytest.mark.usefixtures("own")
def test_an_option_given_twice_is_refused(capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit) as stopped:
        analyze("--primary", "throughput:p50", "--primary", "completion:p50")
    assert stopped.value.code == 2
    assert "--primary: given more than once" in capsys.readouterr().err


@pytest.mark.usefixtures("own")
def test_wrong_tables_are_named(capsys: pytest.CaptureFixture[str]) -> None:
    pq.write_table(table().drop_columns(["download_ms"]), TABLE)
    assert analyze("--mapping", "my.toml") == 2
    assert "own.parquet: no column 'download_ms', which my.toml maps" in capsys.readouterr().err
    assert analyze() == 2
    assert "for columns of your own write a mapping" in capsys.readouterr().err
    canonical()
    pq.write_table(pq.read_table(TABLE).slice(0, 0), TABLE)
    assert analyze("--unit-columns", "user_id") == 2
    assert "own.parquet: no rows" in capsys.readouterr().err
    Path("log.txt").write_text("x\n")
    assert main(["analyze", "log.txt", "--mapping", "my.toml"]) == 2
    assert "is of tables, not of logs" in capsys.readouterr().err


NETWORKS = """network,name
# the longest prefix decides
203.0.0.0/16,coast
203.0.7.0/24,Lima
2001:db8::/32,six
"""


@pytest.mark.usefixtures("own")
def test_networks_give_regions() -> None:
    networks = parse_networks(NETWORKS.splitlines(), "regions.csv")
    assert networks.name("203.0.7.0/24") == "Lima"
    assert networks.name("203.0.8.9") == "coast"
    assert networks.name("::ffff:203.0.7.1") == "Lima"
    assert parse_networks(["::ffff:203.0.7.0/120,Lima"], "regions.csv").name("203.0.7.1") == "Lima"
    assert parse_networks(["client.network,name", "203.0.7.0/24,Lima"], "regions.csv").names
    assert networks.name("2001:db8:5::/48") == "six"
    assert networks.name("198.51.100.0/24") is None
    assert networks.name("203.0.0.0/8") is None, "not all of it is inside"
    mapped = read([TABLE], load("my.toml"), networks=networks).table
    of = table()["ip"].to_pylist()
    expected = {"Lima": sum(it == "203.0.7.7" for it in of)}
    counted = mapped.group_by("region").aggregate(n=mapped.count()).to_pyarrow().to_pylist()
    assert {row["region"]: row["n"] for row in counted} == expected | {"coast": ROWS - expected["Lima"]}
    canonical(service_client=pa.array([f"203.0.{n % 9}.0/24" for n in range(ROWS)]))
    plain = read([TABLE], unit=("user_id",), networks=networks).table
    assert plain.filter(plain["region"] == "Lima").count().to_pyarrow().as_py() == len(range(7, ROWS, 9))


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("203.0.7.0/33,x\n", "line 1: '203.0.7.0/33' is not a network"),
        ("a,b\n203.0.7.1/24,x\n", "line 2: '203.0.7.1/24' is not a network"),
        ("203.0.7.0/24\n", "line 1: a network without a name"),
        ("203.0.7.0/24,x\n203.0.7.0/24,y\n", "line 2: 203.0.7.0/24 is already 'x'"),
        ("network,name\n", "no networks"),
        ("203.0.113.300,Lima\n198.51.100.0/24,Rio", "line 1: '203.0.113.300' is not a network"),
        ("network,name\nprefix,name", "line 2: 'prefix' is not a network"),
        ("203.0.113.0/24,Lima\n::ffff:203.0.113.0/120,Rio", "line 2: 203.0.113.0/24 is already 'Lima'"),
        (f'"{131_073 * "x"}",Lima', "line 1: field larger than field limit"),
    ],
)
def test_wrong_networks_have_their_line(text: str, message: str) -> None:
    with pytest.raises(InputError) as error:
        parse_networks(text.splitlines(), "regions.csv")
    assert message in str(error.value)


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ('[metric.x]\nkind = "median"\nbetter = "lower"', "kind: 'median' is none of mean, ratio, quantile"),
        ('[metric.x]\nkind = "ratio"\nbetter = "lower"', 'kind = "ratio" and per go together'),
        ('[metric.x]\nkind = "mean"', "better: None is none of higher, lower"),
        ('[metric.\'x"y\']\nkind = "mean"', "a name has letters, digits and _ alone"),
        ('[metric.busy_ns]\nkind = "mean"\nbetter = "lower"', "busy_ns is a canonical column"),
        ('[dimensions]\narm = "x"', "this is a canonical column; put it into [columns]"),
        ('[columns]\ndevice = "x"', "no such column"),
    ],
)
def test_wrong_declarations_are_named(tmp_path: Path, text: str, message: str) -> None:
    file = tmp_path / "my.toml"
    file.write_text('format = "parquet"\n' + text)
    with pytest.raises(InputError) as error:
        load(file)
    assert message in str(error.value)
