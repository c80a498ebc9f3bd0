"""Thirty networks with paths of their own, a real server and clients, and a loop that learns.

    python bench/thirty.py -o thirty
    python bench/thirty.py -o thirty --server nginx
    python bench/thirty.py -o thirty --server nginx --client player

`uncork emu` gives each network a path: lossy ones, where BBR is right; policed ones and ones with a short
queue, where BBR resends too much and CUBIC is right. `uncork serve`, or nginx with `uncork steer`, has files
and the active policy, and records are written; `thirty_servers.py` says what differs. The clients are curl,
or mpv (`thirty_players.py`): each request or play is another user. An experiment comes first; then
`uncork learn run` plans from the records, checks, and applies the table, in a loop, while the
clients go on.

What is right is measured, too: before anything is learned, curl loads the files with either controller over
the same paths. BBR is right where the median takes 2 % less time and at most 2 points more bytes are sent
again. It is so with players, too: a player that reads ahead shows a slow path only where it stalls.

It needs root, /dev/net/tun, vxlan, curl and the kernel's BBR; with nginx also BPF, cgroups of version 2 and
`pip install mmdb_writer`. All traffic stays in the namespaces; what was
started is ended, also after Ctrl-C.

Exit status: 0 at least 28 networks have the right controller; 1 fewer; 3 not possible on this machine.
"""

from __future__ import annotations

import argparse
import itertools
import json
import os
import random
import shutil
import signal
import statistics
import subprocess
import sys
import time
from collections.abc import Iterator, Sequence
from contextlib import ExitStack
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from live import HOSTS, Processes, carried_out, end, hosts_of, say, warn_if_late, what_is_missing
from thirty_players import SONG, SONG_SECONDS, make_song, play, players_are_missing, write_plays
from thirty_servers import (
    SERVER,
    NginxAndSteer,
    Serve,
    Server,
    inside,
    nginx_is_missing,
    with_own_pins,
)

KEY = "000102030405060708090a0b0c0d0e0f"
PORT, ORACLE_PORTS = 8080, {"cubic": 8081, "bbr": 8082}
RIGHT = 28
LIMIT_SECONDS = 1_500
TRANSFER_SECONDS = 60
DONE = ("200", "0")
"""What curl says of a request that succeeded, and the shell of a player."""
WORSE, POINTS = 0.98, 0.02
"""Of the oracle: part of CUBIC's time that BBR has to stay below; how much more it may send again."""

EXPERIMENT = f"""key = "{KEY}"

[experiment.explore]
unit = "%s"
share = "100%%"

[experiment.explore.arm.control]
tcp = "cubic"

[experiment.explore.arm.bbr]
tcp = "bbr"

[[rule]]
experiment = "explore"
"""
ORACLE = "".join(f'[[rule]]\nlistener = "{name}"\nuse = {{ tcp = "{name}" }}\n\n' for name in ORACLE_PORTS)


@dataclass(frozen=True)
class Network:
    """One of the thirty, and its path."""

    number: int
    kind: str
    path: str
    """In a scenario's words."""


def networks(server: Server) -> list[Network]:
    """Twelve are lossy, nine policed, nine have a short queue; rates and delays are drawn."""
    rng, found = random.Random(21), []
    for number in range(30):
        kind = ("lossy", "policed", "short queue")[0 if number < 12 else 1 if number < 21 else 2]
        rate, rtt = server.rate * rng.uniform(3, 6), server.delay * rng.uniform(50, 110)
        lines = [f'rtt = "{rtt:.0f}ms"', f'rate = "{rate:.1f}mbit"']
        if kind == "lossy":
            lines += [f'loss = "{server.loss * rng.uniform(2, 4):.1f}%"', 'buffer = "4bdp"']
        elif kind == "policed":
            lines[1] = f'rate = "{18 * server.rate:g}mbit"'
            lines += [f'policer = "{rate / 2:.1f}mbit:12kB"']
        else:
            lines += ['buffer = "5p"']
        found.append(Network(number, kind, "\n".join(lines)))
    return found


def explore(server: Server) -> str:
    """The policy before anything is learned."""
    return EXPERIMENT % ("cookie:uid" if isinstance(server, Serve) else "prefix")


