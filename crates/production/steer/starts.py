#!/usr/bin/env python3
"""What an initial window does for short responses of an unmodified server, behind an emulated path.

    sudo crates/production/steer/starts.py --uncork target/release/uncork
    sudo crates/production/steer/starts.py --uncork target/release/uncork --buffer 20p --size 300kB

A plain server in a cgroup of its own answers each connection with `--size` bytes. Each row is a policy that `uncork steer`
applies to the cgroup: controller, initial window and its rate. The table has the time from the request to the last byte at the
client, and the packets that the server sent again, as its kernel counts them.

Everything created is removed, also after Ctrl-C. Needs root, util-linux, and cgroups of version 2.
"""

from __future__ import annotations

import argparse
import json
import re
import shlex
import socket
import statistics
import subprocess
import sys
import tempfile
import time
from pathlib import Path
from typing import Any

# Scripts of `kernel` have these, too.
sys.path.append(str(Path(__file__).resolve().parents[2] / "transport/kernel"))
import own_mounts
from own_cgroup import group

PORT = 5002
ADDRESS = "198.18.0.1"
# `tcpi_total_retrans` in `struct tcp_info` of linux/tcp.h.
TCP_INFO, RETRANSMITTED = 11, slice(100, 104)
UNITS = {"B": 1, "kB": 1000, "MB": 1_000_000}


def policies(controllers: list[str], window: str, rate: str) -> list[tuple[str, str, str, str]]:
    """Controller, initial window and its rate as rows of the table have them, and the policy."""
    rows = []
    for controller in controllers:
        for size, pace, keys in [
            ("the kernel's", "-", ""),
            ("10p", "by the kernel", 'initial_window = "10p"\n'),
            (window, "by the kernel", f'initial_window = "{window}"\n'),
            (window, rate, f'initial_window = "{window}"\ninitial_rate = "{rate}"\n'),
            (window, "burst", f'initial_window = "{window}"\ninitial_rate = "burst"\n'),
        ]:
            rows.append((controller, size, pace, f'[default]\ntcp = "{controller}"\n{keys}'))
    return rows


def serve(size: int, connections: int) -> None:
    """Answers connections, one after the other. Writes the retransmitted packets of each to the standard output."""
    with socket.create_server(("", PORT)) as listener:
        print("ready", flush=True)
        for _ in range(connections):
            connection, _ = listener.accept()
            with connection:
                connection.recv(100)
                connection.sendall(bytes(size))
                connection.shutdown(socket.SHUT_WR)
                # The client's end: all is acknowledged.
                while connection.recv(100):
                    pass
                info = connection.getsockopt(socket.IPPROTO_TCP, TCP_INFO, 232)
                print(int.from_bytes(info[RETRANSMITTED], "little"), flush=True)


def fetch(size: int) -> float:
    """The milliseconds from the request to the last byte."""
    with socket.create_connection((ADDRESS, PORT), 30) as connection:
        began = time.perf_counter()
        connection.sendall(b"GET")
        received = 0
        while chunk := connection.recv(1 << 20):
            received += len(chunk)
        took = time.perf_counter() - began
    if received != size:
        sys.exit(f"starts.py: {received} of {size} bytes arrived")
    return took * 1e3


def ask(size: int, connections: int) -> None:
    """Writes the times of the connections as JSON."""
    for _ in range(50):
        try:
            fetch(size)
            break
        except ConnectionRefusedError:
            time.sleep(0.1)
    times = []
    for _ in range(connections - 1):
        times.append(fetch(size))
        time.sleep(0.05)
    print(json.dumps(times))


def measure(options: argparse.Namespace, cgroup: Path, scratch: Path, policy: str) -> tuple[list[float], list[int]]:
    """Times in milliseconds and retransmitted packets of the connections under a policy."""
    (scratch / "policy.toml").write_text(policy)
    apply = [options.uncork, "steer", "apply", str(scratch / "policy.toml"), "--cgroup", str(cgroup)]
    subprocess.run(apply, check=True, stdout=subprocess.DEVNULL)
    # The first connection only waits for the server.
    this = [sys.executable, __file__, "--uncork", options.uncork, "--size", options.size, "--runs", str(options.runs + 1)]
    counts = scratch / "counts"
    server = f"echo $$ > {cgroup}/cgroup.procs; exec {shlex.join([*this, 'serve'])} > {counts}"
    path = ["--rate", options.rate, "--rtt", options.rtt, "--buffer", options.buffer]
    emu = [options.uncork, "emu", *path, "--server", f"sh -c {shlex.quote(server)}", "--", *this, "ask"]
    done = subprocess.run(emu, capture_output=True, text=True, timeout=300, check=False)
    found = re.search(r"^\[.*\]$", done.stdout, re.MULTILINE)
    if done.returncode or not found:
        sys.exit(f"starts.py: {shlex.join(emu)} ended with {done.returncode}:\n{done.stdout}{done.stderr}")
    lines = counts.read_text().split()
    return json.loads(found[0]), [int(line) for line in lines[2:]]


def table(rows: list[list[str]]) -> None:
    widths = [max(map(len, column)) for column in zip(*rows, strict=True)]
    for row in rows:
        left = [cell.ljust(width) for cell, width in zip(row[:3], widths, strict=False)]
        right = [cell.rjust(width) for cell, width in zip(row[3:], widths[3:], strict=True)]
        print("  ".join(left + right))


def bytes_of(text: str) -> int:
    found = re.fullmatch(r"(\d+)(B|kB|MB)", text)
    if not found:
        raise argparse.ArgumentTypeError(f"`{text}` is not a size; write 100kB")
    return int(found[1]) * UNITS[found[2]]


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--uncork", required=True, metavar="PATH", help="the program")
    parser.add_argument("--rate", default="100mbit", help="[default: 100mbit]")
    parser.add_argument("--rtt", default="100ms", help="[default: 100ms]")
    parser.add_argument("--buffer", default="1bdp", help="[default: 1bdp]")
    parser.add_argument("--size", default="100kB", help="[default: 100kB]")
    parser.add_argument("--window", default="40p", help="[default: 40p]")
    parser.add_argument("--initial-rate", default="20mbit", help="[default: 20mbit]")
    parser.add_argument("--controllers", default="cubic,bbr", help="names in the kernel [default: cubic,bbr]")
    parser.add_argument("--runs", type=int, default=9, help="connections of each row [default: 9]")
    parser.add_argument("role", nargs="?", choices=["serve", "ask"], help=argparse.SUPPRESS)
    options = parser.parse_args()
    try:
        size = bytes_of(options.size)
    except argparse.ArgumentTypeError as error:
        parser.error(f"--size: {error}")
    if options.role:
        roles: dict[str, Any] = {"serve": serve, "ask": ask}
        roles[options.role](size, options.runs)
        return
    options.uncork = str(Path(options.uncork).resolve())
    own_mounts.enter()
    rows = [["controller", "initial window", "initial rate", "ms, median", "range", "resent packets, mean"]]
    print(f"{options.size} over {options.rate}, {options.rtt} RTT, buffer {options.buffer}; {options.runs} connections each\n")
    with group() as cgroup, tempfile.TemporaryDirectory() as scratch:
        for controller, window, rate, policy in policies(options.controllers.split(","), options.window, options.initial_rate):
            times, resent = measure(options, cgroup, Path(scratch), policy)
            spread = f"{min(times):.0f} to {max(times):.0f}"
            rows.append([controller, window, rate, f"{statistics.median(times):.0f}", spread, f"{statistics.mean(resent):.1f}"])
    table(rows)


if __name__ == "__main__":
    main()
