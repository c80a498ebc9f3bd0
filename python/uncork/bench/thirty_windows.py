"""Thirty networks with paths of their own, a real server, and the initial window that each should have.

    python bench/thirty_windows.py -o windows
    python bench/thirty_windows.py -o windows --http 3

`uncork emu` gives each network a path of 5 to 500 Mbit/s and 20 to 300 ms. Some carry a first flight of 64
packets, some one of 20 or 40, and some are slow with a queue of a few packets. Objects have 100 kB. Each
network is an AS of 250 client networks: steer decides before the request. `uncork learn` gets records only:

- HTTP/1.1: unmodified nginx with `uncork steer`; its log, joined with the records of `uncork steer record`.
- HTTP/2: `uncork serve` with `uncork steer`, and HTTP/3: `uncork serve`; the records of `serve`.

1. What is right is measured: requests with each window over the same paths. Right is the window with the
   least median time, among windows that resend at most 2 points more than ten packets, in all and in the
   first two round trips, as the guardrails of `learn` ask for; so is one within 2 % of it.
2. An experiment: requests with windows of 10, 20, 40 and 64 packets at random.
3. `uncork experiment import --join` (nginx), `uncork learn plan` and `apply`, and the server gets the table.
4. Requests again, which get what was learned.

It needs root, /dev/net/tun, vxlan, curl, nginx, BPF, cgroups of version 2 and `pip install mmdb_writer`. All
traffic stays in the namespaces; what was started is ended, also after Ctrl-C.

Exit status: 0 at least 28 networks have a right window; 1 fewer; 3 not possible on this machine.
"""

from __future__ import annotations

import argparse
import csv
import itertools
import os
import random
import shutil
import statistics
import subprocess
import sys
import time
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from contextlib import ExitStack
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from live import (
    HOSTS,
    Processes,
    carried_out,
    hosts_of,
    say,
    start_server,
    warn_if_late,
    what_is_missing,
)
from thirty import (
    KEY,
    POINTS,
    PORT,
    Network,
    entries_of,
    records_of,
    scenario,
    tunnels,
    wait,
    write_result,
)
from thirty_servers import SERVER, NginxAndSteer, inside, nginx_is_missing, records_file, with_own_pins

WINDOWS = (10, 20, 40, 64)
ORACLE_PORTS = {f"w{window}": PORT + 1 + at for at, window in enumerate(WINDOWS)}
SIZE = 100_000
RIGHT = 28
NEAR = 1.02
"""A window is right if its median is at most this times the least."""
LIMIT_SECONDS = 1_500
TRANSFER_SECONDS = 30


def use(window: int) -> str:
    return f'tcp = "cubic"\ninitial_window = "{window}p"\n'


EXPERIMENT = f"""key = "{KEY}"

[experiment.explore]
unit = "prefix"
share = "100%"

{"".join(f"[experiment.explore.arm.w{window}]{chr(10)}{use(window)}{chr(10)}" for window in WINDOWS)}
[[rule]]
experiment = "explore"
"""
ORACLE = "".join(
    f'[[rule]]\nlistener = "w{window}"\nuse = {{ tcp = "cubic", initial_window = "{window}p" }}\n\n'
    for window in WINDOWS
)


FIELDS = {
    "time": "msec",
    "request_time": "request_time",
    "remote_addr": "remote_addr",
    "remote_port": "remote_port",
    "method": "request_method",
    "status": "status",
    "body_bytes_sent": "body_bytes_sent",
    "content_length": "sent_http_content_length",
    "completed": "request_completion",
}
LOG_FIELDS = ",".join(f'"{name}":"${variable}"' for name, variable in FIELDS.items())
LOG = f"log_format uncork escape=json '{{{LOG_FIELDS}}}'; access_log access.log uncork;"


@dataclass(frozen=True)
class Request:
    """One response, as the client saw it."""

    port: int
    seconds: float
    """From the request to its last byte."""


