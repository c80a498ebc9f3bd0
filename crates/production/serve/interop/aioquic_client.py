#!/usr/bin/env python3
"""HTTP/3 over aioquic: `aioquic_client.py HOST PORT CHECK`, where CHECK is one of those below.

Prints a line for each response: status, bytes, SHA-256; then what the check adds.
"""

import asyncio
import hashlib
import ssl
import sys

from aioquic.asyncio.client import connect
from aioquic.asyncio.protocol import QuicConnectionProtocol
from aioquic.h3.connection import H3_ALPN, H3Connection
from aioquic.h3.events import DataReceived, HeadersReceived
from aioquic.quic.configuration import QuicConfiguration
from aioquic.quic.events import StreamReset


class Client(QuicConnectionProtocol):
    def __init__(self, *arguments, **options):
        super().__init__(*arguments, **options)
        self.http = H3Connection(self._quic)
        self.responses = {}

    def begin(self, path, headers=()):
        stream = self._quic.get_next_available_stream_id()
        host = f"{HOST}:{PORT}".encode()
        head = [(b":method", b"GET"), (b":scheme", b"https"), (b":authority", host), (b":path", path)]
        self.http.send_headers(stream, [*head, *headers], end_stream=True)
        self.responses[stream] = {"status": None, "body": bytearray(), "end": asyncio.Event()}
        self.transmit()
        return self.responses[stream]

    async def get(self, path, headers=()):
        response = self.begin(path, headers)
        await asyncio.wait_for(response["end"].wait(), 60)
        print(response["status"], len(response["body"]), hashlib.sha256(response["body"]).hexdigest())

    def quic_event_received(self, event):
        if isinstance(event, StreamReset) and event.stream_id in self.responses:
            self.responses[event.stream_id]["end"].set()
        for it in self.http.handle_event(event):
            response = self.responses.get(it.stream_id)
            if response and isinstance(it, HeadersReceived):
                response["status"] = dict(it.headers)[b":status"].decode()
            elif response and isinstance(it, DataReceived):
                response["body"] += it.data
            if response and getattr(it, "stream_ended", False):
                response["end"].set()


async def download():
    async with connected() as client:
        await client.get(b"/large")


async def ranges():
    async with connected() as client:
        await client.get(b"/large", [(b"range", b"bytes=1000-1999")])


async def resumption():
    """A ticket of the first connection makes the second one short, and lets its request go ahead."""
    tickets = []
    async with connected(session_ticket_handler=tickets.append) as client:
        await client.get(b"/small")
        await asyncio.sleep(0.2)
    if not tickets:
        print("no ticket")
        return
    async with connected(wait=False, session_ticket=tickets[0]) as client:
        await client.get(b"/small")
        print("resumed", client._quic.tls.session_resumed)
        print("early data", client._quic.tls.early_data_accepted)


async def migration():
    """The client's address changes in the midst of a response (RFC 9000 §9)."""
    async with connected() as client:
        response = client.begin(b"/large")
        while len(response["body"]) < 100_000:
            await asyncio.sleep(0.01)
        client.change_connection_id()
        client._transport.close()
        loop = asyncio.get_running_loop()
        await loop.create_datagram_endpoint(lambda: client, local_addr=("::", 0))
        await asyncio.wait_for(response["end"].wait(), 60)
        print(response["status"], len(response["body"]), hashlib.sha256(response["body"]).hexdigest())


async def key_update():
    """New keys in the midst of a response (RFC 9001 §6)."""
    async with connected() as client:
        response = client.begin(b"/large")
        while len(response["body"]) < 100_000:
            await asyncio.sleep(0.01)
        client.request_key_update()
        client.transmit()
        await asyncio.wait_for(response["end"].wait(), 60)
        print(response["status"], len(response["body"]), hashlib.sha256(response["body"]).hexdigest())


def connected(wait=True, session_ticket_handler=None, session_ticket=None):
    configuration = QuicConfiguration(is_client=True, alpn_protocols=H3_ALPN, verify_mode=ssl.CERT_NONE)
    configuration.session_ticket = session_ticket
    return connect(HOST, PORT, configuration=configuration, create_protocol=Client,
                   session_ticket_handler=session_ticket_handler, wait_connected=wait)  # fmt: skip


if __name__ == "__main__":
    HOST, PORT, CHECK = sys.argv[1], int(sys.argv[2]), sys.argv[3]
    asyncio.run({it.__name__: it for it in (download, ranges, resumption, migration, key_update)}[CHECK]())
