"""Records from a spool to an S3 server, and from there into an analysis."""

import json
import os
import shutil
import signal
import sys
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from capability import not_run
from stores import BUCKET, SECRET, Host, host
from uncork.experiment import demo
from uncork.experiment.cli import main
from uncork.learn.cli import main as learn
from uncork.learn.store import Store
from uncork.measure.errors import InputError
from uncork.measure.sources import read

__all__ = ["host"]

PREFIX = "telemetry/edge1"
TARGET = f"s3://{BUCKET}/{PREFIX}"


def ship(host: Host, status: int, *more: str) -> str:
    return host.run(" ".join(["records", "ship", "spool", TARGET, *more]), status)


def spool(host: Host, *names: str, size: int = 1000) -> Path:
    """Files with these names, each with bytes of its own."""
    directory = host.directory / "spool"
    directory.mkdir(exist_ok=True)
    for number, name in enumerate(names):
        (directory / name).write_bytes(bytes([number + 1]) * size)
        os.utime(directory / name, (1e9 + number, 1e9 + number))
    return directory


def finished(directory: Path) -> list[str]:
    return sorted(path.name for path in directory.glob("*.parquet"))


def shipped(host: Host) -> list[str]:
    return [name.removeprefix(f"{PREFIX}/") for name in host.server.names()]


def test_ship__finished_files__are_in_the_store_once_and_gone_here(host: Host) -> None:
    directory = spool(host, "rollup-a.parquet", "responses-b.parquet", ".rollup-c.parquet.part")
    assert "shipped 2 files, 2000 bytes; dropped 0 files; 0 files left" in ship(
        host, 0, "--metrics", "ship.prom"
    )
    assert shipped(host) == ["responses-b.parquet", "rollup-a.parquet"]
    assert host.server.read(f"{PREFIX}/rollup-a.parquet") == b"\1" * 1000
    assert finished(directory) == []
    assert "shipped 0 files" in ship(host, 0)
    assert "uncork_ship_shipped_files_total 2\n" in (host.directory / "ship.prom").read_text()


def test_ship__large_file__goes_in_parts(host: Host) -> None:
    directory = spool(host, "responses-large.parquet", size=20_000_000)
    ship(host, 0)
    assert host.server.read(f"{PREFIX}/responses-large.parquet") == b"\1" * 20_000_000
    assert len(host.server.statuses("PUT", "responses-large.parquet")) == 3
    # It was there already: a process that died before it removed the file.
    spool(host, "responses-large.parquet", size=20_000_000)
    ship(host, 0)
    assert len(host.server.statuses("PUT", "responses-large.parquet")) == 3
    spool(host, "other.parquet", "responses-large.parquet", size=20_000_000)
    assert "another file of this name" in ship(host, 3)
    assert finished(directory) == ["responses-large.parquet"]


def test_ship__store_away__waits_within_the_limit_and_counts_what_is_dropped(host: Host) -> None:
    names = ["rollup-a.parquet", "responses-b.parquet", "responses-c.parquet"]
    directory = spool(host, *names)
    host.server.stop()
    said = ship(host, 3, "--spool-max", "3kB")
    assert "cannot connect to" in said
    assert "dropped 0 files; 3 files left" in said
    said = ship(host, 1, "--spool-max", "2kB", "--metrics", "ship.prom")
    assert "dropped: responses-b.parquet: the spool is full" in said
    assert finished(directory) == ["responses-c.parquet", "rollup-a.parquet"]
    assert "uncork_ship_dropped_files_total 1\n" in (host.directory / "ship.prom").read_text()
    host.server.start()
    ship(host, 0)
    assert shipped(host) == ["responses-c.parquet", "rollup-a.parquet"]


@pytest.mark.parametrize("when", ["before", "after"])
def test_ship__killed_at_any_write__the_next_one_ships_each_file_once(host: Host, when: str) -> None:
    names = [f"rollup-{number}.parquet" for number in range(4)]
    for at in range(1, 5):
        directory = spool(host, *names)
        process = host.start("records", "ship", "spool", f"{TARGET}-{at}")
        left = [at]

        def kill(method: str, _: str, left: list[int] = left, pid: int = process.pid) -> None:
            left[0] -= method == "PUT"
            if left[0] == 0:
                os.kill(pid, signal.SIGKILL)

        setattr(host.server, when, kill)
        process.communicate(timeout=120)
        setattr(host.server, when, lambda *_: None)
        assert process.returncode == -signal.SIGKILL
        assert len(finished(directory)) == 5 - at
        host.run(f"records ship spool {TARGET}-{at}", 0)
        assert finished(directory) == []
        for number, name in enumerate(names):
            assert host.server.read(f"{PREFIX}-{at}/{name}") == bytes([number + 1]) * 1000


def test_ship__answers_are_lost__each_file_is_there_once(host: Host) -> None:
    spool(host, "rollup-a.parquet", "responses-b.parquet")
    host.server.lose_answers = 3
    ship(host, 0)
    assert shipped(host) == ["responses-b.parquet", "rollup-a.parquet"]