def scenario(some: Sequence[Network]) -> str:
    lines = ['title = "Thirty networks"', f'run = {{ end = "{LIMIT_SECONDS}s", seeds = 1 }}']
    for one in some:
        lines.append(f"[path.n{one.number}]\n{one.path}")
        lines.append(f'[flow.n{one.number}]\npath = "n{one.number}"\ncc = "cubic"\nbulk = "end"')
    return "\n".join(lines) + "\n"


def tunnels(far: dict[str, Any], near: dict[int, dict[str, Any]]) -> None:
    """Each network's addresses behind its path, and back."""

    def ip(host: dict[str, Any], *words: str) -> None:
        subprocess.run(inside(host["name"], "ip", *words), check=True, timeout=30)

    ip(far, "addr", "add", f"{SERVER}/32", "dev", "lo")
    for number, host in near.items():
        for at, own, other in ((far, far, host), (host, host, far)):
            name = f"t{number}"
            ends = ["local", own["v4"], "remote", other["v4"], "dstport", "4789"]
            ip(at, "link", "add", name, "type", "vxlan", "id", str(number + 1), *ends)
            ip(at, "link", "set", name, "up", "mtu", "1400")
        # Both ends of a tunnel are one link, on which every address is asked for by ARP.
        ip(host, "addr", "add", f"100.64.{number}.7/24", "dev", f"t{number}")
        ip(far, "addr", "add", f"100.64.{number}.1/24", "dev", f"t{number}")
        ip(host, "route", "add", f"{SERVER}/32", "via", f"100.64.{number}.1")


def requests(server: Server, number: int, urls: Sequence[str], users: Sequence[int]) -> str:
    """What curl does: one connection for each request, so that each is decided again."""
    parts = []
    for url, user in zip(urls, users, strict=True):
        parts.append(
            f'url = "{url}"\noutput = "/dev/null"\nsilent\n{server.client(number, user)}'
            f'header = "Connection: close"\nmax-time = {TRANSFER_SECONDS}\n'
            'write-out = "%{url} %{http_code} %{time_total}\\n"\n'
        )
    return "next\n".join(parts)


def load(
    processes: Processes,
    server: Server,
    near: dict[int, dict[str, Any]],
    urls: Sequence[str],
    users: Iterator[int],
    out: Path,
) -> list[subprocess.Popen[bytes]]:
    """Each network's client asks for these, one after the other, or plays them; all networks at once."""
    out.mkdir()
    started = []
    # All networks have as many users.
    nths = [next(users) for _ in urls]
    for number, host in near.items():
        if urls[0].endswith(SONG) and isinstance(server, NginxAndSteer):
            write_plays(out, number, urls, [server.address(number, user) for user in nths])
            command = play(out, number, SERVER, TRANSFER_SECONDS)
        else:
            config = out / f"{number}.curl"
            config.write_text(requests(server, number, urls, nths))
            command = ["curl", "--config", str(config)]
        started.append(processes.start(inside(host["name"], *command), out=out / f"{number}.txt"))
    return started


def wait(started: Sequence[subprocess.Popen[bytes]], until: float) -> None:
    for one in started:
        one.wait(max(1.0, until - time.monotonic()))


def times(directory: Path, number: int) -> dict[int, list[float]]:
    """Seconds by port, of what arrived."""
    found: dict[int, list[float]] = {}
    for line in (directory / f"{number}.txt").read_text().splitlines():
        url, status, seconds = line.split()
        if status in DONE:
            found.setdefault(int(url.split(":")[2].split("/")[0]), []).append(float(seconds))
    return found


def records_of(directory: Path) -> Iterator[dict[str, Any]]:
    for file in sorted(directory.glob("*.jsonl")):
        for line in file.read_text(encoding="utf-8").splitlines():
            yield json.loads(line)


def oracle(work: Path, server: Server, some: Sequence[Network]) -> dict[str, dict[str, Any]]:
    """What each network got from either controller: the clients' times, and the server's retransmissions."""
    resent: dict[tuple[str, str], list[int]] = {}
    for record in records_of(work / "records-cubic+bbr"):
        sums = resent.setdefault((server.entry_of(record), record["service"]["listener"]), [0, 0])
        sums[0] += record["bytes_retransmitted"]
        sums[1] += record["bytes_sent"]
    found = {}
    for one in some:
        by_port, name = times(work / "oracle", one.number), server.entry(one.number)
        median = {cc: statistics.median(by_port[port]) for cc, port in ORACLE_PORTS.items()}
        again = {cc: resent[name, cc][0] / max(resent[name, cc][1], 1) for cc in ORACLE_PORTS}
        is_bbr = median["bbr"] < WORSE * median["cubic"] and again["bbr"] <= again["cubic"] + POINTS
        found[name] = {"median_s": median, "retransmitted": again, "right": "bbr" if is_bbr else "cubic"}
    return found


