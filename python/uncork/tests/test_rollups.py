"""Roll-ups give the same analysis as the records that they count."""

import io
import json
import shutil
import subprocess
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from capability import not_run
from learning import SETTINGS
from test_design import uncork
from uncork.experiment import demo
from uncork.experiment.cli import main
from uncork.learn import evidence
from uncork.measure import rollups
from uncork.measure.engines import clickhouse, spark
from uncork.measure.reduce import to_arrow
from uncork.measure.schema import typed
from uncork.measure.siphash import siphash24
from uncork.measure.sources import read

SCALE = 0.05
NOT_ROLLED = {"duplicates", "impossible values", "units of measure", "shared connections", "measured records"}


def program() -> str:
    found = uncork()
    if found is None:
        not_run("programs", "build it (cargo build --release --features full), or set UNCORK to its path")
    return found


def rolled(source: Path, target: Path, *more: str) -> str:
    """The roll-ups of the records in `source`, and what the command prints."""
    command = [program(), "records", "rollup", str(source), "-o", str(target), "--host", "edge1"]
    done = subprocess.run([*command, *more], capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    return done.stdout


@pytest.fixture(scope="module")
def records(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Made-up records, with all columns of a playback; some are error pages or redirects."""
    made = demo.table(1, SCALE)
    has_playback = made["playback_items"].is_valid()
    switches = pa.array([0 if it else None for it in has_playback.to_pylist()], pa.int64())
    numbers = np.arange(made.num_rows)
    status = np.where(numbers % 97 == 0, 502, np.where(numbers % 89 == 0, 302, 200)).astype(np.uint64)
    at = made.column_names.index("service_status")
    made = made.set_column(at, "service_status", pa.array(status, mask=has_playback.to_numpy()))
    path = tmp_path_factory.mktemp("records") / "records.parquet"
    pq.write_table(made.append_column("playback_switches", switches), path)
    return path


@pytest.fixture(scope="module")
def made(records: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    target = tmp_path_factory.mktemp("rollups")
    assert "16586 records" in rolled(records, target, "--period", "30min")
    return target


def document(tmp_path: Path, *words: str) -> dict[str, Any]:
    out = tmp_path / "out"
    main(["analyze", *words, "-o", str(out)])
    found: dict[str, Any] = json.loads((out / "result.json").read_text())
    return found


def without_checks(found: dict[str, Any]) -> dict[str, Any]:
    """All but the command, and the checks that need single records."""
    health = [one for one in found["health"] if one["name"] not in NOT_ROLLED]
    return {**found, "command": "", "health": sorted(health, key=lambda one: str(one["name"]))}


def test_analyze__rollups_of_all_records__the_same_document(
    records: Path, made: Path, tmp_path: Path
) -> None:
    of_records = document(tmp_path, str(records))
    of_rollups = document(tmp_path, str(made))
    assert without_checks(of_rollups) == without_checks(of_records)
    not_there = {one["name"] for one in of_rollups["health"] if one["severity"] == "not run"}
    assert not_there >= NOT_ROLLED


def test_analyze__rollups_and_their_records__nothing_counts_twice(
    records: Path, made: Path, tmp_path: Path
) -> None:
    of_rollups = document(tmp_path, str(made))
    both = document(tmp_path, str(made), str(records))
    left_out = both["facts"].pop("rejected")
    assert left_out == {rollups.COVERED: 16586}
    of_rollups["facts"].pop("rejected")
    assert without_checks(both) == without_checks(of_rollups)


def test_analyze__rollups_in_two_folders__count_once(made: Path, tmp_path: Path) -> None:
    for folder in ("one", "two"):
        shutil.copytree(made, tmp_path / "carried" / folder)
    twice = document(tmp_path, str(tmp_path / "carried"))
    assert without_checks(twice) == without_checks(document(tmp_path, str(made)))


def damaged(made: Path, target: Path) -> tuple[Path, Path]:
    """A copy of the roll-ups, and the one of them with another byte."""
    shutil.copytree(made, target)
    path = min(target.iterdir())
    data = bytearray(path.read_bytes())
    data[len(data) // 2] ^= 1
    path.write_bytes(data)
    return target, path


def test_analyze__a_damaged_rollup__is_left_out_by_name(
    made: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    copy, path = damaged(made, tmp_path / "damaged")
    found = document(tmp_path, str(copy))
    assert f"left out: {path}: it is damaged" in capsys.readouterr().err
    assert found["facts"].pop("rejected") == {rollups.DAMAGED: 1}
    path.unlink()
    without = document(tmp_path, str(copy))
    assert without["facts"].pop("rejected") == {}
    assert without_checks(found) == without_checks(without)


def test_rollup__a_file_twice__counts_once(made: Path, tmp_path: Path) -> None:
    shutil.copytree(made, tmp_path / "copy")
    rolled(made, tmp_path / "merged", str(tmp_path / "copy"))
    files = {path.name: path.read_bytes() for path in (tmp_path / "merged").iterdir()}
    assert files == {path.name: path.read_bytes() for path in made.iterdir()}


def test_rollup__next_to_the_result_of_fewer_files__is_refused(records: Path, tmp_path: Path) -> None:
    table = pq.read_table(records)
    for number in range(2):
        part = tmp_path / f"part{number}.parquet"
        pq.write_table(table.take(np.arange(number, table.num_rows, 2)), part)
        rolled(part, tmp_path / "parts", "--period", "30min")
        if number == 0:
            rolled(tmp_path / "parts", tmp_path / "merged")
    before = sorted(path.name for path in (tmp_path / "merged").iterdir())
    command = [program(), "records", "rollup", str(tmp_path / "parts"), "-o", str(tmp_path / "merged")]
    done = subprocess.run(command, check=False, capture_output=True, text=True)
    assert done.returncode == 2
    assert "another roll-up of the same host and period" in done.stderr
    assert sorted(path.name for path in (tmp_path / "merged").iterdir()) == before


def test_analyze__a_time_within_a_period__is_an_error(made: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["analyze", str(made), "--since", "2026-11-05T00:10Z"]) == 2
    assert "roll-ups have periods of 1800 s" in capsys.readouterr().err


@pytest.mark.parametrize(
    "engine",
    [
        pytest.param("clickhouse", marks=pytest.mark.clickhouse),
        pytest.param("spark", marks=pytest.mark.spark),
    ],
)
def test_evidence__rollups_of_two_hours_on_another_engine__the_same_bytes(
    engine: str, made: Path, request: pytest.FixtureRequest
) -> None:
    files = sorted(made.glob("*-20261105T1[01]*"))
    assert len(files) == 4
    settings = replace(SETTINGS, as_of=20_763, window=1, place="listener", experiment="demo-made-up")
    expected = evidence.collect(read([str(file) for file in files]).table, settings, to_arrow)
    assert len(expected) > 100
    if engine == "spark":
        session = spark.local_session("local[1]")
        request.addfinalizer(session.stop)
        opened, run = spark.open_files(files, session)
    else:
        opened, run = clickhouse.open_files(files)
    assert evidence.collect(rollups.alone(typed(opened)), settings, run).equals(expected)


def test_analyze__rollups_and_records_on_another_engine__is_an_error(
    records: Path, made: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(["analyze", str(made), str(records), "--engine", "clickhouse"]) == 2
    assert "a roll-up next to records, which --engine clickhouse" in capsys.readouterr().err


def test_analyze__mergers_of_hours__the_same_document_and_days_are_refused(
    made: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    for period in ("1h", "1d"):
        command = [program(), "records", "merge", str(made), "-o", str(tmp_path / period), "--name", "fra"]
        subprocess.run([*command, "--period", period], check=True, capture_output=True)
    of_hours = document(tmp_path, str(tmp_path / "1h"))
    assert without_checks(of_hours) == without_checks(document(tmp_path, str(made)))
    capsys.readouterr()
    assert main(["analyze", str(tmp_path / "1d")]) == 2
    assert "roll-ups of a day have no hours; merge with --period 1h" in capsys.readouterr().err


def test_analyze__clients_without_rows__each_record_counts(records: Path, tmp_path: Path) -> None:
    target = tmp_path / "rollups"
    assert "without rows of their own" in rolled(records, target, "--period", "30min", "--max-rows", "8")
    found = document(tmp_path, str(target))
    assert found["facts"]["rows"] == document(tmp_path, str(records))["facts"]["rows"]
    assert "folded clients" in {one["name"] for one in found["health"]}


def test_rollup__records_in_parts_or_in_another_order__the_same_bytes(
    records: Path, made: Path, tmp_path: Path
) -> None:
    table = pq.read_table(records)
    order = np.random.default_rng(1).permutation(table.num_rows)
    parts = tmp_path / "parts"
    parts.mkdir()
    for number, places in enumerate(np.array_split(order, 5)):
        pq.write_table(table.take(places), parts / f"part{number}.parquet")
    rolled(parts, tmp_path / "again", "--period", "30min")
    files = {path.name: path.read_bytes() for path in (tmp_path / "again").iterdir()}
    assert files == {path.name: path.read_bytes() for path in made.iterdir()}


def test_rollup__rollups_of_parts__merge_to_the_same_bytes(records: Path, made: Path, tmp_path: Path) -> None:
    table = pq.read_table(records)
    for number in range(2):
        part = tmp_path / f"part{number}.parquet"
        pq.write_table(table.take(np.arange(number, table.num_rows, 2)), part)
        rolled(part, tmp_path / "of-parts", "--period", "30min")
    rolled(tmp_path / "of-parts", tmp_path / "merged")
    files = {path.name: path.read_bytes() for path in (tmp_path / "merged").iterdir()}
    assert files == {path.name: path.read_bytes() for path in made.iterdir()}


def test_rollup__without_error_pages_as_older_files_are__merges_and_has_no_share_of_them(
    made: Path, tmp_path: Path
) -> None:
    old = tmp_path / "old"
    old.mkdir()
    for path in sorted(made.iterdir())[:1]:
        table = pq.read_table(path)
        file = io.BytesIO()
        pq.write_table(table.drop_columns(["rollup_failed_of", "rollup_failed_per"]), file)
        (content,) = siphash24(bytes(16), [file.getvalue()])
        (old / f"{path.stem[:-16]}{content:016x}.parquet").write_bytes(file.getvalue())
    rolled(old, tmp_path / "merged")
    (merged,) = (tmp_path / "merged").iterdir()
    assert pq.read_table(merged)["rollup_failed_per"].to_pylist() == [0] * pq.read_metadata(merged).num_rows
    assert rollups.sums(read([old]).table, "failed") is None
