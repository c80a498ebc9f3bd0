"""Bad input: what is wrong where, and what to do about it. The command line prints it and exits with 2."""

from __future__ import annotations

from collections.abc import Iterable
from difflib import get_close_matches

MAX_SHOWN = 20
"""Names that a message lists."""
ANALYSIS = ("duckdb", "ibis", "numpy", "pandas", "pyarrow", "scipy", "sqlglot")
"""The modules of the extra `analysis`."""


class InputError(ValueError):
    """`place` is an option, file or column; `remedy` says what to write or do instead."""

    def __init__(self, place: str, problem: str, remedy: str = "") -> None:
        super().__init__(f"{place}: {problem}" + (f"; {remedy}" if remedy else ""))
        self.place, self.problem, self.remedy = place, problem, remedy


class OutputError(Exception):
    """A result could not be written. The command line exits with 3."""


def available(name: str, among: Iterable[str]) -> str:
    """A remedy for a name that does not exist: the nearest one, or what there is."""
    names = list(dict.fromkeys(among))
    near = get_close_matches(name, names, 1)
    more = f" and {len(names) - MAX_SHOWN} more" if len(names) > MAX_SHOWN else ""
    listed = f"available: {', '.join(names[:MAX_SHOWN])}{more}" if names else "none is available"
    return f"did you mean {near[0]}?" if near else listed


def not_installed(error: ModuleNotFoundError) -> InputError:
    """What to do about a package that cannot be imported. An error of our own modules is raised again."""
    from importlib.util import find_spec

    if error.name is None or error.name.partition(".")[0] == "uncork":
        raise error
    missing = [name for name in ANALYSIS if find_spec(name) is None] or [error.name]
    problem = f"packages are not installed: {', '.join(missing)}"
    return InputError("extra `analysis`", problem, "run: pip install 'uncork[analysis]'")
