#!/usr/bin/env python3
"""Compares the emulator with others: carried share of a set rate, delay, and cost.

    crates/lab/emu/compare/compare.py --rates 1,20,100 --repeat 3

Runs every tool that is installed (`uncork`, `rattan`, mahimahi's `mm-delay` and `mm-link`, `tc` with tbf),
one after the other at each rate, and that again for each repetition, so that what else the machine does
meets all of them. Says which are missing; installs and downloads nothing. Needs root, and touches no
network but that of its own namespaces. Python's standard library is all it uses.

What is the same for all: the way from server to client has the rate and a drop-tail queue of a BDP or 100
packets; each way takes 10 ms (tbf has no delay). On the idle path the server sends datagrams of 128 bytes,
each with its time of sending. The kernel stamps their arrival. What they take beyond delay and transmission
is how late they are. Then a TCP flow (CUBIC) fills the path: 1500 bytes of IP for each 1448 of payload, over
the time measured. CPU time is that of the tool's processes, and of these and both endpoints: what the kernel
does for a tool in an endpoint's system calls shows only in the second figure.

`uncork` gives itself real-time priority, the others do not: on a busy machine that decides. Compare within
one run only, and on a machine with nothing else to do.
"""

import argparse
import contextlib
import json
import os
import pathlib
import random
import shutil
import socket
import statistics
import struct
import subprocess
import sys
import tempfile
import threading
import time

DELAY_MS = 10
PORT = 5201
PROBES, INTERVAL_S, PROBE_BYTES = 300, 0.005, 100
PROBE_IP_BYTES = PROBE_BYTES + 28
WARMUP_S, MEASURED_S = 2.0, 3.0
# Offered by the benchmarking range of RFC 2544, as the emulator's own are.
TBF_SERVER, TBF_CLIENT = "198.18.0.1", "198.19.0.1"
SCRIPT = str(pathlib.Path(__file__).resolve())
# Not a shim of the user's, which others could not run.
PYTHON = os.path.realpath("/usr/bin/python3") if os.path.exists("/usr/bin/python3") else sys.executable
SO_TIMESTAMPNS = 35
WINDOW = "4096 1000000 67108864"


# The endpoints, which run in the tools' namespaces.


def serve():
    """Answers a datagram with probes, and each TCP connection with bytes until it is closed."""
    probes = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
    probes.bind(("", PORT))
    threading.Thread(target=send_probes, args=(probes,), daemon=True).start()
    listener = socket.create_server(("", PORT))
    print("listening", file=sys.stderr, flush=True)
    block = bytes(1 << 18)
    while True:
        connection, _ = listener.accept()
        connection.setsockopt(socket.IPPROTO_TCP, socket.TCP_CONGESTION, b"cubic")
        with contextlib.suppress(ConnectionError), connection:
            while True:
                connection.sendall(block)


def send_probes(probes):
    while True:
        _, client = probes.recvfrom(100)
        due = time.monotonic()
        for number in range(PROBES):
            # Not in step with any timer of a tool's.
            due += INTERVAL_S * random.uniform(0.5, 1.5)
            time.sleep(max(0.0, due - time.monotonic()))
            sent = time.clock_gettime_ns(time.CLOCK_REALTIME)
            probes.sendto(struct.pack("!Iq", number, sent).ljust(PROBE_BYTES), client)


def measure(rate_mbit, delay_ms):
    """The client. Prints what it saw."""
    await_preparation()
    address = os.environ.get("COMPARE_SERVER") or next(
        os.environ[name] for name in ("UNCORK_FAR", "RATTAN_BASE", "MAHIMAHI_BASE") if name in os.environ
    )
    late = lateness_ms(address, rate_mbit, delay_ms)
    print(json.dumps({"lateness_ms": late, **load(address)}), flush=True)


