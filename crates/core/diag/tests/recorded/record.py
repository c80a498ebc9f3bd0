#!/usr/bin/env python3
"""Records what the running kernel's sock_diag says, for ../recorded.rs.

Run as root: unshare --net ./record.py [DIRECTORY]

For each congestion control a client sends 300000 bytes over loopback and reads 1000 back; a
listener on [::] takes a connection over IPv4, one client is left in time-wait, one loses its server,
which is in a namespace of its own, in the midst of a transfer. FAMILY.hex has one datagram of the dump
a line; FAMILY.ss what ss, which shares no code with this crate, makes of the same sockets.
"""

import ctypes
import os
import socket
import struct
import subprocess
import sys
import time

DIRECTORY = sys.argv[1] if len(sys.argv) > 1 else "."
SENT, ANSWER = 300_000, 1_000


def connect(listener, family, address, cc=None):
    client = socket.socket(family, socket.SOCK_STREAM)
    if cc:
        client.setsockopt(socket.IPPROTO_TCP, socket.TCP_CONGESTION, cc.encode())
    client.connect(address)
    return client, listener.accept()[0]


def read(sock, length):
    while length:
        length -= len(sock.recv(length))


def dump(family):
    """Multi-part on purpose: 4 KiB of room make the kernel send small datagrams."""
    diag = socket.socket(socket.AF_NETLINK, socket.SOCK_RAW, 4)
    extensions = 1 << 1 | 1 << 2 | 1 << 3 | 1 << 6
    body = struct.pack("=BBBxI", family, socket.IPPROTO_TCP, extensions, 0xFFFFFFFF) + bytes(48)
    diag.send(struct.pack("=IHHII", 16 + len(body), 20, 0x301, 1, 0) + body)
    datagrams = []
    while True:
        datagram = diag.recv(4096)
        datagrams.append(datagram.hex())
        at = 0
        while at < len(datagram):
            length, kind = struct.unpack_from("=IH", datagram, at)
            if kind == 3:
                return datagrams
            at += (length + 3) & ~3


def run(command):
    subprocess.run(command.split(), check=True)


def enter(namespace):
    if ctypes.CDLL(None, use_errno=True).setns(namespace, 0):
        raise OSError(ctypes.get_errno(), "setns")


def lose_the_server():
    """A client: its last 100000 bytes are lost."""
    here = os.open("/proc/self/ns/net", os.O_RDONLY)
    holder = subprocess.Popen(["unshare", "--net", "sleep", "60"])
    time.sleep(0.2)
    there = os.open(f"/proc/{holder.pid}/ns/net", os.O_RDONLY)
    run(f"ip link add va type veth peer name vb netns {holder.pid}")
    run("ip addr add 10.0.0.1/24 dev va")
    run("ip link set va up")
    enter(there)
    run("ip addr add 10.0.0.2/24 dev vb")
    run("ip link set vb up")
    listener = socket.create_server(("10.0.0.2", 5003))
    enter(here)
    client, server = connect(listener, socket.AF_INET, ("10.0.0.2", 5003), "cubic")
    client.sendall(bytes(SENT))
    read(server, SENT)
    enter(there)
    run("ip addr flush dev vb")
    enter(here)
    client.sendall(bytes(100_000))
    time.sleep(1)
    return [holder, listener, client, server]


run("ip link set lo up")
v4 = socket.create_server(("127.0.0.1", 5001))
v6 = socket.create_server(("::", 5002), family=socket.AF_INET6, dualstack_ipv6=True)
kept = []
for cc in ["reno", "cubic", "bbr"]:
    client, server = connect(v4, socket.AF_INET, ("127.0.0.1", 5001), cc)
    for _ in range(10):
        client.sendall(bytes(SENT // 10))
        read(server, SENT // 10)
    server.sendall(bytes(ANSWER))
    read(client, ANSWER)
    kept += [client, server]
kept += connect(v6, socket.AF_INET, ("127.0.0.1", 5002), "reno")
kept += connect(v6, socket.AF_INET6, ("::1", 5002), "bbr")
client, server = connect(v4, socket.AF_INET, ("127.0.0.1", 5001), "reno")
client.close()
server.close()
lost = lose_the_server()

for name, family in [("ipv4", socket.AF_INET), ("ipv6", socket.AF_INET6)]:
    with open(f"{DIRECTORY}/{name}.hex", "w") as file:
        file.write("\n".join(dump(family)) + "\n")
    with open(f"{DIRECTORY}/{name}.ss", "w") as file:
        options = ["-tainemOH", "-4" if name == "ipv4" else "-6"]
        result = subprocess.run(["ss", *options], check=True, capture_output=True, text=True)
        file.writelines(line.rstrip() + "\n" for line in result.stdout.splitlines())
lost[0].terminate()