class Nginx(NginxAndSteer):
    """nginx with the log of docs/howto/import-your-records.md, and records with ports to join it."""

    size, section = SIZE, "small"
    learning = ("--random", "30%", "--unit", "prefix", "--only", "small", "--site", "none")
    log = LOG
    recording = ("--client-ports",)

    def requests(self, out: Path, network: int, ports: Sequence[int], users: Sequence[int]) -> list[str]:
        """What asks these ports, one after the other: curl, each time as another user."""
        parts = [
            f'url = "http://{SERVER}:{port}/page"\noutput = "/dev/null"\nsilent\n'
            f"{self.client(network, user)}"
            f'header = "Connection: close"\nmax-time = {TRANSFER_SECONDS}\n'
            f'write-out = "{port} %{{http_code}} %{{time_pretransfer}} %{{time_total}}\\n"\n'
            for port, user in zip(ports, users, strict=True)
        ]
        (out / f"{network}.curl").write_text("next\n".join(parts))
        return ["curl", "--config", str(out / f"{network}.curl")]

    def arrived(self, lines: list[str]) -> Iterator[Request]:
        """Of what the clients printed."""
        for line in lines:
            port, status, sent, ended = line.split()
            if status == "200":
                yield Request(int(port), float(ended) - float(sent))

    def evidence(self) -> Path:
        """Records of responses."""
        command = [sys.executable, "-m", "uncork", "experiment", "import", str(self.work / "access.log")]
        command += ["--mapping", "nginx", "--join", str(self.work / "records-public")]
        command += ["-o", str(self.work / "joined"), "--rejected", str(self.work / "rejected.jsonl")]
        subprocess.run(command, check=True, timeout=300)
        return self.work / "joined"


# A route says which address the client has: none of its options does.
PLAY = """while read -r address urls; do
    ip route replace {server} via {gateway} src "$address"
    {uncork} play get $urls --http {http} --insecure --quiet --format csv --timeout {limit}s
done <{users}
"""
TOGETHER = 4
"""Requests that a user makes, each over a new connection."""


class Serve(Nginx):
    """`uncork serve` with TLS. Over HTTP/2 the same policy is applied to its cgroup, too, for the windows."""

    def __init__(self, uncork: str, work: Path, ports: Mapping[str, int], http: str) -> None:
        super().__init__(uncork, work, ports)
        self.http = http

    def start(self, processes: Processes, far: str, near: Mapping[int, dict[str, Any]]) -> None:
        self.prepare(processes, far, near)
        if self.http == "2":
            processes.after(lambda: self._steer("revert"))

    def enforce(self, processes: Processes, policy: Path, **listeners: int) -> None:
        if self.http == "2":
            self.apply(policy)
        command = self.in_cgroup(self.uncork, "serve", "--root", str(self.work / "public"), "--self-signed")
        command += ["--policy", str(policy), "--geo", str(self.origins)]
        command += ["--records", str(records_file(self.work, listeners))]
        for listener, port in listeners.items():
            command += ["--listen", f"{listener}@{SERVER}:{port}"]
        start_server(processes, command, self.work / f"serve-{time.time_ns()}.txt", 2 * len(listeners))

    def requests(self, out: Path, network: int, ports: Sequence[int], users: Sequence[int]) -> list[str]:
        lines = []
        for at in range(0, len(ports), TOGETHER):
            urls = " ".join(f"https://{SERVER}:{port}/page" for port in ports[at : at + TOGETHER])
            lines.append(f"{self.address(network, users[at] // TOGETHER)} {urls}\n")
        (out / f"{network}.users").write_text("".join(lines))
        names = {"server": SERVER, "gateway": f"100.64.{network}.1", "uncork": self.uncork}
        names |= {"http": self.http, "limit": str(TRANSFER_SECONDS), "users": str(out / f"{network}.users")}
        return ["sh", "-c", PLAY.format(**names)]

    def arrived(self, lines: list[str]) -> Iterator[Request]:
        for row in csv.DictReader(lines):
            # Each process prints the names of the columns.
            if row["status"] == "200":
                before = float(row["connect_ms"]) + float(row["tls_ms"] or 0)
                yield Request(
                    int(row["url"].split(":")[2].split("/")[0]), float(row["time_s"]) - before / 1e3
                )

    def evidence(self) -> Path:
        return self.work / "records-public"


def networks() -> list[Network]:
    """Sixteen carry any first flight, seven have a short queue, seven are slow with a very short one."""
    rng, found = random.Random(42), []
    for number in range(30):
        kind = "ample" if number < 16 else "short queue" if number < 23 else "slow"
        rtt = 20 * 15 ** rng.random()
        if kind == "ample":
            rate, queue = 20 * 25 ** rng.random(), 200
        elif kind == "short queue":
            rate, rtt, queue = rng.uniform(8, 16), rng.uniform(40, 90), rng.randrange(15, 26)
        else:
            rate, rtt, queue = rng.uniform(5, 7), rng.uniform(20, 60), rng.randrange(6, 11)
        lines = [f'rtt = "{rtt:.0f}ms"', f'rate = "{rate:.1f}mbit"', f'buffer = "{queue}p"']
        found.append(Network(number, kind, "\n".join(lines)))
    return found


