"""Names in the first line of a log against the names in a mapping, and the clock that they stand for."""

from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from typing import Final

from uncork.measure.errors import InputError, available
from uncork.measure.sources.lines import Read, RowError
from uncork.measure.sources.mapping import Mapping

TOOK: Final = "time-taken"
_OF_IIS: Final = ("s-ip", "s-sitename", "s-computername", "s-port", "sc-substatus", "sc-win32-status")
"""Fields of IIS, which writes milliseconds."""
_OF_CLOUDFRONT: Final = "x-edge-"
"""CloudFront writes seconds, as the format's draft says."""


def is_late(mapping: Mapping) -> bool:
    """Whether a line or file may lack a field that another one has: what none had is known at the end."""
    return mapping.format in ("json", "w3c") or (mapping.optional and not mapping.is_built_in())


def check(names: Sequence[str], mapping: Mapping, place: str) -> None:
    """Whether a header has the fields that the mapping reads, each once: of optional ones at least one."""
    wanted = [name for name in mapping.names_read() if not _is_made(name, mapping)]
    lacking = [name for name in mapping.lacking(names) if name in wanted]
    if twice := [name for name, count in Counter(names).items() if count > 1 and name in wanted]:
        raise InputError(place, f"the header has {twice[0]!r} twice", "rename one of both")
    if not lacking or (mapping.optional and len(lacking) < len(wanted)):
        return
    if mapping.optional:
        remedy = f"it has {', '.join(sorted(names)[:8])}; write a mapping file that names its columns"
        raise InputError(place, f"the header has none of the columns of --mapping {mapping.name}", remedy)
    remedy = f"{available(lacking[0], sorted(names))} (optional = true accepts it)"
    raise InputError(place, f"the header lacks {', '.join(map(repr, lacking))}", remedy)


def _is_made(name: str, mapping: Mapping) -> bool:
    """Whether the field is made from CMCD."""
    return bool(mapping.cmcd) and name.startswith(("cmcd.", "chunk.", "session."))


class Clock:
    """Whether ``time-taken`` of a log in the W3C format is in the unit that the mapping reads. Servers write
    different ones into a field of one name.
    """

    def __init__(self, mapping: Mapping, place: str) -> None:
        of = mapping.columns.get("completion_ns")
        is_checked = of is not None and of.sources == (TOOK,)
        self._unit = of.unit or "ns" if of is not None and is_checked else ""
        self._mapping, self._place = mapping, place

    def lines(self, text: Iterable[str]) -> Iterator[str]:
        """The lines; an error if the server's name says another unit."""
        for line in text:
            if self._unit == "s" and line.startswith(("#Software: Microsoft Internet", "#Software: IIS")):
                raise self._is_of_iis()
            yield line

    def check(self, names: Sequence[str]) -> None:
        """The names in ``#Fields:``."""
        wanted = self._mapping.names_read()
        if twice := [name for name, count in Counter(names).items() if count > 1 and name in wanted]:
            raise InputError(self._place, f"#Fields: has {twice[0]!r} twice", "rename one of both")
        is_of_cloudfront = any(name.startswith(_OF_CLOUDFRONT) for name in names)
        if self._unit == "s" and not is_of_cloudfront and any(name in _OF_IIS for name in names):
            raise self._is_of_iis()
        if self._unit == "ms" and is_of_cloudfront:
            raise self._is_in_seconds(f"CloudFront writes {TOOK} in seconds")

    def rows(self, reads: Iterable[Read]) -> Iterator[Read]:
        """The rows; an error if a value has a fraction, which milliseconds of IIS have not."""
        for number, line, row in reads:
            if self._unit == "ms" and not isinstance(row, RowError) and "." in str(row.get(TOOK)):
                raise self._is_in_seconds(f"line {number}: {TOOK} {row[TOOK]!r} has a fraction: seconds")
            yield number, line, row

    def _is_of_iis(self) -> InputError:
        problem = f"IIS writes {TOOK} in milliseconds, and --mapping {self._mapping.name} reads seconds"
        return InputError(
            self._place, problem, f'use --mapping iis, or write {{ from = "{TOOK}", unit = "ms" }}'
        )

    def _is_in_seconds(self, problem: str) -> InputError:
        problem = f"{problem}, and --mapping {self._mapping.name} reads milliseconds"
        return InputError(
            self._place, problem, f'use --mapping w3c, or write {{ from = "{TOOK}", unit = "s" }}'
        )
