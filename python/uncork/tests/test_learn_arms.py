"""Whether a plan's arms are those of the records."""

from dataclasses import replace
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from learning import KEY
from uncork.learn import demo
from uncork.learn.cli import main
from uncork.learn.store import Store
from uncork.measure.keys import DAY_NS

TINY = tuple(replace(one, networks=1) for one in demo.SYSTEMS[:2])


@pytest.fixture(scope="module")
def records() -> pa.Table:
    return demo.table(TINY, days=2, daily=60)


def failed(path: Path, table: pa.Table, *options: str) -> None:
    pq.write_table(table, path / "r.parquet")
    assert main(["plan", str(path / "r.parquet"), "-o", str(path / "o"), "--key", KEY, *options]) == 2
    assert not (path / "o" / "versions").exists()


def said(capsys: pytest.CaptureFixture[str]) -> str:
    return " ".join(capsys.readouterr().err.split())


def test_plan__an_arm_that_no_record_has__is_named_with_those_there(
    records: pa.Table, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    failed(tmp_path, records, "--treated", "bbr3")
    error = said(capsys)
    assert "arm bbr3: no record of the experiment 'explore' has this arm" in error
    assert "there are: bbr, control" in error


def test_plan__an_arm_ran_another_controller__is_refused(
    records: pa.Table, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    fell_back = records.set_column(
        records.column_names.index("cc"), "cc", pa.array(["cubic"] * records.num_rows)
    )
    failed(tmp_path, fell_back)
    assert "arm bbr: nearly all of its records ran cubic, and its settings are bbr, bbr3" in said(capsys)


@pytest.mark.parametrize(
    ("options", "why"),
    [
        (
            ["--treated-settings", "quic=cubic,tcp=cubic"],
            "arm bbr: its settings are those of the arm control",
        ),
        (["--control", "bbr"], "--treated: `bbr` is the arm --control, too"),
    ],
)
def test_plan__arms_that_are_one__are_refused(
    options: list[str], why: str, tmp_path: Path, capsys: pytest.CaptureFixture[str], records: pa.Table
) -> None:
    failed(tmp_path, records, *options)
    assert why in said(capsys)


def with_column(table: pa.Table, name: str, values: pa.Array) -> pa.Table:
    return table.set_column(table.column_names.index(name), name, values)


def test_plan__countries_by_name__are_unknown_and_counted(
    records: pa.Table, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """A policy with a line `Peru bbr` is refused by every server."""
    named = with_column(records, "service_country", pa.array(["Peru"] * records.num_rows))
    pq.write_table(named, tmp_path / "r.parquet")
    assert main(["plan", str(tmp_path / "r.parquet"), "-o", str(tmp_path / "o"), "--key", KEY]) == 0
    assert f"service_country of {records.num_rows:,} records does not have a code, such as `Peru`" in said(
        capsys
    )
    assert "Peru" not in Store(tmp_path / "o").decisions(1).key.tolist()


def test_plan__records_without_a_unit__the_sample_ratio_is_named_as_not_run(
    records: pa.Table, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    pq.write_table(records.drop(["arm_unit"]), tmp_path / "r.parquet")
    options = ["--key", KEY, "-o", str(tmp_path / "o")]
    assert main(["plan", str(tmp_path / "r.parquet"), *options]) == 0
    assert "Check of large and small: sample ratio not run: The records name no unit." in said(capsys)


def test_plan__arms_that_take_turns_by_day__are_refused(
    records: pa.Table, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """The days differ, and an A/A test would switch everything on."""
    day = np.array(records["service_start_unix_ns"]) // DAY_NS
    arm = pa.array(np.where(day == day.min(), "control", "bbr"))
    failed(tmp_path, with_column(records, "arm", arm))
    assert "its arms did not run at the same time: 2 of 2 days have one alone" in said(capsys)
