"""What terminals get: no control character of a name from a file, on stdout or stderr, of any command."""

import contextlib
import io
import json
import os
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from demos import demo
from uncork.experiment import cli
from uncork.learn import cli as learn
from uncork.measure import console

RULES = json.loads((Path(__file__).parents[3] / "conformance/terminal.json").read_text("utf-8"))
HOSTILE = "\x1b]0;pwned\x07\x1b[2J\x9b31m\u202e\r"
ESCAPED = {chr(code) for first, last in RULES["escaped"] for code in range(int(first, 16), int(last, 16) + 1)}


@pytest.mark.parametrize("case", RULES["cases"], ids=lambda it: it["why"])
def test_cases_of_the_conformance_file(case: dict[str, str]) -> None:
    assert console.visible(case["in"]) == case["shown"]


def test_the_code_points_are_those_of_the_conformance_file() -> None:
    changed = {it for it in map(chr, range(0x110000)) if console.visible(it) != it}
    assert {it for it in changed if not 0xD800 <= ord(it) <= 0xDFFF} == ESCAPED


def test_escaped_json_is_the_same_json() -> None:
    text = json.dumps({HOSTILE: "\x7f\x9b\u2066"}, ensure_ascii=False)
    assert json.loads(console.visible(text)) == json.loads(text)


@pytest.fixture(scope="module")
def hostile(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Records with such names of arms, controllers, experiments and listeners, and of a file and a column."""
    table = pq.read_table(demo() / "records/records.parquet").slice(0, 5_000)
    for name in ("arm", "cc", "arm_experiment", "service_listener"):
        values = [None if it is None else it + HOSTILE for it in table[name].to_pylist()]
        table = table.set_column(table.column_names.index(name), name, pa.array(values))
    table = table.append_column("device" + HOSTILE, pa.array(["phone" + HOSTILE] * table.num_rows))
    path = tmp_path_factory.mktemp("records") / f"evil{HOSTILE}.parquet"
    pq.write_table(table, path)
    return path


def _arguments(records: Path, out: Path) -> dict[str, tuple[Callable[[list[str]], int], list[str]]]:
    """Commands that print names of the records, and errors that quote them."""
    path, log = str(records), out / "log.jsonl"
    arms = ["--control", f"control{HOSTILE}", "--treated", f"bbr{HOSTILE}"]
    return {
        "analyze": (cli.main, ["analyze", path, *arms, "--by", "listener", "-o", str(out / "a")]),
        "analyze, no arm": (cli.main, ["analyze", path, "--control", "nosuch"]),
        "analyze --mapping": (cli.main, ["analyze", str(log), "--mapping", "nginx"]),
        "analyze, an option": (cli.main, ["analyze", path, f"--{HOSTILE}"]),
        "design": (cli.main, ["design", str(out / f"none{HOSTILE}")]),
        "growthbook": (cli.main, ["export", "growthbook", path, "--control", "nosuch", "-o", str(out)]),
        "import": (cli.main, ["import", str(log), "--mapping", "nginx", "-o", str(out / "i")]),
        "learn history": (learn.main, ["history", str(out)]),
        "learn explain": (learn.main, ["explain", str(out / f"none{HOSTILE}"), HOSTILE]),
    }


@pytest.mark.parametrize("name", _arguments(Path(), Path()))
def test_no_command_writes_control_characters_of_names(
    name: str, hostile: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    done = {"at": "2026-11-02T00:00:00Z", "done": "pin", "entry": HOSTILE, "arm": HOSTILE}
    (tmp_path / "log.jsonl").write_text(json.dumps(done) + "\n")
    main, arguments = _arguments(hostile, tmp_path)[name]
    with contextlib.suppress(SystemExit):  # Of argparse, which has said why.
        main(arguments)
    written = "".join(capsys.readouterr())
    assert "u001b" in written
    assert not ESCAPED & set(written), repr(sorted(ESCAPED & set(written)))


def test_data_is_unchanged_for_programs(monkeypatch: pytest.MonkeyPatch) -> None:
    for is_terminal, shown in ((False, HOSTILE), (True, console.visible(HOSTILE))):
        stream = io.StringIO(newline="")
        monkeypatch.setattr(stream, "isatty", lambda is_terminal=is_terminal: is_terminal)
        monkeypatch.setattr(sys, "stdout", stream)
        console.data(HOSTILE)
        assert stream.getvalue() == shown


def _run(arguments: list[str], **streams: object) -> int:
    command = [sys.executable, "-m", "uncork.experiment.cli", *arguments]
    return subprocess.run(command, check=False, timeout=300, **streams).returncode  # type: ignore[call-overload,no-any-return]


def test_closed_streams_keep_the_exit_status() -> None:
    """`2>&1 | head -1`, and streams that were closed before the start."""
    reader, writer = os.pipe()
    os.close(reader)
    assert _run(["nosuch"], stderr=writer) == 2
    assert _run(["--version"], stdout=writer) == 0
    os.close(writer)
    program = f"{sys.executable} -m uncork.experiment.cli"
    assert subprocess.run(["sh", "-c", f"{program} nosuch 2>&-"], check=False).returncode == 2


@pytest.mark.parametrize("more", [[], ["--follow", "--every", "600"]])
def test_a_reader_that_leaves_early_changes_neither_files_nor_status(more: list[str], tmp_path: Path) -> None:
    """`analyze … | head -1` was status 3, and wrote no report. `--follow` ends with its reader."""
    few = tmp_path / "few.parquet"
    pq.write_table(pq.read_table(demo() / "records/records.parquet").slice(0, 2000), few)
    command = ["analyze", str(few), "--by", "", *more, "-o", str(tmp_path / "out")]
    reader, writer = os.pipe()
    os.close(reader)
    assert _run(command, stdout=writer) == 0
    os.close(writer)
    assert [path.name for path in sorted((tmp_path / "out").iterdir())] == ["report.html", "result.json"]


@pytest.mark.parametrize(
    ("main", "wrong", "meant"), [(cli.main, "analyse", "analyze"), (learn.main, "aply", "apply")]
)
def test_an_unknown_command_has_the_nearest_one(
    main: Callable[[list[str]], int], wrong: str, meant: str, capsys: pytest.CaptureFixture[str]
) -> None:
    with pytest.raises(SystemExit, match="2"):
        main([wrong])
    assert f"help: did you mean {meant}? " in capsys.readouterr().err


def test_a_full_disk_behind_stdout_is_status_3() -> None:
    with open("/dev/full", "w") as full:
        assert _run(["--version"], stdout=full) == 3
