"""CMCD (CTA-5004): what players report about themselves, versions 1 and 2.

A request of a player is a chunk with its bandwidth. Stutters and playback latency belong to a session, which
is kept in memory until the file ends, or until too many others are open.
"""

import json
import re
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field
from typing import Final
from urllib.parse import unquote

from uncork.measure.sources.lines import NoRecordError, Read, Row, RowError

SESSIONS: Final = 100_000
"""Sessions in memory. Beyond it, the session that has been idle longest is written."""

_NUMBERS: Final = ("br", "d", "ttfb", "ttlb", "msd", "bsa", "bsd", "bsda")
"""Without `mtp`: a chunk may have its own time."""

DECODINGS: Final = 3
"""How often a payload may be encoded: by the player, and by servers that log it."""

_CAPTIONS: Final = ("tt", "c")
"""Types of objects that are shown next to the film, and are not its seconds."""

_KEY: Final = re.compile(r"[A-Za-z][A-Za-z0-9._-]*")
"""Keys of one's own have the name of a domain in front: ``com.example-bitrate``."""

_PARTS: Final = re.compile(r'(?:"(?:[^"\\]|\\.)*"|\([^)]*\)|[^,])+')
"""What stands between commas, but for those in quotation marks and in lists."""

_IN_QUERY: Final = re.compile(r"(?:^|[?&\s\"])cmcd=([^&\s#]*)", re.IGNORECASE)
_URL: Final = re.compile(r"https?://|/(?!/\d\.\d@V/)")
_AKAMAI: Final = re.compile(r"^//\d\.\d@V/")
"""Before the payload in Akamai's DataStream."""


def parse(payload: str) -> Row:
    """The keys of a payload. Of an inner list (version 2) the first member counts; a key alone is true. A
    part that is not a key costs nothing but itself.
    """
    if payload.startswith("{"):
        return _parse_json(payload)
    row: Row = {}
    for part in _PARTS.findall(payload):
        name, equals, value = part.strip().partition("=")
        if _KEY.fullmatch(name):
            row[name] = _value(value if equals else None)
    if not row:
        raise RowError("CMCD: no list of keys and values")
    return row


def _parse_json(payload: str) -> Row:
    """The form in JSON of version 1."""
    try:
        row = json.loads(payload)
    except (ValueError, RecursionError):
        row = None
    if not isinstance(row, dict) or not row:
        raise RowError("CMCD: no list of keys and values")
    return {str(name): _member(value) for name, value in row.items()}


def _member(value: object) -> object:
    """Of an inner list the first member counts."""
    if isinstance(value, list):
        return _member(value[0]) if value else None
    return value if value is None or isinstance(value, bool | str) else str(value)


def _value(text: str | None) -> object:
    if text is None:
        return True
    if text.startswith("("):
        members = text[1:-1].split()
        return _value(members[0].split(";")[0]) if members else None
    if text.startswith('"'):
        return re.sub(r"\\(.)", r"\1", text[1:-1])
    return {"?1": True, "?0": False}.get(text, text)


def payload_of(text: str) -> str | None:
    """The payload in a field: a URL, query or request line with ``CMCD=…``, or the payload itself, perhaps
    encoded. A plus sign is itself: players encode with ``encodeURIComponent``.
    """
    found = _IN_QUERY.search(text)
    if found is None and _URL.match(text):
        return None
    payload = unquote(found[1] if found else text)
    for _ in range(DECODINGS - 1):
        if _is_list(payload):
            break
        payload = unquote(payload)
    return _AKAMAI.sub("", payload) or None


def _is_list(payload: str) -> bool:
    """Whether keys and values can be read: what is encoded in them stays as it is."""
    return "=" in payload or payload.startswith("{")


def payload_in(values: Iterable[object]) -> Row:
    """The keys in the fields of a row: of one with a URL or payload, or of the four headers. Raises
    ``RowError``.
    """
    texts: list[str] = []
    row: Row = {}
    for value in values:
        # Headers of some servers are lists, or are objects already.
        text = ",".join(map(str, value)) if isinstance(value, list) else value
        text = json.dumps(text) if isinstance(text, dict) else str(text or "")
        if text in ("", "-"):
            continue
        if text.startswith("{"):
            row |= parse(text)
        else:
            texts.append(text)
    payload = payload_of(",".join(texts)) if texts else None
    row |= parse(payload) if payload else {}
    if not row:
        raise NoRecordError("no CMCD")
    return row


