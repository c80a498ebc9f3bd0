"""bench/live.py: a small experiment with real players behind emulated paths. It needs root."""

import json
import os
import re
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest

from capability import not_run
from test_design import uncork

SCRIPT = Path(__file__).parents[1] / "bench" / "live.py"
NOT_POSSIBLE = 3


def start(work: Path, *more: str) -> subprocess.Popen[str]:
    if not SCRIPT.exists():
        pytest.skip(f"*** NOT RUN: {SCRIPT} is only in the repository ***")
    program = uncork()
    if program is None:
        not_run("programs", "build it (cargo build --release --features full), or set UNCORK to its path")
    command = [sys.executable, str(SCRIPT), "-o", str(work), "--uncork", str(program), *more]
    return subprocess.Popen(
        command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, process_group=0
    )


def finished(live: subprocess.Popen[str], seconds: float) -> str:
    """Its output; the test is not run where the machine cannot do it."""
    try:
        out, errors = live.communicate(timeout=seconds)
    except subprocess.TimeoutExpired:
        live.terminate()
        out, errors = live.communicate(timeout=60)
        pytest.fail(f"not done after {seconds:g} s:\n{out}\n{errors}")
    if live.returncode == NOT_POSSIBLE:
        not_run("bbr" if "no bbr" in errors else "netns", errors.strip())
    return out


def left_over(work: Path) -> list[str]:
    """Namespaces and processes of this run that are still there."""
    hosts = json.loads((work / "emu.json").read_text().splitlines()[0])
    names = [host["name"] for host in hosts if os.path.lexists(Path("/run/netns") / host["name"])]
    for process in Path("/proc").glob("[0-9]*/cmdline"):
        try:
            words = process.read_bytes().decode(errors="replace").split("\0")
        except OSError:
            continue
        names += [" ".join(words)] if any(str(work) in word for word in words) else []
    return names


def test_players_are_followed_to_the_planned_look(tmp_path: Path) -> None:
    work = tmp_path / "live"
    live = start(work, "--players", "16", "--for", "60", "--every", "4")
    out = finished(live, 180)
    assert live.returncode == 0, out
    assert "16 of 16 heard music" in out
    assert not (work / "scratch").exists()
    assert re.search(r"\d\dZ  \d+ records, \d+ units", out), out
    assert "bbr against cubic · live · 1 day, 16 units" in out
    assert (work / "report" / "report.html").exists()
    records = [json.loads(line) for line in (work / "records" / "served.jsonl").read_text().splitlines()]
    assert {record["service"]["listener"] for record in records} == {"frankfurt", "lima", "mumbai", "nairobi"}
    arms = {record["choice"]["arm"]["arm"]: record["cc"] for record in records}
    assert arms == {"control": "cubic", "bbr": "bbr"}
    assert left_over(work) == []


def test_a_harmful_arm_is_stopped(tmp_path: Path) -> None:
    work = tmp_path / "live"
    live = start(work, "--players", "200", "--for", "120", "--every", "5", "--harm")
    out = finished(live, 240)
    assert live.returncode == 1, out
    # Bandwidth, completion and the queue it builds all suffer: any of them may be seen first, or in places.
    broken = r"Stop: bbr breaks (a guardrail|\d+ guardrails): .*, the limit is "
    worse = r"Keep cubic: with bbr, p50 bandwidth is \d+ % lower "
    there = r"With bbr, p50 bandwidth is worse in "
    assert re.search(rf"^({broken}|{worse}|{there})", out, flags=re.M), out
    assert left_over(work) == []


@pytest.mark.parametrize("by", [signal.SIGINT, signal.SIGTERM])
def test_nothing_is_left_when_it_is_interrupted(by: signal.Signals, tmp_path: Path) -> None:
    work = tmp_path / "live"
    live = start(work, "--players", "16", "--for", "60", "--every", "5")
    assert live.stdout is not None
    if not live.stdout.readline():
        finished(live, 30)
    time.sleep(1)
    live.send_signal(by)
    finished(live, 60)
    assert live.returncode == 128 + by
    assert left_over(work) == []