def lateness_ms(address, rate_mbit, delay_ms):
    due_ms = delay_ms + PROBE_IP_BYTES * 8 / (rate_mbit * 1e3)
    late = []
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as probes:
        probes.setsockopt(socket.SOL_SOCKET, SO_TIMESTAMPNS, 1)
        probes.settimeout(1.0)
        probes.sendto(b"go", (address, PORT))
        with contextlib.suppress(TimeoutError):
            while len(late) < PROBES:
                data, ancillary, _, _ = probes.recvmsg(200, 200)
                _, sent = struct.unpack_from("!Iq", data)
                seconds, nanoseconds = struct.unpack("qq", ancillary[0][2])
                late.append((seconds * 10**9 + nanoseconds - sent) / 1e6 - due_ms)
    return late


def load(address):
    with socket.create_connection((address, PORT), timeout=10) as stream:
        begin = time.monotonic()
        last = begin
        while last - begin < WARMUP_S and stream.recv(1 << 18):
            last = time.monotonic()
        start, count, before = last, 0, cpu_s()
        while last - start < MEASURED_S:
            count += len(stream.recv(1 << 18))
            last = time.monotonic()
        after = cpu_s()
    ip_bytes = count * 1500 / 1448
    cost = {name: after[name] - before[name] for name in after}
    return {"mbit": 8 * ip_bytes / (last - start) / 1e6, "bytes": ip_bytes, "cpu_s": cost}


def cpu_s():
    """CPU time of the tool and of the endpoints: everything below the process of COMPARE_ROOT."""
    processes = {}
    for stat in pathlib.Path("/proc").glob("[0-9]*/stat"):
        with contextlib.suppress(OSError):
            name, rest = stat.read_text().split("(", 1)[1].rsplit(")", 1)
            fields = rest.split()
            processes[int(stat.parent.name)] = (int(fields[1]), sum(map(int, fields[11:13])), name)
    spent = {"tool": 0.0, "endpoints": 0.0}
    for pid, (_, ticks, name) in processes.items():
        if is_below(pid, processes):
            # No tool is written in Python.
            side = "endpoints" if name.startswith("python") else "tool"
            spent[side] += ticks / os.sysconf("SC_CLK_TCK")
    return spent


def is_below(pid, processes):
    root = int(os.environ["COMPARE_ROOT"])
    while pid in processes and pid != root:
        pid = processes[pid][0]
        if pid == root:
            return True
    return False


def await_preparation():
    """Lets the comparison, which has the rights, prepare the namespace that this runs in."""
    print(json.dumps({"prepare": os.getpid()}), flush=True)
    sys.stdin.readline()


# The tools.


def packets(rate_mbit):
    """Those of a queue of one BDP."""
    return max(100, round(rate_mbit * 1e3 * 2 * DELAY_MS / 12_000))


def client(rate_mbit, delay_ms):
    return [PYTHON, SCRIPT, "measure", str(rate_mbit), str(delay_ms)]


def uncork(rate, _scratch):
    options = f"-q --rate {rate}mbit --delay {DELAY_MS}ms --buffer {packets(rate)}p"
    server = f"exec {PYTHON} {SCRIPT} serve"
    return ["uncork", "emu", *options.split(), "--server", server, "--", *client(rate, DELAY_MS)], None


def uncork_busy(rate, scratch):
    command, server = uncork(rate, scratch)
    return [*command[:2], "--busy-wait", *command[2:]], server


def rattan(rate, _scratch):
    queue = json.dumps({"packet_limit": packets(rate)})
    options = ["--downlink-bandwidth", f"{rate}Mbps", "--downlink-queue", "droptail"]
    options += ["--downlink-queue-args", queue, "--downlink-delay", f"{DELAY_MS}ms"]
    options += ["--uplink-delay", f"{DELAY_MS}ms"]
    return ["rattan", "link", *options, "--", *client(rate, DELAY_MS)], serving()