def test_ship__with_watch__goes_on_until_a_signal(host: Host) -> None:
    directory = spool(host, "rollup-a.parquet")
    process = host.start("records", "ship", "spool", TARGET, "--watch", "--every", "1s")
    while finished(directory):
        assert process.poll() is None
    spool(host, "rollup-b.parquet")
    while finished(directory):
        assert process.poll() is None
    assert "cannot ship 'spool'" in ship(host, 3)
    process.send_signal(signal.SIGTERM)
    process.communicate(timeout=60)
    assert process.returncode == 0
    assert shipped(host) == ["rollup-a.parquet", "rollup-b.parquet"]


def test_ship__directory_that_is_not_mounted__is_not_made(host: Host) -> None:
    spool(host, "rollup-a.parquet")
    assert "make or mount the directory" in host.run("records ship spool elsewhere", 3)
    (host.directory / "elsewhere").mkdir()
    host.run("records ship spool elsewhere", 0)
    assert finished(host.directory / "elsewhere") == ["rollup-a.parquet"]


@pytest.fixture
def analyst(host: Host, monkeypatch: pytest.MonkeyPatch) -> Host:
    """This process has the credentials; the store has what is in the directories `raw` and `rolled`."""
    if not sys.modules.get("obstore"):
        try:
            import obstore  # noqa: F401
        except ModuleNotFoundError:
            not_run("store", "obstore is not installed (pip install obstore)")
    for name, value in host.server.environment.items():
        monkeypatch.setenv(name, value)
    made = demo.table(1, 0.2)
    # Half a day, after the treated arm has got its controller: each period becomes a file.
    starts = made["service_start_unix_ns"].to_numpy()
    made = made.filter(pa.array(starts > starts.max() - 12 * 3600 * 10**9))
    clients = pa.array([f"198.51.{at % 20}.0/24" for at in range(made.num_rows)])
    made = made.append_column("service_client", clients)
    (host.directory / "raw").mkdir()
    half = made.num_rows // 2
    pq.write_table(made.slice(0, half), host.directory / "raw/one.parquet")
    pq.write_table(made.slice(half), host.directory / "raw/two.parquet")
    host.run("records rollup raw -o rolled --host edge1 --period 30min", 0)
    for kind in ("raw", "rolled"):
        shutil.copytree(host.directory / kind, host.directory / "spool")
        host.run(f"records ship spool s3://{BUCKET}/{kind}", 0)
        shutil.rmtree(host.directory / "spool")
    return host


@pytest.mark.parametrize("kind", ["raw", "rolled"])
def test_analyze__records_in_the_store__the_bytes_of_the_directory(analyst: Host, kind: str) -> None:
    documents = []
    for number, place in enumerate((str(analyst.directory / kind), f"s3://{BUCKET}/{kind}")):
        out = analyst.directory / f"out{number}"
        main(["analyze", place, "-o", str(out)])
        text = (out / "result.json").read_text()
        document = json.loads(text)
        documents.append(text.replace(json.dumps(document["command"]), ""))
    assert documents[0] == documents[1]


@pytest.mark.parametrize("kind", ["raw", "rolled"])
def test_plan__records_in_the_store__the_bytes_of_the_directory(analyst: Host, kind: str) -> None:
    versions = []
    for number, place in enumerate((str(analyst.directory / kind), f"s3://{BUCKET}/{kind}")):
        out = analyst.directory / f"learned{number}"
        words = ["plan", place, "-o", str(out), "--key", "5" * 32, "--experiment", demo.EXPERIMENT]
        assert learn(words) == 0
        versions.append({one.name: one.read_bytes() for one in Store(out).path(1).iterdir()})
    assert versions[0] == versions[1]


@pytest.mark.usefixtures("analyst")
def test_read__object_and_prefix__the_same_rows() -> None:
    one, two = f"s3://{BUCKET}/raw/one.parquet", f"s3://{BUCKET}/raw/two.parquet"
    each, both = read([one, two]), read([f"s3://{BUCKET}/raw"])
    assert each.table.count().to_pyarrow() == both.table.count().to_pyarrow()


@pytest.mark.usefixtures("analyst")
@pytest.mark.parametrize(
    ("place", "says"),
    [
        (f"s3://{BUCKET}/nothing", "no such objects"),
        ("s3://nowhere/raw", "NoSuchBucket"),
        (f"s3://{SECRET}@{BUCKET}/raw", "credentials are in variables"),
    ],
)
def test_read__what_is_not_there__an_error_without_a_credential(place: str, says: str) -> None:
    with pytest.raises(InputError, match=says) as raised:
        read([place])
    assert SECRET not in str(raised.value)


def test_read__store_without_its_extra__the_command_that_installs_it(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "obstore.store", None)
    with pytest.raises(InputError, match=r"pip install 'uncork\[store\]'"):
        read([f"s3://{BUCKET}/raw"])
