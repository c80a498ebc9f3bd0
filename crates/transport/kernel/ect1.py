#!/usr/bin/env python3
"""Counts on the wire which connections send ECT(1), while `uncork_prague` is loaded, upgraded and unloaded.

    sudo unshare --net --mount crates/transport/kernel/ect1.py PROGRAM CONNECTIONS OPEN

It makes CONNECTIONS over the loopback of its network namespace, a quarter each: clients with AccECN; clients without, to the
same kind of listener; a listener with another controller; connections that get another controller when they are accepted.
OPEN more connections with AccECN are open while the controller is upgraded and unloaded. Only those with AccECN may send
ECT(1), and none after the unloading. PROGRAM is `uncork`. It prints a table, and exits with 1 where the packets differ.
"""

from __future__ import annotations

import ctypes
import resource
import selectors
import socket
import struct
import subprocess
import sys
import threading
from collections import Counter
from pathlib import Path

PRAGUE, OTHER = b"uncork_prague", b"reno"
ANSWER = b"x" * 3000
PORTS = {"AccECN": 7001, "no AccECN": 7002, "other listener": 7003, "other controller": 7004}
SO_ATTACH_FILTER, SOL_PACKET, PACKET_STATISTICS, OUTGOING = 26, 263, 6, 4
# Of Ethernet frames: IPv4 and TCP with ECT(1), 96 bytes of them.
FILTER = [
    (0x28, 0, 0, 12),
    (0x15, 0, 6, 0x0800),
    (0x30, 0, 0, 15),
    (0x54, 0, 0, 3),
    (0x15, 0, 3, 1),
    (0x30, 0, 0, 23),
    (0x15, 0, 1, 6),
    (0x06, 0, 0, 96),
    (0x06, 0, 0, 0),
]


class Wire:
    """Counts packets with ECT(1) by the server's port, in a thread."""

    def __init__(self) -> None:
        self.counts: Counter[int] = Counter()
        self.socket = socket.socket(socket.AF_PACKET, socket.SOCK_RAW, socket.htons(3))
        self.socket.setsockopt(socket.SOL_SOCKET, 33, 1 << 27)  # SO_RCVBUFFORCE
        program = b"".join(struct.pack("HBBI", *one) for one in FILTER)
        self.program = ctypes.create_string_buffer(program)
        head = struct.pack("HP", len(FILTER), ctypes.addressof(self.program))
        self.socket.setsockopt(socket.SOL_SOCKET, SO_ATTACH_FILTER, head)
        self.socket.bind(("lo", 3))
        threading.Thread(target=self.count, daemon=True).start()

    def count(self) -> None:
        while True:
            packet, (_, _, kind, _, _) = self.socket.recvfrom(96)
            if kind == OUTGOING:
                source, destination = struct.unpack_from("!HH", packet, 14 + 4 * (packet[14] & 15))
                # The client's first ACK is before it gets another controller.
                if destination != PORTS["other controller"]:
                    self.counts[source if source in PORTS.values() else destination] += 1

    def lost(self) -> int:
        return struct.unpack("II", self.socket.getsockopt(SOL_PACKET, PACKET_STATISTICS, 8))[1]


def controller(sock: socket.socket, name: bytes) -> None:
    sock.setsockopt(socket.IPPROTO_TCP, socket.TCP_CONGESTION, name)


def listener(kind: str) -> socket.socket:
    sock = socket.socket()
    sock.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
    controller(sock, OTHER if kind == "other listener" else PRAGUE)
    sock.bind(("127.0.0.1", PORTS[kind]))
    sock.listen(1024)
    return sock


def connect(kind: str, at: socket.socket) -> tuple[socket.socket, socket.socket]:
    client = socket.socket()
    controller(client, OTHER if kind == "no AccECN" else PRAGUE)
    client.connect(("127.0.0.1", PORTS[kind]))
    server, _ = at.accept()
    if kind == "other controller":
        controller(server, OTHER)
        controller(client, OTHER)
    return client, server


def download(client: socket.socket, server: socket.socket) -> None:
    server.sendall(ANSWER)
    left = len(ANSWER)
    while left:
        left -= len(client.recv(left))


def download_all(ends: list[tuple[socket.socket, socket.socket]]) -> None:
    for client, server in ends:
        download(client, server)


def serve(listeners: dict[str, socket.socket], number: int) -> None:
    for n in range(number):
        # Half of the clients without AccECN have the ECN of RFC 3168.
        if n % (number // 2 or 1) == 0:
            Path("/proc/sys/net/ipv4/tcp_ecn").write_text("1" if n else "2")
        kind = list(PORTS)[n % len(PORTS)]
        ends = connect(kind, listeners[kind])
        download(*ends)
        for one in ends:
            one.close()


def uncork(program: str, *words: str) -> None:
    subprocess.run([program, "kernel", *words], check=True, stdout=subprocess.DEVNULL)


def main() -> None:
    program, number, still_open = sys.argv[1], int(sys.argv[2]), int(sys.argv[3])
    _, max_files = resource.getrlimit(resource.RLIMIT_NOFILE)
    resource.setrlimit(resource.RLIMIT_NOFILE, (max_files, max_files))
    if not Path("/sys/fs/bpf").is_mount():
        subprocess.run(["mount", "-t", "bpf", "bpf", "/sys/fs/bpf"], check=True)
    subprocess.run(["ip", "link", "set", "lo", "up"], check=True)
    uncork(program, "load", "uncork_prague")
    wire = Wire()
    listeners = {kind: listener(kind) for kind in PORTS}
    rows: list[tuple[str, Counter[int]]] = []

    def note(what: str) -> None:
        selectors.DefaultSelector().select(0.5)
        rows.append((what, wire.counts))
        wire.counts = Counter()

    serve(listeners, number // 2)
    note("loaded")
    ends = [connect("AccECN", listeners["AccECN"]) for _ in range(still_open)]
    download_all(ends)
    note("open connections")
    uncork(program, "upgrade", "uncork_prague")
    download_all(ends)
    note("open connections, upgraded")
    serve(listeners, number - number // 2)
    note("new connections, upgraded")
    uncork(program, "unload", "uncork_prague")
    note("while unloaded")
    download_all(ends)
    note("open connections, unloaded")

    print(f"{number} connections and {still_open} open ones, {wire.lost()} packets not counted; packets with ECT(1):")
    print(f"{'':28}" + "".join(f"{kind:>18}" for kind in PORTS))
    for what, counts in rows:
        print(f"{what:28}" + "".join(f"{counts[port]:18}" for port in PORTS.values()))
    wrong = sum(counts[port] for _, counts in rows for kind, port in PORTS.items() if kind != "AccECN")
    after = sum(rows[-1][1].values())
    has_sent = rows[0][1][PORTS["AccECN"]] >= number // 8 and rows[3][1][PORTS["AccECN"]] >= number // 8
    sys.exit(0 if not wrong and not after and has_sent else 1)


main()
