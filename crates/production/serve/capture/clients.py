"""Clients of HTTP/1.1, 2 and 3 that end their connections in every way, and write down what they saw.

Every request has a host name of its own, by which the server's record of it is found.
"""

import asyncio
import collections
import json
import random
import socket
import ssl
import struct
import sys
import time

import h2.config
import h2.connection
import h2.events
import h2.exceptions
from aioquic.asyncio.protocol import QuicConnectionProtocol
from aioquic.h3.connection import H3_ALPN, H3Connection
from aioquic.h3.events import DataReceived
from aioquic.quic.configuration import QuicConfiguration
from aioquic.quic.connection import QuicConnection

SIZES = {"100": 100, "1k": 1_000, "10k": 10_000, "60k": 60_000, "300k": 300_000, "1m": 1_000_000}
WEIGHTS = {"h1": (4, 4, 4, 4, 2, 1), "h2": (4, 4, 4, 4, 2, 1), "h3": (5, 5, 5, 3, 1, 0.2)}
# The last response of a connection, and how the connection ends:
#
# close     whole; FIN, GOAWAY or CONNECTION_CLOSE at once
# reset     whole; RST, or CONNECTION_CLOSE with an error, at once
# later     whole; closed after half a second
# vanish    whole; over UDP nothing more is sent, over TCP the connection is left open
# abort     in part; closed
# kill      in part; RST, or nothing more over UDP
# cancel    in part; RST_STREAM or STOP_SENDING, then one more, whole
ENDS = ("close", "reset", "later", "vanish", "abort", "kill", "cancel")
PATIENCE = 60


class Response:
    def __init__(self, protocol, connection, number, file):
        self.host = f"r{number}.test"
        self.protocol, self.connection, self.file, self.size = protocol, connection, file, SIZES[file]
        self.received = 0
        self.asked = time.time()
        self.ended = None
        self.news = asyncio.Event()

    def add(self, count):
        self.received += count
        self.news.set()

    def end(self):
        self.ended = time.time()
        self.news.set()

    async def wait(self, bytes_wanted=None):
        """Waits for a number of bytes, or for the end."""
        deadline = time.monotonic() + PATIENCE
        while self.ended is None and (bytes_wanted is None or self.received < bytes_wanted):
            self.news.clear()
            await asyncio.wait_for(self.news.wait(), deadline - time.monotonic())

    def report(self, end):
        whole = self.ended is not None and self.received == self.size
        names = ("host", "protocol", "connection", "size", "received", "asked", "ended")
        return {name: getattr(self, name) for name in names} | {"whole": whole, "end": end}


class Http1:
    parallel = 1

    async def open(self, address):
        self.reader, self.writer = await asyncio.open_connection(*address, ssl=tls(["http/1.1"]), ssl_shutdown_timeout=1)
        self.socket = self.writer.get_extra_info("socket")
        return self.socket.getsockname()[1]

    def ask(self, response):
        self.writer.write(f"GET /{response.file} HTTP/1.1\r\nHost: {response.host}\r\n\r\n".encode())
        self.task = asyncio.ensure_future(self.read(response))

    async def read(self, response):
        await self.reader.readuntil(b"\r\n\r\n")
        while response.received < response.size:
            response.add(len(await self.reader.read(min(1 << 16, response.size - response.received))))
        response.end()

    async def cancel(self, response):
        """HTTP/1.1 cannot."""
        await response.wait()

    async def close(self):
        self.task.cancel()
        self.writer.close()

    def reset(self):
        self.task.cancel()
        self.socket.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
        self.writer.transport.abort()

    kill = reset

    def vanish(self):
        """A TCP connection cannot be left without a word: it stays open until the end."""
        KEPT.append(self)


class Http2(Http1):
    parallel = 4

    async def open(self, address):
        self.reader, self.writer = await asyncio.open_connection(*address, ssl=tls(["h2"]), ssl_shutdown_timeout=1)
        self.socket = self.writer.get_extra_info("socket")
        self.http = h2.connection.H2Connection(h2.config.H2Configuration(header_encoding=None))
        self.http.initiate_connection()
        self.responses = {}
        self.flush()
        self.task = asyncio.ensure_future(self.read_all())
        return self.socket.getsockname()[1]

    def flush(self):
        self.writer.write(self.http.data_to_send())

    def ask(self, response):
        stream = self.http.get_next_available_stream_id()
        head = [(":method", "GET"), (":scheme", "https"), (":authority", response.host), (":path", f"/{response.file}")]
        self.http.send_headers(stream, head, end_stream=True)
        self.responses[stream] = response
        self.flush()

    async def read_all(self):
        while piece := await self.reader.read(1 << 16):
            try:
                events = self.http.receive_data(piece)
            except h2.exceptions.ProtocolError:
                return  # The connection was closed here.
            for it in events:
                response = self.responses.get(getattr(it, "stream_id", None))
                if isinstance(it, h2.events.DataReceived):
                    self.http.acknowledge_received_data(it.flow_controlled_length, it.stream_id)
                    response and response.add(len(it.data))
                elif response and isinstance(it, h2.events.StreamEnded):
                    response.end()
            self.flush()

    async def cancel(self, response):
        if response.ended is None:
            self.http.reset_stream(forget(self.responses, response), 8)
            self.flush()

    async def close(self):
        self.http.close_connection()
        self.flush()
        await super().close()


