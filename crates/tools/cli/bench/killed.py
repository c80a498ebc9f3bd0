#!/usr/bin/env python3
"""Ends commands that write results by SIGKILL and SIGSTOP at random moments, and checks the remaining files.

    sudo crates/tools/cli/bench/killed.py target/debug/uncork --rounds 200

Each round is one of `host prove`, `host watch`, `steer record`, `steer move` and `experiment import` (if `uncork-
experiment` is on the PATH), in turn; every fourth is stopped for a while in place of killed. After each: the host is as
before, what has its name can be read, no lock is left, and the next command works. Everything is in namespaces of its own,
with a cgroup that is removed. Needs root, BPF and pyarrow. Exit status 1 if a round leaves something else.
"""

import argparse
import json
import os
import random
import shutil
import signal
import socket
import subprocess
import sys
import tempfile
import threading
import time
from collections import Counter
from pathlib import Path

import pyarrow.parquet as pq

INSIDE = "UNCORK_KILLED_INSIDE"
PORT = 8080
LINE = (
    '{"time":"1785754800.123","request_time":"1.2","remote_addr":"203.0.113.7","method":"GET","host":"h","status":"200",'
    '"body_bytes_sent":"5000000","bytes_sent":"5000300","content_length":"5000000","completed":"OK","protocol":"HTTP/1.1",'
    '"server":"%d","rtt":"20000","arm":"bbr"}\n'
)
LINES = 10_000
POLICY = """[default]
tcp = "%s"
"""


class World:
    """A server in a cgroup, and clients that come again and again."""

    def __init__(self, uncork: Path, root: Path) -> None:
        self.uncork, self.root = uncork, root
        cgroups = next(line.split()[1] for line in Path("/proc/mounts").read_text().splitlines() if " cgroup2 " in line)
        self.cgroup = Path(cgroups) / f"uncork-killed-{os.getpid()}"
        self.cgroup.mkdir()
        sh("mount -t bpf bpf /sys/fs/bpf; ip link set lo up; sysctl -qw net.ipv4.tcp_congestion_control=reno")
        (self.cgroup / "cgroup.procs").write_text(str(os.getpid()))
        self.ended = threading.Event()
        self.listener = socket.create_server(("127.0.0.1", PORT))
        for work in (self.serve, self.ask):
            threading.Thread(target=work, daemon=True).start()

    def serve(self) -> None:
        held: list[socket.socket] = []
        while not self.ended.is_set():
            connection, _ = self.listener.accept()
            connection.sendall(bytes(20_000))
            # Some stay open, for `move`.
            held = [connection, *held[:3]] if random.random() < 0.3 else held
            if connection not in held:
                connection.close()

    def ask(self) -> None:
        while not self.ended.is_set():
            with socket.create_connection(("127.0.0.1", PORT)) as connection:
                connection.settimeout(0.05)
                try:
                    while connection.recv(100_000):
                        pass
                except TimeoutError:
                    pass

    def command(self, line: str) -> list[str]:
        return [str(self.uncork), *line.split()]

    def run(self, line: str, *statuses: int) -> str:
        done = subprocess.run(self.command(line), capture_output=True, text=True, timeout=120, cwd=self.root)
        if done.returncode not in (statuses or (0,)):
            raise AssertionError(f"{line}: status {done.returncode}: {done.stdout}{done.stderr}")
        return done.stdout

    def host(self) -> str:
        return sh("sysctl net.ipv4.tcp_congestion_control net.ipv4.tcp_no_metrics_save; ip route; ip route show table local")

    def end(self) -> None:
        self.ended.set()
        root = self.cgroup.parent / "cgroup.procs"
        root.write_text(str(os.getpid()))
        for _ in range(100):
            try:
                self.cgroup.rmdir()
            except OSError:
                time.sleep(0.1)
            else:
                return


def sh(script: str) -> str:
    return subprocess.run(["sh", "-c", script], check=True, capture_output=True, text=True).stdout


def readable(path: Path) -> int:
    """Rows that readers find in a directory of Parquet files or in lines; raises if one cannot be read."""
    if path.is_dir():
        return sum(pq.read_table(it).num_rows for it in path.glob("[!.]*.parquet"))
    if not path.exists():
        return 0
    lines = path.read_bytes().split(b"\n")
    return sum(bool(json.loads(line)) for line in lines[:-1] if line)


def until(what: str, holds, seconds: float = 30) -> None:
    end = time.monotonic() + seconds
    while not holds():
        if time.monotonic() > end:
            raise AssertionError(f"not within {seconds:g} s: {what}")
        time.sleep(0.05)


# Each: the command line, how long it takes at least (s), and what must hold afterwards.


