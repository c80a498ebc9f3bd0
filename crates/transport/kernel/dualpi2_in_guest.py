#!/usr/bin/env python3
"""Plays flows through the kernel's DualPI2, and measures each packet there: runs in a guest of dualpi2.py.

    dualpi2_in_guest.py CELLS

CELLS is a JSON list of cells (`cells` of dualpi2.py). A server, a router and a client have a network namespace each. The
server cuts packets into segments before they leave, as a card does. The router sends at the rate of the cell, by HTB
with DualPI2; the client sends its ACKs after the round-trip time. Packets are kept as they come to the router and as
they leave it, so each one's time in the queue is known, and its ECN field. For each cell a line "CELL {…}".
"""

from __future__ import annotations

import contextlib
import ctypes
import fcntl
import json
import mmap
import socket
import struct
import subprocess
import sys
import threading
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

CLONE_NEWNET = 0x40000000
FIRST_PORT = 7001
SERVER_ADDRESS = "10.98.0.1"
# Of a packet of TCP with data.
PACKET_BYTES, ETHERNET_BYTES = 1500, 14
# Of linux/if_packet.h and linux/ethtool.h.
SOL_PACKET, PACKET_RX_RING, PACKET_STATISTICS, PACKET_VERSION, TPACKET_V2 = 263, 5, 6, 10, 1
SO_ATTACH_FILTER, ETH_P_ALL = 26, 3
SIOCETHTOOL, ETHTOOL_STSO, ETHTOOL_SGSO = 0x8946, 0x1F, 0x24
# Of a kept packet: only its headers, which a frame of this size has room for.
FRAME_BYTES, BLOCK_BYTES = 128, 1 << 20
# IPv4 packets of more than 500 bytes: those with data.
DATA = [(0x28, 0, 0, 12), (0x15, 0, 3, 0x0800), (0x28, 0, 0, 16), (0x25, 0, 1, 500), (0x06, 0, 0, 62), (0x06, 0, 0, 0)]
ECT1, CE = 1, 3
LIBC = ctypes.CDLL(None, use_errno=True)


def run(*command: str) -> None:
    subprocess.run(command, check=True)


@contextlib.contextmanager
def inside(name: str) -> Iterator[None]:
    """In this network namespace, as far as this thread is concerned."""

    def enter(path: str) -> None:
        with open(path) as file:
            if LIBC.setns(file.fileno(), CLONE_NEWNET) != 0:
                raise OSError(ctypes.get_errno(), f"setns {path}")

    enter(f"/run/netns/{name}")
    try:
        yield
    finally:
        enter("/proc/1/ns/net")


def without_segmentation(device: str) -> None:
    """Packets are cut before they leave through it."""
    with socket.socket() as sock:
        for command in (ETHTOOL_STSO, ETHTOOL_SGSO):
            value = ctypes.create_string_buffer(struct.pack("II", command, 0))
            fcntl.ioctl(sock, SIOCETHTOOL, struct.pack("16sP", device.encode(), ctypes.addressof(value)))


def connect_hosts() -> None:
    """The server stays in the first namespace, where `uncork kernel load` gives devices its program."""
    for name in ("router", "client"):
        run("ip2", "netns", "add", name)
    run("ip2", "link", "add", "server", "type", "veth", "peer", "in", "netns", "router")
    run("ip2", "-n", "router", "link", "add", "out", "type", "veth", "peer", "client", "netns", "client")
    run("ip2", "address", "add", f"{SERVER_ADDRESS}/24", "dev", "server")
    run("ip2", "-n", "router", "address", "add", "10.98.0.2/24", "dev", "in")
    run("ip2", "-n", "router", "address", "add", "10.99.0.2/24", "dev", "out")
    run("ip2", "-n", "client", "address", "add", "10.99.0.1/24", "dev", "client")
    run("ip2", "link", "set", "server", "up")
    for name, device in (("router", "in"), ("router", "out"), ("client", "client")):
        run("ip2", "-n", name, "link", "set", device, "up")
    run("ip2", "route", "add", "10.99.0.0/24", "via", "10.98.0.2")
    run("ip2", "-n", "client", "route", "add", "10.98.0.0/24", "via", "10.99.0.2")
    with inside("router"):
        Path("/proc/sys/net/ipv4/ip_forward").write_text("1")
    without_segmentation("server")
    Path("/proc/sys/net/ipv4/tcp_no_metrics_save").write_text("1")


