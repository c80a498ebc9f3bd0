"""The congested upstream of Peru with real servers and players, against the figures that Spotify published.

    python bench/incident.py -o incident

`uncork emu` puts 80 listeners and 30 downloads of others, each behind a link of its own, behind one upstream.
On eight days in the middle the upstream has a tenth of its capacity. `uncork serve --policy` gives each
listener the kernel's CUBIC or BBR; `uncork play audio` plays a song. A day is 65 s long here: in the records
that are analysed, times of day are stretched to whole days, and nothing else is changed.

It needs root, /dev/net/tun and the kernel's BBR, and takes 18 minutes. All traffic stays in the namespaces;
what was started is ended, also after Ctrl-C.
"""

from __future__ import annotations

import argparse
import json
import os
import random
import secrets
import shutil
import sys
import time
from collections.abc import Iterator, Sequence
from contextlib import ExitStack
from functools import partial
from itertools import pairwise
from pathlib import Path
from typing import Any

from live import (
    HOSTS,
    Processes,
    carried_out,
    end,
    hosts_of,
    say,
    start_server,
    warn_if_late,
    what_is_missing,
)
from published import Look, peru
from stories import analyse, compare, table

LISTENERS, OTHERS = 80, 30
DAY_SECONDS, SONG_SECONDS = 65, 40
SPREAD_SECONDS = 10
LEAD_SECONDS = 10
"""From the emulation's start to the first day."""
FULL, LEFT, BUFFER = "100mbit", "10mbit", "100kB"
"""The reduced upstream fills its buffer in 80 ms, as in the laboratory's scenario."""
SONGS_PORT, OTHERS_PORT = 8081, 8082
PHASES = (("before", 4), ("during", 8), ("after", 4))
"""What the days are called, and how many there are of each."""
DAYS = sum(days for _, days in PHASES)
NS_PER_DAY = 86_400 * 10**9
# Of Latin America, as in the laboratory's scenario: part of the links, Mbit/s or ms.
RATES = ((0.0, 0.25), (0.37, 4.0), (0.82, 10.0), (0.942, 15.0), (1.0, 46.5))
ROUND_TRIPS = ((0.0, 10.0), (0.5, 40.0), (0.8, 80.0), (1.0, 300.0))

POLICY = """key = "{key}"

[experiment.peru]
unit = "header:host"
share = "100%"

[experiment.peru.arm.control]
tcp = "cubic"

[experiment.peru.arm.bbr]
tcp = "bbr"

[[rule]]
experiment = "peru"
"""
LOOKS = (
    # what the listeners had, with stutters, and then what the server's operator knows of it
    ("played", Look("By the players.", ("--by", "group", "--primary", "bandwidth:p50"), peru("during"))),
    ("served", Look("By the server.", ("--by", "listener", "--primary", "bandwidth:p50"), ())),
)


def at(quantiles: Sequence[tuple[float, float]], part: float) -> float:
    """The value below which this part is."""
    for (low, from_value), (high, to_value) in pairwise(quantiles):
        if part <= high:
            return from_value + (to_value - from_value) * (part - low) / (high - low)
    raise ValueError(part)


def scenario() -> str:
    """One upstream, and a path for each listener and each download. The flows only name the hosts."""
    middles = [(n + 0.5) / LISTENERS for n in range(LISTENERS)]
    delays = random.Random(1).sample(middles, LISTENERS)
    during = LEAD_SECONDS + PHASES[0][1] * DAY_SECONDS
    after = during + PHASES[1][1] * DAY_SECONDS
    lines = [
        'title = "A congested upstream"',
        f'run = {{ end = "{LEAD_SECONDS + (DAYS + 1) * DAY_SECONDS}s", seeds = 1 }}',
        f'[link.upstream]\nrate = "{FULL}"\nbuffer = "{BUFFER}"',
        f'rate_steps = [["{during}s", "{LEFT}"], ["{after}s", "{FULL}"]]',
    ]
    for n, (part, delay) in enumerate(zip(middles, delays, strict=True)):
        rate, rtt = at(RATES, part) * 1000, at(ROUND_TRIPS, delay)
        lines += path(f"listener-{n}", f"{rate:.0f}kbit", f"{rtt:.0f}ms")
    for n in range(OTHERS):
        lines += path(f"other-{n}", "2mbit", "40ms")
    return "\n".join(lines) + "\n"


def path(name: str, rate: str, rtt: str) -> list[str]:
    """A link of one's own behind the upstream."""
    return [
        f'[path.{name}]\nvia = ["upstream"]\nrate = "{rate}"\nrtt = "{rtt}"\nbuffer = "128kB"',
        f'[flow.{name}]\npath = "{name}"\ncc = "cubic"\nbulk = "end"',
    ]


def serve(processes: Processes, uncork: str, far: dict[str, Any], work: Path) -> None:
    """The songs, by a policy and with records; the downloads of others, with CUBIC."""
    root = work / "public"
    root.mkdir()
    for name, size in (("song", SONG_SECONDS * 20_000), ("large", 10**9)):
        with (root / name).open("wb") as file:
            file.truncate(size)
    policy = work / "policy.toml"
    policy.write_text(POLICY.format(key=secrets.token_hex(16)))
    program = ["ip", "netns", "exec", far["name"], uncork, "serve", "--root", str(root), "--plain"]
    songs = ["--policy", str(policy), "--records", str(work / "served.jsonl"), "--network-share", "100"]
    start_server(
        processes, [*program, *songs, "--listen", f"lima@{far['v4']}:{SONGS_PORT}"], work / "songs.txt"
    )
    start_server(
        processes,
        [*program, "--cc", "cubic", "--network-share", "100", "--listen", f"{far['v4']}:{OTHERS_PORT}"],
        work / "others.txt",
    )