def prove(world: World, out: Path):
    line = (
        f"host prove reno bbr --pairs 4 --window 100ms --burn-in 40ms --every 20ms -q -o {out} --state-dir {world.root}/state"
    )
    before = world.host()

    def after(was_killed: bool) -> None:
        until("the host is as before", lambda: world.host() == before)
        readable(out)
        if not was_killed:
            json.loads((out / "summary.json").read_text())
        again = out.with_name("again")
        shutil.rmtree(again, ignore_errors=True)
        world.run(line.replace(str(out), str(again)).replace("--pairs 4", "--pairs 1"), 0, 1)
        json.loads((again / "summary.json").read_text())
        assert world.host() == before

    return world.command(line), 1.5, after


def watch(world: World, out: Path):
    line = f"host watch -q --every 50ms --records {out}/ --records-every 100ms --record {out}.tape"

    def after(_was_killed: bool) -> None:
        rows = readable(out)
        world.run(line + " --for 300ms")
        assert readable(out) > rows, "the next watch adds records"
        world.run(f"host watch -q --replay {out}.tape")

    return world.command(line + " --for 1s"), 1.0, after


def record(world: World, out: Path):
    place = out if random.random() < 0.5 else f"{out}/"
    line = f"steer record {place} --every 50ms --records-every 100ms"

    def after(_was_killed: bool) -> None:
        rows = readable(out)
        world.run(line + " --for 500ms")
        assert readable(out) > rows, "the next recorder adds records"
        world.run("steer status")

    return world.command(line + " --for 1s"), 1.0, after


def move(world: World, _out: Path):
    world.run(f"steer apply {random.choice(['reno', 'cubic'])}.toml --cgroup {world.cgroup}")

    def after(_was_killed: bool) -> None:
        world.run("steer move")
        world.run("steer status")

    return world.command("steer move"), 0.1, after


def imported(world: World, out: Path):
    log = world.root / "a.log"
    log.write_text("".join(LINE % number for number in range(LINES)))
    line = [str(world.uncork), "experiment", "import", str(log), "--mapping", "nginx", "-o", str(out)]

    def after(was_killed: bool) -> None:
        rows = readable(out) if out.exists() else 0
        assert rows in (0, LINES), rows
        if not was_killed:
            assert rows == LINES, rows

    return line, 8.0, after


def play(world: World, course, out: Path, rng: random.Random, is_stopped: bool) -> str:
    line, span, after = course(world, out)
    child = subprocess.Popen(line, stdout=subprocess.DEVNULL, stderr=subprocess.PIPE, text=True, cwd=world.root)
    time.sleep(rng.random() * 1.2 * span)
    is_alive = child.poll() is None
    if is_stopped and is_alive:
        child.send_signal(signal.SIGSTOP)
        readable(out) if out.exists() else None
        time.sleep(0.3)
        child.send_signal(signal.SIGCONT)
    elif is_alive:
        child.kill()
    _, errors = child.communicate(timeout=180)
    was_killed = child.returncode == -signal.SIGKILL
    if not was_killed and child.returncode not in (0, 1):
        raise AssertionError(f"{' '.join(line)}: status {child.returncode}: {errors}")
    after(was_killed)
    return "killed" if was_killed else "stopped" if is_stopped and is_alive else "ended before"


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("uncork", type=Path)
    parser.add_argument("--rounds", type=int, default=200)
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--only", metavar="NAME,…", help="prove, watch, record, move, imported")
    options = parser.parse_args()
    if INSIDE not in os.environ:
        os.environ[INSIDE] = "1"
        os.execvp("unshare", ["unshare", "--net", "--mount", "--propagation", "private", sys.executable, *sys.argv])
    courses = [prove, watch, record, move] + [imported] * (shutil.which("uncork-python") is not None)
    if options.only:
        courses = [it for it in courses if it.__name__ in options.only.split(",")]
    counts: Counter[tuple[str, str]] = Counter()
    rng, failures = random.Random(options.seed), 0
    with tempfile.TemporaryDirectory(prefix="uncork-killed-") as root:
        world = World(options.uncork.resolve(), Path(root))
        try:
            for name in ("reno", "cubic"):
                (world.root / f"{name}.toml").write_text(POLICY % name)
            world.run(f"steer apply reno.toml --cgroup {world.cgroup}")
            for number in range(options.rounds):
                course = courses[number % len(courses)]
                try:
                    how = play(world, course, world.root / f"out{number}", rng, (number // len(courses)) % 4 == 3)
                except (AssertionError, OSError, ValueError, subprocess.SubprocessError) as error:
                    failures, how = failures + 1, "FAILED"
                    print(f"round {number}: {course.__name__}: {error}", flush=True)
                counts[course.__name__, how] += 1
            world.run("steer revert")
        finally:
            world.end()
    for (name, how), count in sorted(counts.items()):
        print(f"{name:10} {how:14} {count}")
    return int(failures > 0)


if __name__ == "__main__":
    sys.exit(main())