def set_path(cell: dict[str, Any]) -> None:
    """The rate is of IP packets, as the simulator's is; HTB counts the header of Ethernet, too."""
    rate = int(cell["mbit"] * 1e6 * (PACKET_BYTES + ETHERNET_BYTES) / PACKET_BYTES)
    packet = str(PACKET_BYTES + ETHERNET_BYTES)
    for host, device in (("router", "out"), ("client", "client")):
        # Of the last cell, if there was one.
        subprocess.run(["tc2", "-n", host, "qdisc", "del", "dev", device, "root"], stderr=subprocess.DEVNULL)
    add = ["tc2", "-n", "router", "qdisc", "add", "dev", "out"]
    run(*add, "root", "handle", "1:", "htb", "default", "1")
    shape = ["rate", f"{rate}bit", "burst", packet, "cburst", packet, "quantum", packet]
    run("tc2", "-n", "router", "class", "add", "dev", "out", "parent", "1:", "classid", "1:1", "htb", *shape)
    # With its defaults: this `tc` does not know it.
    run(*add, "parent", "1:1", "handle", "2:", "dualpi2")
    # Bursts of at least this many segments, as Linux sends them, or none.
    Path("/proc/sys/net/ipv4/tcp_min_tso_segs").write_text(str(cell["min_tso_segs"]))
    run("ip2", "link", "set", "dev", "server", "gso_max_segs", "1" if cell["offload"] == "none" else "65535")
    delay = ["netem", "delay", f"{cell['rtt_ms']}ms", "limit", "100000"]
    run("tc2", "-n", "client", "qdisc", "add", "dev", "client", "root", *delay)


class Wire:
    """Keeps the headers of all packets with data on a device of the router."""

    def __init__(self, device: str, packets: int) -> None:
        blocks = packets * FRAME_BYTES // BLOCK_BYTES + 1
        self.frames = blocks * BLOCK_BYTES // FRAME_BYTES
        with inside("router"):
            self.socket = socket.socket(socket.AF_PACKET, socket.SOCK_RAW, 0)
        program = ctypes.create_string_buffer(b"".join(struct.pack("HBBI", *one) for one in DATA))
        head = struct.pack("HP", len(DATA), ctypes.addressof(program))
        self.socket.setsockopt(socket.SOL_SOCKET, SO_ATTACH_FILTER, head)
        self.socket.setsockopt(SOL_PACKET, PACKET_VERSION, TPACKET_V2)
        ring = struct.pack("IIII", BLOCK_BYTES, blocks, FRAME_BYTES, self.frames)
        self.socket.setsockopt(SOL_PACKET, PACKET_RX_RING, ring)
        self.memory = mmap.mmap(self.socket.fileno(), blocks * BLOCK_BYTES)
        self.socket.bind((device, ETH_P_ALL))

    def packets(self) -> Iterator[tuple[int, int, int, int]]:
        """Each one's time in ns, port, IP ID and ECN field."""
        for at in range(0, self.frames * FRAME_BYTES, FRAME_BYTES):
            status, _, _, _, ip, seconds, nanos = struct.unpack_from("IIIHHII", self.memory, at)
            if not status:
                return
            tos, _, number = struct.unpack_from("!BHH", self.memory, at + ip + 1)
            [port] = struct.unpack_from("!H", self.memory, at + ip + 20)
            yield seconds * 10**9 + nanos, port, number, tos & 3

    def close(self) -> int:
        """How many packets it did not keep."""
        _, lost = struct.unpack("II", self.socket.getsockopt(SOL_PACKET, PACKET_STATISTICS, 8))
        self.memory.close()
        self.socket.close()
        return int(lost)


class Flow:
    """An endless download."""

    def __init__(self, port: int, controller: str, ecn: str, start: float) -> None:
        self.controller, self.ecn, self.start = controller.encode(), ecn, start
        self.listener = socket.socket()
        self.listener.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        self.listener.setsockopt(socket.IPPROTO_TCP, socket.TCP_CONGESTION, self.controller)
        self.listener.bind((SERVER_ADDRESS, port))
        self.listener.listen()
        self.address = self.listener.getsockname()
        with inside("client"):
            self.client = socket.socket()
        # A client of Prague asks for AccECN by its own controller.
        asks = self.controller if ecn == "l4s" else b"cubic"
        self.client.setsockopt(socket.IPPROTO_TCP, socket.TCP_CONGESTION, asks)
        self.threads = [threading.Thread(target=one, daemon=True) for one in (self.send, self.receive)]

    def send(self) -> None:
        server, _ = self.listener.accept()
        self.listener.close()
        block = bytes(1 << 18)
        with contextlib.suppress(OSError):
            while True:
                server.sendall(block)

    def receive(self) -> None:
        time.sleep(self.start)
        with inside("client"):
            Path("/proc/sys/net/ipv4/tcp_ecn").write_text("1" if self.ecn == "classic" else "2")
        self.client.connect(self.address)
        with contextlib.suppress(OSError):
            while self.client.recv(1 << 20, socket.MSG_TRUNC):
                pass

    def close(self) -> None:
        # Resets the connection.
        self.client.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
        self.client.shutdown(socket.SHUT_RDWR)
        self.client.close()


