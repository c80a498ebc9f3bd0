#!/usr/bin/env python3
"""One host against a server: HTTP/2 connections whose streams may send one byte each, kept alive by PINGs; or, with
`--http 1`, HTTP/1.1 connections that ask for a large file and read nothing.

Starts the server on loopback, attacks it from 127.0.0.1 for a bounded time, and lets clients from 127.0.0.1 and 127.0.0.2
fetch a small file meanwhile, each on a connection of its own. Exits with 1 if clients of the other address had less than
99 % success, or the server held more than it may. Uses nothing but the standard library.

    blocked_streams.py --uncork target/release/uncork
    blocked_streams.py --uncork target/release/uncork --http 1 --connections 5000
    blocked_streams.py --nginx /usr/sbin/nginx
"""

import argparse
import collections
import os
import pathlib
import resource
import selectors
import socket
import struct
import subprocess
import sys
import tempfile
import threading
import time
import urllib.request

PREFACE = b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n"
DESCRIPTORS = 20_000
MOST_MIB = 400
MOST_DESCRIPTORS = 2_000


def frame(kind, flags, stream, payload):
    return struct.pack(">I", len(payload))[1:] + bytes([kind, flags]) + struct.pack(">I", stream) + payload


def literal(name_index, value):
    return bytes([name_index, len(value)]) + value


def attack_bytes(http, streams):
    """SETTINGS with a window of one byte, and requests for /large; of HTTP/1.1 one request."""
    if http == 1:
        return b"GET /large HTTP/1.1\r\nHost: localhost\r\n\r\n"
    settings = frame(4, 0, 0, struct.pack(">HI", 4, 1))
    head = b"\x82\x86" + literal(0x04, b"/large") + literal(0x01, b"localhost")
    requests = b"".join(frame(1, 5, 2 * n + 1, head) for n in range(streams))
    return PREFACE + settings + requests


PING = frame(6, 0, 0, bytes(8))


class Attack(threading.Thread):
    """Keeps so many connections open, whatever the server does to them."""

    def __init__(self, port, http, connections, streams):
        super().__init__(daemon=True)
        self.port, self.http, self.connections = port, http, connections
        self.hello = attack_bytes(http, streams)
        self.is_over = False
        self.opened = self.sent = 0

    def run(self):
        selector = selectors.DefaultSelector()
        last_ping = time.monotonic()
        while not self.is_over:
            while len(selector.get_map()) < self.connections and not self.is_over:
                try:
                    new = socket.socket()
                    new.settimeout(1)
                    if self.http == 1:
                        new.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 4096)
                    new.connect(("127.0.0.1", self.port))
                    new.sendall(self.hello)
                    new.setblocking(False)
                except OSError:
                    break
                self.opened += 1
                self.sent += len(self.hello)
                selector.register(new, selectors.EVENT_READ)
            for key in self.to_look_at(selector):
                if self.is_gone(key.fileobj):
                    selector.unregister(key.fileobj)
                    key.fileobj.close()
            if self.http == 2 and time.monotonic() - last_ping > 5:
                last_ping = time.monotonic()
                for key in list(selector.get_map().values()):
                    try:
                        self.sent += key.fileobj.send(PING)
                    except OSError:
                        pass
        for key in list(selector.get_map().values()):
            key.fileobj.close()


    def to_look_at(self, selector):
        if self.http == 2:
            return [key for key, _ in selector.select(0.1)]
        time.sleep(0.5)
        return list(selector.get_map().values())

    def is_gone(self, client):
        """Reads what an HTTP/2 server says; of HTTP/1.1 nothing is read, so the kernel is asked."""
        try:
            if self.http == 2:
                return not client.recv(1 << 16)
            established = 1
            return client.getsockopt(socket.IPPROTO_TCP, socket.TCP_INFO, 1)[0] != established
        except OSError:
            return True


class Clients(threading.Thread):
    """Fetches the small file again and again from an address of its own."""

    def __init__(self, port, address):
        super().__init__(daemon=True)
        self.port, self.address = port, address
        self.is_over = False
        self.outcomes = collections.Counter()
        self.slowest = 0.0

    def run(self):
        while not self.is_over:
            began = time.monotonic()
            self.outcomes[self.fetch()] += 1
            self.slowest = max(self.slowest, time.monotonic() - began)
            time.sleep(0.05)

    def fetch(self):
        try:
            with socket.create_connection(("127.0.0.1", self.port), 5, (self.address, 0)) as client:
                client.settimeout(5)
                client.sendall(b"GET /small HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n\r\n")
                answer = b""
                while piece := client.recv(1 << 16):
                    answer += piece
        except OSError as error:
            return type(error).__name__
        return "ok" if answer.startswith(b"HTTP/1.1 200") and answer.endswith(b"\r\n\r\nsmall") else "wrong"

    def share(self):
        return self.outcomes["ok"] / max(1, sum(self.outcomes.values()))


