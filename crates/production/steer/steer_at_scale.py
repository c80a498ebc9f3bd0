#!/usr/bin/env python3
"""`uncork steer` at scale: what a connection and a look-up cost, and policies of a million networks exchanged.

    sudo crates/production/steer/steer_at_scale.py --uncork target/release/uncork cost
    sudo crates/production/steer/steer_at_scale.py --uncork target/release/uncork record
    sudo crates/production/steer/steer_at_scale.py --uncork target/release/uncork look-up
    sudo crates/production/steer/steer_at_scale.py --uncork target/release/uncork exchange

`cost`: one thread opens and closes connections over loopback, from random addresses, some hundred at once. Policies
take turns with no program and with an empty one, each without a recorder of its connections and with one. Nanoseconds
are the kernel's own statistics of BPF programs; what they add is that of the empty program. The thread's CPU time per
connection, measured without statistics, is reported, too: its noise is larger than what a program takes. With `--bytes`
each connection also sends these bytes, in packets of 1500: its start is followed.

`record`: the same connections, all of them recorded. Each must have a record.

`look-up`: a program (look_up.bpf.c) looks up networks of the active table in random order, with the function of
`steer`; the kernel runs it again and again and reports the mean time (BPF_PROG_TEST_RUN). What the same program takes
without the look-ups is taken off. It needs clang and bpftool.

`exchange`: programs connect as fast as they can while two policies of a million networks each take turns. Each
connection must have the controller and the cap of one of them.

Everything created is removed, also after Ctrl-C. Needs root, util-linux, iproute2, and cgroups of version 2.
"""

from __future__ import annotations

import argparse
import contextlib
import ctypes
import hashlib
import ipaddress
import itertools
import json
import mmap
import multiprocessing
import os
import random
import resource
import shutil
import signal
import socket
import statistics
import struct
import subprocess
import sys
import tempfile
import time
from collections import Counter
from collections.abc import Callable, Iterator
from multiprocessing.synchronize import Event
from pathlib import Path
from typing import Any

# Scripts of `kernel` have these, too.
sys.path.append(str(Path(__file__).resolve().parents[2] / "transport/kernel"))
import own_mounts
from own_cgroup import group

STATISTICS = Path("/proc/sys/kernel/bpf_stats_enabled")
# All of it is this namespace's own (`ip route add local`).
CLIENTS = ipaddress.ip_network("64.0.0.0/2")
SERVER = "10.1.0.1"
NETWORKS = 1_000_000
LIBC = ctypes.CDLL(None, use_errno=True)
CLONE_NEWNET = 0x40000000
# The end of a policy's name with which it has a recorder.
RECORDED = ", recorded"

EXPERIMENT = """
[experiment.trial]
unit = "prefix"
share = "100%"
[experiment.trial.arm.cubic]
tcp = "cubic"
[experiment.trial.arm.reno]
tcp = "reno"
"""

POLICIES = {
    "a controller for all": """
[default]
tcp = "reno"
""",
    "an experiment": f"""
key = "000102030405060708090a0b0c0d0e0f"
{EXPERIMENT}
[[rule]]
experiment = "trial"
""",
    "1,000,000 networks": """
[table]
file = "networks.table"
[table.arm.cubic]
tcp = "cubic"
[table.arm.reno]
tcp = "reno"
[[rule]]
table = "all"
""",
    "both": f"""
key = "000102030405060708090a0b0c0d0e0f"
[table]
file = "networks.table"
[table.arm.cubic]
tcp = "cubic"
[table.arm.reno]
tcp = "reno"
{EXPERIMENT}
[[rule]]
table = "all"
[[rule]]
experiment = "trial"
""",
}


