"""`uncork learn run --publish`: one planner publishes, and a planner that dies leaves a whole store."""

import os
import re
import shutil
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from learning import KEY, program
from uncork.learn import demo
from uncork.learn.cli import main
from uncork.learn.fleet import Fleet, NotNowError
from uncork.learn.store import Store
from uncork.measure.errors import InputError
from uncork.measure.files import write_table

KILLED = 9
STEPS = ("os.rename", "os.symlink")
"""What makes a file or a version whole. `test_learn_run.py` has the steps between."""


def fleet_command(*words: str, expected: int = 0) -> str:
    command = [program(), "fleet", *words]
    done = subprocess.run(command, capture_output=True, text=True, check=False, timeout=60)
    assert done.returncode == expected, done.stderr
    return done.stdout + done.stderr


@pytest.fixture
def place(tmp_path: Path) -> Path:
    """Records of two networks, an empty store, and a key."""
    small = (demo.System(64501, "PE", 2, 0.25),)
    write_table(tmp_path / "records" / "records.parquet", demo.table(small, days=5, daily=200))
    (tmp_path / "store").mkdir()
    fleet_command("keygen", str(tmp_path / "fleet.key"))
    return tmp_path


def run_loop(place: Path, holder: str, *more: str, stages: str = "100%") -> int:
    """One round."""
    words = ["run", str(place / "records"), "-o", str(place / holder), "--rounds", "1", "--key", KEY]
    words += ["--publish", str(place / "store"), "--publish-key", str(place / "fleet.key")]
    words += ["--holder", holder, "--hold", "0s", "--stages", stages, "--harmed", "50%", "--changed", "100%"]
    return main([*words, *more])


def published(place: Path) -> str:
    """What the store has, as `status` says it."""
    return fleet_command("status", str(place / "store"), "--public-key", str(place / "fleet.key.pub"))