def free_port():
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return probe.getsockname()[1]


NGINX = """
daemon off; worker_processes 1; pid {dir}/pid; error_log {dir}/error.log; worker_rlimit_nofile 20000;
events {{ worker_connections 10000; }}
http {{
  access_log off; client_body_temp_path {dir}/b; proxy_temp_path {dir}/p; fastcgi_temp_path {dir}/f;
  uwsgi_temp_path {dir}/u; scgi_temp_path {dir}/s;
  server {{ listen 127.0.0.1:{http2} http2; listen 127.0.0.1:{port}; root {dir}/root; location = /healthz {{ return 200 ok; }} }}
}}
"""


def start(args, scratch):
    """The server's process, its ports for clients and for the attack, and where its health is told."""
    port, admin = free_port(), free_port()
    attacked = port
    root = scratch / "root"
    root.mkdir()
    (root / "small").write_text("small")
    (root / "large").write_bytes(bytes(1 << 20))
    if args.uncork:
        command = [args.uncork, "serve", "--root", root, "--listen", f"127.0.0.1:{port}",
                   "--admin", f"127.0.0.1:{admin}", "--quiet"]
        health = f"http://127.0.0.1:{admin}/healthz"
    else:
        config = scratch / "nginx.conf"
        # It talks no HTTP/1.1 on a port of HTTP/2 without TLS.
        attacked = free_port()
        config.write_text(NGINX.format(dir=scratch, port=port, http2=attacked))
        os.chmod(scratch, 0o755)
        command = [args.nginx, "-c", config]
        health = f"http://127.0.0.1:{port}/healthz"
    limit = lambda: resource.setrlimit(resource.RLIMIT_NOFILE, (DESCRIPTORS, DESCRIPTORS))
    server = subprocess.Popen(command, stdout=subprocess.DEVNULL, preexec_fn=limit)
    for _ in range(100):
        try:
            socket.create_connection(("127.0.0.1", port), 1).close()
            return server, (port, attacked), health
        except OSError:
            time.sleep(0.1)
    server.kill()
    sys.exit("the server does not start")


def processes(parent):
    children = pathlib.Path(f"/proc/{parent}/task/{parent}/children").read_text().split()
    return [parent, *map(int, children)]


def usage(parent):
    """MiB and descriptors of a process and its children."""
    kib = descriptors = 0
    for pid in processes(parent):
        status = pathlib.Path(f"/proc/{pid}/status").read_text()
        kib += int(status.split("VmRSS:")[1].split()[0])
        descriptors += len(os.listdir(f"/proc/{pid}/fd"))
    return kib // 1024, descriptors


def is_healthy(url):
    try:
        return urllib.request.urlopen(url, timeout=2).status == 200
    except OSError:
        return False


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    which = parser.add_mutually_exclusive_group(required=True)
    which.add_argument("--uncork")
    which.add_argument("--nginx")
    parser.add_argument("--http", type=int, choices=(1, 2), default=2)
    parser.add_argument("--connections", type=int, default=205)
    parser.add_argument("--streams", type=int, default=100)
    parser.add_argument("--seconds", type=float, default=60)
    args = parser.parse_args()
    with tempfile.TemporaryDirectory() as directory:
        server, (port, attacked), health = start(args, pathlib.Path(directory))
        try:
            attack = Attack(attacked if args.http == 2 else port, args.http, args.connections, args.streams)
            clients = [Clients(port, address) for address in ("127.0.0.1", "127.0.0.2")]
            for thread in (*clients, attack):
                thread.start()
            most_mib = most_descriptors = unhealthy = looks = 0
            end = time.monotonic() + args.seconds
            while time.monotonic() < end:
                time.sleep(1)
                mib, descriptors = usage(server.pid)
                most_mib, most_descriptors = max(most_mib, mib), max(most_descriptors, descriptors)
                looks += 1
                unhealthy += not is_healthy(health)
            for thread in (*clients, attack):
                thread.is_over = True
            for thread in (*clients, attack):
                thread.join(15)
        finally:
            server.terminate()
            server.wait(60)
    print(f"attack: {attack.opened} connections opened, {attack.sent / 1e6:.1f} MB sent in {args.seconds:.0f} s")
    for client in clients:
        print(f"clients of {client.address}: {client.share():.1%} of {sum(client.outcomes.values())},"
              f" slowest {client.slowest:.2f} s, {dict(client.outcomes)}")
    print(f"server: at most {most_mib} MiB, {most_descriptors} descriptors; unhealthy {unhealthy} of {looks} times")
    if clients[1].share() < 0.99 or most_mib > MOST_MIB or most_descriptors > MOST_DESCRIPTORS or unhealthy:
        sys.exit("the attack had an effect")


main()
