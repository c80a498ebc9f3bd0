"""Options and files that leave or name nothing, or are not what they seem; and results on full disks."""

import gzip
import json
import shutil
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

import steps
from demos import demo
from full_disk import full_disk
from test_cli import failed, records
from test_sources import NGINX
from uncork.experiment.cli import main
from uncork.learn import cli as learn_cli
from uncork.measure.engines import duckdb as duckdb_engine
from uncork.measure.sources import read


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        (["--where", "arm=nosuch"], ["--where arm=nosuch", "no record is left", "bbr (", "control ("]),
        (["--where", "country=ZZ"], ["--where country=ZZ", "no record is left", "country has"]),
        (["--exclude", "arm_experiment=EXPERIMENT"], ["--exclude", "no record is left"]),
        (["--experiment", "other"], ["--experiment other", "none of", "available: "]),
        (["--since", "2027-01-01"], ["--since 2027-01-01", "no record is left", "2026-11-"]),
        (["--until", "2020-01-01"], ["--until 2020-01-01", "no record is left", "2026-11-"]),
    ],
)
def test_no_rows_left_names_the_filter_and_the_available_values(
    arguments: list[str], words: list[str], capsys: pytest.CaptureFixture[str]
) -> None:
    table = pq.read_table(demo() / "records/records.parquet", columns=["arm_experiment"])
    names = sorted({it for it in table["arm_experiment"].to_pylist() if it})
    arguments = [it.replace("EXPERIMENT", names[0]) for it in arguments]
    more = [it for name in names[1:] for it in ("--exclude", f"arm_experiment={name}")]
    has_null = table["arm_experiment"].null_count > 0
    if "--exclude" in arguments and has_null:
        more += ["--where", f"arm_experiment={names[0]}"]
    error = failed(capsys, "analyze", records(), *arguments, *more * ("--exclude" in arguments))
    assert all(word in error for word in words), error


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("quic=cubik", ["unknown controller 'cubik'", "did you mean cubic?"]),
        ("quick=cubic", ["not settings"]),
        ("tcp=bbr;reboot", ["'bbr;reboot'"]),
        ("quic=", ["not settings"]),
    ],
)
def test_design_refuses_unknown_controllers(
    text: str, words: list[str], capsys: pytest.CaptureFixture[str], tmp_path: Path
) -> None:
    options = ["-o", str(tmp_path / "out"), "--key", "0" * 32]
    error = failed(capsys, "design", *options, "--control", text)
    assert all(word in error for word in [f"--control {text}", *words]), error
    assert not (tmp_path / "out").exists()


def test_sql_has_the_conditions(capsys: pytest.CaptureFixture[str]) -> None:
    sql = ["analyze", "--show-sql", "trino", "--by", "country"]
    assert main([*sql, "--where", "service_listener=it's", "--exclude", "cc=reno"]) == 0
    text = capsys.readouterr().out
    assert text.count("'it''s'") == text.count("'reno'") >= 10
    assert "no column or key 'nosuch'" in failed(capsys, *sql, "--where", "nosuch=1")
    assert "write COLUMN=VALUE" in failed(capsys, *sql, "--where", "country=DE")


