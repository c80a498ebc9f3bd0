"""A sweep: its tasks write into an S3 server, and a merge reads from there."""

import os
import signal
import threading
from pathlib import Path

import pytest

from stores import BUCKET, SECRET, Host, host

__all__ = ["host"]

RUNS = f"s3://{BUCKET}/sweep/runs"
FILES = ["cells.csv", "flows.parquet", "objects.parquet", "report.html", "scenario.toml", "series.parquet"]
SCENARIO = """title = "A small one"

[run]
seeds = 4
sample = "10ms"

[path]
rate = "20mbit"
rtt = "20ms"
loss = "1%"

[flow.main]
cc = "cubic"
transfer = "100kB"

[matrix]
"flow.main.cc" = ["cubic", "bbr3"]
"""


@pytest.fixture
def sweep(host: Host) -> Host:
    """The scenario, with its results of a single process in `whole`."""
    (host.directory / "small.toml").write_text(SCENARIO)
    host.run("lab run small.toml -q -o whole", 0)
    return host


def line(place: str, *more: str) -> str:
    return " ".join(["lab run small.toml --quiet -o", place, *more])


def task(sweep: Host, number: int, *more: str, of: int = 4) -> str:
    variables = {"JOB_COMPLETION_INDEX": str(number - 1)}
    return sweep.run(line(RUNS, "--shard", f"auto/{of}", *more), 0, **variables)


def assert_whole(sweep: Host, place: str = "merged") -> None:
    for name in FILES:
        one, other = sweep.directory / "whole" / name, sweep.directory / place / name
        assert one.read_bytes() == other.read_bytes(), name


def objects(sweep: Host, end: str) -> list[str]:
    return [name for name in sweep.server.names() if name.endswith(end)]


def test_merge__shards_in_a_store__files_of_a_single_process(sweep: Host) -> None:
    for number in range(1, 5):
        task(sweep, number)
    assert len(objects(sweep, "/runs/sweep.json")) == 4
    assert len(objects(sweep, ".archive")) == 4
    sweep.run(f"lab merge {RUNS} -o merged", 0)
    assert_whole(sweep)
    said = sweep.run(f"lab merge {RUNS} -o s3://{BUCKET}/report", 0)
    assert f"wrote s3://{BUCKET}/report/report.html" in said
    for name in FILES:
        assert sweep.server.read(f"report/{name}") == (sweep.directory / "whole" / name).read_bytes()


def test_merge__copy_of_the_store_as_a_directory__files_of_a_single_process(sweep: Host) -> None:
    task(sweep, 1, of=2)
    task(sweep, 2, of=2)
    for name in sweep.server.names():
        copy = sweep.directory / name
        copy.parent.mkdir(parents=True, exist_ok=True)
        copy.write_bytes(sweep.server.read(name))
    sweep.run("lab merge sweep/runs -o merged", 0)
    assert_whole(sweep)


def test_run__whole_scenario_into_a_store__files_and_runs_are_there(sweep: Host) -> None:
    sweep.run(line(f"s3://{BUCKET}/whole"), 0)
    for name in FILES:
        assert sweep.server.read(f"whole/{name}") == (sweep.directory / "whole" / name).read_bytes()
    assert "add --resume to go on" in sweep.run(line(f"s3://{BUCKET}/whole"), 2)
    said = sweep.run(line(f"s3://{BUCKET}/whole", "--resume").replace("--quiet", ""), 0)
    assert "8 of 8 runs are there already" in said


def test_merge__shard_is_missing__is_named(sweep: Host) -> None:
    for number in (1, 2, 4):
        task(sweep, number)
    said = sweep.run(f"lab merge {RUNS} -o merged", 2)
    assert "2 of 8 runs of 'small' are missing" in said
    assert "shard 3/4: all 2 runs" in said
    assert "shard 2/4" not in said
    assert not (sweep.directory / "merged").exists()
    task(sweep, 3)
    sweep.run(f"lab merge {RUNS} -o merged", 0)
    assert_whole(sweep)


def test_merge__shard_run_twice_at_the_same_time__counts_once(sweep: Host) -> None:
    task(sweep, 1, of=2)
    # Each has asked for a manifest before either writes one.
    gate = threading.Barrier(2, timeout=60)
    sweep.server.before = lambda method, path: (
        gate.wait() if method == "PUT" and path.endswith("sweep.json") else None
    )
    words = [line(RUNS, "--shard", "auto/2", "--jobs", jobs).split() for jobs in ("1", "2")]
    started = [sweep.start(*one, JOB_COMPLETION_INDEX="1") for one in words]
    said = [process.communicate(timeout=120)[0] for process in started]
    assert [process.returncode for process in started] == [0, 0], said
    sweep.server.before = lambda *_: None
    sweep.run(f"lab merge {RUNS} -o merged", 0)
    assert_whole(sweep)


