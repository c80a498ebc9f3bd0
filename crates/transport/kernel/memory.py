#!/usr/bin/env python3
"""What the controllers keep in the kernel's memory for a socket.

    sudo crates/transport/kernel/memory.py --uncork target/release/uncork

10,000 connections over loopback, both ends here, have reno, and then the controller (setsockopt). By how much the
kernel's slabs grow (`SUnreclaim` of /proc/meminfo), by 20,000 sockets, is what it keeps for one. Everything is in a
namespace of the script's own. Needs root and util-linux; other work on the machine shows in the figures.
"""

from __future__ import annotations

import argparse
import ctypes
import multiprocessing
import os
import re
import resource
import socket
import statistics
import subprocess
import sys
import time
from multiprocessing.connection import Connection
from pathlib import Path

import own_mounts

OURS = ["uncork_bbr1", "uncork_bbr2", "uncork_bbr3", "uncork_cubic", "uncork_reno"]
THEIRS = ["bbr", "cubic"]
CLONE_NEWNET = 0x40000000
PROCESSES = 4


def slab() -> int:
    """Bytes. What was freed is returned a while later."""
    time.sleep(2)
    [kilobytes] = re.findall(r"^SUnreclaim:\s+(\d+) kB", Path("/proc/meminfo").read_text(), re.MULTILINE)
    return int(kilobytes) * 1024


def hold(connections: int, commands: Connection) -> None:
    """A process with a share of the sockets: one may not open all of them."""
    listener = socket.create_server(("127.0.0.1", 0), backlog=1024)
    sockets = []
    for _ in range(connections):
        sockets += [socket.create_connection(listener.getsockname()), listener.accept()[0]]
    commands.send(len(sockets))
    while True:
        controller = commands.recv()
        for one in sockets:
            one.setsockopt(socket.IPPROTO_TCP, socket.TCP_CONGESTION, controller.encode())
        commands.send(len(sockets))


def per_socket(controller: str, connections: int) -> float:
    """Bytes, with sockets that had no other controller of BPF before: they keep its state until they end."""
    pipes, processes = [], []
    for _ in range(PROCESSES):
        here, there = multiprocessing.Pipe()
        processes.append(multiprocessing.Process(target=hold, args=(connections // PROCESSES, there), daemon=True))
        processes[-1].start()
        pipes.append(here)
    sockets = sum(pipe.recv() for pipe in pipes)
    before = slab()
    for pipe in pipes:
        pipe.send(controller)
    for pipe in pipes:
        pipe.recv()
    used = slab() - before
    for process in processes:
        process.terminate()
        process.join()
    return float(used / sockets)


def main() -> None:
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--uncork", required=True, help="the program")
    parser.add_argument("--connections", type=int, default=10_000)
    parser.add_argument("--rounds", type=int, default=3)
    arguments = parser.parse_args()
    arguments.uncork = os.path.abspath(arguments.uncork)
    own_mounts.enter()
    libc = ctypes.CDLL(None, use_errno=True)
    if libc.unshare(CLONE_NEWNET) != 0:
        sys.exit(f"memory.py: unshare: {os.strerror(ctypes.get_errno())}")
    subprocess.run(["ip", "link", "set", "lo", "up"], check=True)
    most = resource.getrlimit(resource.RLIMIT_NOFILE)[1]
    resource.setrlimit(resource.RLIMIT_NOFILE, (most, most))
    subprocess.run([arguments.uncork, "kernel", "load", *OURS], check=True, stdout=subprocess.DEVNULL)
    Path("/proc/sys/net/ipv4/tcp_congestion_control").write_text("reno")
    found: dict[str, list[float]] = {name: [] for name in OURS + THEIRS}
    for _ in range(arguments.rounds):
        for name, each in found.items():
            each.append(per_socket(name, arguments.connections))
    print(f"{2 * arguments.connections} sockets, {arguments.rounds} rounds\n")
    print("| | bytes per socket | range |\n|---|---|---|")
    for name, each in found.items():
        print(f"| `{name}` | {statistics.median(each):.0f} | {min(each):.0f}–{max(each):.0f} |")


if __name__ == "__main__":
    main()