def test_sql_of_spark_without_spark_is_one_line(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    def absent(*_: object, **__: object) -> None:
        raise AttributeError("'NoneType' object has no attribute 'treat_nan_as_null'")

    monkeypatch.setattr("ibis.to_sql", absent)
    monkeypatch.setattr("importlib.util.find_spec", lambda _: None)
    assert "pip install 'uncork[spark]'" in failed(capsys, "analyze", "--show-sql", "pyspark")


def test_a_file_name_is_not_a_pattern(tmp_path: Path) -> None:
    table = pq.read_table(demo() / "records/records.parquet").slice(0, 100)
    for name in ("*.parquet", "r.parquet", "[r].parquet", "?.parquet"):
        pq.write_table(table, tmp_path / name)
    for name in ("*.parquet", "[r].parquet", "?.parquet"):
        assert read([tmp_path / name]).table.count().to_pyarrow().as_py() == 100
    assert read([tmp_path]).table.count().to_pyarrow().as_py() == 400


def test_columns_without_a_type_have_no_values(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    table = pq.read_table(demo() / "records/records.parquet")
    empty = pa.nulls(table.num_rows)
    for name in ("service_asn", "service_country", "rtt_p50_ms", "completion_ns"):
        table = table.set_column(table.column_names.index(name), name, empty)
    file = tmp_path / "records.parquet"
    pq.write_table(table, file)
    assert main(["analyze", str(file), "--by", "listener", "-o", str(tmp_path / "out")]) in (0, 1)
    assert "rror" not in capsys.readouterr().err


def test_what_is_spilled_is_private(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("tempfile.tempdir", str(tmp_path))
    (tmp_path / "uncork-spill").write_text("made by another user")
    backend = duckdb_engine.connect().backend
    spill = Path(backend.con.sql("select current_setting('temp_directory')").fetchall()[0][0])
    assert spill.stat().st_mode & 0o777 == 0o700
    assert spill.parent == tmp_path


def test_results_are_printed_before_they_are_written(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    (tmp_path / "file").write_text("")
    assert main(["analyze", records(), "--by", "", "-o", str(tmp_path / "file" / "below")]) == 3
    written = capsys.readouterr()
    assert "bbr against cubic" in written.out
    assert "file" in written.err


def test_an_import_that_cannot_be_written_leaves_no_file(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    log, out = tmp_path / "a.log", tmp_path / "out"
    log.write_text((NGINX + "\n") * 100)
    with full_disk():
        assert main(["import", str(log), "--mapping", "nginx", "-o", str(out)]) == 3
    assert "a.log.parquet" in capsys.readouterr().err
    assert list(out.iterdir()) == []


def test_design_refuses_an_arm_of_the_records_as_control(capsys: pytest.CaptureFixture[str]) -> None:
    """It was ignored without -o."""
    for text in ("nosuch", "bbr"):
        error = failed(capsys, "design", records(), "--control", text)
        words = [f"--control {text}", "not settings", "write quic=bbr3,tcp=bbr", "--where arm=", "bbr ("]
        assert all(word in error for word in words), error
    error = failed(capsys, "design", records(), "--treated", "tcp=bbr")
    assert "-o DIR is not given" in error


def test_following_records_that_stay_unusable_ends(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """`--rounds 1` went on forever."""
    (tmp_path / "r.jsonl").write_text("no record\n")
    follow = ["analyze", str(tmp_path), "--follow", "--every", "0.01", "--rounds", "1", "-o"]
    assert failed(capsys, *follow, str(tmp_path / "out"))
    assert not (tmp_path / "out").exists()


@pytest.mark.parametrize("what", ["demo", "learn demo", "growthbook"])
@pytest.mark.parametrize("room", [0, 1000])
def test_tables_are_written_whole_or_not_at_all(
    what: str, room: int, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """On a disk without room, and on one that is full in the middle. Earlier tables stay."""
    commands = {
        "demo": ["demo", "--scale", "0.01", "--records", str(tmp_path), "-o", str(tmp_path / "report")],
        "learn demo": ["demo", "--days", "1", "-o", str(tmp_path)],
        "growthbook": ["export", "growthbook", records(), "-o", str(tmp_path)],
    }
    name = "assignments.parquet" if what == "growthbook" else "records.parquet"
    (tmp_path / name).write_text("earlier")
    run = learn_cli.main if what == "learn demo" else main
    with full_disk(room):
        assert run(commands[what]) == 3
    assert name in capsys.readouterr().err
    assert [(path.name, path.read_text()) for path in tmp_path.iterdir()] == [(name, "earlier")]


def seen(directory: Path) -> dict[str, object]:
    """What readers find in a directory of records."""
    files = list(directory.glob("[!.]*"))
    tables = {it.name: pq.read_table(it).to_pylist() for it in files if it.suffix == ".parquet"}
    return tables | {it.name: it.read_text() for it in files if it.suffix != ".parquet"}


@pytest.mark.parametrize("act", [steps.die, steps.stop, steps.full, steps.read_only])
def test_an_import_that_ends_at_any_step_leaves_whole_files(act: steps.Act, tmp_path: Path) -> None:
    """SIGKILL, SIGSTOP, a full and a read-only disk at each change of a file; then the next import works."""
    logs = [tmp_path / "a.log", tmp_path / "b.log"]
    for log, line in zip(logs, (NGINX, "no line"), strict=True):
        log.write_text(f"{line}\n{NGINX}\n" * 5)
    out = tmp_path / "out"
    command = ["import", *map(str, logs), "--mapping", "nginx", "-o", str(out)]
    # In the directory that is watched.
    command += ["--rejected", str(out / "rejected.jsonl")]
    assert main(command) == 0
    whole = seen(out)
    assert len(whole) == 3

    def are_whole() -> None:
        assert seen(out).items() <= whole.items()

    # Each step of the others is one of these, too.
    for step in range(1, 100, 1 if act in (steps.die, steps.full) else 4):
        shutil.rmtree(out)
        status, is_reached = steps.status_at(step, out, lambda: main(command), act, are_whole)
        are_whole()
        # A directory that is there need not be made.
        expected = {steps.die: steps.KILLED, steps.stop: 0}.get(act, 3) if is_reached else 0
        assert status in (expected, 0), step
        if act not in (steps.die, steps.stop):
            assert not list(out.glob(".*")), step
        if not is_reached:
            break
        if step % 8 == 1:
            assert main(command) == 0
        if status == 0 or step % 8 == 1:
            assert seen(out) == whole, step
    assert step > 12, "steps"


def test_since_after_the_switch_is_analysed_without_a_past(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """A window that begins after the switch has no record of the past."""
    records = str(demo() / "records")
    assert main(["analyze", records, "-o", str(tmp_path / "whole"), "--format", "json"]) in (0, 1)
    switch = json.loads(capsys.readouterr().out)["facts"]["switch"]
    assert switch
    later = f"{switch[:8]}{int(switch[8:10]) + 2:02}"
    arguments = ["analyze", records, "--since", later, "-o", str(tmp_path / "later"), "--format", "json"]
    assert main(arguments) in (0, 1)
    assert json.loads(capsys.readouterr().out)["facts"]["since"] == later


def test_analyze__by_a_column_of_lists_or_structs__is_refused_by_name(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    table = pq.read_table(records())
    for name, value in (("tags", ["a", "b"]), ("place", {"x": 1})):
        pq.write_table(table.append_column(name, pa.array([value] * len(table))), tmp_path / "nested.parquet")
        command = ["analyze", str(tmp_path / "nested.parquet"), "--by", name, "-o", str(tmp_path / "out")]
        message = failed(capsys, *command)
        for part in ("--by", f"{name!r} has several values", "one value for each record"):
            assert part in message


def test_analyze__value_of_several_lines__is_one_line_of_the_table(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    table = pq.read_table(records())
    values = pa.array([("a\nb", "c\td\x1b[31m")[n % 2] for n in range(len(table))])
    pq.write_table(table.append_column("site", values), tmp_path / "lines.parquet")
    main(["analyze", str(tmp_path / "lines.parquet"), "--by", "site", "-o", str(tmp_path / "out")])
    lines = capsys.readouterr().out.splitlines()
    [one] = (line for line in lines if line.startswith("a\\nb  "))
    [other] = (line for line in lines if line.startswith("c\\td\\u001b[31m  "))
    assert one.index("%") == other.index("%")


def test_import__another_log_of_the_same_name__keeps_the_first_one_s_records(tmp_path: Path) -> None:
    """As after a rotation, or of two servers. The same log again replaces its records, also with others."""
    out, day = tmp_path / "out", NGINX.replace("1793577600", "1793664000")
    for folder, text in (("web1", NGINX), ("web2", day)):
        (tmp_path / folder).mkdir()
        (tmp_path / folder / "access.log").write_text(f"{text}\n" * 3)

    def run(*folders: str) -> list[int]:
        logs = [str(tmp_path / folder / "access.log") for folder in folders]
        assert main(["import", *logs, "--mapping", "nginx", "-o", str(out)]) == 0
        return sorted(pq.read_table(file).num_rows for file in out.glob("*.parquet"))

    assert run("web1") == [3]
    assert run("web2") == [3, 3]
    assert run("web1", "web2") == [3, 3]
    assert run("web2", "web1") == [3, 3]
    assert run("web1", "web1") == [3, 3, 3], "a copy stays one, for the check of duplicates"


@pytest.mark.parametrize("compressed", [False, True])
def test_import__logs_that_begin_with_the_same_bytes__are_kept_apart(
    compressed: bool, tmp_path: Path
) -> None:
    """A log that was truncated while it was written begins with zeros."""
    out, lines = tmp_path / "out", [NGINX, NGINX.replace("1793577600", "1793664000")]
    for folder, line in zip(("web1", "web2"), lines, strict=True):
        (tmp_path / folder).mkdir()
        log = tmp_path / folder / ("access.log.gz" if compressed else "access.log")
        text = f"{line}\n".encode()
        log.write_bytes(gzip.compress(text, mtime=0) if compressed else b"\0" * 8_192 + text)
        assert main(["import", str(log), "--mapping", "nginx", "-o", str(out)]) == 0
    assert len(list(out.glob("*.parquet"))) == 2