def write_table(path: Path, seed: int, version: int, of_v4: int = 800_000) -> list[int]:
    """A million networks: `of_v4` of IPv4, which are all where clients are, the others of IPv6. The result is the
    upper halves of their addresses, as `steer` has them.
    """
    draw = random.Random(seed)
    first = int(CLIENTS.network_address)
    v4 = draw.sample(range(first >> 8, (first >> 8) + (1 << 22)), of_v4)
    v6 = draw.sample(range(1 << 26), NETWORKS - of_v4)
    names = [f"{one >> 16}.{one >> 8 & 255}.{one & 255}.0/24" for one in v4]
    names += [f"2a00:{one >> 16:x}:{one & 0xFFFF:x}::/48" for one in v6]
    arms = draw.choices(["cubic", "reno"], k=len(names))
    head = f"uncork-table 1\nversion {version}\n"
    head += "made 2026-01-01T00:00:00Z\nexpires 2036-01-01T00:00:00Z\nsection all\n"
    body = head + "".join(f"{name} {arm}\n" for name, arm in zip(names, arms, strict=True))
    path.write_text(f"{body}sha256 {hashlib.sha256(body.encode()).hexdigest()}\n")
    return [one << 40 for one in v4] + [0x2A00 << 48 | one << 16 for one in v6]


def enter_network() -> None:
    if LIBC.unshare(CLONE_NEWNET) != 0:
        sys.exit(f"steer_at_scale.py: unshare: {os.strerror(ctypes.get_errno())}")
    for words in ("link set lo up", f"address add {SERVER}/32 dev lo", f"route add local {CLIENTS} dev lo"):
        subprocess.run(["ip", *words.split()], check=True)
    # Connections that have ended must not keep ports.
    Path("/proc/sys/net/ipv4/tcp_max_tw_buckets").write_text("0")


def listener_of(cgroup: Path, port: int) -> socket.socket:
    """Made in the cgroup, by a process that stays outside, so that the other side is not steered."""
    own = Path("/proc/self/cgroup").read_text().split("0::/")[1].strip()
    procs = cgroup.parent / own / "cgroup.procs"
    (cgroup / "cgroup.procs").write_text(str(os.getpid()))
    try:
        return socket.create_server((SERVER, port), backlog=1024)
    finally:
        procs.write_text(str(os.getpid()))


def client_from(draw: random.Random) -> str:
    return str(ipaddress.IPv4Address(int(CLIENTS.network_address) + draw.getrandbits(30)))


# --- cost ---


def send(server: socket.socket, client: socket.socket, size: int) -> None:
    """All of it arrives: the buffers of both sides hold less."""
    left, server_left = size, memoryview(bytes(size))
    server.setblocking(False)
    while left:
        with contextlib.suppress(BlockingIOError):
            server_left = server_left[server.send(server_left) :]
        left -= len(client.recv(1 << 20))