def mahimahi(rate, scratch):
    up, down = trace(scratch, 100), trace(scratch, rate)
    queue = ["--downlink-queue=droptail", f"--downlink-queue-args=packets={packets(rate)}"]
    link = [shutil.which("mm-link"), *queue, up, down, "--", *client(rate, DELAY_MS)]
    delay = [shutil.which("mm-delay"), str(DELAY_MS), PYTHON, SCRIPT, "enter", *link]
    # It refuses to be run by root.
    return ["setpriv", "--reuid=65534", "--regid=65534", "--clear-groups", *delay], serving()


def trace(scratch, rate_mbit):
    """Opportunities of 1500 bytes in 12 ms, which is as many as Mbit/s."""
    path = scratch / f"{rate_mbit}.trace"
    path.write_text("".join(f"{-(-12 * n // rate_mbit)}\n" for n in range(1, rate_mbit + 1)))
    return str(path)


def tbf(rate, _scratch):
    far = ["nsenter", "--net=/run/netns/far"]
    run("ip netns add far")
    run("ip link add near0 type veth peer name far0 netns far")
    # Packets, not what they are segmented from, as the others have them.
    for where, device, address, route in (
        ([], "near0", TBF_CLIENT, TBF_SERVER),
        (far, "far0", TBF_SERVER, TBF_CLIENT),
    ):
        run(f"ip link set {device} up gso_max_segs 1", where)
        run(f"ip address add {address} dev {device}", where)
        run(f"ip route add {route} dev {device}", where)
    # It counts the 14 bytes of Ethernet, too: the rate is that of full packets of 1500 bytes.
    bits = round(rate * 1e6 * 1514 / 1500)
    burst = max(3028, rate * 1000 // 8)
    run(f"tc qdisc add dev far0 root tbf rate {bits} burst {burst} limit {packets(rate) * 1514}", far)
    widen(far)
    os.environ["COMPARE_SERVER"] = TBF_SERVER
    return client(rate, 0), serving(far)


TOOLS = {
    "uncork": (uncork, ["uncork"], DELAY_MS),
    "uncork --busy-wait": (uncork_busy, ["uncork"], DELAY_MS),
    "rattan": (rattan, ["rattan"], DELAY_MS),
    "mahimahi": (mahimahi, ["mm-link", "mm-delay", "setpriv"], DELAY_MS),
    "tc tbf": (tbf, ["tc"], 0),
}


def serving(where=()):
    return subprocess.Popen([*where, PYTHON, SCRIPT, "serve"], stderr=subprocess.PIPE, text=True)


def run(line, where=()):
    subprocess.run([*where, *line.split()], check=True)


def widen(where=()):
    """Windows that do not bind at a gigabit per second, and what mahimahi wants."""
    for setting in (f"tcp_rmem={WINDOW}", f"tcp_wmem={WINDOW}", "ip_forward=1"):
        subprocess.run([*where, "sysctl", "-qw", f"net.ipv4.{setting}"], check=True)


# One run, in namespaces of its own, and all of them.


def play(tool, rate):
    """One run. This process has network and mounts of its own (`unshare`), which end with it."""
    os.environ["COMPARE_ROOT"] = str(os.getpid())
    run("mount -t tmpfs uncork-compare /run")
    run("ip link set lo up")
    widen()
    with tempfile.TemporaryDirectory() as scratch:
        os.chmod(scratch, 0o755)
        command, server = TOOLS[tool][0](rate, pathlib.Path(scratch))
        if server:
            server.stderr.readline()
        process = subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)
        try:
            print(json.dumps(converse(process)))
        finally:
            process.stdin.close()
            with contextlib.suppress(subprocess.TimeoutExpired):
                process.wait(10)
            for left in filter(None, (process, server)):
                left.kill()
                left.wait()


def converse(process):
    for line in process.stdout:
        if not line.startswith("{"):
            continue  # Rattan's log
        said = json.loads(line)
        if "prepare" not in said:
            return said
        widen(["nsenter", f"--net=/proc/{said['prepare']}/ns/net"])
        process.stdin.write("\n")
        process.stdin.flush()
    raise SystemExit("it ended without a result")