def entries_of(learned: Path, server: Server, some: Sequence[Network], default: str) -> dict[str, str]:
    """What the table gives each network; `default` where it has nothing for it."""
    table = next((learned / "current").glob("networks-*.table")).read_text().splitlines()
    start = table.index(f"section {server.section}") + 1
    end = next(at for at in range(start, len(table)) if table[at].startswith(("section", "sha256")))
    arms = dict(line.split() for line in table[start:end])
    names = [server.entry(one.number) for one in some]
    return {name: arms.get(name, arms.get("*", default)) for name in names}


def learned_arms(learned: Path, server: Server, some: Sequence[Network]) -> dict[str, str]:
    """The controller that the table gives each network."""
    arms = entries_of(learned, server, some, "cubic")
    return {name: "bbr" if arm == "bbr" else "cubic" for name, arm in arms.items()}


def learn(work: Path, server: Server, *more: str) -> list[str]:
    program = [sys.executable, "-m", "uncork.learn.cli", "run", str(work / "records-public")]
    program += ["-o", str(work / "learned"), "--key", KEY, "--changed", "100%"]
    # Each of 30 networks is 3 % of the traffic.
    program += ["--harmed", "5%", *server.learning]
    return [*program, "--control-settings", "tcp=cubic", "--treated-settings", "tcp=bbr", *more]


def run(uncork: str, server: Server, options: argparse.Namespace, work: Path) -> int:
    some, users = networks(server), itertools.count()
    began = time.monotonic()
    until = began + LIMIT_SECONDS
    (work / "public").mkdir()
    (work / "public/page").write_bytes(random.Random(1).randbytes(server.size))
    if options.client == "player":
        make_song(work / "public")
    target = f"http://{SERVER}:{PORT}/{SONG if options.client == 'player' else 'page'}"
    (work / "thirty.toml").write_text(scenario(some))
    (work / "explore.toml").write_text(explore(server))
    (work / "oracle.toml").write_text(ORACLE)
    with ExitStack() as stack:
        processes = Processes(stack)
        hosts = hosts_of(processes, uncork, work / "thirty.toml", work / HOSTS)
        far = next(host for host in hosts if host["side"] == "far")
        near = {int(host["classes"][0][1:]): host for host in hosts if host["side"] == "near"}
        tunnels(far, near)
        server.start(processes, far["name"], near)
        with ExitStack() as first:
            server.enforce(Processes(first), work / "oracle.toml", **ORACLE_PORTS)
            say(f"what is right: {options.oracle} requests of each network with either controller")
            urls = [f"http://{SERVER}:{port}/page" for port in ORACLE_PORTS.values()] * options.oracle
            wait(load(processes, server, near, urls, users, work / "oracle"), until)
        with ExitStack() as first:
            server.enforce(Processes(first), work / "explore.toml", public=PORT)
            say(f"the experiment: {options.requests} requests or plays of each network")
            urls = [target] * options.requests
            wait(load(processes, server, near, urls, users, work / "explore"), until)
        say("the first plan")
        subprocess.run(learn(work, server, "--rounds", "1"), check=True, timeout=300)
        policy = work / "learned/current/policy.toml"
        server.enforce(processes, policy, public=PORT)
        server.follow(processes, policy)
        loop = processes.start(learn(work, server, "--every", "30s"), out=work / "loop.txt")
        for number in range(options.rounds):
            say(f"round {number + 1} of {options.rounds}: {table_words(work, server, some)}")
            wait(load(processes, server, near, urls, users, work / f"round-{number}"), until)
        end(loop, signal.SIGTERM)
        subprocess.run(learn(work, server, "--rounds", "1"), check=True, timeout=300)
        wait(load(processes, server, near, urls[:10], users, work / "last"), until)
    warn_if_late(work)
    if options.client == "player":
        report_plays(work, some)
    return report(work, server, some, time.monotonic() - began)


