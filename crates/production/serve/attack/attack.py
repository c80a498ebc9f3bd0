#!/usr/bin/env python3
"""One host against a server: keeps connections open that do harm, while other clients fetch a small file.

    attack.py --uncork target/release/uncork blocked-streams
    attack.py --uncork target/release/uncork --seconds 600 all
    attack.py --nginx /usr/sbin/nginx slow-head rapid-reset

Starts the server on loopback, attacks it from 127.0.0.1 for a bounded time, and lets clients from 127.0.0.1 and 127.0.0.2
fetch a small file meanwhile, each on a connection of its own. Exits with 1 if clients of the other address had less than
99 % success, or the server held more memory or descriptors than it may. The attacks are those of `http1.py`, `http2.py`
and, with aioquic, `http3.py`; `list` lists them.
"""

import argparse
import asyncio
import collections
import multiprocessing
import pathlib
import socket
import sys
import tempfile
import threading
import time

import http1
import http2
import servers
import swarm

try:
    import http3
except ImportError:
    http3 = None  # type: ignore[assignment]

ATTACKS = {**http1.ATTACKS, **http2.ATTACKS, **(http3.ATTACKS if http3 else {})}
MAX_MIB = 400
MAX_DESCRIPTORS = 2_000


class Clients(threading.Thread):
    """Fetches the small file again and again from an address of its own."""

    def __init__(self, fetch, port, address):
        super().__init__(daemon=True)
        self.fetch, self.port, self.address = fetch, port, address
        self.is_over = False
        self.outcomes = collections.Counter()
        self.slowest = 0.0

    def run(self):
        while not self.is_over:
            began = time.monotonic()
            self.outcomes[self.fetch(self.port, self.address)] += 1
            self.slowest = max(self.slowest, time.monotonic() - began)
            time.sleep(0.05)

    def share(self):
        return self.outcomes["ok"] / max(1, sum(self.outcomes.values()))


def fetch_over_tcp(port, address):
    try:
        with socket.create_connection(("127.0.0.1", port), 5, (address, 0)) as client:
            client.settimeout(5)
            client.sendall(b"GET /small HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n\r\n")
            answer = b""
            while piece := client.recv(1 << 16):
                answer += piece
    except OSError as error:
        return swarm.error_name(error)
    return "ok" if answer.startswith(b"HTTP/1.1 200") and answer.endswith(b"\r\n\r\nsmall") else "wrong"


def fetch_over_quic(port, address):
    return asyncio.run(http3.fetch(port, address))


def attack_until(over, name, port, result):
    """Runs in a process of its own, so that clients do not wait for it."""
    kind = swarm.Swarm if name in {**http1.ATTACKS, **http2.ATTACKS} else http3.Swarm
    kind = http3.InitialFlood if name == "quic-initials" else kind
    attack = kind(port, ATTACKS[name])
    attack.start()
    over.wait()
    attack.is_over = True
    attack.join(15)
    result.put((attack.opened, attack.sent, dict(attack.errors)))


class Outcome:
    """What the server held, and how often it was ill."""

    def __init__(self):
        self.mib = self.descriptors = self.looks = self.unhealthy = 0
        self.cpu = 0.0

    def look(self, server):
        mib, descriptors, self.cpu = server.usage()
        self.mib, self.descriptors = max(self.mib, mib), max(self.descriptors, descriptors)
        self.looks += 1
        # Twice, because a busy machine can delay one answer.
        self.unhealthy += not server.is_healthy() and not server.is_healthy()


def run(options, name):
    """Prints a line about the attack; whether the server withstood it."""
    over_quic = ATTACKS[name].http == 3
    with tempfile.TemporaryDirectory() as directory:
        server = servers.start(options, pathlib.Path(directory), over_quic)
        try:
            return withstands(server, name, options.seconds)
        finally:
            server.stop()


def withstands(server, name, seconds):
    version = ATTACKS[name].http
    fetch, port = (fetch_over_quic, server.ports[3]) if version == 3 else (fetch_over_tcp, server.ports[1])
    clients = [Clients(fetch, port, address) for address in ("127.0.0.1", "127.0.0.2")]
    over, result, outcome = multiprocessing.Event(), multiprocessing.Queue(), Outcome()
    attack = multiprocessing.Process(target=attack_until, args=(over, name, server.ports[version], result), daemon=True)
    # First the process: a fork with running threads may inherit their locks.
    for it in (attack, *clients):
        it.start()
    end = time.monotonic() + seconds
    while time.monotonic() < end:
        time.sleep(1)
        outcome.look(server)
    over.set()
    for it in clients:
        it.is_over = True
        it.join(15)
    opened, sent, errors = result.get(timeout=30)
    attack.join(15)
    same, other = clients
    print(
        f"{name:24} {opened:7} connections {sent / 1e6:7.1f} MB |"
        f" others {other.share():6.1%} of {sum(other.outcomes.values())}, slowest {other.slowest:.2f} s |"
        f" same host {same.share():6.1%} of {sum(same.outcomes.values())} |"
        f" {outcome.mib} MiB, {outcome.descriptors} descriptors, {outcome.cpu:.1f} CPU-s,"
        f" unhealthy {outcome.unhealthy} of {outcome.looks} | {dict(other.outcomes)} {errors or ''}",
        flush=True,
    )
    held = outcome.mib <= MAX_MIB and outcome.descriptors <= MAX_DESCRIPTORS
    return held and other.share() >= 0.99 and not outcome.unhealthy


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    which = parser.add_mutually_exclusive_group(required=True)
    which.add_argument("--uncork", help="the program to attack")
    which.add_argument("--nginx", help="nginx instead, for comparison")
    parser.add_argument("--seconds", type=float, default=60, help="of each attack (60)")
    parser.add_argument("attacks", nargs="+", metavar="ATTACK", choices=[*ATTACKS, "all", "list"], help="or all, or list")
    options = parser.parse_args()
    if "list" in options.attacks:
        print(*ATTACKS, sep="\n")
        return
    if http3 is None:
        print("aioquic is missing: no attacks over QUIC", file=sys.stderr)
    names = list(ATTACKS) if "all" in options.attacks else options.attacks
    failed = [name for name in names if not run(options, name)]
    if failed:
        sys.exit(f"these had an effect: {', '.join(failed)}")


if __name__ == "__main__":
    main()