class Http3:
    parallel = 4

    async def open(self, address):
        options = QuicConfiguration(is_client=True, alpn_protocols=H3_ALPN, verify_mode=ssl.CERT_NONE)
        options.server_name = "test"
        loop = asyncio.get_running_loop()
        self.transport, self.client = await loop.create_datagram_endpoint(
            lambda: QuicClient(QuicConnection(configuration=options)), local_addr=("0.0.0.0", 0)
        )
        self.client.connect(address)
        await asyncio.wait_for(self.client.wait_connected(), PATIENCE)
        return self.transport.get_extra_info("sockname")[1]

    def ask(self, response):
        stream = self.client._quic.get_next_available_stream_id()
        names = (b":method", b":scheme", b":authority", b":path")
        values = (b"GET", b"https", response.host.encode(), b"/" + response.file.encode())
        self.client.http.send_headers(stream, list(zip(names, values, strict=True)), end_stream=True)
        self.client.responses[stream] = response
        self.client.transmit()

    async def cancel(self, response):
        if response.ended is None:
            self.client._quic.stop_stream(forget(self.client.responses, response), 0x10C)
            self.client.transmit()

    async def close(self):
        self.end(0x100)

    def reset(self):
        self.end(0x102)

    def end(self, error_code):
        self.client.close(error_code=error_code)
        asyncio.get_running_loop().call_later(3, self.kill)

    def kill(self):
        """Sends no more packets from now on."""
        self.client.transmit = lambda: None

    vanish = kill


class QuicClient(QuicConnectionProtocol):
    def __init__(self, *arguments):
        super().__init__(*arguments)
        self.http = H3Connection(self._quic)
        self.responses = {}

    def quic_event_received(self, event):
        for it in self.http.handle_event(event):
            response = self.responses.get(getattr(it, "stream_id", None))
            if response and isinstance(it, DataReceived):
                response.add(len(it.data))
            if response and getattr(it, "stream_ended", False):
                response.end()


def forget(responses, response):
    """What arrives of it from now on does not count; its stream."""
    stream = next(stream for stream, it in responses.items() if it is response)
    del responses[stream]
    return stream


def tls(protocols):
    context = ssl.create_default_context()
    context.check_hostname, context.verify_mode = False, ssl.CERT_NONE
    context.set_alpn_protocols(protocols)
    return context


KINDS = {"h1": Http1, "h2": Http2, "h3": Http3}
KEPT: list = []


class Plan:
    """Deals out connections until there are enough responses."""

    def __init__(self, responses, seed):
        self.random = random.Random(seed)
        self.left, self.number, self.connections = responses, 0, 0
        self.report = collections.defaultdict(list)

    def response(self, protocol, connection):
        self.number += 1
        file = self.random.choices(list(SIZES), WEIGHTS[protocol])[0]
        return Response(protocol, connection, self.number, file)

    async def play(self, address):
        while self.left > 0:
            protocol, end, count = self.random.choice(list(KINDS)), self.random.choice(ENDS), self.random.randint(1, 5)
            self.left -= count
            self.connections += 1
            await self.connection(address, protocol, end, count)

    async def connection(self, address, protocol, end, count):
        client, number, responses = KINDS[protocol](), self.connections, []
        connection = {"connection": number, "protocol": protocol, "end": end, "opened": time.time()}
        connection["port"] = await client.open(address)

        async def ask():
            responses.append(self.response(protocol, number))
            client.ask(responses[-1])
            return responses[-1]

        try:
            last = await self.converse(client, ask, end, count)
        except TimeoutError:
            last, connection["end"] = responses[-1], "stuck"
        if connection["end"] in ("vanish", "later"):
            await asyncio.sleep(0.5)
        connection["closed"] = time.time()
        ended = getattr(client, end if end in ("reset", "kill", "vanish") else "close")()
        if ended is not None:
            await asyncio.wait_for(ended, PATIENCE)
        self.report["connections"].append(connection)
        self.report["responses"] += [it.report(connection["end"] if it is last else "") for it in responses]

    async def converse(self, client, ask, end, count):
        """Asks for `count` files; returns the response that ends in the way of the connection."""
        left = count - 1
        while left > 0:
            together = [await ask() for _ in range(min(client.parallel, left))]
            left -= len(together)
            for it in together:
                await it.wait()
        last = await ask()
        if end not in ("abort", "kill", "cancel"):
            await last.wait()
            return last
        await last.wait(self.random.randrange(last.size))
        if end == "cancel":
            await client.cancel(last)
            await (await ask()).wait()
        return last


async def main(host, port, responses, seed, output):
    plan = Plan(int(responses), int(seed))
    await asyncio.gather(*(plan.play((host, int(port))) for _ in range(20)))
    with open(output, "w") as file:
        json.dump(plan.report, file)


if __name__ == "__main__":
    asyncio.run(main(*sys.argv[1:]))