@dataclass
class _Track:
    """What the requests for audio report, or all others."""

    stutters: int = 0
    stalled_ms: int = 0
    played_ms: int = 0


@dataclass
class _Session:
    """A song or film of a player so far. Requests for audio and for video report the same stall, and the same
    seconds of the film: the larger sum of both counts.
    """

    row: Row
    audio: _Track = field(default_factory=_Track)
    others: _Track = field(default_factory=_Track)
    total_stutters: int = 0
    total_stalled_ms: int = 0
    startup_ms: int | None = None

    def add(self, keys: Row) -> None:
        """A further request or event. Counts since the start (``bsa``, ``bsda``) go before single ones."""
        track = self.audio if keys.get("ot") == "a" else self.others
        track.stutters += keys.get("bs") is True
        self.total_stutters = max(self.total_stutters, _whole(keys, "bsa") or 0)
        track.stalled_ms += _whole(keys, "bsd") or 0
        self.total_stalled_ms = max(self.total_stalled_ms, _whole(keys, "bsda") or 0)
        is_played = keys.get("ot") not in _CAPTIONS and not _is_failed(keys)
        if ("e" not in keys or keys["e"] == "rr") and is_played:
            track.played_ms += _whole(keys, "d") or 0
        self.startup_ms = self.startup_ms if self.startup_ms is not None else _whole(keys, "msd")

    def finished(self) -> Row:
        """The row of the session."""
        return self.row | {
            "session.stutters": self.total_stutters or max(self.audio.stutters, self.others.stutters),
            "session.stalled_ms": self.total_stalled_ms or max(self.audio.stalled_ms, self.others.stalled_ms),
            "session.played_ms": max(self.audio.played_ms, self.others.played_ms),
            "session.startup_ms": self.startup_ms,
            "session.items": 1,
        }


@dataclass
class Sessions:
    """Rows with CMCD to rows of chunks and of sessions."""

    sources: tuple[str, ...]
    """The fields with the payload: one, or the four headers that a player may send instead of a query."""
    _open: dict[tuple[object, object], _Session] = field(default_factory=dict)

    def rows(self, reads: Iterable[Read]) -> Iterator[Read]:
        """The rows with fields ``cmcd.KEY``, ``chunk.…`` and ``session.…``."""
        last = 0
        for number, line, row in reads:
            last = number
            if isinstance(row, RowError):
                yield number, line, row
                continue
            try:
                yield from self._row(number, line, row)
            except RowError as error:
                yield number, line, error
        for session in self._open.values():
            yield last, "", session.finished()
        self._open.clear()

    def _row(self, number: int, line: str, row: Row) -> Iterator[Read]:
        keys = payload_in(row.get(name) for name in self.sources)
        if "sid" not in keys:
            raise RowError("CMCD: no sid")
        for number_key in _NUMBERS:
            _whole(keys, number_key)
        named = row | {f"cmcd.{key}": value for key, value in keys.items()}
        name = (keys["sid"], keys.get("cid"))
        session = self._open.pop(name, None) or _Session(named)
        session.add(keys)
        self._open[name] = session
        if chunk := _chunk(keys):
            yield number, line, named | chunk
        if len(self._open) > SESSIONS:
            yield number, "", self._open.pop(next(iter(self._open))).finished()


def _chunk(keys: Row) -> Row:
    """Size and time of a chunk, in bytes and milliseconds. Without a time of its own (version 2: ``ttlb``),
    the throughput that the player measured last gives it.
    """
    bitrate, duration, took = (_whole(keys, name) for name in ("br", "d", "ttlb"))
    if not bitrate or not duration or _is_failed(keys):
        return {}
    throughput = None if took is not None else _whole(keys, "mtp")
    bits = bitrate * duration
    if took is None and throughput:
        took_ms = str(bits / throughput)
    elif took:
        took_ms = str(took)
    else:
        return {}
    return {"chunk.bytes": bits // 8, "chunk.ms": took_ms, "chunk.ttfb_ms": _whole(keys, "ttfb")}


def _is_failed(keys: Row) -> bool:
    """Whether the response code (version 2: ``rc``) says that the player did not get the chunk."""
    code = _whole(keys, "rc")
    return code is not None and not 200 <= code < 300


def _whole(keys: Row, name: str) -> int | None:
    value = keys.get(name)
    if value is None or value is True:
        return None
    try:
        number = round(float(str(value)))
    except (ValueError, OverflowError):
        raise RowError(f"CMCD {name}: no whole number") from None
    if number < 0:
        raise RowError(f"CMCD {name}: negative")
    return number
