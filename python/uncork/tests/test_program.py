"""`python -m uncork`, where its program is found, and what its help costs."""

import os
import re
import subprocess
import sys
import tomllib
from pathlib import Path

import pytest

import uncork
from uncork.experiment import cli as experiment
from uncork.learn import cli as learn
from uncork.measure.errors import ANALYSIS
from uncork.program import find_bin

HEAVY = {"chdb", "duckdb", "ibis", "numpy", "pandas", "pyarrow", "pyspark", "rich", "scipy", "sqlglot"}
SOURCES = str(Path(uncork.__file__).parents[1])
CARGO = Path(__file__).parents[3] / "Cargo.toml"


def executable(path: Path, script: str) -> str:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(f"#!/bin/sh\n{script}\n")
    path.chmod(0o755)
    return str(path)


def python(*arguments: str, **environment: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [sys.executable, *arguments],
        env={**os.environ, **environment},
        capture_output=True,
        text=True,
        check=False,
    )


def test_the_program_that_the_environment_names_comes_first(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    named = executable(tmp_path / "named", "")
    monkeypatch.setenv("UNCORK", named)
    assert uncork.find_bin() == named


def test_the_program_of_this_environment_comes_before_one_on_the_path(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    other = executable(tmp_path / "other/uncork", "")
    own = executable(tmp_path / "own/uncork", "")
    monkeypatch.delenv("UNCORK", raising=False)
    monkeypatch.setenv("PATH", str(tmp_path / "other"))
    monkeypatch.setattr("uncork.program._folders", lambda: [str(tmp_path / "own")])
    assert find_bin() == own
    monkeypatch.setattr("uncork.program._folders", list)
    assert find_bin() == other


@pytest.mark.parametrize("named", ["/nonexistent/uncork", "."])
def test_a_missing_program_is_an_error_with_place_and_remedy(
    named: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("UNCORK", named)
    with pytest.raises(ValueError, match=f"^UNCORK={re.escape(named)}: program not found; set UNCORK"):
        find_bin()


def test_a_program_that_is_not_installed_is_an_error(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("UNCORK", raising=False)
    monkeypatch.setenv("PATH", "/nonexistent")
    monkeypatch.setattr("uncork.program._folders", list)
    with pytest.raises(ValueError, match=r"^PATH: program `uncork` not found; "):
        find_bin()


def test_python_dash_m_becomes_the_program_with_its_arguments_and_status(tmp_path: Path) -> None:
    program = executable(tmp_path / "uncork", "printf '%s\\n' \"$@\"; exit 7")
    done = python("-m", "uncork", "compare", "--rate", "a b", UNCORK=program)
    assert (done.returncode, done.stdout) == (7, "compare\n--rate\na b\n")


def test_python_dash_m_without_a_program_is_an_error_without_a_traceback() -> None:
    done = python("-m", "uncork", "compare", UNCORK="/nonexistent/uncork")
    assert (done.returncode, done.stdout) == (2, "")
    assert done.stderr.startswith("error: UNCORK=/nonexistent/uncork: program not found")


COMMANDS = [
    "experiment",
    *(f"experiment {name}" for name, _, _ in experiment.COMMANDS),
    "experiment export growthbook",
    "learn",
    *(f"learn {name}" for name, _ in learn.COMMANDS),
]


@pytest.mark.parametrize(("option", "status"), [("--help", 0), ("--no-such-option", 2)])
@pytest.mark.parametrize("command", COMMANDS)
def test_help_and_usage_errors_import_no_engine(command: str, option: str, status: int) -> None:
    done = python("-X", "importtime", "-m", "uncork", *command.split(), option)
    assert done.returncode == status
    modules = re.findall(r"^import time:.*\| *(\S+)$", done.stderr, re.MULTILINE)
    assert not HEAVY & {name.partition(".")[0] for name in modules}
    # Each costs a millisecond. Python itself has 35, argparse and its translations 20.
    assert 50 < len(modules) < 140, modules


@pytest.mark.parametrize(
    ("command", "wrong", "near"), [("experiment", "analyse", "analyze"), ("learn", "plann", "plan")]
)
def test_an_unknown_command_imports_no_engine_and_suggests_the_nearest(
    command: str, wrong: str, near: str
) -> None:
    done = python("-X", "importtime", "-m", "uncork", command, wrong)
    assert done.returncode == 2
    assert f"did you mean {near}? uncork {command} --help" in done.stderr
    assert " numpy" not in done.stderr


def missing(*packages: str) -> str:
    """What the user reads."""
    named = ", ".join(packages)
    return f"extra `analysis`: packages are not installed: {named}; run: pip install 'uncork[analysis]'\n"


def alone(*arguments: str, **environment: str) -> subprocess.CompletedProcess[str]:
    """Python with this package and no other one."""
    return python("-S", *arguments, PYTHONPATH=SOURCES, **environment)


@pytest.mark.parametrize(
    "command", ["experiment analyze records", "experiment design", "learn plan records", "learn history DIR"]
)
def test_commands_without_their_packages_are_an_error_with_the_remedy(command: str) -> None:
    done = alone("-m", "uncork", *command.split())
    assert (done.returncode, done.stdout) == (2, "")
    assert done.stderr == f"error: {missing(*ANALYSIS)}"


def test_only_packages_that_are_missing_are_named() -> None:
    without = "import sys; sys.modules['duckdb'] = None; from uncork.__main__ import main; sys.exit(main())"
    done = python("-c", without, "experiment", "analyze", "records")
    assert done.returncode == 2
    assert done.stderr == f"error: {missing('duckdb')}"


def test_an_analysis_in_python_without_its_packages_is_an_exception_with_the_remedy() -> None:
    tried = "import uncork\ntry: uncork.Experiment('records')\nexcept uncork.InputError as it: print(it)"
    assert alone("-c", tried).stdout == missing(*ANALYSIS)


def test_the_program_is_found_without_any_package(tmp_path: Path) -> None:
    program = executable(tmp_path / "program", "exit 7")
    assert alone("-m", "uncork", "compare", UNCORK=program).returncode == 7
    assert alone("-c", "import uncork; print(uncork.find_bin())", UNCORK=program).stdout.strip() == program


def test_an_error_names_the_packages_of_the_extra() -> None:
    if not CARGO.exists():
        pytest.skip(f"*** NOT RUN: {CARGO} is only in the repository ***")
    project = tomllib.loads((CARGO.parent / "pyproject.toml").read_text("utf-8"))["project"]
    required = [re.split(r"[^\w-]", one)[0] for one in project["optional-dependencies"]["analysis"]]
    assert [name.removesuffix("-framework") for name in required] == list(ANALYSIS)
    assert project["dependencies"] == []


def test_the_version_is_that_of_the_crates() -> None:
    if not CARGO.exists():
        pytest.skip(f"*** NOT RUN: {CARGO} is only in the repository ***")
    assert f'\n[workspace.package]\nversion = "{uncork.__version__}"\n' in CARGO.read_text("utf-8")
