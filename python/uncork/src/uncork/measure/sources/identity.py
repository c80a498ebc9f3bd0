"""Which line is which: two equal lines of a log are two responses, and a file that is read twice is not."""

import hashlib
from typing import Final

GENERATION: Final = 200_000
"""Lines that are remembered at least. Equal lines of a log are of the same second."""


class Occurrences:
    """How often a line has been there. Memory does not grow with the log: the number of a line that was not
    there for long is forgotten.
    """

    def __init__(self) -> None:
        self._now: dict[int, int] = {}
        self._before: dict[int, int] = {}

    def id(self, line: str) -> int:
        """Of this line; another one each time."""
        of = hashed(line)
        count = self._now.get(of) or self._before.get(of, 0)
        if len(self._now) >= GENERATION:
            self._now, self._before = {}, self._now
        self._now[of] = count + 1
        return of if count == 0 else hashed(f"{line}\0{count + 1}")


def hashed(text: str) -> int:
    """63 bits, a type that every engine has."""
    digest = hashlib.blake2b(text.encode("utf-8", "surrogatepass"), digest_size=8).digest()
    return int.from_bytes(digest, "little") >> 1