def play(processes: Processes, uncork: str, hosts: Sequence[dict[str, Any]], far: str, work: Path) -> None:
    """All days, one after the other: each listener plays a song, and hears what arrives within the day."""
    begin = time.monotonic()
    for day, phase in enumerate(days()):
        say(f"day {day + 1} of {DAYS}, {phase}")
        players = []
        for n, host in enumerate(hosts):
            name = f"day-{day}-listener-{n}.lima"
            command = ["ip", "netns", "exec", host["name"], uncork, "play", "audio"]
            command += [f"http://{name}:{SONGS_PORT}/song", "--connect", f"{far}:{SONGS_PORT}", "-q"]
            command += ["--duration", f"{SONG_SECONDS}s", "--for", f"{DAY_SECONDS - 3}s", "--timeout", "60s"]
            command += ["--spread", f"{SPREAD_SECONDS}s", "--seed", str(1 + day * LISTENERS + n)]
            command += ["--records", str(work / "players" / f"{name}.jsonl")]
            players.append(processes.start(command, out=work / "players" / f"{name}.txt"))
        time.sleep(max(0.0, begin + (day + 1) * DAY_SECONDS - time.monotonic()))
        for player in players:
            end(player)


def days() -> Iterator[str]:
    """What each day is called."""
    for phase, count in PHASES:
        yield from [phase] * count


def run(uncork: str, work: Path) -> int:
    """Plays all days."""
    (work / "players").mkdir()
    with ExitStack() as stack:
        processes = Processes(stack)
        (work / "incident.toml").write_text(scenario())
        hosts = hosts_of(processes, uncork, work / "incident.toml", work / HOSTS)
        begin = time.monotonic()
        (work / "began").write_text(str(time.time_ns() + LEAD_SECONDS * 10**9))
        near = {host["classes"][0]: host for host in hosts if host["side"] == "near"}
        far = next(host for host in hosts if host["side"] == "far")
        serve(processes, uncork, far, work)
        large = f"http://{far['v4']}:{OTHERS_PORT}/large"
        for n in range(OTHERS):
            name = near[f"other-{n}"]["name"]
            command = ["ip", "netns", "exec", name, uncork, "play", "get", large, "--repeat", "99"]
            processes.start([*command, "--timeout", "60s", "-q"], out=work / f"other-{n}.txt")
        time.sleep(max(0.0, begin + LEAD_SECONDS - time.monotonic()))
        play(processes, uncork, [near[f"listener-{n}"] for n in range(LISTENERS)], far["v4"], work)
    warn_if_late(work)
    return 0


def lines_of(file: Path) -> Iterator[dict[str, Any]]:
    for line in file.read_text(encoding="utf-8").splitlines():
        yield json.loads(line)


def stretch(work: Path) -> None:
    """Writes the records with days of 24 hours, the last of them yesterday: what the server wrote, and a
    record of each song as its player had it, with the assignment that the server wrote of the same listener.
    """
    began = int((work / "began").read_text())
    first = (time.time_ns() // NS_PER_DAY - DAYS) * NS_PER_DAY
    names, served = list(days()), []
    chosen: dict[str, dict[str, Any]] = {}
    for record in lines_of(work / "served.jsonl"):
        service = record["service"]
        passed = (service["start_unix_ns"] - began) / (DAY_SECONDS * 10**9)
        record["start_ns"] = int(passed * NS_PER_DAY)
        service["start_unix_ns"] = first + record["start_ns"]
        record["group"] = names[min(max(int(passed), 0), DAYS - 1)]
        served.append(record)
        chosen.setdefault(service["host"], record)
    played, unknown = [], 0
    for file in sorted((work / "players").glob("*.jsonl")):
        of_server = chosen.get(file.stem)
        for song in lines_of(file):
            if song["group"] != "listener":
                continue
            if of_server is None:
                unknown += 1
                continue
            service = {name: of_server["service"][name] for name in ("start_unix_ns", "listener", "host")}
            same = {name: of_server[name] for name in ("group", "flow", "start_ns", "choice")}
            # A song's rate counts the bytes that the client had: it acknowledged all of them.
            acked = {"bytes_acked": song["bytes_delivered"]}
            played.append(song | same | acked | {"service": service})
    if unknown:
        say(f"{unknown} songs are left out: the server has no record of their listeners")
    for name, records in (("served", served), ("played", played)):
        directory = work / name
        directory.mkdir(exist_ok=True)
        text = "".join(json.dumps(record) + "\n" for record in records)
        (directory / "records.jsonl").write_text(text, encoding="utf-8")


def main() -> int:
    """Command line."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("-o", "--output", type=Path, default=Path("incident"), metavar="DIR")
    parser.add_argument("--uncork", default=os.environ.get("UNCORK", "uncork"), metavar="PROGRAM")
    parser.add_argument("--analyse-only", action="store_true", help="of a run that is there already")
    options = parser.parse_args()
    work: Path = options.output.resolve()
    if not options.analyse_only:
        uncork = shutil.which(options.uncork)
        if (missing := what_is_missing(uncork)) or uncork is None:
            print(f"error: {missing}", file=sys.stderr)
            return 3
        if work.exists():
            parser.error(f"-o {options.output} exists: name a new directory")
        work.mkdir(parents=True)
        if status := carried_out(partial(run, uncork, work)):
            return status
    stretch(work)
    for name, look in LOOKS:
        result = analyse(work / name, look, work / f"report-{name}")
        print("\n".join(table(look, result, [compare(figure, result) for figure in look.figures])))
        for one in result["incidents"]:
            contested = ", contested link" if one["contested"] else ""
            print(f"A break from {one['first']} to {one['last']}{contested}.")
    return 0


if __name__ == "__main__":
    sys.exit(main())
