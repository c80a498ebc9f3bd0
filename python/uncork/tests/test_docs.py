"""Commands in the documentation run as they stand there, in one directory, one after the other."""

import os
import re
import shlex
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from demos import demo
from uncork.experiment.cli import main
from uncork.experiment.intime import COLUMNS
from uncork.learn.cli import main as learn

REPOSITORY = Path(__file__).parents[3]
DOCUMENT = REPOSITORY / "docs/reference/experiments.md"
LEARN = REPOSITORY / "docs/reference/learn.md"
README = Path(__file__).parents[1] / "README.md"


def commands(text: str) -> list[str]:
    blocks = re.findall(r"^```sh\n(.*?)^```", text, flags=re.M | re.S)
    return [line for block in blocks for line in block.strip().splitlines()]


def test_the_course_runs_as_it_is_written(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    if not DOCUMENT.exists():
        pytest.skip(f"*** NOT RUN: {DOCUMENT} is only in the repository ***")
    monkeypatch.chdir(tmp_path)
    uncork = os.environ.get("UNCORK") or shutil.which("uncork")
    done = []
    for line in commands(DOCUMENT.read_text(encoding="utf-8")):
        program, command, *arguments = shlex.split(line)
        assert program == "uncork"
        if command == "experiment":
            assert main(arguments) in ((0, 1) if arguments[0] == "analyze" else (0,)), line
        elif uncork:
            subprocess.run([uncork, command, *arguments], check=True, timeout=60)
        done.append(line)
    assert len(done) >= 10
    for file in (
        "demo/report.html",
        "report/result.json",
        "plan/schedule.csv",
        "interference/interference.html",
    ):
        assert (tmp_path / file).exists(), file
    if not uncork:
        sys.stderr.write("*** NOT RUN: `uncork policy check` (set UNCORK=/path/to/uncork) ***\n")


def test_learning_runs_as_it_is_written(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    if not LEARN.exists():
        pytest.skip(f"*** NOT RUN: {LEARN} is only in the repository ***")
    monkeypatch.chdir(tmp_path)
    uncork = os.environ.get("UNCORK") or shutil.which("uncork")
    lines = commands(LEARN.read_text(encoding="utf-8"))
    assert len(lines) >= 10
    for line in lines:
        program, command, *arguments = shlex.split(line)
        assert program == "uncork"
        if command == "learn":
            assert learn(arguments) == 0, line
        elif uncork:
            subprocess.run([uncork, command, *arguments], check=True, timeout=60)
    assert (tmp_path / "learned/current/policy.toml").exists()
    if not uncork:
        sys.stderr.write("*** NOT RUN: `uncork policy` (set UNCORK=/path/to/uncork) ***\n")


def test_the_guide_in_python_runs_as_it_is_written(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    guide = DOCUMENT.parents[1] / "howto/analyze-in-python.md"
    if not guide.exists():
        pytest.skip(f"*** NOT RUN: {guide} is only in the repository ***")
    (tmp_path / "records").symlink_to(demo() / "records")
    monkeypatch.chdir(tmp_path)
    blocks = re.findall(r"^```python\n(.*?)^```", guide.read_text(encoding="utf-8"), flags=re.M | re.S)
    assert len(blocks) == 3
    exec("".join(blocks), {})
    assert (tmp_path / "report/report.html").exists()


@pytest.mark.module
def test_the_guide_of_the_laboratory_runs_as_it_is_written(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    guide = DOCUMENT.parents[1] / "howto/simulate-in-python.md"
    if not guide.exists():
        pytest.skip(f"*** NOT RUN: {guide} is only in the repository ***")
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("MPLBACKEND", "Agg")
    text = guide.read_text(encoding="utf-8")
    blocks = re.findall(r"^```python\n(.*?)^```", text, flags=re.M | re.S)
    assert len(blocks) == 4
    exec("".join(blocks), {})
    assert re.findall(r"^```text\n(.*?)^```", text, flags=re.M | re.S)[0] in capsys.readouterr().out
    assert {"completion.svg", "report"} <= {path.name for path in tmp_path.iterdir()}


@pytest.mark.module
def test_the_guide_of_controllers_runs_as_it_is_written(capsys: pytest.CaptureFixture[str]) -> None:
    guide = DOCUMENT.parents[1] / "howto/controller-in-python.md"
    if not guide.exists():
        pytest.skip(f"*** NOT RUN: {guide} is only in the repository ***")
    pytest.importorskip("gymnasium")
    blocks = re.findall(r"^```python\n(.*?)^```", guide.read_text(encoding="utf-8"), flags=re.M | re.S)
    assert len(blocks) == 3
    exec("".join(blocks), {})
    printed = capsys.readouterr().out
    assert "Scalable" in printed
    assert "cubic" in printed


def test_the_columns_of_a_calendar_are_described() -> None:
    if not DOCUMENT.exists():
        pytest.skip(f"*** NOT RUN: {DOCUMENT} is only in the repository ***")
    text = DOCUMENT.read_text(encoding="utf-8").partition("A calendar of your own")[2].partition("\n## ")[0]
    table = re.findall(r"^\| (`.*?) \|", text, flags=re.M)
    assert tuple(re.findall(r"`(\w+)`", " ".join(table))) == COLUMNS


def test_options_of_learning_exist(capsys: pytest.CaptureFixture[str]) -> None:
    if not LEARN.exists():
        pytest.skip(f"*** NOT RUN: {LEARN} is only in the repository ***")
    mentioned = set(re.findall(r"(?<![\w-])--[a-z][a-z-]+", LEARN.read_text(encoding="utf-8")))
    known = {"--again", "--bench", "--root", "--policy", "--policy-key", "--check", "--cgroup", "--records"}
    known |= {"--ip", "--at", "--path", "--size", "--format"}
    # Of `uncork lab`, bench/internet.py and bench/thirty.py.
    known |= {"--cc", "--clients", "--seed", "--networks", "--systems", "--connections", "--days", "--truth"}
    known |= {"--server", "--client", "--requests", "--rounds", "--seeds", "--keep", "--by-network"}
    # Of `uncork emu`, `uncork steer record` and `uncork host`.
    known |= {"--rate", "--delay", "--loss", "--buffer", "--geo", "--state-dir"}
    for command in ("plan", "run", "apply", "explain", "demo", "verify", "report", "calibrate"):
        with pytest.raises(SystemExit):
            learn([command, "--help"])
        known |= set(re.findall(r"--[a-z][a-z-]+", capsys.readouterr().out))
    assert mentioned <= known, mentioned - known


def test_links_of_the_documents_lead_somewhere() -> None:
    for document in (DOCUMENT, LEARN, README):
        if document.exists():
            for link in re.findall(r"\]\(([^)#]+)[^)]*\)", document.read_text(encoding="utf-8")):
                assert link.startswith("http") or (document.parent / link).exists(), (
                    f"{document.name}: {link}"
                )


def test_readme_begins_with_two_commands() -> None:
    lines = commands(README.read_text(encoding="utf-8"))[:2]
    assert lines[0].endswith("uncork experiment demo --open")
    assert lines[1].endswith("pytest")


def test_options_in_the_documents_exist(capsys: pytest.CaptureFixture[str]) -> None:
    text = DOCUMENT.read_text(encoding="utf-8") if DOCUMENT.exists() else README.read_text(encoding="utf-8")
    mentioned = set(re.findall(r"(?<![\w-])--[a-z][a-z-]+", text))
    known = {"--again", "--bench", "--root", "--policy", "--records", "--harm"}
    for command in ("analyze", "demo", "policy", "design", "import", "export growthbook", "interference"):
        with pytest.raises(SystemExit):
            main([*command.split(), "--help"])
        known |= set(re.findall(r"--[a-z][a-z-]+", capsys.readouterr().out))
    assert mentioned <= known, mentioned - known
