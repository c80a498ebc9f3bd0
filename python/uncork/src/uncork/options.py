"""Options of the laboratory as the command line has them."""

from __future__ import annotations

from collections.abc import Iterable, Mapping

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


def texts(given: Mapping[str, object]) -> list[tuple[str, str]]:
    """Names and values of the options that are given, not None."""
    return [(name.replace("_", "-"), _text(name, it)) for name, it in given.items() if it is not None]


def number(option: str, value: object) -> int:
    """A whole number."""
    if isinstance(value, bool) or not hasattr(value, "__index__"):
        raise InputError(f"{option}={value!r}", "is not a whole number", f"write {option}=10")
    return int(value.__index__())


def _text(option: str, value: object) -> str:
    if option in ("flows", "seeds", "seed"):
        return str(number(option, value))
    several = list(value) if isinstance(value, Iterable) and not isinstance(value, str | Mapping) else [value]
    remedy = f"write {option}={EXAMPLES.get(option, '…')!r}"
    if not all(isinstance(one, str) for one in several):
        raise InputError(f"{option}={value!r}", "is not a text with a unit", remedy)
    if not several:
        raise InputError(f"{option}={value!r}", "has no value", remedy)
    return ",".join(map(str, several))