def load(
    processes: Processes,
    server: Nginx,
    near: dict[int, dict[str, Any]],
    ports: Sequence[int],
    users: Iterator[int],
    out: Path,
) -> list[subprocess.Popen[bytes]]:
    """Each network's clients ask these ports, one after the other; all networks at once."""
    out.mkdir()
    started = []
    # All networks have as many users.
    nths = [next(users) for _ in ports]
    for number, host in near.items():
        command = server.requests(out, number, ports, nths)
        started.append(processes.start(inside(host["name"], *command), out=out / f"{number}.txt"))
    return started


def medians(server: Nginx, directory: Path, number: int) -> dict[int, float]:
    """Seconds by port, of what arrived."""
    found: dict[int, list[float]] = {}
    for one in server.arrived((directory / f"{number}.txt").read_text().splitlines()):
        found.setdefault(one.port, []).append(one.seconds)
    return {port: statistics.median(seconds) for port, seconds in found.items()}


def oracle(work: Path, server: Nginx, some: Sequence[Network]) -> dict[str, dict[str, Any]]:
    """What each network got from each window, and which are right."""
    sums: dict[tuple[str, str], Counter[str]] = {}
    for record in records_of(work / f"records-{'+'.join(ORACLE_PORTS)}"):
        if record["service"]["scope"] == "connection":
            at = server.entry_of(record), record["service"]["listener"]
            sums.setdefault(at, Counter()).update(resent_of(record))
    found = {}
    for one in some:
        name, by_port = server.entry(one.number), medians(server, work / "oracle", one.number)
        median = {arm: by_port[port] for arm, port in ORACLE_PORTS.items()}
        again, early = (
            {arm: sums[name, arm][part] / max(sums[name, arm][whole], 1) for arm in ORACLE_PORTS}
            for part, whole in (("resent", "sent"), ("early_resent", "early_sent"))
        )
        kept = [arm for arm in ORACLE_PORTS if all(it[arm] <= it["w10"] + POINTS for it in (again, early))]
        least = min(median[arm] for arm in kept)
        right = [arm for arm in kept if median[arm] <= NEAR * least]
        found[name] = {"median_s": median, "retransmitted": again, "early_resent": early, "right": right}
    return found


def resent_of(record: Mapping[str, Any]) -> dict[str, int]:
    """Bytes of a connection, all and those of its first two round trips, if they are known."""
    start = record.get("start") or {}
    return {
        "resent": record["bytes_retransmitted"],
        "sent": record["bytes_sent"],
        "early_resent": start.get("early_resent_bytes") or 0,
        "early_sent": start.get("early_sent_bytes") or 0,
    }


def learn(work: Path, server: Nginx) -> None:
    """From records to an active table."""
    python = [sys.executable, "-m"]
    plan = ["uncork", "learn", "plan", str(server.evidence()), "-o", str(work / "learned"), "--key", KEY]
    plan += [
        "--experiment",
        "explore",
        "--control",
        "w10",
        "--control-settings",
        "tcp=cubic,initial_window=10p",
    ]
    for window in WINDOWS[1:]:
        plan += ["--arm", f"w{window}:tcp=cubic,initial_window={window}p"]
    # Each of 30 networks is 3 % of the traffic.
    plan += ["--changed", "100%", "--harmed", "5%", *server.learning]
    subprocess.run([*python, *plan], check=True, timeout=300)
    subprocess.run([*python, "uncork", "learn", "apply", str(work / "learned")], check=True, timeout=300)