class Datagrams:
    """An endless download by udp_prague."""

    def __init__(self, port: int, start: float) -> None:
        self.port, self.start = str(port), start
        self.ends: list[subprocess.Popen[bytes]] = []
        self.threads = [threading.Thread(target=self.run, daemon=True)]

    def run(self) -> None:
        time.sleep(self.start)
        to = ["-q", "-m", "1472", "-p", self.port]
        sender = subprocess.Popen(["udp_prague_sender", *to], stdout=subprocess.DEVNULL)
        time.sleep(0.1)
        receive = ["ip2", "netns", "exec", "client", "udp_prague_receiver", *to, "-c", "-a", SERVER_ADDRESS]
        self.ends = [sender, subprocess.Popen(receive, stdout=subprocess.DEVNULL)]

    def close(self) -> None:
        for end in self.ends:
            end.kill()
            end.wait()


def flow_of(port: int, controller: str, ecn: str, start: float) -> Flow | Datagrams:
    return Datagrams(port, start) if controller == "udp_prague" else Flow(port, controller, ecn, start)


def attributes(data: bytes) -> dict[int, bytes]:
    """Of netlink."""
    found, at = {}, 0
    while at + 4 <= len(data):
        length, kind = struct.unpack_from("HH", data, at)
        found[kind & 0x3FFF] = data[at + 4 : at + length]
        at += max(length + 3 & ~3, 4)
    return found


def counted() -> dict[str, int]:
    """What DualPI2 has counted (struct tc_dualpi2_xstats)."""
    with inside("router"), socket.socket(socket.AF_NETLINK, socket.SOCK_RAW, socket.NETLINK_ROUTE) as sock:
        # RTM_GETQDISC, a dump, with a struct tcmsg.
        sock.send(struct.pack("IHHII20x", 36, 38, 0x301, 1, 0))
        answer = sock.recv(1 << 16)
    at = 0
    while at < len(answer):
        [length] = struct.unpack_from("I", answer, at)
        found = attributes(answer[at + 36 : at + length])
        if found.get(1, b"").startswith(b"dualpi2"):
            names = ("probability", "delay_c", "delay_l", "in_c", "in_l", "longest", "marked", "by_step")
            return dict(zip(names, struct.unpack_from("8I", found[4]), strict=True))
        at += length + 3 & ~3
    sys.exit("DualPI2 is missing")


def by_port(wire: Wire, end_ns: int) -> dict[int, list[tuple[int, int, int]]]:
    """Time, IP ID and ECN field of the packets of each flow."""
    found: dict[int, list[tuple[int, int, int]]] = {}
    for at, port, number, ecn in wire.packets():
        if at < end_ns:
            found.setdefault(port, []).append((at, number, ecn))
    return found


def seen(came: list[tuple[int, int, int]], left: list[tuple[int, int, int]], warm_ns: int) -> dict[str, Any]:
    """Of a flow. Its packets leave in the order in which they came, or are dropped."""
    arrivals = iter(came)
    waits, marked = [], 0
    for at, number, ecn in left:
        came_at, _, had = next(one for one in arrivals if one[1] == number)
        waits.append(at - came_at)
        marked += ecn == CE != had
    dropped = len(came) - len(left) - sum(1 for _ in arrivals)
    waits.sort()
    return {
        "came": len(came),
        "dropped": dropped,
        "ect1": sum(ecn == ECT1 for _, _, ecn in came),
        "left_after_warmup": sum(at >= warm_ns for at, _, _ in left),
        "marked": marked,
        "p50_ms": waits[len(waits) // 2] / 1e6,
        "p99_ms": waits[len(waits) * 99 // 100] / 1e6,
    }


def idle_seconds() -> float:
    return float(Path("/proc/uptime").read_text().split()[1])


def play(cell: dict[str, Any]) -> None:
    set_path(cell)
    packets = int(cell["mbit"] * 1e6 / 8 / PACKET_BYTES * cell["seconds"] * 1.1) + 2000
    came, left = (Wire(device, packets) for device in ("in", "out"))
    flows = [flow_of(FIRST_PORT + place, *flow) for place, flow in enumerate(cell["flows"])]
    began_ns, idle = time.time_ns(), idle_seconds()
    for flow in flows:
        for thread in flow.threads:
            thread.start()
    time.sleep(cell["seconds"])
    busy = 1 - (idle_seconds() - idle) / cell["seconds"]
    queue = counted()
    for flow in flows:
        flow.close()
    warm_ns, end_ns = (began_ns + int(cell[key] * 1e9) for key in ("warmup", "seconds"))
    arrivals, departures = by_port(came, end_ns), by_port(left, end_ns)
    found = [seen(arrivals[port], departures[port], warm_ns) for port in sorted(arrivals)]
    not_kept = came.close() + left.close()
    print("CELL", json.dumps({**cell, "flows": found, "queue": queue, "busy": busy, "not_kept": not_kept}), flush=True)


def main() -> None:
    cells = json.loads(sys.argv[1])
    connect_hosts()
    for name in {controller for cell in cells for controller, _, _ in cell["flows"]}:
        if name.startswith("uncork_"):
            run("uncork", "kernel", "load", name)
    for cell in cells:
        play(cell)


main()