def one(tool, rate):
    command = ["unshare", "--net", "--mount", PYTHON, SCRIPT, "play", tool, str(rate)]
    try:
        done = subprocess.run(command, capture_output=True, text=True, timeout=60)
    except subprocess.TimeoutExpired:
        return None, "no result after 60 s"
    if done.returncode:
        return None, done.stderr.strip()[-500:]
    return json.loads(done.stdout), None


def quantile(values, share):
    values = sorted(values)
    return values[min(len(values) - 1, int(share * len(values)))] if values else float("nan")


def figures(result, rate):
    gigabytes = result["bytes"] / 1e9
    cpu = result["cpu_s"]
    return {
        "of set %": 100 * result["mbit"] / rate,
        "late p50 ms": quantile(result["lateness_ms"], 0.5),
        "late p99 ms": quantile(result["lateness_ms"], 0.99),
        "CPU s/GB tool": cpu["tool"] / gigabytes,
        "CPU s/GB all": (cpu["tool"] + cpu["endpoints"]) / gigabytes,
        "probes": len(result["lateness_ms"]),
    }


DECIMALS = {"of set %": 1, "late p50 ms": 2, "late p99 ms": 2}


def spread(name, values):
    """The median, smallest and largest, with as many digits as mean something: CPU time is in ticks."""

    def shown(value):
        text = f"{value:.{DECIMALS[name]}f}" if name in DECIMALS else f"{float(f'{value:.2g}'):g}"
        return text.replace("-0.00", "0.00").replace("-", "−")

    least, most = shown(min(values)), shown(max(values))
    return f"{shown(statistics.median(values))} ({least}{' to ' if '−' in least else '–'}{most})"


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawTextHelpFormatter)
    parser.add_argument("--rates", default="1,20,100,500,1000", help="Mbit/s, whole numbers")
    parser.add_argument("--repeat", type=int, default=3)
    parser.add_argument("--tools", default=",".join(TOOLS))
    given = parser.parse_args()
    if os.geteuid() != 0:
        raise SystemExit("network namespaces, tc and real-time priority need root")
    tools = []
    for tool in given.tools.split(","):
        missing = [name for name in TOOLS[tool][1] if not shutil.which(name)]
        print(f"{tool}: {'NOT COMPARED, missing: ' + ', '.join(missing) if missing else 'compared'}")
        tools += [] if missing else [tool]
    rates = [int(rate) for rate in given.rates.split(",")]
    results = {(rate, tool): [] for rate in rates for tool in tools}
    loads = []
    for _ in range(given.repeat):
        for rate, tool in results:
            result, error = one(tool, rate)
            loads.append(os.getloadavg()[0])
            if error:
                print(f"FAILED: {tool} at {rate} Mbit/s: {error}", flush=True)
            else:
                results[rate, tool].append(figures(result, rate))
                line = ", ".join(f"{name} {value:.4g}" for name, value in results[rate, tool][-1].items())
                print(f"# {rate} {tool}: {line}, load {loads[-1]:.1f}", file=sys.stderr, flush=True)
    print(f"\n{os.cpu_count()} cores, Linux {os.uname().release}, load {min(loads):.1f} to {max(loads):.1f}\n")
    names = ["of set %", "late p50 ms", "late p99 ms", "CPU s/GB tool", "CPU s/GB all"]
    print(f"| Mbit/s | tool | {' | '.join(names)} |\n|---:|---|{'---:|' * len(names)}")
    for (rate, tool), runs in results.items():
        cells = [spread(name, [run[name] for run in runs]) if runs else "–" for name in names]
        print(f"| {rate} | {tool} | {' | '.join(cells)} |")


if __name__ == "__main__":
    match sys.argv[1:]:
        case ["serve"]:
            serve()
        case ["measure", rate, delay_ms]:
            measure(int(rate), int(delay_ms))
        case ["enter", *command]:
            await_preparation()
            os.execv(command[0], command)
        case ["play", tool, rate]:
            play(tool, int(rate))
        case _:
            main()