def test_run__publish__the_fleet_has_the_active_version(
    place: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert run_loop(place, "planner1") == 0
    assert "fleet: rollout 1: version 1 at stage 100%" in capsys.readouterr().err
    assert "version 1" in published(place)
    assert "no planner holds the lease" in fleet_command("lease", str(place / "store"))
    assert run_loop(place, "planner1") == 0
    assert "fleet: the fleet has this policy" in capsys.readouterr().err
    assert main(["verify", str(place / "planner1")]) == 0


def test_run__another_planner_has_the_lease__plans_nothing_and_says_who_until_when(
    place: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    held = fleet_command("lease", str(place / "store"), "--holder", "planner2", "--for", "2h")
    assert run_loop(place, "planner1", "--metrics", str(place / "m.prom")) == 0
    said = capsys.readouterr().err
    assert f"waiting: {held.strip()}" in said
    assert "holds the lease until 20" in said
    assert Store(place / "planner1").numbers() == []
    assert 'rounds_total{result="waiting"} 1' in (place / "m.prom").read_text()


def test_run__two_planners_at_once__one_publishes(place: Path) -> None:
    command = [sys.executable, "-m", "uncork.learn.cli", "run", str(place / "records"), "--key", KEY]
    command += ["--publish", str(place / "store"), "--publish-key", str(place / "fleet.key"), "--every", "1h"]
    command += ["--harmed", "50%", "--changed", "100%"]
    more = {name: [*command, "-o", str(place / name), "--holder", name] for name in ("planner1", "planner2")}
    running = {
        name: subprocess.Popen(words, stderr=subprocess.PIPE, text=True) for name, words in more.items()
    }
    said: dict[str, str] = {}
    try:
        for name, process in running.items():
            assert process.stderr is not None
            lines = []
            for line in process.stderr:
                lines.append(line)
                if "fleet: " in line or "waiting: " in line:
                    break
            said[name] = "".join(lines)
    finally:
        for process in running.values():
            process.terminate()
            process.wait(timeout=60)
    first = [name for name, text in said.items() if "fleet: rollout 1: version 1" in text]
    assert len(first) == 1, said
    other = next(name for name in said if name != first[0])
    assert f"waiting: {first[0]} holds the lease until" in said[other]
    assert "version 1" in published(place)


def rules(root: Path) -> str:
    """The active policy, but for the number of its version: a version that was planned and never applied has
    a number, too.
    """
    text = (root / "current" / "policy.toml").read_text()
    return re.sub(r"Version \d+|networks-\d+", "", text)


def killed_at(step: int, root: Path, work: Callable[[], object]) -> bool:
    """Does the work in a process that dies just before its step: a file below `root` becomes whole, or a
    program starts.
    """
    child = os.fork()
    if child == 0:
        left = step

        def hook(event: str, arguments: tuple[Any, ...]) -> None:
            nonlocal left
            is_file = event in STEPS and str(root) in str(arguments[0])
            if event == "subprocess.Popen" or is_file:
                left -= 1
                if left == 0:
                    os._exit(KILLED)

        sys.addaudithook(hook)
        try:
            work()
            os._exit(0)
        except BaseException:
            os._exit(1)
    _, status = os.waitpid(child, 0)
    assert os.waitstatus_to_exitcode(status) in (0, KILLED)
    return os.waitstatus_to_exitcode(status) == KILLED


def test_run__killed_at_every_step__the_store_is_as_before_or_as_after(place: Path) -> None:
    """And another round publishes the policy that a planner without a fault would have published."""
    before = {path.name for path in (place / "store").iterdir()}
    whole = place / "whole"
    shutil.copytree(place, whole, ignore=shutil.ignore_patterns("whole"))
    run_loop(whole, "planner1")
    policy = rules(whole / "planner1")
    seen = set()
    step, died = 0, True
    while died:
        step += 1
        copy = place / f"killed{step}"
        copy.mkdir()
        for name in ("records", "fleet.key", "fleet.key.pub"):
            (copy / name).symlink_to(place / name)
        (copy / "store").mkdir()
        died = killed_at(step, copy, lambda copy=copy: run_loop(copy, "planner1"))  # type: ignore[misc]
        is_published = (copy / "store" / "rollout").exists()
        seen.add(is_published)
        if is_published:
            assert "version 1" in published(copy)
        else:
            assert {path.name for path in (copy / "store").iterdir()} - {"lease", ".lock"} == before
        if step % 4 == 1 or not died:
            # The lease is still that of the dead planner, which goes on.
            assert run_loop(copy, "planner1") == 0
            assert rules(copy / "planner1") == policy
            assert "version 1" in published(copy)
        shutil.rmtree(copy)
    assert step > 8
    assert seen == {False, True}


def test_options__incomplete__are_errors_with_a_remedy(
    place: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    words = ["run", str(place / "records"), "-o", str(place / "learned"), "--key", KEY, "--rounds", "1"]
    assert main([*words, "--publish", str(place / "store")]) == 2
    assert "add --publish-key fleet.key" in capsys.readouterr().err
    assert main([*words, "--holder", "one"]) == 2
    assert "name its store with --publish" in capsys.readouterr().err


def test_fleet__store_away__is_an_error_of_the_round(place: Path) -> None:
    away = Fleet(program(), str(place / "nowhere"), place / "fleet.key", "one", 3600.0)
    with pytest.raises((InputError, NotNowError), match="nowhere"):
        away.publish(place / "policy.toml")


def test_run__kill_switch__goes_to_all_hosts_at_once(place: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert run_loop(place, "planner1") == 0
    step = ("publish", str(place / "store"), "--key", str(place / "fleet.key"))
    assert "all hosts run version 1" in fleet_command(*step)
    (place / "planner1" / "stop").touch()
    capsys.readouterr()
    assert run_loop(place, "planner1", stages="1%,100%") == 0
    assert "fleet: rollout 3: version 2 at stage 100%" in capsys.readouterr().err


def test_run__rolled_back_by_a_person__publishes_nothing_and_says_why(
    place: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert run_loop(place, "planner1") == 0
    fleet_command("rollback", str(place / "store"), "--key", str(place / "fleet.key"))
    before = (place / "store" / "rollout").read_bytes()
    capsys.readouterr()
    assert run_loop(place, "planner1") == 0
    assert "fleet: not published: version 1 was rolled back" in capsys.readouterr().err
    assert (place / "store" / "rollout").read_bytes() == before
