"""SipHash-2-4 of many short messages at once (Aumasson and Bernstein 2012)."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

Words = NDArray[np.uint64]

_START = (0x736F6D6570736575, 0x646F72616E646F6D, 0x6C7967656E657261, 0x7465646279746573)


def siphash24(key: bytes, messages: Sequence[bytes]) -> Words:
    """The hash of each message with a `key` of 16 bytes, shape (messages,)."""
    if len(key) != 16:
        raise ValueError(f"a key has 16 bytes, this one has {len(key)}")
    hashes = np.empty(len(messages), dtype=np.uint64)
    lengths = np.array([len(message) for message in messages], dtype=np.int64)
    for length in set(lengths.tolist()):
        chosen = np.flatnonzero(lengths == length)
        hashes[chosen] = _same_length(key, [messages[index] for index in chosen.tolist()], length)
    return hashes


def _same_length(key: bytes, messages: Sequence[bytes], length: int) -> Words:
    """Hashes of messages of one length: the last word ends with the length's lowest byte."""
    filling = bytes(7 - length % 8) + bytes([length & 0xFF])
    words = np.frombuffer(b"".join(message + filling for message in messages), dtype="<u8")
    keys = np.frombuffer(key, dtype="<u8").astype(np.uint64)
    state = [np.full(len(messages), np.uint64(start) ^ keys[at % 2]) for at, start in enumerate(_START)]
    for word in words.reshape(len(messages), -1).T.astype(np.uint64):
        state[3] = state[3] ^ word
        state = _rounds(state, 2)
        state[0] = state[0] ^ word
    state[2] = state[2] ^ np.uint64(0xFF)
    state = _rounds(state, 4)
    return state[0] ^ state[1] ^ state[2] ^ state[3]


def _rounds(state: list[Words], count: int) -> list[Words]:
    a, b, c, d = state
    for _ in range(count):
        a, c = a + b, c + d
        b, d = _rotated(b, 13) ^ a, _rotated(d, 16) ^ c
        a, c = _rotated(a, 32) + d, c + b
        d, b = _rotated(d, 21) ^ a, _rotated(b, 17) ^ c
        c = _rotated(c, 32)
    return [a, b, c, d]


def _rotated(words: Words, bits: int) -> Words:
    return (words << np.uint64(bits)) | (words >> np.uint64(64 - bits))