def run(uncork: str, server: Nginx, options: argparse.Namespace, work: Path) -> int:
    some, users = networks(), itertools.count()
    began = time.monotonic()
    until = began + LIMIT_SECONDS
    (work / "public").mkdir()
    (work / "public/page").write_bytes(random.Random(1).randbytes(server.size))
    (work / "windows.toml").write_text(scenario(some))
    (work / "explore.toml").write_text(EXPERIMENT)
    (work / "oracle.toml").write_text(ORACLE)
    with ExitStack() as stack:
        processes = Processes(stack)
        hosts = hosts_of(processes, uncork, work / "windows.toml", work / HOSTS)
        far = next(host for host in hosts if host["side"] == "far")
        near = {int(host["classes"][0][1:]): host for host in hosts if host["side"] == "near"}
        tunnels(far, near)
        server.start(processes, far["name"], near)
        with ExitStack() as first:
            server.enforce(Processes(first), work / "oracle.toml", **ORACLE_PORTS)
            say(f"what is right: {options.oracle} requests of each network with each window")
            ports = list(ORACLE_PORTS.values()) * options.oracle
            wait(load(processes, server, near, ports, users, work / "oracle"), until)
        with ExitStack() as first:
            server.enforce(Processes(first), work / "explore.toml", public=PORT)
            say(f"the experiment: {options.requests} requests of each network")
            wait(load(processes, server, near, [PORT] * options.requests, users, work / "explore"), until)
        learn(work, server)
        server.enforce(processes, work / "learned/current/policy.toml", public=PORT)
        say(f"with the table: {options.last} requests of each network")
        wait(load(processes, server, near, [PORT] * options.last, users, work / "last"), until)
    warn_if_late(work)
    return report(work, server, some, time.monotonic() - began)


def report(work: Path, server: Nginx, some: Sequence[Network], seconds: float) -> int:
    """Writes and prints what was right, and what was learned."""
    known, learned = oracle(work, server, some), entries_of(work / "learned", server, some, "w10")
    rows = []
    for one in some:
        name = server.entry(one.number)
        rtt = float(one.path.split('"')[1].removesuffix("ms")) / 1e3
        last = medians(server, work / "last", one.number)[PORT]
        row = {"network": name, "kind": one.kind, "path": one.path.split("\n"), **known[name]}
        rows.append(row | {"learned": learned[name], "last_s": last, "round_trips": last / rtt})
    right = sum(row["learned"] in row["right"] for row in rows)
    write_result(work, rows, seconds, right)
    heads = "".join(f"{arm:>7}" for arm in ORACLE_PORTS)
    print(
        f"{'network':<8} {'kind':<12}{heads} s {heads} resent %  {'right':<12} learned  last s  round trips"
    )
    for row in rows:
        times = "".join(f"{row['median_s'][arm]:7.3f}" for arm in ORACLE_PORTS)
        again = "".join(f"{100 * row['retransmitted'][arm]:7.1f}" for arm in ORACLE_PORTS)
        print(
            f"{row['network']:<8} {row['kind']:<12}{times}   {again}           {'/'.join(row['right']):<12} "
            f"{row['learned']:<8} {row['last_s']:.3f}   {row['round_trips']:.2f}"
        )
    load_now = os.getloadavg()[0]
    say(f"{right} of {len(rows)} networks have a right window, after {seconds:.0f} s; load {load_now:.0f}")
    return 0 if right >= RIGHT else 1


def main() -> int:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("-o", "--output", type=Path, default=Path("windows"), metavar="DIR")
    parser.add_argument("--oracle", type=int, default=6, metavar="N", help="requests with each window [6]")
    parser.add_argument("--requests", type=int, default=240, metavar="N", help="of each network [240]")
    parser.add_argument(
        "--last", type=int, default=10, metavar="N", help="with the table, of each network [10]"
    )
    parser.add_argument("--uncork", default=os.environ.get("UNCORK", "uncork"), metavar="PROGRAM")
    parser.add_argument("--http", choices=("1.1", "2", "3"), default="1.1", help="version [1.1]")
    options = parser.parse_args()
    uncork = shutil.which(options.uncork)
    missing = what_is_missing(uncork) or (None if shutil.which("curl") else "curl is not installed")
    missing = missing or nginx_is_missing()
    if missing is not None or uncork is None:
        print(f"error: {missing}", file=sys.stderr)
        return 3
    if options.output.exists():
        parser.error(f"-o {options.output} exists: name a new directory")
    with_own_pins()
    options.output.mkdir(parents=True)
    work = options.output.resolve()
    ports = {"public": PORT, **ORACLE_PORTS}
    server = Nginx(uncork, work, ports)
    if options.http != "1.1":
        server = Serve(uncork, work, ports, options.http)
    return carried_out(lambda: run(uncork, server, options, work))


if __name__ == "__main__":
    sys.exit(main())
