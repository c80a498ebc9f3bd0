"""One host's TCP connections to a server, opened again whenever the server ends one."""

import collections
import dataclasses
import errno
import socket
import threading
import time
from collections.abc import Callable, Iterator

NEW_PER_TURN = 50


@dataclasses.dataclass(frozen=True)
class Attack:
    """What each of `connections` sends: first the generator's first bytes, then the next ones every second."""

    http: int
    sends: Callable[[], Iterator[bytes]]
    connections: int
    reads: bool = True


class Connection:
    def __init__(self, port, attack):
        self.socket = socket.socket()
        self.socket.settimeout(1)
        if not attack.reads:
            self.socket.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 4096)
        try:
            self.socket.connect(("127.0.0.1", port))
        except OSError:
            self.socket.close()
            raise
        self.socket.setblocking(False)
        self.sends = attack.sends()
        self.waiting = b""
        self.next = 0.0

    def send(self, now):
        """Sends what is due; the number of bytes."""
        if not self.waiting and now >= self.next:
            self.waiting = next(self.sends)
            self.next = now + 1
        try:
            sent = self.socket.send(self.waiting) if self.waiting else 0
        except BlockingIOError:
            return 0
        self.waiting = self.waiting[sent:]
        return sent

    def is_over(self, reads):
        """Reads what the server says; where nothing is read, the kernel is asked."""
        try:
            if reads:
                return not self.socket.recv(1 << 16)
            established = 1
            return self.socket.getsockopt(socket.IPPROTO_TCP, socket.TCP_INFO, 1)[0] != established
        except BlockingIOError:
            return False


class Attacker(threading.Thread):
    """Attacks until `is_over` is set."""

    def __init__(self, port, attack):
        super().__init__(daemon=True)
        self.port, self.attack = port, attack
        self.is_over = False
        self.opened = self.sent = 0
        self.errors = collections.Counter()


class Swarm(Attacker):
    """Keeps this number of connections open. Replaces each one closed by the server."""

    def run(self):
        connections = []
        while not self.is_over:
            self.open(connections)
            now = time.monotonic()
            connections = [it for it in connections if self.lives(it, now)]
            time.sleep(0.05)
        for it in connections:
            it.socket.close()

    def open(self, connections):
        for _ in range(min(NEW_PER_TURN, self.attack.connections - len(connections))):
            try:
                connections.append(Connection(self.port, self.attack))
            except OSError as error:
                self.errors[error_name(error)] += 1
                return
            self.opened += 1

    def lives(self, connection, now):
        try:
            self.sent += connection.send(now)
            if not connection.is_over(self.attack.reads):
                return True
        except OSError as error:
            self.errors[error_name(error)] += 1
        connection.socket.close()
        return False


def error_name(error):
    return errno.errorcode.get(error.errno, type(error).__name__)