def report_plays(work: Path, some: Sequence[Network]) -> None:
    """How long a song took: what is more than its length and mpv's own start is waiting."""
    for kind in dict.fromkeys(one.kind for one in some):
        means = []
        for when in ("explore", "last"):
            plays = [times(work / when, one.number).get(PORT, []) for one in some if one.kind == kind]
            means.append(statistics.fmean(itertools.chain(*plays)))
        took = f"{means[0]:.2f} s in the experiment, {means[1]:.2f} s last"
        say(f"{kind}: a song of {SONG_SECONDS} s took {took}")


def table_words(work: Path, server: Server, some: Sequence[Network]) -> str:
    arms = list(learned_arms(work / "learned", server, some).values())
    return f"bbr for {arms.count('bbr')} networks, cubic for {arms.count('cubic')}"


def write_result(work: Path, rows: Sequence[dict[str, Any]], seconds: float, right: int) -> None:
    document = {"made": datetime.now(UTC).strftime("%Y-%m-%d"), "seconds": round(seconds), "right": right}
    text = json.dumps({**document, "networks": rows}, indent=1) + "\n"
    (work / "result.json").write_text(text, encoding="utf-8")


def report(work: Path, server: Server, some: Sequence[Network], seconds: float) -> int:
    """Writes and prints what was right, and what was learned."""
    known, learned = oracle(work, server, some), learned_arms(work / "learned", server, some)
    used: dict[str, list[str]] = {}
    for record in records_of(work / "records-public"):
        if record["choice"]["arm"] is None:
            used.setdefault(server.entry_of(record), []).append(record["cc"])
    names = [(server.entry(one.number), one.kind) for one in some]
    rows = [{"network": name, "kind": kind, **known[name], "learned": learned[name]} for name, kind in names]
    right = sum(row["learned"] == row["right"] for row in rows)
    write_result(work, rows, seconds, right)
    print(f"{'network':<17} {'kind':<12} cubic s  bbr s  resent %       right  learned  last used")
    for row in rows:
        median, again = row["median_s"], row["retransmitted"]
        last = used.get(row["network"], ["-"])[-1]
        print(
            f"{row['network']:<17} {row['kind']:<12} {median['cubic']:7.2f} {median['bbr']:6.2f}  "
            f"{100 * again['cubic']:5.1f} {100 * again['bbr']:5.1f}     "
            f"{row['right']:<6} {row['learned']:<8} {last}"
        )
    load = os.getloadavg()[0]
    say(f"{right} of {len(rows)} networks have the right controller, after {seconds:.0f} s; load {load:.0f}")
    return 0 if right >= RIGHT else 1


def main() -> int:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("-o", "--output", type=Path, default=Path("thirty"), metavar="DIR")
    parser.add_argument("--oracle", type=int, default=20, metavar="N", help="requests with either controller")
    parser.add_argument("--requests", type=int, default=120, metavar="N", help="of each network in a round")
    parser.add_argument("--rounds", type=int, default=2, metavar="N", help="after the experiment")
    parser.add_argument("--uncork", default=os.environ.get("UNCORK", "uncork"), metavar="PROGRAM")
    parser.add_argument("--server", choices=("serve", "nginx"), default="serve", help="[serve]")
    parser.add_argument(
        "--client", choices=("curl", "player"), default="curl", help="player: mpv, with nginx [curl]"
    )
    options = parser.parse_args()
    if options.client == "player" and options.server != "nginx":
        parser.error("--client player needs --server nginx")
    uncork = shutil.which(options.uncork)
    missing = what_is_missing(uncork) or (None if shutil.which("curl") else "curl is not installed")
    if options.server == "nginx":
        missing = missing or nginx_is_missing()
    if options.client == "player":
        missing = missing or players_are_missing()
    if missing is not None or uncork is None:
        print(f"error: {missing}", file=sys.stderr)
        return 3
    if options.output.exists():
        parser.error(f"-o {options.output} exists: name a new directory")
    if options.server == "nginx":
        with_own_pins()
    options.output.mkdir(parents=True)
    work = options.output.resolve()

    def course() -> int:
        ports = {"public": PORT, **ORACLE_PORTS}
        server = Serve(uncork, work) if options.server == "serve" else NginxAndSteer(uncork, work, ports)
        return run(uncork, server, options, work)

    return carried_out(course)


if __name__ == "__main__":
    sys.exit(main())