def test_merge__shard_in_two_places__counts_once_and_is_noted(sweep: Host) -> None:
    task(sweep, 1, of=2)
    task(sweep, 2, of=2)
    sweep.run(line(f"s3://{BUCKET}/again", "--shard", "2/2"), 0)
    said = sweep.run(f"lab merge {RUNS} s3://{BUCKET}/again -o merged", 0)
    assert "some runs are there more than once, and alike" in said
    assert_whole(sweep)


def test_task__killed_or_ended_by_a_signal__resumes_with_what_the_store_has(sweep: Host) -> None:
    task(sweep, 1, of=2)
    process = sweep.start(*line(RUNS, "--shard", "auto/2", "--jobs", "1").split(), JOB_COMPLETION_INDEX="1")

    def stop(method: str, path: str) -> None:
        if method == "PUT" and path.endswith("2/runs/sweep.json"):
            process.send_signal(signal.SIGTERM)

    sweep.server.after = stop
    said = process.communicate(timeout=120)[0]
    sweep.server.after = lambda *_: None
    assert process.returncode == 130, said
    assert "uncork lab run small.toml --shard 2/2 --resume -o s3://records/sweep/runs/2" in said
    process = sweep.start(*line(RUNS, "--shard", "auto/2", "--resume").split(), JOB_COMPLETION_INDEX="1")

    def kill(method: str, path: str) -> None:
        if method == "PUT" and path.endswith(".archive"):
            os.kill(process.pid, signal.SIGKILL)

    sweep.server.after = kill
    process.communicate(timeout=120)
    sweep.server.after = lambda *_: None
    assert process.returncode == -signal.SIGKILL
    task(sweep, 2, "--resume", of=2)
    sweep.run(f"lab merge {RUNS} -o merged", 0)
    assert_whole(sweep)


def test_task__store_fails_at_the_end__says_how_to_go_on(sweep: Host) -> None:
    task(sweep, 1, of=2)

    def fail(method: str, path: str) -> None:
        if method == "PUT" and path.endswith(".archive"):
            raise OSError("the store has no disk")

    sweep.server.before = fail
    said = sweep.run(line(RUNS, "--shard", "auto/2"), 3, JOB_COMPLETION_INDEX="1")
    sweep.server.before = lambda *_: None
    assert f"cannot write to '{RUNS}/2' of '--output <DIR>'" in said
    assert "500 Internal Server Error" in said
    assert f"--shard 2/2 --resume -o {RUNS}/2" in said
    task(sweep, 2, "--resume", of=2)
    sweep.run(f"lab merge {RUNS} -o merged", 0)
    assert_whole(sweep)


def test_task__answers_are_lost__each_run_is_there_once(sweep: Host) -> None:
    sweep.server.lose_answers = 2
    task(sweep, 1, of=2)
    task(sweep, 2, of=2)
    assert len(objects(sweep, ".archive")) == 2
    sweep.run(f"lab merge {RUNS} -o merged", 0)
    assert_whole(sweep)


def test_merge__part_of_an_archive_was_altered__its_runs_are_missing(sweep: Host) -> None:
    task(sweep, 1, of=2)
    task(sweep, 2, of=2)
    (part,) = [name for name in objects(sweep, ".archive") if "/2/" in name]
    sweep.server.write(part, sweep.server.read(part).replace(b'"seed":2', b'"seed":9', 1))
    said = sweep.run(f"lab merge {RUNS} -o merged", 2)
    assert "shard 2/2: " in said
    task(sweep, 2, "--resume", of=2)
    sweep.run(f"lab merge {RUNS} -o merged", 0)
    assert_whole(sweep)


@pytest.mark.parametrize(
    ("command", "status", "says"),
    [
        ("lab merge s3://records/nothing", 2, "there are no runs in it"),
        ("lab merge s3://nowhere/sweep", 3, "NoSuchBucket"),
        ("lab run small.toml -o s3://nowhere/sweep", 3, "NoSuchBucket"),
        (f"lab run small.toml -o s3://{SECRET}@records/sweep", 2, "credentials come from the environment"),
        (f"lab merge s3://records/sweep?sig={SECRET}", 2, "credentials come from the environment"),
        ("lab run small.toml -o ftp://host/sweep", 2, "s3://BUCKET/PREFIX"),
        ("lab run small.toml --dry-run -o s3://records/sweep", 0, "s3://records/sweep/runs/sweep.json"),
    ],
)
def test_place__that_cannot_be_used__error_names_it_without_a_credential(
    host: Host, command: str, status: int, says: str
) -> None:
    (host.directory / "small.toml").write_text(SCENARIO)
    assert says in host.run(command, status)
    assert host.server.names() == []


def test_place__with_the_scheme_of_files__is_a_directory(host: Host, tmp_path: Path) -> None:
    (host.directory / "small.toml").write_text(SCENARIO)
    host.run(f"lab run small.toml -q -o file://{tmp_path}/out", 0)
    assert (tmp_path / "out/runs/runs.archive").exists()
    host.run(f"lab merge file://{tmp_path}/out", 0)
