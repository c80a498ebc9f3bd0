"""Options of the laboratory as the command line has them."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from itertools import islice

from uncork.measure.errors import InputError

EXAMPLES = {
    "preset": "lte",
    "rate": "20mbit",
    "rtt": "50ms",
    "loss": "1%",
    "loss_position": "before",
    "buffer": "1bdp",
    "queue": "codel",
    "jitter": "2ms",
    "host_jitter": "none",
    "size": "10MB",
    "duration": "30s",
    "start": "together",
    "initial_window": "40p",
    "cc": "bbr3",
}
"""A value of each option that is a text."""
MAX_VALUES = 10_000
"""Of an option, as of a comparison's combinations."""
MAX_TEXT = 100_000
"""Characters of an option."""


def texts(given: Mapping[str, object]) -> list[tuple[str, str]]:
    """Names and values of the options that are given, not None."""
    return [(name.replace("_", "-"), _text(name, it)) for name, it in given.items() if it is not None]


def number(option: str, value: object) -> int:
    """A whole number."""
    if isinstance(value, bool) or not hasattr(value, "__index__"):
        raise InputError(f"{option}={value!r}", "is not a whole number", f"write {option}=10")
    return int(value.__index__())


def unicode(place: str, text: str) -> str:
    """The text, if it is Unicode: a text of Python may have halves of characters, also from a file's name."""
    try:
        text.encode()
    except UnicodeEncodeError as error:
        half = ascii(text[error.start])
        remedy = "write the whole character, or leave it out"
        raise InputError(place, f"has half a character, {half}", remedy) from None
    return text


def _text(option: str, value: object) -> str:
    if option in ("flows", "seeds", "seed"):
        return str(number(option, value))
    several = _several(option, value)
    remedy = f"write {option}={EXAMPLES.get(option, '…')!r}"
    if not all(isinstance(one, str) for one in several):
        raise InputError(f"{option}={value!r}", "is not a text with a unit", remedy)
    if not several:
        raise InputError(f"{option}={value!r}", "has no value", remedy)
    joined = ",".join(map(str, several))
    if len(joined) > MAX_TEXT:
        raise InputError(option, f"has a text of {len(joined):,} characters", remedy)
    return unicode(option, joined)


def _several(option: str, value: object) -> list[object]:
    if not isinstance(value, Iterable) or isinstance(value, str | Mapping):
        return [value]
    several = list(islice(value, MAX_VALUES + 1))
    if len(several) > MAX_VALUES:
        raise InputError(option, f"has more than {MAX_VALUES:,} values", "give fewer")
    return several