def connect(listener: socket.socket, count: int, at_once: int, draw: random.Random, size: int = 0) -> None:
    address = listener.getsockname()
    for _ in range(count // at_once):
        pairs = []
        for _ in range(at_once):
            client = socket.create_connection(address, 10, (client_from(draw), 0))
            pairs.append((client, listener.accept()[0]))
        for client, server in pairs:
            if size:
                send(server, client, size)
            server.close()
            client.close()


def bpf(command: int, attributes: bytes) -> int:
    buffer = ctypes.create_string_buffer(attributes, len(attributes))
    result = int(LIBC.syscall(321, command, buffer, len(attributes)))
    if result < 0:
        sys.exit(f"steer_at_scale.py: bpf: {os.strerror(ctypes.get_errno())}")
    return result


@contextlib.contextmanager
def empty_program(cgroup: Path) -> Iterator[int]:
    """`return 1` as a program of the cgroup; it asks for changes of state as `steer` does."""
    code = struct.pack("<BBhi", 0x61, 0x12, 0, 0)  # r2 = ops->op
    code += struct.pack("<BBhi", 0x55, 0x02, 2, 5)  # if it is not ACCEPTED, jump
    # bpf_sock_ops_cb_flags_set(ops, BPF_SOCK_OPS_STATE_CB_FLAG)
    code += struct.pack("<BBhi", 0xB7, 0x02, 0, 4) + struct.pack("<BBhi", 0x85, 0, 0, 59)
    # return 1
    code += struct.pack("<BBhi", 0xB7, 0x00, 0, 1) + struct.pack("<BBhi", 0x95, 0, 0, 0)
    instructions = ctypes.create_string_buffer(code, len(code))
    license_text = ctypes.create_string_buffer(b"GPL")
    load = struct.pack("<IIQQIIQII16sII", 13, len(code) // 8, ctypes.addressof(instructions),
                       ctypes.addressof(license_text), 0, 0, 0, 0, 0, b"empty", 0, 3)  # fmt: skip
    program = bpf(5, load)
    directory = os.open(cgroup, os.O_RDONLY)
    link = bpf(28, struct.pack("<IIII", program, directory, 3, 0))
    try:
        yield program
    finally:
        for fd in (link, directory, program):
            os.close(fd)


def cost_of(program: int) -> tuple[int, int]:
    """Nanoseconds and runs of a program, as the kernel counts them (struct bpf_prog_info)."""
    info = ctypes.create_string_buffer(232)
    bpf(15, struct.pack("<IIQ", program, len(info), ctypes.addressof(info)))
    ns, runs = struct.unpack_from("<QQ", info, 192)
    return ns, runs


def steer(uncork: str, *words: str) -> str:
    done = subprocess.run([uncork, "steer", *words], capture_output=True, text=True, check=False)
    if done.returncode != 0:
        sys.exit(f"steer_at_scale.py: uncork steer {words[0]}: {done.stderr.strip()}")
    return done.stdout


def status_of(uncork: str, cgroup: Path) -> dict[str, int]:
    [one] = json.loads(steer(uncork, "status", "--cgroup", str(cgroup), "--format", "json"))["cgroups"]
    return {name: int(one[name]) for name in ("run_ns", "runs", "networks")}


def cost_by_status(uncork: str, cgroup: Path) -> tuple[int, int]:
    status = status_of(uncork, cgroup)
    return status["run_ns"], status["runs"]


def cpu_ns() -> int:
    used = resource.getrusage(resource.RUSAGE_THREAD)
    return int((used.ru_utime + used.ru_stime) * 1e9)


@contextlib.contextmanager
def recorder(uncork: str, files: Path) -> Iterator[None]:
    """Reads the ring of ends, which is full after some 18,000 of them otherwise."""
    command = [uncork, "steer", "record", str(files / "records.jsonl")]
    with subprocess.Popen(command, stdout=subprocess.DEVNULL) as process:
        time.sleep(0.5)
        try:
            yield
        finally:
            process.send_signal(signal.SIGINT)


@contextlib.contextmanager
def program_of(name: str, arguments: argparse.Namespace, cgroup: Path, files: Path) -> Iterator[Callable[[], tuple[int, int]]]:
    """Activates it; yields how to ask for its nanoseconds and runs."""
    if name == "no program":
        yield lambda: (0, 0)
    elif name == "an empty program":
        with empty_program(cgroup) as program:
            yield lambda: cost_of(program)
    else:
        policy = name.removesuffix(RECORDED)
        steer(arguments.uncork, "apply", str(files / f"{policy}.toml"), "--cgroup", str(cgroup))
        try:
            with recorder(arguments.uncork, files) if name != policy else contextlib.nullcontext():
                yield lambda: cost_by_status(arguments.uncork, cgroup)
        finally:
            steer(arguments.uncork, "revert", "--cgroup", str(cgroup))


def cost(arguments: argparse.Namespace, cgroup: Path, files: Path) -> None:
    if arguments.bytes:
        subprocess.run(["ip", "link", "set", "lo", "mtu", "1500"], check=True)
    write_table(files / "networks.table", 1, 1)
    for name, text in POLICIES.items():
        (files / f"{name}.toml").write_text(text)
    policies = arguments.policy or [name + end for name in POLICIES for end in ("", RECORDED)]
    names = ["no program", "an empty program", *policies]
    listener = listener_of(cgroup, 8080)
    statistics_of: dict[str, list[tuple[float, float]]] = {name: [] for name in names}
    times: dict[str, list[float]] = {name: [] for name in names}
    draw = random.Random(2)
    was = STATISTICS.read_text()
    try:
        for number in range(arguments.rounds):
            # Each begins as often as the others.
            for name in names[number % len(names) :] + names[: number % len(names)]:
                with program_of(name, arguments, cgroup, files) as ask:
                    count, size = arguments.connections, arguments.bytes
                    connect(listener, arguments.at_once, arguments.at_once, draw, size)
                    STATISTICS.write_text("0")
                    began = cpu_ns()
                    connect(listener, count, arguments.at_once, draw, size)
                    times[name].append((cpu_ns() - began) / count)
                    STATISTICS.write_text("1")
                    before = ask()
                    connect(listener, count, arguments.at_once, draw, size)
                    after = ask()
                    spent, times_run = (now - then for now, then in zip(after, before, strict=True))
                    statistics_of[name].append((spent / count, times_run / count))
    finally:
        STATISTICS.write_text(was)
    none = statistics.median(times["no program"])
    print(f"{arguments.rounds} rounds of {arguments.connections} connections, {arguments.at_once} at once")
    print(f"no program: {none / 1e3:.1f} us of CPU time per connection, both sides\n")
    columns = [
        "runs",
        "ns by the statistics",
        "range",
        "without what they add",
        "ns of CPU time more than with none",
    ]
    print(f"| | {' | '.join(columns)} |\n|{'---|' * 6}")
    empty = statistics.median(ns / runs for ns, runs in statistics_of["an empty program"])
    for name in names[1:]:
        each = [ns for ns, _ in statistics_of[name]]
        runs = statistics.median(runs for _, runs in statistics_of[name])
        middle = statistics.median(each)
        pairs = zip(times[name], times["no program"], strict=True)
        more = statistics.median(mine - bare for mine, bare in pairs)
        spread = f"{min(each):.0f}–{max(each):.0f}"
        print(f"| {name} | {runs:.1f} | {middle:.0f} | {spread} | {middle - empty * runs:.0f} | {more:.0f} |")


# --- record ---


def record(arguments: argparse.Namespace, cgroup: Path, files: Path) -> None:
    policy = "an experiment"
    (files / f"{policy}.toml").write_text(POLICIES[policy])
    listener = listener_of(cgroup, 8080)
    with program_of(policy + RECORDED, arguments, cgroup, files):
        began = time.monotonic()
        connect(listener, arguments.connections, arguments.at_once, random.Random(3))
        took = time.monotonic() - began
        time.sleep(1)
    records = (files / "records.jsonl").read_bytes().count(b"\n")
    count = arguments.connections
    print(f"{count} connections in {took:.1f} s, {count / took:.0f} per second: {records} records")
    if records != count:
        sys.exit("steer_at_scale.py: connections without a record")


# --- look-up ---

PINS = Path("/sys/fs/bpf")
# As in look_up.bpf.c.
TIMES = 256
WORK = struct.Struct("<9I")


def bpftool(*words: str | Path) -> Any:
    done = subprocess.run(["bpftool", "--json", *words], capture_output=True, text=True, check=False)
    if done.returncode != 0:
        why = (done.stderr or done.stdout).strip()[-1_000:]
        sys.exit(f"steer_at_scale.py: bpftool {' '.join(map(str, words))}: {why}")
    return json.loads(done.stdout or "null")


def load_look_up(files: Path) -> None:
    """The program, with the tables of the active policy; pinned, as its addresses are."""
    clang = next(filter(None, map(shutil.which, ("clang-22", "clang"))), None)
    if clang is None or shutil.which("bpftool") is None:
        sys.exit("steer_at_scale.py: look-up needs clang and bpftool; apt-get install clang bpftool")
    source, compiled = Path(__file__).with_name("look_up.bpf.c"), files / "look_up.bpf.o"
    options = ["-target", "bpf", "-mcpu=v3", "-O2", "-g"]
    subprocess.run([clang, *options, "-c", source, "-o", compiled], check=True)
    [program] = PINS.glob("*/steer/*/*/program")
    words: list[str] = []
    for number in bpftool("prog", "show", "pinned", program)["map_ids"]:
        name = bpftool("map", "show", "id", str(number))["name"]
        words += ["map", "name", name, "id", str(number)] if name in ("heads", "lines") else []
    bpftool("prog", "loadall", compiled, PINS / "look-up", *words, "pinmaps", PINS / "look-up-maps")


def write_addresses(addresses: list[int]) -> None:
    path = ctypes.create_string_buffer(bytes(PINS / "look-up-maps/addresses"))
    pinned = bpf(7, struct.pack("<QII", ctypes.addressof(path), 0, 0))
    with mmap.mmap(pinned, 8 << 20) as memory:
        memory[: 8 * len(addresses)] = struct.pack(f"<{len(addresses)}Q", *addresses)
    os.close(pinned)


def nanoseconds(files: Path, runs: int, *work: int) -> float:
    """Of one address. `work`: as in look_up.bpf.c, up to `waits`."""
    packet, after = files / "packet", files / "after"
    packet.write_bytes(WORK.pack(*work, 0, 0, 0))
    words: list[str | Path] = ["data_in", packet, "data_out", after, "repeat", str(runs)]
    took = bpftool("prog", "run", "pinned", PINS / "look-up/look_up", *words)["duration"]
    if WORK.unpack(after.read_bytes()[: WORK.size])[-1] != runs * TIMES:
        sys.exit("steer_at_scale.py: not all addresses have a network")
    return float(took) / TIMES


def look_up(arguments: argparse.Namespace, cgroup: Path, files: Path) -> None:
    half = NETWORKS // 2
    addresses = write_table(files / "networks.table", 1, 1, of_v4=half)
    (files / "table.toml").write_text(POLICIES["1,000,000 networks"])
    steer(arguments.uncork, "apply", str(files / "table.toml"), "--cgroup", str(cgroup))
    try:
        load_look_up(files)
        write_addresses(addresses)
        print("| | addresses in turn | ns | range | each begins when the one before is done | range |")
        print(f"|{'---|' * 6}")
        for family, count in itertools.product((0, 1), (4_096, half)):
            cells = []
            for waits in (False, True):
                each = []
                for _ in range(arguments.rounds):
                    work = (family * half, count, 0, family)
                    whole = nanoseconds(files, arguments.runs, *work, True, waits)
                    each.append(whole - nanoseconds(files, arguments.runs, *work, False, waits))
                cells += [f"{statistics.median(each):.0f}", f"{min(each):.0f}–{max(each):.0f}"]
            print(f"| {('IPv4', 'IPv6')[family]} | {count:,} | {' | '.join(cells)} |", flush=True)
    finally:
        steer(arguments.uncork, "revert", "--cgroup", str(cgroup))


# --- exchange ---


def ask_until(stop: Event, port: int, seed: int, results: multiprocessing.Queue[Counter[str]]) -> None:
    draw, seen = random.Random(seed), Counter[str]()
    while not stop.is_set():
        try:
            with socket.create_connection((SERVER, port), 30, (client_from(draw), 0)) as client:
                seen[client.recv(100).decode() or "ended without an answer"] += 1
        except OSError as error:
            seen[f"lost: {error}"] += 1
    results.put(seen)


def serve(listener: socket.socket) -> None:
    signal.signal(signal.SIGTERM, signal.SIG_DFL)
    while True:
        connection, _ = listener.accept()
        controller = connection.getsockopt(socket.IPPROTO_TCP, 13, 16).split(b"\0")[0].decode()
        cap = int.from_bytes(connection.getsockopt(socket.SOL_SOCKET, 47, 8), "little")
        connection.sendall(f"{controller} {cap}".encode())
        connection.close()


def exchange(arguments: argparse.Namespace, cgroup: Path, files: Path) -> None:
    caps = ["80mbit", "160mbit"]
    for number, cap in enumerate(caps):
        write_table(files / f"{number}.table", number, number + 1)
        settings = {arm: f'tcp = "{arm}"\npacing_cap = "{cap}"\n' for arm in ("cubic", "reno")}
        arms = "".join(f"[table.arm.{arm}]\n{text}" for arm, text in settings.items())
        table = f'[table]\nfile = "{number}.table"\n{arms}[[rule]]\ntable = "all"\n'
        (files / f"{number}.toml").write_text(f"[default]\n{settings['cubic']}{table}")
    put = ["apply", "--cgroup", str(cgroup)]
    steer(arguments.uncork, *put, str(files / "0.toml"))
    listener = listener_of(cgroup, 8080)
    context = multiprocessing.get_context("fork")
    stop, results = context.Event(), context.Queue()
    server = context.Process(target=serve, args=(listener,), daemon=True)
    clients = [context.Process(target=ask_until, args=(stop, 8080, seed, results)) for seed in range(2)]
    for process in (server, *clients):
        process.start()
    took, cpu = [], []
    try:
        for number in range(arguments.exchanges):
            before, began = resource.getrusage(resource.RUSAGE_CHILDREN), time.monotonic()
            steer(arguments.uncork, *put, str(files / f"{(number + 1) % 2}.toml"))
            after = resource.getrusage(resource.RUSAGE_CHILDREN)
            took.append(time.monotonic() - began)
            cpu.append(after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime)
    finally:
        stop.set()
    seen = Counter[str]()
    for _ in clients:
        seen += results.get(timeout=60)
    status = status_of(arguments.uncork, cgroup)
    for process in clients:
        process.join()
    server.terminate()
    steer(arguments.uncork, "revert", "--cgroup", str(cgroup))
    middle, each_cpu = statistics.median(took), statistics.median(cpu)
    print(f"{arguments.exchanges} exchanges in {sum(took):.0f} s, {status['networks']} networks")
    print(f"median {middle:.2f} s, longest {max(took):.2f} s, {each_cpu:.2f} s of CPU time")
    for what, count in sorted(seen.items()):
        print(f"{count:8} {what}")
    right = {f"{arm} {cap}" for arm in ("cubic", "reno") for cap in (10_000_000, 20_000_000)}
    if set(seen) != right:
        sys.exit("steer_at_scale.py: a connection was lost, or had the settings of no policy")


def main() -> None:
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--uncork", required=True, help="the program")
    what = parser.add_subparsers(required=True)
    one = what.add_parser("cost")
    one.set_defaults(run=cost)
    one.add_argument("--rounds", type=int, default=5)
    one.add_argument("--connections", type=int, default=10_000, help="in each round")
    one.add_argument("--at-once", type=int, default=500, help="how many of them are open at once")
    one.add_argument("--bytes", type=int, default=0, help="that each sends [default: 0]")
    one.add_argument("--policy", action="append", help="only this one (repeatable)")
    second = what.add_parser("record")
    second.set_defaults(run=record)
    second.add_argument("--connections", type=int, default=200_000)
    second.add_argument("--at-once", type=int, default=500, help="how many of them are open at once")
    third = what.add_parser("look-up")
    third.set_defaults(run=look_up)
    third.add_argument("--rounds", type=int, default=9)
    third.add_argument("--runs", type=int, default=20_000, help=f"in each round, {TIMES} look-ups each")
    other = what.add_parser("exchange")
    other.set_defaults(run=exchange)
    other.add_argument("--exchanges", type=int, default=100)
    arguments = parser.parse_args()
    arguments.uncork = os.path.abspath(arguments.uncork)
    own_mounts.enter()
    # What was created is removed then, too.
    signal.signal(signal.SIGTERM, lambda *_: sys.exit("steer_at_scale.py: ended"))
    enter_network()
    with group() as cgroup, tempfile.TemporaryDirectory() as files:
        arguments.run(arguments, cgroup, Path(files))


if __name__ == "__main__":
    main()
